/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of the HTTP server (http_server.h) that go on: pieces that are sent as they are written,
 * until the handler ends the reply or the peer leaves. They are chunked; to HTTP/1.0 the end of the
 * connection is their end.
 *
 * A peer that does not read costs a bounded amount: what waits for it counts in the limits of its
 * party (http_admission.h), and a piece that would exceed the stream's own limit is refused. A peer
 * that takes nothing for idle_timeout_ms while something waits, or that does not answer TCP for
 * that time, is disconnected. A stream may also be closed to make space for others.
 *
 * Bytes that the peer sends meanwhile are dropped, and the connection ends with the stream.
 */
#ifndef BELAY_BASE_UV_HTTP_STREAM_H
#define BELAY_BASE_UV_HTTP_STREAM_H

#include "base/uv/http_reply.h"

struct http_stream_options {
    const char *content_type;
    size_t max_waiting_bytes; /* written, and not accepted by the peer's socket yet */
    /* Runs once, unless http_stream_end came first: the peer has left or was disconnected, or the
     * server stops. x is freed afterwards. May run inside http_stream_write of another stream. */
    void (*on_closed)(void *ctx);
    void *ctx;
};

/* Answers x with 200 and the head, and begins the stream. Not for a request with HEAD. */
void http_stream_begin(struct http_exchange *x, const struct http_stream_options *o);

/* Sends n > 0 bytes soon. False if too much waits for the peer, and nothing of it was taken. */
bool http_stream_write(struct http_exchange *x, const void *p, size_t n);

/* The bytes that wait for the peer. */
size_t http_stream_waiting(const struct http_exchange *x);

/* Sends at most HTTP_STREAM_LAST_MAX last bytes, whatever waits, and ends the reply. x is freed
 * afterwards. */
#define HTTP_STREAM_LAST_MAX 1024
void http_stream_end(struct http_exchange *x, const void *p, size_t n);

#endif
