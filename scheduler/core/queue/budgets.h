/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets (budget.h) in the model, and the caps of jobs.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_H
#define BELAY_SCHEDULER_CORE_QUEUE_BUDGETS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* A budget (budget.h), or a job's own cap. */
struct budget {
    const struct budget_options *options; /* NULL: a job's own cap */
    struct job *job;                      /* of that; else NULL */
    int32_t index;                        /* among the model's; of a cap -1 */
    struct budget_row row;                /* of a cap: without a period */
    int64_t cap_uusd;
    enum budget_action at_limit;
    bool is_open;     /* in a period */
    bool is_loaded;   /* it was looked at in this life */
    bool is_recapped; /* and not since its cap is another */
    struct list stakes;
    /* As of `at`: */
    struct wall at;
    int64_t spent, uusd_h; /* and what that grows by an hour */
    /* likewise: what it will have spent when those that it parks have been saved and stopped */
    int64_t held, held_uusd_h;
    int64_t committed; /* what ended, and the most that its stakes may come to */
    /* a stake will have cost what was set aside for it; earlier: something is to be counted anew */
    struct wall look_at;
    struct wall due; /* when something is to be decided */
    struct tree_link by_due;
    int64_t fell; /* the model's growth count when there last came to be more left */
    struct link dirty;
};

void budgets_init(struct model *m, const struct budget_options *options, size_t n);
void budgets_destroy_all(struct model *m); /* before jobs and attempts */
int budgets_check(const struct model *m, struct err *e);
/* that it matches, but for the pool */
uint64_t budgets_of(const struct model *m, const struct job *j);
void budgets_describe(const struct model *m, const struct job *j, struct shape *want);
bool shape_pays(const struct shape *s); /* what it costs decides whether it may begin */
/* A job of the shape may begin in this pool on nodes that cost so much an hour together. */
bool budgets_afford(const struct shape *s, const struct pool *p, int64_t uusd_h);
/* Which of the three reasons there are: it costs more an hour than they take; more than is left of
 * their own cap; the first budget that has not enough left, or NULL. */
bool budgets_too_dear(const struct shape *s, int64_t uusd_h);
bool budgets_cap_lacks(const struct shape *s, const struct pool *p, int64_t uusd_h);
const struct budget *budgets_lacking(const struct shape *s, const struct pool *p, int64_t uusd_h);
/* That is set aside for one when it begins; input_uusd: what reading its input costs. */
int64_t budgets_needs(
    const struct budget *b, const struct shape *s, int64_t uusd_h, int64_t input_uusd);
/* for who is to begin; INT64_MAX: it is in nobody's way */
int64_t budgets_left(const struct budget *b);
int64_t budgets_fell(const struct shape *s); /* the latest fell of its budgets; -1: it has none */
/* A rank was placed, in its job's list and on its node; waited_uusd: what the node's wait for its
 * gang has cost. */
void budgets_placed(struct model *m, struct attempt *a, int64_t waited_uusd, struct wall now);
void budgets_attach(struct model *m, struct attempt *a); /* likewise: it was loaded */
/* its rows are written: it has cost so much in all */
void budgets_ended(struct model *m, struct attempt *a, int64_t cost, struct wall now);
/* So much was paid for what the store keeps of a job that matches them; j: NULL, it has ended. */
void budgets_stored(struct model *m, struct job *j, uint64_t budgets, int64_t uusd);
/* what it costs an hour is something else now */
void budgets_repriced(struct model *m, struct attempt *a);
/* it runs, and its max_uusd is something else now */
void budgets_recapped(struct model *m, struct job *j, struct wall now);
void budgets_rejoin(struct model *m, struct job *j, struct wall now); /* likewise its name */
struct mono budgets_next(const struct model *m, struct stamp now, struct event *ret_event);

#endif
