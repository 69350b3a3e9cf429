/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prng.h"
#include "base/slab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define N 5000 /* more than one block of memory holds */
#define SIZE 72

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* Whatever is taken and given back in between, each taken object is zeroed, begins a cache line,
 * and keeps its content. */
static void objects_do_not_overlap(void **state)
{
    static unsigned char *have[N];
    struct slab s = {0};
    struct prng p;
    (void)state;
    prng_init(&p, 3);
    for (int turn = 0; turn < 10 * N; turn++) {
        size_t i = (size_t)prng_below(&p, N);
        if (have[i]) {
            for (size_t k = 0; k < SIZE; k++)
                assert_int_equal(have[i][k], 1 + i % 255);
            slab_give(&s, have[i]);
            have[i] = NULL;
            continue;
        }
        have[i] = slab_take(&s, SIZE);
        assert_int_equal((uintptr_t)have[i] % 64, 0);
        assert_true(is_zero(have[i], SIZE));
        memset(have[i], (int)(1 + i % 255), SIZE);
    }
    slab_give(&s, NULL);
    slab_deinit(&s);
}

/* Objects taken in sequence are adjacent, and the last one given back is taken first. */
static void objects_are_adjacent_in_memory(void **state)
{
    struct slab s = {0};
    char *first = slab_take(&s, 64), *second = slab_take(&s, 64);
    (void)state;
    assert_ptr_equal(second, first + 64);
    slab_give(&s, first);
    assert_ptr_equal(slab_take(&s, 64), first);
    slab_deinit(&s);
    slab_deinit(&s);
    assert_non_null(slab_take(&s, 64)); /* usable again */
    slab_deinit(&s);
}

/* The same for a slab that has become large, with objects of the maximum size. */
static void large_objects_are_supported(void **state)
{
    enum { LARGE = 1500 }; /* 6 MB: more than the small blocks hold */
    static unsigned char *have[LARGE];
    struct slab s = {0};
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < LARGE; i++) {
            have[i] = slab_take(&s, SLAB_SIZE_MAX);
            assert_int_equal((uintptr_t)have[i] % 64, 0);
            assert_true(is_zero(have[i], SLAB_SIZE_MAX));
            memset(have[i], (int)(1 + i % 255), SLAB_SIZE_MAX);
        }
        for (size_t i = 0; i < LARGE; i++) {
            assert_int_equal(have[i][0], 1 + i % 255);
            assert_int_equal(have[i][SLAB_SIZE_MAX - 1], 1 + i % 255);
            slab_give(&s, have[i]);
        }
    }
    slab_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(objects_are_adjacent_in_memory),
        cmocka_unit_test(large_objects_are_supported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
