/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/store_threads.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#define COUNTED_MAX 16             /* pieces of work at a time, silent ones not counted */
#define USER_MAX (COUNTED_MAX / 2) /* of one user, while other users' work waits */

struct store_threads {
    uv_loop_t *loop;
    uv_async_t wake; /* sent when work has ended */
    struct list waiting, counted;
    size_t n_counted, n;   /* n: all that have begun and not ended, silent ones too */
    pthread_mutex_t mutex; /* protects ended */
    struct list ended;
};

/* ---- on a thread ---- */

static void *run(void *arg)
{
    struct store_work *w = arg;
    struct store_threads *s = w->threads;
    w->work(w->ctx);
    pthread_mutex_lock(&s->mutex);
    list_push_back(&s->ended, &w->link);
    uv_async_send(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void work_in_pool(void *ctx)
{
    struct store_work *w = ctx;
    w->work(w->ctx);
}

/* ---- on the loop ---- */

static void count(struct store_threads *s, struct store_work *w)
{
    list_push_back(&s->counted, &w->in_counted);
    s->n_counted++;
}

static void discount(struct store_threads *s, struct store_work *w)
{
    s->n_counted -= link_is_in(&w->in_counted);
    link_remove(&w->in_counted);
}

static void end(struct store_threads *s, struct store_work *w)
{
    s->n--;
    discount(s, w);
    w->has_begun = false;
    w->done(w->ctx); /* which may free it */
}

static void done_in_pool(void *ctx);

/* Falls back to libuv's pool if no thread can be created. The thread blocks all signals, which the
 * loop handles. */
static void begin(struct store_threads *s, struct store_work *w)
{
    sigset_t all, old;
    w->has_begun = true;
    s->n++;
    count(s, w);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        uv_run_work(s->loop, work_in_pool, done_in_pool, w);
}

static bool may_go_first(const struct store_threads *s, const struct store_work *w)
{
    int n = 0;
    LIST_FOREACH (&s->counted, l)
        n += str_eq(LIST_ENTRY(l, struct store_work, in_counted)->user, w->user);
    return n < USER_MAX;
}

static struct store_work *pop_waiting(struct store_threads *s)
{
    LIST_FOREACH (&s->waiting, l) {
        struct store_work *w = LIST_ENTRY(l, struct store_work, link);
        if (may_go_first(s, w)) {
            link_remove(l);
            return w;
        }
    }
    return LIST_ENTRY(list_pop(&s->waiting), struct store_work, link);
}

static void begin_waiting(struct store_threads *s)
{
    while (s->n_counted < COUNTED_MAX && !list_is_empty(&s->waiting))
        begin(s, pop_waiting(s));
}

static void done_in_pool(void *ctx)
{
    struct store_work *w = ctx;
    struct store_threads *s = w->threads;
    end(s, w);
    begin_waiting(s);
}

static struct store_work *pop_ended(struct store_threads *s)
{
    pthread_mutex_lock(&s->mutex);
    struct link *l = list_pop(&s->ended);
    pthread_mutex_unlock(&s->mutex);
    return l ? LIST_ENTRY(l, struct store_work, link) : NULL;
}

static void on_wake(uv_async_t *h)
{
    struct store_threads *s = h->data;
    for (struct store_work *w; (w = pop_ended(s));) {
        pthread_join(w->thread, NULL);
        end(s, w);
    }
    begin_waiting(s);
}

struct store_threads *store_threads_create(uv_loop_t *loop)
{
    struct store_threads *s = mem_alloc(sizeof(*s));
    s->loop = loop;
    pthread_mutex_init(&s->mutex, NULL);
    int rc = uv_async_init(loop, &s->wake, on_wake);
    assert(rc == 0); /* fails only without file descriptors */
    (void)rc;
    s->wake.data = s;
    return s;
}

static void on_closed(uv_handle_t *h)
{
    struct store_threads *s = h->data;
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void store_threads_destroy(struct store_threads *s)
{
    if (!s)
        return;
    assert(s->n == 0 && list_is_empty(&s->waiting));
    uv_close((uv_handle_t *)&s->wake, on_closed);
}

void store_threads_run(struct store_threads *s, struct store_work *w)
{
    w->threads = s;
    w->has_begun = false;
    list_push_back(&s->waiting, &w->link);
    begin_waiting(s);
}

void store_threads_note(struct store_threads *s, struct store_work *w, bool is_silent)
{
    if (!w->has_begun || is_silent == !link_is_in(&w->in_counted))
        return;
    if (is_silent)
        discount(s, w);
    else
        count(s, w);
    begin_waiting(s);
}
