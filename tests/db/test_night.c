/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened in a night, for the morning digest.
 */
#include "tests/db/read_rig.h"

#include "db/night.h"

#define FROM_MS 1000000
#define TO_MS 2000000

static void add_end(struct db_batch *b, int64_t id, const char *user, enum end_kind end, int64_t at,
    int64_t finish_ms)
{
    struct job_row row = {.id = id,
        .state = end == END_NONE ? JOB_RUNNING : JOB_ENDED,
        .end = end,
        .exit_code = end == END_FAILED,
        .spec.finish_ms = finish_ms,
        .procurement = finish_ms ? PROCURE_SPOT : PROCURE_FREE,
        .ended_at = end == END_NONE ? WALL_NONE : at_ms(at)};
    STR_COPY(row.user, user);
    snprintf(row.spec.name, sizeof(row.spec.name), "job-%lld", (long long)id);
    batch_add(b, TABLE_JOBS, &row);
}

static void add_attempt(
    struct db_batch *b, int64_t job, int64_t attempt, enum end_kind end, int64_t ended)
{
    struct attempt_row row = {.job = job,
        .attempt = attempt,
        .state = ATTEMPT_ENDED,
        .end = end,
        .ended_at = at_ms(ended)};
    struct ledger_row spent = {.job = job,
        .attempt = attempt,
        .kind = LEDGER_USEFUL,
        .from = at_ms(ended - 5),
        .to = at_ms(ended),
        .ms = 5,
        .uusd = 10,
        .on_demand_uusd = 30};
    batch_add(b, TABLE_ATTEMPTS, &row);
    batch_add(b, TABLE_LEDGER, &spent);
}

static void add_run(struct db_batch *b, int64_t number, enum cron_outcome outcome, int64_t job,
    int64_t times, int64_t at)
{
    struct cron_run_row row = {.cron = 7,
        .number = number,
        .at = at_ms(at),
        .outcome = outcome,
        .times = times,
        .job = job,
        .decided_at = at_ms(at)};
    STR_COPY(row.text, outcome == CRON_STARTED ? "" : "because");
    batch_add(b, TABLE_CRON_RUNS, &row);
}

static void add_history(
    struct db_batch *b, int64_t id, int64_t at, const char *kind, const char *text, int64_t a)
{
    struct history_row row = {.id = id, .at = at_ms(at), .a = a};
    STR_COPY(row.kind, kind);
    STR_COPY(row.text, text);
    batch_add(b, TABLE_HISTORY, &row);
}

static void add_night(void)
{
    struct db_batch b = {0};
    add_end(&b, 1, "ada", END_SUCCEEDED, FROM_MS - 1, 0); /* the night before */
    add_end(&b, 2, "ada", END_SUCCEEDED, FROM_MS, 0);
    add_end(&b, 3, "bob", END_SUCCEEDED, TO_MS - 1, FROM_MS + 5); /* late */
    add_end(&b, 4, "bob", END_FAILED, FROM_MS + 1, 0);
    add_end(&b, 5, "ada", END_CANCELLED, FROM_MS + 2, 1);
    add_end(&b, 6, "ada", END_NONE, 0, TO_MS - 1); /* runs, and is late */
    add_end(&b, 7, "ada", END_NONE, 0, TO_MS);
    add_end(&b, 8, "ada", END_SUCCEEDED, TO_MS, 0);       /* the next one */
    add_end(&b, 9, "ada", END_SUCCEEDED, FROM_MS + 9, 0); /* an array, counted by its tasks */
    batch_add(&b, TABLE_ARRAYS, &(struct array_row){.job = 9});
    add_attempt(&b, 2, 1, END_RECLAIMED, FROM_MS + 10);
    add_attempt(&b, 2, 2, END_NODE_LOST, FROM_MS + 20);
    add_attempt(&b, 2, 3, END_RECLAIMED, FROM_MS - 20);
    add_attempt(&b, 6, 1, END_RECLAIMED, FROM_MS + 30);
    add_attempt(&b, 4, 1, END_RECLAIMED, FROM_MS + 40); /* it failed in the end */
    add_attempt(&b, 4, 2, END_FAILED, FROM_MS + 50);
    batch_add(&b, TABLE_CRONS, &(struct cron_row){.id = 7, .name = "nightly", .user = "bob"});
    add_run(&b, 1, CRON_STARTED, 2, 1, FROM_MS - 1);
    add_run(&b, 2, CRON_STARTED, 3, 1, FROM_MS);
    add_run(&b, 3, CRON_STARTED, 4, 1, FROM_MS + 1);
    add_run(&b, 4, CRON_STARTED, 6, 1, FROM_MS + 2);
    add_run(&b, 5, CRON_MISSED, 0, 3, FROM_MS + 3);
    add_run(&b, 6, CRON_SKIPPED, 4, 1, FROM_MS + 4);
    add_history(&b, 1, FROM_MS - 1, "auto-drain", "n0 is being emptied: faulty", 0);
    add_history(&b, 5, FROM_MS, "auto-drain", "n1 is being emptied: jobs fail there", 0);
    add_history(&b, 6, FROM_MS + 1, "drain", "n2 is being emptied: by an operator", 0);
    add_history(&b, 9, FROM_MS + 2, "late", "cron entry 7 is not done by 07:00", 7);
    add_history(&b, 11, TO_MS, "late", "cron entry 7 is not done by 07:00", 7);
    add_history(&b, 12, FROM_MS + 3, "spend-anomaly", "user ada spent $9.00 on", 0);
    add_history(&b, 13, FROM_MS + 4, "spend-anomaly", "user ada2 spent $9.00 on", 0);
    add_history(&b, 14, TO_MS - 1, "spend-anomaly", "pool ada spent $9.00 on", 0);
    add_history(&b, 15, TO_MS, "spend-anomaly", "user ada spent $9.00 on", 0);
    util_commit(d, &b);
}

static void a_night_has_what_happened_in_it(void **state)
{
    struct night n;
    (void)state;
    add_night();
    assert_int_equal(db_read_night(r, at_ms(FROM_MS), at_ms(TO_MS), NULL, &n, &e), 0);
    assert_int_equal(n.ended_well, 2);
    assert_int_equal(n.cancelled, 1);
    assert_int_equal(n.failed.n, 1);
    assert_int_equal(n.failed.first[0].id, 4);
    assert_int_equal(n.failed.first[0].exit_code, 1);
    assert_string_equal(n.failed.first[0].name, "job-4");
    assert_int_equal(n.late.n, 2);
    assert_int_equal(n.late.first[0].id, 3);
    assert_int_equal(n.late.first[1].id, 6);
    assert_int_equal(n.late.first[1].end, END_NONE);
    assert_int_equal(n.reclaims, 3);
    assert_int_equal(n.reclaimed_jobs, 2);
    assert_int_equal(n.cron_runs, 3);
    assert_int_equal(n.cron_well, 1);
    assert_int_equal(n.cron_failed.n, 1);
    assert_string_equal(n.cron_failed.first[0].text, "job 4 ended: failed");
    assert_int_equal(n.cron_skipped.n, 4);
    assert_int_equal(n.cron_skipped.n_rows, 2);
    assert_string_equal(n.cron_skipped.first[1].text, "because");
    assert_int_equal(n.cron_late.n, 1);
    assert_string_equal(n.cron_late.first[0].name, "nightly");
    assert_int_equal(n.n_drained, 1);
    assert_string_equal(n.drained[0], "n1 is being emptied: jobs fail there");
    assert_int_equal(n.n_anomalies, 3);
    assert_string_equal(n.anomalies[2], "pool ada spent $9.00 on");
    assert_int_equal(n.uusd, 50);
    assert_int_equal(n.on_demand_uusd, 150);
}

static void a_user_gets_their_own(void **state)
{
    struct night n;
    (void)state;
    add_night();
    assert_int_equal(db_read_night(r, at_ms(FROM_MS), at_ms(TO_MS), "ada", &n, &e), 0);
    assert_int_equal(n.ended_well, 1);
    assert_int_equal(n.failed.n + n.cron_runs + n.cron_skipped.n + n.cron_late.n + n.n_drained, 0);
    assert_int_equal(n.late.n, 1);
    assert_int_equal(n.reclaims, 3);
    assert_int_equal(n.n_anomalies, 1);
    assert_string_equal(n.anomalies[0], "user ada spent $9.00 on");
}

/* One reading gives each user the same as a reading for that user alone, and has no others. */
static void one_reading_is_enough_for_all(void **state)
{
    static const char *const users[] = {"", "ada", "bob", "eve"};
    struct night alone;
    (void)state;
    add_night();
    struct nights *n = nights_create();
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
        if (users[i][0])
            nights_add(n, users[i]);
    nights_add(n, "ada");
    assert_int_equal(nights_users(n), 3);
    assert_int_equal(db_read_nights(r, at_ms(FROM_MS), at_ms(TO_MS), n, &e), 0);
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        const char *user = users[i][0] ? users[i] : NULL;
        assert_int_equal(db_read_night(r, at_ms(FROM_MS), at_ms(TO_MS), user, &alone, &e), 0);
        assert_memory_equal(nights_of(n, users[i]), &alone, sizeof(alone));
    }
    assert_int_equal(nights_of(n, "ada")->ended_well, 1);
    assert_int_equal(nights_of(n, "bob")->cron_late.n, 1);
    assert_int_equal(nights_of(n, "eve")->ended_well + nights_of(n, "eve")->uusd, 0);
    assert_null(nights_of(n, "mal"));
    nights_destroy(n);
}

static void more_than_are_listed_are_counted(void **state)
{
    struct db_batch b = {0};
    struct night n;
    (void)state;
    for (int64_t id = 1; id <= NIGHT_LISTED_MAX + 5; id++)
        add_end(&b, id, "ada", END_FAILED, FROM_MS + id, FROM_MS);
    for (int64_t k = 1; k <= NIGHT_LISTED_MAX + 3; k++)
        add_history(&b, k, FROM_MS + k, "auto-drain", "n is being emptied: faulty", 0);
    util_commit(d, &b);
    assert_int_equal(db_read_night(r, at_ms(FROM_MS), at_ms(TO_MS), NULL, &n, &e), 0);
    assert_int_equal(n.failed.n, NIGHT_LISTED_MAX + 5);
    assert_int_equal(n.late.n, NIGHT_LISTED_MAX + 5);
    assert_int_equal(n.n_drained, NIGHT_LISTED_MAX + 3);
    assert_int_equal(n.failed.first[NIGHT_LISTED_MAX - 1].id, NIGHT_LISTED_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_night_has_what_happened_in_it),
        TEST(a_user_gets_their_own),
        TEST(one_reading_is_enough_for_all),
        TEST(more_than_are_listed_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
