/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivers the rows of the outbox (core/lifecycle/notify_outbox.h): due rows are handed to a port,
 * at most OUTBOX_AT_ONCE at a time, and the results are posted to the tick. Delivery is at least
 * once: what was in progress when belayd died is done again. Runs on vtables only, in the daemon
 * and in the simulator alike.
 */
#ifndef BELAY_SCHEDULER_ENGINE_OUTBOX_H
#define BELAY_SCHEDULER_ENGINE_OUTBOX_H

#include "base/prng.h"
#include "base/timers.h"
#include "scheduler/engine/tick.h"

#define OUTBOX_AT_ONCE 8

struct outbox;

/* e is NULL on success. ERR_NOT_FOUND, ERR_INVALID and ERR_DENIED are permanent; all other errors
 * may be retried. The text of e goes into the job's history, so it must contain no secrets. */
typedef void (*outbox_done_fn)(void *ctx, const struct err *e);

/* row is borrowed for the call. done runs exactly once, later, never inside start, and within
 * a minute; the port's owner ensures that it does not run after outbox_destroy. */
struct outbox_port {
    void (*start)(
        struct outbox_port *port, const struct outbox_row *row, outbox_done_fn done, void *ctx);
};

struct outbox *outbox_create(
    struct tick *tick, struct timers *timers, struct prng *prng, struct outbox_port *port);
/* Continues with the stored rows. */
void outbox_start(struct outbox *o);
/* Call after a commit that contains rows of the outbox. */
void outbox_touch(struct outbox *o);
/* Call after the tick is destroyed (its last answers arrive here) and before the timers are. o may
 * be NULL. */
void outbox_destroy(struct outbox *o);

#endif
