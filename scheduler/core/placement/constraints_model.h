/* SPDX-License-Identifier: Apache-2.0
 *
 * Demands besides cpus, GPUs and memory (constraints.h) in the model, and their availability.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_MODEL_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_CONSTRAINTS_MODEL_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct constraints;

/* constraints_parse, with the prices of the place of the input. */
int constraints_read(
    const struct model *m, const char *text, struct constraints *ret_constraints, struct err *e);
/* The number of these demands, with one more job that has them; CONSTRAINTS_NONE for no demands. */
int64_t constraints_intern(struct model *m, const struct constraints *x);
void constraints_ref(struct model *m, int64_t id); /* one more job has them */
void constraints_deinit(struct model *m);
void constraints_unref(struct model *m, int64_t id); /* a job leaves the model */
/* ERR_INVALID, with the reason: no node or pool that the job may use will ever satisfy it. */
int constraints_check_submit(
    const struct model *m, const struct job_row *j, const struct constraints *x, struct err *e);
/* features and resources of its machines, from its row and its pool's */
void offer_describe(struct offer *o);
/* The same of a node. Its attempts keep what they have. */
void node_describe(struct node *n);
void pool_describe(struct model *m, struct pool *p); /* all its nodes and offers */
/* An empty machine with these properties could serve a job. node: its name; NULL for a machine
 * still to be launched. */
bool constraints_suit(const struct constraints *x, const char *node, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources);
bool constraints_allow(const struct constraints *x, const char *node);  /* by node name only */
bool offer_suits(const struct offer *o, const struct shape *s);         /* regardless of size */
bool node_has_constraints(const struct node *n, const struct shape *s); /* regardless of size */
/* with its current free amounts */
bool node_has_resources(const struct node *n, const struct shape *s);
/* node_has_resources, and its rack has the power. Ignores who the node is open to. */
bool node_has_capacity(const struct node *n, const struct shape *s);
struct stock stock_of(const struct counts *all);
/* how many times need is free */
int64_t stock_times(const struct stock *s, const struct counts *need);
void stock_add(struct stock *s, const struct counts *need, int64_t times);
void node_take_stock(struct node *n, const struct job *j, int64_t sign); /* -1: gives it back */
void licences_init(struct model *m, const struct count *v, size_t n);
/* Other ones. What running jobs use is accepted, as at a start. */
void licences_renew(struct model *m, const struct count *v, size_t n);
struct licence *licence_named(const struct model *m, const char *name); /* may return NULL */
/* The first demanded licence that is not free; NULL if all are. x may be NULL. */
const struct count *licences_lack(const struct model *m, const struct constraints *x);
void licences_take(struct model *m, const struct job *j);
/* it runs, regardless of the current totals */
void licences_load(struct model *m, const struct job *j);
void licences_give(struct model *m, const struct job *j);

#endif
