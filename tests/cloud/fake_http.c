/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_http.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct http_call {
    struct link link;
    struct fake_http *f;
    struct timer timer;
    const struct fake_answer *answer; /* NULL if none arrives */
    bool cancelled;
    http_done_fn done;
    void *ctx;
};

static void on_timer(struct timer *t, void *ctx)
{
    struct http_call *call = ctx;
    const struct fake_answer *a = call->answer;
    struct err e;
    (void)t;
    link_remove(&call->link);
    if (call->cancelled) {
        err_set(&e, ERR_CANCELLED, "cancelled");
        call->done(call->ctx, &e, NULL);
    } else if (a->kind != ERR_NONE) {
        err_set(&e, a->kind, "scripted");
        call->done(call->ctx, &e, NULL);
    } else {
        struct http_reply reply = {.status = a->status};
        buf_adds(&reply.body, a->body);
        while (reply.n_headers < FAKE_HEADERS_MAX && a->headers[reply.n_headers]) {
            reply.headers[reply.n_headers] = (char *)a->headers[reply.n_headers];
            reply.n_headers++;
        }
        for (size_t i = 0; i < 4 && call->f->headers[i]; i++)
            reply.headers[reply.n_headers++] = (char *)call->f->headers[i];
        call->done(call->ctx, NULL, &reply);
        buf_deinit(&reply.body);
    }
    free(call);
}

static const struct fake_answer *find_answer(struct fake_http *f, const struct http_request *r)
{
    for (size_t i = 0; i < f->n_routes; i++)
        if (str_eq(f->routes[i].method, r->method) && str_ends(r->url, f->routes[i].path))
            return &f->routes[i].answer;
    if (f->next_script == f->n_script)
        fail_msg("nobody scripted an answer to %s %s", r->method, r->url);
    return &f->script[f->next_script++];
}

static void keep(struct fake_http *f, const struct http_request *r)
{
    struct buf headers = {0};
    assert_true(f->n_requests < FAKE_REQUESTS_MAX);
    struct fake_request *kept = &f->requests[f->n_requests++];
    STR_COPY(kept->method, r->method);
    kept->timeout_ms = r->timeout_ms;
    kept->max_reply_bytes = r->max_reply_bytes;
    assert_true(STR_COPY(kept->url, r->url));
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
        buf_printf(&headers, "%s\n", r->headers[i]);
    kept->headers = mem_strdup(buf_str(&headers));
    buf_deinit(&headers);
    buf_add(&kept->body, r->body, r->body_len);
}

static struct http_call *fake_start(
    struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx)
{
    struct fake_http *f = (struct fake_http *)c;
    assert_true(r->timeout_ms > 0);
    assert_true(r->max_reply_bytes > 0);
    assert_false(r->use_proxy);
    if (!f->keep_none)
        keep(f, r);
    struct http_call *call = mem_alloc(sizeof(*call));
    call->f = f;
    call->done = done;
    call->ctx = ctx;
    timer_init(&call->timer, on_timer, call);
    list_push_back(&f->calls, &call->link);
    if (!f->silent) {
        call->answer = find_answer(f, r);
        timer_start(f->timers, &call->timer, 1);
    }
    return call;
}

static void fake_cancel(struct http_client *c, struct http_call *call)
{
    struct fake_http *f = (struct fake_http *)c;
    f->n_cancelled++;
    call->cancelled = true;
    timer_start(f->timers, &call->timer, 0);
}

void fake_http_init(struct fake_http *f, struct timers *timers)
{
    *f = (struct fake_http){
        .client = {.start = fake_start, .cancel = fake_cancel}, .timers = timers};
}

void fake_http_deinit(struct fake_http *f)
{
    assert_true(list_is_empty(&f->calls));
    for (size_t i = 0; i < f->n_requests; i++) {
        free(f->requests[i].headers);
        buf_deinit(&f->requests[i].body);
    }
    for (size_t i = 0; i < f->n_script; i++)
        free(f->script[i].body);
    for (size_t i = 0; i < f->n_routes; i++)
        free(f->routes[i].answer.body);
}

static void add(struct fake_http *f, struct fake_answer a)
{
    assert_true(f->n_script < FAKE_SCRIPT_MAX);
    f->script[f->n_script++] = a;
}

void fake_http_add(struct fake_http *f, int status, const char *body)
{
    add(f, (struct fake_answer){.status = status, .body = mem_strdup(body)});
}

void fake_http_with(struct fake_http *f, const char *header)
{
    struct fake_answer *last = &f->script[f->n_script - 1];
    size_t n = 0;
    while (last->headers[n])
        n++;
    assert_true(n < FAKE_HEADERS_MAX);
    last->headers[n] = header;
}

void fake_http_add_error(struct fake_http *f, enum err_kind kind)
{
    add(f, (struct fake_answer){.kind = kind});
}

char *fake_read_file(const char *name)
{
    char *path = mem_printf("%s/%s", REPLIES_DIR, name);
    struct buf text = {0};
    struct err e;
    if (fs_read(path, 1 << 20, &text, &e) != 0)
        fail_msg("%s", e.text);
    free(path);
    return buf_take(&text);
}

void fake_http_add_file(struct fake_http *f, int status, const char *name)
{
    add(f, (struct fake_answer){.status = status, .body = fake_read_file(name)});
}

void fake_http_route(
    struct fake_http *f, const char *method, const char *path, int status, const char *body)
{
    struct fake_route *r = NULL;
    for (size_t i = 0; i < f->n_routes && !r; i++)
        if (str_eq(f->routes[i].method, method) && str_eq(f->routes[i].path, path))
            r = &f->routes[i];
    if (!r) {
        assert_true(f->n_routes < sizeof(f->routes) / sizeof(f->routes[0]));
        r = &f->routes[f->n_routes++];
    }
    free(r->answer.body);
    *r = (struct fake_route){.method = method, .path = path};
    r->answer.status = status;
    r->answer.kind = status == 0 ? ERR_TIMEOUT : ERR_NONE;
    r->answer.body = mem_strdup(body);
}

size_t fake_http_count(const struct fake_http *f, const char *method, const char *path)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_requests; i++)
        n += str_eq(f->requests[i].method, method) && str_ends(f->requests[i].url, path);
    return n;
}

bool fake_http_sent(const struct fake_http *f, size_t i, const char *line)
{
    char *whole = mem_printf("%s\n", line);
    const char *at = strstr(f->requests[i].headers, whole);
    bool found = at && (at == f->requests[i].headers || at[-1] == '\n');
    free(whole);
    return found;
}

char *fake_http_header(const struct fake_http *f, size_t i, const char *name)
{
    char *start = mem_printf("%s: ", name);
    const char *at = strstr(f->requests[i].headers, start);
    char *value = at ? mem_strndup(at + strlen(start), strcspn(at + strlen(start), "\n")) : NULL;
    free(start);
    return value;
}
