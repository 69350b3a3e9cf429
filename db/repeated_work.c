/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how much work of a job is missing in the checkpoint from which an attempt was restored,
 * and is therefore repeated although the ledger counts it as useful; for example, the newest
 * checkpoint was damaged, and an earlier one was used.
 *
 * It is all useful time of the earlier attempts in the ledger, minus the time in the checkpoint.
 * The latter is the time from the start of its attempt to its creation, without pauses for saves,
 * plus the time in the checkpoint from which that attempt had been restored, and so on.
 */
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

/* For each checkpoint on the way back to the beginning: the time since the start of its attempt.
 * For one that was never reported (its node was lost first): that of the newest earlier reported
 * one of its attempt, or 0; later work is not useful in the ledger. NULL if the start of an attempt
 * on the way is unknown. */
#define DONE                                                                                       \
    "WITH RECURSIVE way (attempt, sequence) AS (SELECT ?2, ?3 UNION ALL SELECT "                   \
    "a.restored_attempt, a.restored_sequence FROM way w"                                           \
    " JOIN attempts a ON a.job = ?1 AND a.attempt = w.attempt AND a.rank = 0 AND "                 \
    "a.restored_attempt < w.attempt WHERE w.attempt > 0),"                                         \
    " done (ms) AS (SELECT (SELECT CASE WHEN a.started_at IS NOT NULL THEN"                        \
    " ifnull((SELECT max(c.saved_at) - ifnull(a.gathered_at, a.started_at) - sum(c.pause_ms) "     \
    "FROM checkpoints c"                                                                           \
    " WHERE c.job = ?1 AND c.attempt = w.attempt AND c.sequence <= w.sequence), 0) END"            \
    " FROM attempts a WHERE a.job = ?1 AND a.attempt = w.attempt AND a.rank = 0) FROM way w "      \
    "WHERE w.attempt > 0)"

int db_read_repeated_work(struct db_reader *r, int64_t job, int64_t attempt,
    struct ckpt_ref restored, int64_t *ret_ms, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        DONE " SELECT (SELECT ifnull(sum(l.ms), 0) FROM ledger l JOIN attempts a ON a.job = l.job "
             "AND a.attempt = l.attempt AND a.node = l.node AND a.rank = 0"
             " WHERE l.job = ?1 AND l.attempt < ?4 AND l.kind = 'useful')"
             " - CASE WHEN EXISTS (SELECT 1 FROM done WHERE ms IS NULL) THEN NULL ELSE (SELECT "
             "ifnull(sum(ms), 0) FROM done) END",
        e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, restored.attempt);
    query_i64(&q, 3, restored.sequence);
    query_i64(&q, 4, attempt);
    *ret_ms = 0;
    if (query_step(&q) && sqlite3_column_int64(q.stmt, 0) > 0) /* NULL is 0 */
        *ret_ms = sqlite3_column_int64(q.stmt, 0);
    return query_finish(&q);
}

int db_read_has_repeated(
    struct db_reader *r, int64_t job, int64_t from, int64_t attempt, bool *ret_was, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE job = ?1 AND attempt >= ?2 AND attempt < ?3 "
        "AND behind_ms > 0)",
        e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, from);
    query_i64(&q, 3, attempt);
    *ret_was = query_step(&q) && sqlite3_column_int64(q.stmt, 0) != 0;
    return query_finish(&q);
}
