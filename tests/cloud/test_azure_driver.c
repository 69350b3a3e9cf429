/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/azure.h"
#include "cloud/azure/credentials.h"
#include "fake_http.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SECRET "q8Q~sEcReT.example_0123456789"
#define ENDPOINT "https://management.azure.com"
#define GROUP "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/resourceGroups/lab/providers/"
#define VMS ENDPOINT GROUP "Microsoft.Compute/virtualMachines"
#define VM VMS "/belay-lab-17?api-version=2022-08-01"
#define NIC                                                                                        \
    ENDPOINT GROUP "Microsoft.Network/networkInterfaces/belay-lab-17-nic?api-version=2020-11-01"
#define DISK ENDPOINT GROUP "Microsoft.Compute/disks/belay-lab-17-os?api-version=2022-07-02"
#define OPERATION                                                                                  \
    ENDPOINT "/subscriptions/s/providers/Microsoft.Compute/locations/eastus/operations/6b1e?p=1"
#define TOKEN_PATH "/tenant-1/oauth2/v2.0/token"
#define TOKEN_REPLY "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"eyJ.T0.k\"}"

/* A driver with a principal from the environment, and the outcome of its last call. */
struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct azure_options options;
    struct cloud_driver *driver;
    struct outcome got;
    size_t first; /* first request of the pending call that is not for a token */
    char *file;   /* with credentials */
};

static void clear_environment(void)
{
    static const char *const names[] = {
        "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    fake_http_route(&g->http, "POST", TOKEN_PATH, 200, TOKEN_REPLY);
    clear_environment();
    setenv("AZURE_TENANT_ID", "tenant-1", 1);
    setenv("AZURE_CLIENT_ID", "client-1", 1);
    setenv("AZURE_CLIENT_SECRET", SECRET, 1);
    g->options = (struct azure_options){
        .machine =
            {
                .subscription = "8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44",
                .resource_group = "lab",
                .subnet = "net/nodes",
                .image = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest",
                .ssh_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ ops@lab",
            },
        .http = &g->http.client,
        .timers = &g->vt.timers,
    };
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    if (g->file)
        unlink(g->file);
    free(g->file);
    free(g);
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (azure_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

/* Runs until the pending call has completed: once, and never inside the call. */
static void finish(struct rig *g, int expected)
{
    assert_int_equal(g->got.completions, 0);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 1);
    g->got.completions = 0;
    if (g->got.e.kind != (enum err_kind)expected)
        fail_msg("expected %s, got %s: %s", err_kind_name(expected), err_kind_name(g->got.e.kind),
            g->got.e.text);
    assert_null(strstr(g->got.e.text, SECRET));
    assert_null(strstr(g->got.e.text, "eyJ"));
}

static void start_launch(struct rig *g)
{
    static const struct cloud_launch l = {
        .token = "belay-lab-17",
        .region = "eastus",
        .zone = "1",
        .type = "Standard_NC4as_T4_v3",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
    };
    g->first = g->http.n_requests;
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
}

static void launch(struct rig *g, int expected)
{
    start_launch(g);
    finish(g, expected);
}

static void list(struct rig *g, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->list(g->driver, "eastus", "lab", outcome_list, &g->got);
    finish(g, expected);
}

/* The requests of the last call except those for tokens: "METHOD URL", NULL-terminated. */
static void assert_asked(struct rig *g, const char *const *expected)
{
    size_t n = 0;
    for (size_t i = g->first; i < g->http.n_requests; i++) {
        const struct fake_request *r = &g->http.requests[i];
        char *line = mem_printf("%s %s", r->method, r->url);
        if (!str_ends(r->url, TOKEN_PATH)) {
            if (!expected[n] || !str_eq(line, expected[n]))
                fail_msg(
                    "request %zu: %s\nexpected %s", n, line, expected[n] ? expected[n] : "none");
            n++;
        }
        free(line);
    }
    assert_null(expected[n]);
}

#define ASKED(g, ...) assert_asked((g), (const char *const[]){__VA_ARGS__, NULL})

/* For any requests: the token went only to the API, and the secret only to the login service. */
static void assert_nothing_leaked(struct rig *g)
{
    for (size_t i = 0; i < g->http.n_requests; i++) {
        const struct fake_request *r = &g->http.requests[i];
        bool api = str_starts(r->url, ENDPOINT "/");
        assert_int_equal(strstr(r->headers, "eyJ.T0.k") != NULL, api);
        if (!str_starts(r->url, "https://login.microsoftonline.com/"))
            assert_null(strstr(buf_str(&r->body), "client_secret"));
    }
}

static void answer_vm(struct rig *g)
{
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_with(&g->http, "Azure-AsyncOperation: " OPERATION);
    fake_http_with(&g->http, "Retry-After: 10");
}

static void a_launch_waits_for_its_operation(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_running.json");
    fake_http_with(&g->http, "Retry-After: 7");
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " OPERATION);
    assert_string_equal(g->got.instance.id, "belay-lab-17");
    assert_int_equal(g->got.instance.state, CLOUD_RUNNING);
    assert_int_equal(clock_mono(g->vt.timers.clock).ms / 1000, 17); /* the value of Retry-After */
    assert_true(fake_http_sent(&g->http, 1, "Authorization: Bearer eyJ.T0.k"));
    assert_true(fake_http_sent(&g->http, 1, "Content-Type: application/json"));
    assert_nothing_leaked(g);
}

static void the_token_is_asked_for_once(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "POST", TOKEN_PATH), 1);
    const struct fake_request *r = &g->http.requests[0];
    assert_string_equal(r->url, "https://login.microsoftonline.com" TOKEN_PATH);
    assert_string_equal(buf_str(&r->body), "grant_type=client_credentials&client_id=client-1&"
                                           "client_secret=q8Q~sEcReT.example_0123456789"
                                           "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default");
}

static void a_create_that_takes_long_is_a_machine(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    for (int i = 0; i < 3; i++) {
        fake_http_add_file(&g->http, 200, "azure_operation_running.json");
        fake_http_with(&g->http, "Retry-After: 15");
    }
    launch(g, 0);
    assert_int_equal(g->got.instance.state, CLOUD_PENDING);
}

static void a_launch_repeated_is_the_same_bytes_under_the_same_names(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch(g, ERR_TIMEOUT);
    ASKED(g, "PUT " NIC, "PUT " VM); /* nothing is undone, because it may have taken effect */
    size_t vm = g->http.n_requests - 1;
    answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION);
    assert_string_equal(buf_str(&g->http.requests[vm].body),
        buf_str(&g->http.requests[g->http.n_requests - 2].body));
}

static void a_refused_machine_leaves_no_parts(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 201, "azure_nic.json");
    fake_http_add_file(&g->http, 409, "azure_error_sku.json");
    fake_http_add(&g->http, 204, "");
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 204, "");
    launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "DELETE " VM "&forceDeletion=true", "DELETE " NIC,
        "DELETE " DISK);
    assert_true(str_starts(g->got.e.text, "azure create, eastus: Azure refused: SkuNotAvailable"));
}

static void a_create_that_fails_later_is_deleted(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_failed.json");
    fake_http_add(&g->http, 202, "");
    launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "DELETE " VM "&forceDeletion=true");
}

/* It has failed, even if its code suggests a retry. */
static void a_create_that_fails_for_a_reason_of_azures_is_deleted_too(void **state)
{
    static const char *const codes[] = {"InternalExecutionError", "NeverHeardOf"};
    struct rig *g = *state;
    create(g);
    for (size_t i = 0; i < 2; i++) {
        char *failed = mem_printf(
            "{\"status\":\"Failed\",\"error\":{\"code\":\"%s\",\"message\":\"try again\"}}",
            codes[i]);
        answer_vm(g);
        fake_http_add(&g->http, 200, failed);
        fake_http_add(&g->http, 202, "");
        launch(g, ERR_NO_CAPACITY);
        ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "DELETE " VM "&forceDeletion=true");
        free(failed);
    }
}

static void an_operation_that_cannot_be_seen_costs_no_machine(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " VM "&$expand=instanceView");
}

/* Nor is a machine deleted whose state cannot be read: it may already run. */
static void a_machine_that_cannot_be_seen_is_not_deleted(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_vm(g);
    fake_http_add(&g->http, 404, "");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " VM "&$expand=instanceView");
}

static void a_machine_that_goes_while_it_is_made_is_made_again(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_add(&g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"no\"}}");
    launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " VM "&$expand=instanceView");
}

static void a_refused_network_interface_ends_the_launch(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    launch(g, ERR_DENIED);
    ASKED(g, "PUT " NIC);
    fake_http_add(
        &g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"the subnet\"}}");
    launch(g, ERR_CONFIG);
}

static void a_network_interface_taken_for_a_leftover_is_made_again(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add(&g->http, 400,
        "{\"error\":{\"code\":\"InvalidResourceReference\",\"message\":\"/x/belay-lab-17-nic was "
        "not found\"}}");
    launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM);
}

static void operations_at_another_host_are_not_followed(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_with(
        &g->http, "Azure-AsyncOperation: https://management.azure.com.example.com/steal");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " VM "&$expand=instanceView");
    assert_nothing_leaked(g);
}

static void an_operation_may_tell_by_location_or_be_forgotten(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 202, "azure_vm.json");
    fake_http_with(&g->http, "Location: " OPERATION);
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 503, "");
    fake_http_add(&g->http, 404, "");
    fake_http_add(&g->http, 200,
        "{\"properties\":{\"provisioningState\":\"Failed\",\"instanceView\":{\"statuses\":[{"
        "\"code\":\"ProvisioningState/failed/AllocationFailed\"}]}}}");
    fake_http_add(&g->http, 202, "");
    launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " OPERATION, "GET " OPERATION,
        "GET " VM "&$expand=instanceView", "DELETE " VM "&forceDeletion=true");
}

static void a_slow_network_interface_is_waited_for(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 201, "{\"properties\":{\"provisioningState\":\"Updating\"}}");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    fake_http_add(&g->http, 200,
        "{\"name\":\"belay-lab-17\",\"location\":\"eastus\",\"properties\":{\"provisioningState\":"
        "\"Succeeded\",\"hardwareProfile\":{\"vmSize\":\"Standard_NC4as_T4_v3\"}}}");
    launch(g, 0);
    ASKED(g, "PUT " NIC, "GET " NIC, "PUT " VM);
}

static void malformed_replies_leave_the_launch_undecided(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "error_page.html");
    launch(g, ERR_INVALID);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add(&g->http, 201, "{\"name\":\"belay-lab-17\"}");
    launch(g, ERR_INVALID);
    answer_vm(g);
    fake_http_add(&g->http, 200, "{\"status\":");
    launch(g, ERR_INVALID);
    fake_http_add_file(&g->http, 502, "error_page.html");
    launch(g, ERR_UNAVAILABLE);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    static const char *const regions[] = {"", "East US", "eastus/..", "eastus.example.com", NULL};
    struct rig *g = *state;
    struct cloud_launch l = {.token = "a b",
        .region = "eastus",
        .zone = "1",
        .type = "Standard_D8s_v5",
        .cluster = "lab"};
    create(g);
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    finish(g, ERR_CONFIG);
    for (size_t i = 0; regions[i]; i++) {
        g->driver->ops->list(g->driver, regions[i], "lab", outcome_list, &g->got);
        finish(g, ERR_CONFIG);
    }
    g->driver->ops->terminate(g->driver, "eastus", NULL, 0, outcome_done, &g->got);
    finish(g, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 0);
}

/* ---- listing ---- */

static void answer_list(struct rig *g)
{
    fake_http_add_file(&g->http, 200, "azure_tagged.json");
    fake_http_add_file(&g->http, 200, "azure_vms_1.json");
    fake_http_add_file(&g->http, 200, "azure_vms_2.json");
    fake_http_add_file(&g->http, 200, "azure_power.json");
    fake_http_add(&g->http, 202, "");
}

static void listing_follows_all_pages_and_keeps_our_own(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_list(g);
    list(g, 0);
    ASKED(g,
        "GET " ENDPOINT
        "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/resources?$filter=tagName%20eq%20"
        "%27belay%3Acluster%27%20and%20tagValue%20eq%20%27lab%27&api-version=2021-04-01",
        "GET " VMS "?api-version=2022-08-01",
        "GET "
        "https://management.azure.com:443/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/"
        "resourceGroups/lab/providers/Microsoft.Compute/"
        "virtualMachines?api-version=2022-08-01&$skiptoken=belay-lab-2%2F%21%21",
        "GET " ENDPOINT
        "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/providers/Microsoft.Compute"
        "/virtualMachines?api-version=2022-08-01&statusOnly=true",
        /* Otherwise it would stay deallocated forever. */
        "DELETE " VMS "/belay-lab-1?api-version=2022-08-01&forceDeletion=true");
    assert_int_equal(g->got.n, 4); /* the fifth belongs to "other" */
    assert_true(g->got.list[0].reclaimed);
    assert_string_equal(g->got.list[3].id, "belay-lab-5");
}

static void parts_without_a_machine_are_listed_after_a_while(void **state)
{
    struct rig *g = *state;
    create(g);
    answer_list(g);
    list(g, 0);
    assert_int_equal(g->got.n, 4);
    vtimers_advance(&g->vt, SECONDS_MS(29));
    answer_list(g);
    list(g, 0);
    assert_int_equal(g->got.n, 4);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    answer_list(g);
    list(g, 0);
    assert_int_equal(g->got.n, 6);
    assert_string_equal(g->got.list[4].id, "belay-lab-9-nic");
    assert_string_equal(g->got.list[5].id, "belay-lab-8-os");
    assert_int_equal(g->got.list[5].state, CLOUD_STOPPING);
    assert_false(g->got.list[5].reclaimed);
}

static void a_listing_does_without_power_states_that_are_denied(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, "{\"value\":[]}");
    fake_http_add_file(&g->http, 200, "azure_vms_2.json");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    list(g, 0);
    assert_int_equal(g->got.n, 2);
    fake_http_add(&g->http, 200, "{\"value\":[]}");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    list(g, ERR_DENIED);
}

static void half_a_listing_is_an_error(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_tagged.json");
    fake_http_add_file(&g->http, 200, "azure_vms_1.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    list(g, ERR_TIMEOUT);
    assert_int_equal(g->got.n, 0);
}

static void pages_at_another_host_are_not_followed(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"https://example.com/more\"}");
    list(g, ERR_INVALID);
    assert_nothing_leaked(g);
}

static void volumes(struct rig *g, const char *cluster, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->volumes(g->driver, "eastus", cluster, outcome_volumes, &g->got);
    finish(g, expected);
}

static void disks_are_our_own_of_the_group_or_all_of_the_subscription(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_disks_1.json");
    fake_http_add_file(&g->http, 200, "azure_disks_2.json");
    volumes(g, "lab", 0);
    ASKED(g, "GET " ENDPOINT GROUP "Microsoft.Compute/disks?api-version=2024-03-02",
        "GET "
        "https://management.azure.com:443/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/"
        "resourceGroups/lab/providers/Microsoft.Compute"
        "/disks?api-version=2024-03-02&$skiptoken=x");
    assert_int_equal(g->got.n, 1);
    assert_string_equal(g->got.volumes[0].name, "LAB/belay-lab-8-data");
    fake_http_add_file(&g->http, 200, "azure_disks_2.json");
    volumes(g, NULL, 0);
    ASKED(g, "GET " ENDPOINT "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/providers/"
             "Microsoft.Compute/disks?api-version=2024-03-02");
    assert_int_equal(g->got.n, 1);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    volumes(g, NULL, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "azure disks, eastus: it needs the permission "
                                          "Microsoft.Compute/disks/read in the subscription: "));
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"https://example.com/more\"}");
    volumes(g, "lab", ERR_INVALID);
    /* and nothing elsewhere */
    ASKED(g, "GET " ENDPOINT GROUP "Microsoft.Compute/disks?api-version=2024-03-02");
}

static void endless_pages_are_an_error(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(
        &g->http, "GET", "/more", 200, "{\"value\":[],\"nextLink\":\"" ENDPOINT "/more\"}");
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"" ENDPOINT "/more\"}");
    g->http.keep_none = true;
    list(g, ERR_INVALID);
    assert_non_null(strstr(g->got.e.text, "pages"));
}

/* ---- terminating ---- */

static void terminate(struct rig *g, const char *const *ids, size_t n, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->terminate(g->driver, "eastus", ids, n, outcome_done, &g->got);
    finish(g, expected);
}

static void a_machine_is_deleted_with_its_parts(void **state)
{
    static const char *const ids[] = {"belay-lab-17", "belay-lab-18"};
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 200, "");
    terminate(g, ids, 2, 0);
    ASKED(g, "DELETE " VM "&forceDeletion=true",
        "DELETE " VMS "/belay-lab-18?api-version=2022-08-01&forceDeletion=true");
}

static void where_there_is_no_machine_its_parts_are_deleted(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 204, "");
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}");
    terminate(g, ids, 1, 0);
    ASKED(g, "DELETE " VM "&forceDeletion=true", "DELETE " NIC, "DELETE " DISK);
}

static void a_leftover_is_deleted_by_its_name(void **state)
{
    static const char *const ids[] = {"belay-lab-17-nic", "belay-lab-17-os"};
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 204, "");
    terminate(g, ids, 2, 0);
    ASKED(g, "DELETE " NIC, "DELETE " DISK);
    fake_http_add(
        &g->http, 400, "{\"error\":{\"code\":\"NicReservedForAnotherVm\",\"message\":\"wait\"}}");
    terminate(g, ids, 1, ERR_UNAVAILABLE);
    fake_http_add(
        &g->http, 404, "{\"error\":{\"code\":\"ResourceGroupNotFound\",\"message\":\"m\"}}");
    terminate(g, ids, 1, ERR_CONFIG);
}

/* ---- consoles ---- */

#define CONSOLE                                                                                    \
    VMS "/belay-lab-17/retrieveBootDiagnosticsData?api-version=2022-08-01"                         \
        "&sasUriExpirationTimeInMinutes=5"
#define BLOB                                                                                       \
    "https://md-hdd-5l0ckw1qc3xj.z35.blob.storage.azure.net/bootdiagnostics-belaylab1-7d1c3b52-"   \
    "6f0e-4c8a-9b61-0e6a3d2f4b17/belay-lab-17.7d1c3b52-6f0e-4c8a-9b61-0e6a3d2f4b17.serialconsole." \
    "log?sv=2018-03-28&sr=b&sig=iWq0xT1Zk%2BexampleA%2F9c%3D&se=2026-08-22T12%3A06%3A00Z&sp=r"

static void console(struct rig *g, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->console(g->driver, "eastus", "belay-lab-17", outcome_console, &g->got);
    finish(g, expected);
    assert_null(strstr(g->got.e.text, "sig="));
    assert_null(strstr(g->got.e.text, "example")); /* part of the signature */
}

static void a_console_s_log_is_read_where_azure_says_and_without_a_token(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_console.json");
    fake_http_add(&g->http, 200, "[ 1.0] Linux\r\n\033[1mbelay:\033[0m no agent\n");
    console(g, 0);
    ASKED(g, "POST " CONSOLE, "GET " BLOB);
    assert_string_equal(g->got.console, "[ 1.0] Linux\nbelay: no agent\n");
    const struct fake_request *log = &g->http.requests[g->http.n_requests - 1];
    assert_int_equal(log->max_reply_bytes, 4 * 1024 * 1024);
    assert_nothing_leaked(g);
}

static void a_console_that_shows_nothing_yet_is_no_error(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, "{}");
    console(g, 0);
    ASKED(g, "POST " CONSOLE);
    assert_string_equal(g->got.console, "");
    fake_http_add_file(&g->http, 200, "azure_console.json");
    fake_http_add(&g->http, 404, "<Error><Code>BlobNotFound</Code></Error>");
    console(g, 0);
    ASKED(g, "POST " CONSOLE, "GET " BLOB);
    assert_string_equal(g->got.console, "");
}

static void a_console_elsewhere_is_not_asked(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(
        &g->http, 200, "{\"serialConsoleLogBlobUri\":\"https://example.com/x?sig=example\"}");
    console(g, ERR_INVALID);
    ASKED(g, "POST " CONSOLE);
    assert_nothing_leaked(g);
}

static void refusals_of_a_console_say_what_is_missing_and_no_url(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    console(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "it needs the permission Microsoft.Compute/"
                                          "virtualMachines/retrieveBootDiagnosticsData/action"));
    fake_http_add(&g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"no\"}}");
    console(g, ERR_NOT_FOUND);
    fake_http_add_file(&g->http, 200, "azure_console.json");
    fake_http_add(&g->http, 403,
        "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>Signature did not "
        "match: sig=example</AuthenticationErrorDetail></Error>");
    console(g, ERR_UNAVAILABLE);
    assert_non_null(strstr(g->got.e.text, "answered HTTP 403"));
    fake_http_add_file(&g->http, 200, "azure_console.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    console(g, ERR_TIMEOUT);
    fake_http_add(&g->http, 200, "{\"serialConsoleLogBlobUri\":7}");
    console(g, ERR_INVALID);
}

/* ---- prices ---- */

static void prices_are_read_without_a_token(void **state)
{
    static const char *const types[] = {"Standard_NC4as_T4_v3", "Standard_D8s_v5"};
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "azure_prices_1.json");
    fake_http_add_file(&g->http, 200, "azure_prices_2.json");
    fake_http_add(&g->http, 200, "{\"Items\":[],\"NextPageLink\":null}");
    g->driver->ops->prices(g->driver, "eastus", types, 2, outcome_prices, &g->got);
    finish(g, 0);
    assert_int_equal(g->got.n, 2);
    assert_int_equal(g->got.prices[0].uusd_h, 526000);
    assert_int_equal(g->got.prices[1].uusd_h, 64210);
    assert_int_equal(g->http.n_requests, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(str_starts(g->http.requests[i].url, "https://prices.azure.com"));
    assert_int_equal(fake_http_count(&g->http, "POST", TOKEN_PATH), 0);
    assert_nothing_leaked(g);
}

static void throttled_prices_are_an_answer(void **state)
{
    static const char *const types[] = {"Standard_D8s_v5"};
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 429, "");
    g->driver->ops->prices(g->driver, "eastus", types, 1, outcome_prices, &g->got);
    finish(g, ERR_THROTTLED);
    fake_http_add(&g->http, 200, "{\"Items\":[],\"NextPageLink\":\"https://example.com/\"}");
    g->driver->ops->prices(g->driver, "eastus", types, 1, outcome_prices, &g->got);
    finish(g, ERR_INVALID);
}

/* ---- credentials ---- */

#define UNAUTHORIZED "{\"error\":{\"code\":\"ExpiredAuthenticationToken\",\"message\":\"old\"}}"

static void a_refused_token_is_renewed_once(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "POST", TOKEN_PATH), 2);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    launch(g, ERR_DENIED);
}

static void refused_principals_say_so(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "POST", TOKEN_PATH, 401,
        "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client "
        "secret provided.\"}");
    launch(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "AADSTS7000215"));
    assert_int_equal(fake_http_count(&g->http, "PUT", ""), 0);
}

static void a_machine_has_an_identity_of_its_own(void **state)
{
    struct rig *g = *state;
    clear_environment();
    setenv("AZURE_CLIENT_ID", "client-2", 1);
    g->options.metadata_url = "http://127.0.0.1:1338/";
    fake_http_route(&g->http, "GET", "&client_id=client-2", 200,
        "{\"access_token\":\"eyJ.T0.k\",\"expires_in\":\"86399\",\"expires_on\":\"1787486399\","
        "\"token_type\":\"Bearer\"}");
    create(g);
    fake_http_add(&g->http, 202, "");
    static const char *const ids[] = {"belay-lab-17"};
    terminate(g, ids, 1, 0);
    assert_string_equal(g->http.requests[0].url,
        "http://127.0.0.1:1338/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
        "https%3A%2F%2Fmanagement.azure.com%2F&client_id=client-2");
    assert_true(fake_http_sent(&g->http, 0, "Metadata: true"));
    assert_true(fake_http_sent(&g->http, 1, "Authorization: Bearer eyJ.T0.k"));
}

static void a_machine_without_an_identity_has_no_credentials(void **state)
{
    static const struct {
        int status;
        enum err_kind kind;
    } cases[] = {{400, ERR_CONFIG}, {404, ERR_UNAVAILABLE}, {410, ERR_UNAVAILABLE},
        {429, ERR_THROTTLED}, {500, ERR_UNAVAILABLE}};
    struct rig *g = *state;
    clear_environment();
    create(g);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_http_add(&g->http, cases[i].status,
            "{\"error\":\"invalid_request\",\"error_description\":\"Identity not found\"}");
        launch(g, cases[i].kind);
        assert_non_null(strstr(g->got.e.text, "managed identity"));
    }
}

static void write_file(struct rig *g, const char *text)
{
    if (!g->file) {
        g->file = mem_strdup("/tmp/test_azure_XXXXXX");
        close(mkstemp(g->file));
    }
    int fd = open(g->file, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    g->options.credentials_file = g->file;
}

static void the_pools_file_goes_before_the_environment(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct rig *g = *state;
    write_file(g, "{\"appId\":\"client-9\",\"displayName\":\"x\",\"password\":\"p\",\"tenant\":"
                  "\"tenant-1\"}");
    create(g);
    fake_http_add(&g->http, 202, "");
    terminate(g, ids, 1, 0);
    assert_true(str_starts(buf_str(&g->http.requests[0].body),
        "grant_type=client_credentials&client_id=client-9&client_secret=p&"));
    /* Replaced while the driver lives: read when the old secret is refused. */
    write_file(g, "{\"clientId\":\"client-9\",\"clientSecret\":\"new\",\"tenantId\":\"tenant-1\"}");
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    fake_http_add(&g->http, 202, "");
    terminate(g, ids, 1, 0);
    assert_non_null(
        strstr(buf_str(&g->http.requests[g->http.n_requests - 2].body), "client_secret=new&"));
    unlink(g->file);
    fake_http_add(&g->http, 401, UNAUTHORIZED);
    terminate(g, ids, 1, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, g->file));
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct rig *g = *state;
    write_file(g, "{\"appId\":\"client-9\",\"password\":\"hush\",\"tenant\":\"tenant-1\"}");
    assert_int_equal(chmod(g->file, 0604), 0);
    create(g);
    terminate(g, ids, 1, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "chmod 600"));
    assert_int_equal(g->http.n_requests, 0);
    unlink(g->file);
}

static void malformed_credentials_are_refused(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{\"tenant\":\"t\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\"}", "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":7}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"\"}",
        "{\"tenant\":\"t/../u\",\"appId\":\"a\",\"password\":\"hush\"}",
        "{\"tenant\":\"..\",\"appId\":\"a\",\"password\":\"hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a&b\",\"password\":\"hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush hush\"}",
        "{\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush\\u0000x\"}",
        "{\"tenant\":\"t\",\"tenant\":\"t\",\"appId\":\"a\",\"password\":\"hush\"}", NULL};
    struct azure_principal p;
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        struct err e = {0};
        if (azure_credentials_parse_file(wrong[i], strlen(wrong[i]), &p, &e) != ERR_CONFIG)
            fail_msg("taken: %s", wrong[i]);
        assert_true(e.text[0] != '\0');
        assert_null(strstr(e.text, "hush"));
    }
}

static void half_a_principal_in_the_environment_is_refused(void **state)
{
    struct rig *g = *state;
    struct err e;
    unsetenv("AZURE_TENANT_ID");
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "AZURE_TENANT_ID is not set"));
    setenv("AZURE_TENANT_ID", "a/b", 1);
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    assert_null(g->driver);
}

static void endpoints_must_be_https_or_this_machine(void **state)
{
    struct rig *g = *state;
    struct err e;
    const char **urls[] = {&g->options.endpoint_url, &g->options.login_url, &g->options.prices_url};
    for (size_t i = 0; i < 3; i++) {
        *urls[i] = "http://management.azure.com/";
        assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
        *urls[i] = "http://127.0.0.1:4568/";
    }
    g->options.metadata_url = "http://169.254.169.254/metadata";
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    g->options.metadata_url = NULL;
    g->options.machine.subnet = "nodes";
    assert_int_equal(azure_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    g->options.machine.subnet = "net/nodes";
    create(g);
}

static void destroying_a_driver_cancels_its_calls(void **state)
{
    struct rig *g = *state;
    create(g);
    g->http.silent = true;
    start_launch(g);
    g->driver->ops->list(g->driver, "eastus", "lab", outcome_list, &g->got);
    for (int i = 0; i < 4; i++)
        vtimers_run_next(&g->vt);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_waits_for_its_operation),
        TEST(the_token_is_asked_for_once),
        TEST(a_create_that_takes_long_is_a_machine),
        TEST(a_launch_repeated_is_the_same_bytes_under_the_same_names),
        TEST(a_refused_machine_leaves_no_parts),
        TEST(a_create_that_fails_later_is_deleted),
        TEST(a_create_that_fails_for_a_reason_of_azures_is_deleted_too),
        TEST(an_operation_that_cannot_be_seen_costs_no_machine),
        TEST(a_machine_that_goes_while_it_is_made_is_made_again),
        TEST(a_refused_network_interface_ends_the_launch),
        TEST(a_network_interface_taken_for_a_leftover_is_made_again),
        TEST(operations_at_another_host_are_not_followed),
        TEST(a_machine_that_cannot_be_seen_is_not_deleted),
        TEST(an_operation_may_tell_by_location_or_be_forgotten),
        TEST(a_slow_network_interface_is_waited_for),
        TEST(malformed_replies_leave_the_launch_undecided),
        TEST(launches_that_cannot_be_sent_are_refused),
        TEST(listing_follows_all_pages_and_keeps_our_own),
        TEST(parts_without_a_machine_are_listed_after_a_while),
        TEST(a_listing_does_without_power_states_that_are_denied),
        TEST(half_a_listing_is_an_error),
        TEST(pages_at_another_host_are_not_followed),
        TEST(endless_pages_are_an_error),
        TEST(disks_are_our_own_of_the_group_or_all_of_the_subscription),
        TEST(a_machine_is_deleted_with_its_parts),
        TEST(where_there_is_no_machine_its_parts_are_deleted),
        TEST(a_leftover_is_deleted_by_its_name),
        TEST(a_console_s_log_is_read_where_azure_says_and_without_a_token),
        TEST(a_console_that_shows_nothing_yet_is_no_error),
        TEST(a_console_elsewhere_is_not_asked),
        TEST(refusals_of_a_console_say_what_is_missing_and_no_url),
        TEST(prices_are_read_without_a_token),
        TEST(throttled_prices_are_an_answer),
        TEST(a_refused_token_is_renewed_once),
        TEST(refused_principals_say_so),
        TEST(a_machine_has_an_identity_of_its_own),
        TEST(a_machine_without_an_identity_has_no_credentials),
        TEST(the_pools_file_goes_before_the_environment),
        TEST(a_file_that_others_may_read_is_refused),
        TEST(malformed_credentials_are_refused),
        TEST(half_a_principal_in_the_environment_is_refused),
        TEST(endpoints_must_be_https_or_this_machine),
        TEST(destroying_a_driver_cancels_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
