/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds what slows a job down, from the load of its processes and GPUs (base/load.h): "slow, but
 * the cpus are idle". Pure.
 *
 * A finding needs two conditions: something waits or is throttled, and the resources that the job
 * pays for are therefore not busy. So loaders that wait for disks while the GPUs are busy are no
 * finding.
 */
#ifndef BELAY_TELEMETRY_DIAGNOSE_H
#define BELAY_TELEMETRY_DIAGNOSE_H

#include "base/load.h"
#include <stdbool.h>
#include <stddef.h>

/* Values are percentages unless the name says otherwise. */
struct diagnose_limits {
    int64_t least_ms;      /* minimum sampled time for a finding */
    int64_t cpu_idle;      /* cpus less busy than this are idle */
    int64_t gpu_idle;      /* GPUs likewise */
    int64_t blocked;       /* part of the time that one of its processes waited for a disk */
    int64_t stall;         /* likewise, for memory */
    int64_t thread;        /* part of a cpu used by one thread */
    int64_t link;          /* used part of the network link, */
    int64_t network_mib_s; /* or if its speed is not known, its traffic */
    int64_t thermal;       /* part of the time that a GPU was throttled by heat, */
    int64_t power;         /* or by its power limit, */
    int64_t clock;         /* with its clock below this part of the maximum */
    int64_t faults_s;      /* pages per second read from a disk, */
    int64_t memory;        /* with this part of its memory in use */
    int64_t swapped_kib_s; /* in and out, of a node that has swapped out memory of the job */
};
extern const struct diagnose_limits diagnose_usual;

/* One rank: its request and its load. */
struct diagnose_rank {
    int32_t rank;
    int64_t cpus, gpus, memory_bytes; /* on its node; memory 0 = not limited */
    struct task_load load;
};

struct diagnose_gpu {
    int32_t rank;
    int64_t index;
    struct gpu_load load;
};

enum finding_code {
    FINDING_GPU_ERRORS,
    FINDING_THERMAL,
    FINDING_POWER,
    FINDING_SLOWED,
    FINDING_MEMORY,
    FINDING_GPU_STARVED,
    FINDING_IOWAIT,
    FINDING_NETWORK,
    FINDING_THREAD,
    FINDING_CODES
};
extern const char *const finding_code_names[]; /* NULL-terminated */

#define FINDING_TEXT_MAX 400
#define FINDING_EVIDENCE_MAX 8
#define FINDING_REMEDIES_MAX 4

struct finding {
    enum finding_code code;
    int32_t rank;     /* the worst rank */
    int64_t gpu;      /* number of the GPU there; -1 = not about a GPU */
    int64_t severity; /* compared between ranks */
    char text[FINDING_TEXT_MAX];
    struct evidence {
        const char *name, *unit;
        int64_t value;
    } evidence[FINDING_EVIDENCE_MAX];
    size_t n_evidence;
    const char *const *remedies; /* NULL-terminated */
};

struct diagnose_input {
    const struct diagnose_rank *ranks;
    size_t n_ranks;
    const struct diagnose_gpu *gpus;
    size_t n_gpus;
    const struct diagnose_limits *limits;
};

/* Whether it was sampled long enough for findings. */
bool diagnose_is_enough(const struct diagnose_input *in);

/* Reports each code at most once, for the worst rank; causes come before effects. Returns how
 * many. */
size_t diagnose(const struct diagnose_input *in, struct finding out[FINDING_CODES]);

#endif
