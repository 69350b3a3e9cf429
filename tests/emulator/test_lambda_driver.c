/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulated Lambda Cloud with this project's own driver, in virtual time: its requests are
 * accepted and never too early, one token makes one machine whatever happens to replies, and each
 * refusal is understood.
 */
#include "base/str.h"
#include "cloud/lambda/lambda.h"
#include "tests/emulator/lambda_bench.h"
#include <stdlib.h>
#include <string.h>

#define LAUNCHES_MAX 3
#define TRIES_MAX 40
#define FULL "instance-operations/launch/insufficient-capacity"

struct got {
    int n; /* completions */
    struct err e;
    struct cloud_instance instance;
    size_t n_listed;
    int64_t uusd_h;
};

struct rig {
    struct lambda_bench b;
    struct cloud_driver *driver;
    struct got got;
};

static int setup(void **state)
{
    static struct rig g;
    struct err e;
    g = (struct rig){0};
    bench_start(&g.b);
    setenv("LAMBDA_API_KEY", "first", 1);
    const struct lambda_options o = {
        .machine = {.ssh_key = "ops", .image_family = "stack", .file_system = "data"},
        .endpoint_url = BENCH_ENDPOINT,
        .http = &g.b.http,
        .timers = &g.b.vt.timers};
    if (lambda_driver_create(&o, &g.driver, &e) < 0)
        fail_msg("%s", e.text);
    *state = &g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    g->driver->ops->destroy(g->driver);
    bench_stop(&g->b);
    return 0;
}

/* ---- Calls ---- */

static void keep(struct got *got, const struct err *e)
{
    got->n++;
    got->e = e ? *e : (struct err){0};
}

static void on_launched(void *ctx, const struct err *e, const struct cloud_instance *i)
{
    struct got *got = ctx;
    keep(got, e);
    if (i)
        got->instance = *i;
}

static void on_listed(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct got *got = ctx;
    keep(got, e);
    got->n_listed = n;
    if (n > 0)
        got->instance = list[0];
}

static void on_done(void *ctx, const struct err *e)
{
    keep(ctx, e);
}

static void on_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n)
{
    struct got *got = ctx;
    keep(got, e);
    got->n_listed = n;
    got->uusd_h = n > 0 ? list[0].uusd_h : 0;
}

static void start_launch(struct rig *g, const char *token, struct got *got)
{
    const struct cloud_launch l = {.token = token,
        .region = "us-west-2",
        .zone = "us-west-2",
        .type = "gpu_1x_a10",
        .market = CLOUD_ON_DEMAND,
        .user_data = "#!/bin/sh\nexec belay-agent\n",
        .cluster = "lab"};
    *got = (struct got){0};
    g->driver->ops->launch(g->driver, &l, on_launched, got);
}

static void wait_for(struct rig *g, const struct got *got)
{
    while (got->n == 0 && vtimers_run_next(&g->b.vt))
        ;
    assert_int_equal(got->n, 1);
}

static enum err_kind launch(struct rig *g, const char *token)
{
    start_launch(g, token, &g->got);
    wait_for(g, &g->got);
    return g->got.e.kind;
}

static void list(struct rig *g)
{
    g->got = (struct got){0};
    g->driver->ops->list(g->driver, "us-west-2", "lab", on_listed, &g->got);
    wait_for(g, &g->got);
    assert_int_equal(g->got.e.kind, ERR_NONE);
}

static enum err_kind terminate(struct rig *g, const char *id)
{
    g->got = (struct got){0};
    g->driver->ops->terminate(g->driver, "us-west-2", &id, 1, on_done, &g->got);
    wait_for(g, &g->got);
    return g->got.e.kind;
}

/* ---- Behaviour ---- */

static void its_launch_is_listed_and_ends(void **state)
{
    struct rig *g = *state;
    assert_int_equal(launch(g, "belay-lab-1"), ERR_NONE);
    const struct instance *i = g->b.region.instances[0];
    assert_string_equal(g->got.instance.id, i->id);
    assert_string_equal(buf_str(&i->reservation->spec.user_data), "#!/bin/sh\nexec belay-agent\n");
    list(g);
    assert_int_equal(g->got.n_listed, 1);
    assert_string_equal(g->got.instance.token, "belay-lab-1");
    assert_string_equal(g->got.instance.cluster, "lab");
    assert_int_equal(g->got.instance.state, CLOUD_RUNNING);
    assert_int_equal(terminate(g, i->id), ERR_NONE);
    list(g);
    assert_int_equal(g->got.instance.state, CLOUD_GONE);
    assert_false(g->got.instance.reclaimed);
    bench_advance(&g->b, LAMBDA_CLOUD_ENDED_SHOWN_MS);
    list(g);
    assert_int_equal(g->got.n_listed, 0);
    assert_int_equal(terminate(g, i->id), ERR_NOT_FOUND);
}

static void one_that_is_taken_back_is_seen_as_that(void **state)
{
    struct rig *g = *state;
    assert_int_equal(launch(g, "belay-lab-1"), ERR_NONE);
    bench_advance(&g->b, BENCH_BOOT_MS);
    char event[128];
    snprintf(event, sizeof(event), "{\"reclaim\":{\"instance\":\"%s\"}}", g->got.instance.id);
    bench_event(&g->b, event);
    bench_advance(&g->b, 1000);
    list(g);
    assert_int_equal(g->got.instance.state, CLOUD_GONE);
    assert_true(g->got.instance.reclaimed);
}

static void its_requests_come_no_earlier_than_they_may(void **state)
{
    struct rig *g = *state;
    static const char *const tokens[LAUNCHES_MAX] = {"belay-lab-1", "belay-lab-2", "belay-lab-3"};
    static struct got got[LAUNCHES_MAX]; /* the third would have to wait too long */
    static struct got listings[20];
    for (size_t k = 0; k < LAUNCHES_MAX; k++)
        start_launch(g, tokens[k], &got[k]);
    memset(listings, 0, sizeof(listings));
    for (size_t k = 0; k < sizeof(listings) / sizeof(listings[0]); k++) {
        g->driver->ops->list(g->driver, "us-west-2", "lab", on_listed, &listings[k]);
        bench_advance(&g->b, 700);
    }
    bench_advance(&g->b, 60000);
    for (size_t k = 0; k < LAUNCHES_MAX; k++)
        assert_int_equal(got[k].n, 1);
    assert_int_equal(got[0].e.kind, ERR_NONE);
    assert_int_equal(got[1].e.kind, ERR_NONE);
    assert_int_equal(g->b.n_throttled, 0);
    assert_true(g->b.n_calls > 10);
}

static void one_token_is_one_machine_whatever_becomes_of_the_reply(void **state)
{
    static const char *const drops[] = {"close", "garbage", "error"};
    struct rig *g = *state;
    char event[128], token[32];
    /* and it is not listed for a long time */
    g->b.config.providers[0].region.consistency_delay_ms = 15000;
    for (size_t k = 0; k < sizeof(drops) / sizeof(drops[0]); k++) {
        int tries = 0;
        snprintf(event, sizeof(event),
            "{\"drop_reply\":{\"action\":\"launchInstance\",\"how\":\"%s\"}}", drops[k]);
        snprintf(token, sizeof(token), "belay-lab-%zu", k);
        bench_event(&g->b, event);
        while (launch(g, token) != ERR_NONE && tries++ < TRIES_MAX)
            bench_advance(&g->b, 500);
        assert_int_equal(g->got.e.kind, ERR_NONE);
        assert_true(tries > 0);
        assert_int_equal(g->b.region.n_instances, k + 1);
        assert_string_equal(g->got.instance.id, g->b.region.instances[k]->id);
        assert_string_equal(g->got.instance.token, token);
        assert_int_equal(terminate(g, g->b.region.instances[k]->id), ERR_NONE);
    }
    assert_int_equal(g->b.n_throttled, 0);
}

static void its_refusals_are_understood(void **state)
{
    static const struct {
        const char *code;
        enum err_kind kind;
    } cases[] = {
        {FULL, ERR_NO_CAPACITY},
        {"global/quota-exceeded", ERR_QUOTA},
        {"global/invalid-api-key", ERR_DENIED},
        {"global/account-inactive", ERR_DENIED},
        {"global/invalid-address", ERR_DENIED},
        {"global/forbidden", ERR_DENIED},
        {"global/invalid-parameters", ERR_CONFIG},
        {"global/object-does-not-exist", ERR_CONFIG},
        {"instance-operations/launch/file-system-in-wrong-region", ERR_CONFIG},
        {"1015", ERR_THROTTLED},
    };
    struct rig *g = *state;
    char event[256];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        snprintf(event, sizeof(event),
            "{\"refuse\":{\"action\":\"launchInstance\",\"code\":\"%s\"}}", cases[k].code);
        bench_event(&g->b, event);
        if (launch(g, "belay-lab-1") != cases[k].kind)
            fail_msg("%s: %s", cases[k].code, g->got.e.text);
    }
    assert_int_equal(g->b.region.n_instances, 0);
}

static void a_refusal_that_says_nothing_definite_is_not_believed(void **state)
{
    static const char *const codes[] = {"global/internal-error", "provider/internal-unavailable"};
    struct rig *g = *state;
    char event[256], token[32];
    for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
        snprintf(event, sizeof(event),
            "{\"refuse\":{\"action\":\"launchInstance\",\"code\":\"%s\"}}", codes[k]);
        snprintf(token, sizeof(token), "belay-lab-%zu", k);
        bench_event(&g->b, event);
        assert_int_equal(launch(g, token), ERR_UNAVAILABLE);
        /* searched for, but not launched again yet */
        assert_int_equal(launch(g, token), ERR_UNAVAILABLE);
        assert_non_null(strstr(g->got.e.text, "an earlier launch under the same token"));
        assert_int_equal(g->b.region.n_instances, k);
        bench_advance(&g->b, 20000);
        assert_int_equal(launch(g, token), ERR_NONE);
    }
}

static void a_market_without_capacity_is_reported_before_a_launch(void **state)
{
    struct rig *g = *state;
    bench_event(&g->b, "{\"capacity\":{\"zone\":\"us-west-2\",\"type\":\"gpu_1x_a10\",\"market\":"
                       "\"on-demand\",\"n\":0}}");
    assert_int_equal(launch(g, "belay-lab-1"), ERR_NO_CAPACITY);
    assert_int_equal(g->b.region.counts.launch_calls, 0);
}

static void its_prices_are_the_markets(void **state)
{
    static const char *const types[] = {"gpu_1x_a10"};
    struct rig *g = *state;
    g->driver->ops->prices(g->driver, "us-west-2", types, 1, on_prices, &g->got);
    wait_for(g, &g->got);
    assert_int_equal(g->got.n_listed, 1);
    assert_int_equal(g->got.uusd_h, 1290000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(its_launch_is_listed_and_ends),
        TEST(one_that_is_taken_back_is_seen_as_that),
        TEST(its_requests_come_no_earlier_than_they_may),
        TEST(one_token_is_one_machine_whatever_becomes_of_the_reply),
        TEST(its_refusals_are_understood),
        TEST(a_refusal_that_says_nothing_definite_is_not_believed),
        TEST(a_market_without_capacity_is_reported_before_a_launch),
        TEST(its_prices_are_the_markets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
