/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cap_worlds.h"

#include "base/mem.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define HOUR_MS 3600000LL
#define MINUTE_MS 60000LL

enum weather { FLAPPING, SPELLS, REGIMES, LATE_SUN, WEATHERS };

/* Spells end and begin at examinations. */
static void make_zone(struct prng *prng, enum weather weather, size_t n, bool *up)
{
    double ends = prng_unit(prng), comes = prng_unit(prng);
    const size_t sun = prng_below(prng, n);
    bool is_up = prng_chance(prng, 0.5);

    if (weather == SPELLS || weather == REGIMES) {
        ends = pow(10, -3 * ends);
        comes = pow(10, -3 * comes);
    }
    for (size_t i = 0; i < n; i++) {
        if (weather == REGIMES && prng_chance(prng, 0.01)) {
            ends = pow(10, -3 * prng_unit(prng));
            comes = pow(10, -3 * prng_unit(prng));
        }
        is_up = prng_chance(prng, is_up ? ends : comes) != is_up;
        if (weather == FLAPPING)
            is_up = i % 3 < 1 + prng_below(prng, 2);
        if (weather == LATE_SUN && i >= sun)
            is_up = true;
        up[i] = is_up;
    }
}

void cap_world_make(struct prng *prng, bool is_even, struct cap_world *w)
{
    w->n = 1 + prng_below(prng, CAP_ZONES_MAX);
    w->look_ms = prng_range(prng, 3, 10) * MINUTE_MS;
    w->work_ms = prng_range(prng, 4 * HOUR_MS, 24 * HOUR_MS);
    w->restart_ms = prng_range(prng, 0, 30) * MINUTE_MS;
    w->failed_launch_ms = prng_chance(prng, 0.5) ? 0 : prng_range(prng, 0, 20) * MINUTE_MS;
    w->time_ms =
        w->work_ms + 2 * w->restart_ms + w->failed_launch_ms + prng_range(prng, 0, w->work_ms);
    w->n_looks = CAP_LOOKS_MAX;
    for (size_t z = 0; z < w->n; z++) {
        w->price_uusd_h[z] = z > 0 && is_even
                                 ? w->price_uusd_h[0]
                                 : prng_range(prng, CAP_SURE_UUSD_H / 10, CAP_SURE_UUSD_H);
        make_zone(prng, (enum weather)prng_below(prng, WEATHERS), w->n_looks, w->up[z]);
    }
}

static void look(const struct cap_world *w, const struct deadline_borders *b,
    struct spell_watch *watches, size_t i, struct deadline_offer *offers)
{
    for (size_t z = 0; z < w->n; z++) {
        spell_watch_see(&watches[z], (int64_t)i * w->look_ms, w->up[z][i]);
        offers[z] = (struct deadline_offer){.is_up = w->up[z][i],
            .price_uusd_h = w->price_uusd_h[z],
            .class = deadline_class(b, &watches[z], (int64_t)i * w->look_ms),
            .share = spell_watch_share(&watches[z]),
            .rate = spell_watch_rate(&watches[z]),
            .record_ms = spell_watch_record_ms(&watches[z], (int64_t)i * w->look_ms)};
    }
    offers[w->n] = (struct deadline_offer){.is_sure = true, .price_uusd_h = CAP_SURE_UUSD_H};
}

struct cap_outcome cap_world_play(const struct cap_world *w, const struct deadline_policy *p,
    const struct deadline_borders *b, const struct cap_terms *cap)
{
    struct deadline_job job = {.work_ms = w->work_ms,
        .work_worst_ms = w->work_ms,
        .left_ms = w->time_ms,
        .restart_ms = w->restart_ms,
        .restart_worst_ms = w->restart_ms,
        .failed_launch_ms = w->failed_launch_ms,
        .look_ms = w->look_ms,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE,
        .moving_to = DEADLINE_NOWHERE,
        .whole_work_ms = w->work_ms,
        .whole_time_ms = w->time_ms,
        .cap_uusd = cap->uusd,
        .law = cap->law};
    struct spell_watch watches[CAP_ZONES_MAX] = {0};
    struct deadline_offer offers[CAP_ZONES_MAX + 1];
    struct baseline baseline;
    bool late = false;

    baseline_init(&baseline, cap->baseline);
    job.baseline = isinf(cap->uusd) ? NULL : &baseline;
    if (p->rule == DEADLINE_PLANNED) {
        job.boot_ms = w->restart_ms - w->restart_ms / 4;
        job.switch_ms = job.switch_worst_ms = w->restart_ms / 4;
    }
    for (size_t i = 0; i < w->n_looks && (job.work_ms > 0 || baseline.done_ms < w->work_ms); i++) {
        struct deadline_choice choice;
        look(w, b, watches, i, offers);
        baseline_lose(&job, offers);
        deadline_decide(p, &job, offers, w->n + 1, offers[0].class, &choice);
        /* following the baseline is not reported as DEADLINE_WHY_NET */
        assert(choice.why != DEADLINE_WHY_NET || deadline_slack_ms(&job) < 0);
        baseline_pass(
            &baseline, &job, offers, baseline_look(&baseline, &job, offers, w->n + 1), w->look_ms);
        baseline_go(&job, offers, choice.offer, w->look_ms);
        late = late || (job.work_ms > 0 && job.left_ms <= 0);
    }
    assert(job.work_ms == 0);
    assert(baseline.done_ms == w->work_ms);
    return (struct cap_outcome){
        .paid_uusd = job.paid_uusd, .baseline_uusd = baseline.paid_uusd, .late = late};
}

void cap_world_learn(struct deadline_chain *c)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 1};

    counts->borders = (struct deadline_borders){.share = {0.4, 0.8}, .rate = {0.1, 0.5}};
    for (int i = 0; i < 3000; i++)
        deadline_offer_set_see(&m, (int64_t)i * DEADLINE_STEP_MS, (bool[]){i % 15 < 10}, counts);
    deadline_chain_init(c, counts);
    free(counts);
}
