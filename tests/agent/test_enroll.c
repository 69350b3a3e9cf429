/* SPDX-License-Identifier: Apache-2.0
 *
 * When a certificate is renewed, with right and with wrong clocks; and how often a join that belayd
 * refuses is repeated.
 */
#include "agent/enroll.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/ca.h"
#include "tests/cloud/fake_http.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define NOW_MS (20000 * DAY_MS)

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct prng prng;
    struct config config;
    struct criu criu;
    struct identity id;
    struct peer peer;
    struct enroll enroll;
    struct ca *ca;
    struct wall belayd_now; /* when every certificate is issued */
    char dir[64];
    int n_warnings, n_refusals;
};

static struct wall belayd_wall(void *ctx)
{
    return ((struct rig *)ctx)->belayd_now;
}

static void count_lines(void *ctx, enum log_level level, const char *line)
{
    struct rig *r = ctx;
    r->n_warnings += level == LOG_WARN && strstr(line, "clock is ") != NULL;
    r->n_refusals += level == LOG_ERROR && strstr(line, "joining the cluster failed") &&
                     strstr(line, "correct name: in the node's belay-agent.yaml");
}

static void on_joined(void *ctx)
{
    (void)ctx;
}

/* A reply with a certificate of this life, issued now by belayd's clock. */
static char *joined(struct rig *r, int64_t life_ms)
{
    struct wire_joined m = {.node = 1, .name = "n1", .cluster = "lab", .store = "file:///s"};
    struct buf out = {0};
    char csr[4096], *cert = NULL;
    struct err e;
    assert_int_equal(identity_csr(&r->id, "n1", csr, sizeof(csr), &e), 0);
    assert_int_equal(ca_issue_node(r->ca, csr, "node-1", life_ms, &cert, &e), 0);
    STR_COPY(m.cert_pem, cert);
    STR_COPY(m.ca_pem, ca_pem(r->ca));
    wire_joined_encode(&m, &out);
    free(cert);
    return buf_take(&out);
}

/* Sets up a node that has just joined, by this agent or by the previous one, on a machine whose
 * clock is ahead of belayd's by ahead_ms. */
static void rig_init(struct rig *r, int64_t life_ms, int64_t ahead_ms, bool by_this)
{
    *r = (struct rig){.belayd_now = {NOW_MS}, .dir = "/tmp/enroll.XXXXXX"};
    struct clock belayd = {.wall = belayd_wall, .mono = clock_system.mono, .ctx = r};
    struct err e;
    assert_non_null(mkdtemp(r->dir));
    log_set_sink(count_lines, r);
    vtimers_init(&r->vt, NOW_MS + ahead_ms);
    fake_http_init(&r->http, &r->vt.timers);
    prng_init(&r->prng, 1);
    r->config = (struct config){.server = "https://belayd:7443", .token = "t", .name = "n1"};
    r->peer = (struct peer){.http = &r->http.client, .config = &r->config, .id = &r->id};
    assert_int_equal(identity_open(r->dir, &r->id, &e), 0);
    assert_int_equal(ca_open(r->dir, "lab", &belayd, &r->ca, &e), 0);
    r->enroll = (struct enroll){.peer = &r->peer,
        .config = &r->config,
        .id = &r->id,
        .criu = &r->criu,
        .resources = {.cpus = 1, .memory_mib = 1024},
        .timers = &r->vt.timers,
        .prng = &r->prng,
        .on_joined = on_joined,
        .ctx = r};
    char *reply = joined(r, life_ms);
    fake_http_route(&r->http, "POST", "/agent/v1/join", 200, reply);
    fake_http_route(&r->http, "POST", "/agent/v1/renew", 200, reply);
    free(reply);
    enroll_start(&r->enroll);
    vtimers_advance(&r->vt, 10);
    assert_true(identity_is_joined(&r->id));
    if (by_this)
        return;
    enroll_stop(&r->enroll);
    identity_deinit(&r->id);
    assert_int_equal(identity_open(r->dir, &r->id, &e), 0);
    r->enroll.stopped = r->enroll.renewing = false;
    r->n_warnings = 0;
    enroll_start(&r->enroll);
    vtimers_advance(&r->vt, 10);
}

static void rig_deinit(struct rig *r)
{
    static const char *const names[] = {"key.pem", "node.json", "ca.pem", "ca.key", "booted"};
    enroll_stop(&r->enroll);
    vtimers_advance(&r->vt, 1);
    log_set_sink(NULL, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = mem_printf("%s/%s", r->dir, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(r->dir);
    ca_close(r->ca);
    identity_deinit(&r->id);
    fake_http_deinit(&r->http);
    vtimers_deinit(&r->vt);
}

static int n_renewals(const struct rig *r)
{
    return (int)fake_http_count(&r->http, "POST", "/agent/v1/renew");
}

/* Counts the renewals in ms; stops after `most` plus one. */
static int renewals_in(struct rig *r, int64_t ms, int most)
{
    for (int64_t until = r->vt.now_ms + ms; r->vt.now_ms < until && n_renewals(r) <= most;) {
        int64_t due;
        if (!vtimers_next(&r->vt, &due) || due >= until)
            vtimers_advance(&r->vt, until - r->vt.now_ms);
        else
            vtimers_run_next(&r->vt);
    }
    return n_renewals(r);
}

static void a_certificate_is_renewed_after_two_thirds_of_its_life(void **state)
{
    static const int64_t lives_ms[] = {SECONDS_MS(60), SECONDS_MS(120), 30 * DAY_MS};
    (void)state;
    for (size_t i = 0; i < sizeof(lives_ms) / sizeof(lives_ms[0]); i++) {
        struct rig r;
        int64_t two_thirds_ms = lives_ms[i] / 3 * 2;
        rig_init(&r, lives_ms[i], 0, true);
        assert_int_equal(renewals_in(&r, two_thirds_ms - 2000, 0), 0);
        assert_int_equal(r.n_warnings, 0);
        assert_int_equal(renewals_in(&r, 4000, 1), 1);
        rig_deinit(&r);
    }
}

static void a_clock_that_is_ahead_makes_it_renew_earlier_but_not_at_once(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 30 * DAY_MS, 40 * DAY_MS, true);
    assert_int_equal(renewals_in(&r, 10 * DAY_MS - 2000, 0), 0);
    assert_int_equal(renewals_in(&r, 10 * DAY_MS, 1), 1);
    assert_int_equal(renewals_in(&r, 10 * DAY_MS, 2), 2);
    assert_int_equal(r.n_warnings, 1);
    rig_deinit(&r);
}

static void a_clock_that_is_ahead_costs_one_renewal_at_a_start(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 30 * DAY_MS, 40 * DAY_MS, false);
    assert_int_equal(renewals_in(&r, 10 * DAY_MS - 2000, 1), 1);
    assert_int_equal(r.n_warnings, 0); /* the clock was reported at the join */
    rig_deinit(&r);
}

static void a_clock_that_is_behind_or_set_back_does_not_let_it_end(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 30 * DAY_MS, -40 * DAY_MS, true);
    assert_int_equal(renewals_in(&r, 20 * DAY_MS + 2000, 1), 1);
    assert_int_equal(r.n_warnings, 1);
    rig_deinit(&r);
    rig_init(&r, 30 * DAY_MS, 40 * DAY_MS, true);
    vtimers_set_wall(&r.vt, NOW_MS);
    assert_int_equal(renewals_in(&r, 20 * DAY_MS + 2000, 1), 1);
    rig_deinit(&r);
}

/* A person must correct its configuration, or replace an older agent. */
static void a_refused_join_is_reported_and_retried_once_a_minute(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 30 * DAY_MS, 0, true);
    enroll_stop(&r.enroll);
    identity_forget(&r.id);
    r.enroll.stopped = r.enroll.renewing = false;
    fake_http_route(&r.http, "POST", "/agent/v1/join", 400,
        "{\"error\":{\"kind\":\"invalid\",\"text\":\"name: \\\"a,b\\\" is not a node's name: "
        "correct name: in the node's belay-agent.yaml\"}}");
    enroll_start(&r.enroll);
    vtimers_advance(&r.vt, 3600000);
    assert_in_range(r.n_refusals, 60, 130);
    assert_int_equal(fake_http_count(&r.http, "POST", "/agent/v1/join"), r.n_refusals + 1);
    rig_deinit(&r);
}

/* Joins again with this text in the file that the boot script has written; returns what the agent
 * reports of the time since. */
static int64_t joins_after(struct rig *r, const char *booted)
{
    char *path = mem_printf("%s/booted", r->dir);
    struct wire_join m;
    struct err e;
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(booted, f) >= 0 && fclose(f) == 0);
    free(path);
    r->config.dir = r->dir;
    r->enroll.stopped = r->enroll.renewing = false;
    identity_forget(&r->id);
    const size_t i = r->http.n_requests;
    enroll_start(&r->enroll);
    vtimers_advance(&r->vt, 10);
    assert_int_equal(r->http.n_requests, i + 1);
    const struct buf *body = &r->http.requests[i].body;
    assert_int_equal(wire_join_decode(buf_str(body), body->len, &m, &e), 0);
    enroll_stop(&r->enroll);
    return m.start_ms;
}

static void a_join_reports_how_long_ago_the_boot_script_began(void **state)
{
    struct rig r;
    char text[64];
    double up = 0;
    (void)state;
    rig_init(&r, 30 * DAY_MS, 0, true);
    enroll_stop(&r.enroll);
    FILE *f = fopen("/proc/uptime", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lf", &up), 1);
    fclose(f);
    snprintf(text, sizeof(text), "%.2f\n", up - 5);
    assert_in_range(joins_after(&r, text), 5000, 600000);
    snprintf(text, sizeof(text), "%.2f\n", up + 100000); /* of before a reboot */
    assert_int_equal(joins_after(&r, text), 0);
    assert_int_equal(joins_after(&r, "later\n"), 0);
    assert_int_equal(joins_after(&r, "-5\n"), 0);
    assert_int_equal(joins_after(&r, ""), 0);
    rig_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_renewed_after_two_thirds_of_its_life),
        cmocka_unit_test(a_clock_that_is_ahead_makes_it_renew_earlier_but_not_at_once),
        cmocka_unit_test(a_clock_that_is_ahead_costs_one_renewal_at_a_start),
        cmocka_unit_test(a_clock_that_is_behind_or_set_back_does_not_let_it_end),
        cmocka_unit_test(a_join_reports_how_long_ago_the_boot_script_began),
        cmocka_unit_test(a_refused_join_is_reported_and_retried_once_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
