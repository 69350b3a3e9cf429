/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP client as a vtable. Cloud drivers, notice readers and the agent's link use it; base/uv
 * implements it on libcurl's multi interface, and for UNIX sockets without curl; tests replay
 * recorded bytes. Redirects are never followed and proxies never used unless requested, so that a
 * credential cannot be sent to another host.
 */
#ifndef BELAY_BASE_HTTP_H
#define BELAY_BASE_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>
#include <sys/un.h>

#define HTTP_HEADERS_MAX 16
/* The longest path of a UNIX socket: sun_path, less the suffix of the temporary name under which a
 * server binds it first. */
#define HTTP_UNIX_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof(".2147483647"))

struct sockaddr;

/* TLS of one request. All strings are borrowed for the duration of http_start. */
struct http_tls {
    const char *ca_pem;   /* trust exactly these; NULL for the system's store */
    const char *cert_pem; /* client certificate and key, or both NULL */
    const char *key_pem;
    /* the name that the certificate must carry; NULL for the URL's host */
    const char *verify_name;
};

struct http_request {
    const char *method; /* "GET" "PUT" "POST" "DELETE" "HEAD" */
    const char *url;
    const char *headers[HTTP_HEADERS_MAX]; /* "Name: value", ends at the first NULL */
    const void *body;
    size_t body_len;
    int64_t timeout_ms;         /* whole request; required, > 0 */
    int64_t connect_timeout_ms; /* 0 = timeout_ms */
    size_t max_reply_bytes;     /* larger replies fail with ERR_INVALID; required, > 0 */
    /* http_blocking_run only: reuse this buffer's memory for the reply's body; may be NULL */
    struct buf *reply_memory;
    const char *unix_socket; /* connect here instead of to the URL's host */
    /* Whether connecting to this address is allowed; NULL for all. Called on the connecting thread,
     * when the connection is made, possibly until the request is done. With it set, no kept
     * connection is reused. A refusal ends the request with ERR_UNAVAILABLE. */
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *may_connect_ctx;
    bool use_proxy; /* use https_proxy and its relatives; default off */
    struct http_tls tls;
};

#define HTTP_REPLY_HEADERS_MAX 64
#define HTTP_REPLY_HEADER_BYTES_MAX 8192

struct http_reply {
    int status; /* 100 .. 599 */
    struct buf body;
    /* "Name: value" as received. Headers that are too long, and those beyond the array, are
     * dropped. */
    char *headers[HTTP_REPLY_HEADERS_MAX];
    size_t n_headers;
};

/* Wipes (it may be a secret) and frees the content; *r is empty and reusable. Only for a reply that
 * the caller owns. */
void http_reply_deinit(struct http_reply *r);
void http_reply_clear_headers(struct http_reply *r);

/* For HTTP clients: adds received bytes to the body. whole is the expected length of the body, 0 if
 * unknown; the caller has checked it against the limit. If the body has to move in memory, its old
 * copy is wiped. */
void http_reply_add(struct http_reply *r, const void *p, size_t n, size_t whole);
/* adds a header line, or drops it if it exceeds the limits */
void http_reply_add_line(struct http_reply *r, const char *line, size_t n);

/* Whether a request's header is one line of the form "Name: value". */
bool http_header_is_line(const char *line);
bool http_request_has_header(const struct http_request *r, const char *name);

/* The value of the first header with that name (case-insensitive), without leading blanks; NULL if
 * absent. Borrowed. */
const char *http_reply_header(const struct http_reply *r, const char *name);

struct http_call; /* a request in progress */

/* Exactly one of e and reply is NULL; both are borrowed for the call. A reply of any status is a
 * reply; e means that none arrived: ERR_TIMEOUT, ERR_UNAVAILABLE (no connection), ERR_DENIED (TLS
 * verification), ERR_INVALID (too large, malformed), ERR_CANCELLED, ERR_IO. */
typedef void (*http_done_fn)(void *ctx, const struct err *e, const struct http_reply *reply);

struct http_client {
    /* Copies what it needs of r; wipes its copies and the reply when the call is over. done runs
     * exactly once, never inside start. The returned call is valid until done runs. */
    struct http_call *(*start)(
        struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx);
    /* Makes done run soon, with ERR_CANCELLED unless the request had finished; never runs it
     * inside. */
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
