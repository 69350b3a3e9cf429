/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/market.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/emulator/world.h"
#include <stdio.h>
#include <string.h>

static const char small_trace[] =
    "{\"metadata\":{\"gap_seconds\":10},\"data\":[1,1,3,0],\"prices\":[0.5,0.5,0.5,0.75]}";

static struct trace parse(const char *text)
{
    struct trace t = {0};
    struct err e = {0};
    if (trace_parse(text, strlen(text), &t, &e) < 0)
        fail_msg("%s", e.text);
    return t;
}

/* One pool that follows small_trace. */
static void follow_small(struct market *m, int64_t speed, int64_t offset, int64_t scale)
{
    struct market_pool *p = mem_alloc(sizeof(*p));
    *p = world_pool("z", "t", MARKET_UNLIMITED, 1);
    p->follow = (struct market_follow){
        .trace = parse(small_trace), .speed = speed, .offset = offset, .scale = scale};
    market_init(m, p, 1, (struct wall){START_MS});
}

static int64_t spot_at(struct market *m, int64_t ms)
{
    market_advance(m, (struct wall){START_MS + ms});
    return m->pools[0].capacity[CLOUD_SPOT];
}

static void a_trace_moves_the_capacity_at_its_ticks_to_the_millisecond(void **state)
{
    struct market m;
    (void)state;
    follow_small(&m, 1, 0, 1);
    assert_int_equal(spot_at(&m, 0), 1);
    assert_int_equal(spot_at(&m, 19999), 1);
    assert_int_equal(spot_at(&m, 20000), 3);
    assert_int_equal(spot_at(&m, 30000), 0);
    assert_int_equal(m.pools[0].price_uusd_h[CLOUD_SPOT], 750000);
    assert_int_equal(spot_at(&m, 40000), 1); /* repeats */
    market_deinit(&m);
}

static void speed_offset_and_scale_apply(void **state)
{
    struct market m;
    (void)state;
    follow_small(&m, 3, 1, 4); /* a tick lasts 3333.3 ms */
    assert_int_equal(spot_at(&m, 0), 4);
    assert_int_equal(spot_at(&m, 3333), 4);
    assert_int_equal(spot_at(&m, 3334), 12);
    assert_int_equal(spot_at(&m, 6667), 0);
    market_deinit(&m);
}

static void next_is_when_something_changes_and_not_before(void **state)
{
    struct market m;
    (void)state;
    follow_small(&m, 1, 0, 1);
    /* the tick at 10 s has the same value */
    assert_int_equal(market_next(&m).ms, START_MS + 20000);
    spot_at(&m, 20000);
    assert_int_equal(market_next(&m).ms, START_MS + 30000);
    market_deinit(&m);
}

static void a_constant_trace_never_changes(void **state)
{
    struct market m;
    struct market_pool *p = mem_alloc(sizeof(*p));
    (void)state;
    *p = world_pool("z", "t", 0, 0);
    p->follow = (struct market_follow){
        .trace = parse("{\"metadata\":{\"gap_seconds\":0.5},\"data\":[2,2,2]}"),
        .speed = 1,
        .scale = 1};
    market_init(&m, p, 1, (struct wall){START_MS});
    assert_false(wall_is_set(market_next(&m)));
    assert_int_equal(spot_at(&m, 1000000), 2);
    market_deinit(&m);
}

static void a_capacity_that_was_set_stays_until_released(void **state)
{
    struct market m;
    (void)state;
    follow_small(&m, 1, 0, 1);
    market_set_capacity(&m.pools[0], CLOUD_SPOT, 9);
    assert_int_equal(spot_at(&m, 20000), 9);
    market_release_capacity(&m, &m.pools[0], (struct wall){START_MS + 21000});
    assert_int_equal(m.pools[0].capacity[CLOUD_SPOT], 3);
    market_deinit(&m);
}

static void price_changes_are_kept_and_repeats_are_not(void **state)
{
    struct market m;
    (void)state;
    follow_small(&m, 1, 0, 1);
    struct market_pool *p = &m.pools[0];
    for (int64_t t = 0; t <= 70000; t += 5000)
        spot_at(&m, t);
    /* 0.5 from the start, 0.75 at 30 s, 0.5 again at 40 s, 0.75 at 70 s */
    assert_int_equal(p->n_history, 4);
    assert_int_equal(p->history[1].since.ms, START_MS + 30000);
    assert_int_equal(p->history[1].uusd_h, 750000);
    for (int i = 0; i < 3 * MARKET_HISTORY_MAX; i++)
        market_set_price(p, CLOUD_SPOT, 1000 + i, (struct wall){START_MS + 80000 + i});
    assert_true(p->n_history <= MARKET_HISTORY_MAX);
    assert_int_equal(p->history[p->n_history - 1].uusd_h, 1000 + 3 * MARKET_HISTORY_MAX - 1);
    market_deinit(&m);
}

static void free_capacity_and_surplus_follow_use(void **state)
{
    struct market_pool p = world_pool("z", "t", 2, MARKET_UNLIMITED);
    (void)state;
    p.in_use[CLOUD_SPOT] = 3;
    assert_int_equal(market_unused(&p, CLOUD_SPOT), 0);
    assert_int_equal(market_surplus(&p, CLOUD_SPOT), 1);
    p.in_use[CLOUD_SPOT] = 1;
    assert_int_equal(market_unused(&p, CLOUD_SPOT), 1);
    assert_int_equal(market_surplus(&p, CLOUD_SPOT), 0);
    assert_true(market_unused(&p, CLOUD_ON_DEMAND) > 1000000);
}

static void without_a_zone_the_first_pool_with_capacity_is_found(void **state)
{
    struct market m;
    struct market_pool *pools = mem_array(2, sizeof(*pools));
    (void)state;
    pools[0] = world_pool("a", "t", 0, 1);
    pools[1] = world_pool("b", "t", 1, 1);
    market_init(&m, pools, 2, (struct wall){START_MS});
    assert_string_equal(market_find(&m, NULL, "t", CLOUD_SPOT)->zone, "b");
    assert_string_equal(market_find(&m, NULL, "t", CLOUD_ON_DEMAND)->zone, "a");
    assert_string_equal(market_find(&m, "a", "t", CLOUD_SPOT)->zone, "a");
    assert_null(market_find(&m, "a", "u", CLOUD_SPOT));
    assert_true(market_has_zone(&m, "b"));
    assert_false(market_has_zone(&m, "c"));
    market_deinit(&m);
}

static void malformed_traces_are_refused_with_the_place(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"", ""},
        {"[]", "gap_seconds"},
        {"{\"metadata\":{\"gap_seconds\":0},\"data\":[1]}", "gap_seconds"},
        {"{\"metadata\":{\"gap_seconds\":\"5\"},\"data\":[1]}", "gap_seconds"},
        {"{\"metadata\":{\"gap_seconds\":5}}", "data"},
        {"{\"metadata\":{\"gap_seconds\":5},\"data\":[]}", "data"},
        {"{\"metadata\":{\"gap_seconds\":5},\"data\":[1,-1]}", "data[1]"},
        {"{\"metadata\":{\"gap_seconds\":5},\"data\":[1.5]}", "data[0]"},
        {"{\"metadata\":{\"gap_seconds\":5},\"data\":[1,2],\"prices\":[1]}", "prices"},
        {"{\"metadata\":{\"gap_seconds\":5},\"data\":[1],\"prices\":[-1]}", "prices[0]"},
        {"<html>404</html>", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct trace t;
        struct err e = {0};
        assert_int_equal(trace_parse(bad[i].text, strlen(bad[i].text), &t, &e), ERR_INVALID);
        if (!strstr(e.text, bad[i].expected))
            fail_msg("%s: expected %s in: %s", bad[i].text, bad[i].expected, e.text);
    }
}

#define REAL_TRACE "../shared/traces/preemption/1-node/aws-04-19-2023/us-east-1b_intel_64.json"

static void a_recorded_trace_is_read_whole(void **state)
{
    struct trace t;
    struct err e = {0};
    char path[4096];
    (void)state;
    snprintf(path, sizeof(path), "%s/" REAL_TRACE, SOURCE_ROOT);
    if (!fs_exists(path)) {
        print_message("SKIP: no recorded traces beside the project\n");
        return;
    }
    if (trace_load(path, &t, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(t.gap_ms, 34000);
    assert_int_equal(t.n, 16090);
    assert_int_equal(t.counts[1], 1);
    assert_int_equal(t.prices_uusd_h[0], 1275400);
    trace_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_moves_the_capacity_at_its_ticks_to_the_millisecond),
        cmocka_unit_test(speed_offset_and_scale_apply),
        cmocka_unit_test(next_is_when_something_changes_and_not_before),
        cmocka_unit_test(a_constant_trace_never_changes),
        cmocka_unit_test(a_capacity_that_was_set_stays_until_released),
        cmocka_unit_test(price_changes_are_kept_and_repeats_are_not),
        cmocka_unit_test(free_capacity_and_surplus_follow_use),
        cmocka_unit_test(without_a_zone_the_first_pool_with_capacity_is_found),
        cmocka_unit_test(malformed_traces_are_refused_with_the_place),
        cmocka_unit_test(a_recorded_trace_is_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
