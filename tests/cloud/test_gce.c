/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/gcp/credentials.h"
#include "cloud/gcp/gce.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const struct cloud_launch spot = {
    .token = "belay-0123456789abcdef-17",
    .region = "us-central1",
    .zone = "us-central1-a",
    .type = "g2-standard-4",
    .market = CLOUD_SPOT,
    .user_data = "#!/bin/sh\necho \"hello\"\n",
    .cluster = "0123456789abcdef",
};
static const struct gcp_machine machine = {
    .project = "lab-123", .image = "projects/lab-123/global/images/node"};

/* The body as text, to be freed. */
static char *build(const struct cloud_launch *l, const struct gcp_machine *m)
{
    struct buf out = {0};
    struct err e;
    if (gce_build_insert(l, m, &out, &e) != 0)
        fail_msg("%s", e.text);
    return buf_take(&out);
}

static void spot_launch_asks_for_deletion_at_its_end(void **state)
{
    (void)state;
    char *body = build(&spot, &machine);
    assert_string_equal(body,
        "{\"name\":\"belay-0123456789abcdef-17\","
        "\"machineType\":\"zones/us-central1-a/machineTypes/g2-standard-4\","
        "\"scheduling\":{\"provisioningModel\":\"SPOT\",\"instanceTerminationAction\":\"DELETE\","
        "\"automaticRestart\":false,\"onHostMaintenance\":\"TERMINATE\"},"
        "\"disks\":[{\"boot\":true,\"autoDelete\":true,\"initializeParams\":{"
        "\"sourceImage\":\"projects/lab-123/global/images/node\","
        "\"diskType\":\"zones/us-central1-a/diskTypes/pd-balanced\","
        "\"labels\":{\"belay-cluster\":\"0123456789abcdef\",\"belay-instance\":\"belay-"
        "0123456789abcdef-17\"}}}],"
        "\"networkInterfaces\":[{\"network\":\"global/networks/default\","
        "\"accessConfigs\":[{\"type\":\"ONE_TO_ONE_NAT\"}]}],"
        "\"metadata\":{\"items\":[{\"key\":\"startup-script\",\"value\":\"#!/bin/sh\\necho "
        "\\\"hello\\\"\\n\"}]},"
        "\"labels\":{\"belay-cluster\":\"0123456789abcdef\",\"belay-instance\":\"belay-"
        "0123456789abcdef-17\"}}");
    free(body);
}

static void settings_go_into_the_launch(void **state)
{
    struct gcp_machine m = machine;
    struct cloud_launch l = spot;
    (void)state;
    m.network = "train";
    m.subnet = "nodes";
    m.service_account = "node@lab-123.iam.gserviceaccount.com";
    m.scopes = "https://www.googleapis.com/auth/devstorage.read_only\nhttps://www.googleapis.com/"
               "auth/logging.write";
    m.tags = "belay\ninternal";
    m.disk_type = "hyperdisk-balanced";
    m.disk_gib = 200;
    m.address = "none";
    m.early_notice = "120";
    char *body = build(&l, &m);
    static const char *const parts[] = {"\"network\":\"global/networks/train\"",
        "\"subnetwork\":\"regions/us-central1/subnetworks/nodes\"", "\"diskSizeGb\":\"200\"",
        "zones/us-central1-a/diskTypes/hyperdisk-balanced",
        "\"tags\":{\"items\":[\"belay\",\"internal\"]}",
        "\"serviceAccounts\":[{\"email\":\"node@lab-123.iam.gserviceaccount.com\",\"scopes\":["
        "\"https://"
        "www.googleapis.com/auth/devstorage.read_only\",\"https://www.googleapis.com/auth/"
        "logging.write\"]}]",
        "\"preemptionNoticeDuration\":{\"seconds\":\"120\"}",
        "{\"key\":\"" GCE_ATTRIBUTE_NOTICE "\",\"value\":\"120\"}", NULL};
    for (size_t i = 0; parts[i]; i++)
        if (!strstr(body, parts[i]))
            fail_msg("no %s in %s", parts[i], body);
    assert_null(strstr(body, "accessConfigs"));
    free(body);
    l.market = CLOUD_ON_DEMAND;
    l.type = "e2-standard-8";
    body = build(&l, &m);
    assert_non_null(strstr(body,
        "\"scheduling\":{\"provisioningModel\":\"STANDARD\",\"automaticRestart\":false,"
        "\"onHostMaintenance\":\"MIGRATE\"}"));
    assert_null(strstr(body, GCE_ATTRIBUTE_NOTICE));
    free(body);
    l.type = "g2-standard-4"; /* a machine with GPUs cannot be migrated */
    body = build(&l, &m);
    assert_non_null(strstr(body, "\"onHostMaintenance\":\"TERMINATE\""));
    free(body);
}

static void attached_gpus_are_asked_for_by_the_zones_name_of_them(void **state)
{
    struct cloud_launch l = spot;
    (void)state;
    l.type = "n1-standard-16+2xt4";
    l.market = CLOUD_ON_DEMAND;
    char *body = build(&l, &machine);
    static const char expected[] =
        "{\"name\":\"belay-0123456789abcdef-17\","
        "\"machineType\":\"zones/us-central1-a/machineTypes/n1-standard-16\","
        "\"guestAccelerators\":[{"
        "\"acceleratorType\":\"projects/lab-123/zones/us-central1-a/acceleratorTypes/"
        "nvidia-tesla-t4\",\"acceleratorCount\":2}],"
        "\"scheduling\":{\"provisioningModel\":\"STANDARD\",\"automaticRestart\":false,"
        "\"onHostMaintenance\":\"TERMINATE\"},\"disks\":";
    if (!str_starts(body, expected))
        fail_msg("%s", body);
    free(body);
    l.type = "n1-standard-8"; /* without GPUs it can be migrated */
    body = build(&l, &machine);
    assert_null(strstr(body, "guestAccelerators"));
    assert_non_null(strstr(body, "\"onHostMaintenance\":\"MIGRATE\""));
    free(body);
    l.type = "n1-highcpu-8+p100"; /* not in the catalogue */
    body = build(&l, &machine);
    assert_non_null(strstr(body, "machineTypes/n1-highcpu-8\""));
    assert_non_null(strstr(body, "acceleratorTypes/nvidia-tesla-p100\",\"acceleratorCount\":1}"));
    assert_non_null(strstr(body, "\"onHostMaintenance\":\"TERMINATE\""));
    free(body);
}

static void max_run_makes_google_delete_what_is_older(void **state)
{
    struct gcp_machine m = machine;
    struct cloud_launch l = spot;
    struct err e;
    (void)state;
    m.max_run = "7d";
    l.market = CLOUD_ON_DEMAND;
    assert_int_equal(gce_check_machine(&m, &e), 0);
    char *body = build(&l, &m);
    assert_non_null(strstr(body,
        "\"instanceTerminationAction\":\"DELETE\",\"maxRunDuration\":{\"seconds\":\"604800\"}"));
    free(body);
    static const char *const wrong[] = {"", "soon", "29s", "121d", "-1d", NULL};
    for (size_t i = 0; wrong[i]; i++) {
        m.max_run = wrong[i];
        assert_int_equal(gce_check_machine(&m, &e), ERR_CONFIG);
        assert_non_null(strstr(e.text, "max_run"));
    }
}

static void same_launch_gives_the_same_bytes(void **state)
{
    char *first = build(&spot, &machine), *second = build(&spot, &machine);
    char a[GCE_UUID_MAX], b[GCE_UUID_MAX], c[GCE_UUID_MAX];
    (void)state;
    assert_string_equal(first, second);
    gce_request_id(spot.token, a);
    gce_request_id(spot.token, b);
    gce_request_id("belay-0123456789abcdef-18", c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '5');
    assert_non_null(strchr("89ab", a[19]));
    free(first);
    free(second);
}

static void what_google_could_not_take_is_refused(void **state)
{
    struct cloud_launch wrong[15];
    char *much = mem_alloc(CLOUD_USER_DATA_MAX + 2);
    struct buf out = {0};
    struct err e;
    (void)state;
    memset(much, 'x', CLOUD_USER_DATA_MAX + 1);
    for (size_t i = 0; i < 15; i++)
        wrong[i] = spot;
    wrong[0].token = "Belay-1";
    wrong[1].token = "1-belay";
    wrong[2].token = "belay-";
    wrong[3].token = "belay-0123456789012345678901234567890123456789012345678901234567890";
    wrong[4].token = "belay-01234567890123456789012345678901234567890123456789";
    wrong[5].cluster = "Lab";
    wrong[6].zone = "us-east1-b";
    wrong[7].zone = "us-central1-a/../../x";
    wrong[8].type = "g2 standard";
    wrong[9].user_data = much;
    wrong[10].type = "n1-standard-8+t5";
    wrong[11].type = "n2-standard-8+t4";
    wrong[12].type = "N1_standard+t4";
    wrong[13].type = "n1_standard_8";
    wrong[14].type = NULL;
    for (size_t i = 0; i < 15; i++)
        assert_int_equal(gce_build_insert(&wrong[i], &machine, &out, &e), ERR_CONFIG);
    assert_int_equal(out.len, 0);
    free(much);
}

static struct cloud_instance instance_of(const char *status, const char *created)
{
    struct cloud_instance i;
    struct err e;
    char *body = mem_printf(
        "{\"name\":\"belay-lab-17\",\"zone\":\"projects/p/zones/us-central1-a\",\"machineType\":"
        "\"https://x/machineTypes/n2-standard-8\",\"status\":\"%s\",\"creationTimestamp\":\"%s\"}",
        status, created);
    if (gce_parse_instance(body, strlen(body), &i, &e) != 0)
        fail_msg("%s", e.text);
    free(body);
    return i;
}

static void instances_are_read(void **state)
{
    static const struct {
        const char *status;
        enum cloud_state state;
    } states[] = {{"PROVISIONING", CLOUD_PENDING}, {"STAGING", CLOUD_PENDING},
        {"RUNNING", CLOUD_RUNNING}, {"REPAIRING", CLOUD_RUNNING}, {"STOPPING", CLOUD_STOPPING},
        {"TERMINATED", CLOUD_STOPPING}, {"SUSPENDED", CLOUD_STOPPING},
        {"SOMETHING_NEW", CLOUD_RUNNING}};
    static const char *const noons[] = {
        "2026-08-22T12:00:00Z", "2026-08-22T05:00:00.000-07:00", "2026-08-22T17:30:00+05:30"};
    static const char *const no_times[] = {
        "", "yesterday", "2026-08-22T12:00:00", "2026-08-22T12:00:00?01:00"};
    (void)state;
    for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
        assert_int_equal(instance_of(states[k].status, "").state, states[k].state);
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(instance_of("RUNNING", noons[k]).launched_at.ms, 1787400000000);
    for (size_t k = 0; k < 4; k++)
        assert_false(wall_is_set(instance_of("RUNNING", no_times[k]).launched_at));
    struct cloud_instance i = instance_of("RUNNING", "");
    assert_string_equal(i.id, "us-central1-a/belay-lab-17");
    assert_string_equal(i.type, "n2-standard-8");
    assert_string_equal(i.token, ""); /* has no token */
    assert_int_equal(i.market, CLOUD_ON_DEMAND);
}

/* The type in a reply with a machine type and a list of guestAccelerators. */
static int type_of(const char *name, const char *accelerators, char out[CLOUD_NAME_MAX])
{
    struct cloud_instance i;
    struct err e;
    char *body = mem_printf(
        "{\"name\":\"a\",\"zone\":\"projects/p/zones/us-central1-a\",\"status\":\"RUNNING\","
        "\"machineType\":\"https://x/machineTypes/%s\",\"guestAccelerators\":%s}",
        name, accelerators);
    int rc = gce_parse_instance(body, strlen(body), &i, &e);
    free(body);
    if (rc == 0)
        str_copy(out, CLOUD_NAME_MAX, i.type);
    return rc;
}

#define GPU(type, count)                                                                           \
    "{\"acceleratorType\":\"https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/" \
    "acceleratorTypes/" type "\",\"acceleratorCount\":" count "}"

static void attached_gpus_are_part_of_the_type(void **state)
{
    static const struct {
        const char *machine, *accelerators, *type;
    } rows[] = {
        {"n1-standard-8", "[" GPU("nvidia-tesla-t4", "1") "]", "n1-standard-8+t4"},
        {"n1-standard-16", "[" GPU("nvidia-tesla-v100", "2") "]", "n1-standard-16+2xv100"},
        {"custom-4-16384", "[" GPU("nvidia-tesla-p4", "1") "]", "custom-4-16384+p4"},
        {"n1-standard-8", "[]", "n1-standard-8"},
        {"n1-standard-8", "[" GPU("nvidia-tesla-t4", "0") "]", "n1-standard-8"},
        /* Built in: they are part of its name. */
        {"a2-highgpu-8g", "[" GPU("nvidia-tesla-a100", "8") "]", "a2-highgpu-8g"},
        {"g2-standard-4", "[" GPU("nvidia-l4", "1") "]", "g2-standard-4"},
        /* Not supported by belay. */
        {"n1-standard-8", "[" GPU("nvidia-tesla-t4-vws", "1") "]",
            "n1-standard-8+nvidia-tesla-t4-vws"},
        {"n1-standard-8", "[" GPU("nvidia-tesla-t4", "1") "," GPU("nvidia-tesla-p4", "1") "]",
            "n1-standard-8+t4+p4"},
    };
    static const char *const wrong[] = {"{}", "7", "[7]", "[{}]",
        "[" GPU("nvidia-tesla-t4", "\"1\"") "]", "[" GPU("nvidia-tesla-t4", "-1") "]",
        "[" GPU("Nvidia", "1") "]",
        "[" GPU("a-name-that-is-as-long-as-a-name-can-be-at-google-if-not-longer", "1") "]", NULL};
    char type[CLOUD_NAME_MAX];
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        assert_int_equal(type_of(rows[k].machine, rows[k].accelerators, type), 0);
        assert_string_equal(type, rows[k].type);
    }
    for (size_t k = 0; wrong[k]; k++)
        assert_int_equal(type_of("n1-standard-8", wrong[k], type), ERR_INVALID);
}

static void malformed_replies_are_refused(void **state)
{
    static const char *const wrong[] = {"", "null", "[]", "<html></html>", "{}", "{\"name\":7}",
        "{\"name\":\"../x\",\"status\":\"DONE\",\"zone\":\"z\",\"machineType\":\"t\"}",
        "{\"name\":\"a\",\"status\":\"DONE\",\"error\":{}}",
        "{\"name\":\"a\",\"status\":\"DONE\",\"error\":{\"errors\":[]}}",
        "{\"name\":\"a\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":5}]}}",
        "{\"name\":\"a\",\"status\":\"LATER\"}", NULL};
    static const char *const lists[] = {"", "null", "[]", "{\"items\":[]}",
        "{\"items\":{\"zones/us-central1-a\":{\"instances\":7}}}",
        "{\"items\":{\"zones/us-central1-a\":{\"instances\":[{}]}}}",
        "{\"items\":{\"zones/"
        "us-central1-a\":{\"instances\":[{\"name\":\"a\",\"status\":\"RUNNING\",\"zone\":\"z/"
        "us-central1-b\",\"machineType\":\"t\"}]}}}",
        "{\"nextPageToken\":7}", NULL};
    struct gce_operation op;
    struct cloud_instance i;
    struct cloud_instances l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    for (size_t k = 0; wrong[k]; k++) {
        assert_int_equal(gce_parse_operation(wrong[k], strlen(wrong[k]), &op, &e), ERR_INVALID);
        assert_int_equal(gce_parse_instance(wrong[k], strlen(wrong[k]), &i, &e), ERR_INVALID);
    }
    for (size_t k = 0; lists[k]; k++)
        assert_int_equal(
            gce_parse_list(lists[k], strlen(lists[k]), "us-central1", &l, page, &e), ERR_INVALID);
    assert_int_equal(l.n, 0);
    cloud_instances_deinit(&l);
}

static void disks_are_read_without_those_in_use(void **state)
{
    char *one = fake_read_file("gce_disks_1.json"), *two = fake_read_file("gce_disks_2.json");
    struct cloud_volumes l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    assert_int_equal(gce_parse_disks(one, strlen(one), "us-central1", &l, page, &e), 0);
    assert_string_equal(page, "CAEQAQ==");
    assert_int_equal(l.n, 1); /* one is attached, one is being deleted, one is in another region */
    assert_string_equal(l.list[0].id, "7302881093311470450");
    assert_string_equal(l.list[0].name, "belay-lab-17");
    assert_string_equal(l.list[0].cluster, "lab");
    assert_string_equal(l.list[0].token, "belay-lab-17");
    assert_string_equal(l.list[0].zone, "us-central1-a");
    assert_string_equal(l.list[0].type, "pd-balanced");
    assert_int_equal(l.list[0].gib, 100);
    assert_int_equal(l.list[0].since.ms, 1787400000000); /* when it was detached */
    assert_int_equal(gce_parse_disks(two, strlen(two), "us-central1", &l, page, &e), 0);
    assert_string_equal(page, "");
    assert_int_equal(l.n, 2);
    assert_string_equal(l.list[1].zone, "us-central1");
    assert_string_equal(l.list[1].type, "regional-pd-ssd");
    assert_int_equal(l.list[1].since.ms, 1787227200000); /* never attached */
    cloud_volumes_deinit(&l);
    free(one);
    free(two);
}

#define DISK(members) "{\"items\":{\"zones/us-central1-a\":{\"disks\":[{" members "}]}}}"
#define GOOD_DISK "\"id\":\"1\",\"name\":\"a\",\"status\":\"READY\",\"type\":\"x/pd-ssd\""
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void malformed_disks_are_refused(void **state)
{
    static const char *const wrong[] = {"", "null", "[]", "{\"items\":[]}",
        "{\"items\":{\"zones/us-central1-a\":{\"disks\":7}}}", DISK(""), DISK(GOOD_DISK),
        DISK(GOOD_DISK ",\"sizeGb\":10"), DISK(GOOD_DISK ",\"sizeGb\":\"ten\""),
        DISK(GOOD_DISK ",\"sizeGb\":\"-1\""), DISK(GOOD_DISK ",\"sizeGb\":\"1048577\""),
        DISK(GOOD_DISK ",\"sizeGb\":\"1\",\"users\":\"x\""),
        DISK(GOOD_DISK ",\"sizeGb\":\"1\",\"labels\":[]"),
        DISK(GOOD_DISK ",\"sizeGb\":\"1\",\"labels\":{\"belay-cluster\":7}"),
        DISK("\"id\":7,\"name\":\"a\",\"status\":\"READY\",\"type\":\"x\",\"sizeGb\":\"1\""),
        DISK("\"id\":\"" LONG
             "\",\"name\":\"a\",\"status\":\"READY\",\"type\":\"x\",\"sizeGb\":\"1\""),
        DISK("\"id\":\"7\",\"name\":\"../a\",\"status\":\"READY\",\"type\":\"x\",\"sizeGb\":\"1\""),
        DISK("\"id\":\"7\",\"name\":\"a\",\"status\":\"READY\",\"type\":\"x/" LONG
             "\",\"sizeGb\":\"1\""),
        "{\"items\":{\"zones/us-central1-a\":{\"warning\":{\"code\":7},\"disks\":7}}}",
        "{\"nextPageToken\":7}", NULL};
    struct cloud_volumes l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1];
    struct err e;
    (void)state;
    for (size_t k = 0; wrong[k]; k++) {
        int rc = gce_parse_disks(wrong[k], strlen(wrong[k]), "us-central1", &l, page, &e);
        if (rc != ERR_INVALID && rc != ERR_UNAVAILABLE)
            fail_msg("%s was taken", wrong[k]);
    }
    assert_int_equal(l.n, 0);
    cloud_volumes_deinit(&l);
}

static int list_of(const char *body)
{
    struct cloud_instances l = {0};
    char page[GCE_PAGE_TOKEN_MAX + 1];
    struct err e;
    int rc = gce_parse_list(body, strlen(body), "us-central1", &l, page, &e);
    cloud_instances_deinit(&l);
    return rc;
}

static void only_our_regions_silence_matters(void **state)
{
    (void)state;
    assert_int_equal(list_of("{}"), 0);
    assert_int_equal(
        list_of("{\"items\":{\"zones/us-central1-a\":{\"warning\":{\"code\":\"UNREACHABLE\"}}}}"),
        ERR_UNAVAILABLE);
    assert_int_equal(
        list_of("{\"items\":{\"zones/us-central1-a\":{\"warning\":{}}}}"), ERR_UNAVAILABLE);
    assert_int_equal(
        list_of("{\"items\":{\"zones/us-central10-a\":{\"warning\":{\"code\":\"UNREACHABLE\"}}}}"),
        0);
    assert_int_equal(
        list_of("{\"unreachables\":[\"projects/p/zones/us-central1-f\"]}"), ERR_UNAVAILABLE);
    assert_int_equal(list_of("{\"unreachables\":[\"projects/p/zones/"
                             "asia-east1-a\"],\"warning\":{\"code\":\"UNREACHABLE\"}}"),
        0);
    assert_int_equal(list_of("{\"warning\":{\"code\":\"UNREACHABLE\"}}"), ERR_UNAVAILABLE);
}

static void refusals_are_distinguished(void **state)
{
    static const struct {
        int status;
        const char *code;
        enum err_kind kind;
    } rows[] = {
        {503, "ZONE_RESOURCE_POOL_EXHAUSTED", ERR_NO_CAPACITY},
        {503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ERR_NO_CAPACITY},
        {503, "RESOURCE_POOL_EXHAUSTED", ERR_NO_CAPACITY},
        {503, "REGION_RESOURCE_POOL_EXHAUSTED", ERR_NO_CAPACITY},
        {503, "STOCKOUT", ERR_NO_CAPACITY},
        {503, "GPU_STOCKOUT", ERR_NO_CAPACITY},
        {503, "insufficientCapacity", ERR_NO_CAPACITY},
        {400, "UNSUPPORTED_OPERATION", ERR_NO_CAPACITY},
        {403, "QUOTA_EXCEEDED", ERR_QUOTA},
        {403, "quotaExceeded", ERR_QUOTA},
        {403, "rateLimitExceeded", ERR_THROTTLED},
        {429, "userRateLimitExceeded", ERR_THROTTLED},
        {400, "RESOURCE_OPERATION_RATE_EXCEEDED", ERR_THROTTLED},
        {400, "RESOURCE_NOT_READY", ERR_UNAVAILABLE},
        {400, "resourceInUseByAnotherResource", ERR_UNAVAILABLE},
        {503, "backendError", ERR_UNAVAILABLE},
        {500, "internalError", ERR_UNAVAILABLE},
        {409, "alreadyExists", ERR_CONFLICT},
        {403, "forbidden", ERR_DENIED},
        {403, "PERMISSIONS_ERROR", ERR_DENIED},
        {403, "IAM_PERMISSION_DENIED", ERR_DENIED},
        {400, "IP_SPACE_EXHAUSTED_WITH_DETAILS", ERR_CONFIG},
        {412, "CONDITION_NOT_MET", ERR_CONFIG},
        {400, "VPC_NOT_FOUND", ERR_CONFIG},
        {400, "INVALID_FIELD_VALUE", ERR_CONFIG},
        {400, "INVALID_USAGE", ERR_CONFIG},
        {404, "RESOURCE_NOT_FOUND", ERR_CONFIG},
        {404, "notFound", ERR_CONFIG},
        {503, "SOMETHING_NEW", ERR_UNAVAILABLE},
        {400, "SOMETHING_NEW", ERR_CONFIG},
    };
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *body = mem_printf(
            "{\"error\":{\"code\":%d,\"message\":\"why\",\"errors\":[{\"reason\":\"%s\"}]}}",
            rows[i].status, rows[i].code);
        assert_int_equal(gce_parse_error(rows[i].status, body, strlen(body), &e), rows[i].kind);
        assert_non_null(strstr(e.text, rows[i].code));
        free(body);
    }
    static const char *const missing[] = {"notFound", "NOT_FOUND", "RESOURCE_NOT_FOUND"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(gce_set_error(404, missing[i],
                             "The resource 'projects/p/zones/z/instances/i' was not found", &e),
            ERR_NOT_FOUND);
    assert_int_equal(gce_parse_error(502, "<html>", 6, &e), ERR_UNAVAILABLE);
    assert_int_equal(gce_parse_error(429, "", 0, &e), ERR_THROTTLED);
    assert_int_equal(gce_parse_error(302, "", 0, &e), ERR_INVALID);
}

/* The message repeats a wrong value, and ours may be a secret. */
static void metadata_never_gets_into_an_error(void **state)
{
    struct err e;
    (void)state;
    gce_set_error(400, "INVALID_FIELD_VALUE",
        "Invalid value for field 'resource.metadata.items[0].value': 'hush'", &e);
    assert_null(strstr(e.text, "hush"));
    gce_set_error(400, "INVALID_FIELD_VALUE", "Invalid value for\nfield 'resource.name'", &e);
    assert_null(strchr(e.text, '\n'));
}

static void key_files_are_read(void **state)
{
#define GOOD "\"client_email\":\"a@b.iam.gserviceaccount.com\",\"private_key\":\"-----BEGIN\""
    static const char *const wrong[] = {"", "null", "[]", "{}", "{" GOOD "}",
        "{\"type\":\"authorized_user\"," GOOD "}",
        "{\"type\":\"service_account\",\"private_key\":\"x\"}",
        "{\"type\":\"service_account\",\"client_email\":\"x\"}",
        "{\"type\":\"service_account\",\"client_email\":7,\"private_key\":\"x\"}",
        "{\"type\":\"service_account\",\"token_uri\":\"https://x/ y\"," GOOD "}",
        "{\"type\":\"service_account\",\"private_key_id\":\"a\\nb\"," GOOD "}", NULL};
    static const char good[] =
        "{\"type\":\"service_account\",\"universe_domain\":\"googleapis.com\"," GOOD "}";
    struct gcp_key key;
    struct buf out = {0};
    struct err e;
    (void)state;
    assert_int_equal(gcp_key_parse(good, strlen(good), &key, &e), 0);
    assert_string_equal(key.client_email, "a@b.iam.gserviceaccount.com");
    for (size_t i = 0; wrong[i]; i++) {
        assert_int_equal(gcp_key_parse(wrong[i], strlen(wrong[i]), &key, &e), ERR_CONFIG);
        assert_int_equal(e.kind, ERR_CONFIG);
    }
    static const char *const others[] = {
        "authorized_user", "external_account", "impersonated_service_account"};
    for (size_t i = 0; i < 3; i++) {
        char *text = mem_printf(
            "{\"type\":\"%s\",\"client_secret\":\"hush\",\"refresh_token\":\"hush\"}", others[i]);
        assert_int_equal(gcp_key_parse(text, strlen(text), &key, &e), ERR_CONFIG);
        assert_non_null(strstr(e.text, others[i]));
        assert_non_null(strstr(e.text, "expected the key file of a service account"));
        assert_null(strstr(e.text, "hush"));
        free(text);
    }
    /* Not a key, one of another type, one with a passphrase, which is not requested. */
    static const char *const keys[] = {"-----BEGIN",
        "-----BEGIN PRIVATE "
        "KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
        "-----END PRIVATE KEY-----\n",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG9w0BBQwwHAQI\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n"};
    for (size_t i = 0; i < 3; i++) {
        STR_COPY(key.private_key_pem, keys[i]);
        assert_int_equal(
            gcp_key_assertion(&key, "https://x", (struct wall){0}, &out, &e), ERR_CONFIG);
    }
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spot_launch_asks_for_deletion_at_its_end),
        cmocka_unit_test(settings_go_into_the_launch),
        cmocka_unit_test(attached_gpus_are_asked_for_by_the_zones_name_of_them),
        cmocka_unit_test(max_run_makes_google_delete_what_is_older),
        cmocka_unit_test(same_launch_gives_the_same_bytes),
        cmocka_unit_test(what_google_could_not_take_is_refused),
        cmocka_unit_test(instances_are_read),
        cmocka_unit_test(attached_gpus_are_part_of_the_type),
        cmocka_unit_test(malformed_replies_are_refused),
        cmocka_unit_test(disks_are_read_without_those_in_use),
        cmocka_unit_test(malformed_disks_are_refused),
        cmocka_unit_test(only_our_regions_silence_matters),
        cmocka_unit_test(refusals_are_distinguished),
        cmocka_unit_test(metadata_never_gets_into_an_error),
        cmocka_unit_test(key_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
