/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: what is paid for data that leaves a place.
 */
#include "tests/core/lab.h"

#define HOUR 3600000

static void set_traffic(struct lab *l, int64_t egress_uusd_gib, int64_t upload_uusd_gib)
{
    struct pool_row p = lab_pool(l, "burst");
    p.egress_uusd_gib = egress_uusd_gib;
    p.upload_uusd_gib = upload_uusd_gib;
    lab_set_pool(l, p);
}

static void save_bytes(struct lab *l, int64_t sequence, int64_t stored_bytes)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = 1,
                         .node = 1,
                         .ref = {1, sequence},
                         .bytes = 2 * stored_bytes,
                         .stored_bytes = stored_bytes,
                         .progress = sequence,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

/* 140 GB a day at $0.09 a GB, for a month of 30 days: $378. */
static void what_is_written_to_a_store_elsewhere_is_paid_for(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    set_traffic(&l, 0, 90000);
    lab_started(&l, 1);
    int64_t uusd, on_demand;
    for (int day = 1; day <= 30; day++) {
        lab_wait(&l, 24 * HOUR);
        save_bytes(&l, day, 140LL << 30);
    }
    save_bytes(&l, 30, 140LL << 30); /* repeated report */
    core_cost_so_far(job_attempt(model_job(l.m, 1)), l.now.wall, &uusd, &on_demand);
    assert_int_equal(uusd, 720000000 + 378000000);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).uusd, 378000000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).ms +
                         lab_ledger_sum(&l, LEDGER_EGRESS).node_ms +
                         lab_ledger_sum(&l, LEDGER_EGRESS).on_demand_uusd,
        0);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 720000000 + 378000000);
    /* not part of the machine's bill */
    assert_int_equal(lab_instance_row(&l, 1)->attempts_uusd, 720000000);
    lab_deinit(&l);
}

/* Restored data that the node already had is not transferred; each transfer has the price of its
 * time. */
static void what_is_read_from_a_store_elsewhere_is_paid_for(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    save_bytes(&l, 1, 1LL << 30);
    lab_ended(&l, 1, END_DRAINED, 143);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).uusd, 0); /* the same place */
    set_traffic(&l, 90000, 20000);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = 1,
                          .attempt = 2,
                          .node = 1,
                          .restored = {1, 1},
                          .bytes = 10LL << 30,
                          .nearby_bytes = 4LL << 30}});
    set_traffic(&l, 1, 1);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).uusd, 6 * 90000);
    lab_deinit(&l);
}

#define FAR "input=gcp/us-central1:150323855360" /* 140 GiB at $0.12: $16.80 */
#define FAR_UUSD (140 * 120000)

/* Each start reads it again; it is not part of the machine's bill. */
static void what_a_job_reads_from_elsewhere_is_paid_at_each_start(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(4);
    int64_t uusd, on_demand;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_asking(&l, &r, FAR);
    lab_plan(&l);
    lab_launched(&l, 1);
    lab_join_instance(&l, 1, 4);
    lab_plan(&l);
    lab_take(&l);
    core_cost_so_far(job_attempt(model_job(l.m, 1)), l.now.wall, &uusd, &on_demand);
    assert_int_equal(uusd, 0); /* placed, but nothing was read */
    lab_started(&l, 1);
    lab_started(&l, 1); /* repeated report */
    core_cost_so_far(job_attempt(model_job(l.m, 1)), l.now.wall, &uusd, &on_demand);
    assert_int_equal(uusd, FAR_UUSD);
    lab_ended(&l, 1, END_DRAINED, 143);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).uusd, 2 * FAR_UUSD);
    assert_int_equal(
        lab_ledger_sum(&l, LEDGER_EGRESS).on_demand_uusd + lab_ledger_sum(&l, LEDGER_EGRESS).ms, 0);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 2 * FAR_UUSD);
    assert_int_equal(lab_instance_row(&l, 1)->attempts_uusd, 0);
    lab_deinit(&l);
}

/* All ranks together read it once, for any number of ranks; ranks that never started have read
 * nothing. */
static void of_a_gang_each_rank_reads_its_part(void **state)
{
    (void)state;
    struct lab l;
    struct job_row gang = lab_job(4);
    gang.spec.nodes = 3;
    lab_init(&l);
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = 100000;
    lab_set_pool(&l, base);
    for (int k = 0; k < 3; k++)
        lab_join(&l, (const char *[]){"a", "b", "c"}[k], 4);
    lab_submit_asking(&l, &gang, "input=store:1073741824");
    lab_plan(&l);
    for (int64_t node = 1; node <= 2; node++)
        lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                          .started = {.job = 1, .attempt = 1, .node = node}});
    int64_t so_far = 0;
    LIST_FOREACH (&model_job(l.m, 1)->ranks, link) {
        int64_t uusd, on_demand;
        core_cost_so_far(LIST_ENTRY(link, struct attempt, in_job), l.now.wall, &uusd, &on_demand);
        so_far += uusd;
    }
    assert_int_equal(so_far, 66666); /* two of three */
    lab_apply(&l,
        (struct event){.type = EV_ATTEMPT_STARTED, .started = {.job = 1, .attempt = 1, .node = 3}});
    for (int64_t node = 1; node <= 3; node++)
        lab_apply(&l, (struct event){.type = EV_ATTEMPT_ENDED,
                          .ended = {.job = 1, .attempt = 1, .node = node, .end = END_SUCCEEDED}});
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_EGRESS).uusd, 100000);
    lab_deinit(&l);
}

static void bytes_cost_what_a_gib_costs(void **state)
{
    (void)state;
    assert_int_equal(core_bytes_uusd(1LL << 30, 90000), 90000);
    assert_int_equal(core_bytes_uusd(-5, 90000), 0);
    assert_int_equal(core_bytes_uusd(1, 90000), 0);
    assert_int_equal(core_bytes_uusd(1LL << 29, 3), 2); /* rounded to nearest */
    assert_int_equal(core_bytes_uusd(1LL << 60, 1000000), (1LL << 30) * 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_to_a_store_elsewhere_is_paid_for),
        cmocka_unit_test(what_is_read_from_a_store_elsewhere_is_paid_for),
        cmocka_unit_test(what_a_job_reads_from_elsewhere_is_paid_at_each_start),
        cmocka_unit_test(of_a_gang_each_rank_reads_its_part),
        cmocka_unit_test(bytes_cost_what_a_gib_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
