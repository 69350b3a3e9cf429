/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the static driver's operations; private to the driver. A call queries hosts, several at
 * once up to a limit, and continues when all have answered.
 */
#ifndef BELAY_CLOUD_STATIC_CALL_H
#define BELAY_CLOUD_STATIC_CALL_H

#include "base/list.h"
#include "cloud/call.h"
#include "cloud/kept.h"
#include "cloud/static/protocol.h"

struct static_host {
    char label[STATIC_HOST_MAX + 1]; /* as in the pool's file; part of ids */
    char name[STATIC_HOST_MAX + 1];
    int port;
    bool is_hidden;   /* missing from the last listing, or there was none */
    bool is_silent;   /* its silence has been logged */
    bool is_claiming; /* one of our launches is claiming it */
};

struct static_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct cloud_kept kept;
    struct static_options o; /* its texts are in kept */
    struct static_host *hosts;
    size_t n_hosts;
    struct list doubts; /* launch.c */
};

/* A query to one host, and its answer. */
struct static_question {
    size_t host;
    struct buf request;
    struct err e; /* ERR_NONE if report is valid */
    struct static_report report;
};

struct static_call {
    struct cloud_call base;
    struct static_driver *d;
    struct static_question *questions;
    size_t n_questions, n_sent, n_answered;
    void (*then)(struct static_call *c); /* called after the last answer */
    struct list queries;                 /* struct query, call.c */
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX];
    struct buf claim; /* the request; contains a one-use secret */
    bool *is_free;    /* by host: whether a launch may try it */
    size_t at;        /* the host being claimed */
    bool is_claiming;
    bool is_listing; /* all hosts are being queried */
};

struct static_call *static_call_new(struct cloud_driver *d);
void static_call_deinit(struct cloud_call *base);

/* Sends the queries of the call that were not sent yet; c->then follows the last answer. */
void static_call_query(struct static_call *c);
/* Queries every host. Hosts that do not answer are logged. */
void static_call_query_all(struct static_call *c, void (*then)(struct static_call *c));
/* Sends these bytes to one host only. */
void static_call_query_one(struct static_call *c, size_t host, const struct buf *request,
    void (*then)(struct static_call *c));

/* Lets other calls claim the host of this call's claim again. */
void static_call_end_claiming(struct static_call *c);

/* For struct cloud_call_ops: these calls use no HTTP. */
void static_call_no_reply(struct cloud_call *base, const struct http_reply *reply);

#endif
