/* SPDX-License-Identifier: Apache-2.0
 *
 * What was spent on a day and on the same weekday of the weeks before, by user, team and pool.
 */
#include "tests/db/util.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/rollup.h"
#include "db/spend.h"

#define DAY 700 /* the day in question */

static struct err e;

static void add_job(struct db_batch *b, int64_t id, const char *user, const char *labels)
{
    struct job_row j = {.id = id,
        .state = JOB_RUNNING,
        .submitted_at = WALL_NONE,
        .started_at = WALL_NONE,
        .ended_at = WALL_NONE,
        .last_good_at = WALL_NONE};
    STR_COPY(j.user, user);
    STR_COPY(j.spec.team, "shared");
    batch_add(b, TABLE_JOBS, &j);
    if (labels)
        batch_add(
            b, TABLE_SPECS, &(struct spec_change){.job = id, .labels_json = mem_strdup(labels)});
}

static void spend(struct db_batch *b, int64_t job, int64_t day, int64_t uusd)
{
    struct ledger_row r = {.job = job,
        .node = 1,
        .kind = job ? LEDGER_USEFUL : LEDGER_IDLE,
        .from = {day * DAY_MS},
        .to = {day * DAY_MS + 1000},
        .ms = 1000,
        .node_ms = 1000,
        .uusd = uusd};
    batch_add(b, TABLE_LEDGER, &r);
}

static int print(void *ctx, const char *subject, int32_t week, int64_t uusd)
{
    buf_printf(ctx, "%s-%d:%lld ", subject, (int)week, (long long)uusd);
    return 0;
}

static void assert_spent(struct db_reader *r, enum spend_of of, int32_t weeks, const char *want)
{
    struct buf got = {0};
    struct wall day = {DAY * DAY_MS};
    assert_int_equal(db_read_spend(r, of, day, weeks, print, &got, &e), 0);
    assert_string_equal(buf_str(&got), want);
    buf_deinit(&got);
}

static void open_with_spending(void **state, struct db **d, struct db_reader **r)
{
    struct db_batch b = {0};
    struct node_row n = {.id = 1, .pool = "burst", .name = "n1"};
    *d = util_open(*state);
    assert_int_equal(db_reader_of(*d, r, &e), 0);
    batch_add(&b, TABLE_NODES, &n);
    add_job(&b, 1, "ann", "{\"team\":\"nlp\"}");
    add_job(&b, 2, "bob", NULL);
    spend(&b, 1, DAY, 400);
    spend(&b, 1, DAY, 5);
    spend(&b, 2, DAY, 30);
    spend(&b, 1, DAY - 1, 7777); /* other weekdays do not count */
    spend(&b, 1, DAY - 6, 7777);
    spend(&b, 1, DAY + 7, 7777);
    spend(&b, 1, DAY - 7, 90);
    spend(&b, 2, DAY - 21, 20);
    spend(&b, 1, DAY - 28, 7777); /* a week too many */
    spend(&b, 0, DAY, 1000);      /* idle time: of a pool, of no user or team */
    assert_int_equal(db_commit(*d, &b, &e), 0);
    db_batch_deinit(&b);
}

static void the_same_weekdays_are_read(void **state)
{
    struct db *d;
    struct db_reader *r;
    open_with_spending(state, &d, &r);
    assert_spent(r, SPEND_OF_USER, 3, "ann-0:405 ann-1:90 bob-0:30 bob-3:20 ");
    assert_spent(r, SPEND_OF_TEAM, 3, "nlp-0:405 nlp-1:90 shared-0:30 shared-3:20 ");
    assert_spent(r, SPEND_OF_POOL, 3, "burst-0:1435 burst-1:90 burst-3:20 ");
    assert_spent(r, SPEND_OF_USER, 1, "ann-0:405 ann-1:90 bob-0:30 ");
    db_reader_close(r);
    db_close(d);
}

static void a_job_is_charged_to_its_label_or_its_team(void **state)
{
    struct db *d;
    struct db_reader *r;
    char team[CORE_NAME_MAX];
    open_with_spending(state, &d, &r);
    assert_int_equal(db_read_charged_team(r, 1, team, &e), 0);
    assert_string_equal(team, "nlp");
    assert_int_equal(db_read_charged_team(r, 2, team, &e), 0);
    assert_string_equal(team, "shared");
    assert_int_equal(db_read_charged_team(r, 3, team, &e), 0);
    assert_string_equal(team, "");
    db_reader_close(r);
    db_close(d);
}

static void an_attempt_that_has_ended_is_not_live(void **state)
{
    struct db *d;
    struct db_reader *r;
    struct db_batch b = {0};
    bool is_live;
    open_with_spending(state, &d, &r);
    struct attempt_row running = {.job = 1, .attempt = 2, .node = 1, .state = ATTEMPT_RUNNING},
                       ended = {
                           .job = 1, .attempt = 2, .rank = 1, .node = 1, .state = ATTEMPT_ENDED};
    batch_add(&b, TABLE_ATTEMPTS, &running);
    batch_add(&b, TABLE_ATTEMPTS, &ended);
    assert_int_equal(db_commit(d, &b, &e), 0);
    db_batch_deinit(&b);
    assert_int_equal(db_read_is_live(r, 1, 2, 0, &is_live, &e), 0);
    assert_true(is_live);
    assert_int_equal(db_read_is_live(r, 1, 2, 1, &is_live, &e), 0);
    assert_false(is_live);
    assert_int_equal(db_read_is_live(r, 1, 3, 0, &is_live, &e), 0);
    assert_false(is_live);
    db_reader_close(r);
    db_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_weekdays_are_read, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_job_is_charged_to_its_label_or_its_team, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            an_attempt_that_has_ended_is_not_live, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
