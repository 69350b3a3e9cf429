/* SPDX-License-Identifier: Apache-2.0
 *
 * What users and teams may have.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_LIMITS_H
#define BELAY_SCHEDULER_CORE_QUEUE_LIMITS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* one that nobody counts */
void allowance_imagine(
    const struct model *m, struct allowance *w, const char *team, const char *user);
/* user NULL: of the team */
void allowance_init(struct model *m, struct allowance *w, const char *team, const char *user);
/* n more jobs of the account: ERR_CONFLICT, with what is used and what to do. */
int limits_check_submit(const struct account *a, int64_t n, struct err *e);
/* so many more, or less, that have not ended */
void limits_submitted(struct account *a, int64_t n);
/* as what it counts there: 1; an array as its tasks that have not begun */
int64_t job_submitted(const struct job *j);
/* a rank was placed: it is in its job's list, and on its node */
void limits_take(struct model *m, struct attempt *a);
void limits_give(struct model *m, struct attempt *a); /* it has ended: it is in no list */
/* The team has more of its quota than before: what is kept for its jobs may be for others that are
 * owed theirs. Less: its jobs may go where something is kept for others. */
void limits_less_owed(struct model *m, struct team *t);
void limits_more_owed(struct model *m, struct team *t);
/* its jobs may go where something is kept for others */
void limits_owed_now(struct model *m, const struct shape *s);
/* what its ranks cost may be something else now */
void limits_repriced(struct model *m, struct node *n);
/* there may be machines that cost nothing now */
void limits_look_again(struct model *m);
/* What keeps a job of the shape from running on so many nodes now, or NULL: nothing does, as far as
 * one can say without knowing where. */
struct allowance *limits_exceeded(
    const struct model *m, const struct shape *s, int32_t nodes, enum limit_kind *ret_kind);
/* this one does */
bool limits_stop(
    const struct model *m, const struct allowance *w, const struct shape *s, enum limit_kind kind);
/* no job may run, however little it asks for */
bool limits_used_up(const struct model *m, const struct shape *s);
/* Each of the nodes that a job of the shape needs at least may be such a machine, by what it costs;
 * of an exclusive one also by the GPUs and cpus that it has. */
bool limits_afford(const struct shape *s, const struct resources *total, int64_t uusd_h);
/* Likewise, and its budgets, its own cap and what it takes an hour allow it in this pool. */
bool limits_allow(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h);
/* How many of these n nodes, the first ones, a job of the shape may run on. */
int32_t limits_cut(const struct model *m, const struct shape *s, const int64_t *nodes, int32_t n);
/* Shapes that were throttled and may be taken up: the first job of one; CORE_ID_NONE: none. */
int64_t limits_loose(const struct model *m);

#endif
