/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world (see world.h): life cycle of belayd, its disk, and one run.
 */
#include "simtest/options.h"
#include "simtest/world.h"
#include "simtest/digest.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "scheduler/engine/effects.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_MS (3 * 3600 * 1000)          /* duration of the phase with faults */
#define RECOVERY_MAX_MS (48LL * 3600 * 1000) /* maximum duration after that */
#define EVENTS_MAX 3000000

/* ---- utilities ---- */

int64_t world_now(const struct world *w)
{
    return clock_mono(w->vt.timers.clock).ms;
}

struct stamp world_stamp(const struct world *w)
{
    return (struct stamp){
        .wall = clock_wall(w->vt.timers.clock), .mono = clock_mono(w->vt.timers.clock)};
}

bool world_chance(struct world *w, double p)
{
    return prng_chance(&w->prng, p);
}

int64_t world_between(struct world *w, int64_t min, int64_t max)
{
    return prng_range(&w->prng, min, max);
}

void world_fail(struct world *w, const char *fmt, ...)
{
    char text[400];
    if (w->failure[0])
        return;
    VFORMAT(text, fmt);
    snprintf(w->failure, sizeof(w->failure), "at %lld ms, event %lld: %s", (long long)world_now(w),
        (long long)w->events, text);
}

/* A job's behaviour follows from its number and the seed, so that it is known even if its submit
 * was never answered. */
struct sim_job *world_job(struct world *w, int64_t id)
{
    struct sim_job *j = &w->jobs[id >= 1 && id <= SIM_JOBS_MAX ? id - 1 : 0];
    if (j->total_steps == 0) {
        struct prng p;
        prng_init(&p, w->seed * 1000003u + (uint64_t)id);
        j->total_steps = prng_range(&p, 10, prng_chance(&p, 0.2) ? 15000 : 3000);
        j->fails = prng_chance(&p, 0.1);
        j->forgets = prng_chance(&p, 0.1);
        pauses_make_job(w, &p, j);
    }
    return j;
}

/* ---- belayd's disk ---- */

static void commit_now(struct world *w, bool tell)
{
    struct err e = {0};
    const struct db_batch *b = w->committing;
    int rc;
    w->committing = NULL;
    if (world_now(w) < w->full_until_ms) {
        rc = err_set(&e, ERR_NO_SPACE, "no space left on the simulated disk");
    } else {
        rc = db_commit(w->db, b, &e);
        if (rc == 0) {
            sim_digest_number(&w->digest, world_now(w));
            sim_digest_changes(&w->digest, &b->changes);
            check_committed(w, b);
        } else {
            world_fail(w, "a commit failed: %s", e.text);
        }
    }
    if (tell)
        tick_committed(w->tick, rc, &e);
}

static void on_commit_timer(struct timer *t, void *ctx)
{
    (void)t;
    commit_now(ctx, true);
}

static void start_commit(struct commit_port *port, const struct db_batch *b)
{
    struct world *w = (struct world *)((char *)port - offsetof(struct world, port));
    w->committing = b;
    if (world_chance(w, 0.3))
        commit_now(w, true);
    else
        timer_start(
            &w->vt.timers, &w->commit_timer, world_between(w, 0, world_chance(w, 0.1) ? 500 : 10));
}

/* ---- belayd's life cycle ---- */

static void on_effects(void *ctx, const struct db_batch *committed)
{
    struct world *w = ctx;
    outbox_port_committed(w, committed);
    effects_release(committed, w->agent_sync, w->provision, w->cleaner, w->outbox);
}

static void on_fatal(void *ctx, const struct err *e)
{
    world_fail(ctx, "belayd gave up: %s", e->text);
}

static char *user_data(void *ctx, const struct instance_row *i, const struct provision_pool *pool)
{
    (void)ctx, (void)pool;
    return mem_printf("#!/bin/sh\n# %s\n", i->token);
}

struct resources world_machine(const char *type)
{
    bool is_big = str_eq(type, SIM_BIG);
    return (struct resources){.cpus = is_big ? 8 : 4, .memory_mib = is_big ? 32768 : 16384};
}

static void post_offer(
    struct world *w, const char *zone, const char *type, enum market market, int rank)
{
    bool is_big = str_eq(type, SIM_BIG); /* the big type costs less than two small machines */
    struct offer_row o = {.market = market,
        .rank = rank,
        .total = world_machine(type),
        .price_uusd_h =
            market == MARKET_SPOT ? (is_big ? 130000 : 80000) : (is_big ? 300000 : 192000),
        .on_demand_uusd_h = is_big ? 300000 : 192000,
        .avoid_until = MONO_NONE};
    STR_COPY(o.pool, "burst");
    STR_COPY(o.zone, zone);
    STR_COPY(o.type, type);
    struct event ev = {.type = EV_OFFER, .offer = &o};
    tick_post(w->tick, &ev, NULL, NULL);
}

static void post_pools(struct world *w)
{
    struct pool_row base = {.max_nodes = 100, .usd_per_hour_uusd = 50000};
    struct pool_row burst = {.elastic = true,
        /* scarce, to cause preemptions */
        .max_nodes = w->seed % SIM_QUOTAS == 1 ? 3 : 6,
        .idle_timeout_ms = 90000,
        .cooldown_ms = 60000,
        .boot_timeout_ms = 300000,
        .refusal_backoff_ms = SIM_BACKOFF_MS,
        .min_paid_ms = 60000,
        .spread_pct = 10,
        .fleet = w->seed % 2 == 1,
        .require_drill = w->seed % SIM_REQUIRE == 0,
        .drill_valid_ms = SIM_VALID_MS,
        .return_ms = 120000};
    struct event ev = {.type = EV_POOL, .pool = &base};
    STR_COPY(base.features, ",ib,");
    STR_COPY(base.resources, "lego:3");
    STR_COPY(burst.resources, "lego:1");
    STR_COPY(base.name, "base");
    traffic_prices(w, &base);
    idle_gpus_policy(w, &base);
    tick_post(w->tick, &ev, NULL, NULL);
    STR_COPY(burst.name, "burst");
    STR_COPY(burst.provider, "sim");
    STR_COPY(burst.region, "r1");
    traffic_prices(w, &burst);
    bases_set(w, &burst);
    idle_gpus_policy(w, &burst);
    ev.pool = &burst;
    tick_post(w->tick, &ev, NULL, NULL);
    post_offer(w, "z1", SIM_SMALL, MARKET_SPOT, 0);
    post_offer(w, "z2", SIM_SMALL, MARKET_SPOT, 0);
    post_offer(w, "z2", SIM_BIG, MARKET_SPOT, 0);
    post_offer(w, "z1", SIM_SMALL, MARKET_ON_DEMAND, 1);
    post_offer(w, "z1", SIM_BIG, MARKET_ON_DEMAND, 1);
}

static void make_parts(struct world *w)
{
    struct timers *ts = &w->vt.timers;
    w->port.start = start_commit;
    w->planner = planner_create();
    w->tick = tick_create(&(struct tick_options){.model = w->model,
        .planner = w->planner,
        .timers = ts,
        .commit = &w->port,
        .effects = on_effects,
        .fatal = on_fatal,
        .ctx = w});
    w->agent_sync = agent_sync_create(&(struct agent_sync_options){.tick = w->tick,
        .timers = ts,
        .reader = w->reader,
        .boots = w->boots,
        .cluster_uid = w->cluster_uid,
        .lease_ms = 30000,
        .sync_ms = 10000,
        .kill_wait_ms = 5000,
        .store_wait_ms = SIM_STORE_WAIT_MS,
        .secrets = grants_of_job,
        .secrets_ctx = w});
    w->provision = provision_create(&(struct provision_options){.tick = w->tick,
        .timers = ts,
        .prng = &w->prng,
        .cluster_uid = w->cluster_uid,
        .sweep_ms = 60000,
        .busy_sweep_ms = 5000,
        .settle_ms = 60000,
        .price_ms = 300000,
        .user_data = user_data,
        .ctx = w});
    w->cleaner = cleaner_create(w->tick, ts, &w->sim_cleaner.port);
    w->outbox = outbox_create(w->tick, ts, &w->prng, &w->postman.port);
    provision_add_pool(w->provision, &(struct provision_pool){.name = "burst",
                                         .driver = w->driver,
                                         .region = "r1",
                                         .launches_per_minute = w->seed % 4 == 2 ? 6 : 0});
}

static const struct count licences[] = {{"matlab", 3}, {"ansys", 1}};

static void start_belayd(struct world *w)
{
    struct db_meta meta;
    struct err e = {0};
    struct model_options o = {.lease_ms = 30000,
        .store_wait_ms = SIM_STORE_WAIT_MS,
        .retention_ms = w->seed % 3 ? (int64_t)(w->seed % 7) * 100000 : 0,
        .no_progress_max = w->no_progress_max,
        .store_uusd_gib_month = traffic_store_price(w),
        .egress = traffic_egress,
        .policy = quotas_policy(w),
        .zones = &w->zones,
        .tables = {.hooks = &sim_hook,
            .n_hooks = 1,
            .licences = licences,
            .n_licences = sizeof(licences) / sizeof(licences[0])},
        .read_job = crons_read_job};
    if (holes_enabled(w))
        o.node_failures = sim_holes;
    w->settings = (struct model_settings){.lease_ms = o.lease_ms,
        .store_wait_ms = o.store_wait_ms,
        .no_progress_max = o.no_progress_max,
        .node_failures = o.node_failures,
        .retention_ms = o.retention_ms,
        .retries = o.retries};
    o.tables.budgets = paid_options(w, &o.tables.n_budgets);
    o.tables.digest = digests_options(w);
    o.tables.calendars = crons_calendars(w, &o.tables.n_calendars);
    o.tables.n_racks = racks_of(w, &o.tables.racks);
    w->tables = (struct settings_tables){
        .to = o.tables, .has_other_budgets = true, .has_other_racks = true};
    if (db_startup(w->db, &meta, &e) != 0) {
        world_fail(w, "the database does not open again: %s", e.text);
        return;
    }
    STR_COPY(w->cluster_uid, meta.cluster_uid);
    STR_COPY(o.cluster_uid, meta.cluster_uid);
    w->boots = meta.boots;
    prunes_run(w);
    w->model = model_create(&o);
    if (db_load(w->db, w->model, world_stamp(w), &e) != 0)
        world_fail(w, "the database does not load: %s", e.text);
    options_loaded(w);
    holes_loaded(w);
    make_parts(w);
    w->up = true;
    w->checked_at = -1;
    digests_up(w);
    anomalies_up(w);
    w->owed_since_ms = w->base_since_ms = world_now(w);
    post_pools(w);
    provision_start(w->provision);
    cleaner_start(w->cleaner);
    outbox_start(w->outbox);
}

/* kill -9: no messages; everything in transit is lost, and a commit in progress has or has not
 * taken effect. */
static void kill_belayd(struct world *w)
{
    w->crashes++;
    w->up = false;
    disks_forgotten(w);
    timer_stop(&w->vt.timers, &w->commit_timer);
    if (w->committing && world_chance(w, 0.5))
        commit_now(w, false);
    w->committing = NULL;
    cloud_forget_calls(w);
    tick_destroy(w->tick); /* it answers what it can; other connections break below */
    provision_destroy(w->provision);
    store_cleaner_kill(w);
    cleaner_destroy(w->cleaner);
    outbox_port_kill(w);
    outbox_destroy(w->outbox);
    agent_sync_destroy(w->agent_sync);
    planner_destroy(w->planner);
    model_destroy(w->model);
    LIST_FOREACH (&w->calls, l) {
        struct sim_call *c = LIST_ENTRY(l, struct sim_call, in_world);
        if (c->sent && !c->desired && !timer_is_running(&c->timer))
            agent_call_broken(c);
    }
    w->provision = NULL;
    w->cleaner = NULL;
    w->outbox = NULL;
    w->agent_sync = NULL;
    w->tick = NULL;
    w->planner = NULL;
    w->model = NULL;
}

static void on_restart(struct timer *t, void *ctx)
{
    (void)t;
    start_belayd(ctx);
}

static void on_crash(struct timer *t, void *ctx)
{
    struct world *w = ctx;
    (void)t;
    if (w->faults_over)
        return;
    if (w->up) {
        kill_belayd(w);
        timer_start(&w->vt.timers, &w->restart_timer,
            world_between(w, 100, world_chance(w, 0.2) ? 120000 : 3000));
    }
    timer_start(&w->vt.timers, &w->crash_timer, (int64_t)prng_exponential(&w->prng, 600000));
}

/* ---- faults ---- */

static void cut_an_agent(struct world *w)
{
    int64_t skip = world_between(w, 0, 5);
    LIST_FOREACH (&w->agents, l) {
        struct sim_agent *a = LIST_ENTRY(l, struct sim_agent, in_world);
        if (!a->dead && skip-- <= 0) {
            a->cut_until_ms = world_now(w) + world_between(w, 1000, 180000);
            return;
        }
    }
}

static void on_fault(struct timer *t, void *ctx)
{
    struct world *w = ctx;
    (void)t;
    if (world_now(w) >= FAULTS_MS) {
        w->faults_over = true;
        return;
    }
    if (w->seed % SIM_AWAY == 0 && w->n_acked > 0 && world_chance(w, 0.5))
        store_hide(w, w->acked[world_between(w, 0, w->n_acked - 1)]);
    if (world_chance(w, 0.7))
        cut_an_agent(w);
    else if (world_chance(w, 0.2))
        w->full_until_ms = world_now(w) + world_between(w, 500, 60000);
    else if (world_chance(w, 0.3)) /* sets the clock */
        vtimers_set_wall(&w->vt, clock_wall(w->vt.timers.clock).ms + world_between(w, -5000, 5000));
    timer_start(&w->vt.timers, &w->fault_timer, (int64_t)prng_exponential(&w->prng, 300000));
}

/* ---- one run ---- */

static void begin(struct world *w, struct db *db, uint64_t seed)
{
    struct err e = {0};
    w->seed = seed;
    w->digest = SIM_DIGEST_START;
    prng_init(&w->prng, seed);
    prng_init(&w->options, ~seed);
    vtimers_init(&w->vt, START_WALL_MS);
    crons_init(w);
    digests_init(w);
    w->db = db;
    if (db_empty(db, &e) != 0 || db_reader_of(w->db, &w->reader, &e) != 0) {
        world_fail(w, "no database: %s", e.text);
        return;
    }
    w->n_jobs = (int)world_between(w, 1, 12);
    w->no_progress_max = seed % 3 ? (int32_t)(seed % 5) + 1 : 0;
    w->driver = cloud_create(w);
    store_cleaner_init(w);
    outbox_port_init(w);
    timer_init(&w->commit_timer, on_commit_timer, w);
    timer_init(&w->crash_timer, on_crash, w);
    timer_init(&w->restart_timer, on_restart, w);
    timer_init(&w->fault_timer, on_fault, w);
    timer_start(&w->vt.timers, &w->crash_timer, (int64_t)prng_exponential(&w->prng, 600000));
    timer_start(&w->vt.timers, &w->fault_timer, (int64_t)prng_exponential(&w->prng, 300000));
    start_belayd(w);
    users_start(w);
    for (int64_t n = world_between(w, 0, 2) + (racks_enabled(w) ? 2 : 0); n > 0; n--)
        agent_boot(w, NULL);
}

/* Ends early when all is done: further faults would test nothing. */
static bool is_over(struct world *w)
{
    if (users_done(w))
        w->faults_over = true;
    return users_done(w) && cloud_alive(w) == 0;
}

static void end(struct world *w)
{
    if (w->up) {
        w->crashes--;
        kill_belayd(w);
    }
    users_stop(w);
    agent_destroy_all(w);
    cloud_destroy(w);
    w->driver->ops->destroy(w->driver);
    for (int i = 0; i < SIM_JOBS_MAX; i++)
        free(w->store[i].manifests);
    map_deinit(&w->attempts);
    size_t at = 0;
    for (struct sim_spent *s; (s = map_next(&w->spent, &at, NULL));)
        free(s);
    map_deinit(&w->spent);
    map_deinit(&w->drills);
    map_deinit(&w->spot);
    crons_deinit(w);
    paid_deinit(w);
    boots_deinit(w);
    holes_deinit(w);
    traffic_deinit(w);
    smap_deinit(&w->proven);
    smap_deinit(&w->tokens);
    size_t pos = 0;
    for (char *text; (text = smap_next(&w->alternatives, &pos, NULL));)
        free(text);
    smap_deinit(&w->alternatives);
    db_reader_close(w->reader);
    vtimers_deinit(&w->vt);
}

static void report(const struct world *w, struct sim_result *r)
{
    *r = (struct sim_result){.events = w->events,
        .crashes = w->crashes,
        .reclaims = w->reclaims,
        .kills = w->kills,
        .launches = w->launches,
        .saves = w->saves,
        .prefetches = w->prefetches,
        .drilled = w->drilled,
        .evictions = w->evictions,
        .jobs = w->n_acked,
        .virtual_ms = world_now(w),
        .digest = w->digest};
    STR_COPY(r->failure, w->failure);
}

void sim_run(struct db *db, uint64_t seed, struct sim_result *ret_result)
{
    struct world *w = mem_alloc(sizeof(*w));
    begin(w, db, seed);
    while (!w->failure[0] && !is_over(w)) {
        if (++w->events > EVENTS_MAX || world_now(w) > FAULTS_MS + RECOVERY_MAX_MS) {
            world_fail(w, "the run does not end: %d machines, %d of %d jobs submitted",
                cloud_alive(w), w->n_submits, w->n_jobs);
            break;
        }
        if (!vtimers_run_next(&w->vt))
            world_fail(w, "no event is scheduled, but the run has not ended");
        check_model(w);
    }
    if (!w->failure[0])
        check_end(w);
    report(w, ret_result);
    end(w);
    free(w);
}
