/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes what ended jobs left in the store. The core decides (a row in state CLEANING); the
 * cleaner hands the row to a port and posts the result to the tick. Level-triggered: it reads rows,
 * so work that was interrupted by the death of belayd is done again. Runs on vtables only, in the
 * daemon and in the simulator alike.
 */
#ifndef BELAY_SCHEDULER_ENGINE_CLEANER_H
#define BELAY_SCHEDULER_ENGINE_CLEANER_H

#include "base/timers.h"
#include "scheduler/engine/tick.h"

struct cleaner;

struct cleaner_job {
    int64_t job;
    enum ckpt_gc_keep keep;
    struct ckpt_known known; /* the expected owner of its part of the store */
};

/* kept_bytes: the bytes that stay; valid with CLEAN_DONE. e: the reason of a failure; NULL with
 * CLEAN_DONE. */
typedef void (*cleaner_done_fn)(
    void *ctx, enum clean_end end, int64_t kept_bytes, const struct err *e);

/* Closes the job's part of the store and removes what `keep` and pins do not protect. Changes
 * nothing if that part is another job's. Idempotent. j is borrowed for the call. done runs exactly
 * once, later, never inside start; the port's owner ensures that it does not run after
 * cleaner_destroy. */
struct cleaner_port {
    void (*start)(
        struct cleaner_port *port, const struct cleaner_job *j, cleaner_done_fn done, void *ctx);
};

struct cleaner *cleaner_create(struct tick *tick, struct timers *timers, struct cleaner_port *port);
/* Continues the cleanings that are stored as in progress. */
void cleaner_start(struct cleaner *c);
/* After a commit: this row changed. */
void cleaner_touch(struct cleaner *c, const struct ckpt_gc_row *r);
/* Call after the tick is destroyed (its last answers arrive here) and before the timers are. c may
 * be NULL. */
void cleaner_destroy(struct cleaner *c);

#endif
