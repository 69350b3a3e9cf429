/* SPDX-License-Identifier: Apache-2.0
 *
 * What region.c and region_apply.c share; nobody else includes this.
 */
#ifndef BELAY_EMULATOR_REGION_PARTS_H
#define BELAY_EMULATOR_REGION_PARTS_H

#include "emulator/region.h"

const char *region_market_name(enum cloud_market m);

/* To the journal and the log. reason: NULL for none. */
void region_note(struct region *r, struct wall at, const char *what, const struct instance *i,
    const char *reason);

/* How long a notice is if nobody says. */
int64_t region_notice_ms(const struct region *r, const struct instance *i);

#define REGION_USUAL_SOFT_OFF (-1) /* as its provider does, if at all */

/* Gives an instance its notice. soft_off_ms: when after it the machine is told to shut down, at its
 * deadline at the latest. */
void region_mark(
    struct region *r, struct instance *i, int64_t notice_ms, int64_t soft_off_ms, struct wall at);

/* Takes it back now. */
void region_reclaim_now(struct region *r, struct instance *i, struct wall at);

/* To be called before any price changes. */
void region_bill_all(struct region *r, struct wall at);

#endif
