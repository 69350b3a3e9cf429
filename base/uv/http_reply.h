/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler of the HTTP server (http_server.h) calls: it reads its request and gives the
 * reply, now or later.
 */
#ifndef BELAY_BASE_UV_HTTP_REPLY_H
#define BELAY_BASE_UV_HTTP_REPLY_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_exchange; /* one request and its reply */

/* NULL if absent; borrowed */
const char *http_request_header(struct http_exchange *x, const char *name);
/* decoded; NULL if absent; "" if empty */
const char *http_request_query(struct http_exchange *x, const char *name);
/* Calls fn for every header, for signature checks. */
typedef void (*http_each_fn)(void *ctx, const char *name, const char *value);
/* Calls fn for every parameter of the query, decoded, in order, repeated ones each time; borrowed
 * as above. */
void http_request_each_query(struct http_exchange *x, http_each_fn fn, void *ctx);
void http_request_each_header(struct http_exchange *x, http_each_fn fn, void *ctx);

/* Sends the reply and ends the exchange; x is freed afterwards. content_type may be NULL (no body
 * then). */
void http_reply_bytes(
    struct http_exchange *x, int status, const char *content_type, const void *p, size_t n);
void http_reply_text(
    struct http_exchange *x, int status, const char *content_type, const char *text);
/* {"error":{"kind":"invalid","text":"..."}} with the status for the kind (http_status_of). */
void http_reply_err(struct http_exchange *x, const struct err *e);
int http_status_of(enum err_kind kind);
/* 200 with the first n bytes of a file, read piece by piece as the peer takes them, so that a slow
 * peer blocks no other. fd is borrowed until the server has stopped; a file that has become shorter
 * breaks the connection. At most HTTP_FILES_MAX such replies are in progress at a time; further
 * ones become 503. */
#define HTTP_FILES_MAX 256
void http_reply_file(struct http_exchange *x, const char *content_type, int fd, uint64_t n);
/* Sends no reply: closes the connection. For servers that emulate a broken one. x is freed
 * afterwards. */
void http_reply_none(struct http_exchange *x);
/* The same in the middle of a reply: announces n bytes, and ends after n_sent. */
void http_reply_torn(struct http_exchange *x, int status, const char *content_type, const void *p,
    size_t n, size_t n_sent);
/* Adds a header to the coming reply; call before http_reply*. */
void http_reply_add_header(struct http_exchange *x, const char *name, const char *value);

/* fn(ctx, status) runs once: when x is answered, or with status 0 when it ends without an answer.
 * It may not reply. At most HTTP_ANSWER_FNS functions for an exchange. */
#define HTTP_ANSWER_FNS 2
typedef void (*http_answer_fn)(void *ctx, int status);
void http_exchange_on_answer(struct http_exchange *x, http_answer_fn fn, void *ctx);

/* Names the request, for people who compare a reply with logs: the reply has X-Request-Id, and an
 * error of the server's own (from 500) has it in its body. */
#define HTTP_REQUEST_ID_MAX 40
void http_exchange_set_id(struct http_exchange *x, const char *id);

/* Marks x as waiting: after max_wait_ms on_timeout(ctx, x) runs and must reply. The default is 30 s
 * and 503. on_gone (may be NULL) runs if the server stops or the peer is known to be gone before a
 * reply; the exchange is then freed and must not be answered. */
typedef void (*http_wait_fn)(void *ctx, struct http_exchange *x);
void http_exchange_wait(struct http_exchange *x, int64_t max_wait_ms, http_wait_fn on_timeout,
    http_wait_fn on_gone, void *ctx);
/* Whether the peer of a waiting exchange has closed its end, so that an answer would most likely be
 * lost. The server does not report this by itself: a handler that does expensive work for an answer
 * polls it from time to time. */
bool http_exchange_peer_left(const struct http_exchange *x);

#endif
