/* SPDX-License-Identifier: Apache-2.0
 *
 * See policy_play.h.
 */
#include "bench/policy_best.h"
#include "bench/policy_play.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const int64_t policy_deadlines_h[DEADLINES] = {52, 60, 68, 80},
              policy_restarts_ms[RESTARTS] = {180000, 720000, 1440000};
const double policy_prices[PRICES] = {1.0 / 3, 1.0 / 2};

struct setting policy_setting(int64_t restart_ms, double price)
{
    return (struct setting){.work_ms = WORK_MS,
        .restart_ms = restart_ms,
        .boot_ms = restart_ms > SWITCH_MS ? restart_ms - SWITCH_MS : 0,
        .price = price};
}

void policy_add_zone(struct group *g, const struct folder *f, size_t z)
{
    const size_t ticks = f->zones[z].n;

    g->f = f;
    g->ticks = g->n == 0 || ticks < g->ticks ? ticks : g->ticks;
    g->from = (size_t)(f->judged_from * (double)g->ticks);
    g->zones[g->n++] = z;
}

size_t policy_singles(const struct folder *f, struct group *groups)
{
    for (size_t z = 0; z < f->n; z++)
        policy_add_zone(&groups[z], f, z);
    return f->n;
}

/* Returns the part after the zone: "_k80_1.json" of "us-west-2a_k80_1.json". */
static const char *type_of(const struct zone *z)
{
    const char *type = strchr(z->name, '_');

    return type ? type : "";
}

static bool has_same_type(const struct zone *a, const struct zone *b)
{
    return str_eq(type_of(a), type_of(b));
}

/* us-west-2: the name without the zone's letter. */
size_t policy_region_length(const struct zone *z)
{
    const size_t n = strcspn(z->name, "_");

    return n > 0 ? n - 1 : 0;
}

static bool has_same_region(const struct zone *a, const struct zone *b)
{
    const size_t n = policy_region_length(a);

    return has_same_type(a, b) && n == policy_region_length(b) && strncmp(a->name, b->name, n) == 0;
}

static size_t group_by(const struct folder *f, struct group *groups,
    bool (*belongs)(const struct zone *, const struct zone *))
{
    size_t n = 0;

    for (size_t z = 0; z < f->n; z++) {
        size_t k = 0;
        if (f->zones[z].n != f->zones[f->n - 1].n)
            continue;
        while (k < n && !belongs(&f->zones[groups[k].zones[0]], &f->zones[z]))
            k++;
        policy_add_zone(&groups[k], f, z);
        n += k == n;
    }
    return n;
}

size_t policy_types(const struct folder *f, struct group *groups)
{
    return group_by(f, groups, has_same_type);
}

size_t policy_regions(const struct folder *f, struct group *groups)
{
    return group_by(f, groups, has_same_region);
}

/* Learns from the folder, and then, with more weight, from the sets of zones that are judged:
 * belayd observes the offers of its own jobs. */
static void learn_sets(const struct world *w, const struct group *groups, size_t n_groups,
    size_t until, size_t like, const struct deadline_chain *single,
    struct deadline_chain *ret_chain)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);

    policy_count(w, groups[0].f, groups[0].n, until, like, single, counts);
    if (until > 0)
        deadline_counts_fade(counts, w->in_hindsight ? 0 : POLICY_FADE);
    for (size_t i = 0; i < n_groups; i++)
        policy_watch(
            groups[i].f, groups[i].zones, groups[i].n, until, single, counts, NULL, NULL, NULL);
    deadline_chain_init(ret_chain, counts);
    free(counts);
}

void policy_known_init(
    const struct world *w, struct group *groups, size_t n_groups, struct known *k)
{
    const struct folder *f = groups[0].f;
    const size_t n = groups[0].n, like = f->zones[groups[0].zones[0]].n;

    *k = (struct known){.tick_ms = f->zones[groups[0].zones[0]].tick_ms};
    if (w->in_hindsight)
        k->n = 1;
    else
        k->n = (size_t)((int64_t)groups[0].ticks * k->tick_ms / EPOCH_MS) + 1;
    for (size_t i = 0; i < k->n; i++) {
        const size_t until =
            w->in_hindsight ? groups[0].ticks : i * (size_t)(EPOCH_MS / k->tick_ms);
        k->begins_ms[i] = (int64_t)i * EPOCH_MS;
        policy_learn(w, f, 1, until, like, NULL, &k->single[i]);
        if (n > 1)
            learn_sets(w, groups, n_groups, until, like, &k->single[i], &k->chain[i]);
        else
            policy_learn(w, f, 1, until, like, NULL, &k->chain[i]);
    }
    for (size_t i = 0; i < n_groups; i++) {
        groups[i].set_class = mem_array(groups[i].ticks, sizeof(uint16_t));
        for (size_t z = 0; z < n; z++)
            groups[i].class[z] = mem_array(groups[i].ticks, sizeof(uint16_t));
        policy_watch(f, groups[i].zones, n, groups[i].ticks, &k->single[0], NULL, &f->borders,
            groups[i].set_class, groups[i].class);
    }
}

void policy_known_deinit(struct group *groups, size_t n_groups, struct known *k)
{
    for (size_t i = 0; i < n_groups; i++) {
        free(groups[i].set_class);
        for (size_t z = 0; z < groups[i].n; z++)
            free(groups[i].class[z]);
    }
    for (size_t i = 0; i < k->n; i++) {
        deadline_chain_deinit(&k->single[i]);
        deadline_chain_deinit(&k->chain[i]);
    }
}

void policy_tables_init(struct known *k, const struct setting *s)
{
    const double step_ms = DEADLINE_STEP_MS;
    const struct deadline_starts starts = {.restart = (double)s->restart_ms / step_ms,
        .boot = (double)s->boot_ms / step_ms,
        .switching = (double)(s->restart_ms - s->boot_ms) / step_ms};

    for (size_t i = 0; i < k->n; i++)
        deadline_table_init(
            &k->table[i], &k->chain[i], WORK_STEPS_MAX, SLACK_STEPS_MAX, &starts, s->price);
}

void policy_tables_deinit(struct known *k)
{
    for (size_t i = 0; i < k->n; i++)
        deadline_table_deinit(&k->table[i]);
}

size_t policy_offset(
    const struct world *w, const struct group *g, const struct setting *s, size_t i)
{
    const size_t need = (size_t)(s->deadline_ms / g->f->zones[g->zones[0]].tick_ms) + 2;

    if (g->ticks < g->from + need + w->offsets)
        policy_die("a trace is too short");
    return g->from + (g->ticks - g->from - need) * i / w->offsets;
}

double policy_optimum(const struct group *g, size_t from, const struct setting *s)
{
    struct best_case c = {.n_zones = g->n,
        .n_ticks = g->ticks - from,
        .tick_ms = g->f->zones[g->zones[0]].tick_ms,
        .work_ms = s->work_ms,
        .deadline_ms = s->deadline_ms,
        .restart_ms = s->restart_ms,
        .boot_ms = s->boot_ms,
        .price = s->price};

    for (size_t i = 0; i < g->n; i++)
        c.up[i] = g->f->zones[g->zones[i]].up + from;
    return best_cost(&c);
}

static void look(const struct group *g, size_t tick, struct deadline_offer *offers)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct zone *z = &g->f->zones[g->zones[i]];
        offers[i].is_up = z->up[tick];
        offers[i].class = g->class[i][tick];
        offers[i].share = z->share[tick];
        offers[i].rate = z->rate[tick];
        offers[i].record_ms = z->record_ms[tick];
    }
}

static size_t epoch_at(const struct known *k, size_t tick)
{
    size_t e = k->n - 1;

    while (e > 0 && (int64_t)tick * k->tick_ms < k->begins_ms[e])
        e--;
    return e;
}

/* Advances the job by a tick at its choice, and counts what it paid for. */
static void advance(struct deadline_job *job, const struct deadline_offer *offers, size_t to,
    int64_t tick_ms, size_t sure, struct played *out)
{
    const struct deadline_job before = *job;
    const bool moves = to < sure && deadline_moves(job, offers),
               starts =
                   to != DEADLINE_NOWHERE && to != before.on && !(moves && to == before.moving_to);
    const int64_t used_ms = baseline_go(job, offers, to, tick_ms);

    out->starts += starts;
    out->moves += starts && before.on == sure;
    out->cost_ms = job->paid_uusd * HOUR_MS / SURE_UUSD_H;
    *(to < sure && !moves ? &out->spot_ms : &out->sure_ms) += used_ms;
    out->late = out->late || (job->work_ms == 0 && before.left_ms < used_ms);
}

struct played policy_play(const struct group *g, size_t from, const struct setting *s,
    const struct deadline_policy *rule, const struct capped *capped, const struct known *known)
{
    struct deadline_policy policy = *rule, *p = &policy;
    const int64_t tick_ms = g->f->zones[g->zones[0]].tick_ms;
    struct deadline_offer offers[ZONES_MAX + 1] = {0};
    struct deadline_job job = {.work_ms = s->work_ms,
        .work_worst_ms = s->work_ms,
        .left_ms = s->deadline_ms,
        .restart_ms = s->restart_ms,
        .restart_worst_ms = s->restart_ms,
        .look_ms = tick_ms,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE,
        .moving_to = DEADLINE_NOWHERE,
        .whole_work_ms = s->work_ms,
        .whole_time_ms = s->deadline_ms,
        .law = capped->law};
    struct baseline baseline;
    struct played out = {0};

    if (p->rule == DEADLINE_PLANNED) {
        job.boot_ms = s->boot_ms;
        job.switch_ms = job.switch_worst_ms = s->restart_ms - s->boot_ms;
    }
    baseline_init(&baseline, capped->baseline);
    job.baseline = capped->law ? &baseline : NULL;
    job.cap_uusd = capped->cap * SURE_UUSD_H * (double)s->work_ms / HOUR_MS;

    for (size_t i = 0; i < g->n; i++)
        offers[i].price_uusd_h = llround(s->price * SURE_UUSD_H);
    offers[g->n] = (struct deadline_offer){.is_sure = true, .price_uusd_h = SURE_UUSD_H};
    for (size_t t = from; job.work_ms > 0; t++) {
        struct deadline_choice choice;
        if (t == g->ticks)
            policy_die("a job ran out of its trace");
        look(g, t, offers);
        baseline_lose(&job, offers);
        policy.table = &known->table[epoch_at(known, t)];
        deadline_decide(p, &job, offers, g->n + 1, g->set_class[t], &choice);
        if (capped->law)
            baseline_pass(
                &baseline, &job, offers, baseline_look(&baseline, &job, offers, g->n + 1), tick_ms);
        advance(&job, offers, choice.offer, tick_ms, g->n, &out);
    }
    return out;
}
