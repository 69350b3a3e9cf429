/* SPDX-License-Identifier: Apache-2.0
 *
 * Power and placement: no placement exceeds a rack's limit, no job starves for lack of power, and a
 * throttled node gets no new work. The rack is lab_racks' "left": 1000 W, 400 at rest from four
 * nodes of 4 cpus each; each cpu in use draws 100 more.
 */
#include "base/str.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/forecast/forecast.h"
#include "tests/core/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

static struct rack_view view(const struct lab *l)
{
    struct rack_view v;
    core_rack(l->m, 0, &v);
    return v;
}

/* Sets up power1, power2 and power3 with 4 cpus each. The fourth node of the rack has not joined,
 * but counts with its 100 W. */
static void begin(struct lab *l)
{
    lab_init(l);
    lab_join(l, "power1", 4);
    lab_join(l, "power2", 4);
    lab_join(l, "power3", 4);
}

static void no_more_is_placed_than_the_rack_may_draw(void **state)
{
    (void)state;
    struct lab l;
    int64_t jobs[7];
    begin(&l);
    assert_int_equal(core_racks(l.m), LAB_RACKS);
    assert_int_equal(view(&l).idle_w, 400);
    assert_int_equal(view(&l).nodes, 4);
    assert_int_equal(view(&l).joined, 3);
    for (size_t k = 0; k < 7; k++)
        jobs[k] = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    for (size_t k = 0; k < 6; k++)
        assert_true(lab_runs(&l, jobs[k]));
    assert_false(lab_runs(&l, jobs[6]));
    assert_int_equal(view(&l).draw_w, 1000);
    assert_true(lab_has_reason(&l, jobs[6], "rack",
        "2 nodes have capacity but no power: rack left draws 1.0 kW of at most 1.0 (max_kw), and "
        "it would draw 0.1 more on power2"));
    lab_started(&l, jobs[0]);
    lab_ended(&l, jobs[0], END_SUCCEEDED, 0); /* on power1: now the others have power, too */
    lab_plan(&l);
    assert_true(lab_runs(&l, jobs[6]));
    assert_int_equal(view(&l).draw_w, 1000);
    lab_deinit(&l);
}

static void other_nodes_of_the_rack_get_what_one_leaves(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    int64_t big = lab_submit_cpus(&l, 4), half = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, big) && lab_runs(&l, half));
    int64_t waits = lab_submit_pool(&l, 3, "base", WISH_ANY);
    lab_plan(&l);
    assert_false(lab_runs(&l, waits));
    int64_t filler = lab_node_of(&l, big);
    /* so it must go to another */
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = filler});
    lab_started(&l, big);
    lab_ended(&l, big, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, waits));
    assert_int_not_equal(lab_node_of(&l, waits), filler);
    lab_deinit(&l);
}

static void a_job_with_all_gpus_counts_as_a_full_node(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct node_row n = {
        .name = "power-gpu", .key_hash = "gpu", .pool = "base", .total = {64, 8, 1 << 20}};
    int64_t node = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &n}});
    struct job_row r = lab_job(1);
    r.spec.need.gpus = 8;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), node);
    int64_t watts = 0;
    assert_string_equal(core_node_rack(model_node(l.m, node), &watts), "left");
    assert_int_equal(watts, 500);
    assert_int_equal(view(&l).draw_w, 800);
    lab_submit_cpus(&l, 63); /* on that node, the draw does not increase */
    lab_plan(&l);
    assert_int_equal(view(&l).draw_w, 800);
    lab_deinit(&l);
}

static void an_exclusive_node_counts_as_full(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    struct job_row r = lab_job(1);
    int64_t a = lab_submit_asking(&l, &r, "exclusive=yes"),
            b = lab_submit_asking(&l, &r, "exclusive=yes");
    lab_plan(&l);
    assert_true(lab_runs(&l, a));
    assert_false(lab_runs(&l, b));
    assert_int_equal(view(&l).draw_w, 800);
    lab_deinit(&l);
}

static void a_gang_gets_power_for_all_of_its_ranks_or_none(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    int64_t large = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, large));
    assert_true(lab_has_reason(
        &l, large, "rack", "each of its ranks would draw 0.4 more on power2 and on others"));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = large}});
    int64_t small = lab_submit_nodes(&l, 2, 3, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, small));
    assert_int_equal(view(&l).draw_w, 1000);
    lab_deinit(&l);
}

/* In the rack "right", 100 of 300 W above idle are left. A rank draws 100 W on the small node, the
 * tightest, and 25 W on a large one: on the small node it would leave nothing for another rank. */
static void a_gang_gets_the_nodes_that_have_power_together(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "host-4", 4);
    int64_t filler = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, filler));
    int64_t small = lab_join(&l, "host", 2);
    lab_join(&l, "host-2", 8);
    lab_join(&l, "host-3", 8);
    int64_t gang = lab_submit_nodes(&l, 2, 1, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, gang));
    LIST_FOREACH (&model_job(l.m, gang)->ranks, lr)
        assert_int_not_equal(LIST_ENTRY(lr, struct attempt, in_job)->row.node, small);
    lab_deinit(&l);
}

/* Both ranks would draw 400 W, and 300 are left: enough for either node at full load. A job ends on
 * a node that the gang cannot use, which frees the power for both ranks on other nodes. */
static void a_gang_gets_the_power_that_a_node_leaves_which_does_not_suit_it(void **state)
{
    (void)state;
    static const char *const names[] = {"power1", "power2", "power3"};
    int64_t fillers[3];
    struct lab l;
    struct job_row r = lab_job(1);
    lab_init(&l);
    for (size_t k = 0; k < 3; k++) {
        char where[32];
        snprintf(where, sizeof where, "nodes=%s", names[k]);
        lab_join_with(&l, names[k], 4, k < 2 ? ",ib," : "", "");
        fillers[k] = lab_submit_asking(&l, &r, where);
    }
    lab_plan(&l);
    assert_int_equal(view(&l).draw_w, 700);
    r = lab_job(2);
    r.spec.nodes = 2;
    int64_t gang = lab_submit_asking(&l, &r, "constraint=ib");
    lab_plan(&l);
    assert_false(lab_runs(&l, gang));
    lab_started(&l, fillers[2]);
    lab_ended(&l, fillers[2], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, gang));
    assert_int_equal(view(&l).draw_w, 1000);
    lab_deinit(&l);
}

/* A gang for which a rack never has the power reserves nothing there. */
static void a_gang_that_no_rack_can_power_does_not_hold_up_others(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    int64_t large = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    lab_wait(&l, 1000);
    int64_t whole = lab_submit_cpus(&l, 4), small = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_false(lab_runs(&l, large));
    assert_true(lab_runs(&l, whole) && lab_runs(&l, small));
    /* in no rack: with it the gang has enough power, once `whole` has ended */
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    assert_false(lab_runs(&l, large));
    lab_started(&l, whole);
    lab_ended(&l, whole, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, large));
    lab_deinit(&l);
}

static void jobs_without_power_get_machines_elsewhere(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t filler = lab_submit_pool(&l, 4, "base", WISH_ANY), alone = lab_submit_cpus(&l, 4),
            gang = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, filler));
    assert_false(lab_runs(&l, alone) || lab_runs(&l, gang));
    assert_int_equal(model_used(l.m).nodes, 3);
    lab_deinit(&l);
}

static struct rack_view below(const struct lab *l)
{
    struct rack_view v;
    core_rack(l->m, 2, &v);
    return v;
}

static void boot_all(struct lab *l)
{
    int64_t ids[16];
    size_t n = 0;
    LIST_FOREACH (model_instances(l->m), li) {
        const struct instance_row *r = &LIST_ENTRY(li, struct instance, in_all)->row;
        if (r->state == INSTANCE_INTENDED && n < 16)
            ids[n++] = r->id;
    }
    for (size_t k = 0; k < n; k++)
        lab_bring_up(l, ids[k], 4);
}

/* The three machines draw 300 W of 1000 when idle, launched or not; a job of 4 cpus uses 400 of the
 * other 700. */
static void no_machine_is_launched_for_what_would_have_no_power_there(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "racked", 8, "m5", 4);
    assert_int_equal(below(&l).idle_w, 300);
    int64_t first = lab_submit_cpus(&l, 4), second = lab_submit_cpus(&l, 4),
            small = lab_submit_cpus(&l, 3);
    lab_plan(&l);
    /* for the first and, with the rest, the small one */
    assert_int_equal(model_used(l.m).nodes, 2);
    assert_true(lab_has_reason(&l, second, "launching", "instance 1"));
    boot_all(&l);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && lab_runs(&l, small));
    assert_false(lab_runs(&l, second));
    assert_int_equal(below(&l).draw_w, 1000);
    assert_int_equal(below(&l).joined, 2);
    assert_true(lab_has_reason(&l, second, "rack",
        "no node of pool racked is launched for lack of power: rack below draws 1.0 kW of at most "
        "1.0 (max_kw), and it would draw 0.4 more there"));
    for (int k = 0; k < 10; k++) {
        lab_wait(&l, MINUTE_MS / 4);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_int_equal(model_used(l.m).nodes, 2);
    lab_started(&l, first);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    assert_int_equal(model_used(l.m).nodes, 2);
    lab_deinit(&l);
}

static void a_gang_is_launched_whole_or_not_where_power_is_short(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "racked", 8, "m5", 4);
    int64_t large = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 0);
    assert_true(lab_has_reason(&l, large, "rack",
        "no node of pool racked is launched for lack of power: rack below draws 0.3 kW of at most "
        "1.0 (max_kw), and it would draw 0.8 more there"));
    int64_t small = lab_submit_nodes(&l, 2, 3, 0);
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 2);
    boot_all(&l);
    lab_plan(&l);
    assert_true(lab_runs(&l, small));
    assert_int_equal(below(&l).draw_w, 900);
    lab_deinit(&l);
}

/* The cheapest pool has power for one rank, and never for both. */
static void a_gang_gets_dearer_machines_where_those_have_the_power(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "racked", 8, "m5", 4);
    int64_t large = lab_offer(&l, "racked", "m5.large", MARKET_ON_DEMAND, 1,
        (struct resources){.cpus = 8, .memory_mib = 32768}, 2 * LAB_ON_DEMAND_UUSD_H);
    int64_t gang = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, large), 2);
    lab_bring_up(&l, 1, 8);
    lab_bring_up(&l, 2, 8);
    lab_plan(&l);
    assert_true(lab_runs(&l, gang));
    assert_int_equal(below(&l).draw_w, 700);
    lab_deinit(&l);
}

static void no_more_machines_are_launched_than_have_places(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "racked", 8, "m5", 1);
    int64_t last = 0;
    for (int k = 0; k < 5; k++)
        last = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 1); /* one cpu is a whole machine: 400 W */
    lab_deinit(&l);
    lab_init(&l);
    lab_elastic(&l, "racked", 8, "m5", 8);
    for (int k = 0; k < 5; k++) {
        struct job_row r = lab_job(1);
        r.spec.need.memory_mib = 8 * 4096; /* one per machine, of 50 W */
        last = lab_submit(&l, &r);
    }
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 3);
    assert_true(lab_has_reason(&l, last, "pool-full",
        "pool racked has 3 of at most 3 nodes, for which there are places in rack below"));
    lab_deinit(&l);
}

/* As after a restart of belayd with fewer places than nodes. */
static void nodes_beyond_the_places_count_at_rest_too(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct pool_row p = {.name = "racked"};
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &p});
    int64_t last = 0;
    for (int k = 0; k < 4; k++) {
        struct node_row n = {.pool = "racked", .total = {4, 0, 16384}};
        text_format(n.name, sizeof n.name, "r%d", k);
        STR_COPY(n.key_hash, n.name);
        last = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &n}});
    }
    assert_int_equal(below(&l).idle_w, 400);
    assert_int_equal(below(&l).draw_w, 400);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = last});
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = last});
    assert_int_equal(below(&l).idle_w, 300);
    assert_int_equal(below(&l).draw_w, 300);
    struct node_row named = {
        .name = "power1", .key_hash = "p", .pool = "racked", .total = {4, 0, 16384}};
    int64_t watts;
    int64_t node = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &named}});
    /* names have precedence over the pool */
    assert_string_equal(core_node_rack(model_node(l.m, node), &watts), "left");
    lab_deinit(&l);
}

static void nobody_moves_to_where_there_is_no_power(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.return_ms = MINUTE_MS;
    lab_set_pool(&l, p);
    int64_t spot = 0, sure = 0;
    LIST_FOREACH (&model_pool(l.m, "burst")->offers, lo) {
        const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
        *(o->row.market == MARKET_SPOT ? &spot : &sure) = o->row.id;
    }
    int64_t mover = lab_submit_cpus(&l, 4), instance = CORE_ID_NONE;
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {1, true, "no capacity"}});
    lab_plan(&l);
    LIST_FOREACH (model_instances(l.m), li)
        instance = LIST_ENTRY(li, struct instance, in_all)->row.id;
    lab_bring_up(&l, instance, 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, mover));
    assert_int_equal(model_node(l.m, lab_node_of(&l, mover))->row.market, MARKET_ON_DEMAND);
    lab_started(&l, mover);
    lab_saved(&l, mover, 1, 10);
    lab_join(&l, "power1", 4);
    lab_join(&l, "power2", 4);
    int64_t filler = lab_submit_pool(&l, 3, "base", WISH_ANY);
    lab_plan(&l);
    assert_true(lab_runs(&l, filler)); /* 300 W are left: too few for the mover */
    for (int k = 0; k < 10; k++) {
        lab_wait(&l, MINUTE_MS / 4);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_int_equal(job_attempt(model_job(l.m, mover))->row.state, ATTEMPT_RUNNING);
    lab_started(&l, filler);
    lab_ended(&l, filler, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(job_attempt(model_job(l.m, mover))->row.state, ATTEMPT_STOPPING);
    lab_deinit(&l);
}

static void a_job_that_waits_for_power_does_not_starve(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    int64_t runs_long = lab_submit_nodes(&l, 1, 2, 2 * HOUR_MS),
            runs_short = lab_submit_nodes(&l, 1, 2, HOUR_MS);
    lab_plan(&l);
    lab_wait(&l, 1);
    assert_true(lab_runs(&l, runs_long) && lab_runs(&l, runs_short)); /* 200 W are left */
    int64_t big = lab_submit_nodes(&l, 1, 4, HOUR_MS);
    lab_plan(&l);
    assert_true(lab_has_reason(&l, big, "rack", "rack left draws 0.8 kW"));
    lab_wait(&l, 1);
    int64_t passes = lab_submit_nodes(&l, 1, 1, 2 * HOUR_MS),
            fits_before = lab_submit_nodes(&l, 1, 1, HOUR_MS / 2);
    lab_plan(&l);
    /* on any node: big could not start when runs_short has ended */
    assert_false(lab_runs(&l, passes));
    assert_true(lab_runs(&l, fits_before));
    assert_true(lab_has_reason(
        &l, passes, "reserved-for", "with a shorter --time it might run until then"));
    lab_started(&l, fits_before);
    lab_ended(&l, fits_before, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, passes));
    lab_started(&l, runs_short);
    lab_ended(&l, runs_short, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, big));
    assert_false(lab_runs(&l, passes));
    lab_started(&l, runs_long);
    lab_ended(&l, runs_long, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, passes));
    lab_deinit(&l);
}

/* Power reserved for a waiting job is kept on all nodes of the rack, and yields to a job within its
 * team's quota. That job comes within the quota when another job of the team ends, in no rack and
 * on a node that is too small. */
static void power_that_is_kept_yields_to_a_quota(void **state)
{
    (void)state;
    static struct policy_user ann = {.name = "ann", .shares = 1},
                              bob = {.name = "bob", .shares = 1};
    static struct policy_team teams[] = {
        {.name = "red", .shares = 1, .users = &ann, .n_users = 1, .quota_mcpu = 8000},
        {.name = "blue", .shares = 1, .users = &bob, .n_users = 1}};
    struct queue_policy o = queue_policy_defaults;
    o.teams = teams;
    o.n_teams = 2;
    struct lab l;
    lab_init_policy(&l, &o);
    lab_join(&l, "host", 8);
    lab_join(&l, "host-2", 2);
    lab_join(&l, "n1", 4);
    struct job_row r = lab_job(1), own = lab_job(4);
    STR_COPY(r.user, "bob");
    int64_t first = lab_submit_asking(&l, &r, "nodes=host-2"),
            ends = lab_submit_asking(&l, &own, "nodes=n1");
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && lab_runs(&l, ends)); /* 100 W of 300 in its rack */
    r.spec.need.cpus = 2;
    int64_t waits = lab_submit_asking(&l, &r, "nodes=host-2");
    lab_wait(&l, 1);
    int64_t large = lab_submit_cpus(&l, 8); /* 200 W, which `waits` then lacks */
    lab_plan(&l);
    assert_false(lab_runs(&l, waits) || lab_runs(&l, large));
    lab_started(&l, ends);
    lab_ended(&l, ends, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, large));
    lab_deinit(&l);
}

/* The victim is the job with an end that frees enough power, though another has less to lose. */
static void preemption_happens_where_there_is_power_afterwards(void **state)
{
    (void)state;
    struct policy_qos classes[] = {{.name = "high", .boost_ms = HOUR_MS}, {.name = "low"}};
    uint64_t low = 2;
    classes[0].preempts.words = &low;
    classes[0].preempts.n = 2;
    struct queue_policy o = queue_policy_defaults;
    o.qos = classes;
    o.n_qos = 2;
    struct lab l;
    lab_init_policy(&l, &o);
    lab_join(&l, "power1", 4);
    lab_join(&l, "power2", 4);
    struct job_row r = lab_job(4);
    STR_COPY(r.spec.qos, "low");
    int64_t whole = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, whole);
    lab_wait(&l, HOUR_MS / 2);
    lab_heartbeats(&l);
    r = lab_job(2);
    STR_COPY(r.spec.qos, "low");
    int64_t half = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, half);
    assert_int_equal(view(&l).draw_w, 1000);
    r = lab_job(4);
    STR_COPY(r.spec.qos, "high");
    int64_t high = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(job_attempt(model_job(l.m, whole))->row.state, ATTEMPT_STOPPING);
    assert_int_equal(job_attempt(model_job(l.m, half))->row.state, ATTEMPT_RUNNING);
    lab_ended(&l, whole, END_EVICTED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, high));
    lab_deinit(&l);
}

static void a_lost_node_counts_on_until_it_is_heard_of(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    struct job_row r = lab_job(4);
    r.spec.retries.n[RETRY_NODE_LOST] = RETRIES_NEVER;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    int64_t node = lab_node_of(&l, job);
    lab_started(&l, job);
    lab_wait(&l, LAB_LEASE_MS - 1000);
    LIST_FOREACH (model_nodes(l.m), ln) {
        int64_t other = LIST_ENTRY(ln, struct node, in_all)->row.id;
        if (other != node)
            lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = other});
    }
    lab_wait(&l, 2000);
    lab_plan(&l);
    assert_int_equal(model_node(l.m, node)->row.state, NODE_LOST);
    assert_int_equal(view(&l).draw_w, 800); /* its program may still run */
    int64_t next = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_false(lab_runs(&l, next));
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    lab_plan(&l);
    assert_true(lab_runs(&l, next));
    assert_int_equal(view(&l).draw_w, 800);
    lab_deinit(&l);
}

static void a_measured_draw_above_the_estimate_holds_jobs_back(void **state)
{
    (void)state;
    struct lab l;
    begin(&l);
    int64_t first = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    struct event ev = {
        .type = EV_CONDITION, .condition = {.node = lab_node_of(&l, first), .watts = 600}};
    lab_apply(&l, ev); /* it counts as 300 */
    assert_int_equal(view(&l).measured_w, 300);
    int64_t second = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_false(lab_runs(&l, second));
    assert_true(lab_has_reason(&l, second, "rack", "rack left draws 0.9 kW"));
    ev.condition.watts = 200; /* less than computed: no effect */
    lab_apply(&l, ev);
    assert_int_equal(view(&l).measured_w, 0);
    assert_int_equal(view(&l).draw_w, 600);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    ev.condition.watts = -1;
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_INVALID);
    lab_deinit(&l);
}

/* Stored jobs keep their places; no job is added. */
static void a_rack_that_may_draw_less_after_a_restart_takes_nothing_until_it_does(void **state)
{
    (void)state;
    static const struct rack_options less[] = {
        {.name = "left", .max_w = 800, .nodes = {{"power[1-3]", 3, 100, 500}}, .n_nodes = 1}};
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = LAB_LEASE_MS,
        .tables.racks = less,
        .tables.n_racks = 1};
    struct lab l;
    begin(&l);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    struct pool_row pool = model_pool(l.m, "base")->row;
    struct job_row row = model_job(l.m, job)->row;
    struct attempt_row attempt = job_attempt(model_job(l.m, job))->row;
    struct model *m = model_create(&o);
    assert_int_equal(model_load_pool(m, &pool, l.now, &l.e), 0);
    LIST_FOREACH (model_nodes(l.m), ln) {
        struct node_row n = LIST_ENTRY(ln, struct node, in_all)->row;
        assert_int_equal(model_load_node(m, &n, l.now, &l.e), 0);
    }
    assert_int_equal(model_load_job(m, &row, l.now, &l.e), 0);
    assert_int_equal(model_load_attempt(m, &attempt, &l.e), 0);
    assert_int_equal(model_load_end(m, &(struct model_counters){1, 1, 1, 1, 1, 1, 1}, &l.e), 0);
    model_destroy(l.m);
    planner_destroy(l.p);
    l.m = m;
    l.p = planner_create();
    assert_int_equal(view(&l).draw_w, 700);
    int64_t two = lab_submit_cpus(&l, 2), one = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_false(lab_runs(&l, two));
    assert_true(lab_runs(&l, one));
    lab_deinit(&l);
}

static void a_throttled_node_gets_no_new_jobs(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), first = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, first);
    struct event ev = {
        .type = EV_CONDITION, .condition = {.node = node, .throttle = NODE_THROTTLE_HEAT}};
    lab_take(&l);
    lab_apply(&l, ev);
    lab_apply(&l, ev);
    int64_t second = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "throttled")->text, "n1 is throttled by heat: it gets no new jobs");
    assert_false(lab_runs(&l, second));
    assert_true(lab_runs(&l, first)); /* and running jobs continue */
    assert_true(lab_has_reason(&l, second, "nodes-throttled",
        "1 node is throttled by heat, power or the board, and gets no new jobs until that is "
        "over: n1 (heat)"));
    int64_t other = lab_join(&l, "n2", 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, second), other);
    int64_t third = lab_submit_cpus(&l, 4);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, third));
    ev.condition.throttle = NODE_THROTTLE_NONE;
    lab_apply(&l, ev);
    lab_plan(&l);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "recovered")->text, "n1 is not throttled any more");
    assert_int_equal(lab_node_of(&l, third), node);
    ev.condition.throttle = (enum node_throttle)4;
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_INVALID);
    lab_deinit(&l);
}

static int64_t submit_for(struct lab *l, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = lab_job(cpus);
    r.spec.time_limit_ms = limit_ms;
    return lab_submit(l, &r);
}

static void no_start_is_promised_before_there_is_power(void **state)
{
    (void)state;
    struct forecast f;
    struct lab l;
    begin(&l);
    submit_for(&l, 4, 7200000);
    submit_for(&l, 2, 3600000);
    lab_plan(&l); /* 400 W and 200 W of the 600 */
    int64_t job = submit_for(&l, 4, 3600000);
    lab_plan(&l);
    assert_false(lab_runs(&l, job)); /* on power3, which is empty */
    assert_true(core_forecast(l.m, l.now, job, &f));
    assert_false(f.is_now);
    assert_int_equal(f.latest.ms, l.now.wall.ms + 7200000);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_start_is_promised_before_there_is_power),
        cmocka_unit_test(no_more_is_placed_than_the_rack_may_draw),
        cmocka_unit_test(other_nodes_of_the_rack_get_what_one_leaves),
        cmocka_unit_test(a_job_with_all_gpus_counts_as_a_full_node),
        cmocka_unit_test(an_exclusive_node_counts_as_full),
        cmocka_unit_test(a_gang_gets_power_for_all_of_its_ranks_or_none),
        cmocka_unit_test(a_gang_gets_the_nodes_that_have_power_together),
        cmocka_unit_test(a_gang_gets_the_power_that_a_node_leaves_which_does_not_suit_it),
        cmocka_unit_test(a_gang_that_no_rack_can_power_does_not_hold_up_others),
        cmocka_unit_test(jobs_without_power_get_machines_elsewhere),
        cmocka_unit_test(no_machine_is_launched_for_what_would_have_no_power_there),
        cmocka_unit_test(a_gang_is_launched_whole_or_not_where_power_is_short),
        cmocka_unit_test(a_gang_gets_dearer_machines_where_those_have_the_power),
        cmocka_unit_test(no_more_machines_are_launched_than_have_places),
        cmocka_unit_test(nodes_beyond_the_places_count_at_rest_too),
        cmocka_unit_test(nobody_moves_to_where_there_is_no_power),
        cmocka_unit_test(a_job_that_waits_for_power_does_not_starve),
        cmocka_unit_test(power_that_is_kept_yields_to_a_quota),
        cmocka_unit_test(preemption_happens_where_there_is_power_afterwards),
        cmocka_unit_test(a_lost_node_counts_on_until_it_is_heard_of),
        cmocka_unit_test(a_measured_draw_above_the_estimate_holds_jobs_back),
        cmocka_unit_test(a_rack_that_may_draw_less_after_a_restart_takes_nothing_until_it_does),
        cmocka_unit_test(a_throttled_node_gets_no_new_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
