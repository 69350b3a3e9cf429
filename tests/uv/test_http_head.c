/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/uv/http_head.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

/* The status with which the head is refused, or 0. */
static int parse_bytes(const char *bytes, size_t n, struct http_head *h, char **ret_text)
{
    struct err e;
    size_t scanned = 0, found;
    int status = 0;
    *h = (struct http_head){0};
    *ret_text = mem_dup(bytes, n);
    if (http_head_find(*ret_text, n, &scanned, &found, &status, &e) != 0)
        return status;
    assert_int_equal(found, n);
    return http_head_parse(*ret_text, n, h, &status, &e) == 0 ? 0 : status;
}

static int status_of(const char *bytes, size_t n)
{
    struct http_head h;
    char *text;
    int status = parse_bytes(bytes, n, &h, &text);
    http_head_deinit(&h);
    free(text);
    return status;
}

static void a_head_is_parsed(void **state)
{
    (void)state;
    static const char bytes[] =
        "POST /a%20b?x HTTP/1.1\r\nhost:x\r\nEmpty:\r\nA: \t b c\t \r\na: 2\r\n"
        "Content-Length: 12\r\nConnection: x, Close\r\nExpect: 100-Continue\r\n\r\n";
    struct http_head h;
    char *text;
    assert_int_equal(parse_bytes(bytes, strlen(bytes), &h, &text), 0);
    assert_string_equal(h.method, "POST");
    assert_string_equal(h.target, "/a%20b?x");
    assert_int_equal(h.n_fields, 7);
    assert_string_equal(http_head_field(&h, "Host"), "x");
    assert_string_equal(http_head_field(&h, "EMPTY"), "");
    assert_string_equal(http_head_field(&h, "a"), "b c");
    assert_string_equal(h.fields[3].value, "2");
    assert_null(http_head_field(&h, "b"));
    assert_int_equal(h.framing, HTTP_LENGTH);
    assert_int_equal(h.content_length, 12);
    assert_true(h.expects_continue && !h.keeps_alive);
    http_head_deinit(&h);
    free(text);
}

static void the_end_of_a_head_is_found(void **state)
{
    (void)state;
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nmore\n";
    size_t n = strlen(bytes) - 5, scanned = 0, found;
    struct err e;
    int status;
    for (size_t i = 1; i < n; i++) {
        assert_int_equal(http_head_find(bytes, i, &scanned, &found, &status, &e), 0);
        assert_int_equal(found, 0);
    }
    assert_int_equal(http_head_find(bytes, strlen(bytes), &scanned, &found, &status, &e), 0);
    assert_int_equal(found, n);
}

#define POST "POST / HTTP/1.1\r\nHost: x\r\n"

static void ambiguous_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int status;
    } cases[] = {
        {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
        {POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
        {POST "Content-Length: 5, 5\r\n\r\n", 400},
        {POST "Content-Length: +5\r\n\r\n", 400},
        {POST "Content-Length: -5\r\n\r\n", 400},
        {POST "Content-Length: 0x5\r\n\r\n", 400},
        {POST "Content-Length: 5 5\r\n\r\n", 400},
        {POST "Content-Length:\r\n\r\n", 400},
        {POST "Content-Length: 9223372036854775808\r\n\r\n", 400},
        {POST "Content-Length: 00000000000000000005\r\n\r\n", 400},
        {POST "Content-Length : 5\r\n\r\n", 400},
        {POST "Content-Length\t: 5\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {POST "Transfer-Encoding: identity\r\n\r\n", 501},
        {POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {POST "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
        {POST "Transfer-Encoding: \"chunked\"\r\n\r\n", 501},
        {POST "Transfer-Encoding:\r\n\r\n", 501},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {POST "A: b\r\n c\r\n\r\n", 400},
        {POST "A: b\r\n\tContent-Length: 5\r\n\r\n", 400},
        {POST " A: b\r\n\r\n", 400},
        {POST "A: b\rContent-Length: 5\r\n\r\n", 400},
        {POST "A: b\nContent-Length: 5\r\n\r\n", 400},
        {POST "A: b\r\r\n\r\n", 400},
        {POST "A: b\x01\r\n\r\n", 400},
        {POST "A: b\x7f\r\n\r\n", 400},
        {POST "A b\r\n\r\n", 400},
        {POST ": b\r\n\r\n", 400},
        {POST "A\x80: b\r\n\r\n", 400},
        {POST "Host: y\r\n\r\n", 400},
        {POST "Authorization: a\r\nauthorization: b\r\n\r\n", 400},
        {POST "Expect: more\r\n\r\n", 417},
        {"POST / HTTP/1.1\r\n\r\n", 400},
        {"\r\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
        {"POST /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST /\t HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST /\x80 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"PO(ST / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST / HTTP/1.2\r\nHost: x\r\n\r\n", 400},
        {"POST / http/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
        {"POST /\r\nHost: x\r\n\r\n", 400},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = status_of(cases[i].head, strlen(cases[i].head));
        if (status != cases[i].status)
            fail_msg("%d instead of %d: %s", status, cases[i].status, cases[i].head);
    }
    static const char nul[] = POST "A: b\0c\r\n\r\n";
    assert_int_equal(status_of(nul, sizeof(nul) - 1), 400);
}

static void the_size_of_a_head_is_limited(void **state)
{
    (void)state;
    struct buf b = {0};
    size_t scanned = 0, found;
    struct err e;
    int status = 0;
    buf_adds(&b, POST);
    for (int i = 0; i < HTTP_HEAD_FIELDS_MAX - 1; i++)
        buf_adds(&b, "A: b\r\n");
    buf_adds(&b, "\r\n");
    assert_int_equal(status_of(b.data, b.len), 0);
    buf_truncate(&b, b.len - 2);
    buf_adds(&b, "A: b\r\n\r\n");
    assert_int_equal(status_of(b.data, b.len), 431);
    buf_clear(&b);
    buf_adds(&b, POST "A: ");
    while (b.len < HTTP_HEAD_BYTES_MAX)
        buf_addc(&b, 'b');
    assert_int_equal(http_head_find(b.data, b.len - 1, &scanned, &found, &status, &e), 0);
    assert_int_equal(http_head_find(b.data, b.len, &scanned, &found, &status, &e), ERR_INVALID);
    assert_int_equal(status, 431);
    buf_deinit(&b);
}

/* The data of a body; NULL if refused; "..." if incomplete. */
static char *decode(const char *text)
{
    struct http_chunks c = {0};
    struct buf out = {0};
    struct err e;
    size_t at = 0, n = strlen(text), used, n_data;
    while (at < n && c.state != CHUNKS_DONE) {
        if (http_chunks_take(&c, text + at, n - at, &used, &n_data, &e) != 0) {
            buf_deinit(&out);
            return NULL;
        }
        at += used;
        buf_add(&out, text + at - n_data, n_data);
    }
    if (c.state != CHUNKS_DONE)
        buf_adds(&out, "...");
    buf_adds(&out, text + at);
    return buf_take(&out);
}

static void chunked_bodies_are_decoded_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *data;
    } cases[] = {
        {"5\r\nhello\r\n1;a=b\r\n \r\n0A\r\n0123456789\r\n0\r\n\r\n", "hello 0123456789"},
        {"0\r\nA: b\r\nC: d\r\n\r\nnext", "next"},
        {"00000005\r\nhello\r\n000\r\n\r\n", "hello"},
        {"5\r\nhel", "hel..."},
        {"000000005\r\nhello\r\n0\r\n\r\n", NULL},
        {"ffffffffffffffff1\r\n", NULL},
        {"5\nhello\r\n0\r\n\r\n", NULL},
        {"5\rhello", NULL},
        {"5 \r\nhello\r\n", NULL},
        {" 5\r\nhello\r\n", NULL},
        {"+5\r\nhello\r\n", NULL},
        {"0x5\r\nhello\r\n", NULL},
        {"-1\r\n", NULL},
        {"\r\nhello\r\n", NULL},
        {";a\r\n", NULL},
        {"5;a\nb\r\nhello\r\n", NULL},
        {"5\r\nhelloX\r\n", NULL},
        {"5\r\nhello\n0\r\n", NULL},
        {"0\r\n folded\r\n\r\n", NULL},
        {"0\r\nA\r\n\r\n", NULL},
        {"0\r\nA : b\r\n\r\n", NULL},
        {"0\r\nGET /healthz HTTP/1.1\r\n\r\n", NULL},
        {"0\r\n\n", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *data = decode(cases[i].text);
        if (!data != !cases[i].data || (data && strcmp(data, cases[i].data) != 0))
            fail_msg("%s instead of %s: %s", data ? data : "refused",
                cases[i].data ? cases[i].data : "refused", cases[i].text);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_parsed),
        cmocka_unit_test(the_end_of_a_head_is_found),
        cmocka_unit_test(ambiguous_requests_are_refused),
        cmocka_unit_test(the_size_of_a_head_is_limited),
        cmocka_unit_test(chunked_bodies_are_decoded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
