/* SPDX-License-Identifier: Apache-2.0
 *
 * Has the rows of the outbox (scheduler/core/lifecycle/notify.h) delivered: those that are due are
 * handed to a port, at most OUTBOX_AT_ONCE at a time, and what became of them is posted to the
 * tick. At least once: what was under way when belayd died is done again. Runs on vtables only, in
 * the daemon and in the simulator alike.
 */
#ifndef BELAY_SCHEDULER_ENGINE_OUTBOX_H
#define BELAY_SCHEDULER_ENGINE_OUTBOX_H

#include "base/prng.h"
#include "base/timers.h"
#include "scheduler/engine/tick.h"

#define OUTBOX_AT_ONCE 8

struct outbox;

/* e is NULL on success. ERR_NOT_FOUND, ERR_INVALID and ERR_DENIED: it never will be delivered;
 * others: it may be later. Its text goes into the job's history: without secrets. */
typedef void (*outbox_done_fn)(void *ctx, const struct err *e);

/* row is borrowed for the call. done runs once, later, never inside start, and within
 * OUTBOX_DEADLINE_MS; the port's owner sees to it that it does not run after outbox_destroy. */
#define OUTBOX_DEADLINE_MS 60000
struct outbox_port {
    void (*start)(
        struct outbox_port *port, const struct outbox_row *row, outbox_done_fn done, void *ctx);
};

struct outbox *outbox_create(
    struct tick *tick, struct timers *timers, struct prng *prng, struct outbox_port *port);
/* Takes up what is stored. */
void outbox_start(struct outbox *o);
/* After a commit that has rows of the outbox. */
void outbox_touch(struct outbox *o);
/* After the tick, whose last answers come here, and before the timers; NULL is fine */
void outbox_destroy(struct outbox *o);

#endif
