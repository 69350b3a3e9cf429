/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the HTTP server, shared by its three files: http_server.c (listening, the loop, the end),
 * http_exchange.c (what MHD calls: requests come in), http_reply.c (what handlers call: replies go out). The
 * life of an exchange:
 *
 *     READING --(whole request is here)--> HANDED --(http_reply*)--> ANSWERED --(sent, or peer gone)--> freed
 *        |                                                              ^
 *        +---- refused before any handler sees it: 400, 413, 503 -------+
 *
 * Invariants
 *  1. An exchange is HANDED while it stands in server.waiting: its handler owes it exactly one reply.
 *  2. HANDED and not the one in the handler right now = suspended in MHD, with its timer running.
 *  3. MHD is entered only by run_mhd, never from inside a handler: an answer given later is queued, and all
 * that were queued are resumed together (MHD's work for a resume grows with all that are suspended).
 *  4. MHD alone ends an exchange (http_exchange_on_completed), so a connection that breaks needs no case of
 * its own.
 */
#ifndef BELAY_BASE_UV_HTTP_EXCHANGE_H
#define BELAY_BASE_UV_HTTP_EXCHANGE_H

#include "base/list.h"
#include "base/timers.h"
#include "base/uv/http_server.h"
#include "base/uv/http_target.h"
#include <microhttpd.h>
#include <sys/stat.h>

enum exchange_state { READING, HANDED, ANSWERED };

/* Why the rest of a body is read and dropped. */
enum body_refusal { BODY_FINE, BODY_TOO_LARGE, BODY_NO_ROOM };

/* What the bodies of some kind of clients may take together. */
struct body_share {
    size_t now_bytes, max_bytes;
};

struct reply_header {
    char *name, *value;
};

struct http_exchange {
    struct link link; /* in server.waiting while HANDED, in server.answered while it waits to be resumed */
    struct http_server *server;
    struct MHD_Connection *conn;
    enum exchange_state state;
    bool is_begun, is_suspended;
    char *raw_target;
    struct http_target target;
    struct buf body; /* its bytes are counted in *share */
    struct body_share *share;
    size_t body_max_bytes, dropped_bytes;
    enum body_refusal refusal;
    struct http_server_request request;
    struct reply_header *headers; /* for the reply */
    size_t n_headers;
    struct MHD_Response *response;
    int status;
    struct timer timer;
    http_wait_fn on_timeout, on_gone;
    void *wait_ctx;
};

struct http_server {
    struct MHD_Daemon *mhd;
    uv_poll_t poll; /* MHD's epoll descriptor */
    struct timers *timers;
    struct timer mhd_timer, resume_timer, finish_timer;
    struct list waiting, answered;
    size_t n_suspended;
    size_t n_files;                /* replies that read a file */
    struct http_exchange *current; /* in the handler right now */
    bool is_in_mhd, is_stopping;
    http_handler_fn handler;
    void *ctx;
    size_t max_body_bytes;
    http_body_limit_fn body_limit;
    struct body_share known, strangers;
    bool has_client_ca;
    int port;
    char *unix_path;
    struct stat unix_stat; /* what stood at unix_path when we had bound it */
    char mhd_error[256];   /* the last thing MHD complained of, for the error of a failed start */
};

/* An error with a status that does not follow from its kind. */
void http_reply_status_err(struct http_exchange *x, int status, const struct err *e);
/* 503: the server is stopping. */
void http_reply_stopping(struct http_exchange *x);

/* MHD's callbacks; the first void * is the server. In the order in which they come: the target, untouched;
 * the headers, each piece of the body, the end, and once more after a resume; the end of the exchange,
 * however it came. */
void *http_exchange_on_target(void *cls, const char *target, struct MHD_Connection *conn);
enum MHD_Result http_exchange_on_access(void *cls, struct MHD_Connection *conn, const char *url,
    const char *method, const char *version, const char *upload, size_t *n_upload, void **con_cls);
void http_exchange_on_completed(
    void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why);

#endif
