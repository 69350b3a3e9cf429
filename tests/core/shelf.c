/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/core/shelf.h"

#include "base/mem.h"
#include "scheduler/core/ledger/storage.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/budgets.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define APPEND(array, n)                                                                           \
    ((array) = ((n) & ((n)-1)) == 0 ? mem_resize((array), (n) ? 2 * (n) : 1, sizeof *(array))      \
                                    : (array),                                                     \
        memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

/* Element by id; ids increase, so the array is extended up to id. */
#define AT(array, n, id)                                                                           \
    ({                                                                                             \
        while ((int64_t)(n) <= (id))                                                               \
            (void)APPEND(array, n);                                                                \
        &(array)[id];                                                                              \
    })

void shelf_deinit(struct shelf *s)
{
    free(s->jobs);
    free(s->attempts);
    free(s->nodes);
    free(s->instances);
    free(s->pools);
    free(s->offers);
    free(s->by_job);
    free(s->by_instance);
    free(s->by_node);
    free(s->newest);
    free(s->arrays);
    free(s->depends);
    free(s->node_failures);
    free(s->drills);
    free(s->accounts);
    free(s->budgets);
    free(s->constraints);
    free(s->ckpt_gc);
    free(s->stored);
    *s = (struct shelf){0};
}

static void put_job(struct shelf *s, const struct job_row *r)
{
    struct job_row *old = AT(s->jobs, s->n_jobs, r->id);
    if (old->id && old->state == JOB_ENDED)
        fail_msg("job %" PRId64 " ended twice or lives again", r->id);
    if (old->id && ckpt_ref_compare(r->last_good, old->last_good) < 0)
        fail_msg("job %" PRId64 " lost a checkpoint", r->id);
    *old = *r;
}

static void put_attempt(struct shelf *s, const struct attempt_row *r)
{
    struct attempt_row *slot = NULL;
    for (size_t k = s->n_attempts; k-- > 0 && !slot;)
        if (s->attempts[k].job == r->job && s->attempts[k].attempt == r->attempt &&
            s->attempts[k].rank == r->rank)
            slot = &s->attempts[k];
    if (slot && slot->state == ATTEMPT_ENDED)
        fail_msg("attempt %" PRId64 " of job %" PRId64 " ended twice", r->attempt, r->job);
    if (!slot)
        slot = APPEND(s->attempts, s->n_attempts);
    *slot = *r;
}

/* Drills only go forward, to one end. */
static void put_drill(struct shelf *s, const struct drill_row *r)
{
    struct drill_row *slot = NULL;
    for (size_t k = s->n_drills; k-- > 0 && !slot;)
        if (s->drills[k].job == r->job && s->drills[k].number == r->number)
            slot = &s->drills[k];
    if (slot && (slot->state >= DRILL_PASSED || r->state < slot->state))
        fail_msg("drill %" PRId64 " of job %" PRId64 " goes on after its end, or back", r->number,
            r->job);
    if (r->state == DRILL_PASSED &&
        (!r->saved.attempt || r->resumed_attempt <= r->attempt || r->resume_ms <= 0 ||
            (r->saved_progress != PROGRESS_NONE && r->progress < r->saved_progress)))
        fail_msg(
            "drill %" PRId64 " of job %" PRId64 " passed and shows nothing", r->number, r->job);
    if (!slot)
        slot = APPEND(s->drills, s->n_drills);
    *slot = *r;
}

/* The newest conclusive drill of these scripts, or NULL. In order of their begin: of two that ended
 * at once the model may have either. */
static bool is_certificate(const struct shelf *s, const struct drill_row *d)
{
    if (d->state != DRILL_PASSED || !d->script_key[0])
        return false;
    for (size_t k = 0; k < s->n_drills; k++) {
        const struct drill_row *o = &s->drills[k];
        if (o != d && strcmp(o->script_key, d->script_key) == 0 &&
            (o->state == DRILL_PASSED || o->state == DRILL_FAILED) &&
            (o->ended_at.ms > d->ended_at.ms || (o->ended_at.ms == d->ended_at.ms && o > d)))
            return false;
    }
    return true;
}

static struct node_failure_row *failure_at(const struct shelf *s, int64_t node, int32_t place)
{
    for (size_t k = 0; k < s->n_node_failures; k++)
        if (s->node_failures[k].node == node && s->node_failures[k].place == place)
            return &s->node_failures[k];
    return NULL;
}

static void put_node_failure(struct shelf *s, const struct node_failure_row *r)
{
    struct node_failure_row *slot = failure_at(s, r->node, r->place);
    if (r->is_removed) {
        if (slot)
            *slot = s->node_failures[--s->n_node_failures];
        return;
    }
    if (!slot) {
        s->node_failures =
            mem_resize(s->node_failures, s->n_node_failures + 1, sizeof s->node_failures[0]);
        slot = &s->node_failures[s->n_node_failures++];
    }
    *slot = *r;
}

static void compare_node_failures(const struct shelf *s, const struct model *m)
{
    int64_t n_live = 0;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        for (int32_t k = 0; n->failures && k < n->failures->n; k++, n_live++) {
            const struct node_failure_row *r = failure_at(s, n->row.id, k),
                                          *in_model = &n->failures->last[k];
            if (!r || r->job != in_model->job || r->of != in_model->of ||
                r->retries != in_model->retries || r->at.ms != in_model->at.ms)
                fail_msg("the failures on %s changed without being marked", n->row.name);
        }
    }
    assert_int_equal(n_live, s->n_node_failures);
}

static void put_checkpoint(struct shelf *s, const struct checkpoint_row *r)
{
    struct ckpt_ref *old = AT(s->newest, s->n_newest, r->job);
    if (ckpt_ref_compare(r->ref, *old) <= 0)
        fail_msg("job %" PRId64 ": checkpoint %" PRId64 ".%" PRId64 " is not newer", r->job,
            r->ref.attempt, r->ref.sequence);
    *old = r->ref;
}

static void put_ledger(struct shelf *s, const struct ledger_row *r)
{
    struct shelf_sums *j = AT(s->by_job, s->n_by_job, r->job);
    struct shelf_sums *i = AT(s->by_instance, s->n_by_instance, r->instance);
    struct shelf_sums *n = AT(s->by_node, s->n_by_node, r->node);
    if (r->kind != LEDGER_IDLE) /* idle rows may correct what its provider did not bill */
        assert_true(r->ms >= 0 && r->uusd >= 0 && r->node_ms >= 0);
    j->ms += r->ms;
    j->uusd += r->uusd;
    j->on_demand_uusd += r->on_demand_uusd;
    if (r->kind == LEDGER_STORAGE) { /* continues after the job's end */
        assert_int_equal(
            r->ms + r->node_ms + r->on_demand_uusd + r->node + r->instance + r->attempt, 0);
        return;
    }
    if (r->kind == LEDGER_EGRESS) { /* the store's bill, not the machine's */
        assert_int_equal(r->ms + r->node_ms + r->on_demand_uusd, 0);
        return;
    }
    i->uusd += r->uusd;
    i->node_ms += r->node_ms;
    n->uusd += r->uusd;
    n->node_ms += r->node_ms;
}

static void put_node(struct shelf *s, const struct node_row *r)
{
    *AT(s->nodes, s->n_nodes, r->id) = *r;
    if (r->state != NODE_GONE || r->instance != CORE_ID_NONE)
        return;
    const struct shelf_sums *sums = AT(s->by_node, s->n_by_node, r->id);
    int64_t life_ms = r->gone_at.ms - r->joined_at.ms, priced_ms = r->gone_at.ms - r->priced_at.ms;
    assert_int_equal(sums->node_ms, life_ms > 0 ? life_ms : 0);
    assert_int_equal(sums->uusd,
        r->accrued_uusd + core_cost_uusd(priced_ms > 0 ? priced_ms : 0, r->price_uusd_h));
}

static void put_instance(struct shelf *s, const struct instance_row *r)
{
    struct instance_row *old = AT(s->instances, s->n_instances, r->id);
    if (old->id && old->state == INSTANCE_GONE)
        fail_msg("instance %" PRId64 " lives after its end", r->id);
    *old = *r;
    if (r->state != INSTANCE_GONE || !wall_is_set(r->launched_at))
        return;
    assert_int_equal(
        AT(s->by_instance, s->n_by_instance, r->id)->uusd, core_instance_uusd(r, r->ended_at));
    assert_int_equal(
        AT(s->by_instance, s->n_by_instance, r->id)->node_ms, r->ended_at.ms - r->launched_at.ms);
}

static void put_account(struct shelf *s, const struct account_row *r)
{
    size_t at = 0;
    while (at < s->n_accounts && (strcmp(s->accounts[at].team, r->team) != 0 ||
                                     strcmp(s->accounts[at].user, r->user) != 0))
        at++;
    if (at == s->n_accounts)
        (void)APPEND(s->accounts, s->n_accounts);
    s->accounts[at] = *r;
}

static void put_budget(struct shelf *s, const struct budget_row *r)
{
    size_t at = 0;
    while (at < s->n_budgets && strcmp(s->budgets[at].name, r->name) != 0)
        at++;
    if (at == s->n_budgets)
        (void)APPEND(s->budgets, s->n_budgets);
    s->budgets[at] = *r;
}

static void put_dependency(struct shelf *s, const struct dependency_row *r)
{
    struct dependency_row *slot = NULL;
    for (size_t k = s->n_depends; k-- > 0 && !slot;)
        if (s->depends[k].job == r->job && s->depends[k].on == r->on &&
            s->depends[k].kind == r->kind)
            slot = &s->depends[k];
    /* requested with two delays, already satisfied */
    bool twice = slot && slot->state == DEPEND_MET && r->state == DEPEND_MET;
    bool anew = slot && slot->state == DEPEND_DROPPED; /* requested again: the job was changed */
    if (slot && !twice && !anew && slot->state != DEPEND_WAITS &&
        !(slot->state == DEPEND_NEVER && r->state == DEPEND_DROPPED))
        fail_msg("a dependency of job %" PRId64 " goes on after its end", r->job);
    if (!slot)
        slot = APPEND(s->depends, s->n_depends);
    *slot = *r;
}

static void put_array(struct shelf *s, const struct array_row *r)
{
    size_t at = 0;
    while (at < s->n_arrays && s->arrays[at].job != r->job)
        at++;
    if (at == s->n_arrays)
        (void)APPEND(s->arrays, s->n_arrays);
    s->arrays[at] = *r;
}

void shelf_put(struct shelf *s, const struct changes *c)
{
    for (size_t k = 0; k < c->n_history; k++) {
        assert_true(c->history[k].id > s->last_history);
        s->last_history = c->history[k].id;
    }
    for (size_t k = 0; k < c->n_checkpoints; k++)
        put_checkpoint(s, &c->checkpoints[k]);
    for (size_t k = 0; k < c->n_ledger; k++)
        put_ledger(s, &c->ledger[k]);
    for (size_t k = 0; k < c->n_attempts; k++)
        put_attempt(s, &c->attempts[k]);
    for (size_t k = 0; k < c->n_jobs; k++) {
        put_job(s, &c->jobs[k]);
        assert_int_equal(
            c->jobs[k].on_demand_uusd, AT(s->by_job, s->n_by_job, c->jobs[k].id)->on_demand_uusd);
    }
    for (size_t k = 0; k < c->n_late_costs; k++) {
        struct job_row *r = &s->jobs[c->late_costs[k].job];
        assert_true(r->id && r->state == JOB_ENDED);
        r->cost_uusd += c->late_costs[k].uusd;
    }
    for (int64_t id = 1; id < (int64_t)s->n_jobs; id++)
        assert_int_equal(s->jobs[id].cost_uusd, AT(s->by_job, s->n_by_job, id)->uusd);
    for (size_t k = 0; k < c->n_ckpt_gc; k++)
        *AT(s->ckpt_gc, s->n_ckpt_gc, c->ckpt_gc[k].job) = c->ckpt_gc[k];
    for (size_t k = 0; k < c->n_stored; k++)
        *AT(s->stored, s->n_stored, c->stored[k].job) = c->stored[k];
    for (size_t k = 0; k < c->n_nodes; k++)
        put_node(s, &c->nodes[k]);
    for (size_t k = 0; k < c->n_node_failures; k++)
        put_node_failure(s, &c->node_failures[k]);
    for (size_t k = 0; k < c->n_instances; k++)
        put_instance(s, &c->instances[k]);
    for (size_t k = 0; k < c->n_offers; k++)
        *AT(s->offers, s->n_offers, c->offers[k].id) = c->offers[k];
    for (size_t k = 0; k < c->n_pools; k++) {
        size_t at = 0;
        while (at < s->n_pools && strcmp(s->pools[at].name, c->pools[k].name) != 0)
            at++;
        struct pool_row *p = at < s->n_pools ? &s->pools[at] : APPEND(s->pools, s->n_pools);
        *p = c->pools[k];
    }
    for (size_t k = 0; k < c->n_drills; k++)
        put_drill(s, &c->drills[k]);
    for (size_t k = 0; k < c->n_accounts; k++)
        put_account(s, &c->accounts[k]);
    for (size_t k = 0; k < c->n_budgets; k++)
        put_budget(s, &c->budgets[k]);
    for (size_t k = 0; k < c->n_arrays; k++)
        put_array(s, &c->arrays[k]);
    for (size_t k = 0; k < c->n_depends; k++)
        put_dependency(s, &c->depends[k]);
    for (size_t k = 0; k < c->n_constraints; k++)
        *APPEND(s->constraints, s->n_constraints) = c->constraints[k];
    s->counters = (struct model_counters){c->next_job, c->next_node, c->next_instance,
        c->next_history, c->next_offer, c->next_cron, c->next_constraints, c->next_reservation};
}

static bool is_open(const struct shelf *s, const struct dependency_row *r)
{
    return (r->state == DEPEND_WAITS || r->state == DEPEND_NEVER) &&
           s->jobs[r->job].state != JOB_ENDED;
}

static void compare_dependency(
    const struct shelf *s, const struct model *m, const struct dependency_row *r)
{
    const struct job *j = model_job(m, r->job);
    bool found = false;
    if (j)
        LIST_FOREACH (&job_side(j)->depends, l)
            found |= memcmp(&LIST_ENTRY(l, struct dependency, of_job)->row, r, sizeof *r) == 0;
    if (found != is_open(s, r))
        fail_msg("a dependency of job %" PRId64 " changed without being marked", r->job);
}

static void compare_job(const struct shelf *s, const struct model *m, int64_t id)
{
    const struct job *j = model_job(m, id);
    struct job_row stored = s->jobs[id];
    if (!stored.id || stored.state == JOB_ENDED) {
        assert_null(j);
        return;
    }
    assert_non_null(j);
    stored.progress = j->row.progress; /* in memory only */
    stored.progress_total = j->row.progress_total;
    stored.shown_ms = j->row.shown_ms; /* of the progress */
    /* as of the last time that the job was stored */
    stored.baseline = j->row.baseline;
    stored.queued_mono = j->row.queued_mono;
    if (memcmp(&stored, &j->row, sizeof stored) != 0)
        fail_msg("job %" PRId64 " changed without being marked", id);
}

static void compare_attempts(const struct shelf *s, const struct model *m)
{
    for (size_t k = 0; k < s->n_attempts; k++) {
        const struct attempt_row *r = &s->attempts[k];
        const struct attempt *a = job_attempt_on(model_job(m, r->job), r->attempt, r->node);
        if ((a != NULL) != (r->state != ATTEMPT_ENDED) || (a && memcmp(&a->row, r, sizeof *r) != 0))
            fail_msg("attempt %" PRId64 " of job %" PRId64 " changed without being marked",
                r->attempt, r->job);
    }
}

static void compare_ckpt_gc(const struct shelf *s, const struct model *m)
{
    for (int64_t id = 1; id < (int64_t)s->n_ckpt_gc; id++) {
        const struct ckpt_gc_row *r = &s->ckpt_gc[id];
        const struct ckpt_gc *l = ckpt_gc_of(m, id);
        struct job j = {.row = s->jobs[id]};
        if ((l != NULL) != (r->job && r->state != CKPT_GC_DONE) ||
            (l && memcmp(&l->row, r, sizeof *r) != 0))
            fail_msg("the checkpoints of job %" PRId64 " changed without being marked", id);
        if (l && l->budgets != budgets_of(m, &j))
            fail_msg("what job %" PRId64 " left counts in other budgets than it did", id);
    }
    for (int64_t id = 1; id < (int64_t)s->n_stored; id++) {
        const struct stored_row *r = &s->stored[id];
        const struct stored *k = storage_of(m, id);
        if ((r->bytes > 0 && !k) || (k && memcmp(&k->row, r, sizeof *r) != 0))
            fail_msg("the storage of job %" PRId64 " changed without being marked", id);
    }
}

void shelf_compare(const struct shelf *s, const struct model *m)
{
    compare_ckpt_gc(s, m);
    compare_node_failures(s, m);
    for (int64_t id = 1; id < (int64_t)s->n_jobs; id++)
        compare_job(s, m, id);
    compare_attempts(s, m);
    for (size_t k = 0; k < s->n_drills; k++) {
        const struct job *j = model_job(m, s->drills[k].job);
        bool live =
            j && job_side(j)->drill && job_side(j)->drill->row.number == s->drills[k].number;
        if (live != (s->drills[k].state < DRILL_PASSED) ||
            (live && memcmp(&job_side(j)->drill->row, &s->drills[k], sizeof s->drills[k]) != 0))
            fail_msg("a drill of job %" PRId64 " changed without being marked", s->drills[k].job);
    }
    LIST_FOREACH (model_teams(m), lt) {
        LIST_FOREACH (&LIST_ENTRY(lt, struct team, in_all)->accounts, la) {
            const struct account *a = LIST_ENTRY(la, struct account, in_team);
            bool stored = !wall_is_set(a->row.at); /* no usage yet */
            for (size_t k = 0; k < s->n_accounts; k++)
                stored |= memcmp(&s->accounts[k], &a->row, sizeof a->row) == 0;
            if (!stored)
                fail_msg("what %s used changed without being marked", a->row.user);
        }
    }
    for (size_t k = 0; k < s->n_budgets; k++)
        for (size_t i = 0; i < budgets_count(m); i++)
            if (strcmp(budgets_at(m, i)->row.name, s->budgets[k].name) == 0 &&
                memcmp(&budgets_at(m, i)->row, &s->budgets[k], sizeof s->budgets[k]) != 0)
                fail_msg("budget %s changed without being marked", s->budgets[k].name);
    for (size_t k = 0; k < s->n_arrays; k++) {
        const struct job *j = model_job(m, s->arrays[k].job);
        if (j && memcmp(&j->array->row, &s->arrays[k], sizeof s->arrays[k]) != 0)
            fail_msg("array %" PRId64 " changed without being marked", j->row.id);
    }
    for (size_t k = 0; k < s->n_depends; k++)
        compare_dependency(s, m, &s->depends[k]);
    for (int64_t id = 1; id < (int64_t)s->n_nodes; id++) {
        const struct node *n = model_node(m, id);
        bool live = s->nodes[id].id && s->nodes[id].state != NODE_GONE;
        if (live != (n != NULL) || (n && memcmp(&n->row, &s->nodes[id], sizeof n->row) != 0))
            fail_msg("node %" PRId64 " changed without being marked", id);
    }
    for (int64_t id = 1; id < (int64_t)s->n_instances; id++) {
        const struct instance *i = model_instance(m, id);
        bool live = s->instances[id].id && s->instances[id].state != INSTANCE_GONE;
        if (live != (i != NULL) || (i && memcmp(&i->row, &s->instances[id], sizeof i->row) != 0))
            fail_msg("instance %" PRId64 " changed without being marked", id);
    }
    for (int64_t id = 1; id < (int64_t)s->n_offers; id++) {
        struct offer_row r = s->offers[id];
        const struct offer *o = model_offer(m, id);
        assert_non_null(o);
        r.avoid_until = o->row.avoid_until;
        if (memcmp(&o->row, &r, sizeof r) != 0)
            fail_msg("offer %" PRId64 " changed without being marked", id);
    }
}

static void must(int rc, const struct err *e)
{
    if (rc)
        fail_msg("load: %s", e->text);
}

struct array_ends *shelf_array_ends(const struct shelf *s, int64_t job)
{
    struct array_ends *ends = NULL;
    struct err e;
    for (size_t k = 0; k < s->n_arrays && !ends; k++) {
        if (s->arrays[k].job != job)
            continue;
        ends = mem_alloc(sizeof *ends);
        must(ranges_parse(s->arrays[k].tasks, &ends->all, &e), &e);
        bits_init(&ends->succeeded, ranges_last(&ends->all) + 1);
    }
    for (size_t k = 1; ends && k < s->n_jobs; k++)
        if (s->jobs[k].array == job && s->jobs[k].state == JOB_ENDED &&
            s->jobs[k].end == END_SUCCEEDED)
            bits_set(&ends->succeeded, s->jobs[k].array_index);
    return ends;
}

/* It has a task-by-task dependency, or another array has one on it. */
static bool is_of_tasks(const struct shelf *s, int64_t array)
{
    bool is = false;
    for (size_t k = 0; k < s->n_depends; k++)
        is |= s->depends[k].kind == DEPEND_AFTERCORR &&
              (s->depends[k].job == array || s->depends[k].on == array);
    return is && s->jobs[array].state != JOB_ENDED;
}

static bool is_asked_for(const struct shelf *s, int64_t constraints)
{
    for (size_t k = 1; k < s->n_jobs; k++)
        if (s->jobs[k].id && s->jobs[k].state != JOB_ENDED && s->jobs[k].constraints == constraints)
            return true;
    return false;
}

struct model *shelf_load(const struct shelf *s, struct stamp now)
{
    struct err e = {0};
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = s->lease_ms ? s->lease_ms : LAB_LEASE_MS,
        .policy = s->policy,
        .tables.licences = lab_licences,
        .tables.n_licences = LAB_LICENCES,
        .tables.budgets = s->budget_options,
        .tables.n_budgets = s->n_budget_options,
        .tables.racks = lab_racks,
        .tables.n_racks = LAB_RACKS,
        .node_failures = s->failing ? *s->failing : (struct node_failures_options){0},
        .store_uusd_gib_month = s->store_uusd_gib_month};
    const struct node_failure_row *failure;
    struct model *m = model_create(&o);
    for (size_t k = 0; k < s->n_pools; k++)
        must(model_load_pool(m, &s->pools[k], now, &e), &e);
    for (size_t k = 1; k < s->n_offers; k++)
        must(model_load_offer(m, &s->offers[k], &e), &e);
    for (size_t k = 1; k < s->n_instances; k++)
        if (s->instances[k].id && s->instances[k].state != INSTANCE_GONE)
            must(model_load_instance(m, &s->instances[k], now, &e), &e);
    for (size_t k = 1; k < s->n_nodes; k++)
        if (s->nodes[k].id && s->nodes[k].state != NODE_GONE)
            must(model_load_node(m, &s->nodes[k], now, &e), &e);
    for (size_t k = 1; k < s->n_nodes; k++)
        for (int32_t i = 0; (failure = failure_at(s, s->nodes[k].id, i)) != NULL; i++)
            must(model_load_node_failure(m, failure, &e), &e);
    for (size_t k = 0; k < s->n_drills; k++)
        if (is_certificate(s, &s->drills[k]))
            must(model_load_certificate(m, &s->drills[k], &e), &e);
    for (size_t k = 0; k < s->n_accounts; k++)
        must(model_load_account(m, &s->accounts[k], &e), &e);
    for (size_t k = 0; k < s->n_budgets; k++)
        must(model_load_budget(m, &s->budgets[k], &e), &e);
    for (size_t k = 0; k < s->n_constraints; k++)
        if (is_asked_for(s, s->constraints[k].id))
            must(model_load_constraints(m, &s->constraints[k], &e), &e);
    for (size_t k = 1; k < s->n_jobs; k++)
        if (s->jobs[k].id && s->jobs[k].state != JOB_ENDED)
            must(model_load_job(m, &s->jobs[k], now, &e), &e);
    for (size_t k = 0; k < s->n_arrays; k++)
        if (s->jobs[s->arrays[k].job].state != JOB_ENDED)
            must(model_load_array(m, &s->arrays[k], &e), &e);
    for (size_t k = 0; k < s->n_depends; k++)
        if (is_open(s, &s->depends[k]))
            must(model_load_dependency(m, &s->depends[k], &e), &e);
    for (size_t k = 1; k < s->n_jobs; k++) {
        const struct job_row *r = &s->jobs[k];
        const struct task_end end = {r->array, r->array_index, r->end == END_SUCCEEDED};
        if (r->id && r->array != CORE_ID_NONE && r->state == JOB_ENDED && is_of_tasks(s, r->array))
            must(model_load_task_end(m, &end, &e), &e);
    }
    for (size_t k = 0; k < s->n_attempts; k++)
        if (s->attempts[k].state != ATTEMPT_ENDED)
            must(model_load_attempt(m, &s->attempts[k], &e), &e);
    for (size_t k = 0; k < s->n_drills; k++)
        if (s->drills[k].state < DRILL_PASSED)
            must(model_load_drill(m, &s->drills[k], &e), &e);
    for (size_t k = 1; k < s->n_ckpt_gc; k++) {
        if (!s->ckpt_gc[k].job || s->ckpt_gc[k].state == CKPT_GC_DONE)
            continue;
        must(model_load_ckpt_gc(m, &s->ckpt_gc[k], &e), &e);
        must(model_load_ckpt_gc_of(m, &s->jobs[k], NULL, &e), &e);
    }
    for (size_t k = 1; k < s->n_stored; k++)
        if (s->stored[k].bytes > 0)
            must(model_load_stored(m, &s->stored[k], &e), &e);
    must(model_load_end(m, &s->counters, &e), &e);
    must(model_check(m, &e), &e);
    struct changes c = {0};
    model_take_changes(m, &c);
    assert_true(changes_is_empty(&c));
    changes_deinit(&c);
    return m;
}

void shelf_restart(struct shelf *s, struct lab *l)
{
    lab_take(l);
    shelf_put(s, &l->c);
    shelf_compare(s, l->m);
    model_destroy(l->m);
    planner_destroy(l->p);
    l->m = shelf_load(s, l->now);
    l->p = planner_create();
    shelf_compare(s, l->m);
}
