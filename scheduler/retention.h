/* SPDX-License-Identifier: Apache-2.0
 *
 * The retention in belayd: has old rows deleted, a limited number in each of some commits
 * (db/prune.h), and removes old output of jobs (logs/logs.h), on a thread.
 *
 * Both are level-triggered: what a kill interrupts is found again after the next start.
 */
#ifndef BELAY_SCHEDULER_RETENTION_H
#define BELAY_SCHEDULER_RETENTION_H

#include "base/timers.h"
#include "scheduler/config/retention.h"
#include "scheduler/engine/tick.h"
#include <uv.h>

#define RETENTION_EVERY_MS 600000         /* between two looks for old rows */
#define RETENTION_AGAIN_MS 500            /* between two commits while there are more */
#define RETENTION_OUTPUT_EVERY_MS 3600000 /* between two looks for old output */

struct retention;

/* Borrowed until destroy. */
struct retention_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct tick *tick;
    const struct config_retention *config;
    const char *db_path, *logs_dir;
};

struct retention *retention_create(const struct retention_options *o);
/* Begins; the first rows are deleted soon after. */
void retention_start(struct retention *r);
/* After a commit that deleted rows. */
void retention_committed(struct retention *r, const struct pruned *p);
/* A look for old output ends soon by itself: run the loop afterwards. r may be NULL. */
void retention_destroy(struct retention *r);

/* Removes the output under dir of the jobs that were deleted, or have ended before that moment
 * (WALL_NONE = only of deleted ones). Adds their number to *ret_removed. Blocks: for a thread.
 * *cancel ends it early. */
struct db_reader;
int retention_remove_output(struct db_reader *r, const char *dir, struct wall before,
    atomic_int *cancel, int64_t *ret_removed, struct err *e);

#endif
