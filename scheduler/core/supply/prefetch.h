/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetching: while a job still runs, the machine that it will move to fetches the job's newest
 * checkpoint, so that the restore there fetches only what has changed since.
 *
 *   EV_PREFETCH (decision) --> the node's agent is told --> EV_PREFETCHED (fact) --> the job moves
 *
 * Invariants:
 *  1. A move to a cheaper machine waits for a prefetch for at most prefetch_wait_ms, and at most
 *     once in PREFETCH_AGAIN_MS, whatever the agent reports. A failed prefetch ends the wait.
 *  2. Whatever was prefetched, the restore uses the newest checkpoint in the store: the agent
 *     copies only content with the right hash from what it has (ckpt/restore.c).
 *
 * Only for jobs on one node, on an empty node for which reading from the store costs nothing, and
 * only if more than half of the last checkpoint was in the store before (prefetch_note_save): of a
 * state that each save rewrites, nothing could be used. In memory only: after a restart of belayd
 * the decision is made again.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_PREFETCH_H
#define BELAY_SCHEDULER_CORE_SUPPLY_PREFETCH_H

#include "scheduler/core/model/model.h"

#define PREFETCH_WAIT_MAX_MS 300000
#define PREFETCH_AGAIN_MS 3600000

/* What to do before an attempt moves to a node that is up. */
enum prefetch_step {
    PREFETCH_MOVE, /* nothing: it moves now */
    PREFETCH_ASK,  /* EV_PREFETCH */
    PREFETCH_WAIT  /* until the agent reports, at most until *ret_until */
};
enum prefetch_step prefetch_step(
    const struct attempt *a, const struct node *to, struct mono now, struct mono *ret_until);

/* The longest wait, by the size of the checkpoint; at most PREFETCH_WAIT_MAX_MS. */
int64_t prefetch_wait_ms(const struct attempt *a);

/* The same for an attempt that must leave its node, which waits for nothing: whether to ask. */
bool prefetch_is_of_use(const struct attempt *a, const struct node *to, struct mono now);

/* The node fetches for another attempt, which still runs and waits for it. */
bool prefetch_is_of_other(
    const struct node *n, const struct attempt *a, const struct model *m, struct mono now);

/* For the first job of a shape, which `best` would be chosen for: the node that has its checkpoint,
 * if that is as good; else `best`. */
const struct node *prefetch_place(
    const struct model *m, const struct shape *s, const struct node *best, struct stamp now);

/* What the agent of a node is to fetch. */
struct prefetch_order {
    int64_t job, attempt;
    /* the newest checkpoint of that attempt; 0: nothing (more), but what was fetched is still of
     * use */
    int64_t sequence;
};
/* False: nothing, and what was fetched is of no use any more: the job is elsewhere or over, or the
 * node runs another one. */
bool prefetch_order_of(const struct model *m, const struct node *n, struct prefetch_order *ret);

/* What was in the store already of an attempt's last checkpoint. */
void prefetch_note_save(struct attempt *a, int64_t bytes, int64_t stored_bytes);

#endif
