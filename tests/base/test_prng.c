/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/prng.h"
#include <math.h>
#include <stdio.h>

/* The sequence is part of the meaning of recorded simulations. The numbers come from another
 * implementation of the published algorithms. */
static void a_seed_always_gives_the_same_sequence(void **state)
{
    static const uint64_t of_0[] = {
        0x99EC5F36CB75F2B4u, 0xBF6E1F784956452Au, 0x1A5F849D4933E6E0u, 0x6AA594F1262D2D2Cu};
    struct prng p;
    (void)state;
    prng_init(&p, 0);
    for (size_t i = 0; i < LEN(of_0); i++)
        assert_true(prng_u64(&p) == of_0[i]);
}

static void numbers_cover_their_range_inclusively(void **state)
{
    struct prng p;
    bool low = false, high = false;
    (void)state;
    prng_init(&p, 3);
    for (int i = 0; i < 10000; i++) {
        int64_t n = prng_range(&p, -3, 3);
        assert_true(n >= -3 && n <= 3);
        low = low || n == -3;
        high = high || n == 3;
        assert_true(prng_below(&p, 1) == 0);
        assert_true(prng_below(&p, (uint64_t)1 << 63) < (uint64_t)1 << 63);
        double u = prng_unit(&p);
        assert_true(u >= 0 && u < 1);
        assert_true(prng_exponential(&p, 1e-9) > 0);
        prng_range(&p, INT64_MIN, INT64_MAX);
    }
    assert_true(low && high);
    assert_true(prng_range(&p, 5, 5) == 5);
}

/* Chi-squared test of six faces: 20.5 is exceeded once in a thousand, and the seed is fixed. */
static void ranges_are_uniform(void **state)
{
    struct prng p;
    int count[6] = {0}, n = 60000;
    double chi = 0;
    (void)state;
    prng_init(&p, 11);
    for (int i = 0; i < n; i++)
        count[prng_below(&p, 6)]++;
    for (int i = 0; i < 6; i++)
        chi += pow(count[i] - n / 6.0, 2) / (n / 6.0);
    assert_true(chi < 20.5);
}

static void probabilities_and_means_are_met(void **state)
{
    struct prng p;
    int hits = 0;
    double sum = 0;
    (void)state;
    prng_init(&p, 5);
    for (int i = 0; i < 20000; i++) {
        assert_false(prng_chance(&p, 0));
        assert_true(prng_chance(&p, 1));
        hits += prng_chance(&p, 0.25);
        sum += prng_exponential(&p, 40);
    }
    assert_in_range(hits, 4800, 5200);
    assert_in_range((int)(sum / 20000), 38, 42);
}

static void backoff_grows_to_its_cap(void **state)
{
    struct prng p;
    (void)state;
    prng_init(&p, 9);
    for (int tries = 0; tries < 80; tries++)
        for (int i = 0; i < 20; i++) {
            int64_t high = tries < 7 ? (int64_t)100 << tries : 10000,
                    d = prng_backoff_ms(&p, tries, 100, 10000);
            assert_true(d >= 50 && d <= (high < 10000 ? high : 10000));
            assert_true(prng_backoff_ms(&p, tries, 0, 0) == 0);
            assert_true(prng_backoff_ms(&p, tries, 100, 20) == 20);
            assert_true(prng_backoff_ms(&p, tries, INT64_MAX, INT64_MAX) >= INT64_MAX / 2);
        }
}

static void random_bytes_are_not_the_same_twice(void **state)
{
    char a[201], b[201];
    (void)state;
    random_hex(100, a);
    random_hex(100, b);
    assert_int_equal(strspn(a, "0123456789abcdef"), 200);
    assert_int_equal(a[200], 0);
    assert_string_not_equal(a, b);
    random_hex(0, a);
    assert_string_equal(a, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_always_gives_the_same_sequence),
        cmocka_unit_test(numbers_cover_their_range_inclusively),
        cmocka_unit_test(ranges_are_uniform),
        cmocka_unit_test(probabilities_and_means_are_met),
        cmocka_unit_test(backoff_grows_to_its_cap),
        cmocka_unit_test(random_bytes_are_not_the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
