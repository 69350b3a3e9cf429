/* SPDX-License-Identifier: Apache-2.0
 *
 * Incremental, strict parser of one HTTP/1 reply (RFC 9112). Pure; for the client on UNIX sockets.
 */
#ifndef BELAY_BASE_UV_HTTP_READING_H
#define BELAY_BASE_UV_HTTP_READING_H

#include "base/http.h"
#include "base/uv/http_head.h"

#define HTTP_REPLY_HEAD_BYTES_MAX ((size_t)80 << 10) /* all heads and trailers of one reply */

enum http_reading_part {
    READING_STATUS_LINE,
    READING_FIELDS,
    READING_LENGTH, /* a body of known length */
    READING_CHUNKS,
    READING_TRAILERS,
    READING_TO_END, /* a body that ends with the connection */
};

struct http_reading {
    enum http_reading_part part;
    struct http_reply reply; /* valid once is_done; the owner takes it, or deinit wipes it */
    struct buf line;         /* the current line, without its CR */
    bool has_cr;             /* the current line has its CR */
    size_t n_head;           /* bytes of lines so far */
    int status;
    bool has_length, is_chunked;
    uint64_t length; /* of the body; READING_LENGTH: what is left of it */
    struct http_chunks chunks;
    size_t max_reply_bytes;
    size_t whole;      /* expected length of the body; 0 if unknown or too long */
    const char *label; /* for errors; borrowed */
    bool is_reply_to_head, is_done;
};

void http_reading_init(struct http_reading *g, const struct http_request *r, const char *label);
void http_reading_deinit(struct http_reading *g);

/* Feeds the next n bytes; n = 0 means that the server has closed. Must not be called when is_done,
 * or after an error. Data after the reply is ignored. ERR_INVALID: malformed or larger than
 * allowed; ERR_IO: closed before the end. */
int http_reading_feed(struct http_reading *g, const char *p, size_t n, struct err *e);

#endif
