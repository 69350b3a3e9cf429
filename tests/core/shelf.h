/* SPDX-License-Identifier: Apache-2.0
 *
 * A database of nothing but arrays: keeps the last row of everything that changed, as db/ would,
 * and holds the promises against it. Every shelf_put fails the test when a row contradicts what was
 * written before.
 */
#ifndef BELAY_TESTS_CORE_SHELF_H
#define BELAY_TESTS_CORE_SHELF_H

#include "tests/core/lab.h"

struct shelf_sums {
    int64_t ms, node_ms, uusd, on_demand_uusd;
};

struct shelf {
    const struct order_options *order; /* of what is loaded; NULL: order_defaults */
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
    struct drill_row *drills; /* of each the last */
    size_t n_drills;
    struct account_row *accounts; /* of each the last */
    size_t n_accounts;
    int64_t lease_ms;                            /* 0: LAB_LEASE_MS */
    const struct budget_options *budget_options; /* of what is loaded */
    size_t n_budget_options;
    struct budget_row *budgets; /* of each the last */
    size_t n_budgets;
    struct array_row *arrays; /* of each the last */
    size_t n_arrays;
    struct dependency_row *depends; /* of each the last */
    size_t n_depends;
    struct constraints_row *constraints; /* all that were told */
    size_t n_constraints;
    struct ckpt_gc_row *ckpt_gc; /* by job */
    size_t n_ckpt_gc;
    struct stored_row *stored; /* likewise */
    size_t n_stored;
    int64_t store_uusd_gib_month;
    int64_t last_history;
    struct model_counters counters;
};

void shelf_deinit(struct shelf *s);
/* Ended jobs stay ended, checkpoints grow, one live attempt a job, the ledger of an ended instance,
 * or of a node that nobody rented out, adds up to its life and its cost. */
void shelf_put(struct shelf *s, const struct changes *c);
/* Every row of the model is on the shelf as it is, and nothing live is on the shelf that is not in
 * the model.
 */
void shelf_compare(const struct shelf *s, const struct model *m);
/* What is stored of the tasks of an array, as belayd's API reads it; NULL: it is none. The caller's
 * to free, and its bits. */
struct array_ends *shelf_array_ends(const struct shelf *s, int64_t job);
struct model *shelf_load(const struct shelf *s, struct stamp now);

#endif
