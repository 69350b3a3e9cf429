/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes: joining, leases, notices, drains, losses and returns.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include <string.h>

static struct node_row node_named(const char *name, const char *key)
{
    struct node_row r = {.pool = "base", .total = {4, 0, 16384}, .version = "1"};
    STR_COPY(r.name, name);
    STR_COPY(r.key_hash, key);
    return r;
}

static void an_owned_node_joins_its_pool(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_take(&l);
    int64_t id = lab_join(&l, "n1", 4);
    const struct node *n = model_node(l.m, id);
    assert_int_equal(n->row.state, NODE_UP);
    assert_int_equal(n->row.market, MARKET_OWNED);
    assert_int_equal(n->row.price_uusd_h, 500000);
    assert_int_equal(n->row.on_demand_uusd_h, 500000);
    assert_string_equal(n->row.pool, "base");
    assert_ptr_equal(model_node_by_key(l.m, "key-n1"), n);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "joined")->text, "n1 joined: 4 cpus, 16.0 GiB, owned");
    lab_deinit(&l);
}

static void a_repeated_join_is_the_same_node(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct node_row r = node_named("n1", "k1");
    int64_t id = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    int64_t job = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    STR_COPY(r.version, "2");
    r.total.cpus = 8; /* it grew while the agent was down */
    assert_int_equal(lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}}), id);
    assert_string_equal(model_node(l.m, id)->row.version, "2");
    assert_int_equal(model_node(l.m, id)->row.total.cpus, 8);
    assert_int_equal(model_node(l.m, id)->free.cpus, 6);
    r.total.cpus = 1; /* less than its jobs use */
    lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    assert_int_equal(model_node(l.m, id)->row.total.cpus, 8);
    assert_int_equal(lab_node_of(&l, job), id);
    struct model_counts c;
    model_counts(l.m, &c);
    assert_int_equal(c.nodes_up, 1);
    lab_deinit(&l);
}

static void names_are_made_unique(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct node_row r[] = {node_named("host", "k1"), node_named("host", "k2"),
        node_named("host", "k3"), node_named("", "k4")};
    for (size_t k = 0; k < 4; k++)
        lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r[k]}});
    assert_string_equal(model_node(l.m, 1)->row.name, "host");
    assert_string_equal(model_node(l.m, 2)->row.name, "host-2");
    assert_string_equal(model_node(l.m, 3)->row.name, "host-3");
    assert_string_equal(model_node(l.m, 4)->row.name, "node");
    lab_deinit(&l);
}

static void joins_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    struct node_row r = node_named("n", "k");
    struct event ev = {.type = EV_JOIN, .join = {.node = &r}};
    STR_COPY(r.pool, "nowhere");
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_NOT_FOUND);
    STR_COPY(r.pool, "burst"); /* elastic nodes come from an instance */
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    STR_COPY(r.pool, "base");
    r.total.cpus = 0;
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_INVALID);
    r.total.cpus = 4;
    ev.join.instance = 17;
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void a_token_serves_one_key(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_launched(&l, 1);
    int64_t id = lab_join_instance(&l, 1, 4);
    assert_int_equal(lab_join_instance(&l, 1, 4), id);
    struct node_row thief = node_named("thief", "other-key"), moved = node_named("vm", "key-vm-1");
    struct event stolen = {.type = EV_JOIN, .join = {.node = &thief, .instance = 1}};
    assert_int_equal(lab_try(&l, &stolen, NULL), ERR_DENIED);
    struct event elsewhere = {.type = EV_JOIN, .join = {.node = &moved, .instance = CORE_ID_NONE}};
    assert_int_equal(lab_try(&l, &elsewhere, NULL), ERR_DENIED);
    lab_deinit(&l);
}

static void a_silent_node_is_lost_and_its_job_runs_elsewhere(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t one = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_started(&l, job);
    lab_wait(&l, LAB_LEASE_MS - 1);
    int64_t two = lab_join(&l, "n2", 4);
    assert_int_equal(lab_plan(&l), 0);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + 1);
    lab_wait(&l, 1);
    lab_take(&l);
    assert_int_equal(lab_plan(&l), 2); /* lost, placed */
    assert_int_equal(model_node(l.m, one)->row.state, NODE_LOST);
    assert_int_equal(lab_node_of(&l, job), two);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "lost")->text, "n1: silent for 30s");
    assert_string_equal(lab_history(&l, "ended")->text, "its node was lost: silent for 30s");
    struct model_counts c;
    model_counts(l.m, &c);
    assert_int_equal(c.nodes_lost, 1);
    assert_int_equal(c.nodes_up, 1);
    lab_deinit(&l);
}

static void a_heartbeat_brings_a_lost_node_back(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    lab_wait(&l, LAB_LEASE_MS);
    lab_plan(&l);
    int64_t job = lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 0);
    lab_take(&l);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = id});
    lab_take(&l);
    assert_string_equal(lab_history(&l, "returned")->text, "n1 is back");
    assert_int_equal(l.c.n_nodes, 1);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), id);
    lab_deinit(&l);
}

static void a_heartbeat_changes_nothing_that_is_stored(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_take(&l);
    for (int k = 0; k < 5; k++) {
        lab_wait(&l, LAB_LEASE_MS - 1);
        lab_heartbeats(&l);
        assert_int_equal(lab_plan(&l), 0);
    }
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = 99});
    lab_take(&l);
    assert_true(changes_is_empty(&l.c));
    lab_deinit(&l);
}

static void the_node_silent_for_longest_is_lost_first(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    int64_t one = lab_join(&l, "n1", 4);
    lab_wait(&l, 1000);
    int64_t two = lab_join(&l, "n2", 4);
    lab_wait(&l, 1000);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = one});
    lab_wait(&l, LAB_LEASE_MS - 1000);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_NODE_LOST);
    assert_int_equal(ev.lost.node, two);
    lab_deinit(&l);
}

static void a_reclaim_notice_keeps_work_away(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4), running = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    lab_take(&l);
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 120000);
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 90000); /* repeated: no effect */
    lab_notice(&l, id, NOTICE_TYPE_REBALANCE, 0);   /* a lesser one: no effect */
    int64_t waiting = lab_submit_cpus(&l, 2);
    assert_int_equal(lab_plan(&l), 0);
    /* it continues until it is stopped or the node is gone */
    assert_int_equal(lab_node_of(&l, running), id);
    assert_int_equal(lab_node_of(&l, waiting), CORE_ID_NONE);
    assert_int_equal(model_node(l.m, id)->row.notice_deadline.ms, l.now.wall.ms + 120000);
    lab_take(&l);
    const struct history_row *h = lab_history(&l, "notice");
    assert_string_equal(h->text, "reclaim notice on n1: 2m00s left");
    assert_int_equal(h->job, running);
    assert_int_equal(h->a, l.now.wall.ms + 120000);
    assert_int_equal(l.c.n_history, 2); /* this one, and the submit */
    lab_deinit(&l);
}

static void a_rebalance_is_noted_and_no_more(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 2);
    lab_notice(&l, id, NOTICE_TYPE_REBALANCE, 0);
    lab_notice(&l, id, NOTICE_TYPE_MAINTENANCE, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), id);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_UP);
    assert_int_equal(model_node(l.m, id)->row.notice, NOTICE_TYPE_MAINTENANCE);
    struct event bad = {.type = EV_NOTICE, .notice = {.node = id, .kind = (enum notice_type)9}};
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    lab_notice(&l, 99, NOTICE_TYPE_RECLAIM, 0); /* of a node that is gone */
    lab_deinit(&l);
}

/* A machine without an instance that shut down is the same machine when its agent returns. */
static void a_rebooted_node_takes_work_again(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_NOTICED);
    int64_t job = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), CORE_ID_NONE);
    lab_notice(&l, id, NOTICE_TYPE_NONE, 0);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_UP);
    assert_int_equal(model_node(l.m, id)->row.notice, NOTICE_TYPE_NONE);
    lab_take(&l);
    assert_non_null(lab_history(&l, "returned"));
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), id);
    lab_deinit(&l);
}

static void a_lost_node_with_a_notice_was_reclaimed(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 20000);
    lab_wait(&l, LAB_LEASE_MS);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, job)->row.end, END_RECLAIMED);
    assert_int_equal(model_job(l.m, job)->row.used[RETRY_NODE_LOST], 0);
    /* the reclaim did not happen */
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = id});
    assert_int_equal(model_node(l.m, id)->row.state, NODE_UP);
    assert_int_equal(model_node(l.m, id)->row.notice, NOTICE_TYPE_NONE);
    lab_deinit(&l);
}

static void a_node_returns_noticed_while_the_deadline_is_ahead(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 10 * LAB_LEASE_MS);
    lab_wait(&l, LAB_LEASE_MS);
    lab_plan(&l);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_LOST);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = id});
    assert_int_equal(model_node(l.m, id)->row.state, NODE_NOTICED);
    lab_deinit(&l);
}

static void a_drain_saves_and_stops_and_outlives_a_reboot(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = id});
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = id});
    const struct attempt_row *a = &job_attempt(model_job(l.m, job))->row;
    assert_int_equal(a->state, ATTEMPT_STOPPING);
    assert_int_equal(a->stop_reason, END_DRAINED);
    assert_true(a->save_first);
    lab_ended(&l, job, END_DRAINED, 0);
    assert_int_equal(lab_plan(&l), 0); /* it waits: the only node is drained */
    lab_wait(&l, LAB_LEASE_MS);
    lab_plan(&l);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_LOST); /* it is rebooting */
    lab_join(&l, "n1", 4);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_DRAINING);
    assert_int_equal(lab_plan(&l), 0);
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = id});
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = id});
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, job), id);
    lab_deinit(&l);
}

static void a_drain_of_a_lost_node_waits_for_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    lab_wait(&l, LAB_LEASE_MS);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = id});
    assert_int_equal(model_node(l.m, id)->row.state, NODE_LOST);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = id});
    assert_int_equal(model_node(l.m, id)->row.state, NODE_DRAINING);
    lab_deinit(&l);
}

static void a_drained_node_can_still_be_reclaimed(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = id});
    lab_notice(&l, id, NOTICE_TYPE_RECLAIM, 1000);
    assert_int_equal(model_node(l.m, id)->row.state, NODE_NOTICED);
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = id});
    assert_int_equal(model_node(l.m, id)->row.state, NODE_NOTICED);
    lab_deinit(&l);
}

static void only_an_empty_node_is_deleted_and_its_instance_with_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    int64_t id = lab_join(&l, "n1", 2), job = lab_submit_cpus(&l, 2);
    struct job_row wants_burst = lab_job(1);
    STR_COPY(wants_burst.spec.pool, "burst");
    lab_submit(&l, &wants_burst);
    lab_plan(&l);
    int64_t elastic = lab_join_instance(&l, 1, 4);
    struct event busy = {.type = EV_NODE_DELETE, .node_delete.node = id};
    assert_int_equal(lab_try(&l, &busy, NULL), ERR_CONFLICT);
    struct event paid = {.type = EV_NODE_DELETE, .node_delete.node = elastic};
    lab_apply(&l, paid);
    assert_null(model_node(l.m, elastic));
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_apply(&l, busy);
    assert_null(model_node(l.m, id));
    assert_null(model_node_by_key(l.m, "key-n1"));
    lab_take(&l);
    assert_int_equal(l.c.nodes[0].state, NODE_GONE);
    assert_int_equal(l.c.nodes[0].gone_at.ms, l.now.wall.ms);
    assert_int_not_equal(lab_join(&l, "n1", 2), id); /* it may join as a new one */
    lab_deinit(&l);
}

static void requests_for_unknown_nodes_are_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct event evs[] = {{.type = EV_DRAIN, .drain.node = 9},
        {.type = EV_UNDRAIN, .undrain.node = 9}, {.type = EV_NODE_DELETE, .node_delete.node = 9},
        {.type = EV_NODE_LOST, .lost.node = 9}};
    for (size_t k = 0; k < sizeof evs / sizeof evs[0]; k++)
        assert_int_equal(lab_try(&l, &evs[k], NULL), ERR_NOT_FOUND);
    lab_deinit(&l);
}

/* ---- full disks ---- */

static bool says(const struct lab *l, int64_t job, const char *code, const char *text)
{
    struct reason reasons[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l->m, l->now, job, reasons, EXPLAIN_REASONS_MAX);
    for (size_t i = 0; i < n; i++)
        if (str_eq(reasons[i].code, code) && str_eq(reasons[i].text, text))
            return true;
    return false;
}

static void set_disk_full(struct lab *l, int64_t node, const char *full)
{
    struct event ev = {.type = EV_DISK, .disk.node = node};
    STR_COPY(ev.disk.full, full);
    lab_apply(l, ev);
}

static void a_node_whose_disk_is_full_is_given_nothing_new(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), first = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, first);
    lab_take(&l);
    set_disk_full(&l, node, "1 MiB of 16 MiB are free");
    set_disk_full(&l, node, "0 B of 16 MiB are free"); /* still full */
    lab_take(&l);
    assert_int_equal(l.c.n_history, 1);
    assert_string_equal(lab_history(&l, "disk-full")->text,
        "n1 has no space on its disk and gets no new jobs: 1 MiB of 16 MiB are free");
    int64_t second = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, second), CORE_ID_NONE);
    assert_int_equal(lab_node_of(&l, first), node); /* running jobs continue */
    assert_true(says(&l, second, "nodes-full",
        "1 node has no space on its disk, and gets no new jobs until there is space: n1 (0 B of 16 "
        "MiB are free)"));
    int64_t other = lab_join(&l, "n2", 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, second), other);
    int64_t third = lab_submit_cpus(&l, 4);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, third), CORE_ID_NONE);
    lab_take(&l);
    set_disk_full(&l, node, "");
    set_disk_full(&l, node, "");
    lab_plan(&l);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "disk-room")->text, "n1 has space on its disk again");
    assert_int_equal(lab_node_of(&l, third), node);
    set_disk_full(&l, 4711, "gone meanwhile");
    lab_deinit(&l);
}

static void report_fault(struct lab *l, int64_t node, const char *text)
{
    struct event ev = {.type = EV_FAULT, .fault.node = node};
    STR_COPY(ev.fault.text, text);
    lab_apply(l, ev);
}

static void a_faulty_node_is_drained_once_for_each_fault(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, job);
    lab_take(&l);
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)");
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)");
    lab_take(&l);
    assert_int_equal(l.c.n_history, 2);
    assert_string_equal(lab_history(&l, "fault")->text, "n1 is faulty: GPU 0: Xid 79 (03:00)");
    assert_string_equal(
        lab_history(&l, "auto-drain")->text, "n1 is being emptied: GPU 0: Xid 79 (03:00)");
    const struct node *n = model_node(l.m, node);
    assert_int_equal(n->row.state, NODE_DRAINING);
    assert_int_equal(job_attempt(model_job(l.m, job))->row.stop_reason, END_DRAINED);
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = node});
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)"); /* the agent repeats it */
    assert_int_equal(n->row.state, NODE_UP);
    report_fault(&l, node, ""); /* it has started again */
    assert_int_equal(n->row.state, NODE_UP);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = node});
    assert_string_equal(n->row.drain_text, "");
    report_fault(&l, node, "GPU 0: Xid 79 (04:00)");
    assert_string_equal(n->row.drain_text, "GPU 0: Xid 79 (04:00)");
    report_fault(&l, 4711, "gone meanwhile");
    lab_deinit(&l);
}

static int64_t join_of(struct lab *l, enum market market)
{
    lab_submit_cpus(l, 4);
    lab_plan(l);
    lab_launched(l, 1);
    int64_t node = lab_join_instance(l, 1, 4);
    lab_plan(l);
    assert_int_equal(model_node(l->m, node)->row.market, market);
    return node;
}

static void an_operators_reason_stays_the_operators(void **state)
{
    struct lab l;
    (void)state;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    const struct node *n = model_node(l.m, node);
    struct event ev = {.type = EV_DRAIN, .drain = {.node = node, .text = "disk is swapped"}};
    lab_apply(&l, ev);
    assert_string_equal(n->row.drain_text, "disk is swapped");
    assert_false(n->row.drained_by_belay);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "drain")->text, "n1 is being emptied: disk is swapped");
    ev.drain.text[0] = '\0';
    lab_apply(&l, ev); /* says nothing new */
    assert_string_equal(n->row.drain_text, "disk is swapped");
    STR_COPY(ev.drain.text, "new driver");
    lab_apply(&l, ev);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "drain")->text, "n1 is being emptied: new driver");
    struct event fault = {.type = EV_FAULT, .fault = {.node = node, .text = "GPU 0: Xid 79"}};
    lab_apply(&l, fault);
    assert_true(n->row.drained_by_belay);
    assert_string_equal(n->row.drain_text, "GPU 0: Xid 79");
    lab_apply(&l, ev); /* the fault stays what is shown */
    assert_string_equal(n->row.drain_text, "GPU 0: Xid 79");
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = node});
    assert_false(n->row.drained_by_belay);
    assert_string_equal(n->row.drain_text, "");
    lab_deinit(&l);
}

static void a_drained_machine_is_ended_when_its_jobs_have_left(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    struct pool_row burst = lab_pool(&l, "burst");
    burst.idle_timeout_ms = burst.cooldown_ms = 3600000;
    lab_set_pool(&l, burst);
    int64_t node = join_of(&l, MARKET_SPOT);
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)");
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_RUNNING); /* its job saves */
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_plan(&l);
    lab_wait(&l, 5000); /* for its last output */
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_string_equal(
        model_instance(l.m, 1)->row.text, "belay drained it, and its jobs have left");
    lab_deinit(&l);
}

static void a_drained_machine_is_kept_for_its_operator(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    struct pool_row burst = lab_pool(&l, "burst");
    burst.idle_timeout_ms = burst.cooldown_ms = 3600000;
    lab_set_pool(&l, burst);
    int64_t node = join_of(&l, MARKET_SPOT);
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)");
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = node});
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = node});
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_wait(&l, 60000);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_RUNNING);
    lab_wait(&l, 3600000);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING); /* as any idle one */
    lab_deinit(&l);
}

static void a_drained_host_of_a_static_pool_is_not_released(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "rack", 2, "m5", 4);
    struct pool_row rack = lab_pool(&l, "rack");
    rack.idle_timeout_ms = rack.cooldown_ms = 1000;
    lab_set_pool(&l, rack);
    lab_offer(&l, "rack", "host", MARKET_OWNED, 0, (struct resources){4, 0, 16384}, 1000);
    int64_t node = join_of(&l, MARKET_OWNED);
    report_fault(&l, node, "GPU 0: Xid 79 (03:00)");
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_wait(&l, 60000);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_RUNNING);
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain.node = node});
    lab_plan(&l);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING); /* idle long enough */
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owned_node_joins_its_pool),
        cmocka_unit_test(a_repeated_join_is_the_same_node),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(joins_that_cannot_be_are_refused),
        cmocka_unit_test(a_token_serves_one_key),
        cmocka_unit_test(a_silent_node_is_lost_and_its_job_runs_elsewhere),
        cmocka_unit_test(a_heartbeat_brings_a_lost_node_back),
        cmocka_unit_test(a_heartbeat_changes_nothing_that_is_stored),
        cmocka_unit_test(the_node_silent_for_longest_is_lost_first),
        cmocka_unit_test(a_reclaim_notice_keeps_work_away),
        cmocka_unit_test(a_rebalance_is_noted_and_no_more),
        cmocka_unit_test(a_rebooted_node_takes_work_again),
        cmocka_unit_test(a_lost_node_with_a_notice_was_reclaimed),
        cmocka_unit_test(a_node_returns_noticed_while_the_deadline_is_ahead),
        cmocka_unit_test(a_drain_saves_and_stops_and_outlives_a_reboot),
        cmocka_unit_test(a_drain_of_a_lost_node_waits_for_it),
        cmocka_unit_test(an_operators_reason_stays_the_operators),
        cmocka_unit_test(a_drained_node_can_still_be_reclaimed),
        cmocka_unit_test(only_an_empty_node_is_deleted_and_its_instance_with_it),
        cmocka_unit_test(requests_for_unknown_nodes_are_refused),
        cmocka_unit_test(a_faulty_node_is_drained_once_for_each_fault),
        cmocka_unit_test(a_drained_machine_is_ended_when_its_jobs_have_left),
        cmocka_unit_test(a_drained_machine_is_kept_for_its_operator),
        cmocka_unit_test(a_drained_host_of_a_static_pool_is_not_released),
        cmocka_unit_test(a_node_whose_disk_is_full_is_given_nothing_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
