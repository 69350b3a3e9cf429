/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of spending by day and by month, updated in the same transaction as the ledger. A bill is
 * therefore read from as many rows as there were kinds of spending, not from every ledger row.
 *
 * Invariants.
 *  1. There are six sets of sums, each of which adds up to the ledger: by day and by month, each
 *     with and without the labels of jobs; and by month only for people and only for machines.
 *     There may be as many sets of labels as jobs, and each user may use many kinds of machines, so
 *     queries that do not need them should not read them. Each ended job counts once in each set,
 *     in the rows without a kind; of an array only its tasks count.
 *  2. A ledger row counts in each UTC day in proportion to its time: the share of a day is the
 *     amount due at its end minus the amount due at its beginning, both rounded down, as in cost.c,
 *     so nothing is lost at midnight.
 *     Idle time keeps its market in all sets, so each bill can show that of owned machines.
 *  3. A set of labels is stored once. Tasks of an array have its labels.
 *  4. team is the charged team: the label of that name, or else the team whose share the job used.
 */
#include "db/rollup.h"

#include <time.h>

/* clang-format would break SQL that is composed from macros into single words. */
/* clang-format off */
#define LABELS_OF_JOB \
    " LEFT JOIN job_label_sets s" \
    " ON s.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END" \
    " LEFT JOIN job_labels t" \
    " ON t.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END" \
    " AND t.name = 'team'"

/* The type of a node that is not a cloud instance: its hardware. */
#define TYPE_OF_NODE \
    "coalesce(" \
    "nullif(i.type, '')," \
    " CASE" \
    " WHEN n.gpus > 0" \
    " THEN n.gpus || ' x ' || CASE n.gpu_model WHEN '' THEN 'GPU' ELSE n.gpu_model END" \
    " ELSE n.cpus || ' cpus'" \
    " END," \
    " '')"

/* The sets of sums in which a row counts. */
#define SETS \
    " CROSS JOIN (" \
    "SELECT 1 AS span, 7 AS detail" \
    " UNION ALL SELECT 1, 3" \
    " UNION ALL SELECT 31, 7" \
    " UNION ALL SELECT 31, 3" \
    " UNION ALL SELECT 31, 2" \
    " UNION ALL SELECT 31, 1" \
    ") v" \
    " WHERE true"
#define ADD " ON CONFLICT DO UPDATE SET"
#define ADD_COSTS ADD \
    " ms = ms + excluded.ms," \
    " node_ms = node_ms + excluded.node_ms," \
    " uusd = uusd + excluded.uusd," \
    " on_demand_uusd = on_demand_uusd + excluded.on_demand_uusd"
/* ?1 is the day, ?10 its month */
#define SINCE "iif(v.span = 1, ?1, ?10)"
#define LABELS(column) "(v.detail = 7) * " column
#define PEOPLE(column) "iif(v.detail & 1, " column ", '')"
#define MACHINES(column) "iif(v.detail & 2, " column ", '')"

static const struct {
    enum rollup_statement is;
    const char *text;
} statements[] = {
    {ROLLUP_SET,
        "INSERT INTO label_sets (labels_json)"
        " SELECT ?2"
        " WHERE ?2 <> '{}'"
        " ON CONFLICT DO NOTHING"},
    {ROLLUP_SET_OF_JOB,
        "INSERT INTO job_label_sets"
        " SELECT ?1, id"
        " FROM label_sets"
        " WHERE labels_json = ?2"},
    {ROLLUP_COST,
        "INSERT INTO cost_sums"
        " SELECT v.span, v.detail, " SINCE ","
        " " LABELS("ifnull(s.labels, 0)") ","
        " " PEOPLE("coalesce(t.value, j.team, '')") ","
        " " PEOPLE("ifnull(j.user, '')") ","
        " " MACHINES("coalesce(n.pool, i.pool, '')") ","
        " " MACHINES(TYPE_OF_NODE) ","
        " iif(v.detail & 2 OR ?5 = 'idle', coalesce(n.market, i.market, ''), ''),"
        " ?5, ?6, ?7, ?8, ?9, 0, 0"
        " FROM (SELECT 1)"
        " LEFT JOIN jobs j ON j.id = ?2"
        LABELS_OF_JOB
        " LEFT JOIN nodes n ON n.id = ?3"
        " LEFT JOIN instances i ON i.id = ?4"
        SETS ADD_COSTS},
    {ROLLUP_PIECE,
        "INSERT INTO temp.pieces VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"},
    /* By what they have in common first: there are six sets of sums to add each to. */
    {ROLLUP_PIECES,
        "INSERT INTO cost_sums"
        " SELECT v.span, v.detail, iif(v.span = 1, w.day, w.month),"
        " " LABELS("w.labels") ","
        " " PEOPLE("w.team") ","
        " " PEOPLE("w.user") ","
        " " MACHINES("w.pool") ","
        " " MACHINES("w.type") ","
        " iif(v.detail & 2 OR w.kind = 'idle', w.market, ''),"
        " w.kind, sum(w.ms), sum(w.node_ms), sum(w.uusd), sum(w.on_demand_uusd), 0, 0"
        " FROM ("
        "SELECT p.day, p.month, ifnull(s.labels, 0) AS labels,"
        " coalesce(t.value, j.team, '') AS team, ifnull(j.user, '') AS user,"
        " coalesce(n.pool, i.pool, '') AS pool, " TYPE_OF_NODE " AS type,"
        " coalesce(n.market, i.market, '') AS market, p.kind, sum(p.ms) AS ms,"
        " sum(p.node_ms) AS node_ms, sum(p.uusd) AS uusd, sum(p.on_demand_uusd) AS on_demand_uusd"
        " FROM temp.pieces p"
        " LEFT JOIN jobs j ON j.id = p.job"
        LABELS_OF_JOB
        " LEFT JOIN nodes n ON n.id = p.node"
        " LEFT JOIN instances i ON i.id = p.instance"
        " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
        ") w"
        SETS
        " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
        ADD_COSTS},
    {ROLLUP_PIECES_DONE, "DELETE FROM temp.pieces"},
    {ROLLUP_JOBS,
        "INSERT INTO cost_sums"
        " SELECT v.span, v.detail, " SINCE ","
        " " LABELS("labels") ","
        " " PEOPLE("team") ","
        " " PEOPLE("user") ","
        " '', '', '', '', 0, 0, 0, 0, n, succeeded"
        " FROM ("
        "SELECT ifnull(s.labels, 0) AS labels, ifnull(t.value, j.team) AS team, j.user,"
        " count(*) AS n, sum(j.end_kind = 'succeeded') AS succeeded"
        " FROM json_each(?2) w"
        " CROSS JOIN jobs j ON j.id = w.value"
        LABELS_OF_JOB
        " WHERE NOT EXISTS (SELECT 1 FROM arrays WHERE job = j.id)"
        " GROUP BY 1, 2, 3"
        ")"
        SETS ADD
        " ended = ended + excluded.ended,"
        " succeeded = succeeded + excluded.succeeded"},
};
/* clang-format on */

int rollup_prepare(struct rollup *r, sqlite3 *sql, struct err *e)
{
    int rc = sql_exec(sql,
        "CREATE TEMP TABLE pieces (day INTEGER, job INTEGER, node INTEGER, instance INTEGER,"
        " kind TEXT, ms INTEGER, node_ms INTEGER, uusd INTEGER, on_demand_uusd INTEGER,"
        " month INTEGER)",
        e);
    for (size_t k = 0; k < ROLLUP_STATEMENTS && rc == 0; k++)
        rc = sql_prepare(sql, statements[k].text, &r->statements[statements[k].is], e);
    return rc;
}

void rollup_deinit(struct rollup *r)
{
    for (size_t k = 0; k < ROLLUP_STATEMENTS; k++)
        sqlite3_finalize(r->statements[k]);
    buf_deinit(&r->ids);
}

/* ---- days ---- */

/* The latest time that a clock can show; later ones are errors and count as one day. */
#define LATEST_MS (100000 * DAY_MS)
#define SUM_MAX 1000000000000000LL /* a billion dollars */
#define STRETCH_MAX_MS (4000 * DAY_MS)

int64_t rollup_day(int64_t ms)
{
    return ms < 0 ? 0 : ms > LATEST_MS ? LATEST_MS / DAY_MS : ms / DAY_MS;
}

int64_t rollup_month(int64_t day)
{
    time_t at = (time_t)(day * (DAY_MS / 1000));
    struct tm tm;
    gmtime_r(&at, &tm);
    return day - (tm.tm_mday - 1);
}

int64_t rollup_next_month(int64_t day)
{
    return rollup_month(rollup_month(day) + 31);
}

static int64_t due(int64_t value, int64_t part, int64_t whole)
{
    return part >= whole ? value : (int64_t)((__extension__(__int128) value) * part / whole);
}

void rollup_piece(const struct ledger_row *r, int64_t *day, struct ledger_row *ret_piece)
{
    int64_t to = r->to.ms < 0 ? 0 : r->to.ms > LATEST_MS ? LATEST_MS : r->to.ms;
    int64_t from =
        r->from.ms >= 0 && r->from.ms < to && to - r->from.ms <= STRETCH_MAX_MS ? r->from.ms : to;
    int64_t begin = *day == INT64_MIN ? from : *day * DAY_MS, whole = to - from;
    int64_t end = (rollup_day(begin) + 1) * DAY_MS;
    *ret_piece = *r;
    if (end >= to)
        end = to;
    ret_piece->from.ms = begin;
    ret_piece->to.ms = end;
    int64_t a = begin - from, b = end - from;
#define PIECE(member)                                                                              \
    ret_piece->member = due(r->member, b, whole) - (a > 0 ? due(r->member, a, whole) : 0)
    PIECE(ms);
    PIECE(node_ms);
    PIECE(uusd);
    PIECE(on_demand_uusd);
#undef PIECE
    *day = end >= to ? INT64_MAX : rollup_day(end);
}

/* ---- writing ---- */

static void bind_day(sqlite3_stmt *s, int64_t day)
{
    sqlite3_bind_int64(s, 1, day);
    sqlite3_bind_int64(s, 10, rollup_month(day));
}

static sqlite3_stmt *bind_piece(sqlite3_stmt *s, const struct ledger_row *piece)
{
    const int64_t of[] = {piece->job, piece->node, piece->instance};
    const int64_t sums[] = {piece->ms, piece->node_ms, piece->uusd, piece->on_demand_uusd};
    bind_day(s, rollup_day(piece->from.ms));
    for (int k = 0; k < 3; k++)
        sqlite3_bind_int64(s, k + 2, of[k]);
    for (int k = 0; k < 4; k++)
        sqlite3_bind_int64(s, k + 6,
            sums[k] > SUM_MAX    ? SUM_MAX
            : sums[k] < -SUM_MAX ? -SUM_MAX
                                 : sums[k]);
    sqlite3_bind_text(s, 5, ledger_kind_names[piece->kind], -1, SQLITE_STATIC);
    return s;
}

sqlite3_stmt *rollup_cost(struct rollup *r, const struct ledger_row *piece)
{
    return bind_piece(r->statements[ROLLUP_COST], piece);
}

/* The entries of a night's jobs have few users, labels and kinds of machines: their sums are
 * written once for each of these, not six times for each entry. */
sqlite3_stmt *rollup_costs(
    struct rollup *r, const struct ledger_row *rows, size_t n, struct rollup_walk *w)
{
    struct ledger_row piece;
    if (w->is_added) {
        w->is_added = false;
        w->n_put = 0;
        return r->statements[ROLLUP_PIECES_DONE];
    }
    if (w->n_put >= ROLLUP_PIECES_MAX || (w->at == n && w->n_put > 0)) {
        w->is_added = true;
        return r->statements[ROLLUP_PIECES];
    }
    if (w->at == n)
        return NULL;
    rollup_piece(&rows[w->at], &w->day, &piece);
    if (w->day == INT64_MAX) {
        w->at++;
        w->day = INT64_MIN;
    }
    if (n < ROLLUP_MANY)
        return rollup_cost(r, &piece);
    w->n_put++;
    return bind_piece(r->statements[ROLLUP_PIECE], &piece);
}

static int64_t day_of_end(const struct job_row *j)
{
    return wall_is_set(j->ended_at) ? rollup_day(j->ended_at.ms) : 0;
}

/* Thousands of jobs that are cancelled at once mostly have one user and one day: they need one
 * row's work, not one each. */
sqlite3_stmt *rollup_jobs(struct rollup *r, const struct job_row *jobs, size_t n, size_t *at)
{
    sqlite3_stmt *s = r->statements[ROLLUP_JOBS];
    int64_t day = 0;
    buf_clear(&r->ids);
    for (; *at < n; (*at)++) {
        const struct job_row *j = &jobs[*at];
        if (j->state != JOB_ENDED)
            continue;
        if (r->ids.len > 0 && day_of_end(j) != day)
            break;
        day = day_of_end(j);
        buf_printf(&r->ids, "%c%lld", r->ids.len > 0 ? ',' : '[', (long long)j->id);
    }
    if (r->ids.len == 0)
        return NULL;
    buf_addc(&r->ids, ']');
    bind_day(s, day);
    sqlite3_bind_text(s, 2, buf_str(&r->ids), (int)r->ids.len, SQLITE_STATIC);
    return s;
}
