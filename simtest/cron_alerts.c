/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of the cron entry of crons.c that are to be done by a time (--done-by), some minutes after
 * the begin of the world, in half of the worlds with that entry. Promise: at that time there is one
 * alert if the last run before it has not ended well, and none if it has. It is committed with its
 * notifications and with the time until which the entry was checked, so no restart repeats it.
 */
#include "simtest/world.h"

#include "base/str.h"
#include "scheduler/core/queue/crons.h"

#define NIGHT_MS (25 * 3600000LL) /* how old a run may be that is expected */
#define ENTRY 1

int32_t cron_alerts_done_by(const struct world *w)
{
    int64_t minute = w->cron_begin_s / 60 + 5 + (int64_t)(w->seed / 6 % 12);
    return w->seed / 3 % 4 < 2 ? (int32_t)(minute % 1440) + 1 : 0;
}

/* The last time whose run has ended well; those of the batch too. */
static struct wall last_done(struct wall before, const struct changes *c)
{
    for (size_t i = 0; i < c->n_jobs; i++) {
        const struct job_row *r = &c->jobs[i];
        if (r->cron == ENTRY && r->state == JOB_ENDED && r->end == END_SUCCEEDED &&
            r->cron_at.ms > before.ms)
            before = r->cron_at;
    }
    return before;
}

static const struct cron_row *row_of_entry(const struct changes *c)
{
    for (size_t i = c->n_crons; i-- > 0;)
        if (c->crons[i].id == ENTRY)
            return &c->crons[i];
    return NULL;
}

/* Notifications of the alert for that time of the day; those that were not dropped. */
static size_t notifications(struct world *w, const struct changes *c)
{
    const struct cron_row *entry = row_of_entry(c);
    size_t n = 0;
    for (size_t i = 0; i < c->n_outbox; i++) {
        const struct outbox_row *r = &c->outbox[i];
        if (r->kind != NOTIFY_LATE || r->tries > 0)
            continue;
        n++;
        if (!entry || entry->checked_at.ms < r->done_by.ms)
            world_fail(w, "an alert of %lld is committed without the time that was checked",
                (long long)r->done_by.ms);
    }
    for (size_t i = 0; i < c->n_history; i++)
        n += str_eq(c->history[i].kind, "not-told");
    return n;
}

/* Whether there is an alert about the run of that time. */
static bool has_alert(const struct changes *c, struct wall at)
{
    for (size_t i = 0; i < c->n_history; i++)
        if (str_eq(c->history[i].kind, "late") && c->history[i].a == ENTRY &&
            c->history[i].b == at.ms)
            return true;
    return false;
}

static void check_alerts(struct world *w, const struct changes *c)
{
    struct sim_alerts *a = &w->cron_alerts;
    size_t n = 0;
    for (size_t i = 0; i < c->n_history; i++) {
        const struct history_row *h = &c->history[i];
        if (!str_eq(h->kind, "late") || h->a != ENTRY)
            continue;
        n++;
        if (a->done.ms >= h->b)
            world_fail(w, "an alert is about the run of %lld, which was done", (long long)h->b);
        if (h->b <= a->alerted.ms)
            world_fail(w, "a second alert is about the run of %lld", (long long)h->b);
        a->alerted.ms = h->b;
    }
    if (n > 0 && notifications(w, c) == 0)
        world_fail(w, "an alert has no notification");
}

/* A time of --done-by was checked: the last run before it is done, or there is an alert. */
static void check_missing(struct world *w, const struct cron_row *r, const struct changes *c)
{
    struct sim_alerts *a = &w->cron_alerts;
    const struct time_zone *z = crons_zone(w);
    struct wall at = WALL_NONE, check = r->checked_at, after = a->checked;
    if (cron_next_minute(z, r->done_by - 1, (struct wall){check.ms - 1}).ms != check.ms)
        return; /* the entry was created or changed then */
    if (after.ms < check.ms - NIGHT_MS)
        after.ms = check.ms - NIGHT_MS;
    for (struct wall t = w->cron_first; t.ms < check.ms; t = crons_next_time(w, r, t))
        if (t.ms > after.ms)
            at = t;
    if (wall_is_set(at) && a->done.ms < at.ms && !has_alert(c, at))
        world_fail(w, "the run of %lld was not done by %lld, and there is no alert",
            (long long)at.ms, (long long)check.ms);
}

void cron_alerts_committed(struct world *w, const struct changes *c)
{
    struct sim_alerts *a = &w->cron_alerts;
    const struct cron_row *r = row_of_entry(c);
    check_alerts(w, c);
    a->done = last_done(a->done, c);
    if (!r || r->done_by == 0 || r->state == CRON_REMOVED)
        return;
    if (a->is_checked && r->checked_at.ms > a->checked.ms)
        check_missing(w, r, c);
    a->checked = r->checked_at;
    a->is_checked = true;
}
