/* SPDX-License-Identifier: Apache-2.0
 *
 * See sweeper.h. The thread reads what its job holds and nothing else, so a sweeper can be destroyed meanwhile.
 */
#include "scheduler/sweeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/s3.h"
#include "ckpt/store_net.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"
#include <stdlib.h>

#define LIMIT_MS SECONDS_MS(3600) /* then it is interrupted, and tried again later */

struct sweep {
    struct sweeper *sweeper; /* NULL: it was destroyed */
    char url[1024], cluster[CORE_NAME_MAX];
    struct store_net *net; /* NULL: of this machine */
    struct ckpt_crypt crypt;
    int64_t job;
    enum leftover_keep keep;
    atomic_int cancel;
    int rc;
    int64_t kept_bytes;
    struct err e;
    cleaner_done_fn done;
    void *ctx;
};

struct sweeper {
    struct cleaner_port port;
    struct sweeper_options o;
    struct aws_credential_source *source; /* NULL: not needed yet */
    struct aws_credentials_wait wait;
    enum store_keys_kind kind; /* of the store's credentials, if it is over a network */
    struct bearer *bearer;     /* instead of source */
    struct sweep *now;         /* or NULL */
    bool on_thread;            /* it is */
    struct timer limit;
};

/* ---- on the thread ---- */

static int clean(const struct ckpt_job *j, struct sweep *s, struct err *e)
{
    static const int newest[] = {
        [LEFTOVER_KEEP_ALL] = CKPT_KEEP_ALL, [LEFTOVER_KEEP_LAST] = 1, [LEFTOVER_KEEP_NONE] = 0};
    int rc = ckpt_fence(j, CKPT_CLOSED, e);
    return rc ? rc : ckpt_clean(j, CKPT_CLOSED, (struct ckpt_keep){.newest = newest[s->keep]}, &s->cancel, &s->kept_bytes, e);
}

static void on_thread(void *ctx)
{
    struct sweep *s = ctx;
    struct ckpt_job j = {.cluster = s->cluster, .job = s->job, .crypt = &s->crypt};
    if (s->rc)
        return;
    s->rc = store_open(s->url, &(struct store_options){.net = s->net, .cancel = &s->cancel}, &j.store, &s->e);
    if (s->rc)
        return;
    s->rc = clean(&j, s, &s->e);
    store_close(j.store);
}

/* ---- on the loop ---- */

static void sweep_free(struct sweep *s)
{
    store_net_destroy(s->net);
    crypt_wipe(&s->crypt);
    free(s);
}

static void finish(struct sweep *s)
{
    struct sweeper *w = s->sweeper;
    if (w) {
        w->now = NULL;
        w->on_thread = false;
        timer_stop(w->o.timers, &w->limit);
        if (s->rc == ERR_DENIED && w->source)
            aws_credentials_refused(w->source); /* the next try reads them anew */
        else if (s->rc == ERR_DENIED && w->bearer)
            bearer_refused(w->bearer);
        s->done(s->ctx, s->kept_bytes, s->rc ? &s->e : NULL);
    }
    sweep_free(s);
}

static void on_done(void *ctx)
{
    finish(ctx);
}

static void on_limit(struct timer *t, void *ctx)
{
    struct sweeper *w = ctx;
    (void)t;
    if (w->now)
        atomic_store(&w->now->cancel, 1);
}

static void begin(struct sweeper *w)
{
    w->on_thread = true;
    timer_start(w->o.timers, &w->limit, LIMIT_MS);
    uv_run_work(w->o.loop, on_thread, on_done, w->now);
}

static void give(struct sweeper *w, struct store_keys *k)
{
    store_auth_set(store_net_auth(w->now->net, k->kind), k);
    store_keys_wipe(k);
    begin(w);
}

static void lack(struct sweeper *w, const struct err *e)
{
    struct sweep *s = w->now;
    s->e = *e;
    s->rc = err_wrap(&s->e, "credentials for the store");
    finish(s);
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct sweeper *w = ctx;
    if (e) {
        lack(w, e);
        return;
    }
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.token, c->session_token);
    give(w, &k);
}

static void on_token(void *ctx, const struct err *e, const char *token, int64_t left_ms)
{
    struct sweeper *w = ctx;
    struct store_keys k;
    struct err bad;
    if (!e && store_keys_of_token(w->kind, token, left_ms, &k, &bad) != 0)
        e = &bad;
    if (e)
        lack(w, e);
    else
        give(w, &k);
}

static int ask_aws(struct sweeper *w, struct err *e)
{
    int rc = 0;
    if (!w->source) {
        struct aws_credential_options o = {.http = w->o.http, .timers = w->o.timers};
        aws_environment_read(&o.env);
        rc = aws_credential_source_create(&o, &w->source, e);
    }
    if (rc == 0)
        aws_credentials_get(w->source, &w->wait, on_credentials, w);
    return rc;
}

static int ask_bearer(struct sweeper *w, struct err *e)
{
    const struct bearer_options o = {
        .is_azure = w->kind == STORE_KEYS_AZURE, .http = w->o.http, .timers = w->o.timers};
    int rc = w->bearer ? 0 : bearer_create(&o, &w->bearer, e);
    if (rc == 0)
        bearer_get(w->bearer, on_token, w);
    return rc;
}

static void start(
    struct cleaner_port *port, int64_t job, enum leftover_keep keep, cleaner_done_fn done, void *ctx)
{
    struct sweeper *w = (struct sweeper *)((char *)port - offsetof(struct sweeper, port));
    struct sweep *s = mem_alloc(sizeof(*s));
    s->sweeper = w;
    STR_COPY(s->url, w->o.store);
    STR_COPY(s->cluster, w->o.cluster);
    s->job = job;
    s->keep = keep;
    if (w->o.master)
        master_job_crypt(w->o.master, job, &s->crypt);
    s->done = done;
    s->ctx = ctx;
    w->now = s;
    if (s3_place_is_one(s->url, &w->kind)) {
        s->net = store_net_create(NULL, NULL);
        s->rc = (w->kind == STORE_KEYS_AWS ? ask_aws : ask_bearer)(w, &s->e);
    }
    if (s->rc || !s->net) /* what is wrong already is said later, too */
        begin(w);
}

/* ---- life ---- */

struct sweeper *sweeper_create(const struct sweeper_options *o)
{
    struct sweeper *w = mem_alloc(sizeof(*w));
    *w = (struct sweeper){.port.start = start, .o = *o};
    timer_init(&w->limit, on_limit, w);
    return w;
}

struct cleaner_port *sweeper_port(struct sweeper *s)
{
    return &s->port;
}

void sweeper_destroy(struct sweeper *w)
{
    if (!w)
        return;
    timer_stop(w->o.timers, &w->limit);
    aws_credential_source_destroy(w->source); /* drops a wait */
    bearer_destroy(w->bearer);
    if (w->now && w->on_thread) {
        w->now->sweeper = NULL;
        atomic_store(&w->now->cancel, 1);
    } else if (w->now) {
        sweep_free(w->now);
    }
    free(w);
}
