/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger summed by what its rows must agree with.
 */
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

int db_read_ledger_sums(struct db_reader *r, db_ledger_sum_fn fn, void *ctx, struct err *e)
{
    struct query q;

    query_init_text(&q, r->sql,
        "SELECT instance, sum(uusd), sum(CASE WHEN job <> 0 THEN uusd ELSE 0 END),"
        " sum(node_ms)"
        " FROM ledger WHERE instance <> 0 GROUP BY instance ORDER BY instance",
        e);
    while (query_step(&q)) {
        struct ledger_sum sum = {
            .instance = sqlite3_column_int64(q.stmt, 0),
            .uusd = sqlite3_column_int64(q.stmt, 1),
            .attempts_uusd = sqlite3_column_int64(q.stmt, 2),
            .ms = sqlite3_column_int64(q.stmt, 3),
        };
        if (!query_goes_on(&q, fn(ctx, &sum)))
            break;
    }
    return query_finish(&q);
}

int db_read_ledger_nodes(struct db_reader *r, db_ledger_node_fn fn, void *ctx, struct err *e)
{
    struct query q;

    query_init_text(&q, r->sql,
        "SELECT n.id, ifnull(sum(l.node_ms), 0) AS sum_ms, n.attempts_ms + n.idle_ms AS row_ms"
        " FROM nodes n LEFT JOIN ledger l ON l.node = n.id WHERE n.instance = 0 GROUP BY n.id HAVING sum_ms <> row_ms ORDER BY n.id",
        e);
    while (query_step(&q)) {
        struct ledger_node node = {
            .node = sqlite3_column_int64(q.stmt, 0),
            .ms = sqlite3_column_int64(q.stmt, 1),
            .row_ms = sqlite3_column_int64(q.stmt, 2),
        };
        if (!query_goes_on(&q, fn(ctx, &node)))
            break;
    }
    return query_finish(&q);
}

int db_read_ledger_gaps(struct db_reader *r, db_ledger_gap_fn fn, void *ctx, struct err *e)
{
    struct query q;

    query_init_text(&q, r->sql,
        "SELECT job, attempt, max(instance), sum(ms), max(to_at) - min(from_at) AS span"
        " FROM ledger WHERE job <> 0 GROUP BY job, attempt, node"
        " HAVING sum(ms) <> max(span, 0) ORDER BY job, attempt",
        e);
    while (query_step(&q)) {
        struct ledger_gap gap = {
            .job = sqlite3_column_int64(q.stmt, 0),
            .attempt = sqlite3_column_int64(q.stmt, 1),
            .instance = sqlite3_column_int64(q.stmt, 2),
            .ms = sqlite3_column_int64(q.stmt, 3),
            .span_ms = sqlite3_column_int64(q.stmt, 4),
        };
        if (!query_goes_on(&q, fn(ctx, &gap)))
            break;
    }
    return query_finish(&q);
}
