/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/gcp/credentials.h"
#include "cloud/gcp/gce.h"
#include "fake_http.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define ENDPOINT "http://127.0.0.1:4570"
#define PROJECT ENDPOINT "/compute/v1/projects/lab-123"
#define ZONE_A PROJECT "/zones/us-central1-a"
#define TOKEN_ONE "{\"access_token\":\"ya29.one\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"
#define TOKEN_TWO "{\"access_token\":\"ya29.two\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"
#define OPERATION "operation-1787400000000-64f0e1c2a7b3d-5c1d7f0e-9b2a4c33"

/* Made once, because generating keys is slow. */
static EVP_PKEY *pkey;
static char *pem;

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct gcp_options options;
    struct cloud_driver *driver;
    char key_file[64];
    struct outcome got;
};

/* A key file whose assertions go to uri; NULL for Google's. */
static void write_key(struct rig *g, const char *uri)
{
    struct err e;
    json_t *o = json_object();
    json_object_set_new(o, "type", json_string("service_account"));
    json_object_set_new(o, "project_id", json_string("lab-123"));
    json_object_set_new(o, "private_key_id", json_string("0a1b2c"));
    json_object_set_new(o, "private_key", json_string(pem));
    json_object_set_new(o, "client_email", json_string("belayd@lab-123.iam.gserviceaccount.com"));
    json_object_set_new(
        o, "token_uri", json_string(uri ? uri : "https://oauth2.googleapis.com/token"));
    char *text = json_dump_text(o);
    assert_int_equal(fs_write_atomic(g->key_file, text, strlen(text), 0600, &e), 0);
    free(text);
    json_decref(o);
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    snprintf(g->key_file, sizeof(g->key_file), "/tmp/belay-test-key-%d", (int)getpid());
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    write_key(g, ENDPOINT "/token");
    g->options =
        (struct gcp_options){.machine = {.project = "lab-123",
                                 .image = "projects/lab-123/global/images/family/belay-node"},
            .endpoint_url = ENDPOINT "/",
            .credentials_file = g->key_file,
            .http = &g->http.client,
            .timers = &g->vt.timers};
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
    unlink(g->key_file);
    free(g);
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (gcp_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

static void finish(struct rig *g, int expected)
{
    outcome_finish(&g->got, &g->vt, expected);
}

static const struct cloud_launch the_launch = {
    .token = "belay-lab-17",
    .region = "us-central1",
    .zone = "us-central1-a",
    .type = "g2-standard-4",
    .market = CLOUD_SPOT,
    .user_data = "#!/bin/sh\ntoken=hush\n",
    .cluster = "lab",
};

static void launch(struct rig *g, int expected)
{
    g->driver->ops->launch(g->driver, &the_launch, outcome_launch, &g->got);
    finish(g, expected);
}

static void list(struct rig *g, int expected)
{
    g->driver->ops->list(g->driver, "us-central1", "lab", outcome_list, &g->got);
    finish(g, expected);
}

static void terminate(struct rig *g, int expected)
{
    static const char *const ids[] = {"us-central1-a/belay-lab-17"};
    g->driver->ops->terminate(g->driver, "us-central1", ids, 1, outcome_done, &g->got);
    finish(g, expected);
}

static void add_token(struct rig *g)
{
    fake_http_add(&g->http, 200, TOKEN_ONE);
}

static void assert_asked(struct rig *g, size_t i, const char *method, const char *url)
{
    assert_true(i < g->http.n_requests);
    assert_string_equal(g->http.requests[i].method, method);
    assert_string_equal(g->http.requests[i].url, url);
}

static char *request_id_of(struct rig *g, size_t i)
{
    const char *at = strstr(g->http.requests[i].url, "requestId=");
    assert_non_null(at);
    return mem_strdup(at + strlen("requestId="));
}

static void launch_waits_for_its_operation(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add_file(&g->http, 200, "gce_insert.json"); /* still RUNNING */
    fake_http_add_file(&g->http, 200, "gce_operation_done.json");
    fake_http_add_file(&g->http, 200, "gce_instance.json");
    launch(g, 0);
    assert_asked(g, 0, "POST", ENDPOINT "/token");
    char *id = request_id_of(g, 1);
    char *url = mem_printf(ZONE_A "/instances?requestId=%s", id);
    assert_asked(g, 1, "POST", url);
    assert_asked(g, 2, "GET", ZONE_A "/operations/" OPERATION);
    assert_asked(g, 3, "GET", ZONE_A "/operations/" OPERATION);
    assert_asked(g, 4, "GET", ZONE_A "/instances/belay-lab-17");
    for (size_t i = 1; i <= 4; i++)
        assert_true(fake_http_sent(&g->http, i, "Authorization: Bearer ya29.one"));
    assert_string_equal(g->got.instance.id, "us-central1-a/belay-lab-17");
    assert_string_equal(g->got.instance.token, "belay-lab-17");
    assert_int_equal(g->got.instance.state, CLOUD_RUNNING);
    assert_int_equal(g->got.instance.market, CLOUD_SPOT);
    free(url);
    free(id);
}

static void assertion_is_signed_by_the_key(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    const char *body = buf_str(&g->http.requests[0].body);
    const char *assertion = strstr(body, "&assertion=");
    assert_true(str_starts(
        body, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="));
    assertion += strlen("&assertion=");
    const char *dot = strrchr(assertion, '.');
    unsigned char signature[512];
    struct buf text = {0};
    buf_adds(&text, dot + 1);
    for (size_t i = 0; i < text.len; i++)
        text.data[i] = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i];
    while (text.len % 4)
        buf_addc(&text, '=');
    assert_int_equal(EVP_DecodeBlock(signature, (unsigned char *)text.data, (int)text.len), 258);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, pkey), 1);
    assert_int_equal(EVP_DigestVerify(md, signature, 256, (const unsigned char *)assertion,
                         (size_t)(dot - assertion)),
        1);
    EVP_MD_CTX_free(md);
    buf_deinit(&text);
    /* {"alg":"RS256","typ":"JWT","kid":"0a1b2c"} */
    assert_true(str_starts(assertion, "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjBhMWIyYyJ9."));
}

static void refused_capacity_is_read_from_the_operation(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add_file(&g->http, 200, "gce_operation_stockout.json");
    launch(g, ERR_NO_CAPACITY);
    assert_non_null(strstr(g->got.e.text, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"));
    fake_http_add_file(&g->http, 403, "gce_quota.json");
    launch(g, ERR_QUOTA);
}

static void repeated_launch_finds_the_same_instance(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT); /* it took effect, and the reply was lost */
    launch(g, ERR_TIMEOUT);
    fake_http_add_file(&g->http, 409, "gce_already_exists.json");
    fake_http_add_file(&g->http, 200, "gce_instance.json");
    launch(g, 0);
    assert_string_equal(g->got.instance.id, "us-central1-a/belay-lab-17");
    char *first = request_id_of(g, 1), *second = request_id_of(g, 2);
    assert_string_equal(first, second);
    assert_int_equal(strlen(first), 36);
    free(first);
    free(second);
}

static void another_machine_of_that_name_is_a_conflict(void **state)
{
    struct rig *g = *state;
    struct cloud_launch l = the_launch;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 409, "gce_already_exists.json");
    fake_http_add_file(&g->http, 200, "gce_instance.json");
    l.cluster = "other";
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    finish(g, ERR_CONFLICT);
}

static void an_instance_that_is_gone_already_is_reported_as_gone(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_operation_done.json");
    fake_http_add_file(&g->http, 404, "gce_not_found.json");
    launch(g, 0);
    assert_int_equal(g->got.instance.state, CLOUD_GONE);
    assert_string_equal(g->got.instance.id, "us-central1-a/belay-lab-17");
}

static char *done_with(const char *name, const char *code)
{
    return mem_printf(
        "{\"name\":\"%s\",\"status\":\"DONE\",\"httpErrorStatusCode\":503,\"error\":{\"errors\":"
        "[{\"code\":\"%s\",\"message\":\"later\"}]}}",
        name, code);
}

/* Without another request id the provider would keep returning the failed operation. */
static void a_replayed_temporary_failure_is_requested_again(void **state)
{
    struct rig *g = *state;
    char *failed = done_with("operation-1", "RESOURCE_NOT_READY");
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add(&g->http, 200, failed);
    launch(g, ERR_UNAVAILABLE); /* a new failure: the caller decides when to retry */
    fake_http_add(&g->http, 200, failed);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add_file(&g->http, 200, "gce_operation_done.json");
    fake_http_add_file(&g->http, 200, "gce_instance.json");
    launch(g, 0);
    char *first = request_id_of(g, 1), *again = request_id_of(g, 3), *next = request_id_of(g, 4);
    assert_string_equal(first, again);
    assert_string_not_equal(again, next);
    for (int i = 0; i < 5; i++)
        fake_http_add(&g->http, 200, failed);
    launch(g, ERR_UNAVAILABLE); /* and not forever */
    free(first);
    free(again);
    free(next);
    free(failed);
}

static void operation_that_does_not_end_is_given_back(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "POST", "/token", 200, TOKEN_ONE);
    char *running = fake_read_file("gce_insert.json");
    fake_http_add(&g->http, 200, running);
    fake_http_route(&g->http, "GET", OPERATION, 200, running);
    launch(g, ERR_TIMEOUT);
    assert_true(clock_mono(&g->vt.clock).ms <= SECONDS_MS(50));
    assert_in_range(fake_http_count(&g->http, "GET", OPERATION), 10, 20);
    free(running);
}

static void all_pages_are_listed(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_list_1.json");
    fake_http_add_file(&g->http, 200, "gce_list_2.json");
    fake_http_add_file(&g->http, 200, "gce_preempted.json"); /* for zone a */
    fake_http_add(&g->http, 200, "{}");                      /* for zone b */
    list(g, 0);
    assert_asked(g, 1, "GET",
        PROJECT
        "/aggregated/"
        "instances?filter=labels.belay-cluster%3Dlab&maxResults=500&returnPartialSuccess=true");
    assert_non_null(strstr(g->http.requests[2].url, "&pageToken=CAEQAQ%3D%3D&"));
    assert_asked(g, 3, "GET",
        ZONE_A
        "/operations?filter=operationType%3D%22compute.instances.preempted%22&maxResults=500");
    assert_int_equal(g->got.n, 3); /* without the other region's and the other cluster's */
    assert_string_equal(g->got.list[0].id, "us-central1-a/belay-lab-17");
    assert_int_equal(g->got.list[0].state, CLOUD_RUNNING);
    assert_string_equal(g->got.list[1].id, "us-central1-b/belay-lab-18");
    assert_int_equal(g->got.list[1].state, CLOUD_STOPPING);
    assert_int_equal(g->got.list[1].market, CLOUD_ON_DEMAND);
    assert_string_equal(g->got.list[2].id, "us-central1-a/belay-lab-16");
    assert_string_equal(g->got.list[2].token, "belay-lab-16");
    assert_int_equal(g->got.list[2].state, CLOUD_GONE);
    assert_true(g->got.list[2].reclaimed);
}

static void disks_are_our_own_of_all_pages_or_all(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    for (int all = 0; all < 2; all++) {
        fake_http_add_file(&g->http, 200, "gce_disks_1.json");
        fake_http_add_file(&g->http, 200, "gce_disks_2.json");
        g->driver->ops->volumes(
            g->driver, "us-central1", all ? NULL : "lab", outcome_volumes, &g->got);
        finish(g, 0);
        assert_int_equal(g->got.n, all ? 2 : 1);
        assert_string_equal(g->got.volumes[0].name, "belay-lab-17");
    }
    assert_asked(g, 1, "GET",
        PROJECT "/aggregated/"
                "disks?filter=labels.belay-cluster%3Dlab&maxResults=500&returnPartialSuccess=true");
    assert_non_null(strstr(g->http.requests[2].url, "&pageToken=CAEQAQ%3D%3D&"));
    assert_asked(g, 3, "GET", PROJECT "/aggregated/disks?maxResults=500&returnPartialSuccess=true");
    fake_http_add(&g->http, 403,
        "{\"error\":{\"code\":403,\"message\":\"no\",\"errors\":[{\"reason\":\"forbidden\"}]}}");
    g->driver->ops->volumes(g->driver, "us-central1", "lab", outcome_volumes, &g->got);
    finish(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text,
        "gcp disks.aggregatedList, us-central1: it needs the permission compute.disks.list: "));
    fake_http_add(&g->http, 200, "{\"unreachables\":[\"projects/p/zones/us-central1-f\"]}");
    g->driver->ops->volumes(g->driver, "us-central1", "lab", outcome_volumes, &g->got);
    finish(g, ERR_UNAVAILABLE);
}

static void quotas_are_those_of_the_region_and_of_all_regions(void **state)
{
    static const struct cloud_machine machine = {"n1-standard-8+t4", CLOUD_ON_DEMAND, 8, 1};
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add(&g->http, 200,
        "{\"quotas\":[{\"metric\":\"NVIDIA_T4_GPUS\",\"limit\":4.0,\"usage\":1.0}]}");
    fake_http_add(&g->http, 200,
        "{\"quotas\":[{\"metric\":\"GPUS_ALL_REGIONS\",\"limit\":8.0,\"usage\":2.0}]}");
    g->driver->ops->quotas(g->driver, "us-central1", &machine, 1, outcome_quotas, &g->got);
    finish(g, 0);
    assert_asked(g, 1, "GET", PROJECT "/regions/us-central1");
    assert_asked(g, 2, "GET", PROJECT);
    assert_int_equal(g->got.n, 2);
    assert_int_equal(g->got.quotas[0].used, 1);
    assert_string_equal(g->got.quotas[1].scope, "all regions");
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            fake_http_add(&g->http, 200, "{}");
        fake_http_add(&g->http, 403,
            "{\"error\":{\"code\":403,\"message\":\"no\",\"errors\":[{\"reason\":\"forbidden\"}]}"
            "}");
        g->driver->ops->quotas(g->driver, "us-central1", &machine, 1, outcome_quotas, &g->got);
        finish(g, ERR_DENIED);
        assert_non_null(
            strstr(g->got.e.text, i == 0 ? "it needs the permission compute.regions.get: "
                                         : "it needs the permission compute.projects.get: "));
    }
    fake_http_add(&g->http, 200, "{\"quotas\":7}");
    g->driver->ops->quotas(g->driver, "us-central1", &machine, 1, outcome_quotas, &g->got);
    finish(g, ERR_INVALID);
}

static void endless_pages_of_disks_are_an_error(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_route(
        &g->http, "GET", "returnPartialSuccess=true", 200, "{\"nextPageToken\":\"again\"}");
    g->http.keep_none = true;
    g->driver->ops->volumes(g->driver, "us-central1", "lab", outcome_volumes, &g->got);
    finish(g, ERR_INVALID);
    assert_non_null(strstr(g->got.e.text, "more than 1000 pages"));
}

static void unreachable_zone_is_not_an_empty_one(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_list_unreachable.json");
    list(g, ERR_UNAVAILABLE);
    assert_non_null(strstr(g->got.e.text, "us-central1-b"));
}

static void a_project_is_listed_whatever_the_labels(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_list_1.json");
    fake_http_add_file(&g->http, 200, "gce_list_2.json");
    g->driver->ops->list(g->driver, "us-central1", NULL, outcome_list, &g->got);
    finish(g, 0);
    assert_asked(
        g, 1, "GET", PROJECT "/aggregated/instances?maxResults=500&returnPartialSuccess=true");
    assert_int_equal(g->http.n_requests, 3); /* and no preemptions */
    assert_int_equal(g->got.n, 3);           /* with the other cluster's */
    assert_string_equal(g->got.list[2].cluster, "other");
}

/* Names of others may be longer than those of belay's instances; they are only shown. */
static void a_long_name_of_others_is_cut(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add(&g->http, 200,
        "{\"items\":{\"zones/us-central1-a\":{\"instances\":[{\"name\":"
        "\"a-name-of-63-characters-which-is-the-longest-that-google-allowx\",\"zone\":\"" ZONE_A
        "\",\"machineType\":\"" ZONE_A "/machineTypes/e2-small\",\"status\":\"RUNNING\"}]}}}");
    g->driver->ops->list(g->driver, "us-central1", NULL, outcome_list, &g->got);
    finish(g, 0);
    assert_int_equal(g->got.n, 1);
    assert_int_equal(strlen(g->got.list[0].id), CLOUD_NAME_MAX - 1);
    assert_string_equal(g->got.list[0].cluster, "");
}

static void listing_does_not_need_the_preemptions(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_list_2.json");
    fake_http_add(&g->http, 403,
        "{\"error\":{\"code\":403,\"message\":\"no\",\"errors\":[{\"reason\":\"forbidden\"}]}}");
    list(g, 0);
    assert_int_equal(g->got.n, 1);
}

static void termination_is_asked_for_by_name(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    fake_http_add_file(&g->http, 404, "gce_not_found.json");
    terminate(g, ERR_NOT_FOUND);
    fake_http_add(&g->http, 404,
        "{\"error\":{\"code\":404,\"message\":\"The resource 'projects/lab-123' was not "
        "found\",\"errors\":[{\"reason\":\"notFound\"}]}}");
    terminate(g, ERR_CONFIG); /* which says nothing about the instance */
    char *first = request_id_of(g, 1), *second = request_id_of(g, 2);
    assert_true(str_starts(g->http.requests[1].url, ZONE_A "/instances/belay-lab-17?requestId="));
    assert_string_equal(g->http.requests[1].method, "DELETE");
    assert_string_equal(first, second);
    vtimers_advance(&g->vt, SECONDS_MS(61));
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    char *later = request_id_of(g, 4);
    assert_string_not_equal(first, later); /* the first deletion may have failed */
    free(first);
    free(second);
    free(later);
}

/* A deletion that failed unnoticed would leave a machine running. */
static void termination_waits_for_its_operation(void **state)
{
    struct rig *g = *state;
    char *failed = done_with(OPERATION, "RESOURCE_NOT_READY");
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json"); /* RUNNING */
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    assert_asked(g, 3, "GET", ZONE_A "/operations/" OPERATION);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add(&g->http, 200, failed);
    terminate(g, ERR_UNAVAILABLE);
    free(failed);
}

/* A refusal would mean that nothing runs. */
static void launch_that_was_taken_is_not_refused_by_what_comes_after(void **state)
{
    static const char denied[] =
        "{\"error\":{\"code\":403,\"message\":\"no\",\"errors\":[{\"reason\":\"forbidden\"}]}}";
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    fake_http_add(&g->http, 403, denied);
    launch(g, ERR_UNAVAILABLE);
    fake_http_add_file(&g->http, 200, "gce_operation_done.json");
    fake_http_add(&g->http, 403, denied);
    launch(g, ERR_UNAVAILABLE);
    fake_http_add_file(&g->http, 409, "gce_already_exists.json");
    fake_http_add_file(&g->http, 404, "gce_not_found.json");
    launch(g, ERR_UNAVAILABLE);
    unlink(g->key_file);
    vtimers_advance(&g->vt, SECONDS_MS(3599)); /* the token expires */
    launch(g, ERR_CONFIG);                     /* before the call: refused */
    write_key(g, ENDPOINT "/token");
    add_token(g);
    fake_http_add(&g->http, 403, denied);
    launch(g, ERR_DENIED);
}

static void ids_of_others_are_refused(void **state)
{
    static const char *const wrong[] = {"i-0abc", "/x", "us-central1-a/", "us-central1-a/a/b",
        "us-east1-b/belay-lab-1", "us-central1-a/..", "us-central1-a/x?y", NULL};
    struct rig *g = *state;
    create(g);
    for (size_t i = 0; wrong[i]; i++) {
        g->driver->ops->terminate(g->driver, "us-central1", &wrong[i], 1, outcome_done, &g->got);
        finish(g, ERR_INVALID);
    }
    assert_int_equal(g->http.n_requests, 0);
}

static void refused_token_is_renewed_once_a_call(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add(&g->http, 401, "{\"error\":{\"code\":401,\"status\":\"UNAUTHENTICATED\"}}");
    fake_http_add(&g->http, 200, TOKEN_TWO);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    assert_true(fake_http_sent(&g->http, 3, "Authorization: Bearer ya29.two"));
    fake_http_add(&g->http, 401, "{\"error\":{\"code\":401,\"status\":\"UNAUTHENTICATED\"}}");
    fake_http_add(&g->http, 200, TOKEN_ONE);
    fake_http_add(&g->http, 401, "{\"error\":{\"code\":401,\"status\":\"UNAUTHENTICATED\"}}");
    terminate(g, ERR_DENIED);
}

/* Whatever a reply requests, tokens and assertions go to the host that the pool names. */
static void credentials_go_to_one_host(void **state)
{
    struct rig *g = *state;
    create(g);
    add_token(g);
    fake_http_add(&g->http, 307, "");
    terminate(g, ERR_INVALID);
    for (size_t i = 0; i < g->http.n_requests; i++)
        assert_true(str_starts(g->http.requests[i].url, ENDPOINT "/"));
    write_key(g, "https://evil.example/token");
    g->driver->ops->destroy(g->driver);
    create(g);
    size_t n = g->http.n_requests;
    terminate(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, n);
    assert_null(strstr(g->got.e.text, "PRIVATE"));
}

static void trusted_token_addresses(void **state)
{
    static const char *const trusted[] = {"https://oauth2.googleapis.com/token",
        "https://cloud.example/token", "https://cloud.example:8443/oauth", NULL};
    static const char *const others[] = {"", "https://oauth2.googleapis.com/other",
        "http://oauth2.googleapis.com/token", "https://oauth2.googleapis.com.evil.example/token",
        "https://cloud.example@evil.example/token", "http://cloud.example/token",
        "https://cloud.example.evil/token", "https://evil.example/cloud.example",
        "https://cloud.example\\@evil.example/", "file:///etc/passwd", NULL};
    (void)state;
    for (size_t i = 0; trusted[i]; i++)
        assert_true(gcp_token_uri_is_trusted(trusted[i], "https://cloud.example"));
    for (size_t i = 0; others[i]; i++)
        assert_false(gcp_token_uri_is_trusted(others[i], "https://cloud.example"));
    assert_false(gcp_token_uri_is_trusted("https://cloud.example/token", NULL));
}

static void without_a_key_the_metadata_service_is_asked(void **state)
{
    struct rig *g = *state;
    g->options.credentials_file = NULL;
    g->options.metadata_url = "http://127.0.0.1:1339/";
    create(g);
    add_token(g); /* without Google's identifying header */
    terminate(g, ERR_DENIED);
    fake_http_add(&g->http, 502, "<html>"); /* a proxy in between may be temporary */
    terminate(g, ERR_UNAVAILABLE);
    g->http.headers[0] = "Metadata-Flavor: Google";
    fake_http_add(&g->http, 404, "");
    terminate(g, ERR_CONFIG);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    assert_asked(g, 3, "GET",
        "http://127.0.0.1:1339/computeMetadata/v1/instance/service-accounts/default/token");
    assert_true(fake_http_sent(&g->http, 3, "Metadata-Flavor: Google"));
    assert_true(fake_http_sent(&g->http, 4, "Authorization: Bearer ya29.one"));
}

static void without_credentials_a_launch_is_refused_for_certain(void **state)
{
    struct rig *g = *state;
    g->options.credentials_file = NULL;
    g->options.metadata_url = "http://127.0.0.1:1339/";
    create(g);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch(g, ERR_NO_CREDENTIALS);
    assert_non_null(strstr(g->got.e.text, "no credentials, so nothing was sent: "));
    fake_http_add(&g->http, 502, "");
    launch(g, ERR_NO_CREDENTIALS);
    fake_http_add(&g->http, 404, "");
    launch(g, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "no credentials, so nothing was sent: "));
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    list(g, ERR_TIMEOUT);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->credentials(g->driver, "us-central1", outcome_done, &g->got);
    finish(g, ERR_TIMEOUT);
    g->http.headers[0] = "Metadata-Flavor: Google";
    add_token(g);
    g->driver->ops->credentials(g->driver, "us-central1", outcome_done, &g->got);
    finish(g, 0);
    assert_int_equal(g->http.n_requests, 6); /* all for tokens */
}

static void a_key_file_that_others_may_read_is_refused(void **state)
{
    struct rig *g = *state;
    assert_int_equal(chmod(g->key_file, 0640), 0);
    create(g);
    terminate(g, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "chmod 600"));
    assert_int_equal(g->http.n_requests, 0);
}

static void environment_names_the_key_file(void **state)
{
    struct rig *g = *state;
    setenv("GOOGLE_APPLICATION_CREDENTIALS", g->key_file, 1);
    g->options.credentials_file = NULL;
    create(g);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    assert_asked(g, 0, "POST", ENDPOINT "/token");
}

/* "exp" and "iat" of the assertion in a request. */
static int64_t issued_at(struct rig *g, size_t i)
{
    const char *claims = strchr(strstr(buf_str(&g->http.requests[i].body), "&assertion="), '.') + 1;
    struct buf text = {0};
    buf_add(&text, claims, strcspn(claims, "."));
    while (text.len % 4)
        buf_addc(&text, '=');
    unsigned char out[1024] = {0};
    assert_true(EVP_DecodeBlock(out, (unsigned char *)text.data, (int)text.len) > 0);
    buf_deinit(&text);
    return strtoll(strstr((char *)out, "\"iat\":") + 6, NULL, 10);
}

static void wrong_clock_is_mended_by_googles(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 400,
        "{\"error\":\"invalid_grant\",\"error_description\":\"Invalid JWT: Token must be a "
        "short-lived token\"}");
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    terminate(g, ERR_DENIED);
    assert_int_equal(issued_at(g, 0), NOON_MS / 1000);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_delete.json");
    terminate(g, 0);
    assert_in_range(issued_at(g, 1), NOON_MS / 1000 + 3600, NOON_MS / 1000 + 3601);
}

static void prices_are_left_to_the_catalogue(void **state)
{
    static const char *const types[] = {"g2-standard-4"};
    struct rig *g = *state;
    create(g);
    g->driver->ops->prices(g->driver, "us-central1", types, 1, outcome_prices, &g->got);
    finish(g, 0);
    assert_int_equal(g->got.n, 0);
    assert_int_equal(g->http.n_requests, 0);
}

static void assert_cancelled(struct rig *g)
{
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 1); /* inside */
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 1);
    g->got.completions = 0;
}

static void destroy_cancels_what_is_under_way(void **state)
{
    struct rig *g = *state;
    create(g);
    g->driver->ops->launch(g->driver, &the_launch, outcome_launch, &g->got); /* not begun */
    assert_cancelled(g);
    create(g);
    g->http.silent = true;
    /* waits for a token */
    g->driver->ops->list(g->driver, "us-central1", "lab", outcome_list, &g->got);
    vtimers_advance(&g->vt, 100);
    assert_cancelled(g);
    g->http.silent = false;
    create(g);
    add_token(g);
    fake_http_add_file(&g->http, 200, "gce_insert.json");
    /* waits for its operation */
    g->driver->ops->launch(g->driver, &the_launch, outcome_launch, &g->got);
    vtimers_advance(&g->vt, 100);
    assert_int_equal(g->http.n_requests, 3);
    assert_cancelled(g);
}

static void machines_that_cannot_be_asked_for_are_refused_at_once(void **state)
{
    struct rig *g = *state;
    const struct gcp_machine good = g->options.machine;
    struct gcp_machine wrong[9];
    struct err e;
    for (size_t i = 0; i < 9; i++)
        wrong[i] = good;
    wrong[0].project = "Lab 123";
    wrong[1].image = "debian-12";
    wrong[2].service_account = "nobody";
    wrong[3].scopes = "https://www.googleapis.com/auth/devstorage.read_only";
    wrong[4].address = "private";
    wrong[5].early_notice = "60";
    wrong[6].disk_type = "PD SSD";
    wrong[7].disk_gib = 70000;
    wrong[8].project = NULL;
    for (size_t i = 0; i < 9; i++) {
        g->options.machine = wrong[i];
        assert_int_equal(gcp_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
    }
    g->options.machine = good;
    g->options.endpoint_url = "http://compute.example";
    assert_int_equal(gcp_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
}

static void make_key(void)
{
    pkey = EVP_RSA_gen(2048);
    BIO *bio = BIO_new(BIO_s_mem());
    char *data;
    assert_int_equal(PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL), 1);
    long n = BIO_get_mem_data(bio, &data);
    pem = mem_strndup(data, (size_t)n);
    BIO_free(bio);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(launch_waits_for_its_operation),
        RIG(assertion_is_signed_by_the_key),
        RIG(refused_capacity_is_read_from_the_operation),
        RIG(repeated_launch_finds_the_same_instance),
        RIG(another_machine_of_that_name_is_a_conflict),
        RIG(an_instance_that_is_gone_already_is_reported_as_gone),
        RIG(a_replayed_temporary_failure_is_requested_again),
        RIG(operation_that_does_not_end_is_given_back),
        RIG(all_pages_are_listed),
        RIG(a_project_is_listed_whatever_the_labels),
        RIG(a_long_name_of_others_is_cut),
        RIG(disks_are_our_own_of_all_pages_or_all),
        RIG(quotas_are_those_of_the_region_and_of_all_regions),
        RIG(endless_pages_of_disks_are_an_error),
        RIG(unreachable_zone_is_not_an_empty_one),
        RIG(listing_does_not_need_the_preemptions),
        RIG(termination_is_asked_for_by_name),
        RIG(termination_waits_for_its_operation),
        RIG(launch_that_was_taken_is_not_refused_by_what_comes_after),
        RIG(ids_of_others_are_refused),
        RIG(refused_token_is_renewed_once_a_call),
        RIG(credentials_go_to_one_host),
        cmocka_unit_test(trusted_token_addresses),
        RIG(without_a_key_the_metadata_service_is_asked),
        RIG(without_credentials_a_launch_is_refused_for_certain),
        RIG(a_key_file_that_others_may_read_is_refused),
        RIG(environment_names_the_key_file),
        RIG(wrong_clock_is_mended_by_googles),
        RIG(prices_are_left_to_the_catalogue),
        RIG(destroy_cancels_what_is_under_way),
        RIG(machines_that_cannot_be_asked_for_are_refused_at_once),
    };
    make_key();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    EVP_PKEY_free(pkey);
    free(pem);
    return failed;
}
