/* SPDX-License-Identifier: Apache-2.0
 *
 * The market: pools (zone x instance type), each with a capacity and a price for spot and for
 * on-demand. A pool's offer is fixed, follows a trace at `speed` times real time, or was set by an
 * event. Pure: time is a parameter.
 */
#ifndef BELAY_EMULATOR_MARKET_H
#define BELAY_EMULATOR_MARKET_H

#include "base/time.h"
#include "cloud/driver.h"
#include "cloud/trace.h"

#define MARKET_POOLS_MAX 1000
#define MARKET_UNLIMITED INT64_MAX
#define MARKET_HISTORY_MAX 10000 /* price changes kept per pool; older ones are dropped */

/* How a pool follows its trace. The tick at time t is offset + floor((t - start) * speed / gap),
 * modulo the trace's length. */
struct market_follow {
    struct trace trace; /* owned; n = 0 for none */
    int64_t speed;      /* 1 .. 10^6 */
    int64_t offset;     /* ticks, >= 0 */
    int64_t scale;      /* multiplies the counts, >= 1 */
};

struct market_price {
    struct wall since;
    int64_t uusd_h;
};

struct market_pool {
    char zone[CLOUD_NAME_MAX];
    char type[CLOUD_NAME_MAX];
    struct market_follow follow;
    int64_t capacity[2]; /* by enum cloud_market */
    int64_t price_uusd_h[2];
    /* maintained by the owner: live instances not yet on their way out */
    int64_t in_use[2];
    /* private */
    int64_t tick; /* current tick since the start */
    /* the next tick with another value; equal to tick if none */
    int64_t next_tick;
    bool capacity_is_set, price_is_set; /* by an event: overrides the trace */
    struct market_price *history;       /* of the spot price, oldest first */
    size_t n_history;
};

struct market {
    struct market_pool *pools;
    size_t n_pools;
    struct wall start;
};

/* Takes over the array of pools and their traces. The prices at start begin the history. */
void market_init(struct market *m, struct market_pool *pools, size_t n_pools, struct wall start);
void market_deinit(struct market *m);

/* NULL if there is no such pool. zone NULL: the first pool of that type with capacity in that
 * market, else the first of the type. */
struct market_pool *market_find(
    const struct market *m, const char *zone, const char *type, enum cloud_market market);
bool market_has_zone(const struct market *m, const char *zone);
/* No earlier pool has the zone, or the type, of the k-th. */
bool market_is_first_of_zone(const struct market *m, size_t k);
bool market_is_first_of_type(const struct market *m, size_t k);

/* instances that can still start */
int64_t market_unused(const struct market_pool *p, enum cloud_market market);
/* instances that must go */
int64_t market_surplus(const struct market_pool *p, enum cloud_market market);

/* Advances the pools that follow a trace to now. */
void market_advance(struct market *m, struct wall now);

/* When a pool's capacity or price next changes by its trace; WALL_NONE if never. Later than the
 * last advance. */
struct wall market_next(const struct market *m);

/* Set by an event. market_release_capacity returns a pool to its trace. */
void market_set_capacity(struct market_pool *p, enum cloud_market market, int64_t n);
void market_release_capacity(struct market *m, struct market_pool *p, struct wall now);
void market_set_price(
    struct market_pool *p, enum cloud_market market, int64_t uusd_h, struct wall now);

#endif
