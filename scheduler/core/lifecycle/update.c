/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of jobs after their submit: a request is applied as a whole, or refused with the reason.
 *
 *  1. The changed values are validated as in a submit: same limits, same refusals, same checks for
 *     jobs that could never run. Unchanged values are not validated again, even if its pool or the
 *     configuration changed since.
 *  2. A pending job leaves its shape before any of its values change, and enters the new one at its
 *     position: its waiting time is kept. Nodes that are kept for it between two attempts stay kept
 *     unless it may need others.
 *  3. A running job keeps its place: only values that do not affect it change. A time limit counts
 *     from the start of the attempt, so it may have passed already; the agents get the new limit
 *     and end the attempt as usual.
 *  4. Of an array, the tasks that have not begun change. A task that has begun is a job and is
 *     changed by itself.
 *
 * A job depends only on jobs that were submitted before it, so there are no cycles.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/member.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(UPDATE_FIELDS <= 64, "they are bits of a uint64_t");

#define BIT(field) UPDATE_BIT(UPDATE_##field)

/* The fields with this mask in their row of job_attributes. */
static uint64_t fields_with(unsigned mask)
{
    uint64_t fields = 0;
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].field != JOB_FIELD_NONE && (job_attributes[i].masks & mask))
            fields |= UPDATE_BIT(job_attributes[i].field);
    return fields;
}

static bool changes_any(uint64_t fields, unsigned mask)
{
    return (fields & fields_with(mask)) != 0;
}

/* The job after the change. */
struct changed_job {
    struct job_row row;
    struct constraints constraints;
    struct event submit; /* used to check its dependencies */
};

/* ---- may it change ---- */

static const char *first_name(uint64_t fields)
{
    for (int k = 0; k < UPDATE_FIELDS; k++)
        if (fields & UPDATE_BIT(k))
            return job_field_name((enum job_field)k);
    return "";
}

static int check_fields(const struct job *j, uint64_t fields, struct err *e)
{
    const struct job_ref ref = job_ref(&j->row);
    if (j->row.state == JOB_CANCELLING)
        return err_set(
            e, ERR_CONFLICT, "job %s is being cancelled and cannot be changed any more", ref.s);
    if (j->row.state == JOB_UNFOLDED)
        return err_set(e, ERR_CONFLICT,
            "%s: all tasks of array %s have begun: change the remaining ones individually, such as "
            "%s_7",
            first_name(fields), ref.s, ref.s);
    if ((fields & BIT(AT_ONCE)) && !j->array)
        return err_set(e, ERR_CONFLICT,
            "at_once: job %s is %s: only an array has a number of tasks that run at once", ref.s,
            j->parent ? "a task of an array" : "no array");
    if ((fields & BIT(DEPENDS)) && j->parent)
        return err_set(e, ERR_CONFLICT,
            "depends: job %s is a task of an array that has begun: its dependencies cannot be "
            "changed any more",
            ref.s);
    if (j->row.state == JOB_RUNNING && (fields & ~fields_with(JOB_WHILE_RUNNING)))
        return err_set(e, ERR_CONFLICT,
            "%s: job %s runs, and this can be changed only while it is pending: hold it, "
            "requeue it (belay requeue), change it and release it",
            first_name(fields & ~fields_with(JOB_WHILE_RUNNING)), ref.s);
    return 0;
}

/* ---- new values ---- */

/* How the history shows a member of struct constraints. */
enum shown_as { AS_NAME_ONLY, AS_TEXT, AS_YES_NO, AS_INT64 };

/* Where a field is in struct constraints; a new value is copied whole. Those of a spec are rows of
 * job_attributes. */
struct member {
    enum job_field field;
    size_t at, size;
    enum shown_as as;
    size_t shown_at;
    const char *none; /* AS_TEXT: shown instead of "" */
};
#define CONSTRAINTS_MEMBER(f, m, as, shown, none)                                                  \
    {                                                                                              \
        UPDATE_##f, offsetof(struct constraints, m), sizeof(((struct constraints *)NULL)->m), as,  \
            offsetof(struct constraints, shown), none                                              \
    }
static const struct member members[] = {
    CONSTRAINTS_MEMBER(GPU_MODEL, gpu.model, AS_TEXT, gpu.model, "any"),
    CONSTRAINTS_MEMBER(GPU_MEMORY, gpu.memory_mib, AS_INT64, gpu.memory_mib, NULL),
    CONSTRAINTS_MEMBER(CONSTRAINT, constraint, AS_TEXT, constraint.text, "none"),
    CONSTRAINTS_MEMBER(RESOURCES, resources, AS_NAME_ONLY, resources, NULL),
    CONSTRAINTS_MEMBER(LICENCES, licences, AS_NAME_ONLY, licences, NULL),
    CONSTRAINTS_MEMBER(EXCLUSIVE, exclusive, AS_YES_NO, exclusive, NULL),
    CONSTRAINTS_MEMBER(NODELIST, nodes, AS_TEXT, nodes, "any"),
    CONSTRAINTS_MEMBER(EXCLUDE, exclude, AS_TEXT, exclude, "none"),
    CONSTRAINTS_MEMBER(INPUT, input, AS_INT64, input.bytes, NULL),
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

/* Copies the members of a spec that fields name. */
static void take_spec(struct job_spec *into, const struct job_spec *from, uint64_t fields)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (a->field != JOB_FIELD_NONE && (fields & UPDATE_BIT(a->field)))
            memcpy((char *)into + a->at, (const char *)from + a->at, a->size);
    }
}

static void take_nodes(struct job_row *r, const struct job_row *to)
{
    r->spec.nodes = to->spec.nodes;
    r->spec.nodes_min = to->spec.nodes_min ? to->spec.nodes_min : to->spec.nodes;
    r->spec.script_on = r->spec.nodes > 1 ? to->spec.script_on : SCRIPT_ON_EACH;
    r->ranks = r->ranks < r->spec.nodes ? r->ranks : r->spec.nodes;
}

static int take_constraints(
    const struct model *m, const struct event *ev, struct changed_job *w, struct err *e)
{
    uint64_t fields = ev->update.fields;
    const struct constraints *old = model_constraints(m, w->row.constraints);
    struct constraints to = {0};
    int rc = ev->update.constraints ? constraints_read(m, ev->update.constraints, &to, e) : 0;
    if (rc)
        return rc;
    w->constraints = old ? *old : (struct constraints){0};
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (fields & UPDATE_BIT(members[i].field))
            memcpy((char *)&w->constraints + members[i].at, (const char *)&to + members[i].at,
                members[i].size);
    return 0;
}

/* ---- validation as in a submit ---- */

static int check_demand(const struct model *m, const struct changed_job *w,
    const struct labels *labels, uint64_t fields, struct err *e)
{
    int rc = fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS) | BIT(NODES) |
                          fields_with(JOB_OF_CONSTRAINTS))
                 ? constraints_check_submit(m, &w->row, &w->constraints, e)
                 : 0;
    if (!rc && (fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS) | fields_with(JOB_OF_CONSTRAINTS))))
        rc = labels_check_submit(m, &w->row, &w->constraints, labels, e);
    return !rc && (fields & (BIT(POOL) | BIT(MARKET) | BIT(GPUS)))
               ? criu_check_submit(m, &w->row, e)
               : rc;
}

/* Unchanged members are not checked. */
static int check_order(const struct model *m, struct changed_job *w, uint64_t fields, struct err *e)
{
    struct job_row own = w->row;
    if (!(fields & (BIT(TEAM) | BIT(QOS))))
        return 0;
    if (!(fields & BIT(TEAM)))
        own.spec.team[0] = '\0';
    if (!(fields & BIT(QOS)))
        own.spec.qos[0] = '\0';
    int rc = policy_resolve(model_policy(m), &own, e);
    if (!rc)
        take_spec(&w->row.spec, &own.spec, fields & (BIT(TEAM) | BIT(QOS)));
    return rc;
}

/* Checks the named ones. A number below the used retries means they are used up. */
static int check_retries(const struct model *m, const struct job_row *to, struct changed_job *w,
    uint64_t fields, struct err *e)
{
    struct job_row asked = w->row, own = {0};
    asked.spec.retries = to->spec.retries;
    int rc = fields & BIT(RETRIES) ? job_resolve_retries(m, &asked, &own, e) : 0;
    for (int k = 0; !rc && (fields & BIT(RETRIES)) && k < RETRY_KINDS; k++) {
        int32_t n = to->spec.retries.n[k] ? own.spec.retries.n[k] : w->row.spec.retries.n[k];
        w->row.spec.retries.n[k] = n;
        w->row.used[k] = w->row.used[k] < n ? w->row.used[k] : n;
    }
    return !rc && (fields & (BIT(RETRIES) | BIT(WINDOW) | BIT(MAX_USD)))
               ? job_check_retries(&w->row, e)
               : rc;
}

static int check_depends(const struct model *m, const struct event *ev, const struct job *j,
    struct changed_job *w, struct err *e)
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
                "depends: %s: job %s can depend only on jobs that were submitted before it; let "
                "the other job depend "
                "on it, or submit it again",
                depend_text(a->kind, a->on, a->of_task, a->task).s, job_ref(&j->row).s);
    }
    return dependencies_check(m, &w->submit, e);
}

/* Computes the changed job into ret_changed, if the change is allowed. */
static int check(const struct model *m, const struct event *ev, const struct job *j,
    struct changed_job *ret_changed, struct err *e)
{
    uint64_t fields = ev->update.fields;
    struct changed_job *w = ret_changed;
    int rc = check_fields(j, fields, e);
    if (rc)
        return rc;
    *w = (struct changed_job){.row = j->row};
    take_spec(&w->row.spec, &ev->update.to->spec, fields);
    if (fields & BIT(NODES))
        take_nodes(&w->row, ev->update.to);
    if (fields & BIT(FINISH))
        w->row.spec.finish_ms = procurement_finish_ms(ev->update.to, ev->now.wall);
    if ((fields & BIT(FINISH)) && (w->row.spec.finish_ms == 0 || j->row.spec.finish_ms == 0)) {
        /* until the decision that follows at once */
        w->row.procurement =
            w->row.spec.finish_ms > 0 && j->row.state == JOB_PENDING ? PROCURE_WAIT : PROCURE_FREE;
        w->row.baseline = (struct baseline_row){0};
    }
    if (!w->row.spec.name[0] || ((fields & BIT(AT_ONCE)) && ev->update.at_once < 0))
        return err_set(e, ERR_INVALID, "%s: expected %s", w->row.spec.name[0] ? "at_once" : "name",
            w->row.spec.name[0] ? "the number of tasks that may run at once, 0 = unlimited"
                                : "a name");
    rc = job_check_row(&w->row, &j->row, e);
    if (!rc)
        rc = take_constraints(m, ev, w, e);
    if (!rc)
        rc = check_demand(m, w, j->labels, fields, e);
    if (!rc)
        rc = check_order(m, w, fields, e);
    if (!rc)
        rc = check_retries(m, ev->update.to, w, fields, e);
    if (!rc && j->row.state == JOB_PENDING &&
        (fields & (BIT(DEADLINE) | BIT(TIME_LIMIT) | BIT(BEGIN))))
        rc = expiry_check(&w->row, ev->now.wall, e);
    if (!rc && (fields & (BIT(MARKET) | BIT(TIME_LIMIT) | BIT(FINISH) | BIT(WORK))))
        /* it may be late by now */
        rc = procurement_check(
            &w->row, fields & BIT(FINISH) ? ev->now.wall : w->row.submitted_at, e);
    return !rc && (fields & BIT(DEPENDS)) ? check_depends(m, ev, j, w, e) : rc;
}

static struct account *account_after(
    struct model *m, const struct job *j, const struct changed_job *w)
{
    return str_eq(w->row.spec.team, j->row.spec.team)
               ? j->account
               : account_of(m, w->row.spec.team, w->row.user);
}

/* A job that moves to another team counts for the limits there. n: number of jobs changed together.
 */
static int check_limits(
    struct model *m, const struct job *j, const struct changed_job *w, int64_t n, struct err *e)
{
    const struct account *to = account_after(m, j, w);
    return to == j->account ? 0 : limits_check_submit(to, n, e);
}

/* ---- applying the change ---- */

/* It is in no shape meanwhile. */
static void apply_change(
    struct model *m, struct job *j, const struct changed_job *w, uint64_t fields, struct stamp now)
{
    int64_t constraints = j->row.constraints;
    struct account *to = account_after(m, j, w);
    queue_disown(m, j);
    if (to != j->account) {
        limits_submitted(j->account, -job_submitted(j));
        limits_submitted(to, job_submitted(j));
        dependencies_counted(j->account, -job_side(j)->n_open);
        dependencies_counted(to, job_side(j)->n_open);
        j->account = to;
    }
    j->row = w->row;
    procurement_meant(m, j, now);
    if (changes_any(fields, JOB_OF_CONSTRAINTS)) {
        j->row.constraints = constraints_intern(m, &w->constraints);
        constraints_unref(m, constraints);
    }
    if (fields & BIT(NODES)) {
        j->least = j->row.spec.nodes;
        j->gathers = false;
    }
    queue_adopt(m, j);
}

static void change_pending(
    struct model *m, struct job *j, struct changed_job *w, uint64_t fields, struct stamp now)
{
    bool anew = changes_any(fields, JOB_OF_ELIGIBILITY) ||
                ((fields & BIT(NAME)) && job_waits_for_name(j)),
         queued = tree_has(&j->in_shape);
    char name[CORE_NAME_MAX];
    STR_COPY(name, w->row.spec.name);
    STR_COPY(w->row.spec.name, j->row.spec.name); /* until it has the new one */
    expiry_leave(m, j);
    if (anew) {
        dependencies_withdraw(m, j);
        w->row.gang_resize_until = j->row.gang_resize_until;
    }
    if (anew || changes_any(fields, JOB_OF_SHAPE))
        apply_change(m, j, w, fields, now);
    else
        j->row = w->row;
    procurement_look(m, j, now);
    if (fields & BIT(DEPENDS))
        dependencies_detach(m, j);
    if ((fields & BIT(NAME)) && !str_eq(name, j->row.spec.name)) {
        dependencies_rename(m, j, name, now);
        queue_reshape(m, j); /* it may match other budgets */
    }
    if (fields & BIT(DEPENDS)) {
        w->submit.submit.job = &j->row;
        dependencies_attach(m, j, &w->submit);
    }
    if (anew)
        job_enqueue(m, j, now);
    else if (queued && !tree_has(&j->in_shape))
        queue_add(m, j);
    expiry_watch(m, j);
    if (anew || changes_any(fields, JOB_OF_SHAPE))
        model_note_rewind(m); /* it may fit now */
}

static void change_running(
    struct model *m, struct job *j, const struct changed_job *w, uint64_t fields, struct stamp now)
{
    char name[CORE_NAME_MAX];
    bool limit = j->row.spec.time_limit_ms != w->row.spec.time_limit_ms;
    STR_COPY(name, j->row.spec.name);
    j->row = w->row;
    STR_COPY(j->row.spec.name, name);
    procurement_meant(m, j, now);
    if ((fields & BIT(NAME)) && !str_eq(name, w->row.spec.name))
        dependencies_rename(m, j, w->row.spec.name, now);
    if (limit || (fields & (BIT(NAME) | BIT(FINISH) | BIT(MAX_USD) | BIT(MAX_USD_H))))
        queue_reshape(m, j);
    if (fields & BIT(NAME))
        budgets_rejoin(m, j, now.wall);
    if (fields & BIT(MAX_USD))
        budgets_recapped(m, j, now.wall);
    if (fields & BIT(IDLE_GPUS))
        idle_gpus_watch(m, j, now);
    if (!limit)
        return;
    notify_watch(m, j);
    LIST_FOREACH (&j->ranks, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        touch_attempt(m, a); /* the change reaches its agent */
        reserve_retimed(m, a->node);
    }
    model_note_change(m);
}

/* ---- texts for the history ---- */

/* Writes what a member of constraints is now, for the history: " 4"; "" if only its name is
 * shown. */
static void member_text(const struct member *m, const struct constraints *x, char *out, size_t size)
{
    const char *at = (const char *)x + m->shown_at;
    int64_t number;
    switch (m->as) {
    case AS_NAME_ONLY:
        break;
    case AS_TEXT:
        text_format(out, size, " %s", at[0] ? at : m->none);
        break;
    case AS_YES_NO:
        text_format(out, size, " %s", *(const bool *)at ? "yes" : "no");
        break;
    case AS_INT64:
        memcpy(&number, at, sizeof number);
        text_format(out, size, " %" PRId64, number);
        break;
    }
}

/* As member_text, for a member of the spec. Moments and durations without a word for their default
 * are only named. */
static void spec_text(
    const struct job_attribute *a, const struct job_spec *s, char *out, size_t size)
{
    const char *none = a->none ? a->none : "none";
    const int64_t number = job_member_is_number(a) ? job_member_number(a, s) : 0;
    char limit[32];
    if (a->member_type == JOB_MEMBER_TEXT)
        text_format(out, size, " %s", job_member_text(a, s)[0] ? job_member_text(a, s) : none);
    else if (a->member_type == JOB_MEMBER_WORD)
        text_format(out, size, " %s", a->words[number]);
    else if ((a->member_type != JOB_MEMBER_INT32 && a->member_type != JOB_MEMBER_INT64) ||
             (a->unit == JOB_UNIT_MS && !a->none))
        return;
    else if ((a->unit == JOB_UNIT_MS || a->unit == JOB_UNIT_UUSD) && number <= 0)
        text_format(out, size, " %s", none);
    else if (a->unit == JOB_UNIT_MS) {
        time_format_duration(number, limit, sizeof limit);
        text_format(out, size, " %s", limit);
    } else if (a->unit == JOB_UNIT_UUSD)
        text_format(out, size, " $%.2f", (double)number / 1e6);
    else if (number >= 0)
        text_format(out, size, " %" PRId64, number);
}

/* Writes the value of the field; "" if only its name is shown. */
static void field_text(enum job_field field, const struct changed_job *w, char *out, size_t size)
{
    for (size_t i = 0; i < N_MEMBERS; i++)
        if (members[i].field == field)
            member_text(&members[i], &w->constraints, out, size);
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].field == field && job_attributes[i].size > 0 &&
            !(job_attributes[i].masks & JOB_ALIAS))
            spec_text(&job_attributes[i], &w->row.spec, out, size);
}

/* "url https://example.org/run/7": of options that are only stored. */
static void describe_document(const char *patch_json, char out[CORE_TEXT_MAX])
{
    const char *key;
    json_t *patch = NULL, *value;
    if (!patch_json || json_parse(patch_json, strlen(patch_json), SIZE_MAX, &patch, NULL) != 0)
        return;
    json_object_foreach(patch, key, value)
    {
        char *text = json_is_string(value) ? mem_strdup(json_string_value(value))
                     : json_is_null(value) ? mem_strdup("none")
                                           : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        size_t n = strlen(out);
        text_format(out + n, CORE_TEXT_MAX - n, "%s%s %s", n > 0 ? ", " : "", key, text);
        free(text);
    }
    json_decref(patch);
}

/* Lists the changed fields, as far as there is space. */
static void describe(const struct event *ev, const struct changed_job *w, char out[CORE_TEXT_MAX])
{
    out[0] = '\0';
    for (int k = 0; k < UPDATE_FIELDS; k++) {
        char value[CORE_TEXT_MAX] = "";
        size_t n = strlen(out);
        if (!(ev->update.fields & UPDATE_BIT(k)))
            continue;
        if (k == UPDATE_DOCUMENT) {
            describe_document(ev->update.document, out);
            continue;
        }
        field_text((enum job_field)k, w, value, sizeof value);
        if (k == UPDATE_AT_ONCE)
            text_format(value, sizeof value, " %" PRId32, ev->update.at_once);
        else if (k == UPDATE_DEPENDS)
            text_format(value, sizeof value, " %zu", ev->update.n_depends);
        text_format(out + n, CORE_TEXT_MAX - n, "%s%s%s", out[0] ? ", " : "",
            job_field_name((enum job_field)k), value);
    }
}

static void change(struct model *m, const struct event *ev, struct job *j, struct changed_job *w)
{
    uint64_t fields = ev->update.fields;
    char what[CORE_TEXT_MAX];
    describe(ev, w, what);
    history(m, ev->now, "updated", (struct history_of){.job = j, .attempt = job_attempt(j)},
        "%s changed it: %s", ev->update.by, what);
    touch_job(m, j);
    if (j->row.state == JOB_PENDING)
        change_pending(m, j, w, fields, ev->now);
    else
        change_running(m, j, w, fields, ev->now);
    if (fields & BIT(DOCUMENT))
        job_document_changed(m, j->row.id, ev->update.document);
    if (fields & BIT(AT_ONCE))
        array_throttle(m, j, ev->update.at_once, ev->now);
}

/* ---- tasks by index ---- */

static struct job *task_of(const struct job *j, int32_t index, struct err *e)
{
    struct job *t = array_task(j, index);
    if (t)
        return t;
    if (array_has_left(j->array, index))
        err_set(e, ERR_CONFLICT,
            "task %" PRId32 " of array %" PRId64
            " has not begun: change it together with all other such tasks, as job %s",
            index, j->row.id, job_ref(&j->row).s);
    else
        err_set(e, ERR_CONFLICT,
            "task %" PRId32 " of array %" PRId64 " has ended: there is nothing to change", index,
            j->row.id);
    return NULL;
}

/* All of them or none: all are checked before one is changed, and the changes are independent. */
static int update_tasks(struct model *m, const struct event *ev, struct job *array, struct err *e)
{
    const struct ranges *which = ev->update.tasks;
    struct changed_job w;
    int64_t moving = 0;
    int missing = array_check_tasks(array, which, e);
    for (int pass = 0; !missing && pass < 2; pass++) {
        int k = 0;
        for (int32_t i = ranges_next(which, &k, -1); i >= 0; i = ranges_next(which, &k, i)) {
            struct job *t = task_of(array, i, e);
            int rc = t ? check(m, ev, t, &w, e) : e->kind;
            if (!rc && pass == 0 && !str_eq(w.row.spec.team, t->row.spec.team))
                rc = check_limits(m, t, &w, ++moving, e);
            if (rc)
                return rc;
            if (pass == 1)
                change(m, ev, t, &w);
        }
    }
    return missing;
}

int apply_update(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->update.job, e);
    struct changed_job w;
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (ev->update.fields == 0)
        return err_set(e, ERR_INVALID, "job %s: no changes are given", job_ref(&j->row).s);
    if (ev->update.tasks)
        return j->array ? update_tasks(m, ev, j, e)
                        : err_set(e, ERR_CONFLICT, "job %s is not an array", job_ref(&j->row).s);
    int rc = check(m, ev, j, &w, e);
    if (!rc)
        rc = check_limits(m, j, &w, job_submitted(j), e);
    if (!rc)
        rc = dependencies_check_change(m, j, account_after(m, j, &w), &w.row,
            ev->update.fields & BIT(DEPENDS) ? &w.submit : NULL, e);
    if (!rc)
        change(m, ev, j, &w);
    return rc;
}
