/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"
#include "base/prng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void a_zeroed_set_is_empty(void **state)
{
    struct bits b = {0};
    (void)state;
    assert_false(bits_has(&b, 0));
    assert_false(bits_set(&b, 0));
    assert_false(bits_clear(&b, 5));
    assert_int_equal(bits_next(&b, 0), 0);
    bits_deinit(&b);
    bits_init(&b, 0);
    assert_false(bits_set(&b, 0));
    assert_int_equal(bits_next(&b, 0), 0);
    bits_deinit(&b);
}

/* Compares with a plain array of flags, also at the edges of words. */
static void membership_is_as_set_and_cleared(void **state)
{
    static const int32_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 300};
    struct prng p;
    prng_init(&p, 9);
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        bool in[300] = {false};
        struct bits b;
        bits_init(&b, sizes[k]);
        for (int turn = 0; turn < 1000; turn++) {
            int32_t i = (int32_t)prng_below(&p, (uint64_t)sizes[k]), at = 0;
            bool put = prng_below(&p, 3) == 0;
            assert_int_equal(put ? bits_set(&b, i) : bits_clear(&b, i), in[i] != put);
            in[i] = put;
            for (at = i; at < sizes[k] && !in[at];)
                at++;
            assert_int_equal(bits_next(&b, i), at);
            assert_int_equal(bits_has(&b, i), in[i]);
        }
        assert_false(bits_set(&b, sizes[k]));
        assert_false(bits_set(&b, -1));
        assert_false(bits_has(&b, sizes[k]));
        assert_int_equal(bits_next(&b, sizes[k]), sizes[k]);
        bits_deinit(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_set_is_empty),
        cmocka_unit_test(membership_is_as_set_and_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
