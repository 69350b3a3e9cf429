/* SPDX-License-Identifier: Apache-2.0
 *
 * Pending jobs outside the queue: held, before their begin time, or with open dependencies; and how
 * they enter the queue.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/dependencies_private.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/windows.h"

#include <inttypes.h>

static int compare_begin(const void *key, const struct tree_link *l)
{
    const struct job_side *a = key, *b = TREE_ENTRY(l, struct job_side, by_begin);
    int by_time = tree_order(a->not_before.ms, b->not_before.ms);
    return by_time ? by_time : tree_order(a->job->row.id, b->job->row.id);
}

void dependencies_stop_waiting(struct model *m, struct job *j)
{
    m->queue.n_waiting -= j->is_waiting;
    j->is_waiting = false;
    if (j->side)
        tree_remove(&m->queue.by_begin, &j->side->by_begin);
}

bool job_has_to_begin(const struct job *j)
{
    return j->side && tree_has(&j->side->by_begin);
}

static void start_waiting(struct model *m, struct job *j)
{
    m->queue.n_waiting++;
    j->is_waiting = true;
    gang_stop_waiting(m, j);
}

bool dependencies_is_kept_back(const struct job *j)
{
    return j->row.hold != HOLD_NONE || dependencies_wait_for_jobs(j) || array_is_kept(j);
}

bool dependencies_set_not_before(struct model *m, struct job *j, struct wall now)
{
    struct wall at = window_not_before(m, &j->row, now);
    bool early = at.ms > now.ms;
    if (early || j->side)
        job_make_side(j)->not_before = at;
    return early;
}

void dependencies_renew_window(struct model *m, struct job *j, struct wall now)
{
    if (!j->row.spec.window[0])
        return;
    bool waits = job_has_to_begin(j);
    if (waits)
        tree_remove(&m->queue.by_begin, &j->side->by_begin);
    dependencies_set_not_before(m, j, now);
    if (waits)
        tree_add(&m->queue.by_begin, &j->side->by_begin, j->side, compare_begin);
    window_watch(m, j, now);
}

void job_enqueue(struct model *m, struct job *j, struct stamp now)
{
    bool early = dependencies_set_not_before(m, j, now.wall);
    if (dependencies_is_kept_back(j) || early) {
        start_waiting(m, j);
        if (!array_is_full(j)) /* a full array is queued when one of its tasks ends */
            j->row.eligible_at = WALL_NONE;
        if (!dependencies_is_kept_back(j))
            tree_add(&m->queue.by_begin, &j->side->by_begin, j->side, compare_begin);
    } else {
        if (!wall_is_set(j->row.eligible_at))
            j->row.eligible_at = now.wall;
        gang_queued(m, j, now);
        queue_add(m, j);
        window_watch(m, j, now.wall);
        model_note_rewind(m);
    }
    expiry_watch(m, j);
    procurement_look(m, j, now);
    touch_job(m, j);
}

void dependencies_withdraw(struct model *m, struct job *j)
{
    queue_remove(m, j);
    gang_release(m, j);
    dependencies_stop_waiting(m, j);
    window_leave(m, j);
}

int apply_eligible(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->eligible.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (!job_has_to_begin(j) || j->side->not_before.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT, "job %s does not wait for its time to begin (any more)",
            job_ref(&j->row).s);
    dependencies_withdraw(m, j);
    job_enqueue(m, j, ev->now);
    if (wall_is_set(j->row.eligible_at))
        history(m, ev->now, "eligible", (struct history_of){.job = j}, "its begin time has come");
    return 0;
}

int apply_hold(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->hold.job, e);
    enum hold to = ev->hold.by_operator ? HOLD_OPERATOR : HOLD_USER;
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (j->row.hold >= to)
        return 0;
    if (j->row.state == JOB_PENDING)
        dependencies_withdraw(m, j);
    idle_gpus_released(m, j, ev->now);
    j->row.hold = to;
    touch_job(m, j);
    if (j->row.state == JOB_PENDING)
        job_enqueue(m, j, ev->now);
    history(m, ev->now, "held", (struct history_of){.job = j}, "held by %s%s", ev->hold.by,
        j->row.state == JOB_PENDING ? "" : ": it continues, and is not started again");
    return 0;
}

void dependencies_release(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.state == JOB_PENDING)
        dependencies_withdraw(m, j);
    idle_gpus_released(m, j, now);
    j->row.hold = HOLD_NONE;
    j->row.no_progress = 0; /* a user has released it */
    if (j->row.end == END_CAPACITY)
        j->row.quick_ends = 0;
    touch_job(m, j);
    if (j->row.state == JOB_PENDING)
        job_enqueue(m, j, now);
}

int apply_release(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->release.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (j->row.hold == HOLD_NONE && !ev->release.from_scratch)
        return 0;
    if (j->row.hold == HOLD_OPERATOR && !ev->release.by_operator)
        return err_set(e, ERR_DENIED, "job %s is held by an operator: only they can release it",
            job_ref(&j->row).s);
    if (ev->release.from_scratch && job_attempt(j))
        return err_set(e, ERR_CONFLICT, "job %s runs: belay requeue --from-scratch %s",
            job_ref(&j->row).s, job_ref(&j->row).s);
    if (ev->release.from_scratch)
        no_progress_from_scratch(m, j);
    dependencies_release(m, j, ev->now);
    history(m, ev->now, "released", (struct history_of){.job = j}, "released by %s%s",
        ev->release.by,
        ev->release.from_scratch
            ? ", to restart from scratch: its checkpoints are not used any more"
            : "");
    return 0;
}

void dependencies_load(struct model *m, struct job *j)
{
    expiry_watch(m, j);
    if (wall_is_set(j->row.eligible_at) && !dependencies_is_kept_back(j)) {
        gang_load(m, j);
        queue_add(m, j);
        return;
    }
    start_waiting(m, j);
    if (dependencies_is_kept_back(j))
        return;
    struct job_side *side = job_make_side(j);
    /* Also if its time came while belayd was down: entering the queue is a decision. */
    tree_add(&m->queue.by_begin, &side->by_begin, side, compare_begin);
}
