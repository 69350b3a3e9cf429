/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/refusal.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static const struct refusal table[] = {
    {"Full", ERR_NO_CAPACITY},
    {"Quota*", ERR_QUOTA, "ask for more", 7},
    {"*NotHere", ERR_NOT_FOUND},
    {"QuotaNotHere", ERR_CONFIG}, /* an earlier row matches */
    {"HTTP 409", ERR_CONFLICT},
    {NULL},
};

static void the_first_row_that_fits_counts(void **state)
{
    (void)state;
    assert_ptr_equal(refusal_find(table, "Full"), &table[0]);
    assert_null(refusal_find(table, "Fuller"));
    assert_null(refusal_find(table, "full"));
    assert_null(refusal_find(table, ""));
    assert_ptr_equal(refusal_find(table, "Quota"), &table[1]);
    assert_ptr_equal(refusal_find(table, "QuotaNotHere"), &table[1]);
    assert_ptr_equal(refusal_find(table, "ItIsNotHere"), &table[2]);
    assert_null(refusal_find(table, "NotHereAtAll"));
}

static void a_status_means_what_its_row_says_or_what_it_means_to_everyone(void **state)
{
    static const struct {
        int status;
        enum err_kind kind;
    } rows[] = {{429, ERR_THROTTLED}, {500, ERR_UNAVAILABLE}, {503, ERR_UNAVAILABLE},
        {401, ERR_DENIED}, {403, ERR_DENIED}, {408, ERR_TIMEOUT}, {409, ERR_CONFLICT},
        {404, ERR_INVALID}, {302, ERR_INVALID}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(refusal_kind_of_status(table, rows[i].status, ERR_INVALID), rows[i].kind);
    assert_int_equal(refusal_kind_of_status(table, 400, ERR_CONFIG), ERR_CONFIG);
}

static void errors_name_the_request_the_fault_and_the_cure(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(refusal_set("X", ERR_QUOTA, "QuotaUsed", "no more", &table[1], &e), ERR_QUOTA);
    assert_string_equal(e.text, "X refused: QuotaUsed: no more; to do: ask for more");
    refusal_set("X", ERR_NO_CAPACITY, "Full", "", &table[0], &e);
    assert_string_equal(e.text, "X refused: Full");
    refusal_set("X", ERR_CONFIG, "New", "why", NULL, &e);
    assert_string_equal(e.text, "X refused: New: why");
    assert_int_equal(
        refusal_set_stray("X", ERR_UNAVAILABLE, 502, "<html>", 6, "no error of X's", &e),
        ERR_UNAVAILABLE);
    assert_string_equal(
        e.text, "X answered HTTP 502 with an HTML page (a proxy or load balancer in between?)");
    refusal_set_stray("X", ERR_UNAVAILABLE, 502, "", 0, "no error of X's", &e);
    assert_string_equal(e.text, "X answered HTTP 502 with an empty body");
    refusal_set_stray("X", ERR_INVALID, 400, "{}", 2, "no error of X's", &e);
    assert_string_equal(e.text, "X answered HTTP 400 with no error of X's");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_row_that_fits_counts),
        cmocka_unit_test(a_status_means_what_its_row_says_or_what_it_means_to_everyone),
        cmocka_unit_test(errors_name_the_request_the_fault_and_the_cure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
