/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums by day: they are there with the ledger's rows, add up to them, and know the labels.
 */
#include "db/cost_days.h"
#include "tests/db/util.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define DAY_MS 86400000LL

static struct err e;

static void add_job(struct db_batch *b, int64_t id, const char *user, const char *labels, enum end_kind end)
{
    struct job_row j = {.id = id,
        .state = end == END_NONE ? JOB_RUNNING : JOB_ENDED,
        .end = end,
        .submitted_at = WALL_NONE,
        .started_at = WALL_NONE,
        .ended_at = end == END_NONE ? WALL_NONE : (struct wall){40 * DAY_MS},
        .last_good_at = WALL_NONE};
    STR_COPY(j.user, user);
    STR_COPY(j.team, "shared");
    batch_add(b, TABLE_JOBS, &j);
    if (labels)
        batch_add(b, TABLE_SPECS, &(struct spec_change){.job = id, .labels_json = mem_strdup(labels)});
}

static void add_row(struct db_batch *b, int64_t job, enum ledger_kind kind, int64_t from_ms, int64_t ms, int64_t uusd)
{
    struct ledger_row r = {.job = job,
        .node = 1,
        .kind = kind,
        .from = {from_ms},
        .to = {from_ms + ms},
        .ms = ms,
        .node_ms = ms,
        .uusd = uusd,
        .on_demand_uusd = kind == LEDGER_USEFUL ? 2 * uusd : 0};
    batch_add(b, TABLE_LEDGER, &r);
}

static int print_sum(void *ctx, const struct cost_sum *s)
{
    buf_printf(ctx, "%s:%lld/%lld,%lld,%lld,%lld ", s->key, (long long)s->succeeded, (long long)s->jobs, (long long)s->uusd,
        (long long)s->total_ms, (long long)s->spent_uusd[LEDGER_LOST]);
    return 0;
}

static void assert_sums(struct db_reader *r, struct cost_query c, const char *want)
{
    struct buf got = {0};
    assert_int_equal(db_read_cost_days(r, &c, print_sum, &got, &e), 0);
    assert_string_equal(buf_str(&got), want);
    buf_deinit(&got);
}

/* A stretch of three days and a half that begins at noon, of an odd sum; and what others spent. */
static void sums_by_day_and_label_add_up_to_the_ledger(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    const struct wall all = WALL_NONE;

    assert_int_equal(db_reader_of(d, &r, &e), 0);
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 1, .pool = "base"});
    add_job(&b, 1, "ada", "{\"exp\": \"3\", \"team\": \"nlp\"}", END_SUCCEEDED);
    add_job(&b, 2, "bob", "{\"exp\": \"3\", \"team\": \"nlp\"}", END_FAILED);
    add_job(&b, 3, "bob", NULL, END_NONE);
    util_commit(d, &b);
    add_row(&b, 1, LEDGER_USEFUL, 30 * DAY_MS + DAY_MS / 2, 3 * DAY_MS + DAY_MS / 2, 1000001);
    add_row(&b, 2, LEDGER_LOST, 31 * DAY_MS, 1000, 7);
    add_row(&b, 2, LEDGER_LOST, 31 * DAY_MS + 5000, 1000, 8);
    add_row(&b, 3, LEDGER_USEFUL, 40 * DAY_MS, 500, 5);
    add_row(&b, CORE_ID_NONE, LEDGER_IDLE, 40 * DAY_MS, 300, -2); /* taken back */
    util_commit(d, &b);
    assert_sums(r, (struct cost_query){"team", NULL, NULL, all, all}, ":0/0,-2,300,0 nlp:1/2,1000016,302402000,15 shared:0/0,5,500,0 ");
    assert_sums(r, (struct cost_query){"label:exp", NULL, NULL, all, all}, ":0/0,3,800,0 3:1/2,1000016,302402000,15 ");
    assert_sums(r, (struct cost_query){"user", NULL, NULL, all, all}, ":0/0,-2,300,0 ada:1/1,1000001,302400000,0 bob:0/1,20,2500,15 ");
    assert_sums(r, (struct cost_query){"month", NULL, NULL, all, all}, "1970-01:0/0,142857,43200000,0 1970-02:1/2,857162,259202800,15 ");
    assert_sums(r, (struct cost_query){"day", "ada", NULL, {31 * DAY_MS}, {33 * DAY_MS}},
        "1970-02-01:0/0,285714,86400000,0 1970-02-02:0/0,285715,86400000,0 ");
    assert_sums(r, (struct cost_query){"week", "ada", "base", all, all}, "1970-01-26:0/0,428571,129600000,0 1970-02-02:0/0,571430,172800000,0 ");
    assert_sums(r, (struct cost_query){"pool", NULL, "base", all, all}, "base:0/0,1000019,302402800,15 ");
    assert_sums(r, (struct cost_query){"pool", NULL, "none", all, all}, "");
    assert_int_equal(db_read_cost_days(r, &(struct cost_query){"weather", NULL, NULL, all, all}, print_sum, NULL, &e), ERR_INVALID);
    db_reader_close(r);
    db_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_by_day_and_label_add_up_to_the_ledger, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
