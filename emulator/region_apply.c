/* SPDX-License-Identifier: Apache-2.0
 *
 * Events from outside (region_event.h), applied to the region.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/region.h"
#include "emulator/region_parts.h"

static bool is_picked(const struct region_event *ev, const struct instance *i)
{
    if (!instance_is_alive(i) || i->is_reclaimed)
        return false;
    if (ev->pick == PICK_ONE)
        return str_eq(i->id, ev->instance);
    return i->reservation->spec.market == CLOUD_SPOT &&
           (!ev->zone[0] || str_eq(i->pool->zone, ev->zone)) &&
           (!ev->type[0] || str_eq(i->pool->type, ev->type));
}

static void hit(
    struct region *r, const struct region_event *ev, struct instance *i, struct wall now)
{
    if (ev->kind == EVENT_REBALANCE) {
        i->rebalance_at = now;
        r->counts.rebalances++;
        region_note(r, now, "rebalance", i, NULL);
    } else if (ev->is_without_notice) {
        i->is_reclaimed = true;
        region_reclaim_now(r, i, now);
    } else if (ev->kind == EVENT_SHUTDOWN) {
        i->soft_off_at = now;
        i->off_by.ms = now.ms + ev->shutdown_ms;
        region_note(r, now, "shutdown", i, NULL);
    } else {
        region_mark(r, i, ev->has_notice ? ev->notice_ms : region_notice_ms(r, i),
            ev->has_soft_off ? ev->soft_off_ms : REGION_USUAL_SOFT_OFF, now);
    }
}

static json_t *describe_hit(const struct instance *i)
{
    json_t *o = json_object();
    json_object_set_new(o, "instance", json_string(i->id));
    if (wall_is_set(i->deadline)) {
        char iso[TIME_ISO_MAX];
        time_format_iso(i->deadline, iso);
        json_object_set_new(o, "deadline", json_string(iso));
        json_object_set_new(o, "deadline_ms", json_integer(i->deadline.ms));
    }
    return o;
}

static int apply_to_instances(struct region *r, const struct region_event *ev, struct wall now,
    json_t **ret_reply, struct err *e)
{
    struct instance *chosen = NULL;
    uint64_t n = 0;
    json_t *hits = json_array();
    if (ev->pick == PICK_ONE && !region_find(r, ev->instance)) {
        json_decref(hits);
        return err_set(
            e, ERR_NOT_FOUND, "there is no instance %s; GET /state lists them", ev->instance);
    }
    LIST_FOREACH (&r->alive, l) {
        struct instance *i = LIST_ENTRY(l, struct instance, alive);
        if (!is_picked(ev, i))
            continue;
        if (ev->pick == PICK_RANDOM) {
            if (prng_below(&r->prng, ++n) == 0)
                chosen = i;
            continue;
        }
        hit(r, ev, i, now);
        json_array_append_new(hits, describe_hit(i));
    }
    if (chosen) {
        hit(r, ev, chosen, now);
        json_array_append_new(hits, describe_hit(chosen));
    }
    *ret_reply = json_object();
    json_object_set_new(*ret_reply, "instances", hits);
    return 0;
}

static int apply_to_pool(
    struct region *r, const struct region_event *ev, struct wall now, struct err *e)
{
    struct market_pool *p = market_find(&r->market, ev->zone, ev->type, ev->market);
    if (r->o->is_on_demand_only && ev->market == CLOUD_SPOT)
        return err_set(
            e, ERR_INVALID, "market: %s has no spot instances; use on-demand", region_provider(r));
    if (!p)
        return err_set(
            e, ERR_NOT_FOUND, "there is no pool %s %s; GET /state lists them", ev->zone, ev->type);
    region_bill_all(r, now);
    if (ev->kind == EVENT_PRICE)
        market_set_price(p, ev->market, ev->price_uusd_h, now);
    else if (ev->is_release)
        market_release_capacity(&r->market, p, now);
    else
        market_set_capacity(p, ev->market, ev->n);
    json_t *d = json_object();
    json_object_set_new(d, "zone", json_string(p->zone));
    json_object_set_new(d, "type", json_string(p->type));
    json_object_set_new(d, "market", json_string(region_market_name(ev->market)));
    if (ev->kind == EVENT_PRICE)
        json_object_set_new(d, "uusd_h", json_integer(ev->price_uusd_h));
    else
        json_object_set_new(d, "n", json_integer(p->capacity[ev->market]));
    region_journal(r, now, ev->kind == EVENT_PRICE ? "price" : "capacity", d);
    return 0;
}

static int apply_fault(struct region *r, const struct region_event *ev, struct err *e)
{
    if (ev->kind == EVENT_CLEAR) {
        faults_deinit(&r->faults);
        return 0;
    }
    if (!faults_add(&r->faults, &ev->fault))
        return err_set(e, ERR_CONFLICT, "%d faults are pending already; send {\"clear\": {}} first",
            FAULTS_MAX);
    return 0;
}

int region_apply(struct region *r, const struct region_event *ev, struct wall now,
    json_t **ret_reply, struct err *e)
{
    int rc = 0;
    json_t *reply = NULL;
    switch (ev->kind) {
    case EVENT_RECLAIM:
    case EVENT_REBALANCE:
    case EVENT_SHUTDOWN:
        rc = apply_to_instances(r, ev, now, &reply, e);
        break;
    case EVENT_CAPACITY:
    case EVENT_PRICE:
        rc = apply_to_pool(r, ev, now, e);
        break;
    case EVENT_FAULT:
    case EVENT_CLEAR:
        rc = apply_fault(r, ev, e);
        break;
    }
    if (rc == 0)
        *ret_reply = reply ? reply : json_object();
    return rc;
}
