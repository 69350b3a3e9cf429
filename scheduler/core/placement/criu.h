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
/* Whether jobs of the shape may use the node: it is open to them, not avoided, and within their
 * cost limits. Ignores free resources. */
bool node_suits(const struct node *n, const struct shape *s);
/* Whether a future or coming machine of the pool may support it: false only if known not to. */
bool pool_may_criu(const struct pool *p, enum criu_ability need);
const char *pool_criu_why(const struct pool *p); /* the reason; "" if unknown */
/* A report of the node's agent: updates the row and the pool's knowledge. */
void node_set_criu(struct model *m, struct node *n, enum criu_ability can, const char *text);
/* ERR_UNSUPPORTED, with the reason: no machine that this job may use will support it. */
int criu_check_submit(const struct model *m, const struct job_row *j, struct err *e);

#endif
