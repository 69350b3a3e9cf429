/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with method criu use only machines that can checkpoint them. Nodes report their support. For
 * future machines of an elastic pool the configuration has it, else the latest report of a machine
 * of the pool. If it is unknown, one machine is launched to find out.
 */
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/queue/limits.h"

#include "base/str.h"
#include <string.h>

enum criu_ability criu_needed(const struct job_row *j)
{
    if (j->spec.method != CKPT_CRIU)
        return CRIU_UNKNOWN;
    return j->spec.need.gpus > 0 ? CRIU_GPU : CRIU_CPU;
}

bool node_can_criu(const struct node *n, enum criu_ability need)
{
    return n->row.criu >= need;
}

bool node_suits(const struct node *n, const struct shape *s)
{
    return n->row.id != s->avoid && !node_is_kept_from(n, s) && node_can_criu(n, s->criu) &&
           node_has_constraints(n, s) && shape_may_use(s, n->pool, n->row.market) &&
           limits_allow(s, n->pool, &n->row.total, n->row.price_uusd_h);
}

static enum criu_ability expected_ability(const struct pool *p)
{
    return p->row.criu != CRIU_UNKNOWN ? p->row.criu : p->row.criu_seen;
}

bool pool_may_criu(const struct pool *p, enum criu_ability need)
{
    return expected_ability(p) == CRIU_UNKNOWN || expected_ability(p) >= need;
}

const char *pool_criu_why(const struct pool *p)
{
    if (p->row.criu == CRIU_UNKNOWN)
        return p->row.criu_text;
    return p->row.criu == CRIU_NO ? "its configuration says criu: no"
                                  : "its configuration says criu: cpu";
}

static void pool_note_criu(struct model *m, struct pool *p, const struct node_row *n)
{
    enum criu_ability can = n->criu == CRIU_UNKNOWN ? CRIU_NO : n->criu;
    if (!p->row.elastic || (p->row.criu_seen == can && strcmp(p->row.criu_text, n->criu_text) == 0))
        return;
    p->row.criu_seen = can;
    STR_COPY(p->row.criu_text, n->criu_text);
    touch_pool(m, p);
    model_note_change(m);
}

void node_set_criu(struct model *m, struct node *n, enum criu_ability can, const char *text)
{
    bool other = n->row.criu != can || strcmp(n->row.criu_text, text) != 0,
         more = can > n->row.criu;
    n->row.criu = can;
    STR_COPY(n->row.criu_text, text);
    pool_note_criu(m, n->pool, &n->row);
    if (!other)
        return;
    touch_node(m, n);
    node_refresh(m, n, more);
}

/* ---- unknown support ---- */

const char *core_criu_untried(const struct model *m, const struct job_row *j)
{
    const char *untried = NULL;
    enum criu_ability need = criu_needed(j);
    if (need == CRIU_UNKNOWN)
        return NULL;
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        bool mine = job_pools_allow(j->spec.pool, p->row.name);
        if (mine && p->row.elastic && p->row.max_nodes > 0 && expected_ability(p) == CRIU_UNKNOWN &&
            !untried)
            untried = p->row.name;
        else if (mine && p->row.elastic && expected_ability(p) >= need)
            return NULL;
    }
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (job_pools_allow(j->spec.pool, n->row.pool) && node_can_criu(n, need))
            return NULL;
    }
    return untried;
}

/* ---- submit ---- */

struct criu_survey {
    int64_t can, cannot; /* machines and pools that the job may use */
    const char *who, *why;
};

static void count_ability(struct criu_survey *r, bool may, const char *who, const char *why)
{
    r->can += may;
    r->cannot += !may;
    if (!may && !r->who) {
        r->who = who;
        r->why = why[0] ? why : "its agent does not report what CRIU can do there";
    }
}

static void weigh_nodes(
    const struct model *m, const struct pool *p, const struct job_row *j, struct criu_survey *r)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool == p && resources_fit(&j->spec.need, &n->row.total))
            count_ability(r, node_can_criu(n, criu_needed(j)), n->row.name, n->row.criu_text);
    }
}

static void weigh_offers(const struct pool *p, const struct job_row *j, struct criu_survey *r)
{
    LIST_FOREACH (&p->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        struct resources total = offer_total(o);
        if (o->row.rank != OFFER_WITHDRAWN && resources_fit(&j->spec.need, &total) &&
            market_wish_allows(j->spec.market, o->row.market))
            count_ability(r, pool_may_criu(p, criu_needed(j)), p->row.name, pool_criu_why(p));
    }
}

int criu_check_submit(const struct model *m, const struct job_row *j, struct err *e)
{
    struct criu_survey r = {0};
    if (criu_needed(j) == CRIU_UNKNOWN)
        return 0;
    if (j->spec.nodes > 1)
        return err_set(e, ERR_UNSUPPORTED,
            "--checkpoint criu is for single-node jobs: connections between nodes cannot be saved");
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!job_pools_allow(j->spec.pool, p->row.name))
            continue;
        if (p->row.elastic)
            weigh_offers(p, j, &r);
        else
            weigh_nodes(m, p, j, &r);
    }
    if (r.can > 0 || r.cannot == 0)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
        "--checkpoint criu%s: no machine that the job may use can do that; %s: %.180s",
        j->spec.need.gpus > 0 ? " with GPUs" : "", r.who, r.why);
}
