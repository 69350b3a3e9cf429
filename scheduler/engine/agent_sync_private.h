/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by agent_sync.c, agent_sync_status.c and agent_sync_desired.c; private to them.
 */
#ifndef BELAY_SCHEDULER_ENGINE_AGENT_SYNC_PRIVATE_H
#define BELAY_SCHEDULER_ENGINE_AGENT_SYNC_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/engine/agent_sync.h"

#define REV_BOOT_SHIFT 32 /* the high part of a revision is the run of belayd that issued it */

/* What was last exchanged with the agent about one attempt. Only hints: all of it may be lost. */
struct known_attempt {
    struct link in_sync;
    int64_t job, attempt;
    bool reported; /* the agent has reported it, so the script need not be sent again */
    bool sent;     /* the agent may have it: omitting it would end it */
    int64_t failed_saves;
    int64_t secrets;   /* the version held by the agent */
    int64_t status_no; /* the status that last reported it */
};

struct node_sync {
    int64_t node;
    int64_t incarnation, seq;
    int64_t rev;
    int64_t status_no; /* counts accepted statuses */
    struct list known;
    int64_t kept[WIRE_KEPT_MAX]; /* jobs whose trees the node keeps, from the last status */
    size_t n_kept;
    bool is_full;                  /* as its last status says of its disk */
    int64_t task_loads, gpu_loads; /* the highest numbers stored of this incarnation */
    /* The last answer had no space for some attempts: they follow when the agent reports those that
     * it got. */
    bool left_out;
    /* the waiting status */
    agent_sync_reply_fn reply;
    void *ctx;
    struct timer timer;
    struct agent_sync *owner;
};

struct agent_sync {
    struct agent_sync_options o;
    struct map by_node;
};

/* Created if missing. */
struct known_attempt *agent_sync_find_known(struct node_sync *x, int64_t job, int64_t attempt);

/* Posts facts for everything in a status that the model does not have yet. */
void agent_sync_post_status(struct agent_sync *s, struct node_sync *x, const struct node *node,
    const struct wire_status *st);

/* Adds to d the desired state of the node, as far as there is space. */
void agent_sync_build_desired(
    struct agent_sync *s, struct node_sync *x, const struct node *node, struct wire_desired *d);

#endif
