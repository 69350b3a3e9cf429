/* SPDX-License-Identifier: Apache-2.0
 *
 * Start, stop and end of an attempt: what its end counts as, its ledger rows, and what happens to
 * its job: queued again (requeue.h) or finished. Every end, reported or concluded, goes through
 * attempt_end exactly once.
 */
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/node_failures.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/requeue.h"
#include "scheduler/core/lifecycle/retry_rules.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/lifecycle/withheld.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/shares.h"

#include "base/str.h"
#include <inttypes.h>

bool attempt_has_no_script(const struct attempt *a)
{
    return a->row.rank > 0 && a->job->row.spec.script_on == SCRIPT_ON_FIRST;
}

static void attempt_move(struct model *m, struct attempt *a, enum attempt_state to)
{
    int state = (int)a->row.state;
    sm_move(&attempt_sm, a->row.job, &state, (int)to);
    a->row.state = (enum attempt_state)state;
    withheld_end(m, a);
    touch_attempt(m, a);
}

void attempt_start(struct model *m, struct attempt *a)
{
    attempt_move(m, a, ATTEMPT_RUNNING);
}

static void attempt_stop(struct model *m, struct attempt *a, enum end_kind reason, bool save_first)
{
    if (a->row.state == ATTEMPT_STOPPING && save_first)
        return; /* it is stopping already; only a cancel overrides that */
    if (a->row.state != ATTEMPT_STOPPING) {
        attempt_move(m, a, ATTEMPT_STOPPING);
        reserve_relaxed(m, a->node);
        model_note_change(m); /* its place counts as free */
    }
    drill_attempt_stops(a);
    user_requeue_attempt_stops(m, a);
    idle_gpus_attempt_stops(m, a->job);
    a->row.stop_reason = reason;
    a->row.save_first = save_first;
    touch_attempt(m, a);
}

void job_stop(struct model *m, struct job *j, enum end_kind reason, bool save_first)
{
    LIST_FOREACH (&j->ranks, l)
        attempt_stop(m, LIST_ENTRY(l, struct attempt, in_job), reason, save_first);
}

void attempts_ask_save(struct model *m, struct job *j)
{
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *rank = LIST_ENTRY(l, struct attempt, in_job);
        rank->row.saves_asked++;
        touch_attempt(m, rank);
    }
}

/* A rank already in an immediate stop keeps its reason. */
static void gang_stop(struct model *m, struct job *j, const struct attempt *but, bool save_first)
{
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a != but && (a->row.state != ATTEMPT_STOPPING || a->row.save_first))
            attempt_stop(m, a, END_GANG, save_first);
    }
}

void gang_stop_others(struct model *m, struct attempt *a)
{
    gang_stop(m, a->job, a, true);
}

/* A stopped attempt counts as its stop reason, unless it succeeded or its machine was lost first. A
 * rank without a script succeeds only with the first rank. */
static enum end_kind effective_end(const struct attempt *a, enum end_kind reported)
{
    const struct attempt *first = job_attempt(a->job);
    if (reported == END_CHECKPOINTED && first && wall_is_set(first->row.requeue_asked_at))
        return END_CANCELLED; /* it saved as requested and ended thereby */
    bool no_script = attempt_has_no_script(a),
         is_loss = reported == END_RECLAIMED || reported == END_NODE_LOST;
    bool itself = is_loss || (reported == END_SUCCEEDED && !no_script);
    enum end_kind end = a->row.state == ATTEMPT_STOPPING && !itself ? a->row.stop_reason : reported;
    if (no_script && end == END_GANG && a->job->row.gang_end == END_SUCCEEDED)
        return END_SUCCEEDED;
    if (end == END_GANG && a->node->row.state == NODE_NOTICED)
        /* its dependent ranks ended first, and it was stopped together with them */
        return END_RECLAIMED;
    return no_script && end == END_SUCCEEDED ? END_FAILED : end;
}

/* Human-readable; "succeeded" and "failed" have details (describe_end). */
static const char *const end_words[] = {
    [END_NONE] = "ended",
    [END_SUCCEEDED] = "succeeded",
    [END_FAILED] = "failed",
    [END_CANCELLED] = "stopped by its user",
    [END_TIMEOUT] = "reached its time limit",
    [END_RECLAIMED] = "its node was reclaimed",
    [END_NODE_LOST] = "its node was lost",
    [END_CAPACITY] = "its node could not start it",
    [END_EVICTED] = "evicted",
    [END_BUDGET] = "stopped by a budget",
    [END_WINDOW] = "its window closed",
    [END_DRAINED] = "its node was drained",
    [END_GANG] = "stopped with its gang",
    [END_CHECKPOINTED] = "saved and asked to be resumed",
    [END_STORE] = "the store of its checkpoints could not be used",
    [END_STORE_AWAY] = "its node could not use the store of its checkpoints",
    [END_DRILLED] = "stopped for a drill",
    [END_DEPENDENCY] = "its dependencies can never be satisfied",
    [END_DEADLINE] = "its deadline could not be met",
};

static void describe_end(const struct attempt_row *a, char *out, size_t size)
{
    char more[48] = "";
    bool says_code = a->end == END_FAILED && str_starts(a->text, "exit code ");
    if (a->end == END_FAILED && !says_code) {
        text_format(more, sizeof more, " with exit code %" PRId32, a->exit_code);
    } else if (a->end == END_SUCCEEDED && wall_is_set(a->started_at) &&
               a->ended_at.ms >= a->started_at.ms) {
        char ran[32];
        time_format_duration(a->ended_at.ms - a->started_at.ms, ran, sizeof ran);
        text_format(more, sizeof more, " after %s", ran);
    }
    const char *joint = says_code ? " with " : a->text[0] ? ": " : "";
    text_format(out, size, "%s%s%s%s", end_words[a->end], more, joint, a->text);
}

/* Determines what the attempt counts as: the end of the first rank that did not succeed, without
 * ranks stopped as a consequence. But a program with a vanished peer fails at once, long before the
 * lost node's lease expires: so a node loss is taken as the cause of the other failures. If it was
 * not, the next attempt shows it. With the script on the first rank only, its success decides,
 * whatever happens to the other ranks. */
static void gang_note(struct attempt *a, enum end_kind end, int32_t exit_code)
{
    struct job *j = a->job;
    enum end_kind so_far = j->row.gang_end;
    bool is_loss = end == END_RECLAIMED || end == END_NODE_LOST,
         has_first = j->row.spec.script_on == SCRIPT_ON_FIRST;
    bool decides = so_far == END_NONE || (so_far == END_SUCCEEDED && !has_first) ||
                   (has_first && a->row.rank == 0 && end == END_SUCCEEDED) ||
                   (so_far == END_GANG && end != END_SUCCEEDED) ||
                   (is_loss && (so_far == END_FAILED || so_far == END_CHECKPOINTED));
    if (!decides)
        return;
    j->row.gang_end = end;
    j->row.gang_code = exit_code;
}

/* Records the end of a rank. again: the lost work is repeated. Returns the lost work in ms. */
static int64_t rank_end(struct model *m, struct stamp now, struct attempt *a, enum end_kind end,
    int32_t exit_code, const char *text, bool requeues)
{
    attempt_move(m, a, ATTEMPT_ENDED);
    a->row.end = end;
    a->row.exit_code = exit_code;
    a->row.ended_at = now.wall;
    STR_COPY(a->row.text, text);
    int64_t cost = a->job->row.cost_uusd, lost_ms = ledger_attempt(m, a);
    budgets_ended(m, a, a->job->row.cost_uusd - cost, now.wall);
    touch_job(m, a->job);
    char what[CORE_TEXT_MAX], which[32] = "";
    describe_end(&a->row, what, sizeof what);
    if (a->job->row.spec.nodes > 1)
        text_format(which, sizeof which, "rank %" PRId32 ": ", a->row.rank);
    history(m, now, "ended",
        (struct history_of){.attempt = a, .a = exit_code, .b = requeues ? lost_ms : 0}, "%s%s",
        which, what);
    if (end != END_SUCCEEDED && end != END_EVICTED) /* its place is for others */
        gang_keep(m, a->job, a->node);
    node_detach(m, a, now);
    account_charge(m, a->job->account, -attempt_mcpu(a), now);
    drill_attempt_stops(a);
    user_requeue_attempt_stops(m, a);
    idle_gpus_attempt_stops(m, a->job);
    link_remove(&a->in_job);
    limits_give(m, a);
    return lost_ms;
}

/* The last rank has ended, and with it the attempt. The lost work is that of the last rank: all
 * ranks did the same work in parallel. */
static void gang_ended(
    struct model *m, struct stamp now, struct job *j, const struct verdict *v, int64_t lost_ms)
{
    j->row.end = v->end;
    j->row.exit_code = j->row.gang_code;
    j->row.reclaims += v->end == END_RECLAIMED || v->end == END_NODE_LOST;
    j->row.gang_end = END_NONE;
    j->row.gang_code = 0;
    storage_settle(m, j->row.id, now.wall);
    if (v->requeues)
        job_requeue(m, j, lost_ms, now);
    else
        job_finish(m, j, now);
}

/* A node whose disk is full gets no work anyway; on the others only this job found no space. */
static bool should_avoid_node(const struct model *m, const struct job *j, int64_t node)
{
    const struct node *n = model_node(m, node);
    bool is_full = n && n->disk_full[0];
    return j->row.end == END_STORE_AWAY ||
           (j->row.end == END_CAPACITY && !is_full && j->row.hold == HOLD_NONE);
}

/* drains: the node fails all jobs, so this failure does not count as the job's own. */
static struct verdict judge(const struct attempt *a, bool drains, bool saved)
{
    struct job *j = a->job;
    if (!drains || !node_failures_excuse(j))
        return retry_judge(&j->row, j->row.gang_end, saved);
    struct verdict v = {.end = END_DRAINED, .requeues = true};
    text_format(
        v.text, sizeof v.text, "it failed there at once, as other jobs did; this uses up no retry");
    return v;
}

void attempt_end(struct model *m, struct stamp now, struct attempt *a, enum end_kind reported,
    int32_t exit_code, const char *text)
{
    struct job *j = a->job;
    enum end_kind own = effective_end(a, reported);
    bool is_gang = j->row.spec.nodes > 1, is_last = list_first(&j->ranks) == list_last(&j->ranks);
    bool ends_all =
        own != END_SUCCEEDED || (j->row.spec.script_on == SCRIPT_ON_FIRST && a->row.rank == 0);
    gang_note(a, own, exit_code); /* stored with the rank's end */
    if (!is_last) {
        rank_end(m, now, a, own, exit_code, text, false);
        retire_attempt(m, a);
        if (ends_all)
            gang_stop(m, j, NULL, false);
        return;
    }
    struct node *on = a->node;
    bool saved = attempt_has_saved(a), drains = node_failures_note(m, a, own, now);
    struct verdict v = judge(a, drains, saved);
    int64_t pause_ms =
        retry_pause(&j->row, v.end, saved || j->node_went, now.wall.ms - a->row.assigned_at.ms);
    if (v.requeues && pause_ms > 0)
        /* the begin time of its submit has passed */
        j->row.spec.begin_at = (struct wall){now.wall.ms + pause_ms};
    licences_give(m, j);
    const int64_t node = a->row.node;
    int64_t lost_ms = rank_end(m, now, a, is_gang ? own : v.end, exit_code,
        v.text[0] && !is_gang ? v.text : text, v.requeues);
    drill_attempt_ended(m, a, now, v.end, lost_ms, v.requeues);
    runtimes_note(m, j, v.end, now.wall.ms - a->row.assigned_at.ms);
    retire_attempt(m, a);
    gang_ended(m, now, j, &v, lost_ms);
    if (v.requeues && should_avoid_node(m, j, node))
        avoid_for_now(m, j, node, now);
    if (drains)
        node_failures_drain(m, on, now);
}

void attempts_end_all(struct model *m, struct stamp now, struct node *n, const char *text)
{
    enum end_kind end = n->row.notice == NOTICE_TYPE_RECLAIM ? END_RECLAIMED : END_NODE_LOST;
    LIST_FOREACH (&n->attempts, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        a->job->node_went = true;
        attempt_end(m, now, a, end, 0, text);
    }
}
