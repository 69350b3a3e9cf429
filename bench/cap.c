/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the cap on what a job with a deadline may cost more than Uniform Progress (baseline.h)
 * holds: in a million made-up worlds (cap_worlds.h), half of them with zones of one price, by the
 * law with a guarantee and by the usual ones.
 *
 *     bench_cap [WORLDS]
 *
 * Ends with 1 if the law with a guarantee was above its cap in a world.
 */
#include "bench/cap_worlds.h"

#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS 3600000.0
#define TOLERANCE_UUSD 2 /* of sums of some thousand prices */

struct counts {
    const char *name;
    double cap; /* a part of the cost of the work on on-demand */
    bool is_certain;
    enum deadline_rule baseline;
    size_t above, late;
    double most, paid; /* most: above the cap, as a part of the same; paid: sum of such parts */
};

/* Returns whether the outcome is above its cap. */
static bool count(
    struct counts *c, const struct cap_outcome *out, double whole_uusd, double cap_uusd)
{
    const double above = out->paid_uusd - out->baseline_uusd - cap_uusd;
    const bool is_above = above > TOLERANCE_UUSD;

    c->late += out->late;
    c->above += is_above;
    if (above / whole_uusd > c->most)
        c->most = above / whole_uusd;
    c->paid += out->paid_uusd / whole_uusd;
    return is_above;
}

int main(int argc, char **argv)
{
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    struct counts all[] = {{"certain, 10 %", CAP_WORLD_CAP, true, DEADLINE_UNIFORM},
        {"certain, 10 %, UC-h", CAP_WORLD_CAP, true, DEADLINE_RC_CR_PLAIN},
        {"usual, 10 %", CAP_WORLD_CAP, false, DEADLINE_UNIFORM},
        {"usual, 35 %", 0.35, false, DEADLINE_UNIFORM},
        {"usual, 35 %, UC-h", 0.35, false, DEADLINE_RC_CR_PLAIN}};
    const size_t n_all = sizeof all / sizeof all[0];
    struct cap_world *w = mem_alloc(sizeof *w);
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    const struct deadline_starts starts = {.restart = 1.2, .boot = 0.9, .switching = 0.3};
    struct prng prng;
    size_t broken = 0;

    cap_world_learn(&c);
    deadline_table_init(&t, &c, 144, 200, &starts, 1.0 / 3);
    for (size_t i = 0; i < n; i++) {
        prng_init(&prng, i);
        cap_world_make(&prng, i % 2, w);
        const double whole_uusd = CAP_SURE_UUSD_H * (double)w->work_ms / HOUR_MS;
        for (size_t k = 0; k < n_all; k++) {
            const struct cap_terms cap = {all[k].cap * whole_uusd,
                all[k].is_certain ? &deadline_law_certain : deadline_law_usual(w->n),
                all[k].baseline};
            const struct cap_outcome out = cap_world_play(w, &p, &c.borders, &cap);
            if (count(&all[k], &out, whole_uusd, cap.uusd) && all[k].is_certain) {
                printf("above its cap: world %zu\n", i);
                broken++;
            }
        }
        if (i % 50000 == 49999)
            fprintf(stderr, "%zu of %zu worlds\n", i + 1, n);
    }
    for (size_t k = 0; k < n_all; k++)
        printf("cap: %-20s above it in %zu of %zu worlds, by at most %.2f %% of on-demand; late "
               "%zu; mean cost %.2f %% of on-demand\n",
            all[k].name, all[k].above, n, 100 * all[k].most, all[k].late,
            100 * all[k].paid / (double)n);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
    free(w);
    return broken > 0;
}
