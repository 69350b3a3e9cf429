/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the ledger. A stretch counts in the period in which it ended, whole: the ledger only grows at its
 * end, so the bill of a period that is over never changes again. Boot and idle time belongs to no job and no
 * user: it stands under the empty key.
 */
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

#include <stdio.h>

static const struct {
    const char *by, *key;
} groupings[] = {
    {"job", "nullif(l.job, 0)"}, {"user", "j.user"}, {"pool", "coalesce(n.pool, i.pool)"}, {"kind", "l.kind"},
    {"day", "strftime('%Y-%m-%d', l.to_at / 1000, 'unixepoch')"}, /* UTC */
};

static const char *key_of(const char *by, struct err *e)
{
    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++)
        if (str_eq(by, groupings[i].by))
            return groupings[i].key;
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

int db_read_cost(struct db_reader *r, const char *by, const char *user, struct wall from, struct wall to,
    db_cost_fn fn, void *ctx, struct err *e)
{
    const char *key = key_of(by, e);
    struct buf text = {0};
    struct query q;

    if (!key)
        return ERR_INVALID;
    buf_printf(&text,
        "SELECT %s AS key, count(DISTINCT nullif(l.job, 0)), sum(l.uusd), sum(l.on_demand_uusd),"
        " sum(CASE l.kind WHEN 'useful' THEN l.ms ELSE 0 END), sum(CASE l.kind WHEN 'lost' THEN l.ms ELSE 0 "
        "END),"
        " sum(l.ms)"
        " FROM ledger l LEFT JOIN jobs j ON j.id = l.job LEFT JOIN nodes n ON n.id = l.node"
        " LEFT JOIN instances i ON i.id = l.instance"
        " WHERE l.to_at >= ?1 AND l.to_at < ?2 %s GROUP BY key ORDER BY key",
        key, user ? "AND j.user = ?3" : "");
    query_init_text(&q, r->sql, buf_str(&text), e);
    buf_deinit(&text);
    query_i64(&q, 1, wall_is_set(from) ? from.ms : INT64_MIN);
    query_i64(&q, 2, wall_is_set(to) ? to.ms : INT64_MAX);
    if (user)
        query_text(&q, 3, user);
    while (query_step(&q)) {
        struct cost_line line = line_of(q.stmt);
        if (!query_goes_on(&q, fn(ctx, &line)))
            break;
    }
    return query_finish(&q);
}
