/* SPDX-License-Identifier: Apache-2.0
 *
 * Indexes of instances, and offers to avoid: those that provided no machines, or only short-lived
 * ones.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/supply/market.h"
#include "scheduler/core/deadline/spot_observations.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define AVOID_LONGEST 60 /* multiple of the first avoidance */
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
    if (i->row.state == INSTANCE_LAUNCHED)
        list_push_back(&i->pool->booting, &i->booting);
}

bool instance_is_coming(const struct instance *i)
{
    return i->row.state == INSTANCE_INTENDED || i->row.state == INSTANCE_LAUNCHED;
}

struct pool *pool_add(struct model *m, const struct pool_row *r)
{
    struct pool *p = mem_alloc(sizeof *p);
    p->row = *r;
    pool_age(p, WALL_NONE);
    p->probe_at = MONO_NONE;
    model_put_pool(m, p);
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

static bool comes_before(const struct offer_row *a, const struct offer_row *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->price_uusd_h != b->price_uusd_h)
        return a->price_uusd_h < b->price_uusd_h;
    return a->id < b->id;
}

void offer_place(struct pool *p, struct offer *o)
{
    link_remove(&o->in_pool);
    LIST_FOREACH (&p->offers, l) {
        if (comes_before(&o->row, &LIST_ENTRY(l, struct offer, in_pool)->row)) {
            list_insert_before(l, &o->in_pool);
            return;
        }
    }
    list_push_back(&p->offers, &o->in_pool);
}

/* in_a_row: the counter that doubles the time; several refusals at one moment count once. */
static void avoid(struct model *m, struct offer *o, struct stamp now, int32_t *in_a_row,
    bool longest, const char *why)
{
    bool avoided = mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.mono.ms;
    int64_t times = 1;
    if (!avoided)
        ++*in_a_row;
    for (int n = 1; n < *in_a_row && times < AVOID_LONGEST; n++)
        times *= 2;
    if (longest || times > AVOID_LONGEST)
        times = AVOID_LONGEST;
    if (!avoided || longest)
        o->row.avoid_until = (struct mono){now.mono.ms + o->pool->row.refusal_backoff_ms * times};
    STR_COPY(o->why, why);
    model_note_reserve(m);
    model_note_change(m);
}

int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why)
{
    avoid(m, o, now, &o->row.refused_in_a_row, longest, why);
    touch_offer(m, o);
    spot_observations_note(m, o, SPOT_AWAY, now.wall);
    procurement_refused(m, o, now);
    return o->row.avoid_until.ms - now.mono.ms;
}

void offer_note_life(struct model *m, const struct instance *i, struct stamp now)
{
    struct offer *o = i->offer;
    const struct instance_row *r = &i->row;
    if (!o || !wall_is_set(r->joined_at))
        return;
    int64_t boot_ms = r->joined_at.ms - max_i64(r->launched_at.ms, r->intended_at.ms);
    int64_t life_ms = now.wall.ms - r->joined_at.ms;
    if (life_ms >= boot_ms) {
        o->early_reclaims_in_a_row = 0;
        return;
    }
    if (!r->reclaimed)
        return;
    char after[32], why[CORE_TEXT_MAX];
    time_format_duration(max_i64(life_ms, 0), after, sizeof after);
    text_format(why, sizeof why, "reclaimed %s after it joined", after);
    avoid(m, o, now, &o->early_reclaims_in_a_row, false, why);
    procurement_refused(m, o, now);
}

void offer_saw(struct offer *o, const struct resources *total)
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
