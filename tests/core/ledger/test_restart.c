/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "scheduler/core/ledger/restart.h"

static int64_t sum(const struct restart_parts *p)
{
    return p->wait_ms + p->launch_ms + p->boot_ms + p->agent_ms + p->place_ms + p->prepare_ms +
           p->restore_ms;
}

/* A machine that is ordered after the reclaim. */
static const struct restart_moments whole = {.stopped_at = {1000},
    .intended_at = {1010},
    .launched_at = {1510},
    .joined_at = {9510},
    .start_ms = 700,
    .assigned_at = {9520},
    .started_at = {12000},
    .restore_ms = 2000,
    .warm_up_ms = 300};

static void every_part_of_a_new_machine_has_its_time(void **state)
{
    struct restart_parts p;
    (void)state;
    restart_parts(&whole, &p);
    assert_int_equal(p.wait_ms, 10);
    assert_int_equal(p.launch_ms, 500);
    assert_int_equal(p.boot_ms, 7300);
    assert_int_equal(p.agent_ms, 700);
    assert_int_equal(p.place_ms, 10);
    assert_int_equal(p.prepare_ms, 480);
    assert_int_equal(p.restore_ms, 2000);
    assert_int_equal(p.warm_up_ms, 300);
    assert_int_equal(sum(&p), 11000);
}

/* What overlaps with the previous attempt costs no time. */
static void a_machine_launched_at_the_notice_has_only_the_rest_of_its_boot(void **state)
{
    struct restart_moments m = whole;
    struct restart_parts p;
    (void)state;
    m.stopped_at.ms = 5000;
    restart_parts(&m, &p);
    assert_int_equal(p.wait_ms + p.launch_ms, 0);
    assert_int_equal(p.boot_ms, 3810);
    assert_int_equal(p.agent_ms, 700);
    assert_int_equal(sum(&p), 7000);
}

static void a_machine_that_was_up_has_no_boot(void **state)
{
    struct restart_moments m = whole;
    struct restart_parts p;
    (void)state;
    m.stopped_at.ms = 9515;
    restart_parts(&m, &p);
    assert_int_equal(p.wait_ms + p.launch_ms + p.boot_ms + p.agent_ms, 0);
    assert_int_equal(p.place_ms, 5);
    assert_int_equal(sum(&p), 2485);
    m.intended_at = m.launched_at = WALL_NONE; /* a reserved node */
    m.joined_at.ms = 1;
    restart_parts(&m, &p);
    assert_int_equal(p.place_ms, 5);
    assert_int_equal(sum(&p), 2485);
}

static void an_unknown_start_counts_as_boot(void **state)
{
    struct restart_moments m = whole;
    struct restart_parts p;
    (void)state;
    m.start_ms = 0;
    restart_parts(&m, &p);
    assert_int_equal(p.boot_ms, 8000);
    assert_int_equal(p.agent_ms, 0);
    assert_int_equal(sum(&p), 11000);
}

/* Clocks of providers and agents are not belayd's; and the wall clock may be set back. */
static void clocks_that_differ_make_no_time(void **state)
{
    static const int64_t shifts[] = {-20000, -3000, 3000, 20000, 1000000};
    struct restart_parts p;
    (void)state;
    for (size_t k = 0; k < sizeof(shifts) / sizeof(*shifts); k++) {
        struct restart_moments m = whole;
        m.launched_at.ms += shifts[k];
        m.restore_ms += 20000;
        restart_parts(&m, &p);
        assert_int_equal(sum(&p), 11000);
        assert_true(p.wait_ms >= 0 && p.launch_ms >= 0 && p.boot_ms >= 0 && p.agent_ms >= 0 &&
                    p.place_ms == 10 && p.prepare_ms >= 0 && p.restore_ms >= 0);
        m = whole;
        m.started_at.ms = m.stopped_at.ms - 1;
        restart_parts(&m, &p);
        assert_int_equal(sum(&p), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_of_a_new_machine_has_its_time),
        cmocka_unit_test(a_machine_launched_at_the_notice_has_only_the_rest_of_its_boot),
        cmocka_unit_test(a_machine_that_was_up_has_no_boot),
        cmocka_unit_test(an_unknown_start_counts_as_boot),
        cmocka_unit_test(clocks_that_differ_make_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
