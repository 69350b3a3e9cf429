/* SPDX-License-Identifier: Apache-2.0
 *
 * See sweeper.h. The thread reads what its job holds and nothing else, so a sweeper can be destroyed meanwhile.
 */
#include "scheduler/sweeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include <stdlib.h>

#define LIMIT_MS SECONDS_MS(3600) /* then it is interrupted, and tried again later */

struct sweep {
    struct sweeper *sweeper; /* NULL: it was destroyed */
    char url[1024], cluster[CORE_NAME_MAX];
    int64_t job;
    enum leftover_keep keep;
    atomic_int cancel;
    int rc;
    struct err e;
    cleaner_done_fn done;
    void *ctx;
};

struct sweeper {
    struct cleaner_port port;
    uv_loop_t *loop;
    struct timers *timers;
    const char *url, *cluster;
    struct sweep *now; /* or NULL */
    struct timer limit;
};

static int clean(const struct ckpt_job *j, const struct sweep *s, struct err *e)
{
    static const int newest[] = {
        [LEFTOVER_KEEP_ALL] = CKPT_KEEP_ALL, [LEFTOVER_KEEP_LAST] = 1, [LEFTOVER_KEEP_NONE] = 0};
    int rc = ckpt_fence(j, CKPT_CLOSED, e);
    return rc ? rc : ckpt_clean(j, CKPT_CLOSED, (struct ckpt_keep){.newest = newest[s->keep]}, &s->cancel, e);
}

static void on_thread(void *ctx)
{
    struct sweep *s = ctx;
    struct ckpt_job j = {.cluster = s->cluster, .job = s->job};
    s->rc = store_open(s->url, &(struct store_options){.cancel = &s->cancel}, &j.store, &s->e);
    if (s->rc)
        return;
    s->rc = clean(&j, s, &s->e);
    store_close(j.store);
}

static void on_done(void *ctx)
{
    struct sweep *s = ctx;
    if (s->sweeper) {
        s->sweeper->now = NULL;
        timer_stop(s->sweeper->timers, &s->sweeper->limit);
        s->done(s->ctx, s->rc ? &s->e : NULL);
    }
    free(s);
}

static void on_limit(struct timer *t, void *ctx)
{
    struct sweeper *w = ctx;
    (void)t;
    if (w->now)
        atomic_store(&w->now->cancel, 1);
}

static void start(
    struct cleaner_port *port, int64_t job, enum leftover_keep keep, cleaner_done_fn done, void *ctx)
{
    struct sweeper *w = (struct sweeper *)((char *)port - offsetof(struct sweeper, port));
    struct sweep *s = mem_alloc(sizeof(*s));
    s->sweeper = w;
    STR_COPY(s->url, w->url);
    STR_COPY(s->cluster, w->cluster);
    s->job = job;
    s->keep = keep;
    s->done = done;
    s->ctx = ctx;
    w->now = s;
    timer_start(w->timers, &w->limit, LIMIT_MS);
    uv_run_work(w->loop, on_thread, on_done, s);
}

struct sweeper *sweeper_create(uv_loop_t *loop, struct timers *timers, const char *url, const char *cluster)
{
    struct sweeper *w = mem_alloc(sizeof(*w));
    *w =
        (struct sweeper){.port.start = start, .loop = loop, .timers = timers, .url = url, .cluster = cluster};
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
    timer_stop(w->timers, &w->limit);
    if (w->now) {
        w->now->sweeper = NULL;
        atomic_store(&w->now->cancel, 1);
    }
    free(w);
}
