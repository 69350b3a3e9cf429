/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/parts.h"
#include "tests/emulator/arm_world.h"
#include <stdlib.h>
#include <string.h>

#define INSTANCE "/metadata/instance"
#define EVENTS "/metadata/scheduledevents"
#define TOKEN "/metadata/identity/oauth2/token"
#define INSTANCE_VERSION "api-version=2021-02-01"
#define EVENTS_VERSION "api-version=2020-07-01"
#define TOKEN_QUERY "api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F"

static void expect(struct arm_world *w, const struct arm_resource *vm, const char *path,
    const char *query, int status, const char *text)
{
    int got = arm_look(w, vm, path, query);
    if (got != status || !strstr(buf_str(&w->metadata.body), text))
        fail_msg("%s?%s: expected %d with \"%s\", got %d: %s", path, query, status, text, got,
            buf_str(&w->metadata.body));
}

static int post(struct arm_world *w, const struct arm_resource *vm, const char *body)
{
    const struct arm_metadata_request q = {.method = "POST",
        .path = EVENTS,
        .query = EVENTS_VERSION,
        .metadata = "true",
        .body = body,
        .body_len = strlen(body)};
    return arm_look_as(w, vm, &q);
}

static void reclaim(struct arm_world *w, const struct arm_resource *vm)
{
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ONE};
    json_t *reply = NULL;
    struct err e;
    STR_COPY(ev.instance, vm->instance->id);
    assert_int_equal(region_apply(&w->region, &ev, w->now, &reply, &e), 0);
    json_decref(reply);
}

static json_t *events(struct arm_world *w, const struct arm_resource *vm)
{
    json_t *v = NULL;
    struct err e;
    expect(w, vm, EVENTS, EVENTS_VERSION, 200, "DocumentIncarnation");
    assert_int_equal(json_parse(w->metadata.body.data, w->metadata.body.len, 65536, &v, &e), 0);
    return v;
}

static int64_t incarnation(struct arm_world *w, const struct arm_resource *vm)
{
    json_t *v = events(w, vm);
    int64_t n = json_integer_value(json_object_get(v, "DocumentIncarnation"));
    json_decref(v);
    return n;
}

static void a_request_shows_that_it_is_local(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    struct arm_metadata_request q = {
        .method = "GET", .path = INSTANCE, .query = INSTANCE_VERSION, .body = ""};
    assert_int_equal(arm_look_as(&w, vm, &q), 400);
    q.metadata = "false";
    assert_int_equal(arm_look_as(&w, vm, &q), 400);
    q.metadata = "True";
    assert_int_equal(arm_look_as(&w, vm, &q), 200);
    q.forwarded_for = "10.0.0.1";
    assert_int_equal(arm_look_as(&w, vm, &q), 400);
    q = (struct arm_metadata_request){.method = "PUT",
        .path = INSTANCE,
        .query = INSTANCE_VERSION,
        .metadata = "true",
        .body = ""};
    assert_int_equal(arm_look_as(&w, vm, &q), 405);
    expect(&w, vm, INSTANCE, "", 400, "newest-versions");
    expect(&w, vm, EVENTS, "api-version=2021-02-01", 400, "2020-07-01");
    expect(&w, vm, TOKEN, "resource=x", 400, "2018-02-01");
    expect(&w, vm, INSTANCE, "api-version=%zz", 400, "malformed");
    expect(&w, vm, "/metadata/attested", INSTANCE_VERSION, 404, "Not found");
    expect(&w, vm, "/", INSTANCE_VERSION, 404, "Not found");
    arm_world_stop(&w);
}

static void the_instance_is_described(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    char *body = arm_machine("'tags':{'belay:cluster':'lab'}", "'userData':'aGVsbG8='");
    arm_expect(&w, "PUT", VMS "/a", VERSION, body, 201, "");
    free(body);
    arm_world_advance(&w, BOOT_MS);
    struct arm_resource *vm = arm_find(&w.arm, ARM_KIND_VM, "lab", "a");
    static const struct {
        const char *path, *query, *text;
        int status;
    } cases[] = {
        {INSTANCE, INSTANCE_VERSION, "\"vmSize\":\"" SIZE "\"", 200},
        {INSTANCE, INSTANCE_VERSION, "{\"name\":\"belay:cluster\",\"value\":\"lab\"}", 200},
        {INSTANCE "/compute", INSTANCE_VERSION, "\"priority\":\"Spot\"", 200},
        {INSTANCE "/compute/", INSTANCE_VERSION, "\"resourceId\":\"" VMS "/a\"", 200},
        {INSTANCE "/compute/zone", INSTANCE_VERSION "&format=text", "1", 200},
        {INSTANCE "/compute/evictionPolicy", INSTANCE_VERSION "&format=text", "Delete", 200},
        {INSTANCE "/compute/userData", INSTANCE_VERSION "&format=text", "aGVsbG8=", 200},
        {INSTANCE "/network/interface/0/ipv4/ipAddress/0/privateIpAddress",
            INSTANCE_VERSION "&format=text", "10.0.0.1", 200},
        {INSTANCE "/network/interface/1", INSTANCE_VERSION, "", 404},
        {INSTANCE "/compute/zone", INSTANCE_VERSION, "format=text", 400},
        {INSTANCE "/compute", INSTANCE_VERSION "&format=text", "leaf", 400},
        {INSTANCE "/compute/zone/x", INSTANCE_VERSION, "", 404},
        {INSTANCE "/nothing", INSTANCE_VERSION, "", 404},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(&w, vm, cases[i].path, cases[i].query, cases[i].status, cases[i].text);
    arm_world_stop(&w);
}

static void an_eviction_is_announced_until_it_happens(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    expect(&w, vm, EVENTS, EVENTS_VERSION, 200, "\"Events\":[]");
    int64_t before = incarnation(&w, vm);
    reclaim(&w, vm);
    expect(&w, vm, EVENTS, EVENTS_VERSION, 200,
        "\"EventType\":\"Preempt\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"a\"]");
    expect(&w, vm, EVENTS, EVENTS_VERSION, 200, "\"NotBefore\":\"Sat, 22 Aug 2026 12:00:31 GMT\"");
    expect(&w, vm, EVENTS, EVENTS_VERSION, 200, "\"EventStatus\":\"Scheduled\"");
    assert_int_equal(incarnation(&w, vm), before + 1);
    assert_int_equal(incarnation(&w, vm), before + 1);
    arm_world_advance(&w, 30000);
    assert_int_equal(w.arm.n_resources, 0);
    arm_world_stop(&w);
}

static void a_start_request_lets_it_happen_at_once(void **state)
{
    static const char *const wrong[] = {"", "{}", "[]", "{\"StartRequests\":[]}",
        "{\"StartRequests\":[{}]}", "{\"StartRequests\":[{\"EventId\":7}]}",
        "{\"StartRequests\":[{\"EventId\":\"00000000-0000-4000-8000-000000000000\"}]}"};
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *vm = arm_run(&w, "a");
    reclaim(&w, vm);
    json_t *v = events(&w, vm);
    char *body = mem_printf("{\"StartRequests\":[{\"EventId\":\"%s\"}]}",
        json_string_value(
            json_object_get(json_array_get(json_object_get(v, "Events"), 0), "EventId")));
    json_decref(v);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(post(&w, vm, wrong[i]), 400);
    assert_int_equal(vm->instance->state, INSTANCE_RUNNING);
    assert_int_equal(post(&w, vm, body), 200);
    assert_int_equal(w.region.instances[0]->state, INSTANCE_TERMINATED);
    assert_int_equal(w.region.counts.reclaims, 1);
    arm_world_advance(&w, 0);
    assert_int_equal(w.arm.n_resources, 0);
    free(body);
    arm_world_stop(&w);
}

static void another_machines_event_cannot_be_started(void **state)
{
    struct arm_world w;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *a = arm_run(&w, "a"), *b = arm_run(&w, "b");
    reclaim(&w, a);
    json_t *v = events(&w, a);
    char *body = mem_printf("{\"StartRequests\":[{\"EventId\":\"%s\"}]}",
        json_string_value(
            json_object_get(json_array_get(json_object_get(v, "Events"), 0), "EventId")));
    json_decref(v);
    assert_int_equal(post(&w, b, body), 400);
    assert_int_equal(b->instance->state, INSTANCE_RUNNING);
    free(body);
    arm_world_stop(&w);
}

static void an_identitys_token_opens_the_api(void **state)
{
    static const char id[] =
        GROUP "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/agent";
    struct arm_world w;
    json_t *v = NULL;
    struct err e;
    (void)state;
    arm_world_start(&w);
    struct arm_resource *plain = arm_run(&w, "a");
    expect(&w, plain, TOKEN, TOKEN_QUERY, 400, "Identity not found");
    char *more =
        mem_printf("'identity':{'type':'UserAssigned','userAssignedIdentities':{'%s':{}}}", id);
    char *body = arm_machine(more, "");
    arm_expect(&w, "PUT", VMS "/b", VERSION, body, 201, "principalId");
    arm_world_advance(&w, BOOT_MS);
    struct arm_resource *vm = arm_find(&w.arm, ARM_KIND_VM, "lab", "b");
    expect(&w, vm, TOKEN, "api-version=2018-02-01", 400, "'resource' is missing");
    expect(&w, vm, TOKEN, TOKEN_QUERY "&client_id=other", 400, "Identity not found");
    expect(&w, vm, TOKEN, TOKEN_QUERY "&mi_res_id=%2Fother", 400, "Identity not found");
    expect(&w, vm, TOKEN, TOKEN_QUERY, 200, "\"expires_in\":\"86400\"");
    assert_int_equal(json_parse(w.metadata.body.data, w.metadata.body.len, 65536, &v, &e), 0);
    free(w.authorization);
    w.authorization =
        mem_printf("Bearer %s", json_string_value(json_object_get(v, "access_token")));
    json_decref(v);
    arm_expect(&w, "GET", VMS, VERSION, NULL, 200, "value");
    w.now.ms += 86400000;
    arm_expect(&w, "GET", VMS, VERSION, NULL, 401, "ExpiredAuthenticationToken");
    free(more);
    free(body);
    arm_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_shows_that_it_is_local),
        cmocka_unit_test(the_instance_is_described),
        cmocka_unit_test(an_eviction_is_announced_until_it_happens),
        cmocka_unit_test(a_start_request_lets_it_happen_at_once),
        cmocka_unit_test(another_machines_event_cannot_be_started),
        cmocka_unit_test(an_identitys_token_opens_the_api),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
