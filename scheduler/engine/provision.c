/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning (see provision.h): its pools and their regions, launching and ending. Invariants:
 *  1. A launch call is made only for an INTENDED row that is committed, with the row's own token.
 *  2. At most one launch call and one terminate call of an instance are in progress.
 *  3. A refusal ends a launch only if no earlier try of it can have created a machine. An
 *     unanswered try may have, and a refusal for missing permissions says nothing about it. Then
 *     the listings (provision_sweep.c) must show that there is none.
 *
 * It deliberately does not decide which offer to launch, how long to avoid one that refused, or
 * when to end an instance: the core does.
 */
#include "scheduler/engine/provision_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define LAUNCH_TRY_MS 60000
#define LAUNCH_TRIES 6
#define LAUNCH_BACKOFF_MS 500
#define LAUNCH_BACKOFF_CAP_MS 30000

static void on_release(struct timer *t, void *ctx);

/* ---- set-up ---- */

struct provision *provision_create(const struct provision_options *o)
{
    struct provision *p = mem_alloc(sizeof(*p));
    p->o = *o;
    timer_init(&p->sweep, provision_on_sweep, p);
    timer_init(&p->price, provision_on_price, p);
    timer_init(&p->release, on_release, p);
    return p;
}

static struct launch_pace *pace_of(
    struct provision *p, const struct cloud_driver_ops *ops, const char *region)
{
    for (size_t i = 0; i < p->n_paces; i++)
        if (p->paces[i]->ops == ops && str_eq(p->paces[i]->region, region))
            return p->paces[i];
    struct launch_pace *pace = mem_alloc(sizeof(*pace));
    launch_pace_init(pace, p->o.timers, ops, region);
    p->paces = mem_resize(p->paces, p->n_paces + 1, sizeof(struct launch_pace *));
    p->paces[p->n_paces++] = pace;
    return pace;
}

static void set_rate(struct provision *p, struct launch_pace *pace)
{
    int64_t most = 0;
    for (size_t i = 0; i < p->n_pools; i++)
        if (p->pools[i].region->pace == pace && p->pools[i].launches_per_minute > most)
            most = p->pools[i].launches_per_minute;
    launch_pace_set_rate(pace, most > 0 ? most : pace->ops->launches_per_minute);
}

static struct provision_region *region_of(
    struct provision *p, struct cloud_driver *driver, const char *region)
{
    for (size_t i = 0; i < p->n_regions; i++)
        if (p->regions[i]->driver == driver && str_eq(p->regions[i]->name, region))
            return p->regions[i];
    struct provision_region *at = mem_alloc(sizeof(*at));
    *at = (struct provision_region){
        .p = p, .driver = driver, .pace = pace_of(p, driver->ops, region)};
    STR_COPY(at->name, region);
    p->regions = mem_resize(p->regions, p->n_regions + 1, sizeof(struct provision_region *));
    p->regions[p->n_regions++] = at;
    return at;
}

struct pool_entry *provision_find_pool(const struct provision *p, const char *name)
{
    for (size_t i = 0; i < p->n_pools; i++)
        if (str_eq(p->pools[i].name, name))
            return &p->pools[i];
    return NULL;
}

void provision_release_soon(struct provision *p)
{
    timer_start(p->o.timers, &p->release, 0);
}

static void on_release(struct timer *t, void *ctx)
{
    struct provision *p = ctx;
    (void)t;
    for (size_t i = 0; i < p->n_regions;) {
        struct provision_region *at = p->regions[i];
        if (!at->retired || at->listing || at->pricing || at->n_calls > 0) {
            i++;
            continue;
        }
        p->regions[i] = p->regions[--p->n_regions];
        p->o.released(p->o.ctx, at->driver);
        free(at);
    }
}

void provision_end_call(struct provision_region *at)
{
    at->n_calls--;
    if (at->retired)
        provision_release_soon(at->p);
}

static void retire_if_empty(struct provision *p, struct provision_region *at)
{
    for (size_t i = 0; i < p->n_pools; i++)
        if (p->pools[i].region == at)
            return;
    at->retired = true;
    provision_release_soon(p);
}

void provision_set_times(struct provision *p, int64_t sweep_ms, int64_t busy_sweep_ms,
    int64_t settle_ms, int64_t price_ms)
{
    p->o.sweep_ms = sweep_ms;
    p->o.busy_sweep_ms = busy_sweep_ms;
    p->o.settle_ms = settle_ms;
    p->o.price_ms = price_ms;
}

void provision_add_pool(struct provision *p, const struct provision_pool *pool)
{
    struct pool_entry *pe = provision_find_pool(p, pool->name);
    struct provision_region *before = pe ? pe->region : NULL;
    if (!pe) {
        p->pools = mem_resize(p->pools, p->n_pools + 1, sizeof(*p->pools));
        pe = &p->pools[p->n_pools++];
        *pe = (struct pool_entry){0};
        STR_COPY(pe->name, pool->name);
    }
    pe->region = region_of(p, pool->driver, pool->region);
    pe->launches_per_minute = pool->launches_per_minute;
    set_rate(p, pe->region->pace);
    if (before && before != pe->region) {
        set_rate(p, before->pace);
        retire_if_empty(p, before);
    }
    if (p->started)
        timer_start(p->o.timers, &p->price, 0);
}

void provision_remove_pool(struct provision *p, const char *name)
{
    struct pool_entry *pe = provision_find_pool(p, name);
    if (!pe)
        return;
    struct provision_region *before = pe->region;
    *pe = p->pools[--p->n_pools];
    set_rate(p, before->pace);
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
        tries_abandon(&w->launch);
        free(w);
    }
    map_deinit(&p->works);
    for (size_t i = 0; i < p->n_regions; i++)
        free(p->regions[i]);
    free(p->regions);
    for (size_t i = 0; i < p->n_paces; i++) {
        launch_pace_deinit(p->paces[i]);
        free(p->paces[i]);
    }
    free(p->paces);
    free(p->pools);
    free(p);
}

const struct model *provision_model(const struct provision *p)
{
    return tick_model(p->o.tick);
}

struct mono provision_now(const struct provision *p)
{
    return clock_mono(p->o.timers->clock);
}

struct work *provision_work(struct provision *p, int64_t instance)
{
    struct work *w = map_get(&p->works, instance);
    if (!w) {
        w = mem_alloc(sizeof(*w));
        *w = (struct work){.p = p, .instance = instance, .last_call = provision_now(p)};
        map_put(&p->works, instance, w);
    }
    return w;
}

static void drop_if_finished(struct work *w)
{
    if (model_instance(provision_model(w->p), w->instance) || w->terminating ||
        tries_is_running(&w->launch))
        return;
    launch_turn_leave(&w->turn);
    map_remove(&w->p->works, w->instance);
    free(w);
}

void provision_sweep_soon(struct provision *p)
{
    if (p->is_brought_forward)
        return;
    p->is_brought_forward = true;
    timer_start(p->o.timers, &p->sweep, p->o.busy_sweep_ms);
}

/* ---- launching ---- */

void provision_post_gone(
    struct provision *p, int64_t instance, const struct cloud_instance *c, const char *text)
{
    struct event ev = {.type = EV_INSTANCE_GONE,
        .gone = {.instance = instance, .launched_at = WALL_NONE, .ended_at = WALL_NONE}};
    if (c) {
        ev.gone.reclaimed = c->reclaimed;
        ev.gone.launched_at = c->launched_at;
        ev.gone.ended_at = c->ended_at;
    }
    STR_COPY(ev.gone.text, text);
    tick_post(p->o.tick, &ev, NULL, NULL);
}

void provision_post_launched(struct provision *p, int64_t instance, const struct cloud_instance *c)
{
    struct event ev = {.type = EV_LAUNCHED,
        .launched = {.instance = instance,
            .launched_at = c->launched_at,
            .is_queued = c->state == CLOUD_QUEUED}};
    STR_COPY(ev.launched.provider_id, c->id);
    STR_COPY(ev.launched.zone, c->zone);
    STR_COPY(ev.launched.type, c->type);
    tick_post(p->o.tick, &ev, NULL, NULL);
}

static bool is_shortage(enum err_kind k)
{
    return k == ERR_NO_CAPACITY || k == ERR_QUOTA;
}

/* It may pass by itself: the offer is avoided for a while. */
static bool is_temporary(enum err_kind k)
{
    return is_shortage(k) || k == ERR_NO_CREDENTIALS;
}

/* A target other than the chosen one refused. */
static void on_target_refused(void *ctx, const struct cloud_target *target, const struct err *e)
{
    struct work *w = ctx;
    struct event ev = {.type = EV_OFFER_REFUSED,
        .offer_refused = {.instance = w->instance, .is_temporary = is_temporary(e->kind)}};
    STR_COPY(ev.offer_refused.zone, target->zone);
    STR_COPY(ev.offer_refused.type, target->type);
    STR_SHORTEN(ev.offer_refused.text, e->text);
    w->p->stats.refusals++;
    tick_post(w->p->o.tick, &ev, NULL, NULL);
}

/* Only an answer that means "nothing was launched" is a refusal. After any other error the row
 * stays INTENDED, and the next sweep finds the machine by its token or launches again under it. */
static bool is_refusal(enum err_kind k)
{
    return is_temporary(k) || k == ERR_DENIED || k == ERR_CONFIG || k == ERR_UNSUPPORTED ||
           k == ERR_CONFLICT;
}

static void on_launched(void *ctx, const struct err *e, const struct cloud_instance *instance)
{
    struct work *w = ctx;
    w->last_call = provision_now(w->p);
    if (e && e->kind == ERR_THROTTLED && w->launching)
        launch_pace_throttled(w->launching->pace);
    w->may_exist |=
        e && !is_refusal(e->kind) && e->kind != ERR_THROTTLED && e->kind != ERR_CANCELLED;
    if (!e) {
        provision_post_launched(w->p, w->instance, instance);
        if (instance->state == CLOUD_STOPPING || instance->state == CLOUD_GONE)
            provision_post_gone(
                w->p, w->instance, instance, "had ended when the provider answered");
    }
    tries_ended(&w->launch, e);
}

static void run_launch(struct tries *t, void *ctx)
{
    struct work *w = ctx;
    struct provision *p = w->p;
    const struct instance *i = model_instance(provision_model(p), w->instance);
    const struct provision_region *at = w->launching;
    if (!i || i->row.state != INSTANCE_INTENDED || !at) {
        struct err e;
        err_set(&e, ERR_CANCELLED, "the instance is no longer needed");
        tries_ended(t, &e);
        return;
    }
    struct provision_pool pool = {.name = i->row.pool, .driver = at->driver, .region = at->name};
    static const enum cloud_market markets[] = {[MARKET_OWNED] = CLOUD_OWNED,
        [MARKET_SPOT] = CLOUD_SPOT,
        [MARKET_ON_DEMAND] = CLOUD_ON_DEMAND};
    const struct offer *others[INSTANCE_ALTERNATIVES_MAX];
    struct cloud_target targets[INSTANCE_ALTERNATIVES_MAX];
    size_t n = core_alternatives(provision_model(p), i, others);
    for (size_t k = 0; k < n; k++)
        targets[k] =
            (struct cloud_target){.zone = others[k]->row.zone, .type = others[k]->row.type};
    if (t->n > 0)
        launch_pace_repeat(at->pace);
    char *user_data = p->o.user_data(p->o.ctx, &i->row, &pool);
    struct cloud_launch l = {
        .token = i->row.token,
        .region = at->name,
        .zone = i->row.zone,
        .type = i->row.type,
        .market = markets[i->row.market],
        .user_data = user_data,
        .cluster = p->o.cluster_uid,
        .alternatives = targets,
        .n_alternatives = n,
        .refused = on_target_refused,
    };
    p->stats.launches++;
    at->driver->ops->launch(at->driver, &l, on_launched, w);
    free(user_data);
}

/* A provider checks the token before capacity, but after the caller's identity and the request. A
 * refusal for the latter therefore says nothing about an earlier try, and neither does a lack of
 * credentials. */
static bool is_inconclusive(const struct work *w, enum err_kind k)
{
    return w->may_exist && is_refusal(k) && !is_shortage(k);
}

static void on_launch_over(struct tries *t, void *ctx, const struct err *e)
{
    struct work *w = ctx;
    (void)t;
    if (w->launching)
        provision_end_call(w->launching);
    w->launching = NULL;
    w->awaits_listing = e && is_inconclusive(w, e->kind);
    w->answered = !e || (is_refusal(e->kind) && !w->awaits_listing);
    if (w->awaits_listing)
        w->misses = 0;
    if (e && w->answered) {
        struct event ev = {.type = EV_LAUNCH_REFUSED,
            .refused = {.instance = w->instance, .is_temporary = is_temporary(e->kind)}};
        STR_SHORTEN(ev.refused.text, e->text);
        w->p->stats.refusals++;
        tick_post(w->p->o.tick, &ev, NULL, NULL);
    } else if (e && e->kind != ERR_CANCELLED) {
        log_warn("a launch got no definite answer; looking it up and retrying under its token",
            log_i("instance", w->instance), log_err(e));
        provision_sweep_soon(w->p);
    }
    drop_if_finished(w);
}

static const struct tries_options launch_tries = {.run = run_launch,
    .done = on_launch_over,
    .deadline_ms = LAUNCH_TRY_MS,
    .most = LAUNCH_TRIES,
    .backoff_ms = LAUNCH_BACKOFF_MS,
    .backoff_cap_ms = LAUNCH_BACKOFF_CAP_MS};

/* Its row may have changed while it waited: the first try checks it. */
static void launch_now(struct work *w)
{
    const struct instance *i = model_instance(provision_model(w->p), w->instance);
    const struct pool_entry *pe = i ? provision_find_pool(w->p, i->row.pool) : NULL;
    w->launching = pe ? pe->region : NULL;
    if (pe)
        pe->region->n_calls++;
    tries_start(&w->launch, &launch_tries, w->p->o.timers, w->p->o.prng, w);
}

static void on_turn(struct launch_turn *turn)
{
    launch_now(LIST_ENTRY(turn, struct work, turn));
}

void provision_launch(struct work *w)
{
    if (tries_is_running(&w->launch) || launch_turn_is_waiting(&w->turn) || w->answered ||
        w->awaits_listing)
        return;
    const struct instance *i = model_instance(provision_model(w->p), w->instance);
    const struct pool_entry *pe = i ? provision_find_pool(w->p, i->row.pool) : NULL;
    w->turn.start = on_turn;
    if (!pe || launch_pace_enter(pe->region->pace, &w->turn))
        launch_now(w);
}

/* ---- consoles ---- */

/* The console's text is stored with the pool, whether or not the machine's row still exists. */
struct console {
    struct provision *p;
    struct provision_region *region;
    int64_t instance;
    char pool[CORE_NAME_MAX];
};

static void on_console_posted(void *ctx, const struct err *e, int64_t id)
{
    (void)e, (void)id;
    free(ctx);
}

static void on_console(void *ctx, const struct err *e, const char *text)
{
    struct console *x = ctx;
    struct provision *p = x->p;
    struct pool_entry *pe = provision_find_pool(p, x->pool);
    struct event ev = {.type = EV_BOOT_CONSOLE, .boot_console = {.instance = x->instance}};
    if (pe)
        pe->is_consoling = false;
    provision_end_call(x->region);
    STR_COPY(ev.boot_console.pool, x->pool);
    if (e) {
        log_warn("the console of a machine that never joined cannot be read",
            log_i("instance", x->instance), log_err(e));
    } else if (text[0]) {
        char *kept = mem_strdup(text);
        ev.boot_console.text = kept;
        tick_post(p->o.tick, &ev, on_console_posted, kept);
    }
    if (model_instance(provision_model(p), x->instance) && (!e || e->kind != ERR_CANCELLED))
        provision_touch(p, x->instance); /* continue with its termination */
    free(x);
}

bool provision_read_console(struct provision *p, const struct instance *i)
{
    struct pool_entry *pe = provision_find_pool(p, i->row.pool);
    if (!pe || pe->is_consoling || !i->row.provider_id[0] || !pe->region->driver->ops->console)
        return false;
    struct console *x = mem_alloc(sizeof(*x));
    *x = (struct console){.p = p, .region = pe->region, .instance = i->row.id};
    STR_COPY(x->pool, i->row.pool);
    pe->is_consoling = true;
    pe->region->n_calls++;
    pe->region->driver->ops->console(
        pe->region->driver, pe->region->name, i->row.provider_id, on_console, x);
    return true;
}

/* ---- ending ---- */

static void on_terminated(void *ctx, const struct err *e)
{
    struct work *w = ctx;
    provision_end_call(w->terminating);
    w->terminating = NULL;
    w->terminated = !e;
    w->last_call = provision_now(w->p);
    if (e)
        log_warn("an instance could not be terminated yet; the sweep will retry",
            log_i("instance", w->instance), log_err(e));
    provision_sweep_soon(w->p);
    drop_if_finished(w);
}

void provision_terminate(struct work *w, const struct instance *i)
{
    const struct pool_entry *pe = provision_find_pool(w->p, i->row.pool);
    if (!pe)
        log_error("cannot terminate an instance: its pool is not in the configuration; restore the "
                  "pool with max_nodes: 0, or terminate the instance by hand",
            log_i("instance", i->row.id), log_s("provider_id", i->row.provider_id),
            log_s("pool", i->row.pool));
    if (!pe || w->terminating || !i->row.provider_id[0])
        return;
    const char *id = i->row.provider_id;
    struct provision_region *at = w->terminating = pe->region;
    at->n_calls++;
    at->driver->ops->terminate(at->driver, at->name, &id, 1, on_terminated, w);
}

/* ---- rows ---- */

void provision_touch(struct provision *p, int64_t instance)
{
    const struct instance *i = model_instance(provision_model(p), instance);
    struct work *w = map_get(&p->works, instance);
    if (!i) {
        if (w) {
            tries_cancel(&w->launch);
            drop_if_finished(w);
        }
        return;
    }
    w = provision_work(p, instance);
    if (i->row.state != INSTANCE_INTENDED)
        launch_turn_leave(&w->turn);
    if (i->row.state == INSTANCE_INTENDED) {
        provision_launch(w);
    } else if (i->row.state == INSTANCE_ENDING) {
        tries_cancel(&w->launch);
        bool first = !w->consoled && !wall_is_set(i->row.joined_at);
        w->consoled = true;
        if (first && provision_read_console(p, i))
            /* some providers delete the console with the machine, so it is terminated only after
             * the read */
            return;
        provision_terminate(w, i);
        provision_sweep_soon(p);
    }
}

void provision_note_pool(struct provision *p, const struct pool_row *row)
{
    const struct pool_boots *b = &row->boots;
    struct pool_entry *pe = provision_find_pool(p, row->name);
    int32_t before = pe ? pe->failed_boots : 0;
    if (!pe || b->failed == before)
        return;
    pe->failed_boots = b->failed;
    if (b->failed == 0 && before >= BOOTS_FAILED_MAX)
        log_info("a machine of the pool has booted; launching as many as needed again",
            log_s("pool", row->name), log_i("failed", before));
    if (b->wait_ms == 0)
        return;
    char next[TIME_ISO_MAX] = "now";
    if (wall_is_set(b->next_at))
        time_format_iso(b->next_at, next);
    log_error("launched machines of the pool never join, or have full disks; launching one at a "
              "time: check their server name, image, disk and network, and the console of one",
        log_s("pool", row->name), log_i("failed", b->failed), log_i("instance", b->instance),
        log_s("why", b->text), log_s("next_launch", next));
}

void provision_start(struct provision *p)
{
    LIST_FOREACH (model_instances(provision_model(p)), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (i->row.state == INSTANCE_INTENDED)
            provision_work(p, i->row.id)->may_exist = true;
        provision_touch(p, i->row.id);
    }
    p->started = true;
    timer_start(p->o.timers, &p->sweep, 0);
    timer_start(p->o.timers, &p->price, 0);
}

void provision_get_stats(const struct provision *p, struct provision_stats *ret_stats)
{
    *ret_stats = p->stats;
}
