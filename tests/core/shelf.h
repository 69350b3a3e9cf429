/* SPDX-License-Identifier: Apache-2.0
 *
 * A database in arrays: keeps the last row of everything that changed, as db/ would, and checks the
 * promises against it. shelf_put fails the test if a row contradicts earlier ones.
 */
#ifndef BELAY_TESTS_CORE_SHELF_H
#define BELAY_TESTS_CORE_SHELF_H

#include "tests/core/lab.h"

struct shelf_sums {
    int64_t ms, node_ms, uusd, on_demand_uusd;
};

struct shelf {
    const struct queue_policy *policy; /* used by loads; NULL: queue_policy_defaults */
    struct job_row *jobs;
    struct attempt_row *attempts;
    struct node_row *nodes;
    struct instance_row *instances;
    struct pool_row *pools;
    struct offer_row *offers;
    size_t n_jobs, n_attempts, n_nodes, n_instances, n_pools, n_offers;
    struct shelf_sums *by_job, *by_instance, *by_node; /* of the ledger, by id */
    size_t n_by_job, n_by_instance, n_by_node;
    struct ckpt_ref *newest; /* checkpoint of each job, by id */
    size_t n_newest;
    const struct node_failures_options *failing; /* used by loads; may be NULL */
    struct node_failure_row *node_failures;      /* the last row of each place; not removed ones */
    size_t n_node_failures;
    struct drill_row *drills; /* the last row of each */
    size_t n_drills;
    struct account_row *accounts; /* the last row of each */
    size_t n_accounts;
    int64_t lease_ms;                            /* 0: LAB_LEASE_MS */
    const struct budget_options *budget_options; /* used by loads */
    size_t n_budget_options;
    struct budget_row *budgets; /* the last row of each */
    size_t n_budgets;
    struct array_row *arrays; /* the last row of each */
    size_t n_arrays;
    struct dependency_row *depends; /* the last row of each */
    size_t n_depends;
    struct constraints_row *constraints; /* all rows */
    size_t n_constraints;
    struct ckpt_gc_row *ckpt_gc; /* by job */
    size_t n_ckpt_gc;
    struct stored_row *stored; /* by job */
    size_t n_stored;
    int64_t store_uusd_gib_month;
    int64_t last_history;
    struct model_counters counters;
};

void shelf_deinit(struct shelf *s);
/* Ended jobs stay ended, checkpoints grow, a job has one live attempt, and the ledger of an ended
 * instance or reserved node adds up to its life and its cost. */
void shelf_put(struct shelf *s, const struct changes *c);
/* Every row of the model is on the shelf unchanged, and every live row on the shelf is in the
 * model. */
void shelf_compare(const struct shelf *s, const struct model *m);
/* Stored ends of an array's tasks, as belayd's API reads them; NULL: not an array. The caller frees
 * it and its bits. */
struct array_ends *shelf_array_ends(const struct shelf *s, int64_t job);
struct model *shelf_load(const struct shelf *s, struct stamp now);
/* Stores what has changed and loads it again, as after a crash: the model is the same. */
void shelf_restart(struct shelf *s, struct lab *l);

#endif
