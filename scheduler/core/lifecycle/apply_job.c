/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of jobs: submit, state changes, leaving the model, and users' requests to cancel, save or
 * enter one. Attempts are in apply_attempt.c.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "job/member.h"
#include <inttypes.h>

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
    idle_gpus_leave(m, j);
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
    cron_job_ended(m, &j->row, now);
    constraints_unref(m, j->row.constraints);
    labels_unref(m, j->labels);
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

int job_check_row(const struct job_row *r, const struct job_row *was, struct err *e)
{
    if (job_spec_check(&r->spec, was ? &was->spec : NULL, e) != 0)
        return err_wrap(e, "job '%s'", r->spec.name);
    if (r->spec.nodes_min < 0 || r->spec.nodes_min > r->spec.nodes)
        return err_set(e, ERR_INVALID,
            "job '%s': the minimum number of nodes must be 1 to %" PRId32, r->spec.name,
            r->spec.nodes);
    if (r->spec.drill_tries > 0 && r->spec.method == CKPT_NONE)
        return err_set(e, ERR_INVALID, "job '%s': it takes no checkpoints, so it cannot be drilled",
            r->spec.name);
    return 0;
}

int job_check_retries(const struct job_row *r, struct err *e)
{
    if (!retries_are_none(r) ||
        (r->spec.drill_tries == 0 && !r->spec.window[0] && r->spec.max_uusd == 0))
        return 0;
    return err_set(e, ERR_INVALID, "job '%s': a job that is never requeued cannot have %s",
        r->spec.name,
        r->spec.window[0]      ? "a window: it would end when the window closes"
        : r->spec.max_uusd > 0 ? "a cap of its own (max_usd): it would end when the cap is spent"
                               : "a drill: it would end with the drill");
}

/* Combines the settings of user, pools and configuration. Of several pools the first with a setting
 * for a kind of end applies. */
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
    int rc = job_check_row(r, NULL, e);
    const struct labels *own = labels_of_submit(m, ev, &labels) ? &labels : NULL;
    *ret_constraints = (struct constraints){0};
    if (!rc && ev->submit.texts && ev->submit.texts->constraints)
        rc = constraints_read(m, ev->submit.texts->constraints, ret_constraints, e);
    if (!rc)
        rc = constraints_check_submit(m, r, ret_constraints, e);
    if (!rc)
        rc = labels_check_submit(m, r, ret_constraints, own, e);
    if (!rc)
        rc = labels_check_team(m, ev->submit.texts, r->user, e);
    if (!rc)
        rc = check_tasks(ev, e);
    *ret_own = (struct job_row){.spec.nice = r->spec.nice};
    STR_COPY(ret_own->user, r->user);
    STR_COPY(ret_own->spec.team, r->spec.team);
    STR_COPY(ret_own->spec.qos, r->spec.qos);
    if (!rc)
        rc = policy_resolve(model_policy(m), ret_own, e);
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

/* Sets the members that the cluster decides; own has the looked-up ones. */
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
        rc = dependencies_check_limit(m, account, ev, e);
    if (rc)
        return rc;
    struct job *j = model_alloc_job(m);
    j->row = (struct job_row){
        .id = NEXT_ID(m, job),
        .state = JOB_PENDING,
        .spec = r->spec,
        .constraints = constraints_intern(m, &constraints),
        .hold = r->hold,
        .procurement =
            r->spec.finish_ms != 0 ? PROCURE_WAIT : PROCURE_FREE, /* until the first decision */
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
        .idle_gpus_told_at = WALL_NONE,
        .queued_mono = ev->now.mono,
    };
    STR_COPY(j->row.user, r->user);
    STR_COPY(j->row.script_key, r->script_key);
    resolve_spec(&j->row.spec, &own.spec, ev);
    j->certified_at = certificate_date(m, j->row.script_key);
    j->account = account;
    j->labels = labels_intern(m, ev->submit.texts ? ev->submit.texts->labels_json : NULL);
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
        job_stop(m, j, END_CANCELLED, false);
        model_note_change(m); /* it needs no machine any more */
    } else {
        j->row.end = END_CANCELLED;
        history(m, now, "ended", (struct history_of){.job = j}, "user: cancelled before it ran%s",
            j->row.attempts ? " again" : "");
        job_finish(m, j, now);
    }
}

static int cancel_array(struct model *m, struct job *j, const struct event *ev, struct err *e)
{
    const struct ranges *which = ev->cancel.tasks;
    int rc = which ? array_check_tasks(j, which, e) : 0;
    if (!rc && which && array_all_ended(j, which))
        rc = err_set(e, ERR_CONFLICT,
            "these tasks of array %" PRId64 " have ended: there is nothing to cancel", j->row.id);
    if (rc)
        return rc;
    rc = array_drop(m, j, which, END_CANCELLED, ev->now, e);
    if (rc)
        return rc;
    history(m, ev->now, "cancel", (struct history_of){.job = j}, "%s cancelled by %s",
        which ? "tasks" : "all tasks", ev->cancel.by);
    j->array->n_tasks++; /* keeps the array until all are handled */
    LIST_FOREACH (&j->array->tasks, l) {
        struct job *t = LIST_ENTRY(l, struct job_side, in_array)->job;
        if (!which || ranges_has(which, t->row.array_index))
            cancel(m, t, ev->cancel.by, ev->now);
    }
    j->array->n_tasks--;
    array_advance(m, j, ev->now);
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
        return err_set(e, ERR_CONFLICT, "job %s is not an array", job_ref(&j->row).s);
    cancel(m, j, ev->cancel.by, ev->now);
    return 0;
}

int apply_save(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->save.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    const struct attempt *a = job_attempt(j);
    if (j->row.spec.method == CKPT_NONE)
        return err_set(e, ERR_CONFLICT,
            "job %s takes no checkpoints: only jobs submitted with --checkpoint, such as "
            "--checkpoint signal, can be saved",
            job_ref(&j->row).s);
    if (!a || (a->row.state == ATTEMPT_STOPPING && !a->row.save_first))
        return err_set(e, ERR_CONFLICT, "job %s %s: there is nothing to save", job_ref(&j->row).s,
            a ? "is being stopped" : "is not running");
    ret_outcome->id = j->row.id;
    if (a->row.state == ATTEMPT_STOPPING)
        return 0; /* a save is in progress */
    attempts_ask_save(m, j);
    history(
        m, ev->now, "save", (struct history_of){.attempt = a}, "%s requested a save", ev->save.by);
    return 0;
}

/* CRIU dumps a process tree: a process outside of it would make every checkpoint fail. */
int apply_enter(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = job_named(m, ev->enter.job, e);
    if (!j)
        return ERR_NOT_FOUND;
    if (j->row.spec.method == CKPT_CRIU)
        return err_set(e, ERR_CONFLICT,
            "job %s is checkpointed by CRIU, which saves only processes of the script: no "
            "command can be run in it",
            job_ref(&j->row).s);
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.rank != ev->enter.rank)
            continue;
        if (a->row.state != ATTEMPT_RUNNING)
            return err_set(e, ERR_CONFLICT, "job %s %s on %s", job_ref(&j->row).s,
                a->row.state == ATTEMPT_ASSIGNED ? "is only being started" : "is being stopped",
                a->node->row.name);
        ret_outcome->id = j->row.id;
        history(m, ev->now, "enter", (struct history_of){.attempt = a},
            "%s runs a command in it: %s", ev->enter.by, ev->enter.text);
        return 0;
    }
    return job_attempt(j)
               ? err_set(e, ERR_NOT_FOUND, "job %s runs on %" PRId32 " node%s: ranks count from 0",
                     job_ref(&j->row).s, j->row.ranks, j->row.ranks == 1 ? "" : "s")
               : err_set(e, ERR_CONFLICT, "job %s is not running", job_ref(&j->row).s);
}
