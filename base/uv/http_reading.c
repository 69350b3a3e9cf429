/* SPDX-License-Identifier: Apache-2.0
 *
 * See http_reading.h.
 *
 *     STATUS_LINE --> FIELDS --(length | chunked | neither)--> LENGTH | CHUNKS | TO_END --> done
 *          ^            |                                                 |
 *          +--(1xx)-----+--(no body)--> done            CHUNKS --> TRAILERS --> done
 *
 * The reply may be a secret: all copies of it are wiped before their memory is freed.
 */
#include "base/uv/http_reading.h"

#include "base/str.h"
#include <assert.h>
#include <string.h>
#include <strings.h>

static int malformed(const struct http_reading *g, const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, "%s: the reply is not one of HTTP (%s)", g->label, what);
}

/* ---- The body ---- */

static int take_body(struct http_reading *g, const char *p, size_t n, struct err *e)
{
    if (n > g->max_reply_bytes - g->reply.body.len)
        return err_set(e, ERR_INVALID, "%s: the reply is larger than the %zu bytes allowed",
            g->label, g->max_reply_bytes);
    http_reply_add(&g->reply, p, n, g->whole);
    return 0;
}

static int feed_length(
    struct http_reading *g, const char *p, size_t n, size_t *ret_used, struct err *e)
{
    *ret_used = n < g->length ? n : (size_t)g->length;
    g->length -= *ret_used;
    g->is_done = g->length == 0;
    return take_body(g, p, *ret_used, e);
}

/* Reads byte by byte outside of data, because the trailers are read here. */
static int feed_chunks(
    struct http_reading *g, const char *p, size_t n, size_t *ret_used, struct err *e)
{
    struct http_chunks *c = &g->chunks;
    size_t data;
    if (http_chunks_take(c, p, c->state == CHUNK_DATA ? n : 1, ret_used, &data, NULL) != 0)
        return malformed(g, "its chunked body is malformed", e);
    if (c->state == CHUNK_TRAILER_START)
        g->part = READING_TRAILERS;
    return data > 0 ? take_body(g, p + *ret_used - data, data, e) : 0;
}

/* ---- The head ---- */

/* "HTTP/1.1 200 OK"; the reason and the blank before it are optional. The caller has checked that
 * the line begins with "HTTP/1.". */
static int take_status_line(struct http_reading *g, struct err *e)
{
    const char *line = buf_str(&g->line), *code = line + strlen("HTTP/1.1 ");
    if (g->line.len < strlen("HTTP/1.1 200") || !strchr("0123456789", line[7]) || line[8] != ' ' ||
        strspn(code, "0123456789") != 3 || (code[3] != '\0' && code[3] != ' '))
        return malformed(g, "its first line is not HTTP/1.1 STATUS REASON", e);
    g->status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
    if (g->status < 100 || g->status > 599)
        return err_set(
            e, ERR_INVALID, "%s: the reply's status %d is not one of HTTP", g->label, g->status);
    if (g->status == 101)
        return malformed(g, "it changes the protocol", e);
    g->part = READING_FIELDS;
    return 0;
}

/* Only this function and end_head decide where the body ends. */
static int take_framing(struct http_reading *g, const struct http_field *f, struct err *e)
{
    if (strcasecmp(f->name, "Content-Length") == 0) {
        if (g->has_length || !http_length_parse(f->value, &g->length))
            return malformed(g, "Content-Length is not one number of 1 to 19 digits", e);
        g->has_length = true;
    } else if (strcasecmp(f->name, "Transfer-Encoding") == 0) {
        if (g->is_chunked || strcasecmp(f->value, "chunked") != 0)
            return malformed(g, "its Transfer-Encoding is not \"chunked\"", e);
        g->is_chunked = true;
    }
    if (g->has_length && g->is_chunked)
        return malformed(g, "there are both Content-Length and Transfer-Encoding", e);
    return 0;
}

static int take_field(struct http_reading *g, struct err *e)
{
    struct http_field f;
    http_reply_add_line(&g->reply, buf_str(&g->line), g->line.len);
    const char *fault = http_field_parse(g->line.data, &f);
    if (fault)
        return malformed(g, fault, e);
    return g->part == READING_FIELDS ? take_framing(g, &f, e) : 0;
}

/* An interim reply (100 Continue) is dropped, and the next one is read. */
static void end_head(struct http_reading *g)
{
    bool is_interim = g->status / 100 == 1, is_chunked = g->is_chunked, has_length = g->has_length;
    g->is_chunked = g->has_length = false;
    if (is_interim) {
        http_reply_clear_headers(&g->reply);
        g->length = 0;
        g->part = READING_STATUS_LINE;
        return;
    }
    g->reply.status = g->status;
    if (g->is_reply_to_head || g->status == 204 || g->status == 304 ||
        (has_length && g->length == 0)) {
        g->is_done = true;
        return;
    }
    g->whole = has_length && g->length <= g->max_reply_bytes ? (size_t)g->length : 0;
    g->part = is_chunked ? READING_CHUNKS : has_length ? READING_LENGTH : READING_TO_END;
}

static int end_line(struct http_reading *g, struct err *e)
{
    int rc = 0;
    if (g->part == READING_STATUS_LINE)
        rc = take_status_line(g, e);
    else if (g->line.len > 0)
        rc = take_field(g, e);
    else if (g->part == READING_FIELDS)
        end_head(g);
    else
        g->is_done = true;
    if (g->line.data)
        explicit_bzero(g->line.data, g->line.len);
    buf_clear(&g->line);
    return rc;
}

/* Of a line that is too long, stores one byte more than allowed, by which the line is recognised
 * and dropped. The buffer has its final size from the start, so it never moves. */
static void line_add(struct http_reading *g, char c)
{
    if (!g->line.data)
        buf_reserve(&g->line, HTTP_REPLY_HEADER_BYTES_MAX + 2);
    if (g->line.len <= HTTP_REPLY_HEADER_BYTES_MAX)
        buf_addc(&g->line, c);
}

static int feed_line(struct http_reading *g, char c, struct err *e)
{
    static const char start[] = "HTTP/1.";
    if (++g->n_head > HTTP_REPLY_HEAD_BYTES_MAX)
        return malformed(g, "its head has more than 80 KiB", e);
    if (g->has_cr ? c != '\n' : c != '\r' && !http_is_text_char(c))
        return malformed(
            g, "its head contains a control character, or a line that does not end with CR LF", e);
    if (g->has_cr) {
        g->has_cr = false;
        return end_line(g, e);
    }
    g->has_cr = c == '\r';
    if (g->part == READING_STATUS_LINE && g->line.len < strlen(start) && c != start[g->line.len])
        return malformed(g, "it does not begin with HTTP/1.", e);
    if (!g->has_cr)
        line_add(g, c);
    return 0;
}

/* ---- All of it ---- */

void http_reading_init(struct http_reading *g, const struct http_request *r, const char *label)
{
    *g = (struct http_reading){.max_reply_bytes = r->max_reply_bytes, .label = label};
    g->is_reply_to_head = str_eq(r->method, "HEAD");
}

void http_reading_deinit(struct http_reading *g)
{
    http_reply_deinit(&g->reply);
    buf_wipe(&g->line);
}

static int take_end(struct http_reading *g, struct err *e)
{
    bool has_head = g->part != READING_STATUS_LINE && g->part != READING_FIELDS;
    g->is_done = g->part == READING_TO_END;
    if (g->is_done)
        return 0;
    return err_set(e, ERR_IO, "%s: the connection was closed %s", g->label,
        has_head ? "in the middle of the reply" : "before the reply's head was complete");
}

int http_reading_feed(struct http_reading *g, const char *p, size_t n, struct err *e)
{
    assert(!g->is_done);
    if (n == 0)
        return take_end(g, e);
    int rc = 0;
    for (size_t used; rc == 0 && n > 0 && !g->is_done; p += used, n -= used) {
        used = 1;
        if (g->part == READING_LENGTH)
            rc = feed_length(g, p, n, &used, e);
        else if (g->part == READING_CHUNKS)
            rc = feed_chunks(g, p, n, &used, e);
        else if (g->part == READING_TO_END)
            rc = take_body(g, p, used = n, e);
        else
            rc = feed_line(g, *p, e);
    }
    return rc;
}
