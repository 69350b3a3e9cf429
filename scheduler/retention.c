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
};

/* ---- rows ---- */

static int put_prune(void *ctx, struct tick *tick, int64_t *ret_id, struct err *e)
{
    struct retention *r = ctx;
    const struct config_retention *c = r->o.config;
    (void)ret_id, (void)e;
    tick_put_prune(tick, &(struct prune){.is_due = true,
                             .now = clock_wall(r->o.timers->clock),
                             .age_ms = {[PRUNE_JOBS] = c->jobs_ms,
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

void retention_committed(struct retention *r, const struct pruned *p)
{
    struct pruned *s = &r->since;
    s->jobs += p->jobs;
    s->events += p->events;
    s->audit_rows += p->audit_rows;
    s->other_rows += p->other_rows;
    timer_start(r->o.timers, &r->rows, p->is_more ? RETENTION_AGAIN_MS : RETENTION_EVERY_MS);
    if (p->is_more || s->jobs + s->events + s->audit_rows + s->other_rows == 0)
        return;
    log_info("rows were deleted that are older than the retention", log_i("jobs", s->jobs),
        log_i("events", s->events), log_i("audit_rows", s->audit_rows),
        log_i("other_rows", s->other_rows));
    *s = (struct pruned){0};
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

void retention_destroy(struct retention *r)
{
    if (!r)
        return;
    timer_stop(r->o.timers, &r->rows);
    free(r);
}
