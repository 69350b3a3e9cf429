/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner's hands: closes and cleans a job's part of the store, on a thread, one job at a time.
 */
#ifndef BELAY_SCHEDULER_SWEEPER_H
#define BELAY_SCHEDULER_SWEEPER_H

#include "base/uv/loop.h"
#include "scheduler/cleaner.h"

struct sweeper;

/* url and cluster are borrowed. The store is opened for each job anew: what is wrong with it may have been mended. */
struct sweeper *sweeper_create(uv_loop_t *loop, struct timers *timers, const char *url, const char *cluster);
struct cleaner_port *sweeper_port(struct sweeper *s);
/* A cleaning under way is interrupted and tells nobody; the loop waits for its thread. NULL is fine */
void sweeper_destroy(struct sweeper *s);

#endif
