/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the times from which the parts of a job's restarts are computed
 * (scheduler/core/ledger/restart.h).
 */
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

static struct wall wall_at(const struct query *q, int column)
{
    if (sqlite3_column_type(q->stmt, column) == SQLITE_NULL)
        return WALL_NONE;
    return (struct wall){sqlite3_column_int64(q->stmt, column)};
}

/* b: the last earlier attempt that has started, and the end of its last rank. lost: of rank 0, for
 * all ranks lose the same work; without what that attempt repeated itself, and with what this one
 * repeats of still earlier attempts. */
static const char restarts[] =
    "WITH b AS (SELECT p.attempt, max(p.ended_at) AS stopped_at,"
    " max(CASE WHEN p.rank = 0 THEN p.node END) AS node,"
    " max(CASE WHEN p.rank = 0 THEN p.behind_ms END) AS behind_ms"
    " FROM attempts p WHERE p.job = ?1 AND p.started_at IS NOT NULL GROUP BY p.attempt),"
    " lost AS (SELECT b.attempt, max(0, ifnull(sum(l.ms), 0) - b.behind_ms) AS ms FROM b"
    " LEFT JOIN ledger l ON l.job = ?1 AND l.attempt = b.attempt AND l.node = b.node"
    " AND l.kind = 'lost' GROUP BY b.attempt)"
    " SELECT a.attempt, a.rank, b.stopped_at, i.intended_at, i.launched_at, n.joined_at,"
    " ifnull(i.start_ms, 0), a.assigned_at, a.started_at, a.restore_ms, a.warm_up_ms,"
    " ifnull(lost.ms, 0) + a.behind_ms"
    " FROM attempts a"
    " JOIN b ON b.attempt = (SELECT max(attempt) FROM b WHERE attempt < a.attempt)"
    " LEFT JOIN lost ON lost.attempt = b.attempt"
    " LEFT JOIN nodes n ON n.id = a.node LEFT JOIN instances i ON i.id = n.instance"
    " WHERE a.job = ?1 AND a.started_at IS NOT NULL AND b.stopped_at IS NOT NULL"
    " ORDER BY a.attempt, a.rank";

int db_read_restarts(struct db_reader *r, int64_t job, db_restart_fn fn, void *ctx, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements, restarts, e);
    query_i64(&q, 1, job);
    while (query_step(&q)) {
        const struct restart_moments m = {
            .attempt = sqlite3_column_int64(q.stmt, 0),
            .rank = sqlite3_column_int(q.stmt, 1),
            .stopped_at = wall_at(&q, 2),
            .intended_at = wall_at(&q, 3),
            .launched_at = wall_at(&q, 4),
            .joined_at = wall_at(&q, 5),
            .start_ms = sqlite3_column_int64(q.stmt, 6),
            .assigned_at = wall_at(&q, 7),
            .started_at = wall_at(&q, 8),
            .restore_ms = sqlite3_column_int64(q.stmt, 9),
            .warm_up_ms = sqlite3_column_int64(q.stmt, 10),
            .lost_ms = sqlite3_column_int64(q.stmt, 11),
        };
        if (!query_goes_on(&q, fn(ctx, &m)))
            break;
    }
    return query_finish(&q);
}
