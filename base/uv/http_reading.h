/* SPDX-License-Identifier: Apache-2.0
 *
 * One reply of HTTP/1 as it comes in, read by http_parser. No I/O here.
 */
#ifndef BELAY_BASE_UV_HTTP_READING_H
#define BELAY_BASE_UV_HTTP_READING_H

#include "base/http.h"
#include <http_parser.h>

struct http_reading {
    http_parser parser;
    struct http_reply reply; /* good once is_done; the owner's to take, or wiped by deinit */
    struct buf line;         /* the header under way */
    size_t max_reply_bytes;
    size_t whole;      /* how long the body will be; 0: not known, or too long */
    const char *label; /* for errors; borrowed */
    bool is_reply_to_head, has_value, has_head, is_too_large, is_done;
};

/* g must not move until deinit. */
void http_reading_init(struct http_reading *g, const struct http_request *r, const char *label);
void http_reading_deinit(struct http_reading *g);

/* The next n bytes; n = 0: the server has closed. Not to be called when is_done, or after an error.
 * What follows the reply is passed over. ERR_INVALID: malformed or larger than allowed; ERR_IO:
 * closed before the end. */
int http_reading_feed(struct http_reading *g, const char *p, size_t n, struct err *e);

#endif
