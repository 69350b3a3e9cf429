/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/spot_observations.h"

#include "base/mem.h"
#include "scheduler/core/deadline/learning.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX 8192 /* maximum number of stored observations */
/* An offer without a machine or an observation for this long: its last state teaches nothing. */
#define UNOBSERVED_STEPS 6
/* An offer that was refused or reclaimed counts as away for so long, unless it is refused again.
 * Then it may be asked, so it counts as up among several offers. */
#define AWAY_STEPS 1
#define STEPS_LEAST 24  /* minimum work and slack of a table */
#define WORK_STEPS 300  /* maximum: 50 hours */
#define SLACK_STEPS 200 /* and 33 hours */
#define SLICE 16        /* steps computed per slice: some milliseconds */
#define SLICE_EVERY_MS 1
#define KEEP_STEPS 144 /* a table used within a day is not evicted */

/* Tables are built for these; decisions adjust for the differences of the job and its offers. */
static const double restarts[] = {
    0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 10, DEADLINE_RESTART_STEPS_MAX};
static const double prices[] = {
    0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.5, 2};

struct kept {
    int64_t offer, at_ms;
    enum spot_observation what;
};

struct spot_offer_set {
    struct deadline_offer_set of;
    int64_t offers[DEADLINE_OFFERS_MAX];
    int64_t alive[DEADLINE_OFFERS_MAX]; /* live machines */
    bool there[DEADLINE_OFFERS_MAX];    /* the last observation */
    /* When that was, or else the first examination. */
    int64_t observed_ms[DEADLINE_OFFERS_MAX];
    int64_t away_ms[DEADLINE_OFFERS_MAX]; /* of the last refusal or reclaim; 0: none */
    int64_t n_alive, last_observed_ms;    /* over all offers */
    int64_t at_ms;                        /* observed up to then */
};

/* A chain and its source; [0] single offers, [1] sets of several. */
struct learned {
    struct deadline_counts counts;
    struct deadline_chain chain;
    bool is_made;
    int64_t number; /* number of rebuilds */
};

struct made_table {
    bool of_several;
    struct deadline_starts starts;
    double price;
    size_t work, slack; /* size in steps, current or planned */
    bool is_made;
    int64_t number; /* version of the chain that it was built from */
    int64_t asked_ms;
    struct deadline_table table, next;
    struct deadline_maker *maker; /* builder of `next`; may be NULL */
    int64_t next_number;
};

struct spot_observations {
    struct kept *kept; /* a ring */
    size_t n_kept, first;
    struct learned *learned[2];
    int64_t learned_at_ms, learn_steps; /* 0: never yet */
    struct spot_offer_set *sets[SPOT_OBSERVATIONS_SETS_MAX];
    size_t n_sets;
    struct made_table tables[SPOT_OBSERVATIONS_TABLES_MAX];
    size_t n_tables;
    struct mono slice_at; /* MONO_NONE: no table is being built */
};

struct spot_observations *spot_observations_create(void)
{
    struct spot_observations *s = mem_alloc(sizeof *s);
    s->slice_at = MONO_NONE;
    return s;
}

void spot_observations_destroy(struct spot_observations *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_tables; i++) {
        deadline_maker_destroy(s->tables[i].maker);
        deadline_table_deinit(&s->tables[i].next);
        deadline_table_deinit(&s->tables[i].table);
    }
    for (size_t i = 0; i < s->n_sets; i++)
        free(s->sets[i]);
    for (size_t i = 0; i < 2; i++) {
        if (s->learned[i])
            deadline_chain_deinit(&s->learned[i]->chain);
        free(s->learned[i]);
    }
    free(s->kept);
    free(s);
}

int64_t spot_observations_scaled(const struct model *m, int64_t ms)
{
    return (int64_t)((double)ms * DEADLINE_STEP_MS / (double)m->deadline.options.step_ms);
}

/* ---- observations ---- */

static size_t index_in(const struct spot_offer_set *k, int64_t offer)
{
    size_t i = 0;
    while (i < k->of.n && k->offers[i] != offer)
        i++;
    return i;
}

static struct deadline_counts *counts_for(
    const struct spot_observations *s, const struct spot_offer_set *k)
{
    return &s->learned[k->of.n > 1]->counts;
}

/* An offer of several that was not refused lately can be asked at once when another one is lost:
 * that is worth as much as one that is known to be there. The only offer of a set replaces none. */
static bool counts_as_up(const struct spot_offer_set *k, size_t i, int64_t away_for_ms)
{
    return k->there[i] || (k->of.n > 1 && k->at_ms - k->away_ms[i] >= away_for_ms);
}

static void look(struct model *m, struct spot_offer_set *k, int64_t at_ms, bool learns)
{
    bool up[DEADLINE_OFFERS_MAX];
    k->at_ms = at_ms;
    for (size_t i = 0; i < k->of.n; i++) {
        up[i] = counts_as_up(k, i, AWAY_STEPS * m->deadline.options.step_ms);
        k->of.is_assumed[i] = up[i] && k->alive[i] == 0 && at_ms > k->observed_ms[i];
    }
    deadline_offer_set_see(&k->of, spot_observations_scaled(m, at_ms), up,
        learns ? counts_for(m->deadline.spot_observations, k) : NULL);
}

/* Advances the time. Offers without an observation for a while are skipped: the gap teaches
 * nothing. */
static void pass(struct model *m, struct spot_offer_set *k, int64_t to_ms)
{
    int64_t step = m->deadline.options.step_ms;
    while (k->last_observed_ms > 0 && to_ms - k->at_ms > step) {
        if (k->n_alive == 0 && k->at_ms - k->last_observed_ms > UNOBSERVED_STEPS * step) {
            look(m, k, to_ms, false);
            return;
        }
        look(m, k, k->at_ms + step, true);
    }
}

/* Counts one observation, and before it the steps since the last one. */
static void observe(struct model *m, struct spot_offer_set *k, const struct kept *what)
{
    size_t i = index_in(k, what->offer);
    int64_t at_ms = what->at_ms > k->at_ms ? what->at_ms : k->at_ms; /* the clock may be set back */
    if (i == k->of.n)
        return;
    pass(m, k, at_ms);
    int64_t more = what->what == SPOT_THERE                      ? 1
                   : what->what == SPOT_AWAY || k->alive[i] == 0 ? 0
                                                                 : -1;
    k->alive[i] += more;
    k->n_alive += more;
    k->there[i] = what->what == SPOT_THERE || what->what == SPOT_ENDED;
    k->away_ms[i] = k->there[i] ? k->away_ms[i] : at_ms;
    k->observed_ms[i] = k->last_observed_ms = at_ms;
    look(m, k, at_ms, true);
}

void spot_observations_note(
    struct model *m, const struct offer *o, enum spot_observation what, struct wall at)
{
    struct spot_observations *s = m->deadline.spot_observations;
    if (o->row.market != MARKET_SPOT)
        return;
    if (!s->kept)
        s->kept = mem_array(KEPT_MAX, sizeof *s->kept);
    struct kept *k = &s->kept[(s->first + s->n_kept) % KEPT_MAX];
    *k = (struct kept){o->row.id, at.ms, what};
    s->first = s->n_kept == KEPT_MAX ? (s->first + 1) % KEPT_MAX : 0;
    s->n_kept += s->n_kept < KEPT_MAX;
    for (size_t i = 0; i < s->n_sets; i++)
        observe(m, s->sets[i], k);
}

void model_load_spot_observation(
    struct model *m, int64_t offer, enum spot_observation what, struct wall at)
{
    const struct offer *o = model_offer(m, offer);
    if (o)
        spot_observations_note(m, o, what, at);
}

/* ---- learning ---- */

static struct learned *begin_learning(bool of_several)
{
    struct learned *l = mem_alloc(sizeof *l);
    deadline_learning_begin(of_several, &l->counts);
    return l;
}

static bool is_making(const struct spot_observations *s)
{
    return mono_is_set(s->slice_at);
}

/* Rebuilds the chains once they have reached their maximum age, but not while a table is built from
 * the old ones. */
static void learn(struct model *m, struct wall now)
{
    struct spot_observations *s = m->deadline.spot_observations;
    if (is_making(s) || (s->learn_steps > 0 && now.ms - s->learned_at_ms <
                                                   s->learn_steps * m->deadline.options.step_ms))
        return;
    for (size_t i = 0; i < s->n_sets; i++)
        pass(m, s->sets[i], now.ms);
    for (size_t i = 0; i < 2; i++) {
        struct learned *l = s->learned[i];
        deadline_learning_rebuild(&l->counts, &l->chain);
        l->is_made = true;
        l->number++;
    }
    s->learn_steps = deadline_learning_next(s->learn_steps);
    s->learned_at_ms = now.ms;
}

/* ---- offer sets ---- */

static struct spot_offer_set *find_set(
    const struct spot_observations *s, const int64_t *offers, size_t n)
{
    for (size_t i = 0; i < s->n_sets; i++)
        if (s->sets[i]->of.n == n && memcmp(s->sets[i]->offers, offers, n * sizeof *offers) == 0)
            return s->sets[i];
    return NULL;
}

const struct spot_offer_set *spot_observations_offer_set(
    const struct model *m, const int64_t *offers, size_t n)
{
    return find_set(m->deadline.spot_observations, offers, n);
}

static void open_set(struct model *m, const int64_t *offers, size_t n, struct wall now)
{
    struct spot_observations *s = m->deadline.spot_observations;
    if (s->n_sets == SPOT_OBSERVATIONS_SETS_MAX)
        return;
    struct spot_offer_set *k = s->sets[s->n_sets++] = mem_alloc(sizeof *k);
    k->of.n = n;
    k->of.single = n > 1 && s->learned[0]->is_made ? &s->learned[0]->chain : NULL;
    memcpy(k->offers, offers, n * sizeof *offers);
    for (size_t i = 0; i < s->n_kept; i++)
        observe(m, k, &s->kept[(s->first + i) % KEPT_MAX]);
    for (size_t i = 0; i < n; i++)
        k->observed_ms[i] = k->observed_ms[i] ? k->observed_ms[i] : now.ms;
}

/* Each single offer is a set too, which teaches how long it lasts. */
static struct spot_offer_set *want_set(
    struct model *m, const int64_t *offers, size_t n, struct wall now)
{
    struct spot_offer_set *k = find_set(m->deadline.spot_observations, offers, n);
    if (k)
        return k;
    for (size_t i = 0; n > 1 && i < n; i++)
        if (!find_set(m->deadline.spot_observations, &offers[i], 1) &&
            m->deadline.spot_observations->n_sets < SPOT_OBSERVATIONS_SETS_MAX / 2)
            open_set(m, &offers[i], 1, now);
    open_set(m, offers, n, now);
    return find_set(m->deadline.spot_observations, offers, n);
}

void spot_observations_offer(const struct model *m, const struct spot_offer_set *k, size_t i,
    struct wall now, struct wall tried_again, struct deadline_offer *o)
{
    struct spell_watch w = k->of.offers[i];
    int64_t since_ms = k->observed_ms[i] > tried_again.ms ? k->observed_ms[i] : tried_again.ms,
            at_ms = spot_observations_scaled(m, now.ms);
    if (o->is_up && !w.up) {
        int64_t up_ms = spot_observations_scaled(m, since_ms);
        up_ms = up_ms < w.at_ms ? w.at_ms : up_ms;
        spell_watch_see(&w, up_ms < at_ms ? up_ms : at_ms > w.at_ms ? at_ms : w.at_ms, true);
    }
    o->share = spell_watch_share(&w);
    o->rate = spell_watch_rate(&w);
    o->record_ms = spell_watch_record_ms(&w, at_ms > w.at_ms ? at_ms : w.at_ms);
    o->class = deadline_offer_set_class_of(
        &k->of, i, &w, &deadline_learning_borders, at_ms > w.at_ms ? at_ms : w.at_ms);
}

int64_t spot_observations_away_ms(const struct spot_offer_set *k, size_t i)
{
    return k->away_ms[i];
}

size_t spot_observations_favourite(const struct spot_offer_set *k)
{
    return k->of.whole.up ? k->of.favourite : k->of.n;
}

uint16_t spot_observations_class(
    const struct model *m, const struct spot_offer_set *k, struct wall now)
{
    int64_t at_ms = spot_observations_scaled(m, now.ms);
    return deadline_offer_set_class(
        &k->of, &deadline_learning_borders, at_ms > k->of.whole.at_ms ? at_ms : k->of.whole.at_ms);
}

const struct deadline_chain *spot_observations_chain(
    const struct model *m, const struct spot_offer_set *k)
{
    const struct learned *l = m->deadline.spot_observations->learned[k->of.n > 1];
    return l && l->is_made ? &l->chain : NULL;
}

/* ---- tables ---- */

static double nearest(const double *values, size_t n, double x)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(values[i] - x) < fabs(values[best] - x))
            best = i;
    return values[best];
}

#define NEAREST(values, x) nearest(values, sizeof(values) / sizeof(values)[0], x)

static double steps_of(const struct model *m, int64_t ms)
{
    return ms > 0 ? (double)ms / (double)m->deadline.options.step_ms : 0;
}

/* The difference to a boot that takes longer, with the switch, than a restart does not need a table
 * of its own (deadline.c). */
static struct deadline_starts starts_for(
    const struct model *m, const struct spot_observations_ask *ask)
{
    double restart = NEAREST(restarts, steps_of(m, ask->restart_ms)),
           switching = NEAREST(restarts, steps_of(m, ask->switch_ms));
    return switching < restart ? (struct deadline_starts){restart, restart - switching, switching}
                               : deadline_starts_alike(restart);
}

static bool is_same(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static struct made_table *find_table(
    const struct model *m, bool of_several, const struct spot_observations_ask *ask)
{
    struct spot_observations *s = m->deadline.spot_observations;
    const struct deadline_starts starts = starts_for(m, ask);
    double price = NEAREST(prices, ask->price);
    for (size_t i = 0; i < s->n_tables; i++) {
        const struct made_table *t = &s->tables[i];
        if (t->of_several == of_several && is_same(t->starts.restart, starts.restart) &&
            is_same(t->starts.switching, starts.switching) && is_same(t->price, price))
            return &s->tables[i];
    }
    return NULL;
}

const struct deadline_table *spot_observations_table(
    const struct model *m, const struct spot_offer_set *k, const struct spot_observations_ask *ask)
{
    const struct made_table *t = find_table(m, k->of.n > 1, ask);
    return t && t->is_made ? &t->table : NULL;
}

/* A slot for a new table: an empty one, or the least recently used. */
static struct made_table *table_slot(struct model *m, struct stamp now)
{
    struct spot_observations *s = m->deadline.spot_observations;
    struct made_table *oldest = NULL;
    if (s->n_tables < SPOT_OBSERVATIONS_TABLES_MAX)
        return &s->tables[s->n_tables++];
    for (size_t i = 0; i < s->n_tables; i++)
        if (!s->tables[i].maker &&
            now.wall.ms - s->tables[i].asked_ms > KEEP_STEPS * m->deadline.options.step_ms &&
            (!oldest || s->tables[i].asked_ms < oldest->asked_ms))
            oldest = &s->tables[i];
    if (oldest)
        deadline_table_deinit(&oldest->table);
    return oldest;
}

/* At least the requested size, in doublings, so that slightly larger jobs need no rebuild. */
static size_t grown(size_t has, double need, size_t most)
{
    size_t n = has < STEPS_LEAST ? STEPS_LEAST : has;
    while (n < most && (double)n < need)
        n *= 2;
    return n < most ? n : most;
}

static void want_table(
    struct model *m, bool of_several, const struct spot_observations_ask *ask, struct stamp now)
{
    struct spot_observations *s = m->deadline.spot_observations;
    const struct learned *l = s->learned[of_several];
    struct made_table *t = find_table(m, of_several, ask);
    if (!t) {
        t = table_slot(m, now);
        if (!t)
            return;
        *t = (struct made_table){.of_several = of_several,
            .starts = starts_for(m, ask),
            .price = NEAREST(prices, ask->price)};
    }
    size_t work = grown(t->work, steps_of(m, ask->work_ms), WORK_STEPS),
           slack = grown(t->slack, steps_of(m, ask->slack_ms), SLACK_STEPS);
    t->asked_ms = now.wall.ms;
    if (t->maker || (t->is_made && t->number == l->number && t->work == work && t->slack == slack))
        return;
    t->work = work;
    t->slack = slack;
    t->maker = deadline_maker_create(&t->next, &l->chain, work, slack, &t->starts, t->price);
    t->next_number = l->number;
    if (!is_making(s))
        s->slice_at = now.mono;
}

void spot_observations_want(struct model *m, const int64_t *offers, size_t n,
    const struct spot_observations_ask *ask, struct stamp now)
{
    struct spot_observations *s = m->deadline.spot_observations;
    for (size_t i = 0; i < 2; i++)
        s->learned[i] = s->learned[i] ? s->learned[i] : begin_learning(i > 0);
    struct spot_offer_set *k = want_set(m, offers, n, now.wall);
    if (!k)
        return;
    pass(m, k, now.wall.ms);
    learn(m, now.wall);
    k->of.single = n > 1 ? &s->learned[0]->chain : NULL;
    if (ask)
        want_table(m, n > 1, ask, now);
}

struct mono spot_observations_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    (void)now;
    *ret_event = (struct event){.type = EV_TABLE};
    return m->deadline.spot_observations->slice_at;
}

int apply_table(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct spot_observations *s = m->deadline.spot_observations;
    struct made_table *t = s->tables;
    (void)e;
    ret_outcome->id = CORE_ID_NONE;
    while (t < s->tables + s->n_tables && !t->maker)
        t++;
    s->slice_at =
        t < s->tables + s->n_tables ? (struct mono){ev->now.mono.ms + SLICE_EVERY_MS} : MONO_NONE;
    if (!is_making(s) || !deadline_maker_go_on(t->maker, SLICE))
        return 0;
    deadline_maker_destroy(t->maker);
    deadline_table_deinit(&t->table);
    t->maker = NULL;
    t->table = t->next;
    t->next = (struct deadline_table){0};
    t->number = t->next_number;
    t->is_made = true;
    return 0;
}
