/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: what it remembers between two decisions (what did not fit, the computed launches),
 * and its scratch. Shared by plan.c and the files that decide for it, in placement/, supply/ and
 * deadline/.
 */
#ifndef BELAY_SCHEDULER_CORE_PLANNER_H
#define BELAY_SCHEDULER_CORE_PLANNER_H

#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/plan.h"

/* Capacity for demand in the computation of launches: a node, a coming instance, or a planned
 * launch. */
struct bin {
    struct resources free, total;
    struct stock stock;
    const struct offer *offer; /* NULL for a node */
    const struct pool *pool;
    enum market market;
    int64_t uusd_h;                     /* of the whole machine */
    struct wall ready_at;               /* when it is up, as expected */
    const struct node *node;            /* NULL: not up yet */
    const struct rack_nodes *rack_kind; /* NULL: in no rack */
    int64_t *left_w;                    /* of the rack; may be NULL */
};

/* Jobs of one shape that need a place. */
struct demand {
    const struct shape *shape;
    const struct job *job;   /* one of them */
    int64_t n;               /* not covered yet */
    const struct pool *pool; /* restriction to a pool; may be NULL */
    bool moves;              /* they run already: limits do not apply */
    /* Gang: number of machines that must have power for a rank each; else 0. */
    int64_t together;
    /* Gang: power left in its pool's rack, with its ranks on existing nodes. */
    int64_t left_w;
};

/* A node that a job could wait for. */
struct candidate {
    int64_t at, node;
};

/* A job that could be preempted. */
struct victim {
    const struct job *job;
    int64_t over;    /* usage of its team beyond its quota, in mcpu; 0 where irrelevant */
    bool saves;      /* takes checkpoints, and is requeued after this end */
    int64_t unsaved; /* preemption_victims_unsaved */
};

struct planner {
    const char *decider; /* of the last event of plan_next; NULL: none yet */
    /* Per licence of the model: the first queue position that lacks only licences, including this
     * one. */
    struct queue_position wanting[LICENCES_MAX];
    bool is_wanting;
    int64_t wanting_change;     /* change count of the model at that time */
    int64_t left[LICENCES_MAX]; /* free licences during one computation of launches */
    struct queue_walk walk;     /* scratch */
    struct map unfit;           /* class id -> growth count at which it fitted nowhere */
    int64_t rewind;             /* of the model, when the cursor was moved back */
    /* no shape before it fits, except ones that entered the queue since */
    struct queue_position cursor;
    int64_t arrived; /* arrivals count of the model at that time */
    /* total number of classes tried for a place; for tests */
    int64_t n_tried;
    int64_t n_gathered; /* total number of shapes examined for launches; for tests */
    /* When the cursor last passed the end: at this growth count no class with an id below `fresh`
     * fitted anywhere, except perhaps ones that need licences; and the model's count
     * `retry_all`. */
    struct seen {
        int64_t growth, fresh, retry_all;
    } seen, begun; /* begun: becomes valid when the cursor passes the end again */
    /* all classes are examined until the cursor passes the end: more than growth has changed */
    bool is_all;
    /* maximum free amount of each resource over grown nodes */
    struct resources grown;
    int64_t gang[JOB_NODES_MAX];    /* nodes of the last place event */
    int64_t reserve[JOB_NODES_MAX]; /* nodes of the last reserve event */
    struct candidate *candidates;   /* scratch */
    size_t n_candidates;
    const struct attempt **running;
    size_t n_running;

    /* The launches computed at change count `change` after `base` launches. Valid until valid_until
     * (when an avoided offer may be tried again; MONO_NONE: until a change). */
    int64_t change, base;
    struct mono valid_until;
    int64_t *launches; /* offers */
    size_t n_launches;
    /* nodes that a gang earmarks until it has all of them, or that a job will move to */
    int64_t *earmarked;
    size_t n_earmarked;
    /* gangs that could use more nodes than their minimum, but no more are available */
    int64_t *settles;
    size_t n_settles;
    int64_t *moves; /* jobs that can continue at a lower cost at once */
    size_t n_moves;
    struct prefetch_pair { /* nodes to which jobs will move and that are not asked yet */
        int64_t job, attempt, node;
    } * prefetches;
    size_t n_prefetches;

    /* No preemption is possible at this change count and number of launches, until
     * preempt_until. */
    int64_t preempt_change, preempt_launches;
    struct mono preempt_until;    /* MONO_NONE: until a change */
    int64_t claim[JOB_NODES_MAX]; /* nodes of the last preempt event */
    size_t n_cleared;             /* of one search: the first ones of them */
    int64_t *evict;
    size_t evict_max;
    int64_t *over; /* scratch of preemption_victims.c, by the index of an allowance */
    struct victim *victims, *offered;
    size_t n_victims, n_offered;
    struct clearable_node *clearable;
    size_t n_clearable;

    /* scratch of one computation, reused */
    struct bin *bins;
    size_t n_bins;
    struct capacity *capacity; /* by the index of a pool: what is left */
    size_t n_capacity;
    struct capacity all;              /* left over all pools */
    int64_t left_w[RACKS_MAX];        /* by the index of a rack: power left */
    int64_t *planned;                 /* by the id of an offer: planned launches */
    int64_t planned_max;              /* ids below have an entry */
    int64_t *planned_in;              /* by the index of a pool: planned spot launches */
    int64_t budget_left[BUDGETS_MAX]; /* per budget; INT64_MAX: it never stops jobs */
    int64_t *headroom;                /* by the index of an allowance and by kind: what is left */
    const struct shape **gangs;       /* queued gangs, in order */
    size_t n_gangs;
    struct demand *demands; /* jobs that must move, then pending ones in queue order */
    size_t n_demands;
};

/* Nodes for the first of the shapes that a job of this shape is about to pass (reserve.c); false:
 * they have some, or there are none for them. */
bool reserve_next(struct planner *p, const struct model *m, const struct shape *passing,
    struct stamp now, struct event *ret_event);
void reserve_deinit(struct planner *p);
/* ---- preemption (preempt.c, preemption_victims.c) ---- */
/* The next place to be made by preemption, or false. */
bool preempt_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
void preempt_deinit(struct planner *p);
/* Where a job of the shape could start by preemption of borrowing jobs, or (by_qos) of jobs of
 * a QOS that its QOS preempts: s->least nodes into p->claim, the victims into p->victims. False:
 * nowhere. */
bool preemption_victims_choose(
    struct planner *p, const struct model *m, const struct shape *s, bool by_qos, struct stamp now);
/* Work lost if the job ended now without a save: cpus times milliseconds. */
int64_t preemption_victims_unsaved(const struct job *j, struct wall now);
void preemption_victims_sort(struct victim *list, size_t n); /* preferred victims first */

/* The next node that is to fetch a checkpoint, or false. Call before moves_next. */
bool prefetch_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
/* The next attempt to move, or false. */
bool moves_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
/* The next offer to launch, or false. Call after moves_next returned false. */
bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer);
void launches_deinit(struct planner *p);
/* A waiting gang or a job that moves has earmarked the node for its start, as of the last
 * moves_next or earmarks_refresh. */
bool node_is_earmarked(const struct planner *p, int64_t node);
/* The next gang to start with the available nodes, or false. Call after launches_next returned
 * false. */
bool settles_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
void earmarks_refresh(struct planner *p, const struct model *m, struct stamp now);

/* ---- one computation of launches (launch.c) ---- */

struct work {
    struct planner *p;
    const struct model *m;
    struct stamp now;
    size_t n_up;     /* number of bins of nodes, which come first */
    size_t n_movers; /* number of demands of jobs that must move, which come first */
};

/* Limits the validity of the computation. */
void limit_validity(struct work *w, int64_t mono_ms);

/* a machine of it may; unknown CRIU support counts as supported */
bool pool_serves(const struct pool *p, const struct shape *s);
bool bin_admits(const struct bin *b, const struct shape *s);
/* how many times it fits, if it may go there */
int64_t bin_times(const struct bin *b, const struct shape *s);
/* call before putting jobs into the bin */
void bin_take_power(const struct bin *b, const struct shape *s, int64_t times);
/* How many jobs of the shape, at most n, the remaining licences suffice for; takes them. */
int64_t cover_licences(struct work *w, const struct shape *s, int64_t n);
/* An empty machine of the offer; left_w: of its pool's rack, if it is in one. */
struct bin bin_of(const struct offer *o, int64_t *left_w, struct wall now);
/* Puts up to n jobs of the shape into the bin; returns how many fit. 0 where they may not go. */
int64_t bin_fill(struct bin *b, const struct shape *s, int64_t n);

/* Plans a launch; returns its bin. */
struct bin *plan_launch(struct work *w, const struct offer *o);

/* ---- rest of limits (headroom.c) ---- */
void headroom_compute(struct work *w);
/* How many of n single-node jobs, or of the n nodes of one gang, the limits allow. */
int64_t headroom_jobs(struct work *w, const struct shape *s, int64_t n);
int32_t headroom_nodes(struct work *w, const struct shape *s, int32_t n);
/* nodes: of each job */
void headroom_take(struct work *w, const struct shape *s, int64_t jobs, int64_t nodes);

/* ---- gangs (launch_gang.c) ---- */

/* Covers waiting gangs, oldest first, and gangs that lose a node, each in one pool or not at all:
 * with existing capacity, which is then taken, and launches for the rest. */
void cover_gangs(struct work *w);

/* Launches what is missing of the pools' base loads (base_load.c). Call after demand is covered. */
void cover_base_load(struct work *w);

/* ---- choice of an offer (choose_offer.c) ---- */

/* A machine of it may be launched now, for any job. */
bool offer_is_open(struct work *w, const struct offer *o);

/* For jobs of this shape alone, or NULL if none may be launched now. max_uusd_h: maximum cost of
 * each job's share; INT64_MAX = unlimited. */
const struct offer *choose_for_single(struct work *w, const struct demand *d, int64_t max_uusd_h);
/* For the first of n >= 1 demands, which is not covered, considering the others; or NULL. */
const struct offer *choose_shared(struct work *w, const struct demand *d, size_t n);
/* For a machine of the pool that no job has asked for, or NULL. */
const struct offer *choose_for_base(struct work *w, const struct pool *p);

#endif
