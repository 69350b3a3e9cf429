/* SPDX-License-Identifier: Apache-2.0
 *
 * What belayd has observed of spot offers before the first job, as if it had always wanted one
 * machine of each: granted when a spell begins, reclaimed at its end, and refused every ten minutes
 * until the next one.
 */
#include "replay/replay_parts.h"

#include "base/mem.h"
#include <stdlib.h>

#define ASK_MS (10 * 60000)

struct observation {
    int64_t offer, at_ms;
    enum spot_observation what;
};

struct observations {
    struct observation *list;
    size_t n;
    int64_t start_ms, span_ms; /* of the replay; of the longest trace */
};

static void add(struct observations *w, int64_t offer, int64_t at_ms, enum spot_observation what)
{
    if ((w->n & (w->n - 1)) == 0)
        w->list = mem_resize(w->list, w->n ? 2 * w->n : 1, sizeof *w->list);
    w->list[w->n++] = (struct observation){offer, at_ms, what};
}

/* All traces begin at the same time, and the longest ends at the start. */
static void observe(struct observations *w, int64_t offer, const struct trace *t)
{
    const int64_t begin_ms = w->start_ms - w->span_ms;
    int64_t refused_ms = INT64_MIN;
    bool was_up = false;
    for (size_t i = 0; i < t->n; i++) {
        int64_t at_ms = begin_ms + (int64_t)i * t->gap_ms;
        bool is_up = t->counts[i] > 0;
        if (is_up != was_up)
            add(w, offer, at_ms, is_up ? SPOT_THERE : SPOT_LOST);
        else if (!is_up && at_ms >= refused_ms + ASK_MS)
            add(w, offer, at_ms, SPOT_AWAY);
        refused_ms = w->n > 0 && !is_up ? w->list[w->n - 1].at_ms : refused_ms;
        was_up = is_up;
    }
    if (was_up)
        add(w, offer, begin_ms + (int64_t)t->n * t->gap_ms, SPOT_ENDED);
}

static int by_time(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return (x->offer > y->offer) - (x->offer < y->offer);
}

void replay_load_observed(struct replay *w)
{
    struct observations all = {.start_ms = w->start.ms};
    for (size_t i = 0; i < w->o->n_offers; i++) {
        const struct trace *t = w->o->offers[i].observed;
        int64_t ms = t ? (int64_t)t->n * t->gap_ms : 0;
        all.span_ms = ms > all.span_ms ? ms : all.span_ms;
    }
    for (size_t i = 0; i < w->o->n_offers; i++)
        if (w->o->offers[i].observed)
            observe(&all, w->sellers[i].id, w->o->offers[i].observed);
    if (all.n > 0)
        qsort(all.list, all.n, sizeof *all.list, by_time);
    for (size_t i = 0; i < all.n; i++)
        model_load_spot_observation(
            w->m, all.list[i].offer, all.list[i].what, (struct wall){all.list[i].at_ms});
    free(all.list);
}
