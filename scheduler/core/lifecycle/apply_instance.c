/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of pools and offers, and of instances from intent to end.
 */
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/apply_node.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/alternatives.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/apply_instance.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/supply/offer_avoid.h"
#include "scheduler/core/deadline/spot_observations.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <string.h>

/* ---- pools, offers, prices ---- */

int core_pool_check(const struct model *m, const struct pool_row *r, struct err *e)
{
    const struct pool *known = model_pool(m, r->name);
    struct retries retries;
    if (!r->name[0])
        return err_set(e, ERR_INVALID, "a pool needs a name");
    if (retries_parse(r->retries, &retries, e) != 0)
        return err_wrap(e, "pool '%s': retries", r->name);
    if (r->max_nodes < 0 || r->idle_timeout_ms < 0 || r->cooldown_ms < 0 ||
        r->boot_timeout_ms < 0 || r->queue_patience_ms < 0 || r->refusal_backoff_ms < 0 ||
        r->usd_per_hour_uusd < 0 || r->max_gpus < 0 || r->max_uusd_h < 0 || r->min_paid_ms < 0 ||
        r->return_ms < 0 || r->egress_uusd_gib < 0 || r->upload_uusd_gib < 0 || r->spread_pct < 0 ||
        r->drill_valid_ms < 0 || r->idle_gpus.for_ms < 0 || r->idle_gpus.grace_ms < 0)
        return err_set(
            e, ERR_INVALID, "pool '%s': a limit, a time or a price is negative", r->name);
    if (known && known->row.elastic != r->elastic)
        return err_set(e, ERR_CONFLICT,
            "pool '%s' cannot change from %s to %s: use another name for the new one", r->name,
            known->row.elastic ? "elastic" : "reserved", r->elastic ? "elastic" : "reserved");
    if (known && known->n_nodes > 0 &&
        (strcmp(known->row.region, r->region) != 0 ||
            strcmp(known->row.provider, r->provider) != 0))
        return err_set(e, ERR_CONFLICT,
            "pool '%s' has instances in %s of %s: it can move when they are gone", r->name,
            known->row.region, known->row.provider);
    return base_load_check(m, r, e);
}

static void reprice_reserved(struct model *m, const struct pool *p, struct wall now)
{
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool != p || n->row.price_uusd_h == p->row.usd_per_hour_uusd)
            continue;
        ledger_reprice_reserved(m, n, p->row.usd_per_hour_uusd, now);
    }
}

static void review_idle_gpus(struct model *m, const struct pool *p, struct stamp now)
{
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool == p)
            LIST_FOREACH (&n->attempts, la)
                idle_gpus_watch(m, LIST_ENTRY(la, struct attempt, on_node)->job, now);
    }
}

/* Jobs may use nodes that the planner remembers as unusable. */
static void open_nodes(struct model *m, const struct pool *p)
{
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool == p)
            node_refresh(m, n, true);
    }
}

int apply_pool(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct pool *p = model_pool(m, ev->pool->name);
    int rc = core_pool_check(m, ev->pool, e);
    if (rc)
        return rc;
    if (!p)
        p = pool_add(m, ev->pool);
    struct pool_row before = p->row;
    p->row = *ev->pool;
    p->row.boots = before.boots;
    if (before.criu == p->row.criu) { /* else the observation was of other machines */
        p->row.criu_seen = before.criu_seen;
        STR_COPY(p->row.criu_text, before.criu_text);
    }
    if (!p->row.elastic)
        reprice_reserved(m, p, ev->now.wall);
    pool_age(p, ev->now.wall);
    base_load_configure(m, p);
    if (before.require_drill != p->row.require_drill ||
        before.drill_valid_ms != p->row.drill_valid_ms ||
        !str_eq(before.required_labels, p->row.required_labels))
        open_nodes(m, p);
    if (!str_eq(before.features, p->row.features) || !str_eq(before.resources, p->row.resources) ||
        !str_eq(before.region, p->row.region))
        pool_describe(m, p);
    if (memcmp(&before.idle_gpus, &p->row.idle_gpus, sizeof before.idle_gpus) != 0)
        review_idle_gpus(m, p, ev->now);
    touch_pool(m, p);
    limits_recheck_costs(m);
    model_note_reserve(m);
    model_note_change(m);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

int apply_limits(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->limits.max_nodes < 0 || ev->limits.max_gpus < 0 || ev->limits.max_uusd_h < 0)
        return err_set(e, ERR_INVALID, "a limit over all pools is negative");
    m->options.max_nodes = ev->limits.max_nodes;
    m->options.max_gpus = ev->limits.max_gpus;
    m->options.max_uusd_h = ev->limits.max_uusd_h;
    model_note_reserve(m);
    model_note_change(m);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}

static struct offer *new_offer(struct model *m, struct pool *p, const struct offer_row *r)
{
    struct offer *o = mem_alloc(sizeof *o);
    o->row.id = NEXT_ID(m, offer);
    o->row.market = r->market;
    o->row.avoid_until = MONO_NONE;
    STR_COPY(o->row.pool, r->pool);
    STR_COPY(o->row.zone, r->zone);
    STR_COPY(o->row.type, r->type);
    o->pool = p;
    model_put_offer(m, o);
    return o;
}

int apply_offer(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct offer_row *r = ev->offer;
    struct pool *p = model_pool(m, r->pool);
    if (!p || !p->row.elastic)
        return err_set(e, ERR_NOT_FOUND, "offer %s in %s: there is no elastic pool '%s'", r->type,
            r->zone, r->pool);
    if (r->total.cpus < 1 || r->total.gpus < 0 || r->total.memory_mib < 0 || r->price_uusd_h < 0 ||
        r->on_demand_uusd_h < 0 || r->rank < OFFER_WITHDRAWN)
        return err_set(e, ERR_INVALID,
            "offer %s in %s: its size, price, rank or market is out of range", r->type, r->zone);
    struct offer *o = offer_find(p, r->zone, r->type, r->market);
    if (!o)
        o = new_offer(m, p, r);
    if (memcmp(&o->row.total, &r->total, sizeof r->total) != 0)
        o->seen = (struct resources){0};
    o->row.rank = r->rank;
    o->row.total = r->total;
    STR_COPY(o->row.arch, r->arch);
    STR_COPY(o->row.gpu.model, r->gpu.model);
    o->row.gpu.memory_mib = r->gpu.memory_mib;
    offer_describe(o);
    if (!o->row.price_from_provider)
        o->row.price_uusd_h = r->price_uusd_h;
    o->row.on_demand_uusd_h = r->on_demand_uusd_h;
    offer_sort_in(p, o);
    touch_offer(m, o);
    limits_recheck_costs(m);
    model_note_reserve(m);
    model_note_change(m);
    ret_outcome->id = o->row.id;
    return 0;
}

/* Prices in force also apply to running instances. */
static void reprice_instances(struct model *m, const struct offer *o, const struct event *ev)
{
    LIST_FOREACH (&o->instances, l)
        ledger_reprice(m, LIST_ENTRY(l, struct instance, of_offer), o->row.price_uusd_h,
            ev->price.since, ev->now);
}

static bool is_of(const struct offer *o, const struct event *ev)
{
    return strcmp(o->row.type, ev->price.type) == 0 &&
           (!ev->price.zone[0] || strcmp(o->row.zone, ev->price.zone) == 0);
}

/* True if the offer's price changed. */
static bool reprice(struct offer *o, const struct event *ev)
{
    int64_t price = ev->price.uusd_h;
    bool changed = false;
    if (o->row.market == ev->price.market &&
        (o->row.price_uusd_h != price || !o->row.price_from_provider)) {
        o->row.price_uusd_h = price;
        o->row.price_from_provider = true;
        changed = true;
    }
    if (ev->price.market == MARKET_ON_DEMAND && o->row.on_demand_uusd_h != price) {
        o->row.on_demand_uusd_h = price;
        changed = true;
    }
    return changed;
}

int apply_price(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    if (ev->price.uusd_h < 0)
        return err_set(
            e, ERR_INVALID, "the price of %s in %s is negative", ev->price.type, ev->price.region);
    ret_outcome->id = CORE_ID_NONE;
    LIST_FOREACH (model_pools(m), lp) {
        struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || strcmp(p->row.region, ev->price.region) != 0)
            continue;
        LIST_FOREACH (&p->offers, lo) {
            struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            if (!is_of(o, ev))
                continue;
            bool changed = reprice(o, ev);
            /* the offer may have this price from the configuration, but not its instances */
            if (o->row.market == ev->price.market)
                reprice_instances(m, o, ev);
            if (!changed)
                continue;
            offer_sort_in(p, o);
            touch_offer(m, o);
            limits_recheck_costs(m);
            model_note_change(m);
        }
    }
    return 0;
}

int apply_score(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct pool *p = model_pool(m, ev->score.pool);
    struct offer *o = p ? offer_find(p, ev->score.zone, ev->score.type, MARKET_SPOT) : NULL;
    if (ev->score.score < OFFER_SCORE_NONE || ev->score.score > OFFER_SCORE_MAX)
        return err_set(e, ERR_INVALID,
            "the score of %s in %s is %" PRId32 ": 1 .. %d, or %d for none", ev->score.type,
            ev->score.zone, ev->score.score, OFFER_SCORE_MAX, OFFER_SCORE_NONE);
    ret_outcome->id = CORE_ID_NONE;
    if (!o || o->score == ev->score.score)
        return 0;
    o->score = ev->score.score;
    model_note_change(m);
    return 0;
}

/* ---- instances ---- */

int apply_launch(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct offer *o = model_offer(m, ev->launch.offer);
    if (!o)
        return err_set(e, ERR_CONFLICT, "there is no offer %" PRId64, ev->launch.offer);
    const struct capacity pool = pool_capacity(o->pool, ev->now.mono), all = model_capacity(m);
    const char *lacks =
        capacity_lacks(&pool, o) ? capacity_lacks(&pool, o) : capacity_lacks(&all, o);
    if (lacks)
        return err_set(e, ERR_CONFLICT,
            "offer %" PRId64 " of pool %s cannot be launched: no more %s are allowed", o->row.id,
            o->row.pool, lacks);
    if (!rack_has_any(o))
        return err_set(e, ERR_CONFLICT,
            "offer %" PRId64
            " of pool %s cannot be launched: rack %s has no power for any job there",
            o->row.id, o->row.pool, o->pool->rack->options->name);
    struct instance *i = mem_alloc(sizeof *i);
    i->row = (struct instance_row){
        .id = NEXT_ID(m, instance),
        .market = o->row.market,
        .state = INSTANCE_INTENDED,
        .price_uusd_h = o->row.price_uusd_h,
        .on_demand_uusd_h = o->row.on_demand_uusd_h,
        .intended_at = ev->now.wall,
        .launched_at = WALL_NONE,
        .joined_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .used_until = WALL_NONE,
        .settled_at = WALL_NONE,
        .before_at = WALL_NONE,
        .priced_at = WALL_NONE,
    };
    text_format(
        i->row.token, sizeof i->row.token, "belay-%s-%" PRId64, m->options.cluster_uid, i->row.id);
    STR_COPY(i->row.pool, o->row.pool);
    STR_COPY(i->row.zone, o->row.zone);
    STR_COPY(i->row.type, o->row.type);
    instance_write_alternatives(m, o, ev->now, &i->row);
    i->pool = o->pool;
    i->since = ev->now.mono;
    instance_index(m, i);
    touch_instance(m, i);
    o->row.launches++;
    touch_offer(m, o);
    model_note_launch(m);
    char price[32];
    str_format_usd(i->row.price_uusd_h, price, sizeof price);
    history(m, ev->now, "launch", (struct history_of){.instance = i},
        "%s %s in %s at %s/h for pool %s", i->row.type, market_names[i->row.market], i->row.zone,
        price, i->row.pool);
    ret_outcome->id = i->row.id;
    return 0;
}

/* Free until it starts. A machine that went back to the queue stays LAUNCHED: it has to join in
 * time. */
static void instance_queued(struct model *m, struct instance *i, struct stamp now)
{
    if (i->row.state != INSTANCE_INTENDED)
        return;
    instance_move(m, i, INSTANCE_QUEUED, now);
    history(m, now, "queued", (struct history_of){.instance = i},
        "%s waits in the provider's queue as %s", i->row.type, i->row.provider_id);
}

int apply_launched(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct instance *i = model_instance(m, ev->launched.instance);
    ret_outcome->id = ev->launched.instance;
    const char *id = ev->launched.provider_id;
    if (!i || !id[0] || (i->row.provider_id[0] && strcmp(i->row.provider_id, id) != 0))
        return 0;
    struct offer *other = core_other_offer(m, i, ev->launched.zone, ev->launched.type);
    if (other)
        instance_rebind(m, i, other);
    struct wall reported = ev->launched.launched_at;
    bool is_known = i->row.provider_id[0] != '\0';
    if (!is_known)
        instance_set_provider_id(m, i, id);
    if (ev->launched.is_queued) {
        instance_queued(m, i, ev->now);
        return 0;
    }
    if (is_known && i->row.state != INSTANCE_QUEUED) {
        if (reported.ms > 0 && reported.ms != i->row.launched_at.ms)
            ledger_launched(m, i, reported, ev->now); /* the launch was reported late */
        return 0;
    }
    if (i->offer && !wall_is_set(i->row.launched_at))
        spot_observations_note(m, i->offer, SPOT_THERE, ev->now.wall);
    ledger_launched(m, i, reported, ev->now);
    if (i->row.state == INSTANCE_INTENDED || i->row.state == INSTANCE_QUEUED)
        instance_move(m, i, INSTANCE_LAUNCHED, ev->now);
    history(m, ev->now, "launched",
        (struct history_of){.instance = i, .a = ev->now.wall.ms - i->row.intended_at.ms},
        "%s%s%s is %s", i->row.type, other ? " in " : "", other ? i->row.zone : "",
        i->row.provider_id);
    return 0;
}

static void instance_end(
    struct model *m, struct instance *i, struct stamp now, struct wall ended_at, const char *text)
{
    instance_move(m, i, INSTANCE_GONE, now);
    if (i->offer && wall_is_set(i->row.launched_at) && !i->row.reclaimed)
        spot_observations_note(m, i->offer, SPOT_ENDED, now.wall);
    if (!i->row.reclaimed)
        offer_note_life(m, i, now);
    i->row.ended_at = ended_at;
    STR_COPY(i->row.text, text);
    ledger_instance(m, i);
    instance_unindex(m, i);
    retire_instance(m, i);
}

int apply_launch_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct instance *i = model_instance(m, ev->refused.instance);
    ret_outcome->id = ev->refused.instance;
    if (!i || i->row.provider_id[0] ||
        (i->row.state != INSTANCE_INTENDED && i->row.state != INSTANCE_ENDING))
        return 0; /* the launch took effect after all */
    struct offer *o = i->offer;
    int64_t avoided_ms = 0;
    if (o) {
        o->row.refusals++;
        avoided_ms = offer_avoid(m, o, ev->now, !ev->refused.is_temporary, ev->refused.text);
    }
    char avoided[32];
    time_format_duration(avoided_ms, avoided, sizeof avoided);
    history(m, ev->now, "launch-refused", (struct history_of){.instance = i, .a = avoided_ms},
        "%s %s in %s: %.120s; avoided for %s", i->row.type, market_names[i->row.market],
        i->row.zone, ev->refused.text, avoided);
    instance_end(m, i, ev->now, ev->now.wall, ev->refused.text);
    return 0;
}

int apply_end_instance(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct instance *i = model_instance(m, ev->end_instance.instance);
    ret_outcome->id = ev->end_instance.instance;
    if (!i || i->row.state == INSTANCE_ENDING)
        return 0;
    if (i->node && !list_is_empty(&i->node->attempts))
        return err_set(
            e, ERR_CONFLICT, "instance %" PRId64 " cannot be ended: jobs run on it", i->row.id);
    struct offer *o = i->offer;
    if (o && i->row.state == INSTANCE_QUEUED)
        o->row.refusals++;
    if (o && (i->row.state == INSTANCE_QUEUED || i->row.state == INSTANCE_LAUNCHED))
        /* it never joined: counts as a refusal */
        offer_avoid(m, o, ev->now, false, ev->end_instance.text);
    if (i->row.state == INSTANCE_LAUNCHED)
        boots_failed(m, i, ev->now, ev->end_instance.text);
    STR_COPY(i->row.text, ev->end_instance.text);
    history(m, ev->now, "ending", (struct history_of){.node = i->node, .instance = i}, "%s",
        i->row.text);
    instance_move(m, i, INSTANCE_ENDING, ev->now);
    if (i->node)
        node_gone(m, i->node, ev->now, ev->end_instance.text);
    return 0;
}

void instance_reclaimed(struct model *m, struct instance *i, struct stamp now)
{
    struct offer *o = i->offer;
    if (i->row.reclaimed)
        return;
    instance_count(m, i, -1);
    i->row.reclaimed = true;
    touch_instance(m, i);
    model_note_change(m);
    if (!o)
        return;
    if (wall_is_set(i->row.launched_at))
        spot_observations_note(m, o, SPOT_LOST, now.wall);
    o->row.reclaims++;
    o->row.rebalances_true += i->row.rebalanced;
    touch_offer(m, o);
    offer_note_life(m, i, now);
}

/* The end reported by the provider, which is what it bills, clamped to what is possible for this
 * machine: clocks differ. */
static struct wall credible_end(const struct instance_row *r, struct wall reported, struct wall now)
{
    struct wall least = wall_is_set(r->launched_at) ? r->launched_at : r->intended_at;
    if (!wall_is_set(reported) || reported.ms < r->intended_at.ms - CLOCKS_DIFFER_MS ||
        reported.ms > now.ms + CLOCKS_DIFFER_MS)
        return now.ms > least.ms ? now : least;
    return reported.ms > least.ms ? reported : least;
}

int apply_instance_gone(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    (void)e;
    struct instance *i = model_instance(m, ev->gone.instance);
    ret_outcome->id = ev->gone.instance;
    if (!i)
        return 0;
    struct offer *o = i->offer;
    bool vanished = i->row.state == INSTANCE_RUNNING && i->row.market == MARKET_SPOT;
    if (ev->gone.reclaimed || vanished)
        instance_reclaimed(m, i, ev->now);
    if (o && (i->row.state == INSTANCE_QUEUED || i->row.state == INSTANCE_LAUNCHED))
        /* it ended before it joined: counts as a refusal */
        offer_avoid(m, o, ev->now, false, ev->gone.text);
    if (i->row.state == INSTANCE_LAUNCHED && !i->row.reclaimed)
        boots_failed(m, i, ev->now, ev->gone.text);
    history(m, ev->now, "gone", (struct history_of){.instance = i, .node = i->node}, "%s %s: %s",
        i->row.type, i->row.provider_id, ev->gone.text);
    if (ev->gone.launched_at.ms > 0 && ev->gone.launched_at.ms != i->row.launched_at.ms)
        /* first report by the provider; until now at most its agent has reported */
        ledger_launched(m, i, ev->gone.launched_at, ev->now);
    struct wall ended_at = i->row.ended_at = credible_end(&i->row, ev->gone.ended_at, ev->now.wall);
    if (i->node)
        node_gone(m, i->node, ev->now, ev->gone.text); /* its attempts are charged until then */
    if (o && wall_is_set(i->row.joined_at) && ended_at.ms > i->row.joined_at.ms) {
        o->row.up_ms += ended_at.ms - i->row.joined_at.ms;
        touch_offer(m, o);
    }
    instance_end(m, i, ev->now, ended_at, i->row.text[0] ? i->row.text : ev->gone.text);
    return 0;
}
