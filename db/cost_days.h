/* SPDX-License-Identifier: Apache-2.0
 *
 * What was spent, read from the sums by UTC day that are kept with the ledger (rollup.c).
 */
#ifndef BELAY_DB_COST_DAYS_H
#define BELAY_DB_COST_DAYS_H

#include "db/db.h"

/* by: user, team (the label of that name, or else whose share a job used), pool, market, kind, day, week (its Monday), month, or
 * label:NAME; else ERR_INVALID. from and to count by the day that they are in, to by the one before if it is a midnight. user, pool:
 * only theirs; NULL: all. */
struct cost_query {
    const char *by, *user, *pool;
    struct wall from, to;
};

/* The key "" is what is no job's, or has no such label. */
struct cost_sum {
    char key[CORE_TEXT_MAX];
    int64_t jobs, succeeded; /* that ended then; of pools, markets and kinds it is not known: 0 */
    int64_t uusd, on_demand_uusd, useful_ms, lost_ms, total_ms;
    int64_t spent_uusd[LEDGER_KINDS];
};
typedef int (*db_cost_sum_fn)(void *ctx, const struct cost_sum *sum);
int db_read_cost_days(
    struct db_reader *r, const struct cost_query *c, db_cost_sum_fn fn, void *ctx, struct err *e);

#endif
