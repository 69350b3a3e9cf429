/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a deadline. A pending job that, by its time limit, can no longer end in time ends as
 * END_DEADLINE; a running job continues. Of an array the tasks that have not begun are given up.
 *
 * Invariant: a job is in by_expiry exactly while it has a deadline and is PENDING, queued or
 * waiting.
 */
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"

#include <inttypes.h>

/* Latest start: the deadline minus the time limit. */
static int64_t last_start_ms(const struct job_row *r)
{
    return r->spec.deadline_ms - r->spec.time_limit_ms;
}

static int compare_expiry(const void *key, const struct tree_link *l)
{
    const struct job_row *a = key, *b = &TREE_ENTRY(l, struct job_side, by_expiry)->job->row;
    int by_time = tree_order(last_start_ms(a), last_start_ms(b));
    return by_time ? by_time : tree_order(a->id, b->id);
}

int expiry_check(const struct job_row *r, struct wall now, struct err *e)
{
    char in[32], limit[32];
    int64_t from_ms = r->spec.begin_at.ms > now.ms ? r->spec.begin_at.ms : now.ms;
    if (r->spec.deadline_ms == 0 || from_ms <= last_start_ms(r))
        return 0;
    time_format_duration(r->spec.time_limit_ms, limit, sizeof limit);
    if (r->spec.deadline_ms <= now.ms)
        return err_set(e, ERR_INVALID, "job '%s': its deadline has passed", r->spec.name);
    time_format_duration(r->spec.deadline_ms - now.ms, in, sizeof in);
    return err_set(e, ERR_INVALID,
        "job '%s': with a time limit of %s%s it cannot end by its deadline, in %s", r->spec.name,
        limit, r->spec.begin_at.ms > now.ms ? " and its begin time" : "", in);
}

static bool is_watched(const struct job *j)
{
    return j->side && tree_has(&j->side->by_expiry);
}

void expiry_watch(struct model *m, struct job *j)
{
    if (j->row.spec.deadline_ms > 0 && !is_watched(j))
        tree_add(&m->queue.by_expiry, &job_make_side(j)->by_expiry, &j->row, compare_expiry);
}

void expiry_leave(struct model *m, struct job *j)
{
    if (j->side)
        tree_remove(&m->queue.by_expiry, &j->side->by_expiry);
}

struct mono expiry_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->queue.by_expiry);
    if (!first)
        return MONO_NONE;
    const struct job *j = TREE_ENTRY(first, struct job_side, by_expiry)->job;
    *ret_event = (struct event){.type = EV_EXPIRE, .expire.job = j->row.id};
    return stamp_until(now, (struct wall){last_start_ms(&j->row) + 1});
}

int apply_expire(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->expire.job, e);
    char limit[32];
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (!is_watched(j) || ev->now.wall.ms <= last_start_ms(&j->row))
        return err_set(e, ERR_CONFLICT, "job %s can still end by its deadline, or has none",
            job_ref(&j->row).s);
    time_format_duration(j->row.spec.time_limit_ms, limit, sizeof limit);
    if (j->array) {
        history(m, ev->now, "cancel", (struct history_of){.job = j},
            "%" PRId64 " of its tasks were given up: with a time limit of %s they can no longer "
            "end by their deadline",
            array_left(j->array), limit);
        int rc = array_drop(m, j, NULL, END_DEADLINE, ev->now, e);
        array_advance(m, j, ev->now);
        return rc;
    }
    j->row.end = END_DEADLINE;
    dependencies_withdraw(m, j);
    history(m, ev->now, "ended", (struct history_of){.job = j},
        "deadline: with a time limit of %s it can no longer end by its deadline", limit);
    job_finish(m, j, ev->now);
    return 0;
}
