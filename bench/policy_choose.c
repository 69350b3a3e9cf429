/* SPDX-License-Identifier: Apache-2.0
 *
 * Which law keeps the cap for the least money (finish_rival.h): laws of a grid, played on one year's traces alone, its zones one by one and in pairs. The
 * choice is the cheapest with which no more than one window in ten thousand there came to cost more than the cap above the rival. What is chosen on one year is for judging
 * the other.
 */
#include "base/mem.h"
#include "bench/policy_play.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double losses[] = {0.4, 0.5, 1}, flaps[] = {2, 3}, parts[] = {0.5, 0.7, 0.9};

#define LAWS (N_OF(flaps) * N_OF(losses) * N_OF(parts))

struct tried {
    struct finish_law law;
    double to_forms; /* sum, over settings, of its cost beside that of the cheapest form */
    double worst;    /* beside the rival, of on-demand only */
    size_t over;     /* windows beyond the cap */
    double cost;     /* in one setting */
};

/* Each zone with the next that began when it did, of its type if that has several: two zones are what a cap has most to do with. */
static size_t make_pairs(const struct folder *f, struct group *pairs)
{
    struct group types[ZONES_MAX] = {0};
    const size_t n_types = policy_types(f, types);
    size_t n = 0;

    for (size_t k = 0; k < n_types; k++)
        for (size_t i = 0; types[k].n > 1 && i < (types[k].n > 2 ? types[k].n : 1) && n < ZONES_MAX; i++, n++) {
            policy_add_zone(&pairs[n], f, types[k].zones[i]);
            policy_add_zone(&pairs[n], f, types[k].zones[(i + 1) % types[k].n]);
        }
    return n;
}

/* The paper's forms; the last is the rival of a job with several zones, the first that of a job with one. */
static const struct finish_policy forms[] = {{.rule = FINISH_UNIFORM}, {.rule = FINISH_UNIFORM_PLAIN},
    {.rule = FINISH_UNIFORM_PLAIN, .takes_best = true}, {.rule = FINISH_UNIFORM, .takes_best = true}};

static void try_setting(const struct world *w, const struct group *groups, size_t n_groups, const struct setting *s, const struct known *known,
    struct tried *tried)
{
    const struct finish_policy planned = {.rule = FINISH_PLANNED};
    const double sure = (double)(WORK_MS + s->restart_ms);
    double of_forms[N_OF(forms)] = {0}, least = INFINITY;

    for (size_t k = 0; k < LAWS; k++)
        tried[k].cost = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < w->offsets; i++) {
            const size_t from = policy_offset(w, &groups[g], s, i);
            double form[N_OF(forms)];
            for (size_t k = 0; k < N_OF(forms); k++) {
                form[k] = policy_play(&groups[g], from, s, &forms[k], NULL, known).cost_ms / sure;
                of_forms[k] += form[k];
            }
            for (size_t k = 0; k < LAWS; k++) {
                const double cost = policy_play(&groups[g], from, s, &planned, &tried[k].law, known).cost_ms / sure;
                const double more = cost - form[groups[g].n > 1 ? N_OF(forms) - 1 : 0];
                tried[k].cost += cost;
                tried[k].worst = fmax(tried[k].worst, more);
                tried[k].over += more > CAP;
            }
        }
    for (size_t k = 0; k < N_OF(forms); k++)
        least = fmin(least, of_forms[k]);
    for (size_t k = 0; k < LAWS; k++)
        tried[k].to_forms += tried[k].cost / least;
}

static void try_groups(const struct world *w, struct group *groups, size_t n_groups, struct tried *tried)
{
    struct known *k = mem_alloc(sizeof *k);

    policy_known_init(w, groups, n_groups, k);
    for (size_t r = 0; r < RESTARTS; r++)
        for (size_t p = 0; p < PRICES; p++) {
            policy_tables_init(k, policy_restarts_ms[r], policy_prices[p]);
            for (size_t d = 0; d < DEADLINES; d++) {
                const struct setting s = {.deadline_ms = policy_deadlines_h[d] * HOUR_MS, .restart_ms = policy_restarts_ms[r], .price = policy_prices[p]};
                try_setting(w, groups, n_groups, &s, k, tried);
            }
            policy_tables_deinit(k);
        }
    policy_known_deinit(groups, n_groups, k);
    free(k);
}

static void choose_on(const struct world *w, const struct folder *f)
{
    const double settings = RESTARTS * PRICES * DEADLINES;
    struct group singles[ZONES_MAX] = {0}, pairs[ZONES_MAX] = {0};
    const size_t n_singles = policy_singles(f, singles), n_pairs = make_pairs(f, pairs);
    const size_t windows = (n_singles + n_pairs) * w->offsets * RESTARTS * PRICES * DEADLINES;
    struct tried one[LAWS] = {0}, two[LAWS] = {0};
    size_t best = LAWS;

    for (size_t k = 0; k < LAWS; k++)
        one[k].law = two[k].law = (struct finish_law){.flaps = flaps[k / N_OF(parts) % N_OF(flaps)], .losses = losses[k / N_OF(parts) / N_OF(flaps)],
            .part = parts[k % N_OF(parts)]};
    try_groups(w, singles, n_singles, one);
    try_groups(w, pairs, n_pairs, two);
    printf("%s: what laws cost there beside the cheapest form, one zone and two, the worst window beside the rival, and windows beyond the cap of %.0f %%\n", f->name,
        100 * CAP);
    for (size_t k = 0; k < LAWS; k++) {
        const size_t over = one[k].over + two[k].over;
        const double cost = one[k].to_forms + two[k].to_forms;
        printf("  losses %.1f, flaps %.0f, part %.1f: %.4f %.4f, %+5.1f %+5.1f, %zu\n", one[k].law.losses, one[k].law.flaps, one[k].law.part, one[k].to_forms / settings,
            two[k].to_forms / settings, 100 * one[k].worst, 100 * two[k].worst, over);
        if ((double)over * 10000 <= (double)windows && (best == LAWS || cost < one[best].to_forms + two[best].to_forms))
            best = k;
    }
    if (best == LAWS)
        printf("  chosen: none, all let more windows pass\n");
    else
        printf("  chosen: losses %.1f, flaps %.0f, part %.1f; %.0f s of processor time so far\n\n", one[best].law.losses, one[best].law.flaps, one[best].law.part,
            (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

void policy_choose(const struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->folders[i].judged_from <= 0 && (!w->only || strstr(w->folders[i].name, w->only)))
            choose_on(w, &w->folders[i]);
}
