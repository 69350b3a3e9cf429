/* SPDX-License-Identifier: Apache-2.0
 *
 * Ships a task's output to belayd while it is written: pieces at offsets; belayd answers how much
 * it has without a gap, and that is where the next piece starts. So nothing has to be remembered
 * here, over restarts of either side.
 */
#ifndef BELAY_AGENT_TASK_LOG_SHIPPER_H
#define BELAY_AGENT_TASK_LOG_SHIPPER_H

#include "agent/peer.h"
#include "agent/watch.h"
#include "base/prng.h"

struct log_shipper {
    /* set by the caller; borrowed */
    struct watches *watches;
    struct timers *timers;
    struct prng *prng;
    struct peer *peer;
    int64_t job, attempt;
    const char *path; /* of the output; may not exist yet */
    /* after log_shipper_finish: all is there, or belayd does not want it */
    void (*flushed)(void *ctx);
    void (*moved)(void *ctx); /* belayd has told how much it has */
    void *ctx;
    /* private */
    struct watch *watch;
    struct timer retry;
    struct http_call *call;
    int64_t offset;          /* what belayd has */
    int64_t hole;            /* hole in belayd's copy that is being reported; 0 = none */
    bool known;              /* belayd has told the offset */
    bool no_holes;           /* belayd takes none: it is an older one */
    bool refused;            /* belayd does not know the attempt: no more of it */
    bool settled;            /* size is what there is, and stays so */
    int64_t size, looked_ms; /* of the file, when it was looked at last; monotonic */
    bool finishing, started;
    int failures;
};

/* known_offset: the attempt is new, so belayd has nothing of it. */
void log_shipper_start(struct log_shipper *s, bool is_new);

/* Looks now instead of after the next change. */
void log_shipper_kick(struct log_shipper *s);

/* No more will be written: flushed runs once (never inside) when nothing is left to ship. */
void log_shipper_finish(struct log_shipper *s);

/* No callback after it, but s must live until log_shipper_is_idle(). */
void log_shipper_stop(struct log_shipper *s);
bool log_shipper_is_idle(const struct log_shipper *s);

/* All that was written is there, or belayd does not want it. */
bool log_shipper_is_complete(struct log_shipper *s);

/* Nobody writes to it any more: from now on it is not looked at again how much there is. */
void log_shipper_settle(struct log_shipper *s);

/* What was written and is not known to be there, its first max bytes; where nothing is known (this
 * agent is new), the last max. The caller frees it. NULL: there is nothing, it cannot be read, or
 * belayd does not want it. */
char *log_shipper_rest(struct log_shipper *s, size_t max, int64_t *ret_offset, size_t *ret_n);

/* Bytes of output so far; of one that grows, as they were a second ago at most. */
int64_t log_shipper_output_bytes(struct log_shipper *s);

#endif
