/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/ec2/metadata.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/emulator/world.h"
#include <stdlib.h>
#include <string.h>

struct bench {
    struct world world;
    struct keyring keyring;
    struct ec2_metadata metadata;
    struct instance *instance;
    char token[256];
};

static int ask(
    struct bench *b, const struct ec2_metadata_request *r, struct ec2_metadata_reply *reply)
{
    ec2_metadata_answer(&b->metadata, r, b->world.now, reply);
    return reply->status;
}

static void renew_token(struct bench *b, const char *ttl)
{
    struct ec2_metadata_reply reply;
    const struct ec2_metadata_request r = {
        .method = "PUT", .path = "/latest/api/token", .ttl = ttl};
    assert_int_equal(ask(b, &r, &reply), 200);
    assert_int_equal(reply.ttl_s, atoi(ttl));
    STR_COPY(b->token, buf_str(&reply.body));
    buf_deinit(&reply.body);
}

static void setup(struct bench *b)
{
    *b = (struct bench){0};
    world_init(&b->world);
    world_start(&b->world);
    struct launch_spec spec = {.market = CLOUD_SPOT,
        .type = TYPE,
        .zone = "us-east-1a",
        .image = "ami-1",
        .profile = "agent",
        .metadata_needs_token = true,
        .metadata_has_tags = true};
    struct reservation *v;
    buf_adds(&spec.user_data, "#!/bin/sh\n");
    tags_set(&spec.tags, "belay:cluster", "lab");
    assert_int_equal(
        region_launch(&b->world.region, &spec, "", "", 1, 1, b->world.now, &v, NULL), 0);
    world_advance(&b->world, 2000);
    b->instance = v->instances[0];
    b->metadata = (struct ec2_metadata){.region = &b->world.region,
        .instance = b->instance,
        .keyring = &b->keyring,
        .role_ttl_ms = 3600000};
    renew_token(b, "60");
}

static void teardown(struct bench *b)
{
    keyring_deinit(&b->keyring);
    world_stop(&b->world);
}

static int get(struct bench *b, const char *path, struct ec2_metadata_reply *reply)
{
    const struct ec2_metadata_request r = {.method = "GET", .path = path, .token = b->token};
    return ask(b, &r, reply);
}

static void expect(struct bench *b, const char *path, int status, const char *text)
{
    struct ec2_metadata_reply reply;
    int got = get(b, path, &reply);
    if (got != status || (text && !strstr(buf_str(&reply.body), text)))
        fail_msg("%s: expected %d %s, got %d %s", path, status, text ? text : "", got,
            buf_str(&reply.body));
    buf_deinit(&reply.body);
}

/* Compares the whole body. */
static void expect_exactly(struct bench *b, const char *path, const char *text)
{
    struct ec2_metadata_reply reply;
    assert_int_equal(get(b, path, &reply), 200);
    assert_string_equal(buf_str(&reply.body), text);
    buf_deinit(&reply.body);
}

static int put_token(struct bench *b, const char *path, const char *ttl, const char *forwarded_for)
{
    struct ec2_metadata_reply reply;
    const struct ec2_metadata_request r = {
        .method = "PUT", .path = path, .ttl = ttl, .forwarded_for = forwarded_for};
    int status = ask(b, &r, &reply);
    buf_deinit(&reply.body);
    return status;
}

static void tokens_are_given_for_a_good_time_to_live_only(void **state)
{
    struct bench b;
    (void)state;
    setup(&b);
    assert_int_equal(put_token(&b, "/latest/api/token", "21600", NULL), 200);
    assert_int_equal(put_token(&b, "/latest/api/token", "21601", NULL), 400);
    assert_int_equal(put_token(&b, "/latest/api/token", "0", NULL), 400);
    assert_int_equal(put_token(&b, "/latest/api/token", "x", NULL), 400);
    assert_int_equal(put_token(&b, "/latest/api/token", NULL, NULL), 400);
    assert_int_equal(put_token(&b, "/latest/api/token", "60", "10.0.0.1"), 403);
    assert_int_equal(put_token(&b, "/2021-03-23/api/token", "60", NULL), 403);
    teardown(&b);
}

static void nothing_is_read_without_a_token_that_is_good_now_and_here(void **state)
{
    struct bench b, other;
    (void)state;
    setup(&b);
    setup(&other);
    memset(other.metadata.secret, 7, sizeof(other.metadata.secret));
    struct ec2_metadata_reply reply;
    const struct ec2_metadata_request naked = {
        .method = "GET", .path = "/latest/meta-data/instance-id"};
    assert_int_equal(ask(&b, &naked, &reply), 401);
    buf_deinit(&reply.body);
    expect(&b, "/latest/meta-data/instance-id", 200, b.instance->id);
    renew_token(&other, "60");
    STR_COPY(b.token, other.token);
    expect(&b, "/latest/meta-data/instance-id", 401, NULL);
    STR_COPY(b.token, "garbage");
    expect(&b, "/latest/meta-data/instance-id", 401, NULL);
    renew_token(&b, "60");
    world_advance(&b.world, 59999);
    expect(&b, "/latest/meta-data/instance-id", 200, NULL);
    world_advance(&b.world, 1);
    expect(&b, "/latest/meta-data/instance-id", 401, NULL);
    teardown(&b);
    teardown(&other);
}

static void the_spot_paths_are_404_until_marked(void **state)
{
    struct bench b;
    (void)state;
    setup(&b);
    expect(&b, "/latest/meta-data/spot/instance-action", 404, "Not Found");
    expect(&b, "/latest/meta-data/spot/termination-time", 404, NULL);
    expect(&b, "/latest/meta-data/spot/", 404, NULL);
    expect(&b, "/latest/meta-data/events/recommendations/rebalance", 404, NULL);
    world_event(&b.world, "{\"rebalance\":{\"instance\":\"all\"}}");
    expect_exactly(&b, "/latest/meta-data/events/recommendations/rebalance",
        "{\"noticeTime\":\"2026-08-22T12:00:02Z\"}");
    world_event(&b.world, "{\"reclaim\":{\"instance\":\"all\"}}");
    expect_exactly(&b, "/latest/meta-data/spot/instance-action",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T12:02:02Z\"}");
    expect_exactly(&b, "/latest/meta-data/spot/termination-time", "2026-08-22T12:02:02Z");
    expect_exactly(&b, "/latest/meta-data/spot/", "instance-action\ntermination-time");
    teardown(&b);
}

static void the_machine_is_described(void **state)
{
    struct bench b;
    (void)state;
    setup(&b);
    expect_exactly(&b, "/latest/meta-data/instance-type", TYPE);
    expect_exactly(&b, "/latest/meta-data/instance-life-cycle", "spot");
    expect_exactly(&b, "/latest/meta-data/placement/availability-zone", "us-east-1a");
    expect_exactly(&b, "/latest/meta-data/placement/availability-zone-id", "use1-az1");
    expect_exactly(&b, "/2021-03-23/meta-data/placement/region", "us-east-1");
    expect_exactly(&b, "/latest/user-data", "#!/bin/sh\n");
    expect_exactly(&b, "/latest/meta-data/tags/instance/belay:cluster", "lab");
    expect_exactly(&b, "/latest/meta-data/tags/instance", "belay:cluster");
    expect_exactly(&b, "/latest/meta-data/events/maintenance/scheduled", "[]");
    expect_exactly(&b, "/latest/meta-data/iam/security-credentials/", "agent");
    expect(&b, "/latest/dynamic/instance-identity/document", 200,
        "\"availabilityZone\" : \"us-east-1a\"");
    expect(&b, "/latest/meta-data", 200, "placement/\n");
    expect(&b, "/latest/meta-data/public-ipv4", 404, NULL);
    expect(&b, "/latest/meta-data/tags/instance/none", 404, NULL);
    expect(&b, "/elsewhere", 404, NULL);
    expect(&b, "/latest/api/token", 405, NULL);
    teardown(&b);
}

static void role_credentials_are_on_the_ring(void **state)
{
    struct bench b;
    struct ec2_metadata_reply reply;
    json_t *v = NULL;
    (void)state;
    setup(&b);
    assert_int_equal(get(&b, "/latest/meta-data/iam/security-credentials/agent", &reply), 200);
    assert_int_equal(json_parse(buf_str(&reply.body), reply.body.len, 65536, &v, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(v, "Code")), "Success");
    assert_string_equal(
        json_string_value(json_object_get(v, "Expiration")), "2026-08-22T13:00:02Z");
    assert_int_equal(b.keyring.n, 1);
    assert_string_equal(
        json_string_value(json_object_get(v, "SecretAccessKey")), b.keyring.keys[0].secret);
    json_decref(v);
    buf_deinit(&reply.body);
    expect(&b, "/latest/meta-data/iam/security-credentials/other", 404, NULL);
    teardown(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_given_for_a_good_time_to_live_only),
        cmocka_unit_test(nothing_is_read_without_a_token_that_is_good_now_and_here),
        cmocka_unit_test(the_spot_paths_are_404_until_marked),
        cmocka_unit_test(the_machine_is_described),
        cmocka_unit_test(role_credentials_are_on_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
