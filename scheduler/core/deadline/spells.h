/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of spot offers that are now up, now down: the age of the present spell, how much of
 * the time the offer was up of late, how often it went; and, learned from many such offers, how it
 * goes on from there.
 *
 * On recorded traces the chance that a spell ends falls from about 0.3 to 0.01 per ten minutes with
 * its age, and short spells follow short ones. So an offer is in a CLASS: up or down, the age of
 * the spell (nine ranges that double), one of three shares of time up, one of three rates of loss.
 * The borders of the last two are terciles of what was learned from. Classes follow each other as a
 * Markov chain in steps of DEADLINE_STEP_MS, whose rows are counted: a semi-Markov process with a
 * memory for the regime, pooled over all offers that are fed into one set of counts.
 *
 * Several offers that one job may use are a MARKET. It has a favourite: the offer that a job would
 * hold, kept until it is lost, then the one that is up and is expected to last longest. The
 * market's class is that of its favourite; with nothing up that of the market as a whole, which is
 * an offer too (up when any is). A step in which the favourite went and another was there is a
 * MOVE. So a market of nine zones has the same chain as one of a single zone, only with other
 * numbers, and one table (deadline/table.h) serves both. An offer of several has, while it is up,
 * in place of its rate of loss what stands BEHIND it: nothing, others that are not expected to last
 * three hours, or one that is.
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
#define DEADLINE_OFFERS_MAX 64 /* in one market */

/* One offer, or a market as a whole. Zeroed: nothing is known. */
struct spell_watch {
    bool seen, up;
    /* of the first look that saw the spell; what came before the first look at all is not known */
    int64_t since_ms;
    int64_t at_ms;                  /* of the last look */
    double up_weight, share_weight; /* decaying: time seen up, time seen */
    double losses, rate_weight;     /* decaying: losses, time seen up */
};

/* A look at the offer: up, or not. at_ms is not before that of the last look. */
void spell_watch_see(struct spell_watch *w, int64_t at_ms, bool up);
/* In 0 .. 1; 0.5 before anything was seen. */
double spell_watch_share(const struct spell_watch *w);
/* Losses an hour of time up; 0.25 before anything was seen. */
double spell_watch_rate(const struct spell_watch *w);

/* Where the terciles are. */
struct deadline_borders {
    double share[DEADLINE_SHARES - 1], rate[DEADLINE_RATES - 1];
};

/* Below DEADLINE_CLASSES. What was never seen counts as down since now. */
uint16_t deadline_class(
    const struct deadline_borders *b, const struct spell_watch *w, int64_t now_ms);
bool deadline_class_is_up(uint16_t class);

/* What was learned: steps counted from class to class. About 420 kB. Zeroed is empty, once borders
 * are set. */
struct deadline_counts {
    struct deadline_borders borders;
    bool of_several; /* markets of several offers, else single ones */
    float steps[DEADLINE_CLASSES][2][DEADLINE_CLASSES]; /* [from][moved][to] */
};

/* What was learned long ago or elsewhere counts for less: no row keeps more than most counts. What
 * comes now then has its say. */
void deadline_counts_fade(struct deadline_counts *counts, double most);

/* How a class goes on. */
struct deadline_step {
    uint16_t to;
    bool moved; /* the favourite is another one: who runs on the old one has lost it */
    float chance;
};

struct deadline_chain {
    struct deadline_borders borders;
    size_t first[DEADLINE_CLASSES + 1]; /* where each class's steps begin in steps */
    struct deadline_step *steps;        /* ours; chances of a class sum to 1 */
    /* how long the present favourite is expected to stay up; 0 when down */
    double life_ms[DEADLINE_CLASSES];
};

/* Counts become a chain. A row with few counts leans on the rows of the same age in other regimes;
 * an age that nobody has seen on the age before it; nothing at all on a spell that ends with a
 * chance of one in ten a step. */
void deadline_chain_init(struct deadline_chain *c, const struct deadline_counts *counts);
void deadline_chain_deinit(struct deadline_chain *c);

/* Several offers looked at together. Zeroed, with n and single set, is a market of which nothing is
 * known. */
struct deadline_market {
    size_t n; /* offers, 1 .. DEADLINE_OFFERS_MAX */
    /* borrowed: the chain of single offers, which says who is expected to last; NULL: the oldest */
    const struct deadline_chain *single;
    struct spell_watch offers[DEADLINE_OFFERS_MAX];
    struct spell_watch whole;
    size_t favourite; /* below n, if anything is up */
    /* for learning */
    bool counting, moved;
    uint16_t from;
    int64_t from_ms;
};

/* A look at all of them. counts, if not NULL, learns from it (its borders must be set); looks may
 * come at any pace, those that are further apart than DEADLINE_STEP_MS teach nothing. */
void deadline_market_see(
    struct deadline_market *m, int64_t at_ms, const bool *up, struct deadline_counts *counts);
uint16_t deadline_market_class(
    const struct deadline_market *m, const struct deadline_borders *b, int64_t now_ms);
/* Of its i-th offer, of which w is known, if a job were on it. */
uint16_t deadline_market_offer(const struct deadline_market *m, size_t i,
    const struct spell_watch *w, const struct deadline_borders *b, int64_t now_ms);

#endif
