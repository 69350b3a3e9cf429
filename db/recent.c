/* SPDX-License-Identifier: Apache-2.0
 *
 * The newest events: of the cluster, of a node, of a machine, of some kinds. No index has them, so
 * a page examines a limited number of rows, the newest ones before `before`.
 */
#include "db/db.h"
#include "db/query.h"
#include "db/reader.h"

/* kinds: ",saved,lost,", or "" for all. */
static const char matches[] =
    "WHERE id IN (SELECT id FROM history WHERE id < ?1 AND id >= ?2 AND (?3 = 0 OR node = ?3) AND "
    "(?4 = 0 OR instance = ?4) AND (?5 = '' OR instr(?5, ',' || kind || ',') > 0) ORDER BY id DESC "
    "LIMIT ?6) ORDER BY id";

struct page {
    db_history_fn fn;
    void *ctx;
    int32_t n;
    int64_t first; /* id; of the rows so far */
};

static int read_matches(struct db_reader *r, const struct recent_filter *f, int64_t end,
    int64_t floor, struct page *p, struct err *e)
{
    struct history_row row = {0};
    struct query q;
    query_init(&q, r->statements, TABLE_HISTORY, matches, e);
    query_i64(&q, 1, end);
    query_i64(&q, 2, floor);
    query_i64(&q, 3, f->node);
    query_i64(&q, 4, f->instance);
    query_text(&q, 5, f->kinds);
    query_i64(&q, 6, f->limit);
    while (query_next(&q, &row)) {
        p->first = p->n++ == 0 ? row.id : p->first;
        if (!query_goes_on(&q, p->fn(p->ctx, &row)))
            break;
    }
    return query_finish(&q);
}

/* The first id of a page's rows: of the last RECENT_EXAMINED_MAX before `before`; 0 if these are
 * all. */
static int find_bounds(
    struct db_reader *r, int64_t before, int64_t *ret_end, int64_t *ret_floor, struct err *e)
{
    struct query q;
    query_init_text(
        &q, r->statements, "SELECT coalesce(max(id), 0), coalesce(min(id), 0) FROM history", e);
    *ret_end = *ret_floor = 0;
    if (query_step(&q)) {
        int64_t last = sqlite3_column_int64(q.stmt, 0), first = sqlite3_column_int64(q.stmt, 1);
        *ret_end = before > 0 && before <= last ? before : last + 1;
        *ret_floor = *ret_end - RECENT_EXAMINED_MAX;
        if (*ret_floor <= first)
            *ret_floor = 0;
    }
    return query_finish(&q);
}

int db_read_recent_history(struct db_reader *r, const struct recent_filter *f, db_history_fn fn,
    void *ctx, int64_t *ret_next, struct err *e)
{
    struct page p = {.fn = fn, .ctx = ctx};
    int64_t end, floor;
    int rc = query_check_limit(f->limit, e);
    if (rc == 0)
        rc = find_bounds(r, f->before, &end, &floor, e);
    if (rc == 0)
        rc = read_matches(r, f, end, floor, &p, e);
    if (rc == 0)
        *ret_next = p.n == f->limit ? p.first : floor;
    return rc;
}
