/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's Cloud API, version 1, as functions: a request in, status and JSON out. No I/O, no clock.
 * One account that sees all of Lambda's regions, which are the zones of the market's pools. As at
 * Lambda, a launch has no idempotency token: the same body twice is two instances. Unknown fields
 * are refused by name.
 */
#ifndef BELAY_EMULATOR_LAMBDA_CLOUD_H
#define BELAY_EMULATOR_LAMBDA_CLOUD_H

#include "base/json.h"
#include "emulator/front.h"

#define LAMBDA_CLOUD_BODY_MAX (4u << 20) /* user data of 1 MB with every byte escaped */
#define LAMBDA_CLOUD_TYPE "application/json"
#define LAMBDA_CLOUD_KEYS_MAX 16
#define LAMBDA_CLOUD_KEY_MAX 257 /* bytes including the NUL */
/* How long an ended instance is still shown; Lambda does not document it. */
#define LAMBDA_CLOUD_ENDED_SHOWN_MS 60000

struct lambda_cloud_file_system {
    char name[CLOUD_NAME_MAX], region[CLOUD_NAME_MAX];
};

struct lambda_cloud {
    char keys[LAMBDA_CLOUD_KEYS_MAX][LAMBDA_CLOUD_KEY_MAX];
    size_t n_keys;
    /* Existing resources, NULL-terminated; NULL for any. An image is named by id or family. */
    const char *const *ssh_keys, *const *images;
    const struct lambda_cloud_file_system *file_systems;
    size_t n_file_systems;
    /* Minimum interval between requests, and between launches; earlier ones are refused. */
    int64_t request_every_ms, launch_every_ms;
    struct wall next_request, next_launch;
};

/* One call in progress. */
struct lambda_cloud_call {
    const struct front_site *site;
    const struct front_request *request;
    struct front_reply *reply;
    struct region *region;
    struct lambda_cloud *cloud;
    const char *id; /* from the path; "" if absent */
};

/* The entry point. Answers every request. */
void lambda_cloud_api(
    const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);

/* An error by its code, with its status and message; "1015" is the error of the proxy before the
 * API for clients that exceed the rate limit. */
void lambda_cloud_api_error(
    const struct front_site *s, const char *code, struct front_reply *ret_reply);

/* ---- for the methods, in lambda_*.c ---- */

/* Turns the reply into an error with this message. Returns -1, to allow `return
 * lambda_cloud_fail(...)`. */
int lambda_cloud_fail(struct lambda_cloud_call *c, int status, const char *code, const char *fmt,
    ...) __attribute__((format(printf, 4, 5)));

void lambda_cloud_reply(struct lambda_cloud_call *c, json_t *data); /* takes over data */

/* The request's body, owned by the caller; NULL with the error reply set. */
json_t *lambda_cloud_body(struct lambda_cloud_call *c);

/* The methods: return 0, or -1 with an error reply. */
int lambda_cloud_types(struct lambda_cloud_call *c);
int lambda_cloud_list(struct lambda_cloud_call *c);
int lambda_cloud_get(struct lambda_cloud_call *c);
int lambda_cloud_launch(struct lambda_cloud_call *c);
int lambda_cloud_terminate(struct lambda_cloud_call *c);

#endif
