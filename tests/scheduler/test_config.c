/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: every key with its value and its default, and every malformed form with the
 * line and the nearest name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/config/config.h"
#include "scheduler/config/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct config parse(const char *text)
{
    struct config c;
    struct err e = {0};
    if (config_parse("lab.yaml", text, strlen(text), NULL, &c, &e) != 0)
        fail_msg("%s", e.text);
    return c;
}

static void limits_are_read_along_the_path(void **state)
{
    (void)state;
    struct config c = parse("each_user: {max_submitted: 20000, max_gpus: 16}\nteams:\n  red:\n    "
                            "max_usd_per_hour: 60.5\n"
                            "    each_user: {max_running: 200}\n    users:\n      ann: {shares: 2, "
                            "max_gpus: 0, max_running: none}\n"
                            "      bob: 3\n");
    const struct order_options *o = &c.order;
    assert_int_equal(o->teams[0].users[0].shares, 2);
    assert_int_equal(o->teams[0].users[1].shares, 3);
    assert_int_equal(order_limit(o, "red", "ann", LIMIT_GPUS), 0);
    assert_int_equal(order_limit(o, "red", "ann", LIMIT_RUNNING), LIMIT_NONE);
    assert_int_equal(order_limit(o, "red", "bob", LIMIT_GPUS), 16);
    assert_int_equal(order_limit(o, "red", "bob", LIMIT_RUNNING), 200);
    assert_int_equal(order_limit(o, "red", "bob", LIMIT_SUBMITTED), 20000);
    assert_int_equal(order_limit(o, "red", NULL, LIMIT_UUSD_H), 60500000);
    assert_int_equal(order_limit(o, "cho", "cho", LIMIT_SUBMITTED), 20000);
    assert_int_equal(order_quota_mcpu(o, "red"), 0);
    config_deinit(&c);
    c = parse("teams:\n  red: {quota: 256}\n  blue: {quota: 32, borrow: false, max_cpus: 100}\n");
    assert_int_equal(order_quota_mcpu(&c.order, "red"), 256000);
    assert_int_equal(order_limit(&c.order, "red", NULL, LIMIT_MCPU), LIMIT_NONE);
    assert_int_equal(order_limit(&c.order, "blue", NULL, LIMIT_MCPU), 32000);
    config_deinit(&c);
}

static void the_order_is_read_or_the_default(void **state)
{
    (void)state;
    struct config c = parse("");
    struct order_options usual = order_defaults;
    usual.each_user.is_set[LIMIT_SUBMITTED] = true;
    usual.each_user.most[LIMIT_SUBMITTED] = 200000;
    assert_memory_equal(&c.order, &usual, sizeof(c.order));
    config_deinit(&c);
    c = parse(
        "teams:\n  red: {shares: 30, users: [ann, bob]}\n  blue:\n    shares: 70\n    users: {cho: "
        "2, dee: 1}\n"
        "  open: {}\n"
        "priority: {half_life: 14d, fair_share: 30d, age_max: 2h, size: -10m, cpus_per_gpu: 12.5,"
        " cpus_per_gib: 0.125, default_team: open, reserve: 3}\n"
        "qos:\n  urgent: {boost: 1d, preempts: [spare]}\n  spare: {boost: -7d}\n"
        "windows:\n  overnight: {days: mon-fri, from: \"20:00\", to: \"07:00\", tz: "
        "Australia/Sydney}\n");
    const struct order_options *o = &c.order;
    assert_int_equal(o->n_teams, 3);
    assert_string_equal(o->teams[0].name, "red");
    assert_int_equal(o->teams[0].shares, 30);
    assert_string_equal(o->teams[0].users[1].name, "bob");
    assert_int_equal(o->teams[0].users[1].shares, 1);
    assert_string_equal(o->teams[1].users[0].name, "cho");
    assert_int_equal(o->teams[1].users[0].shares, 2);
    assert_int_equal(o->teams[2].shares, 1);
    assert_int_equal(o->teams[2].n_users, 0);
    assert_int_equal(o->half_life_ms, 14 * 86400000LL);
    assert_int_equal(o->fair_ms, 30 * 86400000LL);
    assert_int_equal(o->age_max_ms, 7200000);
    assert_int_equal(o->size_ms, -600000);
    assert_int_equal(o->gpu_mcpu, 12500);
    assert_int_equal(o->gib_mcpu, 125);
    assert_string_equal(o->default_team, "open");
    assert_int_equal(o->reserve, 3);
    assert_int_equal(c.n_windows, 1);
    assert_int_equal(c.windows[0].window.days, 0x3E);
    assert_int_equal(c.windows[0].window.from_min, 1200);
    assert_int_equal(c.windows[0].window.to_min, 420);
    assert_string_equal(c.windows[0].tz, "Australia/Sydney");
    assert_int_equal(o->n_qos, 2);
    assert_int_equal(o->qos[0].boost_ms, 86400000LL);
    assert_int_equal(o->qos[1].boost_ms, -7 * 86400000LL);
    assert_true(bits_has(&o->qos[0].preempts, 1) && !bits_has(&o->qos[0].preempts, 0));
    assert_int_equal(bits_next(&o->qos[1].preempts, 0), o->qos[1].preempts.n);
    config_deinit(&c);
}

static void nothing_given_means_one_reserved_pool_and_the_documented_defaults(void **state)
{
    (void)state;
    struct config c = parse("");
    assert_string_equal(c.cluster, "belay");
    assert_string_equal(c.state_dir, "/var/lib/belay");
    assert_string_equal(c.socket, "/var/lib/belay/belayd.sock");
    assert_string_equal(c.store, "file:///var/lib/belay/store");
    assert_string_equal(c.listen_host, "127.0.0.1");
    assert_int_equal(c.listen_port, 7443);
    assert_string_equal(c.server_url, "");
    assert_int_equal(c.n_names, 0);
    assert_int_equal(c.lease_ms, 30000);
    assert_int_equal(c.sync_ms, 10000);
    assert_int_equal(c.kill_wait_ms, 30000);
    assert_int_equal(c.store_wait_ms, 600000);
    assert_int_equal(c.sweep_ms, 60000);
    assert_int_equal(c.busy_sweep_ms, 5000);
    assert_int_equal(c.settle_ms, 60000);
    assert_int_equal(c.price_ms, 300000);
    assert_int_equal(c.node_cert_ms, 30LL * 86400 * 1000);
    assert_int_equal(c.api_token_ms, 90LL * 86400 * 1000);
    assert_int_equal(c.orphan_ms, 3600000);
    assert_int_equal(c.log_job_bytes, 4LL << 30);
    assert_int_equal(c.log_user_day_bytes, 64LL << 30);
    assert_int_equal(c.log_full_wait_ms, 300000);
    assert_int_equal(c.workdir_user_bytes, 20LL << 30);
    assert_int_equal(c.store_user_day_bytes, 4LL << 30);
    assert_int_equal(c.retention_ms, 7 * 86400000);
    assert_int_equal(c.hold_in_vain, 10);
    assert_int_equal(c.n_pools, 1);
    assert_string_equal(c.pools[0].row.name, "local");
    assert_false(c.pools[0].row.elastic);
    config_deinit(&c);
}

static const char everything[] = "cluster: lab\n"
                                 "state: /srv/belay\n"
                                 "socket: /run/belay.sock\n"
                                 "store: file:///data/store%20one\n"
                                 "encryption: required\n"
                                 "key_file: /etc/belay/lab.keys\n"
                                 "listen: 0.0.0.0:7000\n"
                                 "server: https://belay.lab:7000\n"
                                 "names: [belay.lab, 10.0.0.7, \"fd00::7\"]\n"
                                 "lease: 90s\n"
                                 "kill_wait: 5s\n"
                                 "store_wait: 3m\n"
                                 "sweep: 2m\n"
                                 "busy_sweep: 3s\n"
                                 "settle: 40s\n"
                                 "price_every: 1h\n"
                                 "node_certificate: 7d\n"
                                 "api_token_lifetime: 12h\n"
                                 "log_max_per_job: 10M\n"
                                 "log_max_per_user_day: none\n"
                                 "log_full_wait: 2m\n"
                                 "workdir_max_per_user: 1G\n"
                                 "store_max_per_user_day: 8G\n"
                                 "orphan_timeout: 2h\n"
                                 "retention: 30d\n"
                                 "hold_in_vain: 0\n"
                                 "pools:\n"
                                 "  base:\n"
                                 "    kind: reserved\n"
                                 "    usd_per_hour: 3.56\n"
                                 "  burst:\n"
                                 "    provider: aws\n"
                                 "    region: us-east-1\n"
                                 "    zones: [us-east-1a, us-east-1b]\n"
                                 "    types: [g5.xlarge, g6.xlarge]\n"
                                 "    markets: [on-demand, spot]\n"
                                 "    max_nodes: 16\n"
                                 "    idle_timeout: 1m\n"
                                 "    cooldown: 2m\n"
                                 "    boot_timeout: 3m\n"
                                 "    refusal_backoff: 4m\n"
                                 "    image: ami-0abc\n"
                                 "    subnet: subnet-1\n"
                                 "    security_group: sg-1\n"
                                 "    iam_profile: arn:aws:iam::1:instance-profile/x\n"
                                 "    endpoint: http://127.0.0.1:4566\n"
                                 "    metadata: http://127.0.0.1:1338\n"
                                 "    credentials: /etc/belay/aws\n"
                                 "    launches_per_minute: 300\n"
                                 "    disk_gib: 100\n";

static const char *setting(const struct config_pool *p, const char *key)
{
    struct cloud_setup s = {.provider = p->provider};
    for (size_t i = 0; i < CLOUD_SETTINGS_MAX; i++)
        s.values[i] = p->settings[i];
    return cloud_setup_get(&s, key);
}

static void every_key_is_read(void **state)
{
    (void)state;
    struct config c = parse(everything);
    assert_string_equal(c.cluster, "lab");
    assert_string_equal(c.state_dir, "/srv/belay");
    assert_string_equal(c.socket, "/run/belay.sock");
    assert_string_equal(c.store, "file:///data/store%20one");
    assert_int_equal(c.encryption, ENCRYPTION_REQUIRED);
    assert_string_equal(c.key_file, "/etc/belay/lab.keys");
    assert_string_equal(c.listen_host, "0.0.0.0");
    assert_int_equal(c.listen_port, 7000);
    assert_string_equal(c.server_url, "https://belay.lab:7000");
    char host[16];
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "belay.lab");
    config_server_host(&c, host, 9); /* without its NUL it would have room */
    assert_string_equal(host, "");
    STR_COPY(c.server_url, "https://[fd00::7]:7000/x");
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "fd00::7");
    STR_COPY(c.server_url, "");
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "");
    assert_int_equal(c.n_names, 3);
    assert_string_equal(c.names[2], "fd00::7");
    assert_int_equal(c.lease_ms, 90000);
    assert_int_equal(c.sync_ms, 20000); /* never above what the wire allows */
    assert_int_equal(c.kill_wait_ms, 5000);
    assert_int_equal(c.store_wait_ms, 180000);
    assert_int_equal(c.sweep_ms, 120000);
    assert_int_equal(c.busy_sweep_ms, 3000);
    assert_int_equal(c.settle_ms, 40000);
    assert_int_equal(c.price_ms, 3600000);
    assert_int_equal(c.node_cert_ms, 7LL * 86400 * 1000);
    assert_int_equal(c.api_token_ms, 12LL * 3600 * 1000);
    assert_int_equal(c.log_job_bytes, 10 << 20);
    assert_int_equal(c.log_user_day_bytes, 0);
    assert_int_equal(c.log_full_wait_ms, 120000);
    assert_int_equal(c.workdir_user_bytes, 1 << 30);
    assert_int_equal(c.store_user_day_bytes, 8LL << 30);
    assert_int_equal(c.orphan_ms, 7200000);
    assert_int_equal(c.retention_ms, 30LL * 86400000);
    assert_int_equal(c.hold_in_vain, 0);
    config_deinit(&c);
}

static void every_key_of_a_pool_is_read(void **state)
{
    (void)state;
    struct config c = parse(everything);
    assert_int_equal(c.n_pools, 2);
    const struct config_pool *base = &c.pools[0], *burst = &c.pools[1];
    assert_false(base->row.elastic);
    assert_int_equal(base->row.usd_per_hour_uusd, 3560000);
    assert_int_equal(base->n_offers, 0);
    assert_true(burst->row.elastic);
    assert_string_equal(burst->row.name, "burst");
    assert_string_equal(burst->row.provider, "aws");
    assert_string_equal(burst->row.region, "us-east-1");
    assert_int_equal(burst->row.max_nodes, 16);
    assert_int_equal(burst->row.idle_timeout_ms, 60000);
    assert_int_equal(burst->row.cooldown_ms, 120000);
    assert_int_equal(burst->row.boot_timeout_ms, 180000);
    assert_int_equal(burst->row.refusal_backoff_ms, 240000);
    assert_string_equal(setting(burst, "image"), "ami-0abc");
    assert_string_equal(setting(burst, "subnet"), "subnet-1");
    assert_string_equal(setting(burst, "security_group"), "sg-1");
    assert_string_equal(setting(burst, "iam_profile"), "arn:aws:iam::1:instance-profile/x");
    assert_string_equal(burst->endpoint, "http://127.0.0.1:4566");
    assert_string_equal(burst->metadata, "http://127.0.0.1:1338");
    assert_string_equal(burst->credentials, "/etc/belay/aws");
    assert_int_equal(burst->launches_per_minute, 300);
    assert_int_equal(burst->disk_gib, 100);
    config_deinit(&c);
}

static void offers_are_markets_by_zones_by_types_and_the_first_market_has_rank_0(void **state)
{
    (void)state;
    struct config c = parse(everything);
    const struct config_pool *p = &c.pools[1];
    assert_int_equal(p->n_offers, 8);
    for (size_t i = 0; i < p->n_offers; i++) {
        const struct offer_row *o = &p->offers[i];
        assert_int_equal(o->rank, i < 4 ? 0 : 1);
        assert_int_equal(o->market, i < 4 ? MARKET_ON_DEMAND : MARKET_SPOT);
        assert_string_equal(o->pool, "burst");
        assert_int_equal(o->total.cpus, 4);
        assert_true(o->price_uusd_h > 0 && o->price_uusd_h <= o->on_demand_uusd_h);
        for (size_t k = 0; k < i; k++)
            assert_false(str_eq(o->zone, p->offers[k].zone) && str_eq(o->type, p->offers[k].type) &&
                         o->market == p->offers[k].market);
    }
    config_deinit(&c);
}

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
    assert_int_equal(o[1].price_uusd_h, 1212000); /* until one has been read */
    assert_int_equal(o[2].total.cpus, 4);         /* the catalogue's */
    assert_int_equal(o[2].price_uusd_h, 100000);
    assert_int_equal(o[2].on_demand_uusd_h, 500000);
    config_deinit(&c);
}

static void the_state_directory_of_the_command_line_wins(void **state)
{
    (void)state;
    struct config c;
    struct err e;
    const char *text = "state: /srv/belay\n";
    assert_int_equal(config_parse("f", text, strlen(text), "/home/ann/b", &c, &e), 0);
    assert_string_equal(c.state_dir, "/home/ann/b");
    assert_string_equal(c.socket, "/home/ann/b/belayd.sock");
    assert_string_equal(c.store, "file:///home/ann/b/store");
    assert_int_equal(c.encryption, ENCRYPTION_NONE);
    assert_string_equal(c.key_file, "/home/ann/b/checkpoint.keys");
    config_deinit(&c);
    assert_int_equal(config_parse("f", "", 0, "/srv/50%/a b", &c, &e), 0);
    assert_string_equal(c.socket, "/srv/50%/a b/belayd.sock");
    assert_string_equal(c.store, "file:///srv/50%25/a b/store"); /* a URL */
    config_deinit(&c);
    assert_int_equal(config_parse("f", "", 0, "not/absolute", &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "absolute path"));
}

static void listen_takes_ipv6_in_brackets(void **state)
{
    (void)state;
    struct config c = parse("listen: \"[::1]:0\"\n");
    assert_string_equal(c.listen_host, "::1");
    assert_int_equal(c.listen_port, 0);
    config_deinit(&c);
}

#define POOL                                                                                       \
    "pools:\n  b:\n    provider: aws\n    region: r\n    image: ami-1\n    zones: [z]\n    "       \
    "types: "                                                                                      \
    "[g5.xlarge]\n"

static void an_elastic_pool_without_markets_tries_spot_then_on_demand(void **state)
{
    (void)state;
    struct config c = parse(POOL);
    assert_int_equal(c.pools[0].n_offers, 2);
    assert_int_equal(c.pools[0].offers[0].market, MARKET_SPOT);
    assert_int_equal(c.pools[0].offers[1].rank, 1);
    assert_int_equal(c.pools[0].row.max_nodes, 8);
    config_deinit(&c);
    c = parse(POOL "    max_nodes: 0\n"); /* lets a pool run empty */
    assert_int_equal(c.pools[0].row.max_nodes, 0);
    config_deinit(&c);
}

#define GCP_POOL                                                                                   \
    "pools:\n  b:\n    provider: gcp\n    region: us-central1\n    image: a/b\n    project: p\n"   \
    "    zones: [us-central1-a]\n    markets: [spot]\n    types: "

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
    assert_int_equal(o[2]->total.gpus, 2); /* the name says it */
    assert_int_equal(o[3]->total.gpus, 1);
    assert_int_equal(o[3]->price_uusd_h, 1200000);
    config_deinit(&c);
}

#define LAMBDA_POOL "pools:\n  b:\n    provider: lambda\n    region: us-west-2\n    ssh_key: ops\n"

static void where_a_region_has_no_zones_there_is_one_offer_a_type(void **state)
{
    (void)state;
    struct config c = parse(LAMBDA_POOL "    types: [gpu_1x_a10, gpu_1x_a100]\n");
    const struct config_pool *p = &c.pools[0];
    assert_int_equal(p->n_offers, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(p->offers[i].zone, "us-west-2");
        assert_int_equal(p->offers[i].market, MARKET_ON_DEMAND);
        assert_int_equal(p->offers[i].rank, 1); /* as other on-demand offers */
    }
    assert_int_equal(p->offers[1].price_uusd_h, 1990000);
    config_deinit(&c);
}

#define HOSTS_POOL                                                                                 \
    "pools:\n  b:\n    provider: static\n    hosts: [rack1, \"rack2:22\", rack3]\n    user: u\n  " \
    "  key: "                                                                                      \
    "/k\n"                                                                                         \
    "    known_hosts: /h\n"

/* Two providers; the pool has an image of its own, and one word decides where it is. */
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

/* Each that a pool of this provider may have, without the region that it needs. */
static void what_is_missing_makes_no_known_key_unknown(void **state)
{
    static const char common[] =
        "retries: {}, required_labels: [], features: [], resources: {}, max_nodes: 1, "
        "idle_timeout: 1s, cooldown: 1s, boot_timeout: 1s, refusal_backoff: 1s, "
        "launches_per_minute: 1, paid_minimum: 1s, return_after: 1s, spread: 1, require_drill: no, "
        "drill_valid: 1m, max_gpus: 1, max_usd_per_hour: 1, rank_by: price, criu: no, endpoint: "
        "\"https://e\", metadata: \"http://m\", metadata_guard: off, credentials: /c, disk_gib: 1, "
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
    /* lets it run empty */
    c = parse(HOSTS_POOL "    cpus: 8\n    memory: 64G\n    max_nodes: 0\n");
    assert_int_equal(c.pools[0].row.max_nodes, 0);
    config_deinit(&c);
}

static void budgets_are_read(void **state)
{
    (void)state;
    struct config c = parse(
        "windows:\n  night: {from: \"20:00\", to: \"06:00\"}\nbudgets:\n"
        "  nlp: {match: {team: nlp, user: ann, pool: base, job: train, labels: {project: x, b: "
        "y}}, usd_per_month: 20000,\n"
        "    at_limit: park, alert_at: [10, 100], tz: Europe/Berlin, mail: [a@example.com, b]}\n"
        "  all: {usd_per_hour: 1.5}\n  night: {usd_per_window: 2, window: night, at_limit: "
        "stop-new}\n");
    assert_int_equal(c.n_budgets, 3);
    const struct budget_options *o = &c.budgets[0].options;
    assert_string_equal(o->name, "nlp");
    assert_string_equal(o->team, "nlp");
    assert_string_equal(o->user, "ann");
    assert_string_equal(o->pool, "base");
    assert_string_equal(o->job, "train");
    assert_int_equal(o->n_labels, 2);
    assert_string_equal(o->labels[0].name, "project");
    assert_string_equal(o->labels[0].value, "x");
    assert_int_equal(o->period, BUDGET_MONTH);
    assert_int_equal(o->cap_uusd, 20000000000);
    assert_int_equal(o->at_limit, BUDGET_PARK);
    assert_int_equal(o->n_alerts, 2);
    assert_int_equal(o->alert_pct[0], 10);
    assert_int_equal(o->n_mails, 2);
    assert_string_equal(c.budgets[0].mails[0], "a@example.com");
    assert_string_equal(c.budgets[0].tz, "Europe/Berlin");
    o = &c.budgets[1].options;
    assert_true(o->period == BUDGET_HOUR && o->at_limit == BUDGET_ALERT && o->n_alerts == 3 &&
                o->alert_pct[2] == 100);
    assert_int_equal(o->cap_uusd, 1500000);
    assert_int_equal(c.budgets[2].options.period, BUDGET_WINDOW);
    assert_string_equal(c.budgets[2].window, "night");
    config_deinit(&c);
}

static void racks_are_read(void **state)
{
    (void)state;
    struct config c = parse("node_types:\n  dgx: {watts: {idle: 1800, full: 10200}}\n  epyc: "
                            "{watts: {idle: 120, full: 650}}\n"
                            "racks:\n  r1: {max_kw: 40, nodes: {dgx: \"gpu[1-3],gpu7\", epyc: "
                            "\"cpu[01-12]\"}}\n  r2: {max_kw: 17.25, nodes: {epyc: cpu13}}\n");
    assert_int_equal(c.n_racks, 2);
    const struct rack_options *o = &c.racks[0];
    assert_string_equal(o->name, "r1");
    assert_int_equal(o->max_w, 40000);
    assert_int_equal(o->n_nodes, 2);
    assert_string_equal(o->nodes[0].names, "gpu[1-3],gpu7");
    assert_true(o->nodes[0].n == 4 && o->nodes[0].idle_w == 1800 && o->nodes[0].full_w == 10200);
    assert_true(o->nodes[1].n == 12 && o->nodes[1].idle_w == 120 && o->nodes[1].full_w == 650);
    assert_int_equal(c.racks[1].max_w, 17250);
    config_deinit(&c);
    c = parse("node_types:\n  dgx: {watts: {idle: 1800, full: 10200}}\nracks:\n  r1: {max_kw: 40, "
              "nodes: {dgx: gpu1}, pools: {lab: {type: dgx, nodes: 8}}}\n");
    o = &c.racks[0];
    assert_int_equal(o->n_nodes, 2);
    assert_string_equal(o->nodes[0].pool, "");
    assert_string_equal(o->nodes[1].pool, "lab");
    assert_string_equal(o->nodes[1].names, "");
    assert_true(o->nodes[1].n == 8 && o->nodes[1].idle_w == 1800 && o->nodes[1].full_w == 10200);
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

static const struct refused {
    const char *text;
    const char *expected[3]; /* all of them stand in the error */
} refused[] = {
    {"clustr: lab\n", {"lab.yaml:1", "unknown key", "did you mean \"cluster\"?"}},
    {"budgets:\n  a: {usd_per_month: 1, usd_per_day: 2}\n",
        {"lab.yaml:2", "a budget is of one period: there is usd_per_day already"}},
    {"budgets:\n  a: {at_limit: park}\n",
        {"lab.yaml:2",
            "a budget needs usd_per_hour, usd_per_day, usd_per_month or usd_per_window"}},
    {"budgets:\n  a b: {usd_per_day: 1}\n", {"lab.yaml:2", "is not the name of a budget"}},
    {"budgets:\n  a:\n    usd_per_day: 0\n", {"lab.yaml:3", "expected more than 0"}},
    {"budgets:\n  a:\n    usd_per_day: -1\n", {"lab.yaml:3"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    at_limit: parc\n", {"lab.yaml:4", "park", "parc"}},
    {"budgets:\n  a:\n    usd_per_window: 1\n", {"lab.yaml:", "usd_per_window goes with window"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    window: night\n",
        {"lab.yaml:4", "usd_per_window goes with window"}},
    {"windows: {night: {from: \"01:00\", to: \"02:00\"}}\nbudgets:\n  a: {usd_per_window: 1, "
     "window: nigt}\n",
        {"lab.yaml:3", "did you mean night?"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    alert_at: [80, 50]\n",
        {"lab.yaml:4", "each more than the one before"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    alert_at: [x]\n",
        {"lab.yaml:4", "expected percents"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    mail: [-x]\n", {"lab.yaml:4", "expected an address"}},
    {"budgets:\n  a:\n    usd_per_hour: 1\n    tz: Europe/Berlin\n",
        {"lab.yaml:4", "hours are those of UTC"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {labels: {a b: c}}\n",
        {"lab.yaml:4", "is not the name of a label"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {labels: {a: []}}\n",
        {"lab.yaml:4", "expected what the label says"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {teams: a}\n",
        {"lab.yaml:4", "did you mean \"team\"?"}},
#define TYPES "node_types:\n  dgx: {watts: {idle: 2000, full: 10000}}\nracks:\n"
    {"node_types:\n  a b: {watts: {idle: 1, full: 2}}\n",
        {"lab.yaml:2", "is not the name of a type of nodes"}},
    {"node_types:\n  dgx: {}\n", {"lab.yaml:2", "a type of nodes needs watts"}},
    {"node_types:\n  dgx: {watts: {idle: 2, full: 2}}\n",
        {"lab.yaml:2", "more than the 2 at rest"}},
    {"node_types:\n  dgx: {watts: {idle: -1, full: 2}}\n", {"lab.yaml:2", "idle"}},
    {TYPES "  a b: {max_kw: 40, nodes: {dgx: n1}}\n", {"lab.yaml:4", "is not the name of a rack"}},
    {TYPES "  r: {nodes: {dgx: n1}}\n", {"lab.yaml:", "a rack needs max_kw"}},
    {TYPES "  r: {max_kw: much, nodes: {dgx: n1}}\n", {"lab.yaml:4", "a rack needs max_kw"}},
    {TYPES "  r: {max_kw: 40}\n", {"lab.yaml:", "a rack needs nodes:"}},
    {TYPES "  r: {max_kw: 40, nodes: {}}\n", {"lab.yaml:", "expected nodes:"}},
    {TYPES "  r: {max_kw: 40, pools: {a b: {type: dgx, nodes: 1}}}\n",
        {"lab.yaml:4", "is not the name of a pool"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: dgx}}\n", {"lab.yaml:4", "lab"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx}}}\n",
        {"lab.yaml:4", "how many there are places for"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 0}}}\n", {"lab.yaml:4", "nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 4097}}}\n", {"lab.yaml:4", "nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {nodes: 1}}}\n", {"lab.yaml:4", "which type of nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: [dgx], nodes: 1}}}\n",
        {"lab.yaml:4", "which type of nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgy, nodes: 1}}}\n",
        {"lab.yaml:4", "is not in node_types:", "did you mean dgx?"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 1, watts: 3}}}\n",
        {"lab.yaml:4", "unknown key"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 1}}}\n  s: {max_kw: 40, pools: {lab: "
           "{type: dgx, nodes: 1}}}\n",
        {"lab.yaml:5", "pool lab is in rack r already"}},
    {TYPES "  r: {max_kw: 23, pools: {lab: {type: dgx, nodes: 8}}}\n",
        {"lab.yaml:4", "draw 16.000 kW at rest", "24.000"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgy: n1}}\n",
        {"lab.yaml:4", "is not in node_types:", "did you mean dgx?"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: [n1]}}\n", {"lab.yaml:4", "expected names of hosts"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: \"n[1-\"}}\n", {"lab.yaml:4", "nodes:"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: \"n1,n[1-2]\"}}\n", {"lab.yaml:4", "named twice"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: n1}}\n  s: {max_kw: 40, nodes: {dgx: \"n[1-2]\"}}\n",
        {"lab.yaml:5", "node n1 is in rack r already"}},
    {TYPES "  r: {max_kw: 13.999, nodes: {dgx: \"n[1-3]\"}}\n",
        {"lab.yaml:4", "draw 6.000 kW at rest", "14.000"}},
    {"pools:\n  base:\n    required_labels: [team, a b]\n",
        {"lab.yaml:3", "required_labels: expected the name of a label", "\"a b\""}},
    {"pools:\n  base: {required_labels: team}\n", {"lab.yaml:2", "required_labels"}},
    {"pools:\n  base: {required_labels: [team, {}]}\n", {"lab.yaml:2", "something else"}},
    {"\ncluster: a b\n", {"lab.yaml:2: cluster:", "\"a b\""}},
    {"cluster: [a]\n", {"lab.yaml:1: cluster:", "a list"}},
    {"cluster: a\ncluster: b\n", {"lab.yaml:2"}},
    {"- a\n", {"lab.yaml:1", "mapping"}},
    {"a: &x 1\nb: *x\n", {"lab.yaml:"}},
    {"cluster: \"unterminated\n", {"lab.yaml:"}},
    {"lease: 3 fortnights\n", {"lab.yaml:1: lease:", "3 fortnights"}},
    {"lease: 1ms\n", {"lab.yaml:1: lease:"}},
    {"lease: 0s\n", {"lab.yaml:1: lease:", "at least 1s"}},
    {"sweep: 0\n", {"lab.yaml:1: sweep:", "at least 100ms"}},
    {"busy_sweep: 0\n", {"busy_sweep:"}},
    {"price_every: 0\n", {"price_every:"}},
    {"node_certificate: 5s\n", {"node_certificate:", "at least 1m"}},
    {"api_token_lifetime: 1s\n", {"api_token_lifetime:", "at least 1m"}},
    {"log_max_per_job: much\n", {"log_max_per_job:", "none"}},
    {"log_max_per_user_day: 0\n", {"log_max_per_user_day:"}},
    {"orphan_timeout: 0\n", {"orphan_timeout:"}},
    {"retention: for ever\n", {"retention:"}},
    {"hold_in_vain: -1\n", {"hold_in_vain:"}},
    {"listen: 7443\n", {"lab.yaml:1: listen: expected HOST:PORT", "\"7443\""}},
    {"listen: :7443\n", {"listen:"}},
    {"listen: a:70000\n", {"listen:", "65535"}},
    {"listen: \"::1:7443\"\n", {"listen:", "[ADDRESS]:PORT"}},
    {"listen: \"a b:1\"\n", {"listen:"}},
    {"listen: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1\n",
        {"listen:"}},
    {"names: belay.lab\n", {"lab.yaml:1: names:", "a list"}},
    {"names:\n  - ok\n  - \"a,DNS:b\"\n", {"lab.yaml:3: names:", "a,DNS:b"}},
    {"names: [{a: b}]\n", {"names:", "not a text"}},
    {"names: [\"\"]\n", {"names:"}},
    {"names: [a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]\n", {"names:", "17 items", "16"}},
    {"server: http://plain\n", {"server:", "https://"}},
    {"server: https://\n", {"server:"}},
    {"server: 'https://a\"b'\n", {"server:"}},
    {"encryption: yes\n", {"lab.yaml:1: encryption:", "none", "required"}},
    {"key_file: lab.keys\n", {"lab.yaml:1: key_file:", "absolute"}},
    {"store: r2://bucket\n", {"store:", "gs://BUCKET", "r2://bucket"}},
    {"store: gs://bucket?region=x\n", {"lab.yaml:1: store:", "region"}},
    {"store_credentials: both\n", {"lab.yaml:1: store_credentials:", "node", "job"}},
    {"store_credentials: job\n", {"lab.yaml:1: ", "directory"}},
    {"store_credentials: job\nstore: s3://bkt\n", {"lab.yaml:1: ", "store_role is needed"}},
    {"store: s3://bkt\nstore_credentials: node\nstore_role: arn:aws:iam::1:role/x\n",
        {"lab.yaml:3: store_role:", "store_credentials: job"}},
    {"store: s3://bkt\nstore_lifetime: 1h\n",
        {"lab.yaml:2: store_lifetime:", "store_credentials: job"}},
    {"store_credentials: job\nstore: gs://bkt\nstore_lifetime: 1h\n",
        {"lab.yaml:1: ", "store_lifetime", "Google"}},
    {"store_credentials: job\nstore: s3://bkt\nstore_role: arn:aws:iam::1:role/x\nstore_sts: "
     "ftp://x\n",
        {"lab.yaml:4: store_sts:", "https://"}},
    {"store: az://account\n", {"lab.yaml:1: store:", "container", "az://ACCOUNT/CONTAINER"}},
    {"store: s3://Bucket\n", {"lab.yaml:1: store:", "Bucket"}},
    {"store: s3://bucket?regoin=x\n", {"lab.yaml:1: store:", "regoin", "region"}},
    {"store: file://relative\n", {"store:"}},
    {"store: file:///srv/50%/store\n", {"lab.yaml:1: store:", "%25"}},
    {"store: file:///srv/%00\n", {"lab.yaml:1: store:"}},
    {"state: relative\n", {"state:", "absolute", "relative"}},
    {"socket: relative\n", {"socket:", "absolute"}},
    {"state: \"a\\e[2J\"\n", {"state:", "found \"a?[2J\""}},
    {"socket: \"a\\nb\"\n", {"socket:", "found \"a?b\""}},
    {"pools:\n  \"a\\nb\": {}\n", {"lab.yaml:2: \"a?b\": \"a?b\" is not a pool's name"}},
    {"state: "
     "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/"
     "0123456789/0123456789\n",
        {"socket:", "STATE/belayd.sock", "may have 96"}},
    {"socket: "
     "/01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
     "2345\n",
        {"socket:", "97 bytes long, at most 96"}},
    {"teams: [a]\n", {"lab.yaml:1: teams:", "a mapping"}},
    {"teams:\n  \"a b\": {}\n", {"lab.yaml:2", "not a team's name"}},
    {"teams:\n  a: {share: 1}\n", {"lab.yaml:2", "share", "shares"}},
    {"teams:\n  a: {shares: 0}\n", {"lab.yaml:2", "shares"}},
    {"teams:\n  a: {shares: 1, users: ann}\n", {"lab.yaml:2", "a list of names"}},
    {"teams:\n  a: {max_gpu: 1}\n", {"lab.yaml:2", "max_gpu", "max_gpus"}},
    {"teams:\n  a: {max_running: -1}\n", {"lab.yaml:2", "max_running"}},
    {"teams:\n  a: {max_usd_per_hour: much}\n", {"lab.yaml:2", "max_usd_per_hour"}},
    {"teams:\n  a:\n    users:\n      ann: {share: 1}\n", {"lab.yaml:4", "share", "shares"}},
    {"teams:\n  a:\n    users:\n      ann: {max_submitted: some}\n",
        {"lab.yaml:4", "max_submitted"}},
    {"teams:\n  a:\n    each_user: 5\n", {"lab.yaml:3", "each_user"}},
    {"teams:\n  a: {quota: -1}\n", {"lab.yaml:2", "quota"}},
    {"teams:\n  a: {quota: 4, borrow: maybe}\n", {"lab.yaml:2", "borrow", "true"}},
    {"teams:\n  a: {borrow: false}\n", {"lab.yaml:2", "borrow", "give it a quota"}},
    {"each_user: {shares: 1}\n", {"lab.yaml:1", "shares"}},
    {"teams:\n  a:\n    users: [ann, [b]]\n", {"lab.yaml:3", "a user's name"}},
    {"teams:\n  a:\n    users: [ann, ann]\n", {"lab.yaml:3", "listed twice"}},
    {"teams:\n  a:\n    users:\n      ann: many\n", {"lab.yaml:4", "many"}},
    {"teams:\n  a:\n    users:\n      ann: 1000001\n", {"lab.yaml:4", "1000000"}},
    {"priority: 3\n", {"lab.yaml:1: priority:"}},
    {"priority:\n  half_life: 1s\n", {"lab.yaml:2: half_life:", "1m"}},
    {"priority:\n  half_life: 91d\n", {"lab.yaml:2: half_life:"}},
    {"priority:\n  fair_share: -1d\n", {"lab.yaml:2: fair_share:"}},
    {"priority:\n  age_max: soon\n", {"lab.yaml:2: age_max:", "soon"}},
    {"priority:\n  size: 4000d\n", {"lab.yaml:2: size:", "10 years"}},
    {"priority:\n  cpus_per_gpu: 1.2345\n", {"lab.yaml:2: cpus_per_gpu:", "1.2345"}},
    {"priority:\n  cpus_per_gib: 1001\n", {"lab.yaml:2: cpus_per_gib:"}},
    {"priority:\n  cpus_per_gib: .5\n", {"lab.yaml:2: cpus_per_gib:"}},
    {"priority:\n  default_team: red\n", {"lab.yaml:2: default_team:", "no team \"red\""}},
    {"priority:\n  reserve: -1\n", {"lab.yaml:2: reserve:"}},
    {"priority:\n  halflife: 1d\n", {"lab.yaml:2", "halflife", "half_life"}},
    {"windows:\n  w: {days: mon-fri, from: \"20:00\"}\n", {"lab.yaml:2", "to"}},
    {"windows:\n  w: {from: \"8pm\", to: \"07:00\"}\n", {"lab.yaml:2", "time of the day", "8pm"}},
    {"windows:\n  w: {days: funday, from: \"20:00\", to: \"07:00\"}\n",
        {"lab.yaml:2", "mon-fri", "funday"}},
    {"windows:\n  w: {from: \"20:00\", to: \"07:00\", tz: ../x}\n", {"lab.yaml:2", "time zone"}},
    {"windows:\n  w: {from: \"20:00\", to: \"07:00\", zone: UTC}\n", {"lab.yaml:2", "zone"}},
    {"windows:\n  a/b: {from: \"20:00\", to: \"07:00\"}\n", {"lab.yaml:2", "name of a window"}},
    {"retries: {failed: many}\n", {"lab.yaml:1", "a number or unlimited"}},
    {"retries: {failed: 1001}\n", {"lab.yaml:1", "1001"}},
    {"retries: {crashed: 1}\n", {"lab.yaml:1", "crashed"}},
    {"retries_max: 3\n", {"lab.yaml:1", "retries_max"}},
    {"telemetry: {minutes: 1m}\n", {"lab.yaml:1", "expected a time from 3600s"}},
    {"telemetry: {diagnose: {blocked: 0}}\n", {"lab.yaml:1", "blocked"}},
    {"telemetry: {diagnose: {over: 2d}}\n", {"lab.yaml:1", "expected a time from 1s"}},
    {"telemetry: {diagnose: {trhead: 7}}\n", {"lab.yaml:1", "thread"}},
    {"telemetry: {advise: {idle_memory: 100}}\n", {"lab.yaml:1", "idle_memory"}},
    {"telemetry: {advise: {idle: 1s}}\n", {"lab.yaml:1", "idle"}},
    {"telemetry: {days: 1d}\n", {"lab.yaml:1", "days"}},
    {"deadlines: {policy: planed}\n", {"lab.yaml:1", "planned"}},
    {"deadlines: {look: 1ms}\n", {"lab.yaml:1", "expected a time from 10ms"}},
    {"deadlines: {look: 20m, step: 10m}\n", {"lab.yaml:1", "not shorter than look"}},
    {"deadlines: {work_margin: 1000}\n", {"lab.yaml:1", "work_margin"}},
    {"deadlines: {cap: 1001}\n", {"lab.yaml:1", "cap"}},
    {"pools:\n  b: {retries: {failed: -1}}\n", {"lab.yaml:2", "-1"}},
    {"qos:\n  a/b: {}\n", {"lab.yaml:2", "name of a QOS"}},
    {"qos:\n  a: {boost: much}\n", {"lab.yaml:2", "much"}},
    {"qos:\n  a: {preempts: b}\n  b: {}\n", {"lab.yaml:2", "preempts"}},
    {"qos:\n  a: {preempts: [b, c]}\n  b: {}\n", {"lab.yaml:2", "name of a QOS of this file", "c"}},
    {"qos:\n  a: {preempts: [[b]]}\n  b: {}\n", {"lab.yaml:2", "found something else"}},
    {"qos:\n  a: {preempts: [a]}\n", {"lab.yaml:2", "a preempts a: no QOS may preempt itself"}},
    {"qos:\n  a: {preempts: [d, b]}\n  b: {preempts: [c]}\n  c: {preempts: [d, a]}\n  d: {}\n",
        {"lab.yaml:2", "a preempts b, which preempts c, which preempts a: no QOS may preempt "
                       "itself, directly or through others"}},
    {"qos:\n  a: {bost: 1d}\n", {"lab.yaml:2", "boost"}},
    {"pools: [a]\n", {"pools:", "a mapping"}},
    {"pools:\n  b: 4\n", {"lab.yaml:2: b:", "a mapping"}},
    {"pools:\n  \"b ad\": {}\n", {"lab.yaml:2", "not a pool's name"}},
    {"pools:\n  b: {kind: elastik}\n", {"kind:", "elastik", "nearest: elastic"}},
    {"pools:\n  b: {kind: elastic}\n", {"lab.yaml:2: b:", "needs a provider"}},
    {"pools:\n  b: {provider: awz}\n", {"provider:", "aws"}},
    {"pools:\n  b: {kind: reserved, provider: aws}\n", {"provider:", "a reserved pool has none"}},
    {"pools:\n  b: {usd_per_hour: cheap}\n", {"usd_per_hour:", "cheap"}},
    {"pools:\n  b: {usd_per_hour: -1}\n", {"usd_per_hour:"}},
    {"pools:\n  b: {max_nodes: 4}\n", {"unknown key \"max_nodes\""}},
    {"pools:\n  b: {idle_timeout: 1m}\n", {"unknown key", "idle_timeout"}},
    {"pools:\n  b:\n    provider: aws\n", {"lab.yaml:2: b:", "\"region\" is missing"}},
    {"pools:\n  b:\n    provider: aws\n    foo: 1\n", {"lab.yaml:4: unknown key \"foo\""}},
    {"pools:\n  b: {kind: elastic, foo: 1}\n", {"lab.yaml:2: unknown key \"foo\""}},
    {"pools:\n  b: {kind: elastic, region: r, hosts: [a], project: p, ssh_key: k, cpus: 1}\n",
        {"needs a provider"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], foo: 1, types: [{type: x1, "
     "memory: 1G}]}\n",
        {"unknown key \"foo\""}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, foo: 1}]}\n",
        {"unknown key \"foo\""}},
    {"windows:\n  n: {from: \"20:00\"}\nfoo: 1\n", {"lab.yaml:3: unknown key \"foo\""}},
    {"windows:\n  n: {from: \"20:00\", foo: 1}\n", {"unknown key \"foo\""}},
    {"webhooks:\n  a: {events: [end]}\nfoo: 1\n", {"lab.yaml:3: unknown key \"foo\""}},
    {"budgets:\n  a: {foo: 1}\n", {"unknown key \"foo\""}},
    {"budgets:\n  a: {match: {user: u}, window: w, at_limit: alert, alert_at: [1], mail: [a], tz: "
     "UTC}\n",
        {"a budget needs usd_per_hour"}},
    {"node_types:\n  dgx: {foo: 1}\n", {"unknown key \"foo\""}},
    {"racks:\n  r: {nodes: {}, pools: {}}\n", {"needs max_kw"}},
    {"racks:\n  r: {foo: 1}\n", {"unknown key \"foo\""}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, memory: 1G, "
     "cpus: 2}]}\n",
        {"usd_per_hour"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{memory: 1G}]}\n",
        {"type"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, memory: "
     "big, cpus: 2, usd_per_hour: 1}]}\n",
        {"memory"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: g5.xlarge, gpu: "
     "1}]}\n",
        {"gpus"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: g5.xlarge}, "
     "g5.xlarge]}\n",
        {"twice"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [[g5.xlarge]]}\n",
        {"types"}},
    {"pools:\n  b: {provider: aws, region: r}\n", {"image"}},
    {"pools:\n  b: {provider: aws, region: r, image: i}\n", {"zones and types"}},
    {"providers: [aws]\n", {"lab.yaml:1: providers:", "a mapping"}},
    {"providers:\n  awz: {}\n", {"lab.yaml:2", "did you mean \"aws\"?"}},
    {"providers:\n  aws: ami-1\n", {"lab.yaml:2: aws:", "a mapping"}},
    {"store_place: us-east-1\n", {"lab.yaml:1: store_place:", "aws/us-east-1"}},
    {"store_place: awz/us-east-1\n", {"store_place:", "\"awz/us-east-1\""}},
    {"store_place: aws/\n", {"store_place:", "provider and region"}},
    {"store_place: /us-east-1\n", {"store_place:", "provider and region"}},
    {"store_place: averyveryverylongprovider/x\n", {"store_place:", "provider and region"}},
    {"store_place: \"aws/us east\"\n", {"store_place:", "provider and region"}},
    {"store_usd_per_gib_month: -1\n", {"store_usd_per_gib_month:"}},
    {"store_usd_per_gib_month: 1000001\n", {"store_usd_per_gib_month:", "at most"}},
    {"store_usd_per_gib_month: cheap\n", {"store_usd_per_gib_month:"}},
    {"volume_usd_per_gib_month: 1\n", {"volume_usd_per_gib_month:"}},
    {"volume_usd_per_gib_month: {gp3: 1}\n", {"gp3"}},
    {"volume_usd_per_gib_month: {aws: 1}\n", {"aws:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: cheap}}\n", {"gp3:", "what a GiB costs a month"}},
    {"volume_usd_per_gib_month: {aws: {gp3: -1}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: 1000001}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: [1]}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {\"a type\": 1}}\n",
        {"expected the provider's word", "a type"}},
    {"telemetry: {forgotten_for: 10ms}\n", {"forgotten_for"}},
    {"telemetry: {forgotten_for: soon}\n", {"forgotten_for"}},
    {"pools:\n  b: {upload_usd_per_gib: -1}\n", {"upload_usd_per_gib:"}},
    {"pools:\n  b: {egress_usd_per_gib: much}\n", {"egress_usd_per_gib:"}},
    {"providers:\n  aws:\n    provider: gcp\n", {"lab.yaml:3: provider:", "each pool"}},
    {"providers:\n  aws: {kind: elastic}\n", {"lab.yaml:2: kind:", "each pool"}},
    {"providers:\n  aws:\n    regoin: r\npools:\n  b: {provider: aws, region: r}\n",
        {"lab.yaml:3: unknown key \"regoin\""}},
    {"providers:\n  aws:\n    regoin: r\n" POOL, {"lab.yaml:3", "did you mean \"region\"?"}},
    {"providers:\n  aws: {region: r}\npools:\n  b: {provider: [aws]}\n", {"lab.yaml:4: provider:"}},
    {"providers:\n  aws: {region: r}\npools:\n  b: aws\n", {"lab.yaml:4: b:", "a mapping"}},
    {HOSTS_POOL "    cpus: 8\n", {"\"memory\" is missing"}},
    {HOSTS_POOL "    memory: 8G\n", {"needs cpus"}},
    {HOSTS_POOL "    cpus: 8\n    memory: much\n", {"memory:", "much"}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    max_nodes: 4\n", {"max_nodes:", "at most 3"}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    region: here\n", {"unknown key \"region\""}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    zones: [z]\n", {"unknown key \"zones\""}},
    {"pools:\n  b: {provider: static, user: u, key: /k, known_hosts: /h}\n",
        {"hosts", "needs the machines"}},
    {"pools:\n  b: {provider: static, hosts: [\"a b\"]}\n", {"hosts:", "without blanks"}},
    {LAMBDA_POOL, {"needs types"}},
    {LAMBDA_POOL "    types: [gpu_1x_a11]\n", {"did you mean \"gpu_1x_a10\"?"}},
    {LAMBDA_POOL "    types: [gpu_1x_a10]\n    zones: [us-west-2]\n", {"unknown key \"zones\""}},
    {LAMBDA_POOL "    types: [gpu_1x_a10]\n    markets: [spot]\n", {"unknown key \"markets\""}},
    {"pools:\n  b: {provider: lambda, region: r}\n", {"ssh_key", "needs the name of an SSH key"}},
    {POOL "    max_nodes: 10001\n", {"lab.yaml:8: max_nodes:", "10000"}},
    {POOL "    markets: [spott]\n", {"markets:", "did you mean \"spot\"?"}},
    {POOL "    markets: [spot, spot]\n", {"lab.yaml:8: markets:", "\"spot\" is listed twice"}},
    {POOL "    endpoint: ftp://x\n", {"endpoint:", "http"}},
    {POOL "    metadata: https://x\n", {"metadata:", "http://"}},
    {POOL "    boot_timeout: 0\n", {"boot_timeout:"}},
    {POOL "    refusal_backoff: 5ms\n", {"refusal_backoff:", "at least 10ms"}},
    {POOL "    disk_gib: 65537\n", {"disk_gib:"}},
    {POOL "    launches_per_minute: 0\n", {"launches_per_minute:"}},
    {POOL "    regoin: x\n", {"lab.yaml:8", "did you mean \"region\"?"}},
    {GCP_POOL "[n1-standard-8+t5]\n", {"lab.yaml:9: types:", "\"t5\"", "(nearest: t4)"}},
    {GCP_POOL "[n1-standard-12+t4]\n", {"did you mean \"n1-standard-16\"?"}},
    {GCP_POOL "[n1-standard-16+v100]\n", {"12 at most"}},
    {GCP_POOL "[n2-standard-8+t4]\n", {"only N1"}},
    {GCP_POOL "[{type: n1-standard-8+t5, cpus: 8, memory: 30G, usd_per_hour: 1}]\n",
        {"type:", "nearest: t4"}},
    {GCP_POOL "[{type: \"n1 8+t4\", cpus: 8, memory: 30G, usd_per_hour: 1}]\n",
        {"name of an instance type"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x+t4, memory: "
     "1G, cpus: 2, usd_per_hour: 1}]}\n",
        {"name of an instance type"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [z]\n    types: "
     "[g5.xlargo]\n",
        {"lab.yaml:7: types:", "\"g5.xlargo\" is not known", "did you mean \"g5.xlarge\"?"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [z, z]\n    types: "
     "[g5.xlarge]\n",
        {"lab.yaml:6: zones:", "listed twice"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [\"z z\"]\n    "
     "types: [g5.xlarge]\n",
        {"zones:", "not a name"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [[z]]\n    types: "
     "[g5.xlarge]\n",
        {"zones:", "expected a word"}},
};

/* Where the store lies says what it costs to read and write it from each pool, unless a pool says
 * so itself. */
static void what_goes_between_places_has_list_prices(void **state)
{
    (void)state;
    static const char text[] =
        "store: s3://lab/belay\n"
        "store_place: aws/us-east-1\n"
        "telemetry: {forgotten_for: 7d}\n"
        "pools:\n"
        "  rack: {egress_usd_per_gib: 0.09}\n"
        "  near: {provider: aws, region: us-east-1, image: i, zones: [z], types: [g5.xlarge]}\n"
        "  next: {provider: aws, region: us-west-2, image: i, zones: [z], types: [g5.xlarge]}\n"
        "  far:\n"
        "    provider: gcp\n"
        "    region: us-central1\n"
        "    project: p\n"
        "    image: i\n"
        "    zones: [z]\n"
        "    types: [n1-standard-8]\n"
        "  told: {provider: aws, region: us-west-2, image: i, zones: [z], types: [g5.xlarge], "
        "egress_usd_per_gib: 0.01, upload_usd_per_gib: 0}\n";
    static const int64_t want[][2] = {
        {90000, 0}, {0, 0}, {20000, 20000}, {90000, 120000}, {10000, 0}};
    struct config c = parse(text), more;
    struct err e;
    assert_string_equal(c.store_provider, "aws");
    assert_string_equal(c.store_region, "us-east-1");
    assert_int_equal(c.store_uusd_gib_month, 23000);
    assert_int_equal(c.telemetry.forgotten_ms, 7LL * 86400000);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(c.pools[i].row.egress_uusd_gib, want[i][0]);
        assert_int_equal(c.pools[i].row.upload_uusd_gib, want[i][1]);
    }
    static const char pools[] = "pools:\n  next: {provider: aws, region: eu-west-1, image: i, "
                                "zones: [z], types: [g5.xlarge]}\n";
    assert_int_equal(config_parse_pools("pools.yaml", pools, strlen(pools), &c, &more, &e), 0);
    assert_int_equal(more.pools[0].row.egress_uusd_gib, 20000);
    config_deinit(&more);
    config_deinit(&c);
}

/* Only of providers whose prices are known. */
static void an_input_lies_in_a_known_place(void **state)
{
    (void)state;
    static const char *const bad[] = {"here/x", "lambda/us-west-1", "aws", "aws/", "aws/a b", "/x",
        "", "Store", "a-very-long-provider/x"};
    struct input in = {.provider = "gcp", .region = "r", .bytes = 7};
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(place_read_input(bad[i], &in, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "aws/REGION"));
        assert_string_equal(in.provider, "gcp");
    }
    assert_int_equal(place_read_input("azure/eastus", &in, &e), 0);
    assert_string_equal(in.provider, "azure");
    assert_string_equal(in.region, "eastus");
    assert_int_equal(place_read_input("store", &in, &e), 0);
    assert_string_equal(in.provider, "");
    assert_string_equal(in.region, "");
    assert_int_equal(in.bytes, 7);
}

static void a_store_costs_what_is_said_or_its_list_price(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t uusd;
    } stores[] = {{"store: file:///srv/b\n", 0}, {"store: s3://lab/p\n", 23000},
        {"store: gs://lab/p\n", 20000}, {"store: az://account/lab/p\n", 18000},
        {"store: s3://lab/p\nstore_usd_per_gib_month: 0.0125\n", 12500},
        {"store_usd_per_gib_month: 0.05\n", 50000}};
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        struct config c = parse(stores[i].text);
        assert_int_equal(c.store_uusd_gib_month, stores[i].uusd);
        assert_int_equal(c.telemetry.forgotten_ms, 30LL * 86400000);
        assert_string_equal(c.store_provider, "");
        config_deinit(&c);
    }
}

static void volumes_have_prices_by_provider_and_type(void **state)
{
    struct config c = parse(
        "volume_usd_per_gib_month:\n  aws: {gp3: 0.088, io2: 0}\n  gcp: {pd-balanced: '0.11'}\n");
    char text[4096] = "volume_usd_per_gib_month: {aws: {";
    struct err e;
    (void)state;
    assert_int_equal(c.n_volume_prices, 3);
    assert_string_equal(c.volume_prices[0].provider, "aws");
    assert_string_equal(c.volume_prices[0].type, "gp3");
    assert_int_equal(c.volume_prices[0].uusd_gib_month, 88000);
    assert_int_equal(c.volume_prices[1].uusd_gib_month, 0);
    assert_string_equal(c.volume_prices[2].provider, "gcp");
    assert_int_equal(c.volume_prices[2].uusd_gib_month, 110000);
    config_deinit(&c);
    for (int i = 0; i <= VOLUME_PRICES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "t%d: 1,", i);
    strcat(text, "}}\n");
    assert_int_equal(config_parse("lab.yaml", text, strlen(text), NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most 64 prices"));
}

static void what_is_malformed_is_refused_with_its_line_and_the_nearest_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct refused *r = &refused[i];
        struct config c;
        struct err e = {0};
        int rc = config_parse("lab.yaml", r->text, strlen(r->text), NULL, &c, &e);
        if (rc != ERR_INVALID)
            fail_msg("taken, or refused as %d: %s", rc, r->text);
        for (size_t k = 0; k < 3 && r->expected[k]; k++)
            if (!strstr(e.text, r->expected[k]))
                fail_msg("\"%s\" is not in \"%s\", for\n%s", r->expected[k], e.text, r->text);
    }
}

static void too_many_pools_and_offers_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    struct config c;
    struct err e;
    buf_adds(&text, "pools:\n");
    for (int i = 0; i <= CONFIG_POOLS_MAX; i++)
        buf_printf(&text, "  p%d: {}\n", i);
    assert_int_equal(config_parse("f", text.data, text.len, NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most 64 pools, found 65"));

    buf_clear(&text);
    buf_adds(&text, "pools:\n");
    for (int i = 0; i < CONFIG_POOLS_MAX; i++) {
        buf_printf(&text,
            "  p%d: {provider: aws, region: r, image: i, types: [g5.xlarge, g6.xlarge], zones: [",
            i);
        for (int z = 0; z < 32; z++)
            buf_printf(&text, "z%d,", z);
        buf_adds(&text, "]}\n");
    }
    assert_int_equal(config_parse("f", text.data, text.len, NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 4096 offers"));
    assert_non_null(strstr(e.text, "f:34:")); /* 32 pools of 128 fit */
    buf_deinit(&text);
}

/* Cut anywhere, a file gives a configuration or an error, and nothing else. */
static void any_prefix_of_a_file_is_read_or_refused(void **state)
{
    (void)state;
    for (size_t n = 0; n <= strlen(everything); n++) {
        struct config c;
        struct err e = {0};
        int rc = config_parse("f", everything, n, NULL, &c, &e);
        if (rc == 0)
            config_deinit(&c);
        else
            assert_true(rc == ERR_INVALID && e.kind == ERR_INVALID && e.text[0]);
    }
}

static void check_credentials(const char *text, bool of_jobs, const char *lacks)
{
    struct config c = parse(text);
    assert_int_equal(c.job_credentials, of_jobs);
    if (lacks)
        assert_non_null(strstr(c.why_node_credentials ? c.why_node_credentials : "", lacks));
    else
        assert_null(c.why_node_credentials);
    config_deinit(&c);
}

static void jobs_have_credentials_of_their_own_where_belayd_can_make_them(void **state)
{
    (void)state;
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("AZURE_CLIENT_ID");
    check_credentials("cluster: lab\n", false, NULL);
    check_credentials("store: s3://bkt\n", false, "store_role");
    check_credentials("store: s3://bkt\nstore_credentials: node\n", false, NULL);
    check_credentials("store: s3://bkt\nstore_role: arn:aws:iam::1:role/x\n", true, NULL);
    check_credentials("store: gs://bkt\n", false, "GOOGLE_APPLICATION_CREDENTIALS");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/k.json", 1);
    check_credentials("store: gs://bkt\n", true, NULL);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    check_credentials("store: az://acc1/cont\n", false, "AZURE_CLIENT_ID");
    setenv("AZURE_CLIENT_ID", "i", 1);
    setenv("AZURE_CLIENT_SECRET", "s", 1);
    check_credentials("store: az://acc1/cont\n", true, NULL);
    unsetenv("AZURE_CLIENT_ID");
    unsetenv("AZURE_CLIENT_SECRET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_read_or_the_default),
        cmocka_unit_test(limits_are_read_along_the_path),
        cmocka_unit_test(nothing_given_means_one_reserved_pool_and_the_documented_defaults),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(jobs_have_credentials_of_their_own_where_belayd_can_make_them),
        cmocka_unit_test(every_key_of_a_pool_is_read),
        cmocka_unit_test(offers_are_markets_by_zones_by_types_and_the_first_market_has_rank_0),
        cmocka_unit_test(a_type_that_the_catalogue_does_not_have_says_what_it_is),
        cmocka_unit_test(the_state_directory_of_the_command_line_wins),
        cmocka_unit_test(listen_takes_ipv6_in_brackets),
        cmocka_unit_test(an_elastic_pool_without_markets_tries_spot_then_on_demand),
        cmocka_unit_test(a_machine_with_gpus_attached_is_a_type),
        cmocka_unit_test(where_a_region_has_no_zones_there_is_one_offer_a_type),
        cmocka_unit_test(what_a_pool_does_not_say_its_provider_s_entry_says),
        cmocka_unit_test(pools_by_command_have_providers_of_their_own),
        cmocka_unit_test(what_is_missing_makes_no_known_key_unknown),
        cmocka_unit_test(a_pool_of_hosts_has_one_owned_offer),
        cmocka_unit_test(what_goes_between_places_has_list_prices),
        cmocka_unit_test(an_input_lies_in_a_known_place),
        cmocka_unit_test(a_store_costs_what_is_said_or_its_list_price),
        cmocka_unit_test(volumes_have_prices_by_provider_and_type),
        cmocka_unit_test(what_is_malformed_is_refused_with_its_line_and_the_nearest_name),
        cmocka_unit_test(budgets_are_read),
        cmocka_unit_test(racks_are_read),
        cmocka_unit_test(a_pool_says_which_labels_its_jobs_have),
        cmocka_unit_test(too_many_pools_and_offers_are_refused),
        cmocka_unit_test(any_prefix_of_a_file_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
