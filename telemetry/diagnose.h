/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds a job up, from what its processes and GPUs did (base/load.h): "slow, but the cpus are
 * idle". Pure.
 *
 * A job is only said to be held up where two things come together: something waits or is held back,
 * and what the job has paid for is not busy for it. So loaders that wait for disks beside GPUs that
 * are busy are as they should be.
 */
#ifndef BELAY_TELEMETRY_DIAGNOSE_H
#define BELAY_TELEMETRY_DIAGNOSE_H

#include "base/load.h"
#include <stdbool.h>
#include <stddef.h>

/* In percent unless its name says otherwise. */
struct diagnose_limits {
    int64_t least_ms;      /* of what was looked at: of less nothing is said */
    int64_t cpu_idle;      /* cpus that are less busy than this are idle */
    int64_t gpu_idle;      /* GPUs likewise */
    int64_t blocked;       /* of the time that something of it waited for a disk */
    int64_t stall;         /* or for memory */
    int64_t thread;        /* of a cpu that one thread used */
    int64_t link;          /* of the network that was used, */
    int64_t network_mib_s; /* where its speed is not known: so much */
    int64_t thermal;       /* of the time that a GPU was held back by heat, */
    int64_t power;         /* or by a limit of power, */
    int64_t clock;         /* with a clock below this part of its highest */
    int64_t faults_s;      /* pages that had to come from a disk, a second, */
    int64_t memory;        /* with so much of its memory in use */
    int64_t swapped_kib_s; /* in and out, of a node on which some of the job is swapped out */
};
extern const struct diagnose_limits diagnose_usual;

/* One rank: what it asked for and what it did. */
struct diagnose_rank {
    int32_t rank;
    int64_t cpus, gpus, memory_bytes; /* on its node; memory 0: not limited */
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
    int32_t rank;     /* where it is worst */
    int64_t gpu;      /* its number there; -1: it is not one's */
    int64_t severity; /* what ranks are compared by */
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

/* It was looked at for long enough to say something. */
bool diagnose_is_enough(const struct diagnose_input *in);

/* Each code at most once, of the rank where it is worst; what explains others comes first. Returns
 * how many. */
size_t diagnose(const struct diagnose_input *in, struct finding out[FINDING_CODES]);

#endif
