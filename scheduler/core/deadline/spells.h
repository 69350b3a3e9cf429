/* SPDX-License-Identifier: Apache-2.0
 *
 * State of spot offers that come and go: age of the current spell, recent fraction of time up,
 * recent loss rate; and the transitions learned from many such offers.
 *
 * On recorded traces the chance that a spell ends within ten minutes falls from about 0.3 to 0.01
 * with its age, and short spells follow short ones. So an offer has a CLASS: up or down, the age of
 * the spell (nine doubling ranges), one of three shares of time up, one of three loss rates. The
 * borders of the last two are terciles of the training data. Classes form a Markov chain in steps
 * of DEADLINE_STEP_MS with counted rows: a semi-Markov process with a memory for the regime, pooled
 * over all offers that feed one set of counts.
 *
 * The spot offers that one job may use are an OFFER SET. Its favourite is the offer that a job
 * would run on: kept until it is lost, then replaced by the one that is up with the longest
 * expected life. An offer that is only assumed to be up is the favourite only while none is known
 * to be: it is never seen to be lost. The set's class is that of its favourite; with none up, that
 * of the set as a whole, treated as an offer that is up when any is. A step in which the favourite
 * was lost and another offer was up is a MOVE. A set of nine zones thus has the same chain as one
 * with a single zone, only with other numbers, and one table (deadline/table.h) format serves both.
 * In a set of several, an offer that is up has instead of its loss rate what is BEHIND it: no
 * offer, offers not expected to last three hours, or one that is.
 *
 * PURE. Times are milliseconds since any fixed moment and never decrease.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_SPELLS_H
#define BELAY_SCHEDULER_CORE_DEADLINE_SPELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEADLINE_STEP_MS 600000
#define DEADLINE_AGES 9
#define DEADLINE_SHARES 3
#define DEADLINE_RATES 3
#define DEADLINE_CLASSES (DEADLINE_SHARES * DEADLINE_RATES * 2 * DEADLINE_AGES)
#define DEADLINE_OFFERS_MAX 64 /* per offer set */

/* One offer, or an offer set as a whole. Zeroed: no observations. */
struct spell_watch {
    bool seen, up;
    bool is_assumed; /* up, since the last spell_watch_assume() */
    /* First observation of the spell; its part before the first observation at all is unknown. */
    int64_t since_ms;
    int64_t at_ms;                  /* of the last observation */
    double up_weight, share_weight; /* decaying: observed time up, observed time */
    double losses, rate_weight;     /* decaying: losses, observed time up */
    double longest_ms;              /* decaying: the longest spell up that ended */
};

/* An observation. at_ms is not before that of the last one. */
void spell_watch_see(struct spell_watch *w, int64_t at_ms, bool up);
/* Up at this time, but not observed: a spell that begins now. The next observation replaces it: no
 * spell ends, and nothing is lost, if the offer is away. */
void spell_watch_assume(struct spell_watch *w, int64_t at_ms);
/* In 0 .. 1; 0.5 without observations. */
double spell_watch_share(const struct spell_watch *w);
/* Losses per hour of time up; 0.25 without observations. */
double spell_watch_rate(const struct spell_watch *w);
/* Time after which a spell that is up would outlive all recent ones; 0: it does already, or too few
 * have ended. */
int64_t spell_watch_record_ms(const struct spell_watch *w, int64_t now_ms);

/* The terciles. */
struct deadline_borders {
    double share[DEADLINE_SHARES - 1], rate[DEADLINE_RATES - 1];
};

/* Below DEADLINE_CLASSES. An unobserved offer counts as down since now. */
uint16_t deadline_class(
    const struct deadline_borders *b, const struct spell_watch *w, int64_t now_ms);
bool deadline_class_is_up(uint16_t class);

/* Learned transition counts. About 420 kB. Empty if zeroed, once borders are set. */
struct deadline_counts {
    struct deadline_borders borders;
    bool of_several; /* sets of several offers, else of single ones */
    float steps[DEADLINE_CLASSES][2][DEADLINE_CLASSES]; /* [from][moved][to] */
};

/* Reduces the weight of old or foreign data: no row keeps more than `most` counts, so new data has
 * an effect. */
void deadline_counts_fade(struct deadline_counts *counts, double most);

/* A transition. */
struct deadline_step {
    uint16_t to;
    bool moved; /* the favourite changed: a job on the old one has lost it */
    float chance;
};

struct deadline_chain {
    struct deadline_borders borders;
    size_t first[DEADLINE_CLASSES + 1]; /* index in steps of each class's first transition */
    struct deadline_step *steps;        /* owned; probabilities of a class sum to 1 */
    /* expected remaining life of the current favourite; 0 when down */
    double life_ms[DEADLINE_CLASSES];
};

/* Converts counts to a chain. A row with few counts is blended with the rows of the same age in
 * other regimes; an age without counts uses the previous age; without any counts a spell ends with
 * probability 0.1 per step. */
void deadline_chain_init(struct deadline_chain *c, const struct deadline_counts *counts);
void deadline_chain_deinit(struct deadline_chain *c);

/* Several offers examined together. Zeroed but for n and single, it has no observations. */
struct deadline_offer_set {
    size_t n; /* offers, 1 .. DEADLINE_OFFERS_MAX */
    /* Borrowed: the chain of single offers, for expected lives; NULL: by age. */
    const struct deadline_chain *single;
    struct spell_watch offers[DEADLINE_OFFERS_MAX];
    struct spell_watch whole;
    /* Set by the caller: up, but not observed. Such time counts neither for the offer's share nor
     * for the age of its spell. */
    bool is_assumed[DEADLINE_OFFERS_MAX];
    size_t favourite; /* below n, if any offer is up */
    /* for learning */
    bool counting, moved;
    bool was_assumed; /* the favourite, when the step began */
    uint16_t from;
    int64_t from_ms;
};

/* An observation of all offers. counts, if not NULL, learns from it (its borders must be set).
 * Observations may come at any interval; those further apart than DEADLINE_STEP_MS teach
 * nothing. */
void deadline_offer_set_see(
    struct deadline_offer_set *m, int64_t at_ms, const bool *up, struct deadline_counts *counts);
uint16_t deadline_offer_set_class(
    const struct deadline_offer_set *m, const struct deadline_borders *b, int64_t now_ms);
/* Class of its i-th offer, with state w, for a job on that offer. */
uint16_t deadline_offer_set_class_of(const struct deadline_offer_set *m, size_t i,
    const struct spell_watch *w, const struct deadline_borders *b, int64_t now_ms);

#endif
