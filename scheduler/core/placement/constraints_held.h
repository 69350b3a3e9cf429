/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs ask for beside cpus, GPUs and memory (constraints.h), held in the model, and what there
 * is of it.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_HELD_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_HELD_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct constraints;

/* constraints_parse, with the prices of the place where the input lies. */
int constraints_read(
    const struct model *m, const char *text, struct constraints *ret_constraints, struct err *e);
/* The number of what is asked for, which is one job's more; CONSTRAINTS_NONE: that is nothing. */
int64_t constraints_hold(struct model *m, const struct constraints *x);
void constraints_hold_again(struct model *m, int64_t id); /* by a job more */
void constraints_deinit(struct model *m);
void constraints_release(struct model *m, int64_t id); /* a job leaves the model */
/* ERR_INVALID, with the reason: no node and no pool that the job may use will ever have it. */
int constraints_check_submit(
    const struct model *m, const struct job_row *j, const struct constraints *x, struct err *e);
void offer_describe(struct offer *o); /* what its machines have, by its row and its pool's */
/* The same of a node. What its attempts hold stays theirs. */
void node_describe(struct node *n);
void pool_describe(struct model *m, struct pool *p); /* of all of them */
/* A machine that has this could hold a job, empty. node: its name; NULL: it is yet to be launched,
 * and nobody knows. */
bool constraints_suit(const struct constraints *x, const char *node, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources);
bool constraints_allow(const struct constraints *x, const char *node);  /* by that name alone */
bool offer_suits(const struct offer *o, const struct shape *s);         /* whatever its size */
bool node_has_constraints(const struct node *n, const struct shape *s); /* likewise */
bool node_has_space(const struct node *n, const struct shape *s); /* now, by what is free there */
/* likewise, and its rack has the power: whoever it is open to */
bool node_has_room(const struct node *n, const struct shape *s);
struct stock stock_of(const struct counts *all);
int64_t stock_times(const struct stock *s, const struct counts *need); /* how often need is free */
void stock_add(struct stock *s, const struct counts *need, int64_t times);
void node_take_stock(struct node *n, const struct job *j, int64_t sign); /* -1: it is given back */
void licences_init(struct model *m, const struct count *v, size_t n);
struct licence *licence_named(const struct model *m, const char *name); /* or NULL */
/* The first of what it asks for that is not free now; NULL: nothing. x may be NULL. */
const struct count *licences_lack(const struct model *m, const struct constraints *x);
void licences_take(struct model *m, const struct job *j);
void licences_load(struct model *m, const struct job *j); /* it runs, whatever there is */
void licences_give(struct model *m, const struct job *j);

#endif
