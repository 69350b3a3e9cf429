/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of core/ share and nobody else sees: the insides of the model and the small moves
 * that events are made of. Every change of a row goes through a function that marks it as changed.
 */
#ifndef BELAY_SCHEDULER_CORE_IMPL_H
#define BELAY_SCHEDULER_CORE_IMPL_H

#include "base/slab.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/model/model.h"
#include <stdarg.h>
#include <string.h>

/* Where a shape stands in the queue: two never stand at the same. */
struct place {
    int64_t at_16, head;
};

/* A shape in the queue, or among those put aside: what a search there reads, and nothing else, in
 * one line of the processor's cache. */
struct standing {
    struct tree_link link; /* in the shapes of its kind, or in aside of `aside_of` */
    struct place at;       /* as it was filed: that of the shape */
    struct shape *shape;
};

/* Shapes that fit together or not at all, whoever's they are: where a limit of cost makes a
 * difference, those of one user or team, and under a quota those of one team. Of those in the queue
 * only the first is ever looked at for a place, for behind it none can fit where it does not: nodes
 * that are kept for somebody let those before that pass. One that places are being made for
 * (claims) is a kind of its own until it has them. So the planner's work grows with the kinds of
 * demand, and with how many teams have a quota, not with who asks. */
struct kind {
    struct tree_link in_kinds; /* while shapes of it are in the queue; by at */
    struct place at;           /* of the first of them */
    struct resources need;     /* of one node, of each */
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

/* The jobs of one account that ask for the same. */
/* Where a job stands among those of its shape. */
struct position {
    int64_t since_ms, id;
};

struct shape {
    /* of the head: when it was as good as submitted, in sixteenths of a wall millisecond */
    int64_t place_16;
    int64_t head; /* id of the first pending */
    struct kind *kind;
    struct standing *standing;   /* NULL: it is only a question */
    struct allowance *aside_of;  /* NULL: it is in the queue, if it has pending jobs */
    struct tree_link in_class;   /* in its class's */
    int64_t id;                  /* never given twice */
    struct resources need;       /* of one node */
    const struct extras *extras; /* what they ask for beside that; NULL: nothing */
    const struct labels *labels; /* names that they have; NULL: none */
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
    enum pace pace;
    int64_t pace_offer;           /* as the job has it */
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

struct model {
    struct model_options options;
    struct pace_options pace;
    struct sightings *sightings;               /* of spot offers (spot_observations.h) */
    struct map jobs, nodes, instances, offers; /* by id */
    /* struct cron_entry by id; at most CRONS_MAX */
    struct map crons;
    /* those of which something is to be decided, and when */
    struct tree crons_due;
    size_t crons_bytes;   /* texts of their jobs */
    struct map leftovers; /* by job */
    /* of them: nothing is to be removed any more, it is only looked how much stays */
    int64_t n_looked_at;
    struct map stored;         /* struct stored by job */
    struct tree by_due;        /* those that wait */
    struct leftover *cleaning; /* or NULL */
    /* by event and target; by when they are to be delivered */
    struct tree outbox, outbox_due;
    /* int64_t: how many of a user's jobs */
    struct smap outbox_users;
    struct tree by_warn;                                                 /* jobs */
    struct smap shapes, kinds, pools, tokens, provider_ids, keys, names; /* names, keys: of nodes */
    struct list all_nodes, all_instances, all_pools;
    struct tree queue;       /* kinds of which shapes have pending jobs, and are not put aside */
    int64_t n_queued_shapes; /* those */
    struct slab job_slab, attempt_slab, node_slab, shape_slab, standings, kind_slab, free_rooms;
    struct list by_seen;      /* nodes */
    struct list by_growth;    /* nodes that take work */
    struct list noticed;      /* nodes; elastic ones without attempts first */
    struct list regroups;     /* jobs, by when that ends */
    struct list avoiding;     /* jobs, by when that ends (avoid.c) */
    struct list lost;         /* elastic nodes, longest first */
    struct list costly;       /* attempts on on-demand machines, longest first */
    struct smap certificates; /* struct certificate by script_key */
    struct list live_drills;  /* at most DRILLS_LIVE_MAX */
    struct list undrilled;    /* attempts */
    struct tree by_withheld;  /* attempts, by when that ends */
    struct list all_teams;
    struct list loose;         /* struct allowance */
    struct list quotas;        /* struct team: those that have one */
    struct qos_class *classes; /* by their index in the options */
    int64_t n_allowances, n_limited;
    struct smap teams, accounts;   /* by name; by team and user */
    struct list by_arrival, gangs; /* shapes */
    struct wall ordered_at;        /* the last EV_ORDER; 0: none yet */
    struct mono ordered_mono;      /* MONO_NONE: it is to be done at once */
    int64_t ordered_change;        /* rewind and arrivals of then */
    int64_t n_queued_accounts;
    struct list reserving; /* shapes that nodes were looked for */
    int64_t reserve_epoch; /* grows when there may be others to be found */
    struct tree by_park;   /* jobs whose window closes */
    struct tree by_begin;  /* jobs that wait for their time */
    struct tree requeues; /* attempts that are to be saved, then stopped and queued again, by due */
    /* jobs that are to be done by some moment, by when that is looked at next */
    struct tree by_pace;
    struct tree by_deadline; /* jobs that wait, and are to have ended by some moment */
    struct list unmeetable;  /* jobs whose dependencies cannot come true */
    struct smap namesakes;   /* "USER\nNAME" -> struct namesakes: live jobs, by id */
    struct map extras;       /* struct extras by id: of live jobs */
    struct smap extras_by_text;
    struct budget *budgets; /* those of the options; at most BUDGETS_MAX */
    size_t n_budgets;
    /* shapes that budgets, caps of their own, or what they take an hour decide about */
    int64_t n_paying;
    struct tree budgets_due;  /* and own caps: by when something is to be decided of them */
    struct smap labels;       /* struct labels by key: of live jobs */
    struct map loaded_labels; /* by job; until model_load_end, of those that are not loaded yet */
    int64_t n_labels;         /* that there ever were */
    struct licence licences[LICENCES_MAX];
    size_t n_licences;
    struct rack *racks; /* those of the options */
    size_t n_racks;
    int64_t n_constrained;      /* shapes that ask for features, GPUs of a kind, or nodes by name */
    int64_t n_exclusive;        /* shapes */
    struct runtimes runtimes;   /* of all */
    struct smap runtimes_named; /* by user and name */
    struct list runtimes_by_use;
    struct room used; /* by all pools */
    struct list dirty_jobs, dirty_attempts, dirty_nodes, dirty_instances, dirty_pools, dirty_offers,
        dirty_accounts, dirty_budgets, dirty_crons;
    struct changes out; /* what cannot change any more: history, rows that left the model */
    struct model_counters next;
    int64_t next_shape, next_kind;
    struct job **loaded; /* until model_load_end: all jobs, by id */
    size_t n_loaded;
    int64_t n_pending; /* in the queue */
    int64_t n_waiting; /* PENDING, but not in the queue */
    int64_t n_nodes_lost;
    int64_t n_gangs; /* jobs of several nodes, pending and running */
    /* For the planner's memory. growth: some node has more room than before. rewind: that, or a job
     * came back into its place in the queue, or the places have changed. arrivals: of shapes in the
     * queue. change: something else that launches depend on. launches: only a launch.
     */
    int64_t growth, rewind, arrivals, change, launches;
    /* Of those after which the planner cannot say by itself which kinds are to be looked at
     * (plan.c). anew: all. owed_more: the growth count when jobs may last have come to go where
     * something is kept for others. */
    int64_t anew, owed_more;
};

/* Appends a zeroed element to an array with its count and yields its address; doubles at powers of
 * two. */
#define GROW(array, n)                                                                             \
    ((array) = ((n) & ((n)-1)) == 0 ? mem_resize((array), (n) ? 2 * (n) : 1, sizeof *(array))      \
                                    : (array),                                                     \
        memset(&(array)[n], 0, sizeof *(array)), &(array)[(n)++])

/* The same of rows that a tick may change by thousands, not zeroed: their memory is kept from tick
 * to tick. */
#define CHANGED(m, rows)                                                                           \
    ((m)->out.rows = changes_room(                                                                 \
         (m)->out.rows, (m)->out.n_##rows, &(m)->out.room.rows, sizeof *(m)->out.rows),            \
        &(m)->out.rows[(m)->out.n_##rows++])
void *changes_room(void *rows, size_t n, size_t *room, size_t size); /* for one more */

/* ---- resources (resources.c) ---- */
bool resources_fit(const struct resources *need, const struct resources *room);
void resources_take(struct resources *room, const struct resources *need);
void resources_give(struct resources *room, const struct resources *need);
/* how often need fits */
int64_t resources_times(const struct resources *room, const struct resources *need);
/* value * share of total that need takes up by its dominant resource, rounded down; at most
 * value. */
int64_t resources_share(const struct resources *need, const struct resources *total, int64_t value);
/* Its jobs have their nodes for themselves. Then what one takes depends on where it runs: it is all
 * that there is. So it is never owed a place by its team's quota, and whether its user or team may
 * have so much is looked at node by node (limits_afford). */
bool shape_is_exclusive(const struct shape *s);
/* What a job of the shape takes of a machine that has so much: all, or what it needs. One of the
 * two that are given. */
const struct resources *shape_takes(const struct shape *s, const struct resources *total);
int64_t attempt_mcpu(const struct attempt *a); /* that it takes of its node */
int64_t job_mcpu(const struct job *j);         /* of all of its nodes, while it runs */
bool wish_allows(enum market_wish wish, enum market market);
/* The wish allows the market, and the pool the job (certificates.c, labels.c); whichever of its
 * machines it is. */
bool shape_allows_pool(const struct shape *s, const struct pool *p); /* as job_pools_allow has it */
bool shape_may_use(const struct shape *s, const struct pool *p, enum market market);
/* likewise of an offer, when a machine is to be launched */
bool shape_takes_offer(const struct shape *s, const struct offer *o);
/* What a machine of this offer can be counted on to have. */
struct resources offer_total(const struct offer *o);

/* ---- what some ask for beside, and what there is of it (constraints.c) ---- */
/* The number of what is asked for, which is one job's more; EXTRAS_NONE: that is nothing. */
int64_t extras_hold(struct model *m, const struct extras *x);
void extras_hold_again(struct model *m, int64_t id); /* by a job more */
void extras_release(struct model *m, int64_t id);    /* a job leaves the model */
/* ERR_INVALID, with the reason: no node and no pool that the job may use will ever have it. */
int extras_check_submit(
    const struct model *m, const struct job_row *j, const struct extras *x, struct err *e);
void offer_describe(struct offer *o); /* what its machines have, by its row and its pool's */
/* The same of a node. What its attempts hold stays theirs. */
void node_describe(struct node *n);
void pool_describe(struct model *m, struct pool *p); /* of all of them */
/* A machine that has this could hold a job, empty. node: its name; NULL: it is yet to be launched,
 * and nobody knows. */
bool extras_suit(const struct extras *x, const char *node, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources);
bool extras_allow(const struct extras *x, const char *node);       /* by that name alone */
bool offer_suits(const struct offer *o, const struct shape *s);    /* whatever its size */
bool node_has_extras(const struct node *n, const struct shape *s); /* likewise */
bool node_has_space(const struct node *n, const struct shape *s);  /* now, by what is free there */
/* likewise, and its rack has the power: whoever it is open to */
bool node_has_room(const struct node *n, const struct shape *s);
struct stock stock_of(const struct counts *all);
int64_t stock_times(const struct stock *s, const struct counts *need); /* how often need is free */
void stock_add(struct stock *s, const struct counts *need, int64_t times);
void node_take_stock(struct node *n, const struct job *j, int64_t sign); /* -1: it is given back */
void licences_init(struct model *m, const struct count *v, size_t n);
struct licence *licence_named(const struct model *m, const char *name); /* or NULL */
/* The first of what it asks for that is not free now; NULL: nothing. x may be NULL. */
const struct count *licences_lack(const struct model *m, const struct extras *x);
void licences_take(struct model *m, const struct job *j);
void licences_load(struct model *m, const struct job *j); /* it runs, whatever there is */
void licences_give(struct model *m, const struct job *j);

/* ---- labels (labels.c) ---- */
/* Those of a job: NULL where there are none. One hold a job; the last release frees them. */
struct labels *labels_hold(struct model *m, const char *json); /* of a submit, or as it is stored */
struct labels *labels_hold_again(struct labels *l);
void labels_release(struct model *m, struct labels *l);
/* without a hold */
void labels_of_submit(const struct model *m, const struct event *submit, struct labels *ret_labels);
bool labels_suffice(const struct labels *l, const struct pool *p); /* l may be NULL */
/* "team, project" */
void labels_lacking(const struct labels *l, const struct pool *p, char *out, size_t size);
/* With teams a job's label `team` is one that its user is in. ERR_INVALID: there is no such team;
 * ERR_DENIED: the user is not a member. */
int labels_check_team(
    const struct model *m, const struct job_spec *spec, const char *user, struct err *e);
/* ERR_INVALID, with what is missing: each pool that could hold the job asks for labels that it has
 * not. */
int labels_check_submit(const struct model *m, const struct job_row *r, const struct extras *x,
    const struct labels *own, struct err *e);

/* ---- budgets (budgets.c) ---- */
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

/* ---- what racks may draw (racks.c) ---- */
void racks_init(struct model *m, const struct rack_options *options, size_t n);
void rack_add_pool(struct model *m, struct pool *p); /* a new one, by its name */
void rack_join(struct model *m, struct node *n);     /* a new node, by its name or its pool's */
void rack_leave(struct model *m, struct node *n);    /* it is gone */
/* what is free there, or its state, may be another */
void rack_refresh(struct model *m, struct node *n);
/* that all of it draws; 0: not known */
void rack_measured(struct model *m, struct node *n, int64_t watts);
/* it may draw what it does now, though it be too much; r may be NULL */
void rack_accept(struct rack *r);
/* Its nodes may have room for others, though none of them draws less: what is kept there is kept in
 * another way. */
void rack_relaxed(struct model *m, const struct rack *r);
/* for whom the first of its nodes that are kept is; NULL: none is */
const struct shape *rack_reserved_for(const struct rack *r);
/* of what it may draw; less than 0: it draws too much */
int64_t rack_left(const struct rack *r);
/* What so many jobs of the shape more would draw on a node of this kind and size, where so much is
 * free. */
int64_t rack_adds(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t times);
/* One of them on a machine of this kind and size that nothing else runs on; kind may be NULL: in no
 * rack, 0. */
int64_t rack_alone_w(const struct rack_nodes *kind, struct resources total, const struct shape *s);
/* How many, at most n, there is power for where so much is left. kind may be NULL: in no rack,
 * n. */
int64_t rack_times(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t n, int64_t left_w);
/* for one of them on each of so many machines to come */
bool rack_has_power(const struct offer *o, const struct shape *s, int64_t machines);
/* for the least that can run on one; always where it is in none */
bool rack_has_any(const struct offer *o);
/* for one more; always where it is in none */
bool rack_has_room(const struct node *n, const struct shape *s);
/* Likewise when one goes to each of these others, all different, as well. */
bool rack_has_room_beside(const struct model *m, const struct node *n, const struct shape *s,
    const int64_t *nodes, int32_t n_nodes);
/* There is enough for one more on `with`, which is of the rack, and for those that `kept` says have
 * places on its nodes (NULL: nobody; as many as claims say, one without), when those have ended
 * that `gone` says. */
typedef bool (*rack_gone_fn)(const void *ctx, const struct attempt *a);
typedef const struct shape *(*rack_kept_fn)(const void *ctx, const struct node *n);
bool rack_fits_then(const struct rack *r, rack_gone_fn gone, rack_kept_fn kept, const void *ctx,
    const struct node *with, const struct shape *s);

/* ---- who can checkpoint by CRIU (criu.c) ---- */
enum criu_ability criu_needed(const struct job_row *j);
bool node_can_criu(const struct node *n, enum criu_ability need);
/* it is open to them, not the one that they avoid, and not too dear for their limits; whatever is
 * free */
bool node_suits(const struct node *n, const struct shape *s);
/* A machine of the pool, to be launched or on its way: false once it is known that it cannot. */
bool pool_may_criu(const struct pool *p, enum criu_ability need);
const char *pool_criu_why(const struct pool *p); /* not; "": nobody said */
/* The node's agent told: the row, and what is known of its pool. */
void node_set_criu(struct model *m, struct node *n, enum criu_ability can, const char *text);
/* ERR_UNSUPPORTED, with the reason: none of the machines that this job may use will ever do it. */
int criu_check_submit(const struct model *m, const struct job_row *j, struct err *e);

/* ---- what machines cost, and how many there may be (market.c) ---- */
int64_t offer_boot_ms(const struct offer *o); /* from the intent to the join, as observed */
/* What it costs once to read a job's input on nodes of the pool, and by the hour of one of them, as
 * often as the job is expected to start; o: its offer, NULL: it has none. */
int64_t pool_input_uusd(const struct pool *p, const struct extras *x);
int64_t pool_input_uusd_h(const struct pool *p, const struct offer *o, const struct job *j);
/* Price, expected losses and egress for such a job on a machine of the offer, an hour. */
int64_t offer_effective_uusd_h(const struct offer *o, const struct job_row *j);
/* The same with the premium for having in_offer of the pool's in_pool machines in this one
 * offer. */
int64_t offer_spread_uusd_h(
    const struct offer *o, int64_t uusd_h, int64_t in_offer, int64_t in_pool);
/* The same, a little less where the provider expects to have machines, a little more where it does
 * not. */
int64_t offer_hinted_uusd_h(const struct offer *o, int64_t uusd_h);
struct room pool_room(const struct pool *p, struct mono now);
/* the same but for machines that do not join: what its limits leave */
struct room pool_limits(const struct pool *p);
/* of an elastic one: how many nodes it may have, and its rack has places for */
int64_t pool_places(const struct pool *p);
struct room model_room(const struct model *m);
/* A machine of it may be launched now for such jobs, in so much room of its pool and of all. */
bool offer_may_serve(const struct offer *o, const struct shape *s, const struct room *pool,
    const struct room *all, struct stamp now);
/* what one more would exceed; NULL: nothing */
const char *room_lacks(const struct room *r, const struct offer *o);
void room_take(struct room *r, const struct offer *o);
/* Adds the instance to what its pool, its offer and all pools have (1), or takes it off (-1). One
 * whose reclaim is announced does not count: its replacement may start before it is gone. */
void instance_count(struct model *m, const struct instance *i, int64_t sign);

/* ---- launches that may be answered from several offers (alternatives.c) ---- */
/* Other offers of first's pool and market whose machines serve as well and take no more of any
 * limit, the lowest effective price first; none that is avoided, none that costs half as much
 * again. Returns how many, at most max; 0 without `fleet`. */
size_t launch_alternatives(const struct model *m, const struct offer *first, struct stamp now,
    const struct offer **out, size_t max);
void instance_write_alternatives(
    const struct model *m, const struct offer *first, struct stamp now, struct instance_row *r);
/* The instance is one of o, as if that had been decided on, and costs since its launch what that
 * does. */
void instance_rebind(struct model *m, struct instance *i, struct offer *o);

/* ---- texts (text.c) ---- */
void text_format(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void text_vformat(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* ---- changes (changes.c) ---- */
void touch_job(struct model *m, struct job *j);
void touch_attempt(struct model *m, struct attempt *a);
void touch_node(struct model *m, struct node *n);
void touch_instance(struct model *m, struct instance *i);
void touch_pool(struct model *m, struct pool *p);
void touch_offer(struct model *m, struct offer *o);
void touch_account(struct model *m, struct account *a);
/* The row is written for the last time; the thing is freed. It must be in no index. */
void retire_job(struct model *m, struct job *j);
void retire_attempt(struct model *m, struct attempt *a);
void retire_node(struct model *m, struct node *n);
void retire_instance(struct model *m, struct instance *i);

/* History. The row's text is what fmt says; the ids come from what is given (NULL: none). */
struct history_of {
    const struct job *job;
    const struct attempt *attempt;
    const struct node *node;
    const struct instance *instance;
    int64_t a, b;
};
void history(struct model *m, struct stamp now, const char *kind, struct history_of of,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void ledger_add(struct model *m, const struct ledger_row *row); /* rows of 0 ms are left out */

/* ---- queue (queue.c) ---- */
/* The shape that the job is of, which is in no list. */
void queue_describe(const struct model *m, const struct job *j, const struct extras *extras,
    struct shape *ret_shape);
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
void queue_put_aside(struct model *m, struct shape *s, struct allowance *by);
void queue_take_up(struct model *m, struct shape *s); /* back into it */
struct shape *queue_first(const struct model *m);
struct shape *queue_first_aside(const struct allowance *w);
struct shape *queue_next_aside(const struct shape *s);
struct place queue_place(const struct shape *s);
int place_order(struct place a, struct place b); /* < 0: a is before b */
/* the first that does not stand before it */
struct kind *queue_kind_at_least(const struct model *m, struct place at);
struct kind *queue_next_kind(const struct kind *k);
/* The first that does not stand before it and needs no more than so much, or has an id that is not
 * below `fresh`; or NULL. It passes over the others, as far as they stand together. */
struct kind *queue_kind_within(
    const struct model *m, struct place at, const struct resources *room, int64_t fresh);
bool kind_sums_hold(const struct kind *k);                        /* for model_check */
struct shape *queue_next_in_kind(const struct shape *s);          /* it is in the queue */
int64_t job_place_16(const struct model *m, const struct job *j); /* as place_16 is of a head */
/* of a job of it */
int64_t shape_place_16(const struct model *m, const struct shape *s, int64_t since_ms);
/* from when on its waiting counts: its place among those of its shape */
int64_t job_since_ms(const struct job *j);
/* Every shape gets the place that its account's share gives it now. */
void queue_order(struct model *m);

/* ---- the queue, shape by shape (queue_walk.c) ---- */
struct queue_walk {
    const struct kind *closed; /* the first of which no shape was looked at yet; NULL: none */
    const struct shape **open; /* of each of the others the next shape: a heap by place */
    size_t n_open, n_max;
};
/* All shapes in the queue in its order: begin, next until it says NULL. w: zeroed before the first
 * time; each walk has the memory of the last, until queue_walk_end. A step takes the logarithm of
 * how many kinds were met, and the model must not change. */
void queue_walk_begin(struct queue_walk *w, const struct model *m);
const struct shape *queue_walk_next(struct queue_walk *w);
void queue_walk_end(struct queue_walk *w);

/* ---- who uses what (shares.c) ---- */
/* made if there is none */
struct account *account_of(struct model *m, const char *team, const char *user);
/* or NULL */
struct account *account_find(const struct model *m, const char *team, const char *user);
/* As it would be made, for a question. In no list, its team neither unless it is there. */
void account_imagine(const struct model *m, const char *team, const char *user,
    struct account *ret_account, struct team *ret_team);
/* Its jobs take so much more, or less, from now on. */
void account_charge(struct model *m, struct account *a, int64_t mcpu, struct stamp now);
void accounts_destroy_all(struct model *m);
/* When the queue is to be put in order; MONO_NONE: not unless something changes. */
struct mono order_next(const struct model *m, struct stamp now);
/* ---- what users and teams may have (limits.c) ---- */
/* one that nobody counts */
void allowance_imagine(
    const struct model *m, struct allowance *w, const char *team, const char *user);
/* user NULL: of the team */
void allowance_init(struct model *m, struct allowance *w, const char *team, const char *user);
/* n more jobs of the account: ERR_CONFLICT, with what is used and what to do. */
int limits_check_submit(const struct account *a, int64_t n, struct err *e);
/* so many more, or less, that have not ended */
void limits_submitted(struct account *a, int64_t n);
/* as what it counts there: 1; an array as its tasks that have not begun */
int64_t job_submitted(const struct job *j);
/* a rank was placed: it is in its job's list, and on its node */
void limits_take(struct model *m, struct attempt *a);
void limits_give(struct model *m, struct attempt *a); /* it has ended: it is in no list */
/* The team has more of its quota than before: what is kept for its jobs may be for others that are
 * owed theirs. Less: its jobs may go where something is kept for others. */
void limits_less_owed(struct model *m, struct team *t);
void limits_more_owed(struct model *m, struct team *t);
/* its jobs may go where something is kept for others */
void limits_owed_now(struct model *m, const struct shape *s);
/* what its ranks cost may be something else now */
void limits_repriced(struct model *m, struct node *n);
/* there may be machines that cost nothing now */
void limits_look_again(struct model *m);
/* What keeps a job of the shape from running on so many nodes now, or NULL: nothing does, as far as
 * one can say without knowing where. */
struct allowance *limits_exceeded(
    const struct model *m, const struct shape *s, int32_t nodes, enum limit_kind *ret_kind);
/* this one does */
bool limits_stop(
    const struct model *m, const struct allowance *w, const struct shape *s, enum limit_kind kind);
/* no job may run, however little it asks for */
bool limits_used_up(const struct model *m, const struct shape *s);
/* Each of the nodes that a job of the shape needs at least may be such a machine, by what it costs;
 * of an exclusive one also by the GPUs and cpus that it has. */
bool limits_afford(const struct shape *s, const struct resources *total, int64_t uusd_h);
/* Likewise, and its budgets, its own cap and what it takes an hour allow it in this pool. */
bool limits_allow(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h);
/* How many of these n nodes, the first ones, a job of the shape may run on. */
int32_t limits_cut(const struct model *m, const struct shape *s, const int64_t *nodes, int32_t n);
/* Shapes that were put aside and may be taken up: the first job of one; CORE_ID_NONE: none. */
int64_t limits_loose(const struct model *m);

/* ---- what teams are owed (preempt.c) ---- */
/* The next job of the shape is within its team's quota, or that is what a place is being made
 * for. */
bool quota_owes(const struct shape *s);
bool team_may_be_owed(const struct team *t); /* quota_owes may be true of some of its shapes */
struct kind *queue_first_of(const struct team *t); /* in the queue, of a team with a quota */
struct kind *queue_next_of(const struct kind *k);
/* it has claims, or none any more */
void queue_set_apart(struct model *m, struct shape *s, bool is_apart);
bool queue_is_in_its_kind(const struct model *m, const struct shape *s); /* for model_check */

/* ---- what classes have evicted (preempt.c) ---- */
bool class_preempts(const struct qos_class *c); /* jobs of others; c may be NULL */
bool shape_preempts(const struct shape *s, const struct shape *other); /* jobs of this one */
/* in the queue, of one that preempts */
struct shape *queue_first_of_class(const struct qos_class *c);
struct shape *queue_next_of_class(const struct shape *s);

/* ---- arrays (arrays.c) ---- */
/* places that it could use at once if it were in the queue: 1, or an array's */
int64_t job_width(const struct job *j);
bool array_is_full(const struct job *j); /* it is an array, and as many of its tasks live as may */
/* it is an array of which no task may begin now: it is full, or all wait for others */
bool array_is_kept(const struct job *j);
int64_t array_left(const struct array *a); /* how many tasks have not begun, nor were given up */
bool array_has_left(const struct array *a, int32_t index); /* that is one of them */
void array_attach(struct model *m, struct job *j, const struct event *submit);
/* its first task that has not begun: PENDING, not in the queue */
struct job *array_begin(struct model *m, struct job *j, struct stamp now);
void array_task_ended(struct model *m, struct job *task, struct stamp now);
/* Tasks that never will begin, those in a->never: END_DEPENDENCY each. Not all at once if that
 * would be a great many rows. */
void array_give_up(struct model *m, struct job *j, struct stamp now);
/* Those of these (NULL: of all) that have not begun never will, and count as this end.
 * ERR_CONFLICT: the rest would be in too many pieces. */
int array_drop(struct model *m, struct job *j, const struct ranges *tasks, enum end_kind end,
    struct stamp now, struct err *e);
/* one that has begun and has not ended, or NULL */
struct job *array_task(const struct job *parent, int32_t index);
/* after something of the above */
void array_settle(struct model *m, struct job *j, struct stamp now);
/* PENDING: so many may run at once from now on */
void array_throttle(struct model *m, struct job *j, int32_t at_once, struct stamp now);
void array_adopt(struct job *parent, struct job *task);
void array_load_begun(struct job *j, int32_t index); /* one of its tasks has a row */
void array_free(struct job *j);

/* ---- jobs that are not eligible yet (dependencies.c) ---- */
/* what an end means for who depends on it: MET or NEVER */
enum depend_state waits_judge(enum depend_kind kind, enum end_kind end);
/* ERR_CONFLICT, with the reason: it could never run. ERR_NOT_FOUND: it depends on a job that there
 * never was. */
int waits_check(const struct model *m, const struct event *submit, struct err *e);
/* Each costs memory, and time at an end: two for each job that a user may have without a limit. A
 * rename may be one more, to whoever waits for all of the new name. */
#define WAITS_OF_ACCOUNT_MAX 400000
/* ERR_CONFLICT: with this, jobs of the account would wait for more. */
int waits_check_room(
    const struct model *m, const struct account *a, const struct event *submit, struct err *e);
/* The same of a job that comes to this row and account, and to depend on what `replaced` asks for;
 * NULL: as before, under the row's name. It may always wait for no more than it did. */
int waits_check_change(const struct model *m, const struct job *j, const struct account *to,
    const struct job_row *becomes, const struct event *replaced, struct err *e);
/* so many more dependencies of the account's jobs WAIT */
void waits_counted(struct account *a, int64_t n);
/* of a submit that was checked */
void waits_attach(struct model *m, struct job *j, const struct event *submit);
/* It depends on nothing any more; who waited for others by way of it waits for them itself. Of a
 * PENDING job that has neither its place in the queue nor among those that wait; so may be attached
 * what it is to depend on. */
void waits_detach(struct model *m, struct job *j);
bool waits_for_name(const struct job *j); /* SINGLETON, of whose jobs some have not ended */
/* Another name: of what waits for jobs of one name, as if it had always had the new one. A job that
 * waits_for_name has no place among those that wait. */
void waits_rename(struct model *m, struct job *j, const char *name, struct stamp now);
void waits_adopt(struct model *m, struct job *j); /* a job new to the model, by its name */
/* A job that is PENDING now goes into the queue, or waits until it is eligible. */
void job_enqueue(struct model *m, struct job *j, struct stamp now);
void waits_started(struct model *m, struct job *j, struct stamp now); /* for the first time */
void waits_ended(struct model *m, struct job *j, struct stamp now);   /* it leaves the model */
/* what it depends on is of no consequence any more: all that are left of it have begun */
void waits_no_more(struct model *m, struct job *j);
/* tasks that will not begin are no more in `left` */
void waits_dropped(struct model *m, struct job *array, struct stamp now);
/* whether it, or some of its tasks, can never run may have changed */
void waits_tell_unmeetable(struct model *m, struct job *j);
/* and what follows from that is the caller's */
void waits_met(struct model *m, struct dependency *d);

/* ---- arrays that follow others (array_dependencies.c) ---- */
bool array_follows(const struct job *j); /* its tasks wait for those of another */
/* As waits_check, of one AFTERCORR. */
int follow_check(
    const struct model *m, const struct event *submit, const struct depend_ask *a, struct err *e);
/* Takes it into account; true: there is something to wait for, or to give up. */
bool follow_attach(struct model *m, struct job *j, const struct depend_ask *a);
/* a task of it */
void follow_ended(
    struct model *m, struct job *array, int32_t index, bool succeeded, struct stamp now);
/* tasks that will not begin are no more in `left` */
void follow_dropped(struct model *m, struct job *array, struct stamp now);
void follow_over(struct model *m, struct job *array, struct stamp now); /* all of it has ended */
/* nobody, or fewer, of it are to be given up, or are left at all */
void follow_settle(struct model *m, struct job *j);
void follow_load(struct model *m, struct job *j); /* all tasks are loaded, and their ends */

struct depend_text {
    char s[64];
};
/* "afterok:42_7" */
struct depend_text depend_text(enum depend_kind kind, int64_t on, bool of_task, int32_t task);
/* When the next job becomes eligible, or is to be ended since it never will, and the event;
 * MONO_NONE: none. */
struct mono waits_due(const struct model *m, struct stamp now, struct event *ret_event);
bool waits_is_kept_back(const struct job *j); /* for something else than its time to begin */
/* when it may be queued, as far as that is a time; true: it is yet to come */
bool waits_set_not_before(struct model *m, struct job *j, struct wall now);
void waits_load(struct model *m, struct job *j); /* PENDING, and all that it depends on is loaded */
void waits_destroy_all(struct model *m);         /* before the jobs */

/* ---- room kept for the first of the queue (reserve.c) ---- */
void reserve_retimed(struct model *m, struct node *n); /* something there has another time limit */
/* A job of the shape that is placed there now does not delay who the node is kept for, or stands
 * before it. */
bool reserve_allows(const struct node *n, const struct shape *s, struct stamp now);
bool reserve_is_known(int64_t until); /* only what ends by a time limit is in the way */
void reserve_drop(struct model *m, struct shape *s); /* harmless when there is none */
/* it stands for one job more, unless it is a gang's */
void reserve_claim(struct model *m, struct shape *s, struct node *n);
void reserve_claimed(struct model *m, struct shape *s); /* all nodes of one job more are claimed */
/* a job of it is placed there: harmless without claims */
void reserve_used(struct model *m, struct shape *s, struct node *n);
/* there are no more claims than jobs for them */
void reserve_trim(struct model *m, struct shape *s);
/* for others, who do not yield it */
bool reserve_is_taken(const struct node *n, const struct shape *s);
/* Machines for it that are on their way or may be launched, at most as many as it needs. */
int32_t reserve_to_come(
    const struct model *m, const struct shape *s, const struct pool *pool, struct stamp now);
/* the queue has another order: who is not among the first any more loses it */
void reserve_reorder(struct model *m);
/* something there ends earlier than was known */
void reserve_relaxed(struct model *m, struct node *n);
/* who it is kept for may have to give it up to others now */
void reserve_may_yield(struct model *m, struct node *n);
/* nothing there delays who the node is kept for, if it is */
bool reserve_holds(const struct node *n);
/* A job that stood there in the queue was placed: what it goes before is dropped unless it still
 * holds. */
void reserve_overridden(struct model *m, struct node *n, struct place by, bool was_owed);

/* ---- nodes (nodes.c) ---- */
void node_index(struct model *m, struct node *n);   /* a new node into the look-ups */
void node_unindex(struct model *m, struct node *n); /* out of all of them */
void node_move(struct model *m, struct node *n, enum node_state to, struct stamp now);
/* Puts the node into the lists that its state and load call for; grew: it may have more room than
 * before. */
void node_refresh(struct model *m, struct node *n, bool grew);
/* others may fit there than before; it takes work */
void node_grew(struct model *m, struct node *n);
bool node_takes_work(const struct node *n);
bool node_is_in_order(const struct node *n); /* before the next in by_free: for model_check */
void node_attach(struct model *m, struct node *n, struct attempt *a); /* takes the resources */
void node_detach(struct model *m, struct attempt *a, struct stamp now);
void node_gone(
    struct model *m, struct node *n, struct stamp now, const char *text); /* and its attempts end */
/* The node for a job of this shape that needs one (plan.h, 2.), or NULL. */
struct node *nodes_best(const struct model *m, const struct shape *s, struct stamp now);
/* Those for a gang's ranks, into ids[s->nodes]; returns how many, s->least or more, or 0: there are
 * not enough. All in one pool: the one that has most of them, of these the one of which the dearest
 * market that has to be used is the lowest, of these the one where reading its input costs the
 * least. */
int32_t nodes_for_gang(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ids);

/* ---- gangs between their attempts (gang_resize.c) ---- */
bool node_is_kept_from(const struct node *n, const struct shape *s); /* for another job */
/* A rank has left its node, which stays its job's until the next attempt, if there is one. */
void gang_keep(struct model *m, struct job *j, struct node *n);
void gang_release(struct model *m, struct job *j);      /* what is kept; harmless for any job */
void gang_node_leaves(struct model *m, struct node *n); /* it takes no work any more */
/* The job is about to enter the queue, after an attempt that ended as the row says: how many nodes
 * it waits for, and until when.
 */
void gang_queued(struct model *m, struct job *j, struct stamp now);
/* it runs, or is kept back: nothing is kept for it */
void gang_let_go(struct model *m, struct job *j);
/* When the next waits no longer, and the event; MONO_NONE: none. */
struct mono gang_due(const struct model *m, struct event *ret_event);
/* Of a stored job, by the wall clock: as long as it would have been, and no longer than from now
 * on. */
struct mono gang_until(const struct job_row *r, struct stamp now);
/* which enters the queue; its kept nodes are known */
void gang_load(struct model *m, struct job *j);
/* its job is loaded; ERR_CORRUPT */
int gang_load_kept(struct model *m, struct node *n, struct err *e);

/* ---- jobs (apply_job.c) ---- */
/* by whoever asked; NULL: ERR_NOT_FOUND is set */
struct job *job_named(const struct model *m, int64_t id, struct err *e);
struct job_side *job_make_side(struct job *j); /* if it has none yet */
bool job_has_to_begin(const struct job *j);    /* it is in by_begin */
int64_t job_pace_offer(const struct job *j);
/* All that a submit is refused for, but how many jobs its account has. ret_own: its user, team,
 * QOS, nice and retries, as they count. */
int submit_check(const struct model *m, const struct event *ev, struct job_row *ret_own,
    struct extras *ret_extras, struct err *e);
/* Of those what a row says by itself: numbers out of their range. */
int job_check_row(const struct job_row *r, struct err *e);
/* How often it is queued again, as what is asked, its pool and the configuration say, into own;
 * ERR_INVALID: more than may be, or never, which what else it asks for does not go with. */
int job_resolve_retries(
    const struct model *m, const struct job_row *asked, struct job_row *own, struct err *e);
int job_check_retries(const struct job_row *r, struct err *e); /* of that, the last */
void job_move(struct model *m, struct job *j, enum job_state to);
void job_finish(struct model *m, struct job *j, struct stamp now); /* ENDED; leaves the model */

/* ---- attempts (attempts.c) ---- */
void attempt_start(struct model *m, struct attempt *a);
/* All live ranks of the job's attempt. save_first: save, then stop, unless they are being stopped
 * already; else at once, whatever they were stopped for. */
void job_stop(struct model *m, struct job *j, enum end_kind reason, bool save_first);
/* The other ranks: they save with this one, and stop. */
void gang_follow(struct model *m, struct attempt *a);
/* The end as reported; what it counts as, and what becomes of the job when no rank is left, is
 * decided here. */
void attempt_end(struct model *m, struct stamp now, struct attempt *a, enum end_kind reported,
    int32_t exit_code, const char *text);
void attempts_end_all(struct model *m, struct stamp now, struct node *n, const char *text);

/* ---- retry (retry.c) ---- */
struct verdict {
    enum end_kind end; /* what it counts as */
    bool again;
    char text[CORE_TEXT_MAX]; /* why that, when it is not what was reported; else "" */
};
/* Counts the end in the row's budgets. saved: the attempt committed a checkpoint. */
struct verdict retry_judge(struct job_row *j, enum end_kind end, bool saved);
/* How long a job that is queued again waits, 0 at first: a program that fails at once, and a node
 * that nothing can start on, are not tried as fast as they fail. excused: it has saved, or its node
 * is gone, and with it what may have been wrong. ran_ms: since it was placed. A job that is to be
 * done by some moment does not wait. */
int64_t retry_pause(struct job_row *j, enum end_kind end, bool excused, int64_t ran_ms);

/* ---- nodes that jobs avoid (avoid.c) ---- */
/* The pending job is not placed on the node, unless there is no other for it. Returns whether it
 * avoids the node; false for a gang. */
bool avoid_begin(struct model *m, struct job *j, int64_t node, struct stamp now);
/* The same for AVOID_MS at most, since an attempt could not use the store there. */
void avoid_for_store(struct model *m, struct job *j, int64_t node, struct stamp now);
void avoid_set(struct model *m, struct job *j, int64_t node); /* as stored, wherever else it fits */
void avoid_end(struct model *m, struct job *j);               /* if it avoids one */
void avoid_drop(struct job *j);                               /* it leaves the model */
/* When a job stops avoiding its node, and the event; MONO_NONE: none does. */
struct mono avoid_due(const struct model *m, struct event *ret_event);

/* ---- drills (drill.c) ---- */
#define DRILLS_LIVE_MAX 16
void drill_attempt_started(struct model *m, struct attempt *a, struct stamp now);
void drill_attempt_loaded(struct model *m, struct attempt *a);
void drill_attempt_stops(struct attempt *a); /* for whatever reason */
/* The attempt has ended with its last rank, a, after its ledger rows; as: what all of it counts as.
 * lost_ms: of work that is to be done again. goes_on: the job is. */
void drill_attempt_ended(struct model *m, struct attempt *a, struct stamp now, enum end_kind as,
    int64_t lost_ms, bool goes_on);
void drill_saved(struct model *m, struct attempt *a, struct stamp now);
/* no_progress.c. An attempt has told, or saved at, this progress: what it told first, and most.
 * PROGRESS_NONE: not known. */
void again_progressed(
    struct model *m, struct attempt *a, int64_t first, int64_t most, struct stamp now);
/* Somebody gives its work up: no checkpoint of an attempt so far is used any more. */
void again_from_scratch(struct model *m, struct job *j);
/* its progress is what it is, and the row is going to be stored */
void again_kept(struct job_row *j);
/* before it stands in the queue */
void again_requeued(struct model *m, struct job *j, struct stamp now);
/* it was so often in vain that it is held */
bool again_is_held(const struct model *m, const struct job_row *j);

void drill_progressed(struct model *m, struct attempt *a, struct stamp now, int64_t first);
void drill_job_ends(struct model *m, struct job *j, struct stamp now);
/* When the next drill is to be begun, or has waited for too long, and the event; MONO_NONE:
 * none. */
struct mono drill_next(const struct model *m, struct stamp now, struct event *ret_event);
void drills_destroy_all(struct model *m);

/* ---- requeues by users (requeue.c) ---- */
void requeue_saved(struct model *m, struct job *j); /* a checkpoint of it is durable */
void requeue_save_failed(struct model *m, struct job *j, struct stamp now, const char *text);
/* for whatever reason, or it has ended */
void requeue_attempt_stops(struct model *m, struct attempt *a);
void requeue_attempt_loaded(struct model *m, struct attempt *a);
/* When one has waited for too long, and the event; MONO_NONE: none waits. */
struct mono requeue_due(const struct model *m, struct stamp now, struct event *ret_event);
void attempts_ask_save(struct model *m, struct job *j); /* all ranks (apply_job.c) */

/* ---- attempts that their agents are not told of (withheld.c) ---- */
void withheld_end(struct model *m, struct attempt *a); /* it is ASSIGNED no more */
/* When the first has been withheld for as long as it may be, and the event; MONO_NONE: none is. */
struct mono withheld_due(const struct model *m, struct stamp now, struct event *ret_event);

/* ---- certificates (certificates.c) ---- */
/* Of the newest drill of these scripts that passed, WALL_NONE: none, or one failed since. */
struct wall certificate_date(const struct model *m, const char *script_key);
/* A drill has passed or failed: every job of its key has, or loses, its certificate. */
void certificate_note(struct model *m, const struct drill_row *d);
/* From when on certificates count, for one pool or all: time goes on. */
void pool_age(struct pool *p, struct wall now);
void pools_age(struct model *m, struct wall now);
void certificates_destroy_all(struct model *m);

/* ---- ledger (ledger.c) ---- */
/* Writes the attempt's rows, adds to the sums of its job and instance. Returns the work lost, in
 * ms. */
int64_t ledger_attempt(struct model *m, struct attempt *a);
/* the job's last good checkpoint is of this attempt */
bool attempt_has_saved(const struct attempt *a);
void ledger_instance(struct model *m, const struct instance *i);
/* An attempt is about to be on the node: what that has cost; of a gang also how long the node has
 * waited for the others. */
void ledger_placed(struct model *m, struct attempt *a, struct node *n, struct stamp now);
/* its row says so already */
void ledger_started(struct model *m, struct attempt *a, struct stamp now);
void ledger_saved(struct attempt *a, int64_t pause_ms, struct wall saved_at);
/* What it costs that it reads its part of its job's input when it starts: of a gang each rank as
 * much. */
int64_t ledger_input_uusd(const struct attempt *a);
/* It has written so many bytes to the store. Of a gang the first rank tells for all. */
void ledger_stored(struct model *m, struct attempt *a, int64_t bytes);
/* A provider's clock is believed as far as it differs by less from ours. */
#define CLOCKS_DIFFER_MS 600000
/* It exists, and is paid for, since then (told: as the provider says, WALL_NONE or 0: it does not),
 * or from now on. */
void ledger_launched(struct model *m, struct instance *i, struct wall told, struct stamp now);
/* Since then (likewise) the instance, and with it its node, costs this. */
void ledger_reprice(
    struct model *m, struct instance *i, int64_t uusd_h, struct wall since, struct stamp now);
/* It has been at another offer than was thought all the time since its launch, and cost this: the
 * prices of the one before were not its. */
void ledger_moved(struct model *m, struct instance *i, int64_t uusd_h);
/* The node was heard of: once a day its idle time is written down. */
void ledger_seen(struct model *m, struct node *n, struct wall now);
/* Writes the idle time up to then. */
void ledger_idle(struct model *m, struct node *n, struct wall at);
/* One that nobody rents out has joined; costs something else from now on. */
void ledger_joined(struct node *n, struct wall now);
void ledger_reprice_owned(struct model *m, struct node *n, int64_t uusd_h, struct wall now);

/* ---- instances (instances.c) ---- */
struct pool *pool_add(struct model *m, const struct pool_row *r);
bool instance_is_coming(const struct instance *i); /* INTENDED or LAUNCHED */
void instance_index(struct model *m, struct instance *i);
void instance_unindex(struct model *m, struct instance *i);
void instance_move(struct model *m, struct instance *i, enum instance_state to, struct stamp now);
void instance_set_provider_id(struct model *m, struct instance *i, const char *provider_id);
/* or NULL */
struct offer *offer_find(
    const struct pool *p, const char *zone, const char *type, enum market market);
void offer_place(struct pool *p, struct offer *o); /* into the pool's order */
/* It gave no machine, and why: avoided for a while that doubles, or at once the longest. Returns
 * for how long, in ms.
 */
int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why);
/* The instance's life, as far as it says something of its offer: one that was reclaimed before it
 * had run for as long as it took to boot was paid for its boot alone, and its offer is avoided as
 * if it had refused. One that ran for longer ends that series. */
void offer_note_life(struct model *m, const struct instance *i, struct stamp now);
void offer_saw(struct offer *o, const struct resources *total);

/* ---- machines that never join (boots.c) ---- */
/* The last machines of the pool did not join: it launches one at a time, after a wait that
 * grows. */
bool pool_boots_fail(const struct pool *p);
/* of such a pool: it may launch one now */
bool pool_may_probe(const struct pool *p, struct mono now);
void boots_load(struct pool *p, struct stamp now);
void boots_failed(struct model *m, struct instance *i, struct stamp now, const char *why);
void boots_joined(struct model *m, struct instance *i, struct stamp now);
int apply_boot_console(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_pool_retry(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

void instance_reclaimed(struct model *m, struct instance *i, struct stamp now); /* counted once */

/* ---- who is told (notify.c) ---- */
void notify(struct model *m, const struct job *j, enum notify_event kind, struct stamp now);
void notify_ended(struct model *m, const struct job *j, struct stamp now);
void notify_boots(struct model *m, const struct pool *p, struct stamp now);
void notify_budget(struct model *m, const struct budget_options *b, int32_t pct, int64_t spent_uusd,
    struct stamp now);
/* its attempt has started, or was loaded, or a part was told of */
void notify_watch(struct model *m, struct job *j);
void notify_unwatch(struct model *m, struct job *j); /* the attempt has ended */
struct mono notify_due(const struct model *m, struct stamp now, struct event *ret_event);
void notify_deinit(struct model *m);
int apply_warn(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_delivered(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

/* ---- what the store keeps (storage.c) ---- */
struct stored {
    struct stored_row row;
};
/* a checkpoint has stored so many more */
void storage_saved(struct model *m, int64_t job, int64_t bytes, struct wall at);
/* there are so many */
void storage_told(struct model *m, int64_t job, int64_t bytes, struct wall now);
/* what it cost so far is written down */
void storage_settle(struct model *m, int64_t job, struct wall now);
bool storage_costs(const struct model *m, int64_t job);
/* nothing is there any more, or nobody looks */
void storage_forget(struct model *m, int64_t job, struct wall now);

/* ---- what ended jobs left (ckpt_gc.c) ---- */
/* if there is anything */
void leftover_add(struct model *m, const struct job *j, struct stamp now);
/* When the next is to be cleaned, or looked at again, and whose it is; MONO_NONE: none, or one is
 * being cleaned. */
struct mono leftover_due(const struct model *m, struct stamp now, int64_t *ret_job);

void waits_withdraw(struct model *m, struct job *j);
/* out of the queue, or out of what waits for it; it is PENDING still */
void waits_release(struct model *m, struct job *j, struct stamp now); /* it is not held any more */

/* ---- windows (windows.c) ---- */
#define WALL_NEVER ((struct wall){INT64_MAX / 4})
/* When the job may be queued, as begin_at and its window say; in the past: now. */
struct wall window_not_before(const struct model *m, const struct job_row *r, struct wall now);
/* it was queued, placed, saved or loaded */
void window_watch(struct model *m, struct job *j, struct wall now);
/* it is neither queued nor running */
void window_leave(struct model *m, struct job *j);
struct mono windows_due(const struct model *m, struct stamp now, struct event *ret_event);

/* ---- jobs that are to have ended by some moment (deadlines.c) ---- */
/* at a submit: ERR_INVALID, it could not */
int deadline_check(const struct job_row *r, struct wall now, struct err *e);
/* it is PENDING, in the queue or waiting; harmless when it has none */
void deadline_watch(struct model *m, struct job *j);
void deadline_leave(struct model *m, struct job *j); /* it is not; harmless likewise */
struct mono deadlines_due(const struct model *m, struct stamp now, struct event *ret_event);

/* ---- cron entries (crons.c) ---- */
#define CRONS_MAX 10000
#define CRONS_OF_USER_MAX 200
#define CRONS_BYTES_MAX ((size_t)64 << 20)
#define CRONS_OF_USER_BYTES_MAX ((size_t)8 << 20)
void cron_job_ended(struct model *m, const struct job_row *j); /* it has left the model */
/* When the next entry has something to be decided, or is to be looked at again, and the event;
 * MONO_NONE: none. */
struct mono cron_next_due(const struct model *m, struct stamp now, struct event *ret_event);
int crons_check(const struct model *m, struct err *e);
void crons_destroy_all(struct model *m);

/* ---- jobs that are to be done by some moment, for the least money (procurement.c) ---- */
/* the moment, where so long from now may have been asked for */
int64_t pace_finish_ms(const struct job_row *asked, struct wall now);
/* the same of a submit, which may have named a time of the day */
int64_t pace_finish_submitted(const struct event *ev);
/* at a submit: ERR_INVALID */
int pace_check(const struct job_row *r, struct wall now, struct err *e);
/* it is decided anew at once; harmless without a finish_ms */
void pace_look(struct model *m, struct job *j, struct stamp now);
void pace_leave(struct model *m, struct job *j); /* it is over; harmless likewise */
/* its finish_ms is another, or there is none any more; before its shape is */
void pace_meant(struct model *m, struct job *j, struct stamp now);
/* before the job's last good checkpoint becomes this one */
void pace_saved(struct attempt *a, struct wall saved_at);
/* its progress is what it was at that moment */
void pace_progressed(const struct model *m, struct job *j, struct wall at);
bool pace_is_looked_at(const struct job *j); /* it is to be done by some moment, and is not over */
bool pace_allows(enum pace pace, enum market market);
/* who was to run there is decided anew at once */
void pace_refused(struct model *m, const struct offer *o, struct stamp now);
/* it can be stopped without losing anything: it has saved here, and the last save worked
 * (launch.c) */
bool attempt_can_move(const struct attempt *a);
struct mono pace_due(const struct model *m, struct stamp now, struct event *ret_event);

/* ---- how long jobs run (runtimes.c) ---- */
void runtimes_note(struct model *m, const struct job *j, enum end_kind end, int64_t used_ms);
/* Of jobs of its user and name, of its account, or of all, whichever is known well enough first;
 * NULL: nothing is. */
const struct runtimes *runtimes_of(const struct model *m, const struct job *j);
/* NULL is fine */
const struct runtimes *runtimes_of_account(const struct model *m, const struct account *a);
void runtimes_destroy_all(struct model *m);

/* ---- events ---- */
typedef int (*apply_fn)(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_submit(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_settle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_move(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cancel(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_requeue(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_save(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_enter(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_place(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_started(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_ended(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_checkpoint(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_save_failed(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_output_cut(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_no_credentials(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_store_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_withheld(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_withheld_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_kept(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_usage(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_progress(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill_compared(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_avoided(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_requeue_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_order(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_put_aside(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_take_up(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reclaim(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_table(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_pace(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_deadline(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_park(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_budget(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_put(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_run(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reserve(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_clean(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cleaned(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_update(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_hold(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_release(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_eligible(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_unmeetable(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_join(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_facts(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_heartbeat(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_condition(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_notice(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drain(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_undrain(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_node_delete(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_node_lost(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_pool(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_offer(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_limits(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_price(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_score(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launch(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launched(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_offer_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launch_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_end_instance(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_instance_gone(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

#endif
