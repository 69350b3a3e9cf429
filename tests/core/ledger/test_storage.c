/* SPDX-License-Identifier: Apache-2.0
 *
 * Cost of keeping checkpoints, during a job's life and after its end.
 */
#include "tests/core/lab.h"

#include "base/str.h"

#define DAY 86400000LL
#define MONTH 2629800000LL
#define GIB (1LL << 30)
#define PRICE 23000

static void init(struct lab *l, int64_t price)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400 * DAY,
        .retention_ms = 7 * DAY,
        .store_uusd_gib_month = price};
    lab_init(l);
    model_destroy(l->m);
    l->m = model_create(&o);
    struct pool_row base = {.name = "base", .max_nodes = 100};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
    lab_join(l, "n1", 4);
    struct job_row row = lab_job(1);
    row.spec.ckpt_after = AFTER_ALL;
    lab_submit(l, &row);
    lab_plan(l);
    lab_started(l, 1);
    lab_take(l);
}

static void save(struct lab *l, int64_t sequence, int64_t stored_bytes)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = 1,
                         .node = 1,
                         .ref = {1, sequence},
                         .bytes = stored_bytes,
                         .stored_bytes = stored_bytes,
                         .progress = sequence,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

static void kept(struct lab *l, int64_t bytes)
{
    lab_apply(l, (struct event){
                     .type = EV_KEPT, .kept = {.job = 1, .attempt = 1, .node = 1, .bytes = bytes}});
}

/* Of the last lab_take. */
static int64_t storage(const struct lab *l, size_t *ret_rows)
{
    int64_t uusd = 0;
    *ret_rows = 0;
    for (size_t k = 0; k < l->c.n_ledger; k++) {
        const struct ledger_row *r = &l->c.ledger[k];
        if (r->kind != LEDGER_STORAGE)
            continue;
        assert_int_equal(r->job, 1);
        assert_int_equal(
            r->ms + r->node_ms + r->attempt + r->node + r->instance + r->on_demand_uusd, 0);
        assert_true(r->from.ms < r->to.ms && r->to.ms <= l->now.wall.ms);
        uusd += r->uusd;
        ++*ret_rows;
    }
    return uusd;
}

static const struct stored_row *stored(const struct lab *l)
{
    assert_true(l->c.n_stored > 0);
    return &l->c.stored[l->c.n_stored - 1];
}

/* The decision to clean, and the remaining size. */
static void clean(struct lab *l, int64_t kept_bytes)
{
    struct event ev;
    while (lab_decision(l, &ev) && ev.type != EV_CLEAN)
        lab_apply(l, ev);
    assert_int_equal(ev.type, EV_CLEAN);
    lab_apply(l, ev);
    lab_apply(
        l, (struct event){.type = EV_CLEANED, .cleaned = {.job = 1, .kept_bytes = kept_bytes}});
}

static void a_gib_for_a_month_costs_what_it_costs(void **state)
{
    (void)state;
    struct lab l;
    size_t rows;
    init(&l, PRICE);
    save(&l, 1, 100 * GIB);
    lab_wait(&l, MONTH);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(storage(&l, &rows), 100 * PRICE);
    assert_int_equal(rows, 1);
    assert_int_equal(stored(&l)->uusd, 100 * PRICE);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 100 * PRICE);
    clean(&l, 100 * GIB);
    lab_take(&l);
    lab_wait(&l, 30 * DAY);
    clean(&l, 100 * GIB);
    lab_take(&l);
    assert_int_equal(l.c.n_late_costs, 1); /* storage after its end is its cost as well */
    assert_int_equal(l.c.late_costs[0].job, 1);
    assert_int_equal(l.c.late_costs[0].uusd, storage(&l, &rows));
    assert_int_equal(l.c.late_costs[0].uusd, 100 * PRICE * (30 * DAY) / MONTH);
    lab_deinit(&l);
}

/* Each checkpoint and each cleaning counts from its time on; a row is written once a day, and
 * rounding loses nothing. */
static void stored_bytes_count_from_each_change_on(void **state)
{
    (void)state;
    struct lab l;
    size_t rows;
    int64_t sum = 0;
    init(&l, PRICE);
    for (int k = 1; k <= 48; k++) { /* hourly; of 3 GiB two are cleaned */
        save(&l, k, 3 * GIB);
        kept(&l, k * GIB);
        assert_int_equal(model_stored_bytes(l.m, 1), k * GIB);
        lab_wait(&l, DAY / 24);
    }
    lab_take(&l);
    sum += storage(&l, &rows);
    assert_int_equal(rows, 2); /* two midnights */
    lab_ended(&l, 1, END_FAILED, 1);
    lab_take(&l);
    sum += storage(&l, &rows);
    assert_int_equal(rows, 1);
    /* GiB times hours: 1 + 2 + .. + 48 */
    int64_t exact = (int64_t)((double)PRICE * (48 * 49 / 2) * 3600e3 / (double)MONTH);
    assert_in_range(sum, exact - 1, exact);
    lab_deinit(&l);
}

static void what_stays_after_the_end_is_looked_at_once_a_month(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    struct model_counts counts;
    size_t rows;
    init(&l, PRICE);
    save(&l, 1, 4 * GIB);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = 1});
    clean(&l, 4 * GIB);
    model_counts(l.m, &counts);
    assert_int_equal(counts.ckpt_gc, 0); /* nothing is to be removed */
    lab_take(&l);
    for (int month = 0; month < 3; month++) {
        assert_false(lab_decision(&l, &ev));
        lab_wait(&l, 30 * DAY);
        clean(&l, month == 2 ? 0 : (4 - month) * GIB); /* its user removes some */
        lab_take(&l);
        assert_int_equal(storage(&l, &rows),
            PRICE * (month == 0 ? 4 : 5 - month) * (30 * DAY) / MONTH + (month == 1));
        assert_int_equal(rows, 1);
        assert_null(lab_history(&l, "cleaned"));
    }
    assert_int_equal(stored(&l)->bytes, 0);
    assert_int_equal(l.c.ckpt_gc[l.c.n_ckpt_gc - 1].state, CKPT_GC_DONE);
    lab_wait(&l, 400 * DAY);
    assert_false(lab_decision(&l, &ev));
    lab_deinit(&l);
}

static void what_costs_nothing_is_not_counted(void **state)
{
    (void)state;
    struct lab l;
    size_t rows;
    init(&l, 0);
    save(&l, 1, 4 * GIB);
    kept(&l, 3 * GIB);
    assert_int_equal(model_stored_bytes(l.m, 1), -1);
    lab_wait(&l, MONTH);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    clean(&l, 4 * GIB);
    lab_take(&l);
    assert_int_equal(storage(&l, &rows) + (int64_t)rows + (int64_t)l.c.n_stored, 0);
    assert_int_equal(l.c.ckpt_gc[l.c.n_ckpt_gc - 1].state, CKPT_GC_DONE);
    lab_deinit(&l);
}

/* An agent may have died before its report. */
static void what_a_cleaning_finds_counts_from_then_on(void **state)
{
    (void)state;
    struct lab l;
    size_t rows;
    init(&l, PRICE);
    lab_wait(&l, DAY);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    clean(&l, 10 * GIB);
    lab_wait(&l, 30 * DAY);
    clean(&l, 10 * GIB);
    lab_take(&l);
    assert_int_equal(storage(&l, &rows), 10 * PRICE * (30 * DAY) / MONTH);
    lab_deinit(&l);
}

static void what_is_stored_is_loaded_or_refused(void **state)
{
    (void)state;
    struct lab l;
    struct err e;
    struct stored_row r = {.job = 1, .bytes = 5 * GIB, .parts = 7};
    init(&l, PRICE);
    r.at = r.settled_at = l.now.wall;
    for (int k = 0; k < 4; k++) {
        struct stored_row bad = r;
        bad.job = k == 0 ? 2 : 1;
        bad.bytes = k == 1 ? -1 : k == 2 ? STORED_BYTES_MAX + 1 : 1;
        bad.parts = k == 3 ? -1 : 0;
        assert_int_equal(model_load_stored(l.m, &bad, &e), ERR_CORRUPT);
    }
    assert_int_equal(model_load_stored(l.m, &r, &e), 0);
    assert_int_equal(model_load_stored(l.m, &r, &e), ERR_CORRUPT); /* twice */
    assert_int_equal(model_stored_bytes(l.m, 1), 5 * GIB);
    struct event bad = {
        .type = EV_KEPT, .now = l.now, .kept = {.job = 1, .attempt = 1, .node = 1, .bytes = -1}};
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    bad.kept.bytes = 7;
    bad.kept.attempt = 9; /* of a stale one */
    assert_int_equal(lab_try(&l, &bad, NULL), 0);
    assert_int_equal(model_stored_bytes(l.m, 1), 5 * GIB);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gib_for_a_month_costs_what_it_costs),
        cmocka_unit_test(stored_bytes_count_from_each_change_on),
        cmocka_unit_test(what_stays_after_the_end_is_looked_at_once_a_month),
        cmocka_unit_test(what_costs_nothing_is_not_counted),
        cmocka_unit_test(what_a_cleaning_finds_counts_from_then_on),
        cmocka_unit_test(what_is_stored_is_loaded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
