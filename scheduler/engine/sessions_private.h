/* SPDX-License-Identifier: Apache-2.0
 *
 * What sessions.c, sessions_told.c and sessions_desired.c share, and nobody else sees.
 */
#ifndef BELAY_SCHEDULER_ENGINE_SESSIONS_PRIVATE_H
#define BELAY_SCHEDULER_ENGINE_SESSIONS_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/engine/sessions.h"

#define REV_BOOT_SHIFT 32 /* a revision tells in which run of belayd it was given */

/* What the agent was last told and told us of one attempt; only hints, all of it can be
 * forgotten. */
struct seen {
    struct link in_session;
    int64_t job, attempt;
    bool told; /* the agent has it: the script need not be sent again */
    bool sent; /* the agent may have it: to leave it out would be to end it */
    int64_t failed_saves;
    int64_t secrets;   /* the version that the agent holds */
    int64_t status_no; /* the status in which it was last told */
};

struct session {
    int64_t node;
    int64_t incarnation, seq;
    int64_t rev;
    int64_t status_no; /* counts accepted statuses */
    struct list seen;
    int64_t kept[WIRE_KEPT_MAX]; /* jobs, as the last status told */
    size_t n_kept;
    int64_t task_loads, gpu_loads; /* the highest numbers of this incarnation's that were taken */
    /* the last answer had no room for some: they follow when the agent tells what it got */
    bool left_out;
    /* the status that waits */
    sessions_reply_fn reply;
    void *ctx;
    struct timer timer;
    struct sessions *owner;
};

struct sessions {
    struct sessions_options o;
    struct map by_node;
};

/* Made if it is not there. */
struct seen *sessions_seen(struct session *x, int64_t job, int64_t attempt);

/* What a status tells that the model does not have becomes facts. */
void sessions_tell(
    struct sessions *s, struct session *x, const struct node *node, const struct wire_status *st);

/* Adds to d what the model wants of the node, as far as there is room for it. */
void sessions_desire(
    struct sessions *s, struct session *x, const struct node *node, struct wire_desired *d);

#endif
