/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cloud/aws/imds.h"
#include "cloud/aws/notice.h"
#include "notice_rig.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define TOKEN "/latest/api/token"
#define ACTION "/latest/meta-data/spot/instance-action"
#define REBALANCE "/latest/meta-data/events/recommendations/rebalance"
#define DOCUMENT "/latest/dynamic/instance-identity/document"
#define LIFE_CYCLE "/latest/meta-data/instance-life-cycle"
#define TERMINATE_1202 "{\"action\":\"terminate\",\"time\":\"2026-08-22T12:02:00Z\"}"

static void start(struct notice_rig *g)
{
    notice_rig_start(g, "aws", "http://127.0.0.1:1338");
}

/* A healthy machine with nothing pending. */
static int setup(void **state)
{
    struct notice_rig *g = notice_rig_create();
    fake_http_route(&g->http, "PUT", TOKEN, 200, "AQAEone==");
    fake_http_route(&g->http, "GET", ACTION, 404, "");
    fake_http_route(&g->http, "GET", REBALANCE, 404, "");
    fake_http_route(&g->http, "GET", DOCUMENT, 200,
        "{\"accountId\":\"111122223333\",\"availabilityZone\":\"us-east-1b\",\"instanceId\":\"i-"
        "0abc\",\"instanceType\":\"g6.xlarge\",\"region\":\"us-east-1\",\"version\":\"2017-09-30\","
        "\"kernelId\":null}");
    fake_http_route(&g->http, "GET", LIFE_CYCLE, 200, "spot");
    *state = g;
    return 0;
}

static void a_healthy_machine_reports_only_its_identity(void **state)
{
    struct notice_rig *g = *state;
    const struct notice_identity expected = {.provider = "aws",
        .instance_id = "i-0abc",
        .type = "g6.xlarge",
        .zone = "us-east-1b",
        .region = "us-east-1",
        .life_cycle = "spot"};
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    notice_rig_check_identity(g, &expected);
    assert_int_equal(fake_http_count(&g->http, "PUT", TOKEN), 1);
    assert_in_range(fake_http_count(&g->http, "GET", ACTION), 9, 11); /* one a second */
    assert_true(fake_http_sent(&g->http, 0, "X-aws-ec2-metadata-token-ttl-seconds: 21600"));
    assert_true(fake_http_sent(&g->http, 1, "X-aws-ec2-metadata-token: AQAEone=="));
}

static void a_reclaim_is_reported_once(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_RECLAIM);
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(120));
    /* Virtual monotonic time began at noon. */
    assert_int_equal(g->notices[0].deadline_mono.ms, SECONDS_MS(120));
}

static void a_reclaim_after_a_rebalance_is_reported(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    fake_http_route(&g->http, "GET", REBALANCE, 200, "{\"noticeTime\":\"2026-08-22T11:59:00Z\"}");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_REBALANCE);
    assert_false(wall_is_set(g->notices[0].deadline));
    assert_false(mono_is_set(g->notices[0].deadline_mono));
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 2);
    assert_int_equal(g->notices[1].kind, NOTICE_RECLAIM);
}

static void notice_is_never_longer_than_two_minutes(void **state)
{
    struct notice_rig *g = *state;
    vtimers_set_wall(&g->vt, NOON_MS - SECONDS_MS(1800)); /* this machine's clock is slow */
    start(g);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(60));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(120), SECONDS_MS(121));
}

#define TERMINATE_1100 "{\"action\":\"terminate\",\"time\":\"2026-08-22T11:00:00Z\"}"
#define DATE_NOON "Date: Sat, 22 Aug 2026 12:00:00 GMT"

static void notice_that_the_first_look_finds_past_is_due_now(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = DATE_NOON;
    start(g);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1100);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, 0, SECONDS_MS(1));
}

static void past_notice_that_was_not_there_before_has_two_minutes(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = DATE_NOON;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1100);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(120), SECONDS_MS(123));
}

static void past_notice_without_a_date_has_two_minutes(void **state)
{
    struct notice_rig *g = *state;
    start(g); /* a restarted agent */
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1100);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(120), SECONDS_MS(121));
}

static void time_left_is_by_the_service_s_clock(void **state)
{
    static const int64_t wrong_ms[] = {SECONDS_MS(58 * 60), SECONDS_MS(100), -SECONDS_MS(3000)};
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:01:20 GMT";
    for (size_t i = 0; i < sizeof(wrong_ms) / sizeof(wrong_ms[0]); i++) {
        g->n_notices = 0;
        vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(80) + wrong_ms[i]);
        fake_http_route(&g->http, "GET", ACTION, 404, "");
        start(g);
        vtimers_advance(&g->vt, 100);
        fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
        int64_t begun = clock_mono(&g->vt.clock).ms;
        vtimers_advance(&g->vt, SECONDS_MS(3));
        assert_int_equal(g->n_notices, 1);
        const struct notice *n = &g->notices[0];
        assert_in_range(n->deadline_mono.ms - begun, SECONDS_MS(39), SECONDS_MS(42));
        assert_in_range(n->deadline.ms - n->seen.ms, SECONDS_MS(39), SECONDS_MS(40));
        /* by the service's clock it is the announced moment */
        assert_in_range(n->deadline.ms - n->clock_ahead_ms, NOON_MS + SECONDS_MS(119),
            NOON_MS + SECONDS_MS(121));
        assert_string_equal(n->what, "terminate");
        notice_reader_stop(g->reader);
        g->reader = NULL;
        vtimers_advance(&g->vt, SECONDS_MS(1));
    }
}

/* Only a Date shows that a new notice was late: this machine's clock alone takes nothing off the
 * two minutes. */
static void new_notice_without_a_date_has_two_minutes_by_any_clock(void **state)
{
    static const int64_t wrong_ms[] = {
        SECONDS_MS(100), SECONDS_MS(118), SECONDS_MS(58 * 60), 0, -SECONDS_MS(3000)};
    struct notice_rig *g = *state;
    for (size_t i = 0; i < sizeof(wrong_ms) / sizeof(wrong_ms[0]); i++) {
        g->n_notices = 0;
        vtimers_set_wall(&g->vt, NOON_MS + wrong_ms[i]);
        fake_http_route(&g->http, "GET", ACTION, 404, "");
        start(g);
        vtimers_advance(&g->vt, 100);
        fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
        int64_t begun = clock_mono(&g->vt.clock).ms;
        vtimers_advance(&g->vt, SECONDS_MS(3));
        assert_int_equal(g->n_notices, 1);
        const struct notice *n = &g->notices[0];
        assert_in_range(n->deadline_mono.ms - begun, SECONDS_MS(120), SECONDS_MS(122));
        assert_int_equal(n->deadline.ms - n->seen.ms, SECONDS_MS(120));
        notice_reader_stop(g->reader);
        g->reader = NULL;
        vtimers_advance(&g->vt, SECONDS_MS(1));
    }
}

/* EC2's two minutes are best effort: a notice can be late, which its own clock shows. */
static void late_notice_by_the_service_s_clock_is_believed(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:01:58 GMT";
    vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(118));
    start(g);
    vtimers_advance(&g->vt, 100);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    int64_t begun = clock_mono(&g->vt.clock).ms;
    vtimers_advance(&g->vt, SECONDS_MS(3));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms - begun, SECONDS_MS(1), SECONDS_MS(2));
}

static void unknown_actions_and_offset_times_are_reclaims(void **state)
{
    static const char *const actions[] = {
        "{\"action\":\"evacuate\",\"time\":\"2026-08-22T12:01:30Z\"}",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T14:01:30+02:00\"}",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T04:31:30.000-0730\"}"};
    struct notice_rig *g = *state;
    g->http.headers[0] = DATE_NOON;
    start(g);
    for (size_t i = 0; i < 3; i++) {
        fake_http_route(&g->http, "GET", ACTION, 200, actions[i]);
        vtimers_advance(&g->vt, SECONDS_MS(2));
        assert_int_equal(g->n_notices, i + 1);
        const struct notice *n = &g->notices[i];
        assert_int_equal(n->kind, NOTICE_RECLAIM);
        assert_in_range(n->deadline.ms - n->seen.ms, SECONDS_MS(88), SECONDS_MS(90));
        fake_http_route(&g->http, "GET", ACTION, 404, "");
        vtimers_advance(&g->vt, SECONDS_MS(2));
    }
    assert_string_equal(g->notices[0].what, "evacuate");
}

static void slow_service_is_waited_for_longer(void **state)
{
    struct notice_rig *g = *state;
    size_t n = 0;
    int64_t waited[16];
    start(g);
    vtimers_advance(&g->vt, 100);
    fake_http_route(&g->http, "GET", ACTION, 0, ""); /* a timeout */
    vtimers_advance(&g->vt, SECONDS_MS(40));
    fake_http_route(&g->http, "GET", ACTION, 404, "");
    vtimers_advance(&g->vt, SECONDS_MS(10));
    for (size_t i = 0; i < g->http.n_requests && n < 16; i++)
        if (str_ends(g->http.requests[i].url, ACTION))
            waited[n++] = g->http.requests[i].timeout_ms;
    assert_true(n > 10);
    for (size_t i = 0; i < 7; i++) {
        static const int64_t expected[] = {2000, 2000, 4000, 8000, 16000, 30000, 30000};
        assert_int_equal(waited[i], expected[i]);
    }
    assert_int_equal(waited[n - 1], 2000); /* fast again */
}

static void a_successful_poll_is_reported(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, 100); /* between two rounds */
    size_t asked = fake_http_count(&g->http, "GET", ACTION);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    notice_reader_poll(g->reader);
    notice_reader_poll(g->reader); /* once */
    vtimers_advance(&g->vt, 100);
    assert_int_equal(g->looks, 1);
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(fake_http_count(&g->http, "GET", ACTION), asked + 1);
    fake_http_route(&g->http, "GET", ACTION, 500, "");
    notice_reader_poll(g->reader);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->looks, 1);
    fake_http_route(&g->http, "GET", ACTION, 404, "");
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->looks, 2);
}

static void the_next_event_is_reported_too(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    fake_http_route(&g->http, "GET", ACTION, 404, "");
    g->http.keep_none = true;
    vtimers_advance(&g->vt, SECONDS_MS(3600));
    assert_int_equal(g->n_notices, 1); /* an end is never reported */
    fake_http_route(&g->http, "GET", ACTION, 200,
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T13:02:00Z\"}");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 2);
    assert_in_range(g->notices[1].deadline_mono.ms, SECONDS_MS(3600 + 110), SECONDS_MS(3600 + 130));
}

static void failures_are_neither_notice_nor_all_clear(void **state)
{
    static const struct {
        int status;
        const char *body;
    } failures[] = {{500, ""}, {0, ""}, {503, TERMINATE_1202}, {200, "<html></html>"},
        {200, "{\"action\":\"nap\"}"}, {200, "{\"action\":\"\",\"time\":\"2026-08-22T12:02:00Z\"}"},
        {200, "{\"action\":\"terminate\",\"time\":\"soon\"}"}, {200, ""}, {302, ""}};
    struct notice_rig *g = *state;
    start(g);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    assert_int_equal(g->n_notices, 1);
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        fake_http_route(&g->http, "GET", ACTION, failures[i].status, failures[i].body);
        vtimers_advance(&g->vt, SECONDS_MS(7));
    }
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(7));
    /* if one of them had been an all-clear, this would be reported as new */
    assert_int_equal(g->n_notices, 1);
}

static void polls_slow_down_while_the_endpoint_fails(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", ACTION, 500, "");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(100));
    size_t asked = fake_http_count(&g->http, "GET", ACTION);
    assert_in_range(asked, 20, 24); /* finally every five seconds */
    fake_http_route(&g->http, "GET", ACTION, 404, "");
    vtimers_advance(&g->vt, SECONDS_MS(20));
    assert_true(fake_http_count(&g->http, "GET", ACTION) - asked >= 14);
}

static void refused_token_is_renewed_once_a_read(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    fake_http_route(&g->http, "PUT", TOKEN, 200, "AQAEtwo==");
    fake_http_route(&g->http, "GET", ACTION, 401, "");
    size_t tokens = fake_http_count(&g->http, "PUT", TOKEN),
           reads = fake_http_count(&g->http, "GET", ACTION);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(fake_http_count(&g->http, "PUT", TOKEN) - tokens, 1);
    assert_int_equal(fake_http_count(&g->http, "GET", ACTION) - reads, 2);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
}

static void on_read(void *ctx, const struct err *e, const char *body, size_t n)
{
    int *reads = ctx;
    assert_null(e);
    assert_int_equal(n, strlen(body));
    (*reads)++;
}

static void token_is_renewed_before_its_end(void **state)
{
    struct notice_rig *g = *state;
    struct imds *m;
    int reads = 0;
    assert_int_equal(
        imds_create("http://127.0.0.1:1338", &g->http.client, &g->vt.clock, &m, NULL), 0);
    /* the last one 0.5 s before the end of the first token */
    for (int hour = 0; hour < 6; hour++) {
        imds_get(m, LIFE_CYCLE, on_read, &reads);
        vtimers_advance(&g->vt, SECONDS_MS(3600) * 6 / 5 - 100);
        assert_int_equal(fake_http_count(&g->http, "PUT", TOKEN), hour < 5 ? 1 : 2);
    }
    assert_int_equal(reads, 6);
    imds_destroy(m);
}

static void identity_fails_after_ten_tries(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", DOCUMENT, 200, "{\"instanceId\":17}");
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(30));
    assert_int_equal(g->identities, 1);
    assert_int_equal(g->identity_error.kind, ERR_INVALID);
    assert_int_equal(fake_http_count(&g->http, "GET", DOCUMENT), 10);
    g->http.keep_none = true;
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 1); /* notices are watched for all the same */
}

static void reader_may_be_stopped_inside_its_callback(void **state)
{
    struct notice_rig *g = *state;
    g->stop_at_notice = true;
    start(g);
    fake_http_route(&g->http, "GET", ACTION, 200, TERMINATE_1202);
    vtimers_advance(&g->vt, SECONDS_MS(60));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(fake_http_count(&g->http, "GET", ACTION), 1);
}

static void stop_drops_a_read_under_way(void **state)
{
    struct notice_rig *g = *state;
    g->http.silent = true;
    start(g);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->http.n_requests, 1);
    notice_reader_stop(g->reader);
    g->reader = NULL;
    vtimers_advance(&g->vt, SECONDS_MS(60));
    assert_int_equal(g->http.n_requests, 1);
    assert_int_equal(g->identities, 0);
}

static bool announces_nothing(const char *provider)
{
    return str_eq(provider, "lambda") || str_eq(provider, "static");
}

static void unexpected(void *ctx, const struct notice *n)
{
    (void)ctx, (void)n;
    fail();
}

static void every_provider_that_announces_has_a_reader(void **state)
{
    struct notice_rig *g = *state;
    struct notice_reader_options o = {
        .http = &g->http.client, .timers = &g->vt.timers, .on_notice = unexpected};
    assert_null(notice_reader_start("none", &o));
    assert_null(notice_reader_start("nobody", &o));
    for (size_t i = 1; notice_provider_names[i]; i++) {
        g->reader = notice_reader_start(notice_provider_names[i], &o);
        assert_int_equal(g->reader == NULL, announces_nothing(notice_provider_names[i]));
        notice_reader_acknowledge(g->reader); /* nothing to approve yet */
        notice_reader_stop(g->reader);
    }
    g->reader = NULL;
    assert_int_equal(g->http.n_requests, 0);
    notice_reader_acknowledge(NULL);
    notice_reader_stop(NULL);
}

static int parse(const char *body, struct notice *n, struct err *e)
{
    return aws_notice_parse_action(body, strlen(body), (struct wall){NOON_MS}, n, e);
}

static void actions_are_parsed(void **state)
{
    static const char *const wrong[] = {"", "null", "[]", "{}", "{\"action\":\"terminate\"}",
        "{\"action\":1,\"time\":\"2026-08-22T12:02:00Z\"}",
        "{\"action\":\"terminate\",\"time\":1787400000}",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22 12:02\"}", TERMINATE_1202 "x",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T12:02:00+2:00\"}",
        "{\"action\":\"terminate\",\"time\":\"2026-08-22T12:02:00+99:00\"}",
        "{\"action\":\"terminate\",\"time\":\"+02:00\"}", NULL};
    struct notice n;
    struct err e;
    (void)state;
    assert_int_equal(parse("{\"action\":\"stop\",\"time\":\"2026-08-22T12:01:00Z\"}", &n, &e), 0);
    assert_int_equal(n.kind, NOTICE_RECLAIM);
    assert_int_equal(n.deadline.ms, NOON_MS + SECONDS_MS(60));
    assert_int_equal(n.seen.ms, NOON_MS);
    /* Hibernation begins with the notice. */
    assert_int_equal(
        parse("{\"action\":\"hibernate\",\"time\":\"2026-08-22T12:01:00Z\"}", &n, &e), 0);
    assert_int_equal(n.deadline.ms, NOON_MS);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(parse(wrong[i], &n, &e), ERR_INVALID);
}

static void metadata_address_must_be_a_plain_http_host(void **state)
{
    static const char *const wrong[] = {"", "169.254.169.254", "https://h", "http://",
        "http://h/latest", "http://u@h", "http://h?x", NULL};
    struct notice_rig *g = *state;
    struct imds *m;
    struct err e;
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(imds_create(wrong[i], &g->http.client, &g->vt.clock, &m, &e), ERR_CONFIG);
    assert_int_equal(
        imds_create("http://[fd00:ec2::254]/", &g->http.client, &g->vt.clock, &m, &e), 0);
    imds_destroy(m);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, notice_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(a_healthy_machine_reports_only_its_identity),
        RIG(a_reclaim_is_reported_once),
        RIG(a_reclaim_after_a_rebalance_is_reported),
        RIG(notice_is_never_longer_than_two_minutes),
        RIG(notice_that_the_first_look_finds_past_is_due_now),
        RIG(past_notice_that_was_not_there_before_has_two_minutes),
        RIG(past_notice_without_a_date_has_two_minutes),
        RIG(time_left_is_by_the_service_s_clock),
        RIG(new_notice_without_a_date_has_two_minutes_by_any_clock),
        RIG(late_notice_by_the_service_s_clock_is_believed),
        RIG(unknown_actions_and_offset_times_are_reclaims),
        RIG(slow_service_is_waited_for_longer),
        RIG(a_successful_poll_is_reported),
        RIG(the_next_event_is_reported_too),
        RIG(failures_are_neither_notice_nor_all_clear),
        RIG(polls_slow_down_while_the_endpoint_fails),
        RIG(refused_token_is_renewed_once_a_read),
        RIG(token_is_renewed_before_its_end),
        RIG(identity_fails_after_ten_tries),
        RIG(reader_may_be_stopped_inside_its_callback),
        RIG(stop_drops_a_read_under_way),
        RIG(every_provider_that_announces_has_a_reader),
        cmocka_unit_test(actions_are_parsed),
        RIG(metadata_address_must_be_a_plain_http_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
