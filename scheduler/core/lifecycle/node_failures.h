/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes on which all jobs fail at once. A broken driver, mount or library ends each job within
 * seconds, so the node is free again and fails the next one, until the queue is empty. Such a node
 * is drained as soon as `jobs` different jobs of `users` different users have failed there in a
 * row, each within `quick_ms` of its start and all of them within `within_ms`.
 *
 * Invariants:
 *  1. Tasks of an array count as one job, so that one faulty script drains no node.
 *  2. A job that succeeds on the node, or runs there for longer, shows that the node works: the
 *     count starts from zero. A restart of belayd changes nothing: the failures are stored, and so
 *     are the drain and its reason.
 *  3. At most a quarter of a pool's nodes, and at least one, are drained in this way at a time:
 *     when jobs fail on all nodes alike, the cause is not a node.
 *  4. Failures on the node do not count as the jobs' own. The job that failed last is queued again
 *     as after any drain. Earlier ones that are still live get back the retry that they used there.
 *     Jobs without a retry have ended; the node's event names them.
 *
 * Failures of multi-node jobs do not count: it is unknown which of the nodes is at fault. Nor does
 * the refusal of a user without an account on the node: the user or the image of the pool's nodes
 * is at fault, and a replacement would refuse the user too.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NODE_FAILURES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NODE_FAILURES_H

#include "base/err.h"
#include "scheduler/core/model/rows.h"

struct attempt;
struct job;
struct model;
struct node;

#define NODE_FAILURES_MAX 8

struct node_failures_options {
    int32_t jobs;  /* at most NODE_FAILURES_MAX; 0 = no node is drained */
    int32_t users; /* 1 .. jobs */
    int64_t within_ms, quick_ms;
};

/* Of a node, oldest first; at most one entry for each job and array. Stored by place. */
struct node_failures {
    int32_t n;
    struct node_failure_row last[NODE_FAILURES_MAX];
};

/* Call when an attempt of a job on one node is about to end as `end`. True: its node must be
 * drained, by node_failures_drain, once the attempt has ended. */
bool node_failures_note(
    struct model *m, const struct attempt *a, enum end_kind end, struct stamp now);
/* The job may be queued again as after a drain: its failure does not count. */
bool node_failures_excuse(const struct job *j);
void node_failures_drain(struct model *m, struct node *n, struct stamp now);
/* The count starts from zero. */
void node_failures_forget(struct model *m, struct node *n);
void node_failures_destroy_all(struct model *m);
/* Rows of a node come by place, after the nodes. */
int model_load_node_failure(struct model *m, const struct node_failure_row *r, struct err *e);

#endif
