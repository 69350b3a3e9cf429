/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a short history of jobs and machines from a database.
 */
#include "tests/db/util.h"

#include "base/str.h"
#include "replay/history.h"
#include <stdio.h>
#include <string.h>

#define START 1785542400000 /* 2026-08-01 */
#define MINUTE 60000

static void add_instance(struct db_batch *b, int64_t id, const char *zone, int64_t from_ms,
    int64_t until_ms, bool launched, bool reclaimed)
{
    struct instance_row r = {.id = id,
        .market = MARKET_SPOT,
        .state = INSTANCE_GONE,
        .price_uusd_h = 360000,
        .intended_at = {START + from_ms},
        .launched_at = WALL_NONE,
        .joined_at = WALL_NONE,
        .priced_at = WALL_NONE,
        .used_until = WALL_NONE,
        .ended_at = {START + until_ms},
        .reclaimed = reclaimed};
    if (launched) {
        r.launched_at = r.intended_at;
        r.priced_at = r.ended_at;
        r.accrued_uusd = (until_ms - from_ms) / 10; /* $0.36 an hour */
    }
    snprintf(r.token, sizeof r.token, "t%d", (int)id);
    STR_COPY(r.pool, "burst");
    STR_COPY(r.zone, zone);
    STR_COPY(r.type, "m5.xlarge");
    batch_add(b, TABLE_INSTANCES, &r);
}

static void add_job(
    struct db_batch *b, int64_t id, enum ckpt_method method, int32_t nodes, enum job_state state)
{
    struct prng p;
    struct job_row r = {0};
    prng_init(&p, 1);
    fill_row(TABLE_JOBS, &r, FILL_ZERO, &p, id);
    r.state = state;
    r.spec.method = method;
    r.spec.nodes = r.ranks = nodes;
    r.spec.need = (struct resources){.cpus = 4, .memory_mib = 1024};
    r.pause_ms = 3000;
    r.spec.ckpt_every_ms = 60000;
    r.ckpt_bytes = 1 << 20;
    r.submitted_at = at_ms(START + id * MINUTE);
    STR_COPY(r.user, "ann");
    STR_COPY(r.spec.team, "nlp");
    batch_add(b, TABLE_JOBS, &r);
}

static void add_time(struct db_batch *b, int64_t job, enum ledger_kind kind, int64_t ms)
{
    struct ledger_row r = {.job = job,
        .attempt = 1,
        .node = 1,
        .kind = kind,
        .from = {START},
        .to = {START + ms},
        .ms = ms};
    batch_add(b, TABLE_LEDGER, &r);
}

static void the_work_of_jobs_is_the_ledgers_useful_time(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    struct joblog l;
    struct err e;
    add_job(&b, 1, CKPT_COOP, 1, JOB_ENDED);
    add_time(&b, 1, LEDGER_LOST, 5 * MINUTE);
    add_time(&b, 1, LEDGER_USEFUL, 7 * MINUTE);
    add_time(&b, 1, LEDGER_SAVE, MINUTE);
    add_time(&b, 1, LEDGER_USEFUL, 3 * MINUTE); /* by its second attempt */
    add_job(&b, 2, CKPT_NONE, 2, JOB_ENDED);
    b.changes.jobs[1].constraints = 5;
    batch_add(&b, TABLE_CONSTRAINTS,
        &(struct constraints_row){
            .id = 5, .text = "gpu=a100 exclusive=yes input=aws/us-east-1:1024"});
    add_time(&b, 2, LEDGER_USEFUL, 4 * MINUTE); /* by each of its ranks */
    add_time(&b, 2, LEDGER_USEFUL, 4 * MINUTE);
    add_job(&b, 3, CKPT_COOP, 1, JOB_ENDED); /* cancelled before it ran */
    add_job(&b, 4, CKPT_COOP, 1, JOB_RUNNING);
    add_time(&b, CORE_ID_NONE, LEDGER_IDLE, MINUTE);
    util_commit(d, &b);
    assert_true(history_is_database(*state));
    if (history_read_jobs(*state, &l, &e) != 0) /* while belayd has the database open */
        fail_msg("%s", e.text);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.n_never_ran, 1);
    assert_int_equal(l.jobs[0].work_ms, 10 * MINUTE);
    assert_int_equal(l.jobs[0].save_ms, 3000);
    assert_int_equal(l.jobs[0].every_ms, 60000);
    assert_int_equal(l.jobs[0].submit.ms, START + MINUTE);
    assert_string_equal(l.jobs[0].team, "nlp");
    assert_int_equal(l.jobs[1].work_ms, 4 * MINUTE);
    assert_int_equal(l.jobs[1].nodes, 2);
    assert_int_equal(l.jobs[1].save_ms, 0);
    assert_null(l.jobs[0].constraints);
    assert_string_equal(
        l.jobs[1].constraints, "input=aws/us-east-1:1024"); /* the rest is about nodes */
    joblog_deinit(&l);
    db_close(d);
}

static void a_trace_follows_the_outcomes_of_launches(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    struct traces t = {0};
    struct err e;
    /* available for ten minutes, then reclaimed */
    add_instance(&b, 1, "a", 0, 10 * MINUTE, true, true);
    add_instance(&b, 2, "a", 12 * MINUTE, 12 * MINUTE, false, false); /* refused */
    /* available again, and ended by belay */
    add_instance(&b, 3, "a", 15 * MINUTE, 20 * MINUTE, true, false);
    add_instance(&b, 4, "b", 5 * MINUTE, 5 * MINUTE, false, false);
    util_commit(d, &b);
    db_close(d);
    if (history_read_traces(*state, (struct wall){START}, &t, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(t.n, 2);
    const struct trace *a = &t.list[0].trace, *none = &t.list[1].trace;
    assert_string_equal(t.list[0].offer, "burst/a/m5.xlarge");
    assert_int_equal(a->gap_ms, MINUTE);
    assert_int_equal(a->n, 21);
    for (size_t i = 0; i < a->n; i++)
        if (a->counts[i] != (i < 10 || i >= 15))
            fail_msg("minute %d: %d", (int)i, (int)a->counts[i]);
    assert_int_equal(a->prices_uusd_h[3], 360000);
    assert_int_equal(none->n, 21);
    for (size_t i = 0; i < none->n; i++)
        assert_int_equal(none->counts[i], 0);
    struct offer_row o = {.pool = "burst", .zone = "a", .type = "m5.xlarge"};
    bool prices;
    assert_ptr_equal(market_find(&t, &o, &prices), &t.list[0]);
    assert_true(prices);
    market_deinit(&t);
    /* a log that begins later shortens the trace to its own begin */
    assert_int_equal(history_read_traces(*state, (struct wall){START + 11 * MINUTE}, &t, &e), 0);
    assert_int_equal(t.list[0].trace.n, 10);
    assert_int_equal(t.list[0].trace.counts[0], 0);
    assert_int_equal(t.list[0].trace.counts[4], 1);
    market_deinit(&t);
}

static void an_unusable_database_is_refused_with_the_reason(void **state)
{
    struct traces t = {0};
    struct joblog l;
    struct err e;
    assert_int_equal(history_read_jobs(*state, &l, &e) < 0, true); /* the file does not exist */
    struct db *d = util_open(*state);
    assert_int_equal(history_read_traces(*state, WALL_NONE, &t, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "the database has no spot machine"));
    db_close(d);
    util_exec(*state, "PRAGMA user_version = 99");
    assert_int_equal(history_read_jobs(*state, &l, &e), ERR_CONFIG);
    util_exec(*state, "PRAGMA user_version = 2");
    assert_false(history_is_database("/dev/null"));
    assert_false(history_is_database("/nowhere"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_work_of_jobs_is_the_ledgers_useful_time, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_trace_follows_the_outcomes_of_launches, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            an_unusable_database_is_refused_with_the_reason, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
