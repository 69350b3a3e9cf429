/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: changes of nodes, attempts and ending jobs.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_STATE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "scheduler/core/lifecycle/apply_node.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/model/tree.h"

struct lifecycle_state {
    /* nodes.c */
    struct list by_seen;   /* nodes with a lease, least recently seen first */
    struct list by_growth; /* nodes that accept work, most recent gain of free resources first */
    struct list noticed;   /* nodes with a reclaim notice; elastic ones without attempts first */
    struct list lost;      /* elastic nodes that are lost, longest first */
    struct list drained;   /* empty nodes whose machines are to be ended (node_ends_when_empty) */
    int64_t drains[DRAIN_CAUSES]; /* since the start of belayd */
    int64_t n_nodes_lost;         /* lost nodes, elastic or not */
    struct slab free_entries;     /* memory of struct free_entry */
    /* ckpt_gc.c */
    struct map ckpt_gc;       /* struct ckpt_gc by job */
    int64_t n_only_measured;  /* rows that are only measured: nothing is to be deleted */
    struct tree ckpt_gc_due;  /* WAITING rows, by due time */
    struct ckpt_gc *cleaning; /* the one being deleted; may be NULL */
    /* notify.c */
    struct tree outbox;       /* messages to users, by event and target */
    struct tree outbox_due;   /* by delivery time */
    struct smap outbox_users; /* int64_t by user: how many messages */
    struct tree by_warn;      /* jobs, by their next warning */
    /* digest.c */
    struct digest_row digest; /* of the cluster */
    struct smap digest_users; /* struct digest_row by user: subscriptions */
    /* others */
    /* jobs that wait for more nodes, by the end of the wait (gang_resize.c) */
    struct list gang_resizes;
    struct smap certificates;  /* struct certificate by script_key (certificates.c) */
    struct list live_drills;   /* struct drill; at most DRILLS_LIVE_MAX (drill.c) */
    struct list undrilled;     /* attempts that may be drilled (drill.c) */
    struct tree by_withheld;   /* withheld attempts, by deadline (withheld.c) */
    struct tree by_idle_gpus;  /* jobs with idle GPUs, by the next decision (idle_gpus.c) */
    struct tree user_requeues; /* attempts to be saved and stopped, by deadline (user_requeue.c) */
};

#endif
