/* SPDX-License-Identifier: Apache-2.0
 *
 * Daily sums: committed with the ledger's rows, equal to their sums, and by label.
 */
#include "db/cost_sums.h"
#include "tests/db/util.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/query.h"
#include "db/rollup.h"
#include <stdio.h>
#include <string.h>

static struct err e;

static void add_job(
    struct db_batch *b, int64_t id, const char *user, const char *labels, enum end_kind end)
{
    struct job_row j = {.id = id,
        .state = end == END_NONE ? JOB_RUNNING : JOB_ENDED,
        .end = end,
        .submitted_at = WALL_NONE,
        .started_at = WALL_NONE,
        .ended_at = end == END_NONE ? WALL_NONE : (struct wall){(40 + id % 2) * DAY_MS},
        .last_good_at = WALL_NONE};
    STR_COPY(j.user, user);
    STR_COPY(j.spec.team, "shared");
    batch_add(b, TABLE_JOBS, &j);
    if (labels)
        batch_add(
            b, TABLE_SPECS, &(struct spec_change){.job = id, .labels_json = mem_strdup(labels)});
}

static void add_row(struct db_batch *b, int64_t job, enum ledger_kind kind, int64_t from_ms,
    int64_t ms, int64_t uusd)
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

static struct cost_query all_by(const char *by)
{
    return (struct cost_query){.by = by, .from = WALL_NONE, .to = WALL_NONE};
}

static int print_sum(void *ctx, const char *const keys[], const struct cost_sum *s)
{
    buf_printf(ctx, "%s:%lld/%lld,%lld,%lld,%lld ", keys[0], (long long)s->succeeded,
        (long long)s->jobs, (long long)s->uusd, (long long)s->total_ms,
        (long long)s->spent_uusd[LEDGER_LOST]);
    return 0;
}

static void assert_sums(struct db_reader *r, struct cost_query c, const char *want)
{
    struct buf got = {0};
    assert_int_equal(db_read_cost_sums(r, &c, print_sum, &got, &e), 0);
    assert_string_equal(buf_str(&got), want);
    buf_deinit(&got);
}

/* An interval of three and a half days that begins at noon, with an odd amount; and costs of other
 * users. */
static void sums_by_day_and_label_add_up_to_the_ledger(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};

    assert_int_equal(db_reader_of(d, &r, &e), 0);
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 1, .pool = "base", .total = {.cpus = 8}});
    add_job(&b, 1, "ada", "{\"exp\": \"3\", \"team\": \"nlp\"}", END_SUCCEEDED);
    add_job(&b, 2, "bob", "{\"exp\": \"3\", \"team\": \"nlp\"}", END_FAILED);
    add_job(&b, 3, "bob", NULL, END_NONE);
    util_commit(d, &b);
    add_row(&b, 1, LEDGER_USEFUL, 30 * DAY_MS + DAY_MS / 2, 3 * DAY_MS + DAY_MS / 2, 1000001);
    add_row(&b, 2, LEDGER_LOST, 31 * DAY_MS, 1000, 7);
    add_row(&b, 2, LEDGER_LOST, 31 * DAY_MS + 5000, 1000, 8);
    add_row(&b, 3, LEDGER_USEFUL, 40 * DAY_MS, 500, 5);
    add_row(&b, CORE_ID_NONE, LEDGER_IDLE, 40 * DAY_MS, 300, -2); /* a correction */
    util_commit(d, &b);
    assert_sums(r, all_by("team"),
        "(idle, owned):0/0,-2,300,0 nlp:1/2,1000016,302402000,15 shared:0/0,5,500,0 ");
    assert_sums(r, all_by("label:exp"),
        ":0/0,5,500,0 (idle, owned):0/0,-2,300,0 3:1/2,1000016,302402000,15 ");
    assert_sums(r, all_by("user"),
        "(idle, owned):0/0,-2,300,0 ada:1/1,1000001,302400000,0 bob:0/1,20,2500,15 ");
    assert_sums(
        r, all_by("month"), "1970-01:0/0,142857,43200000,0 1970-02:1/2,857162,259202800,15 ");
    /* of which type a job was is not kept: all are counted where there is none */
    assert_sums(r, all_by("type"), ":1/2,0,0,0 8 cpus:0/0,1000019,302402800,15 ");
    assert_sums(r,
        (struct cost_query){.by = "day", .user = "ada", .from = {31 * DAY_MS}, .to = {33 * DAY_MS}},
        "1970-02-01:0/0,285714,86400000,0 1970-02-02:0/0,285715,86400000,0 ");
    assert_sums(r,
        (struct cost_query){
            .by = "week", .user = "ada", .pool = "base", .from = WALL_NONE, .to = WALL_NONE},
        "1970-01-26:0/0,428571,129600000,0 1970-02-02:0/0,571430,172800000,0 ");
    assert_sums(r,
        (struct cost_query){.by = "pool", .pool = "base", .from = WALL_NONE, .to = WALL_NONE},
        "base:0/0,1000019,302402800,15 ");
    assert_sums(r,
        (struct cost_query){.by = "pool", .pool = "none", .from = WALL_NONE, .to = WALL_NONE}, "");
    assert_sums(r,
        (struct cost_query){.by = "user", .team = "nlp", .from = WALL_NONE, .to = WALL_NONE},
        "ada:1/1,1000001,302400000,0 bob:0/1,15,2000,15 ");
    db_reader_close(r);
    db_close(d);
}

static void what_costs_are_asked_by_is_checked(void **state)
{
    (void)state;
    char longest[COST_BY_MAX + 200] = "label:";
    bool jobs_known;
    assert_int_equal(db_cost_keys("team,month", &jobs_known, &e), 2);
    assert_true(jobs_known);
    assert_int_equal(db_cost_keys("project,type,day,label:a-b.c", &jobs_known, &e), 4);
    assert_false(jobs_known);
    memset(longest + 6, 'x', sizeof(longest) - 7);
    const char *const bad[] = {"", "weather", "team,", ",team", "team,,day", "Team",
        "label:", "label:a\"b", "label:a b", "job", "team,job", "team month",
        "user,team,pool,day,month", "label", longest};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (db_cost_keys(bad[i], &jobs_known, &e) != ERR_INVALID)
            fail_msg("'%s' was taken", bad[i]);
}

/* ---- conservation ---- */

#define JOBS 40

static int add_up(void *ctx, const char *const keys[], const struct cost_sum *s)
{
    struct cost_sum *sum = ctx;
    int64_t of_kinds = 0;
    assert_non_null(keys[0]);
    for (int k = 0; k < LEDGER_KINDS; k++)
        of_kinds += s->spent_uusd[k];
    assert_int_equal(of_kinds, s->uusd);
    sum->jobs += s->jobs;
    sum->succeeded += s->succeeded;
    sum->uusd += s->uusd;
    sum->on_demand_uusd += s->on_demand_uusd;
    sum->useful_ms += s->useful_ms;
    sum->lost_ms += s->lost_ms;
    sum->total_ms += s->total_ms;
    return 0;
}

static int64_t get(struct db *d, const char *text)
{
    int64_t v;
    assert_int_equal(sql_get_i64(d->sql, text, &v, &e), 0);
    return v;
}

static void add_random_year(struct db *d, struct prng *p)
{
    static const char *const labels[] = {NULL, "{\"team\": \"nlp\"}",
        "{\"model\": \"a\", \"team\": \"vision\"}", "{\"model\": \"b\", \"project\": \"p\"}"};
    struct db_batch b = {0};
    for (int64_t i = 1; i <= 3; i++)
        batch_add(&b, TABLE_NODES,
            &(struct node_row){.id = i,
                .pool = "base",
                .instance = i - 1,
                .market = i % 2 ? MARKET_OWNED : MARKET_SPOT});
    for (int64_t i = 1; i <= 2; i++)
        batch_add(&b, TABLE_INSTANCES,
            &(struct instance_row){.id = i,
                .pool = "burst",
                .type = "m5.large",
                .market = MARKET_SPOT,
                .node = i + 1});
    for (int64_t i = 1; i <= JOBS; i++)
        add_job(&b, i, i % 3 ? "ada" : "bob", labels[i % 4],
            i % 5 ? i % 2 ? END_SUCCEEDED : END_FAILED : END_NONE);
    util_commit(d, &b);
    for (int i = 0; i < 300; i++) {
        struct ledger_row r = {.job = prng_range(p, 0, JOBS),
            .node = prng_range(p, 0, 3),
            .instance = prng_range(p, 0, 2),
            .kind = (enum ledger_kind)prng_range(p, 0, LEDGER_KINDS - 1),
            .from = {prng_range(p, 0, 400 * DAY_MS)},
            .ms = prng_range(p, 0, 1) ? prng_range(p, 0, 3600000) : prng_range(p, 0, 20 * DAY_MS),
            .uusd = prng_range(p, -1000, 1000000007),
            .on_demand_uusd = prng_range(p, 0, 1000000007)};
        r.to.ms = r.from.ms + r.ms;
        r.node_ms = r.ms / 3;
        batch_add(&b, TABLE_LEDGER, &r);
    }
    util_commit(d, &b);
}

/* For any query and any period the sums equal the ledger to the micro-dollar and the
 * millisecond. */
static void every_way_of_asking_adds_up_to_the_ledger(void **state)
{
    static const char *const ways[] = {"user", "team", "pool", "type", "market", "kind", "day",
        "week", "month", "project", "label:model", "team,month", "label:model,month", "kind,week",
        "user,team,type,market", "user,month", "pool,month", "market,month", "type,kind",
        "day,label:model,label:project,kind"};
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct prng p;
    prng_init(&p, 7);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    add_random_year(d, &p);
    const int64_t uusd = get(d, "SELECT sum(uusd) FROM ledger"),
                  on_demand = get(d, "SELECT sum(on_demand_uusd) FROM ledger");
    const int64_t ms = get(d, "SELECT sum(ms) FROM ledger"),
                  lost = get(d, "SELECT sum(ms) FROM ledger WHERE kind = 'lost'");
    const int64_t ended = get(d, "SELECT count(*) FROM jobs WHERE state = 'ended'"),
                  succeeded = get(d, "SELECT count(*) FROM jobs WHERE end_kind = 'succeeded'");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct cost_sum all = {0}, cut = {0};
        assert_int_equal(
            db_read_cost_sums(r,
                &(struct cost_query){.by = ways[i], .from = WALL_NONE, .to = WALL_NONE}, add_up,
                &all, &e),
            0);
        assert_int_equal(all.uusd, uusd);
        assert_int_equal(all.on_demand_uusd, on_demand);
        assert_int_equal(all.total_ms, ms);
        assert_int_equal(all.lost_ms, lost);
        assert_int_equal(all.jobs, ended);
        assert_int_equal(all.succeeded, succeeded);
        const int64_t a = prng_range(&p, 0, 200), b = prng_range(&p, a, 450);
        const struct cost_query parts[] = {{.by = ways[i], .from = WALL_NONE, .to = {a * DAY_MS}},
            {.by = ways[i], .from = {a * DAY_MS}, .to = {b * DAY_MS}},
            {.by = ways[i], .from = {b * DAY_MS}, .to = WALL_NONE}};
        for (int k = 0; k < 3; k++)
            assert_int_equal(db_read_cost_sums(r, &parts[k], add_up, &cut, &e), 0);
        assert_memory_equal(&cut, &all, sizeof(all));
    }
    struct cost_sum of_user = {0};
    assert_int_equal(
        db_read_cost_sums(r,
            &(struct cost_query){.by = "month", .user = "bob", .from = WALL_NONE, .to = WALL_NONE},
            add_up, &of_user, &e),
        0);
    assert_int_equal(of_user.uusd,
        get(d,
            "SELECT sum(l.uusd) FROM ledger l JOIN jobs j ON j.id = l.job WHERE j.user = 'bob'"));
    assert_int_equal(
        of_user.jobs, get(d, "SELECT count(*) FROM jobs WHERE user = 'bob' AND state = 'ended'"));
    db_reader_close(r);
    db_close(d);
}

/* Jobs that end in one batch each count once, on their own day; an array does not count in addition
 * to its tasks. */
static void jobs_that_end_together_count_each_on_its_day(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    for (int64_t i = 1; i <= 1000; i++)
        add_job(&b, i, "ada", NULL,
            i % 4 == 1   ? END_SUCCEEDED
            : i % 4 == 3 ? END_NONE
                         : END_CANCELLED);
    batch_add(&b, TABLE_ARRAYS, &(struct array_row){.job = 2, .tasks = "0-9"});
    util_commit(d, &b);
    for (int64_t i = 1001; i <= 1010; i++)
        add_job(&b, i, i > 1005 ? "bob" : "ada", NULL, END_FAILED);
    util_commit(d, &b);
    assert_int_equal(
        get(d, "SELECT sum(ended) FROM cost_sums WHERE span = 1 AND detail = 3 AND since = 40"),
        499 + 5);
    assert_int_equal(
        get(d, "SELECT sum(ended) FROM cost_sums WHERE span = 1 AND detail = 3 AND since = 41"),
        250 + 5);
    assert_int_equal(
        get(d, "SELECT sum(succeeded) FROM cost_sums WHERE span = 1 AND detail = 7 AND since = 41"),
        250);
    assert_int_equal(
        get(d, "SELECT sum(ended) FROM cost_sums WHERE span = 31 AND detail = 7 AND user = 'bob'"),
        5);
    db_close(d);
}

static void step(sqlite3_stmt *s)
{
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_reset(s);
}

static void sum_up_ledger(struct db *d)
{
    struct ledger_row row = {0}, piece;
    struct query q;
    query_init(&q, &d->statements, TABLE_LEDGER, "", &e);
    while (query_next(&q, &row))
        for (int64_t day = INT64_MIN; day != INT64_MAX;) {
            rollup_piece(&row, &day, &piece);
            step(rollup_cost(&d->rollup, &piece));
        }
    assert_int_equal(query_finish(&q), 0);
}

static void sum_up_jobs(struct db *d)
{
    struct query q;
    query_init_text(&q, &d->statements, "SELECT id, ended_at FROM jobs WHERE state = 'ended'", &e);
    while (query_step(&q)) {
        struct job_row j = {.id = sqlite3_column_int64(q.stmt, 0),
            .state = JOB_ENDED,
            .ended_at = {sqlite3_column_int64(q.stmt, 1)}};
        size_t at = 0;
        step(rollup_jobs(&d->rollup, &j, 1, &at));
    }
    assert_int_equal(query_finish(&q), 0);
}

static const char sums_that_differ[] =
    "SELECT (SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM cost_sums)) +"
    " (SELECT count(*) FROM (SELECT * FROM cost_sums EXCEPT SELECT * FROM kept))";

/* Incremental sums equal sums computed afterwards: those of an entry alone equal those of many. */
static void rebuilt_sums_equal_the_stored_ones(void **state)
{
    struct db *d = util_open(*state);
    struct prng p;
    prng_init(&p, 8);
    add_random_year(d, &p);
    assert_int_equal(
        sql_exec(
            d->sql, "CREATE TEMP TABLE kept AS SELECT * FROM cost_sums; DELETE FROM cost_sums", &e),
        0);
    sum_up_ledger(d);
    sum_up_jobs(d);
    assert_int_equal(get(d, sums_that_differ), 0);
    assert_true(get(d, "SELECT count(*) FROM cost_sums") > 1000);
    db_close(d);
}

/* More pieces than one statement adds, with the kinds and days of several. */
static void add_many(struct db_batch *b, int n)
{
    for (int i = 0; i < n; i++)
        add_row(b, 1 + i % 2, i % 3 ? LEDGER_USEFUL : LEDGER_LOST, i % 7 * DAY_MS + i, 1000, i);
}

static void many_entries_in_one_commit_add_up_as_each_alone(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    const int n = 2 * ROLLUP_PIECES_MAX + ROLLUP_MANY;
    add_job(&b, 1, "ada", "{\"team\": \"nlp\"}", END_SUCCEEDED);
    add_job(&b, 2, "bob", NULL, END_NONE);
    util_commit(d, &b);
    add_many(&b, n);
    util_commit(d, &b);
    assert_int_equal(get(d, "SELECT sum(uusd) FROM cost_sums WHERE detail = 7 AND span = 1"),
        (int64_t)n * (n - 1) / 2);
    assert_int_equal(
        sql_exec(
            d->sql, "CREATE TEMP TABLE kept AS SELECT * FROM cost_sums; DELETE FROM cost_sums", &e),
        0);
    sum_up_ledger(d);
    sum_up_jobs(d);
    assert_int_equal(get(d, sums_that_differ), 0);
    assert_int_equal(get(d, "SELECT count(*) FROM temp.pieces"), 0);
    db_close(d);
}

/* Each step fails once: nothing is counted, also not by the commit that follows. */
static void many_entries_of_a_commit_that_fails_are_not_counted(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch jobs = {0};
    (void)state;
    add_job(&jobs, 1, "ada", NULL, END_NONE);
    add_job(&jobs, 2, "bob", NULL, END_NONE);
    util_commit(d, &jobs);
    int64_t n = 1;
    for (bool failed = true; failed; n++) {
        struct db_batch b = {0};
        add_many(&b, ROLLUP_MANY);
        int64_t before = get(d, "SELECT ifnull(sum(ms), 0) FROM cost_sums WHERE detail = 2");
        db_fail_at(d, n, SQLITE_FULL);
        failed = db_commit(d, &b, &e) != 0;
        db_fail_at(d, 0, 0);
        assert_int_equal(get(d, "SELECT ifnull(sum(ms), 0) FROM cost_sums WHERE detail = 2"),
            before + (failed ? 0 : ROLLUP_MANY * 1000));
        db_batch_deinit(&b);
    }
    assert_true(n > 2 * ROLLUP_MANY);
    db_close(d);
}

static int count_gap(void *ctx, const char *text)
{
    assert_non_null(text);
    ++*(int *)ctx;
    return 0;
}

static void egress_that_is_not_its_attempts_is_found(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    int n = 0;
    struct attempt_row a = {.job = 1,
                           .attempt = 2,
                           .node = 3,
                           .state = ATTEMPT_ENDED,
                           .egress_uusd = 50},
                       lives = {.job = 1, .attempt = 3, .node = 3, .egress_uusd = 9};
    struct ledger_row row = {.job = 1,
        .attempt = 2,
        .node = 3,
        .instance = 4,
        .kind = LEDGER_EGRESS,
        .from = {1},
        .to = {2},
        .uusd = 50};
    struct ledger_row kept = {.job = 1, .kind = LEDGER_STORAGE, .from = {1}, .to = {2}, .uusd = 7};
    struct stored_row stored = {.job = 1, .bytes = 5, .uusd = 7};
    batch_add(&b, TABLE_LEDGER, &kept);
    batch_add(&b, TABLE_STORED, &stored);
    batch_add(&b, TABLE_ATTEMPTS, &a);
    batch_add(&b, TABLE_ATTEMPTS, &lives);
    batch_add(&b, TABLE_LEDGER, &row);
    util_commit(d, &b);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    assert_int_equal(db_read_data_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(sql_exec(d->sql, "UPDATE ledger SET uusd = 49 WHERE kind = 'egress'", &e), 0);
    assert_int_equal(db_read_data_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_int_equal(sql_exec(d->sql, "DELETE FROM ledger", &e), 0);
    assert_int_equal(db_read_data_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 3); /* this row, and the storage */
    db_reader_close(r);
    db_close(d);
}

static void a_cost_that_is_not_the_ledgers_is_found(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    int n = 0;
    for (int64_t id = 1; id <= 3; id++)
        add_job(&b, id, "ada", NULL, END_SUCCEEDED);
    b.changes.jobs[0].cost_uusd = 12;
    add_row(&b, 1, LEDGER_USEFUL, 0, 1000, 10);
    add_row(&b, 1, LEDGER_STORAGE, 0, 1000, 5);
    add_row(&b, CORE_ID_NONE, LEDGER_BOOT, 0, 1000, 7);
    b.changes.late_costs =
        mem_dup(&(struct late_cost){.job = 1, .uusd = 3}, sizeof(struct late_cost));
    b.changes.n_late_costs = 1;
    util_commit(d, &b);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    assert_int_equal(db_read_job_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(
        sql_exec(d->sql, "UPDATE jobs SET cost_uusd = cost_uusd + 1 WHERE id < 3", &e), 0);
    assert_int_equal(db_read_job_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 2);
    db_reader_close(r);
    db_close(d);
}

/* The job began before it moved: the new team is charged only for later costs. */
static void what_was_spent_stays_with_the_team_of_then(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct db_batch b = {0};
    int n = 0;
    add_job(&b, 1, "ada", NULL, END_NONE);
    add_row(&b, 1, LEDGER_USEFUL, 0, 1000, 10);
    util_commit(d, &b);
    add_job(&b, 1, "ada", NULL, END_SUCCEEDED);
    STR_COPY(b.changes.jobs[0].spec.team, "other");
    add_row(&b, 1, LEDGER_USEFUL, 1000, 500, 5);
    util_commit(d, &b);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    assert_sums(r, all_by("team"), "other:1/1,5,500,0 shared:0/0,10,1000,0 ");
    assert_int_equal(db_read_rollup_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 0);
    db_reader_close(r);
    db_close(d);
}

/* Any manual change is detected by the comparison of belay audit. */
static void sums_that_are_not_the_ledgers_are_found(void **state)
{
    static const char *const damage[] = {
        "UPDATE ledger SET uusd = uusd + 1 WHERE rowid = 7",
        "UPDATE ledger SET kind = CASE kind WHEN 'idle' THEN 'boot' ELSE 'idle' END WHERE rowid = "
        "8",
        "DELETE FROM ledger WHERE rowid = 9",
        /* only the day */
        "UPDATE ledger SET from_at = from_at + 86400000, to_at = to_at + 86400000 WHERE rowid = 10",
        "UPDATE cost_sums SET since = since + 1 WHERE span = 1 AND since = (SELECT max(since) FROM "
        "cost_sums WHERE span = 1)",
        "UPDATE jobs SET end_kind = 'succeeded' WHERE id = 2",
    };
    static const char *const where[] = {"span = 1 AND detail = 7", "span = 1 AND detail = 3",
        "span = 31 AND detail = 7", "span = 31 AND detail = 3", "span = 31 AND detail = 2",
        "span = 31 AND detail = 1"};
    const size_t n_where = sizeof(where) / sizeof(where[0]);
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct prng p;
    int n = 0;
    prng_init(&p, 9);
    add_random_year(d, &p);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    assert_int_equal(db_read_rollup_gaps(r, count_gap, &n, &e), 0);
    assert_int_equal(n, 0);
    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]) + n_where; i++) {
        char text[300];
        assert_int_equal(sql_exec(d->sql, "SAVEPOINT damage", &e), 0);
        if (i < n_where)
            snprintf(text, sizeof(text),
                "UPDATE cost_sums SET uusd = uusd + 1 WHERE %s AND since = (SELECT min(since) FROM "
                "cost_sums WHERE %s AND kind = 'lost')",
                where[i], where[i]);
        else
            snprintf(text, sizeof(text), "%s", damage[i - n_where]);
        n = 0;
        assert_int_equal(sql_exec(d->sql, text, &e), 0);
        assert_int_equal(db_read_rollup_gaps(r, count_gap, &n, &e), 0);
        if (n == 0)
            fail_msg("not found: %s", text);
        assert_int_equal(sql_exec(d->sql, "ROLLBACK TO damage; RELEASE damage", &e), 0);
    }
    db_reader_close(r);
    db_close(d);
}

/* Bills use the coarsest sums: queries by user do not read sums by machine, and vice versa. */
static void a_bill_by_month_reads_the_sums_that_tell_no_more_apart(void **state)
{
    static const struct {
        struct cost_query of;
        int detail;
    } bills[] = {
        {{.by = "team,month,kind"}, DETAIL_PEOPLE},
        {{.by = "user,month"}, DETAIL_PEOPLE},
        {{.by = "month", .user = "bob"}, DETAIL_PEOPLE},
        {{.by = "month", .team = "nlp"}, DETAIL_PEOPLE},
        {{.by = "pool,month"}, DETAIL_MACHINES},
        {{.by = "type,market"}, DETAIL_MACHINES},
        {{.by = "month", .pool = "burst"}, DETAIL_MACHINES},
        {{.by = "month"}, DETAIL_MACHINES},
        {{.by = "user,pool,month"}, DETAIL_ALL},
        {{.by = "month,market", .team = "nlp"}, DETAIL_ALL},
        {{.by = "user", .pool = "burst"}, DETAIL_ALL},
        {{.by = "project,month"}, DETAIL_LABELS},
    };
    static const int details[] = {DETAIL_PEOPLE, DETAIL_MACHINES, DETAIL_ALL, DETAIL_LABELS};
    struct db *d = util_open(*state);
    struct db_reader *r;
    struct prng p;
    prng_init(&p, 3);
    add_random_year(d, &p);
    assert_int_equal(db_reader_of(d, &r, &e), 0);
    for (size_t i = 0; i < sizeof(bills) / sizeof(bills[0]); i++) {
        struct cost_query q = bills[i].of;
        struct cost_sum all = {0};
        q.from = q.to = WALL_NONE;
        assert_int_equal(db_read_cost_sums(r, &q, add_up, &all, &e), 0);
        assert_true(all.uusd > 0);
        for (int k = 0; k < 4; k++) {
            struct cost_sum alone = {0}, expected = {0};
            char text[100];
            snprintf(text, sizeof(text),
                "SAVEPOINT all_sets; DELETE FROM cost_sums WHERE detail <> %d", details[k]);
            assert_int_equal(sql_exec(d->sql, text, &e), 0);
            assert_int_equal(db_read_cost_sums(r, &q, add_up, &alone, &e), 0);
            assert_int_equal(sql_exec(d->sql, "ROLLBACK TO all_sets; RELEASE all_sets", &e), 0);
            if (details[k] == bills[i].detail)
                expected = all;
            if (memcmp(&alone, &expected, sizeof(alone)) != 0)
                fail_msg("by %s: %lld uusd of the sums of detail %d", q.by, (long long)alone.uusd,
                    details[k]);
        }
    }
    db_reader_close(r);
    db_close(d);
}

static void a_month_begins_on_its_first_day(void **state)
{
    (void)state;
    assert_int_equal(rollup_month(0), 0);
    assert_int_equal(rollup_month(58), 31); /* 28 February 1970 */
    assert_int_equal(rollup_next_month(58), 59);
    assert_int_equal(rollup_month(19782), 19754); /* 29 February 2024 */
    assert_int_equal(rollup_next_month(19782), 19783);
    assert_int_equal(rollup_next_month(20453), 20454); /* 31 December 2025 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            sums_by_day_and_label_add_up_to_the_ledger, util_setup, util_teardown),
        cmocka_unit_test(what_costs_are_asked_by_is_checked),
        cmocka_unit_test_setup_teardown(
            every_way_of_asking_adds_up_to_the_ledger, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            rebuilt_sums_equal_the_stored_ones, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            egress_that_is_not_its_attempts_is_found, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            what_was_spent_stays_with_the_team_of_then, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            sums_that_are_not_the_ledgers_are_found, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            jobs_that_end_together_count_each_on_its_day, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_cost_that_is_not_the_ledgers_is_found, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            many_entries_in_one_commit_add_up_as_each_alone, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            many_entries_of_a_commit_that_fails_are_not_counted, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_bill_by_month_reads_the_sums_that_tell_no_more_apart, util_setup, util_teardown),
        cmocka_unit_test(a_month_begins_on_its_first_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
