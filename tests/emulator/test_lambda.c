/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulated Lambda Cloud: keys, limits, launches and their refusals, the lives of instances.
 */
#include "base/str.h"
#include "emulator/control.h"
#include "tests/emulator/lambda_bench.h"
#include <string.h>

#define INSTANCES "/api/v1/instances"
#define TYPES "/api/v1/instance-types"
#define INVALID "\"global/invalid-parameters\""
#define MISSING "\"global/object-does-not-exist\""
#define FULL "\"instance-operations/launch/insufficient-capacity\""

static int setup(void **state)
{
    static struct lambda_bench b;
    bench_start(&b);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    bench_stop(*state);
    return 0;
}

/* ---- Authentication and rates ---- */

static void a_key_is_needed_in_either_form(void **state)
{
    static const char *const good[] = {
        "Bearer first", "Bearer second", "Basic Zmlyc3Q6", "Basic c2Vjb25kOg==", NULL};
    /* of "nobody", of no word, "first:password", "first" without a colon, a NUL after the key,
     * other schemes */
    static const char *const bad[] = {"Bearer nobody", "Bearer ", "Bearer first ",
        "Basic Zmlyc3Q6cGFzc3dvcmQ=", "Basic Zmlyc3Q=", "Basic Zmlyc3QAOg==", "Basic ",
        "Basic :", "Basic ****", "first", "Digest first", NULL};
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    for (size_t k = 0; good[k]; k++) {
        b->authorization = good[k];
        bench_expect(b, "GET", INSTANCES, NULL, 200, "{\"data\":[]}");
    }
    for (size_t k = 0; bad[k]; k++) {
        b->authorization = bad[k];
        bench_expect(b, "GET", INSTANCES, NULL, 401,
            "\"message\":\"API key was invalid, expired, or deleted.\"");
        assert_string_equal(bench_text(b, "error/code"), "global/invalid-api-key");
        bench_expect(b, "GET", "/api/v1/nothing", NULL, 401, "");
    }
    b->authorization = NULL;
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), 401, "No API key was provided.");
    assert_int_equal(b->region.n_instances, 0);
}

static void one_request_a_second_is_taken_of_all_keys_together(void **state)
{
    struct lambda_bench *b = *state;
    bench_expect(b, "GET", INSTANCES, NULL, 200, "data");
    bench_expect(b, "GET", INSTANCES, NULL, 429, "error code: 1015");
    assert_null(b->last.json);
    assert_string_equal(b->last.reply.content_type, "text/plain; charset=UTF-8");
    bench_advance(b, 999);
    b->authorization = "Bearer second";
    bench_expect(b, "GET", TYPES, NULL, 429, "");
    bench_advance(b, 1);
    bench_expect(b, "GET", TYPES, NULL, 200, "data");
}

static void one_launch_in_twelve_seconds_is_taken_whatever_came_of_it(void **state)
{
    struct lambda_bench *b = *state;
    bench_expect(b, "POST", BENCH_LAUNCH, "{}", 400, INVALID);
    bench_advance(b, 11999);
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), 429, "error code: 1015");
    bench_advance(b, 1);
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), 200, "instance_ids");
    bench_advance(b, 1000);
    bench_expect(b, "GET", INSTANCES, NULL, 200, "active");
}

static void what_it_does_not_have_is_said(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    bench_expect(b, "GET", "/", NULL, 404, "global/not-found");
    bench_expect(b, "GET", "/api/v1", NULL, 404, "global/not-found");
    bench_expect(b, "GET", "/api/v1/instances/", NULL, 404, "global/not-found");
    bench_expect(b, "GET", "/api/v1/instances/a/b", NULL, 404, "global/not-found");
    bench_expect(b, "GET", BENCH_LAUNCH, NULL, 405, "not allowed");
    bench_expect(b, "DELETE", INSTANCES, NULL, 405, "not allowed");
    bench_expect(b, "GET", INSTANCES "?cluster_id=1", NULL, 400, "cluster_id");
}

/* ---- Launches ---- */

static void a_launch_boots_and_becomes_active(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    bench_expect(b, "POST", BENCH_LAUNCH,
        bench_body(
            ",\"name\":\"belay-lab-1\",\"tags\":[{\"key\":\"belay:cluster\",\"value\":\"lab\"}],"
            "\"image\":{\"family\":\"stack\"},\"file_system_names\":[\"data\"],\"quantity\":1,"
            "\"user_data\":\"#!/bin/sh\\ntrue\\n\""),
        200, "instance_ids");
    const struct instance *i = b->region.instances[0];
    assert_string_equal(bench_text(b, "data/instance_ids/0"), i->id);
    assert_int_equal(strlen(i->id), 32);
    assert_string_equal(buf_str(&i->reservation->spec.user_data), "#!/bin/sh\ntrue\n");
    bench_expect(b, "GET", INSTANCES, NULL, 200, "vm-has-not-launched");
    assert_string_equal(bench_text(b, "data/0/status"), "booting");
    assert_string_equal(bench_text(b, "data/0/ip"), ""); /* not before it is running */
    bench_advance(b, BENCH_BOOT_MS);
    bench_expect(b, "GET", INSTANCES, NULL, 200, "\"price_cents_per_hour\":129");
    assert_string_equal(bench_text(b, "data/0/id"), i->id);
    assert_string_equal(bench_text(b, "data/0/status"), "active");
    assert_string_equal(bench_text(b, "data/0/name"), "belay-lab-1");
    assert_string_equal(bench_text(b, "data/0/ip"), "198.51.100.2");
    assert_string_equal(bench_text(b, "data/0/region/name"), "us-west-2");
    assert_string_equal(bench_text(b, "data/0/instance_type/name"), "gpu_1x_a10");
    assert_string_equal(bench_text(b, "data/0/ssh_key_names/0"), "ops");
    assert_string_equal(bench_text(b, "data/0/file_system_names/0"), "data");
    assert_string_equal(bench_text(b, "data/0/tags/0/key"), "belay:cluster");
    assert_string_equal(bench_text(b, "data/0/tags/0/value"), "lab");
    assert_null(strstr(buf_str(&b->last.reply.body), "#!"));
    char target[128];
    snprintf(target, sizeof(target), INSTANCES "/%s", i->id);
    bench_expect(b, "GET", target, NULL, 200, "active");
}

static void the_same_launch_twice_is_two_instances(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    const char *body = bench_body(",\"name\":\"one\"");
    bench_expect(b, "POST", BENCH_LAUNCH, body, 200, "");
    bench_expect(b, "POST", BENCH_LAUNCH, body, 200, "");
    assert_int_equal(b->region.n_instances, 2);
}

static void a_full_region_and_a_used_up_quota_refuse(void **state)
{
    static const char east[] =
        "{\"region_name\":\"us-east-1\",\"instance_type_name\":\"%s\",\"ssh_key_names\":[\"ops\"]}";
    struct lambda_bench *b = *state;
    char body[256];
    bench_lift_limits(b);
    snprintf(body, sizeof(body), east, "gpu_1x_a10");
    bench_expect(b, "POST", BENCH_LAUNCH, body, 400, FULL);
    assert_string_equal(
        bench_text(b, "error/message"), "Not enough capacity to fulfill launch request.");
    assert_true(bench_text(b, "error/suggestion")[0]);
    snprintf(body, sizeof(body), east, "gpu_8x_h100_sxm5"); /* never available in that region */
    bench_expect(b, "POST", BENCH_LAUNCH, body, 400, FULL);
    bench_run(b, "");
    bench_expect(b, "GET", TYPES, NULL, 200, "");
    assert_string_equal(
        bench_text(b, "data/gpu_1x_a10/regions_with_capacity_available/0/name"), "us-west-2");
    assert_string_equal(
        bench_text(b, "data/gpu_1x_a10/regions_with_capacity_available/1/name"), "");
    b->authorization = "Bearer second"; /* of the same account */
    bench_run(b, "");
    bench_expect(b, "GET", TYPES, NULL, 200, "\"gpu_description\":\"A10 (24 GB)\"");
    assert_string_equal(
        bench_text(b, "data/gpu_1x_a10/regions_with_capacity_available/0/name"), "");
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), 400, FULL);
    bench_event(b, "{\"capacity\":{\"zone\":\"us-west-2\",\"type\":\"gpu_1x_a10\",\"market\":\"on-"
                   "demand\",\"n\":9}}");
    bench_run(b, "");
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), 400, "\"global/quota-exceeded\"");
    assert_int_equal(b->region.n_instances, 3);
}

static void a_wrong_launch_is_refused_by_what_is_wrong(void **state)
{
    static const struct {
        const char *body, *text;
    } cases[] = {
        {"", INVALID},
        {"[]", INVALID},
        {"{", INVALID},
        {"{}", "region_name"},
        {"{\"region_name\":\"us-west-2\"}", "instance_type_name"},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\"}", "ssh_key_names"},
        {"{\"region_name\":\"mars-1\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
         "\"ops\"]}",
            "mars-1"},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_9x\",\"ssh_key_names\":["
         "\"ops\"]}",
            MISSING},
        {"{\"region_name\":7,\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":[\"ops\"]}",
            INVALID},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":[]"
         "}",
            "exactly one"},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
         "\"ops\",\"b\"]}",
            "exactly one"},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
         "7]}",
            "exactly one"},
        {"{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
         "\"mine\"]}",
            MISSING},
    };
    static const struct {
        const char *more, *text;
    } members[] = {
        {",\"idempotency_token\":\"x\"", "idempotency_token"},
        {",\"name\":\"a234567890123456789012345678901234567890123456789012345678901234x\"", "name"},
        {",\"quantity\":2", "quantity"},
        {",\"image\":{\"id\":\"other\"}", MISSING},
        {",\"image\":{}", "either"},
        {",\"image\":{\"id\":\"stack\",\"family\":\"stack\"}", "either"},
        {",\"image\":\"stack\"", "image"},
        {",\"file_system_names\":[\"data\",\"more\"]", "at most one"},
        {",\"file_system_names\":[\"more\"]", MISSING},
        {",\"tags\":[{\"key\":\"Team\",\"value\":\"x\"}]", "tags.key"},
        {",\"tags\":[{\"key\":\"t\",\"value\":\"x\"}]", "tags.key"},
        {",\"tags\":[{\"key\":\"team\"}]", "tags.value"},
        {",\"tags\":[{\"key\":\"team\",\"value\":\"x\"},{\"key\":\"team\",\"value\":\"y\"}]",
            "twice"},
        {",\"tags\":[7]", "tags"},
        {",\"user_data\":{}", "user_data"},
    };
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        bench_expect(b, "POST", BENCH_LAUNCH, cases[k].body, 400, cases[k].text);
    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
        bench_expect(b, "POST", BENCH_LAUNCH, bench_body(members[k].more), 400, members[k].text);
    bench_expect(b, "POST", BENCH_LAUNCH,
        "{\"region_name\":\"us-east-1\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
        "\"ops\"],\"file_system_names\":[\"data\"]}",
        400, "\"instance-operations/launch/file-system-in-wrong-region\"");
    assert_int_equal(b->region.n_instances, 0);
    assert_int_equal(b->region.counts.launches, 0);
}

/* ---- Ends ---- */

static void expect_status(struct lambda_bench *b, const struct instance *i, const char *status)
{
    char target[128];
    snprintf(target, sizeof(target), INSTANCES "/%s", i->id);
    bench_expect(b, "GET", target, NULL, *status ? 200 : 404, *status ? "" : MISSING);
    assert_string_equal(bench_text(b, "data/status"), status);
}

static void terminate(struct lambda_bench *b, const char *id, int status, const char *text)
{
    char body[256];
    snprintf(body, sizeof(body), "{\"instance_ids\":[\"%s\"]}", id);
    bench_expect(b, "POST", BENCH_TERMINATE, body, status, text);
}

static void a_terminated_instance_is_shown_for_a_minute(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    struct instance *i = bench_run(b, "");
    terminate(b, i->id, 200, "terminated_instances");
    assert_string_equal(bench_text(b, "data/terminated_instances/0/id"), i->id);
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    expect_status(b, i, "terminated");
    terminate(b, i->id, 200, i->id); /* no-op */
    bench_advance(b, LAMBDA_CLOUD_ENDED_SHOWN_MS - 1);
    expect_status(b, i, "terminated");
    bench_advance(b, 1);
    expect_status(b, i, "");
    terminate(b, i->id, 404, MISSING);
    bench_expect(b, "GET", INSTANCES, NULL, 200, "{\"data\":[]}");
}

static void terminate_takes_all_or_none(void **state)
{
    static const char *const wrong[] = {"", "{}", "{\"instance_ids\":[]}", "{\"instance_ids\":[7]}",
        "{\"instance_ids\":\"x\"}", "{\"instance_ids\":[\"x\"],\"force\":true}", NULL};
    struct lambda_bench *b = *state;
    char body[256];
    bench_lift_limits(b);
    const struct instance *i = bench_run(b, "");
    for (size_t k = 0; wrong[k]; k++)
        bench_expect(b, "POST", BENCH_TERMINATE, wrong[k], 400, INVALID);
    snprintf(body, sizeof(body), "{\"instance_ids\":[\"%s\",\"none\"]}", i->id);
    bench_expect(b, "POST", BENCH_TERMINATE, body, 404, "Specified instance does not exist.");
    expect_status(b, i, "active");
}

static void one_that_powers_itself_off_stays_until_it_is_terminated(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    struct instance *i = bench_run(b, "");
    struct wall at = clock_wall(&b->vt.clock);
    region_machine_gone(&b->region, i, true, at, at);
    bench_advance(b, 10 * LAMBDA_CLOUD_ENDED_SHOWN_MS);
    expect_status(b, i, "unhealthy");
    terminate(b, i->id, 200, "\"status\":\"terminated\"");
    assert_int_equal(i->state, INSTANCE_TERMINATED);
    expect_status(b, i, ""); /* ended long ago */
}

static void one_that_is_taken_back_is_preempted_without_a_word_before(void **state)
{
    struct lambda_bench *b = *state;
    char event[128];
    bench_lift_limits(b);
    struct instance *i = bench_run(b, "");
    bench_advance(b, 1);
    snprintf(event, sizeof(event), "{\"reclaim\":{\"instance\":\"%s\"}}", i->id);
    bench_event(b, event);
    expect_status(b, i, "active");
    bench_advance(b, 999); /* ends are at whole seconds */
    expect_status(b, i, "preempted");
    const struct instance *j = bench_run(b, "");
    terminate(b, j->id, 200, "");
    expect_status(b, j, "terminated");
}

static void a_new_instance_may_not_be_seen_at_once(void **state)
{
    struct lambda_bench *b = *state;
    bench_lift_limits(b);
    b->config.providers[0].region.consistency_delay_ms = 5000;
    const struct instance *i = bench_run(b, "");
    expect_status(b, i, "");
    terminate(b, i->id, 404, MISSING);
    bench_expect(b, "GET", INSTANCES, NULL, 200, "{\"data\":[]}");
    bench_advance(b, 4000);
    expect_status(b, i, "active");
}

/* ---- Faults ---- */

static void faults_are_in_lambdas_words(void **state)
{
    static const struct {
        const char *code;
        int status;
    } codes[] = {{"global/invalid-api-key", 401}, {"global/account-inactive", 403},
        {"global/quota-exceeded", 400}, {"instance-operations/launch/insufficient-capacity", 400},
        {"global/internal-error", 500}, {"provider/internal-unavailable", 503},
        {"global/object-does-not-exist", 404}, {"made/up", 400}};
    struct lambda_bench *b = *state;
    char event[256];
    bench_lift_limits(b);
    for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
        snprintf(event, sizeof(event),
            "{\"refuse\":{\"action\":\"launchInstance\",\"code\":\"%s\"}}", codes[k].code);
        bench_event(b, event);
        bench_expect(b, "POST", BENCH_LAUNCH, bench_body(""), codes[k].status, codes[k].code);
    }
    bench_event(b, "{\"throttle\":{\"action\":\"listInstances\"}}");
    bench_expect(b, "GET", INSTANCES, NULL, 429, "error code: 1015");
    assert_int_equal(b->region.n_instances, 0);
}

static void an_event_of_the_spot_market_is_refused(void **state)
{
    static const char event[] =
        "{\"capacity\":{\"zone\":\"us-west-2\",\"type\":\"gpu_1x_a10\",\"n\":0}}";
    struct lambda_bench *b = *state;
    struct region *region = &b->region;
    json_t *reply = NULL;
    struct err e;
    assert_int_equal(
        control_events(&region, 1, event, strlen(event), clock_wall(&b->vt.clock), &reply, &e),
        ERR_INVALID);
    assert_non_null(strstr(e.text, "use on-demand"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_needed_in_either_form),
        TEST(one_request_a_second_is_taken_of_all_keys_together),
        TEST(one_launch_in_twelve_seconds_is_taken_whatever_came_of_it),
        TEST(what_it_does_not_have_is_said),
        TEST(a_launch_boots_and_becomes_active),
        TEST(the_same_launch_twice_is_two_instances),
        TEST(a_full_region_and_a_used_up_quota_refuse),
        TEST(a_wrong_launch_is_refused_by_what_is_wrong),
        TEST(a_terminated_instance_is_shown_for_a_minute),
        TEST(terminate_takes_all_or_none),
        TEST(one_that_powers_itself_off_stays_until_it_is_terminated),
        TEST(one_that_is_taken_back_is_preempted_without_a_word_before),
        TEST(a_new_instance_may_not_be_seen_at_once),
        TEST(faults_are_in_lambdas_words),
        TEST(an_event_of_the_spot_market_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
