/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the sums that rollup.c keeps. Whole months of the period are read from the sums by month
 * unless days or weeks are requested; the days before and after them from the sums by day. Labels,
 * and in months people and machines, are read separately only if a key needs them.
 */
#include "db/cost_sums.h"

#include "base/str.h"
#include "db/prune.h"
#include "db/query.h"
#include "db/reader.h"
#include "db/rollup.h"

#include <string.h>

/* What a key needs besides its detail (DETAIL_...): FROM_DAY: sums by day; FROM_LEDGER: counts of
 * jobs are unknown. */
enum { FROM_DAY = 8, FROM_LEDGER = 16 };

static const struct key {
    const char *by, *column;    /* the column by which rows are grouped first, */
    const char *before, *after; /* and the expression around it once there are few rows */
    int needs;
    const char *idle; /* in place of the column, for idle time of owned machines; may be NULL */
} known_keys[] = {
    {"user", "user", "", "", DETAIL_PEOPLE, "'" COST_IDLE_OWNED "'"},
    {"team", "team", "", "", DETAIL_PEOPLE, "'" COST_IDLE_OWNED "'"},
    {"pool", "pool", "", "", DETAIL_MACHINES | FROM_LEDGER},
    {"type", "type", "", "", DETAIL_MACHINES | FROM_LEDGER},
    {"market", "market", "", "", DETAIL_MACHINES | FROM_LEDGER},
    {"kind", "kind", "", "", FROM_LEDGER},
    {"day", "since", "strftime('%Y-%m-%d', ", " * 86400, 'unixepoch')", FROM_DAY},
    /* its Monday */
    {"week", "since - (since + 3) % 7", "strftime('%Y-%m-%d', ", " * 86400, 'unixepoch')",
        FROM_DAY},
    {"month", "since", "strftime('%Y-%m', ", " * 86400, 'unixepoch')", 0},
};
/* Its name is a parameter, after the others: ?11 for the first key. */
static const struct key label_key = {"label", "labels",
    "ifnull((SELECT json_extract(labels_json, '$.\"' || ?",
    " || '\"') FROM label_sets WHERE id = ", DETAIL_LABELS, "-1"};

#define FIRST_LABEL 11 /* the parameter */

struct keys {
    const struct key *of[COST_KEYS_MAX];
    char labels[COST_KEYS_MAX][CORE_NAME_MAX]; /* the names for label_key */
    int n, needs;
};

static bool read_key(const char *word, const struct key **ret_key, char label[CORE_NAME_MAX])
{
    const char *name = str_eq(word, "project")      ? word
                       : str_starts(word, "label:") ? word + 6
                                                    : NULL;
    if (name) {
        *ret_key = &label_key;
        str_copy(label, CORE_NAME_MAX, name);
        return str_is_name(name, CORE_NAME_MAX - 1);
    }
    for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++)
        if (str_eq(word, known_keys[i].by)) {
            *ret_key = &known_keys[i];
            return true;
        }
    return false;
}

#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

static int read_keys(const char *by, struct keys *ret_keys, struct err *e)
{
    char copy[COST_BY_MAX], *rest = copy;
    struct keys k = {0};
    STR_COPY(copy, by);
    int n = 1;
    for (const char *p = by; *p; p++)
        n += *p == ',';
    if (n > COST_KEYS_MAX)
        return err_set(e, ERR_INVALID, "cost by %d keys: at most %d at once", n, COST_KEYS_MAX);
    if (strlen(by) >= sizeof copy)
        return err_set(
            e, ERR_INVALID, "cost by %s: it is longer than %zu bytes", SHOWN(by), sizeof copy - 1);
    for (const char *word; (word = strsep(&rest, ",")) != NULL; k.n++) {
        if (!read_key(word, &k.of[k.n], k.labels[k.n]))
            return err_set(e, ERR_INVALID,
                "cost by %s: it must be job, or some of user, team, project, pool, type, "
                "market, kind, day, week, month and label:NAME, "
                "separated by commas",
                SHOWN(word));
        k.needs |= k.of[k.n]->needs;
    }
    *ret_keys = k;
    return 0;
}

int db_cost_keys(const char *by, bool *ret_jobs_known, struct err *e)
{
    struct keys k;
    int rc = read_keys(by, &k, e);
    if (rc != 0)
        return rc;
    *ret_jobs_known = (k.needs & FROM_LEDGER) == 0;
    return k.n;
}

/* ---- the statement ---- */

#define SUM_OF(kind, what) ", sum(CASE kind WHEN '" kind "' THEN " what " ELSE 0 END)"

/* Groups the rows: few enough that texts of days and labels are computed only once each. */
static void add_rows(const struct keys *k, struct buf *out)
{
    buf_printf(out, "WITH c AS MATERIALIZED (SELECT ");
    bool has_idle = false; /* a key that tells idle time of owned machines apart */
    for (int i = 0; i < k->n; i++) {
        const struct key *of = k->of[i];
        if (!has_idle && of->idle)
            buf_printf(out, "iif(kind = 'idle' AND market = 'owned', %s, %s) AS k%d, ", of->idle,
                of->column, i);
        else
            buf_printf(out, "%s AS k%d, ", of->column, i);
        has_idle = has_idle || of->idle;
    }
    buf_printf(out, "kind, sum(ms) AS ms, sum(uusd) AS uusd, sum(on_demand_uusd) AS od, sum(ended) "
                    "AS ended, sum(succeeded) AS succeeded"
                    " FROM (SELECT 31 AS span, ?1 AS detail, ?2 AS a, ?3 AS b UNION ALL SELECT 1, "
                    "?1 | 3, ?4, ?5 UNION ALL SELECT 1, ?1 | 3, ?6, ?7) v"
                    " CROSS JOIN cost_sums s WHERE s.span = v.span AND s.detail = v.detail AND "
                    "s.since >= v.a AND s.since < v.b AND (?8 IS NULL OR user = ?8)"
                    " AND (?9 IS NULL OR team = ?9) AND (?10 IS NULL OR pool = ?10) GROUP BY kind");
    for (int i = 0; i < k->n; i++)
        buf_printf(out, ", k%d", i);
    buf_printf(out, ")");
}

static void add_text(const struct keys *k, int i, struct buf *out)
{
    const struct key *of = k->of[i];
    if (of == &label_key)
        buf_printf(out, "iif(k%d = -1, '" COST_IDLE_OWNED "', %s%d%sk%d), ''))", i, of->before,
            FIRST_LABEL + i, of->after, i);
    else
        buf_printf(out, "%sk%d%s", of->before, i, of->after);
}

static void add_statement(const struct keys *k, struct buf *out)
{
    add_rows(k, out);
    buf_printf(out,
        " SELECT sum(ended), sum(succeeded), sum(uusd), sum(od)" SUM_OF("useful", "ms")
            SUM_OF("lost", "ms") ", sum(ms)" SUM_OF("useful", "uusd") SUM_OF("lost", "uusd")
                SUM_OF("boot", "uusd") SUM_OF("start", "uusd") SUM_OF("restore", "uusd")
                    SUM_OF("save", "uusd") SUM_OF("gang-wait", "uusd") SUM_OF("idle", "uusd")
                        SUM_OF("egress", "uusd") SUM_OF("storage", "uusd"));
    for (int i = 0; i < k->n; i++) {
        buf_printf(out, ", ");
        add_text(k, i, out);
        buf_printf(out, " AS key%d", i);
    }
    buf_printf(out, " FROM c GROUP BY key0");
    for (int i = 1; i < k->n; i++)
        buf_printf(out, ", key%d", i);
    buf_printf(out, " ORDER BY key0");
    for (int i = 1; i < k->n; i++)
        buf_printf(out, ", key%d", i);
}

/* The whole months of the period, and the days before and after them: from, to of each. */
struct parts {
    int64_t months[2], before[2], after[2];
};

static struct parts parts_of(const struct cost_query *c, bool by_day)
{
    int64_t from = wall_is_set(c->from) ? rollup_day(c->from.ms) : 0,
            to = wall_is_set(c->to) ? rollup_day(c->to.ms + DAY_MS - 1) : rollup_day(INT64_MAX) + 1;
    int64_t first = rollup_month(from) == from ? from : rollup_next_month(from),
            last = wall_is_set(c->to) ? rollup_month(to) : to;
    if (by_day || first >= last)
        first = last = to;
    return (struct parts){{first, last}, {from, first}, {last, to}};
}

static void bind_parts(struct query *q, const struct parts *p)
{
    const int64_t *const parts[] = {p->months, p->before, p->after};
    for (int i = 0; i < 6; i++)
        query_i64(q, 2 + i, parts[i / 2][i % 2]);
}

/* Refuses days whose sums were deleted. */
static int check_days(struct db_reader *r, const struct parts *p, struct err *e)
{
    int rc = 0;
    if (p->before[0] < p->before[1])
        rc = prune_check_cut(r, CUT_DAYS, (struct wall){p->before[0] * DAY_MS}, "the sums by day",
            ", or ask for whole months", e);
    if (rc == 0 && p->after[0] < p->after[1])
        rc = prune_check_cut(r, CUT_DAYS, (struct wall){p->after[0] * DAY_MS}, "the sums by day",
            ", or ask for whole months", e);
    return rc;
}

static int read_line(sqlite3_stmt *s, int n_keys, db_cost_sum_fn fn, void *ctx)
{
    const char *keys[COST_KEYS_MAX];
    struct cost_sum line = {.jobs = sqlite3_column_int64(s, 0),
        .succeeded = sqlite3_column_int64(s, 1),
        .uusd = sqlite3_column_int64(s, 2),
        .on_demand_uusd = sqlite3_column_int64(s, 3),
        .useful_ms = sqlite3_column_int64(s, 4),
        .lost_ms = sqlite3_column_int64(s, 5),
        .total_ms = sqlite3_column_int64(s, 6)};
    for (int i = 0; i < LEDGER_KINDS; i++)
        line.spent_uusd[i] = sqlite3_column_int64(s, 7 + i);
    for (int i = 0; i < n_keys; i++)
        keys[i] = (const char *)sqlite3_column_text(s, 7 + LEDGER_KINDS + i);
    return fn(ctx, keys, &line);
}

int db_read_cost_sums(
    struct db_reader *r, const struct cost_query *c, db_cost_sum_fn fn, void *ctx, struct err *e)
{
    struct buf text = {0};
    struct query q;
    struct keys k;
    int rc = read_keys(c->by, &k, e);
    if (rc != 0)
        return rc;
    const struct parts parts = parts_of(c, (k.needs & FROM_DAY) != 0);
    if ((rc = check_days(r, &parts, e)) != 0)
        return rc;
    add_statement(&k, &text);
    query_init_text(&q, r->statements, buf_str(&text), e);
    buf_deinit(&text);
    int detail = (k.needs & DETAIL_LABELS) | (c->user || c->team ? DETAIL_PEOPLE : 0) |
                 (c->pool ? DETAIL_MACHINES : 0);
    query_i64(&q, 1, detail ? detail : DETAIL_MACHINES); /* by months and kinds: the smallest set */
    bind_parts(&q, &parts);
    const char *const only[] = {c->user, c->team, c->pool};
    for (int i = 0; i < 3; i++)
        if (only[i])
            query_text(&q, 8 + i, only[i]);
    for (int i = 0; i < k.n; i++)
        if (k.of[i] == &label_key)
            query_text(&q, FIRST_LABEL + i, k.labels[i]);
    while (query_step(&q) && query_goes_on(&q, read_line(q.stmt, k.n, fn, ctx)))
        ;
    return query_finish(&q);
}

/* ---- jobs ---- */

int db_read_costliest_jobs(struct db_reader *r, const struct cost_query *c, int32_t limit,
    db_costly_job_fn fn, void *ctx, struct err *e)
{
    struct query q;
    int rc = query_check_limit(limit, e);
    if (rc != 0)
        return rc;
    query_init_text(&q, r->statements,
        "SELECT j.id, j.name, j.user, ifnull(t.value, j.team) AS charged, j.end_kind, j.cost_uusd, "
        "j.on_demand_uusd, j.lost_ms, j.reclaims, j.ended_at, j.array_id, j.array_index"
        " FROM jobs j LEFT JOIN job_labels t ON t.job = CASE j.array_id WHEN 0 THEN j.id ELSE "
        "j.array_id END AND t.name = 'team'"
        " WHERE j.state = 'ended' AND j.ended_at >= ?1 AND j.ended_at < ?2 AND (?3 IS NULL OR "
        "j.user = ?3) AND (?4 IS NULL OR charged = ?4)"
        " ORDER BY j.cost_uusd DESC, j.id LIMIT ?5",
        e);
    query_i64(&q, 1, wall_is_set(c->from) ? c->from.ms : INT64_MIN);
    query_i64(&q, 2, wall_is_set(c->to) ? c->to.ms : INT64_MAX);
    if (c->user)
        query_text(&q, 3, c->user);
    if (c->team)
        query_text(&q, 4, c->team);
    query_i64(&q, 5, limit);
    while (query_step(&q)) {
        const struct job_row named = {.id = sqlite3_column_int64(q.stmt, 0),
            .array = sqlite3_column_int64(q.stmt, 10),
            .array_index = sqlite3_column_int(q.stmt, 11)};
        struct costly_job job = {.id = named.id,
            .ref = job_ref(&named),
            .name = (const char *)sqlite3_column_text(q.stmt, 1),
            .user = (const char *)sqlite3_column_text(q.stmt, 2),
            .team = (const char *)sqlite3_column_text(q.stmt, 3),
            .end = (const char *)sqlite3_column_text(q.stmt, 4),
            .uusd = sqlite3_column_int64(q.stmt, 5),
            .on_demand_uusd = sqlite3_column_int64(q.stmt, 6),
            .lost_ms = sqlite3_column_int64(q.stmt, 7),
            .reclaims = sqlite3_column_int64(q.stmt, 8),
            .ended_at = {sqlite3_column_int64(q.stmt, 9)}};
        if (!query_goes_on(&q, fn(ctx, &job)))
            break;
    }
    return query_finish(&q);
}
