/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of costs and usage.
 */
#include "tests/db/read_rig.h"

#include "db/cost_sums.h"
#include <string.h>

/* ---- costs ---- */

static void add_ledger(struct db_batch *b, int64_t job, int64_t node, int64_t instance,
    enum ledger_kind kind, int64_t to_ms, int64_t ms, int64_t uusd)
{
    struct ledger_row row = {.job = job,
        .node = node,
        .instance = instance,
        .kind = kind,
        .from = at_ms(to_ms - ms),
        .to = at_ms(to_ms),
        .ms = ms,
        .uusd = uusd,
        .on_demand_uusd = uusd * 3};
    batch_add(b, TABLE_LEDGER, &row);
}

static void add_costs(void)
{
    struct db_batch b = {0};

    add_job(&b, 2, "ada", JOB_ENDED);
    add_job(&b, 10, "ada", JOB_RUNNING);
    add_job(&b, 11, "bob", JOB_RUNNING);
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 1, .pool = "base"});
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 2, .pool = "burst", .instance = 1});
    batch_add(&b, TABLE_INSTANCES, &(struct instance_row){.id = 1, .pool = "burst"});
    batch_add(&b, TABLE_INSTANCES, &(struct instance_row){.id = 2, .pool = "burst"});
    add_ledger(&b, 2, 1, 0, LEDGER_USEFUL, DAY_MS - 1, 1000, 10);
    add_ledger(&b, 2, 2, 1, LEDGER_LOST, DAY_MS, 500, 5);
    add_ledger(&b, 10, 2, 1, LEDGER_USEFUL, DAY_MS + 1, 2000, 20);
    add_ledger(&b, 11, 2, 1, LEDGER_SAVE, 2 * DAY_MS, 100, 1);
    /* never joined: only the instance has the pool */
    add_ledger(&b, 0, 0, 2, LEDGER_BOOT, 2 * DAY_MS, 7000, 70);
    util_commit(d, &b);
}

static int print_line(void *ctx, const struct cost_line *l)
{
    buf_printf(ctx, "%s:%lld,%lld,%lld,%lld,%lld,%lld ", l->key, (long long)l->jobs,
        (long long)l->uusd, (long long)l->on_demand_uusd, (long long)l->useful_ms,
        (long long)l->lost_ms, (long long)l->total_ms);
    return 0;
}

static void assert_cost(
    const char *by, const char *user, struct wall from, struct wall to, const char *want)
{
    struct buf got = {0};
    assert_int_equal(db_read_cost(r, by, user, from, to, print_line, &got, &e), 0);
    assert_string_equal(buf_str(&got), want);
    buf_deinit(&got);
}

static void costs_are_summed_by_what_is_asked(void **state)
{
    (void)state;
    add_costs();
    assert_cost("job", NULL, WALL_NONE, WALL_NONE,
        ":0,70,210,0,0,7000 2:1,15,45,1000,500,1500 10:0,20,60,2000,0,2000 11:0,1,3,0,0,100 ");
    assert_cost("user", NULL, WALL_NONE, WALL_NONE,
        ":0,70,210,0,0,7000 ada:1,35,105,3000,500,3500 bob:0,1,3,0,0,100 ");
    assert_cost("pool", NULL, WALL_NONE, WALL_NONE,
        "base:0,10,30,1000,0,1000 burst:0,96,288,2000,500,9600 ");
    assert_cost("kind", NULL, WALL_NONE, WALL_NONE,
        "boot:0,70,210,0,0,7000 lost:0,5,15,0,500,500 save:0,1,3,0,0,100 "
        "useful:0,30,90,3000,0,3000 ");
    assert_cost("day", NULL, WALL_NONE, WALL_NONE,
        "1970-01-01:1,34,104,2999,500,3499 1970-01-02:0,72,214,1,0,7101 ");
    assert_cost("day", "ada", WALL_NONE, WALL_NONE,
        "1970-01-01:1,34,104,2999,500,3499 1970-01-02:0,1,1,1,0,1 ");
    assert_cost("user", "eve", WALL_NONE, WALL_NONE, "");
}

/* Idle time of owned machines has a line of its own; that of others is with the costs of nobody. */
static void idle_time_of_owned_machines_is_told_apart(void **state)
{
    struct db_batch b = {0};
    (void)state;
    add_costs();
    batch_add(&b, TABLE_NODES, &(struct node_row){.id = 3, .pool = "own", .market = MARKET_OWNED});
    add_ledger(&b, 0, 3, 0, LEDGER_IDLE, 2 * DAY_MS, 400, 4);
    batch_add(&b, TABLE_INSTANCES,
        &(struct instance_row){.id = 9, .pool = "burst", .market = MARKET_SPOT});
    add_ledger(&b, 0, 0, 9, LEDGER_IDLE, 2 * DAY_MS, 300, 3);
    util_commit(d, &b);
    assert_cost(
        "job", "ada", WALL_NONE, WALL_NONE, "2:1,15,45,1000,500,1500 10:0,20,60,2000,0,2000 ");
    assert_cost("user", NULL, at_ms(DAY_MS + 2), WALL_NONE,
        ":0,73,219,0,0,7300 (idle, owned):0,4,12,0,0,400 bob:0,1,3,0,0,100 ");
}

static void a_stretch_counts_in_the_periods_in_which_it_was(void **state)
{
    (void)state;
    add_costs();
    assert_cost("user", "ada", at_ms(DAY_MS), WALL_NONE, "ada:0,1,1,1,0,1 ");
    assert_cost("user", "ada", WALL_NONE, at_ms(DAY_MS), "ada:1,34,104,2999,500,3499 ");
    assert_cost("user", NULL, at_ms(DAY_MS), at_ms(2 * DAY_MS),
        ":0,70,210,0,0,7000 ada:0,1,1,1,0,1 bob:0,1,3,0,0,100 ");
    assert_cost("user", NULL, at_ms(2 * DAY_MS), WALL_NONE, "");
}

static void a_stretch_of_days_is_spread_over_them_to_the_micro_dollar(void **state)
{
    struct db_batch b = {0};
    (void)state;
    add_job(&b, 2, "ada", JOB_ENDED);
    add_ledger(&b, 2, 0, 0, LEDGER_USEFUL, 3 * DAY_MS + DAY_MS / 2, 3 * DAY_MS, 1000001);
    util_commit(d, &b);
    assert_cost("day", NULL, WALL_NONE, WALL_NONE,
        "1970-01-01:1,166666,500000,43200000,0,43200000 "
        "1970-01-02:0,333334,1000001,86400000,0,86400000 "
        "1970-01-03:0,333334,1000001,86400000,0,86400000 "
        "1970-01-04:0,166667,500001,43200000,0,43200000 ");
    assert_cost("day", NULL, at_ms(DAY_MS + 1), at_ms(2 * DAY_MS - 1),
        "1970-01-02:0,333334,1000001,86399998,0,86399998 ");
}

static void sums_of_the_largest_numbers_are_exact(void **state)
{
    struct db_batch b = {0};
    int64_t ten_years = 3650 * DAY_MS, dear = INT64_C(87600000) * 1000000;
    (void)state;
    add_job(&b, 2, "ada", JOB_ENDED);
    add_ledger(&b, 2, 0, 0, LEDGER_USEFUL, ten_years + 7, ten_years, dear);
    add_ledger(&b, 2, 0, 0, LEDGER_LOST, 5, 0, 3); /* the clock was set back */
    util_commit(d, &b);
    assert_cost("kind", NULL, at_ms(6), WALL_NONE,
        "useful:0,87600000000000,262800000000000,315360000000,0,315360000000 ");
    assert_cost("kind", NULL, WALL_NONE, at_ms(6), "lost:0,3,9,0,0,0 ");
    assert_cost("kind", NULL, WALL_NONE, at_ms(ten_years / 2 + 7),
        "lost:0,3,9,0,0,0 useful:0,43800000000000,131400000000000,157680000000,0,157680000000 ");
}

static void cost_by_something_else_is_refused(void **state)
{
    (void)state;
    struct buf none = {0};
    assert_int_equal(
        db_read_cost(r, "l.uusd", NULL, WALL_NONE, WALL_NONE, print_line, &none, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "job, user, pool, kind or day"));
    assert_int_equal(none.len, 0);

    struct buf text = {0};
    bool known;
    assert_int_equal(db_cost_keys("team,project,user,pool", &known, &e), 4);
    assert_int_equal(db_cost_keys("team,project,user,pool,market", &known, &e), ERR_INVALID);
    assert_string_equal(e.text, "cost by 5 keys: at most 4 at once");
    buf_adds(&text, "label:");
    for (int i = 0; i < 1000; i++)
        buf_addc(&text, 'x');
    assert_int_equal(db_cost_keys(buf_str(&text), &known, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "...: it is longer than"));
    buf_deinit(&text);
}

/* ---- usage ---- */

#define HOUR_MS INT64_C(3600000)

static void add_use_sum(struct buf *out, const char *name, const struct use_sum *s)
{
    buf_printf(out, " %s %lld/%lld/%lld/%lld", name, (long long)(s->there_ms / HOUR_MS),
        (long long)(s->held_ms / HOUR_MS), (long long)(s->useful_ms / HOUR_MS),
        (long long)(s->running_ms / HOUR_MS));
}

static int print_use(void *ctx, const struct use_pool *p)
{
    buf_printf(ctx, "%s%s", p->pool, p->elastic ? "*" : "");
    add_use_sum(ctx, "cpus", &p->cpus);
    add_use_sum(ctx, "gpus", &p->gpus);
    buf_printf(ctx, " $%lld; ", (long long)(p->on_demand_uusd / 1000000));
    if (p->gpu_measured_ms > 0)
        buf_printf(ctx, "busy %lld of %lld; ", (long long)(p->gpu_busy_ms / HOUR_MS),
            (long long)(p->gpu_measured_ms / HOUR_MS));
    return 0;
}

/* Ten hours, the last of which are current. */
static void assert_use(const char *pool, int64_t from_h, int64_t to_h, const char *want)
{
    struct buf got = {0};
    struct use_step steps[10] = {0};
    struct use_sum all = {0};
    struct use_of of = {.pool = pool,
        .from = at_ms(from_h * HOUR_MS),
        .to = at_ms(to_h * HOUR_MS),
        .step_ms = HOUR_MS};
    assert_int_equal(db_read_use(r, &of, steps, print_use, &got, &e), 0);
    for (int i = 0; i < 10; i++) {
        all.there_ms += steps[i].gpus.there_ms;
        all.held_ms += steps[i].gpus.held_ms;
        all.useful_ms += steps[i].gpus.useful_ms;
        all.running_ms += steps[i].gpus.running_ms;
    }
    add_use_sum(&got, "steps", &all);
    assert_string_equal(buf_str(&got), want);
    buf_deinit(&got);
}

static void add_use_job(struct db_batch *b, int64_t id, int32_t gpus, int64_t constraints)
{
    batch_add(b, TABLE_JOBS,
        &(struct job_row){.id = id,
            .user = "ada",
            .state = JOB_RUNNING,
            .spec.need = {.cpus = 2, .gpus = gpus},
            .constraints = constraints});
}

static void what_there_was_and_what_it_was_used_for(void **state)
{
    (void)state;
    struct db_batch b = {0};
    add_use_job(&b, 1, 4, 0);
    add_use_job(&b, 2, 1, 7);
    add_use_job(&b, 3, 2, 0);
    batch_add(&b, TABLE_CONSTRAINTS, &(struct constraints_row){.id = 7, .text = "exclusive=yes"});
    batch_add(&b, TABLE_NODES,
        &(struct node_row){.id = 1,
            .pool = "base",
            .total = {.cpus = 16, .gpus = 8},
            .joined_at = at_ms(0),
            .gone_at = WALL_NONE});
    batch_add(&b, TABLE_NODES,
        &(struct node_row){.id = 2,
            .pool = "burst",
            .instance = 1,
            .total = {.cpus = 4, .gpus = 4},
            .on_demand_uusd_h = 5000000,
            .joined_at = at_ms(4 * HOUR_MS),
            .gone_at = at_ms(8 * HOUR_MS)});
    add_ledger(&b, 1, 1, 0, LEDGER_USEFUL, 4 * HOUR_MS, 4 * HOUR_MS, 0);
    add_ledger(&b, 1, 1, 0, LEDGER_LOST, 6 * HOUR_MS, 2 * HOUR_MS, 0);
    add_ledger(&b, 2, 2, 1, LEDGER_USEFUL, 8 * HOUR_MS, 2 * HOUR_MS, 0); /* exclusive: all four */
    add_ledger(&b, 0, 2, 1, LEDGER_BOOT, 4 * HOUR_MS, HOUR_MS, 0);
    batch_add(&b, TABLE_ATTEMPTS,
        &(struct attempt_row){.job = 3,
            .attempt = 1,
            .node = 1,
            .state = ATTEMPT_RUNNING,
            .assigned_at = at_ms(7 * HOUR_MS)});
    util_commit(d, &b);
    assert_use(NULL, 0, 10,
        "base cpus 160/18/8/6 gpus 80/30/16/6 $0; burst* cpus 16/8/8/0 gpus 16/8/8/0 $20;  steps "
        "96/38/24/6");
    assert_use("base", 2, 5, "base cpus 48/6/4/0 gpus 24/12/8/0 $0;  steps 24/12/8/0");
    assert_use("burst", 7, 10, "burst* cpus 4/4/4/0 gpus 4/4/4/0 $5;  steps 4/4/4/0");
    assert_use("none", 0, 10, " steps 0/0/0/0");
    assert_use(NULL, 11, 11, " steps 0/0/0/0");
}

static void add_gpu_hour(
    struct db_batch *b, int64_t job, int64_t node, int64_t at_h, int64_t span_ms, int64_t busy_pct)
{
    struct gpu_load_row row = {.job = job,
        .attempt = 1,
        .node = node,
        .gpu = "GPU-a",
        .span_ms = span_ms,
        .at = at_h * HOUR_MS,
        .load = {.ms = span_ms, .known_ms = span_ms, .busy_ms = span_ms / 100 * busy_pct}};
    batch_add(b, TABLE_GPU_LOADS, &row);
}

/* From hours alone, of GPUs that a job had, in the period and by pool. */
static void how_busy_gpus_were_is_summed_by_pool(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct node_row node = {.id = 1,
        .pool = "base",
        .total = {.cpus = 1, .gpus = 1},
        .joined_at = at_ms(0),
        .gone_at = WALL_NONE};
    batch_add(&b, TABLE_NODES, &node);
    node.id = 2;
    STR_COPY(node.pool, "more");
    batch_add(&b, TABLE_NODES, &node);
    for (int64_t h = 0; h < 8; h++)
        add_gpu_hour(&b, 1, 1, h, HOUR_MS, h < 4 ? 100 : 0);
    add_gpu_hour(&b, 1, 1, 2, HOUR_MS / 6, 100); /* the same time in another span */
    add_gpu_hour(&b, 0, 1, 9, HOUR_MS, 100);     /* no job had it */
    add_gpu_hour(&b, 2, 2, 3, HOUR_MS, 100);
    util_commit(d, &b);
    assert_use(NULL, 0, 10,
        "base cpus 10/0/0/0 gpus 10/0/0/0 $0; busy 4 of 8; more cpus 10/0/0/0 gpus 10/0/0/0 $0; "
        "busy 1 of 1;  steps 20/0/0/0");
    assert_use("base", 2, 6, "base cpus 4/0/0/0 gpus 4/0/0/0 $0; busy 2 of 4;  steps 4/0/0/0");
}

static void add_behind(struct db_batch *b, int64_t attempt, int64_t from_h, int64_t useful_h,
    struct ckpt_ref restored, int64_t behind_ms)
{
    batch_add(b, TABLE_ATTEMPTS,
        &(struct attempt_row){.job = 1,
            .attempt = attempt,
            .node = attempt,
            .state = ATTEMPT_ENDED,
            .started_at = at_ms(from_h * HOUR_MS),
            .gathered_at = WALL_NONE,
            .restored = restored,
            .behind_ms = behind_ms});
    batch_add(b, TABLE_LEDGER,
        &(struct ledger_row){.job = 1,
            .attempt = attempt,
            .node = attempt,
            .kind = LEDGER_USEFUL,
            .from = at_ms(from_h * HOUR_MS),
            .to = at_ms((from_h + useful_h + 1) * HOUR_MS),
            .ms = useful_h * HOUR_MS});
}

static void add_saved(
    struct db_batch *b, int64_t attempt, int64_t sequence, int64_t at_h, int64_t pause_ms)
{
    batch_add(b, TABLE_CHECKPOINTS,
        &(struct checkpoint_row){.job = 1,
            .ref = {attempt, sequence},
            .saved_at = at_ms(at_h * HOUR_MS),
            .pause_ms = pause_ms});
}

static int64_t behind(int64_t attempt, int64_t of, int64_t sequence)
{
    int64_t ms = -1;
    assert_int_equal(
        db_read_repeated_work(r, 1, attempt, (struct ckpt_ref){of, sequence}, &ms, &e), 0);
    return ms;
}

/* The first attempt worked for five hours and saved after two, four and five; the second was
 * restored at four and worked for three more, one of which repeated work. */
static void what_is_done_again_is_what_is_useful_beyond_the_checkpoint(void **state)
{
    (void)state;
    struct db_batch b = {0}, b3 = {0};
    bool was;
    add_behind(&b, 1, 0, 5, (struct ckpt_ref){0}, 0);
    add_saved(&b, 1, 1, 2, 0);
    add_saved(&b, 1, 2, 4, 60000);
    add_saved(&b, 1, 3, 5, 0);
    util_commit(d, &b);
    /* the pause is part of both times */
    assert_int_equal(behind(2, 1, 3), 60000);
    assert_int_equal(behind(2, 1, 2), HOUR_MS + 60000);
    assert_int_equal(behind(2, 1, 1), 3 * HOUR_MS);
    assert_int_equal(behind(2, 0, 0), 5 * HOUR_MS);
    /* never reported: it has at least the progress of the newest reported one */
    assert_int_equal(behind(2, 1, 7), 60000);
    assert_int_equal(behind(2, 2, 1), 0); /* its attempt is unknown */
    assert_int_equal(db_read_has_repeated(r, 1, 0, 3, &was, &e), 0);
    assert_false(was);

    b = (struct db_batch){0};
    add_behind(&b, 2, 20, 2, (struct ckpt_ref){1, 2}, HOUR_MS + 60000);
    add_saved(&b, 2, 1, 21, 0);
    add_saved(&b, 2, 2, 23, 0);
    util_commit(d, &b);
    assert_int_equal(db_read_has_repeated(r, 1, 0, 3, &was, &e), 0);
    assert_true(was);
    assert_int_equal(db_read_has_repeated(r, 1, 2, 3, &was, &e), 0);
    assert_true(was);
    assert_int_equal(db_read_has_repeated(r, 1, 3, 4, &was, &e), 0); /* but none since the third */
    assert_false(was);
    /* no more: five hours and two are useful, containing four and three */
    assert_int_equal(behind(3, 2, 2), 60000);
    assert_int_equal(behind(3, 2, 1), 2 * HOUR_MS + 60000);
    assert_int_equal(behind(4, 3, 1), 0);
    add_behind(&b3, 3, 30, 0, (struct ckpt_ref){2, 1}, 0);
    util_commit(d, &b3);
    /* its attempt reported no checkpoint: uses the one that it resumed from */
    assert_int_equal(behind(4, 3, 1), 2 * HOUR_MS + 60000);
    /* from the first attempt's checkpoint again: hours without an attempt do not count */
    assert_int_equal(behind(3, 1, 1), 5 * HOUR_MS);
}

/* Several kinds of an attempt share one interval; their times add up. */
static void the_parts_of_a_time_add_up_to_its_use(void **state)
{
    (void)state;
    struct db_batch b = {0};
    struct use_step whole[1] = {0}, parts[7] = {0};
    struct buf text = {0};
    struct use_of of = {.from = at_ms(0), .to = at_ms(7 * HOUR_MS), .step_ms = 7 * HOUR_MS};
    struct ledger_row row = {.job = 1,
        .node = 1,
        .kind = LEDGER_USEFUL,
        .from = at_ms(1),
        .to = at_ms(6 * HOUR_MS + 7),
        .ms = 3 * HOUR_MS + 1};
    add_use_job(&b, 1, 3, 0);
    batch_add(&b, TABLE_NODES,
        &(struct node_row){.id = 1,
            .pool = "base",
            .total = {.cpus = 16, .gpus = 8},
            .joined_at = at_ms(5),
            .gone_at = at_ms(6 * HOUR_MS + 1)});
    batch_add(&b, TABLE_LEDGER, &row);
    row.kind = LEDGER_SAVE;
    row.ms = 3 * HOUR_MS + 5;
    batch_add(&b, TABLE_LEDGER, &row);
    util_commit(d, &b);
    assert_int_equal(db_read_use(r, &of, whole, print_use, &text, &e), 0);
    of.step_ms = HOUR_MS;
    assert_int_equal(db_read_use(r, &of, parts, print_use, &text, &e), 0);
    for (int i = 1; i < 7; i++) {
        parts[0].gpus.there_ms += parts[i].gpus.there_ms;
        parts[0].gpus.held_ms += parts[i].gpus.held_ms;
        parts[0].gpus.useful_ms += parts[i].gpus.useful_ms;
    }
    assert_int_equal(parts[0].gpus.there_ms, whole[0].gpus.there_ms);
    assert_int_equal(parts[0].gpus.held_ms, 3 * (6 * HOUR_MS + 6));
    assert_int_equal(whole[0].gpus.held_ms, 3 * (6 * HOUR_MS + 6));
    assert_int_equal(parts[0].gpus.useful_ms, 3 * (3 * HOUR_MS + 1));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_done_again_is_what_is_useful_beyond_the_checkpoint),
        TEST(costs_are_summed_by_what_is_asked),
        TEST(idle_time_of_owned_machines_is_told_apart),
        TEST(a_stretch_counts_in_the_periods_in_which_it_was),
        TEST(a_stretch_of_days_is_spread_over_them_to_the_micro_dollar),
        TEST(sums_of_the_largest_numbers_are_exact),
        TEST(cost_by_something_else_is_refused),
        TEST(what_there_was_and_what_it_was_used_for),
        TEST(how_busy_gpus_were_is_summed_by_pool),
        TEST(the_parts_of_a_time_add_up_to_its_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
