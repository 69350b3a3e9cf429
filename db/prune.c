/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements of the retention, in the order in which a commit executes them.
 *
 * Invariants.
 *  1. Only ended jobs are deleted, and only those that nothing needs (NEEDED). A machine stays
 *     while an attempt or a row of the ledger names it.
 *  2. The sums of what is deleted are added to deleted_costs and deleted_machine_costs by the same
 *     commit: what is left and what was deleted always add up to cost_sums (audit.c checks it).
 *  3. retention_cuts says up to when rows may be missing, in the commit that deletes the first of
 *     them, so that no reader takes a part for the whole.
 *  4. A commit looks at a limited number of old rows. Where some of them stay, the next commit
 *     continues after them (temp.looked). When all old rows of all kinds were looked at, the next
 *     look starts from the first row again. Each statement finds its rows by an index, so the cost
 *     of a commit is that of the rows it deletes.
 */
#include "db/prune.h"

#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"
#include "db/rollup.h"

#include <inttypes.h>

/* By the age of jobs, in commits that have deleted all old jobs that there were: to find out that
 * there are none takes long, and most commits are full of jobs. */
#define MACHINES PRUNE_KINDS
/* In a commit after which nothing is left to look at. */
#define END_OF_LOOK (PRUNE_KINDS + 1)

/* COUNTS_LOOK: a row if there are more to look at */
enum counted { COUNTS_NOTHING, COUNTS_JOBS, COUNTS_EVENTS, COUNTS_OTHERS, COUNTS_LOOK };

/* clang-format would break SQL that is composed from macros into single words. */
/* clang-format off */

/* Parameters: ?1 what is older goes (ms; of sums a day), ?2 the most rows, ?3 now, ?4 the age, ?5
 * the most jobs. */
#define DOOMED " IN (SELECT id FROM temp.doomed)"
#define OF_JOB \
    " LEFT JOIN job_label_sets s ON s.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END" \
    " LEFT JOIN job_labels t ON t.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END" \
    " AND t.name = 'team'"
#define ADD_SUMS \
    " ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, node_ms = node_ms + excluded.node_ms," \
    " uusd = uusd + excluded.uusd, on_demand_uusd = on_demand_uusd + excluded.on_demand_uusd," \
    " ended = ended + excluded.ended, succeeded = succeeded + excluded.succeeded"

/* What keeps an ended job j. */
#define NEEDED_BY_LIVE_JOB \
    " EXISTS (SELECT 1 FROM dependencies d JOIN jobs k ON k.id = d.job" \
    " WHERE d.on_job IN (j.id, nullif(j.array_id, 0)) AND k.state <> 'ended')"
#define NEEDED_BY_ARRAY \
    " EXISTS (SELECT 1 FROM jobs a WHERE a.id = nullif(j.array_id, 0)" \
    " AND (a.state <> 'ended' OR a.ended_at >= ?1))" \
    " OR EXISTS (SELECT 1 FROM jobs a WHERE a.array_id = j.id AND a.array_id <> 0)"
#define NEEDED_FOR_CHECKPOINTS \
    " EXISTS (SELECT 1 FROM ckpt_gc g WHERE g.job = j.id AND g.state <> 'done')" \
    " OR EXISTS (SELECT 1 FROM stored o WHERE o.job = j.id AND o.bytes > 0)" \
    " OR EXISTS (SELECT 1 FROM ledger l WHERE l.job = j.id AND l.to_at >= ?1)"
#define NEEDED_BY_OTHERS \
    " j.id IN (SELECT last_job FROM crons WHERE state <> 'removed')" \
    " OR j.id IN (SELECT job FROM outbox)"

/* Rows to look at, by their age and number, and how far a look has come. */
#define AFTER(table) \
    "(ifnull((SELECT at FROM temp.looked WHERE what = '" table "'), -9223372036854775808)," \
    " ifnull((SELECT id FROM temp.looked WHERE what = '" table "'), 0))"
#define NEXT(table, state, at, and) \
    "(SELECT id, " at " AS at FROM " table " WHERE state = '" state "' AND " at " < ?1" and \
    " AND (" at ", id) > " AFTER(table) " ORDER BY " at ", id LIMIT ?2)"
/* By number, because jobs with numbers near each other have their rows on the same pages. */
#define NEXT_JOBS NEXT("jobs", "ended", "ended_at", "")
#define NEXT_JOBS_BY_ID "(SELECT id FROM " NEXT_JOBS " ORDER BY id)"
/* Without INDEXED BY SQLite takes ledger_job, and reads all rows of no job. */
#define LEDGER_OF_NO_JOB "ledger INDEXED BY ledger_no_job WHERE to_at < ?1 AND job = 0"
/* Machines go after the ledger of no job that names them. */
#define AND_IS_PAID " AND NOT EXISTS (SELECT 1 FROM " LEDGER_OF_NO_JOB ")"
#define NEXT_NODES NEXT("nodes", "gone", "gone_at", AND_IS_PAID)
#define NEXT_INSTANCES NEXT("instances", "gone", "ended_at", AND_IS_PAID)
#define NEXT_HISTORY \
    "(SELECT id, at, job FROM history WHERE id > ifnull((SELECT id FROM temp.looked" \
    " WHERE what = 'history'), 0) ORDER BY id LIMIT ?2)"
/* The last of as many rows as a commit looks at; none if there are fewer. */
#define LAST_OF(next) "SELECT at, id FROM " next " LIMIT 1 OFFSET ?2 - 1"
#define LOOKED(table, kind, last) \
    {"looked", kind, COUNTS_LOOK, \
        "REPLACE INTO temp.looked SELECT '" table "', at, id FROM (" last ")"}

/* Adds the ledger rows of temp.doomed_rows to the sums, and deletes them. */
#define FOLD_LEDGER(kind) \
    {"retention_cuts", kind, COUNTS_NOTHING, \
        "INSERT INTO retention_cuts SELECT 'ledger', max(to_at) FROM ledger" \
        " WHERE rowid IN (SELECT id FROM temp.doomed_rows) HAVING max(to_at) IS NOT NULL" \
        " ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"}, \
    {"deleted_costs", kind, COUNTS_NOTHING, \
        "INSERT INTO deleted_costs" \
        " SELECT ifnull(s.labels, 0), '', ifnull(j.user, ''), coalesce(n.pool, i.pool, '')," \
        " coalesce(n.market, i.market, ''), l.kind, sum(l.ms), sum(l.node_ms), sum(l.uusd)," \
        " sum(l.on_demand_uusd), 0, 0" \
        " FROM temp.doomed_rows w JOIN ledger l ON l.rowid = w.id" \
        " LEFT JOIN jobs j ON j.id = l.job" OF_JOB \
        " LEFT JOIN nodes n ON n.id = l.node LEFT JOIN instances i ON i.id = l.instance" \
        " WHERE true GROUP BY 1, 2, 3, 4, 5, 6" ADD_SUMS}, \
    {"deleted_machine_costs", kind, COUNTS_NOTHING, \
        "INSERT INTO deleted_machine_costs" \
        " SELECT node, instance, sum((kind <> 'egress') * uusd)," \
        " sum((kind <> 'egress' AND job <> 0) * uusd), sum(node_ms)" \
        " FROM ledger WHERE rowid IN (SELECT id FROM temp.doomed_rows)" \
        " AND (node <> 0 OR instance <> 0) GROUP BY 1, 2" \
        " ON CONFLICT DO UPDATE SET uusd = uusd + excluded.uusd," \
        " attempts_uusd = attempts_uusd + excluded.attempts_uusd," \
        " node_ms = node_ms + excluded.node_ms"}, \
    {"ledger", kind, COUNTS_OTHERS, \
        "DELETE FROM ledger WHERE rowid IN (SELECT id FROM temp.doomed_rows)"}
#define SUM "span, detail, since, labels, team, user, pool, type, market, kind"
#define DELETE_DAYS(detail) \
    "DELETE FROM cost_sums WHERE (" SUM ") IN (SELECT " SUM " FROM cost_sums" \
    " WHERE span = 1 AND detail = " detail " AND since < ?1 LIMIT ?2)"
#define DELETE_OF_JOBS(table, column) \
    {table, PRUNE_JOBS, COUNTS_NOTHING, "DELETE FROM " table " WHERE " column DOOMED}

static const struct {
    const char *what; /* the table */
    enum prune_kind kind;
    enum counted counts;
    const char *text;
} statements[] = {
    /* ---- jobs ---- */
    {"doomed", PRUNE_JOBS, COUNTS_NOTHING, "DELETE FROM temp.doomed"},
    {"doomed", PRUNE_JOBS, COUNTS_JOBS,
        "INSERT INTO temp.doomed SELECT j.id FROM " NEXT_JOBS_BY_ID " w"
        " CROSS JOIN jobs j ON j.id = w.id"
        " WHERE j.state = 'ended' AND j.ended_at < ?1"
        " AND NOT (" NEEDED_BY_LIVE_JOB ")"
        " AND NOT (" NEEDED_BY_ARRAY ")"
        " AND NOT (" NEEDED_FOR_CHECKPOINTS ")"
        " AND NOT (" NEEDED_BY_OTHERS ")"
        " LIMIT ?5"},
    /* at the same rows again while more of them may go */
    LOOKED("jobs", PRUNE_JOBS,
        "SELECT * FROM (" LAST_OF(NEXT_JOBS) ") WHERE (SELECT count(*) FROM temp.doomed) < ?5"),
    {"doomed_rows", PRUNE_JOBS, COUNTS_NOTHING, "DELETE FROM temp.doomed_rows"},
    {"doomed_rows", PRUNE_JOBS, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_rows SELECT l.rowid FROM temp.doomed w"
        " CROSS JOIN ledger l ON l.job = w.id"},
    FOLD_LEDGER(PRUNE_JOBS),
    {"deleted_costs", PRUNE_JOBS, COUNTS_NOTHING,
        "INSERT INTO deleted_costs"
        " SELECT ifnull(s.labels, 0), ifnull(t.value, j.team), j.user, '', '', '', 0, 0, 0, 0,"
        " count(*), sum(j.end_kind = 'succeeded')"
        " FROM temp.doomed w CROSS JOIN jobs j ON j.id = w.id" OF_JOB
        " WHERE NOT EXISTS (SELECT 1 FROM arrays WHERE job = j.id) GROUP BY 1, 2, 3" ADD_SUMS},
    {"constraints", PRUNE_JOBS, COUNTS_NOTHING,
        "DELETE FROM constraints WHERE id IN (SELECT constraints FROM jobs WHERE id" DOOMED
        " AND constraints <> 0) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.constraints <> 0"
        " AND j.constraints = constraints.id AND j.id NOT" DOOMED ")"},
    DELETE_OF_JOBS("job_specs", "job"),
    DELETE_OF_JOBS("job_documents", "job"),
    DELETE_OF_JOBS("job_labels", "job"),
    DELETE_OF_JOBS("job_label_sets", "job"),
    DELETE_OF_JOBS("job_workdirs", "job"),
    DELETE_OF_JOBS("arrays", "job"),
    DELETE_OF_JOBS("dependencies", "job"),
    DELETE_OF_JOBS("attempts", "job"),
    DELETE_OF_JOBS("checkpoints", "job"),
    DELETE_OF_JOBS("stored", "job"),
    DELETE_OF_JOBS("ckpt_gc", "job"),
    DELETE_OF_JOBS("task_loads", "job"),
    DELETE_OF_JOBS("gpu_loads", "job"),
    DELETE_OF_JOBS("history", "job"),
    /* The newest result of a script is a certificate for its later jobs. */
    {"drills", PRUNE_JOBS, COUNTS_NOTHING,
        "DELETE FROM drills WHERE job" DOOMED " AND (script_key = ''"
        " OR state NOT IN ('passed', 'failed') OR EXISTS (SELECT 1 FROM drills d"
        " WHERE d.state IN ('passed', 'failed') AND d.script_key = drills.script_key"
        " AND (d.ended_at, d.job, d.number) > (drills.ended_at, drills.job, drills.number)))"},
    DELETE_OF_JOBS("jobs", "id"),
    /* Ranges of numbers without a gap, joined with those of the same day next to them. */
    {"doomed_ranges", PRUNE_JOBS, COUNTS_NOTHING, "DELETE FROM temp.doomed_ranges"},
    {"doomed_ranges", PRUNE_JOBS, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_ranges SELECT min(id), max(id), ?3, ?4 FROM"
        " (SELECT id, id - row_number() OVER (ORDER BY id) AS run FROM temp.doomed)"
        " GROUP BY run"},
    {"doomed_ranges", PRUNE_JOBS, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_ranges SELECT * FROM deleted_jobs WHERE"
        " first IN (SELECT last + 1 FROM temp.doomed_ranges UNION ALL"
        " SELECT (SELECT max(b.first) FROM deleted_jobs b WHERE b.first < w.first)"
        " FROM temp.doomed_ranges w) AND at >= ?3 / 86400000 * 86400000"
        " AND (first - 1 IN (SELECT last FROM temp.doomed_ranges)"
        " OR last + 1 IN (SELECT first FROM temp.doomed_ranges))"},
    {"deleted_jobs", PRUNE_JOBS, COUNTS_NOTHING,
        "DELETE FROM deleted_jobs WHERE first IN (SELECT first FROM temp.doomed_ranges)"},
    {"deleted_jobs", PRUNE_JOBS, COUNTS_NOTHING,
        "INSERT INTO deleted_jobs SELECT min(first), max(last), max(at), max(age_ms)"
        " FROM (SELECT *, sum(begins) OVER (ORDER BY first) AS run FROM"
        " (SELECT *, first <> 1 + lag(last, 1, -1) OVER (ORDER BY first) AS begins"
        " FROM temp.doomed_ranges)) GROUP BY run"},
    /* ---- the ledger of no job, and machines that nothing names any more ---- */
    {"doomed_rows", MACHINES, COUNTS_NOTHING, "DELETE FROM temp.doomed_rows"},
    {"doomed_rows", MACHINES, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_rows SELECT rowid FROM " LEDGER_OF_NO_JOB
        " ORDER BY to_at LIMIT ?2"},
    FOLD_LEDGER(MACHINES),
    {"doomed_rows", MACHINES, COUNTS_NOTHING, "DELETE FROM temp.doomed_rows"},
    {"doomed_rows", MACHINES, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_rows SELECT id FROM " NEXT_NODES " w"
        " WHERE NOT EXISTS (SELECT 1 FROM attempts WHERE node = w.id)"},
    LOOKED("nodes", MACHINES, LAST_OF(NEXT_NODES)),
    {"retention_cuts", MACHINES, COUNTS_NOTHING,
        "INSERT INTO retention_cuts SELECT 'ledger', max(gone_at) FROM nodes"
        " WHERE id IN (SELECT id FROM temp.doomed_rows) HAVING max(gone_at) IS NOT NULL"
        " ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"},
    {"deleted_machine_costs", MACHINES, COUNTS_NOTHING,
        "DELETE FROM deleted_machine_costs WHERE node IN (SELECT id FROM temp.doomed_rows)"
        " AND instance = 0"},
    {"nodes", MACHINES, COUNTS_OTHERS,
        "DELETE FROM nodes WHERE id IN (SELECT id FROM temp.doomed_rows)"},
    {"doomed_rows", MACHINES, COUNTS_NOTHING, "DELETE FROM temp.doomed_rows"},
    {"doomed_rows", MACHINES, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_rows SELECT w.id FROM " NEXT_INSTANCES " w"
        " CROSS JOIN instances i ON i.id = w.id"
        " WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = nullif(i.node, 0))"},
    LOOKED("instances", MACHINES, LAST_OF(NEXT_INSTANCES)),
    {"deleted_machine_costs", MACHINES, COUNTS_NOTHING,
        "DELETE FROM deleted_machine_costs WHERE instance IN (SELECT id FROM temp.doomed_rows)"},
    {"instances", MACHINES, COUNTS_OTHERS,
        "DELETE FROM instances WHERE id IN (SELECT id FROM temp.doomed_rows)"},
    {"cron_runs", MACHINES, COUNTS_OTHERS,
        "DELETE FROM cron_runs WHERE (cron, number) IN (SELECT r.cron, r.number FROM cron_runs r"
        " WHERE r.decided_at < ?1 AND r.number <"
        " (SELECT max(m.number) FROM cron_runs m WHERE m.cron = r.cron) LIMIT ?2)"},
    {"tokens", MACHINES, COUNTS_OTHERS,
        "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE expires_at < ?1 LIMIT ?2)"},
    /* ---- others ---- */
    {"doomed_rows", PRUNE_EVENTS, COUNTS_NOTHING, "DELETE FROM temp.doomed_rows"},
    {"doomed_rows", PRUNE_EVENTS, COUNTS_NOTHING,
        "INSERT INTO temp.doomed_rows SELECT id FROM " NEXT_HISTORY " w WHERE at < ?1 AND"
        " NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = w.job AND state <> 'ended')"},
    LOOKED("history", PRUNE_EVENTS, "SELECT * FROM (" LAST_OF(NEXT_HISTORY) ") WHERE at < ?1"),
    {"history", PRUNE_EVENTS, COUNTS_EVENTS,
        "DELETE FROM history WHERE id IN (SELECT id FROM temp.doomed_rows)"},
    {"retention_cuts", PRUNE_DAYS, COUNTS_NOTHING,
        "INSERT INTO retention_cuts SELECT 'days', ?1 * 86400000 WHERE EXISTS"
        " (SELECT 1 FROM cost_sums WHERE span = 1 AND detail IN (3, 7) AND since < ?1)"
        " ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"},
    {"cost_sums", PRUNE_DAYS, COUNTS_OTHERS, DELETE_DAYS("3")},
    {"cost_sums", PRUNE_DAYS, COUNTS_OTHERS, DELETE_DAYS("7")},
    {"looked", END_OF_LOOK, COUNTS_NOTHING, "DELETE FROM temp.looked"},
};
/* clang-format on */

#define N_STATEMENTS ((int)(sizeof(statements) / sizeof(statements[0])))
_Static_assert(sizeof(statements) / sizeof(statements[0]) <= PRUNE_STATEMENTS_MAX, "all fit");

int prune_prepare(struct pruner *p, sqlite3 *sql, struct err *e)
{
    int rc = sql_exec(sql,
        "CREATE TEMP TABLE doomed (id INTEGER PRIMARY KEY);"
        "CREATE TEMP TABLE doomed_rows (id INTEGER PRIMARY KEY);"
        "CREATE TEMP TABLE doomed_ranges"
        " (first INTEGER PRIMARY KEY, last INTEGER, at INTEGER, age_ms INTEGER);"
        "CREATE TEMP TABLE looked (what TEXT PRIMARY KEY, at INTEGER, id INTEGER)",
        e);
    for (int k = 0; k < N_STATEMENTS && rc == 0; k++)
        rc = sql_prepare(sql, statements[k].text, &p->statements[k], e);
    return rc;
}

void prune_deinit(struct pruner *p)
{
    for (int k = 0; k < N_STATEMENTS; k++)
        sqlite3_finalize(p->statements[k]);
}

void prune_begin(struct pruner *p)
{
    p->at = -1;
    p->now = (struct pruned){0};
}

/* The statement before was executed: counts its rows. */
static void count(struct pruner *p, int64_t n)
{
    switch (statements[p->at].counts) {
    case COUNTS_NOTHING:
        return;
    case COUNTS_JOBS:
        p->now.jobs += n;
        p->now.is_more = p->now.is_more || n >= PRUNE_JOBS_MAX;
        return;
    case COUNTS_EVENTS:
        p->now.events += n;
        break;
    case COUNTS_OTHERS:
        p->now.other_rows += n;
        break;
    case COUNTS_LOOK:
        p->now.is_more = p->now.is_more || n > 0;
        return;
    }
    p->now.is_more = p->now.is_more || n >= PRUNE_ROWS_MAX;
}

sqlite3_stmt *prune_next(
    struct pruner *p, sqlite3 *sql, const struct prune *ask, const char **ret_what)
{
    if (p->at >= 0)
        count(p, sqlite3_changes(sql));
    while (++p->at < N_STATEMENTS) {
        sqlite3_stmt *s = p->statements[p->at];
        enum prune_kind kind = statements[p->at].kind;
        if (kind == MACHINES && p->now.jobs >= PRUNE_JOBS_MAX)
            continue; /* is_more is set: a later commit does it */
        if (kind == END_OF_LOOK && p->now.is_more)
            continue;
        if (kind >= PRUNE_KINDS)
            kind = PRUNE_JOBS;
        int64_t age_ms = ask->age_ms[kind], before_ms = ask->now.ms - age_ms;
        if (age_ms <= 0 && statements[p->at].kind != END_OF_LOOK)
            continue;
        sqlite3_bind_int64(
            s, 1, kind == PRUNE_DAYS ? rollup_month(rollup_day(before_ms)) : before_ms);
        sqlite3_bind_int64(s, 2, PRUNE_ROWS_MAX);
        sqlite3_bind_int64(s, 3, ask->now.ms);
        sqlite3_bind_int64(s, 4, age_ms);
        sqlite3_bind_int64(s, 5, PRUNE_JOBS_MAX);
        *ret_what = statements[p->at].what;
        return s;
    }
    return NULL;
}

void db_get_pruned(const struct db *d, struct pruned *ret_pruned)
{
    *ret_pruned = d->pruner.now;
}

/* ---- what was deleted ---- */

int prune_read_deleted(struct db_reader *r, int64_t job, bool *ret_was, struct wall *ret_at,
    int64_t *ret_age_ms, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT at, age_ms, last FROM deleted_jobs WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
        e);
    query_i64(&q, 1, job);
    *ret_was = query_step(&q) && sqlite3_column_int64(q.stmt, 2) >= job;
    if (*ret_was) {
        ret_at->ms = sqlite3_column_int64(q.stmt, 0);
        *ret_age_ms = sqlite3_column_int64(q.stmt, 1);
    }
    return query_finish(&q);
}

void prune_explain(struct db_reader *r, int64_t job, struct err *e)
{
    struct wall at;
    int64_t age_ms;
    bool was;
    char iso[TIME_ISO_MAX];
    if (prune_read_deleted(r, job, &was, &at, &age_ms, NULL) != 0 || !was)
        return;
    time_format_iso(at, iso);
    err_set(e, ERR_NOT_FOUND,
        "job %" PRId64 " was deleted on %.10s: jobs are deleted %" PRId64
        " days after their end (retention of belayd's configuration)",
        job, iso, (int64_t)((age_ms + DAY_MS - 1) / DAY_MS));
}

int prune_read_cut(struct db_reader *r, enum prune_cut cut, struct wall *ret_at, struct err *e)
{
    static const char *const names[] = {[CUT_LEDGER] = "ledger", [CUT_DAYS] = "days"};
    struct query q;
    query_init_text(&q, r->statements, "SELECT at FROM retention_cuts WHERE what = ?1", e);
    query_text(&q, 1, names[cut]);
    *ret_at = WALL_NONE;
    if (query_step(&q))
        ret_at->ms = sqlite3_column_int64(q.stmt, 0);
    return query_finish(&q);
}

int prune_check_cut(struct db_reader *r, enum prune_cut cut, struct wall from, const char *what,
    const char *instead, struct err *e)
{
    struct wall at;
    char iso[TIME_ISO_MAX];
    int rc = prune_read_cut(r, cut, &at, e);
    if (rc != 0 || !wall_is_set(at) || (wall_is_set(from) && from.ms >= at.ms))
        return rc;
    /* the first midnight from which on all are there */
    at.ms = (at.ms + DAY_MS - 1) / DAY_MS * DAY_MS;
    time_format_iso(at, iso);
    return err_set(e, ERR_INVALID,
        "%s before %.10s were deleted (retention of belayd's configuration): begin at that day or "
        "later%s",
        what, iso, instead);
}
