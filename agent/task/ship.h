/* SPDX-License-Identifier: Apache-2.0
 *
 * Ships a task's output to belayd while it is written: pieces at offsets; belayd answers how much
 * it has without a gap, and that is where the next piece starts. So nothing has to be remembered
 * here, over restarts of either side.
 */
#ifndef BELAY_AGENT_TASK_SHIP_H
#define BELAY_AGENT_TASK_SHIP_H

#include "agent/peer.h"
#include "agent/watch.h"
#include "base/prng.h"

struct ship {
    /* to be filled by the caller; borrowed */
    struct watches *watches;
    struct timers *timers;
    struct prng *prng;
    struct peer *peer;
    int64_t job, attempt;
    const char *path;           /* of the output; may not exist yet */
    void (*flushed)(void *ctx); /* after ship_finish: all is there, or belayd does not want it */
    void (*moved)(void *ctx);   /* belayd has told how much it has */
    void *ctx;
    /* private */
    struct watch *watch;
    struct timer retry;
    struct http_call *call;
    int64_t offset;          /* what belayd has */
    int64_t hole;            /* in the output there that is being told; 0: none is */
    bool known;              /* belayd has told the offset */
    bool no_holes;           /* belayd takes none: it is an older one */
    bool refused;            /* belayd does not know the attempt: no more of it */
    bool settled;            /* size is what there is, and stays so */
    int64_t size, looked_ms; /* of the file, when it was looked at last; monotonic */
    bool finishing, started;
    int failures;
};

/* known_offset: the attempt is new, so belayd has nothing of it. */
void ship_start(struct ship *s, bool is_new);

/* Looks now instead of after the next change. */
void ship_kick(struct ship *s);

/* No more will be written: flushed runs once (never inside) when nothing is left to ship. */
void ship_finish(struct ship *s);

/* No callback after it, but s must live until ship_is_idle(). */
void ship_stop(struct ship *s);
bool ship_is_idle(const struct ship *s);

/* All that was written is there, or belayd does not want it. */
bool ship_is_complete(struct ship *s);

/* Nobody writes to it any more: from now on it is not looked at again how much there is. */
void ship_settle(struct ship *s);

/* What was written and is not known to be there, its first max bytes; where nothing is known (this
 * agent is new), the last max. The caller frees it. NULL: there is nothing, it cannot be read, or
 * belayd does not want it. */
char *ship_rest(struct ship *s, size_t max, int64_t *ret_offset, size_t *ret_n);

/* Bytes of output so far; of one that grows, as they were a second ago at most. */
int64_t ship_output_bytes(struct ship *s);

#endif
