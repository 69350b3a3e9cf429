/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery: live rows are loaded, ended ones are not, and a long queue does not slow it down.
 */
#include "tests/db/util.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include <stdio.h>
#include <string.h>

static const struct stamp now = {{1000000}, {5000}};

static struct model *new_model(void)
{
    return model_create(
        &(struct model_options){.cluster_uid = "0123456789abcdef", .lease_ms = 30000});
}

/* A cluster with one live and one ended row of everything, as core would have written it. */
static struct db_batch small_cluster(void)
{
    struct db_batch b = {0};
    struct node_row node = {.id = 1,
        .name = "n1",
        .pool = "burst",
        .instance = 1,
        .state = NODE_UP,
        .total = {8, 0, 1000},
        .market = MARKET_SPOT,
        .notice_deadline = WALL_NONE,
        .joined_at = at_ms(5),
        .gone_at = WALL_NONE,
        .key_hash = "k1"};
    struct instance_row instance = {.id = 1,
        .token = "t1",
        .pool = "burst",
        .zone = "a",
        .type = "m",
        .market = MARKET_SPOT,
        .state = INSTANCE_RUNNING,
        .provider_id = "i-1",
        .node = 1,
        .intended_at = at_ms(1),
        .launched_at = at_ms(2),
        .joined_at = at_ms(5),
        .ended_at = WALL_NONE};

    batch_add(&b, TABLE_POOLS,
        &(struct pool_row){.name = "burst", .elastic = true, .provider = "aws", .max_nodes = 4});
    batch_add(&b, TABLE_OFFERS,
        &(struct offer_row){.id = 1,
            .pool = "burst",
            .zone = "a",
            .type = "m",
            .market = MARKET_SPOT,
            .total = {8, 0, 1000}});
    batch_add(&b, TABLE_INSTANCES, &instance);
    instance.id = 2;
    instance.node = 2;
    instance.state = INSTANCE_GONE;
    STR_COPY(instance.token, "t2");
    batch_add(&b, TABLE_INSTANCES, &instance);
    batch_add(&b, TABLE_NODES, &node);
    node.id = node.instance = 2;
    node.state = NODE_GONE;
    STR_COPY(node.key_hash, "k2");
    batch_add(&b, TABLE_NODES, &node);
    for (int64_t id = 1; id <= 3; id++)
        batch_add_submit(&b, id);
    b.changes.jobs[0].state = JOB_ENDED;
    b.changes.jobs[0].submitted_at = at_ms(1234);
    b.changes.jobs[0].last_good = (struct ckpt_ref){3, 7};
    b.changes.jobs[1].state = JOB_RUNNING;
    b.changes.jobs[0].attempts = b.changes.jobs[1].attempts = 1;
    batch_add(&b, TABLE_ATTEMPTS,
        &(struct attempt_row){.job = 1, .attempt = 1, .node = 2, .state = ATTEMPT_ENDED});
    batch_add(&b, TABLE_ATTEMPTS,
        &(struct attempt_row){.job = 2,
            .attempt = 1,
            .node = 1,
            .state = ATTEMPT_RUNNING,
            .requeue_asked_at = WALL_NONE});
    batch_add(
        &b, TABLE_SPECS, &(struct spec_change){.job = 1, .labels_json = strdup("{\"old\":\"1\"}")});
    batch_add(&b, TABLE_SPECS,
        &(struct spec_change){
            .job = 3, .labels_json = strdup("{\"team\":\"a\",\"project\":\"b\"}")});
    batch_add(&b, TABLE_CKPT_GC,
        &(struct ckpt_gc_row){.job = 1, .due_at = at_ms(9), .last_at = WALL_NONE});
    b.changes.next_job = 4;
    b.changes.next_node = b.changes.next_instance = 3;
    b.changes.next_offer = 2;
    return b;
}

static void what_lives_is_loaded_and_what_ended_is_not(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = small_cluster();
    struct model *m = new_model();
    struct err e = {0};

    util_commit(d, &b);
    db_close(d);
    d = util_open(*state);
    int rc = db_load(d, m, now, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
    assert_null(model_job(m, 1));
    assert_non_null(model_job(m, 2));
    assert_non_null(job_attempt(model_job(m, 2)));
    assert_non_null(model_job(m, 3));
    assert_null(model_job(m, 2)->labels);
    assert_string_equal(model_job(m, 3)->labels->names, ",project,team,");
    assert_non_null(model_node(m, 1));
    assert_null(model_node(m, 2));
    assert_non_null(model_instance_by_token(m, "t1"));
    assert_null(model_instance(m, 2));
    assert_non_null(model_pool(m, "burst"));
    struct model_counts n;
    model_counts(m, &n);
    assert_int_equal(n.ckpt_gc, 1);
    assert_int_equal(model_check(m, &e), 0);
    struct changes c = {0};
    model_take_changes(m, &c);
    assert_true(changes_is_empty(&c));
    assert_int_equal(c.next_job, 4);
    changes_deinit(&c);
    model_destroy(m);
    db_close(d);
}

/* Its user, its labels and, for a task, those of its array. */
static void what_was_left_counts_in_the_budgets_of_its_job(void **state)
{
    static const struct budget_options budgets[] = {
        {.name = "old", .labels = {{"old", "1"}}, .n_labels = 1},
        {.name = "none", .labels = {{"old", "2"}}, .n_labels = 1}, {.name = "all"},
        {.name = "nobody", .user = "nobody"}};
    struct db *d = util_open(*state);
    struct db_batch b = small_cluster();
    struct model *m = model_create(&(struct model_options){.cluster_uid = "0123456789abcdef",
        .lease_ms = 30000,
        .tables.budgets = budgets,
        .tables.n_budgets = 4});
    struct err e = {0};

    b.changes.late_costs =
        mem_dup(&(struct late_cost){.job = 1, .uusd = 11}, sizeof(struct late_cost));
    b.changes.n_late_costs = 1;
    util_commit(d, &b);
    int64_t cost = 0;
    assert_int_equal(sql_get_i64(d->sql, "SELECT cost_uusd FROM jobs WHERE id = 1", &cost, &e), 0);
    assert_int_equal(cost, 11);
    assert_int_equal(db_load(d, m, now, &e), 0);
    const struct ckpt_gc *l = ckpt_gc_of(m, 1);
    assert_non_null(l);
    assert_int_equal(l->budgets, 1 << 0 | 1 << 2);
    model_destroy(m);
    db_close(d);
}

static void what_was_left_is_known_for_its_jobs(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = small_cluster();
    struct model *m = new_model();
    struct ckpt_known known;
    struct err e = {0};

    util_commit(d, &b);
    assert_int_equal(db_load(d, m, now, &e), 0);
    model_ckpt_gc_known(m, 1, &known);
    assert_string_equal(known.identity, "0123456789abcdef-1234");
    assert_int_equal(known.last.attempt, 3);
    assert_int_equal(known.last.sequence, 7);
    model_destroy(m);
    db_close(d);
}

static void rows_that_contradict_each_other_are_refused(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = small_cluster();
    struct model *m = new_model();
    struct err e;

    util_commit(d, &b);
    util_exec(*state, "UPDATE nodes SET state = 'gone'"); /* under a running attempt */
    assert_int_equal(db_load(d, m, now, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.text, *state));
    model_destroy(m);
    db_close(d);
}

static void submit_all(struct db *d, int64_t from, int64_t to)
{
    struct db_batch b = {0};
    for (int64_t id = from; id <= to; id++)
        batch_add_submit(&b, id);
    util_commit(d, &b);
}

/* Rows are read ahead in batches of 128: none may be missing at a batch boundary. */
static void every_job_is_loaded_however_many_there_are(void **state)
{
    static const int64_t queues[] = {0, 1, 127, 128, 129, 255, 256, 257, 384, 500};
    struct db *d = util_open(*state);
    int64_t had = 0;

    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        struct model *m = new_model();
        struct model_counts counts;
        struct err e = {0};
        submit_all(d, had + 1, queues[i]);
        had = queues[i];
        assert_int_equal(db_load(d, m, now, &e), 0);
        model_counts(m, &counts);
        assert_int_equal(counts.pending, had);
        for (int64_t id = 1; id <= had; id++)
            assert_non_null(model_job(m, id));
        assert_int_equal(model_check(m, &e), 0);
        model_destroy(m);
    }
    db_close(d);
}

/* Equal documents of options are parsed once: each job still has its own. */
static void each_job_has_its_own_options(void **state)
{
    struct db *d = util_open(*state);
    struct model *m = new_model();
    struct db_batch b = {0};
    struct err e = {0};

    for (int64_t id = 1; id <= 1000; id++) {
        batch_add_submit(&b, id);
        b.changes.jobs[id - 1].spec.nice = (int32_t)(id * 7919 % 150);
        b.changes.jobs[id - 1].spec.retries.n[RETRY_FAILED] = (int32_t)(id % 3);
        if (id % 5 == 0)
            memset(b.changes.jobs[id - 1].spec.window, 'w', WINDOW_NAME_MAX - 1);
    }
    util_commit(d, &b);
    assert_int_equal(db_load(d, m, now, &e), 0);
    for (int64_t id = 1; id <= 1000; id++) {
        const struct job_spec *s = &model_job(m, id)->row.spec;
        assert_int_equal(s->nice, id * 7919 % 150);
        assert_int_equal(s->retries.n[RETRY_FAILED], id % 3);
        assert_int_equal(strlen(s->window), id % 5 == 0 ? WINDOW_NAME_MAX - 1 : 0);
        assert_int_equal(s->ckpt_keep_every, 10);
        assert_int_equal(s->need.memory_mib, 512);
    }
    model_destroy(m);
    db_close(d);
}

/* Unreadable rows, and rows that the model refuses, in the first batch and in those read ahead. */
static void a_bad_row_in_a_long_queue_is_refused(void **state)
{
    static const int64_t at[] = {1, 128, 129, 256, 300, 500};
    static const char *const bad[] = {"cpus = 1 << 40", "nodes = 0", "spec = '{\"nise\":1}'"},
                             *const good[] = {"cpus = 1", "nodes = 1", "spec = NULL"};
    struct db *d = util_open(*state);

    submit_all(d, 1, 500);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        for (size_t k = 0; k < 3; k++) {
            struct model *m = new_model();
            struct err e = {0};
            char sql[100], name[32];
            snprintf(sql, sizeof(sql), "UPDATE jobs SET %s WHERE id = %d", bad[k], (int)at[i]);
            util_exec(*state, sql);
            assert_int_equal(db_load(d, m, now, &e), ERR_CORRUPT);
            snprintf(name, sizeof(name), k != 1 ? "with id %d:" : "stored job %d ", (int)at[i]);
            assert_non_null(strstr(e.text, name));
            snprintf(sql, sizeof(sql), "UPDATE jobs SET %s", good[k]);
            util_exec(*state, sql);
            model_destroy(m);
        }
    }
    db_close(d);
}

/* SQLite's work for one load. */
struct work {
    int64_t statements, steps, scanned, sorts, bytes;
};

static int count_work(unsigned event, void *ctx, void *statement, void *ignored)
{
    struct work *w = ctx;
    (void)event;
    (void)ignored;
    w->statements++;
    w->steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
    w->scanned += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
    w->sorts += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_SORT, 1);
    return 0;
}

static struct work load_counted(struct db *d, int64_t pending)
{
    struct model *m = new_model();
    struct model_counts counts;
    struct work w = {0};
    struct err e = {0};
    sqlite3_int64 now_used, most_used, used_before;
    sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &used_before, &most_used, 1);
    sqlite3_trace_v2(d->sql, SQLITE_TRACE_PROFILE, count_work, &w);
    struct mono from = clock_mono(&clock_system);
    assert_int_equal(db_load(d, m, now, &e), 0);
    int64_t took_ms = clock_mono(&clock_system).ms - from.ms;
    sqlite3_trace_v2(d->sql, 0, NULL, NULL);
    sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &now_used, &most_used, 0);
    w.bytes = most_used - used_before;
    model_counts(m, &counts);
    assert_int_equal(counts.pending, pending);
    model_destroy(m);
    printf("%lld waiting jobs loaded in %lld ms: %lld statements, %lld steps, %lld rows scanned, "
           "%lld sorts, %lld bytes of SQLite's\n",
        (long long)pending, (long long)took_ms, (long long)w.statements, (long long)w.steps,
        (long long)w.scanned, (long long)w.sorts, (long long)w.bytes);
    return w;
}

static void submit_with_ended(struct db *d, int64_t from, int64_t to, bool ended)
{
    for (int64_t id = from; id <= to;) {
        struct db_batch b = {0};
        for (int i = 0; i < 500; i++, id++) {
            batch_add_submit(&b, id);
            if (ended)
                b.changes.jobs[i].state = JOB_ENDED;
        }
        util_commit(d, &b);
    }
}

/* The cost of a load depends on pending jobs, not on ended ones: no statement per job, no sorting,
 * no further SQLite memory. */
static void the_work_of_a_load_is_that_of_what_waits(void **state)
{
    struct db *d = util_open(*state);
    submit_with_ended(d, 1, 1000, false);
    struct work few = load_counted(d, 1000);
    submit_with_ended(d, 1001, 101000, true);
    struct work ended = load_counted(d, 1000);
    submit_with_ended(d, 101001, 200000, false);
    struct work many = load_counted(d, 100000);
    assert_int_equal(ended.statements, few.statements);
    assert_int_equal(ended.steps, few.steps);
    assert_int_equal(ended.scanned, few.scanned);
    assert_int_equal(many.statements - 100000, few.statements - 1000); /* at most one per job */
    assert_true(many.steps <= 101 * few.steps);
    assert_true(many.scanned <= 101 * few.scanned);
    assert_int_equal(few.sorts + ended.sorts + many.sorts, 0);
    assert_true(many.bytes <= 2 * few.bytes);
    db_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_lives_is_loaded_and_what_ended_is_not, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            what_was_left_counts_in_the_budgets_of_its_job, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            what_was_left_is_known_for_its_jobs, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            rows_that_contradict_each_other_are_refused, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            every_job_is_loaded_however_many_there_are, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(each_job_has_its_own_options, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_bad_row_in_a_long_queue_is_refused, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            the_work_of_a_load_is_that_of_what_waits, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
