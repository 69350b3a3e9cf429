/* SPDX-License-Identifier: Apache-2.0
 *
 * Which output is cut on an almost full disk: of users above an equal share, of their jobs above an
 * equal part of it, and no other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prng.h"
#include "scheduler/logs/log_shares.h"
#include <stdio.h>

#define MIB (1LL << 20)
#define GIB (1LL << 30)
#define TOTAL (100 * GIB)
#define RESERVE (256 * MIB)

static int setup(void **state)
{
    *state = log_shares_create();
    return 0;
}

static int teardown(void **state)
{
    log_shares_destroy(*state);
    return 0;
}

/* Asks for one more MiB with this much free space. */
static enum log_verdict judge(
    const struct log_shares *s, int64_t free, const char *user, int64_t job_bytes, bool has_waited)
{
    const struct log_space space = {.total = TOTAL, .free = free};
    const struct log_request q = {
        .user = user, .job_bytes = job_bytes, .n = MIB, .has_waited = has_waited};
    return log_shares_judge(s, &space, &q);
}

static void a_reserve_is_an_eighth_of_the_disk_at_most_256_mib(void **state)
{
    (void)state;
    assert_int_equal(log_space_reserve(&(struct log_space){.total = 24 * MIB}), 3 * MIB);
    assert_int_equal(log_space_reserve(&(struct log_space){.total = TOTAL}), RESERVE);
    assert_false(log_space_is_low(&(struct log_space){.total = TOTAL, .free = 2 * RESERVE}));
    assert_true(log_space_is_low(&(struct log_space){.total = TOTAL, .free = 2 * RESERVE - 1}));
}

static void with_two_reserves_of_space_everything_is_stored(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "loud", 99 * GIB, 1);
    assert_int_equal(judge(s, 2 * RESERVE + MIB, "loud", 99 * GIB, true), LOG_STORE);
    assert_int_equal(judge(NULL, 2 * RESERVE + MIB, "loud", 99 * GIB, true), LOG_STORE);
}

static void who_stores_most_waits_and_is_then_cut_and_others_go_on(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "loud", 90 * GIB, 1);
    log_shares_add(s, "quiet", MIB, 1);
    assert_int_equal(judge(s, 2 * RESERVE, "loud", 90 * GIB, false), LOG_KEEP);
    assert_int_equal(judge(s, 2 * RESERVE, "loud", 90 * GIB, true), LOG_CUT);
    for (int waited = 0; waited < 2; waited++) {
        assert_int_equal(judge(s, 2 * RESERVE, "quiet", MIB, waited), LOG_STORE);
        assert_int_equal(judge(s, RESERVE + MIB, "quiet", MIB, waited), LOG_STORE);
        assert_int_equal(judge(s, RESERVE + MIB, "new", 0, waited), LOG_STORE);
        assert_int_equal(judge(s, RESERVE, "quiet", MIB, waited), LOG_KEEP);
        assert_int_equal(judge(s, RESERVE, "new", 0, waited), LOG_KEEP);
    }
}

static void one_user_alone_leaves_space_for_others(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "only", 90 * GIB, 1);
    assert_int_equal(judge(s, 2 * RESERVE, "only", 90 * GIB, true), LOG_CUT);
}

static void users_with_the_same_amount_are_cut_together(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "ann", 40 * GIB, 1);
    log_shares_add(s, "bob", 40 * GIB, 1);
    log_shares_add(s, "cy", 10 * GIB, 1);
    assert_int_equal(judge(s, 2 * RESERVE, "ann", 40 * GIB, true), LOG_CUT);
    assert_int_equal(judge(s, 2 * RESERVE, "bob", 40 * GIB, true), LOG_CUT);
    assert_int_equal(judge(s, 2 * RESERVE, "cy", 10 * GIB, true), LOG_STORE);
}

static void of_a_user_the_largest_job_is_cut_first(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "loud", 89 * GIB, 1);
    log_shares_add(s, "loud", GIB, 1);
    log_shares_add(s, "quiet", MIB, 1);
    assert_int_equal(judge(s, 2 * RESERVE, "loud", 89 * GIB, true), LOG_CUT);
    assert_int_equal(judge(s, 2 * RESERVE, "loud", GIB, true), LOG_STORE);
    assert_int_equal(judge(s, 2 * RESERVE, "loud", 0, true), LOG_STORE);
    /* the last half of the second reserve is left to others */
    assert_int_equal(judge(s, RESERVE + RESERVE / 2, "loud", GIB, false), LOG_KEEP);
    assert_int_equal(judge(s, RESERVE + RESERVE / 2, "loud", GIB, true), LOG_CUT);
    assert_int_equal(judge(s, RESERVE + RESERVE / 2, "quiet", MIB, true), LOG_STORE);
}

static void nothing_is_cut_of_a_disk_that_something_else_has_filled(void **state)
{
    struct log_shares *s = *state;
    log_shares_add(s, "ann", 100 * MIB, 1);
    log_shares_add(s, "bob", MIB, 1);
    assert_int_equal(judge(s, RESERVE, "ann", 100 * MIB, true), LOG_KEEP);
    log_shares_add(s, "ann", 400 * MIB, 0); /* together still less than two reserves */
    assert_int_equal(judge(s, RESERVE, "ann", 500 * MIB, true), LOG_KEEP);
    log_shares_add(s, "ann", 100 * MIB, 0);
    assert_int_equal(judge(s, RESERVE, "ann", 600 * MIB, true), LOG_CUT);
    assert_int_equal(judge(s, 0, "ann", 600 * MIB, true), LOG_KEEP); /* no space for a line */
}

static void nothing_is_cut_while_it_is_unknown_who_stores_how_much(void **state)
{
    (void)state;
    assert_int_equal(judge(NULL, RESERVE + MIB, "ann", GIB, true), LOG_STORE);
    assert_int_equal(judge(NULL, RESERVE, "ann", GIB, true), LOG_KEEP);
}

static void the_largest_user_is_named(void **state)
{
    struct log_shares *s = *state;
    int64_t most;
    assert_null(log_shares_most(s, &most));
    log_shares_add(s, "ann", 5, 1);
    log_shares_add(s, "bob", 4, 1);
    log_shares_add(s, "bob", 3, 1);
    assert_string_equal(log_shares_most(s, &most), "bob");
    assert_int_equal(most, 7);
    assert_int_equal(log_shares_total(s), 12);
}

/* For any distribution, a full disk cuts some user's output, but none below an equal share. */
static void for_any_users_somebody_is_cut_and_nobody_below_an_equal_share(void **state)
{
    struct prng prng;
    (void)state;
    prng_init(&prng, 1);
    for (int round = 0; round < 1000; round++) {
        struct log_shares *s = log_shares_create();
        int64_t users = 1 + (int64_t)prng_below(&prng, 8), bytes[8], sum = 0, n_cut = 0;
        int64_t free = RESERVE + (int64_t)prng_below(&prng, (uint64_t)RESERVE);
        for (int64_t i = 0; i < users; i++) {
            char name[8];
            snprintf(name, sizeof(name), "u%d", (int)i);
            bytes[i] = (i == 0 ? GIB : 0) + (int64_t)prng_below(&prng, 2 * (uint64_t)GIB);
            sum += bytes[i];
            log_shares_add(s, name, bytes[i], 1);
        }
        for (int64_t i = 0; i < users; i++) {
            char name[8];
            snprintf(name, sizeof(name), "u%d", (int)i);
            bool is_cut = judge(s, free, name, bytes[i], true) == LOG_CUT;
            n_cut += is_cut;
            assert_true(!is_cut || bytes[i] >= (sum + free - 2 * RESERVE) / users);
        }
        assert_true(n_cut > 0);
        log_shares_destroy(s);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reserve_is_an_eighth_of_the_disk_at_most_256_mib),
        TEST(with_two_reserves_of_space_everything_is_stored),
        TEST(who_stores_most_waits_and_is_then_cut_and_others_go_on),
        TEST(one_user_alone_leaves_space_for_others),
        TEST(users_with_the_same_amount_are_cut_together),
        TEST(of_a_user_the_largest_job_is_cut_first),
        TEST(nothing_is_cut_of_a_disk_that_something_else_has_filled),
        TEST(nothing_is_cut_while_it_is_unknown_who_stores_how_much),
        TEST(the_largest_user_is_named),
        TEST(for_any_users_somebody_is_cut_and_nobody_below_an_equal_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
