/* SPDX-License-Identifier: Apache-2.0
 *
 * Periodic requests to the providers: the sweep over their lists of machines, and their prices.
 * Invariants:
 *  1. Machines that the provider lists under our tag are matched by token, then by id; a machine
 *     that matches no live row is terminated.
 *  2. Nothing is concluded from a listing that began before the last call for that instance ended:
 *     a machine that is listed while its launch is in progress may still be refused.
 *
 * What follows from a listing is done by provision.c.
 */
#include "scheduler/engine/provision_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define GONE_MISSES 2
#define PRICE_TYPES_MAX 64

static void on_stray_ended(void *ctx, const struct err *e)
{
    struct provision_region *at = ctx;
    struct provision *p = at->p;
    provision_end_call(at);
    if (e)
        log_warn("a stray instance could not be terminated yet; the sweep will retry", log_err(e));
    provision_sweep_soon(p);
}

static void end_stray(struct provision_region *at, const struct cloud_instance *c)
{
    const char *id = c->id;
    log_warn("terminating an instance that carries our tag and has no row", log_s("id", c->id),
        log_s("token", c->token));
    at->p->stats.strays++;
    at->n_calls++;
    at->driver->ops->terminate(at->driver, at->name, &id, 1, on_stray_ended, at);
}

/* Returns the live row of a listed machine, or NULL if it has none. A second machine under the same
 * token has none either. */
static const struct instance *row_of(
    const struct provision_region *at, const struct cloud_instance *c)
{
    const struct model *m = provision_model(at->p);
    const struct instance *i = c->token[0] ? model_instance_by_token(m, c->token) : NULL;
    if (!i)
        return model_instance_by_provider_id(m, at->name, c->id);
    return !i->row.provider_id[0] || str_eq(i->row.provider_id, c->id) ? i : NULL;
}

/* Compares one listed machine with its row. A machine that stopped by itself still bills its disk
 * until it is terminated. */
static void match_listed(struct provision_region *at, const struct cloud_instance *c)
{
    struct provision *p = at->p;
    const struct instance *i = row_of(at, c);
    bool over = c->state == CLOUD_GONE || (c->state == CLOUD_STOPPING && c->reclaimed);
    if (!i) {
        if (!over)
            end_stray(at, c);
        return;
    }
    struct work *w = provision_work(p, i->row.id);
    w->misses = 0;
    w->listed_in = p->stats.sweeps;
    if (tries_is_running(&w->launch)) /* the running launch will report it */
        return;
    bool other_launch_time =
        wall_is_set(c->launched_at) && c->launched_at.ms != i->row.launched_at.ms;
    bool has_started =
        i->row.state == INSTANCE_QUEUED && c->state != CLOUD_QUEUED && c->state != CLOUD_GONE;
    if (!i->row.provider_id[0] || other_launch_time || has_started ||
        core_other_offer(provision_model(p), i, c->zone, c->type))
        provision_post_launched(p, i->row.id, c);
    if (over && i->row.state == INSTANCE_LAUNCHED && !c->reclaimed && !w->consoled)
        w->consoled = provision_read_console(p, i);
    if (over)
        provision_post_gone(p, i->row.id, c, c->reason);
    else if (i->row.state == INSTANCE_ENDING && !(c->state == CLOUD_STOPPING && w->terminated))
        provision_terminate(w, i);
}

/* Handles a row that the listing does not show. */
static void handle_unlisted(struct provision_region *at, const struct instance *i)
{
    struct provision *p = at->p;
    struct work *w = provision_work(p, i->row.id);
    if (w->terminating || tries_is_running(&w->launch) || at->list_began.ms <= w->last_call.ms)
        return;
    bool is_settled = at->list_began.ms - w->last_call.ms >= p->o.settle_ms;
    if (i->row.state == INSTANCE_INTENDED) {
        if (w->awaits_listing && (++w->misses < GONE_MISSES || !is_settled))
            return;
        if (w->awaits_listing)
            w->may_exist = w->awaits_listing = false; /* the next answer is definite */
        w->misses = 0;
        provision_launch(w);
        return;
    }
    const struct cloud_driver_ops *ops = at->driver->ops;
    if (i->row.provider_id[0] && ops->hides && ops->hides(at->driver, i->row.provider_id))
        return;
    if (++w->misses >= GONE_MISSES && is_settled)
        provision_post_gone(p, i->row.id, NULL, "the provider does not list it (any more)");
}

/* A listing, kept until the whole model is on disk, because the conclusions from it leave belayd at
 * once. */
struct listing {
    struct provision_region *region;
    struct cloud_instance *list;
    size_t n;
};

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct listing *x = ctx;
    struct provision_region *at = x->region;
    struct provision *p = at->p;
    (void)id;
    at->listing = false;
    p->stats.sweeps++;
    for (size_t k = 0; !e && k < x->n; k++)
        match_listed(at, &x->list[k]);
    LIST_FOREACH (model_instances(provision_model(p)), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        const struct pool_entry *pe = provision_find_pool(p, i->row.pool);
        if (!e && pe && pe->region == at &&
            provision_work(p, i->row.id)->listed_in != p->stats.sweeps)
            handle_unlisted(at, i);
    }
    if (at->retired)
        provision_release_soon(p);
    free(x->list);
    free(x);
}

static void on_listed(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct provision_region *at = ctx;
    if (e) {
        at->listing = false;
        at->p->stats.list_errors++;
        if (at->retired)
            provision_release_soon(at->p);
        log_warn("the provider's instances could not be listed; the sweep will retry",
            log_s("region", at->name), log_err(e));
        return;
    }
    struct listing *x = mem_alloc(sizeof(*x));
    *x = (struct listing){.region = at, .list = mem_dup(list, n * sizeof(*list)), .n = n};
    tick_when_durable(at->p->o.tick, on_durable, x);
}

void provision_on_sweep(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    bool busy = false;
    (void)t;
    p->is_brought_forward = false;
    for (size_t k = 0; k < p->n_regions; k++) {
        struct provision_region *at = p->regions[k];
        if (at->listing || at->retired)
            continue;
        at->listing = true;
        at->list_began = provision_now(p);
        at->driver->ops->list(at->driver, at->name, p->o.cluster_uid, on_listed, at);
    }
    LIST_FOREACH (model_instances(provision_model(p)), l) {
        enum instance_state s = LIST_ENTRY(l, struct instance, in_all)->row.state;
        busy = busy || s == INSTANCE_ENDING || s == INSTANCE_INTENDED;
    }
    timer_start(p->o.timers, &p->sweep, busy ? p->o.busy_sweep_ms : p->o.sweep_ms);
}

/* ---- prices ---- */

/* Only for the pools of this driver and region: other pools may have been scored for other sets of
 * types. */
static void post_score(const struct provision_region *at, const struct cloud_price *price)
{
    const struct provision *p = at->p;
    for (size_t k = 0; k < p->n_pools; k++) {
        struct event ev = {.type = EV_SCORE, .score.score = price->score};
        if (p->pools[k].region != at)
            continue;
        STR_COPY(ev.score.pool, p->pools[k].name);
        STR_COPY(ev.score.zone, price->zone);
        STR_COPY(ev.score.type, price->type);
        tick_post(p->o.tick, &ev, NULL, NULL);
    }
}

static void on_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n)
{
    struct provision_region *at = ctx;
    at->pricing = false;
    if (at->retired)
        provision_release_soon(at->p);
    if (e) {
        log_warn("prices could not be read; keeping the last ones", log_s("region", at->name),
            log_err(e));
        return;
    }
    for (size_t k = 0; k < n; k++) {
        struct event ev = {.type = EV_PRICE,
            .price = {.market = list[k].market == CLOUD_SPOT ? MARKET_SPOT : MARKET_ON_DEMAND,
                .uusd_h = list[k].uusd_h,
                .since = list[k].since}};
        STR_COPY(ev.price.region, at->name);
        STR_COPY(ev.price.zone, list[k].zone);
        STR_COPY(ev.price.type, list[k].type);
        tick_post(at->p->o.tick, &ev, NULL, NULL);
        if (list[k].market == CLOUD_SPOT)
            post_score(at, &list[k]);
    }
}

/* Collects the types of all pools of this driver and region, each once. */
static size_t types_of(const struct provision_region *at, const char *out[PRICE_TYPES_MAX])
{
    size_t n = 0;
    LIST_FOREACH (model_pools(provision_model(at->p)), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        const struct pool_entry *pe = provision_find_pool(at->p, pool->row.name);
        if (!pe || pe->region != at)
            continue;
        LIST_FOREACH (&pool->offers, ol) {
            const char *type = LIST_ENTRY(ol, struct offer, in_pool)->row.type;
            size_t k = 0;
            while (k < n && !str_eq(out[k], type))
                k++;
            if (k == n && n < PRICE_TYPES_MAX)
                out[n++] = type;
        }
    }
    return n;
}

void provision_on_price(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    (void)t;
    for (size_t k = 0; k < p->n_regions; k++) {
        struct provision_region *at = p->regions[k];
        const char *types[PRICE_TYPES_MAX];
        size_t n = types_of(at, types);
        if (at->pricing || n == 0)
            continue;
        at->pricing = true;
        at->driver->ops->prices(at->driver, at->name, types, n, on_prices, at);
    }
    timer_start(p->o.timers, &p->price, p->o.price_ms);
}
