/* SPDX-License-Identifier: Apache-2.0
 *
 * The rest of the loop: work on threads, signals, and shutdown.
 */
#include "base/uv/loop.h"
#include "base/mem.h"
#include <assert.h>
#include <signal.h>
#include <stdlib.h>

struct work {
    uv_work_t req;
    uv_work_fn work, done;
    void *ctx;
};

static void on_work(uv_work_t *req)
{
    struct work *w = req->data;
    w->work(w->ctx);
}

static void on_work_done(uv_work_t *req, int status)
{
    struct work *w = req->data;
    assert(status == 0); /* nothing here cancels work */
    w->done(w->ctx);
    free(w);
}

void uv_run_work(uv_loop_t *loop, uv_work_fn work, uv_work_fn done, void *ctx)
{
    struct work *w = mem_alloc(sizeof(*w));
    *w = (struct work){.req = {.data = w}, .work = work, .done = done, .ctx = ctx};
    int rc = uv_queue_work(loop, &w->req, on_work, on_work_done);
    assert(rc == 0); /* fails only without a work callback */
    (void)rc;
}

static const int stop_signals[] = {SIGTERM, SIGINT};
#define N_STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

struct uv_signals {
    uv_signal_t handles[N_STOP_SIGNALS];
    size_t n_open;
    uv_signal_fn fn;
    void *ctx;
};

static void on_signal(uv_signal_t *h, int signum)
{
    struct uv_signals *s = h->data;
    s->fn(s->ctx, signum);
}

struct uv_signals *uv_signals_create(uv_loop_t *loop, uv_signal_fn fn, void *ctx)
{
    struct uv_signals *s = mem_alloc(sizeof(*s));
    s->fn = fn;
    s->ctx = ctx;
    signal(SIGPIPE, SIG_IGN);
    for (; s->n_open < N_STOP_SIGNALS; s->n_open++) {
        uv_signal_t *h = &s->handles[s->n_open];
        uv_signal_init(loop, h);
        h->data = s;
        uv_signal_start(h, on_signal, stop_signals[s->n_open]);
    }
    return s;
}

static void on_signal_closed(uv_handle_t *h)
{
    struct uv_signals *s = h->data;
    if (--s->n_open == 0)
        free(s);
}

void uv_signals_destroy(struct uv_signals *s)
{
    for (size_t i = 0; s && i < N_STOP_SIGNALS; i++)
        uv_close((uv_handle_t *)&s->handles[i], on_signal_closed);
}

static void close_open(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void uv_loop_finish(uv_loop_t *loop)
{
    /* A close callback may open new handles, so close and run until the loop can be closed. */
    do {
        uv_walk(loop, close_open, NULL);
        uv_run(loop, UV_RUN_DEFAULT);
    } while (uv_loop_close(loop) == UV_EBUSY);
}
