/* SPDX-License-Identifier: Apache-2.0
 *
 * Observations of spot offers, and what is learned from them for deadline jobs (procurement.c).
 *
 * No provider reports availability: only launches and the lives of machines show it. So an
 * observation is the answer to a launch, or the end of a machine. An offer is THERE from a granted
 * launch on and while a machine of it lives, and AWAY from a refusal or a reclaim on, until the
 * next observation. Observations of the last weeks are kept; after a restart they are rebuilt from
 * the instances in the database.
 *
 * Asking for a machine costs nothing. So where a job may use several offers, one that is not known
 * to be there, but was not refused or reclaimed in the last step, counts as up: it can replace the
 * one that the job loses. What such an offer is worth is learned like the rest.
 *
 * The offers that a job may use are an offer set (deadline/spells.h), created from the kept
 * observations when the first such job needs it. The chains, of single offers and of sets of
 * several, are rebuilt periodically, as is a table for each requested set: one slice per EV_TABLE,
 * so that no tick is delayed.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_SPOT_OBSERVATIONS_H
#define BELAY_SCHEDULER_CORE_DEADLINE_SPOT_OBSERVATIONS_H

#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/model/state.h"

#define SPOT_OBSERVATIONS_SETS_MAX 32
#define SPOT_OBSERVATIONS_TABLES_MAX 8

struct spot_observations *spot_observations_create(void);
void spot_observations_destroy(struct spot_observations *s); /* NULL is allowed */

/* An observation: this is the state from now on. Ignored for offers that are not spot. */
void spot_observations_note(
    struct model *m, const struct offer *o, enum spot_observation what, struct wall at);

/* Requirements on a job's table. */
struct spot_observations_ask {
    int64_t restart_ms, switch_ms; /* of a start; of a move, after its boot */
    double price;                  /* spot price relative to on-demand */
    int64_t work_ms, slack_ms;     /* maximum */
};

/* A job may use these spot offers (ids ascending, 1 .. DEADLINE_OFFERS_MAX): creates their set
 * and, unless ask is NULL, schedules a suitable table. */
void spot_observations_want(struct model *m, const int64_t *offers, size_t n,
    const struct spot_observations_ask *ask, struct stamp now);

/* The set of exactly these offers; NULL if it was not requested, or there are too many. */
struct spot_offer_set;
const struct spot_offer_set *spot_observations_offer_set(
    const struct model *m, const int64_t *offers, size_t n);
/* Class and share of its i-th offer, assuming that it is available now. A refused offer counts as
 * up again from tried_again on, when a launch may be tried: after a long wait this counts as an old
 * spell. */
void spot_observations_offer(const struct model *m, const struct spot_offer_set *k, size_t i,
    struct wall now, struct wall tried_again, struct deadline_offer *o);
/* When its i-th offer was last refused or reclaimed; 0: never. */
int64_t spot_observations_away_ms(const struct spot_offer_set *k, size_t i);
/* The offer that its class refers to; n: none is up. */
size_t spot_observations_favourite(const struct spot_offer_set *k);
uint16_t spot_observations_class(
    const struct model *m, const struct spot_offer_set *k, struct wall now);
/* NULL: not built yet. */
const struct deadline_table *spot_observations_table(
    const struct model *m, const struct spot_offer_set *k, const struct spot_observations_ask *ask);
/* NULL: not built yet */
const struct deadline_chain *spot_observations_chain(
    const struct model *m, const struct spot_offer_set *k);

/* Converts times to deadline.h's scale: its steps are ten minutes, real ones
 * options.procurement.step_ms. */
int64_t spot_observations_scaled(const struct model *m, int64_t ms);

/* When the next slice of a table is due, with the event; MONO_NONE: none. */
struct mono spot_observations_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
