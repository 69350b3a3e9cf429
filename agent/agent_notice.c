/* SPDX-License-Identifier: Apache-2.0
 *
 * A notice arrives: it is passed on to all tasks and to belayd, and replaces an earlier notice. A
 * reclaim is replaced only by another reclaim with an earlier deadline.
 */
#include "agent/agent_private.h"

#include "base/log.h"

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
    LIST_FOREACH (&a->tasks, l) {
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
