/* SPDX-License-Identifier: Apache-2.0
 *
 * See replay.h. Everything that happens is a timer; after each the core decides until it has nothing more to decide, and
 * what it decided is played: machines boot and are reclaimed, attempts restore, run, save and end.
 *
 *   attempt:  RESTORE --> RUN <--> SAVE      notice, move: from RUN or SAVE to a last SAVE, then its end
 *                          |
 *                          +--> succeeded
 */
#include "sim/replay.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/vtimers.h"
#include "scheduler/core/plan.h"
#include <stdio.h>
#include <stdlib.h>

#define START_WALL_MS 1767225600000 /* 2026-01-01T00:00:00Z */
#define ANSWER_MS SECONDS_MS(2)     /* of a provider to a launch */
#define TERMINATE_MS SECONDS_MS(30)
#define HOUR_MS 3600000

struct replay;

struct place {
    struct replay *w;
    const struct replay_offer *o;
    int64_t id;           /* of the core's offer */
    struct list machines; /* alive */
    int64_t n;
    struct timer tick;
    size_t at;
};

struct machine {
    struct link in_place;
    struct replay *w;
    struct place *place;
    int64_t instance, node; /* node 0: has not joined */
    struct timer next;      /* answer, join, or its end */
    enum { ASKED, REFUSED, BOOTING, UP, NOTICED, ENDING } state;
};

enum phase { RESTORE, RUN, SAVE, SAVE_AND_STOP };

struct run {
    struct link in_all;
    struct replay *w;
    const struct replay_job *job;
    int64_t id, attempt, node;
    enum phase phase;
    struct timer next;
    struct mono since; /* of the phase */
    int64_t done_ms;   /* work, up to `since` */
    int64_t sequence;
    enum end_kind stop_as; /* of SAVE_AND_STOP */
};

struct progress {
    int64_t saved_ms; /* work in its newest checkpoint */
    int64_t submit_ms;
    bool started;
};

struct replay {
    const struct replay_options *o;
    struct replay_result r;
    struct vtimers vt;
    struct prng prng;
    struct model *m;
    struct planner *p;
    struct place *places;
    struct map machines; /* instance -> struct machine */
    struct list runs;
    struct progress *jobs; /* by id, from 1 */
    size_t submitted;
    struct timer submit, wake;
    int64_t *launched_at; /* of all launches */
    size_t n_launched;
    struct err refused; /* of what must not be refused */
};

static struct stamp now(const struct replay *w)
{
    return (struct stamp){clock_wall(&w->vt.clock), clock_mono(&w->vt.clock)};
}

static int64_t apply(struct replay *w, struct event ev)
{
    struct outcome out = {0};
    struct err e;
    ev.now = now(w);
    if (core_apply(w->m, &ev, &out, &e) != 0 && w->refused.kind == ERR_NONE) {
        w->refused = e;
        err_wrap(&w->refused, "%s", event_type_names[ev.type]);
    }
    return out.id;
}

static void settle(struct replay *w);

/* ---- attempts ---- */

static void enter(struct run *r, enum phase phase, int64_t ms)
{
    r->phase = phase;
    r->since = clock_mono(&r->w->vt.clock);
    timer_start(&r->w->vt.timers, &r->next, ms);
}

static void run_free(struct run *r)
{
    timer_stop(&r->w->vt.timers, &r->next);
    link_remove(&r->in_all);
    free(r);
}

static void end(struct run *r, enum end_kind kind)
{
    struct replay *w = r->w;
    struct event ev = {.type = EV_ATTEMPT_ENDED, .ended = {r->id, r->attempt, r->node, kind, 0, ""}};
    run_free(r);
    apply(w, ev);
}

static void go_on(struct run *r)
{
    int64_t left = r->job->work_ms - r->done_ms, ms = left;
    if (r->job->save_ms > 0) {
        double rate = core_reclaims_per_hour(model_node(r->w->m, r->node));
        int64_t every = core_save_interval_ms(r->job->save_ms, rate);
        ms = every < left ? every : left;
    }
    enter(r, RUN, ms);
}

static void started(struct run *r)
{
    struct replay *w = r->w;
    struct progress *p = &w->jobs[r->id];
    struct event ev = {.type = EV_ATTEMPT_STARTED,
        .started = {
            .job = r->id, .attempt = r->attempt, .node = r->node, .restored_progress = PROGRESS_NONE}};
    if (p->saved_ms > 0) {
        ev.started.restored = model_job(w->m, r->id)->row.last_good;
        ev.started.restore_ms = w->o->restore_ms;
    }
    apply(w, ev);
    if (!p->started)
        w->r.wait_ms += clock_mono(&w->vt.clock).ms - p->submit_ms;
    p->started = true;
    go_on(r);
}

static void saved(struct run *r)
{
    struct event ev = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = r->id,
            .node = r->node,
            .ref = {r->attempt, ++r->sequence},
            .bytes = r->job->ckpt_bytes,
            .stored_bytes = r->job->ckpt_bytes,
            .took_ms = r->job->save_ms,
            .progress = PROGRESS_NONE,
            .saved_at = clock_wall(&r->w->vt.clock),
            .cause = "periodic"}};
    r->w->jobs[r->id].saved_ms = r->done_ms;
    apply(r->w, ev);
}

static void finished(struct run *r)
{
    struct replay *w = r->w;
    w->r.finished++;
    w->r.end_ms = clock_mono(&w->vt.clock).ms;
    w->r.spent_time_ms += w->r.end_ms - w->jobs[r->id].submit_ms;
    end(r, END_SUCCEEDED);
}

static void on_run(struct timer *t, void *ctx)
{
    struct run *r = ctx;
    struct replay *w = r->w;
    (void)t;
    switch (r->phase) {
    case RESTORE:
        started(r);
        break;
    case RUN:
        r->done_ms += clock_mono(&w->vt.clock).ms - r->since.ms;
        if (r->done_ms >= r->job->work_ms)
            finished(r);
        else
            enter(r, SAVE, r->job->save_ms);
        break;
    case SAVE:
        saved(r);
        go_on(r);
        break;
    case SAVE_AND_STOP:
        saved(r);
        end(r, r->stop_as);
        break;
    }
    settle(w);
}

static struct run *run_of(const struct replay *w, int64_t job)
{
    LIST_FOREACH (&w->runs, l)
        if (LIST_ENTRY(l, struct run, in_all)->id == job)
            return LIST_ENTRY(l, struct run, in_all);
    return NULL;
}

/* A last save, and its end. Who cannot save runs on until its machine is gone; who is saving has done so already. */
static void stop(struct run *r, enum end_kind as)
{
    int64_t ran = clock_mono(&r->w->vt.clock).ms - r->since.ms;
    if (r->phase == SAVE_AND_STOP || r->job->save_ms == 0)
        return;
    r->stop_as = as;
    if (r->phase == RESTORE) {
        end(r, as);
    } else if (r->phase == SAVE) {
        r->phase = SAVE_AND_STOP;
    } else {
        r->done_ms += ran;
        enter(r, SAVE_AND_STOP, r->job->save_ms);
    }
}

static void place(struct replay *w, int64_t job, int64_t node)
{
    struct run *r = mem_alloc(sizeof *r);
    *r = (struct run){.w = w,
        .job = &w->o->jobs[job - 1],
        .id = job,
        .attempt = model_job(w->m, job)->row.attempts,
        .node = node,
        .done_ms = w->jobs[job].saved_ms};
    timer_init(&r->next, on_run, r);
    list_push_back(&w->runs, &r->in_all);
    w->r.attempts++;
    enter(r, RESTORE, r->done_ms > 0 ? w->o->restore_ms : 0);
}

/* ---- machines ---- */

static void machine_free(struct machine *x)
{
    timer_stop(&x->w->vt.timers, &x->next);
    link_remove(&x->in_place);
    map_remove(&x->w->machines, x->instance);
    free(x);
}

/* No longer alive: its place in the market is free. */
static void leave(struct machine *x)
{
    if (link_is_in(&x->in_place))
        x->place->n--;
    link_remove(&x->in_place);
}

static void gone(struct machine *x, bool reclaimed)
{
    struct replay *w = x->w;
    int64_t instance = x->instance;
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        if (x->node && r->node == x->node)
            run_free(r);
    }
    leave(x);
    machine_free(x);
    struct event ev = {.type = EV_INSTANCE_GONE, .gone = {.instance = instance, .reclaimed = reclaimed}};
    STR_COPY(ev.gone.text, reclaimed ? "reclaimed" : "ended");
    apply(w, ev);
}

static void join(struct machine *x)
{
    char name[32];
    struct node_row row = {.total = x->place->o->row.total};
    snprintf(name, sizeof name, "m%lld", (long long)x->instance);
    STR_COPY(row.name, name);
    STR_COPY(row.key_hash, name);
    x->state = UP;
    x->node = apply(x->w, (struct event){.type = EV_JOIN, .join = {&row, x->instance}});
}

static void answer(struct machine *x)
{
    struct event ev = {.type = EV_LAUNCHED, .launched.instance = x->instance};
    snprintf(ev.launched.provider_id, sizeof ev.launched.provider_id, "i-%lld", (long long)x->instance);
    apply(x->w, ev);
    x->state = BOOTING;
    timer_start(&x->w->vt.timers, &x->next, x->w->o->boot_ms);
}

static void refuse(struct machine *x)
{
    struct replay *w = x->w;
    struct event ev = {.type = EV_LAUNCH_REFUSED, .refused = {x->instance, true, "no capacity"}};
    machine_free(x);
    w->r.refusals++;
    apply(w, ev);
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
    settle(w);
}

static int64_t capacity(const struct place *k)
{
    return k->o->trace ? (int64_t)k->o->trace->counts[k->at] * k->o->trace_times : INT64_MAX;
}

static struct place *place_of(struct replay *w, int64_t offer)
{
    for (size_t i = 0; i < w->o->n_offers; i++)
        if (w->places[i].id == offer)
            return &w->places[i];
    return NULL;
}

static void launch(struct replay *w, int64_t instance, int64_t offer)
{
    struct machine *x = mem_alloc(sizeof *x);
    struct place *k = place_of(w, offer);
    *x = (struct machine){
        .w = w, .place = k, .instance = instance, .state = k->n < capacity(k) ? ASKED : REFUSED};
    timer_init(&x->next, on_machine, x);
    map_put(&w->machines, instance, x);
    if (x->state == ASKED) {
        list_push_back(&k->machines, &x->in_place);
        k->n++;
    }
    w->r.launches++;
    w->launched_at = mem_resize(w->launched_at, w->n_launched + 1, sizeof *w->launched_at);
    w->launched_at[w->n_launched++] = clock_mono(&w->vt.clock).ms;
    timer_start(&w->vt.timers, &x->next, ANSWER_MS);
}

static void end_machine(struct replay *w, int64_t instance)
{
    struct machine *x = map_get(&w->machines, instance);
    leave(x);
    x->state = ENDING;
    timer_start(&w->vt.timers, &x->next, TERMINATE_MS);
}

/* The provider wants it back. */
static void reclaim(struct machine *x)
{
    struct replay *w = x->w;
    int64_t in_ms = x->node ? w->o->notice_ms : 0;
    w->r.reclaims++;
    leave(x);
    x->state = NOTICED;
    timer_start(&w->vt.timers, &x->next, in_ms);
    if (in_ms == 0)
        return;
    struct wall deadline = {now(w).wall.ms + in_ms};
    apply(w, (struct event){.type = EV_NOTICE, .notice = {x->node, NOTICE_TYPE_RECLAIM, deadline}});
    LIST_FOREACH (&w->runs, l) {
        struct run *r = LIST_ENTRY(l, struct run, in_all);
        if (r->node == x->node)
            stop(r, END_RECLAIMED);
    }
}

static void reprice(struct place *k)
{
    const struct offer_row *o = &k->o->row;
    struct event ev = {
        .type = EV_PRICE, .price = {.market = o->market, .uusd_h = k->o->trace->prices_uusd_h[k->at]}};
    STR_COPY(ev.price.region, model_pool(k->w->m, o->pool)->row.region);
    STR_COPY(ev.price.zone, o->zone);
    STR_COPY(ev.price.type, o->type);
    apply(k->w, ev);
}

static void on_tick(struct timer *t, void *ctx)
{
    struct place *k = ctx;
    k->at = (k->at + 1) % k->o->trace->n;
    timer_start(&k->w->vt.timers, t, k->o->trace->gap_ms);
    if (k->o->trace->prices_uusd_h)
        reprice(k);
    while (k->n > capacity(k)) {
        struct link *l = list_first(&k->machines);
        for (uint64_t skip = prng_below(&k->w->prng, (uint64_t)k->n); skip > 0; skip--)
            l = list_next(&k->machines, l);
        reclaim(LIST_ENTRY(l, struct machine, in_place));
    }
    settle(k->w);
}

/* ---- decisions ---- */

static void play(struct replay *w, const struct event *ev, int64_t id)
{
    switch (ev->type) {
    case EV_PLACE:
        place(w, ev->place.job, ev->place.node);
        break;
    case EV_LAUNCH:
        launch(w, id, ev->launch.offer);
        break;
    case EV_END_INSTANCE:
        end_machine(w, ev->end_instance.instance);
        break;
    case EV_MOVE:
        w->r.moves++;
        stop(run_of(w, ev->move.job), END_EVICTED);
        break;
    default:
        break;
    }
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
    for (size_t i = 0; i < c.n_instances; i++)
        if (c.instances[i].state == INSTANCE_GONE)
            w->r.uusd[c.instances[i].market] += core_instance_uusd(&c.instances[i], c.instances[i].ended_at);
    changes_deinit(&c);
}

static void settle(struct replay *w)
{
    struct event ev;
    while (w->refused.kind == ERR_NONE && plan_next(w->p, w->m, now(w), &ev))
        play(w, &ev, apply(w, ev));
    count(w);
    struct mono at = plan_wake(w->p, w->m, now(w));
    if (mono_is_set(at))
        timer_start(&w->vt.timers, &w->wake, at.ms - now(w).mono.ms);
    else
        timer_stop(&w->vt.timers, &w->wake);
}

static void on_wake(struct timer *t, void *ctx)
{
    (void)t;
    settle(ctx);
}

/* ---- users ---- */

static void submit(struct replay *w, const struct replay_job *j)
{
    struct job_row row = {.name = "job",
        .user = "user",
        .need = j->need,
        .market = j->wish,
        .method = j->save_ms > 0 ? CKPT_COOP : CKPT_NONE,
        .ckpt_keep = 1};
    struct job_spec spec = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    int64_t id = apply(w, (struct event){.type = EV_SUBMIT, .submit = {&row, &spec}});
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
    settle(w);
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
    apply(w, (struct event){.type = EV_JOIN, .join = {&row, CORE_ID_NONE}});
}

static void set_up(struct replay *w)
{
    const struct replay_options *o = w->o;
    for (size_t i = 0; i < o->n_pools; i++)
        apply(w, (struct event){.type = EV_POOL, .pool = &o->pools[i]});
    for (size_t i = 0; i < o->n_owned; i++)
        for (int32_t n = 0; n < o->owned[i].n; n++)
            join_owned(w, &o->owned[i], n);
    for (size_t i = 0; i < o->n_offers; i++) {
        struct place *k = &w->places[i];
        const struct trace *t = o->offers[i].trace;
        *k = (struct place){.w = w, .o = &o->offers[i]};
        k->id = apply(w, (struct event){.type = EV_OFFER, .offer = &o->offers[i].row});
        timer_init(&k->tick, on_tick, k);
        if (!t)
            continue;
        k->at = (size_t)(o->offers[i].trace_from_ms / t->gap_ms) % t->n;
        timer_start(&w->vt.timers, &k->tick, t->gap_ms - o->offers[i].trace_from_ms % t->gap_ms);
        if (t->prices_uusd_h)
            reprice(k);
    }
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
        w->r.uusd[i->row.market] += core_instance_uusd(&i->row, now(w).wall);
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
    for (struct machine *x; (x = map_next(&w->machines, &pos, NULL));)
        free(x);
    map_deinit(&w->machines);
    LIST_FOREACH (&w->runs, l)
        free(LIST_ENTRY(l, struct run, in_all));
    vtimers_deinit(&w->vt);
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
