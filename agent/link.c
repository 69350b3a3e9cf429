/* SPDX-License-Identifier: Apache-2.0
 *
 *   idle --start--> parked sync <--> answered: sent again at once
 *                      |  ^
 *         changed:     |  | reply
 *      urgent sync     |  |
 *      beside it       v  |
 *                failed: both wait a full-jitter backoff, then the parked one goes first
 *
 * Invariant: after a change there is a status on its way that was made later than the change, or `dirty` is set and
 * something (a call's end, the timer) will send one.
 */
#include "agent/link.h"

#include "base/log.h"

#include <stdlib.h>

#define WAIT_MS 20000 /* until belayd says otherwise */
#define CALL_MS 15000 /* beyond the wait */
#define RETRY_BASE_MS 400 /* first wait 200 .. 400 ms */
#define RETRY_CAP_MS 60000
#define COALESCE_MS 1000

static void on_reply(void *ctx, const struct err *failed, const struct http_reply *reply);

static void send_status(struct agent_link *l, struct link_slot *slot)
{
    struct wire_status status = {.incarnation = l->incarnation,
        .seq = ++l->seq,
        .have_rev = l->rev,
        .wait_ms = slot->waits ? l->sync_ms : 0,
        .notice.deadline = WIRE_NONE};
    struct buf body = {0};
    l->fill(l->ctx, &status);
    wire_status_encode(&status, &body);
    free(status.attempts);
    l->dirty = false;
    timer_stop(l->timers, &l->coalesce);
    slot->call = peer_post(
        l->peer, "/agent/v1/sync", body.data, body.len, status.wait_ms + CALL_MS, on_reply, slot);
    buf_deinit(&body);
}

static void pump(struct agent_link *l)
{
    if (!l->running || timer_is_running(&l->retry))
        return;
    if (!l->parked.call)
        send_status(l, &l->parked);
    else if (l->dirty && !l->urgent.call)
        send_status(l, &l->urgent);
}

static void take_desired(struct agent_link *l, const struct wire_desired *d)
{
    l->failures = 0;
    l->heard = clock_mono(l->timers->clock);
    l->lease_ms = d->lease_ms;
    l->sync_ms = d->sync_ms;
    if (d->rev < l->rev)
        return;
    l->rev = d->rev;
    l->desired(l->ctx, d);
}

static void on_failure(struct agent_link *l, const struct err *e)
{
    l->dirty = true;
    if (timer_is_running(&l->retry))
        return;
    if ((e->kind == ERR_DENIED || e->kind == ERR_NOT_FOUND) && l->refused(l->ctx, e))
        return;
    int64_t wait_ms = prng_backoff_ms(l->prng, l->failures++, RETRY_BASE_MS, RETRY_CAP_MS);
    log_warn("belayd cannot be reached", log_s("server", l->peer->config->server), log_err(e),
        log_i("retry_in_ms", wait_ms));
    timer_start(l->timers, &l->retry, wait_ms);
}

static void on_reply(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct link_slot *slot = ctx;
    struct agent_link *l = slot->owner;
    struct wire_desired d;
    struct err e;
    slot->call = NULL;
    if (!l->running)
        return;
    int rc = peer_check(failed, reply, &e);
    if (!rc)
        rc = wire_desired_decode(buf_str(&reply->body), reply->body.len, &d, &e);
    if (rc) {
        on_failure(l, &e);
    } else {
        take_desired(l, &d);
        wire_desired_deinit(&d);
    }
    pump(l);
}

static void on_timer(struct timer *timer, void *ctx)
{
    (void)timer;
    pump(ctx);
}

static void on_coalesced(struct timer *timer, void *ctx)
{
    (void)timer;
    link_changed(ctx);
}

void link_init(struct agent_link *l)
{
    l->parked = (struct link_slot){.owner = l, .waits = true};
    l->urgent = (struct link_slot){.owner = l};
    l->sync_ms = WAIT_MS;
    l->heard = clock_mono(l->timers->clock);
    timer_init(&l->retry, on_timer, l);
    timer_init(&l->coalesce, on_coalesced, l);
}

void link_start(struct agent_link *l)
{
    l->running = true;
    l->rev = 0; /* another node's, or another belayd's */
    pump(l);
}

void link_stop(struct agent_link *l)
{
    l->running = false;
    timer_stop(l->timers, &l->retry);
    timer_stop(l->timers, &l->coalesce);
    http_cancel(l->peer->http, l->parked.call);
    http_cancel(l->peer->http, l->urgent.call);
}

void link_changed(struct agent_link *l)
{
    l->dirty = true;
    pump(l);
}

void link_changed_later(struct agent_link *l)
{
    if (l->running && !timer_is_running(&l->coalesce))
        timer_start(l->timers, &l->coalesce, COALESCE_MS);
}
