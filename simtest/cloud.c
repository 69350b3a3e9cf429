/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated provider, behind the same driver table as real ones: idempotent by token,
 * eventually consistent, slow, reclaiming with and without notice. Calls have every outcome that
 * driver.h allows: refused with each kind, not sent, lost after their effect, a listing without one
 * of the zones.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum call_kind { CALL_LAUNCH, CALL_LIST, CALL_TERMINATE, CALL_PRICES };

/* A call in progress: first its effect, then its reply. */
struct cloud_call {
    struct link in_world;
    struct world *w;
    enum call_kind kind;
    struct timer effect, reply;
    bool forgotten; /* belayd died */
    struct err e;   /* error of the reply */
    bool lost;      /* it took effect, but the reply is an error */
    char token[65], zone[16], type[64];
    char other_zone[16], other_type[64]; /* alternative offer, "" if none */
    bool is_elsewhere;                   /* launched from the alternative */
    enum cloud_market market;
    cloud_refused_fn refused;
    struct sim_machine *machine;
    char ids[8][32];
    size_t n_ids;
    cloud_launch_fn launched;
    cloud_list_fn listed;
    cloud_done_fn done;
    cloud_prices_fn priced;
    void *ctx;
};

static struct sim_machine *by_token(struct world *w, const char *token)
{
    for (int i = 0; i < w->n_machines; i++)
        if (str_eq(w->machines[i]->token, token))
            return w->machines[i];
    return NULL;
}

static struct sim_machine *by_id(struct world *w, const char *id)
{
    for (int i = 0; i < w->n_machines; i++)
        if (str_eq(w->machines[i]->id, id))
            return w->machines[i];
    return NULL;
}

/* ---- billing ---- */

#define START_UUSD_H 80000 /* as configured in belayd */

static const char *const zones[2] = {"z1", "z2"};

/* The provider's clock: never set, unlike those of belayd and the agents. */
static struct wall now_of(const struct world *w)
{
    return (struct wall){START_WALL_MS + world_now(w)};
}

static struct wall launched_at(const struct sim_machine *m)
{
    return (struct wall){START_WALL_MS + m->launched_ms};
}

bool cloud_bills(const struct world *w)
{
    return w->seed % 4 != 0;
}

/* The price now. Types whose price is constant cost what belayd's offers say. */
static int64_t price_of(
    const struct world *w, const char *zone, const char *type, enum cloud_market market)
{
    bool is_big = str_eq(type, SIM_BIG);
    const struct sim_prices *p = &w->prices[str_eq(zone, "z2")];
    if (market != CLOUD_SPOT)
        return is_big ? 300000 : 192000;
    return is_big ? 130000 : p->uusd_h[p->n - 1];
}

/* Sums the lines of the bill: one for each interval of constant price. */
void cloud_bill(const struct sim_machine *m, int64_t *ret_ms, int64_t *ret_uusd)
{
    const struct sim_prices *p = &m->w->prices[str_eq(m->zone, "z2")];
    struct wall from = launched_at(m);
    *ret_ms = m->ended_at.ms - from.ms;
    *ret_uusd = 0;
    if (m->market != CLOUD_SPOT || str_eq(m->type, SIM_BIG)) {
        *ret_uusd = core_cost_uusd(*ret_ms, price_of(m->w, m->zone, m->type, m->market));
        return;
    }
    for (int k = 0; k < p->n && from.ms < m->ended_at.ms; k++) {
        struct wall to =
            k + 1 < p->n && p->since[k + 1].ms < m->ended_at.ms ? p->since[k + 1] : m->ended_at;
        if (to.ms <= from.ms)
            continue;
        *ret_uusd += core_cost_uusd(to.ms - from.ms, p->uusd_h[k]);
        from = to;
    }
}

static struct sim_spent *spent_under(struct world *w, const char *token)
{
    struct sim_spent *s = NULL;
    size_t pos = 0;
    while ((s = map_next(&w->spent, &pos, NULL)) && !str_eq(s->token, token))
        ;
    return s;
}

/* True if part of the machine's cost is unknowable to belayd. That is the cost before the machine
 * was first seen, unless at the price of that time (and one earlier change, once the provider has
 * reported its start); and that of a machine which ended after more than one later price change. */
static bool is_cost_unknown(struct world *w, const struct sim_machine *m, struct wall last_change)
{
    const struct sim_spent *s = spent_under(w, m->token);
    if (!s || s->is_over)
        return !s;
    return !s->is_launched || (!s->is_reported && (s->is_repriced || m->is_elsewhere)) ||
           (wall_is_set(m->ended_at) && last_change.ms >= m->ended_at.ms);
}

static bool has_machine_of_unknown_cost(struct world *w, int zone)
{
    const struct sim_prices *p = &w->prices[zone];
    for (int i = 0; i < w->n_machines; i++)
        if (str_eq(w->machines[i]->zone, zones[zone]) &&
            is_cost_unknown(w, w->machines[i], p->since[p->n - 1]))
            return true;
    return false;
}

/* Dates the change in the past, but after all reported ones; machines that had ended by then keep
 * their bill. */
static void change_price(struct world *w, int zone)
{
    struct sim_prices *p = &w->prices[zone];
    struct wall since = {now_of(w).ms - world_between(w, 0, 60000)};
    int64_t uusd_h = world_between(w, 50000, 150000);
    if (p->n == SIM_PRICES_MAX || has_machine_of_unknown_cost(w, zone) ||
        uusd_h == p->uusd_h[p->n - 1] || uusd_h == START_UUSD_H)
        return;
    if (since.ms <= p->since[p->n - 1].ms)
        since.ms = p->since[p->n - 1].ms + 1;
    for (int i = 0; i < w->n_machines; i++) {
        const struct sim_machine *m = w->machines[i];
        if (str_eq(m->zone, zones[zone]) && wall_is_set(m->ended_at) && m->ended_at.ms > since.ms)
            since = m->ended_at;
    }
    for (int i = 0; i < w->n_machines; i++) {
        struct sim_spent *s = str_eq(w->machines[i]->zone, zones[zone])
                                  ? spent_under(w, w->machines[i]->token)
                                  : NULL;
        if (s && !s->is_reported)
            s->is_repriced = true;
    }
    p->since[p->n] = since;
    p->uusd_h[p->n++] = uusd_h;
}

void cloud_forget_unstored_prices(struct world *w)
{
    for (int i = 0; i < 2; i++)
        w->prices[i].n = w->prices[i].n_stored;
}

void cloud_price_stored(struct world *w, const struct offer_row *r)
{
    struct sim_prices *p = &w->prices[str_eq(r->zone, "z2")];
    if (r->market == MARKET_SPOT && str_eq(r->type, SIM_SMALL) &&
        r->price_uusd_h == p->uusd_h[p->n - 1])
        p->n_stored = p->n;
}

/* ---- machines ---- */

static void on_boot(struct timer *t, void *ctx)
{
    struct sim_machine *m = ctx;
    (void)t;
    m->state = CLOUD_RUNNING;
    if (boots_fail_now(m->w)) {
        if (world_chance(m->w, 0.5)) /* powers itself off, or stays up */
            cloud_kill(m, false);
        return;
    }
    if (!world_chance(m->w, 0.03)) /* some never boot */
        agent_boot(m->w, m);
}

/* Billing ends here. */
static void note_end(struct sim_machine *m)
{
    if (!wall_is_set(m->ended_at))
        m->ended_at = now_of(m->w);
}

void cloud_kill(struct sim_machine *m, bool reclaimed)
{
    struct timers *ts = &m->w->vt.timers;
    if (m->state == CLOUD_GONE)
        return;
    note_end(m);
    m->state = CLOUD_GONE;
    m->reclaimed = reclaimed;
    m->gone_ms = world_now(m->w);
    timer_stop(ts, &m->boot);
    timer_stop(ts, &m->reclaim);
    timer_stop(ts, &m->kill);
    timer_stop(ts, &m->end);
    if (m->agent)
        agent_kill(m->agent);
    m->agent = NULL;
}

static void on_kill(struct timer *t, void *ctx)
{
    (void)t;
    cloud_kill(ctx, true);
}

static void on_end(struct timer *t, void *ctx)
{
    (void)t;
    cloud_kill(ctx, false);
}

static void on_reclaim(struct timer *t, void *ctx)
{
    struct sim_machine *m = ctx;
    struct world *w = m->w;
    (void)t;
    if (w->faults_over)
        return;
    w->reclaims++;
    if (m->agent && world_chance(w, 0.15)) {
        agent_notice(m->agent, WIRE_NOTICE_REBALANCE, WIRE_NONE); /* a reclaim may not follow */
        timer_start(&w->vt.timers, &m->reclaim, world_between(w, 10000, 600000));
    } else if (world_chance(w, 0.75)) {
        int64_t notice_ms = world_chance(w, 0.5) ? 120000 : 30000;
        if (m->agent)
            agent_notice(
                m->agent, WIRE_NOTICE_RECLAIM, clock_wall(w->vt.timers.clock).ms + notice_ms);
        timer_start(&w->vt.timers, &m->kill, notice_ms);
    } else {
        cloud_kill(m, true);
    }
}

static struct sim_machine *make_machine(struct cloud_call *c)
{
    struct world *w = c->w;
    struct sim_machine *m = mem_alloc(sizeof(*m));
    if (w->n_machines == SIM_MACHINES_MAX) {
        world_fail(w, "more than %d machines were launched", SIM_MACHINES_MAX);
        free(m);
        return NULL;
    }
    m->w = w;
    snprintf(m->id, sizeof(m->id), "i-%05d", w->n_machines + 1);
    STR_COPY(m->token, c->token);
    m->is_elsewhere = c->is_elsewhere;
    STR_COPY(m->zone, c->is_elsewhere ? c->other_zone : c->zone);
    STR_COPY(m->type, c->is_elsewhere ? c->other_type : c->type);
    m->market = c->market;
    m->launched_ms = world_now(w);
    m->ended_at = WALL_NONE;
    m->visible_from_ms = m->launched_ms + (world_chance(w, 0.5) ? world_between(w, 0, 20000) : 0);
    timer_init(&m->boot, on_boot, m);
    timer_init(&m->reclaim, on_reclaim, m);
    timer_init(&m->kill, on_kill, m);
    timer_init(&m->end, on_end, m);
    timer_start(&w->vt.timers, &m->boot, world_between(w, 5000, 90000));
    if (m->market == CLOUD_SPOT)
        timer_start(&w->vt.timers, &m->reclaim, (int64_t)prng_exponential(&w->prng, 900000));
    w->machines[w->n_machines++] = m;
    w->launches++;
    return m;
}

int cloud_alive(const struct world *w)
{
    int n = 0;
    for (int i = 0; i < w->n_machines; i++)
        n += w->machines[i]->state != CLOUD_GONE;
    return n;
}

/* ---- calls ---- */

static void call_free(struct cloud_call *c)
{
    timer_stop(&c->w->vt.timers, &c->effect);
    timer_stop(&c->w->vt.timers, &c->reply);
    link_remove(&c->in_world);
    free(c);
}

static void do_launch(struct cloud_call *c)
{
    c->machine = by_token(c->w, c->token);
    if (!c->machine)
        c->machine = make_machine(c);
}

static void do_terminate(struct cloud_call *c)
{
    for (size_t i = 0; i < c->n_ids; i++) {
        struct sim_machine *m = by_id(c->w, c->ids[i]);
        if (!m || m->visible_from_ms > world_now(c->w)) {
            err_set(&c->e, ERR_NOT_FOUND, "no instance %s (yet)", c->ids[i]);
            return;
        }
    }
    for (size_t i = 0; i < c->n_ids; i++) {
        struct sim_machine *m = by_id(c->w, c->ids[i]);
        if (m->state == CLOUD_PENDING || m->state == CLOUD_RUNNING) {
            note_end(m);
            m->state = CLOUD_STOPPING;
            timer_stop(&c->w->vt.timers, &m->boot);
            timer_start(&c->w->vt.timers, &m->end, world_between(c->w, 100, 20000));
        }
    }
}

static void on_effect(struct timer *t, void *ctx)
{
    struct cloud_call *c = ctx;
    struct world *w = c->w;
    (void)t;
    if ((c->e.kind == ERR_NO_CAPACITY || c->e.kind == ERR_QUOTA) && by_token(w, c->token))
        c->e.kind = ERR_NONE; /* without capacity too: a provider checks the token first */
    if (c->e.kind == ERR_NONE || c->lost) {
        if (c->kind == CALL_LAUNCH)
            do_launch(c);
        else if (c->kind == CALL_TERMINATE)
            do_terminate(c);
    }
    if (c->forgotten)
        call_free(c);
    else
        timer_start(&w->vt.timers, &c->reply, world_between(w, 0, 300));
}

static void fill(const struct sim_machine *m, struct cloud_instance *out)
{
    *out = (struct cloud_instance){.market = m->market,
        .state = m->state,
        .reclaimed = m->reclaimed,
        .launched_at = cloud_bills(m->w) ? launched_at(m) : WALL_NONE,
        .ended_at = cloud_bills(m->w) || m->launched_ms % 2 ? m->ended_at : WALL_NONE};
    STR_COPY(out->id, m->id);
    STR_COPY(out->token, m->token);
    STR_COPY(out->cluster, m->w->cluster_uid);
    STR_COPY(out->zone, m->zone);
    STR_COPY(out->type, m->type);
}

static void reply_launch(const struct cloud_call *c)
{
    struct cloud_instance i;
    struct cloud_target first = {c->zone, c->type}, other = {c->other_zone, c->other_type};
    if (c->e.kind == ERR_NO_CAPACITY && other.zone[0])
        c->refused(c->ctx, &other, &c->e);
    if (c->e.kind == ERR_NONE && c->machine) {
        if (str_eq(c->machine->zone, other.zone) && world_chance(c->w, 0.5)) {
            struct err e;
            err_set(&e, ERR_NO_CAPACITY, "no capacity in %s", c->zone);
            c->refused(c->ctx, &first, &e);
        }
        fill(c->machine, &i);
        c->launched(c->ctx, NULL, &i);
    } else {
        c->launched(c->ctx, &c->e, NULL);
    }
}

static void reply_list(const struct cloud_call *c)
{
    struct world *w = c->w;
    struct cloud_instance *list = mem_array((size_t)w->n_machines + 1, sizeof(*list));
    size_t n = 0;
    STR_COPY(w->hidden_zone, w->faults_over || !world_chance(w, 0.1) ? ""
                             : world_chance(w, 0.5)                  ? "z1"
                                                                     : "z2");
    for (int i = 0; i < w->n_machines; i++) {
        const struct sim_machine *m = w->machines[i];
        bool old = m->state == CLOUD_GONE && world_now(w) - m->gone_ms > 3600000 && !cloud_bills(w);
        if (m->visible_from_ms <= world_now(w) && !old && !str_eq(m->zone, w->hidden_zone))
            fill(m, &list[n++]);
    }
    c->listed(c->ctx, NULL, list, n);
    free(list);
}

static void reply_prices(struct cloud_call *c)
{
    struct cloud_price list[2];
    cloud_forget_unstored_prices(c->w);
    for (int i = 0; i < 2; i++) {
        struct sim_prices *p = &c->w->prices[i];
        change_price(c->w, i);
        list[i] = (struct cloud_price){
            .market = CLOUD_SPOT, .uusd_h = p->uusd_h[p->n - 1], .since = p->since[p->n - 1]};
        list[i].score = (int)(list[i].uusd_h % 11); /* 0: no score */
        STR_COPY(list[i].zone, zones[i]);
        STR_COPY(list[i].type, SIM_SMALL);
    }
    c->priced(c->ctx, NULL, list, 2);
}

static void on_reply(struct timer *t, void *ctx)
{
    struct cloud_call *c = ctx;
    (void)t;
    link_remove(&c->in_world);
    if (c->forgotten) {
        ;
    } else if (c->kind == CALL_LAUNCH) {
        reply_launch(c);
    } else if (c->kind == CALL_TERMINATE) {
        c->done(c->ctx, c->e.kind ? &c->e : NULL);
    } else if (c->e.kind) {
        if (c->kind == CALL_LIST)
            c->listed(c->ctx, &c->e, NULL, 0);
        else
            c->priced(c->ctx, &c->e, NULL, 0);
    } else if (c->kind == CALL_LIST) {
        reply_list(c);
    } else {
        reply_prices(c);
    }
    free(c);
}

/* Outcomes of a call that driver.h allows, with their probabilities. A call that was not sent, or
 * was refused, had no effect; one with a lost reply may have succeeded. */
static const struct call_outcome {
    double chance;
    enum err_kind kind;
    const char *text;
    bool of_launch, lost;
} outcomes[] = {
    {0.13, ERR_NO_CAPACITY, "no capacity", .of_launch = true},
    {0.02, ERR_QUOTA, "quota exceeded", .of_launch = true},
    {0.01, ERR_CONFIG, "no such image", .of_launch = true},
    {0.005, ERR_UNSUPPORTED, "the type is not supported", .of_launch = true},
    {0.005, ERR_CONFLICT, "the token was used", .of_launch = true},
    {0.01, ERR_NO_CREDENTIALS, "no credentials, so nothing was sent", .of_launch = true},
    {0.01, ERR_DENIED, "not allowed"},
    {0.05, ERR_THROTTLED, "slow down"},
    {0.04, ERR_UNAVAILABLE, "503"},
    {0.01, ERR_IO, "connection refused"},
    {0.01, ERR_TIMEOUT, "no connection in time"},
    {0.02, ERR_IO, "the connection broke before the reply", .lost = true},
    {0.03, ERR_TIMEOUT, "the reply was lost", .lost = true},
    {0.03, ERR_INVALID, "the reply does not parse", .lost = true},
    {0.02, ERR_UNAVAILABLE, "500, after all was done", .lost = true},
};

static void choose_outcome(struct cloud_call *c)
{
    double at = prng_unit(&c->w->prng);
    if (c->kind == CALL_LAUNCH && c->market == CLOUD_SPOT && pauses_spot_is_away(c->w)) {
        err_set(&c->e, ERR_NO_CAPACITY, "no capacity");
        return;
    }
    for (size_t i = 0; !c->w->faults_over && i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        const struct call_outcome *f = &outcomes[i];
        if (f->of_launch && c->kind != CALL_LAUNCH)
            continue;
        at -= f->chance;
        if (at >= 0)
            continue;
        err_set(&c->e, f->kind, "%s", f->text);
        c->lost = f->lost;
        return;
    }
}

static struct cloud_call *call(struct world *w, enum call_kind kind, void *ctx)
{
    struct cloud_call *c = mem_alloc(sizeof(*c));
    c->w = w;
    c->kind = kind;
    c->ctx = ctx;
    timer_init(&c->effect, on_effect, c);
    timer_init(&c->reply, on_reply, c);
    list_push_back(&w->cloud_calls, &c->in_world);
    return c;
}

static void send(struct cloud_call *c)
{
    choose_outcome(c);
    timer_start(&c->w->vt.timers, &c->effect,
        world_between(c->w, 1, world_chance(c->w, 0.1) ? 20000 : 1000));
}

/* ---- the driver's table ---- */

struct sim_driver {
    struct cloud_driver base;
    struct world *w;
};

static struct world *world_of(struct cloud_driver *d)
{
    return ((struct sim_driver *)d)->w;
}

static void sim_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    struct cloud_call *c = call(world_of(d), CALL_LAUNCH, ctx);
    check_launch(c->w, l->token);
    STR_COPY(c->token, l->token);
    STR_COPY(c->zone, l->zone);
    STR_COPY(c->type, l->type);
    check_alternatives(c->w, l);
    if (l->n_alternatives > 0) {
        STR_COPY(c->other_zone, l->alternatives[0].zone);
        STR_COPY(c->other_type, l->alternatives[0].type);
        c->is_elsewhere = world_chance(c->w, 0.4);
    }
    c->refused = l->refused;
    c->market = l->market;
    c->launched = done;
    send(c);
}

static void sim_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    struct cloud_call *c = call(world_of(d), CALL_LIST, ctx);
    (void)region, (void)cluster;
    c->listed = done;
    send(c);
}

static bool sim_hides(const struct cloud_driver *d, const char *id)
{
    struct world *w = ((const struct sim_driver *)d)->w;
    const struct sim_machine *m = by_id(w, id);
    return m && str_eq(m->zone, w->hidden_zone);
}

static void sim_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n, cloud_done_fn done, void *ctx)
{
    struct cloud_call *c = call(world_of(d), CALL_TERMINATE, ctx);
    (void)region;
    for (size_t i = 0; i < n && i < 8; i++) {
        const struct sim_machine *m = by_id(c->w, ids[i]);
        STR_COPY(c->ids[c->n_ids++], ids[i]);
        if (m)
            check_terminate(c->w, m->token);
    }
    c->done = done;
    send(c);
}

static void sim_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n, cloud_prices_fn done, void *ctx)
{
    struct cloud_call *c = call(world_of(d), CALL_PRICES, ctx);
    (void)region, (void)types, (void)n;
    c->priced = done;
    send(c);
}

static void sim_destroy(struct cloud_driver *d)
{
    free(d);
}

static const struct cloud_driver_ops ops = {
    .provider = "sim",
    .spot_notice_ms = 120000,
    .launch = sim_launch,
    .list = sim_list,
    .hides = sim_hides,
    .terminate = sim_terminate,
    .prices = sim_prices,
    .destroy = sim_destroy,
};

struct cloud_driver *cloud_create(struct world *w)
{
    struct sim_driver *d = mem_alloc(sizeof(*d));
    for (int i = 0; i < 2 && w->prices[i].n == 0; i++) {
        w->prices[i].since[0] = (struct wall){0};
        w->prices[i].uusd_h[0] = START_UUSD_H;
        w->prices[i].n = w->prices[i].n_stored = 1;
    }
    d->base.ops = &ops;
    d->w = w;
    return &d->base;
}

void cloud_forget_calls(struct world *w)
{
    cloud_forget_unstored_prices(w);
    LIST_FOREACH (&w->cloud_calls, l) {
        struct cloud_call *c = LIST_ENTRY(l, struct cloud_call, in_world);
        c->forgotten = true;
        if (timer_is_running(&c->reply))
            call_free(c);
        else if (world_chance(w, 0.3))
            call_free(c); /* it was never sent */
    }
}

void cloud_destroy(struct world *w)
{
    for (struct link *l; (l = list_first(&w->cloud_calls));)
        call_free(LIST_ENTRY(l, struct cloud_call, in_world));
    for (int i = 0; i < w->n_machines; i++) {
        struct sim_machine *m = w->machines[i];
        struct timers *ts = &w->vt.timers;
        timer_stop(ts, &m->boot);
        timer_stop(ts, &m->reclaim);
        timer_stop(ts, &m->kill);
        timer_stop(ts, &m->end);
        free(m);
    }
}
