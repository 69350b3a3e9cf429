/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's invariants (model.h), checked from scratch. For tests and the simulator: O(model
 * size). Those of jobs and of the queue are in check_jobs.c.
 */
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/check_private.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/str.h"
#include <inttypes.h>
#include <string.h>

/* The usage that counts for limits is the sum over live jobs. */
static void sum_use(const struct job *j, int64_t used[LIMIT_KINDS])
{
    used[LIMIT_SUBMITTED] += job_submitted(j);
    used[LIMIT_RUNNING] += !list_is_empty(&j->ranks);
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        used[LIMIT_GPUS] += a->allocated.gpus;
        used[LIMIT_MCPU] += attempt_mcpu(a);
        used[LIMIT_UUSD_H] +=
            resources_share(&a->allocated, &a->node->row.total, a->node->row.price_uusd_h);
    }
}

static int check_use(
    const char *whose, const int64_t used[LIMIT_KINDS], const struct allowance *w, struct err *e)
{
    for (int k = 0; k < LIMIT_KINDS; k++)
        if (used[k] != w->used[k])
            return BROKEN("%s uses %" PRId64 " of %s, but counts %" PRId64, whose, used[k],
                limit_names[k], w->used[k]);
    return 0;
}

/* Each claim is for a place on one node, or for all nodes of a gang. */
static int check_claims(const struct model *m, const struct team *t, struct err *e)
{
    int64_t claimed = 0;
    LIST_FOREACH (&m->placement.reserving, l) {
        const struct shape *s = LIST_ENTRY(l, struct shape, by_reserve);
        int64_t n = 0;
        LIST_FOREACH (&s->reserved, ln)
            n += LIST_ENTRY(ln, struct node, in_reserved)->claims;
        if (n != (s->nodes > 1 ? s->claims * s->least : s->claims) || s->claims > s->n_wanted)
            return BROKEN("job %" PRId64 " has %" PRId64 " claims on nodes, but counts %" PRId64,
                s->head, n, s->claims);
        claimed += s->account->team == t ? s->claims * s->least * s->mcpu : 0;
    }
    if (claimed != t->claimed_mcpu)
        return BROKEN("claims of %" PRId64 " mcpu are kept for team %s, but it counts %" PRId64,
            claimed, t->name, t->claimed_mcpu);
    size_t n = 0;
    for (const struct demand_class *k = queue_first_of(t); k; k = queue_next_of(k))
        if (k->team != t || !k->first ||
            (queue_next_of(k) && queue_position_order(k->at, queue_next_of(k)->at) >= 0))
            return BROKEN("a demand class is out of order in the queue of team %s", t->name);
    for (const struct demand_class *k =
             queue_class_at_least(m, (struct queue_position){INT64_MIN, INT64_MIN});
         k; k = queue_next_class(k))
        n += k->team == t;
    return n == t->queue.n ? 0
                           : BROKEN("team %s has %zu demand classes in the queue, but counts %zu",
                                 t->name, n, t->queue.n);
}

/* The usage of an account is the sum over its live attempts. */
static int check_accounts(const struct model *m, struct err *e)
{
    LIST_FOREACH (&m->queue.all_teams, lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        int64_t of_team[LIMIT_KINDS] = {0};
        LIST_FOREACH (&t->accounts, la) {
            const struct account *a = LIST_ENTRY(la, struct account, in_team);
            int64_t mcpu = 0, jobs = 0, pending = 0, waits = 0, used[LIMIT_KINDS] = {0};
            const struct job *j;
            for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;) {
                if (j->account != a)
                    continue;
                jobs++;
                pending += tree_has(&j->in_shape);
                waits += job_side(j)->n_open;
                LIST_FOREACH (&j->ranks, l)
                    mcpu += attempt_mcpu(LIST_ENTRY(l, struct attempt, in_job));
                sum_use(j, used);
                sum_use(j, of_team);
            }
            if (check_use(a->row.user, used, &a->allowance, e) != 0)
                return ERR_INTERNAL;
            if (waits != a->n_waits)
                return BROKEN("jobs of %s wait for %" PRId64 " others, but %" PRId64 " are counted",
                    a->row.user, waits, a->n_waits);
            if (mcpu != a->mcpu || jobs != a->n_jobs || pending != a->n_pending)
                return BROKEN("%s of team %s has %" PRId64 " jobs that take %" PRId64
                              " mcpu, but counts %" PRId64 " and %" PRId64,
                    a->row.user, a->row.team, jobs, mcpu, a->n_jobs, a->mcpu);
        }
        if (check_use(t->name, of_team, &t->allowance, e) != 0 || check_claims(m, t, e) != 0)
            return ERR_INTERNAL;
    }
    return 0;
}

static int check_reservation(const struct node *n, struct err *e)
{
    const struct shape *s = n->reserved_for;
    if ((s != NULL) != link_is_in(&n->in_reserved) ||
        (s && (s->head == CORE_ID_NONE || !link_is_in(&s->by_reserve) || !node_takes_work(n) ||
                  !resources_fit(&s->need, &n->row.total))))
        return BROKEN("node %" PRId64
                      " is reserved for a job that is not pending, or that it cannot run",
            n->row.id);
    if (!reserve_is_valid(n))
        return BROKEN("node %" PRId64 " is reserved for job %" PRId64
                      ", but other jobs there delay it",
            n->row.id, s->head);
    return 0;
}

static int check_node_indexes(const struct node *n, struct err *e)
{
    bool works = node_takes_work(n), alive = n->row.state != NODE_LOST,
         has_capacity = works && n->free.cpus > 0;
    bool empty = n->instance && list_is_empty(&n->attempts) &&
                 (n->row.state == NODE_UP || n->row.state == NODE_DRAINING);
    bool idle = empty && !n->row.drained_by_belay;
    if (!node_is_in_order(n))
        return BROKEN("node %" PRId64 " is out of the order of free resources", n->row.id);
    if (has_capacity != (n->free_entry && tree_has(&n->free_entry->link) &&
                            n->free_entry->node == n && n->free_entry->id == n->row.id) ||
        works != link_is_in(&n->by_growth))
        return BROKEN("node %" PRId64 " is %s, but it is not indexed accordingly", n->row.id,
            sm_name(&node_sm, (int)n->row.state));
    if (alive != link_is_in(&n->by_seen))
        return BROKEN("node %" PRId64 "'s lease is %s", n->row.id,
            alive ? "not watched" : "watched though it is lost");
    if (idle != (n->state_list == &n->pool->idle))
        return BROKEN("node %" PRId64 " is %sidle, but it is not listed accordingly", n->row.id,
            idle ? "" : "not ");
    if (empty && node_ends_when_empty(n) && !n->state_list)
        return BROKEN("node %" PRId64 " is drained and empty, but its machine stays", n->row.id);
    if (list_is_empty(&n->attempts) != mono_is_set(n->idle_since))
        return BROKEN("node %" PRId64 "'s idle_since does not match its attempts", n->row.id);
    return 0;
}

/* Named resources: used by attempts plus free equals total. */
static int check_stock(const struct node *n, struct err *e)
{
    for (size_t k = 0; k < n->resources.n; k++) {
        int64_t used = 0;
        LIST_FOREACH (&n->attempts, l) {
            const struct constraints *x =
                LIST_ENTRY(l, struct attempt, on_node)->job->shape->constraints;
            used += x ? counts_of(&x->resources, n->resources.v[k].name) : 0;
        }
        if (n->stock.free[k] != n->resources.v[k].n - used ||
            (n->stock.free[k] < 0 && !n->stock.overdrawn))
            return BROKEN("node %" PRId64 " has %" PRId64 " %s, of which %" PRId64
                          " are used and %" PRId32 " free",
                n->row.id, n->resources.v[k].n, n->resources.v[k].name, used, n->stock.free[k]);
    }
    LIST_FOREACH (&n->attempts, l) {
        const struct job *j = LIST_ENTRY(l, struct attempt, on_node)->job;
        if ((j->shape->constraints ? j->shape->constraints->id : CONSTRAINTS_NONE) !=
            j->row.constraints)
            return BROKEN(
                "job %" PRId64 " has a shape with other constraints than its own", j->row.id);
    }
    return 0;
}

static int check_labels(const struct model *m, struct err *e)
{
    const char *names;
    const struct labels *l;
    const struct job *j;
    int64_t n_jobs = 0, n_counted = 0;
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;
         n_jobs += j->labels != NULL)
        if (j->shape->labels != j->labels)
            return BROKEN("job %" PRId64 " is of a shape with other labels", j->row.id);
    for (size_t pos = 0; (l = smap_next(&m->queue.labels, &pos, &names)) != NULL;)
        n_counted += l->n_jobs;
    return n_counted != n_jobs ? BROKEN("%" PRId64 " jobs have labels, but %" PRId64 " are counted",
                                     n_jobs, n_counted)
                               : 0;
}

/* Licences in use are those of running jobs, at most the total or the granted excess. */
static int check_licences(const struct model *m, struct err *e)
{
    int64_t used[LICENCES_MAX] = {0};
    size_t n_jobs = 0, n_counted = 0;
    const struct job *j;
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;) {
        const struct constraints *x = j->shape->constraints;
        n_jobs += x != NULL;
        for (size_t i = 0; x && job_attempt(j) && i < m->placement.n_licences; i++)
            used[i] += counts_of(&x->licences, m->placement.licences[i].what.name);
    }
    for (size_t i = 0; i < m->placement.n_licences; i++) {
        const struct licence *l = &m->placement.licences[i];
        if (used[i] != l->used || (used[i] > l->what.n && used[i] > l->granted))
            return BROKEN("%" PRId64 " of %" PRId64 " licences %s are used, but %" PRId64
                          " are counted",
                used[i], l->what.n, l->what.name, l->used);
    }
    const struct constraints *x;
    for (size_t pos = 0; (x = map_next(&m->placement.constraints, &pos, &(int64_t){0})) != NULL;)
        n_counted += (size_t)x->n_jobs;
    if (n_counted != n_jobs ||
        map_size(&m->placement.constraints) != smap_size(&m->placement.constraints_by_text))
        return BROKEN("%zu jobs have constraints, but %zu are counted", n_jobs, n_counted);
    return 0;
}

/* The draw of a rack is the sum over its nodes, and within its limit or the accepted excess. */
static int check_racks(const struct model *m, struct err *e)
{
    for (size_t i = 0; i < m->placement.n_racks; i++) {
        const struct rack *r = &m->placement.racks[i];
        int64_t draw = r->idle_w, over = 0;
        LIST_FOREACH (&r->nodes, l) {
            const struct node *n = LIST_ENTRY(l, struct node, in_rack);
            draw += n->draw_w;
            over += n->over_w;
            if (n->rack != r ||
                !(n->rack_kind->pool[0] ? str_eq(n->rack_kind->pool, n->row.pool)
                                        : hosts_has(n->rack_kind->names, n->row.name)))
                return BROKEN("node %" PRId64 " is not in rack %s", n->row.id, r->options->name);
        }
        if (draw != r->draw_w || over != r->over_w ||
            (draw > r->options->max_w && draw > r->granted_w))
            return BROKEN("rack %s draws %" PRId64 " W of %" PRId64 ", but %" PRId64 " are counted",
                r->options->name, draw, r->options->max_w, r->draw_w);
    }
    return 0;
}

static int check_node(const struct model *m, const struct node *n, struct err *e)
{
    struct resources used = {0};
    if (n->row.state == NODE_GONE || model_node(m, n->row.id) != n ||
        n->row.id >= m->changes.next_ids.next_node)
        return BROKEN("node %" PRId64 " is gone or not indexed", n->row.id);
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        const struct resources *takes = shape_takes(a->job->shape, &n->row.total);
        resources_give(&used, takes);
        if (takes->cpus != a->allocated.cpus || takes->gpus != a->allocated.gpus ||
            takes->memory_mib != a->allocated.memory_mib)
            return BROKEN("job %" PRId64 " uses other resources of node %" PRId64
                          " than its shape requires",
                a->row.job, n->row.id);
        if (shape_is_exclusive(a->job->shape) &&
            list_first(&n->attempts) != list_last(&n->attempts))
            return BROKEN("job %" PRId64 " is exclusive on node %" PRId64 ", but not alone there",
                a->row.job, n->row.id);
        if (a->node != n || job_attempt_on(a->job, a->row.attempt, n->row.id) != a ||
            n->row.state == NODE_LOST)
            return BROKEN("node %" PRId64 " has an attempt of job %" PRId64
                          " that is not live there",
                n->row.id, a->row.job);
    }
    if (!resources_fit(&used, &n->row.total))
        return BROKEN("node %" PRId64 " has more resources in use than in total", n->row.id);
    resources_give(&used, &n->free);
    if (used.cpus != n->row.total.cpus || used.gpus != n->row.total.gpus ||
        used.memory_mib != n->row.total.memory_mib)
        return BROKEN(
            "node %" PRId64 "'s free and used resources do not add up to its total", n->row.id);
    if ((n->row.instance != CORE_ID_NONE) != (n->instance != NULL) ||
        (n->instance && n->instance->node != n))
        return BROKEN("node %" PRId64 " and its instance do not refer to each other", n->row.id);
    int rc = check_reservation(n, e);
    if (rc == 0)
        rc = check_stock(n, e);
    return rc ? rc : check_node_indexes(n, e);
}

static int check_nodes(const struct model *m, struct err *e)
{
    size_t seen = 0;
    int64_t last = CORE_ID_NONE, lost = 0;
    LIST_FOREACH (&m->rows.all_nodes, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        int rc = check_node(m, n, e);
        if (rc)
            return rc;
        if (n->row.id <= last)
            return BROKEN("node %" PRId64 " is out of order", n->row.id);
        last = n->row.id;
        lost += n->row.state == NODE_LOST;
        seen++;
    }
    if (seen != map_size(&m->rows.nodes) || lost != m->lifecycle.n_nodes_lost)
        return BROKEN("%zu nodes are listed, %zu are indexed, and %" PRId64 " are counted as lost",
            seen, map_size(&m->rows.nodes), m->lifecycle.n_nodes_lost);
    return 0;
}

static int check_instances(const struct model *m, struct err *e)
{
    size_t seen = 0;
    LIST_FOREACH (&m->rows.all_instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        bool booting = i->row.state == INSTANCE_QUEUED || i->row.state == INSTANCE_LAUNCHED;
        if (i->row.state == INSTANCE_GONE || model_instance_by_token(m, i->row.token) != i ||
            i->row.id >= m->changes.next_ids.next_instance)
            return BROKEN("instance %" PRId64 " is gone, or not found by its token", i->row.id);
        if ((i->row.state == INSTANCE_RUNNING) != (i->node != NULL) ||
            booting != link_is_in(&i->booting))
            return BROKEN("instance %" PRId64 " is %s, but it %s node", i->row.id,
                sm_name(&instance_sm, (int)i->row.state), i->node ? "has a" : "has no");
        if (i->node && i->node->row.id != i->row.node)
            return BROKEN(
                "instance %" PRId64 " has another node than the one in its row", i->row.id);
        seen++;
    }
    if (seen != map_size(&m->rows.instances) || seen != smap_size(&m->rows.tokens))
        return BROKEN("%zu instances are listed, but %zu are indexed, with %zu tokens", seen,
            map_size(&m->rows.instances), smap_size(&m->rows.tokens));
    return 0;
}

static int32_t count_up(const struct model *m, const struct pool *p)
{
    int32_t up = 0;
    LIST_FOREACH (&m->rows.all_nodes, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        up += n->pool == p && n->row.state == NODE_UP;
    }
    return up;
}

static int check_pools(const struct model *m, struct err *e)
{
    LIST_FOREACH (&m->rows.all_pools, l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        struct capacity used = {0};
        int32_t n = 0;
        LIST_FOREACH (&m->rows.all_instances, li) {
            const struct instance *i = LIST_ENTRY(li, struct instance, in_all);
            if (i->pool != p)
                continue;
            n++;
            if (i->row.reclaimed)
                continue;
            used.nodes++;
            used.gpus += i->gpus;
            used.uusd_h += i->row.price_uusd_h;
        }
        if (n != p->n_nodes)
            return BROKEN("pool %s has %" PRId32 " instances but counts %" PRId32, p->row.name, n,
                p->n_nodes);
        if (memcmp(&used, &p->used, sizeof used) != 0)
            return BROKEN("pool %s uses %" PRId64 " nodes, %" PRId64 " gpus, %" PRId64
                          " uusd an hour, but counts %" PRId64 ", %" PRId64 ", %" PRId64,
                p->row.name, used.nodes, used.gpus, used.uusd_h, p->used.nodes, p->used.gpus,
                p->used.uusd_h);
        int32_t up = count_up(m, p);
        if (up != p->n_up)
            return BROKEN(
                "pool %s has %" PRId32 " nodes up but counts %" PRId32, p->row.name, up, p->n_up);
        const struct instance *trial = p->on_trial;
        if (trial && (!trial->node || trial->row.boot != BOOT_OPEN || p->row.boots.failed == 0))
            return BROKEN("instance %" PRId64 " of pool %s is on trial, but its boot is %s",
                trial->row.id, p->row.name, boot_verdict_names[trial->row.boot]);
    }
    return 0;
}

static int check_ckpt_gc(const struct model *m, struct err *e)
{
    const struct ckpt_gc *l;
    size_t waiting = 0;
    for (size_t pos = 0; (l = map_next(&m->lifecycle.ckpt_gc, &pos, &(int64_t){0})) != NULL;) {
        bool cleaning = l->row.state == CKPT_GC_CLEANING;
        if (model_job(m, l->row.job) || l->row.job >= m->changes.next_ids.next_job)
            return BROKEN(
                "job %" PRId64 " is live, but its remaining data is to be deleted", l->row.job);
        if (l->row.state == CKPT_GC_DONE || cleaning != (m->lifecycle.cleaning == l) ||
            cleaning == tree_has(&l->by_due))
            return BROKEN("the data of ended job %" PRId64 " is %s, but not listed so", l->row.job,
                sm_name(&ckpt_gc_sm, (int)l->row.state));
        waiting += !cleaning;
    }
    if (waiting != m->lifecycle.ckpt_gc_due.n)
        return BROKEN("the data of %zu ended jobs waits for deletion, but %zu are in order",
            waiting, m->lifecycle.ckpt_gc_due.n);
    return 0;
}

static int check_drills(const struct model *m, struct err *e)
{
    size_t live = 0, of_jobs = 0;
    const struct job *j;
    LIST_FOREACH (&m->lifecycle.live_drills, l) {
        const struct drill *d = LIST_ENTRY(l, struct drill, in_live);
        const struct attempt *a = job_attempt(d->job);
        bool stops = d->row.state == DRILL_STOPPING;
        live++;
        if (job_side(d->job)->drill != d || d->row.job != d->job->row.id ||
            d->row.state >= DRILL_PASSED)
            return BROKEN("a drill of job %" PRId64 " is over, or not its job's", d->row.job);
        if (stops != (a && a->row.attempt == d->row.attempt) ||
            (stops && (a->row.state != ATTEMPT_STOPPING)) || (d->row.state == DRILL_RESUMED && !a))
            return BROKEN("job %" PRId64 "'s drill is %s, but its attempt is in another state",
                d->row.job, sm_name(&drill_sm, (int)d->row.state));
    }
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;) {
        of_jobs += job_side(j)->drill != NULL;
        bool for_drill = job_side(j)->drill && job_side(j)->drill->row.avoids;
        bool for_store = link_is_in(&job_side(j)->avoids);
        if (job_side(j)->avoid == CORE_ID_NONE
                ? for_store
                : for_drill == for_store || j->row.state != JOB_PENDING)
            return BROKEN("job %" PRId64 " avoids node %" PRId64 ", but not for exactly one reason",
                j->row.id, job_side(j)->avoid);
        if (j->certified_at.ms != certificate_date(m, j->row.script_key).ms ||
            j->shape->certified_at.ms != j->certified_at.ms ||
            j->shape->avoid != job_side(j)->avoid)
            return BROKEN("job %" PRId64
                          " has a shape with another certificate or avoided node than its own",
                j->row.id);
    }
    if (live != of_jobs || live > DRILLS_LIVE_MAX)
        return BROKEN("%zu drills are live, but %zu jobs have one", live, of_jobs);
    return 0;
}

static int check_requeues(const struct model *m, struct err *e)
{
    const struct job *j;
    size_t n = 0;
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;)
        LIST_FOREACH (&j->ranks, l) {
            const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
            bool is_asked = wall_is_set(a->row.requeue_asked_at);
            n += is_asked;
            if (is_asked != tree_has(&a->in_user_requeues))
                return BROKEN("job %" PRId64
                              " is %sto be saved and queued again, but is %slisted so",
                    j->row.id, is_asked ? "" : "not ", is_asked ? "not " : "");
            if (is_asked && (a->row.state != ATTEMPT_RUNNING || j->row.spec.method == CKPT_NONE ||
                                job_attempt(j) != a))
                return BROKEN("job %" PRId64
                              " is to be saved and queued again, but its attempt is %s",
                    j->row.id, sm_name(&attempt_sm, (int)a->row.state));
        }
    return n == m->lifecycle.user_requeues.n
               ? 0
               : BROKEN("%zu jobs are to be saved and queued again, but %zu are counted", n,
                     m->lifecycle.user_requeues.n);
}

static int check_withheld(const struct model *m, struct err *e)
{
    size_t n = 0;
    LIST_FOREACH (&m->rows.all_nodes, ln)
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_all)->attempts, l) {
            const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
            bool is = a->withheld != WITHHELD_NO;
            n += is;
            if (is != tree_has(&a->by_withheld) || (is && a->row.state != ATTEMPT_ASSIGNED))
                return BROKEN("job %" PRId64
                              " is %slisted as withheld from its agent, but its attempt is %s",
                    a->row.job, is ? "" : "not ", sm_name(&attempt_sm, (int)a->row.state));
        }
    if (n != m->lifecycle.by_withheld.n)
        return BROKEN(
            "%zu attempts are withheld, but %zu are in order", n, m->lifecycle.by_withheld.n);
    return 0;
}

int model_check(const struct model *m, struct err *e)
{
    int rc = check_jobs(m, e);
    if (rc == 0)
        rc = check_nodes(m, e);
    if (rc == 0)
        rc = check_instances(m, e);
    if (rc == 0)
        rc = check_ckpt_gc(m, e);
    if (rc == 0)
        rc = check_drills(m, e);
    if (rc == 0)
        rc = check_requeues(m, e);
    if (rc == 0)
        rc = check_withheld(m, e);
    if (rc == 0)
        rc = check_accounts(m, e);
    if (rc == 0)
        rc = check_licences(m, e);
    if (rc == 0)
        rc = check_racks(m, e);
    if (rc == 0)
        rc = check_labels(m, e);
    if (rc == 0)
        rc = budgets_check(m, e);
    if (rc == 0)
        rc = crons_check(m, e);
    if (rc == 0)
        rc = maintenance_check(m, e);
    return rc ? rc : check_pools(m, e);
}
