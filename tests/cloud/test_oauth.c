/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/oauth.h"
#include "fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000
#define ONE "{\"access_token\":\"one\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"
#define TWO "{\"access_token\":\"two\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct oauth *oauth;
    int build_rc;
};

struct waiter {
    struct oauth_wait wait;
    int answers;
    struct err e;
    char header[128];
};

static int build(void *ctx, struct oauth_request *r, struct err *e)
{
    struct rig *g = ctx;
    if (g->build_rc)
        return err_set(e, g->build_rc, "no key");
    r->method = "POST";
    r->url = mem_strdup("https://oauth2.example/token");
    r->header = "Content-Type: application/x-www-form-urlencoded";
    r->timeout_ms = 5000;
    buf_printf(&r->body, "assertion=secret");
    return 0;
}

static int parse(void *ctx, const struct http_reply *reply, struct oauth_token *ret, struct err *e)
{
    (void)ctx;
    return oauth_parse_reply(reply->status, buf_str(&reply->body), reply->body.len, ret, e);
}

static void on_token(void *ctx, const struct err *e, const char *header)
{
    struct waiter *w = ctx;
    w->answers++;
    w->e = e ? *e : (struct err){0};
    STR_COPY(w->header, header);
}

static int setup(void **state)
{
    static const struct oauth_ops ops = {build, parse};
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    g->oauth = oauth_create(&ops, g, &g->http.client, &g->vt.timers);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    oauth_destroy(g->oauth);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void get(struct rig *g, struct waiter *w)
{
    *w = (struct waiter){0};
    oauth_get(g->oauth, &w->wait, on_token, w);
    assert_int_equal(w->answers, 0);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(w->answers, 1);
}

static void one_fetch_serves_all_waiting_calls(void **state)
{
    struct rig *g = *state;
    struct waiter w[3] = {0};
    fake_http_add(&g->http, 200, ONE);
    oauth_get(g->oauth, &w[0].wait, on_token, &w[0]);
    oauth_get(g->oauth, &w[1].wait, on_token, &w[1]);
    vtimers_run_next(&g->vt); /* the request is in progress */
    oauth_get(g->oauth, &w[2].wait, on_token, &w[2]);
    oauth_cancel(&w[1].wait);
    vtimers_advance(&g->vt, 10);
    assert_int_equal(g->http.n_requests, 1);
    assert_int_equal(w[0].answers + w[2].answers, 2);
    assert_int_equal(w[1].answers, 0);
    assert_string_equal(w[2].header, "Authorization: Bearer one");
    assert_string_equal(buf_str(&g->http.requests[0].body), "assertion=secret");
    get(g, &w[1]);
    assert_int_equal(g->http.n_requests, 1); /* from the cache */
}

static void token_is_renewed_before_its_end(void **state)
{
    struct rig *g = *state;
    struct waiter w;
    fake_http_add(&g->http, 200, ONE);
    get(g, &w);
    vtimers_advance(&g->vt, SECONDS_MS(3599 - 250));
    get(g, &w);
    assert_int_equal(g->http.n_requests, 1);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    fake_http_add(&g->http, 200, TWO);
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer two");
}

static void a_caller_that_needs_fresh_tokens_has_them_renewed_earlier(void **state)
{
    struct rig *g = *state;
    struct waiter w;
    oauth_renew_before(g->oauth, SECONDS_MS(600));
    assert_int_equal(oauth_left_ms(g->oauth), 0);
    fake_http_add(&g->http, 200, ONE);
    get(g, &w);
    assert_in_range(oauth_left_ms(g->oauth), SECONDS_MS(3598), SECONDS_MS(3599));
    vtimers_advance(&g->vt, SECONDS_MS(3599 - 610));
    get(g, &w);
    assert_int_equal(g->http.n_requests, 1);
    vtimers_advance(&g->vt, SECONDS_MS(20));
    fake_http_add(&g->http, 200, TWO);
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer two");
    vtimers_advance(&g->vt, SECONDS_MS(3600));
    assert_int_equal(oauth_left_ms(g->oauth), 0);
}

static void failed_renewal_hands_out_the_old_token_until_its_end(void **state)
{
    struct rig *g = *state;
    struct waiter w;
    fake_http_add(&g->http, 200, ONE);
    get(g, &w);
    vtimers_advance(&g->vt, SECONDS_MS(3599 - 100));
    fake_http_add(&g->http, 503, "");
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer one");
    get(g, &w); /* and is not retried at once */
    assert_int_equal(g->http.n_requests, 2);
    vtimers_advance(&g->vt, SECONDS_MS(31));
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer one");
    vtimers_advance(&g->vt, SECONDS_MS(100));
    fake_http_add(&g->http, 503, "");
    get(g, &w);
    assert_int_equal(w.e.kind, ERR_UNAVAILABLE);
}

static void same_token_again_is_not_asked_for_each_time(void **state)
{
    struct rig *g = *state;
    struct waiter w;
    fake_http_add(&g->http, 200, "{\"access_token\":\"one\",\"expires_in\":\"200\"}");
    get(g, &w);
    vtimers_advance(&g->vt, SECONDS_MS(151));
    fake_http_add(&g->http, 200, "{\"access_token\":\"one\",\"expires_in\":\"49\"}");
    get(g, &w);
    get(g, &w);
    assert_int_equal(g->http.n_requests, 2);
}

static void refused_token_is_dropped_but_never_a_newer_one(void **state)
{
    struct rig *g = *state;
    struct waiter old, w;
    fake_http_add(&g->http, 200, ONE);
    get(g, &old);
    oauth_refused(g->oauth, &old.wait);
    fake_http_add(&g->http, 200, TWO);
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer two");
    oauth_refused(g->oauth, &old.wait);
    get(g, &w);
    assert_string_equal(w.header, "Authorization: Bearer two");
    assert_int_equal(g->http.n_requests, 2);
}

static void a_failed_request_is_reported_as_it_is(void **state)
{
    struct rig *g = *state;
    struct waiter w;
    g->build_rc = ERR_CONFIG;
    get(g, &w);
    assert_int_equal(w.e.kind, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void destroy_drops_a_fetch_under_way(void **state)
{
    struct rig *g = *state;
    struct waiter w = {0};
    g->http.silent = true;
    oauth_get(g->oauth, &w.wait, on_token, &w);
    vtimers_advance(&g->vt, 10);
    oauth_destroy(g->oauth);
    g->oauth = NULL;
    vtimers_advance(&g->vt, 10);
    assert_int_equal(w.answers, 0);
    assert_int_equal(g->http.n_cancelled, 1);
}

static void replies_are_parsed(void **state)
{
    static const char *const wrong[] = {"", "null", "<html>", "[]", "{}",
        "{\"access_token\":\"a\"}", "{\"access_token\":7,\"expires_in\":60}",
        "{\"access_token\":\"\",\"expires_in\":60}",
        "{\"access_token\":\"a\\r\\nX: y\",\"expires_in\":60}",
        "{\"access_token\":\"a b\",\"expires_in\":60}", "{\"access_token\":\"a\",\"expires_in\":0}",
        "{\"access_token\":\"a\",\"expires_in\":-5}",
        "{\"access_token\":\"a\",\"expires_in\":\"soon\"}",
        "{\"access_token\":\"a\",\"expires_in\":1e9}",
        "{\"access_token\":\"a\",\"expires_in\":999999999999}", NULL};
    struct oauth_token t;
    struct err e;
    (void)state;
    assert_int_equal(oauth_parse_reply(200, ONE, strlen(ONE), &t, &e), 0);
    assert_string_equal(t.text, "one");
    assert_int_equal(t.expires_in_s, 3599);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(oauth_parse_reply(200, wrong[i], strlen(wrong[i]), &t, &e), ERR_INVALID);
    static const char refusal[] =
        "{\"error\":\"invalid_grant\",\"error_description\":\"Invalid JWT:\\ntoo old\"}";
    assert_int_equal(oauth_parse_reply(400, refusal, strlen(refusal), &t, &e), ERR_DENIED);
    assert_string_equal(e.text, "no token: HTTP 400, invalid_grant: Invalid JWT:?too old");
    assert_int_equal(oauth_parse_reply(429, "", 0, &t, &e), ERR_THROTTLED);
    assert_int_equal(oauth_parse_reply(500, "<html>", 6, &t, &e), ERR_UNAVAILABLE);
    assert_int_equal(oauth_parse_reply(302, ONE, strlen(ONE), &t, &e), ERR_DENIED);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(one_fetch_serves_all_waiting_calls),
        RIG(token_is_renewed_before_its_end),
        RIG(a_caller_that_needs_fresh_tokens_has_them_renewed_earlier),
        RIG(failed_renewal_hands_out_the_old_token_until_its_end),
        RIG(same_token_again_is_not_asked_for_each_time),
        RIG(refused_token_is_dropped_but_never_a_newer_one),
        RIG(a_failed_request_is_reported_as_it_is),
        RIG(destroy_drops_a_fetch_under_way),
        cmocka_unit_test(replies_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
