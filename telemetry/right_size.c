/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/right_size.h"

#include "base/minmax.h"
#include "base/str.h"
#include <stdio.h>

#define MIB (INT64_C(1) << 20)
#define GIB_MIB 1024
#define HOUR_MS 3600000.0

/* The most of all runs; unknown if it is unknown for one of them. */
struct used {
    int64_t memory_bytes, cpu_milli, gpu_memory_bytes, gpu_busy_pct, ran_ms;
    bool knows_memory, knows_cpus, knows_gpus;
};

static struct used most_of(const struct right_size_run *runs, size_t n)
{
    struct used u = {.knows_memory = true, .knows_cpus = true, .knows_gpus = true};
    for (size_t i = 0; i < n; i++) {
        const struct right_size_run *r = &runs[i];
        u.memory_bytes = max_i64(u.memory_bytes, r->memory_bytes);
        u.cpu_milli = max_i64(u.cpu_milli, r->cpu_milli);
        u.gpu_memory_bytes = max_i64(u.gpu_memory_bytes, r->gpu_memory_bytes);
        u.gpu_busy_pct = max_i64(u.gpu_busy_pct, r->gpu_busy_pct);
        u.ran_ms += r->ran_ms / (int64_t)n;
        u.knows_memory = u.knows_memory && r->memory_bytes > 0;
        u.knows_cpus = u.knows_cpus && r->cpu_milli > 0;
        u.knows_gpus = u.knows_gpus && r->gpu_memory_bytes >= 0 && r->gpu_busy_pct >= 0;
    }
    return u;
}

static int64_t with_margin(int64_t used)
{
    return used + used * RIGHT_SIZE_MARGIN_PCT / 100;
}

/* In whole GiB, as it is typed. */
static int64_t memory_needed(const struct right_size_type *ask, const struct used *u)
{
    int64_t mib = (with_margin(u->memory_bytes) + MIB - 1) / MIB;
    mib = (mib + GIB_MIB - 1) / GIB_MIB * GIB_MIB;
    return u->knows_memory && mib * 100 <= ask->memory_mib * (100 - RIGHT_SIZE_MARGIN_PCT)
               ? mib
               : ask->memory_mib;
}

static int64_t cpus_needed(const struct right_size_type *ask, const struct used *u)
{
    int64_t cpus = (with_margin(u->cpu_milli) + 999) / 1000;
    return u->knows_cpus && cpus * 2 <= ask->cpus ? max_i64(cpus, 1) : ask->cpus;
}

static bool fits(const struct right_size_type *need, const struct right_size_type *type)
{
    return type->cpus >= need->cpus && type->memory_mib >= need->memory_mib &&
           type->gpus >= need->gpus &&
           (need->gpus == 0 || type->gpu_memory_mib >= need->gpu_memory_mib) &&
           (!need->gpu_model[0] || str_eq(type->gpu_model, need->gpu_model));
}

static const struct right_size_type *cheapest(
    const struct right_size_type *need, const struct right_size_type *types, size_t n)
{
    const struct right_size_type *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (types[i].uusd_h > 0 && fits(need, &types[i]) &&
            (!best || types[i].uusd_h < best->uusd_h))
            best = &types[i];
    return best;
}

static void describe(
    const struct right_size_type *ask, const struct used *u, size_t n, struct right_size *s)
{
    char flags[64], gpus[96] = "";
    int used = 0;
    flags[0] = '\0';
    if (s->memory_mib < ask->memory_mib)
        used = snprintf(flags, sizeof(flags), "--mem %lldG ", (long long)(s->memory_mib / GIB_MIB));
    if (s->cpus < ask->cpus)
        snprintf(flags + used, sizeof(flags) - (size_t)used, "--cpus %lld ", (long long)s->cpus);
    if (ask->gpus > 0 && u->knows_gpus)
        snprintf(gpus, sizeof(gpus), ", %.1f GiB of memory of a GPU, which was %lld %% busy",
            (double)u->gpu_memory_bytes / (double)(MIB * GIB_MIB), (long long)u->gpu_busy_pct);
    snprintf(s->text, sizeof(s->text),
        "the last %zu runs of this name used at most %.1f of %.0f GiB, %.1f of %lld cpus on "
        "average%s: %s%s%s instead of %s, $%.2f/h less, $%.2f a run",
        n, (double)u->memory_bytes / (double)(MIB * GIB_MIB), (double)ask->memory_mib / GIB_MIB,
        (double)u->cpu_milli / 1000, (long long)ask->cpus, gpus, flags, flags[0] ? "fits " : "",
        s->then->name, s->now->name, (double)s->uusd_h / 1e6, (double)s->uusd_run / 1e6);
}

bool right_size(const struct right_size_type *ask, const struct right_size_run *runs, size_t n_runs,
    const struct right_size_type *types, size_t n_types, struct right_size *ret_size)
{
    if (n_runs < RIGHT_SIZE_RUNS_MIN)
        return false;
    const struct used u = most_of(runs, n_runs);
    struct right_size s = {.memory_mib = memory_needed(ask, &u), .cpus = cpus_needed(ask, &u)};
    struct right_size_type need = *ask;
    s.now = cheapest(ask, types, n_types);
    if (!s.now)
        return false;
    need.memory_mib = s.memory_mib;
    need.cpus = s.cpus;
    need.gpu_memory_mib = s.now->gpu_memory_mib;
    need.gpu_model = s.now->gpu_model;
    if (ask->gpus > 0 && u.knows_gpus && u.gpu_busy_pct < RIGHT_SIZE_BUSY_PCT) {
        need.gpu_memory_mib = max_i64(with_margin(u.gpu_memory_bytes) / MIB, ask->gpu_memory_mib);
        need.gpu_model = ask->gpu_model;
    }
    s.then = cheapest(&need, types, n_types);
    if (!s.then || s.then->uusd_h >= s.now->uusd_h)
        return false;
    s.uusd_h = s.now->uusd_h - s.then->uusd_h;
    s.uusd_run = (int64_t)((double)s.uusd_h * (double)u.ran_ms / HOUR_MS);
    describe(ask, &u, n_runs, &s);
    *ret_size = s;
    return true;
}
