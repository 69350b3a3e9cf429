/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches the newest checkpoint of a job that will run on this node next into a kept directory
 * (kept.h), while the job still runs elsewhere: its restore here then fetches what has changed
 * since. One job at a time, on belayd's order (struct wire_prefetch).
 *
 * Nothing depends on it. The store is only read, without a fence, so that the running attempt saves
 * on. A failure is reported, and another try is made when there is a newer checkpoint. Whatever was
 * fetched, the restore checks each chunk against the manifest that it restores.
 *
 * Only the loop's thread uses it; from a start until it is done, `work` belongs to a thread.
 */
#ifndef BELAY_AGENT_TASK_PREFETCH_H
#define BELAY_AGENT_TASK_PREFETCH_H

#include "agent/task/kept.h"
#include "agent/task/store_threads.h"
#include "agent/task/task.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include "ckpt/ckpt.h"
#include <stdatomic.h>

struct prefetch {
    const struct task_common *common;
    struct wire_prefetched report; /* job 0 = there is no order */
    int64_t tried;                 /* the newest sequence that was tried for it */
    struct kept unneeded;          /* to be removed; job 0 = nothing */
    struct timer limit;
    bool is_busy;
    atomic_int cancel;
    struct prefetch_work {
        struct store_work on_store;
        struct store_pulse pulse;
        struct wire_prefetch what; /* with a copy of the secrets, wiped when it is done */
        char store[1024], cluster[64];
        struct store_net *net; /* the job's own, or the node's */
        int rc;
        struct err e;
        struct ckpt_restored restored;
    } work;
};

void prefetch_init(struct prefetch *p, const struct task_common *common); /* borrowed */
void prefetch_desired(struct prefetch *p, const struct wire_desired *d);
void prefetch_fill(const struct prefetch *p, struct wire_status *s);
/* True with what was fetched and is of no use any more, for kept_prune; once. */
bool prefetch_take_unneeded(struct prefetch *p, struct kept *ret);
/* Ends it; run the loop until it is idle. */
void prefetch_stop(struct prefetch *p);
static inline bool prefetch_is_idle(const struct prefetch *p)
{
    return !p->is_busy;
}

#endif
