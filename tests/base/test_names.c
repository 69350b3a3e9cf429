/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_list_matches_whole_names_only(void **state)
{
    (void)state;
    assert_true(names_has("base", "base") && names_has("a,b,c", "a") && names_has("a,b,c", "b") &&
                names_has("a,b,c", "c"));
    assert_false(names_has("", "a") || names_has("base,burst", "bas") ||
                 names_has("base,burst", "urst") || names_has("base", "base2"));
    assert_false(names_has("a,b", "a,b") || names_has("a,b", ""));
}

static void lists_intersect_in_a_common_name(void **state)
{
    (void)state;
    assert_true(names_intersect("a,b", "c,b") && names_intersect("a", "a") &&
                names_intersect("b,a", "a,b"));
    assert_false(names_intersect("a,b", "c,d") || names_intersect("ab", "a,b") ||
                 names_intersect("", "a") || names_intersect("a", ""));
}

static void names_are_iterated_in_order(void **state)
{
    const char *at = "b,long-name,a";
    char name[5];
    (void)state;
    assert_true(names_next(&at, name, sizeof name));
    assert_string_equal(name, "b");
    assert_true(names_next(&at, name, sizeof name));
    assert_string_equal(name, "long"); /* cut, and the next is still found */
    assert_true(names_next(&at, name, sizeof name));
    assert_string_equal(name, "a");
    assert_false(names_next(&at, name, sizeof name));
}

static void a_malformed_list_is_refused_with_the_reason(void **state)
{
    static const char *const bad[][2] = {{"", "\"\" has an empty item: expected a pool's name"},
        {"a,", "\"a,\" has an empty item: expected a pool's name between commas"},
        {",a", "\",a\" has an empty item"}, {"a,,b", "\"a,,b\" has an empty item"},
        {"a, b", "\" b\" is not"}, {"a,b c", "is not"}, {"a;b", "is not"},
        {"a,b,a", "\"a\" is named twice"}, {"-a", "is not"}, {"a,\xc3\xa4", "is not"},
        {"abcdefghij,klmnopqrs", "at most 19 bytes"}};
    struct err e;
    (void)state;
    assert_int_equal(names_check("a", 20, "a pool's name", &e), 0);
    assert_int_equal(names_check("base,burst-2,c.d_e", 20, "a pool's name", &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (names_check(bad[i][0], 20, "a pool's name", &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i][0]);
        if (!strstr(e.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], e.text);
    }
    char long_name[400];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(names_check(long_name, 1000, "a pool's name", &e), ERR_INVALID);
}

static void a_malformed_name_is_refused_with_the_rule(void **state)
{
    static const char *const good[] = {"a", "GPU_4.b-2", "7", "abcdefghij"},
                             *const bad[][2] = {{"", "\"\" is not a node's name"},
                                 {"../../etc", "\"../../etc\" is not a node's name"},
                                 {"a\nb\x1B[2J", "\"a?b?[2J\" is not"}, {"-x", "digit first"},
                                 {"n[1-3]", "is not"}, {"a,b", "is not"}, {"\xC3\xA4", "is not"},
                                 {"abcdefghijk", "at most 10 letters, digits"}};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(name_check(good[i], 10, "a node's name", &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (name_check(bad[i][0], 10, "a node's name", &e) != ERR_INVALID ||
            !strstr(e.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_matches_whole_names_only),
        cmocka_unit_test(lists_intersect_in_a_common_name),
        cmocka_unit_test(names_are_iterated_in_order),
        cmocka_unit_test(a_malformed_list_is_refused_with_the_reason),
        cmocka_unit_test(a_malformed_name_is_refused_with_the_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
