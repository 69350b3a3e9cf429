/* SPDX-License-Identifier: Apache-2.0
 *
 * Audit: every type of difference is reported, and nothing that is merely in transit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/audit.h"
#include <string.h>

#define NOW 10000000
#define SETTLE 60000
#define HOUR 3600000

struct differences {
    struct audit_difference d[16];
    size_t n;
};

static void add_difference(void *ctx, const struct audit_difference *d)
{
    struct differences *s = ctx;
    assert_true(s->n < 16);
    s->d[s->n++] = *d;
}

static struct config configured(void)
{
    static const char text[] =
        "pools:\n  burst: {provider: aws, region: r, zones: [z], types: [m6i.xlarge], image: i}\n"
        "  twin: {provider: aws, region: r, zones: [z], types: [m6i.xlarge], image: i}\n  base: "
        "{}\n";
    struct config c, nothing = {0};
    struct err e = {0};
    assert_int_equal(config_parse_pools("f", text, strlen(text), &nothing, &c, &e), 0);
    return c;
}

static struct cloud_instance machine(const char *id, const char *token)
{
    struct cloud_instance c = {.zone = "z",
        .type = "m6i.xlarge",
        .market = CLOUD_SPOT,
        .state = CLOUD_RUNNING,
        .launched_at = WALL_NONE};
    STR_COPY(c.id, id);
    STR_COPY(c.token, token);
    return c;
}

/* Launched an hour before NOW, joined a minute later. */
static struct instance_row row(int64_t id, enum instance_state state)
{
    struct instance_row r = {.id = id,
        .pool = "burst",
        .zone = "z",
        .type = "m6i.xlarge",
        .market = MARKET_SPOT,
        .state = state,
        .price_uusd_h = 3600000,
        .intended_at = {NOW - HOUR},
        .launched_at = {NOW - HOUR},
        .priced_at = {NOW - HOUR},
        .joined_at = {NOW - HOUR + 60000},
        .ended_at = WALL_NONE};
    snprintf(r.token, sizeof(r.token), "t-%d", (int)id);
    snprintf(r.provider_id, sizeof(r.provider_id), "i-%d", (int)id);
    return r;
}

struct given {
    const struct cloud_instance *machines;
    size_t n_machines;
    const struct instance_row *rows;
    size_t n_rows;
    const struct ledger_sum *sums;
    size_t n_sums;
    const struct ledger_gap *gap;
    const struct err *error;
};

static struct differences audited(const struct given *g)
{
    struct differences s = {0};
    struct config c = configured();
    struct audit_counts n;
    struct audit *a = audit_create(&c, SETTLE, add_difference, &s);
    audit_listing(a, "burst", (struct wall){NOW}, g->error, g->machines, g->n_machines);
    /* of the same account */
    audit_listing(a, "twin", (struct wall){NOW}, NULL, g->machines, g->n_machines);
    audit_listing(a, "nowhere", (struct wall){NOW}, NULL, g->machines, g->n_machines);
    for (size_t i = 0; i < g->n_sums; i++)
        audit_ledger_sum(a, &g->sums[i]);
    for (size_t i = 0; i < g->n_rows; i++)
        audit_row(a, &g->rows[i]);
    if (g->gap)
        audit_ledger_gap(a, g->gap);
    audit_end(a);
    audit_get_counts(a, &n);
    assert_int_equal(n.differences, s.n);
    assert_int_equal(n.pools, 2);
    audit_destroy(a);
    config_deinit(&c);
    return s;
}

static void one(
    const struct given *g, enum audit_kind kind, int64_t instance, const char *id, const char *text)
{
    struct differences s = audited(g);
    if (s.n != 1)
        fail_msg("%zu differences, %s: %s", s.n, s.n ? audit_kind_names[s.d[0].kind] : "",
            s.n ? s.d[0].text : "");
    assert_int_equal(s.d[0].kind, kind);
    assert_int_equal(s.d[0].instance, instance);
    assert_string_equal(s.d[0].provider_id, id);
    if (!strstr(s.d[0].text, text))
        fail_msg("%s", s.d[0].text);
}

static void assert_no_differences(const struct given *g)
{
    struct differences s = audited(g);
    if (s.n)
        fail_msg("%s: %s", audit_kind_names[s.d[0].kind], s.d[0].text);
}

static void what_agrees_is_no_difference(void **state)
{
    (void)state;
    const struct cloud_instance m[] = {
        machine("i-1", "t-1"), machine("i-2", "t-2"), machine("i-3", "")};
    const struct instance_row r[] = {
        row(1, INSTANCE_RUNNING), row(2, INSTANCE_LAUNCHED), row(3, INSTANCE_RUNNING)};
    assert_no_differences(&(struct given){m, 3, r, 3, NULL, 0, NULL, NULL});
    assert_no_differences(&(struct given){0});
}

static void what_is_on_its_way_is_no_difference(void **state)
{
    (void)state;
    struct instance_row r[] = {row(1, INSTANCE_INTENDED), row(2, INSTANCE_ENDING),
        row(3, INSTANCE_LAUNCHED), row(4, INSTANCE_GONE)};
    r[0].provider_id[0] = '\0';
    r[0].launched_at = WALL_NONE;
    r[2].launched_at.ms = NOW - SETTLE + 1; /* listings lag */
    r[3].launched_at = WALL_NONE;           /* refused */
    r[3].ended_at.ms = NOW - SETTLE + 1;    /* still listed for a while */
    struct cloud_instance m[] = {machine("i-4", "t-4"), machine("i-9", "t-9"), machine("i-8", "")};
    m[1].state = CLOUD_GONE;
    m[2].state = CLOUD_STOPPING;
    m[2].reclaimed = true;
    assert_no_differences(&(struct given){m, 3, r, 4, NULL, 0, NULL, NULL});
}

static void a_machine_without_a_live_row_is_reported(void **state)
{
    (void)state;
    struct cloud_instance m[] = {machine("i-1", "t-1"), machine("i-2", "t-1")};
    struct instance_row r = row(1, INSTANCE_RUNNING);
    one(&(struct given){.machines = m, .n_machines = 1}, AUDIT_NO_ROW, 0, "i-1", "token t-1");
    one(&(struct given){m, 2, &r, 1, NULL, 0, NULL, NULL}, AUDIT_NO_ROW, 0, "i-2", "has no row");
    m[0].state = CLOUD_STOPPING; /* its disk is billed */
    one(&(struct given){.machines = m, .n_machines = 1}, AUDIT_NO_ROW, 0, "i-1", "has no row");
    r = row(2, INSTANCE_GONE);
    r.launched_at = WALL_NONE;
    r.ended_at.ms = NOW - SETTLE;
    m[1] = machine("i-2", "t-2");
    one(&(struct given){&m[1], 1, &r, 1, NULL, 0, NULL, NULL}, AUDIT_NO_ROW, 2, "i-2",
        "its row says that it has ended");
}

static void a_row_without_a_machine_is_reported(void **state)
{
    (void)state;
    struct instance_row r = row(1, INSTANCE_RUNNING);
    struct cloud_instance m = machine("i-1", "t-1");
    m.state = CLOUD_GONE;
    STR_COPY(m.reason, "Client.UserInitiatedShutdown");
    one(&(struct given){.rows = &r, .n_rows = 1}, AUDIT_NO_INSTANCE, 1, "i-1", "does not list it");
    one(&(struct given){&m, 1, &r, 1, NULL, 0, NULL, NULL}, AUDIT_NO_INSTANCE, 1, "i-1",
        "UserInitiated");
    struct err e = {.kind = ERR_THROTTLED, .text = "slow down"};
    one(&(struct given){.rows = &r, .n_rows = 1, .error = &e}, AUDIT_NOT_LISTED, 0, "",
        "slow down");
}

static bool hide(void *ctx, const char *pool, const char *provider_id)
{
    (void)ctx;
    assert_string_equal(pool, "burst");
    return str_eq(provider_id, "i-1");
}

static void what_a_listing_could_not_see_is_not_known(void **state)
{
    (void)state;
    struct differences s = {0};
    struct config c = configured();
    struct instance_row rows[] = {row(1, INSTANCE_RUNNING), row(2, INSTANCE_RUNNING)};
    struct audit *a = audit_create(&c, SETTLE, add_difference, &s);
    audit_set_hides(a, hide);
    audit_listing(a, "burst", (struct wall){NOW}, NULL, NULL, 0);
    audit_row(a, &rows[0]);
    audit_row(a, &rows[1]);
    audit_end(a);
    audit_destroy(a);
    config_deinit(&c);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.d[0].kind, AUDIT_NOT_LISTED);
    assert_int_equal(s.d[0].instance, 1);
    assert_int_equal(s.d[1].kind, AUDIT_NO_INSTANCE);
    assert_int_equal(s.d[1].instance, 2);
}

static void what_a_machine_is_and_what_its_row_says_must_agree(void **state)
{
    (void)state;
    struct instance_row r = row(1, INSTANCE_RUNNING);
    struct cloud_instance m = machine("i-1", "t-1");
    const struct given g = {&m, 1, &r, 1, NULL, 0, NULL, NULL};
    STR_COPY(m.type, "p5.48xlarge");
    one(&g, AUDIT_DIFFERS, 1, "i-1", "type is p5.48xlarge at the provider, and m6i.xlarge");
    STR_COPY(m.type, "");
    STR_COPY(m.zone, "y");
    one(&g, AUDIT_DIFFERS, 1, "i-1", "zone is y");
    STR_COPY(m.zone, "z");
    m.market = CLOUD_ON_DEMAND;
    one(&g, AUDIT_DIFFERS, 1, "i-1", "market is on-demand at the provider, and spot");
}

static void a_live_row_needs_a_pool_that_is_configured(void **state)
{
    (void)state;
    struct instance_row r = row(1, INSTANCE_ENDING);
    STR_COPY(r.pool, "removed");
    one(&(struct given){.rows = &r, .n_rows = 1}, AUDIT_NO_POOL, 1, "i-1", "removed");
    STR_COPY(r.pool, "base");
    one(&(struct given){.rows = &r, .n_rows = 1}, AUDIT_NO_POOL, 1, "i-1", "base");
    r.state = INSTANCE_GONE;
    r.launched_at = WALL_NONE;
    assert_no_differences(&(struct given){.rows = &r, .n_rows = 1});
}

/* An hour at $3.6: 3,600,000 uusd; a minute of boot, twenty of attempts. */
static void the_ledger_adds_up_to_life_and_cost(void **state)
{
    (void)state;
    struct instance_row r = row(1, INSTANCE_GONE);
    r.ended_at.ms = NOW;
    r.attempts_uusd = 1200000;
    r.attempts_ms = 1200000;
    struct ledger_sum s = {.instance = 1, .uusd = 3600000, .attempts_uusd = 1200000, .ms = HOUR};
    const struct given g = {.rows = &r, .n_rows = 1, .sums = &s, .n_sums = 1};
    assert_no_differences(&g);
    s.uusd++;
    one(&g, AUDIT_LEDGER, 1, "i-1", "3600001 uusd in the ledger, and 3600000");
    s.uusd--;
    s.ms--;
    one(&g, AUDIT_LEDGER, 1, "i-1", "the ledger has 3599999 ms of its time, and there are 3600000");
    s.ms++;
    s.attempts_uusd++;
    one(&g, AUDIT_LEDGER, 1, "i-1", "attempts cost 1200001");
    s.attempts_uusd--;
    s.instance = 2;
    assert_int_equal(audited(&g).n, 4);
    s.instance = 1;
    struct cloud_instance billed = machine("i-1", "t-1");
    billed.state = CLOUD_GONE;
    billed.launched_at = r.launched_at;
    billed.ended_at.ms = NOW - 2000;
    struct given g2 = {&billed, 1, &r, 1, &s, 1, NULL, NULL};
    one(&g2, AUDIT_LEDGER, 1, "i-1",
        "the provider bills 3598000 ms of it, and the ledger has 3600000");
    billed.ended_at.ms = NOW;
    assert_no_differences(&g2);
    r.state = INSTANCE_RUNNING; /* boot and idle are written at its end */
    struct cloud_instance m = machine("i-1", "t-1");
    s = (struct ledger_sum){
        .instance = 1, .uusd = 1200000, .attempts_uusd = 1200000, .ms = 1200000};
    assert_no_differences(&(struct given){&m, 1, &r, 1, &s, 1, NULL, NULL});
    struct ledger_gap gap = {.job = 7, .attempt = 2, .instance = 1, .ms = 10, .span_ms = 12};
    one(&(struct given){.gap = &gap}, AUDIT_LEDGER, 1, "", "attempt 2 of job 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_agrees_is_no_difference),
        cmocka_unit_test(what_is_on_its_way_is_no_difference),
        cmocka_unit_test(a_machine_without_a_live_row_is_reported),
        cmocka_unit_test(a_row_without_a_machine_is_reported),
        cmocka_unit_test(what_a_listing_could_not_see_is_not_known),
        cmocka_unit_test(what_a_machine_is_and_what_its_row_says_must_agree),
        cmocka_unit_test(a_live_row_needs_a_pool_that_is_configured),
        cmocka_unit_test(the_ledger_adds_up_to_life_and_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
