/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner's port: closes and cleans a job's part of the store, on a thread, one job at a time.
 */
#ifndef BELAY_SCHEDULER_STORE_STORE_CLEANER_H
#define BELAY_SCHEDULER_STORE_STORE_CLEANER_H

#include "scheduler/engine/cleaner.h"
#include "scheduler/store/store_tasks.h"

struct store_cleaner;

/* Sets its own limit_ms. */
struct store_cleaner *store_cleaner_create(const struct store_tasks_options *o);
struct cleaner_port *store_cleaner_port(struct store_cleaner *s);
/* Interrupts a cleaning in progress without a callback. Call before the HTTP client is destroyed. s
 * may be NULL. */
void store_cleaner_destroy(struct store_cleaner *s);

#endif
