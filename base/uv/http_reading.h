/* SPDX-License-Identifier: Apache-2.0
 *
 * One reply of HTTP/1 as it comes in, parsed strictly (RFC 9112). Pure; for the client on UNIX
 * sockets.
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
    struct http_reply reply; /* good once is_done; the owner's to take, or wiped by deinit */
    struct buf line;         /* the line under way, without its CR */
    bool has_cr;             /* of that line */
    size_t n_head;           /* bytes of lines so far */
    int status;
    bool has_length, is_chunked;
    uint64_t length; /* of the body; READING_LENGTH: what is left of it */
    struct http_chunks chunks;
    size_t max_reply_bytes;
    size_t whole;      /* how long the body will be; 0: not known, or too long */
    const char *label; /* for errors; borrowed */
    bool is_reply_to_head, is_done;
};

void http_reading_init(struct http_reading *g, const struct http_request *r, const char *label);
void http_reading_deinit(struct http_reading *g);

/* The next n bytes; n = 0: the server has closed. Not to be called when is_done, or after an error.
 * What follows the reply is passed over. ERR_INVALID: malformed or larger than allowed; ERR_IO:
 * closed before the end. */
int http_reading_feed(struct http_reading *g, const char *p, size_t n, struct err *e);

#endif
