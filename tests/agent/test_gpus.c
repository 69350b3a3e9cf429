/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpus.h"

#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define N(a) (sizeof(a) / sizeof *(a))

static const char *given(const struct gpus *g, int64_t n, const char *const *others, size_t n_others)
{
    static char out[GPUS_TEXT_MAX];
    struct err e;
    STR_COPY(out, "untouched");
    int rc = gpus_allot(g, n, others, n_others, out, &e);
    if (rc == 0)
        return out;
    assert_int_equal(rc, ERR_UNAVAILABLE);
    assert_string_equal(out, "untouched");
    return NULL;
}

static void each_is_given_to_one(void **state)
{
    struct gpus g;
    const char *const some[] = {"0,2", "11"}, *const all[] = {GPUS_ALL};
    (void)state;
    gpus_number(&g, 12);
    assert_string_equal(given(&g, 2, NULL, 0), "0,1");
    assert_string_equal(given(&g, 3, some, N(some)), "1,3,4");
    assert_string_equal(given(&g, 9, some, N(some)), "1,3,4,5,6,7,8,9,10");
    assert_null(given(&g, 10, some, N(some)));
    assert_null(given(&g, 1, all, N(all)));
    assert_string_equal(given(&g, 0, all, N(all)), "");
}

static void who_gets_none_is_told_how_many_there_are(void **state)
{
    struct gpus g;
    const char *const others[] = {"1"};
    char out[GPUS_TEXT_MAX];
    struct err e;
    (void)state;
    gpus_number(&g, 2);
    gpus_allot(&g, 2, others, N(others), out, &e);
    assert_string_equal(e.text, "it needs 2 GPUs of this node, which has 2, and 1 of them are free of what has not ended there yet");
}

static void all_of_the_largest_node_have_room_in_a_text(void **state)
{
    struct gpus g;
    (void)state;
    gpus_number(&g, 1000);
    assert_int_equal(g.n, GPUS_MAX);
    assert_true(str_ends(given(&g, GPUS_MAX, NULL, 0), ",62,63"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_given_to_one),
        cmocka_unit_test(who_gets_none_is_told_how_many_there_are),
        cmocka_unit_test(all_of_the_largest_node_have_room_in_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
