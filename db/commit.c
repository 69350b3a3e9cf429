/* SPDX-License-Identifier: Apache-2.0
 *
 * One tick's changes, in one transaction, with statements prepared when the database was opened.
 *
 * Only what has certainly rolled back may be answered with ERR_NO_SPACE:
 *
 *   failure                                        on disk?   kind, if the disk was full
 *   1. before COMMIT                               no         ERR_NO_SPACE
 *   2. in COMMIT, a *write*                        no         ERR_NO_SPACE
 *   3. in COMMIT, fsync, or growing the index      perhaps    ERR_IO
 *
 * In 1 no frame in the log carries the commit mark yet. In 2 the mark is incomplete, as SQLite
 * marks the last frame that it writes (its checksum shows this after a crash too). In 3 the mark
 * may be on disk: SQLite grows the shared index after that. In all cases the transaction must be
 * closed afterwards; if SQLite cannot confirm that, the outcome is uncertain and the kind ERR_IO.
 */
#include "db/conn.h"
#include "db/rollup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct failure {
    int code;   /* SQLite's code; SQLITE_OK = none */
    int errnum; /* errno of the step: SQLite keeps none for a COMMIT */
    const char *what;
};

void db_fail_at(struct db *d, int64_t n, int sqlite_code)
{
    d->fail_in = n;
    d->fail_code = sqlite_code;
}

static bool step(struct db *d, sqlite3_stmt *s, const char *what, struct failure *f)
{
    if (d->fail_in > 0 && --d->fail_in == 0) {
        *f = (struct failure){.code = d->fail_code, .what = what};
        return false;
    }
    errno = 0;
    int code = sqlite3_step(s);
    if (code != SQLITE_DONE)
        *f = (struct failure){.code = code, .errnum = errno, .what = what};
    sqlite3_reset(s);
    return code == SQLITE_DONE;
}

static bool write_rows(
    struct db *d, enum table_id t, const void *rows, size_t n, size_t row_size, struct failure *f)
{
    for (size_t i = 0; i < n; i++) {
        int code = table_bind(&tables[t], d->insert[t], (const char *)rows + i * row_size);
        if (code != SQLITE_OK) {
            *f = (struct failure){.code = code, .what = tables[t].name};
            return false;
        }
        if (!step(d, d->insert[t], tables[t].name, f))
            return false;
    }
    return true;
}

#define WRITE(d, table, rows, n, f) write_rows(d, table, rows, n, sizeof(*(rows)), f)

static bool write_of_spec(struct db *d, sqlite3_stmt *s, const char *what, int64_t job,
    const char *json, struct failure *f)
{
    sqlite3_bind_int64(s, 1, job);
    int code = sqlite3_bind_text(s, 2, json, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        return step(d, s, what, f);
    *f = (struct failure){.code = code, .what = what};
    return false;
}

/* Writes the columns by which jobs are searched: their scripts may be large, so their rows are not
 * read for it. */
static bool write_labels(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_specs; i++) {
        const struct spec_change *s = &c->specs[i];
        if (s->labels_json && strcmp(s->labels_json, "{}") != 0 &&
            (!write_of_spec(d, d->labels, "job_labels", s->job, s->labels_json, f) ||
                !write_of_spec(
                    d, d->rollup.statements[ROLLUP_SET], "label_sets", s->job, s->labels_json, f) ||
                !write_of_spec(d, d->rollup.statements[ROLLUP_SET_OF_JOB], "job_label_sets", s->job,
                    s->labels_json, f)))
            return false;
        if (s->launch_json && strstr(s->launch_json, "\"workdir\"") &&
            !write_of_spec(d, d->workdirs, "job_workdirs", s->job, s->launch_json, f))
            return false;
    }
    return true;
}

static bool write_documents(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_documents; i++)
        if (!write_of_spec(d, d->document, "job_documents", c->documents[i].job,
                c->documents[i].patch_json, f))
            return false;
    return true;
}

static bool delete_outbox_done(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_outbox_done; i++) {
        sqlite3_bind_int64(d->outbox_done, 1, c->outbox_done[i].event);
        int code =
            sqlite3_bind_text(d->outbox_done, 2, c->outbox_done[i].target, -1, SQLITE_STATIC);
        if (code != SQLITE_OK) {
            *f = (struct failure){.code = code, .what = "outbox"};
            return false;
        }
        if (!step(d, d->outbox_done, "outbox", f))
            return false;
    }
    return true;
}

static bool write_node_failures(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_node_failures; i++) {
        const struct node_failure_row *row = &c->node_failures[i];
        if (!row->is_removed && !WRITE(d, TABLE_NODE_FAILURES, row, 1, f))
            return false;
        if (!row->is_removed)
            continue;
        sqlite3_bind_int64(d->node_failure_removed, 1, row->node);
        sqlite3_bind_int64(d->node_failure_removed, 2, row->place);
        if (!step(d, d->node_failure_removed, "node_failures", f))
            return false;
    }
    return true;
}

static bool write_secrets(struct db *d, const struct db_batch *b, struct failure *f)
{
    for (size_t i = 0; i < b->n_secrets; i++) {
        const struct secret_row *row = &b->secrets[i];
        if (!row->removed && !WRITE(d, TABLE_SECRETS, row, 1, f))
            return false;
        if (!row->removed)
            continue;
        int code = sqlite3_bind_text(d->secret_removed, 1, row->owner, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
            code = sqlite3_bind_text(d->secret_removed, 2, row->name, -1, SQLITE_STATIC);
        if (code != SQLITE_OK) {
            *f = (struct failure){.code = code, .what = "secrets"};
            return false;
        }
        if (!step(d, d->secret_removed, "secrets", f))
            return false;
    }
    return true;
}

static bool write_reservations(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_reservations; i++) {
        const struct maintenance_row *row = &c->reservations[i];
        if (!row->is_over && !WRITE(d, TABLE_RESERVATIONS, row, 1, f))
            return false;
        if (!row->is_over)
            continue;
        sqlite3_bind_int64(d->reservation_over, 1, row->id);
        if (!step(d, d->reservation_over, "reservations", f))
            return false;
    }
    return true;
}

static bool write_calendars(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_calendars; i++) {
        const struct calendar_row *row = &c->calendars[i];
        if (!row->is_removed && !WRITE(d, TABLE_CALENDARS, row, 1, f))
            return false;
        if (!row->is_removed)
            continue;
        int code = sqlite3_bind_text(d->calendar_removed, 1, row->name, -1, SQLITE_STATIC);
        if (code != SQLITE_OK) {
            *f = (struct failure){.code = code, .what = "calendars"};
            return false;
        }
        if (!step(d, d->calendar_removed, "calendars", f))
            return false;
    }
    return true;
}

static bool write_late_costs(struct db *d, const struct changes *c, struct failure *f)
{
    for (size_t i = 0; i < c->n_late_costs; i++) {
        sqlite3_bind_int64(d->late_cost, 1, c->late_costs[i].job);
        sqlite3_bind_int64(d->late_cost, 2, c->late_costs[i].uusd);
        if (!step(d, d->late_cost, "jobs", f))
            return false;
    }
    return true;
}

/* The rows that the sums refer to are already written. */
static bool write_rollups(struct db *d, const struct changes *c, struct failure *f)
{
    struct rollup_walk w = ROLLUP_BEGIN;
    sqlite3_stmt *s;
    while ((s = rollup_costs(&d->rollup, c->ledger, c->n_ledger, &w)))
        if (!step(d, s, "cost_sums", f))
            return false;
    for (size_t at = 0; (s = rollup_jobs(&d->rollup, c->jobs, c->n_jobs, &at));)
        if (!step(d, s, "cost_sums", f))
            return false;
    return true;
}

static bool thin_out_loads(
    struct db *d, const struct db_batch *b, sqlite3_stmt *s, const char *what, struct failure *f)
{
    static const int64_t spans[LOAD_SPANS] = LOAD_SPANS_MS;
    for (int i = 0; i < LOAD_SPANS; i++) {
        if (b->loads.from[i] <= 0)
            continue;
        sqlite3_bind_int64(s, 1, spans[i]);
        sqlite3_bind_int64(s, 2, b->loads.from[i]);
        sqlite3_bind_int64(s, 3, LOADS_THINNED);
        if (!step(d, s, what, f))
            return false;
    }
    return true;
}

/* The place of a row in the log is known only here, where commits are in order. */
static bool write_audit(struct db *d, const struct db_batch *b, struct failure *f)
{
    d->audit_next = d->audit;
    for (size_t i = 0; i < b->n_audit; i++) {
        struct audit_row row = b->audit[i];
        audit_log_link(&d->audit_next, &row);
        if (!WRITE(d, TABLE_AUDIT_LOG, &row, 1, f))
            return false;
    }
    return true;
}

/* The begin of the audit log goes with a row of the log itself that says so (audit_log.h). */
static bool cut_audit(struct db *d, const struct prune *p, struct failure *f)
{
    struct audit_row row;
    int64_t up_to = 0;
    if (p->age_ms[PRUNE_AUDIT] <= 0)
        return true;
    int code = audit_log_plan_cut(d, p, &up_to, &row);
    if (code != SQLITE_OK) {
        *f = (struct failure){.code = code, .what = "audit_log"};
        return false;
    }
    if (up_to == 0)
        return true;
    audit_log_link(&d->audit_next, &row);
    sqlite3_bind_int64(d->audit_cut, 1, up_to);
    if (!WRITE(d, TABLE_AUDIT_LOG, &row, 1, f) || !step(d, d->audit_cut, "audit_log", f))
        return false;
    d->pruner.now.audit_rows = sqlite3_changes(d->sql);
    d->pruner.now.is_more =
        d->pruner.now.is_more || d->pruner.now.audit_rows >= AUDIT_LOG_CUT_ROWS_MAX;
    return true;
}

static bool prune_rows(struct db *d, const struct prune *p, struct failure *f)
{
    const char *what;
    sqlite3_stmt *s;
    if (!p->is_due)
        return true;
    prune_begin(&d->pruner);
    while ((s = prune_next(&d->pruner, d->sql, p, &what)))
        if (!step(d, s, what, f))
            return false;
    return cut_audit(d, p, f);
}

static bool write_counters(struct db *d, const struct changes *c, struct failure *f)
{
    const int64_t values[] = {c->next_job, c->next_node, c->next_instance, c->next_history,
        c->next_offer, c->next_cron, c->next_constraints, c->next_reservation};
    for (int i = 0; i < 8; i++)
        sqlite3_bind_int64(d->counters, i + 1, values[i]);
    return step(d, d->counters, "counters", f);
}

static bool write_batch(struct db *d, const struct db_batch *b, struct failure *f)
{
    const struct changes *c = &b->changes;
    return WRITE(d, TABLE_POOLS, c->pools, c->n_pools, f) &&
           WRITE(d, TABLE_OFFERS, c->offers, c->n_offers, f) &&
           WRITE(d, TABLE_INSTANCES, c->instances, c->n_instances, f) &&
           WRITE(d, TABLE_NODES, c->nodes, c->n_nodes, f) && write_node_failures(d, c, f) &&
           WRITE(d, TABLE_JOBS, c->jobs, c->n_jobs, f) &&
           WRITE(d, TABLE_SPECS, c->specs, c->n_specs, f) && write_labels(d, c, f) &&
           write_documents(d, c, f) && WRITE(d, TABLE_CKPT_GC, c->ckpt_gc, c->n_ckpt_gc, f) &&
           WRITE(d, TABLE_STORED, c->stored, c->n_stored, f) &&
           WRITE(d, TABLE_DRILLS, c->drills, c->n_drills, f) &&
           WRITE(d, TABLE_ACCOUNTS, c->accounts, c->n_accounts, f) &&
           WRITE(d, TABLE_BUDGETS, c->budgets, c->n_budgets, f) &&
           WRITE(d, TABLE_CONSTRAINTS, c->constraints, c->n_constraints, f) &&
           WRITE(d, TABLE_ARRAYS, c->arrays, c->n_arrays, f) &&
           WRITE(d, TABLE_DEPENDENCIES, c->depends, c->n_depends, f) &&
           WRITE(d, TABLE_CRONS, c->crons, c->n_crons, f) &&
           WRITE(d, TABLE_CRON_JOBS, c->cron_jobs, c->n_cron_jobs, f) &&
           WRITE(d, TABLE_CRON_RUNS, c->cron_runs, c->n_cron_runs, f) &&
           WRITE(d, TABLE_DIGESTS, c->digests, c->n_digests, f) &&
           WRITE(d, TABLE_ANOMALIES, c->anomalies, c->n_anomalies, f) &&
           write_reservations(d, c, f) && write_calendars(d, c, f) &&
           WRITE(d, TABLE_OUTBOX, c->outbox, c->n_outbox, f) && delete_outbox_done(d, c, f) &&
           write_late_costs(d, c, f) && WRITE(d, TABLE_ATTEMPTS, c->attempts, c->n_attempts, f) &&
           WRITE(d, TABLE_CHECKPOINTS, c->checkpoints, c->n_checkpoints, f) &&
           WRITE(d, TABLE_HISTORY, c->history, c->n_history, f) &&
           WRITE(d, TABLE_LEDGER, c->ledger, c->n_ledger, f) && write_rollups(d, c, f) &&
           WRITE(d, TABLE_TASK_LOADS, b->loads.tasks, b->loads.n_tasks, f) &&
           WRITE(d, TABLE_GPU_LOADS, b->loads.gpus, b->loads.n_gpus, f) &&
           thin_out_loads(d, b, d->thin_task_loads, "task_loads", f) &&
           thin_out_loads(d, b, d->thin_gpu_loads, "gpu_loads", f) &&
           WRITE(d, TABLE_TOKENS, b->tokens, b->n_tokens, f) && write_secrets(d, b, f) &&
           write_audit(d, b, f) && prune_rows(d, &b->prune, f) && write_counters(d, c, f);
}

/* SQLite may have rolled back by itself. Returns true if no transaction is open with certainty. */
static bool roll_back(struct db *d)
{
    if (!sqlite3_get_autocommit(d->sql))
        sqlite3_exec(d->sql, "ROLLBACK", NULL, NULL, NULL);
    return sqlite3_get_autocommit(d->sql) != 0;
}

static int fail(struct db *d, const struct failure *f, bool in_commit, struct err *e)
{
    bool is_full = sql_is_full(f->code, f->errnum);
    bool sure = !in_commit || f->code == SQLITE_FULL || f->code == SQLITE_IOERR_WRITE;

    sql_err(e, d->sql, f->code, "commit to %s, %s", d->path, f->what);
    if (!roll_back(d))
        return err_set(
            e, ERR_IO, "commit to %s, %s: failed, and so did the rollback", d->path, f->what);
    if (is_full && sure)
        return err_set(e, ERR_NO_SPACE, "commit to %s: no space left for it; retrying", d->path);
    e->kind = e->kind == ERR_NO_SPACE ? ERR_IO : e->kind;
    return e->kind;
}

int db_commit(struct db *d, const struct db_batch *b, struct err *e)
{
    struct failure f = {0};
    struct err scrap;
    bool in_commit = false;

    /* an open transaction here would belong to a reader that was not finished */
    assert(sqlite3_get_autocommit(d->sql));
    if (step(d, d->begin, "begin", &f) && write_batch(d, b, &f)) {
        in_commit = true;
        if (step(d, d->end, "end", &f)) {
            d->audit = d->audit_next;
            return 0;
        }
    }
    return fail(d, &f, in_commit, e ? e : &scrap);
}

void db_batch_deinit(struct db_batch *b)
{
    changes_deinit(&b->changes);
    free(b->tokens);
    for (size_t i = 0; i < b->n_secrets; i++)
        secret_row_deinit(&b->secrets[i]);
    free(b->secrets);
    free(b->loads.tasks);
    free(b->loads.gpus);
    free(b->audit);
    *b = (struct db_batch){0};
}
