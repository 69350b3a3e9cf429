/* SPDX-License-Identifier: Apache-2.0
 *
 * See lost_reclaims.h. A world has a few jobs, each alone on a machine, and places that offer one
 * machine each and reclaim it independently. Worlds are simulated until there are enough reclaims.
 */
#include "bench/lost_reclaims.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUTE ((int64_t)60000)
#define HOUR (60 * MINUTE)
#define MIB ((int64_t)1 << 20)
#define JOBS 6
#define PLACES 12
#define TICKS 1440 /* of about a minute; the day is repeated */
#define SAVE_MIN_MS 500
#define OF_ONE_WORLD 25 /* maximum number of reclaims from one world, for variety */

struct take {
    struct lost_reclaim *out;
    size_t n, max;
    int64_t notice_ms;
};

static void on_lost(void *ctx, const struct replay_loss *l)
{
    struct take *t = ctx;
    if (t->n < t->max)
        t->out[t->n++] = (struct lost_reclaim){t->notice_ms, *l};
}

/* States of 1 MiB to 128 GiB, stores of 50 MB/s to 1 GB/s, both log-uniform. */
static struct replay_job make_job(struct prng *p)
{
    int64_t bytes = (int64_t)((double)MIB * exp2(17 * prng_unit(p)));
    int64_t bytes_ms = (int64_t)(50000 * exp2(4.3 * prng_unit(p)));
    return (struct replay_job){.submit_ms = 0,
        .need = {.cpus = 4, .memory_mib = 1024},
        .work_ms = 12 * HOUR,
        .save_ms = SAVE_MIN_MS + bytes / bytes_ms,
        .ckpt_bytes = bytes};
}

/* Alternates between availability and short gaps. The tick length is not a multiple of any save
 * interval. */
static void make_trace(struct prng *p, double mean_ticks, int32_t *counts, struct trace *ret)
{
    *ret = (struct trace){.gap_ms = prng_range(p, 41000, 79000), .n = TICKS, .counts = counts};
    for (size_t i = 0; i < TICKS;) {
        size_t up = i + 1 + (size_t)prng_exponential(p, mean_ticks),
               down = up + (size_t)prng_range(p, 1, 5);
        for (; i < TICKS && i < down; i++)
            counts[i] = i < up;
    }
}

static struct replay_offer make_offer(int n, const struct trace *t)
{
    struct replay_offer o = {.row = {.pool = "spot",
                                 .type = "m5",
                                 .market = MARKET_SPOT,
                                 .total = {.cpus = 4, .memory_mib = 16384},
                                 .price_uusd_h = 300000,
                                 .on_demand_uusd_h = 1000000},
        .trace = t,
        .trace_times = 1};
    snprintf(o.row.zone, sizeof o.row.zone, "z%d", n);
    return o;
}

static void play_world(uint64_t seed, struct take *t)
{
    static const struct pool_row pool = {.name = "spot",
        .elastic = true,
        .provider = "sim",
        .region = "r1",
        .max_nodes = PLACES,
        .idle_timeout_ms = 2 * MINUTE,
        .cooldown_ms = 2 * MINUTE,
        .boot_timeout_ms = 10 * MINUTE,
        .refusal_backoff_ms = MINUTE};
    struct prng p;
    struct replay_job jobs[JOBS];
    struct trace traces[PLACES];
    struct replay_offer offers[PLACES];
    int32_t *counts = mem_array((size_t)PLACES * TICKS, sizeof *counts);
    prng_init(&p, seed);
    double mean_ticks = 15 * exp2(4 * prng_unit(&p)); /* 15 minutes to four hours */
    for (int k = 0; k < JOBS; k++)
        jobs[k] = make_job(&p);
    for (int k = 0; k < PLACES; k++) {
        make_trace(&p, mean_ticks, counts + (size_t)k * TICKS, &traces[k]);
        offers[k] = make_offer(k, &traces[k]);
        offers[k].notice_ms = t->notice_ms;
        offers[k].trace_from_ms = prng_range(&p, 0, traces[k].gap_ms * TICKS - 1);
    }
    struct replay_options o = {.pools = &pool,
        .n_pools = 1,
        .offers = offers,
        .n_offers = PLACES,
        .jobs = jobs,
        .n_jobs = JOBS,
        .boot_ms = MINUTE,
        .restore_ms = 5000,
        .until_ms = 24 * HOUR,
        .seed = seed,
        .lost = on_lost,
        .ctx = t};
    struct replay_result r;
    struct err e;
    if (replay_run(&o, &r, &e) != 0) {
        fprintf(stderr, "a world of reclaims: %s\n", e.text);
        abort(); /* a bug in this file */
    }
    free(counts);
}

bool lost_fits(const struct lost_reclaim *r)
{
    return r->loss.save_ms <= r->notice_ms;
}

int64_t lost_bound_ms(const struct lost_reclaim *r)
{
    return lost_fits(r) ? 0 : r->loss.interval_ms + r->loss.save_ms;
}

void lost_sample(uint64_t seed, int64_t notice_ms, size_t n, struct lost_reclaim *ret_reclaims)
{
    struct take t = {.out = ret_reclaims, .notice_ms = notice_ms};
    for (uint64_t world = 0; t.n < n; world++) {
        t.max = t.n + OF_ONE_WORLD < n ? t.n + OF_ONE_WORLD : n;
        play_world(seed * 1000 + world, &t);
    }
}
