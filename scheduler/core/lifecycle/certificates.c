/* SPDX-License-Identifier: Apache-2.0
 *
 * Scripts that were observed to resume. A certificate is a passed drill. It is valid for every job
 * with the same user, method and script (rows.h, script_key) until a newer drill of one of them
 * fails. It carries its date, since each pool sets a maximum age (shape_may_use).
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/queue.h"

#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct certificate {
    struct wall at;
};

struct wall certificate_date(const struct model *m, const char *script_key)
{
    const struct certificate *c =
        script_key[0] ? smap_get(&m->lifecycle.certificates, script_key) : NULL;
    return c ? c->at : WALL_NONE;
}

static void certificate_put(struct model *m, const char *script_key, struct wall at)
{
    struct certificate *c = smap_get(&m->lifecycle.certificates, script_key);
    if (!c) {
        c = mem_alloc(sizeof *c);
        smap_put(&m->lifecycle.certificates, script_key, c);
    }
    c->at = at;
}

static void certificate_drop(struct model *m, const char *script_key)
{
    free(smap_get(&m->lifecycle.certificates, script_key));
    smap_remove(&m->lifecycle.certificates, script_key);
}

/* Visits every job; drills are rare. */
void certificate_note(struct model *m, const struct drill_row *d)
{
    struct job *j;
    if (!d->script_key[0])
        return;
    if (d->state == DRILL_PASSED)
        certificate_put(m, d->script_key, d->ended_at);
    else
        certificate_drop(m, d->script_key);
    struct wall at = certificate_date(m, d->script_key);
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;) {
        if (strcmp(j->row.script_key, d->script_key) != 0 || j->certified_at.ms == at.ms)
            continue;
        j->certified_at = at;
        queue_reshape(m, j);
    }
    model_note_change(m);
}

/* ---- pools that require one ---- */

/* no certificate is valid before the first event, which has the time */
#define SINCE_NEVER INT64_MAX

bool shape_takes_offer(const struct shape *s, const struct offer *o)
{
    return s->procurement != PROCURE_SPOT || s->procurement_offer == CORE_ID_NONE ||
           o->row.market != MARKET_SPOT || o->row.id == s->procurement_offer;
}

bool shape_may_use(const struct shape *s, const struct pool *p, enum market market)
{
    if (!market_wish_allows(s->wish, market) || !procurement_allows(s->procurement, market) ||
        (p->row.required_labels[0] && !labels_suffice(s->labels, p)))
        return false;
    bool is_free = market != MARKET_SPOT || !wall_is_set(p->certified_since);
    return is_free || (wall_is_set(s->certified_at) && s->certified_at.ms >= p->certified_since.ms);
}

void pool_age(struct pool *p, struct wall now)
{
    if (!p->row.require_drill)
        p->certified_since = WALL_NONE;
    else
        p->certified_since.ms = wall_is_set(now) ? now.ms - p->row.drill_valid_ms : SINCE_NEVER;
}

/* Called for every event: an expired certificate reduces usable capacity, which does not affect
 * what the planner remembers. */
void pools_age(struct model *m, struct wall now)
{
    LIST_FOREACH (model_pools(m), l) {
        struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (p->row.require_drill)
            pool_age(p, now);
    }
}

int model_load_certificate(struct model *m, const struct drill_row *r, struct err *e)
{
    if (r->state != DRILL_PASSED || !r->script_key[0] || !wall_is_set(r->ended_at) ||
        smap_get(&m->lifecycle.certificates, r->script_key))
        return err_set(e, ERR_CORRUPT,
            "stored drill %" PRId64 " of job %" PRId64
            " is not a certificate, or its script has two",
            r->number, r->job);
    certificate_put(m, r->script_key, r->ended_at);
    return 0;
}

void certificates_destroy_all(struct model *m)
{
    const char *key;
    void *c;
    for (size_t pos = 0; (c = smap_next(&m->lifecycle.certificates, &pos, &key)) != NULL;)
        free(c);
    smap_deinit(&m->lifecycle.certificates);
}
