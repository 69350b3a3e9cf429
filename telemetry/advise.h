/* SPDX-License-Identifier: Apache-2.0
 *
 * What running jobs hold and do not use, from what they asked for and what they did (base/load.h).
 * Pure.
 *
 * Two times are looked at: a short one, up to now, in which GPUs are idle or not, and a long one,
 * by which sizes are judged. Nothing is said of a job that was not looked at for most of the time.
 */
#ifndef BELAY_TELEMETRY_ADVISE_H
#define BELAY_TELEMETRY_ADVISE_H

#include "telemetry/diagnose.h"

/* In percent unless its name says otherwise. */
struct advise_limits {
    int64_t idle_ms;       /* a GPU is idle that was for so long, up to now: */
    int64_t idle_busy;     /* less busy than this in each minute, */
    int64_t idle_memory;   /* with more of its memory held than this */
    int64_t size_ms;       /* sizes are judged by so long, up to now, */
    int64_t size_least_ms; /* and not by less than this */
    /* of what was asked for, that was used at most: less is far too much, or too much */
    int64_t memory_far, memory_near;
    int64_t busy;        /* of cpus and GPUs: less is too many */
    int64_t gang_wait;   /* of a job's time that its nodes waited for each other */
    int64_t collectives; /* of a rank's time that its program waited for the others, as it says */
};
extern const struct advise_limits advise_usual;

struct advise_gpu {
    struct gpu_load recent, all; /* of the short time, of the long one */
    int64_t busiest_recent;      /* percent, in the busiest minute of the short time */
};

struct advise_job {
    int64_t cpus, gpus, memory_bytes; /* that it has on each node; memory 0: not limited */
    /* it has its nodes for itself: what is left of them is of no use to others */
    bool exclusive;
    const struct diagnose_rank *ranks; /* of the long time */
    size_t n_ranks;
    const struct advise_gpu *gpu; /* those of all its nodes */
    size_t n_gpus;
    int64_t runs_ms;                /* its attempt has run for so long */
    int64_t gang_wait_ms, total_ms; /* of all its nodes' time, that the ledger has */
    bool starved;                   /* diagnose finds that its GPUs are */
    int64_t uusd_h;                 /* what it costs an hour now */
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
    ADVICE_IDLE_NODE, /* not by advise_job: of a node that no job has */
    ADVICE_IN_VAIN,   /* nor this: each attempt begins again from nothing */
    ADVICE_CODES
};
extern const char *const advice_code_names[]; /* NULL-terminated */

#define ADVICE_TEXT_MAX 300

struct advice {
    enum advice_code code;
    char text[ADVICE_TEXT_MAX], remedy[ADVICE_TEXT_MAX];
    /* of what it costs an hour, what goes to what is not used; 0: that cannot be told */
    int64_t waste_uusd_h;
};

/* Each code at most once. Returns how many. */
size_t advise_job(
    const struct advise_job *j, const struct advise_limits *l, struct advice out[ADVICE_CODES]);

#endif
