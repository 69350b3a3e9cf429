/* SPDX-License-Identifier: Apache-2.0
 *
 * The loads of a job's last attempt from a given moment on, summed by rank and by GPU, with its
 * requests.
 */
#ifndef BELAY_SCHEDULER_JOB_LOADS_H
#define BELAY_SCHEDULER_JOB_LOADS_H

#include "db/db.h"
#include "scheduler/config/config.h"
#include "telemetry/diagnose.h"

struct job_loads {
    int64_t attempt;
    struct job_rank {
        int32_t rank;
        int64_t node, cpus, gpus, memory_bytes; /* that the job has on the node */
        struct task_load load;
    } * ranks;
    size_t n_ranks;
    struct job_gpu {
        int32_t rank;
        int64_t node, index;
        char gpu[64];
        bool is_slice;
        struct gpu_load load;
        int64_t busiest; /* percent, in its busiest row */
    } * gpus;
    size_t n_gpus;
};

/* Returns the position of the finest span (LOAD_SPANS_MS) that is kept for that long. */
int job_loads_finest(const struct config_telemetry *c, int64_t age_ms);

/* Reads the finest available spans from this one on (0 = minutes). Call deinit in all cases. */
int job_loads_read(struct job_loads *ret_loads, struct db_reader *r, const struct model *m,
    const struct job_row *job, struct wall from, int finest, struct err *e);
void job_loads_deinit(struct job_loads *l);

/* As diagnose(), of all ranks and GPUs. *ret_enough as diagnose_is_enough(); may be NULL. */
size_t job_loads_diagnose(const struct job_loads *l, const struct diagnose_limits *limits,
    struct finding found[FINDING_CODES], bool *ret_enough);

#endif
