/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of passed drills: which jobs may use the spot machines of pools that require one.
 */
#include "tests/core/lab.h"

#include "base/str.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void ask_for_drills(struct lab *l, int64_t valid_ms)
{
    struct pool_row p = lab_pool(l, "burst");
    p.require_drill = valid_ms > 0;
    p.drill_valid_ms = valid_ms;
    lab_set_pool(l, p);
}

static int64_t submit_of(struct lab *l, const char *key, enum market_wish wish)
{
    struct job_row r = lab_job(4);
    STR_COPY(r.script_key, key);
    r.spec.market = wish;
    return lab_submit(l, &r);
}

/* The offer of the newest instance. */
static enum market launched(const struct lab *l, int64_t instance)
{
    return model_instance(l->m, instance)->row.market;
}

static void certify(struct lab *l, int64_t job, int64_t progress)
{
    lab_apply(l, (struct event){.type = EV_DRILL, .drill = {job, "ann", false}});
    lab_saved(l, job, 1, progress);
    lab_ended(l, job, END_DRILLED, 85);
    while (lab_node_of(l, job) == CORE_ID_NONE) {
        lab_wait(l, 10000);
        lab_heartbeats(l);
        lab_plan(l);
    }
    lab_started(l, job);
    lab_saved(l, job, 1, progress + 1);
    assert_true(wall_is_set(model_job(l->m, job)->certified_at));
}

static void spot_machines_are_for_the_certified(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    ask_for_drills(&l, 3600000);
    int64_t job = submit_of(&l, KEY, WISH_ANY);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(launched(&l, 1), MARKET_ON_DEMAND);
    assert_true(lab_has_reason(&l, job, "drill-required", "pool burst keeps its spot machines"));
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_started(&l, job);
    assert_true(lab_has_reason(
        &l, job, "drill-required", "until then it runs on others: belay drill 1 when it runs"));
    certify(&l, job, 100);
    assert_false(lab_has_reason(&l, job, "drill-required", ""));

    struct pool_row p = lab_pool(&l, "burst");
    p.max_nodes = 4;
    lab_set_pool(&l, p);
    int64_t twin = submit_of(&l, KEY, WISH_ANY), stranger = submit_of(&l, "stranger", WISH_SPOT);
    lab_plan(&l);
    assert_int_equal(launched(&l, 2), MARKET_SPOT);
    assert_null(model_instance(l.m, 3));
    assert_true(lab_has_reason(&l, stranger, "drill-required", "no other machines fit"));
    int64_t spot = lab_bring_up(&l, 2, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, twin), spot);
    lab_ended(&l, twin, END_SUCCEEDED, 0);
    assert_int_equal(lab_plan(&l), 0); /* the foreign node is excluded although it is free */
    ask_for_drills(&l, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, stranger), spot);
    lab_deinit(&l);
}

static void a_certificate_gets_too_old(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 1, "m5", 4);
        ask_for_drills(&l, 600000);
        int64_t job = submit_of(&l, KEY, WISH_ANY);
        lab_plan(&l);
        lab_bring_up(&l, 1, 4);
        lab_plan(&l);
        lab_started(&l, job);
        certify(&l, job, 100);
        struct pool_row p = lab_pool(&l, "burst");
        p.max_nodes = 4;
        lab_set_pool(&l, p);
        for (int k = 0; k < (late ? 61 : 59); k++) {
            lab_wait(&l, 10000);
            lab_heartbeats(&l);
        }
        submit_of(&l, KEY, WISH_ANY);
        lab_plan(&l);
        assert_int_equal(launched(&l, 2), late ? MARKET_ON_DEMAND : MARKET_SPOT);
        lab_deinit(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spot_machines_are_for_the_certified),
        cmocka_unit_test(a_certificate_gets_too_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
