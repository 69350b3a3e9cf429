/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the ledger's rows, by job or for periods that do not begin and end at midnight; other
 * bills are read from the sums of rollup.c by cost_sums.c. A ledger row ("stretch") counts in each
 * period that it overlaps, in proportion to its time. Rows are written when a stretch has ended, so
 * the bill of a period is final when everything that ran in it has ended. Boot and idle time
 * belongs to no job and no user: its key is empty.
 *
 * Invariant: wherever a period is cut, the sums of its pieces add up to the sum of the whole, to
 * the micro-dollar. The share of a piece is the amount due at its end minus the amount due at its
 * beginning, both rounded down.
 */
#include "base/str.h"
#include "db/conn.h"
#include "db/cost_sums.h"
#include "db/prune.h"
#include "db/query.h"
#include "db/reader.h"

#include <stdio.h>

#define IS_IDLE_OWNED "l.kind = 'idle' AND coalesce(n.market, i.market) = 'owned'"
#define DAY_OF(ms) "strftime('%Y-%m-%d', " ms " / 1000, 'unixepoch')" /* UTC */
#define HAS_ENDED "j.state = 'ended' AND j.ended_at >= ?1 AND j.ended_at < ?2"

/* The expression by which rows are grouped and ordered; how it is shown, NULL: as it is; and when a
 * job counts. */
static const struct grouping {
    const char *by, *key, *shown, *counts;
} groupings[] = {
    /* as users name it: 42_7 for a task of an array */
    {"job", "CASE WHEN l.job > 0 THEN l.job WHEN " IS_IDLE_OWNED " THEN -1 END",
        "CASE WHEN j.array_id > 0 THEN j.array_id || '_' || j.array_index WHEN l.job > 0 THEN l.job"
        " WHEN " IS_IDLE_OWNED " THEN '" COST_IDLE_OWNED "' END",
        HAS_ENDED},
    {"user", "CASE WHEN " IS_IDLE_OWNED " THEN '" COST_IDLE_OWNED "' ELSE j.user END", NULL,
        HAS_ENDED},
    {"pool", "coalesce(n.pool, i.pool)", NULL, "false"},
    {"kind", "l.kind", NULL, "false"},
    {"day", DAY_OF("p.a"), NULL, HAS_ENDED " AND " DAY_OF("j.ended_at") " = " DAY_OF("p.a")},
};

/* The pieces of the selected stretches: from a to b of a stretch that began at start and took d ms.
 * Cut at ?1 and ?2, and, if ?4, at every midnight. s is d in units of u ms, so that no product
 * overflows. */
/* clang-format off */
#define PIECES \
    "WITH RECURSIVE piece (id, start, d, u, s, a, b, z) AS (" \
    " SELECT id, start, d, u, d / u, a, " CUT("a") ", z" \
    " FROM (" \
    "  SELECT rowid AS id, start, to_at - start AS d," \
    "  CASE WHEN to_at - start > 3000000000 THEN 1000 ELSE 1 END AS u," \
    "  max(start, ?1) AS a, min(to_at, ?2) AS z" \
    "  FROM (" \
    "SELECT rowid, min(ifnull(from_at, to_at), to_at) AS start, to_at" \
    "   FROM ledger" \
    "   WHERE to_at >= ?1" \
    ")" \
    "  WHERE start < ?2 AND (to_at > ?1 OR start = to_at)" \
    ")" \
    " UNION ALL" \
    " SELECT id, start, d, u, s, b, " CUT("b") ", z" \
    " FROM piece" \
    " WHERE b < z" \
    ") "
#define CUT(from) "CASE WHEN ?4 THEN min(z, (" from " / 86400000 + 1) * 86400000) ELSE z END"

/* The amount of a value that is due after x ms of the stretch, and from that the amount of the
 * piece. */
#define DUE(value, x) "(" value " / p.s * (" x " / p.u) + " value " %% p.s * (" x " / p.u) / p.s)"
#define SHARE(value) \
    "(" \
    "CASE WHEN p.b - p.start >= p.d THEN " value " ELSE " DUE(value, "(p.b - p.start)") " END" \
    " - " \
    "CASE WHEN p.a = p.start THEN 0 ELSE " DUE(value, "(p.a - p.start)") " END" \
    ")"
/* clang-format on */

static const struct grouping *grouping_of(const char *by, struct err *e)
{
    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++)
        if (str_eq(by, groupings[i].by))
            return &groupings[i];
    err_set(e, ERR_INVALID, "cost by '%.40s': it must be job, user, pool, kind or day", by);
    return NULL;
}

static struct cost_line line_of(sqlite3_stmt *s)
{
    struct cost_line line = {
        .jobs = sqlite3_column_int64(s, 1),
        .uusd = sqlite3_column_int64(s, 2),
        .on_demand_uusd = sqlite3_column_int64(s, 3),
        .useful_ms = sqlite3_column_int64(s, 4),
        .lost_ms = sqlite3_column_int64(s, 5),
        .total_ms = sqlite3_column_int64(s, 6),
    };
    STR_COPY(line.key, (const char *)sqlite3_column_text(s, 0));
    return line;
}

int db_read_cost(struct db_reader *r, const char *by, const char *user, struct wall from,
    struct wall to, db_cost_fn fn, void *ctx, struct err *e)
{
    const struct grouping *g = grouping_of(by, e);
    struct buf text = {0};
    struct query q;

    if (!g)
        return ERR_INVALID;
    /* of jobs, those that are left: from the first moment of which all rows are there */
    int rc = str_eq(by, "job") && !wall_is_set(from)
                 ? prune_read_cut(r, CUT_LEDGER, &from, e)
                 : prune_check_cut(
                       r, CUT_LEDGER, from, "the rows of the ledger", ", or ask for whole days", e);
    if (rc != 0)
        return rc;
    /* clang-format off */
    buf_printf(&text,
        PIECES
        "SELECT %s, count(DISTINCT CASE WHEN %s THEN l.job END),"
        " sum(" SHARE("l.uusd") "),"
        " sum(" SHARE("l.on_demand_uusd") "),"
        " sum(CASE l.kind WHEN 'useful' THEN " SHARE("l.ms") " ELSE 0 END),"
        " sum(CASE l.kind WHEN 'lost' THEN " SHARE("l.ms") " ELSE 0 END),"
        " sum(" SHARE("l.ms") ")"
        " FROM piece p"
        " JOIN ledger l ON l.rowid = p.id"
        " LEFT JOIN jobs j ON j.id = l.job"
        " LEFT JOIN nodes n ON n.id = l.node"
        " LEFT JOIN instances i ON i.id = l.instance"
        " %s"
        " GROUP BY %s"
        " ORDER BY %s",
        g->shown ? g->shown : g->key, g->counts, user ? "WHERE j.user = ?3" : "", g->key, g->key);
    /* clang-format on */
    query_init_text(&q, r->statements, buf_str(&text), e);
    buf_deinit(&text);
    query_i64(&q, 1, wall_is_set(from) ? from.ms : INT64_MIN);
    query_i64(&q, 2, wall_is_set(to) ? to.ms : INT64_MAX);
    if (user)
        query_text(&q, 3, user);
    query_i64(&q, 4, str_eq(by, "day"));
    while (query_step(&q)) {
        struct cost_line line = line_of(q.stmt);
        if (!query_goes_on(&q, fn(ctx, &line)))
            break;
    }
    return query_finish(&q);
}

int db_count_ended_jobs(struct db_reader *r, const char *user, struct wall from, struct wall to,
    int64_t *ret_n, struct err *e)
{
    struct query q;
    int64_t n = 0;

    query_init_text(&q, r->statements,
        "SELECT count(*) FROM jobs WHERE state = 'ended' AND ended_at >= ?1 AND ended_at < ?2 AND "
        "(?3 IS NULL OR user = ?3) AND NOT EXISTS (SELECT 1 FROM arrays WHERE job = jobs.id)",
        e);
    query_i64(&q, 1, wall_is_set(from) ? from.ms : INT64_MIN);
    query_i64(&q, 2, wall_is_set(to) ? to.ms : INT64_MAX);
    if (user)
        query_text(&q, 3, user);
    while (query_step(&q))
        n = sqlite3_column_int64(q.stmt, 0);
    *ret_n = n;
    return query_finish(&q);
}
