/* SPDX-License-Identifier: Apache-2.0
 *
 * The retention in belayd: has old rows deleted, a limited number in each of some commits
 * (db/prune.h). What a kill interrupts is found again after the next start. Old output of jobs is
 * removed by logs/archiver.h.
 */
#ifndef BELAY_SCHEDULER_RETENTION_H
#define BELAY_SCHEDULER_RETENTION_H

#include "base/timers.h"
#include "scheduler/config/retention.h"
#include "scheduler/engine/tick.h"

#define RETENTION_EVERY_MS 600000 /* between two looks for old rows */
#define RETENTION_AGAIN_MS 500    /* between two commits while there are more */

struct retention;

/* Borrowed until destroy. */
struct retention_options {
    struct timers *timers;
    struct tick *tick;
    const struct config_retention *config;
};

struct retention *retention_create(const struct retention_options *o);
/* Begins; the first rows are deleted soon after. */
void retention_start(struct retention *r);
/* After a commit that deleted rows. */
void retention_committed(struct retention *r, const struct pruned *p);
/* r may be NULL. */
void retention_destroy(struct retention *r);

#endif
