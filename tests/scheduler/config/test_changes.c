/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences between two texts of the configuration, and which of them need a restart.
 */
#include "scheduler/config/changes.h"
#include "base/str.h"
#include "tests/scheduler/config_rig.h"
#include <string.h>

static json_t *changes_of(const char *before, const char *after)
{
    struct buf a = {0}, b = {0};
    json_t *list = NULL;
    struct err e;
    buf_adds(&a, before);
    buf_adds(&b, after);
    if (config_changes("x.yaml", &a, &b, &list, &e) != 0)
        fail_msg("%s", e.text);
    buf_deinit(&a);
    buf_deinit(&b);
    return list;
}

static void expect(const char *before, const char *after, const char *lines)
{
    struct buf text = {0};
    size_t i;
    json_t *c, *list = changes_of(before, after);
    json_array_foreach(list, i, c)
    {
        const char *old = json_string_value(json_object_get(c, "old")),
                   *new = json_string_value(json_object_get(c, "new"));
        buf_printf(&text, "%s: %s -> %s%s\n", json_string_value(json_object_get(c, "key")),
            old ? old : "-", new ? new : "-", json_is_true(json_object_get(c, "live")) ? "" : " !");
    }
    assert_string_equal(buf_str(&text), lines);
    buf_deinit(&text);
    json_decref(list);
}

static void order_spelling_and_comments_are_no_changes(void **state)
{
    (void)state;
    expect("a: 1\nb: {c: [1, 2], d: ''}\n", "# x\nb:\n  d: ''\n  c: [1, '2']\na: \"1\"\n", "");
    expect("lease:\n", "", ""); /* null is absent */
    expect("", "", "");
}

static void a_change_is_named_by_its_key(void **state)
{
    (void)state;
    expect("visibility: team\n", "visibility: all\n", "visibility: team -> all\n");
    expect("lease: 30s\n", "", "lease: 30s -> -\n");
    expect("listen: a:1\n", "", "listen: a:1 -> - !\n");
    expect("teams: {a: {users: [x, y], shares: 2}}\n", "teams: {a: {users: {x: 3}, shares: 2}}\n",
        "teams.a.users: [x, y] -> {x: 3}\n");
    expect("teams: {a: {quota: 8}}\n", "teams: {b: {quota: 8}}\n",
        "teams.a.quota: 8 -> -\nteams.b.quota: - -> 8\n");
    expect("", "teams: {a: {}}\n", "teams.a: - -> {}\n");
}

/* The most exact row of the table decides. */
static void part_of_a_section_may_need_a_restart(void **state)
{
    (void)state;
    expect("", "priority: {age_max: 1h, cpus_per_gpu: 4}\n",
        "priority.age_max: - -> 1h\npriority.cpus_per_gpu: - -> 4 !\n");
    expect("pools: {a: {}}\nlimits: {max_nodes: 1}\n", "pools: {}\nlimits: {max_nodes: 2}\n",
        "pools: {a: {}} -> {} !\nlimits.max_nodes: 1 -> 2\n");
    expect("", "usersx: 1\n", "usersx: - -> 1 !\n");
}

static void long_values_are_shortened_and_secrets_hidden(void **state)
{
    (void)state;
    char text[2000] = "users: {", *at = text + strlen(text);
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "%su%03d: admin", i ? ", " : "", i);
    strcpy(at, "}\n");
    json_t *list = changes_of("users: 1\n", text);
    const char *new = json_string_value(json_object_get(json_array_get(list, 0), "new"));
    assert_true(strlen(new) < 200);
    assert_true(str_ends(new, "..."));
    json_decref(list);
    expect("webhooks: {a: {url: 'https://x/1'}}\n", "webhooks: {a: {url: 'https://x/2'}}\n",
        "webhooks.a.url: (not shown) -> (not shown)\n");
    expect("", "webhooks: {a: {url_file: /x}}\n", "webhooks.a.url_file: - -> /x\n");
}

static void what_needs_a_restart_is_refused_by_name(void **state)
{
    (void)state;
    struct err e;
    json_t *list = changes_of("visibility: all\n", "visibility: team\n");
    assert_int_equal(config_check_changes("x.yaml", list, &e), 0);
    json_decref(list);
    list = changes_of(
        "cluster: lab\npools: {a: {}}\n", "visibility: all\npools: {a: {max_nodes: 2}}\n");
    assert_int_equal(config_check_changes("x.yaml", list, &e), ERR_CONFLICT);
    assert_string_equal(e.text,
        "x.yaml: nothing was changed, because only a restart of belayd can change cluster (lab, "
        "now "
        "absent), pools.a ({}, now {max_nodes: 2}); belay pools apply changes pools and providers "
        "without one. Before it, check the file: belayd --check --config FILE");
    json_decref(list);
}

static void members_of_live_keys_change_sides(void **state)
{
    (void)state;
    struct config a = {.no_progress_max = 1, .listen_port = 2, .max_nodes = 3},
                  b = {.no_progress_max = 4, .listen_port = 5, .max_nodes = 6};
    a.access.visibility = VISIBILITY_ALL;
    config_swap_live(&a, &b);
    assert_int_equal(a.no_progress_max, 4);
    assert_int_equal(b.no_progress_max, 1);
    assert_int_equal(a.max_nodes, 6);
    assert_int_equal(a.listen_port, 2);
    assert_int_equal(b.access.visibility, VISIBILITY_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_spelling_and_comments_are_no_changes),
        cmocka_unit_test(a_change_is_named_by_its_key),
        cmocka_unit_test(part_of_a_section_may_need_a_restart),
        cmocka_unit_test(long_values_are_shortened_and_secrets_hidden),
        cmocka_unit_test(what_needs_a_restart_is_refused_by_name),
        cmocka_unit_test(members_of_live_keys_change_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
