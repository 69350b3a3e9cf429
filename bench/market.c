/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what spot saves on recorded availability, and what the choice of offers adds. The same
 * 500 jobs run on the same owned machines plus one of:
 *
 *   base + on-demand     on-demand only
 *   cheapest first       the cheapest offer first; on-demand when spot is short, and it stays there
 *     and back to spot   the same, but returns to spot
 *   belay                offers chosen as belay does
 *
 * Ratios are relative to base + on-demand.
 *
 *   bench_market FOLDER...      (*.json in the format of cloud/trace.h, one file per zone)
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "replay/replay.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR ((int64_t)3600000)
#define JOBS 500
#define ZONES_MAX 32
#define BASE_NODES 4
#define ZONE_TIMES 2             /* machines in a zone for each one in its trace */
#define ON_DEMAND_UUSD_H 3060000 /* p3.2xlarge, us-east-1, 2023 */
#define SPOT_UUSD_H 918000       /* 70 % off, give or take 10 % by zone */

struct zone {
    char name[CORE_NAME_MAX];
    struct trace trace;
};

struct folder {
    const char *path;
    struct zone zones[ZONES_MAX];
    size_t n;
    int64_t length_ms;
};

enum policy { NO_SPOT, CHEAPEST_STAYS, CHEAPEST_RETURNS, BELAY };

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct zone *)a)->name, ((const struct zone *)b)->name);
}

static int add_zone(struct folder *f, const char *file, struct err *e)
{
    struct zone *z = &f->zones[f->n];
    char *path = mem_printf("%s/%s", f->path, file);
    int rc = trace_load(path, &z->trace, e);
    free(path);
    if (rc != 0)
        return rc;
    snprintf(z->name, sizeof z->name, "%.*s", (int)strlen(file) - 5, file);
    int64_t ms = (int64_t)z->trace.n * z->trace.gap_ms;
    f->length_ms = f->n == 0 || ms < f->length_ms ? ms : f->length_ms;
    f->n++;
    return 0;
}

static int load(struct folder *f, struct err *e)
{
    DIR *d = opendir(f->path);
    int rc = d ? 0 : err_set(e, ERR_NOT_FOUND, "%s cannot be read", f->path);
    for (const struct dirent *entry; rc == 0 && (entry = readdir(d)) && f->n < ZONES_MAX;)
        if (str_ends(entry->d_name, ".json"))
            rc = add_zone(f, entry->d_name, e);
    if (d)
        closedir(d);
    qsort(f->zones, f->n, sizeof *f->zones, by_name);
    return rc;
}

/* Work is log-normal around four hours (minutes to two days); arrivals are in the first two
 * thirds. */
static void make_jobs(struct replay_job *jobs, int64_t length_ms)
{
    struct prng p;
    double at = 0, gap = (double)length_ms * 2 / 3 / JOBS;
    prng_init(&p, 7);
    for (int k = 0; k < JOBS; k++) {
        double normal = 0;
        for (int i = 0; i < 12; i++)
            normal += prng_unit(&p);
        at += prng_exponential(&p, gap);
        int64_t work = (int64_t)(4.0 * (double)HOUR * exp(normal - 6));
        jobs[k] = (struct replay_job){.submit_ms = (int64_t)at,
            .need = {.cpus = 8, .gpus = 1, .memory_mib = 32768},
            .work_ms = work < 48 * HOUR ? work : 48 * HOUR,
            .save_ms = prng_range(&p, 2000, 60000),
            .ckpt_bytes = 1 << 30};
    }
}

static struct replay_result replay(
    const struct folder *f, const struct replay_job *jobs, enum policy policy)
{
    static const struct resources machine = {.cpus = 8, .gpus = 1, .memory_mib = 61440};
    const struct pool_row pools[] = {{.name = "base", .usd_per_hour_uusd = 1000000},
        {.name = "burst",
            .elastic = true,
            .provider = "trace",
            .region = "r1",
            .max_nodes = 100,
            .idle_timeout_ms = 120000,
            .cooldown_ms = 120000,
            .boot_timeout_ms = 600000,
            .refusal_backoff_ms = 10000,
            .min_paid_ms = 60000,
            .return_ms = policy == CHEAPEST_STAYS ? 0 : 1800000,
            .spread_pct = 10,
            .by_price = policy == CHEAPEST_STAYS || policy == CHEAPEST_RETURNS}};
    const struct replay_owned owned = {.pool = "base", .total = machine, .n = BASE_NODES};
    struct replay_offer offers[ZONES_MAX + 1];
    size_t n = 0;
    struct prng p;
    prng_init(&p, 11);
    for (size_t z = 0; z < f->n && policy != NO_SPOT; z++) {
        offers[n] =
            (struct replay_offer){.row = {.pool = "burst",
                                      .type = "v100",
                                      .market = MARKET_SPOT,
                                      .total = machine,
                                      .price_uusd_h = SPOT_UUSD_H * prng_range(&p, 90, 110) / 100,
                                      .on_demand_uusd_h = ON_DEMAND_UUSD_H},
                .trace = &f->zones[z].trace,
                .trace_times = ZONE_TIMES,
                .notice_ms = 120000};
        STR_COPY(offers[n++].row.zone, f->zones[z].name);
    }
    offers[n++] = (struct replay_offer){.row = {.pool = "burst",
                                            .zone = "any",
                                            .type = "v100",
                                            .market = MARKET_ON_DEMAND,
                                            .rank = 1,
                                            .total = machine,
                                            .price_uusd_h = ON_DEMAND_UUSD_H,
                                            .on_demand_uusd_h = ON_DEMAND_UUSD_H}};
    struct replay_options o = {.pools = pools,
        .n_pools = 2,
        .owned = &owned,
        .n_owned = 1,
        .offers = offers,
        .n_offers = n,
        .jobs = jobs,
        .n_jobs = JOBS,
        .boot_ms = 120000,
        .restore_ms = 20000,
        .until_ms = 2 * f->length_ms,
        .seed = 3};
    struct replay_result r;
    struct err e;
    if (replay_run(&o, &r, &e) != 0) {
        fprintf(stderr, "bench_market: %s\n", e.text);
        exit(1);
    }
    return r;
}

static double elastic_usd(const struct replay_result *r)
{
    return (double)(r->uusd[MARKET_SPOT] + r->uusd[MARKET_ON_DEMAND]) / 1e6;
}

static void print(const char *what, const struct replay_result *r, const struct replay_result *base)
{
    double all = elastic_usd(r) + (double)r->uusd[MARKET_OWNED] / 1e6,
           base_all = elastic_usd(base) + (double)base->uusd[MARKET_OWNED] / 1e6;
    printf("  %-22s bought $%8.2f = %.3f   with owned %.3f   mean time %5.2f h   reclaims %5lld   "
           "lost %6.2f h   launches %5lld (%lld refused)   finished %lld\n",
        what, elastic_usd(r), elastic_usd(r) / elastic_usd(base), all / base_all,
        (double)r->spent_time_ms / (double)(r->finished ? r->finished : 1) / (double)HOUR,
        (long long)r->reclaims, (double)r->ms[LEDGER_LOST] / (double)HOUR, (long long)r->launches,
        (long long)r->refusals, (long long)r->finished);
}

static void bench(const struct folder *f)
{
    struct replay_job *jobs = mem_array(JOBS, sizeof *jobs);
    make_jobs(jobs, f->length_ms);
    struct replay_result base = replay(f, jobs, NO_SPOT), stays = replay(f, jobs, CHEAPEST_STAYS),
                         returns = replay(f, jobs, CHEAPEST_RETURNS),
                         belay = replay(f, jobs, BELAY);
    const char *name = strrchr(f->path, '/');
    printf("%s: %zu zones, %.1f days\n", name ? name + 1 : f->path, f->n,
        (double)f->length_ms / (double)(24 * HOUR));
    print("base + on-demand", &base, &base);
    print("cheapest first", &stays, &base);
    print("  and back to spot", &returns, &base);
    print("belay", &belay, &base);
    printf("  belay / cheapest first %.3f, with the way back %.3f\n",
        elastic_usd(&belay) / elastic_usd(&stays), elastic_usd(&belay) / elastic_usd(&returns));
    free(jobs);
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        struct folder f = {.path = argv[k]};
        struct err e;
        if (load(&f, &e) != 0) {
            fprintf(stderr, "bench_market: %s\n", e.text);
            return 1;
        }
        bench(&f);
        for (size_t z = 0; z < f.n; z++)
            trace_deinit(&f.zones[z].trace);
    }
    return 0;
}
