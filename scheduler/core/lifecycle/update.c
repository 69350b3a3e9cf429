/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that are changed after their submit: all of what one request asks for, or nothing and the
 * reason.
 *
 *  1. What a job becomes is looked at as a submit of it would be, as far as it changes: the same
 *     limits, the same refusals, the same that can never run. What it was before, and what has
 *     become of its pool or the configuration since, is no reason to refuse.
 *  2. One that waits leaves its shape before anything of it changes, and enters the one that it
 *     then has where it belongs: since when it waits counts as before. Nodes that were kept for it
 *     between two attempts it keeps unless it may need others.
 *  3. What runs has its place: only what does not touch that changes. A time limit counts from the
 *     start of the attempt, so it may be over at once; the agents are told, and end it as ever.
 *  4. An array is changed as far as it has not begun; a task that has begun is a job, and is
 *     changed by itself.
 *
 * A job depends on those that were submitted before it only: so no chain of them is ever closed.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/jobs.h"
#include "scheduler/core/lifecycle/notices.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_held.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/deadlines.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/str.h"
#include <inttypes.h>
#include <string.h>

const char *const update_field_names[] = {"name", "time_limit_ms", "retry", "nice",
    "deadline_at_ms", "finish_by_ms", "work_ms", "at_once", "max_uusd", "max_uusd_per_hour", "pool",
    "market", "team", "qos", "begin_at_ms", "window", "depends", "cpus", "memory_mib", "gpus",
    "nodes", "on_loss", "gpu_model", "gpu_memory_mib", "constraint", "resources", "licences",
    "exclusive", "nodelist", "exclude", "input", NULL};

#define BIT(field) UPDATE_BIT(UPDATE_##field)
#define WHILE_RUNNING                                                                              \
    (BIT(NAME) | BIT(TIME_LIMIT) | BIT(RETRIES) | BIT(NICE) | BIT(DEADLINE) | BIT(FINISH) |        \
        BIT(WORK) | BIT(MAX_USD) | BIT(MAX_USD_H))
#define OF_EXTRAS                                                                                  \
    (BIT(GPU_MODEL) | BIT(GPU_MEMORY) | BIT(CONSTRAINT) | BIT(RESOURCES) | BIT(LICENCES) |         \
        BIT(EXCLUSIVE) | BIT(NODELIST) | BIT(EXCLUDE) | BIT(INPUT))
#define OF_NODE                                                                                    \
    (BIT(POOL) | BIT(MARKET) | BIT(CPUS) | BIT(MEMORY) | BIT(GPUS) | BIT(NODES) | OF_EXTRAS)
/* It may be eligible now, or not, or be somebody else's, or need other nodes than those that are
 * kept for it. */
#define WAITS_ANEW (OF_NODE | BIT(TEAM) | BIT(BEGIN) | BIT(WINDOW) | BIT(DEPENDS) | BIT(ON_LOSS))
/* A name may be what a budget is of. */
#define OF_SHAPE                                                                                   \
    (OF_NODE | BIT(NAME) | BIT(TEAM) | BIT(QOS) | BIT(NICE) | BIT(TIME_LIMIT) | BIT(RETRIES) |     \
        BIT(FINISH) | BIT(MAX_USD) | BIT(MAX_USD_H))

/* What a job is to become. */
struct wanted {
    struct job_row row;
    struct extras extras;
    struct event submit; /* as which what it depends on is looked at */
};

/* ---- may it be changed ---- */

static const char *first_name(int32_t fields)
{
    for (int k = 0; k < UPDATE_FIELDS; k++)
        if (fields & UPDATE_BIT(k))
            return update_field_names[k];
    return "";
}

static int check_fields(const struct job *j, int32_t fields, struct err *e)
{
    int64_t id = j->row.id;
    if (j->row.state == JOB_CANCELLING)
        return err_set(e, ERR_CONFLICT,
            "job %" PRId64 " is being cancelled: nothing of it can be changed any more", id);
    if (j->row.state == JOB_UNFOLDED)
        return err_set(e, ERR_CONFLICT,
            "%s: all tasks of array %" PRId64
            " have begun: change those that have not ended by themselves, as %" PRId64 "_7",
            first_name(fields), id, id);
    if ((fields & BIT(AT_ONCE)) && !j->array)
        return err_set(e, ERR_CONFLICT,
            "at_once: job %" PRId64 " is %s: only an array has a number of tasks that run at once",
            id, j->parent ? "a task of an array" : "no array");
    if ((fields & BIT(DEPENDS)) && j->parent)
        return err_set(e, ERR_CONFLICT,
            "depends: job %" PRId64 " is a task of array %" PRId64
            " that has begun: what it depends on cannot be changed any more",
            id, j->row.array);
    if (j->row.state == JOB_RUNNING && (fields & ~WHILE_RUNNING))
        return err_set(e, ERR_CONFLICT,
            "%s: job %" PRId64 " runs, and this can be changed only while it waits: hold it, queue "
            "it again (belay requeue), change it and release it",
            first_name(fields & ~WHILE_RUNNING), id);
    return 0;
}

/* ---- what it becomes ---- */

static void take_names(struct job_row *r, const struct job_row *to, int32_t fields)
{
    if (fields & BIT(NAME))
        STR_COPY(r->name, to->name);
    if (fields & BIT(POOL))
        STR_COPY(r->pool, to->pool);
    if (fields & BIT(WINDOW))
        STR_COPY(r->window, to->window);
    if (fields & BIT(TEAM))
        STR_COPY(r->team, to->team);
    if (fields & BIT(QOS))
        STR_COPY(r->qos, to->qos);
}

static void take_nodes(struct job_row *r, const struct job_row *to)
{
    r->nodes = to->nodes;
    r->nodes_min = to->nodes_min ? to->nodes_min : to->nodes;
    r->script_on = r->nodes > 1 ? to->script_on : SCRIPT_ON_EACH;
    r->ranks = r->ranks < r->nodes ? r->ranks : r->nodes;
}

static void take_numbers(struct job_row *r, const struct job_row *to, int32_t fields)
{
    if (fields & BIT(TIME_LIMIT))
        r->time_limit_ms = to->time_limit_ms;
    if (fields & BIT(NICE))
        r->nice = to->nice;
    if (fields & BIT(DEADLINE))
        r->deadline_ms = to->deadline_ms;
    if (fields & BIT(WORK))
        r->work_ms = to->work_ms;
    if (fields & BIT(MAX_USD))
        r->max_uusd = to->max_uusd;
    if (fields & BIT(MAX_USD_H))
        r->max_uusd_h = to->max_uusd_h;
    if (fields & BIT(MARKET))
        r->market = to->market;
    if (fields & BIT(BEGIN))
        r->begin_at = to->begin_at;
    if (fields & BIT(DEPENDS))
        r->depends_any = to->depends_any;
    if (fields & BIT(CPUS))
        r->need.cpus = to->need.cpus;
    if (fields & BIT(MEMORY))
        r->need.memory_mib = to->need.memory_mib;
    if (fields & BIT(GPUS))
        r->need.gpus = to->need.gpus;
    if (fields & BIT(NODES))
        take_nodes(r, to);
    if (fields & BIT(ON_LOSS))
        r->on_loss = to->on_loss;
}

static int take_extras(
    const struct model *m, const struct event *ev, struct wanted *w, struct err *e)
{
    int32_t fields = ev->update.fields;
    const struct extras *old = model_extras(m, w->row.extras);
    struct extras to = {0};
    int rc = ev->update.extras ? extras_parse(ev->update.extras, &to, e) : 0;
    if (rc)
        return rc;
    w->extras = old ? *old : (struct extras){0};
    if (fields & BIT(GPU_MODEL))
        STR_COPY(w->extras.gpu.model, to.gpu.model);
    if (fields & BIT(GPU_MEMORY))
        w->extras.gpu.memory_mib = to.gpu.memory_mib;
    if (fields & BIT(CONSTRAINT))
        w->extras.constraint = to.constraint;
    if (fields & BIT(RESOURCES))
        w->extras.resources = to.resources;
    if (fields & BIT(LICENCES))
        w->extras.licences = to.licences;
    if (fields & BIT(EXCLUSIVE))
        w->extras.exclusive = to.exclusive;
    if (fields & BIT(NODELIST))
        STR_COPY(w->extras.nodes, to.nodes);
    if (fields & BIT(EXCLUDE))
        STR_COPY(w->extras.exclude, to.exclude);
    if (fields & BIT(INPUT))
        w->extras.input = to.input;
    return 0;
}

/* ---- as a submit of it would be looked at ---- */

static int check_place(const struct model *m, const struct wanted *w, const struct labels *labels,
    int32_t fields, struct err *e)
{
    int rc = fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS) | BIT(NODES) | OF_EXTRAS)
                 ? extras_check_submit(m, &w->row, &w->extras, e)
                 : 0;
    if (!rc && (fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS) | OF_EXTRAS)))
        rc = labels_check_submit(m, &w->row, &w->extras, labels, e);
    return !rc && (fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS)))
               ? criu_check_submit(m, &w->row, e)
               : rc;
}

/* What of them does not change is not asked for. */
static int check_order(const struct model *m, struct wanted *w, int32_t fields, struct err *e)
{
    struct job_row own = w->row;
    if (!(fields & (BIT(TEAM) | BIT(QOS))))
        return 0;
    if (!(fields & BIT(TEAM)))
        own.team[0] = '\0';
    if (!(fields & BIT(QOS)))
        own.qos[0] = '\0';
    int rc = order_resolve(model_order(m), &own, e);
    if (!rc)
        take_names(&w->row, &own, fields & (BIT(TEAM) | BIT(QOS)));
    return rc;
}

/* Those that the wish names. What was used of one that is less now is used up. */
static int check_retries(const struct model *m, const struct job_row *to, struct wanted *w,
    int32_t fields, struct err *e)
{
    struct job_row asked = w->row, own = {0};
    asked.retries = to->retries;
    int rc = fields & BIT(RETRIES) ? job_resolve_retries(m, &asked, &own, e) : 0;
    for (int k = 0; !rc && (fields & BIT(RETRIES)) && k < RETRY_KINDS; k++) {
        int32_t n = to->retries.n[k] ? own.retries.n[k] : w->row.retries.n[k];
        w->row.retries.n[k] = n;
        w->row.used[k] = w->row.used[k] < n ? w->row.used[k] : n;
    }
    return !rc && (fields & (BIT(RETRIES) | BIT(WINDOW) | BIT(MAX_USD)))
               ? job_check_retries(&w->row, e)
               : rc;
}

static int check_depends(const struct model *m, const struct event *ev, const struct job *j,
    struct wanted *w, struct err *e)
{
    w->submit = (struct event){.type = EV_SUBMIT,
        .now = ev->now,
        .submit = {.job = &w->row,
            .depends = ev->update.depends,
            .n_depends = ev->update.n_depends,
            .tasks = j->array ? &j->array->left : NULL}};
    for (size_t i = 0; i < ev->update.n_depends; i++) {
        const struct depend_ask *a = &ev->update.depends[i];
        if (a->on >= j->row.id)
            return err_set(e, ERR_INVALID,
                "depends: %s: job %" PRId64
                " can depend only on jobs that were submitted before it; have the other one wait "
                "for it, or submit it again",
                depend_text(a->kind, a->on, a->of_task, a->task).s, j->row.id);
    }
    return dependencies_check(m, &w->submit, e);
}

/* Into ret_wanted what the job becomes, if it may. */
static int check(const struct model *m, const struct event *ev, const struct job *j,
    struct wanted *ret_wanted, struct err *e)
{
    int32_t fields = ev->update.fields;
    struct wanted *w = ret_wanted;
    int rc = check_fields(j, fields, e);
    if (rc)
        return rc;
    *w = (struct wanted){.row = j->row};
    take_names(&w->row, ev->update.to, fields);
    take_numbers(&w->row, ev->update.to, fields);
    if (fields & BIT(FINISH))
        w->row.finish_ms = pace_finish_ms(ev->update.to, ev->now.wall);
    if ((fields & BIT(FINISH)) && (w->row.finish_ms == 0 || j->row.finish_ms == 0)) {
        /* until it is decided: at once */
        w->row.pace = w->row.finish_ms > 0 && j->row.state == JOB_PENDING ? PACE_WAIT : PACE_FREE;
        w->row.rival = (struct rival_row){0};
    }
    if (!w->row.name[0] || ((fields & BIT(AT_ONCE)) && ev->update.at_once < 0))
        return err_set(e, ERR_INVALID, "%s: expected %s", w->row.name[0] ? "at_once" : "name",
            w->row.name[0] ? "how many tasks may run at once, 0 for any number" : "a name");
    rc = job_check_row(&w->row, e);
    if (!rc)
        rc = take_extras(m, ev, w, e);
    if (!rc)
        rc = check_place(m, w, j->labels, fields, e);
    if (!rc)
        rc = check_order(m, w, fields, e);
    if (!rc)
        rc = check_retries(m, ev->update.to, w, fields, e);
    if (!rc && j->row.state == JOB_PENDING &&
        (fields & (BIT(DEADLINE) | BIT(TIME_LIMIT) | BIT(BEGIN))))
        rc = deadline_check(&w->row, ev->now.wall, e);
    if (!rc && (fields & (BIT(MARKET) | BIT(TIME_LIMIT) | BIT(FINISH) | BIT(WORK))))
        /* it may be late by now */
        rc = pace_check(&w->row, fields & BIT(FINISH) ? ev->now.wall : w->row.submitted_at, e);
    return !rc && (fields & BIT(DEPENDS)) ? check_depends(m, ev, j, w, e) : rc;
}

static struct account *account_to(struct model *m, const struct job *j, const struct wanted *w)
{
    return str_eq(w->row.team, j->row.team) ? j->account : account_of(m, w->row.team, w->row.user);
}

/* In another team it counts there. n: that are changed so together. */
static int check_quota(
    struct model *m, const struct job *j, const struct wanted *w, int64_t n, struct err *e)
{
    const struct account *to = account_to(m, j, w);
    return to == j->account ? 0 : limits_check_submit(to, n, e);
}

/* ---- the change ---- */

/* It is in no shape meanwhile. */
static void become(
    struct model *m, struct job *j, const struct wanted *w, int32_t fields, struct stamp now)
{
    int64_t extras = j->row.extras;
    struct account *to = account_to(m, j, w);
    queue_disown(m, j);
    if (to != j->account) {
        limits_submitted(j->account, -job_submitted(j));
        limits_submitted(to, job_submitted(j));
        dependencies_counted(j->account, -job_side(j)->n_open);
        dependencies_counted(to, job_side(j)->n_open);
        j->account = to;
    }
    j->row = w->row;
    pace_meant(m, j, now);
    if (fields & OF_EXTRAS) {
        j->row.extras = extras_hold(m, &w->extras);
        extras_release(m, extras);
    }
    if (fields & BIT(NODES)) {
        j->least = j->row.nodes;
        j->gathers = false;
    }
    queue_adopt(m, j);
}

static void change_pending(
    struct model *m, struct job *j, struct wanted *w, int32_t fields, struct stamp now)
{
    bool anew = (fields & WAITS_ANEW) || ((fields & BIT(NAME)) && job_waits_for_name(j)),
         queued = tree_has(&j->in_shape);
    char name[CORE_NAME_MAX];
    STR_COPY(name, w->row.name);
    STR_COPY(w->row.name, j->row.name); /* until it has the new one */
    deadline_leave(m, j);
    if (anew) {
        dependencies_withdraw(m, j);
        w->row.regroups_until = j->row.regroups_until;
    }
    if (anew || (fields & OF_SHAPE))
        become(m, j, w, fields, now);
    else
        j->row = w->row;
    pace_look(m, j, now);
    if (fields & BIT(DEPENDS))
        dependencies_detach(m, j);
    if ((fields & BIT(NAME)) && !str_eq(name, j->row.name)) {
        dependencies_rename(m, j, name, now);
        queue_reshape(m, j); /* it may count in other budgets */
    }
    if (fields & BIT(DEPENDS)) {
        w->submit.submit.job = &j->row;
        dependencies_attach(m, j, &w->submit);
    }
    if (anew)
        job_enqueue(m, j, now);
    else if (queued && !tree_has(&j->in_shape))
        queue_add(m, j);
    deadline_watch(m, j);
    if (anew || (fields & OF_SHAPE))
        m->rewind++; /* it may fit now where it did not */
}

static void change_running(
    struct model *m, struct job *j, const struct wanted *w, int32_t fields, struct stamp now)
{
    char name[CORE_NAME_MAX];
    bool limit = j->row.time_limit_ms != w->row.time_limit_ms;
    STR_COPY(name, j->row.name);
    j->row = w->row;
    STR_COPY(j->row.name, name);
    pace_meant(m, j, now);
    if ((fields & BIT(NAME)) && !str_eq(name, w->row.name))
        dependencies_rename(m, j, w->row.name, now);
    if (limit || (fields & (BIT(NAME) | BIT(FINISH) | BIT(MAX_USD) | BIT(MAX_USD_H))))
        queue_reshape(m, j);
    if (fields & BIT(NAME))
        budgets_rejoin(m, j, now.wall);
    if (fields & BIT(MAX_USD))
        budgets_recapped(m, j, now.wall);
    if (!limit)
        return;
    notify_watch(m, j);
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        touch_attempt(m, a); /* its agent is told */
        reserve_retimed(m, a->node);
    }
    m->change++;
}

/* ---- for people ---- */

/* What a field that is a word or a text changes to, or NULL. */
static const char *word_of(const struct wanted *w, enum update_field field)
{
    const struct job_row *r = &w->row;
    switch (field) {
    case UPDATE_NAME:
        return r->name;
    case UPDATE_POOL:
        return r->pool[0] ? r->pool : "any";
    case UPDATE_TEAM:
        return r->team;
    case UPDATE_QOS:
        return r->qos[0] ? r->qos : "none";
    case UPDATE_WINDOW:
        return r->window[0] ? r->window : "none";
    case UPDATE_MARKET:
        return market_wish_names[r->market];
    case UPDATE_ON_LOSS:
        return gang_loss_names[r->on_loss];
    case UPDATE_GPU_MODEL:
        return w->extras.gpu.model[0] ? w->extras.gpu.model : "any";
    case UPDATE_CONSTRAINT:
        return w->extras.constraint.text[0] ? w->extras.constraint.text : "none";
    case UPDATE_EXCLUSIVE:
        return w->extras.exclusive ? "yes" : "no";
    case UPDATE_NODELIST:
        return w->extras.nodes[0] ? w->extras.nodes : "any";
    case UPDATE_EXCLUDE:
        return w->extras.exclude[0] ? w->extras.exclude : "none";
    default:
        return NULL;
    }
}

/* The same of a number; -1: it is none. */
static int64_t number_of(const struct event *ev, const struct wanted *w, enum update_field field)
{
    switch (field) {
    case UPDATE_NICE:
        return w->row.nice;
    case UPDATE_AT_ONCE:
        return ev->update.at_once;
    case UPDATE_CPUS:
        return w->row.need.cpus;
    case UPDATE_MEMORY:
        return w->row.need.memory_mib;
    case UPDATE_GPUS:
        return w->row.need.gpus;
    case UPDATE_NODES:
        return w->row.nodes;
    case UPDATE_GPU_MEMORY:
        return w->extras.gpu.memory_mib;
    case UPDATE_DEPENDS:
        return (int64_t)ev->update.n_depends;
    case UPDATE_INPUT:
        return w->extras.input.bytes;
    default:
        return -1;
    }
}

/* As far as there is room. */
static void describe(const struct event *ev, const struct wanted *w, char out[CORE_TEXT_MAX])
{
    char limit[32] = "none", cap[32] = "none", rate[32] = "none";
    if (w->row.time_limit_ms > 0)
        time_format_duration(w->row.time_limit_ms, limit, sizeof limit);
    if (w->row.max_uusd > 0)
        text_format(cap, sizeof cap, "$%.2f", (double)w->row.max_uusd / 1e6);
    if (w->row.max_uusd_h > 0)
        text_format(rate, sizeof rate, "$%.2f", (double)w->row.max_uusd_h / 1e6);
    out[0] = '\0';
    for (int k = 0; k < UPDATE_FIELDS; k++) {
        const char *word = k == UPDATE_TIME_LIMIT  ? limit
                           : k == UPDATE_MAX_USD   ? cap
                           : k == UPDATE_MAX_USD_H ? rate
                                                   : word_of(w, (enum update_field)k),
                   *comma = out[0] ? ", " : "";
        int64_t number = number_of(ev, w, (enum update_field)k);
        size_t n = strlen(out);
        if (!(ev->update.fields & UPDATE_BIT(k)))
            continue;
        if (word)
            text_format(out + n, CORE_TEXT_MAX - n, "%s%s %s", comma, update_field_names[k], word);
        else if (number >= 0)
            text_format(
                out + n, CORE_TEXT_MAX - n, "%s%s %" PRId64, comma, update_field_names[k], number);
        else
            text_format(out + n, CORE_TEXT_MAX - n, "%s%s", comma, update_field_names[k]);
    }
}

static void change(struct model *m, const struct event *ev, struct job *j, struct wanted *w)
{
    int32_t fields = ev->update.fields;
    char what[CORE_TEXT_MAX];
    describe(ev, w, what);
    history(m, ev->now, "updated", (struct history_of){.job = j, .attempt = job_attempt(j)},
        "%s changed it: %s", ev->update.by, what);
    touch_job(m, j);
    if (j->row.state == JOB_PENDING)
        change_pending(m, j, w, fields, ev->now);
    else
        change_running(m, j, w, fields, ev->now);
    if (fields & BIT(AT_ONCE))
        array_throttle(m, j, ev->update.at_once, ev->now);
}

/* ---- tasks by their indices ---- */

static struct job *task_of(const struct job *j, int32_t index, struct err *e)
{
    struct job *t = array_task(j, index);
    if (t)
        return t;
    if (!ranges_has(&j->array->all, index))
        err_set(e, ERR_NOT_FOUND, "array %" PRId64 " has no task %" PRId32, j->row.id, index);
    else if (array_has_left(j->array, index))
        err_set(e, ERR_CONFLICT,
            "task %" PRId32 " of array %" PRId64
            " has not begun: it is changed with all others that have not, as job %" PRId64,
            index, j->row.id, j->row.id);
    else
        err_set(e, ERR_CONFLICT,
            "task %" PRId32 " of array %" PRId64 " has ended: there is nothing to change", index,
            j->row.id);
    return NULL;
}

static int32_t next_index(const struct ranges *r, int *k, int32_t after)
{
    const struct range *v = &r->v[*k];
    if (after >= 0 && after + v->step <= v->last)
        return after + v->step;
    if (after >= 0)
        ++*k;
    return *k < r->n ? r->v[*k].first : -1;
}

/* All of them, or none: each is looked at before one is changed, and none of these changes is in
 * the way of another. */
static int update_tasks(struct model *m, const struct event *ev, struct job *array, struct err *e)
{
    const struct ranges *which = ev->update.tasks;
    struct wanted w;
    int64_t moving = 0;
    for (int pass = 0; pass < 2; pass++) {
        int k = 0;
        for (int32_t i = next_index(which, &k, -1); i >= 0; i = next_index(which, &k, i)) {
            struct job *t = task_of(array, i, e);
            int rc = t ? check(m, ev, t, &w, e) : e->kind;
            if (!rc && pass == 0 && !str_eq(w.row.team, t->row.team))
                rc = check_quota(m, t, &w, ++moving, e);
            if (rc)
                return rc;
            if (pass == 1)
                change(m, ev, t, &w);
        }
    }
    return 0;
}

int apply_update(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->update.job, e);
    struct wanted w;
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (ev->update.fields == 0)
        return err_set(e, ERR_INVALID, "job %" PRId64 ": nothing is to be changed", j->row.id);
    if (ev->update.tasks)
        return j->array ? update_tasks(m, ev, j, e)
                        : err_set(e, ERR_CONFLICT, "job %" PRId64 " is no array", j->row.id);
    int rc = check(m, ev, j, &w, e);
    if (!rc)
        rc = check_quota(m, j, &w, job_submitted(j), e);
    if (!rc)
        rc = dependencies_check_change(m, j, account_to(m, j, &w), &w.row,
            ev->update.fields & BIT(DEPENDS) ? &w.submit : NULL, e);
    if (!rc)
        change(m, ev, j, &w);
    return rc;
}
