/* SPDX-License-Identifier: Apache-2.0
 *
 * See user_requeue.h. First a checkpoint is requested while the job keeps running. Only when one is
 * durable the attempt is stopped (with another save, like every stop). A full store thus costs no
 * work: when the save fails or times out, the requeue is dropped, the history has the reason, and
 * the job continues. With `force`, without checkpoints, or before the program runs, the attempt is
 * stopped at once.
 *
 *   requested --saved--> stopping (END_CANCELLED)
 *     |--failed, or no checkpoint in time--> dropped
 *     `--stopped or ended for another reason--> over
 *
 * The timeout is WAIT_MS plus WAIT_SAVES times the duration of the last save.
 *
 * Invariants: requeue_asked_at of an attempt is set exactly while it is in lifecycle.user_requeues.
 * The attempt is then the lowest rank that has not ended (job_attempt), and RUNNING.
 */
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"

#include "base/str.h"
#include <inttypes.h>

#define WAIT_MS SECONDS_MS(600)
#define WAIT_SAVES 4

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct attempt *a = key, *b = TREE_ENTRY(l, struct attempt, in_user_requeues);
    int by_time = tree_order(a->requeue_due.ms, b->requeue_due.ms);
    return by_time ? by_time : tree_order(a->row.job, b->row.job);
}

/* requeue_asked_at is set. A successful save ends the wait, so the timeout stays fixed. */
static void wait_for_save(struct model *m, struct attempt *a)
{
    a->requeue_due.ms = a->row.requeue_asked_at.ms + WAIT_MS + WAIT_SAVES * a->job->row.save_ms;
    tree_add(&m->lifecycle.user_requeues, &a->in_user_requeues, a, compare_due);
}

static bool all_ranks_run(const struct job *j)
{
    LIST_FOREACH (&j->ranks, l)
        if (LIST_ENTRY(l, struct attempt, in_job)->row.state != ATTEMPT_RUNNING)
            return false;
    return true;
}

static void clear_request(struct model *m, struct attempt *a)
{
    if (!wall_is_set(a->row.requeue_asked_at))
        return;
    a->row.requeue_asked_at = WALL_NONE;
    tree_remove(&m->lifecycle.user_requeues, &a->in_user_requeues);
    touch_attempt(m, a);
}

void user_requeue_begin(struct model *m, struct job *j, struct stamp now)
{
    struct attempt *a = job_attempt(j);
    if (wall_is_set(a->row.requeue_asked_at))
        return;
    a->row.requeue_asked_at = now.wall;
    wait_for_save(m, a);
    attempts_ask_save(m, j);
}

void user_requeue_cancel(struct model *m, struct job *j)
{
    struct attempt *a = job_attempt(j);
    if (a)
        clear_request(m, a);
}

static void save_before_requeue(struct model *m, struct job *j, const char *by, struct stamp now)
{
    struct attempt *a = job_attempt(j);
    if (wall_is_set(a->row.requeue_asked_at))
        return;
    history(m, now, "requeue", (struct history_of){.attempt = a},
        "%s requested a requeue: it is saved first, and stopped after that", by);
    user_requeue_begin(m, j, now);
}

static void restart_from_scratch(struct model *m, struct job *j, const char *by, struct stamp now)
{
    const struct attempt *a = job_attempt(j);
    history(m, now, "requeue", (struct history_of){.job = j, .attempt = a},
        "%s requested a restart from scratch: its checkpoints are not used any more", by);
    no_progress_from_scratch(m, j);
    if (a) /* a save during the stop would not be used either */
        job_stop(m, j, END_CANCELLED, false);
    else if (j->row.hold == HOLD_STORE)
        dependencies_release(m, j, now);
}

static void requeue(struct model *m, struct job *j, const struct event *ev)
{
    const struct attempt *a = job_attempt(j);
    const char *by = ev->requeue.by;
    if (ev->requeue.from_scratch) {
        restart_from_scratch(m, j, by, ev->now);
        return;
    }
    if (!a || a->row.state == ATTEMPT_STOPPING)
        return; /* it is in the queue, or about to enter it */
    if (j->row.spec.method != CKPT_NONE && !ev->requeue.force && all_ranks_run(j)) {
        save_before_requeue(m, j, by, ev->now);
        return;
    }
    history(m, ev->now, "requeue", (struct history_of){.attempt = a}, "%s requested a requeue%s",
        by, ev->requeue.force ? ", even if the job cannot be saved" : "");
    job_stop(m, j, END_CANCELLED, true);
}

int apply_requeue(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->requeue.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    if (j->row.state == JOB_CANCELLING)
        return err_set(e, ERR_CONFLICT, "job %s is being cancelled and cannot be requeued",
            job_ref(&j->row).s);
    if (retries_are_none(&j->row))
        return err_set(e, ERR_CONFLICT,
            "job %s was submitted with --no-requeue: it is never requeued", job_ref(&j->row).s);
    ret_outcome->id = j->row.id;
    requeue(m, j, ev);
    if (j->array)
        LIST_FOREACH (&j->array->tasks, l)
            requeue(m, LIST_ENTRY(l, struct job_side, in_array)->job, ev);
    return 0;
}

void user_requeue_saved(struct model *m, struct job *j)
{
    const struct attempt *a = job_attempt(j);
    if (a && wall_is_set(a->row.requeue_asked_at))
        job_stop(m, j, END_CANCELLED, true);
}

static void drop_request(struct model *m, struct attempt *a, struct stamp now, const char *why)
{
    clear_request(m, a);
    history(m, now, "requeue-dropped", (struct history_of){.attempt = a},
        "the requeue was dropped, because %s. belay requeue --force %s "
        "requeues it anyway; work since its last checkpoint is lost then",
        why, job_ref(&a->job->row).s);
    idle_gpus_not_saved(m, a->job, now);
}

void user_requeue_save_failed(struct model *m, struct job *j, struct stamp now, const char *text)
{
    struct attempt *a = job_attempt(j);
    char why[CORE_TEXT_MAX];
    if (!a || !wall_is_set(a->row.requeue_asked_at))
        return;
    text_format(why, sizeof why, "its save failed: %.120s", text);
    drop_request(m, a, now, why);
}

void user_requeue_attempt_stops(struct model *m, struct attempt *a)
{
    clear_request(m, a);
}

void user_requeue_attempt_loaded(struct model *m, struct attempt *a)
{
    if (wall_is_set(a->row.requeue_asked_at))
        wait_for_save(m, a);
}

/* ---- timeouts ---- */

struct mono user_requeue_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->lifecycle.user_requeues);
    if (!first)
        return MONO_NONE;
    const struct attempt *a = TREE_ENTRY(first, struct attempt, in_user_requeues);
    *ret_event = (struct event){.type = EV_REQUEUE_DUE, .requeue_due.job = a->row.job};
    return stamp_until(now, a->requeue_due);
}

int apply_requeue_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->requeue_due.job);
    struct attempt *a = j ? job_attempt(j) : NULL;
    char waited[32];
    if (!a || !wall_is_set(a->row.requeue_asked_at) || a->requeue_due.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT,
            "the requeue of job %" PRId64 " does not wait for a save, or may still wait",
            ev->requeue_due.job);
    ret_outcome->id = j->row.id;
    char why[CORE_TEXT_MAX];
    time_format_duration(ev->now.wall.ms - a->row.requeue_asked_at.ms, waited, sizeof waited);
    text_format(why, sizeof why, "it had no new checkpoint %s after the request", waited);
    drop_request(m, a, ev->now, why);
    return 0;
}
