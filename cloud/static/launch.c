/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching:
 *
 *   query all hosts --- one has the token ---------------------------> that one
 *      |     \--- one that may have it does not answer --------------> UNAVAILABLE
 *      |      \--- none is free -------------------------------------> NO_CAPACITY
 *      v
 *   claim a free one --- ours ---------------------------------------> new
 *      |     \--- no complete answer: in doubt ----------------------> UNAVAILABLE
 *      +--- taken meanwhile, or unable: the next free one
 *
 * Invariants:
 *   1. A claim without a complete answer is in doubt: until its host has answered, nothing is
 *      claimed elsewhere under its token. A host handles requests in order, so its next answer
 *      decides.
 *   2. Free hosts are tried in an order derived from the token. So a restarted belayd, which has
 *      lost the doubt, starts with the same host.
 */
#include "cloud/static/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

struct doubt {
    struct link link;
    char token[CLOUD_TOKEN_MAX];
    size_t host;
};

/* ---- doubts ---- */

static struct doubt *find_doubt(const struct static_driver *d, const char *token)
{
    LIST_FOREACH (&d->doubts, l) {
        struct doubt *x = LIST_ENTRY(l, struct doubt, link);
        if (str_eq(x->token, token))
            return x;
    }
    return NULL;
}

static void add_doubt(struct static_call *c)
{
    struct doubt *x = find_doubt(c->d, c->token);
    if (!x) {
        x = mem_alloc(sizeof(*x));
        STR_COPY(x->token, c->token);
        list_push_back(&c->d->doubts, &x->link);
    }
    x->host = c->at;
}

static void drop_doubt(struct static_call *c)
{
    struct doubt *x = find_doubt(c->d, c->token);
    if (x)
        link_remove(&x->link);
    free(x);
}

void static_forget_doubts(struct static_driver *d)
{
    struct link *l;
    while ((l = list_pop(&d->doubts)))
        free(LIST_ENTRY(l, struct doubt, link));
}

/* ---- launch ---- */

static void try_next(struct static_call *c);

static bool is_ours(const struct static_call *c, const struct static_claim *x)
{
    return x->id[0] && str_eq(x->token, c->token) && str_eq(x->cluster, c->cluster);
}

static void finish_launch(struct static_call *c, size_t host, const struct static_claim *x)
{
    drop_doubt(c);
    static_call_end_claiming(c);
    static_to_instance(c->d->hosts[host].label, x, &c->base.instance);
    cloud_call_finish(&c->base, NULL);
}

/* The host has finished and reports that it has no claim of ours. */
static bool is_definite(enum err_kind k)
{
    return k == ERR_NO_SPACE || k == ERR_IO || k == ERR_DENIED || k == ERR_CONFIG ||
           k == ERR_CORRUPT || k == ERR_NOT_FOUND || k == ERR_CONFLICT;
}

static void on_claimed(struct static_call *c)
{
    const struct static_question *q = &c->questions[0];
    struct err e = q->e;
    if (e.kind == ERR_NONE && is_ours(c, &q->report.claim)) {
        finish_launch(c, c->at, &q->report.claim);
    } else if (e.kind == ERR_NONE || is_definite(e.kind)) {
        drop_doubt(c);
        static_call_end_claiming(c);
        c->is_free[c->at] = false;
        try_next(c);
    } else {
        e.kind = ERR_UNAVAILABLE;
        err_wrap(&e, "it is unknown whether the host accepted the claim");
        cloud_call_finish(&c->base, &e);
    }
}

static void claim(struct static_call *c, size_t host)
{
    c->at = host;
    c->is_claiming = c->d->hosts[host].is_claiming = true;
    add_doubt(c);
    static_call_query_one(c, host, &c->claim, on_claimed);
}

/* FNV-1a */
static size_t first_host(const struct static_call *c)
{
    uint64_t h = 0xCBF29CE484222325;
    for (const char *p = c->token; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001B3;
    return (size_t)(h % c->d->n_hosts);
}

static void try_next(struct static_call *c)
{
    size_t first = first_host(c), silent = 0;
    struct err e;
    for (size_t i = 0; i < c->d->n_hosts; i++) {
        size_t k = (first + i) % c->d->n_hosts;
        silent += c->d->hosts[k].is_silent;
        if (c->is_free[k] && !c->d->hosts[k].is_claiming) {
            claim(c, k);
            return;
        }
    }
    err_set(&e, ERR_NO_CAPACITY, "none of the pool's %zu hosts is free (%zu cannot be used)",
        c->d->n_hosts, silent);
    cloud_call_finish(&c->base, &e);
}

/* True if the host that may have the token has already decided, or was asked to. */
static bool decide_doubt(struct static_call *c)
{
    const struct doubt *x = find_doubt(c->d, c->token);
    if (!x)
        return false;
    const struct static_question *q = &c->questions[x->host];
    struct err e = q->e;
    size_t host = x->host;
    if (e.kind != ERR_NONE || c->d->hosts[host].is_claiming) {
        err_set(&e, ERR_UNAVAILABLE, "it is unknown whether %s accepted the claim: %s",
            c->d->hosts[host].label, e.kind != ERR_NONE ? e.text : "it is being asked");
        cloud_call_finish(&c->base, &e);
        return true;
    }
    if (q->report.claim.id[0]) {
        drop_doubt(c); /* taken by another claim */
        return false;
    }
    claim(c, host);
    return true;
}

static void on_queried(struct static_call *c)
{
    size_t ended = c->n_questions;
    c->is_free = mem_array(c->d->n_hosts, sizeof(*c->is_free));
    for (size_t i = 0; i < c->n_questions; i++) {
        const struct static_question *q = &c->questions[i];
        if (q->e.kind != ERR_NONE)
            continue;
        if (is_ours(c, &q->report.claim) && q->report.claim.state == STATIC_STARTING &&
            !c->d->hosts[i].is_claiming) {
            claim(c, i); /* started, but interrupted: repeat the claim */
            return;
        }
        if (is_ours(c, &q->report.claim)) {
            finish_launch(c, i, &q->report.claim);
            return;
        }
        if (is_ours(c, &q->report.last))
            ended = i;
        c->is_free[i] = !q->report.claim.id[0];
    }
    if (ended < c->n_questions)
        finish_launch(c, ended, &c->questions[ended].report.last);
    else if (!decide_doubt(c))
        try_next(c);
}

static void step_launch(struct cloud_call *base)
{
    static_call_query_all((struct static_call *)base, on_queried);
}

void static_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "launch", step_launch, static_call_no_reply, static_call_deinit};
    struct static_call *c = static_call_new(d);
    STR_COPY(c->token, l->token);
    STR_COPY(c->cluster, l->cluster);
    static_build_claim(l, &c->claim, &c->base.refused);
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}
