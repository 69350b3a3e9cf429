/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include <stdlib.h>

static void on_line(void *ctx, enum log_level level, const char *line)
{
    struct aws_rig *g = ctx;
    g->warnings += level >= LOG_WARN;
    STR_COPY(g->last, line);
}

void aws_rig_clear_environment(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_EC2_METADATA_DISABLED"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

int aws_rig_setup(void **state)
{
    struct aws_rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    aws_rig_clear_environment();
    setenv("HOME", "/nonexistent", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    log_set_sink(on_line, g);
    g->options = (struct aws_options){.machine = {.image = "ami-0a1b"},
        .endpoint_url = ENDPOINT,
        .http = &g->http.client,
        .timers = &g->vt.timers};
    *state = g;
    return 0;
}

int aws_rig_teardown(void **state)
{
    struct aws_rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    log_set_sink(NULL, NULL);
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

void aws_rig_create(struct aws_rig *g)
{
    struct err e;
    if (aws_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

void aws_rig_finish(struct aws_rig *g, int expected)
{
    outcome_finish(&g->got, &g->vt, expected);
}

void aws_rig_assert_signed(
    const struct aws_rig *g, size_t i, const char *host, const char *timestamp)
{
    char *authorization = fake_http_header(&g->http, i, "Authorization");
    char *token = fake_http_header(&g->http, i, "X-Amz-Security-Token");
    char hash[SIGV4_HEX_MAX], expected[SIGV4_HEX_MAX];
    const struct buf *body = &g->http.requests[i].body;
    struct sigv4_claim claim;
    struct err e;
    sigv4_sha256_hex(buf_str(body), body->len, hash);
    assert_int_equal(sigv4_parse_authorization(authorization, &claim, &e), 0);
    assert_string_equal(claim.access_key, "AKIDEXAMPLE");
    assert_string_equal(
        claim.signed_headers, token ? "content-type;host;x-amz-date;x-amz-security-token"
                                    : "content-type;host;x-amz-date");
    struct http_header headers[] = {
        {"content-type", "application/x-www-form-urlencoded; charset=utf-8"}, {"host", host},
        {"x-amz-date", timestamp}, {"x-amz-security-token", token}};
    struct sigv4_request r = {"POST", "/", headers, token ? 4 : 3, hash};
    struct sigv4_scope scope = {timestamp, "us-east-1", "ec2"};
    assert_int_equal(sigv4_signature(&r, &scope, SECRET, claim.signed_headers, expected, &e), 0);
    assert_string_equal(claim.signature, expected);
    free(authorization);
    free(token);
}
