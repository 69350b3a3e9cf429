/* SPDX-License-Identifier: Apache-2.0
 *
 * Decisions. plan_next reads the model and returns the next single action as an event; the caller
 * applies it and calls again until there is none. Calling twice without applying returns the same.
 * The planner only remembers what did not fit at which version of the capacity, so that a tick
 * never scans what did not change.
 *
 * The order is that of the table deciders[] in plan.c. What needs a reason, in that order:
 *  1. nodes with an expired lease (a lease is a node's: a node that was not seen for lease_ms is
 *     lost, and all its attempts end; consider_leases in plan.c); jobs that reached their begin
 *     time, or with an unsatisfiable dependency; the order of the queue (priority.h), at most every
 *     few seconds, when usage or waiting jobs changed and jobs of several users wait; due cron
 *     entries (crons.c). Before a shape passes others, nodes are reserved for the first few of
 *     those (reserve.c);
 *  2. places for pending jobs, in queue order (a shape that does not fit lets others pass). Owned
 *     nodes come before spot before on-demand; then the lowest cost of reading the job's input;
 *     then, if no dearer, the node that prefetched its checkpoint (prefetch.h); then the node with
 *     the least left (gpus, then cpus, then memory, then id). A job that can
 *     start does: it never waits for a nearer or cheaper machine. A requested market limits only
 *     capacity that is paid by the hour: owned nodes serve every job. Jobs within their team's
 *     quota go before borrowing ones, and preempt those where they do not fit; so do jobs of a
 *     preempting QOS (preempt.c). Shapes that would exceed a limit are throttled (limits.c);
 *  3. instances to end: of a node that is idle for idle_timeout and joined at least cooldown ago
 *     (so a machine that just booted can get a job) and that no gang or moving job waits for,
 *     under notice and empty for 5 s, or LOST for two leases; boot timeout exceeded;
 *  4. drills of jobs submitted with one, once they saved or made progress, and drills that timed
 *     out (drill.c);
 *  5. attempts that have been on-demand for the pool's return_ms and have saved move to a node with
 *     capacity where they pay a fifth less, including the cost of reading their input there. An
 *     empty node first fetches their newest checkpoint, for a limited time (prefetch.h);
 *  6. launches for demand that no node, up or coming, will serve. For the oldest demand: an offer
 *     of the lowest market rank; of those one large machine shared by several shapes, or several
 *     small ones, by cost for the waiting jobs (choose_offer.c, offers.c), then id; within the
 *     limits of the pool and of all pools; refused offers avoided. A launch in flight counts as its
 *     capacity. A job on a node under notice counts as demand already, and so does one that could
 *     move (5) if there were a node for it;
 *  7. cleaning of an ended job's checkpoints, when it is due and no other is in progress.
 */
#ifndef BELAY_SCHEDULER_CORE_PLAN_H
#define BELAY_SCHEDULER_CORE_PLAN_H

#include "scheduler/core/model/model.h"

struct planner;

struct planner *planner_create(void);
void planner_destroy(struct planner *p); /* NULL is allowed */

/* True with *ret_event (and its now = now), or false if there is nothing to do. */
bool plan_next(struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);

/* Type of the last decision of plan_next ("places"); NULL: none yet. */
const char *plan_decider(const struct planner *p);

/* The earliest time at which plan_next could answer differently without an event; MONO_NONE:
 * never. */
struct mono plan_wake(const struct planner *p, const struct model *m, struct stamp now);

#endif
