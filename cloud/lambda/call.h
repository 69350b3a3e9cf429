/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operations of the lambda driver share; nobody else includes this.
 */
#ifndef BELAY_CLOUD_LAMBDA_CALL_H
#define BELAY_CLOUD_LAMBDA_CALL_H

#include "base/list.h"
#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/lambda/api.h"

/* A launch whose outcome is not known. */
struct lambda_doubt {
    struct link link;
    char token[CLOUD_TOKEN_MAX];
    bool is_under_way;
    struct mono until; /* when it is not under way any more */
};

struct lambda_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct lambda_machine machine; /* its texts are kept */
    char *endpoint;                /* without the last '/' */
    const char *key_file;          /* kept */
    char *key;                     /* from the environment */
    int64_t request_every_ms, launch_every_ms;
    struct mono next_request, next_launch;
    struct list doubts;
};

/* Of a launch. */
enum lambda_stage { STAGE_LOOK, STAGE_TYPES, STAGE_ACT };

struct lambda_call {
    struct cloud_call base;
    struct lambda_driver *d;
    enum lambda_stage stage;
    bool is_waiting; /* for its turn, at most until: */
    struct mono waits_until;
    /* the listing was asked for too early to show an earlier launch under this token */
    bool is_early;
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX], type[CLOUD_NAME_MAX];
    struct lambda_doubt *doubt; /* ours while the launch is under way */
    struct buf request;
};

/* A region that is none is refused later, in its completion. */
struct lambda_call *lambda_call_new(struct cloud_driver *d, const char *region);
void lambda_call_deinit(struct cloud_call *base);

/* True: it is this call's turn. Else the call has ended, or its step runs again when it is. */
bool lambda_call_is_turn(struct lambda_call *c, bool is_launch);
/* The call's next request, with the key; without a right one the call ends. body NULL: none. */
void lambda_call_send(
    struct lambda_call *c, const char *method, const char *path, const struct buf *body);
/* The kind of a reply that is not 200. */
int lambda_call_refusal(struct lambda_call *c, const struct http_reply *reply, struct err *e);

/* ERR_CONFIG: the file cannot be read, or by others too; or there is no key in it. Wipe it. */
int lambda_read_key(const struct lambda_driver *d, char ret_key[LAMBDA_KEY_MAX + 1], struct err *e);

/* True while an earlier launch under this token may still take effect, or show. */
bool lambda_is_in_doubt(struct lambda_driver *d, const char *token);
/* A launch is sent; unless it is ended, the doubt outlasts the call by a while. */
void lambda_begin_doubt(struct lambda_call *c);
void lambda_end_doubt(struct lambda_call *c); /* it has an answer, and that says what is */

/* launch.c: as in struct cloud_driver_ops. */
void lambda_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);

#endif
