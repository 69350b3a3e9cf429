/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/watch.h"

#include "base/mem.h"

#include <stdlib.h>

struct watch {
    uv_fs_event_t events;
    struct timers *timers;
    struct timer timer;
    int64_t coalesce_ms, poll_ms;
    bool soon; /* the timer runs for a change, not for the poll */
    bool is_started;
    char *path;
    watch_fn fn;
    void *ctx;
};

static void on_event(uv_fs_event_t *events, const char *file, int what, int status)
{
    struct watch *w = events->data;
    (void)file, (void)what, (void)status;
    if (w->soon)
        return;
    w->soon = true;
    timer_start(w->timers, &w->timer, w->coalesce_ms);
}

static void on_timer(struct timer *timer, void *ctx)
{
    struct watch *w = ctx;
    w->soon = false;
    if (!w->is_started) /* when it fails there is still the poll */
        uv_fs_event_start(&w->events, on_event, w->path, 0);
    w->is_started = true;
    timer_start(w->timers, timer, w->poll_ms);
    w->fn(w->ctx);
}

static void on_closed(uv_handle_t *h)
{
    struct watch *w = h->data;
    free(w->path);
    free(w);
}

struct watch *watch_start(uv_loop_t *loop, struct timers *timers, const char *path, int64_t coalesce_ms,
    int64_t poll_ms, watch_fn fn, void *ctx)
{
    struct watch *w = mem_alloc(sizeof(*w));
    w->timers = timers;
    w->coalesce_ms = coalesce_ms;
    w->poll_ms = poll_ms;
    w->fn = fn;
    w->ctx = ctx;
    timer_init(&w->timer, on_timer, w);
    uv_fs_event_init(loop, &w->events);
    w->events.data = w;
    w->path = mem_strdup(path);
    w->soon = true; /* what is over by then costs no watch */
    timer_start(timers, &w->timer, coalesce_ms);
    return w;
}

void watch_stop(struct watch *w)
{
    if (!w)
        return;
    timer_stop(w->timers, &w->timer);
    uv_close((uv_handle_t *)&w->events, on_closed);
}
