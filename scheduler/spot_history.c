/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/spot_history.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define MACHINES_MAX 4000                /* the newest instances, of all pools */
#define HISTORY_MS (45LL * 86400 * 1000) /* age of the oldest observation loaded */

struct observation {
    int64_t offer;
    struct wall at;
    enum spot_observation what;
};

struct observations {
    const struct model *m;
    struct observation list[2 * MACHINES_MAX];
    size_t n;
    struct wall since;
};

static int64_t offer_of(const struct model *m, const struct instance_row *r)
{
    const struct pool *p = model_pool(m, r->pool);
    LIST_FOREACH (p ? &p->offers : &(struct list){0}, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        if (o->row.market == r->market && str_eq(o->row.zone, r->zone) &&
            str_eq(o->row.type, r->type))
            return o->row.id;
    }
    return CORE_ID_NONE;
}

/* An instance that ended without having been launched means that none was available. */
static int on_instance(void *ctx, const struct instance_row *r)
{
    struct observations *w = ctx;
    int64_t offer = r->market == MARKET_SPOT ? offer_of(w->m, r) : CORE_ID_NONE;
    bool was_there = wall_is_set(r->launched_at), is_over = r->state == INSTANCE_GONE;
    if (r->intended_at.ms < w->since.ms)
        return 1;
    if (offer == CORE_ID_NONE || (!was_there && !is_over))
        return 0;
    w->list[w->n++] = (struct observation){
        offer, was_there ? r->launched_at : r->intended_at, was_there ? SPOT_THERE : SPOT_AWAY};
    if (was_there && (is_over || r->reclaimed))
        w->list[w->n++] =
            (struct observation){offer, wall_is_set(r->ended_at) ? r->ended_at : r->launched_at,
                r->reclaimed ? SPOT_LOST : SPOT_ENDED};
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    if (x->at.ms != y->at.ms)
        return x->at.ms < y->at.ms ? -1 : 1;
    return (int)x->what - (int)y->what;
}

int spot_history_load(struct db_reader *db, struct model *m, struct wall now, struct err *e)
{
    struct observations *w = mem_alloc(sizeof *w);
    w->m = m;
    w->since.ms = now.ms - HISTORY_MS;
    int rc = db_read_newest_instances(db, INT64_MAX, MACHINES_MAX, on_instance, w, e);
    if (rc == 0 && w->n > 0)
        qsort(w->list, w->n, sizeof w->list[0], by_time);
    for (size_t i = 0; rc == 0 && i < w->n; i++)
        if (w->list[i].at.ms <= now.ms)
            model_load_spot_observation(m, w->list[i].offer, w->list[i].what, w->list[i].at);
    free(w);
    return rc;
}
