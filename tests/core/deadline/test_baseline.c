/* SPDX-License-Identifier: Apache-2.0
 *
 * The cap on regret: in no world does the plan cost more than Uniform Progress plus the cap, nor is
 * it late; and the simulated baseline equals Uniform Progress exactly.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/core/deadline/baseline.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOUR_MS 3600000LL
#define MINUTE_MS 60000LL
#define SURE_UUSD_H 3000000
#define ZONES_MAX 3
#define LOOKS_MAX 1200
#define ROUNDS 2000

/* Zones that come and go per examination, and a job. */
struct world {
    size_t n, n_looks;
    bool up[ZONES_MAX][LOOKS_MAX];
    int64_t price_uusd_h[ZONES_MAX];
    int64_t work_ms, time_ms, restart_ms, failed_launch_ms, look_ms;
};

struct outcome {
    double paid_uusd, baseline_uusd;
    bool late;
};

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

static void make_world(struct prng *prng, struct world *w)
{
    w->n = 1 + prng_below(prng, ZONES_MAX);
    w->look_ms = prng_range(prng, 3, 10) * MINUTE_MS;
    w->work_ms = prng_range(prng, 4 * HOUR_MS, 24 * HOUR_MS);
    w->restart_ms = prng_range(prng, 0, 30) * MINUTE_MS;
    w->failed_launch_ms = prng_chance(prng, 0.5) ? 0 : prng_range(prng, 0, 20) * MINUTE_MS;
    w->time_ms =
        w->work_ms + 2 * w->restart_ms + w->failed_launch_ms + prng_range(prng, 0, w->work_ms);
    w->n_looks = LOOKS_MAX;
    for (size_t z = 0; z < w->n; z++) {
        w->price_uusd_h[z] = prng_range(prng, SURE_UUSD_H / 10, SURE_UUSD_H);
        make_zone(prng, (enum weather)prng_below(prng, WEATHERS), w->n_looks, w->up[z]);
    }
}

static void look(const struct world *w, const struct deadline_borders *b,
    struct spell_watch *watches, size_t i, struct deadline_offer *offers)
{
    for (size_t z = 0; z < w->n; z++) {
        spell_watch_see(&watches[z], (int64_t)i * w->look_ms, w->up[z][i]);
        offers[z] = (struct deadline_offer){.is_up = w->up[z][i],
            .price_uusd_h = w->price_uusd_h[z],
            .class = deadline_class(b, &watches[z], (int64_t)i * w->look_ms),
            .share = spell_watch_share(&watches[z]),
            .rate = spell_watch_rate(&watches[z])};
    }
    offers[w->n] = (struct deadline_offer){.is_sure = true, .price_uusd_h = SURE_UUSD_H};
}

/* Runs the job by p; with a cap relative to a baseline if cap_uusd is finite. */
static struct outcome play(const struct world *w, const struct deadline_policy *p,
    const struct deadline_borders *b, double cap_uusd, const struct deadline_law *law)
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
        .whole_work_ms = w->work_ms,
        .whole_time_ms = w->time_ms,
        .cap_uusd = cap_uusd,
        .law = law};
    struct spell_watch watches[ZONES_MAX] = {0};
    struct deadline_offer offers[ZONES_MAX + 1];
    struct baseline baseline;
    bool late = false;

    baseline_init(&baseline);
    job.baseline = isinf(cap_uusd) ? NULL : &baseline;
    for (size_t i = 0; i < w->n_looks; i++) {
        struct deadline_choice choice;
        look(w, b, watches, i, offers);
        if (job.on < w->n && !offers[job.on].is_up)
            job.on = DEADLINE_NOWHERE;
        deadline_decide(p, &job, offers, w->n + 1, offers[0].class, &choice);
        /* following the baseline is not reported as DEADLINE_WHY_NET */
        assert_true(choice.why != DEADLINE_WHY_NET || deadline_slack_ms(&job) < 0);
        baseline_pass(
            &baseline, &job, offers, baseline_look(&baseline, &job, offers, w->n + 1), w->look_ms);
        baseline_go(&job, offers, choice.offer, w->look_ms);
        late = late || (job.work_ms > 0 && job.left_ms <= 0);
    }
    assert_int_equal(job.work_ms, 0);
    assert_true(baseline.done_ms == w->work_ms);
    return (struct outcome){
        .paid_uusd = job.paid_uusd, .baseline_uusd = baseline.paid_uusd, .late = late};
}

/* Learns from a different market, ten examinations up and five down: the worlds are mostly unlike
 * it. */
static void learn(struct deadline_chain *c)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 1};

    counts->borders = (struct deadline_borders){.share = {0.4, 0.8}, .rate = {0.1, 0.5}};
    for (int i = 0; i < 3000; i++)
        deadline_offer_set_see(&m, (int64_t)i * DEADLINE_STEP_MS, (bool[]){i % 15 < 10}, counts);
    deadline_chain_init(c, counts);
    free(counts);
}

static void the_baseline_is_uniform_progress(void **state)
{
    const struct deadline_borders b = {0};
    const struct deadline_policy p = {.rule = DEADLINE_UNIFORM, .takes_best = true};
    struct world *w = mem_alloc(sizeof *w);
    struct prng prng;

    (void)state;
    prng_init(&prng, 5);
    for (int round = 0; round < ROUNDS / 10; round++) {
        make_world(&prng, w);
        const struct outcome out = play(w, &p, &b, INFINITY, NULL);
        assert_false(out.late);
        assert_true(fabs(out.paid_uusd - out.baseline_uusd) < 1);
    }
    free(w);
}

static void the_cap_holds_in_every_world(void **state)
{
    struct world *w = mem_alloc(sizeof *w);
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    size_t without = 0, with_interruptions = 0;
    double paid = 0, certain = 0;
    struct prng prng;

    (void)state;
    learn(&c);
    deadline_table_init(&t, &c, 144, 200, 1.2, 1.0 / 3);
    prng_init(&prng, 6);
    for (int round = 0; round < ROUNDS; round++) {
        make_world(&prng, w);
        const double whole_uusd = SURE_UUSD_H * (double)w->work_ms / HOUR_MS,
                     cap_uusd = whole_uusd * 0.01 * (double)prng_range(&prng, 0, 15);
        const struct outcome capped = play(w, &p, &c.borders, cap_uusd, &deadline_law_certain),
                             some =
                                 play(w, &p, &c.borders, whole_uusd / 10, deadline_law_usual(w->n));
        const struct outcome uncapped = play(w, &p, &c.borders, INFINITY, NULL);
        assert_false(capped.late || some.late || uncapped.late);
        assert_true(capped.paid_uusd - capped.baseline_uusd <= cap_uusd + 1);
        paid += some.paid_uusd / whole_uusd;
        certain +=
            play(w, &p, &c.borders, whole_uusd / 10, &deadline_law_certain).paid_uusd / whole_uusd;
        with_interruptions += some.paid_uusd - some.baseline_uusd > whole_uusd / 10;
        without += uncapped.paid_uusd - uncapped.baseline_uusd > whole_uusd / 10;
    }
    print_message("dearer than Uniform Progress by more than a tenth of on-demand, of %d worlds: "
                  "%zu without a cap, %zu with the usual one\n",
        ROUNDS, without, with_interruptions);
    assert_true(without > ROUNDS / 10); /* these worlds are of the relevant kind */
    assert_true(with_interruptions <= ROUNDS / 400);
    assert_true(paid < 0.98 * certain); /* the gain from giving up the guarantee */
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_baseline_is_uniform_progress),
        cmocka_unit_test(the_cap_holds_in_every_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
