/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define SUBSCRIPTION "8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44"
#define GROUP "/subscriptions/" SUBSCRIPTION "/resourceGroups/lab"
#define NET GROUP "/providers/Microsoft.Network"

static const struct azure_machine machine = {
    .subscription = SUBSCRIPTION,
    .resource_group = "lab",
    .subnet = "net/nodes",
    .image = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest",
    .ssh_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ ops@lab",
    .disk_gib = 128,
};

static const struct cloud_launch launch = {
    .token = "belay-lab-17",
    .region = "eastus",
    .zone = "1",
    .type = "Standard_NC4as_T4_v3",
    .market = CLOUD_SPOT,
    .user_data = "#!/bin/sh\n",
    .cluster = "lab",
};

/* The text at a path like "a.b.0.c", numbers and booleans as JSON; free() it */
static char *at(const json_t *v, const char *path)
{
    while (v && *path) {
        size_t n = strcspn(path, "/");
        char *key = mem_strndup(path, n);
        v = json_is_array(v) ? json_array_get(v, (size_t)strtol(key, NULL, 10))
                             : json_object_get(v, key);
        free(key);
        path += n + (path[n] == '/');
    }
    if (!v)
        return mem_strdup("(nothing)");
    return json_is_string(v) ? mem_strdup(json_string_value(v)) : json_dump_text(v);
}

static void assert_at(const json_t *v, const char *path, const char *expected)
{
    char *found = at(v, path);
    if (!str_eq(found, expected))
        fail_msg("%s: expected %s, found %s", path, expected, found);
    free(found);
}

static json_t *build_vm(const struct cloud_launch *l, const struct azure_machine *m)
{
    struct buf body = {0};
    struct err e;
    json_t *v = NULL;
    if (arm_build_vm(l, m, &body, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(json_parse(buf_str(&body), body.len, 1 << 20, &v, &e), 0);
    buf_deinit(&body);
    return v;
}

static void a_spot_machine_goes_with_all_its_parts(void **state)
{
    json_t *v = build_vm(&launch, &machine);
    (void)state;
    assert_at(v, "location", "eastus");
    assert_at(v, "zones", "[\"1\"]");
    assert_at(v, "tags/belay:cluster", "lab");
    assert_at(v, "tags/belay:instance", "belay-lab-17");
    assert_at(v, "properties/priority", "Spot");
    assert_at(v, "properties/evictionPolicy", "Delete");
    assert_at(v, "properties/billingProfile/maxPrice", "-1");
    assert_at(v, "properties/hardwareProfile/vmSize", "Standard_NC4as_T4_v3");
    assert_at(v, "properties/storageProfile/imageReference/publisher", "Canonical");
    assert_at(v, "properties/storageProfile/imageReference/version", "latest");
    assert_at(v, "properties/storageProfile/osDisk/name", "belay-lab-17-os");
    assert_at(v, "properties/storageProfile/osDisk/createOption", "FromImage");
    assert_at(v, "properties/storageProfile/osDisk/deleteOption", "Delete");
    assert_at(v, "properties/storageProfile/osDisk/diskSizeGB", "128");
    assert_at(v, "properties/osProfile/computerName", "belay-lab-17");
    assert_at(v, "properties/osProfile/customData", "IyEvYmluL3NoCg==");
    assert_at(v, "properties/osProfile/linuxConfiguration/ssh/publicKeys/0/path",
        "/home/belay/.ssh/authorized_keys");
    assert_at(v, "properties/networkProfile/networkInterfaces/0/id",
        NET "/networkInterfaces/belay-lab-17-nic");
    assert_at(v, "properties/networkProfile/networkInterfaces/0/properties/deleteOption", "Delete");
    assert_at(v, "identity", "(nothing)");
    assert_at(v, "properties/diagnosticsProfile/bootDiagnostics", "{\"enabled\":true}");
    json_decref(v);
}

static void an_on_demand_machine_in_no_zone_names_neither(void **state)
{
    struct cloud_launch l = launch;
    struct azure_machine m = machine;
    (void)state;
    l.market = CLOUD_ON_DEMAND;
    l.zone = "eastus";
    l.user_data = NULL;
    m.image = GROUP "/providers/Microsoft.Compute/images/node";
    m.identity = GROUP "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/node";
    m.admin_user = "ops";
    m.disk_type = "StandardSSD_LRS";
    m.disk_gib = 0;
    json_t *v = build_vm(&l, &m);
    assert_at(v, "zones", "(nothing)");
    assert_at(v, "properties/priority", "(nothing)");
    assert_at(v, "properties/evictionPolicy", "(nothing)");
    assert_at(v, "properties/osProfile/customData", "(nothing)");
    assert_at(v, "properties/osProfile/adminUsername", "ops");
    assert_at(v, "properties/storageProfile/imageReference/id", m.image);
    assert_at(v, "properties/storageProfile/osDisk/diskSizeGB", "(nothing)");
    assert_at(
        v, "properties/storageProfile/osDisk/managedDisk/storageAccountType", "StandardSSD_LRS");
    assert_at(v, "identity/type", "UserAssigned");
    json_decref(v);
}

static void a_network_interface_is_tagged_like_its_machine(void **state)
{
    struct azure_machine m = machine;
    struct buf body = {0};
    json_t *v = NULL;
    (void)state;
    m.security_group = "closed";
    arm_build_nic(&launch, &m, &body);
    assert_int_equal(json_parse(buf_str(&body), body.len, 1 << 20, &v, NULL), 0);
    assert_at(v, "tags/belay:cluster", "lab");
    assert_at(v, "tags/belay:instance", "belay-lab-17");
    assert_at(v, "properties/ipConfigurations/0/properties/subnet/id",
        NET "/virtualNetworks/net/subnets/nodes");
    assert_at(v, "properties/networkSecurityGroup/id", NET "/networkSecurityGroups/closed");
    json_decref(v);
    buf_deinit(&body);
}

static void the_same_launch_is_the_same_bytes(void **state)
{
    struct buf a = {0}, b = {0};
    struct err e;
    (void)state;
    assert_int_equal(arm_build_vm(&launch, &machine, &a, &e), 0);
    assert_int_equal(arm_build_vm(&launch, &machine, &b, &e), 0);
    assert_string_equal(buf_str(&a), buf_str(&b));
    buf_deinit(&a);
    buf_deinit(&b);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    static const char *const tokens[] = {"", "a b", "-a", "a-", "a/../b", "a.b", "a-nic", "a-os",
        "0123456789012345678901234567890123456789012345678901234567890", NULL};
    static const char *const zones[] = {"", "4a", "0", "12", "westus", "eastus-1", NULL};
    struct cloud_launch l = launch;
    struct buf out = {0};
    struct err e;
    char long_data[CLOUD_USER_DATA_MAX + 2];
    (void)state;
    for (size_t i = 0; tokens[i]; i++) {
        l.token = tokens[i];
        assert_int_equal(arm_build_vm(&l, &machine, &out, &e), ERR_CONFIG);
    }
    l = launch;
    for (size_t i = 0; zones[i]; i++) {
        l.zone = zones[i];
        assert_int_equal(arm_build_vm(&l, &machine, &out, &e), ERR_CONFIG);
    }
    l = launch;
    l.type = "Standard_NC4as_T4_v3\"";
    assert_int_equal(arm_build_vm(&l, &machine, &out, &e), ERR_CONFIG);
    l = launch;
    memset(long_data, 'x', sizeof(long_data) - 1);
    long_data[sizeof(long_data) - 1] = '\0';
    l.user_data = long_data;
    assert_int_equal(arm_build_vm(&l, &machine, &out, &e), ERR_CONFIG);
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
}

static void settings_that_cannot_be_sent_are_refused(void **state)
{
    static const struct {
        size_t offset;
        const char *value; /* refused */
    } cases[] = {
        {offsetof(struct azure_machine, subscription), NULL},
        {offsetof(struct azure_machine, subscription), "a/b"},
        {offsetof(struct azure_machine, resource_group), "lab/.."},
        {offsetof(struct azure_machine, resource_group), ""},
        {offsetof(struct azure_machine, subnet), "nodes"},
        {offsetof(struct azure_machine, subnet), "net/nodes/more"},
        {offsetof(struct azure_machine, subnet), "net/"},
        {offsetof(struct azure_machine, subnet), "/subscriptions/s/virtualNetworks/net"},
        {offsetof(struct azure_machine, subnet), "../nodes"},
        {offsetof(struct azure_machine, image), "jammy"},
        {offsetof(struct azure_machine, image), "a:b:c"},
        {offsetof(struct azure_machine, image), "a:b::d"},
        {offsetof(struct azure_machine, image), "/images/../x"},
        {offsetof(struct azure_machine, ssh_key), ""},
        {offsetof(struct azure_machine, ssh_key), "-----BEGIN OPENSSH PRIVATE KEY-----"},
        {offsetof(struct azure_machine, admin_user), "a b"},
        {offsetof(struct azure_machine, security_group), "a?b"},
        {offsetof(struct azure_machine, identity), "node"},
        {offsetof(struct azure_machine, disk_type), "Premium LRS"},
    };
    struct err e;
    (void)state;
    assert_int_equal(arm_check_machine(&machine, &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct azure_machine m = machine;
        *(const char **)((char *)&m + cases[i].offset) = cases[i].value;
        if (arm_check_machine(&m, &e) != ERR_CONFIG)
            fail_msg("taken: %s", cases[i].value ? cases[i].value : "(null)");
    }
    struct azure_machine m = machine;
    m.disk_gib = 4096;
    assert_int_equal(arm_check_machine(&m, &e), ERR_CONFIG);
}

static void paths_are_escaped(void **state)
{
    struct buf out = {0};
    (void)state;
    arm_path_list_tagged(&machine, "o'b&c", &out);
    assert_string_equal(buf_str(&out),
        "/subscriptions/" SUBSCRIPTION
        "/resources?$filter=tagName%20eq%20%27belay%3Acluster%27%20and%20"
        "tagValue%20eq%20%27o%27%27b%26c%27&api-version=2021-04-01");
    buf_clear(&out);
    arm_path(&machine, ARM_DISK, "x/../y-os", &out);
    assert_string_equal(buf_str(&out),
        GROUP "/providers/Microsoft.Compute/disks/x%2F..%2Fy-os?api-version=2022-07-02");
    buf_clear(&out);
    arm_path_delete_vm(&machine, "belay-lab-17", &out);
    assert_string_equal(buf_str(&out),
        GROUP "/providers/Microsoft.Compute/virtualMachines/"
              "belay-lab-17?api-version=2022-08-01&forceDeletion=true");
    buf_clear(&out);
    arm_path_console(&machine, "x/../y", &out);
    assert_string_equal(buf_str(&out),
        GROUP "/providers/Microsoft.Compute/virtualMachines/x%2F..%2Fy/retrieveBootDiagnosticsData"
              "?api-version=2022-08-01&sasUriExpirationTimeInMinutes=5");
    buf_clear(&out);
    arm_path_prices("eastus", "Standard_D8s_v5", &out);
    assert_string_equal(buf_str(&out),
        "/api/retail/"
        "prices?api-version=2023-01-01-preview&$filter=serviceName%20eq%20%27Virtual%20Machines%27"
        "%20and%20priceType%20eq%20%27Consumption%27%20and%20armRegionName%20eq%20%27eastus%27%"
        "20and%20armSkuName%20eq%20%27Standard_D8s_v5%27");
    buf_deinit(&out);
}

static void consoles_logs_are_read_at_azure_s_storage_only(void **state)
{
    static const char *const blobs[] = {
        "https://md-1.z2.blob.storage.azure.net/bootdiagnostics-a/b.serialconsole.log?sig=a%2B",
        "https://lab.blob.core.windows.net:443/x", "https://lab.blob.core.usgovcloudapi.net/x?a",
        NULL};
    static const char *const others[] = {"", "http://lab.blob.core.windows.net/x",
        "https://lab.blob.core.windows.net", "https://.blob.core.windows.net/x",
        "https://169.254.169.254/.blob.core.windows.net/", "https://management.azure.com/x",
        "https://lab.blob.core.windows.net@example.com/x",
        "https://lab.blob.core.windows.net:8080/x", "https://lab.blob.core.windows.net\\@e.com/x",
        "https://lab.blob.core.windows.net/a b", "https://lab.blob.core.windows.net/a\r\nb",
        "https://[::1].blob.core.windows.net/", "file:///etc/passwd", NULL};
    (void)state;
    for (size_t i = 0; blobs[i]; i++)
        if (!arm_url_is_blob(blobs[i], AZURE_ENDPOINT))
            fail_msg("refused: %s", blobs[i]);
    for (size_t i = 0; others[i]; i++)
        if (arm_url_is_blob(others[i], AZURE_ENDPOINT))
            fail_msg("taken: %s", others[i]);
    assert_false(arm_url_is_blob(NULL, AZURE_ENDPOINT));
    /* the emulator */
    assert_true(arm_url_is_blob("http://127.0.0.1:4568/x", "http://127.0.0.1:4568"));
    assert_false(arm_url_is_blob(blobs[0], "http://127.0.0.1:4568"));
}

static void only_urls_of_the_endpoint_are_ours(void **state)
{
    static const char *const ours[] = {
        "https://management.azure.com/x", "https://MANAGEMENT.azure.com:443/x?a=b", NULL};
    static const char *const others[] = {"", "http://management.azure.com/x",
        "https://management.azure.com", "https://management.azure.com.example.com/x",
        "https://management.azure.com@example.com/", "https://management.azure.com:444/x",
        "https://management.azure.com:443@example.com/",
        "https://example.com/https://management.azure.com/", "https://management.azure.com/a b",
        "https://management.azure.com/a\r\nb", "https://management.azure.com\\@example.com/", NULL};
    (void)state;
    for (size_t i = 0; ours[i]; i++)
        assert_true(arm_url_is_ours(ours[i], AZURE_ENDPOINT));
    for (size_t i = 0; others[i]; i++)
        assert_false(arm_url_is_ours(others[i], AZURE_ENDPOINT));
    assert_false(arm_url_is_ours(NULL, AZURE_ENDPOINT));
    assert_true(arm_url_is_ours("http://127.0.0.1:4568/x", "http://127.0.0.1:4568"));
    assert_false(arm_url_is_ours("http://127.0.0.1:45688/x", "http://127.0.0.1:4568"));
}

/* ---- replies ---- */

static void a_machine_is_read(void **state)
{
    char *body = fake_read_file("azure_vm.json");
    struct cloud_instance i;
    struct err e;
    bool done = true;
    (void)state;
    assert_int_equal(arm_parse_vm(body, strlen(body), &i, &e), 0);
    assert_string_equal(i.id, "belay-lab-17");
    assert_string_equal(i.token, "belay-lab-17");
    assert_string_equal(i.cluster, "lab");
    assert_string_equal(i.zone, "1");
    assert_string_equal(i.type, "Standard_NC4as_T4_v3");
    assert_int_equal(i.market, CLOUD_SPOT);
    assert_int_equal(i.state, CLOUD_PENDING);
    assert_int_equal(i.launched_at.ms, 1787400001283);
    assert_int_equal(arm_parse_progress(body, strlen(body), &done, &e), 0);
    assert_false(done);
    free(body);
}

static void list(struct cloud_instances *l, char *next)
{
    char *page1 = fake_read_file("azure_vms_1.json"), *page2 = fake_read_file("azure_vms_2.json");
    struct err e;
    if (arm_parse_vms(page1, strlen(page1), "eastus", false, l, next, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(str_ends(next, "&$skiptoken=belay-lab-2%2F%21%21"));
    assert_int_equal(arm_parse_vms(page2, strlen(page2), "eastus", false, l, next, &e), 0);
    assert_string_equal(next, "");
    free(page1);
    free(page2);
}

static void listings_keep_our_machines_of_the_region(void **state)
{
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    (void)state;
    list(&l, next);
    assert_int_equal(l.n, 5);
    assert_string_equal(l.list[0].id, "belay-lab-1");
    assert_int_equal(l.list[0].state, CLOUD_RUNNING);
    assert_int_equal(l.list[1].market, CLOUD_ON_DEMAND);
    assert_string_equal(l.list[1].zone, "eastus");
    assert_string_equal(l.list[2].id, "belay-lab-3");
    assert_int_equal(l.list[2].state, CLOUD_STOPPING);
    assert_string_equal(l.list[2].reason, "Failed");
    assert_string_equal(l.list[4].cluster, "other"); /* filtered out later */
    assert_int_equal(l.list[4].state, CLOUD_STOPPING);
    cloud_instances_deinit(&l);
}

static void a_deallocated_machine_was_reclaimed(void **state)
{
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    char *body = fake_read_file("azure_power.json");
    struct err e;
    (void)state;
    list(&l, next);
    assert_int_equal(arm_parse_power(body, strlen(body), &l, next, &e), 0);
    assert_int_equal(l.list[0].state, CLOUD_STOPPING);
    assert_true(l.list[0].reclaimed);
    assert_string_equal(l.list[0].reason, "deallocated by Azure");
    assert_int_equal(l.list[1].state, CLOUD_STOPPING);
    assert_false(l.list[1].reclaimed);
    assert_int_equal(l.list[3].state, CLOUD_RUNNING);
    assert_int_equal(l.n, 5);
    free(body);
    cloud_instances_deinit(&l);
}

static void tagged_parts_of_the_group_are_leftovers(void **state)
{
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    char *body = fake_read_file("azure_tagged.json");
    struct err e;
    (void)state;
    if (arm_parse_tagged(body, strlen(body), &machine, "eastus", &l, next, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.list[0].id, "belay-lab-1-nic");
    assert_string_equal(l.list[1].id, "belay-lab-1-os");
    assert_string_equal(l.list[2].id, "belay-lab-9-nic");
    assert_string_equal(l.list[3].id, "belay-lab-8-os");
    assert_string_equal(l.list[3].token, "");
    assert_string_equal(l.list[3].cluster, "lab");
    assert_int_equal(l.list[3].state, CLOUD_STOPPING);
    free(body);
    cloud_instances_deinit(&l);
}

static void disks_are_read_without_those_in_use(void **state)
{
    struct cloud_volumes l = {0};
    char next[ARM_URL_MAX + 1];
    char *one = fake_read_file("azure_disks_1.json"), *two = fake_read_file("azure_disks_2.json");
    struct err e;
    (void)state;
    if (arm_parse_disks(one, strlen(one), "eastus", &l, next, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(str_ends(next, "$skiptoken=x"));
    /* one is attached, one waits for its machine, one is in another region */
    assert_int_equal(l.n, 1);
    assert_string_equal(l.list[0].id, "0e2b1c3d-4f5a-4b6c-9d7e-8f9a0b1c2d3e");
    assert_string_equal(l.list[0].name, "LAB/belay-lab-8-data");
    assert_string_equal(l.list[0].cluster, "lab");
    assert_string_equal(l.list[0].token, "belay-lab-8");
    assert_string_equal(l.list[0].zone, "1");
    assert_string_equal(l.list[0].type, "Premium_LRS");
    assert_int_equal(l.list[0].gib, 129);
    assert_int_equal(l.list[0].since.ms, 1787400000000); /* when it was detached */
    if (arm_parse_disks(two, strlen(two), "eastus", &l, next, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(next, "");
    assert_int_equal(l.n, 2);
    assert_string_equal(l.list[1].name, "other/scratch");
    assert_string_equal(l.list[1].zone, "East US");
    assert_false(wall_is_set(l.list[1].since));
    free(one);
    free(two);
    cloud_volumes_deinit(&l);
}

#define DISK_OF(id, properties, more)                                                              \
    "{\"value\":[{\"name\":\"a\",\"location\":\"eastus\",\"id\":\"" id                             \
    "\",\"sku\":{\"name\":\"t\"},\"properties\":{" properties "}" more "}]}"
#define DISK_ID "/subscriptions/s/resourceGroups/g/x/a"
#define DISK_GOOD "\"uniqueId\":\"u\",\"diskState\":\"Unattached\""

static void malformed_disks_are_refused(void **state)
{
    static const char *const bodies[] = {"", "[]", "{}", "{\"value\":{}}", "{\"value\":[7]}",
        "{\"value\":[{}]}", "{\"value\":[],\"nextLink\":7}",
        DISK_OF("", DISK_GOOD ",\"diskSizeGB\":1", ""),
        DISK_OF("/disks/a", DISK_GOOD ",\"diskSizeGB\":1", ""), DISK_OF(DISK_ID, DISK_GOOD, ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":-1", ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1048577", ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":\"1\"", ""),
        DISK_OF(DISK_ID, "\"diskSizeGB\":1,\"diskState\":\"Unattached\"", ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1,\"timeCreated\":\"today\"", ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1,\"LastOwnershipUpdateTime\":7", ""),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1", ",\"tags\":{\"belay:cluster\":7}"),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1", ",\"managedBy\":7"),
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1", ",\"zones\":[7]"),
        "<html><body>502</body></html>", NULL};
    static const char good[] =
        DISK_OF(DISK_ID, DISK_GOOD ",\"diskSizeGB\":1", ",\"managedByExtended\":[]"),
                      shared[] = DISK_OF(
                          DISK_ID, DISK_GOOD ",\"diskSizeGB\":1", ",\"managedByExtended\":[\"x\"]");
    struct cloud_volumes l = {0};
    char next[ARM_URL_MAX + 1] = "kept";
    struct err e;
    (void)state;
    for (size_t k = 0; bodies[k]; k++)
        if (arm_parse_disks(bodies[k], strlen(bodies[k]), "eastus", &l, next, &e) != ERR_INVALID)
            fail_msg("taken: %s", bodies[k]);
    assert_string_equal(next, "kept");
    assert_int_equal(l.n, 0);
    assert_int_equal(arm_parse_disks(shared, strlen(shared), "eastus", &l, next, &e), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(arm_parse_disks(good, strlen(good), "eastus", &l, next, &e), 0);
    assert_int_equal(l.n, 1);
    cloud_volumes_deinit(&l);
}

static void operations_end_well_or_with_their_error(void **state)
{
    char *running = fake_read_file("azure_operation_running.json");
    char *done_reply = fake_read_file("azure_operation_done.json");
    char *failed = fake_read_file("azure_operation_failed.json");
    struct err e;
    bool done = true;
    (void)state;
    assert_int_equal(arm_parse_operation(running, strlen(running), &done, &e), 0);
    assert_false(done);
    assert_int_equal(arm_parse_operation(done_reply, strlen(done_reply), &done, &e), 0);
    assert_true(done);
    assert_int_equal(arm_parse_operation(failed, strlen(failed), &done, &e), ERR_NO_CAPACITY);
    assert_non_null(strstr(e.text, "ZonalAllocationFailed: Allocation failed."));
    assert_int_equal(
        arm_parse_operation("{\"status\":\"Canceled\"}", 21, &done, &e), ERR_UNAVAILABLE);
    free(running);
    free(done_reply);
    free(failed);
}

static void a_failed_machine_says_why_in_its_view(void **state)
{
    static const char why[] =
        "{\"properties\":{\"provisioningState\":\"Failed\",\"instanceView\":{\"statuses\":[{"
        "\"code\":\"ProvisioningState/failed/AllocationFailed\",\"message\":\"no\"}]}}}";
    static const char silent[] = "{\"properties\":{\"provisioningState\":\"Failed\"}}";
    static const char fine[] = "{\"properties\":{\"provisioningState\":\"Succeeded\"}}";
    struct err e;
    bool done = false;
    (void)state;
    assert_int_equal(arm_parse_progress(why, sizeof(why) - 1, &done, &e), ERR_NO_CAPACITY);
    assert_int_equal(arm_parse_progress(silent, sizeof(silent) - 1, &done, &e), ERR_UNAVAILABLE);
    assert_false(done);
    assert_int_equal(arm_parse_progress(fine, sizeof(fine) - 1, &done, &e), 0);
    assert_true(done);
}

static void prices_are_of_linux_and_the_newest(void **state)
{
    struct cloud_prices l = {0};
    char next[ARM_URL_MAX + 1];
    char *page1 = fake_read_file("azure_prices_1.json"),
         *page2 = fake_read_file("azure_prices_2.json");
    struct err e;
    (void)state;
    if (arm_parse_prices(page1, strlen(page1), "eastus", "Standard_NC4as_T4_v3", &l, next, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(arm_url_is_ours(next, AZURE_PRICES));
    assert_int_equal(
        arm_parse_prices(page2, strlen(page2), "eastus", "Standard_NC4as_T4_v3", &l, next, &e), 0);
    assert_string_equal(next, "");
    assert_int_equal(l.n, 2);
    assert_int_equal(l.list[0].market, CLOUD_ON_DEMAND);
    assert_int_equal(l.list[0].uusd_h, 526000);
    assert_int_equal(l.list[1].market, CLOUD_SPOT);
    assert_int_equal(l.list[1].uusd_h, 64210);
    assert_string_equal(l.list[1].zone, ""); /* whole region */
    cloud_prices_deinit(&l);
    assert_int_equal(
        arm_parse_prices(page1, strlen(page1), "westus", "Standard_NC4as_T4_v3", &l, next, &e), 0);
    assert_int_equal(l.n, 0);
    free(page1);
    free(page2);
}

static void the_address_of_a_console_log_is_read_and_never_shown(void **state)
{
    static const char *const bad[] = {"", "{", "null", "[]", "{\"serialConsoleLogBlobUri\":7}",
        "\"https://lab.blob.core.windows.net/x?sig=SECRET\"",
        "{\"serialConsoleLogBlobUri\":[\"https://lab.blob.core.windows.net/x?sig=SECRET\"]}",
        "{\"serialConsoleLogBlobUri\":\"https://example.com/x?sig=SECRET\"}",
        "{\"serialConsoleLogBlobUri\":\"http://169.254.169.254/metadata?sig=SECRET\"}",
        "{\"serialConsoleLogBlobUri\":\"https://a.blob.core.windows.net/x?sig=SECRET\"} x", NULL};
    static const char *const none[] = {
        "{}", "{\"serialConsoleLogBlobUri\":null}", "{\"serialConsoleLogBlobUri\":\"\"}", NULL};
    char *body = fake_read_file("azure_console.json"), url[ARM_URL_MAX + 1] = "kept";
    struct err e = {0};
    (void)state;
    for (size_t i = 0; bad[i]; i++) {
        if (arm_parse_console(bad[i], strlen(bad[i]), AZURE_ENDPOINT, url, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
        assert_null(strstr(e.text, "SECRET"));
        assert_string_equal(url, "kept");
    }
    struct buf longer = {0};
    buf_adds(&longer, "{\"serialConsoleLogBlobUri\":\"https://a.blob.core.windows.net/?sig=");
    for (int i = 0; i < ARM_URL_MAX; i++)
        buf_addc(&longer, 'a');
    buf_adds(&longer, "\"}");
    assert_int_equal(
        arm_parse_console(buf_str(&longer), longer.len, AZURE_ENDPOINT, url, &e), ERR_INVALID);
    buf_deinit(&longer);
    assert_int_equal(arm_parse_console(body, strlen(body), AZURE_ENDPOINT, url, &e), 0);
    assert_true(str_starts(url, "https://md-hdd-5l0ckw1qc3xj.z35.blob.storage.azure.net/bootdiag"));
    assert_true(
        str_ends(url, "&sig=iWq0xT1Zk%2BexampleA%2F9c%3D&se=2026-08-22T12%3A06%3A00Z&sp=r"));
    for (size_t i = 0; none[i]; i++) {
        assert_int_equal(arm_parse_console(none[i], strlen(none[i]), AZURE_ENDPOINT, url, &e), 0);
        assert_string_equal(url, "");
    }
    free(body);
}

static void malformed_replies_are_refused(void **state)
{
    static const char *const vms[] = {"", "{", "[]", "null", "{\"value\":[]} x", "{}",
        "{\"value\":{}}", "{\"value\":[],\"nextLink\":7}", "{\"value\":[7]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":7}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"a\",\"location\":\"eastus\"}]"
        "}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"a\",\"location\":\"eastus\","
        "\"properties\":{}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"\",\"location\":\"eastus\","
        "\"properties\":{\"hardwareProfile\":{\"vmSize\":\"s\"}}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"a\",\"location\":\"eastus\","
        "\"properties\":{\"hardwareProfile\":{\"vmSize\":\"s\"},\"timeCreated\":\"today\"}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"a\",\"location\":\"eastus\","
        "\"zones\":[7],\"properties\":{\"hardwareProfile\":{\"vmSize\":\"s\"}}}]}",
        "{\"value\":[{\"tags\":{\"belay:cluster\":\"lab\"},\"name\":\"a\",\"location\":\"eastus\","
        "\"properties\":"
        "{\"hardwareProfile\":{\"vmSize\":\"s\"},\"instanceView\":{\"statuses\":[{}]}}}]}",
        "<html><body>502</body></html>", NULL};
    static const char *const tagged[] = {"", "[]", "{}", "{\"value\":[7]}", "{\"value\":[{}]}",
        "{\"value\":[{\"id\":\"x\",\"type\":\"y\"}]}",
        "{\"value\":[{\"id\":\"x\",\"type\":\"y\",\"name\":\"z\",\"tags\":[]}]}", NULL};
    static const char *const prices[] = {"", "{}", "{\"Items\":[7]}", "{\"Items\":[{}]}",
        "{\"Items\":[{\"productName\":\"a\",\"meterName\":\"b\",\"unitOfMeasure\":\"1 "
        "Hour\",\"effectiveStartDate\":"
        "\"2020-08-01T00:00:00Z\",\"retailPrice\":\"1\"}]}",
        "{\"Items\":[{\"productName\":\"a\",\"meterName\":\"b\",\"unitOfMeasure\":\"1 "
        "Hour\",\"effectiveStartDate\":"
        "\"2020-08-01T00:00:00Z\",\"retailPrice\":-1}]}",
        "{\"Items\":[{\"productName\":\"a\",\"meterName\":\"b\",\"unitOfMeasure\":\"1 "
        "Hour\",\"effectiveStartDate\":"
        "\"yesterday\",\"retailPrice\":1}]}",
        NULL};
    static const char *const operations[] = {
        "", "{}", "[]", "{\"status\":7}", "{\"status\":null}", NULL};
    struct cloud_instances l = {0};
    struct cloud_instance i;
    struct cloud_prices p = {0};
    char next[ARM_URL_MAX + 1] = "kept";
    bool done;
    (void)state;
    for (size_t k = 0; vms[k]; k++) {
        struct err e = {0};
        if (arm_parse_vms(vms[k], strlen(vms[k]), "eastus", false, &l, next, &e) != ERR_INVALID)
            fail_msg("taken: %s", vms[k]);
        assert_true(str_starts(e.text, "Azure's reply: "));
        assert_int_equal(arm_parse_vm(vms[k], strlen(vms[k]), &i, &e), ERR_INVALID);
    }
    for (size_t k = 0; tagged[k]; k++) {
        struct err e = {0};
        if (arm_parse_tagged(tagged[k], strlen(tagged[k]), &machine, "eastus", &l, next, &e) !=
            ERR_INVALID)
            fail_msg("taken: %s", tagged[k]);
    }
    for (size_t k = 0; prices[k]; k++) {
        struct err e = {0};
        if (arm_parse_prices(prices[k], strlen(prices[k]), "eastus", "t", &p, next, &e) !=
            ERR_INVALID)
            fail_msg("taken: %s", prices[k]);
    }
    for (size_t k = 0; operations[k]; k++) {
        struct err e = {0};
        assert_int_equal(
            arm_parse_operation(operations[k], strlen(operations[k]), &done, &e), ERR_INVALID);
        assert_int_equal(
            arm_parse_progress(operations[k], strlen(operations[k]), &done, &e), ERR_INVALID);
    }
    assert_string_equal(next, "kept");
    assert_int_equal(l.n, 0);
    cloud_instances_deinit(&l);
    cloud_prices_deinit(&p);
}

static void refusals_are_distinguished(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum err_kind kind;
        enum arm_remedy remedy;
    } cases[] = {
        {409, "{\"error\":{\"code\":\"AllocationFailed\",\"message\":\"m\"}}", ERR_NO_CAPACITY},
        {409, "{\"error\":{\"code\":\"OverconstrainedZonalAllocationRequest\",\"message\":\"m\"}}",
            ERR_NO_CAPACITY},
        {409, "{\"error\":{\"code\":\"OverconstrainedAllocationRequest\",\"message\":\"m\"}}",
            ERR_NO_CAPACITY},
        {409, "{\"error\":{\"code\":\"QuotaExceeded\",\"message\":\"m\"}}", ERR_QUOTA},
        {400, "{\"error\":{\"code\":\"PublicIPCountQuotaExceeded\",\"message\":\"m\"}}", ERR_QUOTA},
        {409, "{\"error\":{\"code\":\"OperationNotAllowed\",\"message\":\"Disk is attached\"}}",
            ERR_CONFIG},
        {409, "{\"error\":{\"code\":\"Conflict\",\"message\":\"m\"}}", ERR_UNAVAILABLE},
        {409,
            "{\"error\":{\"code\":\"Conflict\",\"message\":\"m\",\"details\":[{\"code\":"
            "\"QuotaExceeded\",\"message\":\"n\"}]}}",
            ERR_QUOTA},
        {409, "{\"error\":{\"code\":\"AnotherOperationInProgress\",\"message\":\"m\"}}",
            ERR_UNAVAILABLE},
        {409, "{\"error\":{\"code\":\"PropertyChangeNotAllowed\",\"message\":\"m\"}}",
            ERR_CONFLICT},
        {429, "{\"error\":{\"code\":\"TooManyRequests\",\"message\":\"m\"}}", ERR_THROTTLED},
        {429, "{\"error\":{\"code\":\"SubscriptionRequestsThrottled\",\"message\":\"m\"}}",
            ERR_THROTTLED},
        {429, "", ERR_THROTTLED},
        {403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"m\"}}", ERR_DENIED},
        {403, "{\"error\":{\"code\":\"LinkedAuthorizationFailed\",\"message\":\"m\"}}", ERR_DENIED},
        {401, "{\"error\":{\"code\":\"ExpiredAuthenticationToken\",\"message\":\"m\"}}", ERR_DENIED,
            ARM_REMEDY_TOKEN},
        {401, "", ERR_DENIED, ARM_REMEDY_TOKEN},
        {404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}", ERR_NOT_FOUND},
        {404, "{\"error\":{\"code\":\"ResourceGroupNotFound\",\"message\":\"m\"}}", ERR_CONFIG},
        {400, "{\"error\":{\"code\":\"InvalidParameter\",\"message\":\"m\"}}", ERR_CONFIG},
        {400, "{\"error\":{\"code\":\"AzureSpotIsNotSupportedForThisVMSize\",\"message\":\"m\"}}",
            ERR_UNSUPPORTED},
        {400, "{\"error\":{\"code\":\"SomethingNew\",\"message\":\"m\"}}", ERR_CONFIG},
        {409, "{\"error\":{\"code\":\"SomethingNew\",\"message\":\"AllocationFailed, they say\"}}",
            ERR_NO_CAPACITY},
        {409, "{\"error\":{\"code\":\"SomethingNew\",\"message\":\"NoAllocationFailedHere\"}}",
            ERR_UNAVAILABLE},
        {500, "{\"error\":{\"code\":\"SomethingNew\",\"message\":\"m\"}}", ERR_UNAVAILABLE},
        {503, "<html>busy</html>", ERR_UNAVAILABLE},
        {400, "nonsense", ERR_INVALID},
        {400, "{\"error\":7}", ERR_INVALID},
        {404, "{}", ERR_NOT_FOUND},
    };
    static const struct {
        const char *file;
        enum err_kind kind;
    } files[] = {{"azure_error_sku.json", ERR_NO_CAPACITY}, {"azure_error_quota.json", ERR_QUOTA},
        {"azure_error_nested.json", ERR_NO_CAPACITY}, {"error_page.html", ERR_UNAVAILABLE}};
    enum arm_remedy remedy;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *body = cases[i].body;
        int kind = arm_parse_error(cases[i].status, body, strlen(body), &remedy, &e);
        if (kind != (int)cases[i].kind || kind != (int)e.kind || remedy != cases[i].remedy)
            fail_msg("%d %s: %s: %s", cases[i].status, body, err_kind_name(e.kind), e.text);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *body = fake_read_file(files[i].file);
        if (arm_parse_error(502, body, strlen(body), &remedy, &e) != (int)files[i].kind)
            fail_msg("%s: %s: %s", files[i].file, err_kind_name(e.kind), e.text);
        assert_null(strpbrk(e.text, "\r\n"));
        free(body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spot_machine_goes_with_all_its_parts),
        cmocka_unit_test(an_on_demand_machine_in_no_zone_names_neither),
        cmocka_unit_test(a_network_interface_is_tagged_like_its_machine),
        cmocka_unit_test(the_same_launch_is_the_same_bytes),
        cmocka_unit_test(launches_that_cannot_be_sent_are_refused),
        cmocka_unit_test(settings_that_cannot_be_sent_are_refused),
        cmocka_unit_test(paths_are_escaped),
        cmocka_unit_test(consoles_logs_are_read_at_azure_s_storage_only),
        cmocka_unit_test(only_urls_of_the_endpoint_are_ours),
        cmocka_unit_test(a_machine_is_read),
        cmocka_unit_test(listings_keep_our_machines_of_the_region),
        cmocka_unit_test(a_deallocated_machine_was_reclaimed),
        cmocka_unit_test(tagged_parts_of_the_group_are_leftovers),
        cmocka_unit_test(disks_are_read_without_those_in_use),
        cmocka_unit_test(malformed_disks_are_refused),
        cmocka_unit_test(operations_end_well_or_with_their_error),
        cmocka_unit_test(a_failed_machine_says_why_in_its_view),
        cmocka_unit_test(prices_are_of_linux_and_the_newest),
        cmocka_unit_test(the_address_of_a_console_log_is_read_and_never_shown),
        cmocka_unit_test(malformed_replies_are_refused),
        cmocka_unit_test(refusals_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
