/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the runs of a job's name would fit a cheaper machine. Pure.
 *
 * The demand is the most that any of the last runs used, with a margin of RIGHT_SIZE_MARGIN_PCT. A
 * part of the request is reduced only where that is clear: to less than 100 - RIGHT_SIZE_MARGIN_PCT
 * percent of it; cpus, whose use is a mean that hides peaks, to half at most. GPUs that were busy
 * for RIGHT_SIZE_BUSY_PCT of the time or more are exchanged for no other model, which may be
 * slower. A text results only if a cheaper machine then fits.
 */
#ifndef BELAY_TELEMETRY_RIGHT_SIZE_H
#define BELAY_TELEMETRY_RIGHT_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIGHT_SIZE_RUNS 5     /* the last runs that count, */
#define RIGHT_SIZE_RUNS_MIN 3 /* and the fewest */
#define RIGHT_SIZE_MARGIN_PCT 20
#define RIGHT_SIZE_BUSY_PCT 50
#define RIGHT_SIZE_TEXT_MAX 400

/* What a run used at most on a node. */
struct right_size_run {
    int64_t memory_bytes; /* 0 = unknown */
    int64_t cpu_milli;    /* mean of its longest time without a break; 0 = unknown */
    int64_t gpu_memory_bytes, gpu_busy_pct; /* -1 = unknown */
    int64_t ran_ms;
};

/* A demand on a node, or what a machine has. */
struct right_size_type {
    const char *name; /* of a machine; borrowed */
    int64_t cpus, memory_mib, gpus, gpu_memory_mib;
    const char *gpu_model; /* "" = none or unknown */
    int64_t uusd_h;
};

struct right_size {
    int64_t memory_mib, cpus; /* the smaller request; as it is where that is not reduced */
    const struct right_size_type *now, *then; /* the cheapest machines that fit */
    int64_t uusd_h, uusd_run;                 /* saved on each node: an hour, a run */
    char text[RIGHT_SIZE_TEXT_MAX];           /* "the last 5 runs of this name used ..." */
};

/* ask: the request. Returns false if there is no clear advice. */
bool right_size(const struct right_size_type *ask, const struct right_size_run *runs, size_t n_runs,
    const struct right_size_type *types, size_t n_types, struct right_size *ret_size);

#endif
