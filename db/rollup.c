/* SPDX-License-Identifier: Apache-2.0
 *
 * What was spent, by day, set of labels, team, user, pool, market and kind of time: kept as the ledger is written, in the same
 * transaction, so that a bill is read from as many rows as there were kinds of spending, and not from every stretch.
 *
 * Invariants.
 *  1. cost_days adds up to the ledger, and cost_jobs counts each job once, on the day on which it ended.
 *  2. A stretch counts in each UTC day by the share of its time: the share of a day is what was due at its end less what was due
 * at its beginning, both rounded down, as in cost.c, so nothing is lost at midnight.
 *  3. A set of labels is stored once. Tasks of an array have its labels.
 */
#include "db/rollup.h"

#include "base/str.h"
#include "db/cost_days.h"
#include "db/query.h"
#include "db/reader.h"

#define DAY_MS 86400000LL

#define LABELS_OF_JOB " LEFT JOIN job_label_sets s ON s.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END"

static const struct {
    enum rollup_statement is;
    const char *text;
} statements[] = {
    {ROLLUP_SET, "INSERT INTO label_sets (labels_json) SELECT ?2 WHERE ?2 <> '{}' ON CONFLICT DO NOTHING"},
    {ROLLUP_SET_OF_JOB, "INSERT INTO job_label_sets SELECT ?1, id FROM label_sets WHERE labels_json = ?2"},
    {ROLLUP_COST,
        "INSERT INTO cost_days SELECT ?1, ifnull(s.labels, 0), ifnull(j.team, ''), ifnull(j.user, ''), coalesce(n.pool, i.pool, ''),"
        " coalesce(n.market, i.market, ''), ?5, ?6, ?7, ?8, ?9 FROM (SELECT 1) LEFT JOIN jobs j ON j.id = ?2" LABELS_OF_JOB
        " LEFT JOIN nodes n ON n.id = ?3 LEFT JOIN instances i ON i.id = ?4 WHERE true"
        " ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, node_ms = node_ms + excluded.node_ms, uusd = uusd + excluded.uusd,"
        " on_demand_uusd = on_demand_uusd + excluded.on_demand_uusd"},
    {ROLLUP_JOB,
        "INSERT INTO cost_jobs SELECT ?1, ifnull(s.labels, 0), j.team, j.user, 1, j.end_kind = 'succeeded' FROM jobs j" LABELS_OF_JOB
        " WHERE j.id = ?2 ON CONFLICT DO UPDATE SET ended = ended + 1, succeeded = succeeded + excluded.succeeded"},
};

int rollup_prepare(struct rollup *r, sqlite3 *sql, struct err *e)
{
    int rc = 0;
    for (size_t k = 0; k < ROLLUP_STATEMENTS && rc == 0; k++)
        rc = sql_prepare(sql, statements[k].text, &r->statements[statements[k].is], e);
    return rc;
}

void rollup_deinit(struct rollup *r)
{
    for (size_t k = 0; k < ROLLUP_STATEMENTS; k++)
        sqlite3_finalize(r->statements[k]);
}

/* ---- writing ---- */

/* What a clock can show; the rest is somebody's mistake, and is one day. */
#define LATEST_MS (100000 * DAY_MS)
#define SUM_MAX 1000000000000000LL /* a billion dollars */
#define STRETCH_MAX_MS (4000 * DAY_MS)

static int64_t day_of(int64_t ms)
{
    return ms < 0 ? 0 : ms > LATEST_MS ? LATEST_MS / DAY_MS : ms / DAY_MS;
}

static int64_t due(int64_t value, int64_t part, int64_t whole)
{
    return part >= whole ? value : (int64_t)((__extension__(__int128) value) * part / whole);
}

void rollup_piece(const struct ledger_row *r, int64_t *day, struct ledger_row *ret_piece)
{
    int64_t to = r->to.ms < 0 ? 0 : r->to.ms > LATEST_MS ? LATEST_MS : r->to.ms;
    int64_t from = r->from.ms >= 0 && r->from.ms < to && to - r->from.ms <= STRETCH_MAX_MS ? r->from.ms : to;
    int64_t begin = *day == INT64_MIN ? from : *day * DAY_MS, whole = to - from;
    int64_t end = (day_of(begin) + 1) * DAY_MS;
    *ret_piece = *r;
    if (end >= to)
        end = to;
    ret_piece->from.ms = begin;
    ret_piece->to.ms = end;
    int64_t a = begin - from, b = end - from;
#define PIECE(member) ret_piece->member = due(r->member, b, whole) - (a > 0 ? due(r->member, a, whole) : 0)
    PIECE(ms);
    PIECE(node_ms);
    PIECE(uusd);
    PIECE(on_demand_uusd);
#undef PIECE
    *day = end >= to ? INT64_MAX : day_of(end);
}

sqlite3_stmt *rollup_cost(struct rollup *r, const struct ledger_row *piece)
{
    sqlite3_stmt *s = r->statements[ROLLUP_COST];
    const int64_t values[] = {day_of(piece->from.ms), piece->job, piece->node, piece->instance};
    const int64_t sums[] = {piece->ms, piece->node_ms, piece->uusd, piece->on_demand_uusd};
    for (int k = 0; k < 4; k++) {
        sqlite3_bind_int64(s, k + 1, values[k]);
        sqlite3_bind_int64(s, k + 6, sums[k] > SUM_MAX ? SUM_MAX : sums[k] < -SUM_MAX ? -SUM_MAX : sums[k]);
    }
    sqlite3_bind_text(s, 5, ledger_kind_names[piece->kind], -1, SQLITE_STATIC);
    return s;
}

sqlite3_stmt *rollup_job(struct rollup *r, const struct job_row *j)
{
    sqlite3_stmt *s = r->statements[ROLLUP_JOB];
    sqlite3_bind_int64(s, 1, wall_is_set(j->ended_at) ? day_of(j->ended_at.ms) : 0);
    sqlite3_bind_int64(s, 2, j->id);
    return s;
}

/* ---- reading ---- */

static const struct {
    const char *by, *key;
    bool of_jobs; /* cost_jobs has it too */
} groupings[] = {
    {"user", "user", true},
    {"team", "team", true},
    {"pool", "pool", false},
    {"market", "market", false},
    {"kind", "kind", false},
    {"day", "strftime('%Y-%m-%d', day * 86400, 'unixepoch')", true},
    {"week", "strftime('%Y-%m-%d', (day - (day + 3) % 7) * 86400, 'unixepoch')", true}, /* its Monday */
    {"month", "strftime('%Y-%m', day * 86400, 'unixepoch')", true},
};

/* A team is the label of that name, or else whose share the job used. */
#define LABEL "(SELECT value FROM json_each((SELECT labels_json FROM label_sets WHERE id = labels)) WHERE key = ?5)"
#define SUM_OF(kind, what) "sum(CASE kind WHEN '" kind "' THEN " what " ELSE 0 END)"

int db_read_cost_days(
    struct db_reader *r, const struct cost_query *c, db_cost_sum_fn fn, void *ctx, struct err *e)
{
    const char *key = NULL, *label = str_starts(c->by, "label:") ? c->by + 6 : NULL;
    bool of_jobs = true, by_team = str_eq(c->by, "team");
    struct buf text = {0};
    struct query q;

    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++) {
        if (!str_eq(c->by, groupings[i].by))
            continue;
        key = groupings[i].key;
        of_jobs = groupings[i].of_jobs;
    }
    if (label)
        key = LABEL;
    else if (by_team)
        key = "ifnull(" LABEL ", team)";
    if (!key)
        return err_set(e, ERR_INVALID,
            "cost by '%.40s': it must be job, user, team, pool, market, kind, day, week, month or label:NAME", c->by);
    /* Sums by all that there is first, so that labels are looked up once a set, and not once a row. */
    buf_printf(&text,
        "WITH c AS MATERIALIZED (SELECT %s AS day, labels, team, user, %s AS pool, %s AS market, kind, sum(ms) AS ms, sum(uusd) AS uusd,"
        " sum(on_demand_uusd) AS od FROM cost_days WHERE day >= ?1 AND day < ?2 AND (?3 IS NULL OR user = ?3)"
        " AND (?4 IS NULL OR pool = ?4) GROUP BY 1, 2, 3, 4, 5, 6, 7),"
        " n AS MATERIALIZED (SELECT %s AS key, sum(ended) AS ended, sum(succeeded) AS succeeded FROM cost_jobs"
        " WHERE day >= ?1 AND day < ?2 AND (?3 IS NULL OR user = ?3) AND ?4 IS NULL AND %d GROUP BY 1),"
        " s AS (SELECT ifnull(%s, '') AS key, sum(uusd) AS uusd, sum(od) AS od, " SUM_OF("useful", "ms") " AS useful, "
        SUM_OF("lost", "ms") " AS lost, sum(ms) AS total, " SUM_OF("useful", "uusd") ", " SUM_OF("lost", "uusd") ", "
        SUM_OF("boot", "uusd") ", " SUM_OF("restore", "uusd") ", " SUM_OF("save", "uusd") ", " SUM_OF("gang-wait", "uusd") ", "
        SUM_OF("idle", "uusd") " FROM c GROUP BY 1)"
        " SELECT s.key, ifnull(n.ended, 0), s.*, ifnull(n.succeeded, 0) FROM s LEFT JOIN n ON ifnull(n.key, '') = s.key ORDER BY s.key",
        str_starts(key, "strftime") ? "day" : "0", str_eq(c->by, "pool") ? "pool" : "''", str_eq(c->by, "market") ? "market" : "''",
        of_jobs ? key : "''", of_jobs ? 1 : 0, key);
    query_init_text(&q, r->sql, buf_str(&text), e);
    buf_deinit(&text);
    query_i64(&q, 1, wall_is_set(c->from) ? day_of(c->from.ms) : INT64_MIN);
    query_i64(&q, 2, wall_is_set(c->to) ? day_of(c->to.ms + DAY_MS - 1) : INT64_MAX);
    if (c->user)
        query_text(&q, 3, c->user);
    if (c->pool)
        query_text(&q, 4, c->pool);
    if (label || by_team)
        query_text(&q, 5, label ? label : "team");
    while (query_step(&q)) {
        struct cost_sum line = {.jobs = sqlite3_column_int64(q.stmt, 1),
            .uusd = sqlite3_column_int64(q.stmt, 3),
            .on_demand_uusd = sqlite3_column_int64(q.stmt, 4),
            .useful_ms = sqlite3_column_int64(q.stmt, 5),
            .lost_ms = sqlite3_column_int64(q.stmt, 6),
            .total_ms = sqlite3_column_int64(q.stmt, 7),
            .succeeded = sqlite3_column_int64(q.stmt, 8 + LEDGER_KINDS)};
        for (int k = 0; k < LEDGER_KINDS; k++)
            line.spent_uusd[k] = sqlite3_column_int64(q.stmt, 8 + k);
        STR_COPY(line.key, (const char *)sqlite3_column_text(q.stmt, 0));
        if (!query_goes_on(&q, fn(ctx, &line)))
            break;
    }
    return query_finish(&q);
}
