/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of the ledger for comparison with the rows that they must match.
 */
#include "base/mem.h"
#include "base/time.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"
#include "db/rollup.h"

#include <stdlib.h>

int db_read_ledger_sums(struct db_reader *r, db_ledger_sum_fn fn, void *ctx, struct err *e)
{
    struct query q;

    query_init_text(&q, r->statements,
        "SELECT instance, sum(uusd), sum(attempts_uusd), sum(node_ms) FROM (SELECT instance, uusd,"
        " CASE WHEN job <> 0 THEN uusd ELSE 0 END AS attempts_uusd, node_ms FROM ledger"
        " WHERE instance <> 0 AND kind <> 'egress' UNION ALL SELECT instance, uusd, attempts_uusd,"
        " node_ms FROM deleted_machine_costs WHERE instance <> 0) GROUP BY instance ORDER BY "
        "instance",
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

    query_init_text(&q, r->statements,
        "SELECT n.id, ifnull(sum(l.node_ms), 0) AS sum_ms, n.attempts_ms + n.idle_ms AS row_ms"
        " FROM nodes n LEFT JOIN (SELECT node, node_ms FROM ledger UNION ALL SELECT node, node_ms"
        " FROM deleted_machine_costs) l ON l.node = n.id WHERE n.instance = 0 GROUP BY n.id "
        "HAVING sum_ms <> row_ms ORDER BY n.id",
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

    query_init_text(&q, r->statements,
        "SELECT job, attempt, max(instance), sum(ms), max(to_at) - min(from_at) AS span"
        " FROM ledger WHERE job <> 0 AND kind NOT IN ('egress', 'storage') GROUP BY job, attempt, "
        "node HAVING sum(ms) <> max(span, 0) ORDER BY job, attempt",
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

/* ---- sums by day and month ---- */

/* Selects the differences of two sums that should be equal: all of the first minus all of the
 * second, where it is not zero. */
#define DIFFERENCES(what, first, second)                                                           \
    "SELECT " what ", sum(ms), sum(uusd), sum(ended) FROM (" first " UNION ALL " second ")"        \
    " GROUP BY since, labels, team, user, pool, type, market, kind"                                \
    " HAVING sum(ms) <> 0 OR sum(node_ms) <> 0 OR sum(uusd) <> 0 OR sum(on_demand_uusd) <> 0 OR "  \
    "sum(ended) <> 0 OR sum(succeeded) <> 0"
#define NEGATED_SUMS "-ms, -node_ms, -uusd, -on_demand_uusd, -ended, -succeeded"
#define SUM_NAME                                                                                   \
    "coalesce(nullif(user, ''), '-') || ' of ' || coalesce(nullif(team, ''), '-') || ', ' || "     \
    "coalesce(nullif(kind, ''), 'jobs')"

/* Compares the most detailed sums by day with another set: span ?1, detail ?2; from day ?3 on, the
 * first of a month. */
static const char of_sets[] = DIFFERENCES("date(since * 86400, 'unixepoch') || ', ' || " SUM_NAME,
    "SELECT CASE ?1 WHEN 1 THEN since ELSE CAST(strftime('%s', since * 86400, 'unixepoch', 'start "
    "of month') AS INTEGER) / 86400 END AS since,"
    " (?2 = 7) * labels AS labels, iif(?2 & 1, team, '') AS team, iif(?2 & 1, user, '') AS user, "
    "iif(?2 & 2, pool, '') AS pool,"
    " iif(?2 & 2, type, '') AS type, iif(?2 & 2 OR kind = 'idle', market, '') AS market, kind,"
    " ms, node_ms, uusd, on_demand_uusd, ended, succeeded FROM cost_sums WHERE span = 1 AND detail "
    "= 7 AND since >= ?3",
    "SELECT since, labels, team, user, pool, type, market, kind, " NEGATED_SUMS
    " FROM cost_sums WHERE span = ?1 AND detail = ?2 AND since >= ?3");

/* Compares the most detailed sums by month with the ledger and the jobs, and with the sums of those
 * that were deleted. The hardware of a node may
 * have changed since, so types are not compared. Nor are the teams of spending: it stays with the
 * team of that time, and the job may have moved to another. */
#define OF_JOB                                                                                     \
    " LEFT JOIN job_label_sets s ON s.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END"  \
    " LEFT JOIN job_labels t ON t.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END AND " \
    "t.name = 'team'"
static const char of_rows[] = DIFFERENCES(SUM_NAME,
    "SELECT 0 AS since, labels, iif(kind = '', team, '') AS team, user, pool, '' AS type, market, "
    "kind, ms, node_ms, uusd, on_demand_uusd, ended, succeeded"
    " FROM cost_sums WHERE span = 31 AND detail = 7",
    "SELECT 0, ifnull(s.labels, 0), '', ifnull(j.user, ''), coalesce(n.pool, i.pool, ''), '',"
    " coalesce(n.market, i.market, ''), l.kind, -l.ms, -l.node_ms, -l.uusd, -l.on_demand_uusd, 0, "
    "0 FROM ledger l LEFT JOIN jobs j ON j.id = l.job" OF_JOB
    " LEFT JOIN nodes n ON n.id = l.node LEFT JOIN instances i ON i.id = l.instance"
    " UNION ALL SELECT 0, ifnull(s.labels, 0), ifnull(t.value, j.team), j.user, '', '', '', '', 0, "
    "0, 0, 0, -1, -(j.end_kind = 'succeeded')"
    " FROM jobs j" OF_JOB
    " WHERE j.state = 'ended' AND NOT EXISTS (SELECT 1 FROM arrays WHERE job = j.id)"
    " UNION ALL SELECT 0, labels, team, user, pool, '', market, kind, " NEGATED_SUMS
    " FROM deleted_costs");

struct gaps {
    struct db_reader *r;
    db_rollup_gap_fn fn;
    void *ctx;
    struct err *e;
    int64_t first_day, first_month; /* before which rows, or sums by day, may be missing */
};

static int differences(
    const struct gaps *g, const char *text, int64_t span, int64_t detail, const char *of)
{
    struct query q;
    query_init_text(&q, g->r->statements, text, g->e);
    if (span > 0) {
        query_i64(&q, 1, span);
        query_i64(&q, 2, detail);
        query_i64(&q, 3, g->first_month);
    }
    while (query_step(&q)) {
        char *line = mem_printf("%s, %s: by %lld ms, %lld uusd and %lld jobs", of,
            (const char *)sqlite3_column_text(q.stmt, 0),
            (long long)sqlite3_column_int64(q.stmt, 1), (long long)sqlite3_column_int64(q.stmt, 2),
            (long long)sqlite3_column_int64(q.stmt, 3));
        int answer = g->fn(g->ctx, line);
        free(line);
        if (!query_goes_on(&q, answer))
            break;
    }
    return query_finish(&q);
}

/* The spending of each day, added up from the ledger rows split at midnight. */
struct days {
    struct day_sum {
        int64_t ms, uusd;
    } * sums;
    int64_t n;
};

static int add_days(const struct gaps *g, struct days *d)
{
    struct ledger_row row = {0}, piece;
    struct query q;
    query_init(&q, g->r->statements, TABLE_LEDGER, "", g->e);
    while (query_next(&q, &row))
        for (int64_t day = INT64_MIN; day != INT64_MAX;) {
            rollup_piece(&row, &day, &piece);
            int64_t of = rollup_day(piece.from.ms), had = d->n;
            if (of >= had) {
                d->n = of + 1;
                d->sums = mem_resize(d->sums, (size_t)d->n, sizeof(*d->sums));
                for (int64_t k = had; k < d->n; k++)
                    d->sums[k] = (struct day_sum){0};
            }
            d->sums[of].ms += piece.ms;
            d->sums[of].uusd += piece.uusd;
        }
    return query_finish(&q);
}

static int of_days(const struct gaps *g)
{
    struct days d = {0};
    struct query q;
    int rc = add_days(g, &d);
    query_init_text(&q, g->r->statements,
        "SELECT since, sum(ms), sum(uusd) FROM cost_sums WHERE span = 1 AND detail = 3 AND since "
        ">= ?1 GROUP BY since",
        g->e);
    query_i64(&q, 1, g->first_day > g->first_month ? g->first_day : g->first_month);
    while (rc == 0 && query_step(&q)) {
        int64_t day = sqlite3_column_int64(q.stmt, 0);
        struct day_sum sum = day < d.n ? d.sums[day] : (struct day_sum){0};
        int64_t ms = sqlite3_column_int64(q.stmt, 1) - sum.ms,
                uusd = sqlite3_column_int64(q.stmt, 2) - sum.uusd;
        char iso[TIME_ISO_MAX];
        time_format_iso((struct wall){day * DAY_MS}, iso);
        char *line = mem_printf(
            "the sums of %.10s differ from the ledger's rows of that day: by %lld ms and %lld uusd",
            iso, (long long)ms, (long long)uusd);
        int answer = ms != 0 || uusd != 0 ? g->fn(g->ctx, line) : 0;
        free(line);
        if (!query_goes_on(&q, answer))
            break;
    }
    int finished = query_finish(&q);
    free(d.sums);
    return rc != 0 ? rc : finished;
}

int db_read_rollup_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e)
{
    struct gaps g = {.r = r, .fn = fn, .ctx = ctx, .e = e};
    struct wall rows, days;
    int rc = prune_read_cut(r, CUT_LEDGER, &rows, e);
    if (rc == 0)
        rc = prune_read_cut(r, CUT_DAYS, &days, e);
    if (rc != 0)
        return rc;
    g.first_day = wall_is_set(rows) ? rollup_day(rows.ms) + 1 : 0;
    g.first_month = wall_is_set(days) ? rollup_day(days.ms) : 0;
    rc = differences(&g, of_rows, 0, 0, "the sums by month differ from the ledger");
    if (rc == 0)
        rc = of_days(&g);
    if (rc == 0)
        rc = differences(
            &g, of_sets, SPAN_DAY, DETAIL_ALL, "the sums by day differ from those with labels");
    if (rc == 0)
        rc = differences(
            &g, of_sets, SPAN_MONTH, DETAIL_ALL, "the sums by month differ from those by day");
    if (rc == 0)
        rc = differences(&g, of_sets, SPAN_MONTH, DETAIL_LABELS,
            "the sums by month and label differ from those by day");
    if (rc == 0)
        rc = differences(&g, of_sets, SPAN_MONTH, DETAIL_PEOPLE,
            "the sums by month and user differ from those by day");
    if (rc == 0)
        rc = differences(&g, of_sets, SPAN_MONTH, DETAIL_MACHINES,
            "the sums by month and machine differ from those by day");
    return rc;
}

int db_read_job_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT j.id, j.cost_uusd, ifnull(l.uusd, 0) FROM jobs j LEFT JOIN (SELECT job, sum(uusd) "
        "AS uusd FROM ledger GROUP BY job) l ON l.job = j.id"
        " WHERE j.cost_uusd <> ifnull(l.uusd, 0) ORDER BY j.id",
        e);
    while (query_step(&q)) {
        char *line = mem_printf(
            "job %lld: its row has a cost of %lld uusd, and the ledger has %lld uusd",
            (long long)sqlite3_column_int64(q.stmt, 0), (long long)sqlite3_column_int64(q.stmt, 1),
            (long long)sqlite3_column_int64(q.stmt, 2));
        int answer = fn(ctx, line);
        free(line);
        if (!query_goes_on(&q, answer))
            break;
    }
    return query_finish(&q);
}

int db_read_data_gaps(struct db_reader *r, db_rollup_gap_fn fn, void *ctx, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT job, attempt, node, kind, sum(uusd) AS more FROM"
        " (SELECT job, attempt, node, kind, uusd FROM ledger WHERE kind IN ('egress', 'storage')"
        " UNION ALL SELECT job, attempt, node, 'egress', -egress_uusd FROM attempts WHERE state = "
        "'ended' AND egress_uusd <> 0"
        " UNION ALL SELECT job, 0, 0, 'storage', -uusd FROM stored)"
        " GROUP BY job, attempt, node, kind HAVING more <> 0",
        e);
    while (query_step(&q)) {
        char *line = mem_printf(
            "job %lld, attempt %lld on node %lld: the ledger has %lld uusd of %s more than its row",
            (long long)sqlite3_column_int64(q.stmt, 0), (long long)sqlite3_column_int64(q.stmt, 1),
            (long long)sqlite3_column_int64(q.stmt, 2), (long long)sqlite3_column_int64(q.stmt, 4),
            (const char *)sqlite3_column_text(q.stmt, 3));
        int answer = fn(ctx, line);
        free(line);
        if (!query_goes_on(&q, answer))
            break;
    }
    return query_finish(&q);
}
