/* SPDX-License-Identifier: Apache-2.0
 *
 * The lambda driver: the Cloud API of Lambda, version 1. On-demand instances only; nothing
 * announces that one goes.
 *
 * The API takes no idempotency token. A launch therefore looks first for an instance that carries
 * its token, and launches only when there is none and no launch under that token may still take
 * effect (driver.c has the rules). What remains: when belayd dies right after a launch and the next
 * one starts before the API lists it, two instances carry one token. The scheduler's sweep keeps
 * the one that its row names and ends the other.
 */
#ifndef BELAY_CLOUD_LAMBDA_LAMBDA_H
#define BELAY_CLOUD_LAMBDA_LAMBDA_H

#include "cloud/provider.h"

/* What all launches of a pool have in common. NULL: none, or Lambda's default. */
struct lambda_machine {
    const char *ssh_key; /* name of a key in the account; the API does not launch without one */
    const char *image;   /* id */
    const char *image_family;
    const char *file_system; /* name; of the pool's region */
};

struct lambda_options {
    struct lambda_machine machine;
    const char *endpoint_url; /* NULL: https://cloud.lambda.ai; http:// only for a loopback host */
    /* read for each request, so that it can be replaced; NULL: LAMBDA_API_KEY */
    const char *key_file;
    /* the account's limits; 0: those that Lambda documents */
    int64_t request_every_ms, launch_every_ms;
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs; reads LAMBDA_API_KEY here and never again. ERR_CONFIG: no key at all, an
 * endpoint that is plain http to another host, both an image and a family. */
int lambda_driver_create(
    const struct lambda_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider lambda_provider;

#endif
