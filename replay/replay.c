/* SPDX-License-Identifier: Apache-2.0
 *
 * See replay.h. Every event is a timer. After each one the core decides until nothing is left to
 * decide, and the decisions are executed: machines boot and are reclaimed (replay_machines.c),
 * attempts restore, run, save and end (replay_attempts.c). What the core knows of spot before that
 * is in replay_observed.c.
 */
#include "replay/replay_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define START_WALL_MS 1767225600000 /* 2026-01-01T00:00:00Z */
#define HOUR_MS 3600000

struct stamp replay_now(const struct replay *w)
{
    return (struct stamp){clock_wall(&w->vt.clock), clock_mono(&w->vt.clock)};
}

size_t replay_pool_index(const struct replay *w, const char *name)
{
    size_t i = 0;
    while (i < w->o->n_pools && !str_eq(w->o->pools[i].name, name))
        i++;
    return i;
}

struct replay_pool *replay_pool_of_node(const struct replay *w, int64_t node)
{
    void *of = map_get(&w->pool_of_node, node);
    return w->o->by_pool && of ? &w->o->by_pool[(size_t)of - 1] : NULL;
}

void replay_add_capacity(struct replay_pool *p, const struct resources *total, int64_t ms)
{
    p->have_ms[0] += (double)total->cpus * (double)ms;
    p->have_ms[1] += (double)total->gpus * (double)ms;
}

int64_t replay_apply(struct replay *w, struct event ev)
{
    struct outcome out = {0};
    struct err e;
    ev.now = replay_now(w);
    if (core_apply(w->m, &ev, &out, &e) != 0 && w->refused.kind == ERR_NONE) {
        w->refused = e;
        err_wrap(&w->refused, "%s", event_type_names[ev.type]);
    }
    return out.id;
}

/* ---- decisions ---- */

/* Deletes checkpoints of an ended job as the core decides. This takes no time here. */
static void clean(struct replay *w, int64_t job)
{
    struct progress *p = &w->jobs[job];
    enum ckpt_gc_keep keep = core_ckpt_gc_keep(model_cleaning(w->m));
    p->kept = keep == CKPT_GC_KEEP_NONE                  ? 0
              : keep == CKPT_GC_KEEP_LAST && p->kept > 1 ? 1
                                                         : p->kept;
    replay_apply(
        w, (struct event){.type = EV_CLEANED,
               .cleaned = {.job = job, .kept_bytes = p->kept * w->o->jobs[job - 1].ckpt_bytes}});
}

static void execute(struct replay *w, const struct event *ev, int64_t id)
{
    switch (ev->type) {
    case EV_PLACE:
        replay_place(w, ev->place.job);
        break;
    case EV_LAUNCH:
        replay_launch(w, id, ev->launch.offer);
        break;
    case EV_END_INSTANCE:
        replay_end_machine(w, ev->end_instance.instance);
        break;
    case EV_CLEAN:
        clean(w, ev->clean.job);
        break;
    case EV_MOVE: /* the attempt is STOPPING now: count() stops it */
        w->r.moves++;
        break;
    default:
        break;
    }
}

/* For an attempt that was reclaimed and has ended: reports what the job lost. */
static void report_loss(struct replay *w, const struct history_row *h)
{
    struct replay_loss *l = &w->jobs[h->job].loss;
    if (!w->o->lost || h->attempt != l->attempt || !str_eq(h->kind, "ended"))
        return;
    l->counted_ms = h->b;
    w->o->lost(w->o->ctx, l);
}

static void count_ledger(struct replay *w, const struct ledger_row *r)
{
    void *of = r->instance ? map_get(&w->pool_of_instance, r->instance)
                           : map_get(&w->pool_of_node, r->node);
    struct replay_pool *p = w->o->by_pool && of ? &w->o->by_pool[(size_t)of - 1] : NULL;
    /* time of owned machines is not counted here: pay_owned pays for all of it */
    bool is_paid = r->instance || r->kind == LEDGER_EGRESS || r->kind == LEDGER_STORAGE;
    if (r->kind == LEDGER_IDLE && !r->instance)
        return;
    w->r.ms[r->kind] += r->ms;
    w->r.spent[r->kind] += r->uusd;
    w->r.on_demand_uusd += r->on_demand_uusd;
    if (p) {
        p->ms[r->kind] += r->ms;
        p->spent[r->kind] += r->uusd;
        p->uusd += is_paid ? r->uusd : 0;
    }
    if (w->o->series && is_paid)
        series_spend(w->o->series, r->from.ms - w->start.ms, r->to.ms - w->start.ms, r->uusd);
}

static void fill_outcome(struct replay_outcome *o, const struct job_row *r)
{
    o->uusd = r->cost_uusd;
    o->lost_ms = r->lost_ms;
    o->attempts = r->attempts;
    o->reclaims = r->reclaims;
}

static void count_job(struct replay *w, const struct job_row *r)
{
    if (r->state != JOB_ENDED)
        return;
    w->ended++;
    if (w->o->outcomes) {
        struct replay_outcome *o = &w->o->outcomes[r->id - 1];
        o->ended_ms = clock_mono(&w->vt.clock).ms;
        o->end = r->end;
        fill_outcome(o, r);
    }
    if (w->o->progress)
        w->o->progress(w->o->ctx, w->ended);
}

/* Takes the changes from the core and counts them. True if attempts have begun to stop, so that the
 * core has to decide again. */
static bool count(struct replay *w)
{
    struct changes c = {0};
    bool stops = false;
    model_take_changes(w->m, &c);
    for (size_t i = 0; i < c.n_ledger; i++)
        count_ledger(w, &c.ledger[i]);
    for (size_t i = 0; i < c.n_history; i++)
        if (c.history[i].attempt > 0)
            report_loss(w, &c.history[i]);
    for (size_t i = 0; i < c.n_instances; i++)
        if (c.instances[i].state == INSTANCE_GONE)
            w->r.uusd[c.instances[i].market] +=
                core_instance_uusd(&c.instances[i], c.instances[i].ended_at);
    for (size_t i = 0; i < c.n_jobs; i++)
        count_job(w, &c.jobs[i]);
    for (size_t i = 0; i < c.n_attempts; i++) {
        if (c.attempts[i].state != ATTEMPT_STOPPING)
            continue;
        replay_stop(w, &c.attempts[i]);
        stops = true;
    }
    changes_deinit(&c);
    return stops;
}

static void note_levels(struct replay *w)
{
    int64_t running = w->n_runs;
    const int64_t levels[SERIES_LEVELS] = {[SERIES_OWNED] = w->alive[MARKET_OWNED],
        [SERIES_SPOT] = w->alive[MARKET_SPOT],
        [SERIES_ON_DEMAND] = w->alive[MARKET_ON_DEMAND],
        [SERIES_RUNNING] = running,
        [SERIES_WAITING] = (int64_t)w->submitted - w->ended - running};
    if (w->o->series)
        series_set(w->o->series, clock_mono(&w->vt.clock).ms, levels);
}

/* Integrates the racks' power up to now. */
static void note_racks(struct replay *w, int64_t now_ms)
{
    for (size_t i = 0; w->o->by_rack && i < core_racks(w->m); i++) {
        struct replay_rack *r = &w->o->by_rack[i];
        struct rack_view v;
        core_rack(w->m, i, &v);
        r->watt_ms += (double)r->now_w * (double)(now_ms - w->racks_at_ms);
        r->now_w = v.draw_w;
        r->most_w = v.draw_w > r->most_w ? v.draw_w : r->most_w;
    }
    w->racks_at_ms = now_ms;
}

void replay_settle(struct replay *w)
{
    struct event ev;
    do
        while (w->refused.kind == ERR_NONE && plan_next(w->p, w->m, replay_now(w), &ev))
            execute(w, &ev, replay_apply(w, ev));
    while (count(w));
    note_levels(w);
    note_racks(w, clock_mono(&w->vt.clock).ms);
    struct mono at = plan_wake(w->p, w->m, replay_now(w));
    if (mono_is_set(at))
        timer_start(&w->vt.timers, &w->wake, at.ms - replay_now(w).mono.ms);
    else
        timer_stop(&w->vt.timers, &w->wake);
}

static void on_wake(struct timer *t, void *ctx)
{
    (void)t;
    replay_settle(ctx);
}

/* ---- users ---- */

static void submit(struct replay *w, const struct replay_job *j)
{
    struct job_row row = {.spec.nodes = j->nodes > 0 ? j->nodes : 1,
        .spec.need = j->need,
        .spec.market = j->wish,
        .spec.method = j->save_ms > 0 ? CKPT_COOP : CKPT_NONE,
        .spec.ckpt_every_ms = j->save_ms > 0 ? j->every_ms : 0,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = REPLAY_KEEP,
        .spec.deadline_ms = j->deadline_ms > 0 ? w->start.ms + j->deadline_ms : 0,
        .spec.finish_ms = j->finish_ms > 0 ? w->start.ms + j->finish_ms : 0,
        .spec.work_ms = j->declared_ms > 0 ? j->declared_ms
                        : j->finish_ms > 0 ? j->work_ms
                                           : 0,
        .spec.time_limit_ms = j->time_limit_ms};
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}", .constraints = j->constraints};
    STR_COPY(row.spec.name, j->name ? j->name : "job");
    STR_COPY(row.user, j->user ? j->user : "user");
    STR_COPY(row.spec.team, j->team ? j->team : "");
    STR_COPY(row.spec.pool, j->pool ? j->pool : "");
    int64_t id = replay_apply(w, (struct event){.type = EV_SUBMIT, .submit = {&row, &texts}});
    w->jobs[id].submit_ms = clock_mono(&w->vt.clock).ms;
}

static void on_submit(struct timer *t, void *ctx)
{
    struct replay *w = ctx;
    int64_t at = clock_mono(&w->vt.clock).ms;
    while (w->submitted < w->o->n_jobs && w->o->jobs[w->submitted].submit_ms <= at)
        submit(w, &w->o->jobs[w->submitted++]);
    if (w->submitted < w->o->n_jobs)
        timer_start(&w->vt.timers, t, w->o->jobs[w->submitted].submit_ms - at);
    replay_settle(w);
}

/* ---- main ---- */

static void join_owned(
    struct replay *w, const struct replay_owned *own, int32_t n, struct hosts_at *at)
{
    char name[CORE_NAME_MAX];
    struct node_row row = {.total = own->total};
    if (!own->names || !hosts_next(own->names, at, name))
        snprintf(name, sizeof name, "%.40s-%d", own->pool, n + 1);
    STR_COPY(row.pool, own->pool);
    STR_COPY(row.name, name);
    STR_COPY(row.key_hash, name);
    int64_t node = replay_apply(w, (struct event){.type = EV_JOIN, .join = {&row, CORE_ID_NONE}});
    map_put(&w->pool_of_node, node, (void *)(replay_pool_index(w, own->pool) + 1));
    w->alive[MARKET_OWNED]++;
}

static void set_up(struct replay *w)
{
    const struct replay_options *o = w->o;
    for (size_t i = 0; i < o->n_pools; i++) {
        struct pool_row row = o->pools[i];
        row.required_labels[0] = '\0'; /* logs of jobs have no labels */
        replay_apply(w, (struct event){.type = EV_POOL, .pool = &row});
    }
    for (size_t i = 0; i < o->n_owned; i++) {
        struct hosts_at at = {0};
        for (int32_t n = 0; n < o->owned[i].n; n++)
            join_owned(w, &o->owned[i], n, &at);
    }
    for (size_t i = 0; i < o->n_offers; i++)
        replay_open_seller(w, i);
    replay_load_observed(w);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t busiest_hour(struct replay *w)
{
    size_t from = 0, most = 0;
    if (w->n_launched > 0)
        qsort(w->launched_at, w->n_launched, sizeof *w->launched_at, by_time);
    for (size_t to = 0; to < w->n_launched; to++) {
        while (w->launched_at[to] - w->launched_at[from] >= HOUR_MS)
            from++;
        if (to - from + 1 > most)
            most = to - from + 1;
    }
    return (int64_t)most;
}

static void pay_owned(struct replay *w, const struct replay_owned *own)
{
    size_t k = replay_pool_index(w, own->pool);
    if (k == w->o->n_pools)
        return;
    int64_t uusd = own->n * core_cost_uusd(w->r.end_ms, w->o->pools[k].usd_per_hour_uusd);
    w->r.uusd[MARKET_OWNED] += uusd;
    if (w->o->by_pool) {
        w->o->by_pool[k].uusd += uusd;
        replay_add_capacity(&w->o->by_pool[k], &own->total, own->n * w->r.end_ms);
    }
    if (w->o->series)
        series_spend(w->o->series, 0, w->r.end_ms, uusd);
}

/* Ends machines and runs that are left, so that they are paid for up to the end. */
static void close_books(struct replay *w)
{
    replay_take_machines(w);
    replay_end_runs(w); /* on owned machines */
    count(w);
    for (size_t i = 0; w->o->outcomes && i < w->submitted; i++) {
        const struct job *j = model_job(w->m, (int64_t)i + 1); /* NULL if it has ended */
        if (j)
            fill_outcome(&w->o->outcomes[i], &j->row);
    }
    for (size_t i = 0; i < w->o->n_owned; i++)
        pay_owned(w, &w->o->owned[i]);
    if (w->r.end_ms > w->racks_at_ms)
        note_racks(w, w->r.end_ms);
    w->r.launches_in_hour = busiest_hour(w);
}

static void tear_down(struct replay *w)
{
    size_t pos = 0;
    vtimers_deinit(&w->vt); /* before the machines and runs that have timers in it are freed */
    for (struct machine *x; (x = map_next(&w->machines, &pos, NULL));)
        free(x);
    map_deinit(&w->machines);
    map_deinit(&w->pool_of_node);
    map_deinit(&w->pool_of_instance);
    LIST_FOREACH (&w->runs, l)
        replay_free_run(LIST_ENTRY(l, struct run, in_all));
    planner_destroy(w->p);
    model_destroy(w->m);
    free(w->launched_at);
    free(w->sellers);
    free(w->jobs);
}

static bool has_more_events(const struct replay *w)
{
    return w->ended < (int64_t)w->o->n_jobs || (w->o->runs_out && map_size(&w->machines) > 0);
}

static void run_events(struct replay *w)
{
    const struct replay_options *o = w->o;
    timer_start(&w->vt.timers, &w->submit, o->n_jobs > 0 ? o->jobs[0].submit_ms : 0);
    for (int64_t due; w->refused.kind == ERR_NONE && has_more_events(w) &&
                      vtimers_next(&w->vt, &due) && due <= o->until_ms;)
        vtimers_run_next(&w->vt);
    if (w->ended < (int64_t)o->n_jobs) {
        int64_t left_ms = o->until_ms - clock_mono(&w->vt.clock).ms;
        if (left_ms > 0)
            vtimers_stall(&w->vt, left_ms);
        w->r.end_ms = o->until_ms;
    }
}

int replay_run(const struct replay_options *o, struct replay_result *ret_result, struct err *e)
{
    struct replay w = {.o = o, .p = planner_create()};
    struct model_options limits = o->limits;
    STR_COPY(limits.cluster_uid, "0123456789abcdef");
    /* longer than any replay: agents are never silent here */
    limits.lease_ms = 100LL * 365 * 24 * HOUR_MS;
    w.m = model_create(&limits);
    w.sellers = mem_array(o->n_offers, sizeof *w.sellers);
    w.jobs = mem_array(o->n_jobs + 1, sizeof *w.jobs);
    w.start.ms = o->start.ms ? o->start.ms : START_WALL_MS;
    vtimers_init(&w.vt, w.start.ms);
    prng_init(&w.prng, o->seed);
    timer_init(&w.submit, on_submit, &w);
    timer_init(&w.wake, on_wake, &w);
    for (size_t i = 0; o->outcomes && i < o->n_jobs; i++)
        o->outcomes[i] = (struct replay_outcome){
            .started_ms = REPLAY_NEVER, .ended_ms = REPLAY_NEVER, .pool = o->n_pools};
    set_up(&w);
    run_events(&w);
    close_books(&w);
    int rc = 0;
    if (w.refused.kind != ERR_NONE)
        rc = err_set(e, ERR_CONFIG, "%s", w.refused.text);
    else
        *ret_result = w.r;
    tear_down(&w);
    return rc;
}
