/* SPDX-License-Identifier: Apache-2.0
 *
 * The morning digest, due some minutes after the begin of the world, in one world in DIGEST_EVERY.
 * In some the clocks are put back after it, so that its time comes twice, or put forward over it.
 * Promise: each morning has exactly one digest, whenever belayd is killed, to each target and to
 * the user who subscribed; the row that records it and its notifications are committed together.
 */
#include "simtest/world.h"

#include "base/str.h"
#include "scheduler/core/lifecycle/digest.h"

#define DIGEST_EVERY 4
#define CHANGE_MS 600000LL    /* between the digest's time and the change of the clocks */
#define CHANGE_BY_S 1800      /* the size of the change */
#define LATE_MS (5 * 60000LL) /* belayd checks its clock once a minute */

static bool is_enabled(const struct world *w)
{
    return w->seed % DIGEST_EVERY == 2;
}

void digests_init(struct world *w)
{
    struct sim_digest *d = &w->digests;
    int64_t begin_minute = world_stamp(w).wall.ms / 60000;
    int64_t due_minute = begin_minute + 12 + (int64_t)(w->seed / DIGEST_EVERY % 40);
    int change = (int)(w->seed / 7 % 3) - 1; /* -1: back, after it; 1: forward, over it */
    d->first = (struct wall){due_minute * 60000 - (change == 1 ? CHANGE_MS : 0)};
    d->due = (struct wall){due_minute * 60000};
    d->spans[0] = (struct zone_span){.from_s = INT64_MIN};
    d->spans[1] = (struct zone_span){
        .from_s = (d->due.ms - change * CHANGE_MS) / 1000, .offset_s = change * CHANGE_BY_S};
    d->zone = (struct time_zone){.name = "Sim/Digest", .n = change ? 2 : 1, .spans = d->spans};
    d->options = (struct digest_options){
        .at_minute = (int32_t)(due_minute % 1440), .zone = &d->zone, .n_mails = 1};
    d->told_until = WALL_NONE;
    d->change_s = change * CHANGE_BY_S;
}

const struct digest_options *digests_options(const struct world *w)
{
    return is_enabled(w) ? &w->digests.options : NULL;
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

/* Repeats the request until it has taken effect. */
void digests_ask(struct world *w)
{
    static const struct digest_row ann = {.user = "ann", .mail = "ann@lab"};
    struct event ev = {.type = EV_DIGEST_SET, .digest_set = {.to = &ann, .mail = true}};
    if (is_enabled(w) && !core_digest_mail(w->model, "ann"))
        tick_post(w->tick, &ev, on_done, NULL);
}

/* The k-th time of the digest, from 0. */
static struct wall time_of(const struct sim_digest *d, int64_t k)
{
    return k == 0 ? d->first : (struct wall){d->due.ms + k * DAY_MS - d->change_s * 1000LL};
}

static void check_told(struct world *w, const struct digest_row *r)
{
    struct sim_digest *d = &w->digests;
    if (r->user[0]) {
        d->is_subscribed = true;
        return;
    }
    bool begins = !wall_is_set(d->told_until);
    d->told_until = r->told_until;
    if (begins)
        return;
    if (r->told_until.ms != time_of(d, d->n).ms)
        world_fail(w, "digest %lld is of %lld, its time was %lld", (long long)d->n + 1,
            (long long)r->told_until.ms, (long long)time_of(d, d->n).ms);
    d->n++;
}

/* New rows of one batch: one to each target, and one to the user. */
static void count_rows(struct world *w, const struct changes *c, int64_t digests)
{
    int64_t mails = 0, hooks = 0, users = 0;
    bool subscribed = w->digests.is_subscribed;
    for (size_t i = 0; i < c->n_outbox; i++) {
        const struct outbox_row *r = &c->outbox[i];
        if (r->kind != NOTIFY_DIGEST || r->tries > 0)
            continue;
        mails += str_eq(r->target, "mail:0");
        hooks += str_starts(r->target, "hook:");
        users += str_eq(r->user, "ann");
        if (r->digest_to.ms > w->digests.told_until.ms || r->digest_from.ms >= r->digest_to.ms)
            world_fail(w, "a digest covers a period that is not over, or none");
    }
    if (mails != digests || hooks != digests || users > digests || (!subscribed && users > 0))
        world_fail(w,
            "%lld digests were decided: %lld mails, %lld calls of the webhook, %lld of a user",
            (long long)digests, (long long)mails, (long long)hooks, (long long)users);
}

void digests_committed(struct world *w, const struct changes *c)
{
    int64_t before = w->digests.n;
    for (size_t i = 0; i < c->n_digests; i++)
        check_told(w, &c->digests[i]);
    count_rows(w, c, w->digests.n - before);
}

/* No digest is missing for long while belayd runs. */
void digests_check(struct world *w)
{
    const struct sim_digest *d = &w->digests;
    int64_t now_ms = world_stamp(w).wall.ms;
    if (!is_enabled(w) || !wall_is_set(d->told_until) || w->committing || tick_is_full(w->tick))
        return;
    if (now_ms - time_of(d, d->n).ms > LATE_MS && world_now(w) - d->up_since_ms > LATE_MS)
        world_fail(w, "the digest of %lld was not sent", (long long)time_of(d, d->n).ms);
}

void digests_up(struct world *w)
{
    w->digests.up_since_ms = world_now(w);
}
