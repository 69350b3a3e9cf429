/* SPDX-License-Identifier: Apache-2.0
 *
 * What was seen of spot offers, and what is learned from it for jobs that are to be done by some
 * moment (procurement.c).
 *
 * Nobody tells whether spot can be had: one asks for a machine and learns it, and learns as much
 * from how long machines live. So an observation is the answer to a launch, or the end of a
 * machine. An offer is THERE from an answer on and while a machine of it lives, and AWAY from a
 * refusal or a reclaim on, until the next observation. Those of the last weeks are kept (the
 * instances in the database are the same, and are told again after a restart).
 *
 * Offers that some job may use are a market (deadline/spells.h); it is made when the first such job
 * asks for it, from what was kept. The chains, of single offers and of markets of several, are made
 * anew from time to time, and a table for each that is asked for: a slice at a time, by EV_TABLE,
 * so that no tick waits for it.
 *
 * Until enough is seen, what is learned leans on a market of our own making: spells whose chance to
 * end falls with their age, as it does wherever spot was recorded.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_SPOT_OBSERVATIONS_H
#define BELAY_SCHEDULER_CORE_DEADLINE_SPOT_OBSERVATIONS_H

#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/model/state.h"

#define SPOT_OBSERVATIONS_MARKETS_MAX 32
#define SPOT_OBSERVATIONS_TABLES_MAX 8

struct spot_observations *spot_observations_create(void);
void spot_observations_destroy(struct spot_observations *s); /* NULL is fine */

/* One of them told: from now on this is so. Of offers that are not spot nothing is kept. */
void spot_observations_note(
    struct model *m, const struct offer *o, enum spot_observation what, struct wall at);

/* What a job's decision is to be read from. */
struct spot_observations_ask {
    int64_t restart_ms;
    double price;              /* of spot, on-demand is 1 */
    int64_t work_ms, slack_ms; /* at most */
};

/* A job may use these spot offers (ids ascending, 1 .. DEADLINE_OFFERS_MAX): from now on there is a
 * market of them, and, unless ask is NULL, a table that is about right will be made. */
void spot_observations_want(struct model *m, const int64_t *offers, size_t n,
    const struct spot_observations_ask *ask, struct stamp now);

/* The market of exactly these, or NULL: nobody has asked for it, or there are too many. */
struct spot_market;
const struct spot_market *spot_observations_market(
    const struct model *m, const int64_t *offers, size_t n);
/* The i-th of its offers, if it were to be had now: its class and share. An offer that was refused
 * counts as there again from tried_again on, when it may be asked for: who waits for long then
 * takes it for an old spell. */
void spot_observations_offer(const struct model *m, const struct spot_market *k, size_t i,
    struct wall now, struct wall tried_again, struct deadline_offer *o);
/* which of them its class is of; n: none is there */
size_t spot_observations_favourite(const struct spot_market *k);
bool spot_observations_there(const struct spot_market *k, size_t i); /* so it was seen last */
uint16_t spot_observations_class(
    const struct model *m, const struct spot_market *k, struct wall now);
/* NULL: it is not made yet. */
const struct deadline_table *spot_observations_table(
    const struct model *m, const struct spot_market *k, const struct spot_observations_ask *ask);
/* NULL likewise */
const struct deadline_chain *spot_observations_chain(
    const struct model *m, const struct spot_market *k);

/* Times as deadline.h counts them: its steps are ten minutes, ours options.procurement.step_ms. */
int64_t spot_observations_scaled(const struct model *m, int64_t ms);

/* When the next slice of a table is to be made, and the event; MONO_NONE: none is. */
struct mono spot_observations_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
