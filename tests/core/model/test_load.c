/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery: stored rows are loaded and continue; contradictory ones are refused by name.
 * (test_storm reloads at random times.)
 */
#include "tests/core/shelf.h"

#include "base/str.h"
#include <string.h>

/* A world with one of everything, and its rows. */
struct world {
    struct lab l;
    struct shelf s;
    int64_t owned, spot, running, cancelling, pending;
};

static void make(struct world *w)
{
    *w = (struct world){0};
    struct lab *l = &w->l;
    lab_init(l);
    lab_elastic(l, "burst", 4, "m5", 4);
    w->owned = lab_join(l, "n1", 4);
    w->running = lab_submit_cpus(l, 4);
    w->cancelling = lab_submit_cpus(l, 2);
    lab_plan(l);
    lab_launched(l, 1);
    w->spot = lab_join_instance(l, 1, 4);
    lab_plan(l);
    lab_started(l, w->running);
    lab_saved(l, w->running, 1, 10);
    lab_apply(l, (struct event){.type = EV_CANCEL, .cancel = {w->cancelling, "ann"}});
    w->pending = lab_submit_cpus(l, 4);
    lab_plan(l); /* instance 2 is intended */
    lab_take(l);
    shelf_put(&w->s, &l->c);
}

static void drop(struct world *w)
{
    shelf_deinit(&w->s);
    lab_deinit(&w->l);
}

static void a_reloaded_model_continues_unchanged(void **state)
{
    (void)state;
    struct world w;
    make(&w);
    w.l.now.mono.ms = 12; /* another process */
    struct model *m = shelf_load(&w.s, w.l.now);
    shelf_compare(&w.s, m);
    model_destroy(w.l.m);
    planner_destroy(w.l.p);
    w.l.m = m;
    w.l.p = planner_create();
    assert_int_equal(lab_plan(&w.l), 0); /* no launch or placement twice */
    assert_int_equal(model_instance(m, 2)->row.state, INSTANCE_INTENDED);
    assert_int_equal(plan_wake(w.l.p, m, w.l.now).ms, 12 + LAB_LEASE_MS); /* leases start anew */
    assert_int_equal(lab_submit_cpus(&w.l, 1), w.pending + 1);
    assert_ptr_equal(model_instance_by_provider_id(m, "r1", "i-1"), model_instance(m, 1));
    assert_int_equal(model_node(m, w.owned)->free.cpus, 0);
    lab_ended(&w.l, w.cancelling, END_CANCELLED, 0);
    lab_ended(&w.l, w.running, END_SUCCEEDED, 0);
    lab_take(&w.l);
    shelf_put(&w.s, &w.l.c);
    shelf_compare(&w.s, m);
    drop(&w);
}

static void ids_are_not_given_again_after_everything_left(void **state)
{
    (void)state;
    struct world w;
    make(&w);
    struct model_options o = {.cluster_uid = "0123456789abcdef", .lease_ms = LAB_LEASE_MS};
    struct model *m = model_create(&o);
    struct err e;
    struct model_counters c = {501, 502, 503, 504, 505};
    assert_int_equal(model_load_end(m, &c, &e), 0);
    model_destroy(w.l.m);
    w.l.m = m;
    struct pool_row p = {.name = "base"};
    lab_apply(&w.l, (struct event){.type = EV_POOL, .pool = &p});
    assert_int_equal(lab_submit_cpus(&w.l, 1), 501);
    assert_int_equal(lab_join(&w.l, "n", 1), 502);
    lab_take(&w.l);
    assert_int_equal(w.l.c.history[0].id, 504);
    assert_int_equal(w.l.c.next_job, 502);
    assert_int_equal(w.l.c.next_instance, 503);
    drop(&w);
}

static void a_machines_true_size_is_known_again(void **state)
{
    (void)state;
    struct world w = {0};
    lab_init(&w.l);
    lab_elastic(&w.l, "burst", 4, "m5", 4);
    int64_t job = lab_submit_cpus(&w.l, 4);
    lab_plan(&w.l);
    lab_launched(&w.l, 1);
    lab_join_instance(&w.l, 1, 3); /* 4 were promised */
    lab_apply(&w.l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    lab_take(&w.l);
    shelf_put(&w.s, &w.l.c);
    model_destroy(w.l.m);
    planner_destroy(w.l.p);
    w.l.m = shelf_load(&w.s, w.l.now);
    w.l.p = planner_create();
    lab_submit_cpus(&w.l, 4);
    lab_plan(&w.l);
    assert_int_equal(model_offer(w.l.m, 1)->row.launches, 1); /* not again */
    assert_int_equal(model_offer(w.l.m, 2)->row.launches, 1);
    drop(&w);
}

/* Loads everything up to the row type that was damaged; the damaged row must be refused as corrupt,
 * by name. */
static int load(const struct shelf *s, struct err *e)
{
    struct stamp now = {0};
    struct model_options o = {.cluster_uid = "0123456789abcdef", .lease_ms = LAB_LEASE_MS};
    struct model *m = model_create(&o);
    int rc = 0;
    for (size_t k = 0; k < s->n_pools && !rc; k++)
        rc = model_load_pool(m, &s->pools[k], now, e);
    for (size_t k = 1; k < s->n_offers && !rc; k++)
        rc = model_load_offer(m, &s->offers[k], e);
    for (size_t k = 1; k < s->n_instances && !rc; k++)
        rc = model_load_instance(m, &s->instances[k], now, e);
    for (size_t k = 1; k < s->n_nodes && !rc; k++)
        rc = model_load_node(m, &s->nodes[k], now, e);
    for (size_t k = 1; k < s->n_jobs && !rc; k++)
        rc = model_load_job(m, &s->jobs[k], now, e);
    for (size_t k = 0; k < s->n_attempts && !rc; k++)
        rc = model_load_attempt(m, &s->attempts[k], e);
    if (!rc)
        rc = model_load_end(m, &s->counters, e);
    model_destroy(m);
    return rc;
}

static void spoil(struct shelf *s, int what)
{
    switch (what) {
    case 0:
        STR_COPY(s->pools[1].name, "base");
        break;
    case 1:
        STR_COPY(s->offers[1].pool, "none");
        break;
    case 2:
        s->offers[2].id = 1;
        break;
    case 3:
        STR_COPY(s->instances[1].pool, "none");
        break;
    case 4:
        STR_COPY(s->instances[2].token, s->instances[1].token);
        break;
    case 5:
        s->instances[1].state = INSTANCE_GONE;
        break;
    case 6:
        s->instances[2].id = 1;
        break;
    case 7:
        s->nodes[1].state = NODE_GONE;
        break;
    case 8:
        STR_COPY(s->nodes[1].pool, "none");
        break;
    case 9:
        STR_COPY(s->nodes[2].key_hash, s->nodes[1].key_hash);
        break;
    case 10:
        s->nodes[2].instance = 2;
        break;
    case 11:
        s->nodes[2].instance = 7;
        break;
    case 12:
        s->nodes[2].market = (enum market)7;
        break;
    case 13:
        s->nodes[2].id = 1;
        break;
    case 14:
        s->jobs[1].state = JOB_ENDED;
        break;
    case 15:
        s->jobs[2].id = 1;
        break;
    case 16:
        s->jobs[1].attempts = 5;
        break;
    case 17:
        s->jobs[1].state = JOB_PENDING;
        break;
    case 18:
        s->jobs[3].state = JOB_RUNNING;
        break;
    case 19:
        s->attempts[0].node = 9;
        break;
    case 20:
        s->attempts[0].job = 9;
        break;
    case 21:
        s->attempts[0].state = ATTEMPT_ENDED;
        break;
    case 22:
        s->nodes[1].total.cpus = 1;
        break;
    case 23:
        s->nodes[1].state = NODE_LOST;
        break;
    case 24:
        s->instances[1].node = 9;
        break;
    case 25:
        s->instances[2].state = INSTANCE_RUNNING;
        break;
    case 26:
        s->nodes[1].kept_for = 1; /* a single-node job */
        break;
    case 27:
        s->nodes[1].kept_for = 9;
        break;
    default:
        fail();
    }
}

static void contradictory_rows_are_refused_as_corrupt(void **state)
{
    (void)state;
    for (int what = 0; what <= 27; what++) {
        struct world w;
        struct err e = {0};
        make(&w);
        assert_int_equal(load(&w.s, &e), 0);
        spoil(&w.s, what);
        if (load(&w.s, &e) != ERR_CORRUPT || strncmp(e.text, "stored ", 7) != 0)
            fail_msg("spoilt %d: %s", what, e.text);
        drop(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reloaded_model_continues_unchanged),
        cmocka_unit_test(ids_are_not_given_again_after_everything_left),
        cmocka_unit_test(a_machines_true_size_is_known_again),
        cmocka_unit_test(contradictory_rows_are_refused_as_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
