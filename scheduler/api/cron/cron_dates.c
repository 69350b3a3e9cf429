/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /api/v1/crons/ID/dates: runs of an entry for days that have passed. Each scheduled time of
 * these days is started at most once, unless it is asked for again. What has run already is read
 * from the database, where it is complete but for the current tick; the entry's counter of runs
 * shows whether that added one. All runs are submitted in one transaction.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/calendar.h"
#include "scheduler/core/queue/cron_after.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/queue/crons.h"
#include <stdlib.h>
#include <string.h>

#define TIMES_MAX 400 /* of one request */

struct time_asked {
    struct wall at;
    int64_t ran_as;          /* the job that ran already; CORE_ID_NONE */
    int64_t job;             /* started now; CORE_ID_NONE */
    char why[CORE_TEXT_MAX]; /* why it is not started; "" */
};

struct dates {
    struct deferred_reply *deferred;
    struct api *api;
    int64_t cron, at_once;
    char by[CORE_NAME_MAX];
    struct calendar_days days;
    bool again, dry_run;
    const struct time_zone *zone; /* of the entry */
    size_t n;
    struct time_asked times[TIMES_MAX];
};

/* Lists the scheduled times of the days. */
static int list_times(struct dates *d, struct tick *t, const struct cron_entry *c, struct err *e)
{
    const struct cron_entry *root = core_cron_root(tick_model(t), c);
    d->zone = c->zone;
    if (!c->zone || c->why[0] || root->why[0] || !root->zone)
        return err_set(
            e, ERR_CONFLICT, "cron entry '%s': %s", c->row.name, c->why[0] ? c->why : root->why);
    struct wall at = {calendar_begin(c->zone, d->days.first).ms - 1},
                end = calendar_begin(c->zone, d->days.last + 1);
    for (;;) {
        at = cron_next(&root->cron, root->zone, root->row.gap, root->row.twice, at);
        if (!wall_is_set(at) || at.ms >= end.ms)
            break;
        if (d->n == TIMES_MAX)
            return err_set(e, ERR_INVALID,
                "cron entry '%s' has more than %d times on these days: ask for fewer days at once",
                c->row.name, TIMES_MAX);
        d->times[d->n++] = (struct time_asked){.at = at};
    }
    return d->n > 0 ? 0
                    : err_set(e, ERR_INVALID, "cron entry '%s' has no scheduled time on these days",
                          c->row.name);
}

static int mark_run(void *ctx, const struct cron_run_row *row)
{
    struct dates *d = ctx;
    for (size_t k = 0; k < d->n; k++)
        if (d->times[k].at.ms == row->at.ms)
            d->times[k].ran_as = row->job;
    return 0;
}

static int mark_runs(struct dates *d, const struct cron_entry *c, struct err *e)
{
    struct cron_row stored;
    int rc = db_read_cron(d->api->o.reader, d->cron, &stored, e);
    if (rc == 0)
        rc = db_read_cron_started(
            d->api->o.reader, d->cron, d->times[0].at, d->times[d->n - 1].at, mark_run, d, e);
    if (rc == 0 && stored.runs != c->row.runs)
        rc = err_set(e, ERR_CONFLICT,
            "cron entry '%s' was started by somebody else just now: try again", c->row.name);
    return rc;
}

/* Whether the entry, or one that it runs after, still has to run for a time that has come. */
static bool is_to_come(const struct model *m, const struct cron_entry *c, struct wall at)
{
    struct wall waiting[CRON_WAITING_MAX];
    for (const struct cron_entry *o = c; o; o = model_cron(m, o->row.after)) {
        const struct job *j = o == c ? NULL : model_job(m, o->row.last_job);
        size_t n = core_cron_waiting(&o->row, waiting);
        while (n > 0 && waiting[n - 1].ms != at.ms)
            n--;
        if (n > 0 || (wall_is_set(o->row.next_at) && o->row.next_at.ms <= at.ms) ||
            (j && j->row.cron_at.ms == at.ms))
            return true;
    }
    return false;
}

static void decide(
    const struct dates *d, struct tick *t, const struct cron_entry *c, struct time_asked *a)
{
    if (a->at.ms > tick_now(t).wall.ms || is_to_come(tick_model(t), c, a->at))
        STR_COPY(a->why, "it is still to come by the schedule");
    else if (core_cron_leaves_out(tick_model(t), c, a->at, a->why))
        return;
    else if (a->ran_as != CORE_ID_NONE && !d->again)
        snprintf(a->why, sizeof(a->why), "it has run as job %lld", (long long)a->ran_as);
}

/* Starts the runs; each but the first at_once begins when an earlier one has ended. A refusal ends
 * it, and is that of the request if nothing was started. */
static int start_all(struct dates *d, struct tick *t, struct err *e)
{
    int64_t started[TIMES_MAX];
    int64_t n = 0;
    int rc = 0;
    for (size_t k = 0; k < d->n; k++) {
        struct time_asked *a = &d->times[k];
        struct event ev = {.type = EV_CRON_RUN,
            .cron_run = {.cron = d->cron,
                .dated = true,
                .at = a->at,
                .behind = n >= d->at_once ? started[n - d->at_once] : CORE_ID_NONE}};
        if (a->why[0])
            continue;
        STR_COPY(ev.cron_run.by, d->by);
        rc = rc ? rc : tick_apply(t, &ev, &a->job, e);
        if (rc)
            snprintf(a->why, sizeof(a->why), "not submitted: %.200s", e->text);
        else
            started[n++] = a->job;
    }
    return n > 0 ? 0 : rc;
}

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct dates *d = ctx;
    const struct cron_entry *c = model_cron(tick_model(t), d->cron);
    (void)ret_id;
    int rc = c ? list_times(d, t, c, e)
               : err_set(e, ERR_NOT_FOUND, "cron entry %lld was removed", (long long)d->cron);
    if (rc == 0)
        rc = mark_runs(d, c, e);
    for (size_t k = 0; rc == 0 && k < d->n; k++)
        decide(d, t, c, &d->times[k]);
    return rc || d->dry_run ? rc : start_all(d, t, e);
}

static json_t *reply_of(const struct dates *d)
{
    json_t *list = json_array();
    char date[CALENDAR_TEXT_MAX];
    for (size_t k = 0; k < d->n; k++) {
        const struct time_asked *a = &d->times[k];
        calendar_format(calendar_day(d->zone, a->at), date);
        json_array_append_new(
            list, json_pack("{s:s,s:o,s:o,s:o}", "date", date, "at", api_json_time(a->at), "job",
                      api_json_opt(a->job, CORE_ID_NONE), "why", api_json_opt_text(a->why)));
    }
    return json_pack("{s:o}", "runs", list);
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    struct dates *d = ctx;
    struct http_exchange *x = deferred_reply_take(d->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, reply_of(d));
    free(d);
}

static int32_t req_day(struct json_reader *r, const char *key)
{
    struct calendar_days day = {0};
    struct err why;
    const char *text = json_req_str(r, key, CALENDAR_TEXT_MAX);
    if (r->rc == 0 && (calendar_parse(text, &day, &why) != 0 || day.first != day.last))
        json_reader_fail(r, key, "expected a day such as 2026-11-01, found %s",
            str_show(text, (char[STR_SHOW_MAX]){0}));
    return day.first;
}

static int read_body(const json_t *body, struct dates *d, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, body, "dates", e);
    d->days.first = req_day(&r, "from");
    d->days.last = req_day(&r, "to");
    d->at_once = json_opt_i64(&r, "max_parallel", 1, TIMES_MAX, 1);
    d->again = json_opt_bool(&r, "again", false);
    d->dry_run = json_opt_bool(&r, "dry_run", false);
    if (r.rc == 0 && d->days.last < d->days.first)
        json_reader_fail(&r, "to", "the last day is before the first");
    return json_reader_finish(&r);
}

void api_crons_dates(struct request *q)
{
    struct cron_row row;
    struct err e;
    if (!api_find_cron(q, RIGHT_CRON_RUN, &row))
        return;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return;
    struct dates *d = mem_alloc(sizeof(*d));
    d->api = q->api;
    d->cron = row.id;
    STR_COPY(d->by, q->caller.user);
    int rc = read_body(body, d, &e);
    json_decref(body);
    if (rc) {
        http_reply_err(q->x, &e);
        free(d);
        return;
    }
    d->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, apply, on_done, d);
}
