/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that run only in a window. Outside of it such a job waits (eligible.c), like one before its
 * begin time. Before the window closes, queued jobs leave the queue, and running jobs are saved and
 * stopped, early enough for a save as long as their last one: END_WINDOW, which costs no retry.
 *
 * Invariant: a job is in by_park exactly while it has a window that closes and is queued, or runs
 * and is not being stopped.
 */
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/windows.h"

#include "base/str.h"
#include <inttypes.h>

#define LEAD_MS 30000LL /* time for a stop, and for a save of unknown duration */

static int compare_park(const void *key, const struct tree_link *l)
{
    const struct job_side *a = key, *b = TREE_ENTRY(l, struct job_side, by_park);
    int by_time = tree_order(a->park_at.ms, b->park_at.ms);
    return by_time ? by_time : tree_order(a->job->row.id, b->job->row.id);
}

const struct window *core_window(const struct model *m, const char *name)
{
    for (size_t k = 0; k < m->options.tables.n_windows; k++)
        if (str_eq(m->options.tables.windows[k].name, name))
            return &m->options.tables.windows[k];
    return NULL;
}

int64_t job_stop_lead_ms(const struct job_row *r)
{
    return r->spec.method == CKPT_NONE ? 0 : LEAD_MS + 2 * r->save_ms;
}

/* Whether the window is open for the job, with time left before the last save. If so, *ret_park is
 * when that begins, WALL_NONE if the window never closes; else *ret_next is when it opens next. */
static bool is_open_for(const struct model *m, const struct job_row *r, struct wall now,
    struct wall *ret_park, struct wall *ret_next)
{
    const struct window *w = core_window(m, r->spec.window);
    struct wall change;
    *ret_park = WALL_NONE;
    *ret_next = WALL_NEVER;
    if (!w)
        return false;
    if (!window_is_open(w, now, &change)) {
        *ret_next = change;
        return false;
    }
    if (!wall_is_set(change))
        return true;
    ret_park->ms = change.ms - job_stop_lead_ms(r);
    if (ret_park->ms > now.ms)
        return true;
    if (window_is_open(w, change, ret_next))
        *ret_next = change;
    return false;
}

struct wall window_not_before(const struct model *m, const struct job_row *r, struct wall now)
{
    struct wall park, next = r->spec.begin_at;
    if (!r->spec.window[0] || r->spec.begin_at.ms > now.ms) /* checked again then */
        return next;
    return is_open_for(m, r, now, &park, &next) ? now : next;
}

void window_leave(struct model *m, struct job *j)
{
    if (j->side)
        tree_remove(&m->queue.by_park, &j->side->by_park);
}

void window_watch(struct model *m, struct job *j, struct wall now)
{
    struct wall next;
    window_leave(m, j);
    const struct attempt *a = job_attempt(j);
    if (!j->row.spec.window[0] ||
        (a ? j->row.state != JOB_RUNNING || a->row.state == ATTEMPT_STOPPING
           : !wall_is_set(j->row.eligible_at)))
        return;
    struct job_side *t = job_make_side(j);
    if (!is_open_for(m, &j->row, now, &t->park_at, &next))
        t->park_at = now;
    if (wall_is_set(t->park_at))
        tree_add(&m->queue.by_park, &t->by_park, t, compare_park);
}

struct mono windows_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->queue.by_park);
    if (!first)
        return MONO_NONE;
    const struct job_side *t = TREE_ENTRY(first, struct job_side, by_park);
    *ret_event = (struct event){.type = EV_PARK, .park.job = t->job->row.id};
    return stamp_until(now, t->park_at);
}

int apply_park(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->park.job);
    if (!j || !j->side || !tree_has(&j->side->by_park) || j->side->park_at.ms > ev->now.wall.ms)
        return err_set(
            e, ERR_CONFLICT, "job %" PRId64 " is not to be parked (any more)", ev->park.job);
    ret_outcome->id = j->row.id;
    const struct attempt *a = job_attempt(j);
    if (!a) {
        dependencies_withdraw(m, j);
        job_enqueue(m, j, ev->now);
        return 0;
    }
    window_leave(m, j);
    if (j->row.state != JOB_RUNNING || a->row.state == ATTEMPT_STOPPING)
        return 0; /* at a load, windows are watched before the attempts are known */
    job_stop(m, j, END_WINDOW, true);
    model_note_change(m);
    history(m, ev->now, "park", (struct history_of){.attempt = a},
        "window %s closes: the job is saved, and resumed when the window opens again",
        j->row.spec.window);
    return 0;
}
