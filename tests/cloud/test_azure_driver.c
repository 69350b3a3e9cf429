/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, listings, ends, consoles and prices.
 */
#include "azure_rig.h"

static void a_launch_waits_for_its_operation(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_running.json");
    fake_http_with(&g->http, "Retry-After: 7");
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    azure_rig_launch(g, 0);
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
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    azure_rig_launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "POST", TOKEN_PATH), 1);
    const struct fake_request *r = &g->http.requests[0];
    assert_string_equal(r->url, "https://login.microsoftonline.com" TOKEN_PATH);
    assert_string_equal(buf_str(&r->body), "grant_type=client_credentials&client_id=client-1&"
                                           "client_secret=q8Q~sEcReT.example_0123456789"
                                           "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default");
}

static void without_credentials_a_launch_is_refused_for_certain(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_clear_environment();
    azure_rig_create(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    azure_rig_launch(g, ERR_NO_CREDENTIALS);
    assert_non_null(strstr(g->got.e.text, "no credentials, so nothing was sent: "));
    fake_http_add(&g->http, 410, "");
    azure_rig_launch(g, ERR_NO_CREDENTIALS);
    fake_http_add(&g->http, 400, "{\"error\":\"invalid_request\"}");
    azure_rig_launch(g, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "invalid_request"));
    fake_http_add(&g->http, 429, "{}");
    azure_rig_launch(g, ERR_THROTTLED);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    azure_rig_list(g, ERR_TIMEOUT);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->credentials(g->driver, "eastus", outcome_done, &g->got);
    azure_rig_finish(g, ERR_TIMEOUT);
    fake_http_add(&g->http, 200, TOKEN_REPLY);
    g->driver->ops->credentials(g->driver, "eastus", outcome_done, &g->got);
    azure_rig_finish(g, 0);
    assert_int_equal(g->http.n_requests, 7); /* all for tokens */
}

static void a_create_that_takes_long_is_a_machine(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    for (int i = 0; i < 3; i++) {
        fake_http_add_file(&g->http, 200, "azure_operation_running.json");
        fake_http_with(&g->http, "Retry-After: 15");
    }
    azure_rig_launch(g, 0);
    assert_int_equal(g->got.instance.state, CLOUD_PENDING);
}

static void a_launch_repeated_is_the_same_bytes_under_the_same_names(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    azure_rig_launch(g, ERR_TIMEOUT);
    ASKED(g, "PUT " NIC, "PUT " VM); /* nothing is undone, because it may have taken effect */
    size_t vm = g->http.n_requests - 1;
    azure_rig_answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_done.json");
    azure_rig_launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION);
    assert_string_equal(buf_str(&g->http.requests[vm].body),
        buf_str(&g->http.requests[g->http.n_requests - 2].body));
}

static void a_refused_machine_leaves_no_parts(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 201, "azure_nic.json");
    fake_http_add_file(&g->http, 409, "azure_error_sku.json");
    fake_http_add(&g->http, 204, "");
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 204, "");
    azure_rig_launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "DELETE " VM "&forceDeletion=true", "DELETE " NIC,
        "DELETE " DISK);
    assert_true(str_starts(g->got.e.text, "azure create, eastus: Azure refused: SkuNotAvailable"));
}

static void a_create_that_fails_later_is_deleted(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    fake_http_add_file(&g->http, 200, "azure_operation_failed.json");
    fake_http_add(&g->http, 202, "");
    azure_rig_launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "DELETE " VM "&forceDeletion=true");
}

/* It has failed, even if its code suggests a retry. */
static void a_create_that_fails_for_a_reason_of_azures_is_deleted_too(void **state)
{
    static const char *const codes[] = {"InternalExecutionError", "NeverHeardOf"};
    struct azure_rig *g = *state;
    azure_rig_create(g);
    for (size_t i = 0; i < 2; i++) {
        char *failed = mem_printf(
            "{\"status\":\"Failed\",\"error\":{\"code\":\"%s\",\"message\":\"try again\"}}",
            codes[i]);
        azure_rig_answer_vm(g);
        fake_http_add(&g->http, 200, failed);
        fake_http_add(&g->http, 202, "");
        azure_rig_launch(g, ERR_NO_CAPACITY);
        ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "DELETE " VM "&forceDeletion=true");
        free(failed);
    }
}

static void an_operation_that_cannot_be_seen_costs_no_machine(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    azure_rig_launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " VM "&$expand=instanceView");
}

/* Nor is a machine deleted whose state cannot be read: it may already run. */
static void a_machine_that_cannot_be_seen_is_not_deleted(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    azure_rig_answer_vm(g);
    fake_http_add(&g->http, 404, "");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    azure_rig_launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " VM "&$expand=instanceView");
}

static void a_machine_that_goes_while_it_is_made_is_made_again(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_add(&g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"no\"}}");
    azure_rig_launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " VM "&$expand=instanceView");
}

static void a_refused_network_interface_ends_the_launch(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    azure_rig_launch(g, ERR_DENIED);
    ASKED(g, "PUT " NIC);
    fake_http_add(
        &g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"the subnet\"}}");
    azure_rig_launch(g, ERR_CONFIG);
}

static void a_network_interface_taken_for_a_leftover_is_made_again(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add(&g->http, 400,
        "{\"error\":{\"code\":\"InvalidResourceReference\",\"message\":\"/x/belay-lab-17-nic was "
        "not found\"}}");
    azure_rig_launch(g, ERR_UNAVAILABLE);
    ASKED(g, "PUT " NIC, "PUT " VM);
}

static void operations_at_another_host_are_not_followed(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_with(
        &g->http, "Azure-AsyncOperation: https://management.azure.com.example.com/steal");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    azure_rig_launch(g, 0);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " VM "&$expand=instanceView");
    assert_nothing_leaked(g);
}

static void an_operation_may_tell_by_location_or_be_forgotten(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
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
    azure_rig_launch(g, ERR_NO_CAPACITY);
    ASKED(g, "PUT " NIC, "PUT " VM, "GET " OPERATION, "GET " OPERATION, "GET " OPERATION,
        "GET " VM "&$expand=instanceView", "DELETE " VM "&forceDeletion=true");
}

static void a_slow_network_interface_is_waited_for(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 201, "{\"properties\":{\"provisioningState\":\"Updating\"}}");
    fake_http_add(&g->http, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
    fake_http_add(&g->http, 200,
        "{\"name\":\"belay-lab-17\",\"location\":\"eastus\",\"properties\":{\"provisioningState\":"
        "\"Succeeded\",\"hardwareProfile\":{\"vmSize\":\"Standard_NC4as_T4_v3\"}}}");
    azure_rig_launch(g, 0);
    ASKED(g, "PUT " NIC, "GET " NIC, "PUT " VM);
}

static void malformed_replies_leave_the_launch_undecided(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "error_page.html");
    azure_rig_launch(g, ERR_INVALID);
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add(&g->http, 201, "{\"name\":\"belay-lab-17\"}");
    azure_rig_launch(g, ERR_INVALID);
    azure_rig_answer_vm(g);
    fake_http_add(&g->http, 200, "{\"status\":");
    azure_rig_launch(g, ERR_INVALID);
    fake_http_add_file(&g->http, 502, "error_page.html");
    azure_rig_launch(g, ERR_UNAVAILABLE);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    static const char *const regions[] = {"", "East US", "eastus/..", "eastus.example.com", NULL};
    struct azure_rig *g = *state;
    struct cloud_launch l = {.token = "a b",
        .region = "eastus",
        .zone = "1",
        .type = "Standard_D8s_v5",
        .cluster = "lab"};
    azure_rig_create(g);
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    azure_rig_finish(g, ERR_CONFIG);
    for (size_t i = 0; regions[i]; i++) {
        g->driver->ops->list(g->driver, regions[i], "lab", outcome_list, &g->got);
        azure_rig_finish(g, ERR_CONFIG);
    }
    g->driver->ops->terminate(g->driver, "eastus", NULL, 0, outcome_done, &g->got);
    azure_rig_finish(g, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 0);
}

/* ---- listing ---- */

static void answer_list(struct azure_rig *g)
{
    fake_http_add_file(&g->http, 200, "azure_tagged.json");
    fake_http_add_file(&g->http, 200, "azure_vms_1.json");
    fake_http_add_file(&g->http, 200, "azure_vms_2.json");
    fake_http_add_file(&g->http, 200, "azure_power.json");
    fake_http_add(&g->http, 202, "");
}

static void listing_follows_all_pages_and_keeps_our_own(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    answer_list(g);
    azure_rig_list(g, 0);
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

/* Nothing is deleted, not even what is deallocated, and no leftover is forgotten. */
static void an_account_is_listed_and_nothing_is_deleted(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    answer_list(g);
    azure_rig_list(g, 0);
    g->first = g->http.n_requests;
    fake_http_add_file(&g->http, 200, "azure_vms_1.json");
    fake_http_add_file(&g->http, 200, "azure_vms_2.json");
    fake_http_add_file(&g->http, 200, "azure_power.json");
    g->driver->ops->list(g->driver, "eastus", NULL, outcome_list, &g->got);
    azure_rig_finish(g, 0);
    assert_int_equal(g->got.n, 6);
    bool has_other = false; /* without a tag */
    for (size_t i = 0; i < g->got.n; i++)
        has_other = has_other || str_eq(g->got.list[i].id, "build-server");
    assert_true(has_other);
    assert_int_equal(g->http.n_requests - g->first, 3);
    for (size_t i = g->first; i < g->http.n_requests; i++) {
        assert_string_equal(g->http.requests[i].method, "GET");
        assert_null(strstr(g->http.requests[i].url, "tagName"));
    }
    assert_null(strstr(g->http.requests[g->first].url, "resourceGroups"));
    vtimers_advance(&g->vt, SECONDS_MS(31));
    answer_list(g);
    azure_rig_list(g, 0);
    assert_int_equal(g->got.n, 6);
}

static void parts_without_a_machine_are_listed_after_a_while(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    answer_list(g);
    azure_rig_list(g, 0);
    assert_int_equal(g->got.n, 4);
    vtimers_advance(&g->vt, SECONDS_MS(29));
    answer_list(g);
    azure_rig_list(g, 0);
    assert_int_equal(g->got.n, 4);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    answer_list(g);
    azure_rig_list(g, 0);
    assert_int_equal(g->got.n, 6);
    assert_string_equal(g->got.list[4].id, "belay-lab-9-nic");
    assert_string_equal(g->got.list[5].id, "belay-lab-8-os");
    assert_int_equal(g->got.list[5].state, CLOUD_STOPPING);
    assert_false(g->got.list[5].reclaimed);
}

static void a_listing_does_without_power_states_that_are_denied(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 200, "{\"value\":[]}");
    fake_http_add_file(&g->http, 200, "azure_vms_2.json");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    azure_rig_list(g, 0);
    assert_int_equal(g->got.n, 2);
    fake_http_add(&g->http, 200, "{\"value\":[]}");
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    azure_rig_list(g, ERR_DENIED);
}

static void half_a_listing_is_an_error(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_tagged.json");
    fake_http_add_file(&g->http, 200, "azure_vms_1.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    azure_rig_list(g, ERR_TIMEOUT);
    assert_int_equal(g->got.n, 0);
}

static void pages_at_another_host_are_not_followed(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"https://example.com/more\"}");
    azure_rig_list(g, ERR_INVALID);
    assert_nothing_leaked(g);
}

static void volumes(struct azure_rig *g, const char *cluster, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->volumes(g->driver, "eastus", cluster, outcome_volumes, &g->got);
    azure_rig_finish(g, expected);
}

static void disks_are_our_own_of_the_group_or_all_of_the_subscription(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
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

static void quotas(struct azure_rig *g, int expected)
{
    static const struct cloud_machine machine = {"Standard_D8s_v5", CLOUD_SPOT, 8, 0};
    g->first = g->http.n_requests;
    g->driver->ops->quotas(g->driver, "eastus", &machine, 1, outcome_quotas, &g->got);
    azure_rig_finish(g, expected);
}

static void quotas_are_those_of_the_subscription_on_all_pages(void **state)
{
#define USAGES                                                                                     \
    "/subscriptions/8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44/providers/Microsoft.Compute/locations/"   \
    "eastus/usages?api-version=2022-08-01"
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(
        &g->http, 200, "{\"value\":[],\"nextLink\":\"" ENDPOINT USAGES "&$skiptoken=x\"}");
    fake_http_add(&g->http, 200,
        "{\"value\":[{\"name\":{\"value\":\"lowPriorityCores\"},\"limit\":64,"
        "\"currentValue\":16}]}");
    quotas(g, 0);
    ASKED(g, "GET " ENDPOINT USAGES, "GET " ENDPOINT USAGES "&$skiptoken=x");
    assert_int_equal(g->got.n, 1);
    assert_int_equal(g->got.quotas[0].used, 16);
    fake_http_add(
        &g->http, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    quotas(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "it needs the permission "
                                          "Microsoft.Compute/locations/usages/read in the "
                                          "subscription: "));
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"https://example.com/more\"}");
    quotas(g, ERR_INVALID);
    fake_http_add(&g->http, 200, "<html>");
    quotas(g, ERR_INVALID);
}

static void endless_pages_are_an_error(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_route(
        &g->http, "GET", "/more", 200, "{\"value\":[],\"nextLink\":\"" ENDPOINT "/more\"}");
    fake_http_add(&g->http, 200, "{\"value\":[],\"nextLink\":\"" ENDPOINT "/more\"}");
    g->http.keep_none = true;
    azure_rig_list(g, ERR_INVALID);
    assert_non_null(strstr(g->got.e.text, "pages"));
}

/* ---- terminating ---- */

static void a_machine_is_deleted_with_its_parts(void **state)
{
    static const char *const ids[] = {"belay-lab-17", "belay-lab-18"};
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 200, "");
    azure_rig_terminate(g, ids, 2, 0);
    ASKED(g, "DELETE " VM "&forceDeletion=true",
        "DELETE " VMS "/belay-lab-18?api-version=2022-08-01&forceDeletion=true");
}

static void where_there_is_no_machine_its_parts_are_deleted(void **state)
{
    static const char *const ids[] = {"belay-lab-17"};
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 204, "");
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}");
    azure_rig_terminate(g, ids, 1, 0);
    ASKED(g, "DELETE " VM "&forceDeletion=true", "DELETE " NIC, "DELETE " DISK);
}

static void a_leftover_is_deleted_by_its_name(void **state)
{
    static const char *const ids[] = {"belay-lab-17-nic", "belay-lab-17-os"};
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 202, "");
    fake_http_add(&g->http, 204, "");
    azure_rig_terminate(g, ids, 2, 0);
    ASKED(g, "DELETE " NIC, "DELETE " DISK);
    fake_http_add(
        &g->http, 400, "{\"error\":{\"code\":\"NicReservedForAnotherVm\",\"message\":\"wait\"}}");
    azure_rig_terminate(g, ids, 1, ERR_UNAVAILABLE);
    fake_http_add(
        &g->http, 404, "{\"error\":{\"code\":\"ResourceGroupNotFound\",\"message\":\"m\"}}");
    azure_rig_terminate(g, ids, 1, ERR_CONFIG);
}

/* ---- consoles ---- */

#define CONSOLE                                                                                    \
    VMS "/belay-lab-17/retrieveBootDiagnosticsData?api-version=2022-08-01"                         \
        "&sasUriExpirationTimeInMinutes=5"
#define BLOB                                                                                       \
    "https://md-hdd-5l0ckw1qc3xj.z35.blob.storage.azure.net/bootdiagnostics-belaylab1-7d1c3b52-"   \
    "6f0e-4c8a-9b61-0e6a3d2f4b17/belay-lab-17.7d1c3b52-6f0e-4c8a-9b61-0e6a3d2f4b17.serialconsole." \
    "log?sv=2018-03-28&sr=b&sig=iWq0xT1Zk%2BexampleA%2F9c%3D&se=2026-08-22T12%3A06%3A00Z&sp=r"

static void console(struct azure_rig *g, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->console(g->driver, "eastus", "belay-lab-17", outcome_console, &g->got);
    azure_rig_finish(g, expected);
    assert_null(strstr(g->got.e.text, "sig="));
    assert_null(strstr(g->got.e.text, "example")); /* part of the signature */
}

static void a_console_s_log_is_read_where_azure_says_and_without_a_token(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
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
    struct azure_rig *g = *state;
    azure_rig_create(g);
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
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(
        &g->http, 200, "{\"serialConsoleLogBlobUri\":\"https://example.com/x?sig=example\"}");
    console(g, ERR_INVALID);
    ASKED(g, "POST " CONSOLE);
    assert_nothing_leaked(g);
}

static void refusals_of_a_console_say_what_is_missing_and_no_url(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
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
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add_file(&g->http, 200, "azure_prices_1.json");
    fake_http_add_file(&g->http, 200, "azure_prices_2.json");
    fake_http_add(&g->http, 200, "{\"Items\":[],\"NextPageLink\":null}");
    g->driver->ops->prices(g->driver, "eastus", types, 2, outcome_prices, &g->got);
    azure_rig_finish(g, 0);
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
    struct azure_rig *g = *state;
    azure_rig_create(g);
    fake_http_add(&g->http, 429, "");
    g->driver->ops->prices(g->driver, "eastus", types, 1, outcome_prices, &g->got);
    azure_rig_finish(g, ERR_THROTTLED);
    fake_http_add(&g->http, 200, "{\"Items\":[],\"NextPageLink\":\"https://example.com/\"}");
    g->driver->ops->prices(g->driver, "eastus", types, 1, outcome_prices, &g->got);
    azure_rig_finish(g, ERR_INVALID);
}

static void endpoints_must_be_https_or_this_machine(void **state)
{
    struct azure_rig *g = *state;
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
    azure_rig_create(g);
}

static void destroying_a_driver_cancels_its_calls(void **state)
{
    struct azure_rig *g = *state;
    azure_rig_create(g);
    g->http.silent = true;
    azure_rig_start_launch(g);
    g->driver->ops->list(g->driver, "eastus", "lab", outcome_list, &g->got);
    for (int i = 0; i < 4; i++)
        vtimers_run_next(&g->vt);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, azure_rig_setup, azure_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_waits_for_its_operation),
        TEST(the_token_is_asked_for_once),
        TEST(without_credentials_a_launch_is_refused_for_certain),
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
        TEST(an_account_is_listed_and_nothing_is_deleted),
        TEST(parts_without_a_machine_are_listed_after_a_while),
        TEST(a_listing_does_without_power_states_that_are_denied),
        TEST(half_a_listing_is_an_error),
        TEST(pages_at_another_host_are_not_followed),
        TEST(quotas_are_those_of_the_subscription_on_all_pages),
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
        TEST(endpoints_must_be_https_or_this_machine),
        TEST(destroying_a_driver_cancels_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
