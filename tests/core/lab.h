/* SPDX-License-Identifier: Apache-2.0
 *
 * A small world for tests of the core: a model, a planner and a clock that the test advances.
 * model_check runs after every event; a lab_* function that applies an event fails the test if it
 * is refused.
 */
#ifndef BELAY_TESTS_CORE_LAB_H
#define BELAY_TESTS_CORE_LAB_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/plan.h"

#define LAB_LEASE_MS 30000
#define LAB_BOOT_MS 600000
#define LAB_IDLE_MS 120000
#define LAB_COOLDOWN_MS 60000
#define LAB_BACKOFF_MS 10000
#define LAB_NO_PROGRESS_MAX 3
#define LAB_SPOT_UUSD_H 1000000
#define LAB_ON_DEMAND_UUSD_H 3000000

#define LAB_LICENCES 2
extern const struct count lab_licences[LAB_LICENCES]; /* matlab: 4, ansys: 1 */

#define LAB_RACKS 3
/* left: 1000 W for power[1-3] and power-gpu, each 100 W idle and 500 W full; 400 W at rest. right:
 * 700 W for host and host-[2-4], each 100 to 300 W. below: 1000 W for the pool "racked" with 3
 * places, each 100 to 500 W. */
extern const struct rack_options lab_racks[LAB_RACKS];

struct lab {
    struct model *m;
    struct planner *p;
    struct stamp now;
    struct err e;
    struct changes c; /* of the last lab_take */
};

/* One reserved pool "base" at $0.50/h per node; the model is otherwise empty. */
void lab_init(struct lab *l);
/* with these teams, borrowed; NULL: as lab_init */
void lab_init_policy(struct lab *l, const struct queue_policy *policy);
void lab_init_budgets(struct lab *l, const struct queue_policy *policy,
    const struct budget_options *budgets, size_t n_budgets,
    int64_t store_uusd_gib_month); /* as lab_init */
void lab_init_procurement(struct lab *l, const struct procurement_options *procurement);
/* With a webhook for the event node-drained. */
void lab_init_failures(struct lab *l, const struct node_failures_options *options);
/* Leases outlast the test, so that days may pass without a heartbeat; a node of "base" costs
 * uusd_h. No licences, racks or egress prices. */
void lab_init_for_days(struct lab *l, const struct queue_policy *policy, int64_t uusd_h);
void lab_deinit(struct lab *l);
/* An elastic pool with one spot and one on-demand offer of the type, in zone "z1" of region
 * "r1". */
void lab_elastic(
    struct lab *l, const char *pool, int32_t max_nodes, const char *type, int32_t cpus);
int64_t lab_offer(struct lab *l, const char *pool, const char *type, enum market market,
    int32_t rank, struct resources total, int64_t uusd_h); /* returns its id */
int64_t lab_launches(const struct lab *l, int64_t offer);  /* number decided so far */
/* to be changed and applied again */
struct pool_row lab_pool(const struct lab *l, const char *name);
void lab_set_pool(struct lab *l, struct pool_row row);

/* Applies the event at the lab's time. Returns the result of core_apply; fails the test if an
 * invariant is broken. */
int lab_try(struct lab *l, struct event *ev, int64_t *ret_id);
int64_t lab_apply(struct lab *l, struct event ev); /* must succeed; returns the outcome's id */
void lab_wait(struct lab *l, int64_t ms);

/* A job row to change and submit: coop, one retry, any pool. */
struct job_row lab_job(int32_t cpus);
int64_t lab_submit(struct lab *l, const struct job_row *row);
/* The texts of a job that only exits with 0, with these labels (JSON, borrowed). */
struct job_texts lab_texts(const char *labels);
/* A submit is ERR_INVALID, and the reason contains these words. */
void lab_refused(struct lab *l, const struct job_row *row, const char *words);
/* constraints: format of core/placement/constraints.h. */
int64_t lab_submit_asking(struct lab *l, const struct job_row *row, const char *constraints);
/* Returns the result of the submit. */
int lab_try_asking(struct lab *l, const struct job_row *row, const char *constraints);
int64_t lab_submit_cpus(struct lab *l, int32_t cpus);
int64_t lab_submit_pool(struct lab *l, int32_t cpus, const char *pool, enum market_wish wish);
int64_t lab_submit_nodes(
    struct lab *l, int32_t nodes, int32_t cpus, int64_t limit_ms); /* limit_ms 0: none */
/* Joins a node of "base". */
int64_t lab_join(struct lab *l, const char *name, int32_t cpus);
int64_t lab_join_with(
    struct lab *l, const char *name, int32_t cpus, const char *features, const char *resources);
int64_t lab_join_instance(struct lab *l, int64_t instance, int32_t cpus); /* joins its machine */
/* Started, restored from last_good. */
void lab_started(struct lab *l, int64_t job);
/* 1000 bytes in 100 ms. */
void lab_saved(struct lab *l, int64_t job, int64_t sequence, int64_t progress);
/* Ends its live attempt. */
void lab_ended(struct lab *l, int64_t job, enum end_kind end, int32_t exit_code);
/* By ann. tasks: those of an array, as in "0-5"; NULL for the whole job. */
void lab_cancel(struct lab *l, int64_t job, const char *tasks);
void lab_notice(struct lab *l, int64_t node, enum notice_type kind, int64_t in_ms);
void lab_heartbeats(struct lab *l); /* of every node that is not lost */
void lab_launched(struct lab *l, int64_t instance);
/* Launches the instance and joins its machine; returns the node. */
int64_t lab_bring_up(struct lab *l, int64_t instance, int32_t cpus);

/* Applies decisions until there are none, querying each twice; checks the time of the next wake-up;
 * returns the count. A cleaning succeeds at once and is not counted. */
int lab_plan(struct lab *l);
/* No decision is due before plan_wake, and one is then. Call right after the last decision. */
void lab_check_wake(const struct lab *l);
bool lab_decision(struct lab *l, struct event *ret_event); /* the next one, without applying it */

/* Takes the changes since the last lab_take. */
void lab_take(struct lab *l);
/* Last row of this kind, or NULL. */
const struct history_row *lab_history(const struct lab *l, const char *kind);
const struct job_row *lab_row(const struct lab *l, int64_t job); /* last row of this job, or NULL */
const struct instance_row *lab_instance_row(const struct lab *l, int64_t instance);
/* The job that a task of the array has become; NULL before it has begun and after its end. */
struct job *lab_task(const struct lab *l, int64_t array, int32_t index);
int64_t lab_node_of(const struct lab *l, int64_t job); /* CORE_ID_NONE: not placed */
bool lab_runs(const struct lab *l, int64_t job);       /* it is placed */
/* `belay why` has a reason with this code, whose text contains words. Otherwise prints all
 * reasons. */
bool lab_has_reason(const struct lab *l, int64_t job, const char *code, const char *words);

/* The sum of the ledger's rows of this kind in the changes last taken. */
struct ledger_row lab_ledger_sum(const struct lab *l, enum ledger_kind kind);
/* Initialises l with a spot machine ($1/h, $3/h on-demand) of 4 CPUs that boots for a minute, with
 * the given jobs placed on it. */
void lab_start_rented(struct lab *l, int n_jobs, int32_t cpus);

double lab_cpu_s(void); /* processor time of this process: independent of other load */

#endif
