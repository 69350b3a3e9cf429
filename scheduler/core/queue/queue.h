/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: jobs of one demand are a shape, shapes that fit together or not at all are a kind.
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

/* Where a shape stands in the queue: two never stand at the same. */
struct place {
    int64_t at_16, head;
};

/* A shape in the queue, or among those throttled: what a search there reads, and nothing else, in
 * one line of the processor's cache. */
struct queue_entry {
    struct tree_link link; /* in the shapes of its kind, or in throttled of `throttled_by` */
    struct place at;       /* as it was filed: that of the shape */
    struct shape *shape;
};

/* Shapes that fit together or not at all, whoever's they are: where a limit of cost makes a
 * difference, those of one user or team, and under a quota those of one team. Of those in the queue
 * only the first is ever looked at for a place, for behind it none can fit where it does not: nodes
 * that are kept for somebody let those before that pass. One that places are being made for
 * (claims) is a kind of its own until it has them. So the planner's work grows with the kinds of
 * demand, and with how many teams have a quota, not with who asks. */
struct demand_class {
    struct tree_link in_demand_classes; /* while shapes of it are in the queue; by at */
    struct place at;                    /* of the first of them */
    struct resources need;              /* of one node, of each */
    /* of it and all below it in that tree: of each resource the least that one needs, */
    struct resources least;
    int64_t newest; /* and the highest id */
    /* never given twice; another one when a shape comes to stand before all others of it */
    int64_t id;
    struct shape *first;      /* of them; NULL: none */
    struct team *team;        /* whose they all are, if it has a quota; or NULL */
    struct tree_link in_team; /* in its queue; by at */
    struct tree shapes;       /* those in the queue, by place */
    int64_t n_shapes;         /* all */
};

/* A QOS. */
struct qos_class {
    const struct order_qos *qos;
    int32_t index;     /* in the options */
    int64_t running;   /* jobs of it */
    struct tree queue; /* of one that preempts: its shapes that are in the queue, in that order */
};

/* Where a job stands among those of its shape. */
struct position {
    int64_t since_ms, id;
};

/* The jobs of one account that ask for the same. */
struct shape {
    /* of the head: when it was as good as submitted, in sixteenths of a wall millisecond */
    int64_t place_16;
    int64_t head; /* id of the first pending */
    struct demand_class *demand_class;
    struct queue_entry *entry;             /* NULL: it is only a question */
    struct allowance *throttled_by;        /* NULL: it is in the queue, if it has pending jobs */
    struct tree_link in_class;             /* in its class's */
    int64_t id;                            /* never given twice */
    struct resources need;                 /* of one node */
    const struct constraints *constraints; /* what they ask for beside that; NULL: nothing */
    const struct labels *labels;           /* names that they have; NULL: none */
    /* over 1: on so many different nodes of one pool at once, or not at all ... */
    int32_t nodes;
    int32_t least;                     /* ... or, for now, on so many: 1 .. nodes */
    int64_t mcpu;                      /* that one node of it takes; exclusive: at least */
    const struct order_options *order; /* by which that is counted */
    /* its jobs that places are being made for: the nodes in `reserved` are for those */
    int64_t claims;
    int64_t owner;            /* the one job of it, for which nodes are kept; CORE_ID_NONE */
    char pool[CORE_NAME_MAX]; /* as the jobs have it */
    enum market_wish wish;
    enum procurement procurement;
    int64_t procurement_offer;    /* as the job has it */
    int64_t avoid;                /* node that is not for them; CORE_ID_NONE */
    struct wall certified_at;     /* WALL_NONE: none of them has a certificate */
    uint64_t in_budgets;          /* 1 << i: those that they match, but for the pool, of ... */
    const struct budget *budgets; /* ... these, the model's */
    int64_t max_uusd_h;           /* as the jobs have it */
    bool is_capped;               /* they have caps of their own, of which ... */
    int64_t left_uusd;            /* ... so much is left */
    /* they can be saved, and go on; known like the next where one of those counts */
    bool can_park;
    int64_t expect_ms;      /* they are expected to run for so long at most */
    enum criu_ability criu; /* at least that of its node; CRIU_UNKNOWN: it does not need it */
    bool is_apart;          /* it is a kind of its own: places are being made for it */
    struct account *account;
    struct qos_class *class; /* NULL: of none */
    int64_t boost_ms;        /* of its QOS and size */
    int64_t limit_ms;        /* they run for so long at most; 0: nobody says */
    struct list reserved;    /* nodes kept for its first job */
    int64_t reserved_until;
    /* the model's reserve_epoch when nodes were last looked for; 0: not for this job */
    int64_t reserve_looked;
    struct link by_reserve; /* once they were */
    int64_t n_jobs;         /* pending and running */
    int64_t n_wanted;       /* places that the pending ones could use */
    struct tree pending;    /* struct job by since and id: requeued ones in their old place */
    struct position last;   /* none of those pending stands behind that */
    struct link by_arrival; /* while it is in the queue: the last to come first */
    struct link in_gangs;   /* likewise, of one of several nodes; in no order */
    int64_t arrived;        /* the model's count of arrivals at that moment */
};

void queue_init(struct model *m);
void queue_deinit(struct model *m);
/* The shape that the job is of, which is in no list. */
void queue_describe(const struct model *m, const struct job *j,
    const struct constraints *constraints, struct shape *ret_shape);
int64_t queue_round_up(int64_t ms, int bits);      /* to so many binary digits */
void queue_adopt(struct model *m, struct job *j);  /* gives a new job its shape */
void queue_add(struct model *m, struct job *j);    /* PENDING again, or at last */
void queue_remove(struct model *m, struct job *j); /* harmless when it is not in */
/* what it wants may be another number; harmless when it is not in */
void queue_widen(struct model *m, struct job *j);
void queue_disown(struct model *m, struct job *j); /* the job leaves the model */
/* what it avoids, or its certificate, has changed */
void queue_reshape(struct model *m, struct job *j);
/* out of the queue, with all its jobs */
void queue_throttle(struct model *m, struct shape *s, struct allowance *by);
void queue_unthrottle(struct model *m, struct shape *s); /* back into it */
struct shape *queue_first(const struct model *m);
struct shape *queue_first_throttled(const struct allowance *w);
struct shape *queue_next_throttled(const struct shape *s);
struct place queue_place(const struct shape *s);
int place_order(struct place a, struct place b); /* < 0: a is before b */
/* the first that does not stand before it */
struct demand_class *queue_class_at_least(const struct model *m, struct place at);
struct demand_class *queue_next_class(const struct demand_class *k);
/* The first that does not stand before it and needs no more than so much, or has an id that is not
 * below `fresh`; or NULL. It passes over the others, as far as they stand together. */
struct demand_class *queue_class_within(
    const struct model *m, struct place at, const struct resources *room, int64_t fresh);
bool demand_class_sums_hold(const struct demand_class *k);        /* for model_check */
struct shape *queue_next_in_class(const struct shape *s);         /* it is in the queue */
int64_t job_place_16(const struct model *m, const struct job *j); /* as place_16 is of a head */
/* of a job of it */
int64_t shape_place_16(const struct model *m, const struct shape *s, int64_t since_ms);
/* from when on its waiting counts: its place among those of its shape */
int64_t job_since_ms(const struct job *j);
/* Every shape gets the place that its account's share gives it now. */
void queue_order(struct model *m);

#endif
