/* SPDX-License-Identifier: Apache-2.0
 *
 *   idle --start--> parked sync <--> answered: repeated at once
 *                      |  ^
 *         changed:     |  | reply
 *      urgent sync     |  |
 *     in parallel      v  |
 *                failed: both wait a full-jitter backoff, then the parked one goes first
 *
 * Invariant: after a change either a status built after it is in flight, or `dirty` is set and an
 * event (a call's end, the timer) will send one.
 */
#include "agent/uplink.h"

#include "base/log.h"

#include <stdlib.h>

#define WAIT_MS 20000     /* unless belayd says otherwise */
#define CALL_MS 15000     /* in addition to the wait */
#define RETRY_BASE_MS 400 /* first wait 200 .. 400 ms */
/* or a third of the lease if that is less, so that a restarted belayd hears from this node before
 * it declares it lost */
#define RETRY_CAP_MS 10000
#define COALESCE_MS 1000

static void on_reply(void *ctx, const struct err *failed, const struct http_reply *reply);

static void send_status(struct uplink *u, struct uplink_slot *slot)
{
    struct wire_status status = {.incarnation = u->incarnation,
        .seq = ++u->seq,
        .have_rev = u->rev,
        .wait_ms = slot->waits ? u->sync_ms : 0,
        .notice.deadline = WIRE_NONE};
    struct buf body = {0};
    u->fill(u->ctx, &status);
    wire_status_encode(&status, &body);
    free(status.attempts);
    free(status.kept);
    free(status.task_loads);
    free(status.gpu_loads);
    for (size_t i = 0; i < status.n_tails; i++)
        free(status.tails[i].hex);
    free(status.tails);
    u->dirty = false;
    timer_stop(u->timers, &u->coalesce);
    slot->call = peer_post(
        u->peer, "/agent/v1/sync", body.data, body.len, status.wait_ms + CALL_MS, on_reply, slot);
    buf_deinit(&body);
}

static void pump(struct uplink *u)
{
    if (!u->running || timer_is_running(&u->retry))
        return;
    if (!u->parked.call)
        send_status(u, &u->parked);
    else if (u->dirty && !u->urgent.call)
        send_status(u, &u->urgent);
}

static void take_desired(struct uplink *u, const struct wire_desired *d)
{
    u->failures = 0;
    u->heard = clock_mono(u->timers->clock);
    u->lease_ms = d->lease_ms;
    u->sync_ms = d->sync_ms;
    if (d->rev < u->rev)
        return;
    u->rev = d->rev;
    u->desired(u->ctx, d);
}

static int64_t retry_cap_ms(const struct uplink *u)
{
    return u->lease_ms > 0 && u->lease_ms / 3 < RETRY_CAP_MS ? u->lease_ms / 3 : RETRY_CAP_MS;
}

static void on_failure(struct uplink *u, const struct err *e, bool is_answer)
{
    u->dirty = true;
    if (timer_is_running(&u->retry))
        return;
    if ((e->kind == ERR_DENIED || e->kind == ERR_NOT_FOUND) && u->refused(u->ctx, e))
        return;
    int64_t wait_ms = prng_backoff_ms(u->prng, u->failures++, RETRY_BASE_MS, retry_cap_ms(u));
    log_warn(is_answer ? "belayd answered with an error" : "belayd cannot be reached",
        log_s("server", u->peer->config->server), log_err(e), log_i("retry_in_ms", wait_ms));
    timer_start(u->timers, &u->retry, wait_ms);
}

static void on_reply(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct uplink_slot *slot = ctx;
    struct uplink *u = slot->owner;
    struct wire_desired d;
    struct err e;
    slot->call = NULL;
    if (!u->running)
        return;
    if (failed && failed->kind == ERR_CANCELLED) { /* by uplink_stop, before a new start */
        pump(u);
        return;
    }
    int rc = peer_check(failed, reply, &e);
    if (!rc)
        rc = wire_desired_decode(buf_str(&reply->body), reply->body.len, &d, &e);
    if (rc) {
        /* belayd is unavailable, but running */
        if (reply && (e.kind == ERR_NO_SPACE || e.kind == ERR_UNAVAILABLE))
            u->heard = clock_mono(u->timers->clock);
        on_failure(u, &e, reply != NULL);
    } else {
        take_desired(u, &d);
        wire_desired_deinit(&d);
    }
    pump(u);
}

static void on_timer(struct timer *timer, void *ctx)
{
    (void)timer;
    pump(ctx);
}

static void on_coalesced(struct timer *timer, void *ctx)
{
    (void)timer;
    uplink_changed(ctx);
}

void uplink_init(struct uplink *u)
{
    u->parked = (struct uplink_slot){.owner = u, .waits = true};
    u->urgent = (struct uplink_slot){.owner = u};
    u->sync_ms = WAIT_MS;
    u->heard = clock_mono(u->timers->clock);
    timer_init(&u->retry, on_timer, u);
    timer_init(&u->coalesce, on_coalesced, u);
}

void uplink_start(struct uplink *u)
{
    u->running = true;
    u->rev = 0; /* the last revision was another node's or another belayd's */
    pump(u);
}

void uplink_stop(struct uplink *u)
{
    u->running = false;
    timer_stop(u->timers, &u->retry);
    timer_stop(u->timers, &u->coalesce);
    http_cancel(u->peer->http, u->parked.call);
    http_cancel(u->peer->http, u->urgent.call);
}

void uplink_changed(struct uplink *u)
{
    u->dirty = true;
    pump(u);
}

void uplink_changed_later(struct uplink *u)
{
    if (u->running && !timer_is_running(&u->coalesce))
        timer_start(u->timers, &u->coalesce, COALESCE_MS);
}

bool uplink_is_reported(const struct uplink *u)
{
    return !u->running || (!u->dirty && !u->urgent.call);
}
