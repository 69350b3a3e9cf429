/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that belayd withholds from their agents: they need the store, but belayd cannot use it,
 * or cannot create credentials for their part of it (agent_sync.h). Such an attempt does no work
 * while its node is paid for, so it has a deadline, the same that agents have for an unusable
 * store: store_wait after its assignment, or a fifth of that after a refusal. Then it ends as
 * END_STORE_AWAY: its job is tried on another node, held after JOB_STORE_MAX such ends in a row,
 * and its node becomes idle.
 *
 *   assigned <--withheld, or delivered--> withheld --deadline--> ended (END_STORE_AWAY)
 *                                            `--stopped, or its node lost--> over
 *
 * Invariants.
 *  1. An attempt is in by_withheld exactly while `withheld` is set; its state is ASSIGNED then.
 *  2. An attempt that its agent has or may have is not withheld: the sender posts an event first.
 *     Otherwise it would run on while its node counts as free.
 *
 * That an attempt is withheld is not stored, but the time of its assignment is: after a restart it
 * is withheld again as soon as its agent asks, and ends at the same time as without the restart.
 * belayd tries for at least WAIT_MIN_MS after each restart, so that one failure after a long
 * downtime ends no attempt.
 */
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/withheld.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/str.h"
#include <inttypes.h>

#define WAIT_DEFAULT_MS SECONDS_MS(600) /* the default of agents */
#define DENIED_DIVISOR 5                /* divisor after a refusal */
#define WAIT_MIN_MS SECONDS_MS(30)

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct attempt *a = key, *b = TREE_ENTRY(l, struct attempt, by_withheld);
    int by_time = tree_order(a->withheld_until.ms, b->withheld_until.ms);
    if (by_time == 0)
        by_time = tree_order(a->row.job, b->row.job);
    return by_time ? by_time : tree_order(a->row.rank, b->row.rank);
}

static struct wall withheld_deadline(
    const struct model *m, const struct attempt *a, struct stamp now)
{
    int64_t wait_ms = m->options.store_wait_ms > 0 ? m->options.store_wait_ms : WAIT_DEFAULT_MS;
    wait_ms /= a->withheld == WITHHELD_DENIED ? DENIED_DIVISOR : 1;
    int64_t due_ms = a->row.assigned_at.ms + wait_ms,
            least_ms = now.wall.ms + (wait_ms < WAIT_MIN_MS ? wait_ms : WAIT_MIN_MS);
    return (struct wall){due_ms > least_ms ? due_ms : least_ms};
}

void withheld_end(struct model *m, struct attempt *a)
{
    a->withheld = WITHHELD_NO;
    tree_remove(&m->lifecycle.by_withheld, &a->by_withheld);
}

static void set_withheld(struct model *m, struct attempt *a, enum withheld why, struct stamp now)
{
    if (a->withheld == why)
        return;
    withheld_end(m, a);
    a->withheld = why;
    a->withheld_until = withheld_deadline(m, a, now);
    tree_add(&m->lifecycle.by_withheld, &a->by_withheld, a, compare_due);
}

static void end_withholding(struct model *m, struct attempt *a)
{
    if (a->withheld == WITHHELD_NO)
        return;
    withheld_end(m, a);
    a->row.text[0] = '\0';
    touch_attempt(m, a);
}

int apply_withheld(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct attempt *a =
        job_attempt_on(model_job(m, ev->withheld.job), ev->withheld.attempt, ev->withheld.node);
    (void)e;
    ret_outcome->id = ev->withheld.job;
    if (!a || a->row.state != ATTEMPT_ASSIGNED)
        return 0;
    if (ev->withheld.why == WITHHELD_NO) {
        end_withholding(m, a);
        return 0;
    }
    set_withheld(m, a, ev->withheld.why, ev->now);
    if (str_eq(a->row.text, ev->withheld.text))
        return 0;
    STR_COPY(a->row.text, ev->withheld.text);
    touch_attempt(m, a);
    history(m, ev->now, "store-refused", (struct history_of){.attempt = a},
        "it cannot begin, and belayd keeps trying: %s", ev->withheld.text);
    return 0;
}

struct mono withheld_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->lifecycle.by_withheld);
    if (!first)
        return MONO_NONE;
    const struct attempt *a = TREE_ENTRY(first, struct attempt, by_withheld);
    *ret_event = (struct event){.type = EV_WITHHELD_DUE,
        .withheld_due = {.job = a->row.job, .attempt = a->row.attempt, .node = a->row.node}};
    return stamp_until(now, a->withheld_until);
}

int apply_withheld_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct attempt *a = job_attempt_on(
        model_job(m, ev->withheld_due.job), ev->withheld_due.attempt, ev->withheld_due.node);
    char took[32], why[CORE_TEXT_MAX - 64], text[CORE_TEXT_MAX];
    if (!a || a->withheld == WITHHELD_NO || a->withheld_until.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT,
            "attempt %" PRId64 " of job %" PRId64 " is not withheld, or not for long enough",
            ev->withheld_due.attempt, ev->withheld_due.job);
    ret_outcome->id = ev->withheld_due.job;
    time_format_duration(ev->now.wall.ms - a->row.assigned_at.ms, took, sizeof took);
    STR_SHORTEN(why, a->row.text);
    text_format(text, sizeof text, "belayd tried for %s: %s", took, why);
    attempt_end(m, ev->now, a, END_STORE_AWAY, 0, text);
    return 0;
}
