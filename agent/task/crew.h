/* SPDX-License-Identifier: Apache-2.0
 *
 * Short work on threads: what is asked for in one turn of the loop is shared out among a few, each
 * of which does its part one after the other. To wake a thread for each, and the loop when it is
 * done, takes longer than the work itself, when a node starts and ends hundreds of tasks a second.
 *
 * For work that blocks for milliseconds at most: what comes after it waits. One crew for each kind,
 * so that nothing waits for what may take longer.
 */
#ifndef BELAY_AGENT_TASK_CREW_H
#define BELAY_AGENT_TASK_CREW_H

#include "base/timers.h"
#include "base/uv/loop.h"

struct crew;

struct crew *crew_create(uv_loop_t *loop, struct timers *timers);
/* Nothing may be under way. NULL is allowed. */
void crew_destroy(struct crew *c);

/* As uv_run_work: work on a thread, then done on the loop, once each and never inside. */
void crew_run(struct crew *c, uv_work_fn work, uv_work_fn done, void *ctx);

#endif
