/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by region.c and region_apply.c; private to them.
 */
#ifndef BELAY_EMULATOR_REGION_PARTS_H
#define BELAY_EMULATOR_REGION_PARTS_H

#include "emulator/region.h"

const char *region_market_name(enum cloud_market m);

/* Adds to the journal and the log. reason may be NULL. */
void region_note(struct region *r, struct wall at, const char *what, const struct instance *i,
    const char *reason);

/* The default length of a notice. */
int64_t region_notice_ms(const struct region *r, const struct instance *i);

#define REGION_USUAL_SOFT_OFF (-1) /* the provider's default, if it has soft-off at all */

/* Gives an instance its notice. soft_off_ms: after this time the machine is ordered to shut
 * down, at the latest at its deadline. */
void region_mark(
    struct region *r, struct instance *i, int64_t notice_ms, int64_t soft_off_ms, struct wall at);

/* Reclaims it now. */
void region_reclaim_now(struct region *r, struct instance *i, struct wall at);

/* Must be called before any price changes. */
void region_bill_all(struct region *r, struct wall at);

#endif
