/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a job's attempts: placement, moves, and reports of agents. A report counts only for the
 * job's live attempt on that node; any other is stale (fenced), changes nothing and is safe to
 * repeat.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/prefetch.h"

#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <string.h>

/* The node of a rank, or NULL if it cannot be placed there (any more). */
static struct node *node_of_rank(
    const struct model *m, const struct event *ev, const struct job *j, size_t rank)
{
    int64_t id = rank == 0 ? ev->place.node : ev->place.more[rank - 1];
    struct node *n = model_node(m, id);
    bool twice = rank > 0 && id == ev->place.node;
    for (size_t k = 0; k + 1 < rank; k++)
        twice |= ev->place.more[k] == id;
    return n && !twice && node_takes_work(n) && !node_is_kept_from(n, j->shape) &&
                   node_has_capacity(n, j->shape) && node_has_constraints(n, j->shape) &&
                   node_can_criu(n, j->shape->criu) && maintenance_allows(n, j->shape, ev->now.wall)
               ? n
               : NULL;
}

static int check_place(
    const struct model *m, const struct event *ev, const struct job *j, struct err *e)
{
    size_t ranks = ev->place.n_more + 1;
    int64_t nodes[JOB_NODES_MAX];
    bool may = tree_has(&j->in_shape) && ranks >= (size_t)j->row.spec.nodes_min &&
               ranks <= (size_t)j->row.spec.nodes && !licences_lack(m, j->shape->constraints);
    for (size_t rank = 0; may && rank < ranks; rank++) {
        const struct node *n = node_of_rank(m, ev, j, rank);
        may = n && rack_has_power_with(m, n, j->shape, nodes, (int32_t)rank);
        nodes[rank] = rank == 0 ? ev->place.node : ev->place.more[rank - 1];
    }
    if (may && limits_count_allowed(m, j->shape, nodes, (int32_t)ranks) == (int32_t)ranks)
        return 0;
    return err_set(e, ERR_CONFLICT,
        "job %" PRId64 " cannot be placed on node %" PRId64 "%s (any more)", ev->place.job,
        ev->place.node, ev->place.n_more ? " and others" : "");
}

static void place_rank(
    struct model *m, struct job *j, int32_t rank, struct node *n, struct stamp now)
{
    struct attempt *a = model_alloc_attempt(m);
    a->job = j;
    a->row = (struct attempt_row){
        .job = j->row.id,
        .attempt = j->row.attempts,
        .rank = rank,
        .node = n->row.id,
        .state = ATTEMPT_ASSIGNED,
        .assigned_at = now.wall,
        .started_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .restored_progress = PROGRESS_NONE,
        .price_uusd_h = n->row.price_uusd_h,
        .on_demand_uusd_h = n->row.on_demand_uusd_h,
        .gathered_at = WALL_NONE,
        .kept_at = WALL_NONE,
        .requeue_asked_at = WALL_NONE,
        .gpus_idle_since = WALL_NONE,
    };
    list_push_back(&j->ranks, &a->in_job);
    int64_t before = j->row.cost_uusd;
    ledger_placed(m, a, n, now);
    node_attach(m, n, a);
    account_charge(m, j->account, attempt_mcpu(a), now);
    limits_take(m, a);
    budgets_placed(m, a, j->row.cost_uusd - before, now.wall);
    touch_attempt(m, a);
}

int apply_place(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->place.job, e);
    int rc = j ? check_place(m, ev, j, e) : ERR_NOT_FOUND;
    if (rc)
        return rc;
    const struct queue_position position = {job_position_16(m, j), j->row.id};
    bool owed = quota_owes(j->shape);
    reserve_used(m, j->shape, node_of_rank(m, ev, j, 0));
    if (j->array)
        j = array_begin(m, j, ev->now);
    else
        queue_remove(m, j);
    job_move(m, j, JOB_RUNNING);
    avoid_end(m, j);
    j->node_went = false;
    j->row.attempts++;
    j->row.ranks = (int32_t)ev->place.n_more + 1;
    licences_take(m, j);
    for (int32_t rank = 0; rank < j->row.ranks; rank++)
        place_rank(m, j, rank, node_of_rank(m, ev, j, (size_t)rank), ev->now);
    LIST_FOREACH (&j->ranks, l)
        reserve_overridden(m, LIST_ENTRY(l, struct attempt, in_job)->node, position, owed);
    window_watch(m, j, ev->now.wall);
    const struct attempt *a = job_attempt(j);
    gang_stop_waiting(m, j);
    char others[64] = "";
    if (j->row.ranks > 1)
        text_format(others, sizeof others, " and %" PRId32 " more", j->row.ranks - 1);
    if (j->row.ranks < j->row.spec.nodes)
        text_format(others + strlen(others), sizeof others - strlen(others),
            ", of at most %" PRId32, j->row.spec.nodes);
    history(m, ev->now, "placed", (struct history_of){.attempt = a, .node = a->node},
        "attempt %" PRId64 " on %s (%s)%s", a->row.attempt, a->node->row.name,
        market_names[a->node->row.market], others);
    ret_outcome->id = j->row.id;
    return 0;
}

int apply_move(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->move.job);
    struct attempt *a = j ? job_attempt(j) : NULL;
    if (!a || a->row.attempt != ev->move.attempt || a->row.state != ATTEMPT_RUNNING)
        return err_set(e, ERR_CONFLICT,
            "attempt %" PRId64 " of job %" PRId64 " is not running (any more)", ev->move.attempt,
            ev->move.job);
    job_stop(m, j, END_EVICTED, true);
    model_note_change(m);
    history(m, ev->now, "move", (struct history_of){.attempt = a}, "%s", ev->move.text);
    ret_outcome->id = j->row.id;
    return 0;
}

/* The live attempt that a report is about, or NULL if it is stale. */
static struct attempt *live_attempt(
    const struct model *m, int64_t job, int64_t attempt, int64_t node)
{
    struct job *j = model_job(m, job);
    return job_attempt_on(j, attempt, node);
}

/* The job will need another place soon, and launches for it depend on its checkpoint. */
static void note_saved(struct model *m, const struct attempt *a)
{
    if (a->row.state == ATTEMPT_STOPPING ||
        (a->job->row.spec.nodes > 1 ? !list_is_empty(&m->lifecycle.noticed)
                                    : a->node->row.state == NODE_NOTICED))
        model_note_change(m);
}

/* The store had a newer checkpoint than was reported (its machine was lost before), or an older one
 * had to be used. */
static void adopt_restored(
    struct job_row *j, const struct attempt_row *a, bool behind_already_counted, struct stamp now)
{
    if (a->attempt < j->from_attempt)
        return; /* it is stopping, and the checkpoint that it resumed from was discarded */
    const int age = ckpt_ref_compare(a->restored, j->last_good);
    if (age > 0) {
        j->last_good = a->restored;
        j->last_good_progress = a->restored_progress;
        j->last_good_at = now.wall;
    } else if (age < 0 || (j->from_attempt > 0 && a->restored.attempt == 0)) {
        int64_t from = a->restored.attempt == 0 ? 0 : a->restored_progress;
        j->lost_ms += behind_already_counted ? 0 : a->behind_ms;
        if (j->last_good_progress != PROGRESS_NONE && from != PROGRESS_NONE &&
            from < j->last_good_progress)
            j->lost_steps += j->last_good_progress - from;
    }
    if (a->restored_progress != PROGRESS_NONE)
        j->progress = a->restored_progress;
}

static void describe_restore(struct model *m, const struct event *ev, const struct attempt *a)
{
    int64_t all = a->row.restored_bytes, here = a->row.nearby_bytes;
    char bytes[32], took[32], fetched[32], how[64] = "";
    str_format_bytes((uint64_t)all, bytes, sizeof bytes);
    time_format_duration(ev->started.restore_ms, took, sizeof took);
    str_format_bytes((uint64_t)(all - here), fetched, sizeof fetched);
    if (here > 0)
        text_format(how, sizeof how, "; %s were fetched, the rest was on the node", fetched);
    history(m, ev->now, "restored", (struct history_of){.attempt = a, .a = all, .b = here},
        "restored %s in %s%s", bytes, took, how);
}

/* An array begins with its first task. */
static void begin_notified(struct model *m, struct job *j, struct stamp now)
{
    const int32_t begun = 1 << NOTIFY_BEGIN;
    struct job *array = j->parent;
    notify(m, j, NOTIFY_BEGIN, now);
    notify_watch(m, j);
    if (!array || (array->row.warned & begun) || (array->row.spec.mail & NOTIFY_ARRAY_TASKS))
        return;
    array->row.warned |= begun;
    touch_job(m, array);
    notify(m, array, NOTIFY_BEGIN, now);
}

int apply_started(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct ckpt_ref restored = ev->started.restored;
    if (restored.attempt >= ev->started.attempt)
        return err_set(e, ERR_INVALID,
            "job %" PRId64 ": attempt %" PRId64 " cannot resume from checkpoint %" PRId64
            ".%" PRId64,
            ev->started.job, ev->started.attempt, restored.attempt, restored.sequence);
    struct attempt *a = live_attempt(m, ev->started.job, ev->started.attempt, ev->started.node);
    ret_outcome->id = ev->started.job;
    if (!a || wall_is_set(a->row.started_at))
        return 0;
    struct job *j = a->job;
    if (a->row.state == ATTEMPT_ASSIGNED)
        attempt_start(m, a);
    a->row.started_at = ev->now.wall;
    a->row.text[0] = '\0'; /* reason of a failed start */
    a->row.restored = restored;
    a->row.restored_progress = ev->started.restored_progress;
    a->row.behind_ms = ev->started.behind_ms > 0 ? ev->started.behind_ms : 0;
    a->row.restore_ms += ev->started.restore_ms;
    if (restored.attempt > 0 && j->row.spec.finish_ms > 0)
        job_make_side(j)->restore_ms = max_i64(ev->started.restore_ms, 1);
    a->row.restored_bytes = ev->started.bytes;
    a->row.nearby_bytes =
        ev->started.nearby_bytes < ev->started.bytes ? ev->started.nearby_bytes : ev->started.bytes;
    ledger_started(m, a, ev->now);
    boots_began(m, a, ev->now);
    touch_attempt(m, a);
    if (!wall_is_set(j->row.started_at)) {
        j->row.started_at = ev->now.wall;
        dependencies_started(m, j, ev->now);
    }
    touch_job(m, j);
    if (a->row.rank > 0)
        return 0; /* once per gang */
    if (ev->started.damaged > 0)
        history(m, ev->now, "damaged", (struct history_of){.attempt = a, .a = ev->started.damaged},
            "%" PRId32 " newer checkpoint%s did not verify and %s set aside", ev->started.damaged,
            ev->started.damaged > 1 ? "s" : "", ev->started.damaged > 1 ? "were" : "was");
    if (restored.attempt > 0 && ev->started.bytes > 0)
        describe_restore(m, ev, a);
    adopt_restored(&j->row, &a->row, ev->started.behind_already_counted, ev->now);
    note_saved(m, a);
    char what[CORE_TEXT_MAX];
    text_origin(restored, a->row.restored_progress, "started", "resumed", what, sizeof what);
    history(m, ev->now, "started",
        (struct history_of){.attempt = a, .a = a->row.restored_progress, .b = a->row.restore_ms},
        "%s", what);
    begin_notified(m, j, ev->now);
    drill_attempt_started(m, a, ev->now);
    return 0;
}

int apply_ended(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->ended.end <= END_NONE || ev->ended.end > END_DRILLED)
        return err_set(e, ERR_INVALID, "job %" PRId64 ": an attempt cannot end as %d",
            ev->ended.job, (int)ev->ended.end);
    struct attempt *a = live_attempt(m, ev->ended.job, ev->ended.attempt, ev->ended.node);
    ret_outcome->id = ev->ended.job;
    if (!a)
        return 0;
    a->row.cpu_ms = ev->ended.cpu_ms > a->row.cpu_ms ? ev->ended.cpu_ms : a->row.cpu_ms;
    a->row.cpu_user_ms =
        ev->ended.cpu_user_ms > a->row.cpu_user_ms ? ev->ended.cpu_user_ms : a->row.cpu_user_ms;
    a->row.memory_peak =
        ev->ended.memory_peak > a->row.memory_peak ? ev->ended.memory_peak : a->row.memory_peak;
    a->user_refused = ev->ended.user_refused;
    attempt_end(m, ev->now, a, ev->ended.end, ev->ended.exit_code, ev->ended.text);
    return 0;
}

static void describe_save(const struct event *ev, char *out, size_t size)
{
    char bytes[32], took[32], waited[32], at[48] = "", pause[80] = "";
    str_format_bytes((uint64_t)ev->checkpoint.bytes, bytes, sizeof bytes);
    time_format_duration(ev->checkpoint.took_ms, took, sizeof took);
    if (ev->checkpoint.progress != PROGRESS_NONE)
        text_format(at, sizeof at, " at step %" PRId64, ev->checkpoint.progress);
    time_format_duration(ev->checkpoint.pause_ms, waited, sizeof waited);
    if (ev->checkpoint.pause_ms < ev->checkpoint.took_ms)
        text_format(pause, sizeof pause, "; the program was paused for %s", waited);
    text_format(out, size, "saved %s in %s%s (%s)%s", bytes, took, at, ev->checkpoint.cause, pause);
}

static void checkpoint_row(struct model *m, const struct event *ev)
{
    struct checkpoint_row *c = ADD_ROW(m, checkpoints);
    *c = (struct checkpoint_row){
        .job = ev->checkpoint.job,
        .ref = ev->checkpoint.ref,
        .node = ev->checkpoint.node,
        .saved_at = ev->checkpoint.saved_at,
        .bytes = ev->checkpoint.bytes,
        .stored_bytes = ev->checkpoint.stored_bytes,
        .took_ms = ev->checkpoint.took_ms,
        .pause_ms = ev->checkpoint.pause_ms,
        .progress = ev->checkpoint.progress,
    };
    STR_COPY(c->cause, ev->checkpoint.cause);
}

/* An attempt on-demand may move only if its saves succeed. */
static void note_save(struct model *m, struct attempt *a, bool failed)
{
    if (link_is_in(&a->costly) && (a->row.sequence == 0 || a->save_failed != failed))
        model_note_change(m);
    a->save_failed = failed;
}

int apply_checkpoint(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->checkpoint.bytes < 0 || ev->checkpoint.stored_bytes < 0 || ev->checkpoint.took_ms < 0 ||
        ev->checkpoint.pause_ms < 0)
        return err_set(e, ERR_INVALID,
            "job %" PRId64 ": the size or a duration of a checkpoint is negative",
            ev->checkpoint.job);
    struct ckpt_ref ref = ev->checkpoint.ref;
    struct attempt *a = live_attempt(m, ev->checkpoint.job, ref.attempt, ev->checkpoint.node);
    ret_outcome->id = ev->checkpoint.job;
    if (!a || ref.sequence <= a->row.sequence)
        return 0; /* fenced, or already reported */
    struct job_row *j = &a->job->row;
    /* the agent's clock must not put a save into the future */
    struct wall saved_at =
        ev->checkpoint.saved_at.ms < ev->now.wall.ms ? ev->checkpoint.saved_at : ev->now.wall;
    note_save(m, a, false);
    a->row.sequence = ref.sequence;
    prefetch_note_save(a, ev->checkpoint.bytes, ev->checkpoint.stored_bytes);
    ledger_saved(a, ev->checkpoint.pause_ms, saved_at);
    if (a->row.rank == 0) {
        ledger_stored(m, a, ev->checkpoint.stored_bytes);
        storage_saved(m, a->row.job, ev->checkpoint.stored_bytes, saved_at);
    }
    touch_attempt(m, a);
    if (ckpt_ref_compare(ref, j->last_good) <= 0 || ref.attempt < j->from_attempt)
        return 0; /* reported by another rank already, or not used any more (--from-scratch) */
    procurement_saved(a, saved_at, ev->checkpoint.pause_ms);
    j->last_good = ref;
    j->last_good_progress = ev->checkpoint.progress;
    j->last_good_at = saved_at;
    if (ev->checkpoint.progress != PROGRESS_NONE && ev->checkpoint.progress > j->progress)
        j->progress = ev->checkpoint.progress; /* PROGRESS_NONE is below all values */
    if (ev->checkpoint.progress != PROGRESS_NONE && ev->checkpoint.progress == j->progress)
        procurement_progressed(m, a->job, saved_at);
    no_progress_update(m, a, ev->checkpoint.progress, ev->checkpoint.progress, ev->now);
    no_progress_kept(j);
    j->save_ms = ev->checkpoint.took_ms;
    j->pause_ms = ev->checkpoint.pause_ms;
    j->ckpt_bytes = ev->checkpoint.bytes;
    j->used_checkpointed = 0;
    note_saved(m, a);
    touch_job(m, a->job);
    checkpoint_row(m, ev);
    char what[CORE_TEXT_MAX];
    describe_save(ev, what, sizeof what);
    history(m, ev->now, "saved",
        (struct history_of){.attempt = a, .a = ev->checkpoint.bytes, .b = ev->checkpoint.took_ms},
        "%s", what);
    window_watch(m, a->job, ev->now.wall);
    drill_saved(m, a, ev->now);
    user_requeue_saved(m, a->job);
    return 0;
}

int apply_kept(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->kept.bytes < 0 || ev->kept.bytes > STORED_BYTES_MAX)
        return err_set(e, ERR_INVALID,
            "job %" PRId64 ": the size of its data in the store, %" PRId64
            " bytes, is out of range",
            ev->kept.job, ev->kept.bytes);
    const struct attempt *a = live_attempt(m, ev->kept.job, ev->kept.attempt, ev->kept.node);
    ret_outcome->id = ev->kept.job;
    if (a)
        storage_measured(m, a->row.job, ev->kept.bytes, ev->now.wall);
    return 0;
}

int apply_output_cut(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = job_named(m, ev->output_cut.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.attempt != ev->output_cut.attempt || a->row.rank != ev->output_cut.rank)
            continue;
        ret_outcome->id = j->row.id;
        history(m, ev->now, "output-cut", (struct history_of){.attempt = a},
            "further output of this attempt is discarded: %s", ev->output_cut.text);
        return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "attempt %" PRId64 " of job %s has ended",
        ev->output_cut.attempt, job_ref(&j->row).s);
}

int apply_save_failed(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct attempt *a =
        live_attempt(m, ev->save_failed.job, ev->save_failed.attempt, ev->save_failed.node);
    ret_outcome->id = ev->save_failed.job;
    if (!a)
        return 0;
    if (ev->save_failed.is_restore || !wall_is_set(a->row.started_at)) {
        history(m, ev->now, "restore-failed", (struct history_of){.attempt = a}, "%s",
            ev->save_failed.text);
        return 0;
    }
    note_save(m, a, true);
    history(
        m, ev->now, "save-failed", (struct history_of){.attempt = a}, "%s", ev->save_failed.text);
    user_requeue_save_failed(m, a->job, ev->now, ev->save_failed.text);
    return 0;
}

int apply_no_credentials(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct attempt *a = live_attempt(
        m, ev->no_credentials.job, ev->no_credentials.attempt, ev->no_credentials.node);
    ret_outcome->id = ev->no_credentials.job;
    if (a)
        history(m, ev->now, "no-credentials", (struct history_of){.attempt = a}, "%s",
            ev->no_credentials.text);
    return 0;
}

/* The row's text has the reason until the attempt begins or ends. The history has the first
 * refusal, and each refusal with a new reason. */
int apply_store_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct attempt *a =
        live_attempt(m, ev->store_refused.job, ev->store_refused.attempt, ev->store_refused.node);
    ret_outcome->id = ev->store_refused.job;
    if (!a || a->row.state != ATTEMPT_ASSIGNED || !ev->store_refused.text[0])
        return 0;
    a->store_tries = ev->store_refused.tries;
    if (str_eq(a->row.text, ev->store_refused.text))
        return 0;
    STR_COPY(a->row.text, ev->store_refused.text);
    touch_attempt(m, a);
    history(m, ev->now, "store-refused", (struct history_of){.attempt = a},
        "it cannot begin and retries: %s", ev->store_refused.text);
    return 0;
}

static void note_warm_up(struct model *m, const struct job *j, int64_t first_ms)
{
    struct attempt *a = job_attempt(j);
    if (a->row.rank > 0 || a->row.warm_up_ms > 0 || first_ms <= 0 ||
        !wall_is_set(a->row.started_at))
        return;
    a->row.warm_up_ms = first_ms;
    touch_attempt(m, a);
}

int apply_progress(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct job *j = model_job(m, ev->progress.job);
    ret_outcome->id = ev->progress.job;
    if (!j || !job_attempt(j) || j->row.attempts != ev->progress.attempt)
        return 0;
    j->row.progress = ev->progress.done;
    j->row.progress_total = ev->progress.total;
    note_warm_up(m, j, ev->progress.first_ms);
    procurement_progressed(m, j, ev->now.wall);
    int64_t first = ev->progress.has_first ? ev->progress.first : ev->progress.done;
    no_progress_update(m, job_attempt(j), first, ev->progress.done, ev->now);
    drill_progressed(m, job_attempt(j), ev->now, first);
    return 0;
}

int apply_usage(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct attempt *a = live_attempt(m, ev->usage.job, ev->usage.attempt, ev->usage.node);
    ret_outcome->id = ev->usage.job;
    if (!a)
        return 0;
    a->row.cpu_ms = ev->usage.cpu_ms;
    a->row.cpu_user_ms = ev->usage.cpu_user_ms;
    a->row.memory_peak = ev->usage.memory_peak;
    a->cpu_milli = ev->usage.cpu_milli;
    a->memory_bytes = ev->usage.memory_bytes;
    return 0;
}
