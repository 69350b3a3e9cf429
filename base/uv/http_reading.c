/* SPDX-License-Identifier: Apache-2.0
 *
 * See http_reading.h. The reply may be a secret: what is held of it is wiped, and nothing is left
 * behind where it moves.
 */
#include "base/uv/http_reading.h"

#include <assert.h>
#include <string.h>

static void line_end(struct http_reading *g)
{
    if (g->line.len > 0)
        http_reply_add_line(&g->reply, g->line.data, g->line.len);
    if (g->line.data)
        explicit_bzero(g->line.data, g->line.len);
    buf_clear(&g->line);
    g->has_value = false;
}

/* One byte more than allowed is enough to have it left out. The memory is there from the start, so
 * it never moves. */
static void line_add(struct http_reading *g, const char *p, size_t n)
{
    size_t room = HTTP_REPLY_HEADER_BYTES_MAX + 1 - g->line.len;
    if (!g->line.data)
        buf_reserve(&g->line, HTTP_REPLY_HEADER_BYTES_MAX + 1);
    buf_add(&g->line, p, n < room ? n : room);
}

static int on_field(http_parser *p, const char *at, size_t n)
{
    struct http_reading *g = p->data;
    if (g->has_value)
        line_end(g);
    line_add(g, at, n);
    return 0;
}

/* Of a header without value it is told with n = 0. */
static int on_value(http_parser *p, const char *at, size_t n)
{
    struct http_reading *g = p->data;
    if (!g->has_value)
        line_add(g, ": ", 2);
    g->has_value = true;
    line_add(g, at, n);
    return 0;
}

/* 1: there is no body, whatever the headers say. */
static int on_head(http_parser *p)
{
    struct http_reading *g = p->data;
    line_end(g);
    g->has_head = true;
    if (p->flags & F_CONTENTLENGTH && p->content_length <= g->max_reply_bytes)
        g->whole = (size_t)p->content_length;
    return g->is_reply_to_head || p->status_code / 100 == 1 || p->status_code == 204 ||
           p->status_code == 304;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct http_reading *g = p->data;
    g->is_too_large = n > g->max_reply_bytes - g->reply.body.len;
    if (!g->is_too_large)
        http_reply_add(&g->reply, at, n, g->whole);
    return g->is_too_large ? -1 : 0;
}

/* An interim reply (100 Continue) gives way to the next. */
static int on_end(http_parser *p)
{
    struct http_reading *g = p->data;
    line_end(g);
    if (p->status_code / 100 == 1) {
        http_reply_clear_headers(&g->reply);
        g->has_head = false;
        g->whole = 0;
        return 0;
    }
    g->reply.status = p->status_code;
    g->is_done = true;
    http_parser_pause(p, 1);
    return 0;
}

void http_reading_init(struct http_reading *g, const struct http_request *r, const char *label)
{
    *g = (struct http_reading){.max_reply_bytes = r->max_reply_bytes, .label = label};
    g->is_reply_to_head = strcmp(r->method, "HEAD") == 0;
    http_parser_init(&g->parser, HTTP_RESPONSE);
    g->parser.data = g;
}

void http_reading_deinit(struct http_reading *g)
{
    http_reply_deinit(&g->reply);
    buf_wipe(&g->line);
}

static int closed_early(const struct http_reading *g, struct err *e)
{
    return err_set(e, ERR_IO, "%s: the connection was closed %s", g->label,
        g->has_head ? "in the middle of the reply" : "before the reply's head was complete");
}

int http_reading_feed(struct http_reading *g, const char *p, size_t n, struct err *e)
{
    static const http_parser_settings told = {.on_header_field = on_field,
        .on_header_value = on_value,
        .on_headers_complete = on_head,
        .on_body = on_body,
        .on_message_complete = on_end};
    assert(!g->is_done);
    http_parser_execute(&g->parser, &told, p, n);
    enum http_errno code = HTTP_PARSER_ERRNO(&g->parser);
    if (g->is_too_large)
        return err_set(e, ERR_INVALID, "%s: the reply is larger than the %zu bytes allowed",
            g->label, g->max_reply_bytes);
    if (n == 0 && !g->is_done)
        return closed_early(g, e);
    if (g->parser.upgrade || (code != HPE_OK && code != HPE_PAUSED))
        return err_set(e, ERR_INVALID, "%s: the reply is not one of HTTP (%s)", g->label,
            g->parser.upgrade ? "it changes the protocol" : http_errno_description(code));
    if (g->is_done && (g->reply.status < 100 || g->reply.status > 599))
        return err_set(e, ERR_INVALID, "%s: the reply's status %d is not one of HTTP", g->label,
            g->reply.status);
    return 0;
}
