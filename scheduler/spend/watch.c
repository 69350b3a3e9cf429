/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/spend/watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/uv/loop.h"
#include "scheduler/spend/review.h"
#include <stdlib.h>

#define DAYS 2

struct spend_watch {
    struct spend_watch_options o;
    char *db_path;
    struct timer next;
    bool is_reading, is_destroyed;
    /* of the thread while is_reading */
    struct spend_review review;
    struct err e;
    int rc;
};

static int read_spending(void *ctx, struct db_reader *r, struct err *e)
{
    struct spend_watch *w = ctx;
    return spend_review_read(&w->review, r, e);
}

static void on_thread(void *ctx)
{
    struct spend_watch *w = ctx;
    w->rc = db_read_once(w->db_path, read_spending, w, &w->e);
}

static void release(struct spend_watch *w)
{
    free(w->db_path);
    free(w);
}

static void on_posted(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

/* Posts what was not notified yet. An event that is refused because the disk is full is found again
 * in an hour. */
static void post_found(struct spend_watch *w)
{
    int64_t n = 0;
    spend_review_mark_told(&w->review, tick_model(w->o.tick));
    for (size_t i = 0; i < w->review.n_found; i++) {
        const struct spend_finding *f = &w->review.found[i];
        const struct event ev = {.type = EV_ANOMALY, .anomaly = f->row};
        if (f->is_told)
            continue;
        tick_post(w->o.tick, &ev, on_posted, NULL);
        n++;
    }
    log_debug("the spending of two days was compared with that of the weeks before",
        log_i("anomalies", (int64_t)w->review.n_found), log_i("new", n));
}

static void on_read(void *ctx)
{
    struct spend_watch *w = ctx;
    w->is_reading = false;
    if (!w->is_destroyed && w->rc == 0)
        post_found(w);
    else if (!w->is_destroyed)
        log_warn("the spending of the last days cannot be compared", log_err(&w->e));
    spend_review_deinit(&w->review);
    if (w->is_destroyed)
        release(w);
    else
        timer_start(w->o.timers, &w->next, SPEND_EVERY_MS);
}

static void on_next(struct timer *t, void *ctx)
{
    struct spend_watch *w = ctx;
    (void)t;
    spend_review_init(
        &w->review, &w->o.limits, tick_model(w->o.tick), clock_wall(w->o.timers->clock), DAYS);
    w->is_reading = true;
    uv_run_work(w->o.loop, on_thread, on_read, w);
}

struct spend_watch *spend_watch_create(const struct spend_watch_options *o)
{
    struct spend_watch *w = mem_alloc(sizeof(*w));
    *w = (struct spend_watch){.o = *o, .db_path = mem_strdup(o->db_path)};
    timer_init(&w->next, on_next, w);
    return w;
}

void spend_watch_start(struct spend_watch *w)
{
    timer_start(w->o.timers, &w->next, SPEND_FIRST_MS);
}

void spend_watch_set_limits(struct spend_watch *w, const struct spend_limits *limits)
{
    w->o.limits = *limits;
}

void spend_watch_destroy(struct spend_watch *w)
{
    if (!w)
        return;
    timer_stop(w->o.timers, &w->next);
    w->is_destroyed = true;
    if (!w->is_reading)
        release(w);
}
