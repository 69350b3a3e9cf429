/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cloud/azure/notice.h"
#include "notice_rig.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#define INSTANCE "/metadata/instance?api-version=2021-02-01"
#define EVENTS "/metadata/scheduledevents?api-version=2020-07-01"
#define IDENTITY                                                                                   \
    "{\"compute\":{\"azEnvironment\":\"AzurePublicCloud\",\"evictionPolicy\":\"Delete\","          \
    "\"location\":"                                                                                \
    "\"eastus\",\"name\":\"belay-lab-17\",\"priority\":\"Spot\",\"resourceGroupName\":\"lab\","    \
    "\"tagsList\":[],\"vmId\":\"3d1f\",\"vmSize\":\"Standard_NC4as_T4_v3\",\"zone\":\"1\"},"       \
    "\"network\":{}}"
#define EVENT(id, type, status, resource, at)                                                      \
    "{\"EventId\":\"" id "\",\"EventType\":\"" type                                                \
    "\",\"ResourceType\":\"VirtualMachine\",\"Resources\":["                                       \
    "\"" resource "\"],\"EventStatus\":\"" status "\",\"NotBefore\":\"" at                         \
    "\",\"Description\":\"\","                                                                     \
    "\"EventSource\":\"Platform\",\"DurationInSeconds\":-1}"
#define DOCUMENT(events) "{\"DocumentIncarnation\":5,\"Events\":[" events "]}"
#define AT_1200_30 "Sat, 22 Aug 2026 12:00:30 GMT"
#define AT_1210 "Sat, 22 Aug 2026 12:10:00 GMT"

static void start(struct notice_rig *g)
{
    notice_rig_start(g, "azure", "http://127.0.0.1:1338");
}

/* A healthy machine with nothing pending. */
static int setup(void **state)
{
    struct notice_rig *g = notice_rig_create();
    fake_http_route(&g->http, "GET", INSTANCE, 200, IDENTITY);
    fake_http_route(&g->http, "GET", EVENTS, 200, DOCUMENT());
    fake_http_route(&g->http, "POST", EVENTS, 200, "");
    *state = g;
    return 0;
}

static void events(struct notice_rig *g, const char *document)
{
    fake_http_route(&g->http, "GET", EVENTS, 200, document);
}

static void a_healthy_machine_reports_only_its_identity(void **state)
{
    struct notice_rig *g = *state;
    const struct notice_identity expected = {.provider = "azure",
        .instance_id = "belay-lab-17",
        .type = "Standard_NC4as_T4_v3",
        .zone = "1",
        .region = "eastus",
        .life_cycle = "spot"};
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    notice_rig_check_identity(g, &expected);
    assert_int_equal(fake_http_count(&g->http, "GET", INSTANCE), 1);
    assert_in_range(fake_http_count(&g->http, "GET", EVENTS), 9, 11); /* one a second */
    for (size_t i = 0; i < g->http.n_requests; i++)
        assert_true(fake_http_sent(&g->http, i, "Metadata: true"));
}

static void a_preemption_is_reported_once(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Started", "belay-lab-17", "")));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_RECLAIM);
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(30));
    /* virtual time began at noon */
    assert_int_equal(g->notices[0].deadline_mono.ms, SECONDS_MS(30));
}

static void a_wrong_clock_makes_no_notice_longer(void **state)
{
    struct notice_rig *g = *state;
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "BELAY-LAB-17", AT_1210)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms, SECONDS_MS(29), SECONDS_MS(31));
}

static void what_loses_the_memory_is_a_reclaim_and_a_freeze_is_not(void **state)
{
    static const char *const reclaims[] = {
        DOCUMENT(EVENT("1", "Terminate", "Scheduled", "belay-lab-17", AT_1210)),
        DOCUMENT(EVENT("2", "Reboot", "Scheduled", "belay-lab-17", AT_1210)),
        DOCUMENT(EVENT("3", "Redeploy", "Scheduled", "belay-lab-17", AT_1210))};
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:00 GMT";
    start(g);
    for (size_t i = 0; i < 3; i++) {
        events(g, reclaims[i]);
        vtimers_advance(&g->vt, SECONDS_MS(2));
        assert_int_equal(g->n_notices, i + 1);
        const struct notice *n = &g->notices[i];
        assert_int_equal(n->kind, NOTICE_RECLAIM);
        assert_in_range(n->deadline.ms - n->seen.ms, SECONDS_MS(598), SECONDS_MS(600));
        events(g, DOCUMENT()); /* unexecuted */
        vtimers_advance(&g->vt, SECONDS_MS(2));
    }
    events(g, DOCUMENT(EVENT("4", "Freeze", "Scheduled", "belay-lab-17", AT_1210)));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 4);
    assert_int_equal(g->notices[3].kind, NOTICE_MAINTENANCE);
}

static void an_unknown_event_is_a_reclaim_and_never_approved(void **state)
{
    struct notice_rig *g = *state;
    g->acknowledge_at_notice = true;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    events(g, DOCUMENT(EVENT("5", "Bake", "Scheduled", "belay-lab-17", AT_1210)));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].kind, NOTICE_RECLAIM);
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(600));
    assert_string_equal(g->notices[0].what, "Bake");
    assert_int_equal(fake_http_count(&g->http, "POST", EVENTS), 0);
}

static void an_event_that_was_not_there_before_has_thirty_seconds(void **state)
{
    static const char *const found[] = {DOCUMENT(EVENT("1", "Preempt", "Scheduled", "belay-lab-17",
                                            "Sat, 22 Aug 2026 11:02:00 GMT")),
        DOCUMENT(EVENT("2", "Reboot", "Started", "belay-lab-17", ""))};
    struct notice_rig *g = *state;
    start(g);
    for (size_t i = 0; i < 2; i++) {
        events(g, DOCUMENT());
        vtimers_advance(&g->vt, SECONDS_MS(2));
        int64_t now = clock_mono(&g->vt.clock).ms;
        events(g, found[i]);
        vtimers_advance(&g->vt, SECONDS_MS(2));
        assert_int_equal(g->n_notices, i + 1);
        assert_in_range(g->notices[i].deadline_mono.ms - now, SECONDS_MS(30), SECONDS_MS(32));
    }
}

static void time_left_is_by_the_service_s_clock(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:10 GMT";
    vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(58 * 60)); /* this machine's clock is ahead */
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(2));
    int64_t now = clock_mono(&g->vt.clock).ms;
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17",
                  "Sat, 22 Aug 2026 14:00:30 +0200")));
    vtimers_advance(&g->vt, SECONDS_MS(2));
    assert_int_equal(g->n_notices, 1);
    assert_in_range(g->notices[0].deadline_mono.ms - now, SECONDS_MS(19), SECONDS_MS(22));
    assert_in_range(g->notices[0].deadline.ms - g->notices[0].clock_ahead_ms,
        NOON_MS + SECONDS_MS(29), NOON_MS + SECONDS_MS(31));
}

/* This machine's clock is ahead by nearly the whole remaining time, and no Date shows it. */
static void a_new_event_without_a_date_has_the_least_of_its_type(void **state)
{
    static const struct {
        const char *document;
        int64_t least_s;
    } found[] = {
        {DOCUMENT(EVENT("1", "Preempt", "Scheduled", "belay-lab-17", AT_1210)), 30},
        {DOCUMENT(EVENT("2", "Terminate", "Scheduled", "belay-lab-17", AT_1210)), 5 * 60},
        {DOCUMENT(EVENT("3", "Reboot", "Scheduled", "belay-lab-17", AT_1210)), 15 * 60},
        {DOCUMENT(EVENT("4", "Redeploy", "Scheduled", "belay-lab-17", AT_1210)), 10 * 60},
        {DOCUMENT(EVENT("5", "Reboot", "Started", "belay-lab-17", "")), 30},
        {DOCUMENT(EVENT("6", "Bake", "Scheduled", "belay-lab-17", AT_1210)), 30},
    };
    struct notice_rig *g = *state;
    start(g);
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        g->n_notices = 0;
        events(g, DOCUMENT());
        vtimers_advance(&g->vt, SECONDS_MS(2));
        vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(598));
        int64_t now = clock_mono(&g->vt.clock).ms;
        events(g, found[i].document);
        vtimers_advance(&g->vt, SECONDS_MS(1));
        assert_int_equal(g->n_notices, 1);
        assert_in_range(g->notices[0].deadline_mono.ms - now, SECONDS_MS(found[i].least_s),
            SECONDS_MS(found[i].least_s + 1));
    }
}

static void an_event_that_has_begun_has_no_time_left(void **state)
{
    struct notice_rig *g = *state;
    events(g, DOCUMENT(EVENT("602d", "Reboot", "Started", "belay-lab-17", "")));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(4));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].deadline.ms, g->notices[0].seen.ms);
}

static void events_of_other_machines_are_not_ours(void **state)
{
    struct notice_rig *g = *state;
    events(g, DOCUMENT(EVENT("1", "Preempt", "Scheduled", "belay-lab-18", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(4));
    assert_int_equal(g->n_notices, 0);
    events(g, DOCUMENT(EVENT("1", "Preempt", "Scheduled", "belay-lab-18", AT_1200_30) "," EVENT(
                  "2", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(2));
    assert_int_equal(g->n_notices, 1);
}

static void a_machine_that_cannot_be_named_heeds_all_events(void **state)
{
    struct notice_rig *g = *state;
    fake_http_route(&g->http, "GET", INSTANCE, 500, "");
    events(g, DOCUMENT(EVENT("1", "Preempt", "Scheduled", "belay-lab-18", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(30));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->identities, 1);
    assert_int_equal(g->identity_error.kind, ERR_UNAVAILABLE);
    assert_true(fake_http_count(&g->http, "GET", INSTANCE) > 10);
}

static void a_preemption_comes_before_a_reboot(void **state)
{
    struct notice_rig *g = *state;
    events(g, DOCUMENT(EVENT("1", "Reboot", "Scheduled", "belay-lab-17", AT_1210)));
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    events(g, DOCUMENT(EVENT("1", "Reboot", "Scheduled", "belay-lab-17", AT_1210) "," EVENT(
                  "2", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(3));
    assert_int_equal(g->n_notices, 2);
    assert_int_equal(g->notices[1].deadline.ms, NOON_MS + SECONDS_MS(30));
}

/* ---- acknowledging ---- */

static void an_event_is_acknowledged_only_after_the_report_and_the_save(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    notice_reader_acknowledge(g->reader);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(fake_http_count(&g->http, "POST", EVENTS), 0);
}

static void a_reclaim_is_acknowledged_once(void **state)
{
    struct notice_rig *g = *state;
    g->acknowledge_at_notice = true;
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30) "," EVENT(
                  "7a", "Freeze", "Scheduled", "belay-lab-17", AT_1210) "," EVENT("8b", "Preempt",
                  "Scheduled", "belay-lab-18", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    notice_reader_acknowledge(g->reader);
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(fake_http_count(&g->http, "POST", EVENTS), 1);
    for (size_t i = 0; i < g->http.n_requests; i++)
        if (str_eq(g->http.requests[i].method, "POST")) {
            assert_string_equal(
                buf_str(&g->http.requests[i].body), "{\"StartRequests\":[{\"EventId\":\"602d\"}]}");
            assert_true(fake_http_sent(&g->http, i, "Metadata: true"));
        }
}

static void an_acknowledgement_is_tried_again_a_few_times(void **state)
{
    struct notice_rig *g = *state;
    g->acknowledge_at_notice = true;
    fake_http_route(&g->http, "POST", EVENTS, 500, "");
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    assert_int_equal(fake_http_count(&g->http, "POST", EVENTS), 5);
    assert_int_equal(g->n_notices, 1);
}

static void a_malformed_acknowledgement_is_not_repeated(void **state)
{
    struct notice_rig *g = *state;
    g->acknowledge_at_notice = true;
    fake_http_route(&g->http, "POST", EVENTS, 400, "");
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    assert_int_equal(fake_http_count(&g->http, "POST", EVENTS), 1);
}

/* ---- trouble ---- */

static void trouble_is_neither_notice_nor_all_clear(void **state)
{
    struct notice_rig *g = *state;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(2));
    fake_http_route(&g->http, "GET", EVENTS, 500, "");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    fake_http_route(&g->http, "GET", EVENTS, 0, "");
    vtimers_advance(&g->vt, SECONDS_MS(5));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 1);
}

static void malformed_documents_are_refused(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{\"Events\":7}",
        "{\"Events\":[7]}", "{\"Events\":[{}]}",
        "{\"Events\":[{\"EventId\":7,\"EventType\":\"Preempt\",\"Resources\":[]}]}",
        "{\"Events\":[{\"EventId\":\"a\",\"Resources\":[]}]}",
        "{\"Events\":[{\"EventId\":\"a\",\"EventType\":\"Preempt\"}]}",
        "{\"Events\":[{\"EventId\":\"a\",\"EventType\":\"Preempt\",\"Resources\":\"belay\"}]}",
        DOCUMENT(EVENT("a", "Preempt", "Scheduled", "belay-lab-17", "soon")),
        DOCUMENT(
            EVENT("a", "Preempt", "Scheduled", "belay-lab-17", "Sat, 22 Aut 2026 12:00:30 GMT")),
        DOCUMENT() " x", "<html>502</html>", NULL};
    struct azure_events list = {.n = 7};
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        struct err e = {0};
        if (azure_notice_parse_events(wrong[i], strlen(wrong[i]), NULL, &list, &e) != ERR_INVALID)
            fail_msg("taken: %s", wrong[i]);
        assert_true(str_starts(e.text, "/metadata/scheduledevents"));
    }
    assert_int_equal(list.n, 7);
}

static void a_malformed_event_hides_no_other(void **state)
{
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    events(g, DOCUMENT(EVENT("a", "Freeze", "Scheduled", "belay-lab-18", "soon") "," EVENT(
                  "602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    vtimers_advance(&g->vt, SECONDS_MS(2));
    assert_int_equal(g->n_notices, 1);
    assert_string_equal(g->notices[0].what, "Preempt");
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(30));
    /* it may be the malformed one now, so it is not new when it can be read again */
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", "soon") "," EVENT(
                  "b", "Freeze", "Scheduled", "belay-lab-17", AT_1210)));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Started", "belay-lab-17", "")));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 2);
    assert_int_equal(g->notices[1].kind, NOTICE_MAINTENANCE);
}

static void add_many(struct buf *document, const char *type, int n, const char *at)
{
    for (int i = 0; i < n; i++)
        buf_printf(document,
            "{\"EventId\":\"%s-%d\",\"EventType\":\"%s\",\"Resources\":[\"belay-lab-17\"],"
            "\"NotBefore\":\"%s\"},",
            type, i, type, at);
}

static void all_events_of_a_reply_are_read(void **state)
{
    static const int numbers[] = {20, 300, 1500};
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct buf text = {0};
        struct azure_events list = {0};
        struct err e;
        buf_adds(&text, "{\"Events\":[");
        add_many(&text, "Freeze", numbers[i], AT_1210);
        text.data[text.len - 1] = ' ';
        buf_adds(&text, "]}");
        assert_int_equal(
            azure_notice_parse_events(buf_str(&text), text.len, "belay-lab-17", &list, &e), 0);
        assert_int_equal(list.n, numbers[i]);
        azure_events_deinit(&list);
        buf_deinit(&text);
    }
}

static void a_preemption_is_found_whatever_stands_before_it(void **state)
{
    static const struct {
        const char *type;
        int n;
    } before[] = {{"Freeze", 20}, {"Reboot", 20}, {"Bake", 20}, {"Freeze", 400}, {"Reboot", 400}};
    struct notice_rig *g = *state;
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        struct buf document = {0};
        buf_adds(&document, "{\"Events\":[");
        add_many(&document, before[i].type, before[i].n, AT_1210);
        buf_adds(&document, EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30) "]}");
        g->n_notices = 0;
        vtimers_set_wall(&g->vt, NOON_MS + SECONDS_MS(3));
        events(g, buf_str(&document));
        vtimers_advance(&g->vt, SECONDS_MS(2));
        assert_in_range(g->n_notices, 1, 16);
        assert_string_equal(g->notices[0].what, "Preempt");
        assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(30));
        events(g, DOCUMENT()); /* withdrawn */
        vtimers_advance(&g->vt, SECONDS_MS(2));
        buf_deinit(&document);
    }
}

static void of_many_preemptions_the_earliest_is_reported(void **state)
{
    struct notice_rig *g = *state;
    struct buf document = {0};
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    buf_adds(&document, "{\"Events\":[");
    add_many(&document, "Terminate", 20, AT_1210);
    add_many(&document, "Preempt", 20, AT_1200_30);
    buf_adds(&document,
        EVENT("9", "Terminate", "Scheduled", "belay-lab-17", "Sat, 22 Aug 2026 12:00:20 GMT") "]}");
    events(g, buf_str(&document));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_string_equal(g->notices[0].what, "Terminate");
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(20));
    buf_deinit(&document);
}

static void an_event_of_many_machines_is_ours_wherever_we_are_named(void **state)
{
    struct notice_rig *g = *state;
    struct buf document = {0};
    g->http.headers[0] = "Date: Sat, 22 Aug 2026 12:00:03 GMT";
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(3));
    buf_adds(&document,
        "{\"Events\":[{\"EventId\":\"1\",\"EventType\":\"Preempt\",\"NotBefore\":\"" AT_1200_30
        "\",\"Resources\":[");
    for (int i = 0; i < 3000; i++)
        buf_printf(&document, "\"belay-other-%d\",", i);
    buf_adds(&document, "\"belay-lab-17\"]}]}");
    events(g, buf_str(&document));
    vtimers_advance(&g->vt, SECONDS_MS(5));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(g->notices[0].deadline.ms, NOON_MS + SECONDS_MS(30));
    buf_deinit(&document);
}

static void malformed_identities_are_retried_and_reported(void **state)
{
    static const char *const wrong[] = {"{}", "{\"compute\":7}", "{\"compute\":{\"name\":\"a\"}}",
        "{\"compute\":{\"name\":\"\",\"vmSize\":\"s\",\"location\":\"eastus\"}}", "nonsense"};
    struct notice_rig *g = *state;
    start(g);
    notice_reader_stop(g->reader);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        g->identities = 0;
        g->identity_error = (struct err){0};
        fake_http_route(&g->http, "GET", INSTANCE, 200, wrong[i]);
        start(g);
        vtimers_advance(&g->vt, SECONDS_MS(11));
        assert_int_equal(g->identities, 1);
        assert_int_equal(g->identity_error.kind, ERR_INVALID);
        notice_reader_stop(g->reader);
        g->reader = NULL;
    }
}

static void a_first_call_may_take_its_time(void **state)
{
    struct notice_rig *g = *state;
    g->http.silent = true;
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(1));
    notice_reader_stop(g->reader); /* with a request in progress */
    g->reader = NULL;
    vtimers_advance(&g->vt, SECONDS_MS(1));
    assert_int_equal(g->http.n_cancelled, 1);
    assert_int_equal(g->identities, 0);
}

static void a_reader_can_be_stopped_in_its_callback(void **state)
{
    struct notice_rig *g = *state;
    g->stop_at_notice = true;
    events(g, DOCUMENT(EVENT("602d", "Preempt", "Scheduled", "belay-lab-17", AT_1200_30)));
    start(g);
    vtimers_advance(&g->vt, SECONDS_MS(10));
    assert_int_equal(g->n_notices, 1);
    assert_int_equal(fake_http_count(&g->http, "GET", EVENTS), 1);
}

static void urls_that_are_none_start_nothing(void **state)
{
    static const char *const wrong[] = {
        "", "https://169.254.169.254", "http://", "http://a/b", "http://a@b", NULL};
    struct notice_rig *g = *state;
    struct notice_reader_options o = {.http = &g->http.client, .timers = &g->vt.timers};
    for (size_t i = 0; wrong[i]; i++) {
        o.base_url = wrong[i];
        assert_null(notice_reader_start("azure", &o));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, notice_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_healthy_machine_reports_only_its_identity),
        TEST(a_preemption_is_reported_once),
        TEST(a_wrong_clock_makes_no_notice_longer),
        TEST(what_loses_the_memory_is_a_reclaim_and_a_freeze_is_not),
        TEST(an_event_that_has_begun_has_no_time_left),
        TEST(an_unknown_event_is_a_reclaim_and_never_approved),
        TEST(an_event_that_was_not_there_before_has_thirty_seconds),
        TEST(time_left_is_by_the_service_s_clock),
        TEST(a_new_event_without_a_date_has_the_least_of_its_type),
        TEST(events_of_other_machines_are_not_ours),
        TEST(a_machine_that_cannot_be_named_heeds_all_events),
        TEST(a_preemption_comes_before_a_reboot),
        TEST(an_event_is_acknowledged_only_after_the_report_and_the_save),
        TEST(a_reclaim_is_acknowledged_once),
        TEST(an_acknowledgement_is_tried_again_a_few_times),
        TEST(a_malformed_acknowledgement_is_not_repeated),
        TEST(trouble_is_neither_notice_nor_all_clear),
        TEST(malformed_documents_are_refused),
        TEST(a_malformed_event_hides_no_other),
        TEST(all_events_of_a_reply_are_read),
        TEST(a_preemption_is_found_whatever_stands_before_it),
        TEST(of_many_preemptions_the_earliest_is_reported),
        TEST(an_event_of_many_machines_is_ours_wherever_we_are_named),
        TEST(malformed_identities_are_retried_and_reported),
        TEST(a_first_call_may_take_its_time),
        TEST(a_reader_can_be_stopped_in_its_callback),
        TEST(urls_that_are_none_start_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
