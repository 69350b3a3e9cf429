/* SPDX-License-Identifier: Apache-2.0
 *
 * Indexes of instances, and the order of a pool's offers.
 */
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/offers.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define PROVIDER_KEY_MAX (2 * CORE_NAME_MAX)

static void provider_key(const char *region, const char *id, char *out)
{
    snprintf(out, PROVIDER_KEY_MAX, "%s\n%s", region, id);
}

static void set_coming(struct instance *i, bool coming)
{
    i->pool->n_coming += (int32_t)coming - (int32_t)i->is_coming;
    i->is_coming = coming;
}

static void refresh(struct instance *i)
{
    set_coming(i, instance_is_coming(i));
    link_remove(&i->booting);
    if (i->row.state == INSTANCE_QUEUED)
        list_push_back(&i->pool->queued, &i->booting);
    if (i->row.state == INSTANCE_LAUNCHED)
        list_push_back(&i->pool->booting, &i->booting);
}

bool instance_is_coming(const struct instance *i)
{
    return i->row.state == INSTANCE_INTENDED || i->row.state == INSTANCE_QUEUED ||
           i->row.state == INSTANCE_LAUNCHED;
}

struct pool *pool_add(struct model *m, const struct pool_row *r)
{
    struct pool *p = mem_alloc(sizeof *p);
    p->row = *r;
    pool_age(p, WALL_NONE);
    p->probe_at = MONO_NONE;
    model_put_pool(m, p);
    base_load_configure(m, p);
    rack_add_pool(m, p);
    return p;
}

void instance_index(struct model *m, struct instance *i)
{
    model_put_instance(m, i);
    i->pool->n_nodes++;
    i->offer = offer_find(i->pool, i->row.zone, i->row.type, i->row.market);
    if (i->offer) {
        i->gpus = i->offer->row.total.gpus;
        list_push_back(&i->offer->instances, &i->of_offer);
    }
    instance_count(m, i, 1);
    if (i->row.provider_id[0]) {
        char key[PROVIDER_KEY_MAX];
        provider_key(i->pool->row.region, i->row.provider_id, key);
        model_put_provider_id(m, key, i);
    }
    refresh(i);
}

void instance_unindex(struct model *m, struct instance *i)
{
    model_remove_instance(m, i);
    if (i->row.provider_id[0]) {
        char key[PROVIDER_KEY_MAX];
        provider_key(i->pool->row.region, i->row.provider_id, key);
        model_remove_provider_id(m, key);
    }
    link_remove(&i->booting);
    link_remove(&i->of_offer);
    set_coming(i, false);
    instance_count(m, i, -1);
    i->pool->n_nodes--;
    model_note_change(m);
}

void instance_set_provider_id(struct model *m, struct instance *i, const char *provider_id)
{
    char key[PROVIDER_KEY_MAX];
    STR_COPY(i->row.provider_id, provider_id);
    provider_key(i->pool->row.region, i->row.provider_id, key);
    model_put_provider_id(m, key, i);
    touch_instance(m, i);
}

struct instance *model_instance_by_provider_id(
    const struct model *m, const char *region, const char *provider_id)
{
    char key[PROVIDER_KEY_MAX];
    provider_key(region, provider_id, key);
    return model_provider_id(m, key);
}

void instance_move(struct model *m, struct instance *i, enum instance_state to, struct stamp now)
{
    int state = (int)i->row.state;
    sm_move(&instance_sm, i->row.id, &state, (int)to);
    i->row.state = (enum instance_state)state;
    i->since = now.mono;
    touch_instance(m, i);
    refresh(i);
    model_note_change(m);
}

struct offer *offer_find(
    const struct pool *p, const char *zone, const char *type, enum market market)
{
    LIST_FOREACH (&p->offers, l) {
        struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        if (o->row.market == market && strcmp(o->row.type, type) == 0 &&
            strcmp(o->row.zone, zone) == 0)
            return o;
    }
    return NULL;
}

static bool offer_precedes(const struct offer_row *a, const struct offer_row *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->price_uusd_h != b->price_uusd_h)
        return a->price_uusd_h < b->price_uusd_h;
    return a->id < b->id;
}

void offer_sort_in(struct pool *p, struct offer *o)
{
    link_remove(&o->in_pool);
    LIST_FOREACH (&p->offers, l) {
        if (offer_precedes(&o->row, &LIST_ENTRY(l, struct offer, in_pool)->row)) {
            list_insert_before(l, &o->in_pool);
            return;
        }
    }
    list_push_back(&p->offers, &o->in_pool);
}

void offer_note_size(struct offer *o, const struct resources *total)
{
    struct resources t = {
        .cpus = total->cpus, .gpus = total->gpus, .memory_mib = total->memory_mib};
    if (o->seen.cpus > 0) {
        t.cpus = o->seen.cpus < t.cpus ? o->seen.cpus : t.cpus;
        t.gpus = o->seen.gpus < t.gpus ? o->seen.gpus : t.gpus;
        t.memory_mib = o->seen.memory_mib < t.memory_mib ? o->seen.memory_mib : t.memory_mib;
    }
    o->seen = t;
}
