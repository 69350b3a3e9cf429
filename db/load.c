/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery: loads every live row, each kind before the kinds that refer to it. Ended rows stay in
 * the file; because of the *_live indexes they cost nothing here.
 */
#include "db/read_ahead.h"
#include "db/conn.h"
#include "db/query.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/lifecycle/digest.h"

#include "base/str.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/queue/calendars.h"
#include <stdlib.h>

struct loading {
    struct statements *statements;
    struct model *model;
    struct stamp now;
};

static int load_pools(const struct loading *l, struct err *e)
{
    struct pool_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_POOLS, "ORDER BY name", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_pool(l->model, &row, l->now, e)))
        ;
    return query_finish(&q);
}

static int load_offers(const struct loading *l, struct err *e)
{
    struct offer_row row = {.avoid_until = MONO_NONE};
    struct query q;

    query_init(&q, l->statements, TABLE_OFFERS, "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_offer(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_instances(const struct loading *l, struct err *e)
{
    struct instance_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_INSTANCES, "WHERE state <> 'gone' ORDER BY id", e);
    while (
        query_next(&q, &row) && query_goes_on(&q, model_load_instance(l->model, &row, l->now, e)))
        ;
    return query_finish(&q);
}

static int load_nodes(const struct loading *l, struct err *e)
{
    struct node_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_NODES, "WHERE state <> 'gone' ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_node(l->model, &row, l->now, e)))
        ;
    return query_finish(&q);
}

/* Labels of arrays apply to all of their tasks. */
static int load_labels(const struct loading *l, struct err *e)
{
    struct query q;

    query_init_text(&q, l->statements,
        "SELECT j.id, s.labels_json"
        " FROM jobs AS j"
        " JOIN job_label_sets AS o ON o.job = j.id"
        " JOIN label_sets AS s ON s.id = o.labels"
        " WHERE j.state <> 'ended'"
        " ORDER BY j.id",
        e);
    while (query_step(&q))
        if (!query_goes_on(&q, model_load_labels(l->model, sqlite3_column_int64(q.stmt, 0),
                                   (const char *)sqlite3_column_text(q.stmt, 1), e)))
            break;
    return query_finish(&q);
}

static int load_jobs(const struct loading *l, struct err *e)
{
    struct job_row blank = {.queued_mono = MONO_NONE};
    table_clear_rare(&tables[TABLE_JOBS], &blank);
    const struct job_row *row;
    struct read_ahead *a = read_ahead_start(
        l->statements, TABLE_JOBS, "WHERE state <> 'ended' ORDER BY id", &blank, sizeof(blank));
    int rc = 0;

    while (rc == 0 && (row = read_ahead_next(a)) != NULL)
        rc = model_load_job(l->model, row, l->now, e);
    return read_ahead_finish(a, rc, e);
}

static int load_attempts(const struct loading *l, struct err *e)
{
    struct attempt_row row = {0};
    struct query q;

    query_init(
        &q, l->statements, TABLE_ATTEMPTS, "WHERE state <> 'ended' ORDER BY job, attempt, rank", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_attempt(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_accounts(const struct loading *l, struct err *e)
{
    struct account_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_ACCOUNTS, "ORDER BY team, user", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_account(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_budgets(const struct loading *l, struct err *e)
{
    struct budget_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_BUDGETS, "ORDER BY name", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_budget(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_digests(const struct loading *l, struct err *e)
{
    struct digest_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_DIGESTS, "ORDER BY user", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_digest(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_reservations(const struct loading *l, struct err *e)
{
    struct maintenance_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_RESERVATIONS, "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, maintenance_load(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_calendars(const struct loading *l, struct err *e)
{
    struct calendar_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_CALENDARS, "ORDER BY name", e);
    while (query_next(&q, &row)) {
        bool goes_on = query_goes_on(&q, calendar_load(l->model, &row, e));
        free(row.days);
        if (!goes_on)
            break;
    }
    return query_finish(&q);
}

static int load_anomalies(const struct loading *l, struct err *e)
{
    struct anomaly_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_ANOMALIES, "ORDER BY subject, spend_of", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_anomaly(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_stored(const struct loading *l, struct err *e)
{
    struct stored_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_STORED, "WHERE bytes > 0 ORDER BY job", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_stored(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_ckpt_gc(const struct loading *l, struct err *e)
{
    struct ckpt_gc_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_CKPT_GC, "WHERE state <> 'done' ORDER BY job", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_ckpt_gc(l->model, &row, e)))
        ;
    return query_finish(&q);
}

/* Loads what ckpt_gc needs of the rows of its ended jobs. Tasks have the labels of their array.
 * CROSS JOIN makes SQLite begin with the few rows of ckpt_gc, not with all jobs. */
static int load_ckpt_gc_of(const struct loading *l, struct err *e)
{
    struct job_row row = {0};
    struct query q;

    query_init_text(&q, l->statements,
        "SELECT j.id, j.team, j.user, j.name, s.labels_json, j.submitted_at, j.last_good_attempt,"
        " j.last_good_sequence"
        " FROM ckpt_gc AS f"
        " CROSS JOIN jobs AS j ON j.id = f.job"
        " LEFT JOIN job_label_sets AS o"
        " ON o.job = CASE j.array_id WHEN 0 THEN j.id ELSE j.array_id END"
        " LEFT JOIN label_sets AS s ON s.id = o.labels"
        " WHERE f.state <> 'done'"
        " ORDER BY f.job",
        e);
    while (query_step(&q)) {
        row.id = sqlite3_column_int64(q.stmt, 0);
        STR_COPY(row.spec.team, (const char *)sqlite3_column_text(q.stmt, 1));
        STR_COPY(row.user, (const char *)sqlite3_column_text(q.stmt, 2));
        STR_COPY(row.spec.name, (const char *)sqlite3_column_text(q.stmt, 3));
        row.submitted_at.ms = sqlite3_column_int64(q.stmt, 5);
        row.last_good.attempt = sqlite3_column_int64(q.stmt, 6);
        row.last_good.sequence = sqlite3_column_int64(q.stmt, 7);
        if (!query_goes_on(&q, model_load_ckpt_gc_of(l->model, &row,
                                   (const char *)sqlite3_column_text(q.stmt, 4), e)))
            break;
    }
    return query_finish(&q);
}

static int load_constraints(const struct loading *l, struct err *e)
{
    struct constraints_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_CONSTRAINTS,
        "WHERE id IN (SELECT constraints FROM jobs WHERE constraints <> 0 AND state <> 'ended')"
        " ORDER BY id",
        e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_constraints(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_node_failures(const struct loading *l, struct err *e)
{
    struct node_failure_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_NODE_FAILURES, "ORDER BY node, place", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_node_failure(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_outbox(const struct loading *l, struct err *e)
{
    struct outbox_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_OUTBOX, "ORDER BY event, target", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_outbox(l->model, &row, e)))
        ;
    return query_finish(&q);
}

/* Loads passed drills without a later drill of the same script that passed or failed. */
static int load_certificates(const struct loading *l, struct err *e)
{
    struct drill_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_DRILLS,
        "WHERE state = 'passed' AND script_key <> ''"
        " AND NOT EXISTS ("
        "SELECT 1 FROM drills AS d"
        " WHERE d.state IN ('passed', 'failed') AND d.script_key = drills.script_key"
        " AND (d.ended_at, d.job, d.number) > (drills.ended_at, drills.job, drills.number))"
        " ORDER BY job, number",
        e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_certificate(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_arrays(const struct loading *l, struct err *e)
{
    struct array_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_ARRAYS,
        "WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = arrays.job AND jobs.state <> 'ended')"
        " ORDER BY job",
        e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_array(l->model, &row, e)))
        ;
    return query_finish(&q);
}

/* Loads the dependencies of live jobs that are open or can never be satisfied. */
static int load_dependencies(const struct loading *l, struct err *e)
{
    struct dependency_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_DEPENDENCIES,
        "WHERE state IN ('waits', 'never')"
        " AND EXISTS ("
        "SELECT 1 FROM jobs WHERE jobs.id = dependencies.job AND jobs.state <> 'ended')"
        " ORDER BY job, on_job",
        e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_dependency(l->model, &row, e)))
        ;
    return query_finish(&q);
}

/* Loads the ended tasks of arrays with task-by-task dependencies, and of the arrays that these
 * depend on. */
static int load_task_ends(const struct loading *l, struct err *e)
{
    struct query q;

    query_init_text(&q, l->statements,
        "SELECT array_id, array_index, end_kind = 'succeeded'"
        " FROM jobs"
        " WHERE state = 'ended' AND array_id <> 0 AND array_id IN ("
        "SELECT a.id"
        " FROM dependencies AS d, jobs AS a"
        " WHERE d.kind = 'aftercorr' AND a.id IN (d.job, d.on_job) AND a.state <> 'ended')"
        " ORDER BY array_id, array_index",
        e);
    while (query_step(&q)) {
        const struct task_end row = {.array = sqlite3_column_int64(q.stmt, 0),
            .array_index = sqlite3_column_int(q.stmt, 1),
            .succeeded = sqlite3_column_int(q.stmt, 2)};
        if (!query_goes_on(&q, model_load_task_end(l->model, &row, e)))
            break;
    }
    return query_finish(&q);
}

static int load_drills(const struct loading *l, struct err *e)
{
    struct drill_row row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_DRILLS,
        "WHERE state IN ('stopping', 'queued', 'resumed') ORDER BY job", e);
    while (query_next(&q, &row) && query_goes_on(&q, model_load_drill(l->model, &row, e)))
        ;
    return query_finish(&q);
}

static int load_cron_job(const struct loading *l, int64_t id, char **ret_json, struct err *e)
{
    struct cron_job_change row = {0};
    struct query q;

    query_init(&q, l->statements, TABLE_CRON_JOBS, "WHERE cron = ?1", e);
    query_i64(&q, 1, id);
    query_next(&q, &row);
    *ret_json = row.job_json;
    return query_finish(&q);
}

static int load_crons(const struct loading *l, struct err *e)
{
    struct cron_row row = {0};
    struct query q;
    char *json = NULL;

    query_init(&q, l->statements, TABLE_CRONS, "WHERE state <> 'removed' ORDER BY id", e);
    while (query_next(&q, &row)) {
        bool goes_on = query_goes_on(&q, load_cron_job(l, row.id, &json, e)) &&
                       query_goes_on(&q, model_load_cron(l->model, &row, json, l->now, e));
        free(json);
        if (!goes_on)
            break;
    }
    return query_finish(&q);
}

static int load_counters(const struct loading *l, struct err *e)
{
    struct db_meta meta = {0};
    struct query q;
    int rc;

    query_init(&q, l->statements, TABLE_META, "", e);
    query_next(&q, &meta);
    if ((rc = query_finish(&q)) != 0)
        return rc;
    return model_load_end(l->model, &meta.counters, e);
}

int db_load(struct db *d, struct model *m, struct stamp now, struct err *e)
{
    static int (*const steps[])(const struct loading *l, struct err *e) = {
        load_pools,
        load_offers,
        load_instances,
        load_nodes,
        load_node_failures,
        load_certificates,
        load_accounts,
        load_budgets,
        load_reservations,
        load_constraints,
        load_labels,
        load_jobs,
        load_arrays,
        load_dependencies,
        load_task_ends,
        load_attempts,
        load_drills,
        load_ckpt_gc,
        load_ckpt_gc_of,
        load_stored,
        load_outbox,
        load_digests,
        load_calendars,
        load_anomalies,
        load_crons,
        load_counters,
    };
    struct loading l = {.statements = &d->statements, .model = m, .now = now};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i](&l, e) != 0)
            return err_wrap(e, "load the state from %s", d->path);
    return 0;
}
