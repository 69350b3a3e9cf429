/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/filter.h"
#include "tests/emulator/arm_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct arm_world *w, const char *name, char *body, int status, const char *text)
{
    char *path = mem_printf(VMS "/%s", name);
    arm_expect(w, "PUT", path, VERSION, body, status, text);
    free(path);
    free(body);
}

/* ---- Creating and deleting ---- */

static void a_machine_comes_and_goes_with_its_parts(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    put(&w, "a", arm_machine("'tags':{'k':'v'}", ""), 201, "\"provisioningState\":\"Creating\"");
    assert_string_equal(arm_reply_header(&w, "Retry-After"), "1");
    assert_non_null(arm_reply_header(&w, "Location"));
    assert_string_equal(arm_operation_status(&w, NULL), "InProgress");
    arm_world_advance(&w, BOOT_MS);
    arm_expect(
        &w, "GET", VMS "/a", VERSION "&$expand=instanceView", NULL, 200, "PowerState/running");
    assert_string_equal(arm_reply_str(&w, "properties.provisioningState"), "Succeeded");
    arm_expect(&w, "GET", VMS "/a/instanceView", VERSION, NULL, 200, "ProvisioningState/succeeded");
    arm_expect(
        &w, "GET", NICS, NIC_VERSION, NULL, 200, "\"virtualMachine\":{\"id\":\"" VMS "/a\"}");
    arm_expect(&w, "GET", DISKS, DISK_VERSION, NULL, 200, "\"managedBy\":\"" VMS "/a\"");

    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    assert_string_equal(arm_operation_status(&w, NULL), "Succeeded");
    assert_int_equal(w.arm.n_resources, 0);
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 204, "");
    arm_expect(&w, "GET", VMS "/a", VERSION, NULL, 404, "ResourceNotFound");
    arm_world_stop(&w);
}

/* ---- Consoles ---- */

static void print(void *ctx, const struct instance *i, struct buf *out)
{
    (void)i;
    buf_adds(out, ctx);
}

/* Returns the status of a GET of this URL, and its body. */
static int get_blob(struct arm_world *w, const char *url, const char *authorization, char out[64])
{
    struct buf body = {0};
    const char *type = NULL;
    char *copy = mem_strdup(url), *query = strchr(copy, '?');
    *query++ = '\0';
    const struct arm_request q = {.method = "GET",
        .path = strstr(copy, "/bootdiagnostics/"),
        .query = query,
        .authorization = authorization};
    assert_true(arm_console_is_blob(&q));
    int status = arm_console_blob(&w->arm, &q, w->now, &body, &type);
    assert_non_null(type);
    str_copy(out, 64, buf_str(&body));
    buf_deinit(&body);
    free(copy);
    return status;
}

static void a_console_is_read_by_a_signed_url_for_a_while(void **state)
{
#define RETRIEVE VMS "/a/retrieveBootDiagnosticsData"
    static char words[] = "it boots\n";
    struct arm_world w;
    char out[64];
    (void)state;
    arm_world_start(&w);
    w.arm.console = print;
    w.arm.console_ctx = words;
    put(&w, "a", arm_machine("", "'diagnosticsProfile':{'bootDiagnostics':{'enabled':true}}"), 201,
        "");
    arm_world_advance(&w, BOOT_MS);
    arm_expect(&w, "GET", RETRIEVE, VERSION, NULL, 405, "MethodNotAllowed");
    arm_expect(&w, "POST", VMS "/b/retrieveBootDiagnosticsData", VERSION, NULL, 404, "");
    arm_expect(&w, "POST", RETRIEVE, VERSION "&sasUriExpirationTimeInMinutes=0", NULL, 400, "");
    arm_expect(&w, "POST", RETRIEVE, VERSION "&sasUriExpirationTimeInMinutes=5", NULL, 200, "");
    char *url = mem_strdup(arm_reply_str(&w, "serialConsoleLogBlobUri"));
    assert_int_equal(get_blob(&w, url, NULL, out), 200);
    assert_string_equal(out, "it boots\n");
    /* a token is not accepted there */
    assert_int_equal(get_blob(&w, url, w.authorization, out), 400);
    char *other = mem_strdup(url);
    *strstr(other, "/a.serial") = '_';
    assert_int_equal(get_blob(&w, other, NULL, out), 403);
    free(other);
    other = mem_strdup(url);
    char *end = strstr(other, "se=20");
    end[5] = '9'; /* in another year */
    assert_int_equal(get_blob(&w, other, NULL, out), 403);
    free(other);
    arm_world_advance(&w, 5 * 60000);
    assert_int_equal(get_blob(&w, url, NULL, out), 200);
    arm_world_advance(&w, 1000);
    assert_int_equal(get_blob(&w, url, NULL, out), 403);
    free(url);
    arm_world_stop(&w);
#undef RETRIEVE
}

static void a_machine_without_boot_diagnostics_has_no_console(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    arm_run(&w, "a");
    arm_expect(&w, "POST", VMS "/a/retrieveBootDiagnosticsData", VERSION, NULL, 409,
        "Boot diagnostics is not enabled");
    /* which may be changed */
    put(&w, "a", arm_machine("", "'diagnosticsProfile':{'bootDiagnostics':{'enabled':true}}"), 200,
        "");
    arm_expect(&w, "POST", VMS "/a/retrieveBootDiagnosticsData", VERSION, NULL, 200, "sig=");
    put(&w, "b", arm_machine("", "'diagnosticsProfile':{'bootDiagnostics':{'on':true}}"), 400,
        "'on'");
    arm_world_stop(&w);
}

static void what_is_to_be_detached_stays(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    char *body = arm_machine("", "");
    for (char *p = body; (p = strstr(p, "\"Delete\",\"ip")); p++)
        memcpy(p, "\"Detach\"", 8);
    put(&w, "a", body, 201, "");
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    assert_int_equal(arm_count(&w, ARM_KIND_VM), 0);
    assert_int_equal(arm_count(&w, ARM_KIND_DISK), 0);
    assert_int_equal(arm_count(&w, ARM_KIND_NIC), 1);
    char *path = mem_printf(NICS "/%s", w.arm.resources[0]->name);
    arm_expect(&w, "DELETE", path, NIC_VERSION, NULL, 202, "");
    assert_string_equal(arm_operation_status(&w, NULL), "Succeeded");
    arm_expect(&w, "DELETE", path, NIC_VERSION, NULL, 204, "");
    free(path);
    arm_world_stop(&w);
}

static void a_full_pool_fails_the_operation_and_leaves_everything(void **state)
{
    struct arm_world w;
    char code[64];
    (void)state;
    arm_world_start(&w);
    arm_run(&w, "a");
    arm_run(&w, "b");
    put(&w, "c", arm_machine("", ""), 201, "Creating");
    assert_string_equal(arm_operation_status(&w, code), "InProgress");
    put(&w, "c", arm_machine("", ""), 201, "Creating"); /* the same create, unchanged */
    arm_world_advance(&w, BOOT_MS);
    assert_string_equal(arm_operation_status(&w, code), "Failed");
    assert_string_equal(code, "ZonalAllocationFailed");
    arm_expect(&w, "GET", VMS "/c", VERSION "&$expand=instanceView", NULL, 200,
        "failed/ZonalAllocationFailed");
    assert_int_equal(arm_count(&w, ARM_KIND_NIC), 3);
    assert_int_equal(arm_count(&w, ARM_KIND_DISK), 3);
    arm_expect(&w, "DELETE", VMS "/c", VERSION, NULL, 202, "");
    assert_int_equal(w.arm.n_resources, 6);
    arm_world_stop(&w);
}

static void a_failed_machine_can_be_put_again(void **state)
{
    struct arm_world w;
    char code[64];
    (void)state;
    arm_world_start(&w);
    arm_run(&w, "a");
    arm_run(&w, "b");
    put(&w, "c", arm_machine("", ""), 201, "Creating");
    arm_world_advance(&w, BOOT_MS);
    assert_string_equal(arm_operation_status(&w, NULL), "Failed");
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    put(&w, "c", arm_machine("", ""), 201, "Creating");
    arm_world_advance(&w, BOOT_MS);
    assert_string_equal(arm_operation_status(&w, code), "Succeeded");
    assert_int_equal(w.arm.n_resources, 6); /* with its original parts */
    arm_world_stop(&w);
}

static void a_size_that_a_zone_does_not_have_is_refused_at_once(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    char *body = arm_machine("", "");
    *(strstr(body, "[\"1\"]") + 2) = '2';
    put(&w, "a", body, 409, "SkuNotAvailable");
    assert_int_equal(w.arm.n_resources, 0);
    assert_int_equal(w.region.counts.refusals, 1);
    arm_world_stop(&w);
}

static void a_create_fails_with_the_error_that_was_asked_for(void **state)
{
    static const char *const codes[] = {
        "SkuNotAvailable", "AllocationFailed", "QuotaExceeded", "Whatever"};
    struct arm_world w;
    char code[64];
    (void)state;
    arm_world_start(&w);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct fault fault = {.kind = FAULT_REFUSE, .action = ARM_ACTION_LATER, .count = 1};
        STR_COPY(fault.code, codes[i]);
        assert_true(faults_add(&w.region.faults, &fault));
        put(&w, "a", arm_machine("", ""), 201, "Creating");
        arm_world_advance(&w, BOOT_MS);
        assert_string_equal(arm_operation_status(&w, code), "Failed");
        assert_string_equal(code, codes[i]);
        assert_int_equal(w.arm.n_resources, 3);
        arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
        assert_int_equal(w.arm.n_resources, 0);
    }
    arm_world_stop(&w);
}

static void a_put_is_known_by_its_name(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    char *uuid = mem_strdup(vm->uuid);
    put(&w, "A", arm_machine("'tags':{'k':'w'}", ""), 200, "\"k\":\"w\"");
    assert_string_equal(arm_reply_str(&w, "properties.vmId"), uuid);
    assert_int_equal(w.region.counts.launches, 1);
    put(&w, "a", arm_machine("", "'vmId':'x'"), 200, ""); /* the shown body, sent back */
    char *body = arm_machine("", "");
    memcpy(strstr(body, "Standard_D8s_v5"), "Standard_D9s_v5", 15);
    put(&w, "a", body, 409, "PropertyChangeNotAllowed");
    body = arm_machine("", "");
    memcpy(strstr(body, "IyEvYmluL3NoCg"), "IyEvYmluL3NoCh", 14);
    put(&w, "a", body, 409, "Changing property 'customData'");
    free(uuid);
    arm_world_stop(&w);
}

static void a_delete_overtakes_a_create(void **state)
{
    struct arm_world w;
    char code[64];
    (void)state;
    arm_world_start(&w);
    put(&w, "a", arm_machine("", ""), 201, "Creating");
    char *create = mem_strdup(w.operation);
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    free(w.operation);
    w.operation = create;
    assert_string_equal(arm_operation_status(&w, code), "Canceled");
    assert_string_equal(code, "OperationPreempted");
    assert_int_equal(w.arm.n_resources, 0);
    assert_int_equal(w.region.market.pools[0].in_use[CLOUD_SPOT], 0);
    arm_world_stop(&w);
}

static void custom_data_is_what_runs_and_is_not_shown(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    assert_string_equal(buf_str(&vm->instance->reservation->spec.user_data), "#!/bin/sh\n");
    arm_ask(&w, "GET", VMS "/a", VERSION, NULL);
    char *text = arm_reply_text(&w.reply);
    assert_null(strstr(text, "customData"));
    free(text);
    arm_world_stop(&w);
}

static void a_power_off_leaves_a_stopped_machine(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    region_machine_gone(&w.region, vm->instance, true, w.now, w.now);
    arm_expect(
        &w, "GET", VMS "/a", VERSION "&$expand=instanceView", NULL, 200, "PowerState/stopped");
    assert_int_equal(w.arm.n_resources, 3);
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    assert_int_equal(w.arm.n_resources, 0);
    arm_world_stop(&w);
}

/* ---- Eviction ---- */

static void evict(struct arm_world *w, const char *name)
{
    char *path = mem_printf(VMS "/%s/simulateEviction", name);
    arm_expect(w, "POST", path, VERSION, NULL, 204, "");
    free(path);
}

static void an_eviction_for_good_takes_all_with_it(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    arm_run(&w, "a");
    evict(&w, "a");
    arm_world_advance(&w, 29000);
    assert_int_equal(w.arm.n_resources, 3);
    arm_world_advance(&w, 1000);
    assert_int_equal(w.arm.n_resources, 0);
    assert_int_equal(w.region.counts.reclaims, 1);
    arm_world_stop(&w);
}

static void a_machine_that_powers_off_under_notice_is_evicted_all_the_same(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    evict(&w, "a");
    arm_world_advance(&w, 1000);
    region_machine_gone(&w.region, vm->instance, true, w.now, w.now);
    arm_expect(
        &w, "GET", VMS "/a", VERSION "&$expand=instanceView", NULL, 200, "PowerState/stopped");
    arm_world_advance(&w, 29000);
    assert_int_equal(w.arm.n_resources, 0);
    arm_world_stop(&w);
}

static void an_eviction_may_leave_a_deallocated_machine(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    char *body = arm_machine("", "");
    char *policy = strstr(body, "\"evictionPolicy\":\"Delete\",");
    /* Azure's default is Deallocate */
    memset(policy, ' ', strlen("\"evictionPolicy\":\"Delete\","));
    put(&w, "a", body, 201, "\"evictionPolicy\":\"Deallocate\"");
    arm_world_advance(&w, BOOT_MS);
    evict(&w, "a");
    arm_world_advance(&w, 30000);
    arm_expect(
        &w, "GET", VMS "/a", VERSION "&$expand=instanceView", NULL, 200, "PowerState/deallocated");
    assert_int_equal(w.arm.n_resources, 3);
    assert_int_equal(w.region.market.pools[0].in_use[CLOUD_SPOT], 0);
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    assert_int_equal(w.arm.n_resources, 0);
    arm_world_stop(&w);
}

static void only_a_running_spot_machine_can_be_evicted(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    arm_expect(&w, "POST", VMS "/a/simulateEviction", VERSION, NULL, 404, "ResourceNotFound");
    char *body = arm_machine("", "");
    char *spot = strstr(body, "\"priority\":\"Spot\"");
    const char *end = strstr(body, "\"hardwareProfile\"");
    memset(spot, ' ', (size_t)(end - spot));
    put(&w, "a", body, 201, "");
    arm_world_advance(&w, BOOT_MS);
    arm_expect(&w, "POST", VMS "/a/simulateEviction", VERSION, NULL, 409, "OperationNotAllowed");
    arm_world_stop(&w);
}

/* ---- Invalid requests ---- */

static void a_wrong_body_is_refused_by_name(void **state)
{
    static const struct {
        const char *find, *put; /* in the body of a machine, of the same length or shorter */
        int status;
        const char *code;
    } cases[] = {
        {"\"location\":\"eastus\"", "\"location\":\"westus\"", 400,
            "LocationNotAvailableForResourceType"},
        {"\"location\":\"eastus\",", " ", 400, "LocationRequired"},
        {"[\"1\"]", "[\"9\"]", 400, "AvailabilityZoneNotSupported"},
        {"[\"1\"]", "[17]", 400, "zones must be one zone"},
        {"\"vmSize\":\"Standard_D8s_v5\"", "\"vmSize\":\"Standard_nope\"", 400, "not valid"},
        {"\"vmSize\":\"Standard_D8s_v5\"", " ", 400, "Required parameter 'vmSize'"},
        {"\"vmSize\":\"Standard_D8s_v5\"", "\"vmSize\":17", 400, "Error converting"},
        {"\"priority\":\"Spot\"", "\"priority\":\"Hot\"", 400, "'Hot'"},
        {"\"priority\":\"Spot\",", " ", 400, "Eviction policy"},
        {"\"priority\"", "\"prioritx\"", 400, "Could not find member 'prioritx'"},
        {"\"evictionPolicy\":\"Delete\"", "\"evictionPolicy\":\"Stay\"", 400, "'Stay'"},
        {"\"maxPrice\":-1", "\"maxPrice\":-2", 400, "MaxPriceValueInvalid"},
        {"\"maxPrice\":-1", "\"maxPrice\":.1", 400, "InvalidRequestContent"},
        {"\"maxPrice\":-1", "\"maxPrice\":\"\"", 400, "MaxPriceValueInvalid"},
        {"\"billingProfile\":{\"maxPrice\":-1}", "\"billingProfile\":{\"maxPrice\":0.01}", 409,
            "SpotPriceGreaterThanProvidedMaxPrice"},
        {"\"sku\":\"s\",", " ", 400, "'sku'"},
        {"\"createOption\":\"FromImage\"", "\"createOption\":\"Attach\"", 400, "'Attach'"},
        {"\"deleteOption\":\"Delete\"", "\"deleteOption\":\"Maybe\"", 400, "'Maybe'"},
        {"\"computerName\":\"c\",", " ", 400, "'computerName'"},
        {"IyEvYmluL3NoCg==", "IyEvYmluL3NoCg=!", 400, "Base64"},
        {"\"publicKeys\":[", "\"publicKexs\":[", 400, "publicKeys"},
        {"\"networkApiVersion\":\"2020-11-01\",", " ", 400, "'networkApiVersion'"},
        {"\"name\":\"nic0\"", "\"name\":\"../x\"", 400, "network interface configuration"},
        {"/subnets/s", "", 400, "'subnet.id'"},
        {"/virtualNetworks/", "/virtualNetwOrkz/", 400, "'subnet.id'"},
        {"{\"location\"", "[\"location\"", 400, "InvalidRequestContent"},
    };
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *body = arm_machine("", ""), *at = strstr(body, cases[i].find);
        if (!at)
            fail_msg("%s is not in %s", cases[i].find, body);
        char *changed = mem_printf(
            "%.*s%s%s", (int)(at - body), body, cases[i].put, at + strlen(cases[i].find));
        free(body);
        put(&w, "a", changed, cases[i].status, cases[i].code);
    }
    arm_world_stop(&w);
}

static void parts_of_others_cannot_be_used(void **state)
{
    struct arm_world w;
    char *nic = arm_quoted(
        "{'location':'eastus','properties':{'ipConfigurations':[{'name':'ip0','properties':{"
        "'subnet':{'id':'" SUBNET "'}}}]}}");
    char *text = mem_printf(
        "'networkInterfaces':[{'id':'%s','properties':{'deleteOption':'Delete'}}]}}}", NICS "/n");
    (void)state;
    arm_world_start(&w);
    char *body = arm_machine("", ""), *refs = arm_quoted(text);
    strcpy(strstr(body, "\"networkApiVersion\""), refs);
    arm_expect(&w, "PUT", VMS "/a", VERSION, body, 400, "InvalidResourceReference");
    arm_expect(&w, "PUT", NICS "/n", NIC_VERSION, nic, 201, "Succeeded");
    arm_expect(&w, "PUT", VMS "/a", VERSION, body, 201, "Creating");
    arm_expect(&w, "PUT", VMS "/b", VERSION, body, 400, "NicInUse");
    arm_expect(&w, "DELETE", NICS "/n", NIC_VERSION, NULL, 400, "NicInUse");
    arm_expect(&w, "DELETE", VMS "/a", VERSION, NULL, 202, "");
    assert_int_equal(w.arm.n_resources, 0); /* the interface is deleted with it, as requested */
    free(body), free(refs), free(text), free(nic);
    arm_world_stop(&w);
}

static void an_interface_is_kept_for_the_machine_that_was_refused(void **state)
{
    struct arm_world w;
    char *nic = arm_quoted(
        "{'location':'eastus','properties':{'ipConfigurations':[{'name':'ip0','properties':{"
        "'subnet':{'id':'" SUBNET "'}}}]}}");
    char *refs = arm_quoted("'networkInterfaces':[{'id':'" NICS "/n'}]}}}");
    (void)state;
    arm_world_start(&w);
    w.account.nic_reserved_ms = 180000;
    char *body = arm_machine("", "");
    strcpy(strstr(body, "\"networkApiVersion\""), refs);
    *(strstr(body, "[\"1\"]") + 2) = '2';
    arm_expect(&w, "PUT", NICS "/n", NIC_VERSION, nic, 201, "");
    arm_expect(&w, "PUT", VMS "/a", VERSION, body, 409, "SkuNotAvailable");
    arm_expect(&w, "DELETE", NICS "/n", NIC_VERSION, NULL, 400, "NicReservedForAnotherVm");
    arm_expect(&w, "PUT", VMS "/b", VERSION, body, 400, "NicReservedForAnotherVm");
    arm_expect(&w, "PUT", VMS "/a", VERSION, body, 409, "SkuNotAvailable");
    arm_world_advance(&w, 180000);
    arm_expect(&w, "DELETE", NICS "/n", NIC_VERSION, NULL, 202, "");
    free(body), free(refs), free(nic);
    arm_world_stop(&w);
}

static void a_disk_in_use_stays(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    arm_run(&w, "a");
    arm_ask(&w, "GET", VMS "/a", VERSION, NULL);
    char *path =
        mem_printf(DISKS "/%s", arm_reply_str(&w, "properties.storageProfile.osDisk.name"));
    arm_expect(&w, "GET", path, DISK_VERSION, NULL, 200, "Attached");
    arm_expect(&w, "DELETE", path, DISK_VERSION, NULL, 409, "OperationNotAllowed");
    arm_expect(&w, "PUT", path, DISK_VERSION, "{}", 405, "MethodNotAllowed");
    free(path);
    arm_world_stop(&w);
}

static void a_call_needs_a_version_a_scope_and_a_route(void **state)
{
    static const struct {
        const char *method, *path, *query, *code;
        int status;
    } cases[] = {
        {"GET", VMS, "", "MissingApiVersionParameter", 400},
        {"GET", VMS, "api-version=2022-08", "InvalidApiVersionParameter", 400},
        {"GET", VMS, DISK_VERSION, "InvalidApiVersionParameter", 400},
        {"GET", VMS, "api-version=2022-08-01&api-version=2022-08-01", "InvalidRequestUri", 400},
        {"GET", "/subscriptions/other/providers/Microsoft.Compute/virtualMachines", VERSION,
            "SubscriptionNotFound", 404},
        {"GET", "/subscriptions", VERSION, "HttpResourceNotFound", 404},
        {"GET", "/", VERSION, "HttpResourceNotFound", 404},
        {"GET", VMS "/a/b/c/d/e/f/g", VERSION, "HttpResourceNotFound", 404},
        {"GET", VMS "/a/start", VERSION, "HttpResourceNotFound", 404},
        {"GET", VMS "/a", VERSION "&$expand=all", "InvalidParameter", 400},
        {"GET", VMS, VERSION "&$filter=x", "InvalidParameter", 400},
        {"GET", VMS, VERSION "&$skiptoken=x", "InvalidSkipToken", 400},
        {"PATCH", VMS "/a", VERSION, "MethodNotAllowed", 405},
        {"POST", VMS, VERSION, "MethodNotAllowed", 405},
        {"PUT", VMS "/a", VERSION, "InvalidRequestContent", 400},
        {"PUT", VMS "/-a", VERSION, "InvalidResourceName", 400},
        {"PUT", VMS "/a.", VERSION, "InvalidResourceName", 400},
        {"GET",
            "/subscriptions/" SUBSCRIPTION
            "/providers/Microsoft.Compute/locations/eastus/operations/x",
            VERSION, "NotFound", 404},
    };
    static const char *const groups[] = {"lab", NULL};
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        arm_expect(&w, cases[i].method, cases[i].path, cases[i].query, NULL, cases[i].status,
            cases[i].code);
    w.account.groups = groups;
    arm_expect(&w, "GET", "/subscriptions/" SUBSCRIPTION "/resourceGroups/lob",
        "api-version=2021-04-01", NULL, 404, "ResourceGroupNotFound");
    arm_expect(&w, "GET", "/SUBSCRIPTIONS/" SUBSCRIPTION "/resourcegroups/LAB",
        "api-version=2021-04-01", NULL, 200, "Succeeded");
    arm_world_stop(&w);
}

static void limits_are_reported(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    w.account.spot_cores = 8;
    arm_run(&w, "a");
    put(&w, "b", arm_machine("", ""), 409, "LowPriorityCores quota");
    w.account.spot_cores = 0;
    put(&w, "b", arm_machine("'tags':{'a<b':'x'}", ""), 400, "InvalidTagNameCharacters");
    put(&w, "b", arm_machine("'tags':{'a':7}", ""), 400, "InvalidTagValue");
    int status = 0, n = 0;
    for (; status != 429 && n < 500; n++)
        status = arm_ask(&w, "DELETE", VMS "/nobody", VERSION, NULL);
    assert_int_equal(n, 201);
    assert_non_null(arm_reply_header(&w, "Retry-After"));
    arm_world_advance(&w, 1000);
    for (n = 0; n < 10; n++)
        arm_expect(&w, "DELETE", VMS "/nobody", VERSION, NULL, 204, "");
    assert_string_equal(arm_reply_header(&w, "x-ms-ratelimit-remaining-subscription-deletes"), "0");
    arm_expect(&w, "DELETE", VMS "/nobody", VERSION, NULL, 429, "SubscriptionRequestsThrottled");
    arm_world_stop(&w);
}

/* ---- Lists ---- */

static size_t list_all(struct arm_world *w, const char *path, const char *query)
{
    char *q = mem_strdup(query);
    size_t n = 0;
    for (int pages = 0; pages < 10; pages++) {
        assert_int_equal(arm_ask(w, "GET", path, q, NULL), 200);
        n += json_array_size(json_object_get(w->reply.body, "value"));
        const char *next = arm_reply_str(w, "nextLink");
        free(q);
        if (!next[0])
            return n;
        q = mem_strdup(strchr(next, '?') + 1);
    }
    fail_msg("the pages do not end");
    return 0;
}

static void lists_come_in_pages(void **state)
{
    static const char all[] = "/subscriptions/" SUBSCRIPTION "/resources";
    struct arm_world w;
    char name[32];
    (void)state;
    arm_world_start(&w);
    w.account.page = 2;
    w.region.market.pools[0].capacity[CLOUD_SPOT] = 10;
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        put(&w, name, arm_machine(i % 2 ? "'tags':{'belay:cluster':'lab'}" : "", ""), 201, "");
    }
    assert_int_equal(list_all(&w, VMS, VERSION), 5);
    assert_int_equal(
        list_all(&w, "/subscriptions/" SUBSCRIPTION "/providers/Microsoft.Compute/virtualMachines",
            VERSION "&statusOnly=true"),
        5);
    assert_int_equal(list_all(&w,
                         "/subscriptions/" SUBSCRIPTION
                         "/resourceGroups/other/providers/Microsoft.Compute/virtualMachines",
                         VERSION),
        0);
    assert_int_equal(list_all(&w, NICS, NIC_VERSION), 5);
    assert_int_equal(list_all(&w, all, "api-version=2021-04-01"), 15);
    /* Machines and their disks, which carry their tags. */
    assert_int_equal(
        list_all(&w, all,
            "api-version=2021-04-01&$filter=tagName%20eq%20%27belay:cluster%27%20and%20tagValue%"
            "20eq%20%27lab%27"),
        4);
    assert_int_equal(
        list_all(&w, all,
            "api-version=2021-04-01&$filter=resourceType%20eq%20%27Microsoft.Compute/disks%27"),
        5);
    arm_expect(&w, "GET", all, "api-version=2021-04-01&$filter=tagValue%20eq%20%27lab%27", NULL,
        400, "InvalidFilterInQueryString");
    arm_expect(&w, "GET", all, "api-version=2021-04-01&$filter=tagName%20eq", NULL, 400,
        "InvalidFilterInQueryString");
    arm_world_stop(&w);
}

static void a_list_may_lag(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    w.options.consistency_delay_ms = 5000;
    arm_run(&w, "a");
    assert_int_equal(list_all(&w, VMS, VERSION), 0);
    arm_expect(&w, "GET", VMS "/a", VERSION, NULL, 200, "Succeeded");
    arm_world_advance(&w, 5000);
    assert_int_equal(list_all(&w, VMS, VERSION), 1);
    arm_world_stop(&w);
}

static void filters_are_read_strictly(void **state)
{
    static const char *const names[] = {"a", "b", NULL};
    static const char *const wrong[] = {"a", "a eq", "a eq 'x", "a eq x", "c eq 'x'", "a gt 'x'",
        "a eq 'x' or b eq 'y'", "a eq 'x' and", "contains(a 'x')", "contains(a,'x'", "and",
        "'a' eq 'x'"};
    struct arm_filter f;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (arm_filter_parse(wrong[i], names, &f, &e) != ERR_INVALID)
            fail_msg("%s is taken", wrong[i]);
    assert_int_equal(
        arm_filter_parse("a eq 'it''s' and contains(b, 'Spot') and b ne ''", names, &f, &e), 0);
    assert_int_equal(f.n, 3);
    assert_string_equal(f.terms[0].text, "it's");
    assert_true(arm_filter_passes(&f.terms[1], "D8s v5 Spot"));
    assert_false(arm_filter_passes(&f.terms[2], ""));
    assert_int_equal(arm_filter_parse("", names, &f, &e), 0);
    assert_int_equal(f.n, 0);
}

/* ---- Prices ---- */

#define PRICES "/api/retail/prices"
#define OF_SIZE "$filter=armSkuName%20eq%20%27" SIZE "%27"

static void prices_are_the_markets(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    w.authorization[0] = 'X'; /* no token is required */
    arm_expect(&w, "GET", PRICES, OF_SIZE "%20and%20priceType%20eq%20%27Consumption%27", NULL, 200,
        "\"retailPrice\":0.384,");
    assert_int_equal(json_integer_value(json_object_get(w.reply.body, "Count")), 5);
    arm_expect(&w, "GET", PRICES, OF_SIZE "%20and%20skuName%20eq%20%27D8s%20v5%20Spot%27", NULL,
        200, "\"retailPrice\":0.08,");
    /* Linux and Windows */
    assert_int_equal(json_integer_value(json_object_get(w.reply.body, "Count")), 2);
    market_set_price(&w.region.market.pools[0], CLOUD_SPOT, 95000, w.now);
    arm_expect(&w, "GET", PRICES, OF_SIZE, NULL, 200, "\"retailPrice\":0.095,");
    w.account.page = 5;
    arm_expect(&w, "GET", PRICES, "", NULL, 200, "NextPageLink\":\"http://127.0.0.1:4711" PRICES);
    arm_expect(&w, "GET", PRICES, "$filter=&$skip=10", NULL, 200, "\"NextPageLink\":null");
    arm_expect(&w, "GET", PRICES, "$filter=x", NULL, 400, "Invalid OData parameters");
    arm_expect(&w, "GET", PRICES, "$skip=-1", NULL, 400, "Invalid OData parameters");
    arm_expect(&w, "GET", PRICES, "api-version=1", NULL, 400, "api-version");
    arm_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_comes_and_goes_with_its_parts),
        cmocka_unit_test(a_console_is_read_by_a_signed_url_for_a_while),
        cmocka_unit_test(a_machine_without_boot_diagnostics_has_no_console),
        cmocka_unit_test(what_is_to_be_detached_stays),
        cmocka_unit_test(a_full_pool_fails_the_operation_and_leaves_everything),
        cmocka_unit_test(a_failed_machine_can_be_put_again),
        cmocka_unit_test(a_size_that_a_zone_does_not_have_is_refused_at_once),
        cmocka_unit_test(a_create_fails_with_the_error_that_was_asked_for),
        cmocka_unit_test(a_put_is_known_by_its_name),
        cmocka_unit_test(a_delete_overtakes_a_create),
        cmocka_unit_test(custom_data_is_what_runs_and_is_not_shown),
        cmocka_unit_test(a_power_off_leaves_a_stopped_machine),
        cmocka_unit_test(an_eviction_for_good_takes_all_with_it),
        cmocka_unit_test(a_machine_that_powers_off_under_notice_is_evicted_all_the_same),
        cmocka_unit_test(an_eviction_may_leave_a_deallocated_machine),
        cmocka_unit_test(only_a_running_spot_machine_can_be_evicted),
        cmocka_unit_test(a_wrong_body_is_refused_by_name),
        cmocka_unit_test(parts_of_others_cannot_be_used),
        cmocka_unit_test(an_interface_is_kept_for_the_machine_that_was_refused),
        cmocka_unit_test(a_disk_in_use_stays),
        cmocka_unit_test(a_call_needs_a_version_a_scope_and_a_route),
        cmocka_unit_test(limits_are_reported),
        cmocka_unit_test(lists_come_in_pages),
        cmocka_unit_test(a_list_may_lag),
        cmocka_unit_test(filters_are_read_strictly),
        cmocka_unit_test(prices_are_the_markets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
