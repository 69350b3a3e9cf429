/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/retention.h"

#include "base/log.h"
#include "base/mem.h"
#include <stdlib.h>

#define FIRST_MS 5000

struct retention {
    struct retention_options o;
    struct timer rows;
    struct pruned since; /* deleted since the last line in the log */
    struct retention_stats stats;
    bool is_by_size; /* the deletion in progress */
    int64_t passed;  /* oldest jobs that something needs, so that others go */
};

/* ---- rows ---- */

/* The age of jobs that lets some of the oldest go because of the size; else the configured one. */
static int64_t age_of_jobs(struct retention *r, struct wall now)
{
    const struct config_retention *c = r->o.config;
    struct retention_stats *s = &r->stats;
    struct wall end;
    struct err e;
    r->is_by_size = false;
    if (db_read_size(r->o.reader, &s->file_bytes, &s->used_bytes, &e) != 0) {
        log_warn("the size of the database cannot be read", log_err(&e));
        return c->jobs_ms;
    }
    if (c->database_bytes == 0 || s->used_bytes <= c->database_bytes)
        return c->jobs_ms;
    int64_t others = r->passed + PRUNE_JOBS_MAX - 1;
    if (db_read_nth_end(r->o.reader, others, &end, &e) != 0) {
        log_warn("the oldest jobs cannot be found", log_err(&e));
        return c->jobs_ms;
    }
    int64_t age_ms = wall_is_set(end) ? now.ms - end.ms - 1 : RETENTION_LEAST_MS;
    if (age_ms < RETENTION_LEAST_MS)
        age_ms = RETENTION_LEAST_MS;
    r->is_by_size = c->jobs_ms == 0 || age_ms < c->jobs_ms;
    return r->is_by_size ? age_ms : c->jobs_ms;
}

static int put_prune(void *ctx, struct tick *tick, int64_t *ret_id, struct err *e)
{
    struct retention *r = ctx;
    const struct config_retention *c = r->o.config;
    struct wall now = clock_wall(r->o.timers->clock);
    (void)ret_id, (void)e;
    tick_put_prune(tick, &(struct prune){.is_due = true,
                             .now = now,
                             .age_ms = {[PRUNE_JOBS] = age_of_jobs(r, now),
                                 [PRUNE_EVENTS] = c->events_ms,
                                 [PRUNE_AUDIT] = c->audit_ms,
                                 [PRUNE_DAYS] = c->days_ms}});
    return 0;
}

/* Refused while the disk is full: tried again. */
static void on_put(void *ctx, const struct err *e, int64_t id)
{
    struct retention *r = ctx;
    (void)id;
    if (e && e->kind != ERR_UNAVAILABLE)
        timer_start(r->o.timers, &r->rows, RETENTION_EVERY_MS);
}

static void on_rows(struct timer *t, void *ctx)
{
    struct retention *r = ctx;
    (void)t;
    tick_post_work(r->o.tick, put_prune, on_put, r);
}

/* Whether the next oldest jobs may go because of the size. Those that something needs stay, and
 * are passed over, until none is left that is old enough. */
static bool may_free_more(struct retention *r, const struct pruned *p)
{
    struct wall end;
    struct err e;
    if (!r->is_by_size)
        return false;
    r->passed = p->jobs > 0 ? 0 : r->passed + PRUNE_JOBS_MAX;
    return db_read_nth_end(r->o.reader, r->passed, &end, &e) == 0 && wall_is_set(end) &&
           end.ms < clock_wall(r->o.timers->clock).ms - RETENTION_LEAST_MS;
}

void retention_committed(struct retention *r, const struct pruned *p)
{
    struct pruned *s = &r->since;
    s->jobs += p->jobs;
    s->events += p->events;
    s->audit_rows += p->audit_rows;
    s->other_rows += p->other_rows;
    r->stats.jobs += p->jobs;
    r->stats.jobs_by_size += r->is_by_size ? p->jobs : 0;
    bool is_more = p->is_more || may_free_more(r, p);
    if (!is_more)
        r->passed = 0;
    timer_start(r->o.timers, &r->rows, is_more ? RETENTION_AGAIN_MS : RETENTION_EVERY_MS);
    if (is_more || s->jobs + s->events + s->audit_rows + s->other_rows == 0)
        return;
    log_info("rows were deleted that are older than the retention, or too many",
        log_i("jobs", s->jobs), log_i("events", s->events), log_i("audit_rows", s->audit_rows),
        log_i("other_rows", s->other_rows), log_i("database_bytes", r->stats.used_bytes));
    *s = (struct pruned){0};
}

void retention_get_stats(const struct retention *r, struct retention_stats *ret_stats)
{
    *ret_stats = r->stats;
}

/* ---- life ---- */

struct retention *retention_create(const struct retention_options *o)
{
    struct retention *r = mem_alloc(sizeof(*r));
    *r = (struct retention){.o = *o};
    timer_init(&r->rows, on_rows, r);
    return r;
}

void retention_start(struct retention *r)
{
    timer_start(r->o.timers, &r->rows, FIRST_MS);
}

void retention_look(struct retention *r)
{
    if (timer_is_running(&r->rows)) /* else a look is in progress */
        timer_start(r->o.timers, &r->rows, RETENTION_AGAIN_MS);
}

void retention_destroy(struct retention *r)
{
    if (!r)
        return;
    timer_stop(r->o.timers, &r->rows);
    free(r);
}
