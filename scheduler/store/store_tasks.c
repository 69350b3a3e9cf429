/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/store/store_tasks.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

struct store_tasks {
    struct store_tasks_options o;
    struct keys_source keys;
    struct list queue;
    struct store_task *now; /* in progress; may be NULL */
    bool on_thread;         /* now is used by the thread */
    struct timer limit;
};

/* ---- on the thread ---- */

static void on_thread(void *ctx)
{
    struct store_task *t = ctx;
    struct ckpt_job j = {.cluster = t->cluster, .job = t->job, .crypt = &t->crypt};
    t->rc = store_open(t->url,
        &(struct store_options){.net = t->net, .cancel = &t->cancel, .existing = true}, &j.store,
        &t->e);
    if (t->rc)
        return;
    if (t->uid[0])
        t->rc = marker_check(j.store, t->cluster, t->uid, &t->e);
    if (!t->rc)
        t->rc = t->run(t, &j, &t->e);
    store_close(j.store);
}

/* ---- on the loop ---- */

static void begin_next(struct store_tasks *s);

static void release(struct store_task *t)
{
    store_net_destroy(t->net);
    crypt_wipe(&t->crypt);
}

static void finish(struct store_task *t)
{
    struct store_tasks *s = t->in;
    release(t);
    if (!s) {
        t->dropped(t);
        return;
    }
    s->now = NULL;
    s->on_thread = false;
    timer_stop(s->o.timers, &s->limit);
    if (t->rc == ERR_DENIED)
        keys_source_refused(&s->keys);
    t->done(t, t->rc ? &t->e : NULL);
    begin_next(s);
}

static void on_thread_ended(void *ctx)
{
    finish(ctx);
}

static void on_limit(struct timer *timer, void *ctx)
{
    struct store_tasks *s = ctx;
    (void)timer;
    if (s->now)
        atomic_store(&s->now->cancel, 1);
}

static void on_keys(void *ctx, const struct err *e)
{
    struct store_tasks *s = ctx;
    if (e) {
        s->now->e = *e;
        s->now->rc = e->kind;
        finish(s->now);
        return;
    }
    s->on_thread = true;
    timer_start(s->o.timers, &s->limit, s->o.limit_ms);
    uv_run_work(s->o.loop, on_thread, on_thread_ended, s->now);
}

static void begin_next(struct store_tasks *s)
{
    struct link *l = s->now ? NULL : list_pop(&s->queue);
    if (!l)
        return;
    struct store_task *t = s->now = LIST_ENTRY(l, struct store_task, in_queue);
    if (s->o.master)
        master_job_crypt(s->o.master, t->job, &t->crypt);
    keys_source_get_net(&s->keys, t->url, &t->net, on_keys, s);
}

void store_tasks_put(struct store_tasks *s, struct store_task *t)
{
    t->in = s;
    STR_COPY(t->url, s->o.store);
    STR_COPY(t->cluster, s->o.cluster);
    STR_COPY(t->uid, s->o.cluster_uid ? s->o.cluster_uid : "");
    list_push_back(&s->queue, &t->in_queue);
    begin_next(s);
}

/* ---- life ---- */

struct store_tasks *store_tasks_create(const struct store_tasks_options *o)
{
    struct store_tasks *s = mem_alloc(sizeof(*s));
    *s = (struct store_tasks){.o = *o, .keys = {.timers = o->timers, .http = o->http}};
    timer_init(&s->limit, on_limit, s);
    return s;
}

void store_tasks_destroy(struct store_tasks *s)
{
    struct link *l;
    if (!s)
        return;
    timer_stop(s->o.timers, &s->limit);
    keys_source_deinit(&s->keys); /* drops a pending call */
    while ((l = list_pop(&s->queue))) {
        struct store_task *t = LIST_ENTRY(l, struct store_task, in_queue);
        t->dropped(t);
    }
    if (s->now) {
        s->now->in = NULL;
        atomic_store(&s->now->cancel, 1);
    }
    if (s->now && !s->on_thread)
        finish(s->now);
    free(s);
}
