/* SPDX-License-Identifier: Apache-2.0
 *
 * Has what ended jobs left in the store cleaned: what the core has decided (a row that is CLEANING)
 * is handed to a port, and its answer posted to the tick. Level-triggered: it looks at rows, so
 * that what was under way when belayd died is done again. Runs on vtables only, in the daemon and
 * in the simulator alike.
 */
#ifndef BELAY_SCHEDULER_ENGINE_CLEANER_H
#define BELAY_SCHEDULER_ENGINE_CLEANER_H

#include "base/timers.h"
#include "scheduler/engine/tick.h"

struct cleaner;

struct cleaner_job {
    int64_t job;
    enum leftover_keep keep;
    struct ckpt_claim claim; /* whose its part of the store has to be */
};

/* kept_bytes: that have stayed, with CLEAN_DONE. e: why not; NULL with CLEAN_DONE. */
typedef void (*cleaner_done_fn)(
    void *ctx, enum clean_end end, int64_t kept_bytes, const struct err *e);

/* Closes the store of the job and removes what `keep` and pins do not hold; where it is another
 * job's it changes nothing. Idempotent. j is borrowed for the call. done runs once, later, never
 * inside start; the port's owner sees to it that it does not run after cleaner_destroy. */
struct cleaner_port {
    void (*start)(
        struct cleaner_port *port, const struct cleaner_job *j, cleaner_done_fn done, void *ctx);
};

struct cleaner *cleaner_create(struct tick *tick, struct timers *timers, struct cleaner_port *port);
/* Takes up what is stored as under way. */
void cleaner_start(struct cleaner *c);
/* After a commit: this row changed. */
void cleaner_touch(struct cleaner *c, const struct leftover_row *r);
/* After the tick, whose last answers come here, and before the timers; NULL is fine */
void cleaner_destroy(struct cleaner *c);

#endif
