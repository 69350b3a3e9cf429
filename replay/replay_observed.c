/* SPDX-License-Identifier: Apache-2.0
 *
 * What belayd has observed of spot before the first job, as if it had always run one job that may
 * use all of the offers, on spot: on one of them until that is lost, then on the next one that is
 * there. While none is there, each is asked every ten minutes.
 */
#include "replay/replay_parts.h"

#include "base/mem.h"
#include "base/minmax.h"
#include <stdlib.h>

#define ASK_MS (10 * 60000)

/* Spot offers that were observed. */
struct before {
    const struct replay_offer **offers;
    int64_t *ids;
    size_t n;
    int64_t begin_ms, end_ms, step_ms; /* step_ms: the shortest of the traces */
};

/* All traces begin at the same time; after the end of a shorter one its offer is away. */
static bool is_up(const struct before *b, size_t i, int64_t at_ms)
{
    const struct trace *t = b->offers[i]->observed;
    const size_t tick = (size_t)((at_ms - b->begin_ms) / t->gap_ms);
    return tick < t->n && t->counts[tick] > 0;
}

/* Asks the offers in turn, beginning after the last one, and not the one that was lost just now.
 * Returns the one that is there; n: none. */
static size_t ask(
    struct replay *w, const struct before *b, size_t last, size_t lost, struct wall at)
{
    for (size_t k = 1; k <= b->n; k++) {
        const size_t i = (last + k) % b->n;
        const bool is_there = is_up(b, i, at.ms);
        if (i != lost)
            model_load_spot_observation(w->m, b->ids[i], is_there ? SPOT_THERE : SPOT_AWAY, at);
        if (is_there)
            return i;
    }
    return b->n;
}

static void observe(struct replay *w, const struct before *b)
{
    size_t on = b->n, last = b->n - 1;
    int64_t ask_at_ms = b->begin_ms;
    for (int64_t at_ms = b->begin_ms; at_ms < b->end_ms; at_ms += b->step_ms) {
        const struct wall at = {at_ms};
        size_t lost = b->n;
        if (on < b->n && !is_up(b, on, at_ms)) {
            model_load_spot_observation(w->m, b->ids[on], SPOT_LOST, at);
            lost = on;
            on = b->n;
            ask_at_ms = at_ms;
        }
        if (on < b->n || at_ms < ask_at_ms)
            continue;
        on = ask(w, b, last, lost, at);
        last = on < b->n ? on : last;
        ask_at_ms = at_ms + ASK_MS;
    }
    if (on < b->n)
        model_load_spot_observation(w->m, b->ids[on], SPOT_ENDED, (struct wall){b->end_ms});
}

/* The longest trace ends at the start of the replay. */
void replay_load_observed(struct replay *w)
{
    struct before b = {.offers = mem_array(w->o->n_offers, sizeof *b.offers),
        .ids = mem_array(w->o->n_offers, sizeof *b.ids),
        .begin_ms = w->start.ms,
        .end_ms = w->start.ms,
        .step_ms = ASK_MS};
    for (size_t i = 0; i < w->o->n_offers; i++) {
        const struct trace *t = w->o->offers[i].observed;
        if (!t)
            continue;
        b.offers[b.n] = &w->o->offers[i];
        b.ids[b.n++] = w->sellers[i].id;
        b.begin_ms = min_i64(b.begin_ms, w->start.ms - (int64_t)t->n * t->gap_ms);
        b.step_ms = min_i64(b.step_ms, t->gap_ms);
    }
    if (b.n > 0)
        observe(w, &b);
    free(b.offers);
    free(b.ids);
}
