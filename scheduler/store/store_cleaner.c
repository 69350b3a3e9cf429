/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_cleaner.h. The thread uses only its own struct cleaning, so a store_cleaner can be
 * destroyed meanwhile.
 */
#include "scheduler/store/store_cleaner.h"

#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/keys_source.h"
#include "ckpt/store/marker.h"
#include <stdlib.h>

#define LIMIT_MS SECONDS_MS(3600) /* then the cleaning is interrupted, and retried later */

struct cleaning {
    struct store_cleaner *store_cleaner; /* NULL after it was destroyed */
    char url[1024], cluster[CORE_NAME_MAX], uid[MARKER_UID_MAX];
    struct store_net *net; /* NULL for a store of this machine */
    struct ckpt_crypt crypt;
    struct cleaner_job job;
    bool is_other_jobs;
    atomic_int cancel;
    int rc;
    int64_t kept_bytes;
    struct err e;
    cleaner_done_fn done;
    void *ctx;
};

struct store_cleaner {
    struct cleaner_port port;
    struct store_cleaner_options o;
    struct keys_source keys;
    struct cleaning *now; /* in progress; may be NULL */
    bool on_thread;       /* now is used by the thread */
    struct timer limit;
};

/* ---- on the thread ---- */

static int clean(const struct ckpt_job *j, struct cleaning *s, struct err *e)
{
    const struct ckpt_known *c = &s->job.known;
    const struct ckpt_expected x = {
        .identity = c->identity, .last = {c->last.attempt, c->last.sequence}};
    enum ckpt_mismatch mismatch;
    static const int newest[] = {
        [CKPT_GC_KEEP_ALL] = CKPT_KEEP_ALL, [CKPT_GC_KEEP_LAST] = 1, [CKPT_GC_KEEP_NONE] = 0};
    int rc = ckpt_close(j, &x, &mismatch, e);
    s->is_other_jobs = mismatch == CKPT_ANOTHERS;
    return rc ? rc
              : ckpt_clean(j, CKPT_CLOSED, (struct ckpt_keep){.newest = newest[s->job.keep]},
                    &s->cancel, &s->kept_bytes, e);
}

static void on_thread(void *ctx)
{
    struct cleaning *s = ctx;
    struct ckpt_job j = {.cluster = s->cluster, .job = s->job.job, .crypt = &s->crypt};
    s->rc = store_open(s->url,
        &(struct store_options){.net = s->net, .cancel = &s->cancel, .existing = true}, &j.store,
        &s->e);
    if (s->rc)
        return;
    if (s->uid[0])
        s->rc = marker_check(j.store, s->cluster, s->uid, &s->e);
    if (!s->rc)
        s->rc = clean(&j, s, &s->e);
    store_close(j.store);
}

/* ---- on the loop ---- */

static void cleaning_free(struct cleaning *s)
{
    store_net_destroy(s->net);
    crypt_wipe(&s->crypt);
    free(s);
}

static void finish(struct cleaning *s)
{
    struct store_cleaner *w = s->store_cleaner;
    if (w) {
        w->now = NULL;
        w->on_thread = false;
        timer_stop(w->o.timers, &w->limit);
        if (s->rc == ERR_DENIED)
            keys_source_refused(&w->keys);
        s->done(s->ctx,
            s->is_other_jobs ? CLEAN_OTHER_JOB
            : s->rc          ? CLEAN_FAILED
                             : CLEAN_DONE,
            s->kept_bytes, s->rc ? &s->e : NULL);
    }
    cleaning_free(s);
}

static void on_done(void *ctx)
{
    finish(ctx);
}

static void on_limit(struct timer *t, void *ctx)
{
    struct store_cleaner *w = ctx;
    (void)t;
    if (w->now)
        atomic_store(&w->now->cancel, 1);
}

static void begin(struct store_cleaner *w)
{
    w->on_thread = true;
    timer_start(w->o.timers, &w->limit, LIMIT_MS);
    uv_run_work(w->o.loop, on_thread, on_done, w->now);
}

static void on_keys(void *ctx, const struct err *e)
{
    struct store_cleaner *w = ctx;
    if (!e) {
        begin(w);
        return;
    }
    w->now->e = *e;
    w->now->rc = e->kind;
    finish(w->now);
}

static void start(
    struct cleaner_port *port, const struct cleaner_job *j, cleaner_done_fn done, void *ctx)
{
    struct store_cleaner *w =
        (struct store_cleaner *)((char *)port - offsetof(struct store_cleaner, port));
    struct cleaning *s = mem_alloc(sizeof(*s));
    s->store_cleaner = w;
    STR_COPY(s->url, w->o.store);
    STR_COPY(s->cluster, w->o.cluster);
    STR_COPY(s->uid, w->o.cluster_uid ? w->o.cluster_uid : "");
    s->job = *j;
    if (w->o.master)
        master_job_crypt(w->o.master, j->job, &s->crypt);
    s->done = done;
    s->ctx = ctx;
    w->now = s;
    keys_source_get_net(&w->keys, s->url, &s->net, on_keys, w);
}

/* ---- life ---- */

struct store_cleaner *store_cleaner_create(const struct store_cleaner_options *o)
{
    struct store_cleaner *w = mem_alloc(sizeof(*w));
    *w = (struct store_cleaner){
        .port.start = start, .o = *o, .keys = {.timers = o->timers, .http = o->http}};
    timer_init(&w->limit, on_limit, w);
    return w;
}

struct cleaner_port *store_cleaner_port(struct store_cleaner *s)
{
    return &s->port;
}

void store_cleaner_destroy(struct store_cleaner *w)
{
    if (!w)
        return;
    timer_stop(w->o.timers, &w->limit);
    keys_source_deinit(&w->keys); /* drops a pending call */
    if (w->now && w->on_thread) {
        w->now->store_cleaner = NULL;
        atomic_store(&w->now->cancel, 1);
    } else if (w->now) {
        cleaning_free(w->now);
    }
    free(w);
}
