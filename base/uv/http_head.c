/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants
 *  1. split_lines checks every byte of a head before any is interpreted. After it a line has no
 *     NUL, CR or LF and no control character except tabs.
 *  2. Only set_framing decides where the body ends.
 */
#include "base/uv/http_head.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CHUNK_DIGITS_MAX 8
#define CHUNK_EXTRA_MAX 4096

static int refuse(int status, int *ret_status, struct err *e, const char *text)
{
    *ret_status = status;
    return err_set(e, ERR_INVALID, "the request is not valid HTTP/1.1: %s", text);
}

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s)
{
    if (!*s)
        return false;
    while (is_token_char(*s))
        s++;
    return *s == '\0';
}

bool http_is_text_char(char c)
{
    unsigned char u = (unsigned char)c;
    return u == '\t' || (u >= 0x20 && u != 0x7f);
}

bool http_field_is_valid(const char *name, const char *value)
{
    if (!is_token(name))
        return false;
    while (http_is_text_char(*value))
        value++;
    return *value == '\0';
}

static const char bad_byte[] =
    "the head contains a control character, or a line that does not end with CR LF";

/* A CR without LF is an error only if a further byte is present. */
static bool is_bad(const char *p, size_t i, size_t n)
{
    if (p[i] == '\r')
        return i + 1 < n && p[i + 1] != '\n';
    if (p[i] == '\n')
        return i == 0 || p[i - 1] != '\r';
    return !http_is_text_char(p[i]);
}

int http_head_find(
    const char *p, size_t n, size_t *scanned, size_t *ret_bytes, int *ret_status, struct err *e)
{
    *ret_bytes = 0;
    for (size_t i = *scanned > 0 ? *scanned - 1 : 0; i < n; i++) {
        if (is_bad(p, i, n))
            return refuse(400, ret_status, e, bad_byte);
        if (i >= 3 && p[i] == '\n' && p[i - 2] == '\n') {
            *ret_bytes = i + 1;
            break;
        }
    }
    *scanned = n;
    if (*ret_bytes > HTTP_HEAD_BYTES_MAX || (*ret_bytes == 0 && n >= HTTP_HEAD_BYTES_MAX))
        return refuse(431, ret_status, e, "the head has more than 16 KiB");
    return 0;
}

/* Ends each line with two NULs and counts them, without the empty one at the end. */
static int split_lines(char *p, size_t n, size_t *ret_lines, int *ret_status, struct err *e)
{
    *ret_lines = 0;
    for (size_t i = 0; i < n; i++)
        if (is_bad(p, i, n))
            return refuse(400, ret_status, e, bad_byte);
    if (n < 4 || memcmp(p + n - 4, "\r\n\r\n", 4) != 0)
        return refuse(400, ret_status, e, "the head does not end with an empty line");
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n')
            ++*ret_lines;
        if (p[i] == '\r' || p[i] == '\n')
            p[i] = '\0';
    }
    --*ret_lines;
    return 0;
}

static int parse_request_line(
    char *line, struct http_head *h, bool *ret_is_1_0, int *ret_status, struct err *e)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version)
        return refuse(400, ret_status, e, "the request line is not METHOD TARGET VERSION");
    *target++ = *version++ = '\0';
    if (!is_token(line) || strlen(line) > HTTP_METHOD_MAX)
        return refuse(400, ret_status, e, "the method is not a token of at most 32 characters");
    if (strspn(version, "HTP/.0123456789") == strlen(version) && str_starts(version, "HTTP/") &&
        !str_starts(version, "HTTP/1."))
        return refuse(505, ret_status, e, "only versions 1.0 and 1.1 are served");
    *ret_is_1_0 = str_eq(version, "HTTP/1.0");
    if (!*ret_is_1_0 && !str_eq(version, "HTTP/1.1"))
        return refuse(400, ret_status, e, "the request line does not end with HTTP/1.1");
    for (const char *c = target; *c; c++)
        if (*c <= ' ' || *c == 0x7f)
            return refuse(
                400, ret_status, e, "the target has a character that must be escaped as %XX");
    if (!*target)
        return refuse(400, ret_status, e, "the target is empty");
    h->method = line;
    h->target = target;
    return 0;
}

const char *http_field_parse(char *line, struct http_field *ret_field)
{
    char *colon = strchr(line, ':');
    if (line[0] == ' ' || line[0] == '\t')
        return "a header field is folded over several lines";
    if (colon)
        *colon = '\0';
    if (!colon || !is_token(line))
        return "a header line is not NAME: VALUE (no blank before the colon)";
    char *value = colon + 1 + strspn(colon + 1, " \t");
    size_t n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    value[n] = '\0';
    *ret_field = (struct http_field){line, value};
    return NULL;
}

bool http_length_parse(const char *text, uint64_t *ret_length)
{
    int64_t n;
    if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 19 ||
        str_to_i64(text, 0, INT64_MAX, "Content-Length", &n, NULL) != 0)
        return false;
    *ret_length = (uint64_t)n;
    return true;
}

const char *http_head_field(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->n_fields; i++)
        if (strcasecmp(h->fields[i].name, name) == 0)
            return h->fields[i].value;
    return NULL;
}

static size_t count_fields(const struct http_head *h, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n_fields; i++)
        n += strcasecmp(h->fields[i].name, name) == 0;
    return n;
}

static int check_repeated(const struct http_head *h, int *ret_status, struct err *e)
{
    static const char *const once[] = {
        "Host", "Content-Length", "Transfer-Encoding", "Authorization", "Content-Type", "Expect"};
    char text[64];
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        if (count_fields(h, once[i]) <= 1)
            continue;
        snprintf(text, sizeof(text), "there is more than one %s", once[i]);
        return refuse(400, ret_status, e, text);
    }
    return 0;
}

static int set_framing(struct http_head *h, bool is_1_0, int *ret_status, struct err *e)
{
    const char *length = http_head_field(h, "Content-Length");
    const char *coding = http_head_field(h, "Transfer-Encoding");
    uint64_t n = 0;
    if (length && coding)
        return refuse(400, ret_status, e, "there are both Content-Length and Transfer-Encoding");
    if (coding && is_1_0)
        return refuse(400, ret_status, e, "HTTP/1.0 has no Transfer-Encoding");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(
            501, ret_status, e, "the only Transfer-Encoding that is served is \"chunked\"");
    if (length && !http_length_parse(length, &n))
        return refuse(400, ret_status, e, "Content-Length is not a number of 1 to 19 digits");
    h->content_length = n;
    h->framing = coding ? HTTP_CHUNKED : n > 0 ? HTTP_LENGTH : HTTP_NO_BODY;
    return 0;
}

/* Whether one of the comma-separated options of any Connection field is this word. */
static bool has_option(const struct http_head *h, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < h->n_fields; i++) {
        if (strcasecmp(h->fields[i].name, "Connection") != 0)
            continue;
        for (const char *at = h->fields[i].value; *at;) {
            at += strspn(at, ", \t");
            size_t n = strcspn(at, ", \t");
            if (n == len && strncasecmp(at, word, n) == 0)
                return true;
            at += n;
        }
    }
    return false;
}

static int interpret(struct http_head *h, bool is_1_0, int *ret_status, struct err *e)
{
    const char *expect = http_head_field(h, "Expect");
    int rc = check_repeated(h, ret_status, e);
    if (rc == 0 && !is_1_0 && !http_head_field(h, "Host"))
        rc = refuse(400, ret_status, e, "there is no Host");
    if (rc == 0)
        rc = set_framing(h, is_1_0, ret_status, e);
    if (rc == 0 && expect && strcasecmp(expect, "100-continue") != 0)
        rc = refuse(417, ret_status, e, "the only expectation that is met is 100-continue");
    if (rc != 0)
        return rc;
    h->is_1_0 = is_1_0;
    h->expects_continue = expect && !is_1_0 && h->framing != HTTP_NO_BODY;
    h->keeps_alive = !has_option(h, "close") && (!is_1_0 || has_option(h, "keep-alive"));
    return 0;
}

static int parse_lines(char *p, size_t n_lines, struct http_head *h, int *ret_status, struct err *e)
{
    bool is_1_0;
    char *line = p, *next = line + strlen(line) + 2;
    int rc = parse_request_line(line, h, &is_1_0, ret_status, e);
    for (size_t i = 1; rc == 0 && i < n_lines; i++) {
        line = next;
        next = line + strlen(line) + 2; /* before NULs are put into the line */
        const char *fault = http_field_parse(line, &h->fields[h->n_fields++]);
        if (fault)
            rc = refuse(400, ret_status, e, fault);
    }
    return rc == 0 ? interpret(h, is_1_0, ret_status, e) : rc;
}

int http_head_parse(char *p, size_t n, struct http_head *ret_head, int *ret_status, struct err *e)
{
    struct http_head h = {0};
    size_t n_lines;
    int rc = split_lines(p, n, &n_lines, ret_status, e);
    if (rc == 0 && n_lines > HTTP_HEAD_FIELDS_MAX + 1)
        rc = refuse(431, ret_status, e, "there are more than 128 header fields");
    if (rc != 0)
        return rc;
    h.fields = mem_array(n_lines + 1, sizeof(*h.fields));
    rc = parse_lines(p, n_lines, &h, ret_status, e);
    if (rc == 0)
        *ret_head = h;
    else
        http_head_deinit(&h);
    return rc;
}

void http_head_deinit(struct http_head *h)
{
    free(h->fields);
    *h = (struct http_head){0};
}

/* ---- Chunked bodies ---- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_size(struct http_chunks *c, char ch)
{
    int digit = digit_of(ch);
    if (digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        return ++c->n_digits <= CHUNK_DIGITS_MAX;
    }
    c->state = ch == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    return c->n_digits > 0 && (ch == '\r' || ch == ';');
}

static void end_size(struct http_chunks *c)
{
    c->state = c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER_START;
    c->n_digits = 0;
    c->n_extra = 0;
}

static bool expect(struct http_chunks *c, char ch, char wanted, enum http_chunks_state next)
{
    c->state = next;
    return ch == wanted;
}

/* Text of an extension or a trailer, up to its CR. */
static bool take_extra(struct http_chunks *c, char ch, enum http_chunks_state after_cr)
{
    if (ch == '\r')
        c->state = after_cr;
    return (ch == '\r' || http_is_text_char(ch)) && ++c->n_extra <= CHUNK_EXTRA_MAX;
}

static bool start_trailer(struct http_chunks *c, char ch)
{
    c->state = ch == '\r' ? CHUNK_END_LF : CHUNK_TRAILER_NAME;
    return ch == '\r' || (is_token_char(ch) && ++c->n_extra <= CHUNK_EXTRA_MAX);
}

/* Refuses a line that is not a field: another reader (a proxy) would take a request line here for
 * the next request. */
static bool take_trailer_name(struct http_chunks *c, char ch)
{
    if (ch == ':')
        c->state = CHUNK_TRAILER;
    return (ch == ':' || is_token_char(ch)) && ++c->n_extra <= CHUNK_EXTRA_MAX;
}

/* Processes a byte that is not data. False if it is malformed. */
static bool take_byte(struct http_chunks *c, char ch)
{
    switch (c->state) {
    case CHUNK_SIZE:
        return take_size(c, ch);
    case CHUNK_EXTENSION:
        return take_extra(c, ch, CHUNK_SIZE_LF);
    case CHUNK_SIZE_LF:
        end_size(c);
        return ch == '\n';
    case CHUNK_DATA_CR:
        return expect(c, ch, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        return expect(c, ch, '\n', CHUNK_SIZE);
    case CHUNK_TRAILER_START:
        return start_trailer(c, ch);
    case CHUNK_TRAILER_NAME:
        return take_trailer_name(c, ch);
    case CHUNK_TRAILER:
        return take_extra(c, ch, CHUNK_TRAILER_LF);
    case CHUNK_TRAILER_LF:
        return expect(c, ch, '\n', CHUNK_TRAILER_START);
    case CHUNK_END_LF:
        return expect(c, ch, '\n', CHUNKS_DONE);
    case CHUNK_DATA:
    case CHUNKS_DONE:
        break;
    }
    return false;
}

int http_chunks_take(struct http_chunks *c, const char *p, size_t n, size_t *ret_used,
    size_t *ret_data, struct err *e)
{
    size_t i = 0;
    *ret_data = 0;
    while (i < n && c->state != CHUNKS_DONE && c->state != CHUNK_DATA)
        if (!take_byte(c, p[i++]))
            return err_set(
                e, ERR_INVALID, "the request is not valid HTTP/1.1: its chunked body is malformed");
    if (c->state == CHUNK_DATA && i < n) {
        *ret_data = n - i < c->left ? n - i : (size_t)c->left;
        c->left -= *ret_data;
        if (c->left == 0)
            c->state = CHUNK_DATA_CR;
        i += *ret_data;
    }
    *ret_used = i;
    return 0;
}
