/* SPDX-License-Identifier: Apache-2.0
 *
 * A call as queries to hosts, each its own ssh. See call.h.
 */
#include "cloud/static/call.h"

#include "base/log.h"
#include "base/mem.h"
#include <stdlib.h>

#define RUN_TIMEOUT_MS SECONDS_MS(50) /* a release waits for processes to end */
#define AT_ONCE 16

/* One ssh in progress. It outlives a cancelled call. */
struct query {
    struct link link; /* in call.queries */
    struct static_call *call;
    size_t question;
    struct static_ssh ssh;
    struct run *run;
};

/* ---- queries ---- */

static void drop_questions(struct static_call *c)
{
    for (size_t i = 0; i < c->n_questions; i++)
        buf_wipe(&c->questions[i].request);
    free(c->questions);
    c->questions = NULL;
    c->n_questions = c->n_sent = c->n_answered = 0;
}

/* A silent host is logged once, and once more when it answers again. */
static void note_answer(struct static_host *h, const struct err *e)
{
    if (e->kind != ERR_NONE && !h->is_silent)
        log_warn("a host of a static pool cannot be used; it is left out until it answers",
            log_s("host", h->label), log_err(e));
    else if (e->kind == ERR_NONE && h->is_silent)
        log_info("a host of a static pool answers again", log_s("host", h->label));
    h->is_silent = e->kind != ERR_NONE;
}

static void free_query(struct query *a)
{
    link_remove(&a->link);
    static_ssh_deinit(&a->ssh);
    free(a);
}

static void on_run(void *ctx, const struct err *e, const struct runner_result *r)
{
    struct query *a = ctx;
    struct static_call *c = a->call;
    if (c) {
        struct static_question *q = &c->questions[a->question];
        struct static_host *h = &c->d->hosts[q->host];
        if (e)
            q->e = *e;
        else
            static_parse_reply(r, &q->report, &q->e);
        if (c->is_listing)
            note_answer(h, &q->e);
        if (q->e.kind != ERR_NONE)
            err_wrap(&q->e, "%s", h->label);
        c->n_answered++;
    }
    free_query(a);
    if (c && c->n_answered == c->n_questions)
        c->then(c);
    else if (c)
        static_call_query(c);
}

static void query_host(struct static_call *c, size_t question)
{
    struct static_question *q = &c->questions[question];
    const struct static_host *h = &c->d->hosts[q->host];
    struct query *a = mem_alloc(sizeof(*a));
    a->call = c;
    a->question = question;
    list_push_back(&c->queries, &a->link);
    static_ssh_init(&a->ssh, &c->d->o, h->name, h->port);
    struct runner_command cmd = {.argv = a->ssh.argv,
        .input = buf_str(&q->request),
        .input_len = q->request.len,
        .timeout_ms = RUN_TIMEOUT_MS,
        .max_output_bytes = STATIC_REPLY_MAX};
    a->run = runner_start(c->d->o.runner, &cmd, on_run, a);
}

void static_call_query(struct static_call *c)
{
    for (; c->n_sent < c->n_questions && c->n_sent - c->n_answered < AT_ONCE; c->n_sent++)
        query_host(c, c->n_sent);
}

void static_call_query_all(struct static_call *c, void (*then)(struct static_call *c))
{
    drop_questions(c);
    c->n_questions = c->d->n_hosts;
    c->questions = mem_array(c->n_questions, sizeof(*c->questions));
    for (size_t i = 0; i < c->n_questions; i++) {
        c->questions[i].host = i;
        static_build_list(&c->questions[i].request);
    }
    c->then = then;
    c->is_listing = true;
    static_call_query(c);
}

void static_call_query_one(struct static_call *c, size_t host, const struct buf *request,
    void (*then)(struct static_call *c))
{
    drop_questions(c);
    c->n_questions = 1;
    c->questions = mem_array(1, sizeof(*c->questions));
    c->questions[0].host = host;
    buf_add(&c->questions[0].request, request->data, request->len);
    c->then = then;
    c->is_listing = false;
    static_call_query(c);
}

/* ---- the life of a call ---- */

struct static_call *static_call_new(struct cloud_driver *d)
{
    struct static_call *c = mem_alloc(sizeof(*c));
    c->d = (struct static_driver *)d;
    return c;
}

void static_call_end_claiming(struct static_call *c)
{
    if (c->is_claiming && c->base.owner)
        c->d->hosts[c->at].is_claiming = false;
    c->is_claiming = false;
}

void static_call_deinit(struct cloud_call *base)
{
    struct static_call *c = (struct static_call *)base;
    LIST_FOREACH (&c->queries, l) {
        struct query *a = LIST_ENTRY(l, struct query, link);
        link_remove(&a->link);
        a->call = NULL;
        runner_cancel(c->d->o.runner, a->run);
    }
    static_call_end_claiming(c);
    drop_questions(c);
    buf_wipe(&c->claim);
    free(c->is_free);
}

void static_call_no_reply(struct cloud_call *base, const struct http_reply *reply)
{
    (void)base, (void)reply;
}
