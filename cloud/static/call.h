/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operations of the static driver share: a call that asks hosts, as many at once as it
 * may, and goes on when all of them have answered. Nobody else includes this.
 */
#ifndef BELAY_CLOUD_STATIC_CALL_H
#define BELAY_CLOUD_STATIC_CALL_H

#include "base/list.h"
#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/static/protocol.h"

struct static_host {
    char label[STATIC_HOST_MAX + 1]; /* as the pool's file has it; part of ids */
    char name[STATIC_HOST_MAX + 1];
    int port;
    bool is_hidden;   /* the last listing did not see it, or there was none */
    bool is_silent;   /* told of in the log */
    bool is_claiming; /* a launch of ours is at it */
};

struct static_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct static_options o; /* its texts are kept */
    struct static_host *hosts;
    size_t n_hosts;
    struct list doubts; /* launch.c's */
};

/* One host that is asked something, and what it said. */
struct static_question {
    size_t host;
    struct buf request;
    struct err e; /* ERR_NONE: report holds */
    struct static_report report;
};

struct static_call {
    struct cloud_call base;
    struct static_driver *d;
    struct static_question *questions;
    size_t n_questions, n_asked, n_answered;
    void (*then)(struct static_call *c); /* all of them have been answered */
    struct list asking;                  /* struct asking, call.c's */
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX];
    struct buf claim; /* the request; holds a one-use secret */
    bool *is_free;    /* by host: a launch may try it */
    size_t at;        /* the host that is being claimed */
    bool is_claiming;
    bool is_looking; /* all hosts are asked what is on them */
};

struct static_call *static_call_new(struct cloud_driver *d);
void static_call_deinit(struct cloud_call *base);

/* Asks those of the call's questions that nobody was asked yet; c->then follows the last answer. */
void static_call_ask(struct static_call *c);
/* Asks every host what is on it. Who does not answer is told of in the log. */
void static_call_ask_all(struct static_call *c, void (*then)(struct static_call *c));
/* Asks one host, with these bytes, and nobody else. */
void static_call_ask_one(struct static_call *c, size_t host, const struct buf *request,
    void (*then)(struct static_call *c));

/* The host of a claim of this call's may be claimed by others again. */
void static_call_end_claiming(struct static_call *c);

/* As in struct cloud_call_ops: there is no HTTP in these calls. */
void static_call_no_reply(struct cloud_call *base, const struct http_reply *reply);

/* launch.c */
void static_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx);
void static_forget_doubts(struct static_driver *d);

#endif
