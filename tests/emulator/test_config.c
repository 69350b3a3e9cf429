/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/config.h"
#include "base/str.h"
#include "emulator/ec2/front.h"
#include "tests/emulator/world.h"
#include <string.h>

#define KEYS "keys: [{access_key: AKID, secret_key: SECRET}]\n"
#define POOL "pools: [{zone: us-east-1a, type: g6.xlarge}]\n"

static int parse(const char *text, struct emulator_config *c, struct err *e)
{
    *e = (struct err){0};
    return config_parse("dir/emulator.yaml", text, strlen(text), c, e);
}

static void the_least_is_enough(void **state)
{
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(KEYS POOL, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.providers[0].region.name, "us-east-1");
    assert_int_equal(c.providers[0].n_pools, 1);
    assert_int_equal(c.providers[0].pools[0].capacity[CLOUD_SPOT], MARKET_UNLIMITED);
    assert_true(c.providers[0].pools[0].price_uusd_h[CLOUD_ON_DEMAND] >
                c.providers[0].pools[0].price_uusd_h[CLOUD_SPOT]);
    assert_true(c.providers[0].pools[0].price_uusd_h[CLOUD_SPOT] > 0);
    assert_int_equal(c.providers[0].region.notice_ms, 120000);
    assert_string_equal(c.providers[0].metadata_host, "127.0.0.1");
    const struct ec2_options *o = c.providers[0].options;
    assert_null(o->images);
    config_deinit(&c);
}

static void everything_can_be_said(void **state)
{
    static const char text[] = KEYS
        "region: eu-west-1\naccount: '999'\nhost: '::1'\nec2_port: 1\ncontrol_port: 2\ndir: "
        "scratch\n"
        "agent_path: /opt/belay/bin\nseed: 5\nlaunch_delay_ms: 6\nboot_delay_ms: "
        "10\nstart_delay_ms: 7\nshutdown_ms: 20\nnotice_s: 3\n"
        "consistency_delay_ms: 40\nsurplus: random\nimages: [ami-1, ami-2]\nprofiles: [agent]\n"
        "subnets: {subnet-a: eu-west-1a}\nmetadata: {host: 169.254.169.254, port: 80, role_ttl: "
        "10m}\n"
        "pools:\n"
        "  - zone: [eu-west-1a, eu-west-1b]\n    type: [a.b, c.d]\n"
        "    spot: {capacity: 4, usd_per_hour: 0.25}\n    on_demand: {capacity: 0, usd_per_hour: "
        "1}\n"
        "image_volume_gib: 30\n"
        "volumes:\n"
        "  - {zone: eu-west-1a}\n"
        "  - {zone: eu-west-1b, name: data, type: io2, gib: 500, age: 40d, tags: {Name: data, "
        "'a:b': c}}\n"
        "events:\n"
        "  - {at: 2m, reclaim: {instance: random, notice_s: 5}}\n"
        "  - {at: 10, price: {zone: eu-west-1a, type: a.b, usd_per_hour: 0.5}}\n"
        "  - {at: 11, price: {zone: eu-west-1a, type: a.b, usd_per_hour: '2'}}\n";
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(text, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.dir, "dir/scratch");
    assert_int_equal(c.providers[0].region.launch_delay_ms, 6);
    assert_int_equal(c.providers[0].region.start_delay_ms, 7);
    assert_true(str_starts(c.path, "/opt/belay/bin:/"));
    assert_int_equal(c.providers[0].n_pools, 4);
    assert_string_equal(c.providers[0].pools[3].zone, "eu-west-1b");
    assert_string_equal(c.providers[0].pools[3].type, "c.d");
    assert_int_equal(c.providers[0].pools[3].price_uusd_h[CLOUD_SPOT], 250000);
    assert_int_equal(c.providers[0].pools[3].capacity[CLOUD_ON_DEMAND], 0);
    const struct ec2_options *o = c.providers[0].options;
    assert_string_equal(o->images[1], "ami-2");
    assert_string_equal(o->subnets[0].zone, "eu-west-1a");
    assert_int_equal(o->image_volume_gib, 30);
    const struct region_volume *v = c.providers[0].region.volumes;
    assert_int_equal(c.providers[0].region.n_volumes, 2);
    assert_string_equal(v[0].spec.type, "gp3");
    assert_int_equal(v[0].spec.gib, 8);
    assert_string_equal(v[1].zone, "eu-west-1b");
    assert_int_equal(v[1].age_ms, 40LL * 86400000);
    assert_string_equal(tags_get(&v[1].spec.tags, "a:b"), "c");
    assert_int_equal(c.providers[0].role_ttl_ms, 600000);
    assert_int_equal(c.providers[0].region.n_script, 3);
    assert_int_equal(c.providers[0].region.script[0].at_ms, 10000); /* sorted */
    assert_int_equal(c.providers[0].region.script[0].event.price_uusd_h, 500000);
    /* quoted: a text */
    assert_int_equal(c.providers[0].region.script[1].event.price_uusd_h, 2000000);
    assert_int_equal(c.providers[0].region.script[2].event.notice_ms, 5000);
    assert_int_equal(c.providers[0].region.surplus, SURPLUS_RANDOM);
    config_deinit(&c);
}

static void each_provider_has_a_section(void **state)
{
    static const char text[] =
        "providers:\n  aws:\n    port: 1\n    quota: 7\n    " KEYS "    " POOL "control_port: 2\n";
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(text, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(c.n_providers, 1);
    assert_int_equal(c.providers[0].port, 1);
    assert_int_equal(c.providers[0].region.quota, 7);
    assert_string_equal(c.providers[0].region.provider, "aws");
    assert_int_equal(c.control_port, 2);
    config_deinit(&c);
}

#define AZURE                                                                                      \
    "providers:\n  azure:\n    pools: [{zone: '1', type: Standard_D8s_v5, spot: {usd_per_hour: "   \
    "1}, "                                                                                         \
    "on_demand: {usd_per_hour: 2}}]\n"
#define CLIENTS "    clients: [{client_id: a, client_secret: b}]\n"

static void azure_has_keys_of_its_own(void **state)
{
    static const char text[] = AZURE CLIENTS "    subscription: s\n    tenant: t\n    token_ttl: "
                                             "10m\n    resource_groups: [lab]\n    images: "
                                             "['a:b:c:latest']\n"
                                             "    subnets: [/subscriptions/x]\n    spot_cores: "
                                             "64\n    page: 3\n    retry_after_s: 0\n    "
                                             "nic_reserved_s: 180\n";
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(text, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.providers[0].region.name, "eastus");
    assert_string_equal(c.providers[0].region.provider, "azure");
    assert_string_equal(c.providers[0].region.account, "s");
    assert_int_equal(c.providers[0].region.notice_ms, 30000);
    config_deinit(&c);
}

#define LAMBDA "providers:\n  lambda:\n    pools: [{zone: us-west-2, type: gpu_1x_a10}]\n"

static void lambda_has_keys_of_its_own_and_no_spot_instances(void **state)
{
    static const char text[] = LAMBDA
        "    api_keys: [a, secret_b.c]\n    ssh_keys: [ops]\n    images: [stack]\n"
        "    file_systems: {data: us-west-2}\n    request_every_ms: 0\n    launch_every_ms: 1\n";
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(text, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.providers[0].region.provider, "lambda");
    assert_int_equal(c.providers[0].region.notice_ms, 0);
    assert_int_equal(c.providers[0].pools[0].capacity[CLOUD_SPOT], 0);
    assert_int_equal(c.providers[0].pools[0].capacity[CLOUD_ON_DEMAND], MARKET_UNLIMITED);
    assert_int_equal(c.providers[0].pools[0].price_uusd_h[CLOUD_ON_DEMAND], 1290000);
    config_deinit(&c);
}

#define GCP                                                                                        \
    "providers:\n  gcp:\n    service_accounts: [{email: a@b.example}]\n    pools: [{zone: "        \
    "us-central1-a, "                                                                              \
    "type: "

static void google_attaches_gpus(void **state)
{
    struct emulator_config c;
    struct err e;
    (void)state;
    if (parse(GCP "n1-standard-8+t4}]\n    gpu_quotas: {GPUS_ALL_REGIONS: 0, "
                  "PREEMPTIBLE_NVIDIA_T4_GPUS: 2}\n",
            &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.providers[0].pools[0].type, "n1-standard-8+t4");
    assert_int_equal(c.providers[0].pools[0].price_uusd_h[CLOUD_SPOT], 244500);
    assert_int_equal(c.providers[0].pools[0].price_uusd_h[CLOUD_ON_DEMAND], 730000);
    config_deinit(&c);
}

static void mistakes_are_named_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {POOL, "keys"},
        {KEYS, "pools"},
        {KEYS POOL "regoin: x\n", "emulator.yaml:3"},
        {KEYS POOL "regoin: x\n", "region"},
        {KEYS "pools: []\n", "pools"},
        {KEYS "pools: [{zone: a}]\n", "emulator.yaml:2"},
        {KEYS "pools: [{zone: a, type: no.such}]\n", "emulator.yaml:2: usd_per_hour"},
        {KEYS "pools: [{zone: a, type: g6.xlarge, sopt: {}}]\n", "spot"},
        {KEYS "pools: [{zone: a, type: g6.xlarge, spot: {capacity: -1}}]\n", "capacity"},
        {KEYS "pools: [{zone: [a, a], type: g6.xlarge}]\n", "twice"},
        {KEYS "pools: [{zone: {x: y}, type: g6.xlarge}]\n", "a name"},
        {KEYS "pools: [{zone: a, type: g6.xlarge, spot: {trace: none.json}}]\n", "dir/none.json"},
        {"keys: [{access_key: AKID}]\n" POOL, "secret_key"},
        {KEYS POOL "surplus: oldest\n", "newest"},
        {KEYS POOL "events: [{reclaim: {instance: random}}]\n", "at"},
        {KEYS POOL "events: [{at: soon, reclaim: {instance: random}}]\n", "at"},
        {KEYS POOL "events:\n  - {at: 1s, reclaim: {}}\n", "emulator.yaml:4"},
        {KEYS POOL "events: [3]\n", "mapping"},
        {KEYS POOL "metadata: {prot: 80}\n", "port"},
        {KEYS POOL "metadata: 80\n", "metadata"},
        {KEYS POOL "subnets: {a: [b]}\n", "name"},
        {KEYS POOL "images: ami-1\n", "images"},
        {KEYS POOL "image_volume_gib: 0\n", "image_volume_gib"},
        {KEYS POOL "volumes: {}\n", "volumes"},
        {KEYS POOL "volumes: [{gib: 3}]\n", "zone: "},
        {KEYS POOL "volumes: [{zone: us-east-1c}]\n", "zone: expected the zone of a pool"},
        {KEYS POOL "volumes: [{zone: us-east-1a, gib: 0}]\n", "gib"},
        {KEYS POOL "volumes: [{zone: us-east-1a, age: old}]\n", "age"},
        {KEYS POOL "volumes: [{zone: us-east-1a, colour: red}]\n", "colour"},
        {KEYS POOL "volumes:\n  - {zone: us-east-1a, tags: {a: [b]}}\n",
            "emulator.yaml:4: a: expected at most 50 tags"},
        {LAMBDA "    api_keys: [a]\n    volumes: [{zone: a}]\n",
            "volumes of lambda are not emulated"},
        {"keys: {\n", "emulator.yaml"},
        {"providers: {}\n", "1 to"},
        {AZURE, "clients"},
        {AZURE "    clients: [{client_id: a}]\n", "client_secret"},
        {AZURE CLIENTS "    images: ['']\n", "a text of 1"},
        {AZURE CLIENTS "    images: [[a]]\n", "a text of 1"},
        {AZURE CLIENTS "    page: 0\n", "page"},
        {AZURE CLIENTS "    keys: []\n", "keys"},
        {GCP "n1-standard-8+t5}]\n", "(nearest: t4)"},
        {GCP "n2-standard-8+t4}]\n", "only N1"},
        {GCP "n1-standard-8+t4}]\n    gpu_quotas: {NVIDIA_T5_GPUS: 1}\n", "NVIDIA_T4_GPUS"},
        {GCP "n1-standard-8+t4}]\n    gpu_quotas: {NVIDIA_T4_GPUS: -1}\n", "NVIDIA_T4_GPUS"},
        {GCP "n1-standard-8+t4}]\n    gpu_quotas: 4\n", "gpu_quotas"},
        {GCP "n1-standard-8+t4}]\n    family_quotas: {c4: 64}\n", "C4: 64"},
        {GCP "n1-standard-8+t4}]\n    family_quotas: {C4: many}\n", "C4: 64"},
        {KEYS "pools: [{zone: a, type: g6.xlarge+t4}]\n", "not an instance type of the provider"},
        {"providers: {asw: {}}\n", "did you mean aws"},
        {LAMBDA, "api_keys"},
        {LAMBDA "    api_keys: ['a b']\n", "one word"},
        {LAMBDA "    api_keys: ['a:b']\n", "one word"},
        {LAMBDA "    api_keys: [a]\n    account: x\n", "account"},
        {LAMBDA "    api_keys: [a]\n    file_systems: {data: [x]}\n", "NAME: REGION"},
        {LAMBDA "    api_keys: [a]\n    launch_every_ms: -1\n", "launch_every_ms"},
        {"providers:\n  lambda:\n    api_keys: [a]\n    pools: [{zone: z, type: gpu_1x_a10, spot: "
         "{capacity: 1}}]\n",
            "no spot instances"},
        {"providers: {aws: {}}\n", "keys"},
        {"providers: {aws: 3}\n", "emulator.yaml:1"},
        {"providers:\n  aws:\n    ec2_port: 1\n    " KEYS "    " POOL, "ec2_port"},
        {"providers:\n  aws:\n    " KEYS "    " POOL POOL, "pools"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct emulator_config c;
        struct err e;
        if (parse(bad[i].text, &c, &e) == 0)
            fail_msg("taken: %s", bad[i].text);
        if (!strstr(e.text, bad[i].expected))
            fail_msg("%s: expected \"%s\" in: %s", bad[i].text, bad[i].expected, e.text);
        if (strstr(e.text, "SECRET"))
            fail_msg("a secret in: %s", e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_is_enough),
        cmocka_unit_test(everything_can_be_said),
        cmocka_unit_test(each_provider_has_a_section),
        cmocka_unit_test(azure_has_keys_of_its_own),
        cmocka_unit_test(lambda_has_keys_of_its_own_and_no_spot_instances),
        cmocka_unit_test(google_attaches_gpus),
        cmocka_unit_test(mistakes_are_named_with_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
