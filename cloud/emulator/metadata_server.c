/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/emulator/metadata_server.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/uv/http_server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_PORT 80
#define BODY_MAX 1024
#define CONNECTIONS_MAX 100

struct metadata_server {
    struct metadata_server_options o;
    struct http_server *http;
    char *url;
};

static void send_reply(struct http_exchange *x, struct metadata_reply *reply)
{
    char ttl[24];
    if (reply->ttl_s > 0) {
        snprintf(ttl, sizeof(ttl), "%lld", (long long)reply->ttl_s);
        http_reply_add_header(x, METADATA_TTL_HEADER, ttl);
    }
    http_reply_bytes(x, reply->status, reply->content_type, buf_str(&reply->body), reply->body.len);
    buf_deinit(&reply->body);
}

static void on_late(void *ctx, struct http_exchange *x)
{
    struct metadata_reply *late = ctx;
    send_reply(x, late);
    free(late);
}

static void on_late_gone(void *ctx, struct http_exchange *x)
{
    struct metadata_reply *late = ctx;
    (void)x;
    buf_deinit(&late->body);
    free(late);
}

static bool take_refusal(struct faults *faults, struct metadata_reply *reply)
{
    struct fault fault;
    int64_t status = 503;
    if (faults_take(faults, FAULT_REFUSE, FAULT_ACTION_METADATA, &fault)) {
        if (str_to_i64(fault.code, 400, 599, "status", &status, NULL) < 0)
            status = 500;
    } else if (!faults_take(faults, FAULT_THROTTLE, FAULT_ACTION_METADATA, &fault)) {
        return false;
    }
    *reply = (struct metadata_reply){0};
    metadata_error((int)status, reply);
    return true;
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    const struct metadata_server *s = ctx;
    struct metadata_reply reply;
    struct fault fault;
    const struct metadata_request request = {.method = r->method,
        .path = r->path,
        .token = http_request_header(x, METADATA_TOKEN_HEADER),
        .ttl = http_request_header(x, METADATA_TTL_HEADER),
        .forwarded_for = http_request_header(x, "X-Forwarded-For")};
    if (!take_refusal(s->o.faults, &reply))
        metadata_answer(&s->o.metadata, &request, s->o.now(s->o.ctx), &reply);
    if (faults_take(s->o.faults, FAULT_SLOW, FAULT_ACTION_METADATA, &fault))
        http_exchange_wait(x, fault.ms, on_late, on_late_gone, mem_dup(&reply, sizeof(reply)));
    else
        send_reply(x, &reply);
}

int metadata_server_start(uv_loop_t *loop, const struct metadata_server_options *o,
    struct metadata_server **ret_server, struct err *e)
{
    struct metadata_server *s = mem_alloc(sizeof(*s));
    s->o = *o;
    random_bytes(s->o.metadata.secret, sizeof(s->o.metadata.secret));
    const struct http_server_options so = {.host = o->host,
        .port = o->port,
        .max_body_bytes = BODY_MAX,
        .max_connections = CONNECTIONS_MAX,
        .handler = on_request,
        .ctx = s};
    int rc = http_server_start(loop, &so, &s->http, e);
    if (rc < 0) {
        free(s);
        return err_wrap(e, "the metadata service of %s", o->metadata.instance->id);
    }
    int port = http_server_port(s->http);
    s->url = port == HTTP_PORT ? mem_printf("http://%s", o->host) : mem_printf("http://%s:%d", o->host, port);
    *ret_server = s;
    return 0;
}

void metadata_server_stop(struct metadata_server *s)
{
    if (!s)
        return;
    http_server_stop(s->http);
    explicit_bzero(s->o.metadata.secret, sizeof(s->o.metadata.secret));
    free(s->url);
    free(s);
}

const char *metadata_server_url(const struct metadata_server *s)
{
    return s->url;
}
