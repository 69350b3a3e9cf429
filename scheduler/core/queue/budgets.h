/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets (budget_options.h) in the model, and the caps of jobs.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_H
#define BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* A budget (budget_options.h), or a job's own cap. */
struct budget {
    const struct budget_options *options; /* NULL for a job's own cap */
    struct job *job;                      /* the job of a cap; else NULL */
    int32_t index;                        /* in the model's budgets; -1 for a cap */
    struct budget_row row;                /* of a cap: without a period */
    int64_t cap_uusd;
    enum budget_action at_limit;
    bool is_open;     /* in a period */
    bool is_loaded;   /* was examined in this process */
    bool is_recapped; /* its cap changed since the last examination */
    struct list stakes;
    /* As of `at`: */
    struct wall at;
    int64_t spent, uusd_h; /* spent, and its growth per hour */
    /* What it will have spent when the jobs that it parks have been saved and stopped; growth per
     * hour. */
    int64_t reserved, reserved_uusd_h;
    int64_t committed; /* ended cost plus the maximum of all stakes */
    /* When a stake will have used its reservation, or an earlier recount is needed. */
    struct wall recount_at;
    struct wall due; /* time of the next decision */
    struct tree_link by_due;
    int64_t freed_version; /* growth count of the model when the remaining amount last grew */
    struct link dirty;
};

void budgets_init(struct model *m, const struct budget_options *options, size_t n);
/* Other budgets. Those that count the same keep what they have counted. Call while no job is in a
 * shape, and budgets_rejoin_all when all are again. */
void budgets_renew(struct model *m, const struct budget_options *options, size_t n);
void budgets_rejoin_all(struct model *m);
/* The same options at another place. */
void budgets_move(struct model *m, const struct budget_options *options);
void budgets_destroy_all(struct model *m); /* call before jobs and attempts are destroyed */
int budgets_check(const struct model *m, struct err *e);
/* bit set of the budgets that it matches, disregarding the pool */
uint64_t budgets_of(const struct model *m, const struct job *j);
void budgets_describe(const struct model *m, const struct job *j, struct shape *want);
bool shape_pays(const struct shape *s); /* whether its cost limits where it may start */
/* Whether a job of the shape may start in this pool on nodes with this total hourly cost. */
bool budgets_afford(const struct shape *s, const struct pool *p, int64_t uusd_h);
/* Which of the reasons applies: exceeds their maximum hourly cost; exceeds the rest of their own
 * cap; the first budget with too little left, or NULL. */
bool budgets_exceed_price(const struct shape *s, int64_t uusd_h);
bool budgets_cap_lacks(const struct shape *s, const struct pool *p, int64_t uusd_h);
const struct budget *budgets_lacking(const struct shape *s, const struct pool *p, int64_t uusd_h);
/* Amount reserved for one job at its start; input_uusd is the cost of reading its input. */
int64_t budgets_needs(
    const struct budget *b, const struct shape *s, int64_t uusd_h, int64_t input_uusd);
/* Rest for jobs that start; INT64_MAX if it never stops jobs. */
int64_t budgets_left(const struct budget *b);
/* the latest `freed_version` of its budgets; -1 without budgets */
int64_t budgets_freed_version(const struct shape *s);
/* A rank was placed; it is in its job's list and on its node. waited_uusd: cost of the node while
 * it waited for its gang. */
void budgets_placed(struct model *m, struct attempt *a, int64_t waited_uusd, struct wall now);
/* a rank was loaded; otherwise as placed */
void budgets_attach(struct model *m, struct attempt *a);
/* Its ledger rows are written; cost is its total. */
void budgets_ended(struct model *m, struct attempt *a, int64_t cost, struct wall now);
/* Storage cost of a job that matches these budgets; j is NULL if it has ended. */
void budgets_stored(struct model *m, struct job *j, uint64_t budgets, int64_t uusd);
/* its hourly cost changed */
void budgets_repriced(struct model *m, struct attempt *a);
/* max_uusd of a running job changed */
void budgets_recapped(struct model *m, struct job *j, struct wall now);
void budgets_rejoin(struct model *m, struct job *j, struct wall now); /* its name changed */
struct mono budgets_next(const struct model *m, struct stamp now, struct event *ret_event);

#endif
