/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that the provider may answer from one of several offers, in pools with `fleet`.
 *
 * The core selects one offer as usual and stores the acceptable alternatives in the intent, so that
 * the call can be repeated with the same parameters after any crash. The answer names the offer
 * that the instance belongs to. From then on prices, limits, counts and statistics are as if that
 * offer had been selected.
 *
 * Invariant: an alternative never uses more of a limit than the selected offer, so the answer
 * exceeds no limit that the decision respected.
 */
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/supply/alternatives.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/supply/offer_avoid.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum price: a provider may put capacity before price, so alternatives cost at most half as
 * much again. */
#define IS_TOO_EXPENSIVE(uusd_h, first_uusd_h) ((uusd_h) > (first_uusd_h) + (first_uusd_h) / 2)

static bool is_alternative(const struct model *m, const struct offer *o, const struct offer *first)
{
    struct resources total = offer_total(o), need = offer_total(first);
    const struct pool_row *p = &first->pool->row;
    if (o == first || o->row.market != first->row.market || o->row.rank != first->row.rank ||
        !resources_fit(&need, &total))
        return false;
    if ((p->max_gpus || m->options.max_gpus) && o->row.total.gpus > first->row.total.gpus)
        return false;
    return !(p->max_uusd_h || m->options.max_uusd_h) ||
           o->row.price_uusd_h <= first->row.price_uusd_h;
}

size_t launch_alternatives(const struct model *m, const struct offer *first, struct stamp now,
    const struct offer **out, size_t max)
{
    int64_t limit_of = core_offer_effective_uusd_h(first);
    size_t n = 0;
    if (queue_n_constrained(m) > 0)
        return 0; /* jobs may ask for the zone, the type or its GPUs */
    if (!first->pool->row.fleet || first->row.rank == OFFER_WITHDRAWN)
        return 0;
    LIST_FOREACH (&first->pool->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        int64_t uusd_h = core_offer_effective_uusd_h(o);
        bool avoided = mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.mono.ms;
        if (avoided || !is_alternative(m, o, first) || IS_TOO_EXPENSIVE(uusd_h, limit_of))
            continue;
        size_t at = n;
        while (at > 0 && core_offer_effective_uusd_h(out[at - 1]) > uusd_h)
            at--;
        if (at == max)
            continue;
        n = n < max ? n + 1 : n;
        memmove(&out[at + 1], &out[at], (n - at - 1) * sizeof out[0]);
        out[at] = o;
    }
    return n;
}

void instance_write_alternatives(
    const struct model *m, const struct offer *first, struct stamp now, struct instance_row *r)
{
    const struct offer *list[INSTANCE_ALTERNATIVES_MAX];
    size_t n = launch_alternatives(m, first, now, list, INSTANCE_ALTERNATIVES_MAX), len = 0;
    r->alternatives[0] = '\0';
    for (size_t k = 0; k < n; k++) {
        char id[24];
        size_t id_len = (size_t)snprintf(id, sizeof id, " %" PRId64, list[k]->row.id);
        if (len + id_len >= sizeof r->alternatives)
            return;
        memcpy(r->alternatives + len, id, id_len + 1);
        len += id_len;
    }
}

size_t core_alternatives(const struct model *m, const struct instance *i,
    const struct offer *ret_offers[INSTANCE_ALTERNATIVES_MAX])
{
    size_t n = 0;
    for (const char *s = i->row.alternatives; *s == ' ' && n < INSTANCE_ALTERNATIVES_MAX;) {
        char *end;
        const struct offer *o = model_offer(m, strtoll(s + 1, &end, 10));
        if (o && o->pool == i->pool)
            ret_offers[n++] = o;
        s = end;
    }
    return n;
}

struct offer *core_other_offer(
    const struct model *m, const struct instance *i, const char *zone, const char *type)
{
    const struct offer *list[INSTANCE_ALTERNATIVES_MAX];
    size_t n = core_alternatives(m, i, list);
    zone = zone[0] ? zone : i->row.zone;
    type = type[0] ? type : i->row.type;
    if (str_eq(i->row.zone, zone) && str_eq(i->row.type, type))
        return NULL;
    for (size_t k = 0; k < n; k++)
        if (str_eq(list[k]->row.zone, zone) && str_eq(list[k]->row.type, type))
            return model_offer(m, list[k]->row.id);
    return NULL;
}

void instance_rebind(struct model *m, struct instance *i, struct offer *o)
{
    instance_count(m, i, -1);
    link_remove(&i->of_offer);
    STR_COPY(i->row.zone, o->row.zone);
    STR_COPY(i->row.type, o->row.type);
    i->offer = o;
    i->gpus = o->row.total.gpus;
    i->row.on_demand_uusd_h = o->row.on_demand_uusd_h;
    list_push_back(&o->instances, &i->of_offer);
    instance_count(m, i, 1);
    ledger_moved(m, i, o->row.price_uusd_h);
    if (i->node) {
        i->node->row.on_demand_uusd_h = o->row.on_demand_uusd_h;
        node_describe(i->node);
        if (!reserve_is_valid(i->node))
            reserve_drop(m, i->node->reserved_for);
        node_refresh(m, i->node, true);
        touch_node(m, i->node);
    }
    o->row.launches++;
    touch_offer(m, o);
    touch_instance(m, i);
    model_note_change(m);
}

int apply_offer_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    const struct instance *i = model_instance(m, ev->offer_refused.instance);
    ret_outcome->id = ev->offer_refused.instance;
    struct offer *o =
        i ? offer_find(i->pool, ev->offer_refused.zone, ev->offer_refused.type, i->row.market)
          : NULL;
    if (!o)
        return 0;
    o->row.refusals++;
    char avoided[32];
    int64_t avoided_ms =
        offer_avoid(m, o, ev->now, !ev->offer_refused.is_temporary, ev->offer_refused.text);
    time_format_duration(avoided_ms, avoided, sizeof avoided);
    history(m, ev->now, "offer-refused", (struct history_of){.instance = i, .a = avoided_ms},
        "%s %s in %s: %.120s; avoided for %s", o->row.type, market_names[o->row.market],
        o->row.zone, ev->offer_refused.text, avoided);
    return 0;
}
