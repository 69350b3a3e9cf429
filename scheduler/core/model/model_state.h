/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the model that this folder owns: rows and their indexes, changes, versions.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_MODEL_STATE_H
#define BELAY_SCHEDULER_CORE_MODEL_MODEL_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "scheduler/core/model/model.h"

/* Objects by id and by other keys. */
struct model_rows {
    struct map jobs;           /* struct job by id, not ENDED */
    struct map nodes;          /* struct node by id */
    struct map instances;      /* struct instance by id */
    struct map offers;         /* struct offer by id */
    struct smap pools;         /* struct pool by name */
    struct smap node_names;    /* struct node by name */
    struct smap node_keys;     /* struct node by the hash of its key */
    struct smap tokens;        /* struct instance by idempotency token */
    struct smap provider_ids;  /* struct instance by region and the provider's id */
    struct list all_nodes;     /* struct node, in the order of their ids */
    struct list all_instances; /* struct instance, in the order of their ids */
    struct list all_pools;     /* struct pool, in the order of their indexes */
    struct slab job_slab;      /* memory of struct job */
    struct slab attempt_slab;  /* memory of struct attempt */
    struct slab node_slab;     /* memory of struct node */
};

/* What the next commit writes. */
struct model_changes {
    struct list dirty_jobs;      /* rows changed since the last commit, of each type */
    struct list dirty_attempts;  /* struct attempt */
    struct list dirty_nodes;     /* struct node */
    struct list dirty_instances; /* struct instance */
    struct list dirty_pools;     /* struct pool */
    struct list dirty_offers;    /* struct offer */
    struct list dirty_accounts;  /* struct account */
    struct list dirty_budgets;   /* struct budget */
    struct list dirty_crons;     /* struct cron_entry */
    struct changes out; /* final rows: history, ledger, rows of things that left the model */
    struct model_counters next_ids; /* the next free id of each type */
};

/* Change counts. The planner compares them with its own copies to see whether its memory is valid
 * (plan.c). */
struct model_versions {
    int64_t growth;    /* a node's free resources grew */
    int64_t rewind;    /* growth, a job returned to the queue, or the order of the queue changed */
    int64_t arrivals;  /* shapes that entered the queue */
    int64_t change;    /* other changes that affect launches */
    int64_t launches;  /* launches made */
    int64_t retry_all; /* changes after which every demand class must be tried again */
    int64_t owed_more; /* growth count when capacity reserved for a quota last became usable */
    int64_t reserve_epoch; /* the set of nodes that may be reserved may have changed */
};

/* Used until model_load_end. */
struct model_loading {
    struct job **jobs; /* all jobs, by id */
    size_t n_jobs;
};

#endif
