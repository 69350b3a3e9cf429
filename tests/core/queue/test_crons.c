/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries in virtual time: each scheduled time is decided on once, regardless of the entry's
 * jobs, its user and restarts of belayd.
 */
#include "tests/core/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/crons.h"
#include "tests/core/shelf.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

static const char script[] = "#!/bin/sh\ntrue\n";

#define BIG ((size_t)3 << 20)

static char *big_script(size_t bytes)
{
    char *text = mem_alloc(bytes + 1);
    memset(text, '#', bytes);
    return text;
}

static int read_job(
    const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e)
{
    bool is_big = str_eq(job_json, "{\"the\":\"big\"}");
    if (!is_big && !str_eq(job_json, "{\"the\":\"job\"}"))
        return err_set(e, ERR_INVALID, "this is no job");
    *ret_job = lab_job(1);
    *ret_texts = (struct job_texts){.script = is_big ? big_script(BIG) : mem_strdup(script),
        .args_json = mem_strdup("[]"),
        .env_json = mem_strdup("{}"),
        .cwd = mem_strdup("/"),
        .labels_json = mem_strdup("{}")};
    return 0;
}

/* A zone with clocks put forward by 1 h at this time. */
static int load_zone(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e)
{
    if (!str_eq(name, "Odd/Days"))
        return err_set(e, ERR_NOT_FOUND, "there is no time zone '%s'", name);
    ret_zone->n = 2;
    ret_zone->spans = mem_array(2, sizeof *ret_zone->spans);
    ret_zone->spans[0] = (struct zone_span){INT64_MIN, 0};
    ret_zone->spans[1] = (struct zone_span){*(int64_t *)ctx, 3600};
    return 0;
}

struct bed {
    struct lab l;
    struct zone_source source;
    struct zones zones;
    int64_t forward_s;
    struct cron_row row; /* used by the next cron_put */
    /* stored row */
    struct cron_row stored;
    struct cron_run_row *runs;
    size_t n_runs, n_shown; /* n_shown: checked by check_runs */
    struct job_row jobs[200];
    size_t n_jobs;
};

static struct model *new_model(struct bed *b)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400 * DAY_MS,
        .zones = &b->zones,
        .read_job = read_job};
    return model_create(&o);
}

/* 2023-11-15T00:00:00Z, a Wednesday. */
static void bed_init(struct bed *b)
{
    struct pool_row base = {.name = "base"};
    memset(b, 0, sizeof *b);
    b->source = (struct zone_source){.load = load_zone, .ctx = &b->forward_s};
    b->zones.source = &b->source;
    b->forward_s = 1700010000; /* 01:00 of that day */
    b->l = (struct lab){
        .m = new_model(b), .p = planner_create(), .now = {.wall = {1700006400000}, .mono = {5000}}};
    lab_apply(&b->l, (struct event){.type = EV_POOL, .pool = &base});
    lab_join(&b->l, "n1", 8);
    b->row = (struct cron_row){.name = "nightly",
        .user = "ann",
        .schedule = "30 2 * * *",
        .zone = "UTC",
        .catch_up = CATCH_UP_LAST,
        .catch_up_max = 24};
}

static void bed_deinit(struct bed *b)
{
    lab_deinit(&b->l);
    zones_deinit(&b->zones);
    free(b->runs);
}

/* Keeps stored rows, and checks that no time is decided twice. */
static void bed_take(struct bed *b)
{
    struct changes *c = &b->l.c;
    lab_take(&b->l);
    for (size_t k = 0; k < c->n_crons; k++)
        b->stored = c->crons[k];
    for (size_t k = 0; k < c->n_cron_runs; k++) {
        for (size_t n = 0; n < b->n_runs; n++)
            if (b->runs[n].at.ms == c->cron_runs[k].at.ms && !b->runs[n].by_hand &&
                !c->cron_runs[k].by_hand)
                fail_msg("a time is decided on twice");
        b->runs = mem_resize(b->runs, b->n_runs + 1, sizeof *b->runs);
        b->runs[b->n_runs++] = c->cron_runs[k];
    }
    for (size_t k = 0; k < c->n_jobs; k++) {
        assert_true(c->jobs[k].id < 200);
        b->jobs[c->jobs[k].id] = c->jobs[k];
    }
}

static int64_t cron_put(struct bed *b)
{
    struct job_row job = lab_job(1);
    struct job_texts texts = {
        .script = script, .args_json = "[]", .env_json = "{}", .cwd = "/", .labels_json = "{}"};
    return lab_apply(&b->l,
        (struct event){.type = EV_CRON_PUT,
            .cron_put = {
                .row = &b->row, .job = &job, .texts = &texts, .job_json = "{\"the\":\"job\"}"}});
}

static void set(struct bed *b, int64_t id, enum cron_state to)
{
    lab_apply(&b->l, (struct event){.type = EV_CRON_SET, .cron_set = {.cron = id, .to = to}});
}

/* Applies decisions and waits for the planner's wake-ups, for this long. */
static void live(struct bed *b, int64_t ms)
{
    int64_t end = b->l.now.mono.ms + ms;
    for (;;) {
        lab_plan(&b->l);
        bed_take(b);
        struct mono wake = plan_wake(b->l.p, b->l.m, b->l.now);
        if (!mono_is_set(wake) || wake.ms > end)
            break;
        lab_wait(&b->l, wake.ms - b->l.now.mono.ms);
    }
    lab_wait(&b->l, end - b->l.now.mono.ms);
}

/* belayd is killed: only stored rows remain. The clock advances by this much. */
static void absent(struct bed *b, int64_t ms)
{
    struct pool_row base = {.name = "base"};
    struct err e;
    bed_take(b);
    planner_destroy(b->l.p);
    model_destroy(b->l.m);
    lab_wait(&b->l, ms);
    b->l.m = new_model(b);
    b->l.p = planner_create();
    assert_int_equal(model_load_pool(b->l.m, &base, b->l.now, &e), 0);
    for (int64_t id = 1; id < 200; id++) /* requeued: their node is not loaded */
        if (b->jobs[id].id && b->jobs[id].state != JOB_ENDED) {
            b->jobs[id].state = JOB_PENDING;
            assert_int_equal(model_load_job(b->l.m, &b->jobs[id], b->l.now, &e), 0);
        }
    if (model_load_cron(b->l.m, &b->stored, "{\"the\":\"job\"}", b->l.now, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(
        model_load_end(b->l.m, &(struct model_counters){100, 100, 100, 100000, 100, 2}, &e), 0);
}

static int64_t last_job(const struct bed *b)
{
    return model_cron(b->l.m, 1)->row.last_job;
}

/* Ends the last attempt; after a restart the job waits, and is cancelled instead. */
static void end_job(struct bed *b)
{
    int64_t id = last_job(b);
    if (job_attempt(model_job(b->l.m, id)))
        lab_ended(&b->l, id, END_SUCCEEDED, 0);
    else
        lab_apply(&b->l, (struct event){.type = EV_CANCEL, .cancel.job = id});
    bed_take(b);
}

/* "started 02:30, missed 02:30*3": outcomes of the times since the last call. */
static void check_runs(struct bed *b, const char *expected)
{
    char text[1024] = "";
    size_t n = 0;
    bed_take(b);
    for (size_t k = b->n_shown; k < b->n_runs; k++) {
        const struct cron_run_row *r = &b->runs[k];
        char iso[TIME_ISO_MAX], times[24] = "";
        time_format_iso(r->at, iso);
        if (r->times > 1)
            text_format(times, sizeof times, "*%d", (int)r->times);
        text_format(text + n, sizeof text - n, "%s%s %.8s%s%s", k > b->n_shown ? ", " : "",
            cron_outcome_names[r->outcome], iso + 8, times, r->by_hand ? " by hand" : "");
        n = strlen(text);
    }
    assert_string_equal(text, expected);
    b->n_shown = b->n_runs;
}

static void a_job_is_submitted_at_each_time_and_has_its_entry(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    assert_int_equal(cron_put(&b), 1);
    live(&b, 3 * HOUR_MS);
    check_runs(&b, "started 15T02:30");
    const struct job *j = model_job(b.l.m, last_job(&b));
    assert_int_equal(j->row.cron, 1);
    assert_int_equal(j->row.cron_at.ms, 1700006400000 + 150 * MINUTE_MS);
    assert_int_equal(j->row.submitted_at.ms, j->row.cron_at.ms);
    assert_string_equal(j->row.user, "ann");
    end_job(&b);
    live(&b, DAY_MS);
    end_job(&b);
    live(&b, DAY_MS);
    check_runs(&b, "started 16T02:30, started 17T02:30");
    bed_deinit(&b);
}

static void the_environment_has_the_time(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    cron_put(&b);
    lab_wait(&b.l, 150 * MINUTE_MS);
    lab_plan(&b.l);
    lab_take(&b.l);
    assert_int_equal(b.l.c.n_specs, 1);
    assert_string_equal(b.l.c.specs[0].env_json,
        "{\"BELAY_CRON_TIME\":\"2023-11-15T02:30:00Z\",\"BELAY_CRON_DATE\":\"2023-11-15\"}");
    bed_deinit(&b);
}

static void a_time_in_its_zone_that_the_clocks_skip_is_the_moment_at_which_they_do(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.zone, "Odd/Days");
    STR_COPY(b.row.schedule, "30 1 * * *"); /* 01:00 becomes 02:00 */
    cron_put(&b);
    live(&b, 12 * HOUR_MS);
    end_job(&b);
    live(&b, 24 * HOUR_MS);
    check_runs(&b, "started 15T01:00, started 16T00:30");
    bed_deinit(&b);
}

static void with_skip_a_time_is_skipped_while_the_previous_job_lives(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.schedule, "@hourly");
    cron_put(&b);
    live(&b, 3 * HOUR_MS + MINUTE_MS);
    end_job(&b);
    live(&b, HOUR_MS);
    check_runs(&b, "started 15T01:00, skipped 15T02:00, skipped 15T03:00, started 15T04:00");
    bed_deinit(&b);
}

static void with_queue_jobs_start_one_after_the_other(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.schedule, "@hourly");
    b.row.overlap = CRON_QUEUE;
    cron_put(&b);
    live(&b, 3 * HOUR_MS + MINUTE_MS);
    for (int k = 0; k < 3; k++) {
        end_job(&b);
        live(&b, MINUTE_MS);
    }
    assert_int_equal(b.jobs[2].cron_at.ms, 1700006400000 + 2 * HOUR_MS);
    live(&b, HOUR_MS);
    check_runs(&b, "started 15T01:00, started 15T02:00, started 15T03:00, started 15T04:00");
    /* No more than CRON_WAITING_MAX of them. */
    live(&b, 18 * HOUR_MS);
    check_runs(&b, "skipped 15T21:00, skipped 15T22:00");
    absent(&b, 1);
    for (int k = 0; k < 16; k++) {
        end_job(&b);
        live(&b, 1);
    }
    check_runs(&b, "started 15T05:00, started 15T06:00, started 15T07:00, started 15T08:00, "
                   "started 15T09:00, started 15T10:00, started "
                   "15T11:00, started 15T12:00, started 15T13:00, started 15T14:00, started "
                   "15T15:00, started 15T16:00, started 15T17:00, "
                   "started 15T18:00, started 15T19:00, started 15T20:00");
    bed_deinit(&b);
}

static void with_replace_the_next_job_starts_when_the_cancelled_one_has_ended(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.schedule, "@hourly");
    b.row.overlap = CRON_REPLACE;
    cron_put(&b);
    live(&b, 2 * HOUR_MS + MINUTE_MS);
    int64_t first = last_job(&b);
    assert_int_equal(model_job(b.l.m, first)->row.state, JOB_CANCELLING);
    live(&b, HOUR_MS);
    check_runs(&b, "started 15T01:00, skipped 15T02:00"); /* it did not end before the next */
    lab_ended(&b.l, first, END_CANCELLED, 143);
    live(&b, MINUTE_MS);
    check_runs(&b, "started 15T03:00");
    /* A waiting job is cancelled at once. */
    absent(&b, 1);
    live(&b, HOUR_MS);
    check_runs(&b, "started 15T04:00");
    assert_int_equal(b.jobs[2].state, JOB_ENDED);
    bed_deinit(&b);
}

static void missed_times_are_caught_up_as_configured(void **state)
{
    static const struct {
        enum cron_catch_up catch_up;
        int32_t max;
        const char *expected;
    } cases[] = {
        {CATCH_UP_NONE, 24, "missed 15T01:00*72, started 18T01:00"},
        {CATCH_UP_LAST, 24, "missed 15T01:00*71, started 18T00:00, started 18T01:00"},
        {CATCH_UP_ALL, 2,
            "missed 15T01:00*70, started 17T23:00, started 18T00:00, started 18T01:00"},
        {CATCH_UP_ALL, 1, "missed 15T01:00*71, started 18T00:00, started 18T01:00"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct bed b;
        bed_init(&b);
        STR_COPY(b.row.schedule, "@hourly");
        b.row.overlap = CRON_QUEUE;
        b.row.catch_up = cases[k].catch_up;
        b.row.catch_up_max = cases[k].max;
        cron_put(&b);
        live(&b, MINUTE_MS);
        absent(&b, 3 * DAY_MS + 20 * MINUTE_MS);
        live(&b, HOUR_MS);
        while (model_job(b.l.m, last_job(&b))) {
            end_job(&b);
            live(&b, 1);
        }
        check_runs(&b, cases[k].expected);
        bed_deinit(&b);
    }
}

static void all_that_was_missed_is_caught_up_when_it_is_within_the_bound(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    b.row.overlap = CRON_QUEUE;
    b.row.catch_up = CATCH_UP_ALL;
    cron_put(&b);
    live(&b, MINUTE_MS);
    absent(&b, 3 * DAY_MS);
    live(&b, MINUTE_MS);
    for (int k = 0; k < 3; k++) {
        end_job(&b);
        live(&b, MINUTE_MS);
    }
    check_runs(&b, "started 15T02:30, started 16T02:30, started 17T02:30");
    bed_deinit(&b);
}

static void a_short_absence_misses_nothing(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    b.row.catch_up = CATCH_UP_NONE;
    cron_put(&b);
    live(&b, 150 * MINUTE_MS - 1000);
    absent(&b, 50000);
    live(&b, MINUTE_MS);
    check_runs(&b, "started 15T02:30");
    bed_deinit(&b);
}

static void a_year_without_belayd_is_caught_up_in_less_than_a_second(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.schedule, "* * * * *");
    cron_put(&b);
    live(&b, 1);
    absent(&b, 365 * DAY_MS + 30000);
    live(&b, 1000);
    assert_int_equal(b.n_runs, 2);
    assert_int_equal(b.runs[0].outcome, CRON_MISSED);
    assert_int_equal(b.runs[0].times, 100000); /* the count is limited */
    assert_int_equal(b.runs[1].at.ms, 1700006400000 + 365 * DAY_MS);
    bed_deinit(&b);
}

/* 07:00 of the next day in the entry's zone; an hour earlier if the clocks are put forward in
 * between. */
static void each_job_is_to_be_done_by_the_next_time_that_it_is_so_late(void **state)
{
    static const struct {
        const char *zone, *schedule;
        /* when the clocks of Odd/Days are put forward, from 2023-11-15T00:00 */
        int64_t forward_s;
        int minute, after_minutes;
    } cases[] = {{"UTC", "0 18 * * *", 3600, 7 * 60, 13 * 60},
        {"UTC", "0 6 * * *", 3600, 7 * 60, 60}, {"UTC", "0 7 * * *", 3600, 7 * 60, 24 * 60},
        /* put forward that night at 04:00 */
        {"Odd/Days", "0 18 * * *", 28 * 3600, 7 * 60, 12 * 60},
        /* a skipped minute: at the change */
        {"Odd/Days", "0 18 * * *", 28 * 3600, 4 * 60 + 30, 10 * 60},
        {"Odd/Days", "0 18 * * *", 9 * 3600, 7 * 60, 13 * 60},
        {"UTC", "0 18 * * *", 3600, 0, 6 * 60}, {"UTC", "0 18 * * *", 3600, 1439, 5 * 60 + 59}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct bed b;
        struct job_row job = lab_job(1);
        struct job_texts texts = {.script = script,
            .args_json = "[]",
            .env_json = "{}",
            .cwd = "/",
            .labels_json = "{}",
            .finish_of_day = 1 + cases[k].minute};
        bed_init(&b);
        b.forward_s = 1700006400 + cases[k].forward_s;
        job.spec.finish_ms = -DAY_MS;
        job.spec.work_ms = HOUR_MS;
        STR_COPY(b.row.zone, cases[k].zone);
        STR_COPY(b.row.schedule, cases[k].schedule);
        lab_apply(&b.l,
            (struct event){.type = EV_CRON_PUT,
                .cron_put = {
                    .row = &b.row, .job = &job, .texts = &texts, .job_json = "{\"the\":\"job\"}"}});
        live(&b, 20 * HOUR_MS);
        const struct job_row *row = &b.jobs[model_cron(b.l.m, 1)->row.last_job];
        assert_int_equal(row->spec.finish_ms - row->cron_at.ms, cases[k].after_minutes * MINUTE_MS);
        bed_deinit(&b);
    }
}

static void the_clock_set_back_starts_nothing_again(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    STR_COPY(b.row.schedule, "@hourly");
    cron_put(&b);
    live(&b, HOUR_MS + MINUTE_MS);
    end_job(&b);
    b.l.now.wall.ms -= 30 * MINUTE_MS;
    live(&b, 40 * MINUTE_MS);
    set(&b, 1, CRON_PAUSED);
    set(&b, 1, CRON_ACTIVE);
    b.l.now.wall.ms -= 50 * MINUTE_MS;
    STR_COPY(b.row.schedule, "0 */1 * * *");
    b.row.id = 1;
    b.row.twice = CRON_TWICE_FIRST;
    cron_put(&b);
    live(&b, 59 * MINUTE_MS);
    check_runs(&b, "started 15T01:00");
    live(&b, 50 * MINUTE_MS);
    check_runs(&b, "started 15T02:00");
    bed_deinit(&b);
}

static void a_paused_entry_does_nothing_and_catches_nothing_up(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    cron_put(&b);
    set(&b, 1, CRON_PAUSED);
    set(&b, 1, CRON_PAUSED);
    live(&b, 3 * DAY_MS);
    assert_false(wall_is_set(model_cron(b.l.m, 1)->row.next_at));
    absent(&b, DAY_MS);
    set(&b, 1, CRON_ACTIVE);
    live(&b, DAY_MS);
    check_runs(&b, "started 19T02:30");
    bed_deinit(&b);
}

static void a_removed_entry_is_gone_and_its_job_goes_on(void **state)
{
    struct bed b;
    struct event again = {.type = EV_CRON_SET, .cron_set = {.cron = 1, .to = CRON_REMOVED}};
    (void)state;
    bed_init(&b);
    cron_put(&b);
    live(&b, 3 * HOUR_MS);
    int64_t job = last_job(&b);
    set(&b, 1, CRON_REMOVED);
    bed_take(&b);
    assert_int_equal(b.stored.state, CRON_REMOVED);
    assert_null(model_cron(b.l.m, 1));
    assert_non_null(model_job(b.l.m, job));
    assert_int_equal(lab_try(&b.l, &again, NULL), ERR_NOT_FOUND);
    lab_ended(&b.l, job, END_SUCCEEDED, 0);
    live(&b, 2 * DAY_MS);
    check_runs(&b, "started 15T02:30");
    assert_int_equal(cron_put(&b), 2); /* the name is free, the number is not reused */
    bed_deinit(&b);
}

static void a_manual_run_starts_at_once_and_leaves_the_schedule_unchanged(void **state)
{
    struct bed b;
    struct event run = {.type = EV_CRON_RUN, .cron_run = {.cron = 1, .by = "ann"}};
    (void)state;
    bed_init(&b);
    cron_put(&b);
    set(&b, 1, CRON_PAUSED);
    int64_t job = lab_apply(&b.l, run);
    assert_int_equal(job, last_job(&b));
    set(&b, 1, CRON_ACTIVE);
    bed_take(&b);
    assert_false(wall_is_set(b.jobs[last_job(&b)].cron_at));
    assert_int_equal(lab_try(&b.l, &run, NULL), ERR_CONFLICT);
    live(&b, 3 * HOUR_MS);
    end_job(&b);
    lab_apply(&b.l, run);
    check_runs(&b, "started 15T00:00 by hand, skipped 15T02:30, started 15T03:00 by hand");
    run.cron_run.cron = 7;
    assert_int_equal(lab_try(&b.l, &run, NULL), ERR_NOT_FOUND);
    bed_deinit(&b);
}

static void an_edit_changes_what_comes_and_keeps_the_job_unless_it_is_given(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    cron_put(&b);
    STR_COPY(b.row.schedule, "0 5 * * *");
    b.row.id = 1;
    lab_apply(&b.l, (struct event){.type = EV_CRON_PUT, .cron_put.row = &b.row});
    live(&b, 6 * HOUR_MS);
    check_runs(&b, "started 15T05:00");
    assert_int_equal(b.l.c.n_cron_jobs, 0);
    bed_deinit(&b);
}

static void refuse(struct bed *b, int kind, const char *part, bool with_job)
{
    struct job_row job = lab_job(1);
    struct job_texts texts = {
        .script = script, .args_json = "[]", .env_json = "{}", .cwd = "/", .labels_json = "{}"};
    struct event ev = {.type = EV_CRON_PUT, .cron_put = {.row = &b->row}};
    if (with_job) {
        ev.cron_put.job = &job;
        ev.cron_put.texts = &texts;
        ev.cron_put.job_json = "{}";
    }
    assert_int_equal(lab_try(&b->l, &ev, NULL), kind);
    if (!strstr(b->l.e.text, part))
        fail_msg("%s", b->l.e.text);
}

static void what_cannot_be_is_refused(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    refuse(&b, ERR_INVALID, "needs a job", false);
    STR_COPY(b.row.schedule, "99 * * * *");
    refuse(&b, ERR_INVALID, "minute", true);
    STR_COPY(b.row.schedule, "@daily");
    STR_COPY(b.row.zone, "Mars/Phobos");
    refuse(&b, ERR_NOT_FOUND, "Mars/Phobos", true);
    STR_COPY(b.row.zone, "UTC");
    b.row.catch_up_max = 0;
    refuse(&b, ERR_INVALID, "the number of times to catch up must be 1 to", true);
    b.row.catch_up_max = 1001;
    refuse(&b, ERR_INVALID, "the number of times to catch up must be 1 to", true);
    b.row.catch_up_max = 1;
    cron_put(&b);
    refuse(&b, ERR_CONFLICT, "has a cron entry 'nightly' already", true);
    b.row.id = 5;
    refuse(&b, ERR_NOT_FOUND, "no cron entry 5", true);
    b.row.id = CORE_ID_NONE;
    for (int k = 1; k < CRONS_OF_USER_MAX; k++) {
        text_format(b.row.name, sizeof b.row.name, "n%d", k);
        cron_put(&b);
    }
    STR_COPY(b.row.name, "one more");
    refuse(&b, ERR_CONFLICT, "remove some", true);
    STR_COPY(b.row.user, "somebody else"); /* does not conflict */
    cron_put(&b);
    bed_deinit(&b);
}

static int edit_script(struct bed *b, size_t bytes)
{
    struct job_row job = lab_job(1);
    char *text = big_script(bytes);
    struct job_texts texts = {
        .script = text, .args_json = "[]", .env_json = "{}", .cwd = "/", .labels_json = "{}"};
    struct event ev = {.type = EV_CRON_PUT,
        .cron_put = {.row = &b->row, .job = &job, .texts = &texts, .job_json = "{}"}};
    int rc = lab_try(&b->l, &ev, NULL);
    free(text);
    return rc;
}

/* Stored before the limit existed. */
static void a_user_beyond_the_limit_may_replace_and_remove_entries(void **state)
{
    struct bed b;
    struct err e;
    (void)state;
    bed_init(&b);
    for (b.row.id = 1; b.row.id <= 3; b.row.id++) {
        text_format(b.row.name, sizeof b.row.name, "n%d", (int)b.row.id);
        b.row.created_at = b.l.now.wall;
        assert_int_equal(model_load_cron(b.l.m, &b.row, "{\"the\":\"big\"}", b.l.now, &e), 0);
    }
    b.row.id = 3;
    STR_COPY(b.row.schedule, "0 5 * * *");
    lab_apply(&b.l, (struct event){.type = EV_CRON_PUT, .cron_put.row = &b.row});
    assert_string_equal(model_cron(b.l.m, 3)->row.schedule, "0 5 * * *");
    assert_int_equal(edit_script(&b, BIG + 1), ERR_CONFLICT);
    assert_non_null(strstr(b.l.e.text, "8 MiB together"));
    assert_int_equal(edit_script(&b, BIG), 0);
    assert_int_equal(edit_script(&b, BIG - 1), 0);
    b.row.id = CORE_ID_NONE;
    STR_COPY(b.row.name, "one more");
    assert_int_equal(edit_script(&b, 1), ERR_CONFLICT);
    bed_deinit(&b);
}

static void an_entry_that_cannot_be_read_any_more_says_so_and_does_nothing(void **state)
{
    struct bed b;
    struct err e;
    (void)state;
    bed_init(&b);
    cron_put(&b);
    bed_take(&b);
    struct cron_row odd_zone = b.stored, odd_job = b.stored;
    odd_zone.id = 2;
    STR_COPY(odd_zone.zone, "Mars/Phobos");
    odd_job.id = 3;
    assert_int_equal(model_load_cron(b.l.m, &odd_zone, "{\"the\":\"job\"}", b.l.now, &e), 0);
    assert_int_equal(model_load_cron(b.l.m, &odd_job, "{}", b.l.now, &e), 0);
    assert_int_equal(model_load_cron(b.l.m, &odd_job, "{}", b.l.now, &e), ERR_CORRUPT);
    assert_non_null(strstr(model_cron(b.l.m, 2)->why, "time zone"));
    assert_non_null(strstr(model_cron(b.l.m, 3)->why, "this is no job"));
    live(&b, 3 * HOUR_MS);
    assert_int_equal(model_cron(b.l.m, 2)->row.runs + model_cron(b.l.m, 3)->row.runs, 0);
    assert_int_equal(model_cron(b.l.m, 1)->row.runs, 1);
    bed_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_submitted_at_each_time_and_has_its_entry),
        cmocka_unit_test(the_environment_has_the_time),
        cmocka_unit_test(a_time_in_its_zone_that_the_clocks_skip_is_the_moment_at_which_they_do),
        cmocka_unit_test(with_skip_a_time_is_skipped_while_the_previous_job_lives),
        cmocka_unit_test(with_queue_jobs_start_one_after_the_other),
        cmocka_unit_test(with_replace_the_next_job_starts_when_the_cancelled_one_has_ended),
        cmocka_unit_test(missed_times_are_caught_up_as_configured),
        cmocka_unit_test(all_that_was_missed_is_caught_up_when_it_is_within_the_bound),
        cmocka_unit_test(a_short_absence_misses_nothing),
        cmocka_unit_test(a_year_without_belayd_is_caught_up_in_less_than_a_second),
        cmocka_unit_test(each_job_is_to_be_done_by_the_next_time_that_it_is_so_late),
        cmocka_unit_test(the_clock_set_back_starts_nothing_again),
        cmocka_unit_test(a_paused_entry_does_nothing_and_catches_nothing_up),
        cmocka_unit_test(a_removed_entry_is_gone_and_its_job_goes_on),
        cmocka_unit_test(a_manual_run_starts_at_once_and_leaves_the_schedule_unchanged),
        cmocka_unit_test(an_edit_changes_what_comes_and_keeps_the_job_unless_it_is_given),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_user_beyond_the_limit_may_replace_and_remove_entries),
        cmocka_unit_test(an_entry_that_cannot_be_read_any_more_says_so_and_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
