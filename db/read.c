/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads for the API: one function per statement.
 */
#include "db/db.h"
#include "db/query.h"
#include "db/reader.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

#define NO_CRON "there is no cron entry %lld"

int db_read_job(struct db_reader *r, int64_t id, struct job_row *ret_job, struct err *e)
{
    struct job_row row = {.queued_mono = MONO_NONE};
    struct query q;

    query_init(&q, r->statements, TABLE_JOBS, "WHERE id = ?1", e);
    query_i64(&q, 1, id);
    int rc = query_one(&q, &row, "there is no job %lld", (long long)id);
    if (rc == 0)
        *ret_job = row;
    else if (rc == ERR_NOT_FOUND)
        prune_explain(r, id, e);
    return rc;
}

int db_read_job_ref(struct db_reader *r, int64_t id, struct job_ref *ret_ref, struct err *e)
{
    struct job_row row = {.id = id};
    struct query q;

    query_init_text(&q, r->statements, "SELECT array_id, array_index FROM jobs WHERE id = ?1", e);
    query_i64(&q, 1, id);
    while (query_step(&q)) {
        row.array = sqlite3_column_int64(q.stmt, 0);
        row.array_index = sqlite3_column_int(q.stmt, 1);
    }
    *ret_ref = job_ref(&row);
    return query_finish(&q);
}

int db_read_spec(struct db_reader *r, int64_t job, struct spec_change *ret_spec, struct err *e)
{
    struct spec_change row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_SPECS,
        "WHERE job = coalesce((SELECT nullif(array_id, 0) FROM jobs WHERE id = ?1), ?1)", e);
    query_i64(&q, 1, job);
    int rc = query_one(&q, &row, "there is no job %lld", (long long)job);
    if (rc == 0)
        *ret_spec = row;
    return rc;
}

int db_read_document(struct db_reader *r, int64_t job, char **ret_json, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT coalesce((SELECT json FROM job_documents WHERE job = ?1), (SELECT a.json FROM jobs "
        "AS j JOIN job_documents AS a ON a.job = j.array_id WHERE j.id = ?1 AND j.array_id <> 0))",
        e);
    query_i64(&q, 1, job);
    *ret_json = query_step(&q) ? mem_strdup((const char *)sqlite3_column_text(q.stmt, 0)) : NULL;
    return query_finish(&q);
}

int db_workdir_is_wanted(struct db_reader *r, const char *hash, bool *ret_wanted, struct err *e)
{
    struct query q;
    int rc;

    query_init_text(&q, r->statements,
        "SELECT 1 FROM job_workdirs AS w WHERE w.hash = ?1 AND"
        " (EXISTS (SELECT 1 FROM jobs WHERE jobs.id = w.job AND jobs.state <> 'ended') OR"
        " EXISTS (SELECT 1 FROM jobs AS task WHERE task.array_id = w.job AND task.array_id <> 0 "
        "AND task.state <> 'ended'))"
        " UNION ALL SELECT 1 FROM crons JOIN cron_jobs ON cron_jobs.cron = crons.id"
        " WHERE crons.state <> 'removed' AND json_extract(job_json, '$.launch.workdir') = ?1 LIMIT "
        "1",
        e);
    query_text(&q, 1, hash);
    bool found = query_step(&q);
    if ((rc = query_finish(&q)) == 0)
        *ret_wanted = found;
    return rc;
}

void spec_change_deinit(struct spec_change *s)
{
    free(s->script);
    free(s->args_json);
    free(s->env_json);
    free(s->cwd);
    free(s->labels_json);
    free(s->launch_json);
    free(s->notify_json);
    *s = (struct spec_change){0};
}

static int read_pragma(struct db_reader *r, const char *text, int64_t *ret, struct err *e)
{
    struct query q;

    query_init_text(&q, r->statements, text, e);
    if (query_step(&q))
        *ret = sqlite3_column_int64(q.stmt, 0);
    return query_finish(&q);
}

int db_read_size(struct db_reader *r, int64_t *ret_file, int64_t *ret_used, struct err *e)
{
    int64_t page = 0, pages = 0, unused = 0;
    int rc;

    if ((rc = read_pragma(r, "PRAGMA page_size", &page, e)) == 0 &&
        (rc = read_pragma(r, "PRAGMA page_count", &pages, e)) == 0 &&
        (rc = read_pragma(r, "PRAGMA freelist_count", &unused, e)) == 0) {
        *ret_file = page * pages;
        *ret_used = page * (pages - unused);
    }
    return rc;
}

int db_read_nth_end(struct db_reader *r, int64_t n, struct wall *ret_at, struct err *e)
{
    struct query q;

    *ret_at = WALL_NONE;
    query_init_text(&q, r->statements,
        "SELECT ended_at FROM jobs WHERE state = 'ended' ORDER BY ended_at LIMIT 1 OFFSET ?1", e);
    query_i64(&q, 1, n);
    if (query_step(&q))
        ret_at->ms = sqlite3_column_int64(q.stmt, 0);
    return query_finish(&q);
}

int db_read_live_labels(struct db_reader *r, db_labels_fn fn, void *ctx, struct err *e)
{
    struct query q;

    query_init_text(&q, r->statements,
        "SELECT j.id, s.labels_json"
        " FROM jobs AS j"
        " JOIN job_label_sets AS o ON o.job = j.id"
        " JOIN label_sets AS s ON s.id = o.labels"
        " WHERE j.state <> 'ended'"
        " ORDER BY j.id",
        e);
    while (query_step(&q) && query_goes_on(&q, fn(ctx, sqlite3_column_int64(q.stmt, 0),
                                                   (const char *)sqlite3_column_text(q.stmt, 1))))
        ;
    return query_finish(&q);
}

int db_read_attempts(struct db_reader *r, int64_t job, db_attempt_fn fn, void *ctx, struct err *e)
{
    struct attempt_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_ATTEMPTS, "WHERE job = ?1 ORDER BY attempt, rank", e);
    query_i64(&q, 1, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_history(struct db_reader *r, int64_t job, int64_t after, int32_t limit,
    db_history_fn fn, void *ctx, struct err *e)
{
    struct history_row row = {0};
    struct query q;
    int rc;

    if ((rc = query_check_limit(limit, e)) != 0)
        return rc;
    query_init(&q, r->statements, TABLE_HISTORY,
        job ? "WHERE id > ?1 AND job = ?3 ORDER BY id LIMIT ?2"
            : "WHERE id > ?1 ORDER BY id LIMIT ?2",
        e);
    query_i64(&q, 1, after);
    query_i64(&q, 2, limit);
    if (job)
        query_i64(&q, 3, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_last_history(
    struct db_reader *r, int64_t job, int32_t limit, db_history_fn fn, void *ctx, struct err *e)
{
    struct history_row row = {0};
    struct query q;
    int rc;

    if ((rc = query_check_limit(limit, e)) != 0)
        return rc;
    query_init(&q, r->statements, TABLE_HISTORY,
        "WHERE id IN (SELECT id FROM history WHERE job = ?1 ORDER BY id DESC LIMIT ?2) ORDER BY id",
        e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, limit);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

static bool has_begun(struct db_reader *r, int64_t job, int64_t attempt, int *ret_rc, struct err *e)
{
    struct query q;
    query_init_text(&q, r->statements,
        "SELECT 1 FROM attempts WHERE job = ?1 AND attempt = ?2 AND started_at IS NOT NULL", e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, attempt);
    bool has = query_step(&q);
    *ret_rc = query_finish(&q);
    return has;
}

int db_read_failed_save(
    struct db_reader *r, int64_t job, int64_t attempt, struct history_row *ret_row, struct err *e)
{
    struct history_row row = {0};
    struct query q;
    query_init(&q, r->statements, TABLE_HISTORY,
        "WHERE job = ?1 AND kind IN ('started', 'saved', 'save-failed') ORDER BY id DESC LIMIT 1",
        e);
    query_i64(&q, 1, job);
    bool failed = query_next(&q, &row) && row.attempt == attempt && str_eq(row.kind, "save-failed");
    int rc = query_finish(&q);
    failed = failed && has_begun(r, job, attempt, &rc, e);
    if (rc != 0)
        return rc;
    if (!failed)
        return err_set(e, ERR_NOT_FOUND, "the last save of job %lld did not fail", (long long)job);
    *ret_row = row;
    return 0;
}

int db_read_failed_saves(
    struct db_reader *r, int64_t job, int64_t attempt, int64_t node, int64_t *ret_n, struct err *e)
{
    struct query q;

    query_init_text(&q, r->statements,
        "SELECT count(*) FROM history WHERE job = ?1 AND attempt = ?2 AND node = ?3 AND kind "
        "IN ('save-failed', 'restore-failed')",
        e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, attempt);
    query_i64(&q, 3, node);
    *ret_n = query_step(&q) ? sqlite3_column_int64(q.stmt, 0) : 0;
    return query_finish(&q);
}

int db_read_checkpoints(
    struct db_reader *r, int64_t job, db_checkpoint_fn fn, void *ctx, struct err *e)
{
    struct checkpoint_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CHECKPOINTS,
        "WHERE job = ?1 ORDER BY attempt DESC, sequence DESC", e);
    query_i64(&q, 1, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_crons(struct db_reader *r, const char *user, db_cron_fn fn, void *ctx, struct err *e)
{
    struct cron_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CRONS,
        user ? "WHERE state <> 'removed' AND user = ?1 ORDER BY id"
             : "WHERE state <> 'removed' ORDER BY id",
        e);
    if (user)
        query_text(&q, 1, user);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_cron(struct db_reader *r, int64_t id, struct cron_row *ret_row, struct err *e)
{
    struct cron_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CRONS, "WHERE id = ?1", e);
    query_i64(&q, 1, id);
    int rc = query_one(&q, &row, NO_CRON, (long long)id);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int db_read_cron_job(struct db_reader *r, int64_t id, char **ret_json, struct err *e)
{
    struct cron_job_change row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CRON_JOBS, "WHERE cron = ?1", e);
    query_i64(&q, 1, id);
    int rc = query_one(&q, &row, NO_CRON, (long long)id);
    if (rc == 0 && !row.job_json)
        rc = err_set(e, ERR_NOT_FOUND, NO_CRON, (long long)id);
    if (rc == 0)
        *ret_json = row.job_json;
    return rc;
}

int db_read_cron_runs(struct db_reader *r, int64_t id, int64_t before, int32_t limit,
    db_cron_run_fn fn, void *ctx, struct err *e)
{
    struct cron_run_row row = {0};
    struct query q;
    int rc;

    if ((rc = query_check_limit(limit, e)) != 0)
        return rc;
    query_init(&q, r->statements, TABLE_CRON_RUNS,
        "WHERE cron = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3", e);
    query_i64(&q, 1, id);
    query_i64(&q, 2, before > 0 ? before : INT64_MAX);
    query_i64(&q, 3, limit);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_cron_started(struct db_reader *r, int64_t id, struct wall first, struct wall last,
    db_cron_run_fn fn, void *ctx, struct err *e)
{
    /* one for each index */
    static const char *const where[] = {
        "WHERE cron = ?1 AND at BETWEEN ?2 AND ?3 AND by_hand = 0 AND outcome = 'started'",
        "WHERE cron = ?1 AND at BETWEEN ?2 AND ?3 AND by_hand = 1 AND outcome = 'started'"};
    struct cron_run_row row = {0};
    int rc = 0;
    for (size_t k = 0; k < 2 && rc == 0; k++) {
        struct query q;
        query_init(&q, r->statements, TABLE_CRON_RUNS, where[k], e);
        query_i64(&q, 1, id);
        query_i64(&q, 2, first.ms);
        query_i64(&q, 3, last.ms);
        while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
            ;
        rc = query_finish(&q);
    }
    return rc;
}

int db_read_ckpt_gc(struct db_reader *r, int64_t job, struct ckpt_gc_row *ret_row, struct err *e)
{
    struct ckpt_gc_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CKPT_GC, "WHERE job = ?1", e);
    query_i64(&q, 1, job);
    int rc = query_one(&q, &row, "job %lld left nothing to clean", (long long)job);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int db_read_array(struct db_reader *r, int64_t job, struct array_row *ret_row, struct err *e)
{
    struct array_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_ARRAYS, "WHERE job = ?1", e);
    query_i64(&q, 1, job);
    int rc = query_one(&q, &row, "job %lld is not an array", (long long)job);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int db_read_array_ends(struct db_reader *r, int64_t job, struct array_ends *ret, struct err *e)
{
    struct array_row row;
    struct array_ends a = {0};
    struct query q;
    int rc = db_read_array(r, job, &row, e);
    if (rc == 0)
        rc = ranges_parse(row.tasks, &a.all, e);
    if (rc != 0)
        return rc;
    bits_init(&a.succeeded, ranges_last(&a.all) + 1);
    query_init_text(&q, r->statements,
        "SELECT array_index FROM jobs WHERE array_id = ?1 AND array_id <> 0 AND state = 'ended' "
        "AND end_kind = 'succeeded'",
        e);
    query_i64(&q, 1, job);
    while (query_step(&q))
        bits_set(&a.succeeded, sqlite3_column_int(q.stmt, 0));
    rc = query_finish(&q);
    if (rc == 0)
        *ret = a;
    else
        bits_deinit(&a.succeeded);
    return rc;
}

int db_read_constraints(
    struct db_reader *r, int64_t id, struct constraints_row *ret_row, struct err *e)
{
    struct constraints_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_CONSTRAINTS, "WHERE id = ?1", e);
    query_i64(&q, 1, id);
    int rc = query_one(&q, &row, "there are no constraints %lld", (long long)id);
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int db_read_pool_used(
    struct db_reader *r, int64_t job, int64_t attempt, char ret_pool[CORE_NAME_MAX], struct err *e)
{
    struct node_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_NODES,
        "WHERE id = (SELECT node FROM attempts WHERE job = ?1 AND attempt = ?2 AND rank = 0)", e);
    query_i64(&q, 1, job);
    query_i64(&q, 2, attempt);
    bool found = query_next(&q, &row);
    int rc = query_finish(&q);
    if (rc == 0)
        str_copy(ret_pool, CORE_NAME_MAX, found ? row.pool : "");
    return rc;
}

int db_read_dependencies(
    struct db_reader *r, int64_t job, db_dependency_fn fn, void *ctx, struct err *e)
{
    struct dependency_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_DEPENDENCIES,
        "WHERE job = ?1 ORDER BY on_job, of_task, task, kind", e);
    query_i64(&q, 1, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_job_drills(struct db_reader *r, int64_t job, db_drill_fn fn, void *ctx, struct err *e)
{
    struct drill_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_DRILLS, "WHERE job = ?1 ORDER BY number", e);
    query_i64(&q, 1, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_drills(
    struct db_reader *r, const char *user, int32_t limit, db_drill_fn fn, void *ctx, struct err *e)
{
    struct drill_row row = {0};
    struct query q;
    int rc;

    if ((rc = query_check_limit(limit, e)) != 0)
        return rc;
    query_init(&q, r->statements, TABLE_DRILLS,
        user ? "WHERE user = ?2 ORDER BY asked_at DESC, job DESC, number DESC LIMIT ?1"
             : "ORDER BY asked_at DESC, job DESC, number DESC LIMIT ?1",
        e);
    query_i64(&q, 1, limit);
    if (user)
        query_text(&q, 2, user);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_certificate(
    struct db_reader *r, const char *script_key, struct drill_row *ret_row, struct err *e)
{
    struct drill_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_DRILLS,
        "WHERE state IN ('passed', 'failed') AND script_key = ?1 AND script_key <> ''"
        " ORDER BY ended_at DESC, job DESC, number DESC LIMIT 1",
        e);
    query_text(&q, 1, script_key);
    int rc = query_one(&q, &row, "no job of this script was drilled");
    if (rc == 0)
        *ret_row = row;
    return rc;
}

int db_read_ledger(struct db_reader *r, int64_t job, db_ledger_fn fn, void *ctx, struct err *e)
{
    struct ledger_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_LEDGER,
        job ? "WHERE job = ?1 ORDER BY rowid" : "ORDER BY rowid", e);
    if (job)
        query_i64(&q, 1, job);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_nodes(struct db_reader *r, bool live_only, db_node_fn fn, void *ctx, struct err *e)
{
    struct node_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_NODES,
        live_only ? "WHERE state <> 'gone' ORDER BY id" : "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_instances(
    struct db_reader *r, bool live_only, db_instance_fn fn, void *ctx, struct err *e)
{
    struct instance_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_INSTANCES,
        live_only ? "WHERE state <> 'gone' ORDER BY id" : "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

static void query_newest(struct query *q, struct db_reader *r, enum table_id table, int64_t before,
    int64_t limit, struct err *e)
{
    query_init(q, r->statements, table, "WHERE id < ?1 ORDER BY id DESC LIMIT ?2", e);
    query_i64(q, 1, before);
    query_i64(q, 2, limit);
}

int db_read_newest_nodes(
    struct db_reader *r, int64_t before, int64_t limit, db_node_fn fn, void *ctx, struct err *e)
{
    struct node_row row = {0};
    struct query q;

    query_newest(&q, r, TABLE_NODES, before, limit, e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_newest_instances(
    struct db_reader *r, int64_t before, int64_t limit, db_instance_fn fn, void *ctx, struct err *e)
{
    struct instance_row row = {0};
    struct query q;

    query_newest(&q, r, TABLE_INSTANCES, before, limit, e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_offers(struct db_reader *r, db_offer_fn fn, void *ctx, struct err *e)
{
    struct offer_row row = {.avoid_until = MONO_NONE};
    struct query q;

    query_init(&q, r->statements, TABLE_OFFERS, "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

int db_read_token_by_hash(
    struct db_reader *r, const char *hash, struct token_row *ret_token, struct err *e)
{
    struct token_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_TOKENS, "WHERE hash = ?1", e);
    query_text(&q, 1, hash);
    int rc = query_one(&q, &row, "there is no such token");
    if (rc == 0)
        *ret_token = row;
    return rc;
}

int db_read_token(struct db_reader *r, int64_t id, struct token_row *ret_token, struct err *e)
{
    struct token_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_TOKENS, "WHERE id = ?1", e);
    query_i64(&q, 1, id);
    int rc = query_one(&q, &row, "there is no such token");
    if (rc == 0)
        *ret_token = row;
    return rc;
}

int db_read_tokens(struct db_reader *r, db_token_fn fn, void *ctx, struct err *e)
{
    struct token_row row = {0};
    struct query q;

    query_init(&q, r->statements, TABLE_TOKENS, "ORDER BY id", e);
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}
