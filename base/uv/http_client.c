/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client: curl's multi interface driven by uv_poll (sockets) and one timer. A call ends in
 * one place, on_end, an iteration of the loop after its outcome is known, so that done() never runs
 * inside start, cancel or curl:
 *
 *     UNDER_WAY --(curl is done | deadline | cancel | refused at start)--> ENDED
 *     ENDED --(next iteration of the loop)--> done(), freed
 *
 * The deadline of the whole request is ours: curl's own clock does not run for a call that waits
 * for a free connection.
 */
#include "base/list.h"
#include "base/mem.h"
#include "base/net/http_curl.h"
#include "base/uv/http_client.h"
#include "base/uv/timers.h"
#include <assert.h>
#include <stdlib.h>

#define CONNECTIONS_PER_HOST 32

struct uv_http_client {
    struct http_client api; /* first: a struct http_client * is one of these */
    uv_loop_t *loop;
    CURLM *multi;
    struct timers *timers;
    struct timer curl_timer;
    struct list calls;
    bool is_closing;
};

struct http_call {
    struct link link; /* in client.calls */
    struct uv_http_client *client;
    struct http_curl curl;
    bool is_in_multi, has_ended;
    struct err error; /* ERR_NONE: the reply is good */
    struct timer deadline, end;
    int64_t timeout_ms;
    http_done_fn done;
    void *ctx;
};

/* ---- The end of a call ---- */

static void call_finish(struct http_call *call)
{
    timer_stop(call->client->timers, &call->end);
    link_remove(&call->link);
    curl_easy_cleanup(call->curl.easy); /* before done, which may destroy the client */
    call->curl.easy = NULL;
    bool is_error = call->error.kind != ERR_NONE;
    call->done(call->ctx, is_error ? &call->error : NULL, is_error ? NULL : &call->curl.reply);
    http_curl_deinit(&call->curl);
    free(call);
}

static void on_end(struct timer *t, void *ctx)
{
    (void)t;
    call_finish(ctx);
}

/* Ends the call with call->error as its outcome. Must not be called from curl's callbacks. */
static void call_end(struct http_call *call)
{
    struct uv_http_client *c = call->client;
    assert(!call->has_ended);
    call->has_ended = true;
    timer_stop(c->timers, &call->deadline);
    if (call->is_in_multi)
        curl_multi_remove_handle(c->multi, call->curl.easy);
    call->is_in_multi = false;
    timer_start(c->timers, &call->end, 0);
}

static void on_deadline(struct timer *t, void *ctx)
{
    (void)t;
    struct http_call *call = ctx;
    err_set(&call->error, ERR_TIMEOUT, "%s: no complete reply within %lld ms", call->curl.label,
        (long long)call->timeout_ms);
    call_end(call);
}

static void on_cancel(struct http_client *api, struct http_call *call)
{
    (void)api;
    if (call->has_ended)
        return;
    err_set(&call->error, ERR_CANCELLED, "%s: cancelled", call->curl.label);
    call_end(call);
}

/* ---- curl and the loop ---- */

static void collect_done(struct uv_http_client *c)
{
    int n_left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &n_left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        struct http_call *call = NULL;
        CURLcode code = m->data.result; /* removing the handle frees m */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
        http_curl_result(&call->curl, code, &call->error);
        call_end(call);
    }
}

static void drive(struct uv_http_client *c, curl_socket_t fd, int what)
{
    int n_running;
    curl_multi_socket_action(c->multi, fd, what, &n_running);
    collect_done(c);
}

static void on_curl_timer(struct timer *t, void *ctx)
{
    (void)t;
    drive(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int on_set_timer(CURLM *multi, long delay_ms, void *ctx)
{
    (void)multi;
    struct uv_http_client *c = ctx;
    if (c->is_closing || delay_ms < 0)
        timer_stop(c->timers, &c->curl_timer);
    else
        timer_start(c->timers, &c->curl_timer, delay_ms);
    return 0;
}

struct watched {
    uv_poll_t poll;
    struct uv_http_client *client;
    curl_socket_t fd;
    int events;
};

/* libuv stops watching a socket in error. curl then finds the error itself, and first reads the
 * data that had arrived: a server that refuses a long body may answer and close the connection. */
static void on_poll(uv_poll_t *h, int status, int events)
{
    struct watched *w = h->data;
    if (status < 0) {
        events = UV_READABLE | UV_WRITABLE;
        uv_poll_start(h, w->events, on_poll);
    }
    drive(w->client, w->fd,
        (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
            (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0));
}

static void on_watched_closed(uv_handle_t *h)
{
    free(h->data);
}

static struct watched *watch(struct uv_http_client *c, curl_socket_t fd)
{
    struct watched *w = mem_alloc(sizeof(*w));
    *w = (struct watched){.client = c, .fd = fd, .poll = {.data = w}};
    int rc = uv_poll_init_socket(c->loop, &w->poll, fd);
    assert(rc == 0); /* a socket that curl has just opened */
    (void)rc;
    curl_multi_assign(c->multi, fd, w);
    return w;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    (void)easy;
    struct watched *w = socket_ctx;
    if (what == CURL_POLL_REMOVE) {
        if (w)
            uv_close((uv_handle_t *)&w->poll, on_watched_closed);
        curl_multi_assign(((struct uv_http_client *)ctx)->multi, fd, NULL);
        return 0;
    }
    if (!w)
        w = watch(ctx, fd);
    w->events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    uv_poll_start(&w->poll, w->events, on_poll);
    return 0;
}

/* ---- Start ---- */

static struct http_call *on_start(
    struct http_client *api, const struct http_request *r, http_done_fn done, void *ctx)
{
    struct uv_http_client *c = (struct uv_http_client *)api;
    struct http_call *call = mem_alloc(sizeof(*call));
    call->client = c;
    call->done = done;
    call->ctx = ctx;
    call->timeout_ms = r->timeout_ms;
    timer_init(&call->deadline, on_deadline, call);
    timer_init(&call->end, on_end, call);
    list_push_back(&c->calls, &call->link);
    if (http_curl_init(&call->curl, r, &call->error) < 0) {
        call_end(call);
        return call;
    }
    curl_easy_setopt(call->curl.easy, CURLOPT_PRIVATE, call);
    timer_start(c->timers, &call->deadline, r->timeout_ms);
    CURLMcode rc = curl_multi_add_handle(c->multi, call->curl.easy);
    assert(rc == CURLM_OK);
    (void)rc;
    call->is_in_multi = true;
    return call;
}

struct http_client *uv_http_client_create(uv_loop_t *loop)
{
    struct uv_http_client *c = mem_alloc(sizeof(*c));
    c->api = (struct http_client){.start = on_start, .cancel = on_cancel};
    c->loop = loop;
    c->timers = uv_timers_create(loop);
    timer_init(&c->curl_timer, on_curl_timer, c);
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT);
    c->multi = rc == CURLE_OK ? curl_multi_init() : NULL;
    assert(c->multi); /* out of memory, or a broken libcurl */
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_set_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS_PER_HOST);
    return &c->api;
}

void uv_http_client_limit(struct http_client *api, int max_connections)
{
    struct uv_http_client *c = (struct uv_http_client *)api;
    curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)max_connections);
}

void uv_http_client_destroy(struct http_client *api)
{
    struct uv_http_client *c = (struct uv_http_client *)api;
    if (!c)
        return;
    assert(!c->is_closing);
    c->is_closing = true;
    for (struct link *l; (l = list_first(&c->calls));) {
        struct http_call *call = LIST_ENTRY(l, struct http_call, link);
        on_cancel(api, call);
        call_finish(call);
    }
    curl_multi_cleanup(c->multi);
    curl_global_cleanup();
    uv_timers_destroy(c->timers);
    free(c);
}
