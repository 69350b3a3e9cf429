/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 server over TCP, TLS (OpenSSL) and UNIX sockets, on the loop and without threads. A
 * handler gets a complete request (bounded body) and answers now or later. A connection whose
 * request waits is not read, so a dead peer goes unnoticed; if the handler has not answered after
 * max_wait_ms, the server ends the wait by the wait's timeout callback.
 *
 * Also used by the emulator. The TLS layer only *requests* client certificates; the server verifies
 * the chain against its CA here and passes the verified subject CN, or NULL, to the handler. No
 * flag turns this off.
 *
 * Hostile peers. Requests are parsed strictly (http_head.h); a malformed one ends its connection. A
 * head must be complete within 20 s of its first byte, or of the connection. A body must make
 * progress of 80 KiB every 10 s, and may take 5 minutes in all. A peer that accepts nothing of a
 * reply for idle_timeout_ms, or less than 60 KiB in a minute, is disconnected. These times do not
 * run while the loop is held up, nor end a connection whose bytes are there to be read. Limits of
 * connections and bytes per party are in http_admission.h: a full class is shared evenly, and the
 * oldest connection of the largest holder gives way to a newcomer.
 */
#ifndef BELAY_BASE_UV_HTTP_SERVER_H
#define BELAY_BASE_UV_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/uv/http_reply.h"
#include <sys/types.h>
#include <uv.h>

#define HTTP_QUERY_MAX 32

struct http_server_request {
    const char *method;
    const char *path;       /* decoded, without the query; always starts with '/' */
    const char *raw_target; /* path and query exactly as received, for signature checks */
    /* only during the handler's call, unlike the rest: waiting requests do not keep their bodies */
    const void *body;
    size_t body_len;
    const char *peer_cn; /* CN of a verified client certificate; NULL if none was given */
    /* why a given certificate did not verify; NULL if none was given or it verified */
    const char *peer_cert_error;
    bool is_unix; /* received over a UNIX socket; then: */
    uid_t peer_uid;
    pid_t peer_pid;
    char peer_address[64]; /* "127.0.0.1:4711", "unix" */
};

/* Runs on the loop. It must call http_reply* on x exactly once, inside the call or later. The
 * request is borrowed until the reply, its body for the call. */
typedef void (*http_handler_fn)(
    void *ctx, struct http_exchange *x, const struct http_server_request *r);

/* The class in which connections and bytes are counted. Each class has limits of its own, so that
 * none can use up another's share: strangers are not authenticated yet (a TLS handshake in
 * progress, no valid token), then users, then nodes. */
enum http_class { HTTP_STRANGER, HTTP_USER, HTTP_NODE, HTTP_CLASSES };

#define HTTP_PARTY_NAME_MAX 72

struct http_class_limits {
    int max_connections;      /* 0 means 1000 */
    int max_connections_each; /* per address, user or node; 0 means max_connections */
    size_t max_bytes;         /* received heads and bodies, replies not sent yet; 0 means 256 MiB */
    size_t max_bytes_each;    /* 0 means max_bytes */
};

/* The sender of a request, for limits only: permissions are up to the handler. */
struct http_identity {
    enum http_class class;
    char name[HTTP_PARTY_NAME_MAX]; /* of the user or node; "" to use a stranger's address */
    /* larger bodies get 413; the server's own limit applies as well */
    size_t max_body_bytes;
};

/* Runs on the loop when the head of a request has arrived, before its body. r has no path and no
 * body yet; http_request_header works, http_request_query does not, and no reply may be given. *ret
 * is initially a stranger with the server's max_body_bytes; give strangers less. */
typedef void (*http_identify_fn)(void *ctx, struct http_exchange *x,
    const struct http_server_request *r, struct http_identity *ret);

struct http_server_options {
    const char *host; /* "127.0.0.1", "0.0.0.0", "::"; NULL with unix_path */
    int port;         /* 0 = any free one */
    /* listens at port already (http_listen_tcp), and is the server's after a successful start; 0 =
     * none */
    int listen_fd;
    const char *unix_path; /* listen on this socket (an old one is replaced); NULL for TCP */
    mode_t unix_mode;
    const char *cert_pem; /* TLS if not NULL */
    const char *key_pem;
    const char *client_ca_pem; /* verify client certificates against it; NULL to request none */
    size_t max_body_bytes;     /* larger bodies get 413 with a JSON error */
    http_identify_fn identify; /* NULL: all clients are strangers */
    struct http_class_limits limits[HTTP_CLASSES];
    /* for connections between requests, and stalled replies; 0 means 60 s */
    int64_t idle_timeout_ms;
    http_handler_fn handler;
    void *ctx;
};

struct http_server;

int http_server_start(uv_loop_t *loop, const struct http_server_options *o,
    struct http_server **ret_server, struct err *e);
/* the port actually bound; 0 for a UNIX socket */
int http_server_port(const struct http_server *s);
/* Totals since the start, except connections. */
struct http_server_stats {
    int connections[HTTP_CLASSES]; /* current */
    int64_t accepted;
    int64_t refused;         /* at a limit of connections, when no other could give way */
    int64_t gave_way;        /* connections closed, and bodies dropped, for a newcomer */
    int64_t too_slow;        /* missed a deadline for a handshake, a head, a body or a reply */
    int64_t malformed;       /* requests refused as malformed */
    int64_t bodies_refused;  /* 413, 429 and 503 for bodies */
    int64_t replies_refused; /* 429 and 503 in place of a large reply */
};

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats);
/* Answers waiting requests with 503 and closes everything. s may be NULL. Run the loop afterwards.
 */
void http_server_stop(struct http_server *s);

#endif
