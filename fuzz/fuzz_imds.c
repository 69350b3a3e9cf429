/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata services of AWS, Azure and Google: a notice reader or a source of role credentials
 * talks to a service that replays the input. The first byte selects: 'c' role credentials, 'g'
 * Google's notices, 'z' Azure's, else AWS's. Each following line is one reply: a digit for the
 * status, then the body; text before the first '|', if any, is the Date header. For Google the body
 * is also its ETag. After the last line every request times out.
 */
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vtimers.h"
#include "cloud/aws/credentials.h"
#include "cloud/notice.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOON_MS 1787400000000
#define BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct service {
    struct http_client client;
    struct timers *timers;
    bool is_google, is_azure;
    const char *at, *end;
};

struct http_call {
    struct service *service;
    struct timer timer;
    bool cancelled;
    http_done_fn done;
    void *ctx;
};

static void on_timer(struct timer *t, void *ctx)
{
    static const int statuses[] = {200, 200, 200, 200, 404, 401, 403, 500, 302, 200};
    struct http_call *call = ctx;
    struct service *s = call->service;
    struct err none = {ERR_TIMEOUT, "no reply"};
    (void)t;
    if (call->cancelled || s->at == s->end) {
        if (call->cancelled)
            none.kind = ERR_CANCELLED;
        call->done(call->ctx, &none, NULL);
    } else {
        struct http_reply reply = {.status = statuses[(unsigned char)*s->at++ % 10]};
        const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
        const char *stop = newline ? newline : s->end;
        const char *bar = memchr(s->at, '|', (size_t)(stop - s->at));
        char *date =
            mem_printf("Date: %.*s", bar ? (int)(bar - s->at < 64 ? bar - s->at : 64) : 0, s->at);
        if (bar) {
            reply.headers[reply.n_headers++] = date;
            s->at = bar + 1;
        }
        buf_add(&reply.body, s->at, (size_t)(stop - s->at));
        s->at = newline ? newline + 1 : s->end;
        char *etag = mem_printf("ETag: %.200s", buf_str(&reply.body)),
             flavor[] = "Metadata-Flavor: Google";
        if (s->is_google) {
            reply.headers[reply.n_headers++] = flavor;
            reply.headers[reply.n_headers++] = etag;
        }
        call->done(call->ctx, NULL, &reply);
        free(etag);
        free(date);
        buf_deinit(&reply.body);
    }
    free(call);
}

static struct http_call *service_start(
    struct http_client *c, const struct http_request *r, http_done_fn done, void *ctx)
{
    struct service *s = (struct service *)c;
    struct http_call *call = mem_alloc(sizeof(*call));
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
        assert(!strpbrk(r->headers[i], "\r\n"));
    assert(!strpbrk(r->url, "\r\n #"));
    const char *query = strchr(r->url, '?');
    assert(!query || s->is_azure ||
           (s->is_google && str_starts(query, "?wait_for_change=true&last_etag=") &&
               !strpbrk(query + 1, "?/%")));
    *call = (struct http_call){.service = s, .done = done, .ctx = ctx};
    timer_init(&call->timer, on_timer, call);
    timer_start(s->timers, &call->timer, 1);
    return call;
}

static void service_cancel(struct http_client *c, struct http_call *call)
{
    struct service *s = (struct service *)c;
    call->cancelled = true;
    timer_start(s->timers, &call->timer, 0);
}

static void on_notice(void *ctx, const struct notice *n)
{
    assert(
        n->kind == NOTICE_REBALANCE || n->kind == NOTICE_RECLAIM || n->kind == NOTICE_MAINTENANCE);
    if (n->kind == NOTICE_RECLAIM) {
        const struct service *s = ctx;
        int64_t left_ms = n->deadline.ms - n->seen.ms;
        int64_t mono_left_ms = n->deadline_mono.ms - clock_mono(s->timers->clock).ms;
        assert(left_ms <= SECONDS_MS(s->is_google ? 3600 : s->is_azure ? 900 : 120));
        assert(mono_left_ms >= 0 && mono_left_ms <= left_ms);
        assert(n->what[0] != '\0');
    }
}

static void on_identity(void *ctx, const struct err *e, const struct notice_identity *id)
{
    (void)ctx;
    assert(e ? e->text[0] != '\0' : strlen(id->instance_id) < sizeof(id->instance_id));
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    int *answers = ctx;
    assert(e ? e->kind != ERR_NONE : c->access_key[0] && c->secret_key[0]);
    (*answers)++;
}

static void ignore_line(void *ctx, enum log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vtimers vt;
    struct err e;
    struct service s = {
        .client = {.start = service_start, .cancel = service_cancel}, .timers = &vt.timers};
    struct aws_credential_options options = {.http = &s.client, .timers = &vt.timers};
    struct notice_reader_options reader_options = {.http = &s.client,
        .timers = &vt.timers,
        .on_notice = on_notice,
        .on_identity = on_identity,
        .ctx = &s};
    struct aws_credential_source *source = NULL;
    struct aws_credentials_wait wait;
    int answers = 0;
    if (size == 0 || size > BYTES_MAX)
        return 0;
    log_set_sink(ignore_line, NULL);
    vtimers_init(&vt, NOON_MS);
    s.at = (const char *)data + 1;
    s.end = (const char *)data + size;
    s.is_google = data[0] == 'g';
    s.is_azure = data[0] == 'z';
    /* Only one of them uses the service. */
    if (data[0] == 'c') {
        int rc = aws_credential_source_create(&options, &source, &e);
        assert(rc == 0);
        (void)rc;
        aws_credentials_get(source, &wait, on_credentials, &answers);
        while (vtimers_run_next(&vt))
            ;
        assert(answers == 1);
    } else {
        struct notice_reader *reader = notice_reader_start(s.is_google  ? "gcp"
                                                           : s.is_azure ? "azure"
                                                                        : "aws",
            &reader_options);
        for (int steps = 0; steps < 10000 && s.at < s.end; steps++)
            vtimers_run_next(&vt);
        notice_reader_stop(reader);
        while (vtimers_run_next(&vt))
            ;
    }
    aws_credential_source_destroy(source);
    vtimers_deinit(&vt);
    return 0;
}
