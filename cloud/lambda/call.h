/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the lambda driver's operations; private to the driver.
 */
#ifndef BELAY_CLOUD_LAMBDA_CALL_H
#define BELAY_CLOUD_LAMBDA_CALL_H

#include "base/list.h"
#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/lambda/api.h"

/* A launch with an unknown outcome. */
struct lambda_doubt {
    struct link link;
    char token[CLOUD_TOKEN_MAX];
    bool is_under_way;
    struct mono until; /* end of the doubt, once it is not in progress */
};

struct lambda_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct lambda_machine machine; /* its texts are in kept */
    char *endpoint;                /* without the last '/' */
    const char *key_file;          /* in kept */
    char *key;                     /* from the environment */
    int64_t request_every_ms, launch_every_ms;
    struct mono next_request, next_launch;
    struct list doubts;
};

/* Of a launch. */
enum lambda_stage { STAGE_FIND, STAGE_TYPES, STAGE_ACT };

struct lambda_call {
    struct cloud_call base;
    struct lambda_driver *d;
    enum lambda_stage stage;
    bool is_waiting; /* for its turn, at most until waits_until */
    struct mono waits_until;
    /* the listing was requested too early to show an earlier launch under this token */
    bool is_early;
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX];
    struct lambda_doubt *doubt; /* owned while the launch is in progress */
    struct buf request;
};

/* A malformed region is refused later, in the completion. */
struct lambda_call *lambda_call_new(struct cloud_driver *d, const char *region);
void lambda_call_deinit(struct cloud_call *base);

/* True if it is this call's turn. Otherwise the call has ended, or its step runs again when it is.
 */
bool lambda_call_is_turn(struct lambda_call *c, bool is_launch);
/* Sends the call's next request, with the key; without a valid key the call ends. body may be NULL.
 */
void lambda_call_send(
    struct lambda_call *c, const char *method, const char *path, const struct buf *body);
/* The kind of a reply with a status other than 200. */
int lambda_call_refusal(struct lambda_call *c, const struct http_reply *reply, struct err *e);

/* ERR_CONFIG: the file cannot be read, others may read it, or it contains no key. Wipe it. */
int lambda_read_key(const struct lambda_driver *d, char ret_key[LAMBDA_KEY_MAX + 1], struct err *e);

/* True while an earlier launch under this token may still take effect or appear. */
bool lambda_is_in_doubt(struct lambda_driver *d, const char *token);
/* A launch is sent. Unless lambda_end_doubt is called, the doubt outlasts the call by a while. */
void lambda_begin_doubt(struct lambda_call *c);
void lambda_end_doubt(struct lambda_call *c); /* a definite answer has arrived */

#endif
