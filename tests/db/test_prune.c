/* SPDX-License-Identifier: Apache-2.0
 *
 * The retention: what is deleted, what stays because something needs it, and that bills, sums and
 * the audit log are the same afterwards.
 */
#include "db/audit_log.h"
#include "db/cost_sums.h"
#include "db/prune.h"
#include "tests/db/util.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/rollup.h"
#include <stdio.h>
#include <string.h>

#define HOUR_MS 3600000LL
#define BEGIN_DAY 20454 /* 2026-01-01 */

static struct err e;

static struct wall day(int64_t n)
{
    return (struct wall){(BEGIN_DAY + n) * DAY_MS};
}

static struct job_row *add_job(
    struct db_batch *b, int64_t id, enum job_state state, int64_t end_day)
{
    struct job_row j = {.id = id,
        .state = state,
        .end = state == JOB_ENDED ? END_SUCCEEDED : END_NONE,
        .submitted_at = day(end_day),
        .started_at = day(end_day),
        .ended_at = state == JOB_ENDED ? day(end_day) : WALL_NONE,
        .last_good_at = WALL_NONE,
        .cost_uusd = 1000 + id};
    struct spec_change spec = {.job = id,
        .script = mem_strdup("#!/bin/sh\n"),
        .labels_json = mem_strdup(id % 2 ? "{\"exp\": \"1\"}" : "{}")};
    snprintf(j.user, sizeof(j.user), "user-%d", (int)(id % 3));
    STR_COPY(j.spec.team, "shared");
    batch_add(b, TABLE_JOBS, &j);
    batch_add(b, TABLE_SPECS, &spec);
    batch_add(b, TABLE_ATTEMPTS,
        &(struct attempt_row){.job = id, .attempt = 1, .node = 1, .state = ATTEMPT_ENDED});
    batch_add(b, TABLE_HISTORY,
        &(struct history_row){.id = id, .job = id, .at = day(end_day), .kind = "ended"});
    struct ledger_row l = {.job = id,
        .attempt = 1,
        .node = 1,
        .kind = LEDGER_USEFUL,
        .from = {day(end_day).ms - HOUR_MS},
        .to = day(end_day),
        .ms = HOUR_MS,
        .node_ms = HOUR_MS,
        .uusd = 1000 + id,
        .on_demand_uusd = 3000};
    batch_add(b, TABLE_LEDGER, &l);
    b->changes.next_job = b->changes.next_history = id + 1;
    return &b->changes.jobs[b->changes.n_jobs - 1];
}

static void add_node(struct db_batch *b)
{
    batch_add(b, TABLE_NODES,
        &(struct node_row){.id = 1, .pool = "base", .name = "n1", .total = {.cpus = 8}});
}

/* What is a day old, or (for sums by day) two months, goes. */
static struct prune at_day(int64_t n)
{
    return (struct prune){.is_due = true,
        .now = day(n),
        .age_ms = {[PRUNE_JOBS] = DAY_MS,
            [PRUNE_EVENTS] = DAY_MS,
            [PRUNE_AUDIT] = DAY_MS,
            [PRUNE_DAYS] = 62 * DAY_MS}};
}

static struct pruned prune(struct db *d, int64_t n)
{
    struct db_batch b = {.prune = at_day(n)};
    struct pruned p, all = {0};
    do {
        struct db_batch again = b;
        util_commit(d, &again);
        db_get_pruned(d, &p);
        all.jobs += p.jobs;
        all.events += p.events;
        all.audit_rows += p.audit_rows;
        all.other_rows += p.other_rows;
    } while (p.is_more);
    return all;
}

static int64_t get(struct db *d, const char *text)
{
    int64_t v = -1;
    if (sql_get_i64(d->sql, text, &v, &e) != 0)
        fail_msg("%s", e.text);
    return v;
}

static int on_gap(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("%s", text);
    return 1;
}

static void assert_no_gaps(struct db_reader *r)
{
    assert_int_equal(db_read_rollup_gaps(r, on_gap, NULL, &e), 0);
    assert_int_equal(db_read_data_gaps(r, on_gap, NULL, &e), 0);
    assert_int_equal(db_read_job_gaps(r, on_gap, NULL, &e), 0);
}

static int print_sum(void *ctx, const char *const keys[], const struct cost_sum *s)
{
    buf_printf(ctx, "%s:%lld/%lld,%lld,%lld,%lld ", keys[0], (long long)s->succeeded,
        (long long)s->jobs, (long long)s->uusd, (long long)s->on_demand_uusd,
        (long long)s->total_ms);
    return 0;
}

/* All bills of whole months. */
static char *bills(struct db_reader *r)
{
    static const char *const by[] = {
        "user", "team", "pool", "type", "market", "kind", "month", "label:exp"};
    struct buf out = {0};
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        const struct cost_query q = {.by = by[i], .from = WALL_NONE, .to = WALL_NONE};
        assert_int_equal(db_read_cost_sums(r, &q, print_sum, &out, &e), 0);
    }
    char *text = mem_strdup(buf_str(&out));
    buf_deinit(&out);
    return text;
}

static void assert_has(struct db_reader *r, int64_t id, bool has)
{
    struct job_row row;
    int rc = db_read_job(r, id, &row, &e);
    if (rc != (has ? 0 : ERR_NOT_FOUND))
        fail_msg("job %lld: %d", (long long)id, rc);
}

/* Every table that has rows of jobs. */
static void assert_nothing_of(struct db *d, int64_t id)
{
    static const char *const tables_of_jobs[] = {"jobs WHERE id", "job_specs WHERE job",
        "job_documents WHERE job", "job_labels WHERE job", "job_label_sets WHERE job",
        "job_workdirs WHERE job", "arrays WHERE job", "dependencies WHERE job",
        "attempts WHERE job", "checkpoints WHERE job", "stored WHERE job", "ckpt_gc WHERE job",
        "task_loads WHERE job", "gpu_loads WHERE job", "history WHERE job", "ledger WHERE job",
        "drills WHERE job"};
    for (size_t i = 0; i < sizeof(tables_of_jobs) / sizeof(tables_of_jobs[0]); i++) {
        char *text = mem_printf("SELECT count(*) FROM %s = %lld", tables_of_jobs[i], (long long)id);
        if (get(d, text) != 0)
            fail_msg("%s", text);
        free(text);
    }
}

static void an_old_job_goes_with_all_of_it_and_its_number_says_so(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    for (int64_t id = 1; id <= 5; id++)
        add_job(&b, id, JOB_ENDED, id == 5 ? 9 : 0);
    util_commit(d, &b);
    char *before = bills(r);
    struct pruned p = prune(d, 10);
    assert_int_equal(p.jobs, 4);
    char *after = bills(r);
    assert_string_equal(before, after);
    for (int64_t id = 1; id <= 4; id++) {
        assert_has(r, id, false);
        assert_nothing_of(d, id);
    }
    assert_has(r, 5, true); /* it ended exactly a day ago */
    assert_has(r, 3, false);
    assert_string_equal(e.text,
        "job 3 was deleted on 2026-01-11: jobs are deleted 1 days after their end (retention "
        "of belayd's configuration)");
    assert_has(r, 6, false);
    assert_string_equal(e.text, "there is no job 6");
    assert_int_equal(get(d, "SELECT count(*) FROM deleted_jobs"), 1);
    assert_int_equal(get(d, "SELECT next_job FROM meta"), 6);
    assert_no_gaps(r);
    free(before);
    free(after);
    db_reader_close(r);
    db_close(d);
}

static void ranges_of_one_day_become_one(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    /* the odd ones a day later */
    for (int64_t id = 1; id <= 3 * PRUNE_JOBS_MAX; id++)
        add_job(&b, id, id == 7 ? JOB_RUNNING : JOB_ENDED, id % 2);
    util_commit(d, &b);
    assert_int_equal(prune(d, 2).jobs, 3 * PRUNE_JOBS_MAX / 2);
    assert_int_equal(get(d, "SELECT count(*) FROM deleted_jobs"), 3 * PRUNE_JOBS_MAX / 2);
    assert_int_equal(prune(d, 2).jobs, 0);
    struct db_batch later = {.prune = at_day(2)};
    later.prune.now.ms += DAY_MS - 1;
    while (true) {
        struct db_batch again = later;
        struct pruned p;
        util_commit(d, &again);
        db_get_pruned(d, &p);
        if (!p.is_more)
            break;
    }
    assert_int_equal(get(d, "SELECT count(*) FROM deleted_jobs"), 2); /* before and after job 7 */
    for (int64_t id = 1; id <= 3 * PRUNE_JOBS_MAX; id++)
        assert_has(r, id, id == 7);
    assert_int_equal(get(d, "SELECT max(last) FROM deleted_jobs"), 3 * PRUNE_JOBS_MAX);
    db_reader_close(r);
    db_close(d);
}

static void what_something_needs_stays(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    for (int64_t id = 1; id <= 12; id++)
        add_job(&b, id, id == 2 || id == 4 ? JOB_PENDING : JOB_ENDED, 0);
    /* 1: live job 2 depends on it */
    batch_add(&b, TABLE_DEPENDENCIES,
        &(struct dependency_row){
            .job = 2, .on = 1, .kind = DEPEND_AFTERANY, .state = DEPEND_WAITS});
    /* 3: a task of the live array 4, and 5 one of array 6, which ended later */
    b.changes.jobs[2].array = 4;
    b.changes.jobs[4].array = 6;
    b.changes.jobs[5].ended_at = day(20);
    /* 7: its checkpoints are not cleaned; 8: they cost something */
    batch_add(&b, TABLE_CKPT_GC,
        &(struct ckpt_gc_row){.job = 7, .state = CKPT_GC_WAITING, .last_at = WALL_NONE});
    batch_add(&b, TABLE_STORED,
        &(struct stored_row){.job = 8, .bytes = 1, .at = day(0), .settled_at = day(0)});
    /* 9: the last job of a cron entry; 10: a notification waits */
    batch_add(&b, TABLE_CRONS,
        &(struct cron_row){
            .id = 1, .name = "c", .user = "ada", .last_job = 9, .created_at = day(0)});
    batch_add(&b, TABLE_OUTBOX,
        &(struct outbox_row){.event = 1, .target = "mail", .job = 10, .at = day(0)});
    /* 11: paid for until yesterday */
    batch_add(&b, TABLE_LEDGER,
        &(struct ledger_row){
            .job = 11, .kind = LEDGER_STORAGE, .from = day(0), .to = day(10), .uusd = 0});
    util_commit(d, &b);
    assert_int_equal(prune(d, 10).jobs, 1);
    for (int64_t id = 1; id <= 12; id++)
        assert_has(r, id, id != 12);
    assert_no_gaps(r);
    db_reader_close(r);
    db_close(d);
}

static void depend(struct db_batch *b, int64_t on)
{
    batch_add(b, TABLE_DEPENDENCIES,
        &(struct dependency_row){
            .job = on - 1, .on = on, .kind = DEPEND_AFTERANY, .state = DEPEND_WAITS});
}

/* More old jobs and events than one commit looks at stay, and are passed once. */
static void what_stays_does_not_keep_what_is_younger(void **state)
{
    const int64_t n = 2 * PRUNE_ROWS_MAX + 10; /* the even ones stay, because the odd ones live */
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    for (int64_t id = 1; id <= 2 * n; id++) {
        add_job(&b, id, id % 2 ? JOB_RUNNING : JOB_ENDED, 0);
        if (id % 2 == 0)
            depend(&b, id);
    }
    for (int64_t id = 2 * n + 1; id <= 2 * n + 60; id++)
        add_job(&b, id, JOB_ENDED, 1);
    util_commit(d, &b);
    struct pruned p;
    int64_t jobs = 0, events = 0;
    int commits = 0;
    do {
        struct db_batch again = {.prune = at_day(10)};
        util_commit(d, &again);
        db_get_pruned(d, &p);
        jobs += p.jobs;
        events += p.events;
        commits++;
    } while (p.is_more);
    assert_int_equal(jobs, 60);
    assert_int_equal(events + jobs, n + 60); /* those of a deleted job go with it */
    assert_true(commits < 10);
    assert_int_equal(get(d, "SELECT count(*) FROM jobs"), 2 * n);
    assert_int_equal(get(d, "SELECT count(*) FROM history"), n);
    assert_no_gaps(r);
    /* the first ones may go now: the next look begins with them again */
    assert_int_equal(sql_exec(d->sql, "UPDATE jobs SET state = 'ended', ended_at = 0", &e), 0);
    assert_int_equal(prune(d, 10).jobs, 2 * n);
    db_reader_close(r);
    db_close(d);
}

static void an_array_goes_after_its_tasks(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    for (int64_t id = 1; id <= 3; id++)
        add_job(&b, id, JOB_ENDED, 0)->array = id == 1 ? CORE_ID_NONE : 1;
    batch_add(&b, TABLE_ARRAYS, &(struct array_row){.job = 1, .tasks = "1-2", .n_succeeded = 2});
    util_commit(d, &b);
    char *before = bills(r);
    struct db_batch once = {.prune = at_day(10)};
    util_commit(d, &once);
    assert_has(r, 1, true);
    assert_has(r, 2, false);
    assert_int_equal(prune(d, 10).jobs, 1);
    assert_has(r, 1, false);
    assert_nothing_of(d, 1);
    char *after = bills(r);
    assert_string_equal(before, after);
    assert_no_gaps(r);
    free(before);
    free(after);
    db_reader_close(r);
    db_close(d);
}

static void add_idle(struct db_batch *b, int64_t node, int64_t at_day)
{
    batch_add(b, TABLE_LEDGER,
        &(struct ledger_row){.node = node,
            .kind = LEDGER_IDLE,
            .from = {day(at_day).ms - HOUR_MS},
            .to = day(at_day),
            .ms = HOUR_MS,
            .node_ms = HOUR_MS,
            .uusd = 7});
}

static void a_machine_goes_with_the_last_job_that_names_it(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    batch_add(&b, TABLE_NODES,
        &(struct node_row){.id = 1, .pool = "base", .state = NODE_GONE, .gone_at = day(2)});
    batch_add(&b, TABLE_NODES,
        &(struct node_row){.id = 2, .pool = "base", .state = NODE_GONE, .gone_at = day(2)});
    add_job(&b, 1, JOB_ENDED, 1);
    add_job(&b, 2, JOB_PENDING, 1); /* its first attempt was on node 1 */
    add_idle(&b, 1, 2);
    add_idle(&b, 2, 2);
    add_idle(&b, 2, 30);
    util_commit(d, &b);
    char *before = bills(r);
    prune(d, 10);
    assert_int_equal(get(d, "SELECT count(*) FROM nodes WHERE id = 1"), 1);
    assert_int_equal(get(d, "SELECT count(*) FROM nodes WHERE id = 2"), 0);
    assert_int_equal(
        get(d, "SELECT node_ms FROM deleted_machine_costs WHERE node = 1"), 2 * HOUR_MS);
    assert_int_equal(get(d, "SELECT count(*) FROM deleted_machine_costs"), 1);
    char *after = bills(r);
    assert_string_equal(before, after);
    free(before);
    free(after);
    db_reader_close(r);
    db_close(d);
}

/* ---- what is read afterwards ---- */

static int ignore_line(void *ctx, const struct cost_line *l)
{
    (void)ctx, (void)l;
    return 0;
}

static int ignore_sum(void *ctx, const char *const keys[], const struct cost_sum *s)
{
    (void)ctx, (void)keys, (void)s;
    return 0;
}

static int read_sums(struct db_reader *r, const char *by, struct wall from, struct wall to)
{
    const struct cost_query q = {.by = by, .from = from, .to = to};
    return db_read_cost_sums(r, &q, ignore_sum, NULL, &e);
}

static void a_period_without_its_rows_is_refused_and_never_summed_up_in_part(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_node(&b);
    add_job(&b, 1, JOB_ENDED, 3);
    add_job(&b, 2, JOB_ENDED, 40);
    util_commit(d, &b);
    char *before = bills(r);
    prune(d, 100); /* sums by day before 2026-02-01 go, and both jobs */
    assert_int_equal(get(d, "SELECT count(*) FROM cost_sums WHERE span = 1 AND since < 20485"), 0);
    assert_true(get(d, "SELECT count(*) FROM cost_sums WHERE span = 1") > 0);
    char *after = bills(r);
    assert_string_equal(before, after);
    assert_no_gaps(r);
    assert_int_equal(read_sums(r, "user", day(31), day(50)), 0); /* from 2026-02-01 */
    assert_int_equal(read_sums(r, "user", day(0), day(50)), 0); /* a month and days that are left */
    assert_int_equal(read_sums(r, "user", day(5), day(50)), ERR_INVALID);
    assert_string_equal(e.text,
        "the sums by day before 2026-02-01 were deleted (retention of belayd's configuration): "
        "begin at that day or later, or ask for whole months");
    assert_int_equal(read_sums(r, "user", WALL_NONE, day(5)), ERR_INVALID);
    assert_int_equal(read_sums(r, "day", WALL_NONE, WALL_NONE), ERR_INVALID);
    assert_int_equal(read_sums(r, "day", day(31), WALL_NONE), 0);
    assert_int_equal(read_sums(r, "month", WALL_NONE, WALL_NONE), 0);
    assert_int_equal(
        db_read_cost(r, "user", NULL, day(39), day(41), ignore_line, NULL, &e), ERR_INVALID);
    assert_int_equal(db_read_cost(r, "user", NULL, day(40), day(41), ignore_line, NULL, &e), 0);
    assert_int_equal(db_read_cost(r, "job", NULL, WALL_NONE, day(41), ignore_line, NULL, &e), 0);
    const struct use_of use = {.from = day(10), .to = day(90)};
    assert_int_equal(db_read_use(r, &use, NULL, NULL, NULL, &e), ERR_INVALID);
    free(before);
    free(after);
    db_reader_close(r);
    db_close(d);
}

static void the_history_of_a_live_job_stays(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    add_node(&b);
    add_job(&b, 1, JOB_RUNNING, 0);
    add_job(&b, 2, JOB_ENDED, 100);
    b.changes.history[1].at = day(0); /* long before its end */
    batch_add(&b, TABLE_HISTORY, &(struct history_row){.id = 3, .at = day(0), .kind = "pool"});
    batch_add(&b, TABLE_HISTORY, &(struct history_row){.id = 4, .at = day(100), .kind = "pool"});
    util_commit(d, &b);
    assert_int_equal(prune(d, 100).events, 2);
    assert_int_equal(
        get(d, "SELECT group_concat(id, '') FROM (SELECT id FROM history ORDER BY id)"), 14);
    db_close(d);
}

/* ---- the audit log ---- */

static void add_audit(struct db *d, int n, int64_t at_day)
{
    struct db_batch b = {0};
    for (int i = 0; i < n; i++)
        batch_add(&b, TABLE_AUDIT_LOG,
            &(struct audit_row){
                .at = day(at_day), .user = "ada", .route = "POST /api/v1/jobs", .result = "ok"});
    util_commit(d, &b);
}

static void the_audit_log_is_cut_at_its_begin_and_still_verified(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct audit_head old, head, found;
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_audit(d, 3, 0);
    db_get_audit_head(d, &old);
    add_audit(d, 2, 9);
    assert_int_equal(prune(d, 10).audit_rows, 3);
    db_get_audit_head(d, &head);
    assert_int_equal(head.seq, 6); /* the cut is a row too */
    assert_int_equal(get(d, "SELECT min(seq) FROM audit_log"), 4);
    assert_int_equal(audit_log_verify(r, &head, &found, &e), 0);
    assert_int_equal(found.seq, 6);
    assert_int_equal(audit_log_verify(r, &old, &found, &e), 0); /* the last one that was deleted */
    old.seq = 2;
    assert_int_equal(audit_log_verify(r, &old, &found, &e), ERR_INVALID);
    /* within a day nothing more is cut */
    assert_int_equal(prune(d, 10).audit_rows, 0);
    assert_int_equal(prune(d, 12).audit_rows, 2); /* the last row always stays */
    assert_int_equal(audit_log_verify(r, &head, &found, &e), 0);
    db_reader_close(r);
    db_close(d);
}

static void more_than_the_retention_cut_from_the_audit_log_is_found(void **state)
{
    static const char *const changes[] = {
        "DELETE FROM audit_log WHERE seq = 4",
        "DELETE FROM audit_log WHERE seq = 5",
        "UPDATE audit_log SET object = '4' WHERE object = '3'; DELETE FROM audit_log WHERE seq = 4",
        "UPDATE audit_log SET source = '' WHERE object = '3'",
        "UPDATE audit_log SET route = 'x' WHERE object = '3'",
        "DELETE FROM audit_log WHERE object = '3'",
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct db *d = util_open(":memory:");
        struct db_reader *r;
        struct audit_head head, found;
        (void)state;
        assert_int_equal(db_reader_of(d, &r, &e), 0);
        add_audit(d, 3, 0);
        add_audit(d, 2, 9);
        prune(d, 10);
        add_audit(d, 1, 10);
        db_get_audit_head(d, &head);
        assert_int_equal(audit_log_verify(r, &head, &found, &e), 0);
        assert_int_equal(sql_exec(d->sql, changes[i], &e), 0);
        if (audit_log_verify(r, &head, &found, &e) != ERR_CORRUPT)
            fail_msg("not found: %s", changes[i]);
        db_reader_close(r);
        db_close(d);
    }
}

/* ---- faults ---- */

/* Each step of the deletion fails once: nothing has changed, and the next commit does it all. */
static void a_full_disk_in_any_step_deletes_nothing(void **state)
{
    (void)state;
    for (int64_t n = 1;; n++) {
        struct db *d = util_open(":memory:");
        struct db_reader *r;
        struct db_batch b = {0};
        assert_int_equal(db_reader_of(d, &r, &e), 0);
        add_node(&b);
        for (int64_t id = 1; id <= 3; id++)
            add_job(&b, id, JOB_ENDED, 0);
        util_commit(d, &b);
        add_audit(d, 3, 0);
        struct db_batch p = {.prune = at_day(100)};
        db_fail_at(d, n, SQLITE_FULL);
        int rc = db_commit(d, &p, &e);
        bool was_reached = rc != 0;
        if (was_reached) {
            assert_int_equal(rc, ERR_NO_SPACE);
            assert_int_equal(get(d, "SELECT count(*) FROM jobs"), 3);
            assert_int_equal(get(d, "SELECT count(*) FROM ledger"), 3);
            assert_int_equal(get(d, "SELECT count(*) FROM audit_log"), 3);
            assert_int_equal(get(d, "SELECT count(*) FROM deleted_costs"), 0);
            db_fail_at(d, 0, 0);
            assert_int_equal(db_commit(d, &p, &e), 0);
        }
        assert_int_equal(get(d, "SELECT count(*) FROM jobs"), 0);
        assert_no_gaps(r);
        db_reader_close(r);
        db_close(d);
        if (!was_reached) {
            assert_true(n > 40);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, util_setup, util_teardown)
        TEST(an_old_job_goes_with_all_of_it_and_its_number_says_so),
        TEST(ranges_of_one_day_become_one),
        TEST(what_something_needs_stays),
        TEST(what_stays_does_not_keep_what_is_younger),
        TEST(an_array_goes_after_its_tasks),
        TEST(a_machine_goes_with_the_last_job_that_names_it),
        TEST(a_period_without_its_rows_is_refused_and_never_summed_up_in_part),
        TEST(the_history_of_a_live_job_stays),
        TEST(the_audit_log_is_cut_at_its_begin_and_still_verified),
        TEST(more_than_the_retention_cut_from_the_audit_log_is_found),
        TEST(a_full_disk_in_any_step_deletes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
