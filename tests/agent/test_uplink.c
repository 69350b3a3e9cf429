/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uplink.h"
#include "base/log.h"
#include "tests/cloud/fake_http.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define NO_SPACE "{\"error\":{\"kind\":\"no-space\",\"text\":\"the disk is full\"}}"
#define UNAVAILABLE "{\"error\":{\"kind\":\"unavailable\",\"text\":\"try again\"}}"
#define INVALID "{\"error\":{\"kind\":\"invalid\",\"text\":\"what is this\"}}"
#define DENIED "{\"error\":{\"kind\":\"denied\",\"text\":\"not yours\"}}"

struct link_rig {
    struct vtimers vt;
    struct fake_http http;
    struct prng prng;
    struct config config;
    struct identity id;
    struct peer peer;
    struct uplink link;
    int n_desired;
};

static void fill(void *ctx, struct wire_status *status)
{
    (void)ctx, (void)status;
}

static void desired(void *ctx, const struct wire_desired *d)
{
    struct link_rig *r = ctx;
    (void)d;
    r->n_desired++;
}

static bool refused(void *ctx, const struct err *e)
{
    (void)ctx, (void)e;
    return false;
}

static void rig_init(struct link_rig *r)
{
    *r = (struct link_rig){0};
    vtimers_init(&r->vt, 0);
    vtimers_advance(&r->vt, 1000);
    fake_http_init(&r->http, &r->vt.timers);
    prng_init(&r->prng, 1);
    r->config = (struct config){.server = "https://belayd:7443"};
    r->peer = (struct peer){.http = &r->http.client, .config = &r->config, .id = &r->id};
    r->link = (struct uplink){.peer = &r->peer,
        .incarnation = 1,
        .timers = &r->vt.timers,
        .prng = &r->prng,
        .fill = fill,
        .desired = desired,
        .refused = refused,
        .ctx = r};
    uplink_init(&r->link);
}

static void rig_deinit(struct link_rig *r)
{
    r->http.silent = true;
    uplink_stop(&r->link);
    vtimers_advance(&r->vt, 1);
    fake_http_deinit(&r->http);
    vtimers_deinit(&r->vt);
}

/* Starts the link, gives it this reply once and then none; returns when it last heard belayd. */
static int64_t heard_after(int status, const char *body)
{
    struct link_rig r;
    rig_init(&r);
    if (status)
        fake_http_add(&r.http, status, body);
    else
        fake_http_add_error(&r.http, ERR_UNAVAILABLE);
    vtimers_advance(&r.vt, 4000);
    uplink_start(&r.link);
    r.http.silent = true;
    vtimers_advance(&r.vt, 5000);
    int64_t heard = r.link.heard.ms;
    assert_int_equal(r.http.n_requests, 2); /* and it keeps retrying */
    rig_deinit(&r);
    return heard;
}

static void an_unavailable_belayd_counts_as_heard(void **state)
{
    (void)state;
    assert_int_equal(heard_after(200, "{\"rev\":1,\"lease_ms\":30000,\"sync_ms\":10000}"), 5001);
    assert_int_equal(heard_after(507, NO_SPACE), 5001);
    assert_int_equal(heard_after(507, ""), 5001);
    assert_int_equal(heard_after(503, UNAVAILABLE), 5001);
}

static void a_silent_or_refusing_belayd_does_not_count_as_heard(void **state)
{
    (void)state;
    assert_int_equal(heard_after(0, NULL), 1000);
    assert_int_equal(heard_after(400, INVALID), 1000);
    assert_int_equal(heard_after(403, DENIED), 1000);
    assert_int_equal(heard_after(200, "nonsense"), 1000);
}

struct heard {
    bool refused, answered, unreached;
};

static struct heard heard;

static bool note_refused(void *ctx, const struct err *e)
{
    (void)ctx, (void)e;
    heard.refused = true;
    return true;
}

static void note_line(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level;
    heard.answered = heard.answered || strstr(line, "belayd answered with an error");
    heard.unreached = heard.unreached || strstr(line, "belayd cannot be reached");
}

static struct heard hears_of(enum err_kind error, int status, const char *body)
{
    struct link_rig r;
    heard = (struct heard){0};
    rig_init(&r);
    r.link.refused = note_refused;
    log_set_level(LOG_WARN);
    log_set_sink(note_line, NULL);
    if (error)
        fake_http_add_error(&r.http, error);
    else
        fake_http_add(&r.http, status, body);
    uplink_start(&r.link);
    r.http.silent = true;
    vtimers_advance(&r.vt, 1);
    log_set_sink(NULL, NULL);
    log_set_level(LOG_ERROR);
    rig_deinit(&r);
    return heard;
}

/* The agent discards a refused certificate and joins again. */
static void only_an_answer_of_belayd_refuses_this_node(void **state)
{
    (void)state;
    assert_true(hears_of(ERR_NONE, 403, DENIED).refused);
    struct heard h = hears_of(ERR_DENIED, 0, NULL); /* belayd's certificate fails the check here */
    assert_false(h.refused);
    assert_true(h.unreached);
    h = hears_of(ERR_NONE, 507, NO_SPACE);
    assert_true(h.answered);
    assert_false(h.refused || h.unreached);
}

static void a_certificate_of_another_time_is_reported_with_the_clock(void **state)
{
    struct err failed, e;
    (void)state;
    err_set(&failed, ERR_DENIED, "x: SSL certificate problem: certificate is not yet valid");
    assert_int_equal(peer_check(&failed, NULL, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "this machine's clock"));
    err_set(&failed, ERR_DENIED, "x: SSL certificate problem: certificate has expired");
    assert_int_equal(peer_check(&failed, NULL, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "this machine's clock"));
    err_set(&failed, ERR_DENIED, "x: SSL certificate problem: self-signed certificate");
    assert_int_equal(peer_check(&failed, NULL, &e), ERR_UNAVAILABLE);
    assert_null(strstr(e.text, "clock"));
}

static void a_full_belayd_is_contacted_often_enough(void **state)
{
    (void)state;
    struct link_rig r;
    rig_init(&r);
    r.http.keep_none = true;
    fake_http_route(&r.http, "POST", "/agent/v1/sync", 507, NO_SPACE);
    uplink_start(&r.link);
    for (int i = 0; i < 240; i++) {
        vtimers_advance(&r.vt, 60000);
        /* the cap of the backoff */
        assert_true(clock_mono(&r.vt.clock).ms - r.link.heard.ms <= 10001);
    }
    assert_int_equal(r.n_desired, 0);
    rig_deinit(&r);
}

/* For any downtime of belayd: it considers nodes lost one lease after its start. */
static void an_unreachable_belayd_is_tried_three_times_a_lease(void **state)
{
    static const int64_t leases[] = {1000, 3000, 30000, 600000};
    (void)state;
    for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
        struct link_rig r;
        int64_t most_ms = leases[i] / 3 < 10000 ? leases[i] / 3 : 10000;
        char body[100];
        rig_init(&r);
        r.http.keep_none = true;
        snprintf(body, sizeof(body), "{\"rev\":1,\"lease_ms\":%lld,\"sync_ms\":%lld}",
            (long long)leases[i], (long long)most_ms);
        fake_http_route(&r.http, "POST", "/agent/v1/sync", 200, body);
        uplink_start(&r.link);
        vtimers_advance(&r.vt, 1);
        assert_int_equal(r.link.lease_ms, leases[i]);
        fake_http_route(&r.http, "POST", "/agent/v1/sync", 400, INVALID);
        for (int k = 0; k < 1000; k++) {
            int64_t before = r.link.seq;
            vtimers_advance(&r.vt, most_ms + 10); /* plus the answer */
            assert_true(r.link.seq > before);
        }
        rig_deinit(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unavailable_belayd_counts_as_heard),
        cmocka_unit_test(a_silent_or_refusing_belayd_does_not_count_as_heard),
        cmocka_unit_test(only_an_answer_of_belayd_refuses_this_node),
        cmocka_unit_test(a_certificate_of_another_time_is_reported_with_the_clock),
        cmocka_unit_test(a_full_belayd_is_contacted_often_enough),
        cmocka_unit_test(an_unreachable_belayd_is_tried_three_times_a_lease),
    };
    log_init("test", LOG_ERROR); /* the test is about failures */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
