/* SPDX-License-Identifier: Apache-2.0
 *
 * The loads of attempts and GPUs (base/load.h): a row for each minute, each ten minutes, and each
 * hour, all updated as reports arrive, so that old fine rows can be removed without adding them up.
 */
#ifndef BELAY_DB_TELEMETRY_H
#define BELAY_DB_TELEMETRY_H

#include "base/err.h"
#include "base/load.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db_reader;

#define LOADS_THINNED 1000 /* the most rows of each kind that one commit removes */

/* An existing row is added to. */
struct task_load_row {
    int64_t job, attempt;
    int32_t rank;
    int64_t span_ms, at; /* wall ms, a multiple of the span */
    int64_t node;
    struct task_load load;
};

struct gpu_load_row {
    int64_t job, attempt; /* 0 = no job used it */
    int64_t node;
    char gpu[64]; /* its UUID */
    int64_t span_ms, at;
    int64_t gpu_index; /* of the GPU to which a slice belongs */
    bool is_slice;
    struct gpu_load load;
};

/* The changes of one commit. */
struct loads_batch {
    struct task_load_row *tasks;
    size_t n_tasks;
    struct gpu_load_row *gpus;
    size_t n_gpus;
    /* wall ms: rows of each span that begin earlier are removed, LOADS_THINNED of them; 0 = none */
    int64_t from[LOAD_SPANS];
};

/* Reads rows of one span that begin at from (wall ms) or later, by rank or GPU, then by time, at
 * most LOADS_READ_MAX. attempt 0 = all of the job. */
#define LOADS_READ_MAX 100000
typedef int (*db_task_load_fn)(void *ctx, const struct task_load_row *row);
typedef int (*db_gpu_load_fn)(void *ctx, const struct gpu_load_row *row);
int db_read_task_loads(struct db_reader *r, int64_t job, int64_t attempt, int64_t span_ms,
    int64_t from, db_task_load_fn fn, void *ctx, struct err *e);
int db_read_gpu_loads(struct db_reader *r, int64_t job, int64_t attempt, int64_t span_ms,
    int64_t from, db_gpu_load_fn fn, void *ctx, struct err *e);

#endif
