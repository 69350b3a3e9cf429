/* SPDX-License-Identifier: Apache-2.0
 *
 * Decisions. plan_next reads the model and returns the one thing to do next, as an event; the
 * caller applies it and asks again until there is none. Asking twice without applying gives the
 * same answer. The planner only remembers what did not fit at which version of the capacity, so
 * that a tick never scans what did not change.
 *
 * In order:
 *  1. nodes whose lease is over; jobs whose time to begin has come, and those that depend on what
 *     cannot come true any more; the order of the queue (order.h), at most every few seconds, when
 *     what is used or waits has changed and jobs of several users wait; cron entries of which a
 *     time has come (crons.c). Before a shape passes others, nodes are reserved for the first few
 *     of those (reserve.c);
 *  2. places for pending jobs, in that order (a shape that does not fit lets others pass); on owned
 *     nodes before spot before on-demand, there where reading what the job reads costs the least,
 *     there on the node with the least left (gpus, then cpus, then memory, then id). What can begin
 *     does: nobody waits for a machine that would be nearer, or cost less. A wish for a market
 *     limits what is paid for by the hour: owned nodes serve every wish; What its team's quota owes
 *     a place goes before what borrows, and where it does not fit jobs that borrow are evicted for
 *     it, as jobs of some classes are for those of a QOS that preempts them (preempt.c); kinds of
 *     jobs that would exceed a limit are throttled (limits.c);
 *  3. instances to end: of a node that is idle for idle_timeout and joined at least cooldown ago (a
 *     machine that was just paid to boot is given a chance), noticed and empty for 5 s, or LOST for
 *     two leases; boot overdue;
 *  4. drills of jobs that were submitted so, when they have saved or got somewhere, and drills that
 *     have waited for too long (drill.c);
 *  5. attempts that have been on-demand for the pool's return_ms and have saved move to a node with
 *     room where they pay a fifth less, with what reading their input there costs;
 *  6. launches for demand that no node up or on its way will serve: for the oldest of it an offer
 *     of the lowest market rank, and of those one big machine shared by jobs of several shapes or
 *     several small ones, by what they cost for the jobs that wait (choice.c, market.c), then id,
 *     within the limits of the pool and of all pools; refused ones avoided; one launch in flight
 *     counts as its capacity; a job on a noticed node counts as demand already, and so does one
 *     that could move (5) if there were a node for it;
 *  7. what a job that ended left in the store, when it is due and nothing else is being cleaned.
 */
#ifndef BELAY_SCHEDULER_CORE_PLAN_H
#define BELAY_SCHEDULER_CORE_PLAN_H

#include "scheduler/core/model/model.h"

struct planner;

struct planner *planner_create(void);
void planner_destroy(struct planner *p); /* NULL is fine */

/* True and *ret_event (with its now = now), or false: nothing to do. */
bool plan_next(struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);

/* Which kind of decision the last event of plan_next was ("places"); NULL: none yet. */
const char *plan_decider(const struct planner *p);

/* The earliest moment at which plan_next could answer otherwise though nothing happened; MONO_NONE:
 * none. */
struct mono plan_wake(const struct planner *p, const struct model *m, struct stamp now);

#endif
