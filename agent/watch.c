/* SPDX-License-Identifier: Apache-2.0
 *
 * A watch waits (its timer runs), is due (in the queue), or runs its callback. inotify is not used
 * through libuv: that reads events until there are none, which a job that changes its directory all
 * the time can prevent for ever, and all its watches share one queue that a single job can
 * overflow.
 */
#include "agent/watch.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENT_BYTES 4096 /* read per iteration of the loop */
#define NS_PER_MS 1000000
#define NONE (-1)

struct watches {
    uv_poll_t events;
    int fd; /* of inotify; NONE = not available, only poll */
    struct timers *timers;
    struct timer pause;
    struct list all, due;
    int64_t credit_ns;   /* time that callbacks may take now; negative after a long one */
    int64_t credited_ns; /* when credit_ns was last increased (uv_hrtime) */
};

struct watch {
    struct watches *in;
    struct link in_all, in_due;
    struct timer timer;
    int64_t coalesce_ms, poll_ms;
    int wd;              /* NONE = not armed */
    bool soon;           /* the timer was started by a change, not for the poll */
    int allowance;       /* runs that are allowed now */
    int64_t refilled_ms; /* up to when allowance was refilled; monotonic */
    char *path;
    watch_fn fn;
    void *ctx;
};

/* ---- limits ---- */

static int64_t now_ms(const struct watches *ws)
{
    return clock_mono(ws->timers->clock).ms;
}

static void refill(struct watch *w)
{
    int64_t more = (now_ms(w->in) - w->refilled_ms) / WATCH_REFILL_MS;
    if (w->allowance + more >= WATCH_BURST) {
        w->allowance = WATCH_BURST;
        w->refilled_ms = now_ms(w->in);
    } else {
        w->allowance += (int)more;
        w->refilled_ms += more * WATCH_REFILL_MS;
    }
}

/* Milliseconds until a run is allowed. */
static int64_t allowed_in_ms(struct watch *w)
{
    refill(w);
    int64_t ms = w->refilled_ms + WATCH_REFILL_MS - now_ms(w->in);
    return w->allowance > 0 || ms < 0 ? 0 : ms;
}

static void add_credit(struct watches *ws)
{
    int64_t now = (int64_t)uv_hrtime();
    ws->credit_ns += (now - ws->credited_ns) / 100 * WATCH_SHARE_PERCENT;
    ws->credited_ns = now;
    if (ws->credit_ns > (int64_t)WATCH_TURN_MS * NS_PER_MS)
        ws->credit_ns = (int64_t)WATCH_TURN_MS * NS_PER_MS;
}

static void use_credit(struct watches *ws, int64_t since_ns)
{
    ws->credit_ns -= (int64_t)uv_hrtime() - since_ns;
    if (ws->credit_ns < -(int64_t)WATCH_DEBT_MAX_MS * NS_PER_MS)
        ws->credit_ns = -(int64_t)WATCH_DEBT_MAX_MS * NS_PER_MS;
}

/* ---- changes ---- */

/* A second watch of the same inode has the same descriptor. */
static bool is_shared(const struct watch *w)
{
    LIST_FOREACH (&w->in->all, n) {
        const struct watch *other = LIST_ENTRY(n, struct watch, in_all);
        if (other != w && other->wd == w->wd)
            return true;
    }
    return false;
}

static void disarm(struct watch *w)
{
    if (w->wd != NONE && !is_shared(w))
        inotify_rm_watch(w->in->fd, w->wd);
    w->wd = NONE;
}

static void arm(struct watch *w)
{
    if (w->in->fd == NONE)
        return;
    int wd = inotify_add_watch(w->in->fd, w->path,
        IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW |
            IN_ONESHOT);
    if (w->wd != wd)
        disarm(w);
    w->wd = wd < 0 ? NONE : wd; /* the poll remains */
}

void watch_trigger(struct watch *w)
{
    if (!w || w->soon || link_is_in(&w->in_due))
        return;
    int64_t pause_ms = allowed_in_ms(w);
    w->soon = true;
    timer_start(w->in->timers, &w->timer, pause_ms > w->coalesce_ms ? pause_ms : w->coalesce_ms);
}

static void on_change(struct watches *ws, const struct inotify_event *event)
{
    bool is_lost = event->mask & IN_Q_OVERFLOW; /* any directory may have changed */
    LIST_FOREACH (&ws->all, n) {
        struct watch *w = LIST_ENTRY(n, struct watch, in_all);
        if (!is_lost && w->wd != event->wd)
            continue;
        w->wd = NONE;
        watch_trigger(w);
    }
}

static void on_readable(uv_poll_t *poll, int status, int what)
{
    struct watches *ws = poll->data;
    _Alignas(struct inotify_event) char text[EVENT_BYTES];
    (void)status, (void)what;
    ssize_t n = read(ws->fd, text, sizeof(text)); /* the rest is read in the next iteration */
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *event = (const struct inotify_event *)(text + at);
        on_change(ws, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
}

/* ---- runs ---- */

static void run_watch(struct watch *w)
{
    struct watches *ws = w->in;
    int64_t since_ns = (int64_t)uv_hrtime();
    w->soon = false;
    refill(w);
    watch_count(w);
    arm(w); /* before the run, or changes during it are lost */
    timer_start(ws->timers, &w->timer, w->poll_ms);
    w->fn(w->ctx); /* may free w */
    use_credit(ws, since_ns);
}

static void run_due(struct watches *ws)
{
    if (timer_is_running(&ws->pause))
        return;
    add_credit(ws);
    while (ws->credit_ns > 0 && !list_is_empty(&ws->due))
        run_watch(LIST_ENTRY(list_pop(&ws->due), struct watch, in_due));
    if (!list_is_empty(&ws->due)) {
        int64_t missing_ns = NS_PER_MS - ws->credit_ns;
        timer_start(ws->timers, &ws->pause, 1 + missing_ns * 100 / WATCH_SHARE_PERCENT / NS_PER_MS);
    }
}

static void on_pause_over(struct timer *timer, void *ctx)
{
    (void)timer;
    run_due(ctx);
}

static void on_timer(struct timer *timer, void *ctx)
{
    struct watch *w = ctx;
    (void)timer;
    list_push_back(&w->in->due, &w->in_due);
    run_due(w->in);
}

bool watch_allows(struct watch *w)
{
    if (!w)
        return true;
    refill(w);
    if (w->allowance > 0)
        return true;
    watch_trigger(w);
    return false;
}

void watch_count(struct watch *w)
{
    if (w && w->allowance > 0)
        w->allowance--;
}

struct watch *watch_start(struct watches *ws, const char *path, int64_t coalesce_ms,
    int64_t poll_ms, watch_fn fn, void *ctx)
{
    struct watch *w = mem_alloc(sizeof(*w));
    *w = (struct watch){.in = ws,
        .coalesce_ms = coalesce_ms,
        .poll_ms = poll_ms,
        .wd = NONE,
        .soon = true, /* the inotify watch is added at the first run */
        .allowance = WATCH_BURST,
        .refilled_ms = now_ms(ws),
        .path = mem_strdup(path),
        .fn = fn,
        .ctx = ctx};
    timer_init(&w->timer, on_timer, w);
    list_push_back(&ws->all, &w->in_all);
    timer_start(ws->timers, &w->timer, coalesce_ms);
    return w;
}

void watch_stop(struct watch *w)
{
    if (!w)
        return;
    timer_stop(w->in->timers, &w->timer);
    disarm(w);
    link_remove(&w->in_all);
    link_remove(&w->in_due);
    free(w->path);
    free(w);
}

/* ---- opening and closing ---- */

struct watches *watches_open(uv_loop_t *loop, struct timers *timers)
{
    struct watches *ws = mem_alloc(sizeof(*ws));
    struct err e;
    ws->timers = timers;
    ws->credited_ns = (int64_t)uv_hrtime();
    ws->credit_ns = (int64_t)WATCH_TURN_MS * NS_PER_MS;
    timer_init(&ws->pause, on_pause_over, ws);
    ws->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (ws->fd < 0) {
        err_errno(&e, errno, "watching the files of jobs (fs.inotify.max_user_instances?)");
        log_warn("changes in jobs' directories are found only by polling", log_err(&e));
        ws->fd = NONE;
        return ws;
    }
    uv_poll_init(loop, &ws->events, ws->fd);
    ws->events.data = ws;
    uv_poll_start(&ws->events, UV_READABLE, on_readable);
    uv_unref((uv_handle_t *)&ws->events);
    return ws;
}

static void on_closed(uv_handle_t *h)
{
    struct watches *ws = h->data;
    close(ws->fd);
    free(ws);
}

void watches_close(struct watches *ws)
{
    if (!ws)
        return;
    timer_stop(ws->timers, &ws->pause);
    if (ws->fd == NONE)
        free(ws);
    else
        uv_close((uv_handle_t *)&ws->events, on_closed);
}
