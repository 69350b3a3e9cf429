/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops with a save: a provider's notice, a drain, a node cut off from belayd; and their deadlines.
 *
 * Notices arrive from agent_notice (agent_ending.c), which has them from the reader of the
 * provider's metadata service or from a shutdown of the machine; stops of belayd come with its
 * orders (task.c).
 */
#include "agent/task/task_private.h"

#include "base/log.h"
#include "base/str.h"

#define SAVING_STOP_MS 5000 /* recheck while a save without a deadline is under way */
/* At a reclaim the task must have ended 1/10 of the notice (at most 2 s) before the node goes,
 * which leaves time for reports and output to reach belayd. The program gets SIGTERM 1/4 of the
 * notice (at most its kill_wait) before that. */
#define LAST_WORDS_MAX_MS 2000

void task_write_notice(struct task *t)
{
    const struct notice *n = t->common->notice;
    struct err e;
    if (n->kind == NOTICE_NONE || t->ckpt.control.fd < 0)
        return;
    if (control_notice(&t->ckpt.control, notice_kind_name(n->kind),
            wall_is_set(n->deadline) ? n->deadline.ms : CONTROL_NONE,
            clock_wall(t->common->timers->clock).ms, &e))
        task_log(t, "a notice could not be passed to the program", &e);
}

/* The program did not answer in time, or must end now because its node is being reclaimed. */
static void on_deadline(struct timer *timer, void *ctx)
{
    struct task *t = ctx;
    (void)timer;
    bool saving = t->work.kind == WORK_SAVE || t->work.kind == WORK_DUMP;
    /* the program or its end waits for the save */
    bool waited_for = saving && !task_saves_accepted(t);
    int64_t now = clock_mono(t->common->timers->clock).ms;
    int64_t left = mono_is_set(t->supervision.hard_at) ? t->supervision.hard_at.ms - now : 0;
    if (left > 0 || (waited_for && !mono_is_set(t->supervision.hard_at)))
        timer_start(t->common->timers, &t->supervision.deadline, left > 0 ? left : SAVING_STOP_MS);
    if (waited_for && timer_is_running(&t->supervision.deadline))
        return; /* let it finish */
    if (saving && mono_is_set(t->supervision.hard_at) && left <= 0)
        task_work_cancel(t);
    int64_t grace = mono_is_set(t->supervision.hard_at) ? left : t->spec->kill_wait_ms;
    task_stop(t, t->ckpt.request.end, t->ckpt.request.text, 0, grace < 0 ? 0 : grace);
    if (t->supervision.exited)
        task_finish(t);
}

void task_notice_init(struct task *t)
{
    timer_init(&t->supervision.deadline, on_deadline, t);
}

static void set_hard_deadline(struct task *t, int64_t left)
{
    int64_t now = clock_mono(t->common->timers->clock).ms;
    left = left < 0 ? 0 : left;
    int64_t last_words = left / 10 < LAST_WORDS_MAX_MS ? left / 10 : LAST_WORDS_MAX_MS;
    int64_t grace = t->spec->kill_wait_ms < left / 4 ? t->spec->kill_wait_ms : left / 4;
    t->supervision.hard_at.ms = now + left - last_words;
    timer_start(t->common->timers, &t->supervision.deadline, left - last_words - grace);
}

void task_save_and_stop(struct task *t, enum wire_end end, const char *text, int64_t stop_by)
{
    if (t->phase == WIRE_ENDED || t->supervision.killing || t->state.stop != WIRE_END_NONE ||
        t->ckpt.request.stop)
        return;
    if (stop_by > 0 && !mono_is_set(t->supervision.hard_at))
        set_hard_deadline(t, stop_by - clock_wall(t->common->timers->clock).ms);
    if (t->phase != WIRE_STARTING && t->phase != WIRE_RESTORING && task_saves(t))
        task_request_save(t, SAVE_EVICT, end, text);
    else
        task_stop(t, end, text, 0, t->spec->kill_wait_ms);
}

static void reclaim(struct task *t, const struct notice *n)
{
    if (t->phase == WIRE_STARTING || t->phase == WIRE_RESTORING) {
        task_stop(t, WIRE_END_RECLAIMED, "", 0, 0);
        return;
    }
    task_request_save(t, SAVE_NOTICE, WIRE_END_RECLAIMED, "");
    /* a job without checkpoints runs until the deadline, because it may end by itself */
    if (!t->ckpt.request.stop) {
        t->ckpt.request.stop = true;
        t->ckpt.request.end = WIRE_END_RECLAIMED;
        STR_COPY(t->ckpt.request.text, "");
    }
    if (mono_is_set(n->deadline_mono))
        set_hard_deadline(t, n->deadline_mono.ms - clock_mono(t->common->timers->clock).ms);
}

void task_notice_sooner(struct task *t, const struct notice *n)
{
    if (t->phase == WIRE_ENDED || t->supervision.killing || !t->ckpt.request.stop)
        return;
    task_write_notice(t);
    set_hard_deadline(t, n->deadline_mono.ms - clock_mono(t->common->timers->clock).ms);
}

/* Whether the program runs, also during a save. */
static bool is_running(const struct task *t)
{
    return t->phase == WIRE_RUNNING || t->phase == WIRE_SAVING;
}

int64_t task_save_estimate_ms(const struct task *t)
{
    if (!task_saves(t) || !is_running(t) || t->ckpt.request.stop)
        return 0;
    if (task_is_gang(t))
        return -1;
    if (t->ckpt.save_took_ms >= 0)
        return t->ckpt.save_took_ms;
    return t->spec->save_ms > 0 ? t->spec->save_ms : -1;
}

void task_notice_early(struct task *t, const struct notice *n)
{
    if (!is_running(t)) {
        task_notice(t, n);
        return;
    }
    task_write_notice(t);
    task_request_save(t, SAVE_REBALANCE, WIRE_END_NONE, NULL);
    log_shipper_kick(&t->output.shipper);
}

void task_notice(struct task *t, const struct notice *n)
{
    if (t->phase == WIRE_ENDED || t->supervision.killing)
        return;
    task_write_notice(t);
    if (n->kind == NOTICE_RECLAIM)
        reclaim(t, n);
    else
        task_request_save(t, SAVE_REBALANCE, WIRE_END_NONE, NULL);
    log_shipper_kick(&t->output.shipper);
}
