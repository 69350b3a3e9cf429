/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the budgets share.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_PRIVATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_PRIVATE_H

#include "scheduler/core/queue/budgets.h"

struct stake {
    struct budget *budget;
    struct attempt *attempt;
    int64_t most_uusd; /* maximum cost of the rank, from its placement */
    /* Part of most_uusd for the input still to be read; 0 after the start, when it is part of the
     * actual cost. */
    int64_t input_uusd;
    struct link in_budget, of_attempt;
};

/* budgets.c */

bool budget_is_of_pool(const struct budget *b, const struct pool *p);
/* A stake that is not counted yet. */
struct stake *budget_stake_new(struct budget *b, struct attempt *a);

#endif
