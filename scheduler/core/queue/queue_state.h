/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: the queue, accounts and their limits.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_QUEUE_STATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_QUEUE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/model/tree.h"

struct budget;

struct queue_state {
    /* queue.c: shapes and demand classes */
    struct tree classes_by_position; /* classes with pending, unthrottled jobs, by position */
    struct smap demand_classes;      /* struct demand_class by its key */
    struct smap shapes;              /* struct shape by its key */
    int64_t n_queued_shapes;         /* shapes in classes_by_position */
    struct slab shape_slab;          /* memory of struct shape */
    struct slab entry_slab;          /* memory of struct queue_entry */
    struct slab demand_class_slab;   /* memory of struct demand_class */
    struct list by_arrival;          /* queued shapes, latest arrival first */
    struct list gangs;               /* queued shapes of several nodes, unordered */
    int64_t n_gangs;                 /* jobs of several nodes, pending and running */
    int64_t n_pending;               /* jobs in the queue */
    int64_t n_waiting;               /* jobs that are PENDING but not in the queue */
    int64_t n_constrained;           /* shapes that require features, a GPU model, or named nodes */
    int64_t n_exclusive;             /* shapes that take whole nodes */
    int64_t n_paying;                /* shapes limited by budgets, caps or a maximum hourly cost */
    int64_t next_shape;              /* the next free id of a shape */
    int64_t next_demand_class;       /* next free id of a class */
    /* shares.c */
    struct list all_teams;     /* struct team */
    struct smap teams;         /* struct team by name */
    struct smap accounts;      /* struct account by team and user */
    int64_t n_queued_accounts; /* accounts with shapes in the queue */
    struct wall ordered_at;    /* the last EV_ORDER; 0: none yet */
    struct mono ordered_mono;  /* the same; MONO_NONE: order at once */
    int64_t ordered_change;    /* rewind + arrivals at that time */
    /* limits.c */
    struct list quotas;     /* struct team: those with a quota */
    struct list may_return; /* struct allowance: some throttled shapes may return */
    int64_t n_allowances;   /* of teams and accounts */
    int64_t n_limited;      /* allowances that have a limit */
    struct qos *qos;        /* by their index in the options */
    /* settings.c: a longer lease, which is in force until then; 0 = none */
    int64_t former_lease_ms;
    struct mono former_lease_until;
    /* windows.c, eligible.c, expiry.c, dependencies.c, namesakes.c */
    struct tree by_park;    /* running jobs, by the end of their window */
    struct tree by_begin;   /* pending jobs, by begin time */
    struct tree by_expiry;  /* pending jobs, by deadline (--deadline) */
    struct list unmeetable; /* jobs with unsatisfiable dependencies */
    struct smap namesakes;  /* struct namesakes by "USER\nNAME": live jobs, by id */
    /* budgets.c */
    struct budget *budgets;             /* of the options; at most BUDGETS_MAX */
    size_t n_budgets;                   /* length of budgets */
    struct tree budgets_due;            /* budgets and caps of jobs, by when they are due */
    struct budget_row *dormant_budgets; /* rows of budgets that are not configured (any more) */
    size_t n_dormant_budgets;
    /* labels.c */
    struct smap labels;       /* struct labels by key: of live jobs */
    struct map loaded_labels; /* by job: of jobs not loaded yet, until model_load_end */
    int64_t n_labels;         /* number ever created */
    struct smap calendars; /* calendars.c: struct stored_calendar by name; at most CALENDARS_MAX */
    /* crons.c */
    struct map crons;      /* struct cron_entry by id; at most CRONS_MAX */
    struct tree crons_due; /* entries, by due time */
    size_t crons_bytes;    /* total size of the job templates */
    size_t crons_after;    /* number of entries that run after another */
};

#endif
