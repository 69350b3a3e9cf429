/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue. Jobs with the same demand are a shape; shapes that fit together or not at all are a
 * demand class.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_QUEUE_H
#define BELAY_SCHEDULER_CORE_QUEUE_QUEUE_H

#include "scheduler/core/model/model.h"
#include "scheduler/core/placement/constraints.h"

struct model;
struct shape;
struct budget;
struct labels;
struct constraints;

/* Position of a shape in the queue. Positions are unique. */
struct queue_position {
    int64_t at_16, head;
};

/* A shape in the queue, or among the throttled ones. Has only what a search reads, in one cache
 * line. */
struct queue_entry {
    struct tree_link link;    /* in the shapes of its class, or in throttled of `throttled_by` */
    struct queue_position at; /* copy of the shape's position at insertion */
    struct shape *shape;
};

/* Shapes that fit together or not at all, of any account. Where cost limits matter, of one user or
 * team; under a quota, of one team. Only the first shape of a class in the queue is tried for a
 * place: if it does not fit, no later one does, since nodes with a reservation accept jobs ahead
 * of it. A shape with claims in progress is a class of its own until they are complete. The
 * planner's work thus grows with the number of demand classes and of teams with a quota, not with
 * the number of users. */
struct demand_class {
    struct tree_link in_demand_classes; /* while it has shapes in the queue; by at */
    struct queue_position at;           /* position of its first shape */
    struct resources need;              /* of one node, for each job */
    /* Minimum of each resource over it and its subtree of in_demand_classes. */
    struct resources least;
    int64_t newest; /* highest id in that subtree */
    /* Never reused; changes when a shape gets ahead of all others of the class. */
    int64_t id;
    struct shape *first;      /* its first shape; NULL if none is queued */
    struct team *team;        /* the team of all its shapes, if that has a quota; else NULL */
    struct tree_link in_team; /* in the team's queue; by at */
    struct tree shapes;       /* queued shapes, by position */
    int64_t n_shapes;         /* all shapes, queued or not */
};

/* A QOS. */
struct qos {
    const struct policy_qos *policy;
    int32_t index;     /* in the options */
    int64_t running;   /* its running jobs */
    struct tree queue; /* preempting QOS: its queued shapes, by position */
};

/* Position of a job within its shape. */
struct position {
    int64_t since_ms, id;
};

/* Jobs of one account with the same demand. */
struct shape {
    /* Of its first job: effective submit time, in sixteenths of a wall millisecond. */
    int64_t position_16;
    int64_t head; /* id of the first pending job */
    struct demand_class *demand_class;
    struct queue_entry *entry; /* NULL for a hypothetical (what-if) shape */
    /* NULL: not throttled; it is in the queue if it has pending jobs */
    struct allowance *throttled_by;
    struct tree_link in_qos;               /* in the queue of its QOS */
    int64_t id;                            /* never reused */
    struct resources need;                 /* of one node */
    const struct constraints *constraints; /* further demands; may be NULL */
    const struct labels *labels;           /* label names; may be NULL */
    /* More than 1: gang on this many nodes of one pool, all at once. */
    int32_t nodes;
    int32_t least;                     /* current minimum of nodes, 1 .. nodes */
    int64_t mcpu;                      /* usage of one node; exclusive: at least */
    const struct queue_policy *policy; /* defines the usage */
    /* Its jobs with preemptions in progress; the nodes in `reserved` are for those. */
    int64_t claims;
    int64_t owner;            /* its only job, for which nodes are kept; CORE_ID_NONE */
    char pool[CORE_NAME_MAX]; /* as in the jobs' spec */
    enum market_wish wish;
    enum procurement procurement;
    int64_t procurement_offer;    /* as in struct job_side */
    int64_t avoid;                /* node to avoid; CORE_ID_NONE */
    struct wall certified_at;     /* WALL_NONE: no certificate */
    uint64_t in_budgets;          /* 1 << i: matching budgets, disregarding the pool */
    const struct budget *budgets; /* the model's budgets */
    int64_t max_uusd_h;           /* as in the jobs' spec */
    bool is_capped;               /* the jobs have a cap of their own */
    int64_t left_uusd;            /* rest of that cap */
    /* Its jobs can be saved and resumed. Set, like expect_ms, only if a budget or cap applies. */
    bool can_park;
    int64_t expect_ms;      /* expected maximum run time */
    enum criu_ability criu; /* required of its node; CRIU_UNKNOWN: not needed */
    bool is_apart;          /* a demand class of its own, while it has claims */
    struct account *account;
    struct qos *qos;                        /* may be NULL */
    int64_t boost_ms;                       /* of its QOS and size */
    int64_t limit_ms;                       /* time limit of its jobs; 0 = unknown */
    bool can_drain;                         /* job_can_drain */
    uint64_t open_to;                       /* maintenance_open_to; decides its demand class */
    struct maintenance *const *maintenance; /* the model's reservations */
    struct list reserved;                   /* nodes reserved for its first job */
    int64_t reserved_until;
    /* reserve_epoch of the model at the last search for nodes; 0: not yet for this job */
    int64_t reserve_tried;
    struct link by_reserve; /* after such a search */
    int64_t n_jobs;         /* pending and running */
    int64_t n_wanted;       /* places that the pending ones could use */
    struct tree pending;    /* struct job by since and id: requeued jobs keep their position */
    struct position last;   /* no pending job is after this */
    struct link by_arrival; /* while queued: latest arrival first */
    struct link in_gangs;   /* while queued and of several nodes; unordered */
    int64_t arrived;        /* the model's count of arrivals at that time */
};

void queue_init(struct model *m);
void queue_deinit(struct model *m);
/* Describes the job's shape into a struct that is in no list. */
void queue_describe(const struct model *m, const struct job *j,
    const struct constraints *constraints, struct shape *ret_shape);
int64_t queue_round_up(int64_t ms, int bits);      /* to this many binary digits */
void queue_adopt(struct model *m, struct job *j);  /* assigns a shape to a new job */
void queue_add(struct model *m, struct job *j);    /* PENDING, and eligible */
void queue_remove(struct model *m, struct job *j); /* no-op if not queued */
/* Call when job_width may have changed; no-op if not queued. */
void queue_widen(struct model *m, struct job *j);
void queue_disown(struct model *m, struct job *j); /* the job leaves the model */
/* Its avoided node or its certificate changed. */
void queue_reshape(struct model *m, struct job *j);
/* Takes the shape with all its jobs out of the queue. */
void queue_throttle(struct model *m, struct shape *s, struct allowance *by);
void queue_unthrottle(struct model *m, struct shape *s); /* returns it to the queue */
struct shape *queue_first_throttled(const struct allowance *w);
struct shape *queue_next_throttled(const struct shape *s);
struct queue_position queue_position_of(const struct shape *s);
int queue_position_order(struct queue_position a, struct queue_position b); /* < 0: a is before b */
/* The first class at or after this position. */
struct demand_class *queue_class_at_least(const struct model *m, struct queue_position at);
struct demand_class *queue_next_class(const struct demand_class *k);
/* The first class at or after this position whose least need fits into these resources, or whose id
 * is at least `fresh`; NULL if none. Skips whole subtrees of others. */
struct demand_class *queue_class_within(const struct model *m, struct queue_position at,
    const struct resources *available, int64_t fresh);
bool demand_class_sums_agree(const struct demand_class *k); /* for model_check */
struct shape *queue_next_in_class(const struct shape *s);   /* it must be queued */
/* Recomputes the position of every shape from its account's current share. */
void queue_order(struct model *m);
struct demand_class *queue_first_of(const struct team *t); /* queued, of a team with a quota */
struct demand_class *queue_next_of(const struct demand_class *k);
/* Reservations have changed: sets open_to of all shapes. */
void queue_reclassify(struct model *m);
/* It got its first claim, or lost its last one. */
void queue_set_apart(struct model *m, struct shape *s, bool is_apart);
bool queue_is_in_its_class(const struct model *m, const struct shape *s); /* for model_check */
/* Queued, of a preempting QOS. */
struct shape *queue_first_of_qos(const struct qos *q);
struct shape *queue_next_of_qos(const struct shape *s);

#endif
