/* SPDX-License-Identifier: Apache-2.0 */
#include "db/spend.h"

#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"
#include "db/rollup.h"

/* clang-format would break SQL that is composed from macros into single words. */
/* clang-format off */
/* By the column: the days from ?1 on, ?2 of them, and the day itself. */
#define BY(column) \
    "WITH RECURSIVE days (week, day) AS (" \
    "SELECT 0, ?1" \
    " UNION ALL SELECT week + 1, day - 7" \
    " FROM days" \
    " WHERE week < ?2" \
    ")" \
    " SELECT s." column ", d.week, sum(s.uusd)" \
    " FROM days d" \
    " CROSS JOIN cost_sums s" \
    " WHERE s.span = 1 AND s.detail = 3 AND s.since = d.day AND s." column " <> ''" \
    " GROUP BY 1, 2" \
    " ORDER BY 1, 2"

static const char *const texts[SPEND_OFS] = {
    [SPEND_OF_USER] = BY("user"),
    [SPEND_OF_TEAM] = BY("team"),
    [SPEND_OF_POOL] = BY("pool"),
};
/* clang-format on */

int db_read_spend(struct db_reader *r, enum spend_of of, struct wall day, int32_t weeks,
    db_spend_fn fn, void *ctx, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements, texts[of], e);
    query_i64(&q, 1, rollup_day(day.ms));
    query_i64(&q, 2, weeks);
    while (query_step(&q) &&
           query_goes_on(&q, fn(ctx, (const char *)sqlite3_column_text(q.stmt, 0),
                                 sqlite3_column_int(q.stmt, 1), sqlite3_column_int64(q.stmt, 2))))
        ;
    return query_finish(&q);
}

int db_read_charged_team(
    struct db_reader *r, int64_t job, char ret_team[CORE_NAME_MAX], struct err *e)
{
    struct query q;
    ret_team[0] = '\0';
    query_init_text(&q, r->statements,
        "SELECT coalesce((SELECT value FROM job_labels WHERE name = 'team' AND job = CASE "
        "j.array_id WHEN 0 THEN j.id ELSE j.array_id END), j.team) FROM jobs j WHERE j.id = ?1",
        e);
    query_i64(&q, 1, job);
    while (query_step(&q))
        str_copy(ret_team, CORE_NAME_MAX, (const char *)sqlite3_column_text(q.stmt, 0));
    return query_finish(&q);
}

int db_read_is_live(struct db_reader *r, int64_t job, int64_t attempt, int32_t rank,
    bool *ret_is_live, struct err *e)
{
    struct query q;
    *ret_is_live = false;
    query_init_text(&q, r->statements,
        "SELECT 1 FROM attempts WHERE job = ?1 AND attempt = ?2 AND rank = ?3 AND state <> 'ended'",
        e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, attempt);
    query_i64(&q, 3, rank);
    while (query_step(&q))
        *ret_is_live = true;
    return query_finish(&q);
}
