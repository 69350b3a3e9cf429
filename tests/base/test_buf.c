/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/buf.h"
#include "base/mem.h"

/* ---- mem ---- */

static void memory_is_zeroed_and_never_null(void **state)
{
    (void)state;
    char *p = mem_alloc(100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    free(p);
    free(mem_array(0, 8));
    free(mem_alloc(0));
    free(mem_resize(NULL, 0, 8));
    free(mem_dup(NULL, 0));
}

static void array_overflows(void *arg)
{
    (void)arg;
    mem_array(SIZE_MAX / 2, 4);
}

static void resize_overflows(void *arg)
{
    (void)arg;
    mem_resize(NULL, SIZE_MAX / 2, 4);
}

static void sizes_that_overflow_abort(void **state)
{
    (void)state;
    assert_true(dies(array_overflows, NULL));
    assert_true(dies(resize_overflows, NULL));
}

static void strings_are_copied(void **state)
{
    (void)state;
    char *p = mem_strdup("abc"), *q = mem_strndup("abcdef", 3), *r = mem_printf("%s-%d", "x", 5);
    assert_string_equal(p, "abc");
    assert_string_equal(q, "abc");
    assert_string_equal(r, "x-5");
    assert_null(mem_strdup(NULL));
    assert_null(mem_strndup(NULL, 5));
    free(p);
    free(q);
    free(r);
}

/* ---- buf ---- */

static void a_zeroed_buffer_is_empty(void **state)
{
    struct buf b = {0};
    (void)state;
    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
    buf_truncate(&b, 0);
    buf_remove_front(&b, 0);
    buf_add(&b, "", 0);
    char *text = buf_take(&b);
    assert_string_equal(text, "");
    free(text);
    buf_deinit(&b);
}

static void added_bytes_are_followed_by_a_nul(void **state)
{
    struct buf b = {0};
    char expected[3000];
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        buf_addc(&b, (char)('a' + i % 26));
        buf_adds(&b, "xy");
        expected[3 * i] = (char)('a' + i % 26);
        memcpy(expected + 3 * i + 1, "xy", 2);
        assert_int_equal(b.len, 3 * i + 3);
        assert_int_equal(b.data[b.len], 0);
    }
    assert_memory_equal(b.data, expected, b.len);
    buf_remove_front(&b, 2997);
    assert_memory_equal(b.data, expected + 2997, 4 - 1);
    buf_truncate(&b, 1);
    assert_int_equal(strlen(buf_str(&b)), 1);
    buf_deinit(&b);
    assert_int_equal(b.cap, 0);
    buf_adds(&b, "again");
    char *text = buf_take(&b);
    assert_string_equal(text, "again");
    assert_int_equal(b.len, 0);
    free(text);
}

static void printing_grows_to_any_length(void **state)
{
    (void)state;
    for (int width = 1; width < 300; width++) {
        struct buf b = {0};
        buf_adds(&b, "<");
        buf_printf(&b, "%*d>", width, 7);
        assert_int_equal(b.len, width + 2);
        assert_string_equal(b.data + b.len - 2, "7>");
        buf_deinit(&b);
    }
}

static void reserved_space_is_committed_or_left(void **state)
{
    struct buf b = {0};
    (void)state;
    memset(buf_reserve(&b, 1000), 'x', 1000);
    buf_commit(&b, 3);
    assert_string_equal(buf_str(&b), "xxx");
    buf_reserve(&b, 10);
    assert_string_equal(buf_str(&b), "xxx");
    buf_deinit(&b);
}

static void an_append_over_the_limit_changes_nothing(void **state)
{
    struct buf b = {0};
    struct err e;
    (void)state;
    assert_int_equal(buf_add_limited(&b, "1234", 4, 5, &e), 0);
    assert_int_equal(buf_add_limited(&b, "56", 2, 5, &e), ERR_INVALID);
    assert_err(&e, ERR_INVALID, "5 bytes");
    assert_string_equal(buf_str(&b), "1234");
    assert_int_equal(buf_add_limited(&b, "5", 1, 5, &e), 0);
    assert_int_equal(buf_add_limited(&b, "", 0, 5, &e), 0);
    assert_int_equal(buf_add_limited(&b, "", 0, 4, &e), ERR_INVALID); /* it holds more already */
    assert_int_equal(buf_add_limited(&b, "x", SIZE_MAX, 5, &e), ERR_INVALID);
    buf_deinit(&b);
}

static void a_wiped_buffer_is_empty_and_reusable(void **state)
{
    struct buf b = {0};
    (void)state;
    buf_wipe(&b);
    buf_adds(&b, "secret");
    buf_wipe(&b);
    assert_null(b.data);
    buf_adds(&b, "x");
    assert_string_equal(buf_str(&b), "x");
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_never_null),
        cmocka_unit_test(sizes_that_overflow_abort),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(a_zeroed_buffer_is_empty),
        cmocka_unit_test(added_bytes_are_followed_by_a_nul),
        cmocka_unit_test(printing_grows_to_any_length),
        cmocka_unit_test(reserved_space_is_committed_or_left),
        cmocka_unit_test(a_wiped_buffer_is_empty_and_reusable),
        cmocka_unit_test(an_append_over_the_limit_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
