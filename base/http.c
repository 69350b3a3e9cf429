/* SPDX-License-Identifier: Apache-2.0 */
#include "base/http.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* bodies from this size on are page-aligned, for O_DIRECT writes without a copy */
#define PAGED_MIN 65536

const char *http_reply_header(const struct http_reply *r, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *h = r->headers[i];
        if (strncasecmp(h, name, n) == 0 && h[n] == ':')
            return h + n + 1 + strspn(h + n + 1, " \t");
    }
    return NULL;
}

void http_reply_clear_headers(struct http_reply *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        explicit_bzero(r->headers[i], strlen(r->headers[i]));
        free(r->headers[i]);
    }
    r->n_headers = 0;
}

void http_reply_deinit(struct http_reply *r)
{
    http_reply_clear_headers(r);
    buf_wipe(&r->body);
    r->status = 0;
}

/* Reserves space for n more bytes of the body; a body of known length is allocated at once. */
static void reserve_body(struct buf *b, size_t n, size_t whole)
{
    struct buf larger = {0};
    if (n < b->cap - b->len)
        return;
    if (whole >= PAGED_MIN) {
        larger = (struct buf){.data = mem_pages(whole + 1), .cap = whole + 1};
        larger.data[0] = '\0';
    } else if (whole > 0) {
        buf_reserve(&larger, whole);
    }
    buf_reserve(&larger, b->len + n);
    buf_add(&larger, b->data, b->len);
    buf_wipe(b);
    *b = larger;
}

void http_reply_add(struct http_reply *r, const void *p, size_t n, size_t whole)
{
    reserve_body(&r->body, n, whole);
    buf_add(&r->body, p, n);
}

void http_reply_add_line(struct http_reply *r, const char *line, size_t n)
{
    if (n <= HTTP_REPLY_HEADER_BYTES_MAX && r->n_headers < HTTP_REPLY_HEADERS_MAX)
        r->headers[r->n_headers++] = mem_strndup(line, n);
}

bool http_header_is_line(const char *line)
{
    return strchr(line, ':') && !strpbrk(line, "\r\n");
}

bool http_request_has_header(const struct http_request *r, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
        if (strncasecmp(r->headers[i], name, n) == 0 && r->headers[i][n] == ':')
            return true;
    return false;
}
