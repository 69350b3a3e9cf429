/* SPDX-License-Identifier: Apache-2.0
 *
 * The node that a pending job temporarily avoids: a drilled job should resume elsewhere (drill.c),
 * and an attempt that could not use the store on its node, or found no space on its disk, is tried
 * on another.
 *
 * Invariants.
 *  1. Only pending single-node jobs avoid a node: a gang goes where there is capacity for all of
 *     it.
 *  2. A node is avoided only while another one had capacity, was coming or could be launched when
 *     the avoidance began, and after such a failure at most for AVOID_MS: a job never waits forever
 *     for a machine that is unavailable.
 *
 * Avoidance after such failures is in memory only. After a restart of belayd the next attempt may
 * be placed on the same node and counts as one of JOB_STORE_MAX, or of JOB_NO_SPACE_MAX.
 */
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/supply/offers.h"

#include <inttypes.h>

#define AVOID_MS SECONDS_MS(600)

static bool pool_may_serve(const struct pool *p, const struct shape *s, enum market market)
{
    return shape_allows_pool(s, p) && shape_may_use(s, p, market);
}

static bool offer_may_launch(
    const struct model *m, const struct offer *o, const struct shape *s, struct stamp now)
{
    struct capacity capacity = pool_capacity(o->pool, now.mono), all = model_capacity(m);

    return offer_may_serve(o, s, &capacity, &all, now);
}

/* Another node has capacity, is coming, or may be launched. */
static bool has_other_place(const struct model *m, const struct shape *s, struct stamp now)
{
    if (nodes_best(m, s, now))
        return true;
    LIST_FOREACH (model_instances(m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        struct resources total = i->offer ? offer_total(i->offer) : (struct resources){0};
        if (instance_is_coming(i) && pool_may_serve(i->pool, s, i->row.market) &&
            resources_fit(&s->need, &total) && offer_suits(i->offer, s))
            return true;
    }
    LIST_FOREACH (model_pools(m), lp) {
        LIST_FOREACH (&LIST_ENTRY(lp, struct pool, in_all)->offers, lo)
            if (offer_may_launch(m, LIST_ENTRY(lo, struct offer, in_pool), s, now))
                return true;
    }
    return false;
}

void avoid_set(struct model *m, struct job *j, int64_t node)
{
    job_make_side(j)->avoid = node;
    queue_reshape(m, j);
}

void avoid_end(struct model *m, struct job *j)
{
    if (job_side(j)->avoid == CORE_ID_NONE)
        return;
    link_remove(&j->side->avoids);
    j->side->avoid = CORE_ID_NONE;
    queue_reshape(m, j);
}

bool avoid_begin(struct model *m, struct job *j, int64_t node, struct stamp now)
{
    if (j->row.spec.nodes > 1)
        return false;
    avoid_set(m, j, node);
    if (has_other_place(m, j->shape, now))
        return true;
    avoid_end(m, j);
    return false;
}

void avoid_for_now(struct model *m, struct job *j, int64_t node, struct stamp now)
{
    if (!avoid_begin(m, j, node, now))
        return;
    j->side->avoids_until = (struct mono){now.mono.ms + AVOID_MS};
    list_push_back(&m->placement.avoiding, &j->side->avoids);
}

void avoid_drop(struct job *j)
{
    if (j->side)
        link_remove(&j->side->avoids);
}

struct mono avoid_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    (void)now;
    const struct link *l = list_first(&m->placement.avoiding);

    if (!l)
        return MONO_NONE;
    const struct job_side *s = LIST_ENTRY(l, struct job_side, avoids);
    *ret_event = (struct event){.type = EV_AVOIDED, .avoided.job = s->job->row.id};
    return s->avoids_until;
}

int apply_avoided(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->avoided.job);

    if (!j || !link_is_in(&job_side(j)->avoids) || j->side->avoids_until.ms > ev->now.mono.ms)
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " has not avoided a node for long enough",
            ev->avoided.job);
    avoid_end(m, j);
    ret_outcome->id = j->row.id;
    return 0;
}
