/* SPDX-License-Identifier: Apache-2.0
 *
 * Which machines can checkpoint by CRIU.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_CRIU_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_CRIU_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

enum criu_ability criu_needed(const struct job_row *j);
bool node_can_criu(const struct node *n, enum criu_ability need);
/* it is open to them, not the one that they avoid, and not too dear for their limits; whatever is
 * free */
bool node_suits(const struct node *n, const struct shape *s);
/* A machine of the pool, to be launched or on its way: false once it is known that it cannot. */
bool pool_may_criu(const struct pool *p, enum criu_ability need);
const char *pool_criu_why(const struct pool *p); /* not; "": nobody said */
/* The node's agent told: the row, and what is known of its pool. */
void node_set_criu(struct model *m, struct node *n, enum criu_ability can, const char *text);
/* ERR_UNSUPPORTED, with the reason: none of the machines that this job may use will ever do it. */
int criu_check_submit(const struct model *m, const struct job_row *j, struct err *e);

#endif
