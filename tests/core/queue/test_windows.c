/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a window: they run in it, are saved before it closes, and continue when it opens again.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

/* Monday to Friday, 20:00 to 07:00. The lab begins on Tuesday, 2023-11-14T22:13:20Z. */
static const struct window overnight = {
    .name = "overnight", .days = 0x3E, .from_min = 1200, .to_min = 420, .zone = &zone_utc};

static void set_up(struct lab *l, const char *iso)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400LL * 24 * HOUR_MS,
        .tables.windows = &overnight,
        .tables.n_windows = 1};
    struct pool_row base = {.name = "base"};
    *l = (struct lab){.m = model_create(&o), .p = planner_create(), .now = {.mono = {5000}}};
    assert_int_equal(time_parse_iso(iso, &l->now.wall, NULL), 0);
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
    lab_join(l, "n1", 4);
}

static int64_t submit(struct lab *l, const char *window)
{
    struct job_row r = lab_job(1);
    r.spec.begin_at = WALL_NONE;
    STR_COPY(r.spec.window, window);
    return lab_submit(l, &r);
}

static void until(struct lab *l, const char *iso)
{
    struct wall at;
    assert_int_equal(time_parse_iso(iso, &at, NULL), 0);
    lab_wait(l, at.ms - l->now.wall.ms);
    lab_plan(l);
}

static void a_window_opens_and_closes_by_the_clocks_of_its_zone(void **state)
{
    /* 2023-11-15T01:00:00Z: 01:00 becomes 02:00 */
    struct zone_span spans[] = {{INT64_MIN, 0}, {1700010000, 3600}};
    struct time_zone z = {.name = "Odd", .n = 2, .spans = spans};
    struct window w = {.name = "w", .days = 1 << 3, .from_min = 90, .to_min = 180, .zone = &z},
                  all = {.days = 0x7F, .zone = &zone_utc};
    struct wall change;
    (void)state;
    assert_false(window_is_open(&w, (struct wall){1700009999000}, &change));
    assert_int_equal(change.ms, 1700010000000); /* the time at which 01:30 is skipped */
    assert_true(window_is_open(&w, (struct wall){1700010000000}, &change));
    assert_int_equal(change.ms, 1700013600000 - 3600000 + 3600000);
    assert_false(window_is_open(&w, change, &change));
    assert_int_equal(change.ms, 1700010000000 + 7 * 24 * HOUR_MS - 30 * MINUTE_MS);
    assert_true(window_is_open(&all, (struct wall){1700010000000}, &change));
    assert_false(wall_is_set(change));
    assert_true(window_is_open(&overnight, (struct wall){1700000000000}, &change));
    assert_int_equal(change.ms, 1700031600000);
}

static void a_job_waits_for_its_window_is_parked_at_its_end_and_goes_on(void **state)
{
    struct lab l;
    struct reason why[EXPLAIN_REASONS_MAX];
    (void)state;
    set_up(&l, "2023-11-14T12:00:00Z");
    int64_t job = submit(&l, "overnight"), other = submit(&l, "");
    lab_plan(&l);
    assert_true(lab_runs(&l, other));
    assert_false(lab_runs(&l, job));
    assert_true(core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(why[0].code, "window");
    assert_non_null(strstr(why[0].text, "opens in 8h00m"));
    until(&l, "2023-11-14T19:59:59Z");
    assert_false(lab_runs(&l, job));
    until(&l, "2023-11-14T20:00:00Z");
    assert_true(lab_runs(&l, job));
    lab_started(&l, job);
    lab_saved(&l, job, 1, 100); /* in 100 ms */
    until(&l, "2023-11-15T06:59:29Z");
    assert_int_equal(job_attempt(model_job(l.m, job))->row.state, ATTEMPT_RUNNING);
    until(&l, "2023-11-15T06:59:30Z");
    assert_int_equal(job_attempt(model_job(l.m, job))->row.state, ATTEMPT_STOPPING);
    assert_true(job_attempt(model_job(l.m, job))->row.save_first);
    lab_saved(&l, job, 2, 200);
    lab_ended(&l, job, END_EVICTED, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, job));
    assert_int_equal(model_job(l.m, job)->row.end, END_WINDOW);
    assert_int_equal(model_job(l.m, job)->row.used[RETRY_FAILED], 0);
    until(&l, "2023-11-15T20:00:00Z");
    assert_true(lab_runs(&l, job));
    lab_deinit(&l);
}

static void queued_jobs_leave_the_queue_when_their_window_closes(void **state)
{
    struct lab l;
    (void)state;
    set_up(&l, "2023-11-17T22:00:00Z"); /* a Friday */
    int64_t first = submit(&l, ""), job;
    struct job_row large = lab_job(4);
    large.spec.begin_at = WALL_NONE;
    STR_COPY(large.spec.window, "overnight");
    job = lab_submit(&l, &large);
    lab_plan(&l);
    assert_false(lab_runs(&l, job));
    assert_true(tree_has(&model_job(l.m, job)->in_shape));
    until(&l, "2023-11-18T06:59:30Z");
    assert_false(tree_has(&model_job(l.m, job)->in_shape));
    lab_ended(&l, first, END_SUCCEEDED, 0);
    until(&l, "2023-11-20T19:59:00Z"); /* not over the weekend */
    assert_false(lab_runs(&l, job));
    until(&l, "2023-11-20T20:00:00Z");
    assert_true(lab_runs(&l, job));
    lab_deinit(&l);
}

static void a_window_that_is_not_configured_never_opens_and_why_says_so(void **state)
{
    struct lab l;
    struct reason why[EXPLAIN_REASONS_MAX];
    (void)state;
    set_up(&l, "2023-11-17T22:00:00Z");
    int64_t job = submit(&l, "lunch");
    lab_plan(&l);
    assert_false(lab_runs(&l, job));
    assert_true(core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(why[0].code, "no-window");
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_opens_and_closes_by_the_clocks_of_its_zone),
        cmocka_unit_test(a_job_waits_for_its_window_is_parked_at_its_end_and_goes_on),
        cmocka_unit_test(queued_jobs_leave_the_queue_when_their_window_closes),
        cmocka_unit_test(a_window_that_is_not_configured_never_opens_and_why_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
