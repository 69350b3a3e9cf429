/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prng.h"
#include "job/ranges.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct ranges parse(const char *text)
{
    struct ranges s;
    struct err e = {0};
    if (ranges_parse(text, &s, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return s;
}

static void ranges_are_normalised_to_the_shortest_text(void **state)
{
    static const char *const all[][2] = {{"0", "0"}, {"0-3", "0-3"}, {"3,1,2", "1-3"},
        {"0-10:5", "0-10:5"}, {"1,3", "1,3"}, {"1,2", "1-2"}, {"0-9,5-12", "0-12"},
        {"0-8:2,1-9:2", "0-9"}, {"7-7", "7"}, {"0-11:5", "0-10:5"}, {"0,2,3,4", "0,2-4"},
        {"1,1,1", "1"}, {"999999", "999999"}, {"0-999999", "0-999999"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char out[RANGES_TEXT_MAX];
        struct ranges s = parse(all[i][0]);
        ranges_format(&s, out);
        assert_string_equal(out, all[i][1]);
    }
}

static void the_first_number_outside_another_set_is_found(void **state)
{
    static const struct {
        const char *set, *of;
        int32_t first;
    } all[] = {{"0-9", "0-9", -1}, {"3", "0-9", -1}, {"9", "0-8", 9}, {"0-20:5", "0-10", 15},
        {"1,4-6", "0-4:2", 1}, {"0", "1-3", 0}, {"2,4,900", "0-8:2", 900}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct ranges set = parse(all[i].set), of = parse(all[i].of);
        assert_int_equal(ranges_first_outside(&set, &of), all[i].first);
    }
}

static void malformed_ranges_are_refused(void **state)
{
    static const char *const bad[] = {"", ",", "1,", ",1", "-1", "1-", "3-1", "1-3:0",
        "1-3:", "1:2", "a", "1 ", " 1", "0x1", "1000000", "99999999999999999999", "1-1000000",
        "1--3", "1-2-3", "%", "1;2"};
    struct ranges s;
    struct err e;
    char many[1024] = "";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ranges_parse(bad[i], &s, &e), ERR_INVALID);
    for (int i = 0; i <= RANGES_MAX + 1; i++) /* never three consecutive numbers */
        snprintf(many + strlen(many), sizeof many - strlen(many), "%s%d", i ? "," : "", i * i);
    assert_int_equal(ranges_parse(many, &s, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 32 pieces"));
}

/* Compared with a plain array of flags. */
static void union_difference_and_membership_agree_with_a_model(void **state)
{
    enum { N = 60 };
    struct prng p;
    prng_init(&p, 5);
    (void)state;
    for (int round = 0; round < 300; round++) {
        bool in[N] = {false};
        char text[1024] = "", out[RANGES_TEXT_MAX];
        int64_t count = 0;
        for (int i = 0; i < 12; i++) {
            int n = (int)prng_below(&p, N);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "", n);
            count += !in[n];
            in[n] = true;
        }
        struct ranges s = parse(text);
        assert_int_equal(ranges_count(&s), count);
        char cut[32];
        int from = (int)prng_below(&p, N), to = from + (int)prng_below(&p, 9), gone = 0;
        snprintf(cut, sizeof cut, "%d-%d", from, to);
        struct ranges what = parse(cut);
        for (int n = from; n <= to && n < N; n++) {
            gone += in[n];
            in[n] = false;
        }
        assert_int_equal(ranges_remove(&s, &what), gone);
        ranges_format(&s, out);
        for (int n = 0; n < N; n++) {
            assert_int_equal(ranges_has(&s, n), in[n]);
            if (!in[n])
                continue;
            assert_int_equal(ranges_first(&s), n);
            assert_true(ranges_last(&s) >= n);
            assert_true(ranges_take(&s, n, RANGES_MAX));
            in[n] = false;
            assert_false(ranges_has(&s, n));
        }
        assert_int_equal(s.n, 0);
    }
}

/* Numbers may come in any order while there are few pieces. A refused number changes nothing. */
static void numbers_are_taken_in_order(void **state)
{
    struct prng p;
    prng_init(&p, 7);
    (void)state;
    for (int round = 0; round < 100; round++) {
        bool in[60] = {false};
        struct ranges s = parse(round % 3 ? "0-19,21-59:3" : "0-59");
        int most = 1 + (int)prng_below(&p, 8), n_left = (int)ranges_count(&s);
        for (int i = 0; i < 60; i++)
            in[i] = ranges_has(&s, i);
        for (int turn = 0; turn < 400 && n_left > 0; turn++) {
            int i = (int)prng_below(&p, 60), n = s.n;
            bool was = in[i];
            if (!was)
                continue;
            if (ranges_take(&s, i, most)) {
                in[i] = false;
                n_left--;
            } else {
                assert_true(s.n == n && n >= most && i != ranges_first(&s) && i != ranges_last(&s));
            }
            assert_true(s.n <= n || s.n <= most);
            assert_int_equal(ranges_count(&s), n_left);
            for (int k = 0; k < 60; k++)
                assert_int_equal(ranges_has(&s, k), in[k]);
        }
    }
}

static void ranges_are_removed(void **state)
{
    struct ranges s = parse("0-9,20-40:5"), cut = parse("3-25,99"), what = parse("40");
    char out[RANGES_TEXT_MAX];
    struct bits b;
    (void)state;
    ranges_bits(&cut, &b);
    assert_int_equal(ranges_remove_bits(&s, &b), 9);
    ranges_format(&s, out);
    assert_string_equal(out, "0-2,30-40:5");
    assert_int_equal(ranges_remove(&s, &what), 1);
    bits_deinit(&b);
    s = (struct ranges){0};
    ranges_bits(&s, &b);
    assert_int_equal(bits_next(&b, 0), b.n);
    assert_int_equal(ranges_remove_bits(&s, &b), 0);
    bits_deinit(&b);
}

static void a_removal_that_needs_too_many_pieces_is_refused(void **state)
{
    char cut[1024] = "";
    (void)state;
    for (int i = 0; i < RANGES_MAX; i++)
        snprintf(
            cut + strlen(cut), sizeof cut - strlen(cut), "%s%d", i ? "," : "", 10 * i + 5 + i % 2);
    struct ranges s = parse("0-999"), what = parse(cut);
    assert_int_equal(ranges_remove(&s, &what), -1);
    assert_int_equal(ranges_count(&s), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_normalised_to_the_shortest_text),
        cmocka_unit_test(the_first_number_outside_another_set_is_found),
        cmocka_unit_test(malformed_ranges_are_refused),
        cmocka_unit_test(union_difference_and_membership_agree_with_a_model),
        cmocka_unit_test(numbers_are_taken_in_order),
        cmocka_unit_test(ranges_are_removed),
        cmocka_unit_test(a_removal_that_needs_too_many_pieces_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
