/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers on libuv: one uv_timer_t each, except for a delay of 0. libuv runs a timer of delay 0 that
 * was started in a timer callback within the same iteration, so one that restarts itself would
 * starve all input; and its idle handles run last in, first out. So timers of delay 0 have a list
 * of their own, in order of starting, and one idle handle runs those that were in it when the
 * iteration began.
 *
 * A callback may start and stop any timer and may destroy the whole set.
 */
#include "base/list.h"
#include "base/mem.h"
#include "base/uv/timers.h"
#include <assert.h>
#include <stdlib.h>

struct uv_timers {
    struct timers api; /* must be first: a struct timers * is cast to this */
    uv_loop_t *loop;
    uv_idle_t idle;    /* runs while soon is not empty */
    struct list soon;  /* delay 0, for the next iteration */
    struct list due;   /* the part of soon that this one runs */
    struct list later; /* the others, each with its uv_timer_t */
};

/* t->impl points to this. */
struct running {
    struct link link; /* in soon, due or later */
    struct timer *t;
    uv_timer_t handle; /* open only when is_later */
    bool is_later;
};

static void on_handle_closed(uv_handle_t *h)
{
    free(h->data);
}

/* Frees r, or leaves that to its handle's close callback. */
static void running_end(struct running *r)
{
    link_remove(&r->link);
    r->t->impl = NULL;
    if (r->is_later)
        uv_close((uv_handle_t *)&r->handle, on_handle_closed);
    else
        free(r);
}

static void running_fire(struct running *r)
{
    struct timer *t = r->t;
    running_end(r);
    t->fn(t, t->ctx);
}

static void on_uv_timer(uv_timer_t *h)
{
    running_fire(h->data);
}

static void on_idle(uv_idle_t *h)
{
    struct uv_timers *ts = h->data;
    struct link *l;
    while ((l = list_pop(&ts->soon)))
        list_push_back(&ts->due, l);
    while ((l = list_first(&ts->due)))
        running_fire(LIST_ENTRY(l, struct running, link));
    if (list_is_empty(&ts->soon) && !uv_is_closing((uv_handle_t *)h))
        uv_idle_stop(h);
}

static void on_stop(struct timers *api, struct timer *t)
{
    (void)api;
    if (t->impl)
        running_end(t->impl);
}

/* By how many ms the loop's time, taken when its iteration began, lags behind the clock. Delays are
 * lengthened by it, because they count from the call. */
static uint64_t loop_lag_ms(const uv_loop_t *loop)
{
    uint64_t real = uv_hrtime() / 1000000, known = uv_now(loop);
    return real > known ? real - known : 0;
}

static void on_start(struct timers *api, struct timer *t, int64_t delay_ms)
{
    struct uv_timers *ts = (struct uv_timers *)api;
    assert(t->fn && delay_ms >= 0);
    assert(!uv_is_closing((uv_handle_t *)&ts->idle));
    on_stop(api, t);
    struct running *r = mem_alloc(sizeof(*r));
    r->t = t;
    r->is_later = delay_ms > 0;
    t->impl = r;
    if (r->is_later) {
        list_push_back(&ts->later, &r->link);
        uv_timer_init(ts->loop, &r->handle);
        r->handle.data = r;
        uv_timer_start(&r->handle, on_uv_timer, (uint64_t)delay_ms + loop_lag_ms(ts->loop), 0);
    } else {
        list_push_back(&ts->soon, &r->link);
        uv_idle_start(&ts->idle, on_idle);
    }
}

struct timers *uv_timers_create(uv_loop_t *loop)
{
    struct uv_timers *ts = mem_alloc(sizeof(*ts));
    ts->api = (struct timers){.clock = &clock_system, .start = on_start, .stop = on_stop};
    ts->loop = loop;
    uv_idle_init(loop, &ts->idle);
    ts->idle.data = ts;
    return &ts->api;
}

static void end_all(struct list *l)
{
    struct link *first;
    while ((first = list_first(l)))
        running_end(LIST_ENTRY(first, struct running, link));
}

void uv_timers_destroy(struct timers *api)
{
    struct uv_timers *ts = (struct uv_timers *)api;
    if (!ts)
        return;
    end_all(&ts->soon);
    end_all(&ts->due);
    end_all(&ts->later);
    uv_close((uv_handle_t *)&ts->idle, on_handle_closed);
}
