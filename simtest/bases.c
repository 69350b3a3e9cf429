/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the elastic pool keeps machines in two windows that overlap. Promises:
 *  1. In a window a missing machine is launched as soon as an offer can be launched.
 *  2. No idle machine is ended below what an open window asks for.
 *  3. Without a job, what is up or coming is no more than some window near this time asks for: a
 *     restart launches nothing twice.
 */
#include "simtest/world.h"

#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/nodes.h"

#define MINUTE_MS 60000LL
#define BOOT_MAX_MS 300000 /* boot_timeout of the pool */
/* A decision may wait for a commit, and for a call that paces launches. */
#define LACK_MAX_MS (2 * MINUTE_MS)

static const struct {
    const char *name;
    int from_min, to_min; /* after the begin of the world */
    int32_t min_nodes, warm_nodes;
} bases[] = {{"first", 8, 30, 2, 1}, {"second", 20, 50, 3, 0}};
#define BASES (sizeof bases / sizeof bases[0])

static bool is_enabled(const struct world *w)
{
    return w->seed % SIM_BASES == 3;
}

static bool is_open(const struct world *w, size_t k, int64_t wall_ms)
{
    int64_t begin_ms = w->cron_begin_s / 60 * MINUTE_MS;
    int64_t day_ms = 24 * 60 * MINUTE_MS;
    int64_t at_ms = (wall_ms - begin_ms) % day_ms;
    return wall_ms >= begin_ms && at_ms >= bases[k].from_min * MINUTE_MS &&
           at_ms < bases[k].to_min * MINUTE_MS;
}

void bases_set(const struct world *w, struct pool_row *ret_pool)
{
    struct pool_window v[BASES] = {{.min_nodes = 0}};
    int begin_min = (int)(w->cron_begin_s / 60 % 1440);
    for (size_t k = 0; k < BASES; k++) {
        STR_COPY(v[k].window.name, bases[k].name);
        STR_COPY(v[k].tz, ZONE_UTC);
        v[k].window.days = 0x7F;
        v[k].window.from_min = (begin_min + bases[k].from_min) % 1440;
        v[k].window.to_min = (begin_min + bases[k].to_min) % 1440;
        v[k].min_nodes = bases[k].min_nodes;
        v[k].warm_nodes = bases[k].warm_nodes;
    }
    if (is_enabled(w))
        pool_windows_format(v, BASES, ret_pool->windows);
}

/* The numbers of the windows that are open at some time of these. */
static void asked(
    const struct world *w, const int64_t *wall_ms, size_t n, int64_t *ret_min, int64_t *ret_warm)
{
    *ret_min = *ret_warm = 0;
    for (size_t k = 0; k < BASES; k++)
        for (size_t i = 0; i < n; i++)
            if (is_open(w, k, wall_ms[i])) {
                *ret_min = max_i64(*ret_min, bases[k].min_nodes);
                *ret_warm = max_i64(*ret_warm, bases[k].warm_nodes);
            }
}

static bool can_launch(const struct world *w, const struct pool *p)
{
    struct mono now = world_stamp(w).mono;
    if (p->row.boots.failed > 0 || p->used.nodes >= p->row.max_nodes || p->rack)
        return false;
    LIST_FOREACH (&p->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        if (o->row.rank != OFFER_WITHDRAWN &&
            (!mono_is_set(o->row.avoid_until) || o->row.avoid_until.ms <= now.ms))
            return true;
    }
    return false;
}

static int64_t count_ready(const struct pool *p)
{
    int64_t n = 0;
    LIST_FOREACH (&p->idle, l)
        n += node_takes_work(LIST_ENTRY(l, struct node, by_state));
    return n;
}

/* Call while belayd is up. */
void bases_check(struct world *w)
{
    const struct pool *p = model_pool(w->model, "burst");
    int64_t now_ms = world_stamp(w).wall.ms, min, warm;
    if (!is_enabled(w) || !p)
        return;
    asked(w, &now_ms, 1, &min, &warm);
    int64_t there = p->n_up + p->n_coming, ready = count_ready(p) + p->n_coming;
    bool lacks = (there < min || ready < warm) && can_launch(w, p);
    if (!lacks || w->committing || tick_is_full(w->tick))
        w->base_since_ms = world_now(w);
    else if (world_now(w) - w->base_since_ms > LACK_MAX_MS)
        world_fail(w,
            "%lld machines are up or coming and %lld of them free, but a window asks for %lld and "
            "%lld, and one can be launched",
            (long long)there, (long long)ready, (long long)min, (long long)warm);
}

/* Machines of the batch that were ended as idle, if nothing else took a node away in it. */
static size_t ended_idle(const struct changes *c)
{
    size_t n = 0, down = 0;
    for (size_t i = 0; i < c->n_history; i++)
        if (sim_is_drain(&c->history[i]))
            return 0;
    for (size_t i = 0; i < c->n_instances; i++)
        n += c->instances[i].state == INSTANCE_ENDING && str_starts(c->instances[i].text, "idle");
    for (size_t i = 0; i < c->n_nodes; i++)
        down += c->nodes[i].state != NODE_UP;
    return down <= n ? n : 0;
}

/* A launch is decided now; a row of one that was decided before may be stored again. */
static bool launches_any(const struct changes *c)
{
    for (size_t i = 0; i < c->n_history; i++)
        if (str_eq(c->history[i].kind, "launch"))
            return true;
    return false;
}

void bases_committed(struct world *w, const struct changes *c)
{
    const struct pool *p = w->up ? model_pool(w->model, "burst") : NULL;
    int64_t now_ms = world_stamp(w).wall.ms, min, warm;
    struct model_counts counts;
    if (!is_enabled(w) || !p)
        return;
    asked(w, &now_ms, 1, &min, &warm);
    /* the commit may be late: a window has opened since */
    bool was_open = is_open(w, 0, now_ms - MINUTE_MS) || is_open(w, 1, now_ms - MINUTE_MS);
    if (was_open && ended_idle(c) > 0 && p->n_up < w->base_up && p->n_up < bases[0].min_nodes &&
        p->n_up < min)
        world_fail(w, "an idle machine was ended: %lld are left, but a window asks for %lld",
            (long long)p->n_up, (long long)min);
    model_counts(w->model, &counts);
    const int64_t near[] = {
        now_ms - MINUTE_MS, now_ms, now_ms + BOOT_MAX_MS / 2, now_ms + BOOT_MAX_MS + MINUTE_MS};
    asked(w, near, sizeof near / sizeof near[0], &min, &warm);
    w->base_up = p->n_up;
    int64_t busy = p->n_up - count_ready(p);
    if (launches_any(c) && c->n_jobs == 0 && counts.pending == 0 && counts.running == 0 &&
        p->n_up + p->n_coming > max_i64(min, warm + busy))
        world_fail(w,
            "%lld machines are up and %lld are coming without a job, but windows ask for %lld "
            "and %lld",
            (long long)p->n_up, (long long)p->n_coming, (long long)min, (long long)warm);
}
