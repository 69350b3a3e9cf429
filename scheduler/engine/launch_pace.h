/* SPDX-License-Identifier: Apache-2.0
 *
 * Paces launches: a token bucket for each provider and region, for that is what providers limit. A
 * launch takes a token; while there is none, launches wait in the order in which they came. A call
 * that is repeated takes one as well, without waiting: its own backoff has done that.
 *
 *   launch_pace_enter --- a token is there ---------------> start()
 *                    \--- none: waits --- the bucket fills --^
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
    int64_t per_minute; /* 0: no limit */
    /* tokens, in units of 1/60000: one minute's worth of milliseconds; below 0: owed */
    int64_t level;
    struct mono filled_at; /* as of when */
    struct list waiting;   /* struct launch_turn */
    struct timer timer;
};

/* Lives in the launch that waits. Zeroed: does not wait. */
struct launch_turn {
    struct link link;
    /* its turn has come: never inside launch_pace_enter; may free the turn */
    void (*start)(struct launch_turn *turn);
};

/* Full, with the provider's rate. Not to be moved. The timers are borrowed until
 * launch_pace_deinit. */
void launch_pace_init(struct launch_pace *p, struct timers *timers,
    const struct cloud_driver_ops *ops, const char *region);
void launch_pace_deinit(struct launch_pace *p); /* forgets who waits */

/* per_minute: > 0, in place of the provider's own rate. */
void launch_pace_set_rate(struct launch_pace *p, int64_t per_minute);

/* True: launch now, a token is taken. False: turn->start runs when its turn comes. The turn must
 * not be waiting. */
bool launch_pace_enter(struct launch_pace *p, struct launch_turn *turn);
bool launch_turn_is_waiting(const struct launch_turn *turn);
void launch_turn_leave(struct launch_turn *turn); /* harmless when it does not wait */

/* a call is made again: takes a token, owed if there is none */
void launch_pace_repeat(struct launch_pace *p);
void launch_pace_throttled(struct launch_pace *p); /* the provider says that the bucket is empty */

#endif
