/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 server over TCP, TLS (OpenSSL) and UNIX sockets, on the loop and without threads. A
 * handler gets a whole request (bounded body) and answers now or later. A connection whose request
 * waits is not read, so a dead peer goes unnoticed; the server itself ends every wait after
 * max_wait_ms with a call of the wait's timeout callback, if the handler has not answered.
 *
 * Also used by the emulator. Client certificates are only *requested* by the TLS layer; the server
 * verifies the chain against its CA here and hands the handler the verified subject CN, or NULL. No
 * flag turns this off.
 *
 * Hostile peers. Requests are parsed strictly (http_head.h); one that is refused for its form ends
 * its connection. A head has to be complete within 20 s of its first byte, or of the connection;
 * of a body every 10 s have to bring 80 KiB, and the whole of it may take 5 minutes; a peer that
 * takes nothing of a reply for idle_timeout_ms, or less than 60 KiB in a minute, is disconnected.
 * How many connections and bytes anybody may hold is in http_admission.h: what is full is shared
 * evenly, and the oldest of the largest holder gives way to a newcomer.
 */
#ifndef BELAY_BASE_UV_HTTP_SERVER_H
#define BELAY_BASE_UV_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include <sys/types.h>
#include <uv.h>

#define HTTP_QUERY_MAX 32

struct http_exchange; /* one request and its coming reply */

struct http_server_request {
    const char *method;
    const char *path;       /* decoded, without the query; always starts with '/' */
    const char *raw_target; /* path and query exactly as received (signature checks need it) */
    /* for the handler's call only, unlike the rest: those who wait do not hold their bodies */
    const void *body;
    size_t body_len;
    const char *peer_cn; /* CN of a verified client certificate; NULL: none was given */
    /* why a certificate that was given did not verify; NULL: none or fine */
    const char *peer_cert_error;
    bool is_unix; /* came over a UNIX socket; then: */
    uid_t peer_uid;
    pid_t peer_pid;
    char peer_address[64]; /* "127.0.0.1:4711", "unix" */
};

/* Runs on the loop. It must call http_reply* on x exactly once, inside the call or later. The
 * request is borrowed until the reply is given, its body for the call. */
typedef void (*http_handler_fn)(
    void *ctx, struct http_exchange *x, const struct http_server_request *r);

/* Whose connections and bytes are counted together. Each class has limits of its own, so none can
 * use up what another needs: strangers have shown nothing yet (a TLS handshake under way, no valid
 * token), then users, then nodes. */
enum http_class { HTTP_STRANGER, HTTP_USER, HTTP_NODE, HTTP_CLASSES };

#define HTTP_PARTY_NAME_MAX 72

struct http_class_limits {
    int max_connections;      /* 0: 1000 */
    int max_connections_each; /* of one address, user or node; 0: max_connections */
    size_t max_bytes;         /* heads and bodies coming in, replies not sent yet; 0: 256 MiB */
    size_t max_bytes_each;    /* 0: max_bytes */
};

/* Who sends a request, for limits only: what it may do is the handler's matter. */
struct http_identity {
    enum http_class class;
    char name[HTTP_PARTY_NAME_MAX]; /* of the user or node; "": a stranger's address is used */
    size_t max_body_bytes;          /* larger: 413; the server's own limit holds as well */
};

/* Runs on the loop when the head of a request is here, before any of the body is. r has no path and
 * no body yet; http_request_header works, http_request_query does not, and nothing may be answered.
 * *ret is a stranger with the server's max_body_bytes; give strangers less. */
typedef void (*http_identify_fn)(void *ctx, struct http_exchange *x,
    const struct http_server_request *r, struct http_identity *ret);

struct http_server_options {
    const char *host;      /* "127.0.0.1", "0.0.0.0", "::"; NULL with unix_path */
    int port;              /* 0: any free one */
    const char *unix_path; /* listen on this socket (an old one is replaced); NULL: TCP */
    mode_t unix_mode;
    const char *cert_pem; /* TLS when not NULL */
    const char *key_pem;
    const char *client_ca_pem; /* verify client certificates against it; NULL: none asked for */
    size_t max_body_bytes;     /* larger: 413, JSON error body */
    http_identify_fn identify; /* NULL: everybody is a stranger */
    struct http_class_limits limits[HTTP_CLASSES];
    int64_t idle_timeout_ms; /* for connections between requests, and stalled replies; 0: 60 s */
    http_handler_fn handler;
    void *ctx;
};

struct http_server;

int http_server_start(uv_loop_t *loop, const struct http_server_options *o,
    struct http_server **ret_server, struct err *e);
int http_server_port(const struct http_server *s); /* the port really bound; 0 for a UNIX socket */
/* Since the start, but for connections. */
struct http_server_stats {
    int connections[HTTP_CLASSES]; /* now */
    int64_t accepted;
    int64_t refused;         /* at a limit of connections, without anybody who could give way */
    int64_t gave_way;        /* connections closed, and bodies dropped, for a newcomer */
    int64_t too_slow;        /* at a deadline for a handshake, a head, a body or a reply */
    int64_t malformed;       /* requests refused for their form */
    int64_t bodies_refused;  /* 413, 429 and 503 for bodies */
    int64_t replies_refused; /* 429 and 503 in place of a large reply */
};

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats);
/* Answers what still waits with 503, closes everything. NULL is fine. Run the loop afterwards. */
void http_server_stop(struct http_server *s);

/* NULL if absent; borrowed */
const char *http_request_header(struct http_exchange *x, const char *name);
/* decoded; NULL if absent; "" if empty */
const char *http_request_query(struct http_exchange *x, const char *name);
/* Calls fn for every header, for signature checks. */
typedef void (*http_each_fn)(void *ctx, const char *name, const char *value);
/* Every parameter of the query, decoded, in its order, the same one as often as it is there;
 * borrowed as above. */
void http_request_each_query(struct http_exchange *x, http_each_fn fn, void *ctx);
void http_request_each_header(struct http_exchange *x, http_each_fn fn, void *ctx);

/* Gives the reply and ends the exchange; x is gone afterwards. content_type may be NULL (no body
 * then). */
void http_reply_bytes(
    struct http_exchange *x, int status, const char *content_type, const void *p, size_t n);
void http_reply_text(
    struct http_exchange *x, int status, const char *content_type, const char *text);
/* {"error":{"kind":"invalid","text":"..."}} with the status that fits the kind (http_status_of). */
void http_reply_err(struct http_exchange *x, const struct err *e);
int http_status_of(enum err_kind kind);
/* 200 with the first n bytes of a file, read piece by piece as the peer takes them, so that a slow
 * peer holds up nobody. fd is borrowed until the server has stopped; a file that has become shorter
 * breaks the connection. At most HTTP_FILES_MAX such replies are under way at a time; one more
 * becomes a 503. */
#define HTTP_FILES_MAX 256
void http_reply_file(struct http_exchange *x, const char *content_type, int fd, uint64_t n);
/* No reply at all: the connection is closed. For servers that play a broken one. x is gone
 * afterwards. */
void http_reply_none(struct http_exchange *x);
/* The same in the middle of a reply: it says that it has n bytes, and ends after n_sent. */
void http_reply_torn(struct http_exchange *x, int status, const char *content_type, const void *p,
    size_t n, size_t n_sent);
/* A header for the reply to come; before http_reply*. */
void http_reply_add_header(struct http_exchange *x, const char *name, const char *value);

/* Marks x as waiting: after max_wait_ms on_timeout(ctx, x) runs and must reply. Without it, 30 s
 * and 503. on_gone (may be NULL) runs if the server stops or the peer is known to be gone before a
 * reply; the exchange is then gone and must not be answered. */
typedef void (*http_wait_fn)(void *ctx, struct http_exchange *x);
void http_exchange_wait(struct http_exchange *x, int64_t max_wait_ms, http_wait_fn on_timeout,
    http_wait_fn on_gone, void *ctx);
/* The peer of an exchange that waits has closed its end, so that an answer would most likely be
 * nobody's. Nothing tells of it by itself: for who does something dear for an answer, and looks
 * from time to time. */
bool http_exchange_peer_left(const struct http_exchange *x);

#endif
