/* SPDX-License-Identifier: Apache-2.0
 *
 * The retention in belayd: has old rows deleted, a limited number in each of some commits
 * (db/prune.h). While more of the database is in use than database_max, the age of jobs is as much
 * shorter as the oldest of them need to go, down to a day. What a kill interrupts is found again
 * after the next start. Old output of jobs is removed by logs/archiver.h.
 */
#ifndef BELAY_SCHEDULER_RETENTION_H
#define BELAY_SCHEDULER_RETENTION_H

#include "base/timers.h"
#include "scheduler/config/retention.h"
#include "scheduler/engine/tick.h"

#define RETENTION_EVERY_MS 600000 /* between two looks for old rows */
#define RETENTION_AGAIN_MS 500    /* between two commits while there are more */

#define RETENTION_LEAST_MS 86400000 /* age of what goes because of the size, at least */

struct retention;
struct db_reader;

/* Borrowed until destroy. */
struct retention_options {
    struct timers *timers;
    struct tick *tick;
    struct db_reader *reader;
    const struct config_retention *config;
};

struct retention_stats {
    int64_t jobs;                   /* deleted since the start */
    int64_t jobs_by_size;           /* of these before their age */
    int64_t file_bytes, used_bytes; /* of the database, at the last look */
};

struct retention *retention_create(const struct retention_options *o);
/* Begins; the first rows are deleted soon after. */
void retention_start(struct retention *r);
/* After a commit that deleted rows. */
void retention_committed(struct retention *r, const struct pruned *p);
void retention_get_stats(const struct retention *r, struct retention_stats *ret_stats);
/* Looks soon: the limits are others. */
void retention_look(struct retention *r);
/* r may be NULL. */
void retention_destroy(struct retention *r);

#endif
