/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads spending from the sums by UTC day and month that are kept with the ledger (rollup.c).
 */
#ifndef BELAY_DB_COST_SUMS_H
#define BELAY_DB_COST_SUMS_H

#include "db/db.h"

#define COST_KEYS_MAX 4
#define COST_IDLE_OWNED "(idle, owned)" /* neither a user nor a team: they are names */
#define COST_BY_MAX (COST_KEYS_MAX * (CORE_NAME_MAX + 8))

/* by: one to COST_KEYS_MAX, separated by commas, of user, team (the label of that name, or else
 * whose share a job used), pool, type (of the machine, or the hardware of a reserved node), market,
 * kind, day, week (its Monday), month, label:NAME and project, which is short for label:project;
 * else ERR_INVALID. from and to are extended to whole UTC days; a `to` at midnight excludes the day
 * that begins then. Idle time of owned machines belongs to nobody. Of the keys user, team and label
 * the one that by names first is then COST_IDLE_OWNED. user, team and pool restrict the sums;
 * NULL = all. */
struct cost_query {
    const char *by, *user, *team, *pool;
    struct wall from, to;
};

/* The sums. jobs and succeeded count the jobs that ended in the period; by pool, type, market and
 * kind they are unknown: all are counted in lines where that key is "". For one pool they are
 * unknown in any case: 0. */
struct cost_sum {
    int64_t jobs, succeeded;
    int64_t uusd, on_demand_uusd, useful_ms, lost_ms, total_ms;
    int64_t spent_uusd[LEDGER_KINDS];
};

/* keys has a value for each key of by, borrowed for the call. "" stands for costs of no job, and
 * for jobs without the label. Called in the order of these values. */
typedef int (*db_cost_sum_fn)(void *ctx, const char *const keys[], const struct cost_sum *sum);
int db_read_cost_sums(
    struct db_reader *r, const struct cost_query *c, db_cost_sum_fn fn, void *ctx, struct err *e);

/* Reads the most expensive jobs that ended from one moment to before another (WALL_NONE = open), in
 * descending order; of a user, of a team that is charged (as above), or of all (NULL). limit: 1 ..
 * 1000, else ERR_INVALID. */
struct costly_job {
    int64_t id;
    struct job_ref ref;
    const char *name, *user, *team, *end; /* borrowed for the call */
    int64_t uusd, on_demand_uusd, lost_ms, reclaims;
    struct wall ended_at;
};
typedef int (*db_costly_job_fn)(void *ctx, const struct costly_job *job);
int db_read_costliest_jobs(struct db_reader *r, const struct cost_query *c, int32_t limit,
    db_costly_job_fn fn, void *ctx, struct err *e);

/* Returns the number of keys in by, and whether the number of ended jobs is known for them;
 * ERR_INVALID as above. */
int db_cost_keys(const char *by, bool *ret_jobs_known, struct err *e);

#endif
