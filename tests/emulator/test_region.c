/* SPDX-License-Identifier: Apache-2.0
 *
 * The region in virtual time.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/control.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The machine's last process ends. */
static void gone(struct world *w, struct instance *i, bool is_power_off)
{
    region_machine_gone(&w->region, i, is_power_off, w->now, w->now);
}

static void an_instance_boots_after_the_boot_delay(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_launch(&w, "us-east-1a");
    assert_int_equal(region_next(&w.region).ms, START_MS + 1000);
    world_advance(&w, 999);
    assert_int_equal(i->state, INSTANCE_PENDING);
    world_advance(&w, 1);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    assert_int_equal(w.n_boots, 1);
    world_stop(&w);
}

static void a_machine_that_does_not_boot_ends_with_an_internal_error(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    w.boot_fails = true;
    struct instance *i = world_launch(&w, "us-east-1a");
    world_advance(&w, 1000);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    assert_string_equal(i->reason_code, "Server.InternalError");
    assert_int_equal(i->pool->in_use[CLOUD_SPOT], 0);
    world_stop(&w);
}

static void no_more_run_than_there_is_capacity_for(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    assert_non_null(world_launch(&w, "us-east-1a"));
    assert_non_null(world_launch(&w, "us-east-1a"));
    assert_null(world_launch(&w, "us-east-1a"));
    assert_non_null(world_launch(&w, "us-east-1b"));
    assert_int_equal(w.region.counts.refusals, 1);
    assert_int_equal(w.region.counts.launches, 3);
    world_stop(&w);
}

static void terminate_is_graceful_and_frees_the_place_at_once(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    region_terminate(&w.region, i, w.now);
    assert_int_equal(i->state, INSTANCE_SHUTTING_DOWN);
    assert_int_equal(w.n_shutdowns, 1);
    assert_false(w.was_at_once);
    assert_int_equal(i->pool->in_use[CLOUD_SPOT], 0);
    region_terminate(&w.region, i, w.now); /* a repeat is a no-op */
    assert_int_equal(w.n_shutdowns, 1);
    world_advance(&w, 500);
    gone(&w, i, false);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    assert_string_equal(i->reason_code, "Client.UserInitiatedShutdown");
    region_terminate(&w.region, i, w.now);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    world_stop(&w);
}

static void a_pending_instance_ends_without_ever_booting(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_launch(&w, "us-east-1a");
    region_terminate(&w.region, i, w.now);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    world_advance(&w, 5000);
    assert_int_equal(w.n_boots, 0);
    assert_int_equal(i->cost_uusd, 0);
    world_stop(&w);
}

static void a_reclaim_gives_its_notice_and_ends_at_the_second_it_names(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    world_advance(&w, 250);
    world_event(&w, "{\"reclaim\":{\"instance\":\"random\",\"notice_s\":2}}");
    assert_int_equal(i->deadline.ms, START_MS + 4000); /* 3.25 s, rounded up to a whole second */
    assert_int_equal(w.n_dooms, 1);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    assert_int_equal(region_next(&w.region).ms, i->deadline.ms);
    world_advance(&w, i->deadline.ms - w.now.ms);
    assert_int_equal(i->state, INSTANCE_SHUTTING_DOWN);
    assert_true(w.was_at_once);
    gone(&w, i, false);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    assert_string_equal(i->reason_code, "Server.SpotInstanceTermination");
    assert_int_equal(w.region.counts.reclaims, 1);
    world_stop(&w);
}

static void a_machine_killed_at_its_deadline_is_reclaimed_whoever_noticed_first(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    world_event(&w, "{\"reclaim\":{\"instance\":\"all\",\"notice_s\":2}}");
    w.now = i->deadline;
    /* before region_advance has seen the deadline */
    region_machine_gone(&w.region, i, false, w.now, w.now);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    assert_string_equal(i->reason_code, "Server.SpotInstanceTermination");
    assert_int_equal(w.region.counts.reclaims, 1);
    world_stop(&w);
}

static void a_machine_that_powers_off_under_notice_has_powered_off(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    world_event(&w, "{\"reclaim\":{\"instance\":\"all\"}}");
    world_advance(&w, 10000);
    gone(&w, i, true);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    assert_string_equal(i->reason_code, "Client.InstanceInitiatedShutdown");
    world_stop(&w);
}

static void without_notice_it_ends_at_once(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    world_event(
        &w, "{\"reclaim\":{\"zone\":\"us-east-1a\",\"without_notice\":true,\"notice_s\":null}}");
    assert_int_equal(i->state, INSTANCE_SHUTTING_DOWN);
    assert_true(w.was_at_once);
    assert_false(wall_is_set(i->deadline));
    gone(&w, i, false);
    world_stop(&w);
}

static void a_notice_during_boot_is_known_to_the_machine_when_it_boots(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_launch(&w, "us-east-1a");
    world_event(&w, "{\"reclaim\":{\"type\":\"" TYPE "\",\"notice_s\":5}}");
    assert_int_equal(w.n_dooms, 0);
    world_advance(&w, 1000);
    assert_int_equal(w.n_dooms, 1);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    world_stop(&w);
}

static void capacity_opens_with_the_notice(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    world_run(&w, "us-east-1a");
    world_run(&w, "us-east-1a");
    assert_null(world_launch(&w, "us-east-1a"));
    world_event(&w, "{\"reclaim\":{\"instance\":\"random\"}}");
    assert_non_null(world_launch(&w, "us-east-1a"));
    world_stop(&w);
}

static void a_capacity_that_shrinks_reclaims_the_newest(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *old = world_run(&w, "us-east-1a"), *young = world_run(&w, "us-east-1a");
    struct instance *other = world_run(&w, "us-east-1b");
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":1}}");
    assert_false(old->is_reclaimed);
    assert_true(young->is_reclaimed);
    assert_false(other->is_reclaimed);
    assert_int_equal(young->deadline.ms - w.now.ms, 120000);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":0}}");
    assert_true(old->is_reclaimed);
    world_stop(&w);
}

/* The number of the first victim of a random surplus policy with this seed. */
static int64_t random_victim(uint64_t seed)
{
    struct world w;
    int64_t victim = 0;
    world_init(&w);
    w.options.seed = seed;
    w.options.surplus = SURPLUS_RANDOM;
    world_start(&w);
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":20}}");
    for (int i = 0; i < 20; i++)
        world_run(&w, "us-east-1a");
    world_event(&w, "{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"n\":19}}");
    for (size_t i = 0; i < w.region.n_instances; i++)
        if (w.region.instances[i]->is_reclaimed)
            victim = w.region.instances[i]->number;
    world_stop(&w);
    return victim;
}

static void random_victims_follow_the_seed(void **state)
{
    bool differs = false;
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        assert_int_equal(random_victim(seed), random_victim(seed));
        differs = differs || random_victim(seed) != random_victim(1);
    }
    assert_true(differs);
}

static void a_rebalance_comes_to_nothing(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    world_event(&w, "{\"rebalance\":{\"instance\":\"random\"}}");
    assert_int_equal(i->rebalance_at.ms, w.now.ms);
    world_advance(&w, 3600000);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    world_stop(&w);
}

static void costs_follow_the_price_in_force(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w); /* $0.36 an hour = 100 micro-dollars a second */
    struct instance *i = world_run(&w, "us-east-1a");
    world_advance(&w, 10000);
    world_event(&w,
        "{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"usd_per_hour\":\"0.72\"}}");
    world_advance(&w, 10500);
    region_terminate(&w.region, i, w.now);
    world_advance(&w, 60000);
    gone(&w, i, false);
    /* neither booting nor shutting down is charged */
    assert_int_equal(i->cost_uusd, 10 * 100 + 2100);
    world_stop(&w);
}

static void many_small_bills_lose_no_micro_dollar(void **state)
{
    struct world w;
    (void)state;
    world_begin(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    for (int k = 0; k < 3600; k++)
        world_advance(&w, 7);
    assert_int_equal(i->cost_uusd, 3600 * 7 / 10);
    world_stop(&w);
}

static void a_price_above_the_maximum_reclaims(void **state)
{
    struct world w;
    struct launch_spec spec = {
        .market = CLOUD_SPOT, .type = TYPE, .zone = "us-east-1a", .max_price_uusd_h = 500000};
    struct reservation *v;
    (void)state;
    world_begin(&w);
    assert_int_equal(region_launch(&w.region, &spec, "", "", 1, 1, w.now, &v, NULL), 0);
    world_advance(&w, 2000);
    world_event(
        &w, "{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE "\",\"usd_per_hour\":\"0.5\"}}");
    assert_false(v->instances[0]->is_reclaimed);
    world_event(&w, "{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"" TYPE
                    "\",\"usd_per_hour\":\"0.500001\"}}");
    assert_true(v->instances[0]->is_reclaimed);
    assert_true(v->instances[0]->is_by_price);
    world_stop(&w);
}

/* Launches on-demand and lets the machine power off. Returns the state after it. */
static int power_off(bool to_stop)
{
    struct world w;
    struct launch_spec spec = {.market = CLOUD_ON_DEMAND,
        .type = TYPE,
        .zone = "us-east-1a",
        .powers_off_to_stop = to_stop};
    struct reservation *v;
    world_begin(&w);
    assert_int_equal(region_launch(&w.region, &spec, "", "", 1, 1, w.now, &v, NULL), 0);
    world_advance(&w, 3000);
    struct instance *i = v->instances[0];
    gone(&w, i, true);
    int state = i->state;
    assert_string_equal(i->reason_code, "Client.InstanceInitiatedShutdown");
    assert_int_equal(i->cost_uusd, 2 * 200);
    region_terminate(&w.region, i, w.now);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    world_stop(&w);
    return state;
}

static void a_power_off_stops_or_terminates_as_was_asked(void **state)
{
    (void)state;
    assert_int_equal(power_off(true), INSTANCE_STOPPED);
    assert_int_equal(power_off(false), INSTANCE_TERMINATED);
}

static void scripted_events_happen_in_order_and_on_time(void **state)
{
    struct world w;
    struct region_script script[] = {
        {.at_ms = 3000,
            .event = {.kind = EVENT_CAPACITY, .zone = "us-east-1a", .type = TYPE, .n = 0}},
        {.at_ms = 4000,
            .event = {.kind = EVENT_CAPACITY, .zone = "us-east-1a", .type = TYPE, .n = 5}},
    };
    (void)state;
    world_init(&w);
    w.options.script = script;
    w.options.n_script = 2;
    world_start(&w);
    struct instance *i = world_run(&w, "us-east-1a");
    assert_int_equal(region_next(&w.region).ms, START_MS + 3000);
    world_advance(&w, 100000); /* in one step: still both, each at its time */
    assert_int_equal(i->noticed_at.ms, START_MS + 3000);
    assert_int_equal(i->pool->capacity[CLOUD_SPOT], 5);
    world_stop(&w);
}

static void events_reach_only_those_they_mean(void **state)
{
    struct world w;
    struct err e;
    json_t *reply = NULL;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ONE, .instance = "i-nope"};
    (void)state;
    world_begin(&w);
    struct instance *a = world_run(&w, "us-east-1a"), *b = world_run(&w, "us-east-1b");
    assert_int_equal(region_apply(&w.region, &ev, w.now, &reply, &e), ERR_NOT_FOUND);
    STR_COPY(ev.instance, b->id);
    assert_int_equal(region_apply(&w.region, &ev, w.now, &reply, &e), 0);
    assert_false(a->is_reclaimed);
    assert_true(b->is_reclaimed);
    json_decref(reply);
    int64_t notices = w.region.counts.notices;
    world_event(&w, "{\"reclaim\":{\"zone\":\"us-east-1b\"}}"); /* already has its notice */
    assert_int_equal(w.region.counts.notices, notices);
    world_stop(&w);
}

static void ids_do_not_depend_on_how_often_was_asked(void **state)
{
    struct world a, b;
    (void)state;
    world_begin(&a);
    world_begin(&b);
    world_expect(&b, "Action=DescribeInstances", 200, "reservationSet");
    assert_string_equal(world_launch(&a, "us-east-1a")->id, world_launch(&b, "us-east-1a")->id);
    world_stop(&a);
    world_stop(&b);
}

/* The machines of two providers with the same seed are in one directory. Azure draws numbers for
 * other ids between those of its instances. */
static void ids_of_two_providers_differ(void **state)
{
    struct region_options aws = {.seed = 1}, azure = {.provider = "azure", .seed = 1};
    struct region a, b;
    struct journal journal = {0};
    uint64_t ids[100];
    (void)state;
    region_init(&a, &aws, &journal, NULL, 0, NULL, NULL, (struct wall){0});
    region_init(&b, &azure, &journal, NULL, 0, NULL, NULL, (struct wall){0});
    for (size_t i = 0; i < 100; i++)
        ids[i] = prng_u64(&a.ids);
    for (size_t k = 0; k < 100; k++) {
        uint64_t other = prng_u64(&b.ids);
        for (size_t i = 0; i < 100; i++)
            assert_int_not_equal(ids[i], other);
    }
    region_deinit(&a);
    region_deinit(&b);
}

static void the_journal_tells_the_story_and_the_state_the_sums(void **state)
{
    struct world w;
    json_t *reply = NULL;
    struct err e = {0};
    (void)state;
    world_begin(&w);
    world_run(&w, "us-east-1a");
    static const char two[] =
        "[{\"reclaim\":{\"instance\":\"all\",\"notice_s\":1}},{\"clear\":{}}]";
    assert_int_equal(control_events(w.regions, 1, two, strlen(two), w.now, &reply, &e), 0);
    assert_int_equal(json_array_size(json_object_get(reply, "results")), 2);
    json_decref(reply);
    static const char *const story[] = {"launch", "running", "notice"};
    json_t *events = journal_after(&w.journal, 0, 100);
    assert_int_equal(json_array_size(events), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(events, i), "what")), story[i]);
    json_decref(events);
    events = journal_after(&w.journal, 2, 100);
    assert_int_equal(json_array_size(events), 1);
    json_decref(events);
    json_t *sums = control_state(w.regions, 1, w.now);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(sums, "counts"), "notices")), 1);
    assert_int_equal(json_array_size(json_object_get(sums, "pools")), 3);
    assert_int_equal(json_integer_value(json_object_get(sums, "alive")), 1);
    json_decref(sums);
    world_stop(&w);
}

static void events_find_their_provider(void **state)
{
    struct world a, b;
    json_t *reply = NULL;
    struct err e = {0};
    char text[200];
    (void)state;
    world_begin(&a);
    world_init(&b);
    b.options.provider = "gcp";
    world_start(&b);
    const struct instance *i = world_run(&a, "us-east-1a"), *j = world_run(&b, "us-east-1a");
    struct region *const both[] = {&a.region, &b.region};
    static const char all[] = "{\"reclaim\":{\"instance\":\"all\",\"provider\":\"gcp\"}}",
                      unsaid[] = "{\"reclaim\":{\"instance\":\"all\"}}",
                      unknown[] = "{\"clear\":{\"provider\":\"azure\"}}";
    assert_true(control_events(both, 2, unsaid, strlen(unsaid), a.now, &reply, &e) < 0);
    assert_non_null(strstr(e.text, "provider"));
    assert_true(control_events(both, 2, unknown, strlen(unknown), a.now, &reply, &e) < 0);
    assert_non_null(strstr(e.text, "azure"));
    assert_int_equal(control_events(both, 2, all, strlen(all), a.now, &reply, &e), 0);
    json_decref(reply);
    assert_true(j->is_reclaimed && !i->is_reclaimed);
    /* the first instance with it */
    snprintf(text, sizeof(text), "{\"reclaim\":{\"instance\":\"%s\"}}", i->id);
    assert_int_equal(control_events(both, 2, text, strlen(text), a.now, &reply, &e), 0);
    json_decref(reply);
    assert_true(i->is_reclaimed);
    json_t *sums = control_state(both, 2, a.now);
    assert_int_equal(json_integer_value(json_object_get(sums, "alive")), 2);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(sums, "counts"), "notices")), 2);
    assert_int_equal(json_object_size(json_object_get(sums, "providers")), 2);
    json_decref(sums);
    world_stop(&a);
    world_stop(&b);
}

static void bad_events_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", ""},
        {"{}", "one key"},
        {"{\"reclam\":{}}", "did you mean \"reclaim\""},
        {"{\"reclaim\":{}}", "instance"},
        {"{\"reclaim\":{\"instance\":\"random\",\"notice_s\":-1}}", "notice_s"},
        {"{\"reclaim\":{\"instance\":\"random\",\"notice_s\":1,\"without_notice\":true}}",
            "without_notice"},
        {"{\"reclaim\":{\"instance\":\"random\",\"notise_s\":1}}", "notise_s"},
        {"{\"capacity\":{\"zone\":\"us-east-1a\",\"type\":\"t\"}}", "n"},
        {"{\"capacity\":{\"zone\":\"us-east-1q\",\"type\":\"t\",\"n\":1}}", "no pool"},
        {"{\"price\":{\"zone\":\"us-east-1a\",\"type\":\"t\",\"usd_per_hour\":\"x\"}}",
            "usd_per_hour"},
        {"{\"throttle\":{}}", "action"},
        {"{\"refuse\":{\"action\":\"RunInstances\"}}", "code"},
        {"{\"slow\":{\"action\":\"RunInstances\",\"ms\":0}}", "ms"},
        {"{\"drop_reply\":{\"action\":\"RunInstances\",\"how\":\"loudly\"}}", "how"},
        {"[{\"clear\":{}},{\"price\":3}]", "event 2"},
    };
    struct world w;
    (void)state;
    world_begin(&w);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *reply = NULL;
        struct err e = {0};
        assert_true(
            control_events(w.regions, 1, bad[i].text, strlen(bad[i].text), w.now, &reply, &e) < 0);
        if (!strstr(e.text, bad[i].expected))
            fail_msg("%s: expected %s in: %s", bad[i].text, bad[i].expected, e.text);
    }
    world_stop(&w);
}

static void faults_happen_as_often_as_they_were_asked_for(void **state)
{
    struct world w;
    struct fault f;
    (void)state;
    world_begin(&w);
    struct faults *faults = &w.region.faults;
    world_event(&w, "{\"throttle\":{\"action\":\"RunInstances\",\"count\":2}}");
    world_event(&w, "{\"refuse\":{\"action\":\"*\",\"code\":\"Unavailable\"}}");
    assert_false(faults_take(faults, FAULT_THROTTLE, "DescribeInstances", &f));
    assert_true(faults_take(faults, FAULT_THROTTLE, "RunInstances", &f));
    assert_true(faults_take(faults, FAULT_THROTTLE, "RunInstances", &f));
    assert_false(faults_take(faults, FAULT_THROTTLE, "RunInstances", &f));
    assert_false(faults_take(faults, FAULT_REFUSE, FAULT_ACTION_METADATA, &f));
    assert_true(faults_take(faults, FAULT_REFUSE, "TerminateInstances", &f));
    assert_string_equal(f.code, "Unavailable");
    world_event(&w, "{\"slow\":{\"action\":\"metadata\",\"ms\":10,\"count\":1000}}");
    world_event(&w, "{\"clear\":{}}");
    assert_false(faults_take(faults, FAULT_SLOW, FAULT_ACTION_METADATA, &f));
    world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_boots_after_the_boot_delay),
        cmocka_unit_test(a_machine_that_does_not_boot_ends_with_an_internal_error),
        cmocka_unit_test(no_more_run_than_there_is_capacity_for),
        cmocka_unit_test(terminate_is_graceful_and_frees_the_place_at_once),
        cmocka_unit_test(a_pending_instance_ends_without_ever_booting),
        cmocka_unit_test(a_reclaim_gives_its_notice_and_ends_at_the_second_it_names),
        cmocka_unit_test(a_machine_killed_at_its_deadline_is_reclaimed_whoever_noticed_first),
        cmocka_unit_test(a_machine_that_powers_off_under_notice_has_powered_off),
        cmocka_unit_test(without_notice_it_ends_at_once),
        cmocka_unit_test(a_notice_during_boot_is_known_to_the_machine_when_it_boots),
        cmocka_unit_test(capacity_opens_with_the_notice),
        cmocka_unit_test(a_capacity_that_shrinks_reclaims_the_newest),
        cmocka_unit_test(random_victims_follow_the_seed),
        cmocka_unit_test(a_rebalance_comes_to_nothing),
        cmocka_unit_test(costs_follow_the_price_in_force),
        cmocka_unit_test(many_small_bills_lose_no_micro_dollar),
        cmocka_unit_test(a_price_above_the_maximum_reclaims),
        cmocka_unit_test(a_power_off_stops_or_terminates_as_was_asked),
        cmocka_unit_test(scripted_events_happen_in_order_and_on_time),
        cmocka_unit_test(events_reach_only_those_they_mean),
        cmocka_unit_test(ids_do_not_depend_on_how_often_was_asked),
        cmocka_unit_test(ids_of_two_providers_differ),
        cmocka_unit_test(the_journal_tells_the_story_and_the_state_the_sums),
        cmocka_unit_test(events_find_their_provider),
        cmocka_unit_test(bad_events_are_refused_with_the_reason),
        cmocka_unit_test(faults_happen_as_often_as_they_were_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
