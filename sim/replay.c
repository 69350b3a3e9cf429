/* SPDX-License-Identifier: Apache-2.0
 *
 * See replay.h. Everything that happens is a timer; after each the core decides until it has nothing more to decide, and
 * what it decided is played: machines boot and are reclaimed (replay_machines.c), attempts restore, run, save and end
 * (replay_attempts.c).
 */
#include "sim/replay_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

#define START_WALL_MS 1767225600000 /* 2026-01-01T00:00:00Z */
#define HOUR_MS 3600000

struct stamp replay_now(const struct replay *w)
{
    return (struct stamp){clock_wall(&w->vt.clock), clock_mono(&w->vt.clock)};
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

static void play(struct replay *w, const struct event *ev, int64_t id)
{
    switch (ev->type) {
    case EV_PLACE:
        replay_place(w, ev->place.job, ev->place.node);
        break;
    case EV_LAUNCH:
        replay_launch(w, id, ev->launch.offer);
        break;
    case EV_END_INSTANCE:
        replay_end_machine(w, ev->end_instance.instance);
        break;
    case EV_CLEAN: /* costs nothing here */
        replay_apply(w, (struct event){.type = EV_CLEANED, .cleaned.job = ev->clean.job});
        break;
    case EV_MOVE:
        w->r.moves++;
        replay_move(w, ev->move.job);
        break;
    default:
        break;
    }
}

/* An attempt has ended, and its job goes on: if that was a reclaim, what it cost. */
static void tell_loss(struct replay *w, const struct history_row *h)
{
    struct replay_loss *l = &w->jobs[h->job].loss;
    if (!w->o->lost || h->attempt != l->attempt || !str_eq(h->kind, "ended"))
        return;
    l->counted_ms = h->b;
    w->o->lost(w->o->ctx, l);
}

static void count(struct replay *w)
{
    struct changes c = {0};
    model_take_changes(w->m, &c);
    for (size_t i = 0; i < c.n_ledger; i++) {
        const struct ledger_row *r = &c.ledger[i];
        w->r.ms[r->kind] += r->ms;
        w->r.spent[r->kind] += r->uusd;
        w->r.on_demand_uusd += r->on_demand_uusd;
    }
    for (size_t i = 0; i < c.n_history; i++)
        if (c.history[i].attempt > 0)
            tell_loss(w, &c.history[i]);
    for (size_t i = 0; i < c.n_instances; i++)
        if (c.instances[i].state == INSTANCE_GONE)
            w->r.uusd[c.instances[i].market] += core_instance_uusd(&c.instances[i], c.instances[i].ended_at);
    changes_deinit(&c);
}

void replay_settle(struct replay *w)
{
    struct event ev;
    while (w->refused.kind == ERR_NONE && plan_next(w->p, w->m, replay_now(w), &ev))
        play(w, &ev, replay_apply(w, ev));
    count(w);
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
    struct job_row row = {.name = "job",
        .user = "user",
        .nodes = 1,
        .need = j->need,
        .market = j->wish,
        .method = j->save_ms > 0 ? CKPT_COOP : CKPT_NONE,
        .ckpt_keep = 1};
    struct job_spec spec = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    int64_t id = replay_apply(w, (struct event){.type = EV_SUBMIT, .submit = {&row, &spec}});
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

/* ---- the whole ---- */

static void join_owned(struct replay *w, const struct replay_owned *own, int32_t n)
{
    char name[CORE_NAME_MAX];
    struct node_row row = {.total = own->total};
    snprintf(name, sizeof name, "%.40s-%d", own->pool, n + 1);
    STR_COPY(row.pool, own->pool);
    STR_COPY(row.name, name);
    STR_COPY(row.key_hash, name);
    replay_apply(w, (struct event){.type = EV_JOIN, .join = {&row, CORE_ID_NONE}});
}

static void set_up(struct replay *w)
{
    const struct replay_options *o = w->o;
    for (size_t i = 0; i < o->n_pools; i++)
        replay_apply(w, (struct event){.type = EV_POOL, .pool = &o->pools[i]});
    for (size_t i = 0; i < o->n_owned; i++)
        for (int32_t n = 0; n < o->owned[i].n; n++)
            join_owned(w, &o->owned[i], n);
    for (size_t i = 0; i < o->n_offers; i++)
        replay_open_place(w, i);
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

/* What is still there at the end is paid for up to it. */
static void close_books(struct replay *w)
{
    size_t pos = 0;
    for (struct machine *x; (x = map_next(&w->machines, &pos, NULL));) {
        const struct instance *i = model_instance(w->m, x->instance);
        w->r.uusd[i->row.market] += core_instance_uusd(&i->row, replay_now(w).wall);
    }
    for (size_t i = 0; i < w->o->n_owned; i++)
        for (size_t k = 0; k < w->o->n_pools; k++)
            if (str_eq(w->o->pools[k].name, w->o->owned[i].pool))
                w->r.uusd[MARKET_OWNED] +=
                    w->o->owned[i].n * core_cost_uusd(w->r.end_ms, w->o->pools[k].usd_per_hour_uusd);
    w->r.launches_in_hour = busiest_hour(w);
}

static void tear_down(struct replay *w)
{
    size_t pos = 0;
    vtimers_deinit(&w->vt); /* what is freed below may be in it */
    for (struct machine *x; (x = map_next(&w->machines, &pos, NULL));)
        free(x);
    map_deinit(&w->machines);
    LIST_FOREACH (&w->runs, l)
        free(LIST_ENTRY(l, struct run, in_all));
    planner_destroy(w->p);
    model_destroy(w->m);
    free(w->launched_at);
    free(w->places);
    free(w->jobs);
}

int replay_run(const struct replay_options *o, struct replay_result *ret_result, struct err *e)
{
    struct replay w = {.o = o, .p = planner_create()};
    struct model_options limits = o->limits;
    STR_COPY(limits.cluster_uid, "0123456789abcdef");
    limits.lease_ms = 100LL * 365 * 24 * HOUR_MS; /* no agent is ever silent here */
    w.m = model_create(&limits);
    w.places = mem_array(o->n_offers, sizeof *w.places);
    w.jobs = mem_array(o->n_jobs + 1, sizeof *w.jobs);
    vtimers_init(&w.vt, START_WALL_MS);
    prng_init(&w.prng, o->seed);
    timer_init(&w.submit, on_submit, &w);
    timer_init(&w.wake, on_wake, &w);
    set_up(&w);
    timer_start(&w.vt.timers, &w.submit, o->n_jobs > 0 ? o->jobs[0].submit_ms : 0);
    for (int64_t due; w.refused.kind == ERR_NONE && w.r.finished < (int64_t)o->n_jobs &&
                      vtimers_next(&w.vt, &due) && due <= o->until_ms;)
        vtimers_run_next(&w.vt);
    if (w.r.finished < (int64_t)o->n_jobs)
        w.r.end_ms = o->until_ms;
    close_books(&w);
    int rc = 0;
    if (w.refused.kind != ERR_NONE)
        rc = err_set(e, ERR_CONFIG, "%s", w.refused.text);
    else
        *ret_result = w.r;
    tear_down(&w);
    return rc;
}
