/* SPDX-License-Identifier: Apache-2.0
 *
 * A cron entry for every other minute, in a zone with frequent clock changes. Promise: each
 * scheduled time is decided on exactly once, whenever belayd is killed. In one world in three.
 *
 * The entry names calendars of the configuration: one that has all days of the world, one that has
 * those before and after it, both, or none. Promise: they leave no time out, whenever belayd is
 * killed.
 *
 * In half of these a second entry runs after it. Promise: each time that is settled there while the
 * second one follows it is decided on exactly once by the second, too, which runs only after what
 * has ended as it has to.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/queue/crons.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EVERY 3       /* one world in this many */
#define STARTED_MAX 8 /* scheduled times before its user removes the entry */
#define ZONE "Sim/Odd"
#define CHANGE_S 420    /* interval of clock changes */
#define CHANGE_BY_S 180 /* size of each change */
#define CHANGES 2000

static const char script[] = "#!/bin/sh\ntrue\n";

/* Days of the world's begin and after it, more than any world has; and those around them. */
#define DAYS 400
static const char work_days[] = "workdays", holidays[] = "holidays";

static int load_zone(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e)
{
    const struct world *w = ctx;
    if (!str_eq(name, ZONE))
        return err_set(e, ERR_NOT_FOUND, "there is no time zone '%s'", name);
    ret_zone->n = CHANGES;
    ret_zone->spans = mem_array(CHANGES, sizeof(*ret_zone->spans));
    for (int k = 0; k < CHANGES; k++)
        ret_zone->spans[k] =
            (struct zone_span){.from_s = k ? w->cron_begin_s + (int64_t)k * CHANGE_S : INT64_MIN,
                .offset_s = k % 2 ? CHANGE_BY_S : 0};
    return 0;
}

static struct job_row job_row(void)
{
    return (struct job_row){.spec.name = "nightly",
        .spec.nodes = 1,
        .spec.nodes_min = 1,
        .spec.need = {.cpus = 1},
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3,
        .spec.method = CKPT_COOP,
        .spec.begin_at = WALL_NONE};
}

int crons_read_job(
    const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e)
{
    (void)job_json, (void)e;
    *ret_job = job_row();
    *ret_texts = job_texts_copy(&(struct job_texts){script, "[]", "{\"B\":\"c\"}", "/tmp", "{}"});
    return 0;
}

void crons_init(struct world *w)
{
    w->cron_begin_s = world_stamp(w).wall.ms / 1000;
    w->zone_source = (struct zone_source){.load = load_zone, .ctx = w};
    w->zones.source = &w->zone_source;
    int32_t today = calendar_day(&zone_utc, world_stamp(w).wall);
    w->calendar_days[0] = (struct calendar_days){today, today + DAYS};
    w->calendar_days[1] = (struct calendar_days){today - DAYS, today - 1};
    w->calendar_days[2] = (struct calendar_days){today + DAYS + 1, today + 2 * DAYS};
    w->calendars[0] = (struct calendar){.n = 1, .days = w->calendar_days};
    w->calendars[1] = (struct calendar){.n = 2, .days = w->calendar_days + 1};
    STR_COPY(w->calendars[0].name, work_days);
    STR_COPY(w->calendars[1].name, holidays);
}

const struct calendar *crons_calendars(const struct world *w, size_t *ret_n)
{
    *ret_n = SIM_CALENDARS;
    return w->calendars;
}

void crons_deinit(struct world *w)
{
    zones_deinit(&w->zones);
    map_deinit(&w->cron_times);
    map_deinit(&w->cron_jobs);
    map_deinit(&w->cron_after_times);
    map_deinit(&w->cron_after_jobs);
    map_deinit(&w->cron_ends);
}

/* ---- the user ---- */

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

static bool has_second(const struct world *w)
{
    return w->seed % (2 * EVERY) == 0;
}

static void put(struct world *w, const struct cron_row *row)
{
    struct job_row job = job_row();
    struct job_texts texts = {script, "[]", "{\"B\":\"c\"}", "/tmp", "{}"};
    struct event ev = {.type = EV_CRON_PUT,
        .cron_put = {.row = row, .job = &job, .texts = &texts, .job_json = "{}"}};
    tick_post(w->tick, &ev, on_done, NULL);
}

/* Neither calendar leaves a time out, so the worlds are what they are without. */
static void add(struct world *w)
{
    struct cron_row row = {.name = "nightly",
        .user = "ann",
        .schedule = "*/2 * * * *",
        .zone = ZONE,
        .gap = (enum cron_gap)(w->seed / 2 % 2),
        .twice = (enum cron_twice)(w->seed / 4 % 4),
        .overlap = (enum cron_overlap)(w->seed / EVERY % 3),
        .catch_up = (enum cron_catch_up)(w->seed / 9 % 3),
        .catch_up_max = 3,
        .done_by = cron_alerts_done_by(w)};
    if (w->seed / EVERY % 2)
        STR_COPY(row.only_on, work_days);
    if (w->seed / EVERY % 4 < 2)
        STR_COPY(row.skip_on, holidays);
    put(w, &row);
}

static void add_second(struct world *w)
{
    const struct cron_row row = {.name = "afterwards",
        .user = "ann",
        .zone = ZONE,
        .after = 1,
        .after_end = (enum cron_after_end)(w->seed / 12 % 2),
        .overlap = (enum cron_overlap)(w->seed / 6 % 3),
        .catch_up_max = 3};
    put(w, &row);
}

static void remove_entry(struct world *w, int64_t id)
{
    struct event ev = {.type = EV_CRON_SET, .cron_set = {.cron = id, .to = CRON_REMOVED}};
    tick_post(w->tick, &ev, on_done, NULL);
}

/* Repeats a request until it has taken effect, because a response may be lost. The entries have
 * numbers 1 and 2; the second is removed first. */
void crons_ask(struct world *w)
{
    const struct cron_entry *c = model_cron(w->model, 1);
    if (w->seed % EVERY != 0 || w->cron_removed)
        return;
    if (!w->cron_seen && !w->faults_over) {
        add(w);
    } else if (c && (w->faults_over || c->row.started >= STARTED_MAX)) {
        remove_entry(w, model_cron(w->model, 2) ? 2 : 1);
    } else if (c && has_second(w) && !w->cron_after_seen) {
        add_second(w);
    }
}

bool crons_done(const struct world *w)
{
    return w->seed % EVERY != 0 || !model_cron(w->model, 1);
}

/* ---- the promise ---- */

const struct time_zone *crons_zone(struct world *w)
{
    const struct time_zone *z = NULL;
    struct err e;
    if (zones_load(&w->zones, ZONE, &z, &e) != 0)
        world_fail(w, "%s", e.text);
    return z;
}

struct wall crons_next_time(struct world *w, const struct cron_row *r, struct wall after)
{
    struct cron c;
    struct err e;
    if (cron_parse(r->schedule, &c, &e) != 0)
        world_fail(w, "%s", e.text);
    return cron_next(&c, crons_zone(w), r->gap, r->twice, after);
}

/* ---- the second entry ---- */

/* These times of the first entry are over for the second one. */
static void settle(struct world *w, struct wall at, int64_t times)
{
    const struct cron_entry *c = model_cron(w->model, 1);
    if (!w->cron_after_seen || w->cron_after_removed)
        return;
    for (int64_t k = 0; k<times; k++, at = times> 1 ? crons_next_time(w, &c->row, at) : at)
        w->cron_settled += at.ms > w->cron_follows_from.ms;
}

static void check_second_run(struct world *w, const struct cron_run_row *r)
{
    const struct cron_entry *c = model_cron(w->model, 2);
    enum end_kind end = (enum end_kind)((intptr_t)map_get(&w->cron_ends, r->at.ms) - 1);
    if (map_get(&w->cron_after_times, r->at.ms))
        world_fail(w, "time %lld of the second cron entry was decided twice", (long long)r->at.ms);
    map_put(&w->cron_after_times, r->at.ms, w);
    w->cron_after_decided += r->times;
    if (r->outcome == CRON_STARTED && !map_get(&w->cron_ends, r->at.ms))
        world_fail(w, "the second cron entry ran for a time whose first run has not ended");
    if (r->outcome == CRON_STARTED && c && c->row.after_end == CRON_AFTER_WELL &&
        end != END_SUCCEEDED)
        world_fail(w, "the second cron entry ran after a run that did not end well");
}

static void check_second_row(struct world *w, const struct cron_row *r)
{
    struct wall at[CRON_WAITING_MAX];
    w->cron_after_open = (int64_t)core_cron_waiting(r, at) + wall_is_set(r->next_at);
    w->cron_after_seen = true;
    w->cron_follows_from = r->follows_from;
    w->cron_after_removed = r->state == CRON_REMOVED;
}

/* Every time that was settled was decided on, is due, or waits. */
static void check_second(struct world *w)
{
    if (!w->cron_after_seen || w->cron_after_removed)
        return;
    if (w->cron_settled != w->cron_after_decided + w->cron_after_open)
        world_fail(w, "%lld times were settled: the second cron entry decided %lld, %lld are open",
            (long long)w->cron_settled, (long long)w->cron_after_decided,
            (long long)w->cron_after_open);
}

static void check_run(struct world *w, const struct cron_run_row *r)
{
    if (strstr(r->text, work_days) || strstr(r->text, holidays))
        world_fail(w, "a time of the cron entry was left out: %s", r->text);
    if (r->cron == 2) {
        check_second_run(w, r);
        return;
    }
    if (r->outcome != CRON_STARTED)
        settle(w, r->at, r->times);
    if (map_get(&w->cron_times, r->at.ms))
        world_fail(
            w, "scheduled time %lld of the cron entry was decided twice", (long long)r->at.ms);
    map_put(&w->cron_times, r->at.ms, w);
    w->cron_decided += r->times;
}

/* Every scheduled time before the next one was decided on, or is waiting. */
static void check_row(struct world *w, const struct cron_row *r)
{
    struct wall at[CRON_WAITING_MAX], end = r->next_at;
    int64_t due = 0;
    if (r->id == 2) {
        check_second_row(w, r);
        return;
    }
    if (!w->cron_seen)
        w->cron_first = r->next_at;
    w->cron_seen = true;
    w->cron_removed = r->state == CRON_REMOVED;
    if (w->cron_removed)
        return;
    for (struct wall t = w->cron_first; t.ms < end.ms; t = crons_next_time(w, r, t))
        due++;
    if (due != w->cron_decided + (int64_t)core_cron_waiting(r, at))
        world_fail(w, "%lld scheduled times have passed: %lld were decided, and %zu wait",
            (long long)due, (long long)w->cron_decided, core_cron_waiting(r, at));
    if (r->started + r->skipped + r->missed != w->cron_decided)
        world_fail(w, "the cron entry counts %lld decided times, but %lld were decided",
            (long long)(r->started + r->skipped + r->missed), (long long)w->cron_decided);
}

/* No two jobs of an entry have the same scheduled time. */
static void check_job(struct world *w, const struct job_row *r)
{
    if (r->cron == CORE_ID_NONE || !wall_is_set(r->cron_at))
        return;
    struct map *jobs = r->cron == 2 ? &w->cron_after_jobs : &w->cron_jobs;
    int64_t of = (int64_t)(uintptr_t)map_get(jobs, r->cron_at.ms);
    if (of && of != r->id)
        world_fail(w, "jobs %lld and %lld have the same scheduled time of the cron entry",
            (long long)of, (long long)r->id);
    map_put(jobs, r->cron_at.ms, (void *)(uintptr_t)r->id);
    if (r->cron == 1 && r->state == JOB_ENDED && !map_get(&w->cron_ends, r->cron_at.ms)) {
        map_put(&w->cron_ends, r->cron_at.ms, (void *)(intptr_t)(r->end + 1));
        settle(w, r->cron_at, 1);
    }
}

void crons_committed(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_jobs; i++)
        check_job(w, &c->jobs[i]);
    for (size_t i = 0; i < c->n_cron_runs; i++)
        check_run(w, &c->cron_runs[i]);
    for (size_t i = 0; i < c->n_crons; i++)
        check_row(w, &c->crons[i]);
    check_second(w);
    cron_alerts_committed(w, c);
}
