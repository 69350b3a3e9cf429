/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the HTTP server, shared by its files: http_server.c (listening, limits, shutdown),
 * http_conn.c (one connection: receiving, sending, deadlines), http_exchange.c (one request, up to
 * its handler), http_reply.c (the functions that handlers call), http_stream.c (replies that go
 * on). The life of a connection and of its exchanges:
 *
 *     SILENT --> HANDSHAKE --> HEAD --> BODY --> WAITING --> SENDING --> HEAD ...
 *     (nothing     (TLS)         |        |           |         |
 *      received)                 |        |       STREAMING --->|
 *                                +--------+---- refused ------->+--> LINGERING --> CLOSED
 *
 * Invariants
 *   1. An exchange exists from the end of a head to the end of its reply; a connection has at most
 *      one.
 *   2. An exchange is HANDED while it is in server.waiting: its handler owes it exactly one reply.
 *   3. A connection is WAITING while its exchange is HANDED: nothing is read, and only the reply
 *      can close it.
 *   4. No handler runs inside a call of http_reply*: an answer given outside the handler's call is
 *      sent, and the next request begun, from server.turns in the next iteration of the loop.
 *   5. A connection is freed when libuv has closed its handle, never inside a call, so its phase
 *      may be read after running it.
 */
#ifndef BELAY_BASE_UV_HTTP_SERVER_PRIVATE_H
#define BELAY_BASE_UV_HTTP_SERVER_PRIVATE_H

#include "base/list.h"
#include "base/timers.h"
#include "base/uv/http_admission.h"
#include "base/uv/http_head.h"
#include "base/uv/http_peer.h"
#include "base/uv/tls.h"
#include "base/uv/http_server.h"
#include "base/uv/http_target.h"
#include "base/uv/http_turns.h"
#include <sys/stat.h>

enum exchange_state { READING, HANDED, ANSWERED };

enum reply_kind { REPLY_BYTES, REPLY_FILE, REPLY_STREAM, REPLY_TORN, REPLY_NONE };

/* Of REPLY_STREAM. */
struct http_streaming {
    bool is_chunked, is_ended;
    size_t max_waiting;
    size_t n_counted;  /* bytes counted for the connection; no more than waited at some time */
    size_t n_received; /* from the peer, and dropped */
    void (*on_closed)(void *ctx);
    void *ctx;
};

struct http_exchange {
    struct link link; /* in server.waiting while HANDED */
    struct http_server *server;
    struct http_conn *conn; /* NULL in tests of handlers */
    enum exchange_state state;
    char *head_text;   /* head points into it */
    size_t head_bytes; /* counted for the connection, like body */
    struct http_head head;
    struct http_target target;
    struct http_chunks chunks;
    struct buf body; /* its bytes are counted for the connection */
    size_t body_max_bytes;
    struct http_server_request request;

    enum reply_kind reply_kind;
    int status;
    struct buf reply_fields; /* header lines of the reply, each with CR LF */
    bool has_date;
    struct buf reply_body; /* of REPLY_BYTES and REPLY_TORN; counted once answered */
    uint64_t reply_length; /* value of Content-Length */
    int file_fd;           /* of REPLY_FILE; borrowed */
    struct http_streaming stream;
    struct timer timer;
    http_wait_fn on_timeout, on_gone;
    void *wait_ctx;
    struct {
        http_answer_fn fn;
        void *ctx;
    } answers[HTTP_ANSWER_FNS];
    int n_answers;
    char id[HTTP_REQUEST_ID_MAX]; /* "" = none */
};

enum conn_phase {
    CONN_SILENT,
    CONN_HANDSHAKE,
    CONN_HEAD,
    CONN_BODY,
    CONN_WAITING,
    CONN_STREAMING,
    CONN_SENDING,
    /* the last reply is sent; data that still arrives is dropped, because a reset could destroy the
     * reply */
    CONN_LINGERING,
    CONN_CLOSED,
};

struct http_conn {
    struct http_server *server;
    struct link link; /* in server.conns */
    struct http_holder holder;
    uv_poll_t poll;
    int fd, events; /* events: what poll currently waits for */
    enum conn_phase phase;
    int64_t began_ms;      /* of the phase; in HEAD of its first byte, once received */
    uint64_t n_moved;      /* bytes in this phase */
    int64_t moved_at_ms;   /* time of the last of them */
    int64_t window_at_ms;  /* start of the window in which their rate is measured, */
    uint64_t window_moved; /* and n_moved at that time */
    bool is_running;       /* inside http_conn_run */
    bool has_answered;     /* a request, in this turn */
    bool is_last;          /* closes after this reply */
    bool lingers;          /* and the client may still be sending */
    bool is_excused;       /* got a turn at its deadline, in this phase */
    bool is_first_head;    /* no head was complete yet: its deadline counts from the accept */
    struct tls_conn *tls;  /* NULL until the first byte, or without TLS */
    struct http_peer_cert *cert;
    struct http_server_request peer;         /* address and credentials */
    char stranger_name[HTTP_PARTY_NAME_MAX]; /* its address, or its IPv6 network */
    struct http_identity identity;
    /* the header that identity belongs to; NULL if identity must be determined */
    char *authorization;
    struct buf in;  /* received and not used yet; counted in holder */
    size_t scanned; /* of in, see http_head_find */
    struct buf out; /* the reply's head, small bodies, pieces of files */
    size_t out_at;
    size_t body_at;   /* offset in the exchange's reply_body */
    uint64_t file_at; /* offset in its file */
    struct http_exchange *x;
};

struct http_server {
    uv_loop_t *loop;
    uv_poll_t listener;
    int listen_fd;
    size_t n_open; /* handles not yet closed by libuv */
    struct timers *timers;
    struct timer scan_timer, turns_timer, accept_timer, finish_timer;
    struct list conns, waiting;
    struct http_turns turns;
    struct http_admission admission;
    struct http_server_stats stats;
    int64_t scan_due_ms; /* when scan_timer should fire */
    int64_t n_dropped_logged, dropped_logged_at_ms;
    int64_t n_tls_closed, trim_after_ms; /* since memory was returned, and when it may be next */
    size_t n_files;                      /* replies that read a file */
    struct http_exchange *current;       /* inside its handler */
    int n_running;                       /* connections in http_conn_run: 0 or 1 */
    bool is_stopping;
    http_handler_fn handler;
    http_identify_fn identify;
    void *ctx;
    size_t max_body_bytes;
    int64_t idle_ms;
    bool is_unix, has_client_ca;
    struct tls_server *tls; /* NULL without TLS */
    int port;
    char *unix_path;
    struct stat unix_stat;  /* the socket at unix_path just after binding */
    char scratch[64 << 10]; /* for the data of one recv */
};

/* ---- http_server.c ---- */

/* One of n_open was closed; frees s after the last. */
void http_server_handle_closed(struct http_server *s);
/* Checks the deadlines of all connections. */
void http_server_scan(struct http_server *s, int64_t now_ms);

/* ---- http_conn.c ---- */

/* Takes over fd, which is connected and non-blocking. NULL, with fd closed, if there is no
 * space. */
struct http_conn *http_conn_open(
    struct http_server *s, int fd, const struct sockaddr_storage *addr);
void http_conn_close(struct http_conn *c);
/* Continues with everything possible now. */
void http_conn_run(struct http_conn *c);
/* Its exchange has been answered. */
void http_conn_answered(struct http_conn *c);
/* It has something to send; runs soon. */
void http_conn_wake(struct http_conn *c);
/* Closes the connection, or answers with an error, if it has passed a deadline. */
void http_conn_check_deadline(struct http_conn *c, int64_t now_ms);
/* Moves its deadlines by ms, in which the loop was held up: the peer was not slow, belayd was. */
void http_conn_postpone(struct http_conn *c, int64_t ms);
/* Gives up its place for another connection (bytes: its bytes). */
void http_conn_give_way(struct http_conn *c, bool bytes);
/* Counts n more bytes for c; false, with the reason in *e, if there is no space. */
bool http_conn_take_bytes(struct http_conn *c, size_t n, struct err *e);
void http_conn_set_phase(struct http_conn *c, enum conn_phase phase);
/* Answers with an error and ends the connection. */
void http_conn_refuse(struct http_conn *c, int status, const struct err *e);

/* ---- http_exchange.c ---- */

/* A complete head of n bytes, counted for c, has arrived: makes the exchange, which takes over
 * head, and calls the handler if there is no body. */
void http_exchange_begin(struct http_conn *c, char *head, size_t n);
/* Takes bytes of the body. Returns how many were used; the rest belongs to the next request. */
size_t http_exchange_take_body(struct http_exchange *x, const char *p, size_t n);
/* Drops the part of the body received so far. */
void http_exchange_drop_body(struct http_exchange *x);
void http_exchange_destroy(struct http_exchange *x);
struct http_exchange *http_exchange_create(struct http_conn *c);
/* Runs the functions of http_exchange_on_answer, once. */
void http_exchange_tell_answer(struct http_exchange *x, int status);

/* ---- http_reply.c ---- */

/* Writes the status line and header of x's reply. */
void http_reply_head(const struct http_exchange *x, bool keeps_alive, struct buf *out);
/* Whether the reply has a body on the wire. */
bool http_reply_has_body(const struct http_exchange *x);
/* An error with a status that does not follow from its kind. */
void http_reply_status_err(struct http_exchange *x, int status, const struct err *e);
/* Replaces a reply in memory of which nothing has been sent. */
void http_reply_instead(struct http_exchange *x, const struct err *e);
/* 503: the server is stopping. */
void http_reply_stopping(struct http_exchange *x);
/* Answers with the head of a stream. */
void http_reply_stream(struct http_exchange *x, const char *content_type);

/* ---- http_stream.c ---- */

/* The server stops: ends the stream of x, which is STREAMING. */
void http_stream_stop(struct http_exchange *x);
/* x is about to be freed. */
void http_stream_drop(struct http_exchange *x);
/* Some of what waited was sent. */
void http_stream_sent(struct http_exchange *x);
/* The peer has sent n bytes, which are dropped. False if it sends too many. */
bool http_stream_may_receive(struct http_exchange *x, size_t n);

#endif
