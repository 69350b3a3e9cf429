/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/gce/filter.h"
#include "tests/emulator/gce_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST "8b0c1f0e-3f1f-4d9c-9a55-0d6d1f1c7a10"

/* Polls the operation of the last reply. */
static void expect_operation(
    struct gce_bench *b, const char *name, const char *status, const char *error)
{
    char *target = mem_printf(BENCH_ZONE "operations/%s", name);
    bench_expect(b, "GET", target, "", 200, status);
    assert_string_equal(bench_text(b, "error/errors/0/code"), error);
    free(target);
}

static void an_insert_is_done_when_the_instance_runs(void **state)
{
    struct gce_bench b;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    bench_expect(
        &b, "POST", BENCH_ZONE "instances?requestId=" REQUEST, bench_body("a", ""), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    assert_string_equal(bench_text(&b, "operationType"), "insert");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "PROVISIONING");
    bench_advance(&b, 600);
    expect_operation(&b, op, "RUNNING", "");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "STAGING");
    bench_advance(&b, 400);
    expect_operation(&b, op, "DONE", "");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "\"RUNNING\"");
    assert_string_equal(bench_text(&b, "scheduling/provisioningModel"), "SPOT");
    assert_true(strlen(bench_text(&b, "id")) == 19);
    /* Repeating the request gives the same operation; the name is a second guard. */
    bench_expect(
        &b, "POST", BENCH_ZONE "instances?requestId=" REQUEST, bench_body("a", ""), 200, op);
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 409, "alreadyExists");
    assert_int_equal(b.region.n_instances, 1);
    bench_stop(&b);
}

static void a_deleted_instance_is_not_found(void **state)
{
    struct gce_bench b;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    bench_run(&b, "a", "");
    bench_expect(&b, "DELETE", BENCH_ZONE "instances/a?requestId=" REQUEST, "", 200, "\"delete\"");
    STR_COPY(op, bench_text(&b, "name"));
    expect_operation(&b, op, "DONE", "");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 404, "notFound");
    bench_expect(&b, "DELETE", BENCH_ZONE "instances/a", "", 404, "notFound");
    bench_expect(&b, "DELETE", BENCH_ZONE "instances/a?requestId=" REQUEST, "", 200, op);
    bench_run(&b, "a", ""); /* its name is available again */
    bench_stop(&b);
}

static void a_wait_ends_with_the_operation(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 200, "PENDING");
    char *target = mem_printf(BENCH_ZONE "operations/%s/wait", bench_text(&b, "name"));
    bench_call(&b, "POST", target, "\"\"");
    assert_int_equal(b.last.reply.wait_ms, SECONDS_MS(120));
    bench_advance(&b, 1000);
    bench_expect(&b, "POST", target, "", 200, "DONE");
    assert_int_equal(b.last.reply.wait_ms, 0);
    bench_expect(&b, "POST", BENCH_ZONE "operations/operation-1/wait", "", 404, "notFound");
    free(target);
    bench_stop(&b);
}

static void no_capacity_is_an_error_of_the_operation_later(void **state)
{
    struct gce_bench b;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    bench_run(&b, "a", "");
    bench_run(&b, "b", "");
    bench_expect(
        &b, "POST", BENCH_ZONE "instances?requestId=" REQUEST, bench_body("c", ""), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    char *target = mem_printf(BENCH_ZONE "operations/%s/wait", op);
    bench_call(&b, "POST", target, "");
    assert_int_equal(b.last.reply.wait_ms, 1000);
    free(target);
    bench_advance(&b, 1000);
    expect_operation(&b, op, "DONE", "ZONE_RESOURCE_POOL_EXHAUSTED");
    assert_int_equal(json_integer_value(json_object_get(b.last.json, "httpErrorStatusCode")), 503);
    bench_expect(&b, "GET", BENCH_ZONE "instances/c", "", 404, "notFound");
    /* The request id is used up, the name is not. */
    bench_expect(
        &b, "POST", BENCH_ZONE "instances?requestId=" REQUEST, bench_body("c", ""), 200, op);
    bench_stop(&b);
}

static void the_quota_is_of_all_zones(void **state)
{
    static const char on_demand[] = ",\"scheduling\":{\"onHostMaintenance\":\"TERMINATE\"}";
    struct gce_bench b;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    for (int k = 0; k < 5; k++) {
        char name[32];
        snprintf(name, sizeof(name), "n%d", k);
        bench_run(&b, name, on_demand);
    }
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("more", on_demand), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    bench_advance(&b, 1000);
    expect_operation(&b, op, "DONE", "QUOTA_EXCEEDED");
    bench_stop(&b);
}

static void bad_bodies_are_refused_by_field(void **state)
{
    static const struct {
        const char *name, *more, *expected;
        int status;
    } bad[] = {
        {"A", "", "resource.name", 400},
        {"a-", "", "resource.name", 400},
        {"1a", "", "resource.name", 400},
        {"", "", "resource.name", 400},
        {"a", ",\"nmae\":1", "nmae", 400},
        {"a", ",\"labels\":{\"Key\":\"v\"}", "Label keys", 400},
        {"a", ",\"labels\":{\"sched:job\":\"v\"}", "Label keys", 400},
        {"a", ",\"labels\":{\"key\":\"Value\"}", "Label values", 400},
        {"a", ",\"labels\":{\"key\":7}", "Label values", 400},
        {"a", ",\"labels\":[]", "labels", 400},
        {"a", ",\"metadata\":{\"items\":[{\"key\":\"a b\"}]}", "metadata.items.key", 400},
        {"a", ",\"metadata\":{\"items\":[{\"key\":\"k\"},{\"key\":\"k\"}]}", "duplicate", 400},
        {"a", ",\"metadata\":{\"item\":[]}", "item", 400},
        {"a", ",\"scheduling\":{\"provisioningModel\":\"CHEAP\"}", "provisioningModel", 400},
        {"a", ",\"scheduling\":{\"provisioningModel\":\"SPOT\",\"automaticRestart\":true}",
            "AutomaticRestart", 400},
        {"a", ",\"scheduling\":{\"provisioningModel\":\"SPOT\",\"onHostMaintenance\":\"MIGRATE\"}",
            "TERMINATE", 400},
        {"a", ",\"scheduling\":{\"instanceTerminationAction\":\"DELETE\"}", "Spot", 400},
        {"a", ",\"scheduling\":{\"maxRunDuration\":{\"seconds\":\"5\"}}", "range", 400},
        {"a", ",\"scheduling\":{\"maxRunDuration\":{\"seconds\":\"x\"}}", "range", 400},
        {"a", ",\"scheduling\":{\"preemptionNoticeDuration\":{\"seconds\":\"120\"}}",
            "preemptionNoticeDuration", 400},
        {"a", ",\"serviceAccounts\":[{\"email\":\"x@y\"}]", "does not exist", 400},
        {"a", ",\"serviceAccounts\":[{\"email\":\"default\",\"scopes\":[\"all\"]}]", "scope", 400},
        {"a", ",\"serviceAccounts\":[{\"email\":\"default\"},{\"email\":\"default\"}]",
            "At most one", 400},
        {"a", ",\"guestAccelerators\":[{}]", "acceleratorType", 400},
        {"a", ",\"canIpForward\":\"yes\"", "canIpForward", 400},
    };
    static const struct {
        const char *body, *expected;
        int status;
    } whole[] = {
        {"", "JSON", 400},
        {"[]", "object", 400},
        {"{\"name\":\"a\"}", "machineType", 400},
        {"{\"name\":\"a\",\"machineType\":\"n2-standard-8\"}", "machineType", 400},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-b/machineTypes/n2-standard-8\"}",
            "another zone", 400},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-a/machineTypes/n9\"}", "not found",
            404},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-a/machineTypes/n2-standard-8\"}",
            "No disks", 400},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-a/machineTypes/"
         "n2-standard-8\",\"disks\":[{}]}",
            "Boot disk", 400},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-a/machineTypes/"
         "n2-standard-8\",\"disks\":[{\"boot\":true}]}",
            "image", 400},
        {"{\"name\":\"a\",\"machineType\":\"zones/us-central1-a/machineTypes/"
         "n2-standard-8\",\"disks\":[{\"boot\":true,"
         "\"source\":\"d\"}]}",
            "network interface", 400},
    };
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body(bad[k].name, bad[k].more),
            bad[k].status, bad[k].expected);
    for (size_t k = 0; k < sizeof(whole) / sizeof(whole[0]); k++)
        bench_expect(
            &b, "POST", BENCH_ZONE "instances", whole[k].body, whole[k].status, whole[k].expected);
    assert_int_equal(b.region.n_instances, 0);
    bench_stop(&b);
}

/* The body of an insert of this machine type with n of an accelerator; spot or not. */
static const char *gpu_body(
    const char *name, const char *machine, const char *accelerator, int n, bool is_spot)
{
    static char text[4096];
    snprintf(text, sizeof(text),
        "{\"name\":\"%s\",\"machineType\":\"zones/us-central1-a/machineTypes/%s\","
        "\"guestAccelerators\":[{\"acceleratorType\":\"projects/my-project/zones/us-central1-a/"
        "acceleratorTypes/%s\",\"acceleratorCount\":%d}],"
        "\"scheduling\":{\"provisioningModel\":\"%s\",\"onHostMaintenance\":\"TERMINATE\"},"
        "\"disks\":[{\"boot\":true,\"initializeParams\":{\"sourceImage\":\"projects/p/global/"
        "images/i\"}}],\"networkInterfaces\":[{}]}",
        name, machine, accelerator, n, is_spot ? "SPOT" : "STANDARD");
    return text;
}

static void gpus_are_attached_to_n1(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        gpu_body("a", "n1-standard-16", "nvidia-tesla-t4", 2, false), 200, "\"insert\"");
    bench_advance(&b, 1000);
    struct instance *i = b.region.instances[0];
    assert_string_equal(i->pool->type, "n1-standard-16+2xt4");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "/machineTypes/n1-standard-16\"");
    assert_string_equal(bench_text(&b, "guestAccelerators/0/acceleratorType"),
        GCE_URL "/projects/my-project/zones/us-central1-a/acceleratorTypes/nvidia-tesla-t4");
    assert_non_null(strstr(buf_str(&b.last.reply.body), "\"acceleratorCount\":2"));
    assert_string_equal(bench_text(&b, "scheduling/onHostMaintenance"), "TERMINATE");
    assert_int_equal(bench_metadata(&b, i, "/computeMetadata/v1/instance/machine-type"), 200);
    assert_true(str_ends(buf_str(&b.last.reply.body), "/machineTypes/n1-standard-16"));
    /* A machine with built-in GPUs may name them, and shows them in any case. */
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        gpu_body("b", "g2-standard-4", "nvidia-l4", 1, true), 200, "\"insert\"");
    bench_advance(&b, 1000);
    assert_string_equal(b.region.instances[1]->pool->type, "g2-standard-4");
    bench_expect(&b, "GET", BENCH_ZONE "instances/b", "", 200, "/machineTypes/g2-standard-4\"");
    assert_true(str_ends(
        bench_text(&b, "guestAccelerators/0/acceleratorType"), "/acceleratorTypes/nvidia-l4"));
    bench_stop(&b);
}

static void accelerators_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *machine, *accelerator;
        int n, status;
        const char *expected;
    } bad[] = {
        {"n1-standard-8", "nvidia-tesla-p4", 1, 404,
            "acceleratorTypes/nvidia-tesla-p4' was not found"},
        {"n1-standard-8", "a/b", 1, 400, "malformed"},
        {"n1-standard-9", "nvidia-tesla-t4", 1, 404, "machineTypes/n1-standard-9' was not found"},
        {"n1-standard-8+t4", "nvidia-tesla-t4", 1, 404,
            "machineTypes/n1-standard-8+t4' was not found"},
        {"n2-standard-8", "nvidia-tesla-t4", 1, 400,
            "[n2-standard-8, nvidia-tesla-t4] features are not compatible for creating instance."},
        {"n1-standard-8", "nvidia-l4", 1, 400,
            "[n1-standard-8, nvidia-l4] features are not compatible"},
        {"g2-standard-4", "nvidia-tesla-t4", 1, 400, "[g2-standard-4, nvidia-tesla-t4] features"},
        {"g2-standard-4", "nvidia-l4", 2, 400, "[g2-standard-4, nvidia-l4] features"},
        {"n1-standard-8", "nvidia-tesla-t4", 8, 400,
            "resource.guestAccelerators[0].acceleratorCount': '8'. Number of accelerator cards "
            "attached to an instance must be one of [1, 2, 4]."},
        {"n1-standard-8", "nvidia-tesla-v100", 3, 400, "[1, 2, 4, 8]"},
        {"n1-standard-16", "nvidia-tesla-v100", 1, 400,
            "'1'. At most 12 vCPUs can be used along with 1 accelerator cards in an instance."},
        {"n1-standard-8", "nvidia-tesla-t4", -1, 400, "acceleratorCount"},
    };
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        bench_expect(&b, "POST", BENCH_ZONE "instances",
            gpu_body("a", bad[k].machine, bad[k].accelerator, bad[k].n, true), bad[k].status,
            bad[k].expected);
    char *migrates = mem_strdup(gpu_body("a", "n1-standard-8", "nvidia-tesla-t4", 1, false));
    memcpy(strstr(migrates, "\"TERMINATE\""), "\"MIGRATE\"  ", 11);
    bench_expect(&b, "POST", BENCH_ZONE "instances", migrates, 400,
        "Instances with guest accelerators do not support live migration.");
    free(migrates);
    assert_int_equal(b.region.n_instances, 0);
    bench_stop(&b);
}

static void expect_failed(struct gce_bench *b, const char *body, const char *code, const char *text)
{
    char op[64];
    bench_expect(b, "POST", BENCH_ZONE "instances", body, 200, "PENDING");
    STR_COPY(op, bench_text(b, "name"));
    bench_advance(b, 1000);
    expect_operation(b, op, "DONE", code);
    assert_non_null(strstr(bench_text(b, "error/errors/0/message"), text));
}

static void gpus_sell_out_and_have_quotas(void **state)
{
    struct gce_bench b;
    struct region_event none = {.kind = EVENT_CAPACITY, .market = CLOUD_SPOT};
    json_t *reply = NULL;
    struct err e;
    (void)state;
    bench_start(&b, 1000);
    /* The quotas of spot and of other VMs. */
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        gpu_body("s", "n1-standard-8", "nvidia-tesla-t4", 1, true), 200, "insert");
    expect_failed(&b, gpu_body("a", "n1-standard-8", "nvidia-tesla-t4", 1, true), "QUOTA_EXCEEDED",
        "Quota 'PREEMPTIBLE_NVIDIA_T4_GPUS' exceeded.  Limit: 1.0 in region us-central1.");
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        gpu_body("o", "n1-standard-16", "nvidia-tesla-t4", 2, false), 200, "insert");
    expect_failed(&b, gpu_body("a", "n1-standard-16", "nvidia-tesla-t4", 2, false),
        "QUOTA_EXCEEDED", "Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 3.0 in region us-central1.");
    /* Without a quota for spot VMs they count against the other quota; and all count. */
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        gpu_body("v", "n1-standard-8", "nvidia-tesla-v100", 1, true), 200, "insert");
    expect_failed(&b, gpu_body("a", "n1-standard-8", "nvidia-tesla-v100", 1, true),
        "QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 4.0 globally.");
    assert_int_equal(b.region.counts.refusals, 3);
    for (size_t k = 0; k < b.region.n_instances; k++)
        region_terminate(&b.region, b.region.instances[k], b.now);
    /* GPUs that are not offered, and combinations that are not. */
    STR_COPY(none.zone, "us-central1-a");
    STR_COPY(none.type, "n1-standard-8+t4");
    assert_int_equal(region_apply(&b.region, &none, b.now, &reply, &e), 0);
    json_decref(reply);
    expect_failed(&b, gpu_body("a", "n1-standard-8", "nvidia-tesla-t4", 1, true),
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "A n1-standard-8 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently "
        "unavailable in the us-central1-a zone.");
    expect_failed(&b, gpu_body("a", "n1-standard-16", "nvidia-tesla-t4", 1, true),
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "A n1-standard-16 VM instance with 1 ");
    expect_failed(&b, gpu_body("a", "n1-standard-8", "nvidia-tesla-t4", 0, true),
        "ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources");
    bench_stop(&b);
}

static void bad_addresses_and_queries_are_refused(void **state)
{
    static const struct {
        const char *method, *target, *expected;
        int status;
    } bad[] = {
        {"GET", "/", "not found", 404},
        {"GET", "/compute/v1/projects/", "not found", 404},
        {"GET", "/compute/v1/projects/other/zones/us-central1-a/instances", "projects/other", 404},
        {"GET", BENCH_ROOT "zones/mars-1/instances", "Unknown zone", 400},
        {"GET", BENCH_ROOT "zones/us-central1-a/disks", "not found", 404},
        {"GET", BENCH_ZONE "instances/a/b/c/d/e/f", "not found", 404},
        {"PUT", BENCH_ZONE "instances/a", "not allowed", 405},
        {"GET", BENCH_ZONE "instances?maxResult=3", "maxResult", 400},
        {"GET", BENCH_ZONE "instances?maxResults=501", "maxResults", 400},
        {"GET", BENCH_ZONE "instances?pageToken=%21", "pageToken", 400},
        {"GET", BENCH_ZONE "instances?orderBy=status", "orderBy", 400},
        {"GET", BENCH_ZONE "instances?filter=x", "filter", 400},
        {"GET", BENCH_ZONE "instances?filter=%zz", "badRequest", 400},
        {"GET", BENCH_ZONE "instances/none?foo=1", "foo", 400},
        {"DELETE", BENCH_ZONE "instances/none?requestId=1", "requestId", 400},
        {"DELETE", BENCH_ZONE "instances/none?requestId=00000000-0000-0000-0000-000000000000",
            "requestId", 400},
        {"GET", BENCH_ZONE "operations/none", "not found", 404},
    };
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        bench_expect(&b, bad[k].method, bad[k].target, "", bad[k].status, bad[k].expected);
    bench_stop(&b);
}

static void lists_have_pages_and_filters(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    bench_run(&b, "b", ",\"labels\":{\"job\":\"17\"}");
    bench_run(&b, "a", ",\"labels\":{\"job\":\"18\"}");
    bench_expect(&b, "GET", BENCH_ZONE "instances?maxResults=1", "", 200, "\"a\"");
    char *next = mem_printf(
        BENCH_ZONE "instances?maxResults=1&pageToken=%s", bench_text(&b, "nextPageToken"));
    bench_expect(&b, "GET", next, "", 200, "\"b\"");
    assert_string_equal(bench_text(&b, "nextPageToken"), "");
    free(next);
    bench_expect(&b, "GET", BENCH_ZONE "instances?filter=labels.job%3D17", "", 200, "\"b\"");
    assert_int_equal(json_array_size(json_object_get(b.last.json, "items")), 1);
    bench_expect(&b, "GET", BENCH_ZONE "instances?filter=labels.job%3D19", "", 200, "instanceList");
    assert_null(json_object_get(b.last.json, "items"));
    bench_expect(&b, "GET",
        BENCH_ROOT "aggregated/instances?returnPartialSuccess=true&filter=labels.job%3D18", "", 200,
        "NO_RESULTS_ON_PAGE");
    const json_t *items = json_object_get(b.last.json, "items");
    assert_int_equal(json_object_size(items), 2);
    assert_int_equal(json_array_size(json_object_get(
                         json_object_get(items, "zones/us-central1-a"), "instances")),
        1);
    bench_expect(&b, "GET", BENCH_ROOT "zones", "", 200, "us-central1-b");
    bench_stop(&b);
}

static void disks_go_with_their_instance_unless_they_are_to_stay(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    struct disk_spec old = {.name = "old", .type = "pd-ssd", .gib = 7};
    region_add_volume(&b.region, &old, "us-central1-b", (struct wall){BENCH_START_MS - 86400000});
    struct instance *i = bench_run(&b, "b", "");
    bench_expect(&b, "GET", BENCH_ROOT "aggregated/disks?returnPartialSuccess=true", "", 200,
        "compute#diskAggregatedList");
    const json_t *items = json_object_get(b.last.json, "items"),
                 *a = json_object_get(json_object_get(items, "zones/us-central1-a"), "disks"),
                 *other = json_object_get(json_object_get(items, "zones/us-central1-b"), "disks");
    assert_int_equal(json_array_size(a), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(a, 0), "name")), "b");
    assert_string_equal(json_string_value(json_object_get(json_array_get(a, 0), "sizeGb")), "100");
    assert_int_equal(json_array_size(json_object_get(json_array_get(a, 0), "users")), 1);
    assert_int_equal(json_array_size(other), 1);
    assert_null(json_object_get(json_array_get(other, 0), "users"));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(other, 0), "creationTimestamp")),
        "2026-08-21T12:00:00.000+00:00");
    region_terminate(&b.region, i, b.now);
    bench_expect(&b, "GET", BENCH_ROOT "aggregated/disks", "", 200, "\"old\"");
    assert_null(json_object_get(
        json_object_get(json_object_get(b.last.json, "items"), "zones/us-central1-a"), "disks"));
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        "{\"name\":\"c\",\"machineType\":\"zones/us-central1-a/machineTypes/"
        "n2-standard-8\",\"disks\":[{\"boot\":true,\"initializeParams\":"
        "{\"sourceImage\":\"projects/d/global/images/x\",\"diskType\":\"zones/us-central1-a/"
        "diskTypes/pd-balanced\",\"labels\":{\"who\":\"we\"}}}],"
        "\"networkInterfaces\":[{\"network\":\"global/networks/default\"}]}",
        200, "\"insert\"");
    bench_advance(&b, 1000);
    region_terminate(&b.region, b.region.instances[1], b.now);
    bench_expect(&b, "GET", BENCH_ROOT "aggregated/disks?filter=labels.who%3Dwe", "", 200,
        "lastDetachTimestamp");
    a = json_object_get(
        json_object_get(json_object_get(b.last.json, "items"), "zones/us-central1-a"), "disks");
    assert_string_equal(json_string_value(json_object_get(json_array_get(a, 0), "sizeGb")), "10");
    assert_null(json_object_get(json_array_get(a, 0), "users"));
    bench_expect(&b, "POST", BENCH_ZONE "instances",
        "{\"name\":\"d\",\"machineType\":\"zones/us-central1-a/machineTypes/"
        "n2-standard-8\",\"disks\":[{\"boot\":true,\"initializeParams\":"
        "{\"sourceImage\":\"projects/d/global/images/"
        "x\",\"diskSizeGb\":\"0\"}}],\"networkInterfaces\":[{\"network\":\"global/networks/"
        "default\"}]}",
        400, "disks.initializeParams");
    bench_stop(&b);
}

static void filters_select_instances(void **state)
{
    static const struct {
        const char *filter;
        int fits; /* -1 if refused */
    } cases[] = {
        {"name = job17-1", 1},
        {"name=job17-1", 1},
        {"name != job17-1", 0},
        {"name = job17-*", 1},
        {"name = job*-2", 0},
        {"labels.job = 17", 1},
        {"labels.job=\"17\"", 1},
        {"labels.job:*", 1},
        {"labels.none:*", 0},
        {"labels.none != 3", 1},
        {"name : JOB17", 1},
        {"size > 9", 1},
        {"size >= 10 size <= 10", 1},
        {"size < 10", 0},
        {"(labels.job = 17) (status = RUNNING)", 1},
        {"labels.job = 17 AND status = STOPPING", 0},
        {"labels.job = 18 OR status = RUNNING", 1},
        {"name = x OR (labels.job = 17 AND (size = 10))", 1},
        {"name eq 'job17-.*'", 1},
        {"name eq job17", 0},
        {"name ne 'job18.*'", 1},
        {"name eq 'job17\\-1'", 1},
        {"name eq '.*17.1'", 1},
        {"spot = true", 1},
        {"ORbit = 1", 0},
        {"ANDes:*", 0},
        {"", -1},
        {"name", -1},
        {"name =", -1},
        {"= x", -1},
        {"(name = x", -1},
        {"name = x)", -1},
        {"name like x", -1},
        {"name = \"x", -1},
        {"name eq 'a(b'", -1},
        {"name eq 'a[b]'", -1},
        {"name eq a AND name = b", -1},
        {"name = a AND", -1},
        {"((((((((((name = a))))))))))", -1},
    };
    json_t *o = json_pack("{s:s, s:{s:s}, s:s, s:i, s:b}", "name", "job17-1", "labels", "job", "17",
        "status", "RUNNING", "size", 10, "spot", 1);
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        bool fits = false;
        struct err e;
        int rc = gce_filter_matches(cases[k].filter, o, &fits, &e);
        if ((rc < 0) != (cases[k].fits < 0) || (rc == 0 && fits != cases[k].fits))
            fail_msg("%s: %d %d", cases[k].filter, rc, fits);
    }
    json_decref(o);
}

static void a_preemption_leaves_an_operation_as_its_proof(void **state)
{
    struct gce_bench b;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ALL};
    json_t *reply = NULL;
    struct err e;
    (void)state;
    bench_start(&b, 1000);
    struct instance *i = bench_run(&b, "a", "");
    assert_int_equal(region_apply(&b.region, &ev, b.now, &reply, &e), 0);
    json_decref(reply);
    assert_int_equal(i->deadline.ms - b.now.ms, 30000);
    bench_advance(&b, 1);
    assert_true(i->is_soft_off); /* no lead */
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "STOPPING");
    static const char proof[] =
        BENCH_ZONE "operations?filter=operationType%3D%22compute.instances.preempted%22";
    bench_expect(&b, "GET", proof, "", 200, "instances/a\"");
    bench_advance(&b, 30000);
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 404, "notFound");
    bench_expect(&b, "GET", proof, "", 200, "\"DONE\"");
    char *target = mem_printf(BENCH_ZONE "operations/%s", bench_text(&b, "items/0/name"));
    bench_expect(&b, "GET", target, "", 200, "preempted");
    bench_expect(
        &b, "GET", BENCH_ROOT "aggregated/operations", "", 200, "compute.instances.preempted");
    free(target);
    bench_stop(&b);
}

static void a_preempted_one_that_stops_still_exists(void **state)
{
    struct gce_bench b;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ALL, .is_without_notice = true};
    json_t *reply = NULL;
    struct err e;
    (void)state;
    bench_start(&b, 1000);
    bench_run(&b, "a", ",\"scheduling\":{\"provisioningModel\":\"SPOT\"}");
    assert_int_equal(region_apply(&b.region, &ev, b.now, &reply, &e), 0);
    json_decref(reply);
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "\"TERMINATED\"");
    bench_expect(&b, "GET", BENCH_ZONE "operations", "", 200, "compute.instances.preempted");
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 409, "alreadyExists");
    bench_expect(&b, "DELETE", BENCH_ZONE "instances/a", "", 200, "DONE");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 404, "notFound");
    bench_stop(&b);
}

static void one_preempted_while_it_is_created_fails_its_insert(void **state)
{
    struct gce_bench b;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ALL, .is_without_notice = true};
    json_t *reply = NULL;
    struct err e;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    assert_int_equal(region_apply(&b.region, &ev, b.now, &reply, &e), 0);
    json_decref(reply);
    expect_operation(&b, op, "DONE", "UNSUPPORTED_OPERATION");
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("b", ""), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    bench_expect(&b, "DELETE", BENCH_ZONE "instances/b", "", 200, "DONE");
    expect_operation(&b, op, "DONE", "OPERATION_CANCELED_BY_USER");
    bench_stop(&b);
}

static void beta_has_an_early_notice(void **state)
{
    struct gce_bench b;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ALL};
    json_t *reply = NULL;
    struct err e;
    (void)state;
    bench_start(&b, 1000);
    bench_expect(&b, "POST", "/compute/beta/projects/my-project/zones/us-central1-a/instances",
        bench_body("a", ",\"scheduling\":{\"provisioningModel\":\"SPOT\","
                        "\"instanceTerminationAction\":\"DELETE\","
                        "\"preemptionNoticeDuration\":{\"seconds\":\"120\"}}"),
        200, "PENDING");
    bench_advance(&b, 1000);
    const struct instance *i = b.region.instances[0];
    assert_int_equal(region_apply(&b.region, &ev, b.now, &reply, &e), 0);
    json_decref(reply);
    assert_int_equal(i->deadline.ms - b.now.ms, 150000);
    bench_advance(&b, 119999);
    assert_false(i->is_soft_off);
    bench_advance(&b, 1);
    assert_true(i->is_soft_off);
    bench_advance(&b, 30000);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    bench_stop(&b);
}

static void an_instance_may_have_an_end(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    const struct instance *i = bench_run(&b, "a",
        ",\"scheduling\":{\"instanceTerminationAction\":\"DELETE\",\"maxRunDuration\":{\"seconds\":"
        "\"60\"}}");
    bench_advance(&b, 59999);
    assert_int_equal(i->state, INSTANCE_RUNNING);
    bench_advance(&b, 1);
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 404, "notFound");
    bench_stop(&b);
}

static void rates_are_limited_a_minute(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 3);
    for (int k = 0; k < 3; k++)
        bench_expect(&b, "GET", BENCH_ZONE "instances", "", 200, "instanceList");
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 403, "rateLimitExceeded");
    /* another group */
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 200, "PENDING");
    bench_advance(&b, 60000);
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 200, "instanceList");
    bench_stop(&b);
}

static void faults_refuse_calls_and_fail_operations(void **state)
{
    static const struct fault faults[] = {
        {.kind = FAULT_THROTTLE, .action = "instances.list", .count = 1},
        {.kind = FAULT_REFUSE, .action = "instances.get", .code = "backendError", .count = 1},
        {.kind = FAULT_REFUSE, .action = "instances.insert", .code = "QUOTA_EXCEEDED", .count = 1},
        {.kind = FAULT_REFUSE, .action = "instances.insert", .code = "quotaExceeded", .count = 1},
    };
    struct gce_bench b;
    char op[64];
    (void)state;
    bench_start(&b, 1000);
    for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
        assert_true(faults_add(&b.region.faults, &faults[k]));
    bench_expect(&b, "GET", BENCH_ZONE "instances", "", 429, "rateLimitExceeded");
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 503, "backendError");
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 200, "PENDING");
    STR_COPY(op, bench_text(&b, "name"));
    bench_expect(&b, "POST", BENCH_ZONE "instances", bench_body("a", ""), 403, "quotaExceeded");
    bench_advance(&b, 1000);
    expect_operation(&b, op, "DONE", "QUOTA_EXCEEDED");
    assert_int_equal(b.region.n_instances, 0);
    bench_stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_insert_is_done_when_the_instance_runs),
        cmocka_unit_test(a_deleted_instance_is_not_found),
        cmocka_unit_test(a_wait_ends_with_the_operation),
        cmocka_unit_test(no_capacity_is_an_error_of_the_operation_later),
        cmocka_unit_test(the_quota_is_of_all_zones),
        cmocka_unit_test(bad_bodies_are_refused_by_field),
        cmocka_unit_test(gpus_are_attached_to_n1),
        cmocka_unit_test(accelerators_that_do_not_fit_are_refused),
        cmocka_unit_test(gpus_sell_out_and_have_quotas),
        cmocka_unit_test(bad_addresses_and_queries_are_refused),
        cmocka_unit_test(lists_have_pages_and_filters),
        cmocka_unit_test(filters_select_instances),
        cmocka_unit_test(disks_go_with_their_instance_unless_they_are_to_stay),
        cmocka_unit_test(a_preemption_leaves_an_operation_as_its_proof),
        cmocka_unit_test(a_preempted_one_that_stops_still_exists),
        cmocka_unit_test(one_preempted_while_it_is_created_fails_its_insert),
        cmocka_unit_test(beta_has_an_early_notice),
        cmocka_unit_test(an_instance_may_have_an_end),
        cmocka_unit_test(rates_are_limited_a_minute),
        cmocka_unit_test(faults_refuse_calls_and_fail_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
