/* SPDX-License-Identifier: Apache-2.0
 *
 * See outbox.h. Invariants:
 *  1. The port is called only for a row that is on disk, and never for one row twice at a time.
 *  2. A delivery is busy until its result is applied. While the disk is full, the result is posted
 *     again and again.
 */
#include "scheduler/engine/outbox.h"

#include "base/log.h"
#include "base/log_pace.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define NO_SPACE_RETRY_MS 5000 /* interval of tries while the disk is full */
#define BACKOFF_BASE_MS 2000
#define BACKOFF_CAP_MS 1800000
#define CLOCK_CHECK_MS 60000 /* the wall clock may be changed */

struct delivery {
    struct outbox *outbox;
    bool is_busy;        /* from its start until the answer is applied */
    bool is_done;        /* the answer has arrived, in result */
    struct event result; /* its event and target name the row */
    int32_t tries;
};

struct outbox {
    struct tick *tick;
    struct timers *timers;
    struct prng *prng;
    struct outbox_port *port;
    struct delivery deliveries[OUTBOX_AT_ONCE];
    bool is_checking;
    struct log_pace undelivered;
    struct timer timer;
};

static void check_due(struct outbox *o);

/* ---- one delivery ---- */

static void on_posted(void *ctx, const struct err *e, int64_t id)
{
    struct delivery *d = ctx;
    (void)id;
    if (e && e->kind == ERR_NO_SPACE) {
        timer_start(d->outbox->timers, &d->outbox->timer, NO_SPACE_RETRY_MS);
        return;
    }
    if (e && e->kind == ERR_UNAVAILABLE)
        return; /* belayd ends */
    d->is_busy = d->is_done = false;
    check_due(d->outbox);
}

static void post_result(struct delivery *d)
{
    tick_post(d->outbox->tick, &d->result, on_posted, d);
}

static bool is_permanent(const struct err *e)
{
    return e->kind == ERR_NOT_FOUND || e->kind == ERR_INVALID || e->kind == ERR_DENIED;
}

static void on_done(void *ctx, const struct err *e)
{
    struct delivery *d = ctx;
    d->is_done = true;
    d->result.delivered.failed = e != NULL;
    STR_COPY(d->result.delivered.text, e ? e->text : "");
    if (e) {
        d->result.delivered.is_permanent = is_permanent(e);
        d->result.delivered.retry_ms =
            prng_backoff_ms(d->outbox->prng, d->tries, BACKOFF_BASE_MS, BACKOFF_CAP_MS);
        struct outbox *o = d->outbox;
        int64_t left_out;
        if (log_pace_admits(&o->undelivered, clock_mono(o->timers->clock), &left_out))
            log_warn("a notification could not be delivered",
                log_s("to", d->result.delivered.target), log_i("event", d->result.delivered.event),
                log_err(e), log_i("left_out", left_out));
    }
    post_result(d);
}

static void start_delivery(struct outbox *o, const struct outbox_row *r)
{
    struct delivery *d = o->deliveries;
    while (d->is_busy)
        d++;
    *d = (struct delivery){.outbox = o,
        .is_busy = true,
        .result = {.type = EV_DELIVERED, .delivered.event = r->event},
        .tries = r->tries};
    STR_COPY(d->result.delivered.target, r->target);
    o->port->start(o->port, r, on_done, d);
}

/* ---- selection and timing ---- */

static size_t n_free(const struct outbox *o)
{
    size_t n = 0;
    for (size_t i = 0; i < OUTBOX_AT_ONCE; i++)
        n += !o->deliveries[i].is_busy;
    return n;
}

static bool is_under_way(const struct outbox *o, const struct outbox_row *r)
{
    for (size_t i = 0; i < OUTBOX_AT_ONCE; i++) {
        const struct delivery *d = &o->deliveries[i];
        if (d->is_busy && d->result.delivered.event == r->event &&
            str_eq(d->result.delivered.target, r->target))
            return true;
    }
    return false;
}

static void deliver_due(struct outbox *o)
{
    const struct model *m = tick_model(o->tick);
    int64_t now_ms = clock_wall(o->timers->clock).ms;
    const struct outbox_row *r = core_outbox_next(m, NULL), *next;
    for (; r && r->due_at.ms <= now_ms && n_free(o) > 0; r = next) {
        next = core_outbox_next(m, r);
        if (!is_under_way(o, r))
            start_delivery(o, r);
    }
    if (!r || r->due_at.ms <= now_ms)
        return; /* checked again when one is delivered or a new one arrives */
    int64_t left = r->due_at.ms - now_ms;
    timer_start(o->timers, &o->timer, left < CLOCK_CHECK_MS ? left : CLOCK_CHECK_MS);
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct outbox *o = ctx;
    (void)id;
    o->is_checking = false;
    if (e && e->kind == ERR_NO_SPACE)
        timer_start(o->timers, &o->timer, NO_SPACE_RETRY_MS);
    else if (!e)
        deliver_due(o);
}

static void check_due(struct outbox *o)
{
    if (o->is_checking)
        return;
    o->is_checking = true;
    tick_when_durable(o->tick, on_durable, o);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct outbox *o = ctx;
    (void)t;
    for (size_t i = 0; i < OUTBOX_AT_ONCE; i++)
        if (o->deliveries[i].is_done)
            post_result(&o->deliveries[i]);
    check_due(o);
}

void outbox_touch(struct outbox *o)
{
    check_due(o);
}

void outbox_start(struct outbox *o)
{
    check_due(o);
}

struct outbox *outbox_create(
    struct tick *tick, struct timers *timers, struct prng *prng, struct outbox_port *port)
{
    struct outbox *o = mem_alloc(sizeof(*o));
    *o = (struct outbox){.tick = tick, .timers = timers, .prng = prng, .port = port};
    timer_init(&o->timer, on_timer, o);
    return o;
}

void outbox_destroy(struct outbox *o)
{
    if (!o)
        return;
    timer_stop(o->timers, &o->timer);
    free(o);
}
