/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of the model. Only core/ sees them, and its tests.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_STATE_H
#define BELAY_SCHEDULER_CORE_MODEL_STATE_H

#include "base/slab.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/queue.h"

struct model {
    struct model_options options;
    struct pace_options pace;
    /* of spot offers (spot_observations.h) */
    struct spot_observations *spot_observations;
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
    struct slab job_slab, attempt_slab, node_slab, shape_slab, queue_entries, kind_slab, free_rooms;
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

#endif
