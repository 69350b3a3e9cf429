/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulated Azure with this project's own driver: it accepts the bytes of its builders, and its
 * parsers read the replies.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include "tests/emulator/arm_world.h"
#include <stdlib.h>
#include <string.h>

static const struct azure_machine machine = {.subscription = SUBSCRIPTION,
    .resource_group = "lab",
    .subnet = "v/s",
    .image = "Debian:debian-12:12-gen2:latest",
    .ssh_key = "ssh-ed25519 AAAA ops",
    .disk_gib = 40};

static const struct cloud_launch wish = {.token = "job17-try3",
    .region = "eastus",
    .zone = "1",
    .type = SIZE,
    .market = CLOUD_SPOT,
    .user_data = "#!/bin/sh\nexec belay-agent\n",
    .cluster = "it's"};

/* target: path and query, as the driver builds them; emptied afterwards. */
static void ask(
    struct arm_world *w, const char *method, struct buf *target, const char *body, int status)
{
    char *path = mem_strdup(buf_str(target)), *query = strchr(path, '?');
    *query++ = '\0';
    arm_expect(w, method, path, query, body, status, "");
    free(path);
    buf_deinit(target);
}

/* The last reply's text; the caller frees it. */
static char *text_of(struct arm_world *w, size_t *ret_n)
{
    char *text = arm_reply_text(&w->reply);
    *ret_n = strlen(text);
    return text;
}

static void put_nic(struct arm_world *w, const struct cloud_launch *l)
{
    struct buf target = {0}, body = {0};
    char name[CLOUD_NAME_MAX];
    arm_part_name(l->token, ARM_NIC, name, sizeof(name));
    arm_path(&machine, ARM_NIC, name, &target);
    arm_build_nic(l, &machine, &body);
    ask(w, "PUT", &target, buf_str(&body), 201);
    buf_deinit(&body);
}

static void put_vm(struct arm_world *w, const struct cloud_launch *l, int status)
{
    struct buf target = {0}, body = {0};
    struct err e;
    if (arm_build_vm(l, &machine, &body, &e) < 0)
        fail_msg("%s", e.text);
    arm_path(&machine, ARM_VM, l->token, &target);
    ask(w, "PUT", &target, buf_str(&body), status);
    buf_deinit(&body);
}

static void its_launch_is_listed_and_ends(void **state)
{
    struct arm_world w;
    struct buf target = {0};
    struct cloud_instance i;
    struct cloud_instances list = {0};
    char next[ARM_URL_MAX + 1], *text;
    struct err e = {0};
    bool is_done = true;
    size_t n;
    (void)state;
    arm_world_start(&w);
    put_nic(&w, &wish);
    put_vm(&w, &wish, 201);
    text = text_of(&w, &n);
    if (arm_parse_vm(text, n, &i, &e) < 0 || arm_parse_progress(text, n, &is_done, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    assert_string_equal(i.token, "job17-try3");
    assert_string_equal(i.cluster, "it's");
    assert_string_equal(i.zone, "1");
    assert_int_equal(i.market, CLOUD_SPOT);
    assert_false(is_done);
    put_vm(&w, &wish, 201); /* the same bytes: the same machine */
    assert_int_equal(w.region.counts.launches, 1);
    assert_string_equal(buf_str(&w.region.reservations[0]->spec.user_data), wish.user_data);
    assert_string_equal(arm_operation_status(&w, NULL), "InProgress");
    text = text_of(&w, &n);
    assert_int_equal(arm_parse_operation(text, n, &is_done, &e), 0);
    assert_false(is_done);
    free(text);
    arm_world_advance(&w, BOOT_MS);
    assert_string_equal(arm_operation_status(&w, NULL), "Succeeded");
    text = text_of(&w, &n);
    assert_int_equal(arm_parse_operation(text, n, &is_done, &e), 0);
    assert_true(is_done);
    free(text);

    arm_path_list_vms(&machine, false, &target);
    ask(&w, "GET", &target, NULL, 200);
    text = text_of(&w, &n);
    if (arm_parse_vms(text, n, "eastus", false, &list, next, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    assert_int_equal(list.n, 1);
    assert_string_equal(next, "");
    arm_path_list_power(&machine, &target);
    ask(&w, "GET", &target, NULL, 200);
    text = text_of(&w, &n);
    if (arm_parse_power(text, n, &list, next, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    assert_int_equal(list.list[0].state, CLOUD_RUNNING);

    arm_path_delete_vm(&machine, list.list[0].id, &target);
    ask(&w, "DELETE", &target, NULL, 202);
    assert_int_equal(w.arm.n_resources, 0);
    cloud_instances_deinit(&list);
    arm_world_stop(&w);
}

static size_t count_disks(struct arm_world *w, bool all, struct cloud_volumes *list)
{
    struct buf target = {0};
    char next[ARM_URL_MAX + 1];
    struct err e = {0};
    size_t n;
    cloud_volumes_deinit(list);
    arm_path_list_disks(&machine, all, &target);
    ask(w, "GET", &target, NULL, 200);
    char *text = text_of(w, &n);
    if (arm_parse_disks(text, n, "eastus", list, next, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    return list->n;
}

static void its_disks_are_listed_when_nothing_has_them(void **state)
{
    struct arm_world w;
    struct cloud_volumes list = {0};
    (void)state;
    arm_world_start(&w);
    put_nic(&w, &wish);
    put_vm(&w, &wish, 201);
    arm_world_advance(&w, BOOT_MS);
    assert_int_equal(count_disks(&w, false, &list), 0); /* attached to its machine */
    struct disk_spec old = {.name = "old", .type = "StandardSSD_LRS", .gib = 200};
    tags_set(&old.tags, "belay:cluster", "it's");
    region_add_volume(&w.region, &old, "1", (struct wall){w.now.ms - 86400000});
    arm_add_volumes(&w.arm);
    assert_int_equal(count_disks(&w, true, &list), 1);
    assert_string_equal(list.list[0].cluster, "it's");
    assert_string_equal(list.list[0].zone, "1");
    assert_string_equal(list.list[0].type, "StandardSSD_LRS");
    assert_int_equal(list.list[0].gib, 200);
    assert_int_equal(list.list[0].since.ms, w.now.ms - 86400000);
    cloud_volumes_deinit(&list);
    arm_world_stop(&w);
}

static void what_a_refused_launch_leaves_is_found_by_its_tag(void **state)
{
    struct arm_world w;
    struct buf target = {0};
    struct cloud_launch nowhere = wish;
    struct cloud_instances list = {0};
    enum arm_remedy remedy;
    char next[ARM_URL_MAX + 1], *text;
    struct err e = {0};
    size_t n;
    (void)state;
    arm_world_start(&w);
    nowhere.zone = "2";
    put_nic(&w, &nowhere);
    put_vm(&w, &nowhere, 409);
    text = text_of(&w, &n);
    arm_parse_error(409, text, n, &remedy, &e);
    assert_int_equal(e.kind, ERR_NO_CAPACITY);
    free(text);
    arm_path_list_tagged(&machine, "it's", &target);
    ask(&w, "GET", &target, NULL, 200);
    text = text_of(&w, &n);
    if (arm_parse_tagged(text, n, &machine, "eastus", &list, next, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.list[0].id, "job17-try3-nic");
    arm_path(&machine, arm_part_of(list.list[0].id), list.list[0].id, &target);
    ask(&w, "DELETE", &target, NULL, 202);
    assert_int_equal(w.arm.n_resources, 0);
    cloud_instances_deinit(&list);
    arm_world_stop(&w);
}

static void its_errors_are_understood(void **state)
{
    static const struct {
        const char *code;
        enum err_kind kind;
    } cases[] = {
        {"SkuNotAvailable", ERR_NO_CAPACITY},
        {"AllocationFailed", ERR_NO_CAPACITY},
        {"ZonalAllocationFailed", ERR_NO_CAPACITY},
        {"OverconstrainedZonalAllocationRequest", ERR_NO_CAPACITY},
        {"QuotaExceeded", ERR_QUOTA},
        {"OperationNotAllowed", ERR_QUOTA},
        {"TooManyRequests", ERR_THROTTLED},
        {"SubscriptionRequestsThrottled", ERR_THROTTLED},
        {"AuthorizationFailed", ERR_DENIED},
        {"InternalServerError", ERR_UNAVAILABLE},
        {"ServiceUnavailable", ERR_UNAVAILABLE},
        {"ResourceNotFound", ERR_NOT_FOUND},
    };
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum arm_remedy remedy;
        struct err e = {0};
        size_t n;
        arm_reply_deinit(&w.reply);
        arm_error(&w.arm, cases[i].code, NULL, &w.reply);
        char *text = text_of(&w, &n);
        arm_parse_error(w.reply.status, text, n, &remedy, &e);
        if (e.kind != cases[i].kind)
            fail_msg(
                "%s: kind %d, not %d: %s", cases[i].code, (int)e.kind, (int)cases[i].kind, e.text);
        free(text);
    }
    arm_world_stop(&w);
}

static void its_prices_are_the_markets(void **state)
{
    struct arm_world w;
    struct buf target = {0};
    struct cloud_prices list = {0};
    char next[ARM_URL_MAX + 1], *text;
    struct err e = {0};
    size_t n;
    (void)state;
    arm_world_start(&w);
    arm_path_prices("eastus", SIZE, &target);
    ask(&w, "GET", &target, NULL, 200);
    text = text_of(&w, &n);
    if (arm_parse_prices(text, n, "eastus", SIZE, &list, next, &e) < 0)
        fail_msg("%s: %s", e.text, text);
    free(text);
    assert_int_equal(list.n, 2);
    for (size_t i = 0; i < list.n; i++)
        assert_int_equal(list.list[i].uusd_h, list.list[i].market == CLOUD_SPOT ? 80000 : 384000);
    cloud_prices_deinit(&list);
    arm_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_launch_is_listed_and_ends),
        cmocka_unit_test(what_a_refused_launch_leaves_is_found_by_its_tag),
        cmocka_unit_test(its_disks_are_listed_when_nothing_has_them),
        cmocka_unit_test(its_errors_are_understood),
        cmocka_unit_test(its_prices_are_the_markets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
