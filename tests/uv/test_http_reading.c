/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies, each split in two at every position.
 */
#include "base/str.h"
#include "base/uv/http_reading.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

#define OK "HTTP/1.1 200 OK\r\n"

struct outcome {
    enum err_kind kind; /* ERR_NONE = a reply */
    int status;
    char body[64], header[64]; /* value of X-A; "-" if absent */
    size_t n_headers;
};

struct reader {
    struct http_reading g;
    struct err e;
    int rc;
};

static bool is_over(const struct reader *r)
{
    return r->rc != 0 || r->g.is_done;
}

/* Bytes in memory of their own, so that sanitizers detect reads beyond them. */
static void feed(struct reader *r, const char *p, size_t n)
{
    struct buf b = {0};
    buf_add(&b, p, n);
    if (!is_over(r) && n > 0)
        r->rc = http_reading_feed(&r->g, b.data, n, &r->e);
    buf_deinit(&b);
}

static struct outcome read_cut(
    const char *method, size_t max, const char *bytes, size_t n, size_t cut)
{
    const struct http_request q = {.method = method, .max_reply_bytes = max};
    struct reader r = {0};
    http_reading_init(&r.g, &q, "label");
    feed(&r, bytes, cut);
    feed(&r, bytes + cut, n - cut);
    if (!is_over(&r))
        r.rc = http_reading_feed(&r.g, NULL, 0, &r.e);
    struct outcome o = {.kind = r.rc == 0 ? ERR_NONE : r.e.kind};
    if (r.rc == 0) {
        const char *header = http_reply_header(&r.g.reply, "x-a");
        assert_true(r.g.is_done);
        o.status = r.g.reply.status;
        o.n_headers = r.g.reply.n_headers;
        STR_COPY(o.body, buf_str(&r.g.reply.body));
        STR_COPY(o.header, header ? header : "-");
    } else {
        assert_true(str_starts(r.e.text, "label: "));
    }
    http_reading_deinit(&r.g);
    return o;
}

static void expect(const char *method, size_t max, const char *bytes, struct outcome want)
{
    size_t n = strlen(bytes);
    for (size_t cut = 0; cut <= n; cut++) {
        struct outcome o = read_cut(method, max, bytes, n, cut);
        if (o.kind != want.kind)
            fail_msg("\"%s\" cut at %zu: %s", bytes, cut, err_kind_name(o.kind));
        assert_int_equal(o.status, want.status);
        assert_int_equal(o.n_headers, want.n_headers);
        assert_string_equal(o.body, want.body);
        assert_string_equal(o.header, want.header);
    }
}

static void replies_are_read_from_any_split(void **state)
{
    (void)state;
    expect("GET", 100, OK "X-A: b c\r\nContent-Length: 5\r\n\r\nhello",
        (struct outcome){0, 200, "hello", "b c", 2});
    expect("GET", 100, OK "X-A:\r\nContent-Length: 5\r\n\r\nhellomore",
        (struct outcome){0, 200, "hello", "", 2});
    expect("GET", 100, OK "\r\nto the end", (struct outcome){0, 200, "to the end", "-", 0});
    expect("GET", 100, OK "\r\n", (struct outcome){0, 200, "", "-", 0});
    expect("GET", 100,
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX-A: last\r\n\r\n",
        (struct outcome){0, 200, "hello", "last", 2});
    expect("GET", 100,
        "HTTP/1.1 100 Continue\r\nX-A: no\r\n\r\nHTTP/1.1 404 None\r\nContent-Length: 2\r\n\r\nhi",
        (struct outcome){0, 404, "hi", "-", 1});
    expect("GET", 100, "HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n",
        (struct outcome){0, 599, "", "-", 1});
}

static void replies_without_a_body_ignore_its_length(void **state)
{
    (void)state;
    expect("HEAD", 1, OK "Content-Length: 5000\r\n\r\n", (struct outcome){0, 200, "", "-", 1});
    expect(
        "HEAD", 1, OK "Transfer-Encoding: chunked\r\n\r\n", (struct outcome){0, 200, "", "-", 1});
    expect("GET", 1, "HTTP/1.1 304 Same\r\nContent-Length: 5000\r\n\r\n",
        (struct outcome){0, 304, "", "-", 1});
    expect("GET", 1, "HTTP/1.1 204 Nothing\r\n\r\n", (struct outcome){0, 204, "", "-", 0});
}

static void the_limit_counts_the_body_only(void **state)
{
    (void)state;
    expect(
        "GET", 5, OK "Content-Length: 5\r\n\r\nhello", (struct outcome){0, 200, "hello", "-", 1});
    const struct outcome invalid = {.kind = ERR_INVALID};
    expect("GET", 4, OK "Content-Length: 5\r\n\r\nhello", invalid);
    expect("GET", 4, OK "\r\nhello", invalid);
    expect(
        "GET", 4, OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", invalid);
    expect("GET", 4, OK "Content-Length: 9999999999999999999\r\n\r\nhello", invalid);
}

static void malformed_replies_are_refused(void **state)
{
    (void)state;
    static const char *const forms[] = {"hello", "HTTP/1.1 20x\r\n\r\n",
        "HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 600 High\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 99999 High\r\n\r\n",
        "HTTP/9x.1 200 OK\r\n\r\n", OK "no colon\r\n\r\n", OK "Content-Length: -5\r\n\r\n",
        OK "Content-Length: 5x\r\n\r\nhello",
        OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        OK "Content-Length: 99999999999999999999999\r\n\r\n",
        OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n", OK "X-A: b\nContent-Length: 0\r\n\r\n",
        OK "X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n", OK "X-A : b\r\nContent-Length: 0\r\n\r\n",
        OK "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
        OK "Transfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 "
        "OK\r\nContent-Length: 0\r\n\r\n"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        expect("GET", 100, forms[i], (struct outcome){.kind = ERR_INVALID});
}

static void a_truncated_reply_is_a_connection_error(void **state)
{
    (void)state;
    static const char *const forms[] = {"", "HTTP", OK, OK "X-A: b",
        OK "Content-Length: 5\r\n\r\nhell", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        expect("GET", 100, forms[i], (struct outcome){.kind = ERR_IO});
}

static void headers_have_limits(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_printf(&b, OK "X-A: %08187d\r\nX-B: %08188d\r\n", 1, 2); /* 8192 bytes, and one more */
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "X-%d: y\r\n", i);
    buf_adds(&b, "Content-Length: 0\r\n\r\n");
    for (size_t cut = 0; cut <= b.len; cut += 97) {
        struct outcome o = read_cut("GET", 100, b.data, b.len, cut);
        assert_int_equal(o.status, 200);
        assert_int_equal(o.n_headers, HTTP_REPLY_HEADERS_MAX);
        assert_true(str_starts(o.header, "000"));
    }
    buf_clear(&b);
    buf_printf(&b, OK "X-A: %0200000d\r\n\r\n", 1); /* the limit of the whole head */
    assert_int_equal(read_cut("GET", 100, b.data, b.len, 9).kind, ERR_INVALID);
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_from_any_split),
        cmocka_unit_test(replies_without_a_body_ignore_its_length),
        cmocka_unit_test(the_limit_counts_the_body_only),
        cmocka_unit_test(malformed_replies_are_refused),
        cmocka_unit_test(a_truncated_reply_is_a_connection_error),
        cmocka_unit_test(headers_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
