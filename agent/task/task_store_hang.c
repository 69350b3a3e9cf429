/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects a store that does not answer. A call to a directory on a mount whose server is away does
 * not fail: it does not return. A deadline that is checked after each call would therefore be
 * missed. While a thread uses the store, the loop checks that the store answers (struct
 * store_pulse). If it does not:
 *
 *   before the program runs   the attempt ends as STORE_AWAY after store_wait
 *   while it runs             a failed save is reported to belayd; the program continues
 *   after it has ended        the attempt ends as the program did, after store_wait; after exit
 *                             code 85, whose state must be in the store, as STORE_AWAY
 *   cancelled                 the attempt ends after LEAST_MS
 *
 * Calls to buckets have their own deadlines (ckpt/store/s3_op.h) and are not watched.
 *
 * A thread whose store is silent takes no slot (store_threads.h). The attempt ends without waiting
 * for the thread, whose outcome is ignored. When its call returns, the thread finds that it is
 * cancelled, and the fence shows that another attempt owns the job. The task's directory remains
 * until then. A restarted agent that searches for its last save (WORK_FIND) counts as saving.
 */
#include "agent/task/task_private.h"

#include "base/str.h"
#include "base/time.h"
#include "ckpt/s3.h"

#define LEAST_MS 15000 /* longer than the answer of a store takes on a busy machine */
#define CHECK_MS 1000
#define SILENT_MS 2000 /* after this time other work takes the thread's slot */
#define REPORT_PART 5  /* divisor of the limit: silence is reported after this part of it */

static bool is_preparing(const struct task *t)
{
    return t->work.kind == WORK_PREPARE;
}

/* Whether the thread's outcome does not matter. If it does, a silent store gets as much time as one
 * that answers with errors, because the data may exist nowhere else. */
static bool is_unwanted(const struct task *t)
{
    return t->supervision.killing || t->state.stop == WIRE_END_CANCELLED ||
           atomic_load(&t->work.cancel) || (is_preparing(t) && t->state.stop != WIRE_END_NONE);
}

static int64_t limit_ms(const struct task *t)
{
    int64_t wait_ms = task_store_wait_ms(t);
    return is_unwanted(t) || wait_ms < LEAST_MS ? LEAST_MS : wait_ms;
}

static void describe(const struct task *t, int64_t silent_ms, struct err *e)
{
    char took[32];
    time_format_duration(silent_ms, took, sizeof(took));
    err_set(e, ERR_TIMEOUT,
        "the store %.100s has not answered for %s: if it is a mount, its server may be away",
        t->work.store, took);
}

static void report(struct task *t, int64_t silent_ms)
{
    struct wire_attempt_status *reported = &t->state.reported;
    struct err e;
    t->prep.is_hang_reported = true;
    describe(t, silent_ms, &e);
    if (is_preparing(t)) {
        reported->store_tries++;
        STR_SHORTEN(reported->store_error, e.text);
        task_log(t, "a store of checkpoints does not answer", &e);
    } else if (!t->supervision.exited) {
        task_save_hangs(t, &e);
        task_settle_lost(t);
    }
    task_changed(t);
}

static void end_without_thread(struct task *t, int64_t silent_ms)
{
    struct err e;
    describe(t, silent_ms, &e);
    t->work.is_given_up = true;
    task_work_cancel(t);
    if (!is_preparing(t))
        task_end_unstored(t, &e);
    else if (t->supervision.killing || t->state.stop != WIRE_END_NONE)
        task_end(t, t->state.stop, 0, t->state.stop_text);
    else
        task_end(t, WIRE_END_STORE_AWAY, 0, e.text);
}

static void on_check(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    struct task_preparation *p = &t->prep;
    int64_t alive = atomic_load(&t->work.pulse.alive);
    bool is_out = atomic_load(&t->work.pulse.begun) > alive;
    struct mono now = clock_mono(t->common->timers->clock);
    if (!is_out || alive != p->alive) {
        p->alive = alive;
        p->alive_at = now;
        p->is_hang_reported = false;
    }
    int64_t silent_ms = now.ms - p->alive_at.ms;
    store_threads_note(t->common->store_threads, &t->work.on_store, silent_ms >= SILENT_MS);
    if (silent_ms >= limit_ms(t) && (is_preparing(t) || t->supervision.exited)) {
        end_without_thread(t, silent_ms);
        return;
    }
    if (silent_ms >= limit_ms(t) / REPORT_PART && !p->is_hang_reported)
        report(t, silent_ms);
    timer_start(t->common->timers, timer, CHECK_MS);
}

void task_watch_store(struct task *t)
{
    if (s3_location_is_one(t->work.store, NULL))
        return;
    t->prep.alive_at = clock_mono(t->common->timers->clock);
    t->prep.alive = 0;
    t->prep.is_hang_reported = false;
    timer_start(t->common->timers, &t->prep.hang_check, CHECK_MS);
}

void task_store_hang_init(struct task *t)
{
    timer_init(&t->prep.hang_check, on_check, t);
}
