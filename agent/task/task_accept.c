/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints accepted before they are stored: the program continues as soon as a snapshot of its
 * directory exists (ckpt/snapshot.h).
 *
 *     commit.K or .done --> taking --> queued --> save (task_save.c) --> stored.K
 *                             |          |
 *                             |          +--> replaced by a newer one
 *                             +--> the program has to wait: task_save.c stores the directory
 *
 * Invariants.
 *  1. At most one snapshot of a task is being stored and one is queued. So a program that commits
 *     faster than the store accepts needs no more disk or memory, and the next one stored is the
 *     newest. In a gang no snapshot replaces another, and the next commit waits: if each rank
 *     skipped other commits, they would seldom have one in common.
 *  2. The outcomes of accepted commits are reported in order (`unanswered`); commits replaced by a
 *     newer one share its outcome. "ok" means that the commit or a later one is durable.
 *  3. A save that belay relies on before it gives up a node (a notice, an eviction, exit code 85)
 *     is never merely accepted.
 *  4. In a gang only commits that state their step are accepted: by the step the ranks match their
 *     commits when their programs do not wait for each other (ckpt/gang.h).
 */
#include "agent/task/task_private.h"

#include "base/log.h"
#include "base/uv/loop.h"

#define LINGER_MS 600000 /* time to store accepted commits after the program's end */

/* ---- taking ---- */

static void snapshot_on_thread(void *ctx)
{
    struct task *t = ctx;
    struct task_taking *k = &t->ckpt.taking;
    const struct ckpt_snapshot_how how = {.scratch = t->dir, .in_place = k->in_place};
    k->rc = ckpt_snapshot_take(t->ckpt.dir, &how, &k->cancel, &k->save.snapshot, &k->stats, &k->e);
}

/* The program continues. A request is served by this save, unless it came after the save began. */
static void accept_snapshot(struct task *t)
{
    struct task_save *s = &t->ckpt.taking.save;
    const struct control_answer a = {
        .attempt = t->attempt, .sequence = s->sequence = ++t->state.sequence, .accepted = true};
    s->pause_ms = task_mono_ms(t) - s->begun_ms;
    ckpt_snapshot_destroy(t->ckpt.queued.snapshot);
    t->ckpt.queued = *s;
    s->snapshot = NULL;
    task_note_queued(t);
    task_persist(t);
    if (s->is_requested && t->ckpt.request.on && t->ckpt.request.serial == s->request_serial)
        task_request_over(t);
    if (s->commit) {
        t->ckpt.unanswered = t->ckpt.unanswered ? t->ckpt.unanswered : s->commit;
        t->ckpt.accepted = s->commit;
        control_answer(&t->ckpt.control, s->commit, &a);
    } else {
        task_done_taken(t);
    }
    log_debug("a checkpoint was accepted", log_i("job", t->job), log_i("attempt", t->attempt),
        log_i("pause_ms", s->pause_ms), log_i("copied", t->ckpt.taking.stats.copied_bytes),
        log_i("cloned", t->ckpt.taking.stats.cloned_bytes),
        log_i("kept_open", t->ckpt.taking.stats.kept_open_bytes));
}

static void wait_for_store(struct task *t)
{
    struct task_taking *k = &t->ckpt.taking;
    log_debug("no snapshot: the program waits until its checkpoint is stored", log_i("job", t->job),
        log_i("attempt", t->attempt), log_err(&k->e));
    if (k->save.commit)
        t->ckpt.must_wait = k->save.commit;
    else
        t->ckpt.done_must_wait = true;
}

static void on_snapshot(void *ctx)
{
    struct task *t = ctx;
    struct task_taking *k = &t->ckpt.taking;
    k->is_busy = false;
    if (t->released)
        return; /* task_free frees the snapshot */
    if (k->rc && k->rc != ERR_CANCELLED) {
        task_save_failed(t, &k->save, &k->e);
        if (task_is_gang(t))
            task_accept_refuse(t, &k->save, &k->e);
    } else if (!k->rc && k->save.snapshot)
        accept_snapshot(t);
    else if (!k->rc)
        wait_for_store(t);
    if (t->supervision.exited)
        task_finish(t);
    else
        task_pump_saves(t);
}

bool task_accept_may_take(const struct task *t)
{
    const struct task_work *w = &t->work;
    bool is_awaited = task_work_is_busy(w) && w->kind != WORK_CLEAN && w->kind != WORK_FIND &&
                      !task_saves_accepted(t);
    return !t->ckpt.taking.is_busy && !is_awaited &&
           !(task_is_gang(t) && task_has_queued(&t->ckpt));
}

void task_accept_take(struct task *t, int64_t commit, int64_t progress)
{
    struct task_taking *k = &t->ckpt.taking;
    k->save = (struct task_save){.commit = commit,
        .request_serial = t->ckpt.request.serial,
        .cause = t->ckpt.request.on ? t->ckpt.request.cause : SAVE_PROGRAM,
        .is_requested = t->ckpt.request.on,
        .user_requests = t->ckpt.request.user_requests,
        .progress = progress,
        .begun_ms = task_mono_ms(t),
        .pause_ms = TASK_WAITS,
        .of_ms = clock_wall(t->common->timers->clock).ms};
    k->is_busy = true;
    k->in_place = t->ckpt.in_place;
    atomic_store(&k->cancel, 0);
    uv_run_work(t->common->loop, snapshot_on_thread, on_snapshot, t);
}

/* ---- the outcome ---- */

void task_accept_answer(struct task *t, int64_t upto, const struct err *failed)
{
    const struct control_answer a = {
        .failed = failed, .attempt = t->attempt, .sequence = t->work.sequence};
    if (!t->ckpt.unanswered || upto < t->ckpt.unanswered)
        return;
    control_stored(&t->ckpt.control, t->ckpt.unanswered, upto, &a);
    t->ckpt.unanswered = upto < t->ckpt.accepted ? upto + 1 : 0;
}

void task_accept_drop(struct task *t)
{
    ckpt_snapshot_destroy(t->ckpt.queued.snapshot);
    t->ckpt.queued = (struct task_save){0};
}

void task_accept_refuse(struct task *t, const struct task_save *s, const struct err *why)
{
    if (task_has_queued(&t->ckpt))
        return; /* the other ranks wait for this rank's next commit */
    t->ckpt.queued = *s;
    t->ckpt.queued.snapshot = NULL;
    t->ckpt.queued.sequence = ++t->state.sequence;
    t->ckpt.queued.pause_ms = 0;
    t->ckpt.queued.refused = *why;
    task_note_queued(t);
    task_persist(t);
}

void task_accept_judge(struct task *t)
{
    const struct task_work *w = &t->work;
    int64_t left = w->waits || w->lacks ? -1 : ckpt_pace_left_ms(&w->pace),
            estimate = t->ckpt.save_took_ms;
    int64_t time = mono_is_set(t->supervision.hard_at)
                       ? t->supervision.hard_at.ms - TASK_COMMIT_MS - task_mono_ms(t)
                       : INT64_MAX;
    if (!task_saves_accepted(t) || atomic_load(&w->cancel))
        return;
    if (estimate < 0)
        estimate = task_mono_ms(t) - w->started_ms + left;
    if (!save_order_gives_way(left, estimate, time))
        return;
    log_info("giving up a save for a newer one", log_i("job", t->job), log_i("attempt", t->attempt),
        log_i("left_ms", left), log_i("newer_ms", estimate), log_i("time_ms", time));
    task_work_cancel(t);
}

/* ---- after the end ---- */

static bool has_succeeded(const struct task *t)
{
    return t->supervision.exit.cause == EXIT_BY_ITSELF && t->supervision.exit.code == 0;
}

/* A program that has succeeded needs no checkpoint that belay requested, but other ranks of its
 * gang may. A commit that the program made by itself before it ended may be its result. After exit
 * code 85 the directory is newer than anything queued. */
bool task_accept_is_wanted(const struct task *t)
{
    if (!task_has_queued(&t->ckpt) || t->supervision.killing || t->ckpt.left_gang)
        return false;
    return has_succeeded(t) ? !t->ckpt.queued.is_requested || task_is_gang(t)
                            : !task_wants_final_save(t);
}

void task_accept_hasten(struct task *t)
{
    bool is_accepted = task_saves_accepted(t);
    bool of_use =
        t->work.kind == WORK_FIND ||
        (is_accepted && (task_is_gang(t) || !(has_succeeded(t) && t->ckpt.save.is_requested)));
    if (t->supervision.killing || (t->supervision.exit.code == 0 && !of_use))
        task_work_cancel(t);
    else if (task_wants_final_save(t))
        task_accept_judge(t);
    if (t->supervision.killing)
        atomic_store(&t->ckpt.taking.cancel, 1);
    if (is_accepted && !timer_is_running(&t->ckpt.linger))
        timer_start(t->common->timers, &t->ckpt.linger, LINGER_MS);
}

static void on_linger(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    log_warn("an accepted checkpoint could not be stored in time", log_i("job", t->job),
        log_i("attempt", t->attempt));
    task_work_cancel(t);
}

void task_accept_init(struct task *t)
{
    timer_init(&t->ckpt.linger, on_linger, t);
}
