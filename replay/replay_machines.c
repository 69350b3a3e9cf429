/* SPDX-License-Identifier: Apache-2.0
 *
 * The machines of a replay, and the sellers, one for each offer: each follows its trace, which
 * gives the available number and the price. When the number falls below the machines in use, some
 * are reclaimed.
 */
#include "replay/replay_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWER_MS SECONDS_MS(2) /* time of a provider to answer a launch, by default */
#define GONE_MS SECONDS_MS(30)  /* time until an ended machine is gone, by default */

/* Boots that vary have a lognormal distribution, cut off at TAIL_MAX standard deviations. */
#define P95 1.6449 /* its 95th percentile, in standard deviations from the median */
#define TAIL_MAX 2.5
#define PI 3.14159265358979

static void machine_free(struct machine *x)
{
    timer_stop(&x->w->vt.timers, &x->next);
    link_remove(&x->in_seller);
    map_remove(&x->w->machines, x->instance);
    free(x);
}

/* Frees the machine's part of the seller's capacity. */
static void leave(struct machine *x)
{
    if (link_is_in(&x->in_seller))
        x->seller->n--;
    link_remove(&x->in_seller);
}

static struct replay_pool *pool_of(const struct machine *x)
{
    return x->w->o->by_pool ? &x->w->o->by_pool[x->seller->pool] : NULL;
}

static void gone(struct machine *x, bool reclaimed)
{
    struct replay *w = x->w;
    struct replay_pool *p = pool_of(x);
    int64_t instance = x->instance;
    if (x->node)
        replay_drop_runs(w, x->node);
    if (x->node && p)
        replay_add_capacity(
            p, &x->seller->o->row.total, clock_mono(&w->vt.clock).ms - x->joined_ms);
    if (x->is_paid)
        w->alive[x->seller->o->row.market]--;
    leave(x);
    machine_free(x);
    struct event ev = {
        .type = EV_INSTANCE_GONE, .gone = {.instance = instance, .reclaimed = reclaimed}};
    STR_COPY(ev.gone.text, reclaimed ? "reclaimed" : "ended");
    replay_apply(w, ev);
}

static void join(struct machine *x)
{
    char name[32];
    struct node_row row = {.total = x->seller->o->row.total};
    snprintf(name, sizeof name, "m%lld", (long long)x->instance);
    STR_COPY(row.name, name);
    STR_COPY(row.key_hash, name);
    x->state = UP;
    x->node = replay_apply(x->w, (struct event){.type = EV_JOIN, .join = {&row, x->instance}});
    x->joined_ms = clock_mono(&x->w->vt.clock).ms;
    map_put(&x->w->pool_of_node, x->node, (void *)(x->seller->pool + 1));
}

/* Of each machine its own, so that it does not depend on what else happens. */
static int64_t boot_ms(const struct machine *x)
{
    const struct replay_options *o = x->w->o;
    struct prng prng;
    double size, at;
    if (o->boot_p95_ms == 0)
        return o->boot_ms;
    prng_init(&prng, o->seed ^ (uint64_t)x->instance << 32);
    size = sqrt(-2 * log(1 - prng_unit(&prng)));
    at = size * cos(2 * PI * prng_unit(&prng)); /* normal, by Box and Muller */
    at = fmax(-TAIL_MAX, fmin(at, TAIL_MAX));
    return (
        int64_t)((double)o->boot_ms * pow((double)o->boot_p95_ms / (double)o->boot_ms, at / P95));
}

static void answer(struct machine *x)
{
    struct event ev = {.type = EV_LAUNCHED, .launched.instance = x->instance};
    const struct offer_row *o = &x->seller->o->row;
    snprintf(
        ev.launched.provider_id, sizeof ev.launched.provider_id, "i-%lld", (long long)x->instance);
    STR_COPY(ev.launched.zone, o->zone);
    STR_COPY(ev.launched.type, o->type);
    replay_apply(x->w, ev);
    x->state = BOOTING;
    x->is_paid = true;
    x->w->alive[o->market]++;
    timer_start(&x->w->vt.timers, &x->next, boot_ms(x));
}

static void refuse(struct machine *x)
{
    struct replay *w = x->w;
    struct event ev = {.type = EV_LAUNCH_REFUSED, .refused = {x->instance, true, "no capacity"}};
    if (pool_of(x))
        pool_of(x)->refusals++;
    machine_free(x);
    w->r.refusals++;
    replay_apply(w, ev);
}

static void on_machine(struct timer *t, void *ctx)
{
    struct machine *x = ctx;
    struct replay *w = x->w;
    (void)t;
    switch (x->state) {
    case ASKED:
        answer(x);
        break;
    case REFUSED:
        refuse(x);
        break;
    case BOOTING:
        join(x);
        break;
    case UP:
        break;
    case NOTICED:
        gone(x, true);
        break;
    case ENDING:
        gone(x, false);
        break;
    }
    replay_settle(w);
}

static int64_t capacity(const struct seller *k)
{
    const struct trace *t = k->o->trace;
    if (!t || (k->o->trace_times == 0 && t->counts[k->at] > 0))
        return INT64_MAX;
    return (int64_t)t->counts[k->at] * k->o->trace_times;
}

static struct seller *seller_of(struct replay *w, int64_t offer)
{
    for (size_t i = 0; i < w->o->n_offers; i++)
        if (w->sellers[i].id == offer)
            return &w->sellers[i];
    return NULL;
}

/* Returns a seller with free capacity: the requested offer's, or an alternative's; if no seller has
 * any, the requested one's. */
static struct seller *choose_seller(struct replay *w, int64_t instance, int64_t offer)
{
    const struct offer *others[INSTANCE_ALTERNATIVES_MAX];
    struct seller *first = seller_of(w, offer);
    if (first->n < capacity(first))
        return first;
    size_t n = core_alternatives(w->m, model_instance(w->m, instance), others);
    for (size_t i = 0; i < n; i++) {
        struct seller *k = seller_of(w, others[i]->row.id);
        if (k && k->n < capacity(k))
            return k;
    }
    return first;
}

void replay_launch(struct replay *w, int64_t instance, int64_t offer)
{
    struct machine *x = mem_alloc(sizeof *x);
    struct seller *k = choose_seller(w, instance, offer);
    *x = (struct machine){
        .w = w, .seller = k, .instance = instance, .state = k->n < capacity(k) ? ASKED : REFUSED};
    timer_init(&x->next, on_machine, x);
    map_put(&w->machines, instance, x);
    map_put(&w->pool_of_instance, instance, (void *)(k->pool + 1));
    if (x->state == ASKED) {
        list_push_back(&k->machines, &x->in_seller);
        k->n++;
    }
    w->r.launches++;
    if (pool_of(x))
        pool_of(x)->launches++;
    w->launched_at = mem_resize(w->launched_at, w->n_launched + 1, sizeof *w->launched_at);
    w->launched_at[w->n_launched++] = clock_mono(&w->vt.clock).ms;
    timer_start(&w->vt.timers, &x->next, w->o->answer_ms ? w->o->answer_ms : ANSWER_MS);
}

void replay_end_machine(struct replay *w, int64_t instance)
{
    struct machine *x = map_get(&w->machines, instance);
    leave(x);
    x->state = ENDING;
    timer_start(&w->vt.timers, &x->next, w->o->gone_ms ? w->o->gone_ms : GONE_MS);
}

/* The provider reclaims the machine, after a notice if it is a node. */
static void reclaim(struct machine *x)
{
    struct replay *w = x->w;
    int64_t in_ms = x->node ? x->seller->o->notice_ms : 0;
    w->r.reclaims++;
    if (pool_of(x))
        pool_of(x)->reclaims++;
    leave(x);
    x->state = NOTICED;
    timer_start(&w->vt.timers, &x->next, in_ms);
    if (in_ms == 0)
        return;
    struct wall deadline = {replay_now(w).wall.ms + in_ms};
    replay_apply(
        w, (struct event){.type = EV_NOTICE, .notice = {x->node, NOTICE_TYPE_RECLAIM, deadline}});
    replay_warn_runs(w, x->node);
}

static void reprice(struct seller *k)
{
    const struct offer_row *o = &k->o->row;
    struct event ev = {.type = EV_PRICE,
        .price = {.market = o->market, .uusd_h = k->o->trace->prices_uusd_h[k->at]}};
    STR_COPY(ev.price.region, model_pool(k->w->m, o->pool)->row.region);
    STR_COPY(ev.price.zone, o->zone);
    STR_COPY(ev.price.type, o->type);
    replay_apply(k->w, ev);
}

/* Sets the timer for the next tick at which number or price changes. into_ms: time since the
 * current tick. */
static void schedule_next_change(struct seller *k, int64_t into_ms)
{
    const struct trace *t = k->o->trace;
    for (k->ahead = 1; k->ahead < t->n; k->ahead++) {
        size_t at = (k->at + k->ahead) % t->n;
        if (t->counts[at] != t->counts[k->at] ||
            (t->prices_uusd_h && t->prices_uusd_h[at] != t->prices_uusd_h[k->at]))
            break;
    }
    if (k->ahead < t->n)
        timer_start(&k->w->vt.timers, &k->tick, (int64_t)k->ahead * t->gap_ms - into_ms);
}

static void on_tick(struct timer *t, void *ctx)
{
    struct seller *k = ctx;
    (void)t;
    k->at = (k->at + k->ahead) % k->o->trace->n;
    schedule_next_change(k, 0);
    if (k->o->trace->prices_uusd_h && k->o->prices_too)
        reprice(k);
    while (k->n > capacity(k)) {
        struct link *l = list_first(&k->machines);
        for (uint64_t skip = prng_below(&k->w->prng, (uint64_t)k->n); skip > 0; skip--)
            l = list_next(&k->machines, l);
        reclaim(LIST_ENTRY(l, struct machine, in_seller));
    }
    replay_settle(k->w);
}

void replay_open_seller(struct replay *w, size_t i)
{
    const struct replay_offer *o = &w->o->offers[i];
    struct seller *k = &w->sellers[i];
    const struct trace *t = o->trace;
    *k = (struct seller){.w = w, .o = o, .pool = replay_pool_index(w, o->row.pool)};
    k->id = replay_apply(w, (struct event){.type = EV_OFFER, .offer = &o->row});
    timer_init(&k->tick, on_tick, k);
    if (!t)
        return;
    k->at = (size_t)(o->trace_from_ms / t->gap_ms) % t->n;
    schedule_next_change(k, o->trace_from_ms % t->gap_ms);
    if (t->prices_uusd_h && o->prices_too)
        reprice(k);
}

void replay_take_machines(struct replay *w)
{
    LIST_FOREACH (model_instances(w->m), l) {
        struct machine *x = map_get(&w->machines, LIST_ENTRY(l, struct instance, in_all)->row.id);
        if (x)
            gone(x, false);
    }
}
