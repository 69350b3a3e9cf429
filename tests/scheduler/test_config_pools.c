/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools of the configuration: their offers, types and hosts, and their provider's entry.
 */
#include "tests/scheduler/config_rig.h"

#include "base/str.h"

static void a_type_that_the_catalogue_does_not_have_says_what_it_is(void **state)
{
    (void)state;
    struct config c =
        parse("pools:\n"
              "  b:\n"
              "    provider: aws\n"
              "    region: r\n"
              "    image: i\n"
              "    zones: [z]\n"
              "    markets: [spot]\n"
              "    types:\n"
              "      - g5.xlarge\n"
              "      - {type: g5.2xlarge, cpus: 8, memory: 32G, gpus: 1, usd_per_hour: 1.212}\n"
              "      - {type: g6.xlarge, usd_per_hour: 0.5, spot_usd_per_hour: 0.1}\n");
    const struct offer_row *o = c.pools[0].offers;
    assert_int_equal(c.pools[0].n_offers, 3);
    assert_string_equal(o[1].type, "g5.2xlarge");
    assert_int_equal(o[1].total.cpus, 8);
    assert_int_equal(o[1].total.gpus, 1);
    assert_int_equal(o[1].total.memory_mib, 32 * 1024);
    assert_int_equal(o[1].on_demand_uusd_h, 1212000);
    assert_int_equal(o[1].price_uusd_h, 1212000); /* until a price was read */
    assert_int_equal(o[2].total.cpus, 4);         /* from the catalogue */
    assert_int_equal(o[2].price_uusd_h, 100000);
    assert_int_equal(o[2].on_demand_uusd_h, 500000);
    config_deinit(&c);
}

static void an_elastic_pool_without_markets_tries_spot_then_on_demand(void **state)
{
    (void)state;
    struct config c = parse(POOL);
    assert_int_equal(c.pools[0].n_offers, 2);
    assert_int_equal(c.pools[0].offers[0].market, MARKET_SPOT);
    assert_int_equal(c.pools[0].offers[1].rank, 1);
    assert_int_equal(c.pools[0].row.max_nodes, 8);
    config_deinit(&c);
    c = parse(POOL "    max_nodes: 0\n"); /* drains a pool */
    assert_int_equal(c.pools[0].row.max_nodes, 0);
    config_deinit(&c);
}

static void a_machine_with_gpus_attached_is_a_type(void **state)
{
    (void)state;
    struct config c = parse(
        GCP_POOL "[n1-standard-8+t4, n1-standard-16+2xt4, {type: n1-highcpu-16+2xt4, cpus: 16, "
                 "memory: 14G, usd_per_hour: 1.27}, {type: n1-standard-8+v100, "
                 "spot_usd_per_hour: 1.2}]\n");
    const struct offer_row *o[4];
    assert_int_equal(c.pools[0].n_offers, 4);
    for (size_t i = 0; i < 4; i++)
        o[i] = &c.pools[0].offers[i];
    assert_string_equal(o[0]->type, "n1-standard-8+t4");
    assert_int_equal(o[0]->total.cpus, 8);
    assert_int_equal(o[0]->total.memory_mib, 30 * 1024);
    assert_int_equal(o[0]->total.gpus, 1);
    assert_int_equal(o[0]->price_uusd_h, 244500);
    assert_int_equal(o[0]->on_demand_uusd_h, 730000);
    assert_int_equal(o[1]->total.gpus, 2);
    assert_string_equal(o[2]->type, "n1-highcpu-16+2xt4");
    assert_int_equal(o[2]->total.gpus, 2); /* from the name */
    assert_int_equal(o[3]->total.gpus, 1);
    assert_int_equal(o[3]->price_uusd_h, 1200000);
    config_deinit(&c);
}

static void where_a_region_has_no_zones_there_is_one_offer_a_type(void **state)
{
    (void)state;
    struct config c = parse(LAMBDA_POOL "    types: [gpu_1x_a10, gpu_1x_a100]\n");
    const struct config_pool *p = &c.pools[0];
    assert_int_equal(p->n_offers, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(p->offers[i].zone, "us-west-2");
        assert_int_equal(p->offers[i].market, MARKET_ON_DEMAND);
        assert_int_equal(p->offers[i].rank, 1); /* like other on-demand offers */
    }
    assert_int_equal(p->offers[1].price_uusd_h, 1990000);
    config_deinit(&c);
}

/* Two providers; the pool has its own image, and one word selects the provider. */
#define PROVIDERS                                                                                  \
    "providers:\n"                                                                                 \
    "  aws: {region: us-east-1, zones: [us-east-1a], types: [g5.xlarge], image: ami-1, disk_gib: " \
    "40}\n"                                                                                        \
    "  gcp: {region: us-central1, zones: [us-central1-a], types: [g2-standard-4], image: a/b, "    \
    "project: p}\n"                                                                                \
    "pools:\n"

static void what_a_pool_does_not_say_its_provider_s_entry_says(void **state)
{
    (void)state;
    struct config c =
        parse(PROVIDERS "  a: {provider: aws, max_nodes: 3, image: ami-2, zones: [z1, z2]}\n"
                        "  g: {provider: gcp, max_nodes: 3}\n"
                        "  r: {kind: reserved}\n");
    assert_int_equal(c.n_pools, 3);
    assert_string_equal(c.pools[0].row.region, "us-east-1");
    assert_int_equal(c.pools[0].disk_gib, 40);
    assert_int_equal(c.pools[0].n_offers, 4);
    assert_string_equal(c.pools[0].offers[0].zone, "z1");
    assert_string_equal(c.pools[0].offers[0].type, "g5.xlarge");
    for (size_t i = 0; c.pools[0].provider->settings[i].key; i++)
        if (str_eq(c.pools[0].provider->settings[i].key, "image"))
            assert_string_equal(c.pools[0].settings[i], "ami-2");
    assert_string_equal(c.pools[1].row.region, "us-central1");
    assert_int_equal(c.pools[1].row.max_nodes, 3);
    assert_false(c.pools[2].row.elastic);
    config_deinit(&c);
}

/* Every key of a pool of this provider, without the required region. */
static void what_is_missing_makes_no_known_key_unknown(void **state)
{
    static const char common[] =
        "retries: {}, idle_gpus: {}, required_labels: [], features: [], resources: {}, max_nodes: "
        "1, "
        "idle_timeout: 1s, cooldown: 1s, boot_timeout: 1s, refusal_backoff: 1s, "
        "launches_per_minute: 1, min_nodes: 1, warm_nodes: 1, windows: {}, paid_minimum: 1s, "
        "return_after: 1s, spread: 1, require_drill: no, "
        "drill_valid: 1m, max_gpus: 1, max_usd_per_hour: 1, rank_by: price, criu: no, endpoint: "
        "\"https://e\", metadata: \"http://m\", metadata_guard: off, notice_reserve: 1s, "
        "prolog: /p, epilog: /e, hook_timeout: 1s, create_accounts: {a: 1000}, "
        "credentials: /c, disk_gib: 1, "
        "types: [], egress_usd_per_gib: 1, upload_usd_per_gib: 1";
    (void)state;
    for (size_t i = 0; cloud_provider_names[i]; i++) {
        const struct cloud_provider *p = cloud_provider_find(cloud_provider_names[i]);
        struct buf text = {0};
        struct config c;
        struct err e;
        if (p->offers == CLOUD_OFFERS_HOSTS)
            continue; /* it has none */
        buf_printf(&text, "pools:\n  b: {provider: %s, %s", p->name, common);
        for (size_t k = 0; p->settings[k].key; k++)
            buf_printf(&text, ", %s: [a]", p->settings[k].key);
        if (p->offers == CLOUD_OFFERS_ZONES)
            buf_adds(&text, ", zones: [z], markets: [spot]");
        if (p->has_fleets)
            buf_adds(&text, ", allocation: cheapest");
        buf_adds(&text, "}\n");
        assert_int_equal(
            config_parse("lab.yaml", buf_str(&text), text.len, NULL, &c, &e), ERR_INVALID);
        assert_string_equal(e.text, "lab.yaml:2: b: \"region\" is missing");
        buf_deinit(&text);
    }
}

static void pools_by_command_have_providers_of_their_own(void **state)
{
    (void)state;
    struct config base = parse("limits: {max_nodes: 7}\n"), c;
    struct err e = {0};
    const char *text = PROVIDERS "  a: {provider: aws}\n", *without = strstr(text, "pools:");
    assert_int_equal(config_parse_pools("pools.yaml", text, strlen(text), &base, &c, &e), 0);
    assert_string_equal(c.pools[0].row.region, "us-east-1");
    assert_int_equal(c.max_nodes, 7);
    config_deinit(&c);
    assert_int_equal(
        config_parse_pools("pools.yaml", without, strlen(without), &base, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "\"region\" is missing"));
    config_deinit(&base);
}

static void a_pool_of_hosts_has_one_owned_offer(void **state)
{
    (void)state;
    struct config c =
        parse(HOSTS_POOL "    cpus: 8\n    memory: 64G\n    gpus: 2\n    usd_per_hour: 1.25\n");
    const struct config_pool *p = &c.pools[0];
    assert_int_equal(p->n_offers, 1);
    assert_int_equal(p->row.max_nodes, 3);
    assert_string_equal(p->row.region, "static");
    assert_string_equal(setting(p, "hosts"), "rack1\nrack2:22\nrack3");
    assert_string_equal(p->offers[0].zone, "static");
    assert_string_equal(p->offers[0].type, "static");
    assert_int_equal(p->offers[0].market, MARKET_OWNED);
    assert_int_equal(p->offers[0].rank, 0);
    assert_int_equal(p->offers[0].total.cpus, 8);
    assert_int_equal(p->offers[0].total.gpus, 2);
    assert_int_equal(p->offers[0].total.memory_mib, 65536);
    assert_int_equal(p->offers[0].price_uusd_h, 1250000);
    assert_int_equal(p->offers[0].on_demand_uusd_h, 1250000);
    config_deinit(&c);
    /* drains it */
    c = parse(HOSTS_POOL "    cpus: 8\n    memory: 64G\n    max_nodes: 0\n");
    assert_int_equal(c.pools[0].row.max_nodes, 0);
    config_deinit(&c);
}

static void a_pool_says_which_labels_its_jobs_have(void **state)
{
    (void)state;
    struct config c =
        parse("pools:\n  base: {required_labels: [team, cost-center]}\n  other: {}\n");
    assert_string_equal(c.pools[0].row.required_labels, ",team,cost-center,");
    assert_string_equal(c.pools[1].row.required_labels, "");
    config_deinit(&c);
}

static void a_pool_keeps_machines_by_hour_of_the_week(void **state)
{
    (void)state;
    struct config c = parse(
        POOL "    min_nodes: 1\n    windows:\n"
             "      office: {days: mon-fri, from: \"08:00\", to: \"19:30\", tz: Europe/Berlin, "
             "warm_nodes: 2}\n"
             "      night: {from: \"22:00\", to: \"06:00\", min_nodes: 0}\n");
    struct pool_window w[POOL_WINDOWS_MAX];
    struct err e;
    size_t n;
    assert_int_equal(c.pools[0].row.min_nodes, 1);
    assert_int_equal(c.pools[0].row.warm_nodes, 0);
    assert_int_equal(pool_windows_parse(c.pools[0].row.windows, w, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(w[0].window.name, "office");
    assert_int_equal(w[0].window.days, 0x3E);
    assert_int_equal(w[0].window.from_min, 480);
    assert_int_equal(w[0].window.to_min, 1170);
    assert_string_equal(w[0].tz, "Europe/Berlin");
    assert_int_equal(w[0].min_nodes, 1); /* the pool's */
    assert_int_equal(w[0].warm_nodes, 2);
    assert_int_equal(w[1].window.days, 0x7F);
    assert_string_equal(w[1].tz, "UTC");
    assert_int_equal(w[1].min_nodes, 0);
    config_deinit(&c);
    c = parse(POOL "    min_nodes: 3\n    max_nodes: 0\n"); /* drains the pool */
    assert_int_equal(c.pools[0].row.max_nodes, 0);
    config_deinit(&c);
}

static void accounts_on_the_nodes_are_read(void **state)
{
    (void)state;
    struct config c = parse("pools:\n  a: {}\n  b: {run_as: batch}\n"
                            "  c: {run_as: {ann: a.smith, \"*\": guest}}\n"
                            "  d: {run_as: {ann: a.smith}}\n");
    static const char *const accounts[][2] = {
        {"ann", "bob"}, {"batch", "batch"}, {"a.smith", "guest"}, {"a.smith", "bob"}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(run_as_account(&c.pools[i].run_as, "ann"), accounts[i][0]);
        assert_string_equal(run_as_account(&c.pools[i].run_as, "bob"), accounts[i][1]);
    }
    config_deinit(&c);
}

static void accounts_to_create_are_read_with_their_numbers(void **state)
{
    (void)state;
    struct config c = parse("pools:\n  a: {provider: aws, region: us-east-1, zones: [us-east-1a], "
                            "types: [g6.xlarge], image: ami-1,\n"
                            "      create_accounts: {ann: 2001, a.smith: 2000000000}}\n");
    const struct new_accounts *a = &c.pools[0].create_accounts;
    assert_int_equal(a->n, 2);
    assert_string_equal(a->a[0].name, "ann");
    assert_int_equal(a->a[0].uid, 2001);
    assert_string_equal(a->a[1].name, "a.smith");
    assert_int_equal(a->a[1].uid, 2000000000);
    config_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_keeps_machines_by_hour_of_the_week),
        cmocka_unit_test(accounts_on_the_nodes_are_read),
        cmocka_unit_test(accounts_to_create_are_read_with_their_numbers),
        cmocka_unit_test(a_type_that_the_catalogue_does_not_have_says_what_it_is),
        cmocka_unit_test(an_elastic_pool_without_markets_tries_spot_then_on_demand),
        cmocka_unit_test(a_machine_with_gpus_attached_is_a_type),
        cmocka_unit_test(where_a_region_has_no_zones_there_is_one_offer_a_type),
        cmocka_unit_test(what_a_pool_does_not_say_its_provider_s_entry_says),
        cmocka_unit_test(pools_by_command_have_providers_of_their_own),
        cmocka_unit_test(what_is_missing_makes_no_known_key_unknown),
        cmocka_unit_test(a_pool_of_hosts_has_one_owned_offer),
        cmocka_unit_test(a_pool_says_which_labels_its_jobs_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
