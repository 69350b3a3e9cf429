/* SPDX-License-Identifier: Apache-2.0
 *
 * What deadline jobs cost on recorded spot availability (the traces of Wu et al., "Can't Be Late",
 * NSDI 2024), by the policy of scheduler/core/deadline/deadline.h, by its references, and at best.
 *
 *     bench_policy [--offsets N] [--only WORD] [--choose] [--law LOSSES,FLAPS,PART] [DIR]
 *
 * DIR, or BELAY_TRACES, contains availability/; the default is ../shared/traces.
 *
 * How it is played. A job of 48 h; a trace is looked at once a tick, and what the tick brings is
 * known when it begins (as in the paper's own simulator), nothing later is. What was seen before
 * the job came is known, as to a belayd that was there: the age of spells, the share up. A start
 * anywhere costs the restart, in time and at that place's price, and a spot that goes loses nothing
 * else. The last tick is paid for as long as it is used. Offsets are spread evenly over where a
 * whole deadline fits. On-demand is always there, so no policy reckons with a launch that fails:
 * the net is the two restarts of the paper, for all.
 *
 * The optimum takes longer than all policies together, so it is found in one window of BEST_EVERY.
 *
 * What was learned comes from other times: for 2022 from 2023, for 2023 from 2022, for other
 * folders from both and the first 40 % of their own time, of which nothing is judged. A trace of 16
 * nodes counts as up when all are there.
 */
#include "base/mem.h"
#include "base/minmax.h"
#include "base/prng.h"
#include "base/str.h"
#include "bench/policy_best.h"
#include "bench/policy_play.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEST_EVERY 10
#define AIM 0.05 /* with several zones, below the cheapest form */

/* The table. */

enum column {
    BEST,
    OURS,
    CERTAIN,
    FREE,
    UNIFORM,
    STICKY,
    PLAIN,
    GREEDY,
    UNIFORM_BEST,
    STICKY_BEST,
    PLAIN_BEST,
    COLUMNS
};

static const struct {
    const char *name;
    enum deadline_rule rule;
    bool takes_best;
    const struct deadline_law *law; /* NULL: no cap; OURS has that of the world */
} columns[COLUMNS] = {
    [BEST] = {"optimum", 0, false, NULL},
    [OURS] = {"belay", DEADLINE_PLANNED, false, NULL},
    [CERTAIN] = {"certain", DEADLINE_PLANNED, false, &deadline_law_certain},
    [FREE] = {"free", DEADLINE_PLANNED, false, NULL},
    [UNIFORM] = {"UP", DEADLINE_UNIFORM, false, NULL},
    [STICKY] = {"UP st", DEADLINE_UNIFORM_STICKY, false, NULL},
    [PLAIN] = {"UP -h", DEADLINE_UNIFORM_PLAIN, false, NULL},
    [GREEDY] = {"greedy", DEADLINE_GREEDY, false, NULL},
    [UNIFORM_BEST] = {"UP b", DEADLINE_UNIFORM, true, NULL},
    [STICKY_BEST] = {"UP st b", DEADLINE_UNIFORM_STICKY, true, NULL},
    [PLAIN_BEST] = {"UP -h b", DEADLINE_UNIFORM_PLAIN, true, NULL},
};

/* The window in which belay was dearest beside UP. */
struct worst {
    double more; /* of on-demand only */
    const char *zone;
    size_t from;
    struct setting s;
    struct played ours, theirs;
};

struct sums {
    size_t n, late, late_others;
    double cost[COLUMNS]; /* of on-demand only */
    size_t n_best;
    double cost_best, beside[COLUMNS]; /* of the optimum, and of the others where it was found */
    /* of OURS, CERTAIN, FREE; of several zones beside the cheaper of UP's two ways to take one */
    struct worst worst[FREE + 1];
    double beside_baseline[FREE + 1]; /* the same beside the way that the cap is about */
    /* the most that UP is dearer by either way than by the other */
    double next_beside, best_beside;
};

static void note_worst(const struct group *g, size_t from, const struct setting *s,
    const struct played *ours, const struct played *theirs, struct worst *w)
{
    const double more = (ours->cost_ms - theirs->cost_ms) / (double)(WORK_MS + s->restart_ms);

    if (w->zone && more <= w->more)
        return;
    *w = (struct worst){.more = more,
        .zone = g->f->zones[g->zones[0]].name,
        .from = from,
        .s = *s,
        .ours = *ours,
        .theirs = *theirs};
}

static double best_of(const struct group *g, size_t from, const struct setting *s)
{
    struct best_case c = {.n_zones = g->n,
        .n_ticks = g->ticks - from,
        .tick_ms = g->f->zones[g->zones[0]].tick_ms,
        .work_ms = WORK_MS,
        .deadline_ms = s->deadline_ms,
        .restart_ms = s->restart_ms,
        .price = s->price};

    for (size_t i = 0; i < g->n; i++)
        c.up[i] = g->f->zones[g->zones[i]].up + from;
    return best_cost(&c);
}

static void play_window(const struct world *w, const struct group *g, size_t from,
    const struct setting *s, const struct known *known, bool with_best, struct sums *sums)
{
    const double sure = (double)(WORK_MS + s->restart_ms),
                 best = with_best ? best_of(g, from, s) : 0;
    struct played played[COLUMNS];

    sums->cost_best += best / sure;
    sums->n_best += with_best;
    for (size_t k = OURS; k < (g->n > 1 ? COLUMNS : GREEDY + 1); k++) {
        const struct deadline_policy p = {
            .rule = columns[k].rule, .takes_best = columns[k].takes_best};
        played[k] = policy_play(g, from, s, &p,
            k != OURS ? columns[k].law
            : w->law  ? w->law
                      : deadline_law_usual(g->n),
            known);
        sums->cost[k] += played[k].cost_ms / sure;
        sums->beside[k] += with_best ? played[k].cost_ms / sure : 0;
        if (k <= FREE)
            sums->late += played[k].late;
        else
            sums->late_others += played[k].late;
        if (played[k].cost_ms < best * 0.9995) /* single precision, over a thousand ticks */
            policy_die("a policy was cheaper than the optimum");
    }
    const struct played *theirs = &played[UNIFORM];
    if (g->n > 1 && played[UNIFORM_BEST].cost_ms < theirs->cost_ms)
        theirs = &played[UNIFORM_BEST];
    for (size_t k = OURS; k <= FREE; k++) {
        note_worst(g, from, s, &played[k], theirs, &sums->worst[k]);
        sums->beside_baseline[k] = fmax(sums->beside_baseline[k],
            (played[k].cost_ms - played[g->n > 1 ? UNIFORM_BEST : UNIFORM].cost_ms) / sure);
    }
    if (g->n > 1) {
        const double next = (played[UNIFORM].cost_ms - played[UNIFORM_BEST].cost_ms) / sure;
        sums->next_beside = fmax(sums->next_beside, next);
        sums->best_beside = fmax(sums->best_beside, -next);
    }
    sums->n++;
}

static void play_group(const struct world *w, const struct group *g, const struct setting *s,
    const struct known *known, struct sums *sums)
{
    const size_t every = w->offsets < 10 * BEST_EVERY ? 1 : BEST_EVERY;

    for (size_t i = 0; i < w->offsets; i++)
        play_window(w, g, policy_offset(w, g, s, i), s, known, i % every == 0, sums);
}

struct bars {
    size_t settings, late, late_others;
    struct {
        size_t dearer;
        double to_uniform, to_forms, to_sticky, to_best, to_best_most;
        struct worst worst;
        double beside_baseline;
    } of[FREE + 1];
    double best_gain; /* of the optimum, below the cheapest form */
    double best_gain_most;
    size_t out_of_reach; /* settings in which that is less than is aimed at */
    double next_beside, best_beside;
    double greedy_gap, uniform_gap; /* of greedy and UP to the optimum, of on-demand only */
};

/* The least of the paper's two forms, over how a zone is chosen; and with the form whose hysteresis
 * is true against spot, too. */
static double least_of(const double *cost, bool with_sticky)
{
    static const enum column forms[] = {
        UNIFORM, PLAIN, UNIFORM_BEST, PLAIN_BEST, STICKY, STICKY_BEST};
    double least = INFINITY;

    for (size_t i = 0; i < (with_sticky ? 6 : 4); i++)
        if (cost[forms[i]] > 0 && cost[forms[i]] < least)
            least = cost[forms[i]];
    return least;
}

static void sum_up(const struct sums *sums, struct bars *bars)
{
    const double forms = least_of(sums->cost, false), sticky = least_of(sums->cost, true),
                 there = least_of(sums->beside, false);

    for (size_t k = OURS; k <= FREE; k++) {
        const double ours = sums->cost[k], to_best = sums->beside[k] / sums->cost_best;
        bars->of[k].dearer += ours > sticky * 1.00001;
        bars->of[k].to_uniform += ours / sums->cost[UNIFORM];
        bars->of[k].to_forms += ours / forms;
        bars->of[k].to_sticky += ours / sticky;
        bars->of[k].to_best += to_best;
        bars->of[k].to_best_most = fmax(bars->of[k].to_best_most, to_best);
        if (!bars->of[k].worst.zone || sums->worst[k].more > bars->of[k].worst.more)
            bars->of[k].worst = sums->worst[k];
        bars->of[k].beside_baseline = fmax(bars->of[k].beside_baseline, sums->beside_baseline[k]);
    }
    const double gain = (there - sums->cost_best) / there;
    bars->best_gain += gain;
    bars->best_gain_most = fmax(bars->best_gain_most, gain);
    bars->out_of_reach += gain < AIM;
    bars->next_beside = fmax(bars->next_beside, sums->next_beside);
    bars->best_beside = fmax(bars->best_beside, sums->best_beside);
    bars->uniform_gap += (sums->beside[UNIFORM] - sums->cost_best) / (double)sums->n_best;
    bars->greedy_gap += (sums->beside[GREEDY] - sums->cost_best) / (double)sums->n_best;
    bars->settings++;
    bars->late += sums->late;
    bars->late_others += sums->late_others;
}

static void print_row(const char *what, const struct setting *s, const struct sums *sums)
{
    const size_t n_columns = sums->cost[UNIFORM_BEST] > 0 ? COLUMNS : GREEDY + 1;
    const double forms = least_of(sums->cost, false), there = least_of(sums->beside, false),
                 best = sums->cost_best;

    printf("%-14s %3.0f %4.2f %.0f:1 %6.2f", what, (double)s->deadline_ms / HOUR_MS,
        (double)s->restart_ms / HOUR_MS, 1 / s->price, 100 * best / (double)sums->n_best);
    for (size_t k = OURS; k < n_columns; k++)
        printf(" %6.2f", 100 * sums->cost[k] / (double)sums->n);
    printf(" | %.3f %.3f %.3f | %4.1f %4.0f |", sums->cost[OURS] / sums->cost[UNIFORM],
        sums->cost[OURS] / forms, sums->beside[OURS] / best, 100 * (there - best) / there,
        100 * (there - sums->beside[OURS]) / (there - best));
    for (size_t k = OURS; k <= FREE; k++)
        printf(" %+5.1f", 100 * sums->worst[k].more);
    if (n_columns == COLUMNS)
        printf(" %+5.1f %+5.1f", 100 * sums->next_beside, 100 * sums->best_beside);
    printf(" | %zu %zu\n", sums->late, sums->late_others);
    fflush(stdout);
}

static void print_head(const char *what, bool many)
{
    printf("%-14s  by  rst  o:s", what);
    for (size_t k = 0; k < (many ? COLUMNS : GREEDY + 1); k++)
        printf(" %6.6s", columns[k].name);
    printf(" | to UP  form   opt | gain took | worst certn  free%s | late, others\n",
        many ? "    UP  UP b" : "");
}

static void print_bars(const char *what, const struct bars *b)
{
    const double n = (double)b->settings;

    printf("== %s: means of %zu settings; late %zu (others %zu); the optimum is %.1f %% below the "
           "cheapest form; its distance to greedy is %.2f times that to UP\n",
        what, b->settings, b->late, b->late_others, 100 * b->best_gain / n,
        b->greedy_gap / b->uniform_gap);
    for (size_t k = OURS; k <= FREE; k++) {
        const struct worst *w = &b->of[k].worst;
        printf(
            "   %-7s to UP %.3f, to the cheapest form %.3f (of all three %.3f; dearer in %zu), to "
            "the optimum %.3f (at most %.3f), worst window %+.1f (beside the capped form %+.1f)\n",
            columns[k].name, b->of[k].to_uniform / n, b->of[k].to_forms / n, b->of[k].to_sticky / n,
            b->of[k].dearer, b->of[k].to_best / n, b->of[k].to_best_most, 100 * w->more,
            100 * b->of[k].beside_baseline);
        printf("           which is %s from tick %zu by %.0f h, restart %.2f h, %.0f:1: %zu "
               "starts, %.1f h of spot, %.1f on demand; UP %zu, %.1f, %.1f\n",
            w->zone, w->from, (double)w->s.deadline_ms / HOUR_MS, (double)w->s.restart_ms / HOUR_MS,
            1 / w->s.price, w->ours.starts, (double)w->ours.spot_ms / HOUR_MS,
            (double)w->ours.sure_ms / HOUR_MS, w->theirs.starts,
            (double)w->theirs.spot_ms / HOUR_MS, (double)w->theirs.sure_ms / HOUR_MS);
    }
    if (b->next_beside > 0 || b->best_beside > 0) {
        printf("   what is to be had at all: the optimum is at most %.1f %% below the cheapest "
               "form in a setting, and less than %.0f %% below it in %zu of %zu\n",
            100 * b->best_gain_most, 100 * AIM, b->out_of_reach, b->settings);
        printf("   who follows UP by one way to take a zone: worst window beside the other %+.1f "
               "(the next that is up), %+.1f (the best so far)\n",
            100 * b->next_beside, 100 * b->best_beside);
    }
    printf("   %.0f s of processor time so far\n\n", (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

/* All settings for groups of as many offers each. */
static void judge(const struct world *w, struct group *groups, size_t n_groups, const char *of)
{
    const struct folder *f = groups[0].f;
    char *what = mem_printf("%.12s, %s", f->name, of);
    struct known *k = mem_alloc(sizeof *k);
    struct bars bars = {0};

    if (w->only && !strstr(what, w->only) && !strstr(f->name, w->only))
        goto out;
    policy_known_init(w, groups, n_groups, k);
    print_head(what, groups[0].n > 1);
    for (size_t r = 0; r < RESTARTS; r++)
        for (size_t p = 0; p < PRICES; p++) {
            policy_tables_init(k, policy_restarts_ms[r], policy_prices[p]);
            fprintf(stderr, "%s: restart %.2f h, tables done at %.0f s\n", what,
                (double)policy_restarts_ms[r] / HOUR_MS, (double)clock() / CLOCKS_PER_SEC);
            for (size_t d = 0; d < DEADLINES; d++) {
                const struct setting s = {.deadline_ms = policy_deadlines_h[d] * HOUR_MS,
                    .restart_ms = policy_restarts_ms[r],
                    .price = policy_prices[p]};
                struct sums sums = {0};
                for (size_t i = 0; i < n_groups; i++)
                    play_group(w, &groups[i], &s, k, &sums);
                print_row(f->name, &s, &sums);
                sum_up(&sums, &bars);
            }
            policy_tables_deinit(k);
        }
    print_bars(what, &bars);
    policy_known_deinit(groups, n_groups, k);
out:
    free(what);
    free(k);
}

static void judge_folder(const struct world *w, const struct folder *f)
{
    struct group singles[ZONES_MAX] = {0}, types[ZONES_MAX] = {0}, all = {0};
    const size_t n_types = policy_types(f, types);

    judge(w, singles, policy_singles(f, singles), "one zone");
    judge(w, types, n_types, "all zones of a type");
    for (size_t z = 0; z < f->n; z++)
        if (f->zones[z].n == f->zones[f->n - 1].n)
            policy_add_zone(&all, f, z);
    if (n_types > 1)
        judge(w, &all, 1, "all zones and types");
}

/* When what is declared is wrong. A job of 24 h, 60 h to its deadline, restarts of 0.2 h, on-demand
 * three times spot. */
struct wrong {
    const char *what;
    /* declared, relative to the actual value; the worst is the greater of both */
    double work, restart;
    bool triples, ends; /* spot's price, or spot itself for good, halfway to the deadline */
    int64_t lost_ms;    /* of work, when spot goes without notice */
    /* what was learned is of a market that is the other way round: up for short, down for long */
    bool strange;
};

#define WRONG_WORK_MS (24 * HOUR_MS)
#define WRONG_TIME_MS (60 * HOUR_MS)
#define WRONG_RESTART_MS 720000

/* What the job knows of itself, with so much of its work done. */
static struct deadline_job declared(
    const struct wrong *x, int64_t done_ms, int64_t passed_ms, size_t on, int64_t boot_ms)
{
    const int64_t declared_ms = llround(x->work * (double)WRONG_WORK_MS),
                  restart_ms = llround(x->restart * WRONG_RESTART_MS);
    const int64_t restart_worst_ms = max_i64(restart_ms, WRONG_RESTART_MS),
                  worst_ms = max_i64(declared_ms, WRONG_WORK_MS) - done_ms;

    return (struct deadline_job){
        .work_ms = declared_ms > done_ms ? declared_ms - done_ms : worst_ms / 2,
        .work_worst_ms = worst_ms,
        .left_ms = WRONG_TIME_MS - passed_ms,
        .restart_ms = restart_ms,
        .restart_worst_ms = restart_worst_ms + x->lost_ms,
        .failed_launch_ms = WRONG_RESTART_MS,
        .on = on,
        .last = DEADLINE_NOWHERE,
        .starting_ms = boot_ms > 0 ? restart_worst_ms - WRONG_RESTART_MS + boot_ms : 0,
        .whole_work_ms = declared_ms,
        .whole_time_ms = WRONG_TIME_MS};
}

static struct played play_wrong(const struct zone *z, const struct deadline_borders *borders,
    size_t from, const struct wrong *x, const struct deadline_policy *p, bool is_capped)
{
    struct deadline_offer offers[2] = {
        {.price_uusd_h = SURE_UUSD_H / 3}, {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    int64_t done_ms = 0, boot_ms = 0;
    size_t on = DEADLINE_NOWHERE;
    struct baseline baseline;
    struct played out = {0};

    baseline_init(&baseline);
    for (size_t t = from; done_ms < WRONG_WORK_MS && t < z->n; t++) {
        const int64_t passed_ms = (int64_t)(t - from) * z->tick_ms;
        const bool half = passed_ms >= WRONG_TIME_MS / 2;
        struct deadline_job job;
        struct deadline_choice choice;
        offers[0].is_up = z->up[t] && !(x->ends && half);
        offers[0].class = z->class[t];
        if (x->ends && half) {
            struct spell_watch gone = {.seen = true, .since_ms = WRONG_TIME_MS / 2};
            offers[0].class = deadline_class(borders, &gone, passed_ms);
        }
        if (x->triples && half)
            offers[0].price_uusd_h = SURE_UUSD_H;
        if (on == 0 && !offers[0].is_up) {
            on = DEADLINE_NOWHERE;
            done_ms = max_i64(0, done_ms - x->lost_ms);
        }
        job = declared(x, done_ms, passed_ms, on, boot_ms);
        job.look_ms = z->tick_ms;
        if (is_capped) {
            job.whole_work_ms = done_ms + job.work_ms; /* the baseline has learned as much of it */
            job.baseline = &baseline;
            job.paid_uusd = out.cost_ms / HOUR_MS * SURE_UUSD_H;
            job.cap_uusd = CAP * SURE_UUSD_H * (double)WRONG_WORK_MS / HOUR_MS;
            job.law = deadline_law_usual(1);
        }
        deadline_decide(p, &job, offers, 2, offers[0].class, &choice);
        if (is_capped)
            baseline_pass(
                &baseline, &job, offers, baseline_look(&baseline, &job, offers, 2), z->tick_ms);
        if (choice.offer != on && choice.offer != DEADLINE_NOWHERE)
            boot_ms = WRONG_RESTART_MS;
        on = choice.offer;
        if (on == DEADLINE_NOWHERE)
            continue;
        const int64_t boot = boot_ms < z->tick_ms ? boot_ms : z->tick_ms;
        const int64_t ran =
            max_i64(0, z->tick_ms - boot < WRONG_WORK_MS - done_ms ? z->tick_ms - boot
                                                                   : WRONG_WORK_MS - done_ms);
        boot_ms -= boot;
        done_ms += ran;
        out.cost_ms += (double)offers[on].price_uusd_h / SURE_UUSD_H * (double)(boot + ran);
        out.late = out.late || (done_ms == WRONG_WORK_MS && passed_ms + boot + ran > WRONG_TIME_MS);
    }
    out.late = out.late || done_ms < WRONG_WORK_MS;
    return out;
}

/* A chain of ten minutes up and two hours down: nothing like what is judged. */
static void learn_strange(const struct folder *f, struct deadline_chain *ret_chain)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 1};

    counts->borders = f->borders;
    for (int i = 0; i < 5000; i++)
        deadline_offer_set_see(&m, (int64_t)i * DEADLINE_STEP_MS, (bool[]){i % 13 == 0}, counts);
    deadline_chain_init(ret_chain, counts);
    free(counts);
}

static void judge_wrong(const struct world *w, const struct folder *f)
{
    static const struct wrong cases[] = {{"all as declared", 1, 1, false, false, 0, false},
        {"work declared as half", 0.5, 1, false, false, 0, false},
        {"work declared as twice", 2, 1, false, false, 0, false},
        {"restart declared as a third", 1, 1.0 / 3, false, false, 0, false},
        {"restart declared as thrice", 1, 3, false, false, 0, false},
        {"spot triples halfway", 1, 1, true, false, 0, false},
        {"spot gone for good halfway", 1, 1, false, true, 0, false},
        {"no notices, 10 min lost", 1, 1, false, false, 600000, false},
        {"learned of another regime", 1, 1, false, false, 0, true}};
    struct deadline_chain chains[2];

    if (w->only && !strstr("wrong", w->only))
        return;
    policy_learn(w, f, 1, 0, 0, NULL, &chains[0]);
    learn_strange(f, &chains[1]);
    printf(
        "%.12s, one zone; 24 h of work in 60 h: when what is declared is wrong       belay  free   "
        " UP   late, of all\n",
        f->name);
    for (size_t k = 0; k < N_OF(cases); k++) {
        const enum deadline_rule rules[] = {DEADLINE_PLANNED, DEADLINE_PLANNED, DEADLINE_UNIFORM};
        double cost[3] = {0};
        size_t late = 0, n = 0;
        struct deadline_table table;
        deadline_table_init(&table, &chains[cases[k].strange], WORK_STEPS_MAX, SLACK_STEPS_MAX,
            cases[k].restart * WRONG_RESTART_MS / DEADLINE_STEP_MS, 1.0 / 3);
        for (size_t z = 0; z < f->n; z++)
            for (size_t i = 0; i < w->offsets; i++, n++)
                for (size_t r = 0; r < 3; r++) {
                    const size_t need = (size_t)(WRONG_TIME_MS / f->zones[z].tick_ms) + 2;
                    const struct deadline_policy p = {.rule = rules[r], .table = &table};
                    const struct played out = play_wrong(&f->zones[z], &f->borders,
                        (f->zones[z].n - need) * i / w->offsets, &cases[k], &p, r == 0);
                    cost[r] += out.cost_ms / (double)(WRONG_WORK_MS + WRONG_RESTART_MS);
                    late += out.late;
                }
        deadline_table_deinit(&table);
        printf("  %-65s %5.1f %5.1f %5.1f %5zu\n", cases[k].what, 100 * cost[0] / (double)n,
            100 * cost[1] / (double)n, 100 * cost[2] / (double)n, late);
        fflush(stdout);
    }
    printf("\n");
    for (size_t i = 0; i < 2; i++)
        deadline_chain_deinit(&chains[i]);
}

/* What a decision takes: a thousand jobs in different places, each with 49 zones and on-demand. */
static void time_decisions(const struct world *w)
{
    enum { JOBS = 1000, OFFERS = 50, ROUNDS = 20 };
    struct deadline_offer offers[OFFERS] = {0};
    struct deadline_chain chain;
    struct deadline_table table;
    struct deadline_policy p = {.rule = DEADLINE_PLANNED, .table = &table};
    struct prng prng;
    clock_t began;
    double us[2], table_s;

    prng_init(&prng, 1);
    policy_learn(w, &w->folders[0], 1, 0, 0, NULL, &chain);
    began = clock();
    deadline_table_init(&table, &chain, WORK_STEPS_MAX, SLACK_STEPS_MAX, 1.2, policy_prices[0]);
    table_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    for (size_t i = 0; i + 1 < OFFERS; i++) {
        do
            offers[i].class = (uint16_t)prng_below(&prng, DEADLINE_CLASSES);
        while (!deadline_class_is_up(offers[i].class));
        offers[i].is_up = true;
        offers[i].price_uusd_h = prng_range(&prng, SURE_UUSD_H / 4, SURE_UUSD_H / 2);
    }
    offers[OFFERS - 1] = (struct deadline_offer){.is_sure = true, .price_uusd_h = SURE_UUSD_H};
    for (size_t capped = 0; capped < 2; capped++) {
        began = clock();
        for (size_t i = 0; i < (size_t)JOBS * ROUNDS; i++) {
            const int64_t work_ms = prng_range(&prng, HOUR_MS, WORK_MS),
                          left_ms = work_ms + prng_range(&prng, HOUR_MS, 32 * HOUR_MS);
            const struct baseline baseline = {.done_ms = prng_range(&prng, 0, 2 * HOUR_MS),
                .on = (i + 1) % OFFERS,
                .last = DEADLINE_NOWHERE};
            const struct deadline_job job = {.work_ms = work_ms,
                .work_worst_ms = work_ms,
                .left_ms = left_ms,
                .restart_ms = 720000,
                .restart_worst_ms = 720000,
                .look_ms = 60000,
                .on = i % OFFERS,
                .last = DEADLINE_NOWHERE,
                .whole_work_ms = work_ms + HOUR_MS,
                .whole_time_ms = left_ms + HOUR_MS,
                .baseline = capped ? &baseline : NULL,
                .cap_uusd = CAP * SURE_UUSD_H * (double)WORK_MS / HOUR_MS,
                .law = deadline_law_usual(OFFERS - 1)};
            struct deadline_choice choice;
            deadline_decide(&p, &job, offers, OFFERS, offers[0].class, &choice);
        }
        us[capped] = 1e6 * (double)(clock() - began) / CLOCKS_PER_SEC / JOBS / ROUNDS;
    }
    printf("one decision, 50 offers, all of them up         %.2f us, %.2f under a cap; of 1000 "
           "jobs: %.2f and %.2f ms; their table, once: %.2f s, %.1f MB\n",
        us[0], us[1], us[0], us[1], table_s,
        (double)(table.n_work * table.n_slack * DEADLINE_CLASSES * DEADLINE_ACTS * sizeof(float)) /
            1e6);
    deadline_table_deinit(&table);
    deadline_chain_deinit(&chain);
}

int main(int argc, char **argv)
{
    struct world *w = mem_alloc(sizeof *w);
    const char *dir = getenv("BELAY_TRACES");
    struct deadline_law law;
    bool chooses = false;

    w->offsets = 300;
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--offsets") && i + 1 < argc)
            w->offsets = strtoul(argv[++i], NULL, 10);
        else if (str_eq(argv[i], "--only") && i + 1 < argc)
            w->only = argv[++i];
        else if (str_eq(argv[i], "--law") && i + 1 < argc) {
            if (sscanf(argv[++i], "%lf,%lf,%lf", &law.losses, &law.interruptions, &law.part) != 3)
                policy_die("--law LOSSES,FLAPS,PART");
            w->law = &law;
        } else if (str_eq(argv[i], "--choose"))
            chooses = true;
        else
            dir = argv[i];
    }
    policy_load(w, dir ? dir : "../shared/traces");
    for (size_t i = 0; i < w->n; i++) {
        policy_set_borders(w, &w->folders[i], &w->folders[i].borders);
        policy_classify(&w->folders[i]);
    }
    if (chooses) {
        policy_choose(w);
        return 0;
    }
    time_decisions(w);
    fflush(stdout);
    for (size_t i = 0; i < w->n; i++)
        judge_wrong(w, &w->folders[i]);
    printf("mean cost in %% of on-demand only, %zu windows a trace; job of %lld h; by: deadline in "
           "h, rst: restart in h, o:s: on-demand to spot\n",
        w->offsets, WORK_MS / HOUR_MS);
    for (size_t i = 0; i < w->n; i++)
        judge_folder(w, &w->folders[i]);
    return 0;
}
