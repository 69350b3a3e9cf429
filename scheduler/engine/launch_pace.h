/* SPDX-License-Identifier: Apache-2.0
 *
 * Paces launches: a token bucket for each provider and region, because providers limit launches in
 * this way. A launch takes a token; when there is none, launches wait in the order of their
 * arrival. A repeated call takes a token too, but does not wait, because its own backoff has
 * already waited. When a call is repeated says provision.c; how long an offer is avoided after a
 * refusal, offer_avoid.h and boots.h in core/supply.
 *
 *   launch_pace_enter --- a token, and none waits ---> true: the caller launches
 *                    \--- otherwise --> waits --- the bucket fills ---> start()
 */
#ifndef BELAY_SCHEDULER_ENGINE_LAUNCH_PACE_H
#define BELAY_SCHEDULER_ENGINE_LAUNCH_PACE_H

#include "base/list.h"
#include "base/timers.h"
#include "cloud/driver.h"

struct launch_pace {
    struct timers *timers;
    const struct cloud_driver_ops *ops;
    char region[CLOUD_NAME_MAX];
    int64_t per_minute; /* 0 = unlimited */
    /* tokens, in units of 1/60000; negative: owed */
    int64_t level;
    struct mono filled_at; /* the time for which level is valid */
    struct list waiting;   /* struct launch_turn */
    struct timer timer;
};

/* Embedded in the waiting launch. Zeroed: does not wait. */
struct launch_turn {
    struct link link;
    /* Called when its turn has come, never inside launch_pace_enter; may free the turn. */
    void (*start)(struct launch_turn *turn);
};

/* Starts full, with the provider's rate. p must not move. The timers are borrowed until
 * launch_pace_deinit. */
void launch_pace_init(struct launch_pace *p, struct timers *timers,
    const struct cloud_driver_ops *ops, const char *region);
void launch_pace_deinit(struct launch_pace *p); /* drops all waiting turns */

/* per_minute > 0 replaces the provider's own rate. */
void launch_pace_set_rate(struct launch_pace *p, int64_t per_minute);

/* Returns true if the launch may start now (a token is taken). Otherwise turn->start runs when its
 * turn comes. The turn must not be waiting already. */
bool launch_pace_enter(struct launch_pace *p, struct launch_turn *turn);
bool launch_turn_is_waiting(const struct launch_turn *turn);
void launch_turn_leave(struct launch_turn *turn); /* no effect when it does not wait */

/* A call is repeated: takes a token, on credit if there is none. */
void launch_pace_repeat(struct launch_pace *p);
void launch_pace_throttled(struct launch_pace *p); /* the provider reports an empty bucket */

#endif
