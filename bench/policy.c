/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what jobs with --finish-by cost on recorded spot availability (the traces of Wu et al.,
 * "Can't Be Late", NSDI 2024): under belay's rule (scheduler/core/deadline/deadline.h), under the
 * rules that it is compared with, and at the optimum.
 *
 *     bench_policy [--offsets N] [--only WORD] [--choose] [--hindsight]
 *                  [--law LOSSES,INTERRUPTIONS,PART] [DIR]
 *
 * DIR, or BELAY_TRACES, contains availability/; the default is ../shared/traces.
 *
 * The simulation. A job has 48 h of work. At the beginning of each tick of a trace the availability
 * in this tick is known, as in the paper's own simulator; nothing later is. Observations from
 * before the job's submit are known, as to a belayd that was running: age of spells, share of time
 * up. A start costs the restart, in time and at the price of that place. Under belay's rule a job
 * that moves from on-demand to spot computes on there while its spot machine boots, which is all of
 * a restart but a minute, and pays for both; under the other rules it leaves on-demand first, as in
 * their authors' simulator. Losing spot costs nothing else. The last tick is paid for as long as it
 * is used. Windows are spread evenly over all offsets at which a whole deadline fits into the
 * trace. On-demand is always available, so no rule reserves time for a failed launch: the net is
 * the paper's two restarts for all rules.
 *
 * Computing the optimum takes longer than all rules together, so it is computed in one of
 * BEST_EVERY windows.
 *
 * Tables are learned from other times than those that are judged: for 2022 from 2023, for 2023 from
 * 2022, for other folders from both and from the first 40 % of their own time, which is not judged.
 * Every four days they learn from the folder's own time so far, and most from the judged set of
 * zones itself, as belayd observes what its own jobs use. --hindsight: from the judged time itself,
 * and with several zones from nothing else: the most that better learning could bring. A tick of a
 * 16-node trace counts as up when all 16 nodes are available.
 */
#include "base/mem.h"
#include "base/minmax.h"
#include "base/prng.h"
#include "base/str.h"
#include "bench/policy_play.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEST_EVERY 10
#define AIM 0.05 /* with several zones: wanted saving relative to the cheapest form */

/* ---- the table ---- */

enum column {
    BEST,
    OURS,
    TIGHT,
    CERTAIN,
    OTHER,
    FREE,
    UNIFORM,
    STICKY,
    PLAIN,
    RC_CR,
    RC_CR_PLAIN,
    GREEDY,
    UNIFORM_BEST,
    STICKY_BEST,
    PLAIN_BEST,
    RC_CR_BEST,
    RC_CR_PLAIN_BEST,
    COLUMNS
};

static const struct {
    const char *name;
    enum deadline_rule rule;
    bool takes_best;
    double cap;      /* a part of on-demand only; 0: none */
    bool is_certain; /* by the law with a guarantee; otherwise by w->law, or belayd's default */
    enum deadline_rule baseline; /* 0: Uniform Progress */
} columns[COLUMNS] = {
    [BEST] = {"optimum", 0},
    [OURS] = {"belay", DEADLINE_PLANNED, .cap = SHIPPED_CAP},
    [TIGHT] = {"cap 10", DEADLINE_PLANNED, .cap = TIGHT_CAP},
    [CERTAIN] = {"certn", DEADLINE_PLANNED, .cap = TIGHT_CAP, .is_certain = true},
    [OTHER] = {"cap UC", DEADLINE_PLANNED, .cap = SHIPPED_CAP, .baseline = DEADLINE_RC_CR_PLAIN},
    [FREE] = {"no cap", DEADLINE_PLANNED},
    [UNIFORM] = {"UP", DEADLINE_UNIFORM},
    [STICKY] = {"UP+h", DEADLINE_UNIFORM_STICKY},
    [PLAIN] = {"UP-h", DEADLINE_UNIFORM_PLAIN},
    [RC_CR] = {"UC", DEADLINE_RC_CR},
    [RC_CR_PLAIN] = {"UC-h", DEADLINE_RC_CR_PLAIN},
    [GREEDY] = {"greedy", DEADLINE_GREEDY},
    [UNIFORM_BEST] = {"UP*", DEADLINE_UNIFORM, true},
    [STICKY_BEST] = {"UP+h*", DEADLINE_UNIFORM_STICKY, true},
    [PLAIN_BEST] = {"UP-h*", DEADLINE_UNIFORM_PLAIN, true},
    [RC_CR_BEST] = {"UC*", DEADLINE_RC_CR, true},
    [RC_CR_PLAIN_BEST] = {"UC-h*", DEADLINE_RC_CR_PLAIN, true},
};

/* The window in which belay was most expensive relative to Uniform Progress. */
struct worst {
    double more; /* extra cost, as a part of on-demand only */
    const char *zone;
    size_t from;
    struct setting s;
    struct played ours, theirs;
};

struct sums {
    size_t n, late, late_others;
    double cost[COLUMNS]; /* sum, as parts of on-demand only */
    size_t n_best;
    /* sums over windows with an optimum: of the optimum, and of the others */
    double cost_best, cost_compared[COLUMNS];
    /* Of OURS to FREE. With several zones: relative to the cheaper of UP's two ways to choose a
     * zone. */
    struct worst worst[FREE + 1];
    double over_baseline[FREE + 1]; /* the same relative to the baseline of the cap */
    /* Greatest extra cost of either way of UP to choose a zone relative to the other. */
    double next_over_best, best_over_next;
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

static const struct deadline_law *law_of(
    const struct world *w, const struct group *g, enum column k)
{
    if (columns[k].cap == 0)
        return NULL;
    if (columns[k].is_certain)
        return &deadline_law_certain;
    return w->law ? w->law : deadline_law_usual(g->n);
}

/* The column of the baseline of its cap. */
static enum column baseline_of(size_t k, bool is_several)
{
    if (columns[k].baseline == DEADLINE_RC_CR_PLAIN)
        return is_several ? RC_CR_PLAIN_BEST : RC_CR_PLAIN;
    return is_several ? UNIFORM_BEST : UNIFORM;
}

static void play_window(const struct world *w, const struct group *g, size_t from,
    const struct setting *s, const struct known *known, bool with_best, struct sums *sums)
{
    const double sure = (double)(WORK_MS + s->restart_ms),
                 best = with_best ? policy_optimum(g, from, s) : 0;
    struct played played[COLUMNS];

    sums->cost_best += best / sure;
    sums->n_best += with_best;
    for (size_t k = OURS; k < (g->n > 1 ? COLUMNS : GREEDY + 1); k++) {
        const struct deadline_policy p = {
            .rule = columns[k].rule, .takes_best = columns[k].takes_best};
        const struct capped capped = {columns[k].cap, law_of(w, g, k),
            columns[k].baseline ? columns[k].baseline : DEADLINE_UNIFORM};
        played[k] = policy_play(g, from, s, &p, &capped, known);
        sums->cost[k] += played[k].cost_ms / sure;
        sums->cost_compared[k] += with_best ? played[k].cost_ms / sure : 0;
        if (k <= FREE)
            sums->late += played[k].late;
        else
            sums->late_others += played[k].late;
        /* tolerance: best has single precision, summed over a thousand ticks */
        if (played[k].cost_ms < best * 0.9995)
            policy_die("a rule was cheaper than the optimum");
    }
    const struct played *theirs = &played[UNIFORM];
    if (g->n > 1 && played[UNIFORM_BEST].cost_ms < theirs->cost_ms)
        theirs = &played[UNIFORM_BEST];
    for (size_t k = OURS; k <= FREE; k++) {
        note_worst(g, from, s, &played[k], theirs, &sums->worst[k]);
        sums->over_baseline[k] = fmax(sums->over_baseline[k],
            (played[k].cost_ms - played[baseline_of(k, g->n > 1)].cost_ms) / sure);
    }
    if (g->n > 1) {
        const double next = (played[UNIFORM].cost_ms - played[UNIFORM_BEST].cost_ms) / sure;
        sums->next_over_best = fmax(sums->next_over_best, next);
        sums->best_over_next = fmax(sums->best_over_next, -next);
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
        double to_uniform, to_forms, to_all, to_all_most, to_best, to_best_most;
        struct worst worst;
        double over_baseline;
    } of[FREE + 1];
    double best_gain; /* of the optimum, relative to the cheapest form */
    double best_gain_most;
    size_t out_of_reach; /* settings in which it is below AIM */
    double next_over_best, best_over_next;
    /* distance of greedy and UP to the optimum, as a part of on-demand only */
    double greedy_gap, uniform_gap;
};

/* Cost of the cheapest form of Uniform Progress, over both ways to choose a zone: of the two of the
 * paper's text; of_all includes the two of its code (UC) and the one whose hysteresis also applies
 * to spot. */
static double least_of(const double *cost, bool of_all)
{
    static const enum column forms[] = {UNIFORM, PLAIN, UNIFORM_BEST, PLAIN_BEST, STICKY,
        STICKY_BEST, RC_CR, RC_CR_PLAIN, RC_CR_BEST, RC_CR_PLAIN_BEST};
    double least = INFINITY;

    for (size_t i = 0; i < (of_all ? N_OF(forms) : 4); i++)
        if (cost[forms[i]] > 0 && cost[forms[i]] < least)
            least = cost[forms[i]];
    return least;
}

static void sum_up(const struct sums *sums, struct bars *bars)
{
    const double forms = least_of(sums->cost, false), all = least_of(sums->cost, true),
                 there = least_of(sums->cost_compared, true);

    for (size_t k = OURS; k <= FREE; k++) {
        const double ours = sums->cost[k], to_best = sums->cost_compared[k] / sums->cost_best;
        bars->of[k].dearer += ours > all * 1.00001;
        bars->of[k].to_all_most = fmax(bars->of[k].to_all_most, ours / all);
        bars->of[k].to_uniform += ours / sums->cost[UNIFORM];
        bars->of[k].to_forms += ours / forms;
        bars->of[k].to_all += ours / all;
        bars->of[k].to_best += to_best;
        bars->of[k].to_best_most = fmax(bars->of[k].to_best_most, to_best);
        if (!bars->of[k].worst.zone || sums->worst[k].more > bars->of[k].worst.more)
            bars->of[k].worst = sums->worst[k];
        bars->of[k].over_baseline = fmax(bars->of[k].over_baseline, sums->over_baseline[k]);
    }
    const double gain = (there - sums->cost_best) / there;
    bars->best_gain += gain;
    bars->best_gain_most = fmax(bars->best_gain_most, gain);
    bars->out_of_reach += gain < AIM;
    bars->next_over_best = fmax(bars->next_over_best, sums->next_over_best);
    bars->best_over_next = fmax(bars->best_over_next, sums->best_over_next);
    bars->uniform_gap += (sums->cost_compared[UNIFORM] - sums->cost_best) / (double)sums->n_best;
    bars->greedy_gap += (sums->cost_compared[GREEDY] - sums->cost_best) / (double)sums->n_best;
    bars->settings++;
    bars->late += sums->late;
    bars->late_others += sums->late_others;
}

static void print_row(const char *what, const struct setting *s, const struct sums *sums)
{
    const size_t n_columns = sums->cost[UNIFORM_BEST] > 0 ? COLUMNS : GREEDY + 1;
    const double forms = least_of(sums->cost, true), there = least_of(sums->cost_compared, true),
                 best = sums->cost_best;

    printf("%-14s %3.0f %4.2f %.0f:1 %6.2f", what, (double)s->deadline_ms / HOUR_MS,
        (double)s->restart_ms / HOUR_MS, 1 / s->price, 100 * best / (double)sums->n_best);
    for (size_t k = OURS; k < n_columns; k++)
        printf(" %6.2f", 100 * sums->cost[k] / (double)sums->n);
    printf(" | %.3f %.3f %.3f | %4.1f %4.0f |", sums->cost[OURS] / sums->cost[UNIFORM],
        sums->cost[OURS] / forms, sums->cost_compared[OURS] / best, 100 * (there - best) / there,
        100 * (there - sums->cost_compared[OURS]) / (there - best));
    for (size_t k = OURS; k <= FREE; k++)
        printf(" %+5.1f", 100 * sums->worst[k].more);
    if (n_columns == COLUMNS)
        printf(" %+5.1f %+5.1f", 100 * sums->next_over_best, 100 * sums->best_over_next);
    printf(" | %zu %zu\n", sums->late, sums->late_others);
    fflush(stdout);
}

static void print_head(const char *what, bool many)
{
    printf("%-14s dln  rst  o:s", what);
    for (size_t k = 0; k < (many ? COLUMNS : GREEDY + 1); k++)
        printf(" %6.6s", columns[k].name);
    printf(" | /UP   /form /opt  | gain used | worst cap10 certn nocap%s | late, others\n",
        many ? "    UP   UP*" : "");
}

static void print_bars(const char *what, const struct bars *b)
{
    const double n = (double)b->settings;

    printf("== %s: means of %zu settings; late %zu (other rules %zu); the optimum is %.1f %% below "
           "the cheapest form; greedy is %.2f times as far from the optimum as UP\n",
        what, b->settings, b->late, b->late_others, 100 * b->best_gain / n,
        b->greedy_gap / b->uniform_gap);
    for (size_t k = OURS; k <= FREE; k++) {
        const struct worst *w = &b->of[k].worst;
        printf(
            "   %-6s cost: %.3f of UP, %.3f of its cheaper form, %.3f of the cheapest form of all "
            "(at most %.3f; more expensive in %zu settings), %.3f of the optimum (at most %.3f); "
            "worst window %+.1f %% (relative to the cap's baseline %+.1f %%)\n",
            columns[k].name, b->of[k].to_uniform / n, b->of[k].to_forms / n, b->of[k].to_all / n,
            b->of[k].to_all_most, b->of[k].dearer, b->of[k].to_best / n, b->of[k].to_best_most,
            100 * w->more, 100 * b->of[k].over_baseline);
        printf("          worst window: %s from tick %zu, deadline %.0f h, restart %.2f h, %.0f:1; "
               "%zu starts, %.1f h on spot, %.1f h on on-demand; UP: %zu, %.1f h, %.1f h\n",
            w->zone, w->from, (double)w->s.deadline_ms / HOUR_MS, (double)w->s.restart_ms / HOUR_MS,
            1 / w->s.price, w->ours.starts, (double)w->ours.spot_ms / HOUR_MS,
            (double)w->ours.sure_ms / HOUR_MS, w->theirs.starts,
            (double)w->theirs.spot_ms / HOUR_MS, (double)w->theirs.sure_ms / HOUR_MS);
    }
    if (b->next_over_best > 0 || b->best_over_next > 0) {
        printf(
            "   possible saving: in a setting, the optimum is at most %.1f %% below the cheapest "
            "form; it is less than %.0f %% below in %zu of %zu settings\n",
            100 * b->best_gain_most, 100 * AIM, b->out_of_reach, b->settings);
        printf(
            "   UP's two ways to choose a zone, worst window relative to the other way: %+.1f %% "
            "(UP, the next available one), %+.1f %% (UP*, the best so far)\n",
            100 * b->next_over_best, 100 * b->best_over_next);
    }
    printf("   processor time so far: %.0f s\n\n", (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
}

/* Judges all settings for groups with equally many offers. */
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
            struct setting s = policy_setting(policy_restarts_ms[r], policy_prices[p]);
            policy_tables_init(k, &s);
            fprintf(stderr, "%s: restart %.2f h, tables done at %.0f s\n", what,
                (double)policy_restarts_ms[r] / HOUR_MS, (double)clock() / CLOCKS_PER_SEC);
            for (size_t d = 0; d < DEADLINES; d++) {
                struct sums sums = {0};
                s.deadline_ms = policy_deadlines_h[d] * HOUR_MS;
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

/* Zones of one region, where a folder has several regions. */
static void judge_regions(const struct world *w, const struct folder *f, size_t n_types)
{
    struct group regions[ZONES_MAX] = {0};
    const size_t n = policy_regions(f, regions);

    for (size_t i = 0; i < n && n > n_types; i++) {
        const struct zone *z = &f->zones[regions[i].zones[0]];
        char *of =
            mem_printf("%zu zones of %.*s", regions[i].n, (int)policy_region_length(z), z->name);
        if (regions[i].n > 1)
            judge(w, &regions[i], 1, of);
        free(of);
    }
}

static void judge_folder(const struct world *w, const struct folder *f)
{
    struct group singles[ZONES_MAX] = {0}, types[ZONES_MAX] = {0}, all = {0};
    const size_t n_types = policy_types(f, types);

    judge(w, singles, policy_singles(f, singles), "one zone");
    judge_regions(w, f, n_types);
    judge(w, types, n_types, "all zones of a type");
    for (size_t z = 0; z < f->n; z++)
        if (f->zones[z].n == f->zones[f->n - 1].n)
            policy_add_zone(&all, f, z);
    if (n_types > 1)
        judge(w, &all, 1, "all zones and types");
}

/* Wrong declarations: a job of 24 h of work, 60 h to its deadline, restarts of 0.2 h, on-demand at
 * three times the price of spot. */
struct wrong {
    const char *what;
    /* declared value relative to the actual one; the declared worst case is the greater of both */
    double work, restart;
    /* halfway to the deadline: spot costs as much as on-demand; spot disappears for good */
    bool triples, ends;
    int64_t lost_ms; /* work that is lost when spot disappears, because there is no notice */
    /* the table was learned from the opposite market: short availability, long gaps */
    bool strange;
};

#define WRONG_WORK_MS (24 * HOUR_MS)
#define WRONG_TIME_MS (60 * HOUR_MS)
#define WRONG_RESTART_MS 720000

/* The job as the decision sees it when done_ms of its work is done. */
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

    baseline_init(&baseline, DEADLINE_UNIFORM);
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
            /* the baseline knows the actual work as far as the job does */
            job.whole_work_ms = done_ms + job.work_ms;
            job.baseline = &baseline;
            job.paid_uusd = out.cost_ms / HOUR_MS * SURE_UUSD_H;
            job.cap_uusd = SHIPPED_CAP * SURE_UUSD_H * (double)WRONG_WORK_MS / HOUR_MS;
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

/* A market of ten minutes up and two hours down, unlike all judged ones. */
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
    static const struct wrong cases[] = {{"declared correctly", 1, 1, false, false, 0, false},
        {"work declared as half", 0.5, 1, false, false, 0, false},
        {"work declared as twice", 2, 1, false, false, 0, false},
        {"restart declared as a third", 1, 1.0 / 3, false, false, 0, false},
        {"restart declared as three times", 1, 3, false, false, 0, false},
        {"spot price triples halfway", 1, 1, true, false, 0, false},
        {"spot ends for good halfway", 1, 1, false, true, 0, false},
        {"no notices, each reclaim loses 10 min", 1, 1, false, false, 600000, false},
        {"learned from an opposite market", 1, 1, false, false, 0, true}};
    struct deadline_chain chains[2];

    if (w->only && !strstr("wrong", w->only))
        return;
    policy_learn(w, f, 1, 0, 0, NULL, &chains[0]);
    learn_strange(f, &chains[1]);
    printf(
        "%.12s, one zone; 24 h of work in 60 h, with wrong declarations              belay nocap   "
        " UP   late runs\n",
        f->name);
    for (size_t k = 0; k < N_OF(cases); k++) {
        const enum deadline_rule rules[] = {DEADLINE_PLANNED, DEADLINE_PLANNED, DEADLINE_UNIFORM};
        double cost[3] = {0};
        size_t late = 0, n = 0;
        struct deadline_table table;
        const struct deadline_starts starts =
            deadline_starts_alike(cases[k].restart * WRONG_RESTART_MS / DEADLINE_STEP_MS);
        deadline_table_init(
            &table, &chains[cases[k].strange], WORK_STEPS_MAX, SLACK_STEPS_MAX, &starts, 1.0 / 3);
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

/* Time of one decision: 1,000 jobs in random states, each with 49 zones and on-demand. */
static void time_decisions(const struct world *w)
{
    enum { JOBS = 1000, OFFERS = 50, ROUNDS = 20 };
    struct deadline_offer offers[OFFERS] = {0};
    struct deadline_chain chain;
    struct deadline_table table;
    struct deadline_policy p = {.rule = DEADLINE_PLANNED, .table = &table};
    const struct deadline_starts starts = {.restart = 1.2, .boot = 1, .switching = 0.2};
    struct prng prng;
    clock_t began;
    double us[2], table_s;

    prng_init(&prng, 1);
    policy_learn(w, &w->folders[0], 1, 0, 0, NULL, &chain);
    began = clock();
    deadline_table_init(&table, &chain, WORK_STEPS_MAX, SLACK_STEPS_MAX, &starts, policy_prices[0]);
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
            const struct baseline baseline = {.rule = DEADLINE_UNIFORM,
                .done_ms = prng_range(&prng, 0, 2 * HOUR_MS),
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
                .cap_uusd = SHIPPED_CAP * SURE_UUSD_H * (double)WORK_MS / HOUR_MS,
                .law = deadline_law_usual(OFFERS - 1)};
            struct deadline_choice choice;
            deadline_decide(&p, &job, offers, OFFERS, offers[0].class, &choice);
        }
        us[capped] = 1e6 * (double)(clock() - began) / CLOCKS_PER_SEC / JOBS / ROUNDS;
    }
    printf("one decision, 50 available offers               %.2f us, with a cap %.2f us; for 1000 "
           "jobs %.2f ms and %.2f ms; their shared table %.2f s, %.1f MB\n",
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
                policy_die("--law needs LOSSES,INTERRUPTIONS,PART (three numbers)");
            w->law = &law;
        } else if (str_eq(argv[i], "--choose"))
            chooses = true;
        else if (str_eq(argv[i], "--hindsight"))
            w->in_hindsight = true;
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
    policy_price_restarts(w);
    policy_regimes(w);
    printf(
        "Mean cost in %% of on-demand only; %zu windows a trace; a job of %lld h. dln: deadline in "
        "h. rst: restart in h. o:s: price of on-demand to spot.\n"
        "certn: belay with a certain cap. UP: Uniform Progress; -h without hysteresis, +h "
        "with hysteresis on spot too, * in the best zone so far instead of the next.\n"
        "/UP, /form, /opt: belay's cost relative to UP, the cheapest form of UP, the optimum. "
        "gain: the optimum below that form, in %%; used: belay's part of it, in %%.\n"
        "worst: the window in which belay is most expensive relative to UP, in %% of on-demand "
        "only; then with a certain cap, without a cap; then UP and UP* relative to each other.\n",
        w->offsets, WORK_MS / HOUR_MS);
    for (size_t i = 0; i < w->n; i++)
        judge_folder(w, &w->folders[i]);
    return 0;
}
