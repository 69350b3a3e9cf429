/* SPDX-License-Identifier: Apache-2.0
 *
 * The division of descriptors: no set of full classes reaches the limit.
 */
#include "scheduler/open_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

static struct open_files divide(int64_t max)
{
    struct open_files f = {0};
    struct err e = {0};
    if (open_files_divide(max, &f, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(f.max, max);
    return f;
}

static int clients(const struct open_files *f)
{
    return f->unauthenticated + f->users + f->users_at_socket + f->nodes;
}

static void all_connections_together_leave_a_reserve(void **state)
{
    (void)state;
    for (int64_t max = OPEN_FILES_MIN; max <= OPEN_FILES_MAX; max++) {
        struct open_files f = divide(max);
        assert_true(clients(&f) + f.outgoing + 48 <= max);
        assert_true(clients(&f) + f.outgoing + f.browsers + 40 <= max);
        assert_in_range(f.browsers, 12, 512);
        assert_true(
            f.unauthenticated >= 8 && f.users >= 2 && f.users_at_socket >= 2 && f.nodes >= 8);
        assert_in_range(f.users_each, 1, f.users);
        assert_in_range(f.nodes_each, 1, f.nodes);
        assert_true(f.users_each >= 8 || f.users_each == f.users);
        assert_true(f.outgoing >= 8);
    }
}

static void more_descriptors_are_never_fewer_connections(void **state)
{
    struct open_files last = divide(OPEN_FILES_MIN);
    (void)state;
    for (int64_t max = OPEN_FILES_MIN + 1; max <= OPEN_FILES_MAX; max++) {
        struct open_files f = divide(max);
        assert_true(f.unauthenticated >= last.unauthenticated && f.outgoing >= last.outgoing);
        assert_true(clients(&f) >= clients(&last));
        last = f;
    }
}

static void where_there_are_enough_the_limits_are_those_of_the_manual(void **state)
{
    struct open_files f = divide(OPEN_FILES_MAX);
    (void)state;
    assert_int_equal(f.unauthenticated, 2048);
    assert_int_equal(f.users, 8192);
    assert_int_equal(f.users_at_socket, 8192);
    assert_int_equal(f.nodes, 15000);
    assert_int_equal(f.users_each, 1024);
    assert_int_equal(f.nodes_each, 256);
    assert_false(open_files_are_few(&f));
}

static void too_few_are_refused_with_what_to_do(void **state)
{
    struct open_files f = {.max = 7};
    struct err e = {0};
    (void)state;
    assert_int_equal(open_files_divide(OPEN_FILES_MIN - 1, &f, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "127 files"));
    assert_non_null(strstr(e.text, "at least 128"));
    assert_non_null(strstr(e.text, "LimitNOFILE="));
    assert_int_equal(f.max, 7);
    f = divide(OPEN_FILES_MIN);
    assert_true(open_files_are_few(&f));
}

static void the_limit_is_raised_and_never_lowered(void **state)
{
    struct rlimit before, l;
    struct open_files f;
    struct err e;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit low = {OPEN_FILES_MIN, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(open_files_raise(&f, &e), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
    int64_t most = before.rlim_max < OPEN_FILES_MAX ? (int64_t)before.rlim_max : OPEN_FILES_MAX;
    assert_int_equal(l.rlim_cur, most);
    assert_int_equal(f.max, most);
    if (before.rlim_max > OPEN_FILES_MAX) {
        struct rlimit high = {OPEN_FILES_MAX + 1, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &high), 0);
        assert_int_equal(open_files_raise(&f, &e), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
        assert_int_equal(l.rlim_cur, OPEN_FILES_MAX + 1);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_connections_together_leave_a_reserve),
        cmocka_unit_test(more_descriptors_are_never_fewer_connections),
        cmocka_unit_test(where_there_are_enough_the_limits_are_those_of_the_manual),
        cmocka_unit_test(too_few_are_refused_with_what_to_do),
        cmocka_unit_test(the_limit_is_raised_and_never_lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
