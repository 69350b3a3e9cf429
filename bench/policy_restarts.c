/* SPDX-License-Identifier: Apache-2.0
 *
 * The price of a restart: what belay's rule costs with restarts of different lengths, and what one
 * second less is worth. A job that leaves on-demand for spot computes on there while its spot
 * machine boots, all but the switch. The columns "at once" leave on-demand first: what the overlap
 * saves.
 */
#include "cloud/catalogue.h"
#include "bench/policy_play.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t restarts_s[] = {90, 120, 240, 360, 600};
#define SECONDS N_OF(restarts_s)

struct priced {
    size_t n, late;
    double cost, at_once; /* sums, as parts of on-demand without a restart */
    double starts, moves; /* sums; moves: from on-demand to spot */
};

static void play_all(const struct world *w, const struct group *groups, size_t n_groups,
    const struct setting *s, const struct known *known, double *cost, struct priced *p)
{
    const struct deadline_policy planned = {.rule = DEADLINE_PLANNED};

    for (size_t g = 0; g < n_groups; g++) {
        const struct capped capped = {
            SHIPPED_CAP, w->law ? w->law : deadline_law_usual(groups[g].n), DEADLINE_UNIFORM};
        for (size_t i = 0; i < w->offsets; i++) {
            const size_t from = policy_offset(w, &groups[g], s, i);
            const struct played out = policy_play(&groups[g], from, s, &planned, &capped, known);
            *cost += out.cost_ms / WORK_MS;
            p->late += out.late;
            if (s->boot_ms == 0)
                continue;
            p->starts += (double)out.starts;
            p->moves += (double)out.moves;
            p->n++;
        }
    }
}

/* The difference to the next shorter restart, for the shortest to the next longer one. */
static double slope(const struct priced *p, size_t r, bool is_at_once)
{
    const size_t b = r > 0 ? r : 1, a = b - 1;
    const double n = (double)p[b].n,
                 more = is_at_once ? p[b].at_once - p[a].at_once : p[b].cost - p[a].cost;

    return more / n / (double)(restarts_s[b] - restarts_s[a]);
}

static void print_prices(const char *what, const struct priced *p, double usd_h)
{
    printf("%-32s restart   cost starts moves | a second less: %% of the bill, $ | at once: cost "
           "more | a second less: %% of the bill, $ | late\n",
        what);
    for (size_t r = 0; r < SECONDS; r++) {
        const double n = (double)p[r].n, cost = p[r].cost / n, at_once = p[r].at_once / n;
        printf("%-32s %5lld s %6.2f %6.1f %5.1f | %29.4f %6.3f | %12.2f %4.1f%% | %27.4f %6.3f | "
               "%zu\n",
            "", (long long)restarts_s[r], 100 * cost, p[r].starts / n, p[r].moves / n,
            100 * slope(p, r, false) / cost, 1000 * slope(p, r, false) * usd_h, 100 * at_once,
            100 * (at_once / cost - 1), 100 * slope(p, r, true) / at_once,
            1000 * slope(p, r, true) * usd_h, p[r].late);
    }
    printf("\n");
    fflush(stdout);
}

static void price(const struct world *w, struct group *groups, size_t n_groups, const char *of,
    const struct catalogue_type *type)
{
    struct known *known = mem_alloc(sizeof *known);
    struct priced priced[SECONDS] = {0};
    char *what = mem_printf("%.15s, %s", groups[0].f->name, of);

    policy_known_init(w, groups, n_groups, known);
    for (size_t r = 0; r < SECONDS; r++) {
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            struct setting s = policy_setting(restarts_s[r] * 1000, policy_prices[0]);
            s.boot_ms = overlaps ? s.boot_ms : 0;
            policy_tables_init(known, &s);
            for (size_t d = 0; d < DEADLINES; d++) {
                s.deadline_ms = policy_deadlines_h[d] * HOUR_MS;
                play_all(w, groups, n_groups, &s, known,
                    overlaps ? &priced[r].cost : &priced[r].at_once, &priced[r]);
            }
            policy_tables_deinit(known);
        }
    }
    print_prices(what, priced, (double)type->on_demand_uusd_h / 1e6);
    policy_known_deinit(groups, n_groups, known);
    free(what);
    free(known);
}

void policy_price_restarts(const struct world *w)
{
    struct catalogue_type type;
    struct err e;

    if (w->only && !str_eq(w->only, "restart"))
        return;
    if (catalogue_find("aws", "p3.2xlarge", &type, &e) != 0)
        policy_die(e.text);
    printf(
        "What a restart costs: belay's cost in %% of the work on on-demand, mean of deadlines of "
        "%lld to %lld h, on-demand at %.0f times the spot price; starts and moves (from "
        "on-demand to spot) a job. $: for 1,000 job-hours at $%.2f an hour of on-demand (%s). "
        "at once: on-demand is left before the spot machine boots, not after.\n",
        (long long)policy_deadlines_h[0], (long long)policy_deadlines_h[DEADLINES - 1],
        1 / policy_prices[0], (double)type.on_demand_uusd_h / 1e6, type.type);
    for (size_t i = 0; i < w->n; i++) {
        struct group singles[ZONES_MAX] = {0}, types[ZONES_MAX] = {0};
        price(w, singles, policy_singles(&w->folders[i], singles), "one zone", &type);
        price(w, types, policy_types(&w->folders[i], types), "all of a type", &type);
    }
}
