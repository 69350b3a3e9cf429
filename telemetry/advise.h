/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice on resources that running jobs hold but do not use, from their requests and their load
 * (base/load.h). Pure.
 *
 * Uses two intervals up to now: a short one to detect idle GPUs, and a long one to judge sizes. A
 * job that was not sampled for most of the interval gets no advice.
 */
#ifndef BELAY_TELEMETRY_ADVISE_H
#define BELAY_TELEMETRY_ADVISE_H

#include "telemetry/diagnose.h"

/* Values are percentages unless the name says otherwise. */
struct advise_limits {
    int64_t idle_ms;       /* a GPU is idle if for this long, up to now, it was */
    int64_t idle_busy;     /* less busy than this in each minute, */
    int64_t idle_memory;   /* and more of its memory than this was held */
    int64_t size_ms;       /* interval by which sizes are judged, */
    int64_t size_least_ms; /* and its minimum */
    /* maximum use, as part of the request, below which a request is far too large, or too large */
    int64_t memory_far, memory_near;
    int64_t busy;        /* of cpus and GPUs: a lower value means too many */
    int64_t gang_wait;   /* part of a job's time that its nodes waited for each other */
    int64_t collectives; /* part of a rank's time that its program reports as waiting for others */
};
extern const struct advise_limits advise_usual;

struct advise_gpu {
    struct gpu_load recent, all; /* in the short and in the long interval */
    int64_t busiest_recent;      /* percent, in the busiest minute of the short interval */
};

struct advise_job {
    int64_t cpus, gpus, memory_bytes; /* on each node; memory 0 = not limited */
    /* it has its nodes exclusively, so nothing is left for others */
    bool exclusive;
    const struct diagnose_rank *ranks; /* in the long interval */
    size_t n_ranks;
    const struct advise_gpu *gpu; /* of all its nodes */
    size_t n_gpus;
    int64_t gang_wait_ms, total_ms; /* of all its nodes' time, from the ledger */
    bool starved;                   /* diagnose found starved GPUs */
    int64_t uusd_h;                 /* current cost per hour */
};

enum advice_code {
    ADVICE_IDLE_GPUS,
    ADVICE_UNUSED_GPUS,
    ADVICE_STARVED_GPUS,
    ADVICE_SLOW_GPUS,
    ADVICE_MEMORY,
    ADVICE_CPUS,
    ADVICE_GANG_WAIT,
    ADVICE_COLLECTIVES,
    ADVICE_IDLE_NODE,  /* not by advise_job: a node without a job */
    ADVICE_IN_VAIN,    /* likewise: each attempt starts from scratch */
    ADVICE_RIGHT_SIZE, /* likewise: the last runs of its name fit a cheaper machine */
    ADVICE_CODES
};
extern const char *const advice_code_names[]; /* NULL-terminated */

#define ADVICE_TEXT_MAX 400

struct advice {
    enum advice_code code;
    char text[ADVICE_TEXT_MAX], remedy[ADVICE_TEXT_MAX];
    /* cost per hour of the unused part; 0 = not known */
    int64_t waste_uusd_h;
};

/* Each code at most once. Returns how many. */
size_t advise_job(
    const struct advise_job *j, const struct advise_limits *l, struct advice out[ADVICE_CODES]);

#endif
