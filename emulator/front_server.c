/* SPDX-License-Identifier: Apache-2.0
 *
 * A call takes effect in the front first; then its reply may be lost or delayed.
 */
#include "emulator/front_server.h"
#include "base/http_date.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/uv/http_server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_PORT 80
#define METADATA_BODY_MAX 8192
#define API_CONNECTIONS_MAX 1000
#define BYTES_MAX ((size_t)4 << 30) /* of objects in transit, in both directions */
#define METADATA_CONNECTIONS_MAX 100

struct front_server {
    struct front_server_options o;
    struct http_server *http;
    char *url;
    struct list waiting; /* struct waiter */
    unsigned char secret[FRONT_SECRET_BYTES];
};

struct headers {
    struct http_header list[FRONT_HEADERS_MAX];
    size_t n;
};

/* A waiting request. It points into the exchange, which lives until it is answered. */
struct waiter {
    struct link link;
    struct front_server *server;
    struct http_exchange *x;
    struct headers headers;
    struct front_request request;
    char mark[sizeof(((struct front_reply *)0)->mark)];
};

static struct front_site site_of(const struct front_server *s)
{
    return (struct front_site){.region = s->o.region,
        .state = s->o.state,
        .now = s->o.now(s->o.ctx),
        .clock = clock_wall(&clock_system),
        .instance = s->o.instance,
        .secret = s->secret};
}

/* A metadata service dates its replies by the clock that its notices use. */
static struct wall date_of(const struct front_server *s)
{
    return s->o.instance ? region_machine_time(s->o.region, s->o.now(s->o.ctx)) : WALL_NONE;
}

static void forward_request(
    const struct front_server *s, const struct front_request *r, struct front_reply *reply)
{
    const struct front_site site = site_of(s);
    *reply = (struct front_reply){.status = 200, .content_type = "text/plain"};
    if (s->o.instance) {
        s->o.front->metadata(&site, r, reply);
        return;
    }
    region_advance(s->o.region, site.now);
    s->o.front->api(&site, r, reply);
}

/* ---- Replies ---- */

struct answer {
    struct front_reply reply;
    const struct front *front;
    struct wall date; /* of the reply; WALL_NONE for the server's own */
    bool is_dropped;
    enum fault_drop drop;
};

static void send_answer(struct http_exchange *x, struct answer *a)
{
    if (a->is_dropped && a->drop == DROP_CLOSE) {
        http_reply_none(x);
    } else if (a->is_dropped && a->drop == DROP_GARBAGE) {
        http_reply_text(x, 200, a->front->garbage_type, a->front->garbage);
    } else {
        char date[HTTP_DATE_MAX];
        if (wall_is_set(a->date)) {
            http_date_write(a->date, date);
            http_reply_add_header(x, "Date", date);
        }
        for (size_t k = 0; k < a->reply.n_headers; k++)
            http_reply_add_header(x, a->reply.headers[k].name, a->reply.headers[k].value);
        if (a->is_dropped && a->drop == DROP_TORN)
            http_reply_torn(x, a->reply.status, a->reply.content_type, buf_str(&a->reply.body),
                a->reply.body.len, a->reply.body.len / 2);
        else
            http_reply_bytes(x, a->reply.status, a->reply.content_type, buf_str(&a->reply.body),
                a->reply.body.len);
    }
    buf_deinit(&a->reply.body);
}

static void on_late(void *ctx, struct http_exchange *x)
{
    struct answer *a = ctx;
    send_answer(x, a);
    free(a);
}

static void on_late_client_gone(void *ctx, struct http_exchange *x)
{
    struct answer *a = ctx;
    (void)x;
    buf_deinit(&a->reply.body);
    free(a);
}

static void note_call(
    const struct front_server *s, const struct front_reply *reply, const char *fault)
{
    json_t *d = json_object();
    json_object_set_new(d, "action", json_text(reply->action[0] ? reply->action : "?"));
    json_object_set_new(d, "status", json_integer(reply->status));
    json_object_set_new(d, "request_id", json_text(reply->request_id));
    if (fault)
        json_object_set_new(d, "fault", json_string(fault));
    region_journal(s->o.region, s->o.now(s->o.ctx), "call", d);
}

static void drop(const struct front_server *s, const struct fault *fault, struct answer *a)
{
    const struct front_site site = site_of(s);
    a->is_dropped = true;
    a->drop = fault->drop;
    note_call(s, &a->reply, "drop_reply");
    if (fault->drop != DROP_ERROR)
        return;
    buf_clear(&a->reply.body);
    a->reply.n_headers = 0;
    s->o.front->api_error(&site, s->o.front->internal_error, &a->reply);
}

/* The reply of a first API call: recorded in the journal, and possibly lost. */
static void finish_call(const struct front_server *s, struct answer *a)
{
    struct fault fault;
    const char *action = a->reply.action[0] ? a->reply.action : "?";
    log_debug("call", log_s("provider", s->o.front->name), log_s("action", action),
        log_i("status", a->reply.status));
    if (a->reply.is_noted || a->reply.status >= 300)
        note_call(s, &a->reply, NULL);
    if (faults_take(&s->o.region->faults, FAULT_DROP, action, &fault))
        drop(s, &fault, a);
}

/* ---- Waiting requests ---- */

static void waiter_free(struct waiter *w)
{
    link_remove(&w->link);
    free(w);
}

static bool try_again(struct waiter *w)
{
    struct answer a = {.front = w->server->o.front, .date = date_of(w->server)};
    forward_request(w->server, &w->request, &a.reply);
    if (a.reply.wait_ms > 0 && !w->request.is_last) {
        buf_deinit(&a.reply.body);
        return false;
    }
    struct http_exchange *x = w->x;
    waiter_free(w);
    send_answer(x, &a);
    return true;
}

static void on_waited(void *ctx, struct http_exchange *x)
{
    struct waiter *w = ctx;
    (void)x;
    w->request.is_last = true;
    try_again(w);
}

static void on_waiter_gone(void *ctx, struct http_exchange *x)
{
    (void)x;
    waiter_free(ctx);
}

static void park(struct front_server *s, struct http_exchange *x, const struct front_request *r,
    const struct headers *headers, const struct front_reply *reply)
{
    struct waiter *w = mem_alloc(sizeof(*w));
    *w = (struct waiter){.server = s, .x = x, .headers = *headers, .request = *r};
    w->request.headers = w->headers.list;
    w->request.body = NULL;
    w->request.body_len = 0;
    STR_COPY(w->mark, reply->mark);
    w->request.mark = w->mark;
    list_push_back(&s->waiting, &w->link);
    http_exchange_wait(x, reply->wait_ms, on_waited, on_waiter_gone, w);
}

void front_server_wake(struct front_server *s)
{
    if (!s)
        return;
    LIST_FOREACH (&s->waiting, l)
        try_again(LIST_ENTRY(l, struct waiter, link));
}

/* ---- Requests ---- */

static void on_header(void *ctx, const char *name, const char *value)
{
    struct headers *h = ctx;
    if (h->n < FRONT_HEADERS_MAX)
        h->list[h->n++] = (struct http_header){.name = name, .value = value};
}

static bool is_refused(const struct front_server *s, struct front_reply *reply)
{
    struct fault fault;
    int64_t status = 503;
    const char *code =
        s->o.instance ? front_refusal(s->o.region, FAULT_ACTION_METADATA, "503", &fault) : NULL;
    if (!code)
        return false;
    if (str_to_i64(code, 400, 599, "status", &status, NULL) < 0)
        status = 500;
    *reply = (struct front_reply){0};
    s->o.front->metadata_error((int)status, reply);
    return true;
}

/* How long the reply is delayed: by a fault, or because the call has launched machines. */
static int64_t reply_delay_ms(
    const struct front_server *s, const char *action, int64_t launches_before)
{
    const struct region *r = s->o.region;
    struct fault fault;
    if (faults_take(&s->o.region->faults, FAULT_SLOW, action, &fault))
        return fault.ms;
    return r->counts.launches > launches_before ? r->o->launch_delay_ms : 0;
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct front_server *s = ctx;
    struct answer a = {.front = s->o.front, .date = date_of(s)};
    struct headers headers = {0};
    const int64_t launches = s->o.region->counts.launches;
    http_request_each_header(x, on_header, &headers);
    const struct front_request request = {.method = r->method,
        .path = r->path,
        .target = r->raw_target,
        .headers = headers.list,
        .n_headers = headers.n,
        .body = r->body,
        .body_len = r->body_len};
    if (!is_refused(s, &a.reply))
        forward_request(s, &request, &a.reply);
    if (!s->o.instance)
        finish_call(s, &a);
    const char *action = s->o.instance       ? FAULT_ACTION_METADATA
                         : a.reply.action[0] ? a.reply.action
                                             : "?";
    const bool waits = a.reply.wait_ms > 0 && !a.is_dropped;
    const int64_t delay_ms = waits ? 0 : reply_delay_ms(s, action, launches);
    if (waits) {
        park(s, x, &request, &headers, &a.reply);
        buf_deinit(&a.reply.body);
    } else if (delay_ms > 0) {
        http_exchange_wait(x, delay_ms, on_late, on_late_client_gone, mem_dup(&a, sizeof(a)));
    } else {
        send_answer(x, &a);
    }
    s->o.changed(s->o.ctx);
}

/* ---- Start and stop ---- */

int front_server_start(uv_loop_t *loop, const struct front_server_options *o,
    struct front_server **ret_server, struct err *e)
{
    struct front_server *s = mem_alloc(sizeof(*s));
    *s = (struct front_server){.o = *o};
    random_bytes(s->secret, sizeof(s->secret));
    const struct http_server_options so = {.host = o->host,
        .port = o->port,
        .max_body_bytes = o->instance ? METADATA_BODY_MAX : o->front->body_max,
        .limits = {[HTTP_STRANGER] = {.max_connections = o->instance ? METADATA_CONNECTIONS_MAX
                                                                     : API_CONNECTIONS_MAX,
                       .max_bytes = BYTES_MAX}},
        .handler = on_request,
        .ctx = s};
    int rc = http_server_start(loop, &so, &s->http, e);
    if (rc < 0) {
        free(s);
        return o->instance ? err_wrap(e, "the metadata service of %s", o->instance->id)
                           : err_wrap(e, "the API of %s", o->front->name);
    }
    const char *open = strchr(o->host, ':') ? "[" : "", *close = open[0] ? "]" : "";
    int port = http_server_port(s->http);
    s->url = port == HTTP_PORT ? mem_printf("http://%s%s%s", open, o->host, close)
                               : mem_printf("http://%s%s%s:%d", open, o->host, close, port);
    *ret_server = s;
    return 0;
}

void front_server_stop(struct front_server *s)
{
    if (!s)
        return;
    http_server_stop(s->http);
    explicit_bzero(s->secret, sizeof(s->secret));
    free(s->url);
    free(s);
}

const char *front_server_url(const struct front_server *s)
{
    return s->url;
}
