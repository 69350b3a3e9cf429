/* SPDX-License-Identifier: Apache-2.0
 *
 * Events about jobs and their attempts. What an agent tells counts only for the job's live attempt
 * on that node: anything else is stale, changes nothing and is safe to repeat.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/jobs.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/notices.h"
#include "scheduler/core/lifecycle/requeue.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_held.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void job_move(struct model *m, struct job *j, enum job_state to)
{
    int state = (int)j->row.state;
    sm_move(&job_sm, j->row.id, &state, (int)to);
    j->row.state = (enum job_state)state;
    if (to != JOB_PENDING)
        expiry_leave(m, j);
    touch_job(m, j);
}

void job_finish(struct model *m, struct job *j, struct stamp now)
{
    job_move(m, j, JOB_ENDED);
    procurement_leave(m, j);
    j->row.ended_at = now.wall;
    limits_submitted(j->account, -job_submitted(j));
    notify_unwatch(m, j);
    notify_ended(m, j, now);
    drill_job_ends(m, j, now);
    dependencies_ended(m, j, now);
    if (j->parent)
        array_task_ended(m, j, now);
    array_free(j);
    ckpt_gc_add(m, j, now);
    gang_release(m, j);
    avoid_drop(j);
    queue_disown(m, j);
    model_remove_job(m, j);
    window_leave(m, j);
    cron_job_ended(m, &j->row);
    constraints_release(m, j->row.constraints);
    labels_release(m, j->labels);
    retire_job(m, j);
}

const struct job_side *job_side(const struct job *j)
{
    static const struct job_side none;
    return j->side ? j->side : &none;
}

struct job_side *job_make_side(struct job *j)
{
    if (!j->side) {
        j->side = mem_alloc(sizeof *j->side);
        j->side->job = j;
    }
    return j->side;
}

int64_t job_procurement_offer(const struct job *j)
{
    return job_side(j)->procurement_offer;
}

struct job *job_named(const struct model *m, int64_t id, struct err *e)
{
    struct job *j = model_job(m, id);
    if (!j)
        err_set(e, ERR_NOT_FOUND, "job %" PRId64 " is neither queued nor running", id);
    return j;
}

/* The live attempt that an agent's report is about, or NULL: stale. */
static struct attempt *live_attempt(
    const struct model *m, int64_t job, int64_t attempt, int64_t node)
{
    struct job *j = model_job(m, job);
    return job_attempt_on(j, attempt, node);
}

void job_document_changed(struct model *m, int64_t job, const char *patch_json)
{
    if (!patch_json)
        return;
    struct document_change *d = ADD_ROW(m, documents);
    *d = (struct document_change){.job = job, .patch_json = mem_strdup(patch_json)};
}

static void copy_texts(struct model *m, int64_t job, const struct job_texts *texts)
{
    struct spec_change *s = ADD_ROW(m, specs);
    *s = (struct spec_change){
        .job = job,
        .script = mem_strdup(texts->script),
        .args_json = mem_strdup(texts->args_json),
        .env_json = mem_strdup(texts->env_json),
        .cwd = mem_strdup(texts->cwd),
        .labels_json = mem_strdup(texts->labels_json),
        .launch_json = mem_strdup(texts->launch_json),
        .notify_json = mem_strdup(texts->notify_json),
    };
    job_document_changed(m, job, texts->document_json);
}

static int check_tasks(const struct event *ev, struct err *e)
{
    const struct ranges *tasks = ev->submit.tasks;
    if (tasks ? tasks->n == 0 || ev->submit.at_once < 0 : ev->submit.at_once != 0)
        return err_set(
            e, ERR_INVALID, "job '%s': an array has at least one task", ev->submit.job->spec.name);
    return 0;
}

int job_check_row(const struct job_row *r, struct err *e)
{
    if (r->spec.need.cpus < 1 || r->spec.need.gpus < 0 || r->spec.need.memory_mib < 0)
        return err_set(e, ERR_INVALID,
            "job '%s': it needs at least 1 cpu and no negative resources", r->spec.name);
    if (r->spec.nodes < 1 || r->spec.nodes > JOB_NODES_MAX)
        return err_set(
            e, ERR_INVALID, "job '%s': it can have 1 to %d nodes", r->spec.name, JOB_NODES_MAX);
    if (r->spec.nodes_min < 0 || r->spec.nodes_min > r->spec.nodes)
        return err_set(e, ERR_INVALID, "job '%s': it can have 1 to %" PRId32 " nodes at least",
            r->spec.name, r->spec.nodes);
    if (r->spec.time_limit_ms < 0 || r->spec.ckpt_every_ms < 0 || r->spec.ckpt_keep < 1 ||
        r->spec.ckpt_keep_every < 0 || r->spec.drill_tries < 0)
        return err_set(
            e, ERR_INVALID, "job '%s': a time or a count to keep is below its range", r->spec.name);
    if (r->spec.nice < 0 || r->spec.nice > ORDER_NICE_MAX)
        return err_set(
            e, ERR_INVALID, "job '%s': its nice is not in 0 .. %d", r->spec.name, ORDER_NICE_MAX);
    if (r->spec.max_uusd < 0 || r->spec.max_uusd > BUDGET_USD_MAX * 1000000 ||
        r->spec.max_uusd_h < 0 || r->spec.max_uusd_h > BUDGET_USD_MAX * 1000000)
        return err_set(e, ERR_INVALID, "job '%s': what it may cost is not in 0 .. %lld dollars",
            r->spec.name, BUDGET_USD_MAX);
    if (r->spec.drill_tries > 0 && r->spec.method == CKPT_NONE)
        return err_set(e, ERR_INVALID, "job '%s': it saves nothing, so there is nothing to drill",
            r->spec.name);
    return 0;
}

int job_check_retries(const struct job_row *r, struct err *e)
{
    if (!retries_are_none(r) ||
        (r->spec.drill_tries == 0 && !r->spec.window[0] && r->spec.max_uusd == 0))
        return 0;
    return err_set(e, ERR_INVALID, "job '%s': a job that is never queued again cannot have %s",
        r->spec.name,
        r->spec.window[0]      ? "a window: it would end when that closes"
        : r->spec.max_uusd > 0 ? "a cap of its own (max_usd): it would end when that is spent"
                               : "a drill: it would end with that");
}

/* What its user, its pools and the configuration say: of several pools the first that says
 * something of a kind of end. */
int job_resolve_retries(
    const struct model *m, const struct job_row *asked, struct job_row *own, struct err *e)
{
    static const struct retry_options none;
    struct retries of_pools = {0}, own_of;
    char name[CORE_NAME_MAX];
    int rc = 0;
    for (const char *at = asked->spec.pool; !rc && names_next(&at, name, sizeof name);) {
        const struct pool *p = model_pool(m, name);
        rc = p ? retries_parse(p->row.retries, &own_of, e) : 0;
        for (int k = 0; p && !rc && k < RETRY_KINDS; k++)
            of_pools.n[k] = of_pools.n[k] ? of_pools.n[k] : own_of.n[k];
    }
    if (!rc)
        rc = retries_resolve(&asked->spec.retries, &of_pools,
            m->options.retries ? m->options.retries : &none, &own->spec.retries, e);
    return rc ? err_wrap(e, "job '%s'", asked->spec.name) : 0;
}

int submit_check(const struct model *m, const struct event *ev, struct job_row *ret_own,
    struct constraints *ret_constraints, struct err *e)
{
    const struct job_row *r = ev->submit.job;
    struct labels labels;
    int rc = job_check_row(r, e);
    labels_of_submit(m, ev, &labels);
    *ret_constraints = (struct constraints){0};
    if (!rc && ev->submit.texts && ev->submit.texts->constraints)
        rc = constraints_parse(ev->submit.texts->constraints, ret_constraints, e);
    if (!rc)
        rc = constraints_check_submit(m, r, ret_constraints, e);
    if (!rc)
        rc = labels_check_submit(m, r, ret_constraints, &labels, e);
    if (!rc)
        rc = labels_check_team(m, ev->submit.texts, r->user, e);
    if (!rc)
        rc = check_tasks(ev, e);
    *ret_own = (struct job_row){.spec.nice = r->spec.nice};
    STR_COPY(ret_own->user, r->user);
    STR_COPY(ret_own->spec.team, r->spec.team);
    STR_COPY(ret_own->spec.qos, r->spec.qos);
    if (!rc)
        rc = order_resolve(model_order(m), ret_own, e);
    if (!rc)
        rc = job_resolve_retries(m, r, ret_own, e);
    if (!rc) {
        struct job_row again = *r;
        again.spec.retries = ret_own->spec.retries;
        rc = job_check_retries(&again, e);
    }
    if (!rc)
        rc = criu_check_submit(m, r, e);
    if (!rc)
        rc = expiry_check(r, ev->now.wall, e);
    if (!rc)
        rc = procurement_check(r, ev->now.wall, e);
    return rc ? rc : dependencies_check(m, ev, e);
}

/* What of it the cluster decides; own: what of that was looked up. */
static void resolve_spec(struct job_spec *s, const struct job_spec *own, const struct event *ev)
{
    s->nodes_min = s->nodes_min ? s->nodes_min : s->nodes;
    s->script_on = s->nodes > 1 ? s->script_on : SCRIPT_ON_EACH;
    s->retries = own->retries;
    s->finish_ms = procurement_finish_submitted(ev);
    STR_COPY(s->team, own->team);
    STR_COPY(s->qos, own->qos);
}

int apply_submit(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job_row *r = ev->submit.job;
    struct job_row own;
    struct constraints constraints;
    int rc = submit_check(m, ev, &own, &constraints, e);
    struct account *account = rc ? NULL : account_of(m, own.spec.team, own.user);
    if (!rc)
        rc = limits_check_submit(account, ev->submit.tasks ? ranges_count(ev->submit.tasks) : 1, e);
    if (!rc)
        rc = dependencies_check_room(m, account, ev, e);
    if (rc)
        return rc;
    struct job *j = model_alloc_job(m);
    j->row = (struct job_row){
        .id = NEXT_ID(m, job),
        .state = JOB_PENDING,
        .spec = r->spec,
        .constraints = constraints_hold(m, &constraints),
        .hold = r->hold,
        .procurement = r->spec.finish_ms != 0 ? PROCURE_WAIT
                                              : PROCURE_FREE, /* decided before anything else is */
        .eligible_at = WALL_NONE,
        .submitted_at = ev->now.wall,
        .gang_resize_until = WALL_NONE,
        .started_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .last_good_progress = PROGRESS_NONE,
        .last_good_at = WALL_NONE,
        .progress = PROGRESS_NONE,
        .best_progress = PROGRESS_NONE,
        .progress_total = PROGRESS_NONE,
        .cron_at = WALL_NONE,
        .evicted_at = WALL_NONE,
        .queued_mono = ev->now.mono,
    };
    STR_COPY(j->row.user, r->user);
    STR_COPY(j->row.script_key, r->script_key);
    resolve_spec(&j->row.spec, &own.spec, ev);
    j->certified_at = certificate_date(m, j->row.script_key);
    j->account = account;
    j->labels = labels_hold(m, ev->submit.texts ? ev->submit.texts->labels_json : NULL);
    model_put_job(m, j);
    j->least = j->row.spec.nodes;
    queue_adopt(m, j);
    array_attach(m, j, ev);
    limits_submitted(account, job_submitted(j));
    dependencies_adopt(m, j);
    dependencies_attach(m, j, ev);
    job_enqueue(m, j, ev->now);
    touch_job(m, j);
    if (ev->submit.texts)
        copy_texts(m, j->row.id, ev->submit.texts);
    history(m, ev->now, "submitted", (struct history_of){.job = j}, "'%s' submitted by %s",
        j->row.spec.name, j->row.user);
    ret_outcome->id = j->row.id;
    return 0;
}

static void cancel(struct model *m, struct job *j, const char *by, struct stamp now)
{
    if (j->row.state == JOB_CANCELLING)
        return;
    history(m, now, "cancel", (struct history_of){.job = j, .attempt = job_attempt(j)},
        "cancelled by %s", by);
    if (job_attempt(j)) {
        job_move(m, j, JOB_CANCELLING);
        job_stop(m, j, END_USER, false);
        model_note_change(m); /* it is no demand any more */
    } else {
        j->row.end = END_USER;
        history(m, now, "ended", (struct history_of){.job = j}, "user: cancelled before it ran%s",
            j->row.attempts ? " again" : "");
        job_finish(m, j, now);
    }
}

static int cancel_array(struct model *m, struct job *j, const struct event *ev, struct err *e)
{
    const struct ranges *which = ev->cancel.tasks;
    int rc = array_drop(m, j, which, END_USER, ev->now, e);
    if (rc)
        return rc;
    history(m, ev->now, "cancel", (struct history_of){.job = j}, "%s cancelled by %s",
        which ? "tasks" : "all tasks", ev->cancel.by);
    j->array->n_tasks++; /* it stays until all of them are seen */
    LIST_FOREACH (&j->array->tasks, l) {
        struct job *t = LIST_ENTRY(l, struct job_side, in_array)->job;
        if (!which || ranges_has(which, t->row.array_index))
            cancel(m, t, ev->cancel.by, ev->now);
    }
    j->array->n_tasks--;
    array_settle(m, j, ev->now);
    return 0;
}

int apply_cancel(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->cancel.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (j->array)
        return cancel_array(m, j, ev, e);
    if (ev->cancel.tasks)
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " is no array", j->row.id);
    cancel(m, j, ev->cancel.by, ev->now);
    return 0;
}

void attempts_ask_save(struct model *m, struct job *j)
{
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *rank = LIST_ENTRY(l, struct attempt, in_job);
        rank->row.saves_asked++;
        touch_attempt(m, rank);
    }
}

int apply_save(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->save.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    const struct attempt *a = job_attempt(j);
    if (j->row.spec.method == CKPT_NONE)
        return err_set(e, ERR_CONFLICT,
            "job %" PRId64 " takes no part in checkpoints: submit it with --checkpoint signal or "
            "coop, and it can be saved",
            j->row.id);
    if (!a || (a->row.state == ATTEMPT_STOPPING && !a->row.save_first))
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " %s: there is nothing to save", j->row.id,
            a ? "is being stopped" : "does not run now");
    ret_outcome->id = j->row.id;
    if (a->row.state == ATTEMPT_STOPPING)
        return 0; /* it is being saved */
    attempts_ask_save(m, j);
    history(
        m, ev->now, "save", (struct history_of){.attempt = a}, "%s asked for a save", ev->save.by);
    return 0;
}

/* What CRIU dumps is a tree of processes: one that is not of it would make every checkpoint
 * fail. */
int apply_enter(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = job_named(m, ev->enter.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    if (j->row.spec.method == CKPT_CRIU)
        return err_set(e, ERR_CONFLICT,
            "job %" PRId64 " is checkpointed by CRIU, which knows only what the script has "
            "started: no command can be run in it",
            j->row.id);
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.rank != ev->enter.rank)
            continue;
        if (a->row.state != ATTEMPT_RUNNING)
            return err_set(e, ERR_CONFLICT, "job %" PRId64 " %s on %s", j->row.id,
                a->row.state == ATTEMPT_ASSIGNED ? "is only being started" : "is being stopped",
                a->node->row.name);
        ret_outcome->id = j->row.id;
        history(m, ev->now, "enter", (struct history_of){.attempt = a},
            "%s runs a command in it: %s", ev->enter.by, ev->enter.text);
        return 0;
    }
    return job_attempt(j) ? err_set(e, ERR_NOT_FOUND,
                                "job %" PRId64 " runs on %" PRId32 " node%s: ranks count from 0",
                                j->row.id, j->row.ranks, j->row.ranks == 1 ? "" : "s")
                          : err_set(e, ERR_CONFLICT, "job %" PRId64 " does not run now", j->row.id);
}

/* The node of a rank, or NULL: it cannot be there (any more). */
static struct node *node_of_rank(
    const struct model *m, const struct event *ev, const struct job *j, size_t rank)
{
    int64_t id = rank == 0 ? ev->place.node : ev->place.more[rank - 1];
    struct node *n = model_node(m, id);
    bool twice = rank > 0 && id == ev->place.node;
    for (size_t k = 0; k + 1 < rank; k++)
        twice |= ev->place.more[k] == id;
    return n && !twice && node_takes_work(n) && !node_is_kept_from(n, j->shape) &&
                   node_has_room(n, j->shape) && node_has_constraints(n, j->shape) &&
                   node_can_criu(n, j->shape->criu)
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
        may = n && rack_has_room_beside(m, n, j->shape, nodes, (int32_t)rank);
        nodes[rank] = rank == 0 ? ev->place.node : ev->place.more[rank - 1];
    }
    if (may && limits_cut(m, j->shape, nodes, (int32_t)ranks) == (int32_t)ranks)
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
    const struct place stood = {job_place_16(m, j), j->row.id};
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
        reserve_overridden(m, LIST_ENTRY(l, struct attempt, in_job)->node, stood, owed);
    window_watch(m, j, ev->now.wall);
    const struct attempt *a = job_attempt(j);
    gang_let_go(m, j);
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
            "attempt %" PRId64 " of job %" PRId64 " does not run (any more)", ev->move.attempt,
            ev->move.job);
    job_stop(m, j, END_EVICTED, true);
    model_note_change(m);
    history(m, ev->now, "move", (struct history_of){.attempt = a}, "%s", ev->move.text);
    ret_outcome->id = j->row.id;
    return 0;
}

static bool ref_newer(struct ckpt_ref a, struct ckpt_ref b)
{
    return a.attempt != b.attempt ? a.attempt > b.attempt : a.sequence > b.sequence;
}

static void describe_start(const struct attempt_row *a, char *out, size_t size)
{
    if (a->restored.attempt == 0)
        text_format(out, size, "started from the beginning");
    else if (a->restored_progress == PROGRESS_NONE)
        text_format(out, size, "resumed from checkpoint %" PRId64 ".%" PRId64, a->restored.attempt,
            a->restored.sequence);
    else
        text_format(out, size, "resumed at step %" PRId64 " from checkpoint %" PRId64 ".%" PRId64,
            a->restored_progress, a->restored.attempt, a->restored.sequence);
}

/* It will need another place soon, and what is launched for it depends on what it has saved. */
static void note_saved(struct model *m, const struct attempt *a)
{
    if (a->row.state == ATTEMPT_STOPPING ||
        (a->job->row.spec.nodes > 1 ? !list_is_empty(&m->lifecycle.noticed)
                                    : a->node->row.state == NODE_NOTICED))
        model_note_change(m);
}

/* The store had a newer checkpoint than was told (its machine went before it could), or an older
 * one had to do. */
static void adopt_restored(
    struct job_row *j, const struct attempt_row *a, bool behind_again, struct stamp now)
{
    if (a->attempt < j->from_attempt)
        return; /* it is being stopped, and what it goes on from is given up */
    if (ref_newer(a->restored, j->last_good)) {
        j->last_good = a->restored;
        j->last_good_progress = a->restored_progress;
        j->last_good_at = now.wall;
    } else if (ref_newer(j->last_good, a->restored) ||
               (j->from_attempt > 0 && a->restored.attempt == 0)) {
        int64_t from = a->restored.attempt == 0 ? 0 : a->restored_progress;
        j->lost_ms += behind_again ? 0 : a->behind_ms;
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
        text_format(how, sizeof how, "; %s were fetched, the node had the rest", fetched);
    history(m, ev->now, "restored", (struct history_of){.attempt = a, .a = all, .b = here},
        "restored %s in %s%s", bytes, took, how);
}

/* An array begins with the first of its tasks. */
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
    a->row.text[0] = '\0'; /* why it could not begin */
    a->row.restored = restored;
    a->row.restored_progress = ev->started.restored_progress;
    a->row.behind_ms = ev->started.behind_ms > 0 ? ev->started.behind_ms : 0;
    a->row.restore_ms += ev->started.restore_ms;
    a->row.restored_bytes = ev->started.bytes;
    a->row.nearby_bytes =
        ev->started.nearby_bytes < ev->started.bytes ? ev->started.nearby_bytes : ev->started.bytes;
    ledger_started(m, a, ev->now);
    touch_attempt(m, a);
    if (!wall_is_set(j->row.started_at)) {
        j->row.started_at = ev->now.wall;
        dependencies_started(m, j, ev->now);
    }
    touch_job(m, j);
    if (a->row.rank > 0)
        return 0; /* the gang's history is told once */
    if (ev->started.damaged > 0)
        history(m, ev->now, "damaged", (struct history_of){.attempt = a, .a = ev->started.damaged},
            "%" PRId32 " newer checkpoint%s did not verify and %s set aside", ev->started.damaged,
            ev->started.damaged > 1 ? "s" : "", ev->started.damaged > 1 ? "were" : "was");
    if (restored.attempt > 0 && ev->started.bytes > 0)
        describe_restore(m, ev, a);
    adopt_restored(&j->row, &a->row, ev->started.behind_again, ev->now);
    note_saved(m, a);
    char what[CORE_TEXT_MAX];
    describe_start(&a->row, what, sizeof what);
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
        text_format(pause, sizeof pause, "; the program waited for %s of it", waited);
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

/* Whether one on-demand may move depends on whether it can save. */
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
        return err_set(e, ERR_INVALID, "job %" PRId64 ": a checkpoint of negative size or time",
            ev->checkpoint.job);
    struct ckpt_ref ref = ev->checkpoint.ref;
    struct attempt *a = live_attempt(m, ev->checkpoint.job, ref.attempt, ev->checkpoint.node);
    ret_outcome->id = ev->checkpoint.job;
    if (!a || ref.sequence <= a->row.sequence)
        return 0; /* fenced, or told before */
    struct job_row *j = &a->job->row;
    /* the agent's clock must not put a save into the future */
    struct wall saved_at =
        ev->checkpoint.saved_at.ms < ev->now.wall.ms ? ev->checkpoint.saved_at : ev->now.wall;
    note_save(m, a, false);
    a->row.sequence = ref.sequence;
    ledger_saved(a, ev->checkpoint.pause_ms, saved_at);
    if (a->row.rank == 0) {
        ledger_stored(m, a, ev->checkpoint.stored_bytes);
        storage_saved(m, a->row.job, ev->checkpoint.stored_bytes, saved_at);
    }
    touch_attempt(m, a);
    if (!ref_newer(ref, j->last_good) || ref.attempt < j->from_attempt)
        return 0; /* another rank of its gang has told it, or nobody wants it any more */
    procurement_saved(a, saved_at);
    j->last_good = ref;
    j->last_good_progress = ev->checkpoint.progress;
    j->last_good_at = saved_at;
    if (ev->checkpoint.progress != PROGRESS_NONE && ev->checkpoint.progress > j->progress)
        j->progress = ev->checkpoint.progress; /* PROGRESS_NONE is below all */
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
    requeue_saved(m, a->job);
    return 0;
}

int apply_kept(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->kept.bytes < 0 || ev->kept.bytes > STORED_BYTES_MAX)
        return err_set(e, ERR_INVALID, "job %" PRId64 ": %" PRId64 " bytes cannot be kept",
            ev->kept.job, ev->kept.bytes);
    const struct attempt *a = live_attempt(m, ev->kept.job, ev->kept.attempt, ev->kept.node);
    ret_outcome->id = ev->kept.job;
    if (a)
        storage_told(m, a->row.job, ev->kept.bytes, ev->now.wall);
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
            "no more output of this attempt is kept: %s", ev->output_cut.text);
        return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "attempt %" PRId64 " of job %" PRId64 " has ended",
        ev->output_cut.attempt, j->row.id);
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
    note_save(m, a, true);
    history(
        m, ev->now, "save-failed", (struct history_of){.attempt = a}, "%s", ev->save_failed.text);
    requeue_save_failed(m, a->job, ev->now, ev->save_failed.text);
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

/* Its text says so until it begins, or ends and has another. The history has the first refusal, and
 * each with another reason. */
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
        "it cannot begin, and goes on trying: %s", ev->store_refused.text);
    return 0;
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
