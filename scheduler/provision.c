/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning (see provision.h). Invariants:
 *  1. A launch call is made only for an INTENDED row that is committed, with the row's own token.
 *  2. At most one launch flow and one terminate call an instance are under way.
 *  3. What the provider lists under our tag is matched by token, then by id; what matches no live row is
 * terminated.
 *  4. Nothing is concluded from a listing that began before the last call for that instance ended: what is listed
 * while its launch is under way may still be refused.
 *  5. A refusal is believed only if no earlier try of that launch can have made a machine: one that was not answered may
 * have, and who may not call any more is refused whatever there is. Else the listings have to say that there is none.
 *
 * It deliberately does not decide: which offer, how long to avoid one that refused, and when an instance
 * should end are the core's.
 */
#include "scheduler/provision.h"

#include "base/flow.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define LAUNCH_TRY_MS 60000
#define LAUNCH_TRIES 6
#define LAUNCH_BACKOFF_MS 500
#define LAUNCH_BACKOFF_CAP_MS 30000
#define GONE_MISSES 2
#define PRICE_TYPES_MAX 64

/* What is being done for one instance. Made when there is something to do, dropped when the row is gone. */
struct work {
    struct provision *p;
    int64_t instance;
    struct flow launch;
    bool answered; /* for good: its row is about to change, and it is not launched again */
    bool unsure;   /* a try had no answer, perhaps of another process: its machine may be there */
    bool doubted;  /* while unsure it was refused: not launched again before listings have settled that */
    struct place *launching;   /* where, while the flow runs; NULL: its pool is not known */
    struct place *terminating; /* where the driver's call is under way; its reply will come. NULL: none is */
    bool terminated;           /* the provider has taken one */
    int misses;                /* listings in a row without it */
    int64_t listed_in;         /* number of the newest listing that showed it */
    struct mono last_call;
};

/* One (driver, region): what is listed at once. Retired: no pool is there any more; it goes when its last call ends. */
struct place {
    struct provision *p;
    struct cloud_driver *driver;
    char region[CLOUD_NAME_MAX];
    bool listing, pricing, retired;
    size_t n_calls; /* launches and terminations under way */
    struct mono list_began;
};

struct pool_entry {
    char name[CORE_NAME_MAX];
    struct place *place;
};

struct provision {
    struct provision_options o;
    struct pool_entry *pools;
    size_t n_pools;
    struct place **places;
    size_t n_places;
    struct map works; /* instance id -> struct work */
    struct timer sweep, price, release;
    bool started;
    bool hurried; /* the next sweep is a soon one already */
    struct provision_stats stats;
};

static void on_sweep(struct timer *t, void *ctx);
static void on_price(struct timer *t, void *ctx);
static void on_release(struct timer *t, void *ctx);

/* ---- set-up ---- */

struct provision *provision_create(const struct provision_options *o)
{
    struct provision *p = mem_alloc(sizeof(*p));
    p->o = *o;
    timer_init(&p->sweep, on_sweep, p);
    timer_init(&p->price, on_price, p);
    timer_init(&p->release, on_release, p);
    return p;
}

static struct place *place_of(struct provision *p, struct cloud_driver *driver, const char *region)
{
    for (size_t i = 0; i < p->n_places; i++)
        if (p->places[i]->driver == driver && str_eq(p->places[i]->region, region))
            return p->places[i];
    struct place *pl = mem_alloc(sizeof(*pl));
    *pl = (struct place){.p = p, .driver = driver};
    STR_COPY(pl->region, region);
    p->places = mem_resize(p->places, p->n_places + 1, sizeof(struct place *));
    p->places[p->n_places++] = pl;
    return pl;
}

static struct pool_entry *pool_entry(const struct provision *p, const char *name)
{
    for (size_t i = 0; i < p->n_pools; i++)
        if (str_eq(p->pools[i].name, name))
            return &p->pools[i];
    return NULL;
}

/* From a timer, for it may be a call of the driver's that ends now. */
static void release_soon(struct provision *p)
{
    timer_start(p->o.timers, &p->release, 0);
}

static void on_release(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    (void)t;
    for (size_t i = 0; i < p->n_places;) {
        struct place *pl = p->places[i];
        if (!pl->retired || pl->listing || pl->pricing || pl->n_calls > 0) {
            i++;
            continue;
        }
        p->places[i] = p->places[--p->n_places];
        p->o.released(p->o.ctx, pl->driver);
        free(pl);
    }
}

static void end_call(struct place *pl)
{
    pl->n_calls--;
    if (pl->retired)
        release_soon(pl->p);
}

static void retire_if_empty(struct provision *p, struct place *pl)
{
    for (size_t i = 0; i < p->n_pools; i++)
        if (p->pools[i].place == pl)
            return;
    pl->retired = true;
    release_soon(p);
}

void provision_add_pool(struct provision *p, const struct provision_pool *pool)
{
    struct pool_entry *pe = pool_entry(p, pool->name);
    struct place *before = pe ? pe->place : NULL;
    if (!pe) {
        p->pools = mem_resize(p->pools, p->n_pools + 1, sizeof(*p->pools));
        pe = &p->pools[p->n_pools++];
        *pe = (struct pool_entry){0};
        STR_COPY(pe->name, pool->name);
    }
    pe->place = place_of(p, pool->driver, pool->region);
    if (before && before != pe->place)
        retire_if_empty(p, before);
    if (p->started)
        timer_start(p->o.timers, &p->price, 0);
}

void provision_remove_pool(struct provision *p, const char *name)
{
    struct pool_entry *pe = pool_entry(p, name);
    if (!pe)
        return;
    struct place *before = pe->place;
    *pe = p->pools[--p->n_pools];
    retire_if_empty(p, before);
}

void provision_destroy(struct provision *p)
{
    if (!p)
        return;
    timer_stop(p->o.timers, &p->sweep);
    timer_stop(p->o.timers, &p->price);
    timer_stop(p->o.timers, &p->release);
    size_t pos = 0;
    for (struct work *w; (w = map_next(&p->works, &pos, NULL));) {
        flow_abandon(&w->launch);
        free(w);
    }
    map_deinit(&p->works);
    for (size_t i = 0; i < p->n_places; i++)
        free(p->places[i]);
    free(p->places);
    free(p->pools);
    free(p);
}

static const struct model *model_of(const struct provision *p)
{
    return tick_model(p->o.tick);
}

static struct mono now(const struct provision *p)
{
    return clock_mono(p->o.timers->clock);
}

static struct work *work_of(struct provision *p, int64_t instance)
{
    struct work *w = map_get(&p->works, instance);
    if (!w) {
        w = mem_alloc(sizeof(*w));
        *w = (struct work){.p = p, .instance = instance, .last_call = now(p)};
        map_put(&p->works, instance, w);
    }
    return w;
}

static void drop_if_over(struct work *w)
{
    if (model_instance(model_of(w->p), w->instance) || w->terminating || flow_is_running(&w->launch))
        return;
    map_remove(&w->p->works, w->instance);
    free(w);
}

/* Sweeps soon: something is expected to change at the provider. Who asks meanwhile does not put it off. */
static void sweep_soon(struct provision *p)
{
    if (p->hurried)
        return;
    p->hurried = true;
    timer_start(p->o.timers, &p->sweep, p->o.busy_sweep_ms);
}

/* ---- launching ---- */

static void post_gone(
    struct provision *p, int64_t instance, bool reclaimed, struct wall ended_at, const char *text)
{
    struct event ev = {.type = EV_INSTANCE_GONE,
        .gone = {.instance = instance, .reclaimed = reclaimed, .ended_at = ended_at}};
    STR_COPY(ev.gone.text, text);
    tick_post(p->o.tick, &ev, NULL, NULL);
}

static void post_launched(struct provision *p, int64_t instance, const struct cloud_instance *c)
{
    struct event ev = {.type = EV_LAUNCHED, .launched = {.instance = instance}};
    STR_COPY(ev.launched.provider_id, c->id);
    STR_COPY(ev.launched.zone, c->zone);
    STR_COPY(ev.launched.type, c->type);
    tick_post(p->o.tick, &ev, NULL, NULL);
}

static bool is_shortage(enum err_kind k)
{
    return k == ERR_NO_CAPACITY || k == ERR_QUOTA;
}

/* A place beside the one decided on. */
static void on_place_refused(void *ctx, const struct cloud_place *place, const struct err *e)
{
    struct work *w = ctx;
    struct event ev = {.type = EV_OFFER_REFUSED,
        .offer_refused = {.instance = w->instance, .capacity = is_shortage(e->kind)}};
    STR_COPY(ev.offer_refused.zone, place->zone);
    STR_COPY(ev.offer_refused.type, place->type);
    STR_COPY(ev.offer_refused.text, e->text);
    w->p->stats.refusals++;
    tick_post(w->p->o.tick, &ev, NULL, NULL);
}

/* Only an answer that says "nothing was launched" is a refusal; after anything else the row stays INTENDED,
 * and the next sweep finds the machine by its token or launches again under it. */
static bool is_refusal(enum err_kind k)
{
    return is_shortage(k) || k == ERR_DENIED || k == ERR_CONFIG || k == ERR_UNSUPPORTED || k == ERR_CONFLICT;
}

static void on_launched(void *ctx, const struct err *e, const struct cloud_instance *instance)
{
    struct work *w = ctx;
    w->last_call = now(w->p);
    w->unsure |= e && !is_refusal(e->kind) && e->kind != ERR_THROTTLED && e->kind != ERR_CANCELLED;
    if (!e) {
        post_launched(w->p, w->instance, instance);
        if (instance->state == CLOUD_STOPPING || instance->state == CLOUD_GONE)
            post_gone(w->p, w->instance, instance->reclaimed, instance->ended_at,
                "had ended when the provider answered");
    }
    flow_step_done(&w->launch, e);
}

static void run_launch(struct flow *f, void *ctx)
{
    struct work *w = ctx;
    struct provision *p = w->p;
    const struct instance *i = model_instance(model_of(p), w->instance);
    const struct place *pl = w->launching;
    if (!i || i->row.state != INSTANCE_INTENDED || !pl) {
        struct err e;
        err_set(&e, ERR_CANCELLED, "the instance is not wanted any more");
        flow_step_done(f, &e);
        return;
    }
    struct provision_pool pool = {.name = i->row.pool, .driver = pl->driver, .region = pl->region};
    static const enum cloud_market markets[] = {
        [MARKET_OWNED] = CLOUD_OWNED, [MARKET_SPOT] = CLOUD_SPOT, [MARKET_ON_DEMAND] = CLOUD_ON_DEMAND};
    const struct offer *others[INSTANCE_ALTERNATIVES_MAX];
    struct cloud_place places[INSTANCE_ALTERNATIVES_MAX];
    size_t n = core_alternatives(model_of(p), i, others);
    for (size_t k = 0; k < n; k++)
        places[k] = (struct cloud_place){.zone = others[k]->row.zone, .type = others[k]->row.type};
    char *user_data = p->o.user_data(p->o.ctx, &i->row, &pool);
    struct cloud_launch l = {
        .token = i->row.token,
        .region = pl->region,
        .zone = i->row.zone,
        .type = i->row.type,
        .market = markets[i->row.market],
        .user_data = user_data,
        .cluster = p->o.cluster_uid,
        .alternatives = places,
        .n_alternatives = n,
        .refused = on_place_refused,
    };
    p->stats.launches++;
    pl->driver->ops->launch(pl->driver, &l, on_launched, w);
    free(user_data);
}

static const struct flow_step launch_steps[] = {
    {.name = "launch",
        .run = run_launch,
        .deadline_ms = LAUNCH_TRY_MS,
        .tries = LAUNCH_TRIES,
        .backoff_ms = LAUNCH_BACKOFF_MS,
        .backoff_cap_ms = LAUNCH_BACKOFF_CAP_MS},
};

/* A provider looks for the token before it looks for capacity, but not before it looks who calls, and for what. */
static bool is_doubtful(const struct work *w, enum err_kind k)
{
    return w->unsure && is_refusal(k) && !is_shortage(k);
}

static void on_launch_over(struct flow *f, void *ctx, const struct err *e)
{
    struct work *w = ctx;
    (void)f;
    if (w->launching)
        end_call(w->launching);
    w->launching = NULL;
    w->doubted = e && is_doubtful(w, e->kind);
    w->answered = !e || (is_refusal(e->kind) && !w->doubted);
    if (w->doubted)
        w->misses = 0;
    if (e && w->answered) {
        struct event ev = {.type = EV_LAUNCH_REFUSED,
            .refused = {.instance = w->instance, .capacity = is_shortage(e->kind)}};
        STR_COPY(ev.refused.text, e->text);
        w->p->stats.refusals++;
        tick_post(w->p->o.tick, &ev, NULL, NULL);
    } else if (e && e->kind != ERR_CANCELLED) {
        log_warn("a launch got no definite answer; it is looked up and tried again under its token",
            log_i("instance", w->instance), log_err(e));
        sweep_soon(w->p);
    }
    drop_if_over(w);
}

static void start_launch(struct work *w)
{
    if (flow_is_running(&w->launch) || w->answered || w->doubted)
        return;
    const struct instance *i = model_instance(model_of(w->p), w->instance);
    const struct pool_entry *pe = i ? pool_entry(w->p, i->row.pool) : NULL;
    w->launching = pe ? pe->place : NULL;
    if (pe)
        pe->place->n_calls++;
    flow_start(&w->launch, "launch", launch_steps, 1, w->p->o.timers, w->p->o.prng, w, on_launch_over);
}

/* ---- ending ---- */

static void on_terminated(void *ctx, const struct err *e)
{
    struct work *w = ctx;
    end_call(w->terminating);
    w->terminating = NULL;
    w->terminated = !e;
    w->last_call = now(w->p);
    if (e)
        log_warn("an instance could not be terminated yet; the sweep tries again",
            log_i("instance", w->instance), log_err(e));
    sweep_soon(w->p);
    drop_if_over(w);
}

static void terminate(struct work *w, const struct instance *i)
{
    const struct pool_entry *pe = pool_entry(w->p, i->row.pool);
    if (!pe)
        log_error("an instance cannot be ended: its pool is not in the configuration; put it back, with "
                  "max_nodes: 0, or end the instance by hand",
            log_i("instance", i->row.id), log_s("provider_id", i->row.provider_id),
            log_s("pool", i->row.pool));
    if (!pe || w->terminating || !i->row.provider_id[0])
        return;
    const char *id = i->row.provider_id;
    struct place *pl = w->terminating = pe->place;
    pl->n_calls++;
    pl->driver->ops->terminate(pl->driver, pl->region, &id, 1, on_terminated, w);
}

/* ---- rows ---- */

void provision_touch(struct provision *p, int64_t instance)
{
    const struct instance *i = model_instance(model_of(p), instance);
    struct work *w = map_get(&p->works, instance);
    if (!i) {
        if (w) {
            flow_cancel(&w->launch);
            drop_if_over(w);
        }
        return;
    }
    w = work_of(p, instance);
    if (i->row.state == INSTANCE_INTENDED) {
        start_launch(w);
    } else if (i->row.state == INSTANCE_ENDING) {
        flow_cancel(&w->launch);
        terminate(w, i);
        sweep_soon(p);
    }
}

void provision_start(struct provision *p)
{
    LIST_FOREACH (model_instances(model_of(p)), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (i->row.state == INSTANCE_INTENDED)
            work_of(p, i->row.id)->unsure = true;
        provision_touch(p, i->row.id);
    }
    p->started = true;
    timer_start(p->o.timers, &p->sweep, 0);
    timer_start(p->o.timers, &p->price, 0);
}

/* ---- the sweep ---- */

static void on_stray_ended(void *ctx, const struct err *e)
{
    struct place *pl = ctx;
    struct provision *p = pl->p;
    end_call(pl);
    if (e)
        log_warn("a stray instance could not be terminated yet; the sweep tries again", log_err(e));
    sweep_soon(p);
}

static void end_stray(struct place *pl, const struct cloud_instance *c)
{
    const char *id = c->id;
    log_warn("ending an instance that carries our tag and has no row", log_s("id", c->id),
        log_s("token", c->token));
    pl->p->stats.strays++;
    pl->n_calls++;
    pl->driver->ops->terminate(pl->driver, pl->region, &id, 1, on_stray_ended, pl);
}

/* The live row of a listed machine; NULL: it has none. A second machine under one token has none either. */
static const struct instance *row_of(const struct place *pl, const struct cloud_instance *c)
{
    const struct model *m = model_of(pl->p);
    const struct instance *i = c->token[0] ? model_instance_by_token(m, c->token) : NULL;
    if (!i)
        return model_instance_by_provider_id(m, pl->region, c->id);
    return !i->row.provider_id[0] || str_eq(i->row.provider_id, c->id) ? i : NULL;
}

/* One listed machine against its row. What stopped by itself still bills its disk until it is terminated. */
static void match(struct place *pl, const struct cloud_instance *c)
{
    struct provision *p = pl->p;
    const struct instance *i = row_of(pl, c);
    bool over = c->state == CLOUD_GONE || (c->state == CLOUD_STOPPING && c->reclaimed);
    if (!i) {
        if (!over)
            end_stray(pl, c);
        return;
    }
    struct work *w = work_of(p, i->row.id);
    w->misses = 0;
    w->listed_in = p->stats.sweeps;
    if (flow_is_running(&w->launch)) /* which will tell */
        return;
    if (!i->row.provider_id[0] || core_other_offer(model_of(p), i, c->zone, c->type))
        post_launched(p, i->row.id, c);
    if (over)
        post_gone(p, i->row.id, c->reclaimed, c->ended_at, c->reason);
    else if (i->row.state == INSTANCE_ENDING && !(c->state == CLOUD_STOPPING && w->terminated))
        terminate(w, i);
}

/* A row that the listing does not show. */
static void miss(struct place *pl, const struct instance *i)
{
    struct provision *p = pl->p;
    struct work *w = work_of(p, i->row.id);
    if (w->terminating || flow_is_running(&w->launch) || pl->list_began.ms <= w->last_call.ms)
        return;
    bool is_settled = pl->list_began.ms - w->last_call.ms >= p->o.settle_ms;
    if (i->row.state == INSTANCE_INTENDED) {
        if (w->doubted && (++w->misses < GONE_MISSES || !is_settled))
            return;
        if (w->doubted)
            w->unsure = w->doubted = false; /* the next answer counts */
        w->misses = 0;
        start_launch(w);
        return;
    }
    const struct cloud_driver_ops *ops = pl->driver->ops;
    if (ops->hides && ops->hides(pl->driver, i->row.provider_id))
        return;
    if (++w->misses >= GONE_MISSES && is_settled)
        post_gone(p, i->row.id, false, WALL_NONE, "the provider does not list it (any more)");
}

/* A listing, kept until the model holds nothing that is not on disk: what is concluded from it leaves at
 * once. */
struct listing {
    struct place *place;
    struct cloud_instance *list;
    size_t n;
};

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct listing *x = ctx;
    struct place *pl = x->place;
    struct provision *p = pl->p;
    (void)id;
    pl->listing = false;
    p->stats.sweeps++;
    for (size_t k = 0; !e && k < x->n; k++)
        match(pl, &x->list[k]);
    LIST_FOREACH (model_instances(model_of(p)), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        const struct pool_entry *pe = pool_entry(p, i->row.pool);
        if (!e && pe && pe->place == pl && work_of(p, i->row.id)->listed_in != p->stats.sweeps)
            miss(pl, i);
    }
    if (pl->retired)
        release_soon(p);
    free(x->list);
    free(x);
}

static void on_listed(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct place *pl = ctx;
    if (e) {
        pl->listing = false;
        pl->p->stats.list_errors++;
        if (pl->retired)
            release_soon(pl->p);
        log_warn("the provider's instances could not be listed; the sweep tries again",
            log_s("region", pl->region), log_err(e));
        return;
    }
    struct listing *x = mem_alloc(sizeof(*x));
    *x = (struct listing){.place = pl, .list = mem_dup(list, n * sizeof(*list)), .n = n};
    tick_when_durable(pl->p->o.tick, on_durable, x);
}

static void on_sweep(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    bool busy = false;
    (void)t;
    p->hurried = false;
    for (size_t k = 0; k < p->n_places; k++) {
        struct place *pl = p->places[k];
        if (pl->listing || pl->retired)
            continue;
        pl->listing = true;
        pl->list_began = now(p);
        pl->driver->ops->list(pl->driver, pl->region, p->o.cluster_uid, on_listed, pl);
    }
    LIST_FOREACH (model_instances(model_of(p)), l) {
        enum instance_state s = LIST_ENTRY(l, struct instance, in_all)->row.state;
        busy = busy || s == INSTANCE_ENDING || s == INSTANCE_INTENDED;
    }
    timer_start(p->o.timers, &p->sweep, busy ? p->o.busy_sweep_ms : p->o.sweep_ms);
}

/* ---- prices ---- */

/* Of the pools at this place: other pools of the region may have been scored for other sets of types. */
static void post_score(const struct place *pl, const struct cloud_price *price)
{
    const struct provision *p = pl->p;
    for (size_t k = 0; k < p->n_pools; k++) {
        struct event ev = {.type = EV_SCORE, .score.score = price->score};
        if (p->pools[k].place != pl)
            continue;
        STR_COPY(ev.score.pool, p->pools[k].name);
        STR_COPY(ev.score.zone, price->zone);
        STR_COPY(ev.score.type, price->type);
        tick_post(p->o.tick, &ev, NULL, NULL);
    }
}

static void on_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n)
{
    struct place *pl = ctx;
    pl->pricing = false;
    if (pl->retired)
        release_soon(pl->p);
    if (e) {
        log_warn("prices could not be read; the last ones stay", log_s("region", pl->region), log_err(e));
        return;
    }
    for (size_t k = 0; k < n; k++) {
        struct event ev = {.type = EV_PRICE,
            .price = {.market = list[k].market == CLOUD_SPOT ? MARKET_SPOT : MARKET_ON_DEMAND,
                .uusd_h = list[k].uusd_h}};
        STR_COPY(ev.price.region, pl->region);
        STR_COPY(ev.price.zone, list[k].zone);
        STR_COPY(ev.price.type, list[k].type);
        tick_post(pl->p->o.tick, &ev, NULL, NULL);
        if (list[k].market == CLOUD_SPOT)
            post_score(pl, &list[k]);
    }
}

/* The types of all pools at this place, each once. */
static size_t types_of(const struct place *pl, const char *out[PRICE_TYPES_MAX])
{
    size_t n = 0;
    LIST_FOREACH (model_pools(model_of(pl->p)), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        const struct pool_entry *pe = pool_entry(pl->p, pool->row.name);
        if (!pe || pe->place != pl)
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

static void on_price(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    (void)t;
    for (size_t k = 0; k < p->n_places; k++) {
        struct place *pl = p->places[k];
        const char *types[PRICE_TYPES_MAX];
        size_t n = types_of(pl, types);
        if (pl->pricing || n == 0)
            continue;
        pl->pricing = true;
        pl->driver->ops->prices(pl->driver, pl->region, types, n, on_prices, pl);
    }
    timer_start(p->o.timers, &p->price, p->o.price_ms);
}

void provision_get_stats(const struct provision *p, struct provision_stats *ret_stats)
{
    *ret_stats = p->stats;
}
