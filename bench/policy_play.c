/* SPDX-License-Identifier: Apache-2.0
 *
 * See policy_play.h.
 */
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

void policy_known_init(
    const struct world *w, struct group *groups, size_t n_groups, struct known *k)
{
    const struct folder *f = groups[0].f;
    const size_t n = groups[0].n, like = f->zones[groups[0].zones[0]].n;

    *k = (struct known){.tick_ms = f->zones[groups[0].zones[0]].tick_ms};
    k->n = (size_t)((int64_t)groups[0].ticks * k->tick_ms / EPOCH_MS) + 1;
    for (size_t i = 0; i < k->n; i++) {
        const size_t until = i * (size_t)(EPOCH_MS / k->tick_ms);
        k->begins_ms[i] = (int64_t)i * EPOCH_MS;
        policy_learn(w, f, 1, until, like, NULL, &k->single[i]);
        policy_learn(w, f, n, until, like, n > 1 ? &k->single[i] : NULL, &k->chain[i]);
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

void policy_tables_init(struct known *k, int64_t restart_ms, double price)
{
    for (size_t i = 0; i < k->n; i++)
        deadline_table_init(&k->table[i], &k->chain[i], WORK_STEPS_MAX, SLACK_STEPS_MAX,
            (double)restart_ms / DEADLINE_STEP_MS, price);
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

/* Spot is gone or no longer wanted: a job that still computes on on-demand stays there. */
static void stop_start(struct deadline_job *job, size_t sure, int64_t *beside_ms)
{
    job->on = *beside_ms > 0 ? sure : DEADLINE_NOWHERE;
    if (*beside_ms > 0)
        job->starting_ms = 0;
    *beside_ms = 0;
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
        .whole_work_ms = s->work_ms,
        .whole_time_ms = s->deadline_ms,
        .law = capped->law};
    struct baseline baseline;
    struct played out = {0};
    int64_t beside_ms = 0; /* of a start, while on-demand computes on */

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
        policy.table = &known->table[epoch_at(known, t)];
        if (job.on < g->n && !offers[job.on].is_up)
            stop_start(&job, g->n, &beside_ms);
        deadline_decide(p, &job, offers, g->n + 1, g->set_class[t], &choice);
        if (capped->law)
            baseline_pass(
                &baseline, &job, offers, baseline_look(&baseline, &job, offers, g->n + 1), tick_ms);
        if (choice.offer == g->n && beside_ms > 0)
            stop_start(&job, g->n, &beside_ms);
        if (choice.offer != job.on) {
            const bool leaves_sure = job.on == g->n && choice.offer < g->n;
            beside_ms = leaves_sure && job.starting_ms == 0
                            ? llround(s->overlap * (double)s->restart_ms)
                            : 0;
            out.moves += leaves_sure;
        }
        if (choice.offer != job.on && choice.offer != DEADLINE_NOWHERE) {
            job.starting_ms = s->restart_ms;
            out.starts++;
        }
        job.on = choice.offer;
        if (job.on < g->n)
            job.last = job.on;
        if (job.on != DEADLINE_NOWHERE) {
            const int64_t boot = min_i64(job.starting_ms, tick_ms);
            const int64_t beside = min_i64(min_i64(beside_ms, boot), job.work_ms);
            job.starting_ms -= boot;
            beside_ms -= beside;
            out.sure_ms += beside;
            out.cost_ms += (double)beside;
            job.work_ms -= beside;
            const int64_t ran = min_i64(job.work_ms, tick_ms - boot),
                          paid = job.work_ms > 0 ? boot + ran : beside;
            job.work_ms -= ran;
            *(job.on < g->n ? &out.spot_ms : &out.sure_ms) += paid;
            out.cost_ms += (job.on < g->n ? s->price : 1) * (double)paid;
            job.paid_uusd = out.cost_ms / HOUR_MS * SURE_UUSD_H;
            out.late = out.late || (job.work_ms == 0 && job.left_ms < paid);
        }
        job.work_worst_ms = job.work_ms;
        job.left_ms -= tick_ms;
    }
    return out;
}
