/* SPDX-License-Identifier: Apache-2.0
 *
 * Console output of machines that never joined: the kept part is safe to show.
 */
#include "base/mem.h"
#include "cloud/aws/ec2.h"
#include "cloud/console.h"
#include "cloud/gcp/gce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *raw, const char *lines)
{
    struct buf out = {0};
    cloud_console_clean(raw, strlen(raw), &out);
    assert_string_equal(buf_str(&out), lines);
    buf_deinit(&out);
}

static void what_is_kept_is_printable_lines(void **state)
{
    (void)state;
    expect("", "");
    expect("one\r\n\n two  \nlast", "one\n two\nlast\n");
    expect("\033[0;31mred\033[0m \033]0;title\aplain\033c\tx\001\n", "red plain x\n");
    expect("gr\xc3\xb6\xc3\x9f\x65\n", "gr????e\n");
    expect("\033", "");
    expect("\033[", "");
}

static void what_may_be_a_secret_is_left_out(void **state)
{
    (void)state;
    expect("token 0123456789abcdef0123456789abcdef0123456789abcdef x\n", "token [...] x\n");
    expect("Bearer: abcdefghijklmnopqrstuvwxyz0123456789ABCD+/==\n", "Bearer: [...]\n");
    expect("0123456789abcdef0123456789abcdef\n", "0123456789abcdef0123456789abcdef\n");
}

static void only_the_end_is_kept(void **state)
{
    (void)state;
    char *raw = mem_alloc(200001);
    struct buf out = {0};
    for (int i = 0; i < 200000; i++)
        raw[i] = i % 20 == 19 ? '\n' : 'a';
    memcpy(raw + 200000 - 6, "last!\n", 6);
    cloud_console_clean(raw, 200000, &out);
    assert_true(out.len <= CLOUD_CONSOLE_MAX && out.len > CLOUD_CONSOLE_MAX - 40);
    assert_string_equal(buf_str(&out) + out.len - 6, "last!\n");
    buf_deinit(&out);
    free(raw);
}

static void providers_replies_are_read(void **state)
{
    (void)state;
    static const char
        ec2[] = "<GetConsoleOutputResponse "
                "xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId>"
                "<instanceId>i-1</instanceId><output>aGVsbG8K\ndGhlcmU=</output></"
                "GetConsoleOutputResponse>",
        none[] = "<GetConsoleOutputResponse><instanceId>i-1</instanceId><output/></"
                 "GetConsoleOutputResponse>",
        bad[] = "<GetConsoleOutputResponse><output>a*b=</output></GetConsoleOutputResponse>",
        gce[] = "{\"kind\":\"compute#serialPortOutput\",\"contents\":\"hello\\nthere\",\"start\":"
                "\"0\",\"next\":\"11\"}";
    struct buf out = {0};
    struct err e;
    assert_int_equal(ec2_parse_get_console_output(ec2, sizeof(ec2) - 1, &out, &e), 0);
    assert_string_equal(buf_str(&out), "hello\nthere\n");
    buf_deinit(&out);
    assert_int_equal(ec2_parse_get_console_output(none, sizeof(none) - 1, &out, &e), 0);
    assert_string_equal(buf_str(&out), "");
    assert_int_equal(ec2_parse_get_console_output(bad, sizeof(bad) - 1, &out, &e), ERR_INVALID);
    assert_int_equal(gce_parse_console(gce, sizeof(gce) - 1, &out, &e), 0);
    assert_string_equal(buf_str(&out), "hello\nthere\n");
    assert_int_equal(gce_parse_console("{\"contents\":1}", 14, &out, &e), ERR_INVALID);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_printable_lines),
        cmocka_unit_test(what_may_be_a_secret_is_left_out),
        cmocka_unit_test(only_the_end_is_kept),
        cmocka_unit_test(providers_replies_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
