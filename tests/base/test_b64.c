/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64: the vectors of RFC 4648, and what is not base64.
 */
#include "base/b64.h"
#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void base64_there_and_back(void **state)
{
    static const struct {
        const char *plain, *coded;
    } rfc[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rfc) / sizeof(rfc[0]); i++) {
        struct buf coded = {0}, plain = {0};
        struct err e;
        b64_encode(&coded, rfc[i].plain, strlen(rfc[i].plain));
        assert_string_equal(buf_str(&coded), rfc[i].coded);
        assert_int_equal(b64_decode(&plain, buf_str(&coded), coded.len, &e), 0);
        assert_string_equal(buf_str(&plain), rfc[i].plain);
        buf_deinit(&coded);
        buf_deinit(&plain);
    }
}

static void base64url_there_and_back(void **state)
{
    static const struct {
        const char *plain, *coded;
    } good[] = {{"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"foob", "Zm9vYg"},
        {"\xfb\xff\xbf", "-_-_"}};
    static const char *const bad[] = {
        "Z", "Zg==", "Zg=", "Zh", "Zm9", "Zm9vYh", "+/+/", "Zm\n8", "Zm 8"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct buf coded = {0}, plain = {0};
        struct err e;
        b64_url_encode(&coded, good[i].plain, strlen(good[i].plain));
        assert_string_equal(buf_str(&coded), good[i].coded);
        assert_int_equal(b64_url_decode(&plain, buf_str(&coded), coded.len, &e), 0);
        assert_string_equal(buf_str(&plain), good[i].plain);
        buf_deinit(&coded);
        buf_deinit(&plain);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf out = {0};
        struct err e;
        if (b64_url_decode(&out, bad[i], strlen(bad[i]), &e) != ERR_INVALID)
            fail_msg("accepted: %s", bad[i]);
        buf_deinit(&out);
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zm9v!", "Zg==Zg==", "Zm 9", "=g=="};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf out = {0};
        struct err e;
        if (b64_decode(&out, bad[i], strlen(bad[i]), &e) != ERR_INVALID)
            fail_msg("%s was taken", bad[i]);
        buf_deinit(&out);
    }
}

static void line_breaks_in_base64_are_skipped(void **state)
{
    struct buf out = {0};
    struct err e;
    (void)state;
    assert_int_equal(b64_decode(&out, "Zm9v\nYmFy\r\n", 11, &e), 0);
    assert_string_equal(buf_str(&out), "foobar");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_there_and_back),
        cmocka_unit_test(base64url_there_and_back),
        cmocka_unit_test(what_is_not_base64_is_refused),
        cmocka_unit_test(line_breaks_in_base64_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
