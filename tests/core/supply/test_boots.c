/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools with machines that are launched, billed, and never join.
 */
#include "scheduler/core/forecast/forecast.h"
#include "tests/core/shelf.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define OFFERS 8
#define MINUTES_MS(n) ((int64_t)(n)*60000)

/* A pool "burst" of up to 20 machines in offers of four types, with jobs for all of them. */
static void start(struct lab *l, int jobs)
{
    lab_init(l);
    lab_elastic(l, "burst", 20, "m5", 4);
    for (int k = 0; k < OFFERS - 2; k++) {
        char type[16];
        snprintf(type, sizeof type, "t%d", k);
        lab_offer(l, "burst", type, k % 2 ? MARKET_ON_DEMAND : MARKET_SPOT, 0,
            (struct resources){.cpus = 4, .memory_mib = 16384}, LAB_SPOT_UUSD_H);
    }
    for (int k = 0; k < jobs; k++)
        lab_submit_cpus(l, 4);
    lab_plan(l);
}

static const struct pool_boots *boots(const struct lab *l)
{
    return &model_pool(l->m, "burst")->row.boots;
}

static int64_t launches(const struct lab *l)
{
    int64_t n = 0;
    for (int64_t id = 1; id <= OFFERS; id++)
        n += lab_launches(l, id);
    return n;
}

/* As machines that cannot fetch their agent: they power themselves off. */
static int fail_all(struct lab *l)
{
    int n = 0;
    for (struct link *at; (at = list_first(model_instances(l->m)));) {
        int64_t id = LIST_ENTRY(at, struct instance, in_all)->row.id;
        lab_launched(l, id);
        lab_apply(l, (struct event){.type = EV_INSTANCE_GONE,
                         .gone = {id, false, WALL_NONE, "Client.InstanceInitiatedShutdown"}});
        n++;
    }
    return n;
}

static void launches_of_a_pool_that_does_not_boot_are_bounded(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 1);
    int64_t until = l.now.mono.ms + MINUTES_MS(27);
    while (l.now.mono.ms < until) {
        fail_all(&l);
        lab_wait(&l, 1000);
        lab_plan(&l);
    }
    assert_in_range(launches(&l), 6, 8); /* three, then one each after 1, 3, 7 and 15 minutes */
    assert_true(lab_has_reason(&l, 1, "boots-fail", "never joined"));
    assert_true(lab_has_reason(&l, 1, "boots-fail", "to try again"));
    lab_deinit(&l);
}

static void the_wait_grows_to_an_hour_and_no_longer(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 3);
    assert_int_equal(fail_all(&l), 3);
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(1));
    for (int k = 0; k < 9; k++) {
        int64_t wait_ms = boots(&l)->wait_ms;
        lab_wait(&l, wait_ms - 1);
        lab_plan(&l);
        assert_int_equal(fail_all(&l), 0);
        lab_wait(&l, 1);
        lab_plan(&l);
        assert_int_equal(fail_all(&l), 1); /* with three jobs waiting */
        assert_int_equal(
            boots(&l)->wait_ms, wait_ms * 2 < MINUTES_MS(60) ? wait_ms * 2 : MINUTES_MS(60));
    }
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(60));
    lab_deinit(&l);
}

static void many_that_fail_together_are_one_failure_of_the_wait(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 20);
    assert_int_equal(fail_all(&l), 20);
    assert_int_equal(boots(&l)->failed, 20);
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(1));
    lab_deinit(&l);
}

/* The image leaves less space than the agent keeps for itself. */
static int join_full(struct lab *l)
{
    int n = 0;
    LIST_FOREACH (model_instances(l->m), at) {
        const struct instance *i = LIST_ENTRY(at, struct instance, in_all);
        if (i->row.state != INSTANCE_INTENDED)
            continue;
        struct event full = {.type = EV_DISK,
            .disk = {.node = lab_bring_up(l, i->row.id, 4), .full = "1 MiB of 2 MiB are free"}};
        lab_apply(l, full);
        n++;
    }
    return n;
}

static void machines_whose_disks_are_full_from_the_start_are_bounded(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 1);
    int64_t until = l.now.mono.ms + MINUTES_MS(27);
    while (l.now.mono.ms < until) {
        join_full(&l);
        lab_wait(&l, 1000);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_in_range(launches(&l), 6, 8); /* three, then one each after 1, 3, 7 and 15 minutes */
    assert_true(lab_has_reason(&l, 1, "boots-fail", "no space on their disks"));
    assert_true(lab_has_reason(&l, 1, "boots-fail", "1 MiB of 2 MiB are free"));
    lab_deinit(&l);
}

/* s is empty, and must be released after l. */
static void restart(struct lab *l, struct shelf *s)
{
    lab_take(l);
    shelf_put(s, &l->c);
    planner_destroy(l->p);
    model_destroy(l->m);
    l->m = shelf_load(s, l->now);
    l->p = planner_create();
}

static int64_t wait_for_a_launch(struct lab *l)
{
    for (int k = 0; k < 1000; k++) {
        LIST_FOREACH (model_instances(l->m), at) {
            const struct instance *i = LIST_ENTRY(at, struct instance, in_all);
            if (i->row.state == INSTANCE_INTENDED)
                return i->row.id;
        }
        lab_wait(l, 1000);
        lab_heartbeats(l);
        lab_plan(l);
    }
    fail_msg("nothing is launched");
    return 0;
}

/* The join is known before the disk is: the job for which the machine was launched is placed there,
 * and finds no space. */
static void a_job_that_is_placed_before_the_disk_is_known_ends_nothing(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 1);
    for (int k = 1; k <= BOOTS_FAILED_MAX; k++) {
        int64_t node = lab_bring_up(&l, wait_for_a_launch(&l), 4);
        lab_plan(&l);
        assert_int_equal(lab_node_of(&l, 1), node);
        assert_int_equal(boots(&l)->failed, k - 1);
        lab_apply(&l, (struct event){.type = EV_DISK, .disk = {.node = node, .full = "full"}});
        assert_int_equal(boots(&l)->failed, k);
        lab_ended(&l, 1, END_CAPACITY, 0);
        assert_int_equal(boots(&l)->failed, k);
    }
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(1));
    int64_t node = lab_bring_up(&l, wait_for_a_launch(&l), 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), node);
    assert_true(boots(&l)->wait_ms > 0);
    lab_started(&l, 1);
    assert_int_equal(boots(&l)->failed, 0);
    lab_deinit(&l);
}

static int count_of(const struct lab *l, enum instance_state state)
{
    int n = 0;
    LIST_FOREACH (model_instances(l->m), at)
        n += LIST_ENTRY(at, struct instance, in_all)->row.state == state;
    return n;
}

static void repeat_disk_full(struct lab *l, int64_t except)
{
    LIST_FOREACH (model_nodes(l->m), at) {
        struct event full = {.type = EV_DISK, .disk.full = "full"};
        full.disk.node = LIST_ENTRY(at, struct node, in_all)->row.id;
        if (full.disk.node != except)
            lab_apply(l, full);
    }
}

/* The join proves nothing: otherwise the next machine would be launched at once, at the same
 * interval. */
static void no_other_is_launched_while_one_that_joined_is_on_trial(void **state)
{
    (void)state;
    for (int restarts = 0; restarts < 2; restarts++) {
        struct lab l;
        struct shelf s = {0};
        start(&l, 8);
        assert_int_equal(join_full(&l), 8);
        lab_wait(&l, MINUTES_MS(1));
        lab_heartbeats(&l);
        lab_plan(&l);
        int64_t id = wait_for_a_launch(&l), node = lab_bring_up(&l, id, 4);
        if (restarts) {
            restart(&l, &s);
            repeat_disk_full(&l, node);
        }
        lab_plan(&l);
        assert_int_equal(count_of(&l, INSTANCE_INTENDED), 0);
        assert_true(lab_has_reason(&l, 8, "boots-fail", "has joined, and no job has begun there"));
        lab_apply(&l, (struct event){.type = EV_DISK, .disk = {.node = node, .full = "full"}});
        assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(2));
        lab_deinit(&l);
        shelf_deinit(&s);
    }
}

static void one_that_goes_before_its_trial_is_over_makes_way(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 8);
    assert_int_equal(join_full(&l), 8);
    lab_wait(&l, MINUTES_MS(1));
    lab_heartbeats(&l);
    lab_plan(&l);
    int64_t id = wait_for_a_launch(&l);
    lab_bring_up(&l, id, 4);
    lab_plan(&l);
    lab_apply(
        &l, (struct event){.type = EV_INSTANCE_GONE, .gone = {id, true, WALL_NONE, "reclaimed"}});
    lab_plan(&l);
    assert_int_equal(count_of(&l, INSTANCE_INTENDED), 1);
    lab_deinit(&l);
}

/* The failure is reported again after a restart, when it is unknown which attempts have begun
 * there. */
static void a_machine_that_has_run_a_job_is_no_failure_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    for (int has_ended = 0; has_ended < 2; has_ended++) {
        struct shelf s = {0};
        start(&l, 1);
        int64_t node = lab_bring_up(&l, wait_for_a_launch(&l), 4);
        lab_plan(&l);
        lab_started(&l, 1);
        lab_wait(&l, 1000);
        if (has_ended)
            lab_ended(&l, 1, END_SUCCEEDED, 0);
        restart(&l, &s);
        lab_apply(&l, (struct event){.type = EV_DISK, .disk = {.node = node, .full = "full"}});
        assert_int_equal(boots(&l)->failed, 0);
        lab_deinit(&l);
        shelf_deinit(&s);
    }
}

static void a_full_machine_counts_once_and_one_that_begins_a_job_ends_it(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 1);
    for (int k = 1; k <= 2; k++) {
        assert_int_equal(join_full(&l), 1);
        assert_int_equal(boots(&l)->failed, k);
        int64_t node = LIST_ENTRY(list_last(model_nodes(l.m)), struct node, in_all)->row.id;
        struct event disk = {.type = EV_DISK, .disk.node = node};
        lab_apply(&l, disk);
        STR_COPY(disk.disk.full, "full again");
        lab_apply(&l, disk);
        assert_int_equal(boots(&l)->failed, k);
        lab_plan(&l);
    }
    int64_t id = LIST_ENTRY(list_last(model_instances(l.m)), struct instance, in_all)->row.id;
    int64_t node = lab_bring_up(&l, id, 4);
    assert_int_equal(boots(&l)->failed, 2);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), node);
    assert_int_equal(boots(&l)->failed, 2);
    lab_started(&l, 1);
    assert_int_equal(boots(&l)->failed, 0);
    struct event full = {.type = EV_DISK, .disk = {.node = node, .full = "by its job"}};
    lab_apply(&l, full);
    assert_int_equal(boots(&l)->failed, 0);
    lab_deinit(&l);
}

static void set_disk_full(struct lab *l, int64_t node, const char *full)
{
    struct event ev = {.type = EV_DISK, .disk.node = node};
    STR_COPY(ev.disk.full, full);
    lab_apply(l, ev);
}

static void machines_that_report_full_disks_out_of_order_count_once_each(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    int64_t nodes[3];
    start(&l, 3);
    for (int k = 0; k < 3; k++)
        nodes[k] = lab_bring_up(&l, k + 1, 4);
    set_disk_full(&l, nodes[1], "full");
    assert_int_equal(boots(&l)->failed, 1);
    set_disk_full(&l, nodes[2], "also full");
    assert_int_equal(boots(&l)->failed, 2);
    set_disk_full(&l, nodes[0], "full as well");
    assert_int_equal(boots(&l)->failed, 3);
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(1));
    assert_int_equal(boots(&l)->instance, 3);
    assert_non_null(strstr(boots(&l)->text, ": also full"));
    for (int k = 0; k < 3; k++) {
        set_disk_full(&l, nodes[k], "");
        set_disk_full(&l, nodes[k], "full again");
    }
    restart(&l, &s);
    repeat_disk_full(&l, CORE_ID_NONE);
    assert_int_equal(boots(&l)->failed, 3);
    lab_deinit(&l);
    shelf_deinit(&s);
}

/* As if the agent of the old machine were restarted. */
static void what_counted_before_a_machine_worked_does_not_count_again(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 1);
    int64_t old = lab_bring_up(&l, wait_for_a_launch(&l), 4);
    set_disk_full(&l, old, "full");
    lab_plan(&l);
    lab_bring_up(&l, wait_for_a_launch(&l), 4);
    lab_plan(&l);
    assert_int_equal(boots(&l)->failed, 1);
    lab_started(&l, 1);
    assert_int_equal(boots(&l)->failed, 0);
    set_disk_full(&l, old, "");
    set_disk_full(&l, old, "full");
    assert_int_equal(boots(&l)->failed, 0);
    lab_deinit(&l);
}

/* The job's own files had no space: the disk became full later. */
static void an_attempt_that_never_began_proves_nothing_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    start(&l, 1);
    int64_t node = lab_bring_up(&l, wait_for_a_launch(&l), 4);
    lab_plan(&l);
    lab_wait(&l, 1000);
    lab_ended(&l, 1, END_CAPACITY, 0);
    restart(&l, &s);
    set_disk_full(&l, node, "full");
    assert_int_equal(boots(&l)->failed, 1);
    lab_deinit(&l);
    shelf_deinit(&s);
}

static void a_job_that_begins_ends_the_trial_also_if_a_newer_machine_failed_since(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 5);
    for (int64_t id = 1; id <= BOOTS_FAILED_MAX; id++)
        set_disk_full(&l, lab_bring_up(&l, id, 4), "full");
    lab_launched(&l, 5);
    int64_t node = lab_bring_up(&l, 4, 4);
    lab_plan(&l);
    lab_apply(
        &l, (struct event){.type = EV_INSTANCE_GONE, .gone = {5, false, WALL_NONE, "powered off"}});
    assert_int_equal(boots(&l)->instance, 5);
    lab_wait(&l, MINUTES_MS(1));
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(count_of(&l, INSTANCE_INTENDED), 0);
    LIST_FOREACH (&model_node(l.m, node)->attempts, at)
        lab_started(&l, LIST_ENTRY(at, struct attempt, on_node)->row.job);
    assert_int_equal(boots(&l)->failed, 4); /* an older machine works */
    lab_plan(&l);
    assert_int_equal(count_of(&l, INSTANCE_INTENDED), 1);
    lab_deinit(&l);
}

static void a_boot_timeout_is_a_failure(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 3);
    for (int64_t id = 1; id <= 3; id++)
        lab_launched(&l, id);
    lab_wait(&l, LAB_BOOT_MS);
    lab_plan(&l);
    assert_int_equal(boots(&l)->failed, 3);
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(1));
    lab_deinit(&l);
}

static void a_machine_that_joins_ends_the_waiting_time(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 4);
    fail_all(&l);
    lab_wait(&l, MINUTES_MS(1));
    assert_int_equal(lab_plan(&l), 1);
    int64_t id = LIST_ENTRY(list_first(model_instances(l.m)), struct instance, in_all)->row.id;
    assert_true(lab_has_reason(&l, 2, "boots-fail", "is booting"));
    lab_bring_up(&l, id, 4);
    lab_take(&l);
    assert_non_null(lab_history(&l, "boots-again"));
    assert_int_equal(boots(&l)->failed, 0);
    assert_int_equal(boots(&l)->wait_ms, 0);
    int64_t before = launches(&l);
    lab_plan(&l);
    assert_int_equal(launches(&l) - before, 3); /* one for each waiting job */
    assert_false(lab_has_reason(&l, 4, "boots-fail", ""));
    lab_deinit(&l);
}

static void a_reclaim_while_it_boots_is_no_failure(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 4);
    for (int64_t id = 1; id <= 4; id++) {
        lab_launched(&l, id);
        lab_apply(&l,
            (struct event){.type = EV_INSTANCE_GONE, .gone = {id, true, WALL_NONE, "reclaimed"}});
    }
    assert_int_equal(boots(&l)->failed, 0);
    lab_deinit(&l);
}

static void another_pool_serves_meanwhile(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 3);
    lab_elastic(&l, "dear", 5, "m9", 4);
    fail_all(&l);
    lab_plan(&l);
    LIST_FOREACH (model_instances(l.m), at)
        assert_string_equal(LIST_ENTRY(at, struct instance, in_all)->row.pool, "dear");
    assert_int_equal(model_pool(l.m, "dear")->n_nodes, 3);
    lab_deinit(&l);
}

static void a_gang_causes_a_probe_too(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 0);
    struct job_row r = lab_job(4);
    r.spec.nodes = r.spec.nodes_min = 4;
    lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(fail_all(&l), 4);
    lab_wait(&l, MINUTES_MS(1));
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 1);
    int64_t id = LIST_ENTRY(list_first(model_instances(l.m)), struct instance, in_all)->row.id;
    lab_bring_up(&l, id, 4);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 4);
    lab_deinit(&l);
}

static void failures_and_waiting_time_survive_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    start(&l, 3);
    fail_all(&l);
    lab_wait(&l, 20000);
    restart(&l, &s);
    lab_plan(&l);
    assert_int_equal(boots(&l)->failed, 3);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 0);
    lab_wait(&l, 39999);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 0);
    lab_wait(&l, 1);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 1);
    lab_deinit(&l);
    shelf_deinit(&s);
}

static void reloading_the_pool_keeps_the_failures_and_an_operator_may_retry_at_once(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 3);
    fail_all(&l);
    lab_set_pool(&l, lab_pool(&l, "burst"));
    struct pool_row clean = lab_pool(&l, "burst");
    clean.boots = (struct pool_boots){0};
    lab_set_pool(&l, clean);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 0);
    struct event ev = {.type = EV_POOL_RETRY};
    STR_COPY(ev.pool_retry.pool, "burst");
    lab_apply(&l, ev);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 1);
    assert_int_equal(fail_all(&l), 1);
    assert_int_equal(boots(&l)->wait_ms, MINUTES_MS(2));
    lab_deinit(&l);
}

static void the_console_of_the_last_failed_machine_is_shown(void **state)
{
    (void)state;
    struct lab l;
    char text[4000] = "";
    start(&l, 3);
    int64_t last = 3;
    fail_all(&l);
    for (int k = 0; k < 200; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "line %d\n", k);
    struct event ev = {
        .type = EV_BOOT_CONSOLE, .boot_console = {.instance = last, .pool = "burst", .text = text}};
    lab_apply(&l, ev);
    assert_true(strlen(boots(&l)->console) < BOOT_CONSOLE_MAX);
    assert_true(str_starts(boots(&l)->console, "line "));
    assert_non_null(strstr(boots(&l)->console, "line 199\n"));
    assert_true(lab_has_reason(&l, 1, "boot-console", "line 199"));
    ev.boot_console.instance = last - 1; /* of an earlier one: ignored */
    ev.boot_console.text = "old\n";
    lab_apply(&l, ev);
    assert_null(strstr(boots(&l)->console, "old"));
    lab_deinit(&l);
}

static bool is_promised(const struct lab *l, int64_t job)
{
    struct forecast f;
    assert_true(core_forecast(l->m, l->now, job, &f));
    assert_true(wall_is_set(f.median) || f.why[0]);
    return wall_is_set(f.median);
}

static void no_start_is_promised_on_machines_that_do_not_boot(void **state)
{
    (void)state;
    struct lab l;
    start(&l, 3);
    assert_true(is_promised(&l, 1));
    fail_all(&l);
    assert_false(is_promised(&l, 1));
    lab_wait(&l, MINUTES_MS(1));
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 1);
    assert_false(is_promised(&l, 1)); /* not on the machine that tests the pool */
    lab_deinit(&l);
}

static void no_start_is_promised_where_launches_are_refused_each_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 20, "m5", 4);
    struct job_row r = lab_job(4);
    r.spec.market = WISH_SPOT;
    int64_t job = lab_submit(&l, &r);
    for (int k = 0; k < 3; k++) {
        lab_plan(&l);
        int64_t id = LIST_ENTRY(list_first(model_instances(l.m)), struct instance, in_all)->row.id;
        assert_true(is_promised(&l, job));
        lab_apply(
            &l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {id, true, "no capacity"}});
        lab_wait(&l, LAB_BACKOFF_MS << k);
    }
    assert_false(is_promised(&l, job));
    lab_plan(&l);
    assert_false(is_promised(&l, job)); /* a second time */
    lab_launched(&l, LIST_ENTRY(list_first(model_instances(l.m)), struct instance, in_all)->row.id);
    assert_true(is_promised(&l, job));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_start_is_promised_where_launches_are_refused_each_time),
        cmocka_unit_test(no_start_is_promised_on_machines_that_do_not_boot),
        cmocka_unit_test(launches_of_a_pool_that_does_not_boot_are_bounded),
        cmocka_unit_test(the_wait_grows_to_an_hour_and_no_longer),
        cmocka_unit_test(many_that_fail_together_are_one_failure_of_the_wait),
        cmocka_unit_test(machines_whose_disks_are_full_from_the_start_are_bounded),
        cmocka_unit_test(a_job_that_is_placed_before_the_disk_is_known_ends_nothing),
        cmocka_unit_test(no_other_is_launched_while_one_that_joined_is_on_trial),
        cmocka_unit_test(one_that_goes_before_its_trial_is_over_makes_way),
        cmocka_unit_test(a_machine_that_has_run_a_job_is_no_failure_after_a_restart),
        cmocka_unit_test(a_full_machine_counts_once_and_one_that_begins_a_job_ends_it),
        cmocka_unit_test(machines_that_report_full_disks_out_of_order_count_once_each),
        cmocka_unit_test(what_counted_before_a_machine_worked_does_not_count_again),
        cmocka_unit_test(an_attempt_that_never_began_proves_nothing_after_a_restart),
        cmocka_unit_test(a_job_that_begins_ends_the_trial_also_if_a_newer_machine_failed_since),
        cmocka_unit_test(a_boot_timeout_is_a_failure),
        cmocka_unit_test(a_machine_that_joins_ends_the_waiting_time),
        cmocka_unit_test(a_reclaim_while_it_boots_is_no_failure),
        cmocka_unit_test(another_pool_serves_meanwhile),
        cmocka_unit_test(a_gang_causes_a_probe_too),
        cmocka_unit_test(failures_and_waiting_time_survive_a_restart),
        cmocka_unit_test(reloading_the_pool_keeps_the_failures_and_an_operator_may_retry_at_once),
        cmocka_unit_test(the_console_of_the_last_failed_machine_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
