/* SPDX-License-Identifier: Apache-2.0
 *
 * What plan.c, launch.c and choice.c share.
 */
#ifndef BELAY_SCHEDULER_CORE_PLANNER_H
#define BELAY_SCHEDULER_CORE_PLANNER_H

#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/plan.h"

/* Room that demand may be put into when it is counted: a node, an instance on its way, or a launch
 * just planned. */
struct bin {
    struct resources free, total;
    struct stock stock;
    const struct offer *offer; /* NULL: of a node */
    const struct pool *pool;
    enum market market;
    int64_t uusd_h;                     /* of the whole machine */
    const struct node *node;            /* NULL: not up yet */
    const struct rack_nodes *rack_kind; /* NULL: it is in no rack */
    int64_t *left_w;                    /* of that; NULL likewise */
};

/* Jobs of one shape that need a place. */
struct demand {
    const struct shape *shape;
    const struct job *job;   /* one of them */
    int64_t n;               /* those that nothing covers yet */
    const struct pool *pool; /* only there; NULL: anywhere */
    bool moves;              /* they run already: no limit is in their way */
    /* of a gang: so many machines have to have the power for a rank each; 0: it is none */
    int64_t together;
    /* of that: what the rack of its pool has beside its ranks on nodes that are there */
    int64_t left_w;
};

/* A node that a job could wait for. */
struct candidate {
    int64_t at, node;
};

/* A job that could be evicted. */
struct victim {
    const struct job *job;
    int64_t over;    /* what its team has beyond its quota, in mcpu; 0 where that does not matter */
    bool saves;      /* it takes part in checkpoints, and is queued again after this end */
    int64_t unsaved; /* preemption_victims_unsaved */
};

struct planner {
    const char *decider; /* of the last event of plan_next; NULL: none yet */
    /* By the model's licences: the first place in the queue that would start but for some of it. */
    struct place wanting[LICENCES_MAX];
    bool is_wanting;
    int64_t wanting_change;     /* of the model, when that was so */
    int64_t left[LICENCES_MAX]; /* of one computation of launches: what is free of them */
    struct queue_walk walk;     /* scratch */
    struct map unfit;           /* kind id -> growth count at which it fitted nowhere */
    int64_t rewind;             /* of the model, when the cursor was set back */
    /* no shape that stands before it fits, but those that came into the queue since */
    struct place cursor;
    int64_t arrived; /* of the model, when that was so */
    /* kinds of which it was asked whether the first has a place, ever; for tests */
    int64_t n_tried;
    int64_t n_gathered; /* shapes that were looked at for what is to be launched, ever; likewise */
    /* Since the cursor was last behind all: as of this growth count no kind with an id below
     * `fresh` fitted anywhere, but perhaps some that ask for
     * licences; and the model's count `anew`. */
    struct seen {
        int64_t growth, fresh, anew;
    } seen, begun; /* begun: that is so when the cursor is there again */
    /* kinds are looked at whatever they need until it is there again: more than that has changed */
    bool is_all;
    /* of each resource the most that a node has free that has grown since */
    struct resources grown;
    int64_t gang[JOB_NODES_MAX];    /* of the last event that places one */
    int64_t reserve[JOB_NODES_MAX]; /* of the last event that reserves some */
    struct candidate *candidates;   /* scratch */
    size_t n_candidates;
    const struct attempt **running;
    size_t n_running;

    /* The launches called for when the model's change count was `change` and `base` launches had
     * been made; true until valid_until (when an avoided offer may be tried again; MONO_NONE: until
     * something changes).
     */
    int64_t change, base;
    struct mono valid_until;
    int64_t *launches; /* offers */
    size_t n_launches;
    int64_t *held; /* idle or not, nodes that a gang waits to have all of */
    size_t n_held;
    int64_t *settles; /* gangs that could have more nodes than they need, but there are no more */
    size_t n_settles;
    int64_t *moves; /* jobs whose attempts can go on where it costs less, at once */
    size_t n_moves;

    /* Nobody can be evicted for somebody else at this change count, with so many launches made,
     * until then. */
    int64_t preempt_change, preempt_launches;
    struct mono preempt_until;    /* MONO_NONE: until something changes */
    int64_t claim[JOB_NODES_MAX]; /* of the last event that makes a place */
    size_t n_cleared;             /* of one search: the first ones of them */
    int64_t *evict;
    size_t evict_max;
    int64_t *over; /* scratch of preemption_victims.c: by the index of an allowance */
    struct victim *victims, *offered;
    size_t n_victims, n_offered;
    struct stop *stops;
    size_t n_stops;

    /* scratch of one computation, kept for its memory */
    struct bin *bins;
    size_t n_bins;
    struct room *room; /* by the index of a pool: what it may still have */
    size_t n_room;
    struct room all;                  /* what all together may still have */
    int64_t left_w[RACKS_MAX];        /* by the index of a rack: what it may still draw */
    int64_t *planned;                 /* by the id of an offer: launches planned here */
    int64_t planned_max;              /* ids below have a place */
    int64_t *planned_in;              /* by the index of a pool: those of spot */
    int64_t budget_left[BUDGETS_MAX]; /* of each budget; INT64_MAX: it is in nobody's way */
    int64_t *headroom;          /* by the index of an allowance and by kind: what is left of it */
    const struct shape **gangs; /* that are in the queue, in its order */
    size_t n_gangs;
    struct demand *demands; /* jobs that have to move, then pending ones, in the queue's order */
    size_t n_demands;
};

/* Nodes for the first of those that a job of this shape is about to pass (reserve.c), or false:
 * they have some, or there are none for them. */
bool reserve_next(struct planner *p, const struct model *m, const struct shape *passing,
    struct stamp now, struct event *ret_event);
void reserve_deinit(struct planner *p);
/* ---- what is owed (preempt.c, preemption_victims.c) ---- */
/* The next place to be made for a job whose team it is owed to, or false. */
bool preempt_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
void preempt_deinit(struct planner *p);
/* Where a job of the shape could start if some that borrow, or (by_qos) are of classes that its own
 * preempts, gave up their places: s->least nodes into p->claim, the jobs into p->victims. False:
 * nowhere, whoever went. */
bool preemption_victims_choose(
    struct planner *p, const struct model *m, const struct shape *s, bool by_qos, struct stamp now);
/* What a running job would have to do again if it ended now without saving: cpus times
 * milliseconds. */
int64_t preemption_victims_unsaved(const struct job *j, struct wall now);
void preemption_victims_sort(struct victim *list, size_t n); /* who goes first stands first */

/* The next attempt to move, or false: none. */
bool moves_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
/* The next offer to launch, or false: none. After moves_next has said that there is nothing to
 * move. */
bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer);
void launches_deinit(struct planner *p);
/* A gang that waits is to start there as soon as it has the rest: as of the last moves_next or
 * gangs_look. */
bool gang_holds(const struct planner *p, int64_t node);
/* The next gang that is to start with what there is, or false. After launches_next has said that
 * there is nothing to launch. */
bool settles_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
void gangs_look(struct planner *p, const struct model *m, struct stamp now);

/* ---- one computation of launches (launch.c) ---- */

struct work {
    struct planner *p;
    const struct model *m;
    struct stamp now;
    size_t n_up;     /* bins of nodes: the first ones */
    size_t n_movers; /* demands of jobs that have to move: the first ones */
};

/* Until then what is computed stays true. */
void valid_until(struct work *w, int64_t mono_ms);

/* that a machine of it can, may be found out yet */
bool pool_serves(const struct pool *p, const struct shape *s);
bool bin_admits(const struct bin *b, const struct shape *s);
/* how often it fits, where it may go */
int64_t bin_times(const struct bin *b, const struct shape *s);
/* before they are put into it */
void bin_take_power(const struct bin *b, const struct shape *s, int64_t times);
/* How many jobs of the shape, at most n, the licences are enough for that are left; they are
 * taken. */
int64_t cover_licences(struct work *w, const struct shape *s, int64_t n);
/* an empty machine of it; left_w: of its pool's rack, if it is in one */
struct bin bin_of(const struct offer *o, int64_t *left_w);
/* Puts up to n jobs of this shape into one bin; returns how many found room. 0 where they may not
 * go. */
int64_t bin_fill(struct bin *b, const struct shape *s, int64_t n);

/* The machine is launched: the bin that it will be. */
struct bin *plan_launch(struct work *w, const struct offer *o);

/* ---- what limits leave (headroom.c) ---- */
void headroom_look(struct work *w);
/* How many of n jobs of a shape of one node; of n nodes of one job of several. */
int64_t headroom_jobs(struct work *w, const struct shape *s, int64_t n);
int32_t headroom_nodes(struct work *w, const struct shape *s, int32_t n);
/* of each job */
void headroom_take(struct work *w, const struct shape *s, int64_t jobs, int64_t nodes);

/* ---- gangs (gang.c) ---- */

/* Covers the gangs that wait, oldest first, and those that lose a node, each in one pool or not at
 * all: with room there is, which is then taken, and launches for what is missing. */
void cover_gangs(struct work *w);

/* ---- which offer (choice.c) ---- */

/* a machine of it may be launched now, whatever for */
bool offer_is_open(struct work *w, const struct offer *o);

/* For jobs of this shape as if nothing else waited, or NULL: none that may be launched now.
 * max_uusd_h: of each job's share; INT64_MAX: whatever it costs. */
const struct offer *choose_alone(struct work *w, const struct demand *d, int64_t max_uusd_h);
/* For the first of n >= 1 demands, which is not covered, with a look at the others; or NULL. */
const struct offer *choose_shared(struct work *w, const struct demand *d, size_t n);

#endif
