/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of pools: required contents, and the difference of two files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/pooldiff.h"
#include <stdlib.h>
#include <string.h>

#define BURST                                                                                      \
    "  burst:\n    provider: aws\n    region: r1\n    zones: [a, b]\n    types: [g6.xlarge]\n    " \
    "markets: "                                                                                    \
    "[spot]\n"                                                                                     \
    "    image: ami-1\n"

static const struct config base = {.max_nodes = 40, .max_uusd_h = 2500000};

static struct config parse(const char *text)
{
    struct config c;
    struct err e = {0};
    if (config_parse_pools("p.yaml", text, strlen(text), &base, &c, &e) != 0)
        fail_msg("%s", e.text);
    return c;
}

static void refuse(const char *text, const char *why)
{
    struct config c;
    struct err e = {0};
    assert_int_equal(config_parse_pools("p.yaml", text, strlen(text), &base, &c, &e), ERR_INVALID);
    if (!strstr(e.text, why) || !str_starts(e.text, "p.yaml:"))
        fail_msg("%s", e.text);
}

static void limits_that_are_absent_are_those_of_the_configuration(void **state)
{
    (void)state;
    struct config c = parse("pools: {base: {}}\n");
    assert_int_equal(c.max_nodes, 40);
    assert_int_equal(c.max_uusd_h, 2500000);
    config_deinit(&c);
    c = parse("pools: {base: {}}\nlimits: {max_gpus: 8}\n");
    assert_int_equal(c.max_nodes, 0);
    assert_int_equal(c.max_gpus, 8);
    config_deinit(&c);
}

static void a_mistake_is_refused_with_its_line_and_the_nearest_name(void **state)
{
    (void)state;
    refuse("", "\"pools:\" is needed");
    refuse("limits: {max_nodes: 1}\n", "\"pools:\" is needed");
    refuse("pools: []\n", "p.yaml:1:");
    refuse("pools: {base: {}}\ncluster: lab\n", "p.yaml:2:");
    refuse("pools: {base: {}}\nlimit: {}\n", "did you mean \"limits\"");
    refuse("pools:\n" BURST "    max_node: 3\n", "did you mean \"max_nodes\"");
    refuse("pools:\n" BURST "    max_nodes: many\n", "p.yaml:9: max_nodes");
    refuse("pools: {base: {}}\nlimits: {max_nodes: 0}\n", "p.yaml:2: max_nodes");
    refuse("pools: {base: {}", "p.yaml:");
}

static const json_t *member(const json_t *list, const char *key, const char *value)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        if (str_eq(json_string_value(json_object_get(v, key)), value))
            return v;
    }
    fail_msg("no %s", value);
    return NULL;
}

static void check_key(const json_t *change, const char *key, const char *before, const char *after)
{
    const json_t *k = member(json_object_get(change, "keys"), "key", key);
    char *old_text = json_dumps(json_object_get(k, "old"), JSON_ENCODE_ANY);
    char *new_text = json_dumps(json_object_get(k, "new"), JSON_ENCODE_ANY);
    assert_string_equal(old_text, before);
    assert_string_equal(new_text, after);
    free(old_text);
    free(new_text);
}

static void differences_are_listed_key_by_key_in_the_files_words(void **state)
{
    (void)state;
    struct config
        a = parse("pools:\n  base: {usd_per_hour: 3.5}\n  old: {}\n" BURST),
        b = parse(
            "limits: {max_nodes: 40, max_usd_per_hour: 2.75}\npools:\n  base: {idle_gpus: {then: "
            "park, for: 10m}, required_labels: [team], usd_per_hour: "
            "0.25}\n  more: {}\n  burst:\n"
            "    provider: aws\n    region: r1\n    zones: [b, c]\n    types: [g6.xlarge]\n  "
            "  markets: [spot]\n"
            "    image: ami-2\n    idle_timeout: 90s\n    cooldown: 1500ms\n    "
            "return_after: 0\n    require_drill: true\n    min_nodes: 2\n    windows: {w: {days: "
            "\"sat,sun\", from: \"08:00\", to: "
            "\"00:00\", warm_nodes: 1}}\n    drill_valid: 30d\n    max_gpus: 4\n    "
            "credentials: /k\n");
    json_t *d = pools_diff(&a, &b);
    const json_t *pools = json_object_get(d, "pools"), *c;
    assert_true(pools_differ(d));
    assert_int_equal(json_array_size(pools), 4);
    c = member(pools, "pool", "base");
    assert_string_equal(json_string_value(json_object_get(c, "change")), "changed");
    check_key(c, "usd_per_hour", "\"3.50\"", "\"0.25\"");
    check_key(c, "required_labels", "[]", "[\"team\"]");
    check_key(c, "idle_gpus", "null",
        "{\"busy_below\": 5, \"for\": \"10m\", \"then\": \"park\", \"grace\": \"15m\"}");
    assert_string_equal(
        json_string_value(json_object_get(member(pools, "pool", "more"), "change")), "added");
    assert_string_equal(
        json_string_value(json_object_get(member(pools, "pool", "old"), "change")), "removed");
    c = member(pools, "pool", "burst");
    check_key(c, "zones", "[\"a\", \"b\"]", "[\"b\", \"c\"]");
    check_key(c, "image", "\"ami-1\"", "\"ami-2\"");
    check_key(c, "idle_timeout", "\"2m\"", "\"90s\"");
    check_key(c, "cooldown", "\"2m\"", "\"1500ms\"");
    check_key(c, "return_after", "\"30m\"", "\"0s\"");
    check_key(c, "require_drill", "false", "true");
    check_key(c, "min_nodes", "null", "2");
    check_key(c, "windows", "null",
        "{\"w\": {\"days\": \"sun,sat\", \"from\": \"08:00\", \"to\": \"00:00\", \"tz\": \"UTC\", "
        "\"min_nodes\": 2, \"warm_nodes\": 1}}");
    check_key(c, "drill_valid", "\"90d\"", "\"30d\"");
    check_key(c, "max_gpus", "null", "4");
    check_key(c, "credentials", "null", "\"/k\"");
    assert_int_equal(json_array_size(json_object_get(c, "keys")), 11);
    assert_int_equal(json_array_size(json_object_get(c, "offers_added")), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(c, "offers_added"), 0)),
        "c g6.xlarge spot");
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(c, "offers_withdrawn"), 0)),
        "a g6.xlarge spot");
    assert_int_equal(json_array_size(json_object_get(d, "limits")), 1);
    json_decref(d);
    d = pools_diff(&a, &a);
    assert_false(pools_differ(d));
    json_decref(d);
    config_deinit(&a);
    config_deinit(&b);
}

static void a_driver_goes_on_while_nothing_that_it_was_made_with_changes(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool same;
        const char *moved;
    } cases[] = {
        {"max_nodes: 3", true, NULL},
        {"image: ami-2", false, NULL},
        {"subnet: s", false, NULL},
        {"disk_gib: 9", false, NULL},
        {"metadata: http://127.0.0.1:9", false, NULL},
        {"credentials: /k", false, "credentials"},
        {"endpoint: https://elsewhere", false, "endpoint"},
    };
    struct config a = parse("pools:\n" BURST);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf text = {0};
        const char *burst = strstr(cases[i].line, "image") ? "" : "    image: ami-1\n";
        buf_printf(&text,
            "pools:\n  burst:\n    provider: aws\n    region: r1\n    zones: [b]\n    types: "
            "[g5.xlarge]\n%s    %s\n",
            burst, cases[i].line);
        struct config b = parse(buf_str(&text));
        assert_int_equal(pool_same_driver(&a.pools[0], &b.pools[0]), cases[i].same);
        assert_true(pool_moved(&a.pools[0], &b.pools[0]) == NULL || cases[i].moved);
        if (cases[i].moved)
            assert_string_equal(pool_moved(&a.pools[0], &b.pools[0]), cases[i].moved);
        config_deinit(&b);
        buf_deinit(&text);
    }
    struct config gcp = parse("pools:\n  burst: {provider: gcp, region: r1, zones: [a], types: "
                              "[e2-standard-8], image: i, "
                              "project: one}\n"),
                  moved = parse("pools:\n  burst: {provider: gcp, region: r1, zones: [a], types: "
                                "[e2-standard-8], image: i, project: two}\n");
    assert_string_equal(pool_moved(&gcp.pools[0], &moved.pools[0]), "project");
    config_deinit(&gcp);
    config_deinit(&moved);
    config_deinit(&a);
}

static void a_list_of_places_keeps_those_that_have_instances(void **state)
{
    static const char id[] = "10.0.0.7:2222#5f0c2a9d17e8b364";
    static const struct {
        const char *hosts;
        bool leaves;
    } cases[] = {
        {"[rack1, '10.0.0.7:2222']", false},
        {"['10.0.0.7:2222']", false},
        {"[rack2, rack3, '10.0.0.7:2222', rack1]", false},
        {"[rack1]", true},
        {"[rack1, '10.0.0.7']", true},
        {"[rack1, '10.0.0.7:22', '110.0.0.7:2222']", true},
    };
    static const char pool[] =
        "pools:\n  rack: {provider: static, hosts: %s, user: u, key: /k, known_hosts: /h, cpus: 1, "
        "memory: 1G}\n";
    struct config a, b;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf text = {0};
        char place[CORE_NAME_MAX];
        buf_printf(&text, pool, cases[0].hosts);
        a = parse(buf_str(&text));
        buf_clear(&text);
        buf_printf(&text, pool, cases[i].hosts);
        b = parse(buf_str(&text));
        assert_null(pool_moved(&a.pools[0], &b.pools[0]));
        assert_int_equal(pool_leaves(&a.pools[0], &b.pools[0], id, place), cases[i].leaves);
        if (cases[i].leaves)
            assert_string_equal(place, "10.0.0.7:2222");
        assert_false(pool_leaves(&a.pools[0], &b.pools[0], "", place));
        /* not an instance id */
        assert_false(pool_leaves(&a.pools[0], &b.pools[0], "10.0.0.7:2222", place));
        config_deinit(&a);
        config_deinit(&b);
        buf_deinit(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_that_are_absent_are_those_of_the_configuration),
        cmocka_unit_test(a_mistake_is_refused_with_its_line_and_the_nearest_name),
        cmocka_unit_test(differences_are_listed_key_by_key_in_the_files_words),
        cmocka_unit_test(a_driver_goes_on_while_nothing_that_it_was_made_with_changes),
        cmocka_unit_test(a_list_of_places_keeps_those_that_have_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
