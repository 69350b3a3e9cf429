/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/crew.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_PER_TURN 2 /* threads that share the work of one iteration; more if it is much */
#define SHARE_MAX 16       /* pieces of work a thread */

struct piece {
    uv_work_fn work, done;
    void *ctx;
};

/* The work of one thread, done in sequence. */
struct share {
    size_t n;
    struct piece pieces[SHARE_MAX];
};

struct crew {
    uv_loop_t *loop;
    struct timers *timers;
    struct timer turn; /* runs while some work is not yet divided */
    struct piece *waiting;
    size_t n, cap;
};

static void on_thread(void *ctx)
{
    struct share *s = ctx;
    for (size_t i = 0; i < s->n; i++)
        s->pieces[i].work(s->pieces[i].ctx);
}

static void on_done(void *ctx)
{
    struct share *s = ctx;
    for (size_t i = 0; i < s->n; i++)
        s->pieces[i].done(s->pieces[i].ctx);
    free(s);
}

static void hand_out(struct crew *c, size_t from, size_t n)
{
    struct share *s = mem_alloc(sizeof(*s));
    s->n = n;
    memcpy(s->pieces, &c->waiting[from], n * sizeof(*s->pieces));
    uv_run_work(c->loop, on_thread, on_done, s);
}

static void on_turn(struct timer *timer, void *ctx)
{
    struct crew *c = ctx;
    size_t each = (c->n + THREADS_PER_TURN - 1) / THREADS_PER_TURN;
    (void)timer;
    each = each < SHARE_MAX ? each : SHARE_MAX;
    for (size_t from = 0; from < c->n; from += each)
        hand_out(c, from, c->n - from < each ? c->n - from : each);
    c->n = 0;
}

struct crew *crew_create(uv_loop_t *loop, struct timers *timers)
{
    struct crew *c = mem_alloc(sizeof(*c));
    *c = (struct crew){.loop = loop, .timers = timers};
    timer_init(&c->turn, on_turn, c);
    return c;
}

void crew_destroy(struct crew *c)
{
    if (!c)
        return;
    assert(c->n == 0);
    free(c->waiting);
    free(c);
}

void crew_run(struct crew *c, uv_work_fn work, uv_work_fn done, void *ctx)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : SHARE_MAX;
        c->waiting = mem_resize(c->waiting, c->cap, sizeof(*c->waiting));
    }
    c->waiting[c->n++] = (struct piece){work, done, ctx};
    if (!timer_is_running(&c->turn))
        timer_start(c->timers, &c->turn, 0);
}
