/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials of each kind reach the net, and what went wrong reaches the caller, once.
 */
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/keys_source.h"
#include "tests/cloud/fake_http.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define METADATA "http://127.0.0.1:1338"
#define TOKEN                                                                                      \
    "{\"access_token\":\"eyJ.T0.k\",\"expires_in\":3599,\"expires_on\":\"1787486399\","            \
    "\"token_type\":\"Bearer\"}"

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct store_net *net;
    struct keys_source source;
    int answers;
    struct err e; /* of the last answer; ERR_NONE = success */
};

static int setup(void **state)
{
    static const char *const unset[] = {"AWS_SESSION_TOKEN", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED", "GOOGLE_APPLICATION_CREDENTIALS",
        "GCE_METADATA_HOST", "AZURE_AUTHORITY_HOST", "AZURE_TENANT_ID", "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET"};
    struct rig *g = mem_alloc(sizeof(*g));
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
        unsetenv(unset[i]);
    setenv("AWS_ACCESS_KEY_ID", "AKIA1", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
    setenv("HOME", "/nonexistent", 1);
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    g->source = (struct keys_source){
        .metadata_url = METADATA, .timers = &g->vt.timers, .http = &g->http.client};
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    keys_source_deinit(&g->source);
    while (vtimers_run_next(&g->vt))
        ;
    store_net_destroy(g->net);
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void on_keys(void *ctx, const struct err *e)
{
    struct rig *g = ctx;
    g->answers++;
    g->e = e ? *e : (struct err){0};
    assert_null(g->source.done); /* the next call may be made here */
}

static void get(struct rig *g, const char *url)
{
    int before = g->answers;
    store_net_destroy(g->net);
    keys_source_get_net(&g->source, url, &g->net, on_keys, g);
    while (g->answers == before)
        assert_true(vtimers_run_next(&g->vt));
    assert_int_equal(g->answers, before + 1);
}

static void assert_token(struct rig *g, const char *url, const char *path)
{
    struct store_keys k;
    fake_http_add(&g->http, 200, TOKEN);
    fake_http_with(&g->http, "Metadata-Flavor: Google");
    get(g, url);
    assert_string_equal(g->e.text, "");
    assert_true(str_starts(g->http.requests[g->http.n_requests - 1].url, METADATA));
    assert_non_null(strstr(g->http.requests[g->http.n_requests - 1].url, path));
    assert_int_equal(
        store_auth_get(store_net_auth(g->net, g->source.kind), 0, 1000, NULL, &k, NULL), 0);
    assert_string_equal(k.token, "eyJ.T0.k");
    store_keys_wipe(&k);
}

static void keys_of_the_environment_reach_the_net(void **state)
{
    struct rig *g = *state;
    struct store_keys k;
    setenv("AWS_SESSION_TOKEN", "session", 1);
    get(g, "s3://jobs/lab");
    assert_int_equal(g->e.kind, ERR_NONE);
    assert_int_equal(
        store_auth_get(store_net_auth(g->net, STORE_KEYS_AWS), 0, 1000, NULL, &k, NULL), 0);
    assert_string_equal(k.access_key, "AKIA1");
    assert_string_equal(k.secret_key, "hush");
    assert_string_equal(k.token, "session");
    assert_int_equal(k.expires.ms, WALL_NONE.ms);
    store_keys_wipe(&k);
    assert_int_equal(g->http.n_requests, 0);
}

static void googles_tokens_reach_the_net(void **state)
{
    assert_token(*state, "gs://jobs/lab", "/service-accounts/default/token");
}

static void azures_tokens_reach_the_net_and_are_renewed_when_refused(void **state)
{
    struct rig *g = *state;
    assert_token(g, "az://account/jobs", "resource=https%3A%2F%2Fstorage.azure.com");
    get(g, "az://account/jobs");
    assert_int_equal(g->http.n_requests, 1); /* kept */
    keys_source_refused(&g->source);
    assert_token(g, "az://account/jobs", "resource=https%3A%2F%2Fstorage.azure.com");
    assert_int_equal(g->http.n_requests, 2);
}

static void a_store_of_this_machine_needs_none(void **state)
{
    struct rig *g = *state;
    get(g, "/srv/checkpoints");
    assert_int_equal(g->e.kind, ERR_NONE);
    assert_null(g->net);
}

static void errors_say_what_they_are_about(void **state)
{
    struct rig *g = *state;
    unsetenv("AWS_SECRET_ACCESS_KEY");
    get(g, "s3://jobs/lab");
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_true(str_starts(g->e.text, "credentials for the store: environment: "));
    setenv("AWS_SECRET_ACCESS_KEY", "hush", 1); /* and the next call looks again */
    get(g, "s3://jobs/lab");
    assert_int_equal(g->e.kind, ERR_NONE);
}

static void a_machine_elsewhere_is_not_asked_for_a_role(void **state)
{
    struct rig *g = *state;
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    g->source.has_no_role = true;
    get(g, "s3://jobs/lab");
    assert_int_equal(g->e.kind, ERR_CONFIG);
    assert_true(str_starts(g->e.text, "credentials for the store: no AWS credentials"));
    assert_int_equal(g->http.n_requests, 0);
}

static void a_dropped_call_has_no_answer(void **state)
{
    static const char *const urls[] = {"s3://jobs/lab", "gs://jobs/lab", "az://account/jobs"};
    struct rig *g = *state;
    g->http.silent = true;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        store_net_destroy(g->net);
        keys_source_get_net(&g->source, urls[i], &g->net, on_keys, g);
        assert_non_null(g->source.done);
        keys_source_deinit(&g->source);
        assert_null(g->source.done);
        while (vtimers_run_next(&g->vt))
            ;
        assert_int_equal(g->answers, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_of_the_environment_reach_the_net),
        TEST(googles_tokens_reach_the_net),
        TEST(azures_tokens_reach_the_net_and_are_renewed_when_refused),
        TEST(a_store_of_this_machine_needs_none),
        TEST(errors_say_what_they_are_about),
        TEST(a_machine_elsewhere_is_not_asked_for_a_role),
        TEST(a_dropped_call_has_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
