/* SPDX-License-Identifier: Apache-2.0
 *
 * Ships a task's output to belayd while it is written, in pieces at offsets. belayd answers how
 * much it has without a gap, and the next piece starts there. So no state is kept here across
 * restarts of either side.
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
    /* after log_shipper_finish: belayd has all output, or does not want it */
    void (*flushed)(void *ctx);
    void (*moved)(void *ctx); /* belayd has reported how much it has */
    void *ctx;
    /* private */
    struct watch *watch;
    struct timer retry;
    struct http_call *call;
    int64_t offset;         /* bytes that belayd has */
    int64_t durable;        /* of these, bytes known to be on its disk */
    int64_t hole;           /* hole in belayd's copy that is being reported; 0 = none */
    bool known;             /* offset is known */
    bool no_holes;          /* an older belayd, which accepts no holes */
    bool refused;           /* belayd does not know the attempt: stop shipping */
    bool is_cut;            /* belayd wants no more output */
    bool settled;           /* size is final */
    int64_t size, sized_ms; /* of the file, when last read; monotonic */
    bool finishing, started;
    int failures;
};

/* is_new: a new attempt, so belayd has no output of it yet. */
void log_shipper_start(struct log_shipper *s, bool is_new);

/* Looks now instead of after the next change. */
void log_shipper_kick(struct log_shipper *s);

/* Call when the output is complete. `flushed` runs once, never inside, when nothing is left to
 * ship. */
void log_shipper_finish(struct log_shipper *s);

/* No callback runs afterwards, but s must live until log_shipper_is_idle(). */
void log_shipper_stop(struct log_shipper *s);
bool log_shipper_is_idle(const struct log_shipper *s);

/* Whether belayd has all output, or does not want it. */
bool log_shipper_is_complete(struct log_shipper *s);

/* The output file no longer grows: its size is not read again. */
void log_shipper_settle(struct log_shipper *s);

/* Returns the first max bytes that belayd is not known to have; if nothing is known (a new agent),
 * the last max bytes. The caller frees it. NULL if there are none, they cannot be read, or belayd
 * does not want them. */
char *log_shipper_rest(struct log_shipper *s, size_t max, int64_t *ret_offset, size_t *ret_n);

/* Bytes of the output that are known to be on belayd's disk. The shipper asks belayd when the rest
 * begins to fill this node's disk. INT64_MAX: belayd wants none of it. */
int64_t log_shipper_durable(const struct log_shipper *s);

/* Bytes of output so far; at most a second old. */
int64_t log_shipper_output_bytes(struct log_shipper *s);

#endif
