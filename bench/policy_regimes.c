/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges belay's rule in synthetic regimes of spot availability: markets that are unlike the
 * recorded ones, in which a rule that is tuned to those could be worse than a simple one. A row of
 * the table is a regime with one zone, or with two independent ones.
 *
 * Each window has its own course of the regime. belay decides with two states of knowledge, that
 * of belayd itself (deadline/learning.h):
 *
 * warm   chains learned in four weeks, and the zones of the window observed for a week
 * cold   nothing before the job; chains rebuilt while it runs
 *
 * The chains are learned from other courses of the regime, so that one table serves all windows:
 * from another one after each rebuild.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "base/time.h"
#include "bench/policy_play.h"
#include "scheduler/core/deadline/learning.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_MS 120000
#define HISTORY_MS (7 * DAY_MS) /* observed before a window */
#define LEARNED_MS (28 * DAY_MS)
#define LONGEST_MS (4 * DAY_MS) /* between two rebuilds */
#define WINDOW_MS (84 * HOUR_MS)
#define WINDOWS_LEAST 8
#define ZONES_MOST 2
#define PRICE (1.0 / 3) /* of spot, relative to on-demand */
#define COLD_EPOCHS 4   /* rebuilds until the end of a window */

static const int64_t works_h[] = {6, 24, 48}, restarts_ms[] = {180000, 720000};
static const double slacks[] = {1.08, 1.25, 1.67}; /* time to the deadline, relative to the work */

enum shape { MEMORYLESS, FIXED, DIURNAL, CONSTANT };

static const struct regime {
    const char *name;
    enum shape shape;
    int64_t up_ms, down_ms; /* length of a spell, or its mean; CONSTANT: 0 for never */
} regimes[] = {
    {"memoryless, 1 h", MEMORYLESS, HOUR_MS, HOUR_MS},
    {"memoryless, 8 h", MEMORYLESS, 8 * HOUR_MS, 8 * HOUR_MS},
    {"scarce, 12.5 %", MEMORYLESS, HOUR_MS, 7 * HOUR_MS},
    {"diurnal", DIURNAL, 14 * HOUR_MS, 10 * HOUR_MS},
    {"none", CONSTANT, 0, HOUR_MS},
    {"always", CONSTANT, HOUR_MS, 0},
    {"fixed, 10 min", FIXED, 600000, 600000},
    {"memoryless, 10 min", MEMORYLESS, 600000, 600000},
};

enum column {
    WARM,
    COLD,
    TIGHT,
    CERTAIN,
    FREE,
    UNIFORM,
    RC_CR,
    RC_CR_PLAIN,
    GREEDY,
    SURE,
    COLUMNS
};

static const struct {
    const char *name;
    enum deadline_rule rule;
    double cap; /* a part of on-demand only; 0: none */
} columns[COLUMNS] = {
    [WARM] = {"belay", DEADLINE_PLANNED, SHIPPED_CAP},
    [COLD] = {"cold", DEADLINE_PLANNED, SHIPPED_CAP},
    [TIGHT] = {"cap 10", DEADLINE_PLANNED, TIGHT_CAP},
    [CERTAIN] = {"certn", DEADLINE_PLANNED, TIGHT_CAP},
    [FREE] = {"no cap", DEADLINE_PLANNED},
    [UNIFORM] = {"UP", DEADLINE_UNIFORM},
    [RC_CR] = {"UC", DEADLINE_RC_CR},
    [RC_CR_PLAIN] = {"UC-h", DEADLINE_RC_CR_PLAIN},
    [GREEDY] = {"greedy", DEADLINE_GREEDY},
    [SURE] = {"on-d", DEADLINE_ON_DEMAND},
};

/* ---- courses ---- */

static int64_t spell_ms(const struct regime *r, struct prng *prng, bool up)
{
    const int64_t mean_ms = up ? r->up_ms : r->down_ms;

    return r->shape == MEMORYLESS ? llround(prng_exponential(prng, (double)mean_ms)) : mean_ms;
}

/* The day's spells begin within an hour of their time. */
static int64_t shift_ms(const struct regime *r, struct prng *prng)
{
    return r->shape == DIURNAL ? prng_range(prng, -HOUR_MS, HOUR_MS) : 0;
}

static void make_zone(const struct regime *r, struct prng *prng, size_t n, struct zone *z)
{
    bool up = prng_chance(prng, (double)r->up_ms / (double)(r->up_ms + r->down_ms));
    /* The first spell is under way. */
    int64_t end_ms = (int64_t)(prng_unit(prng) * (double)spell_ms(r, prng, up)) / TICK_MS * TICK_MS,
            at_ms = end_ms + shift_ms(r, prng);

    *z = (struct zone){.n = n, .tick_ms = TICK_MS};
    z->up = mem_array(n, 1);
    z->class = mem_array(n, sizeof *z->class);
    z->share = mem_array(n, sizeof *z->share);
    z->rate = mem_array(n, sizeof *z->rate);
    z->record_ms = mem_array(n, sizeof *z->record_ms);
    for (size_t t = 0; t < n; t++) {
        for (; r->shape != CONSTANT && at_ms <= (int64_t)t * TICK_MS; up = !up) {
            end_ms += spell_ms(r, prng, !up);
            at_ms = end_ms + shift_ms(r, prng);
        }
        z->up[t] = up;
    }
}

static void free_zone(struct zone *z)
{
    free(z->up);
    free(z->class);
    free(z->share);
    free(z->rate);
    free(z->record_ms);
}

/* One window: the same zones with what was observed before it, and without. */
struct course {
    struct folder warm, cold;
    struct group seen, unseen;
};

static void watch(struct folder *f, struct group *g, const struct deadline_chain *single)
{
    f->borders = deadline_learning_borders;
    policy_classify(f);
    for (size_t i = 0; i < f->n; i++)
        policy_add_zone(g, f, i);
    g->set_class = mem_array(g->ticks, sizeof(uint16_t));
    for (size_t i = 0; i < f->n; i++)
        g->class[i] = mem_array(g->ticks, sizeof(uint16_t));
    policy_watch(f, g->zones, g->n, g->ticks, single, NULL, &f->borders, g->set_class, g->class);
}

static void make_course(const struct regime *r, size_t n, uint64_t seed, const struct known *warm,
    const struct known *cold, struct course *ret_course)
{
    const size_t before = HISTORY_MS / TICK_MS, during = WINDOW_MS / TICK_MS;
    struct course *c = ret_course;
    struct prng prng;

    *c = (struct course){.warm.n = n, .cold.n = n};
    prng_init(&prng, seed);
    for (size_t i = 0; i < n; i++) {
        make_zone(r, &prng, before + during, &c->warm.zones[i]);
        struct zone *z = &c->cold.zones[i];
        *z = (struct zone){.n = during, .tick_ms = TICK_MS};
        z->up = mem_array(during, 1);
        memcpy(z->up, c->warm.zones[i].up + before, during);
        z->class = mem_array(during, sizeof *z->class);
        z->share = mem_array(during, sizeof *z->share);
        z->rate = mem_array(during, sizeof *z->rate);
        z->record_ms = mem_array(during, sizeof *z->record_ms);
    }
    watch(&c->warm, &c->seen, &warm->single[0]);
    watch(&c->cold, &c->unseen, &cold->single[0]);
}

static void free_course(struct course *c)
{
    for (size_t i = 0; i < c->warm.n; i++) {
        free_zone(&c->warm.zones[i]);
        free_zone(&c->cold.zones[i]);
        free(c->seen.class[i]);
        free(c->unseen.class[i]);
    }
    free(c->seen.set_class);
    free(c->unseen.set_class);
}

/* ---- learning ---- */

/* belayd's learning, of each zone alone and of the set. */
struct learner {
    size_t n;
    struct deadline_counts alone, several;
    struct deadline_offer_set singles[ZONES_MOST], set;
    struct zone zones[ZONES_MOST];
};

/* Rebuilds what k knows in epoch e. */
static void rebuild(struct learner *l, struct known *k, size_t e)
{
    if (l->n == 1) {
        deadline_chain_deinit(&k->chain[e]);
        deadline_chain_init(&k->chain[e], &l->alone);
    } else {
        deadline_learning_rebuild(&l->several, &k->chain[e]);
    }
    deadline_learning_rebuild(&l->alone, &k->single[e]);
    l->set.single = &k->single[e];
}

static void see(struct learner *l, size_t tick)
{
    const int64_t at_ms = (int64_t)tick * TICK_MS;
    bool up[ZONES_MOST];

    for (size_t i = 0; i < l->n; i++) {
        up[i] = l->zones[i].up[tick];
        deadline_offer_set_see(&l->singles[i], at_ms, &up[i], &l->alone);
    }
    if (l->n > 1)
        deadline_offer_set_see(&l->set, at_ms, up, &l->several);
}

static void begin_course(struct learner *l, const struct regime *r, struct prng *prng)
{
    const struct deadline_chain *single = l->set.single;

    l->set = (struct deadline_offer_set){.n = l->n, .single = single};
    for (size_t i = 0; i < l->n; i++) {
        free_zone(&l->zones[i]);
        make_zone(r, prng, LONGEST_MS / TICK_MS, &l->zones[i]);
        l->singles[i] = (struct deadline_offer_set){.n = 1};
    }
}

static void learn(const struct regime *r, size_t n, struct known *warm, struct known *cold)
{
    struct learner *l = mem_alloc(sizeof *l);
    struct prng prng;
    int64_t steps = 0;

    l->n = n;
    deadline_learning_begin(false, &l->alone);
    deadline_learning_begin(true, &l->several);
    prng_init(&prng, 1);
    *warm = (struct known){.n = 1, .tick_ms = TICK_MS};
    *cold = (struct known){.tick_ms = TICK_MS};
    for (int64_t at_ms = 0; at_ms < LEARNED_MS; at_ms += steps * DEADLINE_STEP_MS) {
        if (cold->n < COLD_EPOCHS) {
            cold->begins_ms[cold->n] = at_ms;
            rebuild(l, cold, cold->n++);
        } else {
            rebuild(l, warm, 0);
        }
        steps = deadline_learning_next(steps);
        begin_course(l, r, &prng);
        for (size_t t = 0; t < (size_t)(steps * DEADLINE_STEP_MS / TICK_MS); t++)
            see(l, t);
    }
    for (size_t i = 0; i < n; i++)
        free_zone(&l->zones[i]);
    free(l);
}

static void forget(struct known *k)
{
    for (size_t i = 0; i < k->n; i++) {
        deadline_chain_deinit(&k->single[i]);
        deadline_chain_deinit(&k->chain[i]);
    }
    free(k);
}

/* ---- the table ---- */

struct row {
    const struct regime *regime;
    size_t n_zones, n_windows, settings, late, late_others;
    int64_t restart_ms;
    struct known *warm, *cold;
    struct course *courses;
    double best, cost[COLUMNS]; /* sums over settings of means, as parts of on-demand only */
    double most;                /* belay's cost relative to the best rule, in its worst setting */
    struct setting worst;
};

static struct played play(const struct world *w, const struct row *row, const struct course *c,
    const struct setting *s, enum column k)
{
    const struct deadline_policy p = {.rule = columns[k].rule};
    struct capped capped = {columns[k].cap, NULL, DEADLINE_UNIFORM};

    if (columns[k].cap > 0)
        capped.law = k == CERTAIN ? &deadline_law_certain
                     : w->law     ? w->law
                                  : deadline_law_usual(row->n_zones);
    if (k == COLD)
        return policy_play(&c->unseen, 0, s, &p, &capped, row->cold);
    return policy_play(&c->seen, HISTORY_MS / TICK_MS, s, &p, &capped, row->warm);
}

static double least_of(const double *cost)
{
    double least = INFINITY;

    for (size_t k = UNIFORM; k < COLUMNS; k++)
        least = fmin(least, cost[k]);
    return least;
}

static void play_setting(const struct world *w, struct row *row, const struct setting *s)
{
    const double sure = (double)(s->work_ms + s->restart_ms) * (double)row->n_windows;
    double cost[COLUMNS] = {0};

    for (size_t i = 0; i < row->n_windows; i++) {
        const struct course *c = &row->courses[i];
        const double best = policy_optimum(&c->unseen, 0, s);
        for (size_t k = 0; k < COLUMNS; k++) {
            const struct played p = play(w, row, c, s, k);
            *(k < UNIFORM ? &row->late : &row->late_others) += p.late;
            cost[k] += p.cost_ms / sure;
            if (p.cost_ms < best * 0.9995) /* it has single precision */
                policy_die("a rule was cheaper than the optimum");
        }
        row->best += best / sure;
    }
    for (size_t k = 0; k < COLUMNS; k++)
        row->cost[k] += cost[k];
    if (cost[WARM] / least_of(cost) > row->most) {
        row->most = cost[WARM] / least_of(cost);
        row->worst = *s;
    }
    row->settings++;
}

static void play_settings(const struct world *w, struct row *row)
{
    for (size_t i = 0; i < N_OF(works_h); i++)
        for (size_t k = 0; k < N_OF(slacks); k++) {
            const int64_t work_ms = works_h[i] * HOUR_MS;
            struct setting s = policy_setting(row->restart_ms, PRICE);
            s.work_ms = work_ms;
            s.deadline_ms = llround(slacks[k] * (double)work_ms / TICK_MS) * TICK_MS;
            play_setting(w, row, &s);
        }
}

static void print_row(const struct row *row)
{
    const double n = (double)row->settings, least = least_of(row->cost);

    printf("%-18s %zu %4.2f %6.2f", row->regime->name, row->n_zones,
        (double)row->restart_ms / HOUR_MS, 100 * row->best / n);
    for (size_t k = 0; k < COLUMNS; k++)
        printf(" %6.2f", 100 * row->cost[k] / n);
    printf(" | %.3f %.3f %.3f %.3f | %.3f %2.0f %3.0f | %zu %zu\n", row->cost[WARM] / least,
        row->cost[COLD] / least, row->cost[FREE] / least, row->cost[WARM] / row->best, row->most,
        (double)row->worst.work_ms / HOUR_MS, (double)row->worst.deadline_ms / HOUR_MS, row->late,
        row->late_others);
    fflush(stdout);
}

static void judge(const struct world *w, const struct regime *r, size_t n_zones)
{
    const size_t windows = w->offsets / 5;
    const struct row empty = {.regime = r,
        .n_zones = n_zones,
        .n_windows = windows < WINDOWS_LEAST ? WINDOWS_LEAST : windows,
        .warm = mem_alloc(sizeof(struct known)),
        .cold = mem_alloc(sizeof(struct known)),
        .courses =
            mem_array(windows < WINDOWS_LEAST ? WINDOWS_LEAST : windows, sizeof(struct course))};

    learn(r, n_zones, empty.warm, empty.cold);
    for (size_t i = 0; i < empty.n_windows; i++)
        make_course(r, n_zones, 1000 + i, empty.warm, empty.cold, &empty.courses[i]);
    for (size_t i = 0; i < N_OF(restarts_ms); i++) {
        struct row row = empty;
        row.restart_ms = restarts_ms[i];
        const struct setting s = policy_setting(row.restart_ms, PRICE);
        policy_tables_init(row.warm, &s);
        policy_tables_init(row.cold, &s);
        play_settings(w, &row);
        print_row(&row);
        policy_tables_deinit(row.warm);
        policy_tables_deinit(row.cold);
    }
    for (size_t i = 0; i < empty.n_windows; i++)
        free_course(&empty.courses[i]);
    free(empty.courses);
    forget(empty.warm);
    forget(empty.cold);
}

void policy_regimes(const struct world *w)
{
    if (w->only && !strstr("synthetic regimes", w->only))
        return;
    printf("synthetic regimes: mean cost in %% of on-demand only, over %zu settings (6 to 48 h of "
           "work, 1.08 to 1.67 times as long to the deadline, 3:1).\n"
           "belay: after four weeks in the regime; cold: with nothing observed before the job. "
           "/best: relative to the best of UP to on-d: belay, cold, no cap; then belay to the "
           "optimum.\nworst: belay relative to the best rule of its setting; work "
           "and deadline in h.\n",
        N_OF(works_h) * N_OF(slacks));
    printf("%-18s n  rst optimm", "regime");
    for (size_t k = 0; k < COLUMNS; k++)
        printf(" %6.6s", columns[k].name);
    printf(" | /best cold  nocap /opt  | worst wk dln | late, others\n");
    for (size_t i = 0; i < N_OF(regimes); i++)
        for (size_t n = 1; n <= ZONES_MOST; n++)
            judge(w, &regimes[i], n);
    printf("   processor time so far: %.0f s\n\n", (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}
