/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of ended jobs that are still in the store and that no cleaning will remove.
 */
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"

#define JOBS_EXAMINED                                                                              \
    "100000" /* jobs with numbers lower than the newest by more than this are not examined */

int db_read_kept(struct db_reader *r, struct wall before, const char *user, int32_t limit,
    db_kept_fn fn, void *ctx, struct err *e)
{
    struct query q;
    int rc = query_check_limit(limit, e);
    if (rc != 0)
        return rc;
    query_init_text(&q, r->statements,
        "SELECT j.id, j.name, j.user, j.ended_at, CASE WHEN s.bytes > 0 THEN s.bytes WHEN l.after "
        "= 'all' THEN (SELECT ifnull(sum(c.stored_bytes), 0) FROM checkpoints c WHERE c.job = j.id)"
        " ELSE j.ckpt_bytes END AS bytes"
        " FROM ckpt_gc l JOIN jobs j ON j.id = l.job LEFT JOIN stored s ON s.job = l.job"
        " WHERE l.job > (SELECT ifnull(max(job), 0) FROM ckpt_gc) - " JOBS_EXAMINED
        " AND (l.state = 'done' OR (l.closed AND l.last_at IS NULL)) AND j.ended_at < ?1"
        " AND j.last_good_attempt > 0 AND (l.after IN ('all', 'last') OR l.succeeded = 0) AND (?3 "
        "= '' OR j.user = ?3) ORDER BY bytes DESC, j.id LIMIT ?2",
        e);
    query_i64(&q, 1, before.ms);
    query_i64(&q, 2, limit);
    query_text(&q, 3, user ? user : "");
    while (query_step(&q)) {
        struct kept_row row = {.job = sqlite3_column_int64(q.stmt, 0),
            .ended_at.ms = sqlite3_column_int64(q.stmt, 3),
            .bytes = sqlite3_column_int64(q.stmt, 4)};
        STR_COPY(row.name, (const char *)sqlite3_column_text(q.stmt, 1));
        STR_COPY(row.user, (const char *)sqlite3_column_text(q.stmt, 2));
        if (!query_goes_on(&q, fn(ctx, &row)))
            break;
    }
    return query_finish(&q);
}
