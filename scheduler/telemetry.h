/* SPDX-License-Identifier: Apache-2.0
 *
 * What agents tell of tasks and GPUs, on its way into the database: gathered for some seconds and
 * committed with whatever a tick commits then, so that many nodes cost one transaction. The same
 * commits remove what is old.
 *
 * What is wrong (another node's job, a time that cannot be) is left out. What was taken and is not
 * committed yet is lost with belayd, which costs some minutes of telemetry and nothing else.
 */
#ifndef BELAY_SCHEDULER_TELEMETRY_H
#define BELAY_SCHEDULER_TELEMETRY_H

#include "scheduler/engine/sessions.h"
#include "scheduler/engine/tick.h"

/* loads that wait to be committed; beyond that the newest are left out */
#define TELEMETRY_WAITING_MAX 30000

struct telemetry_options {
    struct tick *tick;
    struct timers *timers;
    struct db_reader *reader;
    int64_t keep_ms[LOAD_SPANS]; /* minutes, tens of minutes, hours */
};

struct telemetry;
struct telemetry *telemetry_create(const struct telemetry_options *o);
void telemetry_destroy(struct telemetry *t); /* NULL is fine */

/* A sessions_loads_fn of the struct telemetry. */
void telemetry_take(
    void *ctx, int64_t node, const struct wire_status *st, int64_t tasks_above, int64_t gpus_above);

#endif
