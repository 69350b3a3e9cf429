/* SPDX-License-Identifier: Apache-2.0
 *
 * The lambda driver: Lambda's Cloud API, version 1. On-demand instances only; there are no notices.
 *
 * The API has no idempotency token. So a launch first looks for an instance that carries its token,
 * and launches only if there is none and no launch under that token may still take effect (driver.c
 * has the rules). The remaining gap: if belayd dies right after a launch and the next try starts
 * before the API lists the instance, two instances carry one token. The scheduler's sweep keeps the
 * one named in its row and terminates the other.
 */
#ifndef BELAY_CLOUD_LAMBDA_LAMBDA_H
#define BELAY_CLOUD_LAMBDA_LAMBDA_H

#include "cloud/provider.h"

/* Settings common to all launches of a pool. NULL: none, or Lambda's default. */
struct lambda_machine {
    const char *ssh_key; /* name of a key in the account; required by the API */
    const char *image;   /* id */
    const char *image_family;
    const char *file_system; /* name; must be in the pool's region */
};

struct lambda_options {
    struct lambda_machine machine;
    /* NULL for https://cloud.lambda.ai; http:// only for a loopback host */
    const char *endpoint_url;
    /* read for each request, so that it can be replaced; NULL for LAMBDA_API_KEY */
    const char *key_file;
    /* the account's rate limits; 0 = those that Lambda documents */
    int64_t request_every_ms, launch_every_ms;
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Copies what it needs; reads LAMBDA_API_KEY here only. ERR_CONFIG: no key at all, an endpoint with
 * plain http to another host, both an image and a family. */
int lambda_driver_create(
    const struct lambda_options *o, struct cloud_driver **ret_driver, struct err *e);

extern const struct cloud_provider lambda_provider;

#endif
