/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/lambda_bench.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/control.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char configuration[] =
    "providers:\n  lambda:\n"
    "    quota: 3\n"
    "    api_keys: [first, second]\n"
    "    ssh_keys: [ops]\n"
    "    images: [stack]\n"
    "    file_systems: {data: us-west-2}\n"
    "    pools:\n"
    "      - {zone: us-west-2, type: gpu_1x_a10, on_demand: {capacity: 2}}\n"
    "      - {zone: us-east-1, type: gpu_1x_a10, on_demand: {capacity: 0}}\n"
    "      - {zone: us-west-2, type: gpu_8x_h100_sxm5}\n";

static struct wall now(const struct lambda_bench *b)
{
    return clock_wall(&b->vt.clock);
}

static const struct front *front(const struct lambda_bench *b)
{
    return b->config.providers[0].front;
}

static void ask(struct lambda_bench *b, const struct front_request *r, struct front_reply *reply)
{
    const struct front_site site = {
        .region = &b->region, .state = b->cloud, .now = now(b), .clock = now(b)};
    *reply = (struct front_reply){.status = 200};
    region_advance(&b->region, site.now);
    front(b)->api(&site, r, reply);
}

/* ---- The client ---- */

struct http_call {
    struct lambda_bench *b;
    struct timer timer;
    struct front_reply reply;
    bool is_closed, is_cancelled;
    http_done_fn done;
    void *ctx;
};

static void on_answered(struct timer *t, void *ctx)
{
    struct http_call *call = ctx;
    struct http_reply reply = {.status = call->reply.status, .body = call->reply.body};
    struct err e;
    (void)t;
    if (call->is_cancelled)
        err_set(&e, ERR_CANCELLED, "cancelled");
    else if (call->is_closed)
        err_set(&e, ERR_UNAVAILABLE, "the connection was closed");
    if (call->is_cancelled || call->is_closed)
        call->done(call->ctx, &e, NULL);
    else
        call->done(call->ctx, NULL, &reply);
    buf_deinit(&call->reply.body);
    free(call);
}

/* Like front_server.c. */
static void drop(struct http_call *call)
{
    struct fault fault;
    const struct front_site site = {.region = &call->b->region, .state = call->b->cloud};
    if (!faults_take(&call->b->region.faults, FAULT_DROP, call->reply.action, &fault))
        return;
    call->is_closed = fault.drop == DROP_CLOSE;
    buf_clear(&call->reply.body);
    call->reply.status = 200;
    if (fault.drop == DROP_ERROR)
        front(call->b)->api_error(&site, front(call->b)->internal_error, &call->reply);
    else
        buf_adds(&call->reply.body, front(call->b)->garbage);
}

static struct http_call *start(
    struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx)
{
    struct lambda_bench *b = (struct lambda_bench *)c;
    struct http_header headers[HTTP_HEADERS_MAX];
    char *lines[HTTP_HEADERS_MAX];
    size_t n = 0;
    assert_true(str_starts(r->url, BENCH_ENDPOINT "/"));
    for (; n < HTTP_HEADERS_MAX && r->headers[n]; n++) {
        lines[n] = mem_strdup(r->headers[n]);
        char *colon = strstr(lines[n], ": ");
        assert_non_null(colon);
        *colon = '\0';
        headers[n] = (struct http_header){.name = lines[n], .value = colon + 2};
    }
    const char *path = r->url + strlen(BENCH_ENDPOINT);
    const struct front_request request = {.method = r->method,
        .path = path,
        .target = path,
        .headers = headers,
        .n_headers = n,
        .body = r->body,
        .body_len = r->body_len};
    struct http_call *call = mem_alloc(sizeof(*call));
    *call = (struct http_call){.b = b, .done = done, .ctx = ctx};
    ask(b, &request, &call->reply);
    b->n_calls++;
    b->n_throttled += call->reply.status == 429;
    drop(call);
    while (n > 0)
        free(lines[--n]);
    timer_init(&call->timer, on_answered, call);
    timer_start(&b->vt.timers, &call->timer, 1);
    return call;
}

static void cancel(struct http_client *c, struct http_call *call)
{
    struct lambda_bench *b = (struct lambda_bench *)c;
    call->is_cancelled = true;
    timer_start(&b->vt.timers, &call->timer, 0);
}

/* ---- The bench ---- */

void bench_start(struct lambda_bench *b)
{
    struct err e;
    void *state = NULL;
    log_set_level(LOG_ERROR);
    *b = (struct lambda_bench){
        .http = {.start = start, .cancel = cancel}, .authorization = "Bearer first"};
    vtimers_init(&b->vt, BENCH_START_MS);
    if (config_parse("emulator.yaml", configuration, strlen(configuration), &b->config, &e) < 0)
        fail_msg("%s", e.text);
    struct provider_config *p = &b->config.providers[0];
    region_init(&b->region, &p->region, &b->journal, p->pools, p->n_pools, NULL, NULL, now(b));
    p->pools = NULL;
    p->n_pools = 0;
    b->setup =
        (struct front_setup){.region = &b->region, .options = p->options, .dir = "/nonexistent"};
    if (p->front->open(&b->setup, &state, &e) < 0)
        fail_msg("%s", e.text);
    b->cloud = state;
}

void bench_stop(struct lambda_bench *b)
{
    front_answer_clear(&b->last);
    region_deinit(&b->region);
    journal_deinit(&b->journal);
    front(b)->close(b->cloud);
    config_deinit(&b->config);
    vtimers_deinit(&b->vt);
}

void bench_advance(struct lambda_bench *b, int64_t ms)
{
    vtimers_advance(&b->vt, ms);
    region_advance(&b->region, now(b));
}

void bench_lift_limits(struct lambda_bench *b)
{
    b->cloud->request_every_ms = b->cloud->launch_every_ms = 0;
}

void bench_event(struct lambda_bench *b, const char *json)
{
    struct region *region = &b->region;
    json_t *reply = NULL;
    struct err e;
    if (control_events(&region, 1, json, strlen(json), now(b), &reply, &e) < 0)
        fail_msg("%s: %s", json, e.text);
    json_decref(reply);
}

int bench_call(struct lambda_bench *b, const char *method, const char *target, const char *body)
{
    char path[1024];
    const struct http_header headers[] = {
        {"Host", "127.0.0.1:1"}, {"authorization", b->authorization}};
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(target, "?"), target);
    const struct front_request r = {.method = method,
        .path = path,
        .target = target,
        .headers = headers,
        .n_headers = b->authorization ? 2 : 1,
        .body = body ? body : "",
        .body_len = body ? strlen(body) : 0};
    front_answer_clear(&b->last);
    ask(b, &r, &b->last.reply);
    front_answer_parse(&b->last, LAMBDA_CLOUD_BODY_MAX);
    return b->last.reply.status;
}

void bench_expect(struct lambda_bench *b, const char *method, const char *target, const char *body,
    int status, const char *text)
{
    bench_call(b, method, target, body);
    front_answer_expect(&b->last, method, target, body, status, text);
}

const char *bench_text(const struct lambda_bench *b, const char *path)
{
    return front_answer_text(&b->last, path);
}

const char *bench_body(const char *more)
{
    static char text[8192];
    snprintf(text, sizeof(text),
        "{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
        "\"ops\"]%s}",
        more);
    return text;
}

struct instance *bench_run(struct lambda_bench *b, const char *more)
{
    bench_expect(b, "POST", BENCH_LAUNCH, bench_body(more), 200, "instance_ids");
    bench_advance(b, BENCH_BOOT_MS);
    struct instance *i = b->region.instances[b->region.n_instances - 1];
    assert_int_equal(i->state, INSTANCE_RUNNING);
    return i;
}
