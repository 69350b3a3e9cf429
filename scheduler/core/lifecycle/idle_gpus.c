/* SPDX-License-Identifier: Apache-2.0
 *
 * See idle_gpus.h.
 *
 *   busy --idle for for_ms--> notified --grace, the job can be saved--> saving (held) --> parked
 *     ^                          |                                        |
 *     `----a GPU is busy, or the owner keeps them--------------------------+-- the save fails
 *
 * The save is that of a requeue by a user (user_requeue.h): the attempt is stopped only when a new
 * checkpoint is durable, so no work is lost. A job without checkpoints, or that may not be queued
 * again, is never parked.
 *
 * Invariants.
 *  1. A job is notified at most once while its GPUs stay idle, and parked only after its whole
 *     grace. Both times are stored: a restart neither repeats nor shortens anything.
 *  2. A job is in by_idle_gpus exactly while a decision about it is pending; its key is stored.
 *  3. A running job has HOLD_IDLE_GPUS only between that decision and the end of its attempt.
 */
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/lifecycle/retry_rules.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include <inttypes.h>

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct job_side *a = key, *b = TREE_ENTRY(l, struct job_side, by_idle_gpus);
    int by_time = tree_order(a->idle_gpus_due.ms, b->idle_gpus_due.ms);
    return by_time ? by_time : tree_order(a->job->row.id, b->job->row.id);
}

const struct idle_gpus_policy *idle_gpus_policy_of(const struct job *j)
{
    const struct attempt *a = job_attempt(j);
    const struct idle_gpus_policy *p = a ? &a->node->pool->row.idle_gpus : NULL;
    bool applies = p && p->then != IDLE_GPUS_IGNORE && j->row.spec.idle_gpus != IDLE_GPUS_KEEP;
    return applies ? p : NULL;
}

struct wall idle_gpus_since(const struct job *j)
{
    struct wall since = WALL_NONE;
    int32_t n = 0;
    if (j->row.state != JOB_RUNNING)
        return WALL_NONE;
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.state != ATTEMPT_RUNNING || !wall_is_set(a->row.gpus_idle_since))
            return WALL_NONE;
        if (!wall_is_set(since) || a->row.gpus_idle_since.ms > since.ms)
            since = a->row.gpus_idle_since;
        n++;
    }
    return n == j->row.ranks ? since : WALL_NONE;
}

static bool can_be_parked(const struct job *j)
{
    return j->row.spec.method != CKPT_NONE && !retries_are_none(&j->row);
}

struct wall idle_gpus_parks_at(const struct job *j)
{
    const struct idle_gpus_policy *p = idle_gpus_policy_of(j);
    bool parks = p && p->then == IDLE_GPUS_PARK && can_be_parked(j) && j->row.hold == HOLD_NONE &&
                 wall_is_set(j->row.idle_gpus_told_at);
    return parks ? (struct wall){j->row.idle_gpus_told_at.ms + p->grace_ms} : WALL_NONE;
}

static void unlink_job(struct model *m, struct job *j)
{
    if (j->side)
        tree_remove(&m->lifecycle.by_idle_gpus, &j->side->by_idle_gpus);
}

void idle_gpus_load(struct model *m, struct job *j)
{
    const struct idle_gpus_policy *p = idle_gpus_policy_of(j);
    struct wall since = idle_gpus_since(j), due = WALL_NONE;
    unlink_job(m, j);
    if (p && wall_is_set(since))
        due = wall_is_set(j->row.idle_gpus_told_at) ? idle_gpus_parks_at(j)
                                                    : (struct wall){since.ms + p->for_ms};
    if (!wall_is_set(due))
        return;
    struct job_side *side = job_make_side(j);
    side->idle_gpus_due = due;
    tree_add(&m->lifecycle.by_idle_gpus, &side->by_idle_gpus, side, compare_due);
}

static void forget_notification(struct model *m, struct job *j)
{
    if (!wall_is_set(j->row.idle_gpus_told_at))
        return;
    j->row.idle_gpus_told_at = WALL_NONE;
    touch_job(m, j);
}

/* It is not parked, unless its attempt is being stopped already. */
static void spare(struct model *m, struct job *j, struct stamp now)
{
    const struct attempt *a = job_attempt(j);
    forget_notification(m, j);
    if (j->row.hold != HOLD_IDLE_GPUS || !a || a->row.state != ATTEMPT_RUNNING)
        return;
    j->row.hold = HOLD_NONE;
    touch_job(m, j);
    user_requeue_cancel(m, j);
    history(m, now, "idle-gpus", (struct history_of){.attempt = a}, "it is not parked: %s",
        j->row.spec.idle_gpus == IDLE_GPUS_KEEP ? "its owner keeps its GPUs"
                                                : "its GPUs are busy, or the policy has changed");
}

void idle_gpus_watch(struct model *m, struct job *j, struct stamp now)
{
    if (!idle_gpus_policy_of(j) || !wall_is_set(idle_gpus_since(j)))
        spare(m, j, now);
    idle_gpus_load(m, j);
}

void idle_gpus_attempt_stops(struct model *m, struct job *j)
{
    unlink_job(m, j);
}

void idle_gpus_leave(struct model *m, struct job *j)
{
    unlink_job(m, j);
    forget_notification(m, j);
}

void idle_gpus_released(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.hold != HOLD_IDLE_GPUS)
        return;
    user_requeue_cancel(m, j);
    idle_gpus_not_saved(m, j, now);
}

void idle_gpus_not_saved(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.hold != HOLD_IDLE_GPUS)
        return;
    j->row.hold = HOLD_NONE;
    forget_notification(m, j);
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (!wall_is_set(a->row.gpus_idle_since))
            continue;
        a->row.gpus_idle_since = now.wall; /* its owner is notified again before the next try */
        touch_attempt(m, a);
    }
    touch_job(m, j);
    idle_gpus_load(m, j);
}

int apply_gpus(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct attempt *a = job_attempt_on(model_job(m, ev->gpus.job), ev->gpus.attempt, ev->gpus.node);
    struct wall since = ev->gpus.idle_since;
    (void)e;
    ret_outcome->id = ev->gpus.job;
    if (!a || a->row.state != ATTEMPT_RUNNING || !wall_is_set(a->row.started_at) ||
        wall_is_set(since) == wall_is_set(a->row.gpus_idle_since))
        return 0;
    if (wall_is_set(since) && since.ms < a->row.started_at.ms)
        since = a->row.started_at;
    if (wall_is_set(since) && since.ms > ev->now.wall.ms)
        since = ev->now.wall;
    a->row.gpus_idle_since = since;
    touch_attempt(m, a);
    idle_gpus_watch(m, a->job, ev->now);
    return 0;
}

/* ---- decisions ---- */

struct mono idle_gpus_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->lifecycle.by_idle_gpus);
    if (!first)
        return MONO_NONE;
    const struct job_side *t = TREE_ENTRY(first, struct job_side, by_idle_gpus);
    *ret_event = (struct event){.type = EV_IDLE_GPUS, .idle_gpus.job = t->job->row.id};
    return stamp_until(now, t->idle_gpus_due);
}

static void tell(struct model *m, struct job *j, struct stamp now)
{
    const struct idle_gpus_policy *p = idle_gpus_policy_of(j);
    struct wall since = idle_gpus_since(j);
    char idle[32];
    int64_t uusd_h = 0;
    j->row.idle_gpus_told_at = now.wall;
    touch_job(m, j);
    LIST_FOREACH (&j->ranks, l)
        uusd_h += LIST_ENTRY(l, struct attempt, in_job)->uusd_h;
    time_format_duration((now.wall.ms - since.ms) / 1000 * 1000, idle, sizeof idle);
    history(m, now, "idle-gpus",
        (struct history_of){.attempt = job_attempt(j), .a = now.wall.ms - since.ms, .b = uusd_h},
        "its GPUs were less than %" PRId32 " %% busy in each minute for %s, and cost $%.2f/h%s",
        p->busy_pct, idle, (double)uusd_h / 1e6,
        wall_is_set(idle_gpus_parks_at(j)) ? ": unless they are used, it will be saved and held"
                                           : "");
    notify_idle_gpus(m, j, since, idle_gpus_parks_at(j), uusd_h, now);
}

static void park(struct model *m, struct job *j, struct stamp now)
{
    j->row.hold = HOLD_IDLE_GPUS;
    touch_job(m, j);
    history(m, now, "park", (struct history_of){.attempt = job_attempt(j)},
        "its GPUs are idle: it is saved first, then stopped and held. belay release %s resumes it",
        job_ref(&j->row).s);
    user_requeue_begin(m, j, now);
}

int apply_idle_gpus(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->idle_gpus.job);
    if (!j || !j->side || !tree_has(&j->side->by_idle_gpus) ||
        j->side->idle_gpus_due.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT,
            "no decision on the GPUs of job %" PRId64 " is due (any more)", ev->idle_gpus.job);
    ret_outcome->id = j->row.id;
    if (wall_is_set(j->row.idle_gpus_told_at))
        park(m, j, ev->now);
    else
        tell(m, j, ev->now);
    idle_gpus_load(m, j);
    return 0;
}
