/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery: builds the model from the stored rows. Contradictory rows are refused by name, since
 * guessing could run a job twice. Timeouts in monotonic time start again, because it does not
 * outlive a process.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/array_dependencies.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/boots.h"

#include "base/mem.h"
#include "base/minmax.h"
#include <inttypes.h>
#include <stdlib.h>

/* Ids come in order; the counter advances past them. */
static int check_id(int64_t id, int64_t *next, const char *thing, struct err *e)
{
    if (id < *next)
        return err_set(
            e, ERR_CORRUPT, "stored %s %" PRId64 " comes twice or out of order", thing, id);
    *next = id + 1;
    return 0;
}

int model_load_pool(struct model *m, const struct pool_row *r, struct stamp now, struct err *e)
{
    if (!r->name[0] || model_pool(m, r->name))
        return err_set(e, ERR_CORRUPT, "stored pool '%s' comes twice or has no name", r->name);
    boots_load(pool_add(m, r), now);
    return 0;
}

int model_load_offer(struct model *m, const struct offer_row *r, struct err *e)
{
    struct pool *p = model_pool(m, r->pool);
    if (!p)
        return err_set(e, ERR_CORRUPT,
            "stored offer %" PRId64 " is of pool '%s', which is not stored", r->id, r->pool);
    int rc = check_id(r->id, &m->changes.next_ids.next_offer, "offer", e);
    if (rc)
        return rc;
    struct offer *o = mem_alloc(sizeof *o);
    o->row = *r;
    o->row.avoid_until = MONO_NONE;
    o->pool = p;
    map_put(&m->rows.offers, r->id, o);
    offer_describe(o);
    offer_sort_in(p, o);
    return 0;
}

int model_load_instance(
    struct model *m, const struct instance_row *r, struct stamp now, struct err *e)
{
    struct pool *p = model_pool(m, r->pool);
    if (!p)
        return err_set(e, ERR_CORRUPT,
            "stored instance %" PRId64 " is of pool '%s', which is not stored", r->id, r->pool);
    if (r->state < INSTANCE_INTENDED || r->state >= INSTANCE_GONE ||
        model_instance_by_token(m, r->token))
        return err_set(e, ERR_CORRUPT,
            "stored instance %" PRId64 " has an invalid state, or its token comes twice", r->id);
    int rc = check_id(r->id, &m->changes.next_ids.next_instance, "instance", e);
    if (rc)
        return rc;
    struct instance *i = mem_alloc(sizeof *i);
    i->row = *r;
    i->pool = p;
    i->since = now.mono;
    if (r->state == INSTANCE_QUEUED)
        /* its patience is longer than belayd may run between two restarts */
        i->since.ms -= max_i64(0, now.wall.ms - r->intended_at.ms);
    instance_index(m, i);
    return 0;
}

static int check_node(
    const struct model *m, const struct node_row *r, const struct instance *i, struct err *e)
{
    if (r->state < NODE_UP || r->state >= NODE_GONE || r->market < MARKET_OWNED ||
        r->market > MARKET_ON_DEMAND)
        return err_set(
            e, ERR_CORRUPT, "stored node %" PRId64 " has an invalid state or market", r->id);
    if (!model_pool(m, r->pool))
        return err_set(e, ERR_CORRUPT,
            "stored node %" PRId64 " is of pool '%s', which is not stored", r->id, r->pool);
    if (smap_get(&m->rows.node_names, r->name) || model_node_by_key(m, r->key_hash))
        return err_set(
            e, ERR_CORRUPT, "stored node %" PRId64 " has the name or the key of another", r->id);
    if (r->instance != CORE_ID_NONE &&
        (!i || i->node || i->row.node != r->id || i->row.state != INSTANCE_RUNNING))
        return err_set(e, ERR_CORRUPT,
            "stored node %" PRId64 " and its instance %" PRId64 " contradict each other", r->id,
            r->instance);
    return 0;
}

int model_load_node(struct model *m, const struct node_row *r, struct stamp now, struct err *e)
{
    struct instance *i = r->instance != CORE_ID_NONE ? model_instance(m, r->instance) : NULL;
    int rc = check_node(m, r, i, e);
    if (rc == 0)
        rc = check_id(r->id, &m->changes.next_ids.next_node, "node", e);
    if (rc)
        return rc;
    struct node *n = slab_take(&m->rows.node_slab, sizeof *n);
    n->row = *r;
    n->free = r->total;
    n->pool = model_pool(m, r->pool);
    n->instance = i;
    n->last_seen = n->since = n->idle_since = now.mono;
    /* stored by a version of belay without a ledger of owned nodes */
    if (!i && !wall_is_set(r->priced_at))
        n->row.joined_at = n->row.priced_at = now.wall;
    node_describe(n);
    if (i) {
        struct offer *o = i->offer;
        i->node = n;
        boots_node_loaded(i);
        if (o)
            offer_note_size(o, &r->total);
    }
    node_index(m, n);
    return 0;
}

int model_load_account(struct model *m, const struct account_row *r, struct err *e)
{
    if (!r->user[0] || !r->team[0] || r->used < 0 || !wall_is_set(r->at))
        return err_set(e, ERR_CORRUPT,
            "stored account of user '%s' in team '%s' has no name, or has negative usage", r->user,
            r->team);
    struct account *a = account_of(m, r->team, r->user);
    if (wall_is_set(a->row.at))
        return err_set(e, ERR_CORRUPT, "stored account of user '%s' in team '%s' comes twice",
            r->user, r->team);
    a->row = *r;
    return 0;
}

int model_load_job(struct model *m, const struct job_row *r, struct stamp now, struct err *e)
{
    if (r->spec.nodes_min < 1 || r->spec.nodes < r->spec.nodes_min ||
        r->spec.nodes > JOB_NODES_MAX || r->ranks < 0 || r->ranks > r->spec.nodes)
        return err_set(e, ERR_CORRUPT,
            "stored job %" PRId64 " is for %" PRId32 " to %" PRId32 " nodes and runs on %" PRId32,
            r->id, r->spec.nodes_min, r->spec.nodes, r->ranks);
    if (r->procurement != PROCURE_FREE && r->spec.finish_ms == 0)
        return err_set(e, ERR_CORRUPT,
            "stored job %" PRId64 " has procurement '%s', but no finish time", r->id,
            procurement_names[r->procurement]);
    if (r->state < JOB_PENDING || r->state >= JOB_ENDED)
        return err_set(e, ERR_CORRUPT, "stored job %" PRId64 " is loaded though it ended", r->id);
    int rc = check_id(r->id, &m->changes.next_ids.next_job, "job", e);
    if (rc)
        return rc;
    if (r->constraints != CONSTRAINTS_NONE && !model_constraints(m, r->constraints))
        return err_set(e, ERR_CORRUPT,
            "stored job %" PRId64 " has constraints %" PRId64 ", which are not stored", r->id,
            r->constraints);
    constraints_ref(m, r->constraints);
    struct job *j = slab_take(&m->rows.job_slab, sizeof *j);
    j->row = *r;
    j->row.queued_mono = now.mono;
    j->certified_at = certificate_date(m, r->script_key);
    j->account = account_of(
        m, r->spec.team[0] ? r->spec.team : policy_team_of(model_policy(m), r->user), r->user);
    const struct job *array = model_job(m, r->array);
    j->labels = array ? labels_ref(array->labels) : labels_take_loaded(m, r->id);
    map_put(&m->rows.jobs, r->id, j);
    *GROW(m->loading.jobs, m->loading.n_jobs) = j;
    j->least = r->spec.nodes;
    queue_adopt(m, j);
    limits_submitted(j->account, job_submitted(j));
    if (r->state != JOB_UNFOLDED)
        procurement_look(m, j, now);
    if (r->array == CORE_ID_NONE)
        dependencies_adopt(m, j);
    dependencies_set_not_before(m, j, now.wall);
    if (wall_is_set(r->gang_resize_until))
        job_make_side(j)->gang_resize_until = gang_until(r, now);
    window_watch(m, j, now.wall);
    return 0;
}

int model_load_attempt(struct model *m, const struct attempt_row *r, struct err *e)
{
    struct job *j = model_job(m, r->job);
    struct node *n = model_node(m, r->node);
    const struct link *last = j ? list_last(&j->ranks) : NULL;
    bool in_order =
        last ? LIST_ENTRY(last, struct attempt, in_job)->row.rank < r->rank : r->rank >= 0;
    if (!j || !in_order || r->rank >= j->row.ranks || job_attempt_on(j, r->attempt, r->node) ||
        j->row.state == JOB_PENDING || j->row.attempts != r->attempt)
        return err_set(e, ERR_CORRUPT,
            "stored attempt %" PRId64 " and its job %" PRId64 " contradict each other", r->attempt,
            r->job);
    bool shares = n && !list_is_empty(&n->attempts);
    if (!n || n->row.state == NODE_LOST || !resources_fit(&j->row.spec.need, &n->free) ||
        (shares && shape_is_exclusive(j->shape)))
        return err_set(e, ERR_CORRUPT,
            "stored attempt %" PRId64 " of job %" PRId64 " cannot be on node %" PRId64, r->attempt,
            r->job, r->node);
    if (r->state < ATTEMPT_ASSIGNED || r->state >= ATTEMPT_ENDED)
        return err_set(e, ERR_CORRUPT,
            "stored attempt %" PRId64 " of job %" PRId64 " is loaded though it ended", r->attempt,
            r->job);
    struct attempt *a = slab_take(&m->rows.attempt_slab, sizeof *a);
    a->row = *r;
    a->job = j;
    if (list_is_empty(&j->ranks))
        licences_load(m, j);
    list_push_back(&j->ranks, &a->in_job);
    node_attach(m, n, a);
    if (j->shape->constraints)
        node_describe(n);                /* its attempts may have more than its current total */
    j->account->mcpu += attempt_mcpu(a); /* since its row was stored */
    limits_take(m, a);
    budgets_attach(m, a);
    drill_attempt_loaded(m, a);
    user_requeue_attempt_loaded(m, a);
    return 0;
}

/* In order of submission: each job is appended behind the earlier ones, without a search for its
 * place. */
static int load_queue(struct model *m, struct err *e)
{
    for (size_t i = 0; i < m->loading.n_jobs; i++)
        array_dependencies_load(m, m->loading.jobs[i]);
    for (size_t i = 0; i < m->loading.n_jobs; i++) {
        struct job *j = m->loading.jobs[i];
        if (j->row.state == JOB_PENDING)
            dependencies_load(m, j);
        else if (j->row.state != JOB_UNFOLDED && !job_attempt(j))
            return err_set(e, ERR_CORRUPT, "stored job %" PRId64 " is %s but has no attempt",
                j->row.id, sm_name(&job_sm, (int)j->row.state));
    }
    return 0;
}

int model_load_end(struct model *m, const struct model_counters *c, struct err *e)
{
    for (size_t i = 0; i < m->loading.n_jobs; i++) {
        struct job *j = m->loading.jobs[i];
        struct job *parent = j->row.array != CORE_ID_NONE ? model_job(m, j->row.array) : NULL;
        if (j->row.array != CORE_ID_NONE && (!parent || !parent->array))
            return err_set(e, ERR_CORRUPT,
                "stored job %" PRId64 " is a task of array %" PRId64 ", which is not stored",
                j->row.id, j->row.array);
        notify_watch(m, j);
        idle_gpus_load(m, j);
        if (parent) {
            array_load_begun(parent, j->row.array_index);
            array_adopt(parent, j);
        }
        if (j->row.state == JOB_UNFOLDED && !j->array)
            return err_set(e, ERR_CORRUPT, "stored job %" PRId64 " is unfolded but is not an array",
                j->row.id);
    }
    LIST_FOREACH (&m->rows.all_nodes, l) {
        int rc = gang_load_kept(m, LIST_ENTRY(l, struct node, in_all), e);
        if (rc)
            return rc;
    }
    racks_accept(m);
    int rc = load_queue(m, e);
    if (rc)
        return rc;
    rc = labels_load_end(m, e);
    if (rc)
        return rc;
    free(m->loading.jobs);
    m->loading.jobs = NULL;
    m->loading.n_jobs = 0;
    LIST_FOREACH (&m->rows.all_instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (i->row.state == INSTANCE_RUNNING && !i->node)
            return err_set(e, ERR_CORRUPT,
                "stored instance %" PRId64 " is running but its node %" PRId64 " is not stored",
                i->row.id, i->row.node);
    }
    m->changes.next_ids = (struct model_counters){
        .next_job = max_i64(m->changes.next_ids.next_job, c->next_job),
        .next_node = max_i64(m->changes.next_ids.next_node, c->next_node),
        .next_instance = max_i64(m->changes.next_ids.next_instance, c->next_instance),
        .next_history = max_i64(m->changes.next_ids.next_history, c->next_history),
        .next_offer = max_i64(m->changes.next_ids.next_offer, c->next_offer),
        .next_cron = max_i64(m->changes.next_ids.next_cron, c->next_cron),
        .next_constraints = max_i64(m->changes.next_ids.next_constraints, c->next_constraints),
        .next_reservation = max_i64(m->changes.next_ids.next_reservation, c->next_reservation),
    };
    return 0;
}
