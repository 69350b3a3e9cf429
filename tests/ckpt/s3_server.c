/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/s3_server.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "cloud/scoped.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 20000

static int port_of(const char *url)
{
    return atoi(strrchr(url, ':') + 1);
}

static void on_stop(uv_async_t *a)
{
    struct s3_server *s = a->data;
    emulator_stop(&s->emulator);
    uv_stop(&s->loop);
}

static void *run(void *ctx)
{
    struct s3_server *s = ctx;
    uv_run(&s->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* No new credentials: only those that the test set. */
static void on_want(void *ctx, enum store_keys_kind kind)
{
    assert_int_equal(kind, STORE_KEYS_AWS);
    atomic_fetch_add(&((struct s3_server *)ctx)->n_wanted, 1);
}

void s3_server_start(struct s3_server *s, const char *s3)
{
    struct err e;
    memset(s, 0, sizeof(*s));
    char *text = mem_printf("keys: [{access_key: %s, secret_key: %s}]\n"
                            "pools: [{zone: us-east-1a, type: g6.xlarge, spot: {capacity: 1}}]\n"
                            "min_session_s: 1\ns3: {buckets: [jobs]%s%s}\n",
        S3_SERVER_ACCESS, S3_SERVER_SECRET, s3[0] ? ", " : "", s3);
    OK(config_parse("s3.yaml", text, strlen(text), &s->config, &e));
    free(text);
    uv_loop_init(&s->loop);
    OK(emulator_start(&s->emulator, &s->loop, &s->config, &e));
    s->port = port_of(front_server_url(s->emulator.providers[0].side));
    s->api_port = port_of(front_server_url(s->emulator.providers[0].api));
    s->control_port = http_server_port(s->emulator.control);
    s->net = store_net_create(on_want, s);
    s3_server_keys(s, S3_SERVER_ACCESS, S3_SERVER_SECRET);
    uv_async_init(&s->loop, &s->stop, on_stop);
    s->stop.data = s;
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

void s3_server_stop(struct s3_server *s)
{
    uv_async_send(&s->stop);
    pthread_join(s->thread, NULL);
    store_net_destroy(s->net);
    emulator_deinit(&s->emulator);
    uv_loop_finish(&s->loop);
    config_deinit(&s->config);
}

const char *s3_server_url(const struct s3_server *s, const char *prefix, const char *more)
{
    static char url[512];
    snprintf(
        url, sizeof(url), "s3://jobs/%s?endpoint=http://127.0.0.1:%d%s", prefix, s->port, more);
    return url;
}

void s3_server_keys(struct s3_server *s, const char *access, const char *secret)
{
    struct store_keys k = {.expires = WALL_NONE};
    STR_COPY(k.access_key, access);
    STR_COPY(k.secret_key, secret);
    store_auth_set(store_net_auth(s->net, STORE_KEYS_AWS), &k);
}

static void on_scoped(void *ctx, const struct err *e, const struct scoped_credentials *c)
{
    struct store_keys *k = ctx;
    if (e)
        fail_msg("%s", e->text);
    k->expires.ms = clock_wall(&clock_system).ms + c->left_ms;
    STR_COPY(k->access_key, c->access_key);
    STR_COPY(k->secret_key, c->secret_key);
    STR_COPY(k->token, c->token);
}

void s3_server_assume(
    struct s3_server *s, const char *prefix, int life_s, struct store_keys *ret_keys)
{
    uv_loop_t loop;
    struct scoped *scoped;
    struct err e;
    char sts[64];
    uv_loop_init(&loop);
    snprintf(sts, sizeof(sts), "http://127.0.0.1:%d", s->api_port);
    setenv("AWS_ACCESS_KEY_ID", S3_SERVER_ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", S3_SERVER_SECRET, 1);
    const struct scoped_options o = {.kind = SCOPED_AWS,
        .bucket = "jobs",
        .life_ms = SECONDS_MS(life_s),
        .sts_url = sts,
        .region = "us-east-1",
        .role_arn = "arn:aws:iam::111122223333:role/belay-jobs",
        .http = uv_http_client_create(&loop),
        .timers = uv_timers_create(&loop)};
    OK(scoped_create(&o, &scoped, &e));
    *ret_keys = (struct store_keys){0};
    scoped_get(scoped, prefix, "belay-test", on_scoped, ret_keys);
    while (!ret_keys->token[0])
        uv_run(&loop, UV_RUN_ONCE);
    scoped_destroy(scoped);
    uv_http_client_destroy(o.http);
    uv_timers_destroy(o.timers);
    uv_loop_finish(&loop);
}

static void control(
    struct s3_server *s, const char *method, const char *path, const char *body, struct buf *ret)
{
    char url[128];
    struct http_reply reply;
    struct err e = {0};
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", s->control_port, path);
    const struct http_request r = {.method = method,
        .url = url,
        .body = body,
        .body_len = strlen(body),
        .timeout_ms = PATIENCE_MS,
        .max_reply_bytes = 1 << 20};
    OK(http_blocking_run(store_net_http(s->net), &r, NULL, &reply, &e));
    if (reply.status != 200)
        print_error("%s %s: %s\n", method, body, buf_str(&reply.body));
    assert_int_equal(reply.status, 200);
    *ret = reply.body;
    reply.body = (struct buf){0};
    http_reply_deinit(&reply);
}

void s3_server_event(struct s3_server *s, const char *json)
{
    struct buf reply;
    control(s, "POST", "/events", json, &reply);
    buf_deinit(&reply);
}

int64_t s3_server_count(struct s3_server *s, const char *what)
{
    struct buf reply;
    struct err e;
    json_t *root;
    control(s, "GET", "/state", "", &reply);
    OK(json_parse(buf_str(&reply), reply.len, 1 << 20, &root, &e));
    const json_t *aws = json_object_get(json_object_get(root, "providers"), "aws");
    const json_t *bucket = json_array_get(json_object_get(aws, "resources"), 0);
    assert_string_equal(json_string_value(json_object_get(bucket, "id")), "jobs");
    int64_t n = json_integer_value(json_object_get(bucket, what));
    json_decref(root);
    buf_deinit(&reply);
    return n;
}
