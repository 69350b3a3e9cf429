/* SPDX-License-Identifier: Apache-2.0
 *
 * Days on which far more is spent than usual: what reviews the spending reports its findings again
 * and again, and anew after each start of belayd. Promise: each is notified exactly once, in the
 * commit that records it, whenever belayd is killed. After a start belayd remembers the days that
 * were committed, and no others.
 */
#include "simtest/world.h"

#include "base/str.h"
#include "scheduler/core/ledger/anomalies.h"

#define ANOMALIES_EVERY 3

static const char *const subjects[SIM_ANOMALIES] = {"ann", "burst"};

static bool is_enabled(const struct world *w)
{
    return w->seed % ANOMALIES_EVERY == 1;
}

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

static enum spend_of of(int k)
{
    return k == 0 ? SPEND_OF_USER : SPEND_OF_POOL;
}

/* The same findings each time: those of today. */
void anomalies_ask(struct world *w)
{
    for (int k = 0; k < SIM_ANOMALIES && is_enabled(w); k++) {
        struct event ev = {.type = EV_ANOMALY,
            .anomaly = {.of = of(k),
                .day = {world_stamp(w).wall.ms / DAY_MS * DAY_MS},
                .uusd = 100,
                .usual_uusd = 10,
                .weeks = 4}};
        STR_COPY(ev.anomaly.subject, subjects[k]);
        tick_post(w->tick, &ev, on_done, NULL);
    }
}

static int64_t count_rows(const struct changes *c, int k, struct wall day)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->n_outbox; i++) {
        const struct outbox_row *r = &c->outbox[i];
        n += r->kind == NOTIFY_SPEND && r->tries == 0 && r->spend_of == of(k) &&
             r->day.ms == day.ms && str_eq(r->subject, subjects[k]);
    }
    return n;
}

static void check(struct world *w, const struct changes *c, int k)
{
    struct wall *told = &w->anomalies[k];
    int64_t n = 0;
    for (size_t i = 0; i < c->n_anomalies; i++) {
        const struct anomaly_row *a = &c->anomalies[i];
        if (a->of != of(k) || !str_eq(a->subject, subjects[k]))
            continue;
        if (a->day.ms <= told->ms)
            world_fail(w, "the spending of %s was notified twice on one day", subjects[k]);
        *told = a->day;
        n = count_rows(c, k, a->day);
        if (n != 1)
            world_fail(
                w, "the spending of %s was notified %lld times at once", subjects[k], (long long)n);
    }
    for (size_t i = 0; i < c->n_outbox; i++)
        if (c->outbox[i].kind == NOTIFY_SPEND && str_eq(c->outbox[i].subject, subjects[k]) &&
            c->outbox[i].tries == 0 && n == 0)
            world_fail(w, "a notification of the spending of %s has no record", subjects[k]);
}

void anomalies_committed(struct world *w, const struct changes *c)
{
    for (int k = 0; k < SIM_ANOMALIES; k++)
        check(w, c, k);
}

void anomalies_up(struct world *w)
{
    for (int k = 0; k < SIM_ANOMALIES; k++) {
        struct wall told = w->anomalies[k], next = {told.ms + DAY_MS};
        if (told.ms > 0 && !core_anomaly_is_told(w->model, of(k), subjects[k], told))
            world_fail(w, "it was forgotten that the spending of %s was notified", subjects[k]);
        if (core_anomaly_is_told(w->model, of(k), subjects[k], next))
            world_fail(w, "the spending of %s counts as notified on a day that was not committed",
                subjects[k]);
    }
}
