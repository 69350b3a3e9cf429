/* SPDX-License-Identifier: Apache-2.0 */
#include "db/telemetry.h"

#include "db/query.h"
#include "db/reader.h"
#include <stdio.h>

/* Prepares a read by the primary key. */
static void prepare_read(struct query *q, struct db_reader *r, enum table_id t, const char *of,
    int64_t job, int64_t attempt, int64_t span_ms, int64_t from, struct err *e)
{
    char tail[200];
    snprintf(tail, sizeof(tail),
        "WHERE job = ?1 AND attempt BETWEEN ?2 AND ?3 AND span_ms = ?4 AND at >= ?5 ORDER BY "
        "attempt, %s, at LIMIT %d",
        of, LOADS_READ_MAX);
    query_init(q, r->statements, t, tail, e);
    query_i64(q, 1, job);
    query_i64(q, 2, attempt > 0 ? attempt : 0);
    query_i64(q, 3, attempt > 0 ? attempt : INT64_MAX);
    query_i64(q, 4, span_ms);
    query_i64(q, 5, from);
}

int db_read_task_loads(struct db_reader *r, int64_t job, int64_t attempt, int64_t span_ms,
    int64_t from, db_task_load_fn fn, void *ctx, struct err *e)
{
    struct task_load_row row;
    struct query q;
    prepare_read(&q, r, TABLE_TASK_LOADS, "rank", job, attempt, span_ms, from, e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_gpu_loads(struct db_reader *r, int64_t job, int64_t attempt, int64_t span_ms,
    int64_t from, db_gpu_load_fn fn, void *ctx, struct err *e)
{
    struct gpu_load_row row;
    struct query q;
    prepare_read(&q, r, TABLE_GPU_LOADS, "node, gpu", job, attempt, span_ms, from, e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}
