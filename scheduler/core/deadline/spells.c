/* SPDX-License-Identifier: Apache-2.0
 *
 * Spells of spot offers, and the Markov chain learned from them.
 *
 * Share and rate are decaying averages over a day and over half a day. Both start from a prior with
 * the weight of two hours, so that one loss in the first minutes does not define the regime.
 */
#include "scheduler/core/deadline/spells.h"

#include "base/mem.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS 3600000.0
#define SHARE_MEMORY_MS (24 * HOUR_MS)
#define RATE_MEMORY_MS (12 * HOUR_MS)
#define PRIOR_MS (2 * HOUR_MS)
#define PRIOR_SHARE 0.5
#define PRIOR_RATE_H 0.25
#define RECORD_LOSSES 5 /* decayed number of ended spells from which on their length counts */
#define PRIOR_END 0.1   /* chance of a spell's end per step, without any data */
#define LEAN 40.0       /* weight of the pooled row, in counts */
#define LEAN_POOLED 2.0 /* weight of the previous row in the pooled one */
/* an offer with at least this expected life counts as a fallback */
#define BEHIND_MS (3 * HOUR_MS)
#define LIFE_ROUNDS 2000 /* iterations for life_ms: two weeks of steps */

/* Lower bounds of the age ranges, in steps. */
static const int64_t age_steps[DEADLINE_AGES] = {0, 1, 2, 3, 6, 12, 24, 48, 96};

void spell_watch_see(struct spell_watch *w, int64_t at_ms, bool up)
{
    double gap, keep_share, keep_rate;

    if (!w->seen) {
        *w = (struct spell_watch){.seen = true, .up = up, .since_ms = at_ms, .at_ms = at_ms};
        return;
    }
    assert(at_ms >= w->at_ms);
    if (w->is_assumed) {
        w->is_assumed = false;
        w->up = up;
    }
    gap = (double)(at_ms - w->at_ms);
    keep_share = exp(-gap / SHARE_MEMORY_MS);
    keep_rate = exp(-gap / RATE_MEMORY_MS);
    w->share_weight = w->share_weight * keep_share + gap;
    w->up_weight = w->up_weight * keep_share + (w->up ? gap : 0);
    w->losses = w->losses * keep_rate + (w->up && !up);
    w->longest_ms *= keep_rate;
    if (w->up && !up)
        w->longest_ms = fmax(w->longest_ms, (double)(at_ms - w->since_ms));
    w->rate_weight = w->rate_weight * keep_rate + (w->up ? gap : 0);
    if (w->up != up)
        w->since_ms = at_ms;
    w->up = up;
    w->at_ms = at_ms;
}

void spell_watch_assume(struct spell_watch *w, int64_t at_ms)
{
    w->seen = w->up = w->is_assumed = true;
    w->since_ms = w->at_ms = at_ms;
}

double spell_watch_share(const struct spell_watch *w)
{
    return (w->up_weight + PRIOR_SHARE * PRIOR_MS) / (w->share_weight + PRIOR_MS);
}

double spell_watch_rate(const struct spell_watch *w)
{
    return HOUR_MS * (w->losses + PRIOR_RATE_H * PRIOR_MS / HOUR_MS) / (w->rate_weight + PRIOR_MS);
}

int64_t spell_watch_record_ms(const struct spell_watch *w, int64_t now_ms)
{
    const double left_ms = w->longest_ms - (double)(now_ms - w->since_ms);

    return w->up && w->losses >= RECORD_LOSSES && left_ms > 0 ? (int64_t)left_ms : 0;
}

static unsigned range_of(const double *borders, unsigned n, double x)
{
    unsigned i = 0;

    while (i < n && x >= borders[i])
        i++;
    return i;
}

static uint16_t class_of(unsigned share, unsigned rate, bool up, unsigned age)
{
    return (uint16_t)(((share * DEADLINE_RATES + rate) * 2 + up) * DEADLINE_AGES + age);
}

uint16_t deadline_class(
    const struct deadline_borders *b, const struct spell_watch *w, int64_t now_ms)
{
    const int64_t steps = w->seen ? (now_ms - w->since_ms) / DEADLINE_STEP_MS : 0;
    unsigned age = 0;

    while (age + 1 < DEADLINE_AGES && steps >= age_steps[age + 1])
        age++;
    return class_of(range_of(b->share, DEADLINE_SHARES - 1, spell_watch_share(w)),
        range_of(b->rate, DEADLINE_RATES - 1, spell_watch_rate(w)), w->seen && w->up, age);
}

bool deadline_class_is_up(uint16_t class)
{
    return class / DEADLINE_AGES % 2;
}

/* The offer set. */

static double lasts_ms(const struct deadline_offer_set *m, size_t i, int64_t now_ms)
{
    const struct spell_watch *w = &m->offers[i];

    return m->single ? m->single->life_ms[deadline_class(&m->single->borders, w, now_ms)]
                     : (double)(now_ms - w->since_ms);
}

static bool is_known_up(const struct deadline_offer_set *m, size_t i)
{
    return m->offers[i].up && !m->is_assumed[i];
}

static bool any_known_up(const struct deadline_offer_set *m)
{
    size_t i = 0;

    while (i < m->n && !is_known_up(m, i))
        i++;
    return i < m->n;
}

/* An offer that is only assumed to be up is never seen to be lost. */
static void choose_favourite(struct deadline_offer_set *m, int64_t now_ms)
{
    const bool is_known = any_known_up(m);
    double best = -1;

    for (size_t i = 0; i < m->n; i++)
        if ((is_known ? is_known_up(m, i) : m->offers[i].up) && lasts_ms(m, i, now_ms) > best) {
            best = lasts_ms(m, i, now_ms);
            m->favourite = i;
        }
}

/* What a job on the i-th offer would fall back on: 0 no offer, 1 offers that are not expected to
 * last BEHIND_MS, DEADLINE_RATES - 1 one that is. */
static unsigned behind(const struct deadline_offer_set *m, size_t i, int64_t now_ms)
{
    unsigned best = 0;

    for (size_t k = 0; k < m->n && best < DEADLINE_RATES - 1; k++)
        if (k != i && m->offers[k].up)
            best = lasts_ms(m, k, now_ms) >= BEHIND_MS ? DEADLINE_RATES - 1 : 1;
    return best;
}

uint16_t deadline_offer_set_class_of(const struct deadline_offer_set *m, size_t i,
    const struct spell_watch *w, const struct deadline_borders *b, int64_t now_ms)
{
    const uint16_t class = deadline_class(b, w, now_ms);

    if (m->n == 1 || !w->up)
        return class;
    return class_of(class / DEADLINE_AGES / 2 / DEADLINE_RATES, behind(m, i, now_ms), true,
        class % DEADLINE_AGES);
}

uint16_t deadline_offer_set_class(
    const struct deadline_offer_set *m, const struct deadline_borders *b, int64_t now_ms)
{
    if (!m->whole.up)
        return deadline_class(b, &m->whole, now_ms);
    return deadline_offer_set_class_of(m, m->favourite, &m->offers[m->favourite], b, now_ms);
}

void deadline_offer_set_see(
    struct deadline_offer_set *m, int64_t at_ms, const bool *up, struct deadline_counts *counts)
{
    const bool had = m->whole.up;
    bool any = false;

    assert(m->n > 0 && m->n <= DEADLINE_OFFERS_MAX);
    if (m->whole.seen && at_ms - m->whole.at_ms > DEADLINE_STEP_MS)
        m->counting = false;
    for (size_t i = 0; i < m->n; i++) {
        if (m->is_assumed[i])
            spell_watch_assume(&m->offers[i], at_ms);
        else
            spell_watch_see(&m->offers[i], at_ms, up[i]);
        any = any || up[i];
    }
    spell_watch_see(&m->whole, at_ms, any);
    if (any && (!had || !m->offers[m->favourite].up)) {
        m->moved = m->moved || had;
        choose_favourite(m, at_ms);
    } else if (any && m->is_assumed[m->favourite] && any_known_up(m)) {
        choose_favourite(m, at_ms);
        m->counting = false; /* the step began with another favourite, which was not lost */
    }
    if (had && !any)
        m->moved = true;
    if (!counts || (m->counting && at_ms - m->from_ms < DEADLINE_STEP_MS))
        return;
    const uint16_t to = deadline_offer_set_class(m, &counts->borders, at_ms);
    const bool is_assumed = any && m->is_assumed[m->favourite];
    if (m->counting && !(m->was_assumed && is_assumed && !m->moved))
        counts->steps[m->from][m->moved][to]++;
    m->was_assumed = is_assumed;
    /* Prevents drift: a step that began slightly late ends on time. */
    m->from_ms = m->counting && at_ms - m->from_ms < 2 * DEADLINE_STEP_MS
                     ? m->from_ms + DEADLINE_STEP_MS
                     : at_ms;
    m->from = to;
    m->counting = true;
    m->moved = false;
}

void deadline_counts_fade(struct deadline_counts *counts, double most)
{
    for (unsigned from = 0; from < DEADLINE_CLASSES; from++) {
        double sum = 0;
        for (unsigned i = 0; i < 2 * DEADLINE_CLASSES; i++)
            sum += counts->steps[from][i / DEADLINE_CLASSES][i % DEADLINE_CLASSES];
        for (unsigned i = 0; i < 2 * DEADLINE_CLASSES && sum > most; i++)
            counts->steps[from][i / DEADLINE_CLASSES][i % DEADLINE_CLASSES] *= (float)(most / sum);
    }
}

/* The chain. */

struct row {
    float to[2][DEADLINE_CLASSES];
};

/* Counts of one age over all regimes, mapped to the regime (share, rate): changes to a neighbouring
 * regime are mapped as such. */
static void pool_rows(const struct deadline_counts *counts, unsigned share, unsigned rate, bool up,
    unsigned age, struct row *ret_row)
{
    memset(ret_row, 0, sizeof *ret_row);
    for (unsigned s = 0; s < DEADLINE_SHARES; s++)
        for (unsigned r = 0; r < DEADLINE_RATES; r++) {
            const uint16_t from = class_of(s, r, up, age);
            if (counts->of_several && r != rate) /* the fallback decides where a loss leads */
                continue;
            for (unsigned moved = 0; moved < 2; moved++)
                for (unsigned k = 0; k < DEADLINE_CLASSES; k++) {
                    const float n = counts->steps[from][moved][k];
                    const unsigned to =
                        counts->of_several ? k / DEADLINE_AGES / 2 % DEADLINE_RATES : rate;
                    if (n > 0)
                        ret_row->to[moved][class_of(
                            share, to, k / DEADLINE_AGES % 2, k % DEADLINE_AGES)] += n;
                }
        }
}

static double sum_row(const struct row *r)
{
    double sum = 0;

    for (unsigned moved = 0; moved < 2; moved++)
        for (unsigned k = 0; k < DEADLINE_CLASSES; k++)
            sum += r->to[moved][k];
    return sum;
}

static unsigned next_age(unsigned age)
{
    return age + 1 < DEADLINE_AGES ? age + 1 : age;
}

/* Prior row of an age without data: that of the previous age, one age older. */
static void prior_row(
    unsigned share, unsigned rate, bool up, unsigned age, double end, struct row *ret_row)
{
    memset(ret_row, 0, sizeof *ret_row);
    ret_row->to[false][class_of(share, rate, up, next_age(age))] = (float)(1 - end);
    ret_row->to[up][class_of(share, rate, !up, 0)] = (float)end;
}

static bool is_end(bool up, unsigned moved, unsigned k)
{
    return moved || deadline_class_is_up((uint16_t)k) != up;
}

static double end_of(const struct row *r, bool up)
{
    double end = 0, sum = 0;

    for (unsigned moved = 0; moved < 2; moved++)
        for (unsigned k = 0; k < DEADLINE_CLASSES; k++) {
            sum += r->to[moved][k];
            end += is_end(up, moved, k) ? r->to[moved][k] : 0;
        }
    return end / sum;
}

/* ret = (counts + weight * prior) / their sum */
static void lean(struct row *counts, const struct row *prior, double weight)
{
    const double sum = sum_row(counts) + weight;

    for (unsigned moved = 0; moved < 2; moved++)
        for (unsigned k = 0; k < DEADLINE_CLASSES; k++)
            counts->to[moved][k] =
                (float)((counts->to[moved][k] + weight * prior->to[moved][k]) / sum);
}

static void add_row(
    struct deadline_chain *c, uint16_t class, const struct row *r, size_t *n, size_t *cap)
{
    c->first[class] = *n;
    for (unsigned moved = 0; moved < 2; moved++)
        for (unsigned k = 0; k < DEADLINE_CLASSES; k++) {
            if (r->to[moved][k] <= 0)
                continue;
            if (*n == *cap) {
                *cap = *cap * 2 + DEADLINE_CLASSES;
                c->steps = mem_resize(c->steps, *cap, sizeof *c->steps);
            }
            c->steps[(*n)++] = (struct deadline_step){
                .to = (uint16_t)k, .moved = moved, .chance = r->to[moved][k]};
        }
    c->first[class + 1] = *n;
}

/* life = step + sum over steps that keep the favourite of chance * life, by iteration. */
static void find_lives(struct deadline_chain *c)
{
    for (unsigned round = 0; round < LIFE_ROUNDS; round++) {
        double most = 0;
        for (unsigned k = 0; k < DEADLINE_CLASSES; k++) {
            double life = DEADLINE_STEP_MS;
            if (!deadline_class_is_up((uint16_t)k))
                continue;
            for (size_t i = c->first[k]; i < c->first[k + 1]; i++)
                if (!c->steps[i].moved && deadline_class_is_up(c->steps[i].to))
                    life += c->steps[i].chance * c->life_ms[c->steps[i].to];
            most = fmax(most, life - c->life_ms[k]);
            c->life_ms[k] = life;
        }
        if (most < 1000)
            return;
    }
}

void deadline_chain_init(struct deadline_chain *c, const struct deadline_counts *counts)
{
    size_t n = 0, cap = 0;

    *c = (struct deadline_chain){.borders = counts->borders};
    for (unsigned share = 0; share < DEADLINE_SHARES; share++)
        for (unsigned rate = 0; rate < DEADLINE_RATES; rate++)
            for (unsigned up = 0; up < 2; up++) {
                double end = PRIOR_END;
                for (unsigned age = 0; age < DEADLINE_AGES; age++) {
                    const uint16_t class = class_of(share, rate, up, age);
                    struct row own, pooled, prior;
                    prior_row(share, rate, up, age, end, &prior);
                    pool_rows(counts, share, rate, up, age, &pooled);
                    lean(&pooled, &prior, LEAN_POOLED);
                    end = end_of(&pooled, up);
                    memcpy(own.to, counts->steps[class], sizeof own.to);
                    lean(&own, &pooled, LEAN);
                    add_row(c, class, &own, &n, &cap);
                }
            }
    find_lives(c);
}

void deadline_chain_deinit(struct deadline_chain *c)
{
    free(c->steps);
    *c = (struct deadline_chain){0};
}
