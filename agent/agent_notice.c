/* SPDX-License-Identifier: Apache-2.0
 *
 * A notice arrives: it is passed on to all tasks and to belayd, and replaces an earlier notice. A
 * reclaim is replaced only by another reclaim with an earlier deadline.
 *
 * With notice_reserve, tasks work on during the notice of a reclaim, while belayd launches and
 * boots another machine: they save at once and continue, and save and stop when the rest of the
 * time is needed for that. If the machine goes earlier than announced, the first save is what
 * remains; a job that had stopped would have no more. Where a save's time is unknown, or a gang is
 * involved, tasks stop at once.
 */
#include "agent/agent_private.h"

#include "base/log.h"

#define WORTH_MS 5000    /* less time than this, beyond two saves, is not worth a second save */
#define SAVES_RESERVED 3 /* times of all saves that are reserved for the last ones */

/* How long tasks work on before their last saves; 0 = not at all. They share the way to the store,
 * so the times of their saves add up. */
static int64_t work_on_ms(const struct agent *a, const struct notice *n)
{
    int64_t saves_ms = 0;
    if (a->config->notice_reserve_ms == 0 || n->kind != NOTICE_RECLAIM || a->is_checking ||
        a->is_closing || !mono_is_set(n->deadline_mono))
        return 0;
    LIST_FOREACH (&a->tasks, l) {
        const int64_t ms = task_save_estimate_ms(task_of_link(l));
        if (ms < 0)
            return 0;
        saves_ms += ms;
    }
    const int64_t left_ms = n->deadline_mono.ms - clock_mono(a->timers->clock).ms -
                            a->config->notice_reserve_ms - SAVES_RESERVED * saves_ms;
    return left_ms >= WORTH_MS + 2 * saves_ms ? left_ms : 0;
}

void agent_notice_stop_tasks(struct agent *a)
{
    if (!timer_is_running(&a->last_save))
        return;
    timer_stop(a->timers, &a->last_save);
    LIST_FOREACH (&a->tasks, l) {
        task_notice(task_of_link(l), &a->notice);
    }
}

static void on_last_save(struct timer *timer, void *ctx)
{
    struct agent *a = ctx;
    (void)timer;
    LIST_FOREACH (&a->tasks, l) {
        task_notice(task_of_link(l), &a->notice);
    }
}

void agent_notice_init(struct agent *a)
{
    timer_init(&a->last_save, on_last_save, a);
}

/* A second reclaim counts only if its deadline is earlier (a shutdown during a notice, another
 * event). */
static void advance_deadline(struct agent *a, const struct notice *n)
{
    struct mono at = a->notice.deadline_mono;
    bool is_sooner =
        mono_is_set(n->deadline_mono) && (!mono_is_set(at) || n->deadline_mono.ms < at.ms);
    if (n->kind != NOTICE_RECLAIM || !is_sooner)
        return;
    a->notice.deadline = n->deadline;
    a->notice.deadline_mono = n->deadline_mono;
    agent_notice_stop_tasks(a);
    LIST_FOREACH (&a->tasks, l) {
        task_notice_sooner(task_of_link(l), &a->notice);
    }
    log_warn("the machine ends earlier than announced",
        log_i("left_ms", n->deadline_mono.ms - clock_mono(a->timers->clock).ms));
}

void agent_notice(void *ctx, const struct notice *n)
{
    struct agent *a = ctx;
    if (n->kind == NOTICE_NONE)
        return;
    if (a->notice.kind == NOTICE_RECLAIM) {
        advance_deadline(a, n);
        return;
    }
    a->notice = *n;
    const int64_t work_ms = work_on_ms(a, n);
    if (work_ms > 0)
        timer_start(a->timers, &a->last_save, work_ms);
    LIST_FOREACH (&a->tasks, l) {
        if (work_ms > 0)
            task_notice_early(task_of_link(l), &a->notice);
        else
            task_notice(task_of_link(l), &a->notice);
    }
    uplink_changed(&a->link);
    log_warn("notice", log_s("kind", notice_kind_name(n->kind)), log_s("what", n->what),
        log_i("left_ms", mono_is_set(n->deadline_mono)
                             ? n->deadline_mono.ms - clock_mono(a->timers->clock).ms
                             : -1));
    agent_acknowledge_reclaim(a);
    if (a->is_checking && n->kind == NOTICE_RECLAIM)
        agent_start_closing(a);
}
