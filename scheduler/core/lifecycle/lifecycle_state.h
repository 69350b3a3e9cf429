/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: what moves nodes, attempts and jobs that end.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_STATE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/model/tree.h"

struct lifecycle_state {
    /* nodes.c */
    struct list by_seen;   /* nodes with a lease, the least recently seen first */
    struct list by_growth; /* nodes that take work, the one that gained free resources last first */
    struct list noticed;   /* nodes with a reclaim notice; elastic ones without attempts first */
    struct list lost;      /* elastic nodes that are lost, longest first */
    int64_t n_nodes_lost;  /* lost nodes, elastic or not */
    struct slab free_rooms; /* memory of struct free_room */
    /* ckpt_gc.c */
    struct map ckpt_gc;       /* struct ckpt_gc by job */
    int64_t n_looked_at;      /* leftovers that are measured only: nothing is to be deleted */
    struct tree ckpt_gc_due;  /* leftovers that wait, by when they are due */
    struct ckpt_gc *cleaning; /* the one being deleted; may be NULL */
    /* notify.c */
    struct tree outbox;       /* messages to users, by event and target */
    struct tree outbox_due;   /* the same, by when they are to be delivered */
    struct smap outbox_users; /* int64_t by user: how many messages */
    struct tree by_warn;      /* jobs, by when their user is to be warned */
    /* others */
    struct list gang_resizes; /* jobs that wait for more nodes, by when that ends (gang_resize.c) */
    struct smap certificates; /* struct certificate by script_key (certificates.c) */
    struct list live_drills;  /* struct drill; at most DRILLS_LIVE_MAX (drill.c) */
    struct list undrilled;    /* attempts that may be drilled (drill.c) */
    struct tree by_withheld;  /* withheld attempts, by when that ends (withheld.c) */
    struct tree requeues;     /* attempts to be saved, stopped and requeued, by due (requeue.c) */
};

#endif
