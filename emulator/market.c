/* SPDX-License-Identifier: Apache-2.0
 *
 * The market's arithmetic, all in integers: with k ticks since the start, tick k begins at the
 * first millisecond t with t * speed >= k * gap. Not here: instances (the owner counts them in
 * in_use) and the choice of the instance to reclaim.
 */
#include "emulator/market.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static bool follows(const struct market_pool *p)
{
    return p->follow.trace.n > 0;
}

static int64_t ticks_since_start(const struct market_follow *f, int64_t elapsed_ms)
{
    return elapsed_ms > 0 ? elapsed_ms * f->speed / f->trace.gap_ms : 0;
}

static int64_t tick_starts_at_ms(const struct market_follow *f, int64_t ticks)
{
    return (ticks * f->trace.gap_ms + f->speed - 1) / f->speed;
}

static size_t tick_index(const struct market_follow *f, int64_t ticks)
{
    return (size_t)((uint64_t)(f->offset + ticks) % f->trace.n);
}

static void note_price(struct market_pool *p, int64_t uusd_h, struct wall now)
{
    p->price_uusd_h[CLOUD_SPOT] = uusd_h;
    if (p->n_history > 0 && p->history[p->n_history - 1].uusd_h == uusd_h)
        return;
    if (p->n_history == MARKET_HISTORY_MAX) {
        size_t drop = MARKET_HISTORY_MAX / 2;
        memmove(p->history, p->history + drop, (p->n_history - drop) * sizeof(*p->history));
        p->n_history -= drop;
    }
    p->history = mem_resize(p->history, p->n_history + 1, sizeof(*p->history));
    p->history[p->n_history++] = (struct market_price){.since = now, .uusd_h = uusd_h};
}

/* The first tick after `ticks` with another value; `ticks` itself if all are equal. */
static int64_t next_change(const struct market_follow *f, int64_t ticks)
{
    const struct trace *t = &f->trace;
    size_t here = tick_index(f, ticks);
    for (size_t ahead = 1; ahead < t->n; ahead++) {
        size_t i = (here + ahead) % t->n;
        if (t->counts[i] != t->counts[here] ||
            (t->prices_uusd_h && t->prices_uusd_h[i] != t->prices_uusd_h[here]))
            return ticks + (int64_t)ahead;
    }
    return ticks;
}

static void follow(struct market_pool *p, int64_t ticks, struct wall now)
{
    size_t i = tick_index(&p->follow, ticks);
    p->tick = ticks;
    p->next_tick = next_change(&p->follow, ticks);
    if (!p->capacity_is_set)
        p->capacity[CLOUD_SPOT] = p->follow.trace.counts[i] * p->follow.scale;
    if (!p->price_is_set && p->follow.trace.prices_uusd_h)
        note_price(p, p->follow.trace.prices_uusd_h[i], now);
}

void market_init(struct market *m, struct market_pool *pools, size_t n_pools, struct wall start)
{
    *m = (struct market){.pools = pools, .n_pools = n_pools, .start = start};
    for (size_t i = 0; i < n_pools; i++) {
        struct market_pool *p = &pools[i];
        if (follows(p))
            follow(p, 0, start);
        note_price(p, p->price_uusd_h[CLOUD_SPOT], start);
    }
}

void market_deinit(struct market *m)
{
    for (size_t i = 0; i < m->n_pools; i++) {
        trace_deinit(&m->pools[i].follow.trace);
        free(m->pools[i].history);
    }
    free(m->pools);
    *m = (struct market){0};
}

struct market_pool *market_find(
    const struct market *m, const char *zone, const char *type, enum cloud_market market)
{
    struct market_pool *first = NULL;
    for (size_t i = 0; i < m->n_pools; i++) {
        struct market_pool *p = &m->pools[i];
        if (!str_eq(p->type, type) || (zone && !str_eq(p->zone, zone)))
            continue;
        if (zone || market_unused(p, market) > 0)
            return p;
        if (!first)
            first = p;
    }
    return first;
}

bool market_has_zone(const struct market *m, const char *zone)
{
    for (size_t i = 0; i < m->n_pools; i++)
        if (str_eq(m->pools[i].zone, zone))
            return true;
    return false;
}

bool market_is_first_of_zone(const struct market *m, size_t k)
{
    size_t first = 0;
    while (!str_eq(m->pools[first].zone, m->pools[k].zone))
        first++;
    return first == k;
}

bool market_is_first_of_type(const struct market *m, size_t k)
{
    size_t first = 0;
    while (!str_eq(m->pools[first].type, m->pools[k].type))
        first++;
    return first == k;
}

int64_t market_unused(const struct market_pool *p, enum cloud_market market)
{
    return p->capacity[market] > p->in_use[market] ? p->capacity[market] - p->in_use[market] : 0;
}

int64_t market_surplus(const struct market_pool *p, enum cloud_market market)
{
    return p->in_use[market] > p->capacity[market] ? p->in_use[market] - p->capacity[market] : 0;
}

void market_advance(struct market *m, struct wall now)
{
    for (size_t i = 0; i < m->n_pools; i++) {
        struct market_pool *p = &m->pools[i];
        if (!follows(p))
            continue;
        int64_t ticks = ticks_since_start(&p->follow, now.ms - m->start.ms);
        if (p->next_tick != p->tick && ticks >= p->next_tick)
            follow(p, ticks, now);
    }
}

struct wall market_next(const struct market *m)
{
    struct wall next = WALL_NONE;
    for (size_t i = 0; i < m->n_pools; i++) {
        const struct market_pool *p = &m->pools[i];
        if (!follows(p) || p->next_tick == p->tick)
            continue;
        struct wall at = {m->start.ms + tick_starts_at_ms(&p->follow, p->next_tick)};
        if (!wall_is_set(next) || at.ms < next.ms)
            next = at;
    }
    return next;
}

void market_set_capacity(struct market_pool *p, enum cloud_market market, int64_t n)
{
    p->capacity[market] = n;
    if (market == CLOUD_SPOT)
        p->capacity_is_set = true;
}

void market_release_capacity(struct market *m, struct market_pool *p, struct wall now)
{
    p->capacity_is_set = false;
    if (follows(p))
        follow(p, ticks_since_start(&p->follow, now.ms - m->start.ms), now);
}

void market_set_price(
    struct market_pool *p, enum cloud_market market, int64_t uusd_h, struct wall now)
{
    if (market == CLOUD_ON_DEMAND) {
        p->price_uusd_h[CLOUD_ON_DEMAND] = uusd_h;
        return;
    }
    p->price_is_set = true;
    note_price(p, uusd_h, now);
}
