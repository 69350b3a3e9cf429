/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP client as a vtable: cloud drivers, notice readers and the agent's link use it; base/uv
 * implements it on libcurl's multi interface, and for UNIX sockets by itself; tests play it from
 * recorded bytes. Redirects are never followed and proxies never used unless asked for, so that a
 * credential cannot be sent to another host.
 */
#ifndef BELAY_BASE_HTTP_H
#define BELAY_BASE_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

#define HTTP_HEADERS_MAX 16

struct sockaddr;

/* TLS for one request. All strings borrowed for the duration of http_start. */
struct http_tls {
    const char *ca_pem;   /* trust exactly these; NULL: the system's store */
    const char *cert_pem; /* client certificate and key, or both NULL */
    const char *key_pem;
    /* name the certificate must carry, when it is not the URL's host; NULL: the host */
    const char *verify_name;
};

struct http_request {
    const char *method; /* "GET" "PUT" "POST" "DELETE" "HEAD" */
    const char *url;
    const char *headers[HTTP_HEADERS_MAX]; /* "Name: value", ends at the first NULL */
    const void *body;
    size_t body_len;
    int64_t timeout_ms;         /* whole request; required, > 0 */
    int64_t connect_timeout_ms; /* 0: timeout_ms */
    size_t max_reply_bytes;     /* larger replies fail with ERR_INVALID; required, > 0 */
    /* http_blocking_run only: the reply's body takes this one's memory; NULL: its own */
    struct buf *reply_memory;
    const char *unix_socket; /* connect here instead of to the URL's host */
    /* Whether this may be connected to; NULL: to all. Runs when the connection is made, on whatever
     * thread makes it, until done; none that is kept is used then. Else ERR_UNAVAILABLE. */
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *may_connect_ctx;
    bool use_proxy; /* honour https_proxy and friends; default off */
    struct http_tls tls;
};

#define HTTP_REPLY_HEADERS_MAX 64
#define HTTP_REPLY_HEADER_BYTES_MAX 8192

struct http_reply {
    int status; /* 100 .. 599 */
    struct buf body;
    /* "Name: value" as received. Those that are too long, and those after the last place, are left
     * out. */
    char *headers[HTTP_REPLY_HEADERS_MAX];
    size_t n_headers;
};

/* Wipes and frees what it holds, for it may be a secret; it is empty then. For replies that one
 * owns. */
void http_reply_deinit(struct http_reply *r);
void http_reply_clear_headers(struct http_reply *r);

/* For clients. What comes in is added to the body; whole is how long that will be, 0: not known,
 * and is to be a length that is allowed. Where the bytes so far have to move, they are not left
 * behind. */
void http_reply_add(struct http_reply *r, const void *p, size_t n, size_t whole);
/* a header, unless it is to be left out */
void http_reply_add_line(struct http_reply *r, const char *line, size_t n);

/* Whether a request's header is "Name: value" in one line. */
bool http_header_is_line(const char *line);
bool http_request_has_header(const struct http_request *r, const char *name);

/* The value of the first header of that name (compared without case), blanks before it left out; or
 * NULL. Borrowed. */
const char *http_reply_header(const struct http_reply *r, const char *name);

struct http_call; /* a request under way */

/* Exactly one of e and reply is NULL; both borrowed for the call. A reply of any status is a reply;
 * e is about not getting one: ERR_TIMEOUT, ERR_UNAVAILABLE (no connection), ERR_DENIED (TLS
 * verification), ERR_INVALID (too large, malformed), ERR_CANCELLED, ERR_IO. */
typedef void (*http_done_fn)(void *ctx, const struct err *e, const struct http_reply *reply);

struct http_client {
    /* Copies what it needs of r, and wipes its copies and the reply when the call is over. done
     * runs exactly once, never inside start. The call is valid until then. */
    struct http_call *(*start)(
        struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx);
    /* Hastens done (with ERR_CANCELLED unless it had finished); never runs it inside. */
    void (*cancel)(struct http_client *c, struct http_call *call);
};

static inline struct http_call *http_start(
    struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx)
{
    return c->start(c, r, done, ctx);
}

static inline void http_cancel(struct http_client *c, struct http_call *call)
{
    if (call)
        c->cancel(c, call);
}

#endif
