/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/notify/night_reader.h"

#include "base/log.h"
#include "base/mem.h"
#include "scheduler/core/lifecycle/digest.h"
#include <stdlib.h>

#define KEEP_MS 600000 /* lifetime of what was read */

/* What one thread reads. */
struct reading {
    struct night_reader *reader; /* NULL: it was destroyed */
    char *db_path;
    struct wall from, to;
    struct nights *nights;
    struct err e;
    int rc;
};

struct night_reader {
    uv_loop_t *loop;
    struct timers *timers;
    struct tick *tick;
    char *db_path;
    struct list waiting;     /* struct night_wait, the first one first */
    struct reading *reading; /* at the thread; NULL: none */
    struct nights *nights;   /* read before; NULL: none */
    struct wall from, to;    /* of nights */
    struct timer old;        /* forgets them */
};

static void forget(struct night_reader *r)
{
    timer_stop(r->timers, &r->old);
    nights_destroy(r->nights);
    r->nights = NULL;
}

static void on_old(struct timer *t, void *ctx)
{
    (void)t;
    forget(ctx);
}

struct night_reader *night_reader_create(
    uv_loop_t *loop, struct timers *timers, struct tick *tick, const char *db_path)
{
    struct night_reader *r = mem_alloc(sizeof(*r));
    *r = (struct night_reader){
        .loop = loop, .timers = timers, .tick = tick, .db_path = mem_strdup(db_path)};
    timer_init(&r->old, on_old, r);
    return r;
}

/* ---- the thread ---- */

static int read_nights(void *ctx, struct db_reader *db, struct err *e)
{
    const struct reading *x = ctx;
    return db_read_nights(db, x->from, x->to, x->nights, e);
}

static void on_thread(void *ctx)
{
    struct reading *x = ctx;
    x->rc = db_read_once(x->db_path, read_nights, x, &x->e);
}

static void reading_free(struct reading *x)
{
    nights_destroy(x->nights);
    free(x->db_path);
    free(x);
}

static void on_read(void *ctx);

static void start(struct night_reader *r, const struct night_wait *w)
{
    struct reading *x = mem_alloc(sizeof(*x));
    const char *users[DIGEST_USERS_MAX];
    size_t n = core_digest_users(tick_model(r->tick), users, DIGEST_USERS_MAX);
    *x = (struct reading){.reader = r,
        .db_path = mem_strdup(r->db_path),
        .from = w->from,
        .to = w->to,
        .nights = nights_create()};
    for (size_t i = 0; i < n; i++)
        nights_add(x->nights, users[i]);
    if (w->user[0])
        nights_add(x->nights, w->user);
    r->reading = x;
    uv_run_work(r->loop, on_thread, on_read, x);
}

/* ---- those who wait ---- */

static const struct night *find(
    const struct nights *n, struct wall from, struct wall to, const struct night_wait *w)
{
    return n && from.ms == w->from.ms && to.ms == w->to.ms ? nights_of(n, w->user) : NULL;
}

static void keep(struct night_reader *r, struct reading *x)
{
    forget(r);
    r->nights = x->nights;
    r->from = x->from;
    r->to = x->to;
    x->nights = NULL;
    timer_start(r->timers, &r->old, KEEP_MS);
    log_info("the rows of a night were read for its digest",
        log_i("users", (int64_t)nights_users(r->nights)));
}

/* Answers the waits for these rows; those for another period, or another user, stay. */
static void answer(struct night_reader *r, const struct reading *x)
{
    LIST_FOREACH (&r->waiting, l) {
        struct night_wait *w = LIST_ENTRY(l, struct night_wait, in_waiting);
        bool is_same = x->from.ms == w->from.ms && x->to.ms == w->to.ms;
        const struct night *night = x->rc == 0 ? find(r->nights, r->from, r->to, w) : NULL;
        if (!night && (x->rc == 0 || !is_same))
            continue;
        link_remove(l);
        w->done(w->ctx, night ? NULL : &x->e, night);
    }
}

static void on_read(void *ctx)
{
    struct reading *x = ctx;
    struct night_reader *r = x->reader;
    if (r) {
        r->reading = NULL;
        if (x->rc == 0)
            keep(r, x);
        answer(r, x);
        const struct link *first = list_first(&r->waiting);
        if (first && !r->reading)
            start(r, LIST_ENTRY(first, struct night_wait, in_waiting));
    }
    reading_free(x);
}

void night_reader_get(struct night_reader *r, struct night_wait *w)
{
    const struct night *night = find(r->nights, r->from, r->to, w);
    if (night) {
        w->done(w->ctx, NULL, night);
        return;
    }
    list_push_back(&r->waiting, &w->in_waiting);
    if (!r->reading)
        start(r, w);
}

void night_reader_destroy(struct night_reader *r)
{
    if (!r)
        return;
    if (r->reading)
        r->reading->reader = NULL;
    forget(r);
    while (list_pop(&r->waiting))
        ;
    free(r->db_path);
    free(r);
}
