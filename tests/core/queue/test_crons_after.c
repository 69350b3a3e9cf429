/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries that run after others, calendars, and runs for dates asked for, in virtual time.
 */
#include "tests/core/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/calendar.h"
#include "scheduler/core/queue/calendars.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/crons.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define BEGIN_MS 1700006400000 /* 2023-11-15T00:00:00Z, a Wednesday */
#define ENTRIES 5
#define JOBS_MAX 100

struct bed {
    struct lab l;
    struct zones zones;
    struct calendar_days days[1];
    struct calendar calendar;
    struct cron_row stored[ENTRIES]; /* by id */
    struct cron_run_row runs[100];
    size_t n_runs, n_shown;
    struct job_row jobs[JOBS_MAX];
    char *env[JOBS_MAX];
    size_t n_depends;
    char late[1024];         /* notifications, one to a line */
    struct calendar_row set; /* the last row of a calendar that was set or removed */
};

static int read_job(
    const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e)
{
    (void)job_json, (void)e;
    *ret_job = lab_job(1);
    *ret_texts = (struct job_texts){.script = mem_strdup("#!/bin/sh\n"),
        .args_json = mem_strdup("[]"),
        .env_json = mem_strdup("{}"),
        .cwd = mem_strdup("/"),
        .labels_json = mem_strdup("{}")};
    return 0;
}

static struct model *new_model(struct bed *b)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400 * DAY_MS,
        .zones = &b->zones,
        .tables.calendars = &b->calendar,
        .tables.n_calendars = 1,
        .read_job = read_job};
    return model_create(&o);
}

static void bed_init(struct bed *b)
{
    struct pool_row base = {.name = "base"};
    struct err e;
    memset(b, 0, sizeof *b);
    b->calendar = (struct calendar){.name = "holidays", .n = 1, .days = b->days};
    assert_int_equal(calendar_parse("2023-11-16", b->days, &e), 0);
    b->l = (struct lab){
        .m = new_model(b), .p = planner_create(), .now = {.wall = {BEGIN_MS}, .mono = {5000}}};
    lab_apply(&b->l, (struct event){.type = EV_POOL, .pool = &base});
    lab_join(&b->l, "n1", 64);
}

static void bed_deinit(struct bed *b)
{
    free(b->set.days);
    for (size_t k = 0; k < JOBS_MAX; k++)
        free(b->env[k]);
    lab_deinit(&b->l);
    zones_deinit(&b->zones);
}

/* Keeps stored rows, and checks that no time of an entry is decided twice. */
static void bed_take(struct bed *b)
{
    struct changes *c = &b->l.c;
    struct err e;
    lab_take(&b->l);
    if (crons_check(b->l.m, &e) != 0)
        fail_msg("%s", e.text);
    for (size_t k = 0; k < c->n_crons; k++)
        b->stored[c->crons[k].id] = c->crons[k];
    for (size_t k = 0; k < c->n_calendars; k++) {
        free(b->set.days);
        b->set = c->calendars[k];
        b->set.days = mem_strdup(b->set.days);
    }
    for (size_t k = 0; k < c->n_cron_runs; k++) {
        const struct cron_run_row *r = &c->cron_runs[k];
        for (size_t n = 0; n < b->n_runs; n++)
            if (b->runs[n].cron == r->cron && b->runs[n].at.ms == r->at.ms && !b->runs[n].by_hand &&
                !r->by_hand)
                fail_msg("a time is decided on twice");
        b->runs[b->n_runs++] = *r;
    }
    for (size_t k = 0; k < c->n_jobs; k++)
        b->jobs[c->jobs[k].id] = c->jobs[k];
    for (size_t k = 0; k < c->n_specs; k++) { /* numbers come again after a second kill */
        free(b->env[c->specs[k].job]);
        b->env[c->specs[k].job] = mem_strdup(c->specs[k].env_json);
    }
    b->n_depends += c->n_depends;
    for (size_t k = 0; k < c->n_outbox; k++) {
        const struct outbox_row *r = &c->outbox[k];
        char at[TIME_ISO_MAX], by[TIME_ISO_MAX];
        size_t n = strlen(b->late);
        if (r->kind != NOTIFY_LATE)
            continue;
        assert_int_equal(r->job, CORE_ID_NONE);
        assert_string_equal(r->user, "ann");
        time_format_iso(r->cron_at, at);
        time_format_iso(r->done_by, by);
        text_format(b->late + n, sizeof b->late - n, "%s %d %.8s by %.8s: %s\n", r->target,
            (int)r->cron, at + 8, by + 8, r->text);
    }
}

static struct cron_row entry(const char *name, const char *schedule, int64_t after)
{
    struct cron_row r = {
        .after = after, .zone = "UTC", .catch_up = CATCH_UP_LAST, .catch_up_max = 24};
    STR_COPY(r.name, name);
    STR_COPY(r.user, "ann");
    STR_COPY(r.schedule, schedule);
    return r;
}

static int put(struct bed *b, const struct cron_row *row, int64_t *ret_id)
{
    struct job_row job = lab_job(1);
    struct job_texts texts = {.script = "#!/bin/sh\n",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = "{}"};
    struct event ev = {.type = EV_CRON_PUT,
        .cron_put = {.row = row, .job = &job, .texts = &texts, .job_json = "{}"}};
    return lab_try(&b->l, &ev, ret_id);
}

static int64_t add(struct bed *b, const char *name, const char *schedule, int64_t after)
{
    struct cron_row r = entry(name, schedule, after);
    int64_t id;
    assert_int_equal(put(b, &r, &id), 0);
    return id;
}

/* "build" at 02:30, and "report" and "mail", each after the one before. */
static void add_chain(struct bed *b)
{
    assert_int_equal(add(b, "build", "30 2 * * *", CORE_ID_NONE), 1);
    assert_int_equal(add(b, "report", "", 1), 2);
    assert_int_equal(add(b, "mail", "", 2), 3);
}

static int set(struct bed *b, int64_t id, enum cron_state to)
{
    struct event ev = {.type = EV_CRON_SET, .cron_set = {.cron = id, .to = to}};
    return lab_try(&b->l, &ev, NULL);
}

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
static void killed(struct bed *b, int64_t ms)
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
    for (int64_t id = 1; id < JOBS_MAX; id++) /* requeued: their node is not loaded */
        if (b->jobs[id].id && b->jobs[id].state != JOB_ENDED) {
            b->jobs[id].state = JOB_PENDING;
            assert_int_equal(model_load_job(b->l.m, &b->jobs[id], b->l.now, &e), 0);
        }
    if (b->set.days && !b->set.is_removed && calendar_load(b->l.m, &b->set, &e) != 0)
        fail_msg("%s", e.text);
    for (int64_t id = 1; id < ENTRIES; id++)
        if (b->stored[id].id && b->stored[id].state != CRON_REMOVED &&
            model_load_cron(b->l.m, &b->stored[id], "{}", b->l.now, &e) != 0)
            fail_msg("%s", e.text);
    struct model_counters counters = {JOBS_MAX / 2, 100, 100, 100000, 100, ENTRIES};
    assert_int_equal(model_load_end(b->l.m, &counters, &e), 0);
}

static int64_t last_job(const struct bed *b, int64_t cron)
{
    return model_cron(b->l.m, cron)->row.last_job;
}

static void end_run(struct bed *b, int64_t cron, enum end_kind end)
{
    lab_ended(&b->l, last_job(b, cron), end, end == END_SUCCEEDED ? 0 : 1);
    live(b, MINUTE_MS);
}

static void join_again(struct bed *b)
{
    lab_join(&b->l, "n2", 64);
    live(b, MINUTE_MS);
}

/* "1 started 15T02:30, 2 skipped 15T02:30 (WHY)": outcomes since the last call. */
static void check_runs(struct bed *b, const char *expected)
{
    char text[2048] = "";
    size_t n = 0;
    bed_take(b);
    for (size_t k = b->n_shown; k < b->n_runs; k++) {
        const struct cron_run_row *r = &b->runs[k];
        char iso[TIME_ISO_MAX], times[24] = "";
        time_format_iso(r->at, iso);
        if (r->times > 1)
            text_format(times, sizeof times, "*%d", (int)r->times);
        text_format(text + n, sizeof text - n, "%s%d %s %.8s%s%s%s%s", k > b->n_shown ? "\n" : "",
            (int)r->cron, cron_outcome_names[r->outcome], iso + 8, times, r->text[0] ? " (" : "",
            r->text, r->text[0] ? ")" : "");
        n = strlen(text);
    }
    assert_string_equal(text, expected);
    b->n_shown = b->n_runs;
}

static void an_entry_runs_when_the_run_before_it_has_ended_well(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    live(&b, 5 * HOUR_MS);
    check_runs(&b, "1 started 15T02:30");
    end_run(&b, 1, END_SUCCEEDED);
    check_runs(&b, "2 started 15T02:30");
    assert_int_equal(b.jobs[last_job(&b, 2)].cron_at.ms, BEGIN_MS + 150 * MINUTE_MS);
    assert_string_equal(b.env[last_job(&b, 2)],
        "{\"BELAY_CRON_TIME\":\"2023-11-15T02:30:00Z\",\"BELAY_CRON_DATE\":\"2023-11-15\"}");
    live(&b, HOUR_MS);
    check_runs(&b, "");
    end_run(&b, 2, END_SUCCEEDED);
    check_runs(&b, "3 started 15T02:30");
    end_run(&b, 3, END_SUCCEEDED);
    live(&b, DAY_MS);
    check_runs(&b, "1 started 16T02:30"); /* the next night */
    bed_deinit(&b);
}

static void when_the_run_before_it_fails_it_is_skipped_and_says_why(void **state)
{
    struct bed b;
    struct cron_row any = entry("clean", "", 1);
    (void)state;
    bed_init(&b);
    add_chain(&b);
    any.after_end = CRON_AFTER_ANY;
    assert_int_equal(put(&b, &any, NULL), 0);
    live(&b, 3 * HOUR_MS);
    end_run(&b, 1, END_TIMEOUT);
    check_runs(&b, "1 started 15T02:30\n"
                   "2 skipped 15T02:30 (job 1 of 'build' did not end well: timeout)\n"
                   "3 skipped 15T02:30 ('report' did not run: job 1 of 'build' did not end well: "
                   "timeout)\n"
                   "4 started 15T02:30");
    bed_deinit(&b);
}

static void when_the_run_before_it_does_not_take_place_it_is_skipped(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    live(&b, 27 * HOUR_MS); /* the first run goes on */
    check_runs(&b, "1 started 15T02:30\n"
                   "1 skipped 16T02:30 (the previous job had not ended)\n"
                   "2 skipped 16T02:30 ('build' did not run: the previous job had not ended)\n"
                   "3 skipped 16T02:30 ('report' did not run: 'build' did not run: the previous "
                   "job had not ended)");
    end_run(&b, 1, END_SUCCEEDED); /* its own time, which is the earlier one */
    check_runs(&b, "2 started 15T02:30");
    bed_deinit(&b);
}

static void missed_times_are_missed_by_all_and_the_caught_up_one_is_followed(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    live(&b, HOUR_MS);
    killed(&b, 3 * DAY_MS);
    join_again(&b);
    check_runs(&b, "1 missed 15T02:30*2 (belayd was not running, and only the last is caught up)\n"
                   "2 missed 15T02:30*2 ('build' did not run: belayd was not running)\n"
                   "3 missed 15T02:30*2 ('report' did not run: belayd was not running)\n"
                   "1 started 17T02:30 (late)");
    assert_int_equal(model_cron(b.l.m, 3)->row.missed, 2);
    end_run(&b, 1, END_SUCCEEDED);
    check_runs(&b, "2 started 17T02:30");
    bed_deinit(&b);
}

static void a_kill_at_any_step_of_the_chain_starts_each_run_once(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    live(&b, 3 * HOUR_MS);
    killed(&b, MINUTE_MS); /* while the first one runs */
    join_again(&b);
    lab_ended(&b.l, last_job(&b, 1), END_SUCCEEDED, 0);
    killed(&b, HOUR_MS); /* its end is stored, the second is not started */
    check_runs(&b, "1 started 15T02:30");
    join_again(&b);
    check_runs(&b, "2 started 15T02:30");
    killed(&b, HOUR_MS);
    join_again(&b);
    end_run(&b, 2, END_SUCCEEDED);
    killed(&b, HOUR_MS);
    live(&b, HOUR_MS);
    check_runs(&b, "3 started 15T02:30");
    bed_deinit(&b);
}

static void a_paused_entry_and_those_after_it_do_nothing(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    assert_int_equal(set(&b, 2, CRON_PAUSED), 0);
    live(&b, 3 * HOUR_MS);
    end_run(&b, 1, END_SUCCEEDED);
    assert_int_equal(set(&b, 2, CRON_ACTIVE), 0);
    live(&b, HOUR_MS);
    check_runs(&b, "1 started 15T02:30");
    bed_deinit(&b);
}

static void an_entry_moved_behind_another_takes_no_time_twice(void **state)
{
    struct bed b;
    struct cron_row r = entry("report", "", 4);
    (void)state;
    bed_init(&b);
    add_chain(&b);
    assert_int_equal(add(&b, "other", "30 2 * * *", CORE_ID_NONE), 4);
    live(&b, 3 * HOUR_MS);
    end_run(&b, 1, END_SUCCEEDED);
    check_runs(&b, "1 started 15T02:30\n4 started 15T02:30\n2 started 15T02:30");
    r.id = 2;
    assert_int_equal(put(&b, &r, NULL), 0);
    end_run(&b, 4, END_SUCCEEDED); /* of the same time */
    end_run(&b, 2, END_SUCCEEDED);
    check_runs(&b, "3 started 15T02:30");
    live(&b, DAY_MS);
    end_run(&b, 4, END_SUCCEEDED);
    check_runs(&b, "1 started 16T02:30\n4 started 16T02:30\n2 started 16T02:30");
    bed_deinit(&b);
}

static void refuse_put(struct bed *b, struct cron_row r, int64_t id, const char *part)
{
    struct job_row job = lab_job(1);
    struct job_texts texts = {.script = "#!/bin/sh\n",
        .args_json = "[]",
        .env_json = "{}",
        .cwd = "/",
        .labels_json = "{}"};
    struct event ev = {.type = EV_CRON_PUT,
        .cron_put = {.row = &r, .job = &job, .texts = &texts, .job_json = "{}"}};
    struct outcome out;
    struct err e;
    r.id = id;
    ev.now = b->l.now;
    assert_int_equal(core_apply(b->l.m, &ev, &out, &e), ERR_INVALID);
    if (!strstr(e.text, part))
        fail_msg("expected \"%s\" in: %s", part, e.text);
}

static void loops_others_entries_and_removal_of_what_is_followed_are_refused(void **state)
{
    struct bed b;
    struct event remove = {.type = EV_CRON_SET, .cron_set = {.cron = 1, .to = CRON_REMOVED}};
    struct outcome out;
    struct err e;
    (void)state;
    bed_init(&b);
    add_chain(&b);
    refuse_put(&b, entry("build", "", 1), 1, "'build' runs after 'build' already");
    refuse_put(&b, entry("build", "", 3), 1, "'mail' runs after 'build' already");
    refuse_put(&b, entry("new", "", 9), CORE_ID_NONE, "ann has no cron entry 9");
    struct cron_row of_bob = entry("new", "", 1);
    STR_COPY(of_bob.user, "bob");
    refuse_put(&b, of_bob, CORE_ID_NONE, "bob has no cron entry 1");
    remove.now = b.l.now;
    assert_int_equal(core_apply(b.l.m, &remove, &out, &e), ERR_CONFLICT);
    assert_non_null(strstr(e.text, "'report' runs after 'build'"));
    assert_int_equal(set(&b, 3, CRON_REMOVED), 0);
    assert_int_equal(set(&b, 2, CRON_REMOVED), 0);
    assert_int_equal(set(&b, 1, CRON_REMOVED), 0);
    bed_take(&b);
    bed_deinit(&b);
}

static void calendars_leave_days_out(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * *", CORE_ID_NONE),
                    only = entry("only", "0 2 * * *", CORE_ID_NONE);
    char why[CORE_TEXT_MAX];
    (void)state;
    bed_init(&b);
    STR_COPY(skip.skip_on, "holidays");
    STR_COPY(only.only_on, "holidays");
    assert_int_equal(put(&b, &skip, NULL), 0);
    assert_int_equal(put(&b, &only, NULL), 0);
    assert_int_equal(add(&b, "report", "", 1), 3);
    assert_true(
        core_cron_leaves_out(b.l.m, model_cron(b.l.m, 3), (struct wall){BEGIN_MS + DAY_MS}, why));
    assert_string_equal(why, "2023-11-16 is in calendar holidays");
    live(&b, 12 * HOUR_MS);
    end_run(&b, 1, END_SUCCEEDED);
    end_run(&b, 3, END_SUCCEEDED);
    live(&b, DAY_MS);
    check_runs(&b, "1 started 15T01:00\n2 skipped 15T02:00 (2023-11-15 is not in calendar "
                   "holidays)\n3 started 15T01:00\n1 skipped 16T01:00 (2023-11-16 is in calendar "
                   "holidays)\n3 skipped 16T01:00 ('skip' did not run: 2023-11-16 is in calendar "
                   "holidays)\n2 started 16T02:00");
    STR_COPY(skip.name, "other");
    STR_COPY(skip.skip_on, "nsw");
    refuse_put(&b, skip, CORE_ID_NONE, "no calendar nsw");
    bed_deinit(&b);
}

static int change_calendar(
    struct bed *b, enum event_type type, const char *name, const char *days, struct err *e)
{
    struct calendar_row row = {.days = (char *)days, .by = "ola"};
    struct outcome unused;
    STR_COPY(row.name, name);
    return core_apply(
        b->l.m, &(struct event){.type = type, .now = b->l.now, .calendar = &row}, &unused, e);
}

static void set_calendar(struct bed *b, const char *name, const char *days)
{
    struct err e;
    if (change_calendar(b, EV_CALENDAR_SET, name, days, &e) != 0)
        fail_msg("%s", e.text);
    bed_take(b);
}

static void a_calendar_that_was_set_leaves_days_out_from_then_on(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * *", CORE_ID_NONE);
    (void)state;
    bed_init(&b);
    set_calendar(&b, "nsw", "2024-01-01");
    STR_COPY(skip.skip_on, "nsw");
    assert_int_equal(put(&b, &skip, NULL), 0);
    live(&b, 2 * HOUR_MS);
    end_run(&b, 1, END_SUCCEEDED);
    set_calendar(&b, "nsw", "2023-11-17,2023-11-16,2023-11-20");
    assert_string_equal(b.set.days, "2023-11-16..2023-11-17,2023-11-20"); /* sorted and joined */
    live(&b, DAY_MS);
    killed(&b, MINUTE_MS);
    join_again(&b);
    live(&b, DAY_MS);
    set_calendar(&b, "nsw", "2024-01-01");
    live(&b, DAY_MS);
    check_runs(&b, "1 started 15T01:00\n1 skipped 16T01:00 (2023-11-16 is in calendar nsw)\n"
                   "1 skipped 17T01:00 (2023-11-17 is in calendar nsw)\n1 started 18T01:00");
    bed_deinit(&b);
}

static void a_calendar_of_the_configuration_hides_a_stored_one(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * *", CORE_ID_NONE);
    struct err e;
    char why[CORE_TEXT_MAX];
    struct wall night = {BEGIN_MS + DAY_MS + HOUR_MS};
    (void)state;
    bed_init(&b);
    assert_int_equal(
        change_calendar(&b, EV_CALENDAR_SET, "holidays", "2024-01-01", &e), ERR_CONFLICT);
    assert_non_null(strstr(e.text, "belayd's configuration has one of this name"));
    assert_int_equal(change_calendar(&b, EV_CALENDAR_REMOVE, "holidays", NULL, &e), ERR_CONFLICT);
    assert_non_null(strstr(e.text, "remove it there"));
    set_calendar(&b, "nsw", "2024-01-01");
    STR_COPY(skip.skip_on, "nsw");
    assert_int_equal(put(&b, &skip, NULL), 0);
    assert_false(core_cron_leaves_out(b.l.m, model_cron(b.l.m, 1), night, why));
    STR_COPY(b.calendar.name, "nsw"); /* a restart with another configuration */
    killed(&b, MINUTE_MS);
    assert_true(core_cron_leaves_out(b.l.m, model_cron(b.l.m, 1), night, why));
    assert_non_null(core_stored_calendar(b.l.m, "nsw"));
    assert_ptr_equal(core_calendar(b.l.m, "nsw"), &b.calendar);
    STR_COPY(b.calendar.name, "holidays");
    killed(&b, MINUTE_MS);
    assert_false(core_cron_leaves_out(b.l.m, model_cron(b.l.m, 1), night, why));
    STR_COPY(b.calendar.name, "nsw");
    killed(&b, MINUTE_MS);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_REMOVE, "nsw", NULL, &e), 0); /* hidden */
    bed_take(&b);
    assert_true(b.set.is_removed);
    assert_null(core_stored_calendar(b.l.m, "nsw"));
    bed_deinit(&b);
}

static void a_calendar_that_entries_name_stays(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * *", CORE_ID_NONE);
    struct event end = {.type = EV_CRON_SET, .cron_set = {.cron = 1, .to = CRON_REMOVED}};
    struct err e;
    (void)state;
    bed_init(&b);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_REMOVE, "nsw", NULL, &e), ERR_NOT_FOUND);
    set_calendar(&b, "nsw", "2024-01-01");
    STR_COPY(skip.only_on, "nsw");
    assert_int_equal(put(&b, &skip, NULL), 0);
    assert_int_equal(core_calendar_crons(b.l.m, "nsw"), 1);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_REMOVE, "nsw", NULL, &e), ERR_CONFLICT);
    assert_non_null(strstr(e.text, "cron entries name it: skip; edit them first"));
    lab_apply(&b.l, end);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_REMOVE, "nsw", NULL, &e), 0);
    bed_take(&b);
    assert_null(core_calendar(b.l.m, "nsw"));
    bed_deinit(&b);
}

static void malformed_and_too_many_calendars_are_refused(void **state)
{
    struct bed b;
    struct err e;
    char name[CALENDAR_NAME_MAX];
    (void)state;
    bed_init(&b);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_SET, "a b", "2024-01-01", &e), ERR_INVALID);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_SET, "nsw", "", &e), ERR_INVALID);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_SET, "nsw", "2024-01-01,", &e), ERR_INVALID);
    assert_int_equal(change_calendar(&b, EV_CALENDAR_SET, "nsw", "2024-02-30", &e), ERR_INVALID);
    for (int k = 0; k < CALENDARS_MAX; k++) {
        snprintf(name, sizeof name, "c%d", k);
        set_calendar(&b, name, "2024-01-01");
    }
    assert_int_equal(change_calendar(&b, EV_CALENDAR_SET, "nsw", "2024-01-01", &e), ERR_CONFLICT);
    assert_non_null(strstr(e.text, "100 calendars, which is the maximum"));
    set_calendar(&b, "c7", "2024-01-02"); /* one that is there */
    bed_deinit(&b);
}

static void an_entry_whose_calendar_is_gone_says_so_and_starts_nothing(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * *", CORE_ID_NONE);
    (void)state;
    bed_init(&b);
    STR_COPY(skip.skip_on, "holidays");
    assert_int_equal(put(&b, &skip, NULL), 0);
    STR_COPY(b.calendar.name, "renamed");
    killed(&b, MINUTE_MS);
    live(&b, DAY_MS);
    check_runs(&b, "");
    assert_non_null(strstr(model_cron(b.l.m, 1)->why, "its calendar cannot be used any more"));
    bed_deinit(&b);
}

static void runs_for_dates_stand_beside_those_of_the_schedule(void **state)
{
    struct bed b;
    struct event run = {.type = EV_CRON_RUN,
        .cron_run = {.cron = 1, .by = "ann", .dated = true, .at = {BEGIN_MS - DAY_MS}}};
    (void)state;
    bed_init(&b);
    add_chain(&b);
    int64_t first = lab_apply(&b.l, run);
    run.cron_run.at.ms += HOUR_MS;
    run.cron_run.behind = first;
    int64_t second = lab_apply(&b.l, run);
    live(&b, 3 * HOUR_MS);
    check_runs(&b, "1 started 14T00:00 (by ann, for this date)\n1 started 14T01:00 (by ann, for "
                   "this date)\n1 started 15T02:30");
    assert_int_equal(b.jobs[first].state, JOB_RUNNING);
    assert_int_equal(b.jobs[second].state, JOB_PENDING);
    assert_non_null(strstr(b.env[second], "\"BELAY_CRON_DATE\":\"2023-11-14\""));
    lab_ended(&b.l, first, END_TIMEOUT, 0);
    live(&b, MINUTE_MS);
    assert_int_equal(b.jobs[second].state, JOB_RUNNING);
    lab_ended(&b.l, second, END_SUCCEEDED, 0);
    live(&b, MINUTE_MS);
    check_runs(&b, ""); /* what runs after the entry follows only its schedule */
    assert_int_equal(b.jobs[last_job(&b, 1)].cron_at.ms, BEGIN_MS + 150 * MINUTE_MS);
    bed_deinit(&b);
}

static void check_late(struct bed *b, const char *expected)
{
    bed_take(b);
    assert_string_equal(b->late, expected);
    b->late[0] = '\0';
}

/* "build" at 02:30 by 07:00, and "report" after it by 08:00. */
static void add_done_by(struct bed *b)
{
    struct cron_row build = entry("build", "30 2 * * *", CORE_ID_NONE),
                    report = entry("report", "", 1);
    build.done_by = 1 + 7 * 60;
    report.done_by = 1 + 8 * 60;
    assert_int_equal(put(b, &build, NULL), 0);
    assert_int_equal(put(b, &report, NULL), 0);
}

static void a_run_that_is_done_in_time_is_not_notified(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_done_by(&b);
    for (int night = 0; night < 3; night++) {
        live(&b, 4 * HOUR_MS);
        end_run(&b, 1, END_SUCCEEDED);
        end_run(&b, 2, END_SUCCEEDED);
        killed(&b, MINUTE_MS);
        join_again(&b);
        live(&b, 20 * HOUR_MS - 4 * MINUTE_MS);
    }
    check_late(&b, "");
    bed_deinit(&b);
}

static void a_run_that_is_not_done_is_notified_once_with_the_reason(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_done_by(&b);
    live(&b, 6 * HOUR_MS);
    check_late(&b, "");
    live(&b, HOUR_MS + MINUTE_MS);
    check_late(&b, "mail 1 15T02:30 by 15T07:00: job 1 is starting\n");
    killed(&b, MINUTE_MS);
    join_again(&b);
    live(&b, HOUR_MS);
    bed_take(&b);
    assert_non_null(strstr(b.late, "mail 2 15T02:30 by 15T08:00: job 1 "));
    assert_null(strstr(b.late, "mail 1 "));
    b.late[0] = '\0';
    end_run(&b, 1, END_SUCCEEDED); /* too late, and once is enough */
    live(&b, 10 * HOUR_MS);
    check_late(&b, "");
    bed_deinit(&b);
}

static void a_run_that_failed_or_never_started_is_notified(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b);
    add_done_by(&b);
    live(&b, 3 * HOUR_MS);
    end_run(&b, 1, END_TIMEOUT);
    live(&b, 6 * HOUR_MS);
    check_late(&b, "mail 1 15T02:30 by 15T07:00: job 1 did not end well: timeout\n"
                   "mail 2 15T02:30 by 15T08:00: job 1 of 'build' did not end well: timeout\n");
    killed(&b, 3 * DAY_MS - 2 * HOUR_MS); /* until 07:01 of the fourth day after */
    join_again(&b);
    bed_take(&b);
    assert_non_null(strstr(b.late, "mail 1 18T02:30 by 18T07:00: job 50 "));
    assert_non_null(strstr(b.late, "mail 2 17T02:30 by 17T08:00: belayd was not running at "));
    assert_int_equal(strchr(strchr(b.late, '\n') + 1, '\n')[1], '\0');
    bed_deinit(&b);
}

static void what_is_not_expected_is_not_notified(void **state)
{
    struct bed b;
    struct cron_row skip = entry("skip", "0 1 * * 4", CORE_ID_NONE); /* Thursday: a holiday */
    (void)state;
    bed_init(&b);
    STR_COPY(skip.skip_on, "holidays");
    skip.done_by = 1 + 7 * 60;
    assert_int_equal(put(&b, &skip, NULL), 0);
    add_done_by(&b); /* entries 2, 3, whose predecessor is entry 1 */
    assert_int_equal(set(&b, 2, CRON_PAUSED), 0);
    live(&b, 3 * DAY_MS);
    assert_int_equal(set(&b, 2, CRON_ACTIVE), 0); /* at midnight */
    live(&b, 2 * HOUR_MS);
    struct cron_row build = entry("build", "0 1 * * *", CORE_ID_NONE);
    build.id = 2;
    build.done_by = 1 + 7 * 60; /* 01:00 had passed when it became the schedule */
    assert_int_equal(put(&b, &build, NULL), 0);
    live(&b, 12 * HOUR_MS);
    check_late(&b, "");
    bed_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_runs_when_the_run_before_it_has_ended_well),
        cmocka_unit_test(when_the_run_before_it_fails_it_is_skipped_and_says_why),
        cmocka_unit_test(when_the_run_before_it_does_not_take_place_it_is_skipped),
        cmocka_unit_test(missed_times_are_missed_by_all_and_the_caught_up_one_is_followed),
        cmocka_unit_test(a_kill_at_any_step_of_the_chain_starts_each_run_once),
        cmocka_unit_test(a_paused_entry_and_those_after_it_do_nothing),
        cmocka_unit_test(an_entry_moved_behind_another_takes_no_time_twice),
        cmocka_unit_test(loops_others_entries_and_removal_of_what_is_followed_are_refused),
        cmocka_unit_test(calendars_leave_days_out),
        cmocka_unit_test(a_calendar_that_was_set_leaves_days_out_from_then_on),
        cmocka_unit_test(a_calendar_of_the_configuration_hides_a_stored_one),
        cmocka_unit_test(a_calendar_that_entries_name_stays),
        cmocka_unit_test(malformed_and_too_many_calendars_are_refused),
        cmocka_unit_test(an_entry_whose_calendar_is_gone_says_so_and_starts_nothing),
        cmocka_unit_test(a_run_that_is_done_in_time_is_not_notified),
        cmocka_unit_test(a_run_that_is_not_done_is_notified_once_with_the_reason),
        cmocka_unit_test(a_run_that_failed_or_never_started_is_notified),
        cmocka_unit_test(what_is_not_expected_is_not_notified),
        cmocka_unit_test(runs_for_dates_stand_beside_those_of_the_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
