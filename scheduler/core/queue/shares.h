/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts: who uses what.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_SHARES_H
#define BELAY_SCHEDULER_CORE_QUEUE_SHARES_H

#include "scheduler/core/model/model.h"

struct model;

/* made if there is none */
struct account *account_of(struct model *m, const char *team, const char *user);
/* or NULL */
struct account *account_find(const struct model *m, const char *team, const char *user);
/* As it would be made, for a question. In no list, its team neither unless it is there. */
void account_imagine(const struct model *m, const char *team, const char *user,
    struct account *ret_account, struct team *ret_team);
/* Its jobs take so much more, or less, from now on. */
void account_charge(struct model *m, struct account *a, int64_t mcpu, struct stamp now);
void accounts_destroy_all(struct model *m);
/* When the queue is to be put in order; MONO_NONE: not unless something changes. */
struct mono order_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
