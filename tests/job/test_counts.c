/* SPDX-License-Identifier: Apache-2.0 */
#include "job/counts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct counts parse(const char *text)
{
    struct counts c;
    struct err e = {0};
    if (counts_parse(text, &c, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return c;
}

static void counts_are_sorted_by_name(void **state)
{
    static const char *const all[][2] = {{"", ""}, {"lego", "lego:1"},
        {"shmem:2,lego:4", "lego:4,shmem:2"}, {"a:1000000,A:1", "A:1,a:1000000"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char out[COUNTS_TEXT_MAX];
        struct counts c = parse(all[i][0]);
        counts_format(&c, out);
        assert_string_equal(out, all[i][1]);
    }
}

static void malformed_counts_are_refused(void **state)
{
    static const char *const bad[] = {",", "a,", ",a", "a:", "a:0", "a:-1", "a:1000001", "a:1:2",
        ":1", "a b", "a=1", "a:1,a:2", "a:99999999999999999999", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "a,b,c,d,e,f,g,h,i", "\n:x"};
    struct counts c;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = {0};
        if (counts_parse(bad[i], &c, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    }
}

static void the_missing_resource_is_named(void **state)
{
    struct counts all = parse("a:2,b:1"), none = {0};
    (void)state;
    struct counts fits = parse("a:2"), more = parse("a:3"), other = parse("c,a");
    assert_true(
        counts_cover(&all, &fits) && counts_cover(&all, &none) && counts_cover(&none, &none));
    assert_string_equal(counts_short(&all, &more)->name, "a");
    assert_string_equal(counts_short(&all, &other)->name, "c");
    assert_int_equal(counts_of(&all, "a"), 2);
    assert_int_equal(counts_of(&all, "c"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_sorted_by_name),
        cmocka_unit_test(malformed_counts_are_refused),
        cmocka_unit_test(the_missing_resource_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
