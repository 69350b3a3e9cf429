/* SPDX-License-Identifier: Apache-2.0
 *
 * Offers to avoid: one that provided no machine, or only a short-lived one, is not launched from
 * again for the pool's refusal_backoff_ms (struct pool_row). Each further time in a row doubles
 * this, up to 60 times as long; refusals while it is avoided count once.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_OFFER_AVOID_H
#define BELAY_SCHEDULER_CORE_SUPPLY_OFFER_AVOID_H

#include "scheduler/core/model/model.h"

struct model;

/* It provided no machine, for this reason: it is avoided for a time that doubles, or at once for
 * the maximum. Returns that time in ms. */
int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why);
/* Evaluates the life of an instance for its offer. An instance that was reclaimed before it had run
 * for as long as its boot took was paid for the boot alone: its offer is avoided like after a
 * refusal. One that ran longer ends that series. */
void offer_note_life(struct model *m, const struct instance *i, struct stamp now);

#endif
