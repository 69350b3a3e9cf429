/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of an HTTP/1 request and the framing of its body, parsed strictly (RFC 9112). Pure; for
 * the server. Two readers of one request must never disagree about its end, so anything that a
 * proxy might read differently is refused, not repaired.
 */
#ifndef BELAY_BASE_UV_HTTP_HEAD_H
#define BELAY_BASE_UV_HTTP_HEAD_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* request line, header fields and the empty line */
#define HTTP_HEAD_BYTES_MAX ((size_t)16 << 10)
#define HTTP_HEAD_FIELDS_MAX 128
#define HTTP_METHOD_MAX 32

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED };

struct http_field {
    const char *name, *value; /* without surrounding blanks */
};

struct http_head {
    const char *method, *target;
    struct http_field *fields;
    size_t n_fields;
    enum http_framing framing;
    uint64_t content_length; /* for HTTP_LENGTH; at least 1 */
    bool is_1_0;             /* HTTP/1.0 */
    bool keeps_alive;        /* the connection may carry another request */
    bool expects_continue;   /* the client waits for "100 Continue" before it sends the body */
};

/* *ret_bytes: length of the head at p, including its empty line; 0 if incomplete. *scanned: how
 * much of the same bytes was searched before; initially 0. ERR_INVALID, with the status to answer
 * in *ret_status: longer than HTTP_HEAD_BYTES_MAX, or a byte that is not allowed in a head. */
int http_head_find(
    const char *p, size_t n, size_t *scanned, size_t *ret_bytes, int *ret_status, struct err *e);

/* p is exactly one head and is modified; *ret_head points into it. Free with http_head_deinit.
 * On an error, *ret_status is the status to answer, and the connection must be closed. Refused:
 * line ends other than CR LF, NUL and other control characters, blanks before a colon, folded
 * lines, more than one Host, Content-Length, Transfer-Encoding or Authorization, a Content-Length
 * that is not 1 to 19 digits, any Transfer-Encoding other than "chunked", and Content-Length
 * together with Transfer-Encoding. */
int http_head_parse(char *p, size_t n, struct http_head *ret_head, int *ret_status, struct err *e);
void http_head_deinit(struct http_head *h);

/* The value of the first field with that name (case-insensitive), or NULL. Borrowed. */
const char *http_head_field(const struct http_head *h, const char *name);

/* Whether a header field can be sent: a token, and a value without control characters. */
bool http_field_is_valid(const char *name, const char *value);

/* ---- Heads parsed line by line ---- */

/* Whether a line of a head may contain c: no control characters except tab; no CR or LF. */
bool http_is_text_char(char c);

/* Splits "NAME: VALUE" in place; *ret_field points into line. Returns NULL, or a description of the
 * error. */
const char *http_field_parse(char *line, struct http_field *ret_field);

/* 1 to 19 digits, at most INT64_MAX. */
bool http_length_parse(const char *text, uint64_t *ret_length);

/* ---- Chunked bodies ---- */

enum http_chunks_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_START, /* at the start of a line after the last chunk */
    CHUNK_TRAILER_NAME,
    CHUNK_TRAILER, /* after the colon */
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
    CHUNKS_DONE,
};

/* Zeroed: at the start of a body. */
struct http_chunks {
    enum http_chunks_state state;
    uint64_t left; /* bytes of the chunk not received yet; in CHUNK_SIZE the size so far */
    int n_digits;
    size_t n_extra; /* bytes of this chunk's extensions, or of all trailers */
};

/* Consumes bytes up to the end of the next piece of data, or all: *ret_used of the n, of which the
 * last *ret_data are data (0 = none). Repeat until all are used or state is CHUNKS_DONE. Trailers
 * have to be header fields, and are dropped. ERR_INVALID: malformed; the connection must be
 * closed. */
int http_chunks_take(struct http_chunks *c, const char *p, size_t n, size_t *ret_used,
    size_t *ret_data, struct err *e);

#endif
