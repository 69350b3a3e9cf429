/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/http_target.h"
#include "base/buf.h"
#include "tests/uv/rig.h"

static void path_and_query_are_decoded(void **state)
{
    (void)state;
    struct http_target t;
    struct err e;
    assert_int_equal(http_target_parse("/a%20b/c+d?x=1%2B2&y=&z&x=second&k+l=m+n&&", &t, &e), 0);
    assert_string_equal(t.path, "/a b/c+d");
    assert_int_equal(t.n_query, 5);
    assert_string_equal(http_target_query(&t, "x"), "1+2");
    assert_string_equal(http_target_query(&t, "y"), "");
    assert_string_equal(http_target_query(&t, "z"), "");
    assert_string_equal(http_target_query(&t, "k l"), "m n");
    assert_null(http_target_query(&t, "w"));
    http_target_deinit(&t);
}

static void malformed_targets_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"", "*", "http://host/", "a", "/%", "/%4", "/%zz", "/%00",
        "/a?x=%00", "/a?%=1", "/%ff", "/a?x=%c3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct http_target t = {0};
        struct err e;
        assert_int_equal(http_target_parse(bad[i], &t, &e), ERR_INVALID);
        assert_null(t.path);
        assert_true(e.text[0] != '\0');
    }
}

static void too_many_parameters_are_refused(void **state)
{
    (void)state;
    struct buf b = {0};
    struct http_target t;
    struct err e;
    buf_adds(&b, "/?");
    for (int i = 0; i < HTTP_QUERY_MAX; i++)
        buf_printf(&b, "k%d=v&", i);
    assert_int_equal(http_target_parse(buf_str(&b), &t, &e), 0);
    assert_string_equal(http_target_query(&t, "k31"), "v");
    http_target_deinit(&t);
    buf_adds(&b, "one=more");
    assert_int_equal(http_target_parse(buf_str(&b), &t, &e), ERR_INVALID);
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_and_query_are_decoded),
        cmocka_unit_test(malformed_targets_are_refused),
        cmocka_unit_test(too_many_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
