/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of users and teams.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_LIMITS_H
#define BELAY_SCHEDULER_CORE_QUEUE_LIMITS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* A hypothetical allowance without jobs. */
void allowance_init_hypothetical(
    const struct model *m, struct allowance *w, const char *team, const char *user);
/* user is NULL for the team's own */
void allowance_init(struct model *m, struct allowance *w, const char *team, const char *user);
/* Takes the limits from another policy. No shape is in the queue meanwhile. */
void allowance_renew(struct model *m, struct allowance *w, const char *team, const char *user);
/* n more jobs of the account: ERR_CONFLICT, with the usage and the remedy. */
int limits_check_submit(const struct account *a, int64_t n, struct err *e);
/* Adds n to the count of jobs that have not ended. */
void limits_submitted(struct account *a, int64_t n);
/* Its weight in that count: 1; an array its tasks that have not begun. */
int64_t job_submitted(const struct job *j);
/* A rank was placed: it is in its job's list and on its node. */
void limits_take(struct model *m, struct attempt *a);
void limits_give(struct model *m, struct attempt *a); /* it ended: it is in no list */
/* Call when the team uses more of its quota (less_owed): nodes reserved for its jobs may now serve
 * others that are within theirs. Or less of it (more_owed): its jobs may use nodes that are
 * reserved for others. */
void limits_less_owed(struct model *m, struct team *t);
void limits_more_owed(struct model *m, struct team *t);
/* Its jobs may use nodes that are reserved for others. */
void limits_owed_now(struct model *m, const struct shape *s);
/* The price of its ranks may have changed. */
void limits_repriced(struct model *m, struct node *n);
/* Machines without cost may exist now. */
void limits_recheck_costs(struct model *m);
/* The allowance that prevents a job of the shape from running on this many nodes now. NULL if none
 * does regardless of the nodes. */
struct allowance *limits_exceeded(
    const struct model *m, const struct shape *s, int32_t nodes, enum limit_kind *ret_kind);
/* Whether this allowance does. */
bool limits_stop(
    const struct model *m, const struct allowance *w, const struct shape *s, enum limit_kind kind);
/* No job may run, regardless of its size. */
bool limits_used_up(const struct model *m, const struct shape *s);
/* Whether each of the shape's minimum number of nodes may be such a machine, by cost. For exclusive
 * shapes also by GPUs and cpus. */
bool limits_afford(const struct shape *s, const struct resources *total, int64_t uusd_h);
/* As limits_afford, and its budgets, its own cap and its maximum hourly cost allow it in this
 * pool. */
bool limits_allow(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h);
/* How many of these n nodes, from the first, a job of the shape may use. */
int32_t limits_count_allowed(
    const struct model *m, const struct shape *s, const int64_t *nodes, int32_t n);
/* The first job of a throttled shape that may return to the queue; CORE_ID_NONE: none. */
int64_t limits_next_unthrottled(const struct model *m);

#endif
