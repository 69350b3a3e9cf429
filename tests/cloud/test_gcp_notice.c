/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cloud/gcp/notice.h"
#include "notice_rig.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define ROOT "/computeMetadata/v1/instance"
#define HELD "?wait_for_change=true&last_etag=0a1b&timeout_sec=10"
#define PREEMPTED ROOT "/preempted"
#define MAINTENANCE ROOT "/maintenance-event"
#define EARLY ROOT "/attributes/belay-early-notice-seconds"

/* Sets the value now, and for requests waiting for a change of it. */
static void set(struct notice_rig *g, const char *path, const char *held, const char *value)
{
    fake_http_route(&g->http, "GET", path, 200, value);
    fake_http_route(&g->http, "GET", held, 200, value);
}

static void preempt(struct notice_rig *g, const char *value)
{
    set(g, PREEMPTED, PREEMPTED HELD, value);
}

static void start(struct notice_rig *g)
{
    notice_rig_start(g, "gcp", "http://127.0.0.1:1339");
}

/* A healthy spot machine with nothing pending. */
static int setup(void **state)
{
    struct notice_rig *g = notice_rig_create();
    g->http.headers[0] = "Metadata-Flavor: Google";
    g->http.headers[1] = "ETag: 0a1b";
    preempt(g, "FALSE");
    set(g, MAINTENANCE, MAINTENANCE HELD, "NONE");
    fake_http_route(&g->http, "GET", EARLY, 404, "");
    fake_http_route(&g->http, "GET", ROOT "/name", 200, "belay-lab-17");
    fake_http_route(&g->http, "GET", ROOT "/zone", 200, "projects/123456/zones/us-central1-a");
    fake_http_route(
        &g->http, "GET", ROOT "/machine-type", 200, "projects/123456/machineTypes/g2-standard-4");
    fake_http_route(&g->http, "GET", ROOT "/scheduling/preemptible", 200, "TRUE");
    *state = g;
    return 0;
}

static void a_healthy_machine_reports_only_its_identity(void **state)
{
    struct notice_rig *g = *state;
    const struct notice_identity expected = {.provider = "gcp",
        .instance_id = "us-central1-a/belay-lab-17",
        .type = "g2-standard-4",
        .zone = "us-central1-a",
        .region = "us-central1",
        .life_cycle = "spot"};
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    notice_rig_check_identity(g, &expected);
    /* read once, then held */
    assert_int_equal(fake_http_count(&g->http, "GET", PREEMPTED), 1);
    assert_true(fake_http_count(&g->http, "GET", PREEMPTED HELD) > 10);
    for (size_t i = 0; i < g->http.n_requests; i++)
        assert_true(fake_http_sent(&g->http, i, "Metadata-Flavor: Google"));
}

static void a_preemption_is_reported_once_with_half_a_minute(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    preempt(g, "TRUE\n");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_RECLAIM);
    assert_in_range(
        g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(33), NOON_MS + SECONDS_MS(33) + 200);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(33), SECONDS_MS(33) + 200);
    notice_reader_acknowledge(g->reader); /* Google takes no acknowledgement */
}

/* It names no time, so no clock can be wrong about it. */
static void preemption_has_half_a_minute_by_any_clock(void **state)
{
    static const char *const dates[] = {NULL, "Date: Sat, 22 Aug 2026 11:00:00 GMT"};
    struct notice_rig *g = *state;
    for (size_t i = 0; i < 2; i++) {
        g->n_notices = 0;
        g->http.headers[2] = dates[i];
        preempt(g, "FALSE");
        start(g);
        vtimers_advance(&g->vt, SECONDS_MS(2));
        vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(58 * 60));
        int64_t now = clock_mono(&g->vt.clock).ms;
        preempt(g, "TRUE");
        vtimers_advance(&g->vt, SECONDS_MS(2));
        assert_int_equal(g->n_notices, 1);
        const struct notice *n = &g->notices[0];
        assert_in_range(n->deadline_mono.ms - now, SECONDS_MS(30), SECONDS_MS(30) + 200);
        assert_int_equal(n->deadline.ms - n->seen.ms, SECONDS_MS(30));
        notice_reader_stop(g->reader);
        g->reader = NULL;
        vtimers_advance(&g->vt, SECONDS_MS(1));
    }
}

static void preemption_before_the_first_read_is_seen(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", PREEMPTED, 200, "TRUE");
    start(g);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->n_notices, 1);
}

static void early_notice_is_as_long_as_the_launch_asked(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", EARLY, 200, "120");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    preempt(g, "TRUE");
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(121), SECONDS_MS(122));
}

static void maintenance_is_not_a_preemption(void **state)
{
    struct notice_rig *g = *state;
    g->http.keep_none = true;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    set(g, MAINTENANCE, MAINTENANCE HELD, "MIGRATE_ON_HOST_MAINTENANCE");
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 0); /* it is migrated, and continues */
    set(g, MAINTENANCE, MAINTENANCE HELD, "TERMINATE_ON_HOST_MAINTENANCE");
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_MAINTENANCE);
    assert_false(wall_is_set(g->notices[0].deadline));
    preempt(g, "TRUE");
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->notices[1].kind, NOTICE_RECLAIM);
}

static void failures_are_neither_notice_nor_all_clear(void **state)
{
    static const struct {
        int status;
        const char *body;
    } failures[] = {{500, ""}, {0, ""}, {503, "TRUE"}, {200, "<html></html>"}, {200, "true"},
        {200, ""}, {200, "TRUE\nTRUE"}, {302, "TRUE"}, {404, ""}};
    struct notice_rig *g = *state;
    g->http.keep_none = true;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    preempt(g, "TRUE");
    vtimers_advance(&g->vt, SECONDS_MS(2));
    assert_int_equal(g->n_notices, 1);
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        fake_http_route(&g->http, "GET", PREEMPTED HELD, failures[i].status, failures[i].body);
        vtimers_advance(&g->vt, SECONDS_MS(7));
    }
    preempt(g, "TRUE");
    vtimers_advance(&g->vt, SECONDS_MS(7));
    /* if one of them had been an all-clear, this would be reported as new */
    assert_int_equal(g->n_notices, 1);
}

static void replies_of_others_are_not_believed(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Server: a proxy";
    preempt(g, "TRUE");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    assert_int_equal(g->n_notices, 0);
    assert_int_equal(g->identities, 1);
    assert_int_equal(g->identity_error.kind, ERR_DENIED);
    assert_in_range(fake_http_count(&g->http, "GET", PREEMPTED), 5, 12); /* finally every 5 s */
}

static void strange_etag_does_not_get_into_a_url(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[1] = "ETag: 0a&x=/../";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    for (size_t i = 0; i < g->http.n_requests; i++)
        assert_null(strchr(g->http.requests[i].url, '?'));
}

static void an_invalid_identity_is_reported_as_such(void **state)
{
    struct notice_rig *g = *state;
    g->http.keep_none = true;
    fake_http_route(&g->http, "GET", ROOT "/zone", 200, "projects/123456/zones/../../x y");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(30));
    assert_int_equal(g->identities, 1);
    assert_int_equal(g->identity_error.kind, ERR_INVALID);
    preempt(g, "TRUE");
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->n_notices, 1); /* notices are watched for all the same */
}

static void reader_may_be_stopped_inside_its_callback(void **state)
{
    struct notice_rig *g = *state;
    g->stop_at_notice = true;
    preempt(g, "TRUE");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(60));
    assert_int_equal(g->n_notices, 1);
}

static void stop_drops_what_is_held(void **state)
{
    struct notice_rig *g = *state;
    g->http.silent = true;
    start(g);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->http.n_requests, 2);
    notice_reader_stop(g->reader);
    g->reader = NULL;
    vtimers_advance(&g->vt, SECONDS_MS(60));
    assert_int_equal(g->http.n_requests, 2);
    assert_int_equal(g->http.n_cancelled, 2);
    assert_int_equal(g->identities, 0);
}

static void a_look_does_not_wait_for_a_change(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, 50);
    g->http.silent = true; /* later requests are held */
    vtimers_advance(&g->vt, SECONDS_MS(1));
    size_t asked = fake_http_count(&g->http, "GET", PREEMPTED);
    g->http.silent = false;
    preempt(g, "TRUE");
    assert_int_equal(g->n_notices, 0);
    notice_reader_poll(g->reader);
    vtimers_advance(&g->vt, 50);
    assert_int_equal(g->looks, 1);
    assert_int_equal(g->n_notices, 1);
    assert_string_equal(g->notices[0].what, "preempted");
    assert_int_equal(fake_http_count(&g->http, "GET", PREEMPTED), asked + 1);
}

static void the_time_for_a_shutdown_is_google_s(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", ROOT "/scheduling/preemptible", 200, "FALSE");
    start(g);
    assert_int_equal(notice_reader_shutdown_ms(g->reader), SECONDS_MS(30)); /* unknown so far */
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(notice_reader_shutdown_ms(g->reader), SECONDS_MS(90));
    assert_int_equal(notice_reader_shutdown_ms(NULL), 0);
}

static void an_unknown_maintenance_is_one(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    set(g, MAINTENANCE, MAINTENANCE HELD, "RESTART_IN_PLACE");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_MAINTENANCE);
}

static void a_slow_service_is_waited_for_longer(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", PREEMPTED, 0, ""); /* a timeout */
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    int64_t longest = 0;
    for (size_t i = 0; i < g->http.n_requests; i++)
        if (str_ends(g->http.requests[i].url, PREEMPTED) &&
            g->http.requests[i].timeout_ms > longest)
            longest = g->http.requests[i].timeout_ms;
    assert_int_equal(longest, SECONDS_MS(30));
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, notice_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(a_healthy_machine_reports_only_its_identity),
        RIG(a_preemption_is_reported_once_with_half_a_minute),
        RIG(preemption_has_half_a_minute_by_any_clock),
        RIG(preemption_before_the_first_read_is_seen),
        RIG(early_notice_is_as_long_as_the_launch_asked),
        RIG(maintenance_is_not_a_preemption),
        RIG(failures_are_neither_notice_nor_all_clear),
        RIG(replies_of_others_are_not_believed),
        RIG(strange_etag_does_not_get_into_a_url),
        RIG(an_invalid_identity_is_reported_as_such),
        RIG(reader_may_be_stopped_inside_its_callback),
        RIG(stop_drops_what_is_held),
        RIG(a_look_does_not_wait_for_a_change),
        RIG(the_time_for_a_shutdown_is_google_s),
        RIG(an_unknown_maintenance_is_one),
        RIG(a_slow_service_is_waited_for_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
