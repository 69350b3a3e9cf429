/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata server of Compute Engine.
 */
#include "base/mem.h"
#include "base/str.h"
#include "tests/emulator/gce_bench.h"
#include <stdio.h>
#include <stdlib.h>

#define METADATA "/computeMetadata/v1/"

static void expect_metadata(
    struct gce_bench *b, struct instance *i, const char *target, int status, const char *body)
{
    int got = bench_metadata(b, i, target);
    if (got != status || (body && !str_eq(buf_str(&b->last.reply.body), body)))
        fail_msg("%s: expected %d %s, got %d %s", target, status, body ? body : "anything", got,
            buf_str(&b->last.reply.body));
    assert_string_equal(b->last.reply.headers[0].name, "Metadata-Flavor");
}

static void the_metadata_server_knows_its_instance(void **state)
{
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    struct instance *i = bench_run(&b, "a",
        ",\"metadata\":{\"items\":[{\"key\":\"startup-script\",\"value\":\"#!/bin/"
        "sh\\n\"},{\"key\":\"my-key\",\"value\":\"x\"}]}"
        ",\"serviceAccounts\":[{\"email\":\"default\",\"scopes\":[\"" BENCH_SCOPE "\"]}]");
    assert_string_equal(buf_str(&i->reservation->spec.user_data), "#!/bin/sh\n");
    expect_metadata(&b, i, METADATA "instance/id", 200, i->id);
    expect_metadata(&b, i, METADATA "instance/name", 200, "a");
    expect_metadata(&b, i, METADATA "instance/name?alt=json", 200, "\"a\"");
    expect_metadata(&b, i, METADATA "instance/attributes/my-key", 200, "x");
    expect_metadata(&b, i, METADATA "instance/attributes/", 200, "startup-script\nmy-key\n");
    expect_metadata(&b, i, METADATA "instance/attributes/?recursive=true", 200,
        "{\"startup-script\":\"#!/bin/sh\\n\",\"my-key\":\"x\"}");
    expect_metadata(&b, i, METADATA "instance/scheduling/?recursive=true&alt=text", 200,
        "automatic-restart FALSE\non-host-maintenance TERMINATE\npreemptible TRUE\n");
    expect_metadata(&b, i, METADATA "project/project-id", 200, "my-project");
    expect_metadata(&b, i, METADATA "instance/service-accounts/default/email", 200, BENCH_AGENT);
    expect_metadata(
        &b, i, METADATA "instance/service-accounts/default/scopes", 200, BENCH_SCOPE "\n");
    expect_metadata(&b, i, METADATA "instance/preempted", 200, "FALSE");
    expect_metadata(&b, i, METADATA "instance/attributes/none", 404, NULL);
    expect_metadata(&b, i, METADATA "instance/name/", 404, NULL);
    expect_metadata(&b, i, METADATA "instance", 301, NULL);
    expect_metadata(&b, i, METADATA "instance/name?alt=xml", 400, NULL);
    expect_metadata(&b, i, METADATA "instance/name?timeout_sec=x", 400, NULL);
    expect_metadata(&b, i, "/latest/meta-data/", 404, NULL);
    assert_int_equal(
        bench_metadata(&b, i, METADATA "instance/service-accounts/default/token"), 200);
    STR_COPY(b.token, bench_text(&b, "access_token"));
    bench_expect(&b, "GET", BENCH_ZONE "instances/a", "", 200, "RUNNING");
    assert_int_equal(
        bench_metadata(&b, i,
            METADATA "instance/service-accounts/viewer@my-project.iam.gserviceaccount.com/token"),
        404);
    bench_stop(&b);
}

static void a_request_without_the_flavor_or_through_a_proxy_is_refused(void **state)
{
    static const struct http_header headers[] = {
        {"metadata-flavor", "Google"}, {"X-Forwarded-For", "10.0.0.9"}};
    struct gce_bench b;
    (void)state;
    bench_start(&b, 1000);
    const struct front_site site = {
        .region = &b.region, .state = b.gce, .now = b.now, .instance = bench_run(&b, "a", "")};
    struct front_request r = {.method = "GET",
        .path = METADATA "instance/id",
        .target = METADATA "instance/id",
        .headers = headers};
    static const int statuses[] = {403, 200, 403};
    for (size_t n = 0; n <= 2; n++) {
        struct front_reply reply = {.status = 200};
        r.n_headers = n;
        gce_metadata(&site, &r, &reply);
        assert_int_equal(reply.status, statuses[n]);
        buf_deinit(&reply.body);
    }
    bench_stop(&b);
}

static void a_change_is_waited_for(void **state)
{
    static const char *const flavor[] = {"Metadata-Flavor", "Google"};
    const struct http_header headers[] = {{flavor[0], flavor[1]}};
    struct gce_bench b;
    struct region_event ev = {.kind = EVENT_RECLAIM, .pick = PICK_ALL};
    json_t *event_reply = NULL;
    struct err e;
    (void)state;
    bench_start(&b, 1000);
    struct instance *i = bench_run(&b, "a", "");
    struct front_site site = {.region = &b.region, .state = b.gce, .now = b.now, .instance = i};
    struct front_request r = {.method = "GET",
        .path = METADATA "instance/preempted",
        .target = METADATA "instance/preempted?wait_for_change=true&timeout_sec=60",
        .headers = headers,
        .n_headers = 1};
    struct front_reply first = {.status = 200}, again = {.status = 200}, last = {.status = 200};
    gce_metadata(&site, &r, &first);
    assert_int_equal(first.wait_ms, 60000);
    r.mark = first.mark;
    r.is_last = true; /* answered at the end of the wait all the same */
    gce_metadata(&site, &r, &again);
    assert_int_equal(again.wait_ms, 0);
    assert_string_equal(buf_str(&again.body), "FALSE");
    assert_int_equal(region_apply(&b.region, &ev, b.now, &event_reply, &e), 0);
    json_decref(event_reply);
    r.is_last = false;
    gce_metadata(&site, &r, &last);
    assert_int_equal(last.wait_ms, 0);
    assert_string_equal(buf_str(&last.body), "TRUE");
    /* A client with an older value is answered at once. */
    char *target = mem_printf(METADATA "instance/preempted?wait_for_change=true&last_etag=%s",
        again.mark[0] ? again.mark : first.mark);
    assert_int_equal(bench_metadata(&b, i, target), 200);
    assert_int_equal(b.last.reply.wait_ms, 0);
    free(target);
    buf_deinit(&first.body);
    buf_deinit(&again.body);
    buf_deinit(&last.body);
    bench_stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_metadata_server_knows_its_instance),
        cmocka_unit_test(a_request_without_the_flavor_or_through_a_proxy_is_refused),
        cmocka_unit_test(a_change_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
