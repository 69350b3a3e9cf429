/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations of nodes for maintenance: what is placed before the start, what is stopped at it,
 * what runs meanwhile, and what follows the end.
 */
#include "scheduler/core/placement/maintenance.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/queue/queue.h"
#include "tests/core/lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define WEEK_MS (7 * 24 * HOUR_MS)
#define SPRING_S 1711846800 /* 2024-03-31T01:00:00Z: 02:00 becomes 03:00 in "Odd" */

static struct maintenance_row usual(const struct lab *l, const char *name, const char *nodes)
{
    struct maintenance_row r = {.from_at = {l->now.wall.ms + HOUR_MS}, .for_ms = 2 * HOUR_MS};
    STR_COPY(r.name, name);
    STR_COPY(r.nodes, nodes);
    STR_COPY(r.zone, ZONE_UTC);
    STR_COPY(r.by, "ola");
    return r;
}

static int64_t reserve(struct lab *l, const struct maintenance_row *r)
{
    return lab_apply(l, (struct event){.type = EV_RESERVATION_ADD, .reservation = r});
}

static void unreserve(struct lab *l, int64_t id)
{
    lab_apply(l, (struct event){.type = EV_RESERVATION_REMOVE, .reservation_remove.id = id});
}

static void refused(struct lab *l, const struct maintenance_row *r, int kind, const char *words)
{
    struct event ev = {.type = EV_RESERVATION_ADD, .reservation = r};
    assert_int_equal(lab_try(l, &ev, NULL), kind);
    if (!strstr(l->e.text, words))
        fail_msg("'%s' does not say '%s'", l->e.text, words);
}

/* Cannot be saved. */
static int64_t submit_plain(struct lab *l, int64_t limit_ms)
{
    struct job_row row = lab_job(1);
    row.spec.method = CKPT_NONE;
    row.spec.time_limit_ms = limit_ms;
    return lab_submit(l, &row);
}

static enum attempt_state state_of(const struct lab *l, int64_t job)
{
    return job_attempt(model_job(l->m, job))->row.state;
}

static void before_the_start_what_cannot_be_saved_must_end_in_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    int64_t node = lab_join(&l, "n1", 8);
    struct maintenance_row r = usual(&l, "disks", "n1");
    reserve(&l, &r);
    int64_t short_one = submit_plain(&l, 30 * MINUTE_MS), saved = lab_submit_cpus(&l, 1),
            long_one = submit_plain(&l, 6 * HOUR_MS), unlimited = submit_plain(&l, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, short_one), node);
    assert_int_equal(lab_node_of(&l, saved), node);
    assert_true(!lab_runs(&l, long_one) && !lab_runs(&l, unlimited));
    assert_true(lab_has_reason(
        &l, long_one, "maintenance", "node n1 is reserved for maintenance (disks) from "));
    assert_true(lab_has_reason(
        &l, long_one, "maintenance", ", and this job asks for 6h00m and cannot be saved"));
    assert_true(lab_has_reason(&l, unlimited, "maintenance", "no time limit (--time)"));
    lab_wait(&l, 31 * MINUTE_MS);
    int64_t too_late = submit_plain(&l, 30 * MINUTE_MS);
    lab_plan(&l);
    assert_true(!lab_runs(&l, too_late));
    lab_deinit(&l);
}

static void at_the_start_jobs_are_saved_and_resume_elsewhere(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    int64_t node = lab_join(&l, "n1", 2);
    int64_t saved = lab_submit_cpus(&l, 1), plain = submit_plain(&l, 0);
    lab_plan(&l);
    lab_started(&l, saved);
    lab_started(&l, plain);
    int64_t other = lab_join(&l, "n2", 2);
    struct maintenance_row r = usual(&l, "disks", "n1");
    reserve(&l, &r);
    int64_t ids[4];
    assert_int_equal(core_maintenance_in_the_way(l.m, core_maintenance(l.m, 0), ids, 4), 1);
    assert_int_equal(ids[0], plain);
    lab_plan(&l);
    lab_wait(&l, HOUR_MS - 1);
    lab_plan(&l);
    assert_int_equal(state_of(&l, saved), ATTEMPT_RUNNING);
    lab_take(&l);
    lab_wait(&l, 1);
    lab_plan(&l);
    assert_int_equal(core_maintenance(l.m, 0)->row.state, MAINTENANCE_OPEN);
    assert_int_equal(state_of(&l, saved), ATTEMPT_STOPPING);
    assert_true(job_attempt(model_job(l.m, saved))->row.save_first);
    assert_int_equal(state_of(&l, plain), ATTEMPT_RUNNING); /* it would lose its work */
    lab_take(&l);
    assert_non_null(lab_history(&l, "reservation"));
    lab_ended(&l, saved, END_DRAINED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, saved), other);
    int64_t next = lab_submit_cpus(&l, 2);
    lab_ended(&l, plain, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(!lab_runs(&l, next));
    assert_true(lab_has_reason(&l, next, "maintenance", "node n1 is reserved for maintenance"));
    lab_wait(&l, 2 * HOUR_MS);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, next), node);
    assert_null(core_maintenance(l.m, 0));
    lab_take(&l);
    assert_true(l.c.reservations[l.c.n_reservations - 1].is_over);
    assert_non_null(lab_history(&l, "reservation-over"));
    lab_deinit(&l);
}

/* A job that has no requeue left after a drain would fail. */
static void a_job_that_would_not_be_requeued_counts_as_one_that_cannot_be_saved(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    struct job_row row = lab_job(1);
    row.spec.retries.n[RETRY_DRAINED] = 1;
    lab_join(&l, "n1", 2);
    int64_t job = lab_submit(&l, &row);
    lab_plan(&l);
    lab_started(&l, job);
    lab_join(&l, "n2", 2);
    struct maintenance_row r = usual(&l, "one", "n1"), s = usual(&l, "two", "n2");
    s.from_at.ms += HOUR_MS;
    reserve(&l, &r);
    reserve(&l, &s);
    lab_wait(&l, HOUR_MS);
    lab_plan(&l);
    lab_ended(&l, job, END_DRAINED, 0);
    assert_false(model_job(l.m, job)->shape->can_drain);
    lab_plan(&l);
    assert_true(!lab_runs(&l, job));
    lab_deinit(&l);
}

static void jobs_of_its_users_run_meanwhile(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    int64_t node = lab_join(&l, "n1", 4);
    struct job_row ann = lab_job(1), bob = lab_job(1);
    STR_COPY(ann.user, "ann");
    STR_COPY(bob.user, "bob");
    int64_t of_ann = lab_submit(&l, &ann), of_bob = lab_submit(&l, &bob);
    lab_plan(&l);
    lab_started(&l, of_ann);
    lab_started(&l, of_bob);
    struct maintenance_row r = usual(&l, "test", "n1");
    STR_COPY(r.users, "bob,cho");
    reserve(&l, &r);
    lab_wait(&l, HOUR_MS);
    lab_plan(&l);
    assert_int_equal(state_of(&l, of_ann), ATTEMPT_STOPPING);
    assert_int_equal(state_of(&l, of_bob), ATTEMPT_RUNNING);
    lab_ended(&l, of_ann, END_DRAINED, 0);
    /* ann's jobs are first in the queue, and of the same demand */
    int64_t more_of_ann = lab_submit(&l, &ann), more_of_bob = lab_submit(&l, &bob);
    lab_plan(&l);
    assert_true(!lab_runs(&l, of_ann) && !lab_runs(&l, more_of_ann));
    assert_int_equal(lab_node_of(&l, more_of_bob), node);
    unreserve(&l, core_maintenance(l.m, 0)->row.id);
    lab_plan(&l);
    assert_true(lab_runs(&l, of_ann) && lab_runs(&l, more_of_ann));
    lab_deinit(&l);
}

static void a_queued_job_becomes_open_to_a_new_reservation(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "n1", 1);
    int64_t running = lab_submit_cpus(&l, 1), first = lab_submit_cpus(&l, 1);
    struct job_row bob = lab_job(1);
    STR_COPY(bob.user, "bob");
    int64_t second = lab_submit(&l, &bob);
    lab_plan(&l);
    lab_started(&l, running);
    struct maintenance_row r = usual(&l, "test", "n1");
    r.from_at = l.now.wall;
    STR_COPY(r.users, "bob");
    reserve(&l, &r);
    lab_plan(&l);
    lab_ended(&l, running, END_DRAINED, 0);
    lab_plan(&l);
    assert_true(!lab_runs(&l, first));
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

static void no_machine_is_launched_into_a_reserved_pool(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_elastic(&l, "burst", 4, "m5", 4);
    struct maintenance_row r = usual(&l, "network", "");
    STR_COPY(r.pool, "burst");
    struct pool_row p = lab_pool(&l, "burst");
    p.min_nodes = 1;
    reserve(&l, &r);
    lab_plan(&l);
    lab_wait(&l, HOUR_MS - 5 * MINUTE_MS);
    lab_set_pool(&l, p); /* a base load */
    int64_t job = lab_submit_pool(&l, 1, "burst", WISH_ANY);
    lab_plan(&l);
    assert_true(list_is_empty(model_instances(l.m)));
    assert_true(lab_has_reason(&l, job, "maintenance", "pool burst is reserved for maintenance"));
    lab_wait(&l, 10 * MINUTE_MS);
    lab_plan(&l);
    assert_true(list_is_empty(model_instances(l.m)));
    lab_wait(&l, 3 * HOUR_MS);
    lab_plan(&l);
    assert_false(list_is_empty(model_instances(l.m)));
    lab_deinit(&l);
}

static void a_node_that_joins_is_covered(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    struct maintenance_row r = usual(&l, "all", "");
    STR_COPY(r.pool, "base");
    r.from_at = l.now.wall;
    int64_t id = reserve(&l, &r);
    lab_plan(&l);
    lab_join(&l, "n7", 4);
    int64_t job = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_true(!lab_runs(&l, job));
    unreserve(&l, id);
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    lab_deinit(&l);
}

static void what_cannot_be_reserved_is_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "n1", 4);
    const struct maintenance_row good = usual(&l, "disks", "n1");
    struct maintenance_row r = good;
    STR_COPY(r.name, "a b");
    refused(&l, &r, ERR_INVALID, "a reservation's name");
    r = good;
    STR_COPY(r.nodes, "n[1-2]");
    refused(&l, &r, ERR_NOT_FOUND, "no node 'n2'");
    STR_COPY(r.nodes, "n[1-");
    refused(&l, &r, ERR_INVALID, "nodes");
    r.nodes[0] = '\0';
    refused(&l, &r, ERR_INVALID, "one of nodes and pool");
    STR_COPY(r.pool, "nowhere");
    refused(&l, &r, ERR_NOT_FOUND, "no pool 'nowhere'");
    r = good;
    r.from_at.ms = l.now.wall.ms - 2 * MINUTE_MS;
    refused(&l, &r, ERR_INVALID, "in the past");
    r = good;
    r.for_ms = MINUTE_MS - 1;
    refused(&l, &r, ERR_INVALID, "1 minute");
    r.for_ms = MAINTENANCE_AHEAD_MAX_MS;
    refused(&l, &r, ERR_INVALID, "366 days");
    r.for_ms = WEEK_MS;
    r.is_weekly = true;
    refused(&l, &r, ERR_INVALID, "shorter than 7 days");
    r = good;
    STR_COPY(r.users, "ann,,bob");
    refused(&l, &r, ERR_INVALID, "user");
    r = good;
    STR_COPY(r.zone, "Mars/Phobos");
    refused(&l, &r, ERR_NOT_FOUND, "Mars/Phobos");
    reserve(&l, &good);
    refused(&l, &good, ERR_CONFLICT, "already");
    for (int i = 1; i < MAINTENANCES_MAX; i++) {
        r = good;
        snprintf(r.name, sizeof r.name, "r%d", i);
        reserve(&l, &r);
    }
    STR_COPY(r.name, "one-more");
    refused(&l, &r, ERR_CONFLICT, "64 reservations");
    struct event none = {.type = EV_RESERVATION_REMOVE, .reservation_remove.id = 999};
    assert_int_equal(lab_try(&l, &none, NULL), ERR_NOT_FOUND);
    lab_deinit(&l);
}

static int load_odd(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e)
{
    (void)ctx;
    if (!str_eq(name, "Odd"))
        return err_set(e, ERR_NOT_FOUND, "there is no time zone '%s'", name);
    ret_zone->n = 2;
    ret_zone->spans = mem_array(2, sizeof *ret_zone->spans);
    ret_zone->spans[0] = (struct zone_span){INT64_MIN, 3600};
    ret_zone->spans[1] = (struct zone_span){SPRING_S, 7200};
    return 0;
}

static void a_weekly_one_keeps_its_time_of_the_day(void **state)
{
    (void)state;
    static const struct zone_source source = {.load = load_odd};
    struct zones zones = {.source = &source};
    struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 100 * WEEK_MS, .zones = &zones};
    struct lab l = {.m = model_create(&o), .p = planner_create(), .now = {.mono = {5000}}};
    char period[MAINTENANCE_PERIOD_MAX];
    assert_int_equal(time_parse_iso("2024-03-25T11:00:00Z", &l.now.wall, NULL), 0);
    lab_elastic(&l, "burst", 2, "m5", 4);
    struct maintenance_row r = usual(&l, "patches", "");
    STR_COPY(r.pool, "burst");
    STR_COPY(r.zone, "Odd");
    r.is_weekly = true;
    reserve(&l, &r);
    core_maintenance_period(core_maintenance(l.m, 0), period);
    assert_string_equal(period, "2024-03-25 13:00 to 15:00 (Odd)");
    lab_wait(&l, HOUR_MS);
    lab_plan(&l);
    assert_int_equal(core_maintenance(l.m, 0)->row.state, MAINTENANCE_OPEN);
    lab_wait(&l, 2 * HOUR_MS);
    lab_plan(&l);
    core_maintenance_period(core_maintenance(l.m, 0), period);
    assert_string_equal(period, "2024-04-01 13:00 to 15:00 (Odd)");
    assert_int_equal(core_maintenance(l.m, 0)->row.state, MAINTENANCE_PLANNED);
    lab_wait(&l, 20 * 24 * HOUR_MS); /* times that passed are not made up for */
    lab_plan(&l);
    core_maintenance_period(core_maintenance(l.m, 0), period);
    assert_string_equal(period, "2024-04-15 13:00 to 15:00 (Odd)");
    /* a job that never fits between two of them */
    struct job_row row = lab_job(1);
    row.spec.method = CKPT_NONE;
    STR_COPY(row.spec.pool, "burst");
    int64_t job = lab_submit(&l, &row);
    lab_plan(&l);
    assert_true(lab_has_reason(&l, job, "maintenance", "pool burst is reserved for maintenance"));
    lab_deinit(&l);
    zones_deinit(&zones);
}

static void a_node_that_is_always_reserved_before_the_end_is_impossible(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "n1", 4);
    struct maintenance_row r = usual(&l, "patches", "n1");
    r.is_weekly = true;
    reserve(&l, &r);
    int64_t never = submit_plain(&l, 0), later = submit_plain(&l, 24 * HOUR_MS);
    lab_plan(&l);
    assert_true(lab_has_reason(&l, never, "maintenance-always", ", and every week"));
    assert_true(lab_has_reason(&l, later, "maintenance", "asks for 1d"));
    lab_deinit(&l);
}

static void stored_ones_continue_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct maintenance_row row;
    struct err e;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "n1", 4);
    row = usual(&l, "disks", "n1");
    row.id = 7;
    row.state = MAINTENANCE_OPEN;
    row.from_at = l.now.wall;
    assert_int_equal(maintenance_load(l.m, &row, &e), 0);
    int64_t job = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_true(!lab_runs(&l, job));
    lab_wait(&l, 2 * HOUR_MS);
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    row.state = 9;
    assert_int_equal(maintenance_load(l.m, &row, &e), ERR_CORRUPT);
    struct maintenance_row next = usual(&l, "next", "n1");
    assert_int_equal(reserve(&l, &next), 8);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_start_what_cannot_be_saved_must_end_in_time),
        cmocka_unit_test(at_the_start_jobs_are_saved_and_resume_elsewhere),
        cmocka_unit_test(a_job_that_would_not_be_requeued_counts_as_one_that_cannot_be_saved),
        cmocka_unit_test(jobs_of_its_users_run_meanwhile),
        cmocka_unit_test(a_queued_job_becomes_open_to_a_new_reservation),
        cmocka_unit_test(no_machine_is_launched_into_a_reserved_pool),
        cmocka_unit_test(a_node_that_joins_is_covered),
        cmocka_unit_test(what_cannot_be_reserved_is_refused),
        cmocka_unit_test(a_weekly_one_keeps_its_time_of_the_day),
        cmocka_unit_test(a_node_that_is_always_reserved_before_the_end_is_impossible),
        cmocka_unit_test(stored_ones_continue_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
