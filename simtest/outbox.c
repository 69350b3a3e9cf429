/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications: a delivery service that is slow, fails, and dies with belayd. Checks that each
 * change with a recipient is delivered at least once, across crashes, or given up.
 */
#include "simtest/world.h"

#include "base/str.h"

const struct notify_hook sim_hook = {.name = "all", .events = (1 << NOTIFY_EVENTS) - 1};

static void on_delivered(struct timer *t, void *ctx)
{
    struct sim_delivery *d = ctx;
    struct world *w = d->w;
    struct err e;
    bool fails = world_chance(w, 0.2);
    (void)t;
    if (!fails || world_chance(w, 0.3)) { /* delivered, but reported as failed */
        struct sim_job *j = world_job(w, d->job);
        if (d->kind != NOTIFY_BUDGET && d->kind != NOTIFY_BOOTS && d->kind != NOTIFY_LATE &&
            d->kind != NOTIFY_BEGIN && d->kind != NOTIFY_REQUEUE && d->kind != NOTIFY_IDLE_GPUS &&
            d->kind != NOTIFY_NODE_DRAINED && d->kind != NOTIFY_DIGEST && d->kind != NOTIFY_SPEND)
            j->ends_delivered++;
        w->deliveries++;
    }
    if (fails)
        err_set(&e, ERR_UNAVAILABLE, "the simulated receiver does not answer");
    d->done(d->ctx, fails ? &e : NULL);
}

static void start_delivery(
    struct outbox_port *port, const struct outbox_row *row, outbox_done_fn done, void *ctx)
{
    struct sim_postman *x =
        (struct sim_postman *)((char *)port - offsetof(struct sim_postman, port));
    struct sim_delivery *d = x->deliveries;
    while (timer_is_running(&d->timer))
        if (++d == x->deliveries + OUTBOX_AT_ONCE) {
            world_fail(x->w, "more than the allowed number of notifications is delivered at once");
            return;
        }
    const struct sim_job *j = world_job(x->w, row->job);
    if (row->kind != NOTIFY_BUDGET && row->kind != NOTIFY_BOOTS && row->kind != NOTIFY_LATE &&
        row->kind != NOTIFY_NODE_DRAINED && row->kind != NOTIFY_DIGEST &&
        row->kind != NOTIFY_SPEND && j->id == 0 && j->seen == JOB_PENDING && !j->has_begun &&
        j->ends == 0)
        world_fail(
            x->w, "a change of job %lld was notified before its commit", (long long)row->job);
    d->w = x->w;
    d->job = row->job;
    d->kind = row->kind;
    d->done = done;
    d->ctx = ctx;
    timer_start(&x->w->vt.timers, &d->timer,
        world_between(x->w, 1, world_chance(x->w, 0.1) ? 60000 : 2000));
}

void outbox_port_init(struct world *w)
{
    w->postman.port.start = start_delivery;
    w->postman.w = w;
    for (int i = 0; i < OUTBOX_AT_ONCE; i++)
        timer_init(&w->postman.deliveries[i].timer, on_delivered, &w->postman.deliveries[i]);
}

void outbox_port_kill(struct world *w)
{
    for (int i = 0; i < OUTBOX_AT_ONCE; i++)
        timer_stop(&w->vt.timers, &w->postman.deliveries[i].timer);
}

/* Promise 1: the row is in the batch of the end. Tasks of an array are not notified: the hook
 * excludes tasks. */
void outbox_port_committed(struct world *w, const struct db_batch *b)
{
    const struct changes *c = &b->changes;
    for (size_t i = 0; i < c->n_jobs; i++) {
        const struct job_row *r = &c->jobs[i];
        bool found = false;
        if (r->state != JOB_ENDED || r->array != CORE_ID_NONE)
            continue;
        for (size_t k = 0; k < c->n_outbox && !found; k++)
            found = c->outbox[k].job == r->id && c->outbox[k].kind != NOTIFY_BEGIN &&
                    c->outbox[k].kind != NOTIFY_REQUEUE && c->outbox[k].kind != NOTIFY_IDLE_GPUS;
        if (!found)
            world_fail(w, "job %lld ended without a notification row", (long long)r->id);
    }
}

static int note_given_up(void *ctx, const struct history_row *h)
{
    bool *given_up = ctx;
    *given_up |= str_eq(h->kind, "not-told");
    return 0;
}

void outbox_check(struct world *w, const struct job_row *r)
{
    bool given_up = false;
    struct err e;
    if (r->array != CORE_ID_NONE || world_job(w, r->id)->ends_delivered > 0)
        return;
    if (db_read_history(w->reader, r->id, 0, 1000, note_given_up, &given_up, &e) != 0 || !given_up)
        world_fail(w, "job %lld ended without a notification", (long long)r->id);
}
