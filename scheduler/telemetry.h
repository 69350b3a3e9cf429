/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the loads of tasks and GPUs that agents report into the database: collected for some
 * seconds and committed with the tick's next commit, so that many nodes cost one transaction. The
 * same commits remove old rows.
 *
 * Invalid loads (another node's job, an impossible time) are dropped. Loads that were received and
 * are not committed yet are lost with belayd, which costs only some minutes of telemetry.
 */
#ifndef BELAY_SCHEDULER_TELEMETRY_H
#define BELAY_SCHEDULER_TELEMETRY_H

#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/tick.h"

/* loads waiting to be committed; beyond that the newest are dropped */
#define TELEMETRY_WAITING_MAX 30000

struct telemetry_options {
    struct tick *tick;
    struct timers *timers;
    struct db_reader *reader;
    int64_t keep_ms[LOAD_SPANS]; /* minutes, tens of minutes, hours */
};

struct telemetry;
struct telemetry *telemetry_create(const struct telemetry_options *o);
/* Other ages, from the next commit with loads on. */
void telemetry_set_ages(struct telemetry *t, const int64_t keep_ms[LOAD_SPANS]);
void telemetry_destroy(struct telemetry *t); /* t may be NULL */

/* An agent_sync_loads_fn of the struct telemetry. */
void telemetry_take(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above);

#endif
