/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the constants of the cap (struct deadline_law): each set of a grid is simulated on the
 * traces of one year, with zones one by one and in pairs. The rule, applied to jobs with one offer
 * and to jobs with several:
 *
 * 1. Keep the sets whose mean cost, relative to the cheapest form of Uniform Progress, is at most
 *    ONE_AIM (one offer) or SEVERAL_AIM (several). If there is none, take the cheapest set.
 * 2. Of these, keep the sets whose worst window is within SAME of the best, and take the cheapest.
 *
 * All sets use half of the cap, because the windows of one year differ from those of another. The
 * set chosen on one year is for judging the other year; the set chosen on all years is belayd's
 * default.
 */
#include "base/mem.h"
#include "bench/policy_play.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CAP 0.1 /* part of on-demand only */
#define PART 0.5
#define ONE_AIM 0.96
#define SEVERAL_AIM 0.95
#define SAME 0.005 /* as a part of on-demand only */
static const double losses[] = {0.4, 0.5, 1, 2}, interruptions[] = {2, 3, 5};

#define LAWS (N_OF(interruptions) * N_OF(losses))

struct tried {
    struct deadline_law law;
    double to_forms; /* sum, over settings, of its cost relative to the cheapest form */
    double worst;    /* extra cost relative to the baseline, as a part of on-demand only */
    size_t over;     /* number of windows above the cap */
    double cost;     /* in one setting */
};

/* Pairs each zone with the next one that began at the same time, of its own type if that has
 * several. Pairs, because a cap is hardest to keep with two zones. */
static size_t make_pairs(const struct folder *f, struct group *pairs)
{
    struct group types[ZONES_MAX] = {0};
    const size_t n_types = policy_types(f, types);
    size_t n = 0;

    for (size_t k = 0; k < n_types; k++)
        for (size_t i = 0; types[k].n > 1 && i < (types[k].n > 2 ? types[k].n : 1) && n < ZONES_MAX;
             i++, n++) {
            policy_add_zone(&pairs[n], f, types[k].zones[i]);
            policy_add_zone(&pairs[n], f, types[k].zones[(i + 1) % types[k].n]);
        }
    return n;
}

/* The paper's forms. The first is the baseline of a job with one zone, the last of a job with
 * several. */
static const struct deadline_policy forms[] = {{.rule = DEADLINE_UNIFORM},
    {.rule = DEADLINE_UNIFORM_PLAIN}, {.rule = DEADLINE_UNIFORM_PLAIN, .takes_best = true},
    {.rule = DEADLINE_UNIFORM, .takes_best = true}};

static void try_setting(const struct world *w, const struct group *groups, size_t n_groups,
    const struct setting *s, const struct known *known, struct tried *tried)
{
    const struct deadline_policy planned = {.rule = DEADLINE_PLANNED};
    const double sure = (double)(WORK_MS + s->restart_ms);
    double of_forms[N_OF(forms)] = {0}, least = INFINITY;

    for (size_t k = 0; k < LAWS; k++)
        tried[k].cost = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < w->offsets; i++) {
            const size_t from = policy_offset(w, &groups[g], s, i);
            double form[N_OF(forms)];
            for (size_t k = 0; k < N_OF(forms); k++) {
                form[k] = policy_play(&groups[g], from, s, &forms[k], &(struct capped){0}, known)
                              .cost_ms /
                          sure;
                of_forms[k] += form[k];
            }
            for (size_t k = 0; k < LAWS; k++) {
                const struct capped capped = {CAP, &tried[k].law, DEADLINE_UNIFORM};
                const double cost =
                    policy_play(&groups[g], from, s, &planned, &capped, known).cost_ms / sure;
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

static void try_groups(
    const struct world *w, struct group *groups, size_t n_groups, struct tried *tried)
{
    struct known *k = mem_alloc(sizeof *k);

    policy_known_init(w, groups, n_groups, k);
    for (size_t r = 0; r < RESTARTS; r++)
        for (size_t p = 0; p < PRICES; p++) {
            struct setting s = policy_setting(policy_restarts_ms[r], policy_prices[p]);
            policy_tables_init(k, &s);
            for (size_t d = 0; d < DEADLINES; d++) {
                s.deadline_ms = policy_deadlines_h[d] * HOUR_MS;
                try_setting(w, groups, n_groups, &s, k, tried);
            }
            policy_tables_deinit(k);
        }
    policy_known_deinit(groups, n_groups, k);
    free(k);
}

/* Results of one year, or of all years: with one offer, and with two. */
struct trials {
    size_t settings;
    struct tried one[LAWS], two[LAWS];
};

static void init_laws(struct tried *tried)
{
    for (size_t k = 0; k < LAWS; k++)
        tried[k].law =
            (struct deadline_law){.interruptions = interruptions[k % N_OF(interruptions)],
                .losses = losses[k / N_OF(interruptions)],
                .part = PART};
}

static void add_up(struct tried *to, const struct tried *from)
{
    for (size_t k = 0; k < LAWS; k++) {
        to[k].to_forms += from[k].to_forms;
        to[k].worst = fmax(to[k].worst, from[k].worst);
        to[k].over += from[k].over;
    }
}

/* Applies the rule at the top of this file. In two steps, so that the result does not depend on the
 * order of the grid. */
static const struct tried *choose_of(const struct tried *tried, double aim)
{
    const struct tried *best = NULL;
    double worst = INFINITY;

    for (size_t k = 0; k < LAWS; k++)
        if (tried[k].to_forms <= aim)
            worst = fmin(worst, tried[k].worst);
    for (size_t k = 0; k < LAWS; k++) {
        const bool stands =
            isinf(worst) || (tried[k].to_forms <= aim && tried[k].worst <= worst + SAME);
        if (stands && (!best || tried[k].to_forms < best->to_forms))
            best = &tried[k];
    }
    return best;
}

static void print_choice(const char *of, const struct tried *tried, double aim)
{
    const struct tried *best = choose_of(tried, aim);

    printf("  chosen for %s: losses %.1f, interruptions %.0f%s\n", of, best->law.losses,
        best->law.interruptions, best->to_forms <= aim ? "" : " (no set reaches the wanted cost)");
}

static void print_trials(const char *where, const struct trials *t)
{
    printf(
        "%s: cost relative to the cheapest form, worst window in %% of on-demand relative to the "
        "baseline, number of windows above the cap of %.0f %%; with one offer, then with two\n",
        where, 100 * CAP);
    for (size_t k = 0; k < LAWS; k++) {
        const struct tried *one = &t->one[k], *two = &t->two[k];
        printf("  losses %.1f, interruptions %.0f: %.4f %+5.1f %zu   %.4f %+5.1f %zu\n",
            one->law.losses, one->law.interruptions, one->to_forms / (double)t->settings,
            100 * one->worst, one->over, two->to_forms / (double)t->settings, 100 * two->worst,
            two->over);
    }
    print_choice("one offer", t->one, ONE_AIM * (double)t->settings);
    print_choice("several offers", t->two, SEVERAL_AIM * (double)t->settings);
    printf("  processor time so far: %.0f s\n\n", (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

static void choose_on(const struct world *w, const struct folder *f, struct trials *all)
{
    struct group singles[ZONES_MAX] = {0}, pairs[ZONES_MAX] = {0};
    const size_t n_singles = policy_singles(f, singles), n_pairs = make_pairs(f, pairs);
    struct trials t = {.settings = RESTARTS * PRICES * DEADLINES};

    init_laws(t.one);
    init_laws(t.two);
    try_groups(w, singles, n_singles, t.one);
    try_groups(w, pairs, n_pairs, t.two);
    print_trials(f->name, &t);
    all->settings += t.settings;
    add_up(all->one, t.one);
    add_up(all->two, t.two);
}

void policy_choose(const struct world *w)
{
    struct trials all = {0};

    init_laws(all.one);
    init_laws(all.two);
    for (size_t i = 0; i < w->n; i++)
        if (w->folders[i].judged_from <= 0 && (!w->only || strstr(w->folders[i].name, w->only)))
            choose_on(w, &w->folders[i], &all);
    if (all.settings > RESTARTS * PRICES * DEADLINES)
        print_trials("all years", &all);
}
