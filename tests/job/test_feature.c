/* SPDX-License-Identifier: Apache-2.0 */
#include "job/feature.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct constraint parse(const char *text)
{
    struct constraint c;
    struct err e = {0};
    if (constraint_parse(text, &c, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return c;
}

static void a_constraint_matches_its_features(void **state)
{
    static const struct {
        const char *text, *set;
        bool holds;
    } all[] = {{"", "", true}, {"  ", ",a,", true}, {"a", ",a,", true}, {"a", ",aa,ba,", false},
        {"a", ",b,a,", true}, {"a", "", false}, {"a&b", ",a,b,", true}, {"a&b", ",a,c,", false},
        {"a|b", ",b,", true}, {"a|b|c", ",c,", true}, {"a|b", ",c,", false},
        {"(a|b)&c", ",b,c,", true}, {"(a|b)&c", ",a,b,", false}, {"a|(b&c)", ",a,", true},
        {"a|(b&c)", ",b,", false}, {" ( a | b ) & ( c | d ) ", ",a,d,", true},
        {"((a))", ",a,", true}, {"n1-standard-8+t4", ",gcp,n1-standard-8+t4,", true}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct constraint c = parse(all[i].text);
        if (constraint_matches(&c, all[i].set) != all[i].holds)
            fail_msg("'%s' of '%s' should be %d", all[i].text, all[i].set, all[i].holds);
    }
}

static void a_constraint_is_normalised(void **state)
{
    static const char *const all[][2] = {
        {"", ""}, {" a ", "a"}, {"((a))", "a"}, {"( a&b )|c", "(a&b)|c"}, {"(a)&(b)", "a&b"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct constraint c = parse(all[i][0]), again = parse(c.text);
        assert_string_equal(c.text, all[i][1]);
        assert_string_equal(again.text, c.text);
    }
    struct constraint c = parse("(a|b)&c");
    assert_string_equal(constraint_name(&c, 0), "a");
    assert_string_equal(constraint_name(&c, 2), "c");
    assert_null(constraint_name(&c, 3));
}

static void a_malformed_constraint_is_refused_with_its_position(void **state)
{
    static const char *const bad[][2] = {{"a&", "at 3, its end: expected a feature's name or ("},
        {"&a", "at 1: expected"}, {"a b", "at 3: expected & or |"},
        {"(a", "at 3, its end: expected & or | or )"}, {"a)", "at 2: expected & or |"},
        {"a|b&c", "at 4: expected parentheses"}, {"!a", "there is no !"},
        {"a*2", "at 2: expected & or | (there are no numbers"}, {"[a|b]", "there is no [a|b]"},
        {"a,b", "at 2: expected & or |"}, {"()", "at 2: expected"}, {"a&&b", "at 3: expected"},
        {"a=1", "at 2"}};
    char deep[64] = "", longest[300];
    struct constraint c;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (constraint_parse(bad[i][0], &c, &e) != ERR_INVALID || !strstr(e.text, bad[i][1]))
            fail_msg("'%s': %s", bad[i][0], e.text);
    }
    memset(deep, '(', CONSTRAINT_DEPTH_MAX + 1);
    assert_int_equal(constraint_parse(deep, &c, &e), ERR_INVALID);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(constraint_parse(longest, &c, &e), ERR_INVALID);
    longest[FEATURE_MAX] = '\0';
    assert_int_equal(constraint_parse(longest, &c, &e), ERR_INVALID);
    longest[FEATURE_MAX - 1] = '\0';
    assert_int_equal(constraint_parse(longest, &c, &e), 0);
}

static void a_set_has_its_named_features(void **state)
{
    char set[FEATURES_TEXT_MAX] = "", all[FEATURES_ALL_MAX] = ",x,", name[FEATURE_MAX];
    static const char *const bad[] = {"", "a b", "a|b", "a,b"};
    size_t pos = 0;
    (void)state;
    assert_true(features_add(set, sizeof set, "avx512") && features_add(set, sizeof set, "ib") &&
                features_add(set, sizeof set, "avx512"));
    assert_string_equal(set, ",avx512,ib,");
    features_add_all(all, sizeof all, set);
    assert_string_equal(all, ",x,avx512,ib,");
    assert_true(features_next(all, &pos, name) && features_next(all, &pos, name));
    assert_string_equal(name, "avx512");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(features_add(set, sizeof set, bad[i]));
    assert_false(features_add(set, strlen(",avx512,ib,x,"), "x"));
    assert_string_equal(set, ",avx512,ib,");
}

static void a_set_from_outside_is_validated(void **state)
{
    static const char *const good[] = {"", ",a,", "a", ",a,n1-standard-8+t4,", "a,b"},
                             *const bad[][2] = {{",", "found \"\""}, {",,,", "found \"\""},
                                 {",a,,b,", "found \"\""}, {"a b", "found \"a b\""},
                                 {",a,b,a,", "a is named twice"}, {"a\x1B[2J", "found \"a?[2J\""}};
    char name[FEATURES_TEXT_MAX], set[FEATURES_TEXT_MAX + 1] = "";
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(features_check(good[i], &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (features_check(bad[i][0], &e) != ERR_INVALID || !strstr(e.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], e.text);
    memset(name, 'a', FEATURE_MAX);
    name[FEATURE_MAX] = '\0';
    assert_int_equal(features_check(name, &e), ERR_INVALID);
    for (int i = 0; i < 62; i++) /* the longest set that features_add makes */
        snprintf(set + strlen(set), sizeof set - strlen(set), ",%03d", i);
    snprintf(set + strlen(set), sizeof set - strlen(set), ",aaaa,");
    assert_int_equal(strlen(set), FEATURES_TEXT_MAX - 2);
    assert_int_equal(features_check(set, &e), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(set + strlen(set) - 1, 3, "a,");
        assert_int_equal(features_check(set, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "at most 253 bytes together"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constraint_matches_its_features),
        cmocka_unit_test(a_constraint_is_normalised),
        cmocka_unit_test(a_malformed_constraint_is_refused_with_its_position),
        cmocka_unit_test(a_set_has_its_named_features),
        cmocka_unit_test(a_set_from_outside_is_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
