/* SPDX-License-Identifier: Apache-2.0
 *
 * Short work on threads. Requests made in one iteration of the loop are divided among a few
 * threads, each of which does its part in sequence. When a node starts and ends hundreds of tasks a
 * second, waking a thread for each request, and the loop for each result, takes longer than the
 * work itself.
 *
 * For work that blocks for milliseconds at most, because later work waits for it. Use one crew for
 * each kind of work, so that nothing waits for slower work.
 */
#ifndef BELAY_AGENT_TASK_CREW_H
#define BELAY_AGENT_TASK_CREW_H

#include "base/timers.h"
#include "base/uv/loop.h"

struct crew;

struct crew *crew_create(uv_loop_t *loop, struct timers *timers);
/* No work may be under way. NULL is allowed. */
void crew_destroy(struct crew *c);

/* As uv_run_work: work on a thread, then done on the loop, once each and never inside. */
void crew_run(struct crew *c, uv_work_fn work, uv_work_fn done, void *ctx);

#endif
