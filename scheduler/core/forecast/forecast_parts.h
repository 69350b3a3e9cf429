/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by forecast.c, snapshot.c and run.c: the snapshot of the model, and one forecast run.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_FORECAST_PARTS_H
#define BELAY_SCHEDULER_CORE_FORECAST_FORECAST_PARTS_H

#include "base/prng.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#define GROUPS_MAX 64      /* limited allowances; further ones count as unlimited */
#define HISTORIES 4        /* per demand */
#define RECENT_ENDS_MAX 64 /* as in reserve.c */
#define NO_INDEX (-1)
#define NEVER_MS (1LL << 60)

/* Machines that are equivalent for the job. */
struct node_class {
    const struct node *node;                         /* one of them, or NULL */
    const struct offer *offer;                       /* the offer that launches it */
    uint64_t allowed_demands[FORECAST_DEMANDS / 64]; /* demands that an empty one could serve */
    int64_t n_nodes;                                 /* existing ones, simulated or not */
    struct resources total;
};

/* A node or a future machine. */
struct slot {
    struct resources free;
    const struct node *node; /* may be NULL */
    /* Accepts work from then on; NEVER_MS: not any more. In the snapshot of a future machine: time
     * of its launch decision. */
    int64_t open_ms;
    int64_t idle_ms;           /* elastic: idle since */
    int64_t until_ms;          /* its reservation has capacity then at the latest */
    int32_t node_class, first; /* first: first of its runs, or NO_INDEX */
    int32_t kept_for;          /* demand; NO_INDEX */
    int32_t next_kept;         /* next slot reserved for that demand; NO_INDEX */
};

/* A running job, or another future event. */
struct run {
    int64_t limit_ms; /* its end by its time limit */
    /* NULL: the slot opens, or is to be checked for idleness; without a slot: launches are */
    const struct shape *shape;
    int64_t uusd_h;
    int32_t slot;       /* NO_INDEX: on a node that accepts no more work */
    int32_t prev, next; /* in the list of its slot */
    bool counts;        /* set for one rank of a gang */
};

/* Basis for drawing the end of a job that runs now. */
struct running {
    int64_t began_ms, job;
    const struct runtimes *history; /* may be NULL */
    bool is_stopping;
};

/* Pending jobs with the same demand. */
struct forecast_demand {
    struct queue_position position; /* position of the next one */
    const struct shape *shape;
    struct resources need;
    int64_t left, step; /* step: distance of positions */
    int64_t last_at;    /* position of the last one */
    int64_t from_ms;    /* not eligible before */
    int32_t nodes;
    int32_t group[2];      /* of their user and team; 0 = unlimited */
    bool has_reserved;     /* nodes are reserved for the first of them */
    int64_t reserve_tried; /* epoch of the search for nodes */
    int32_t kept;          /* the first such slot */
    bool comes;            /* machines for all of them are coming */
    int n_histories, n_seen;
    const struct runtimes *histories[HISTORIES];
};

/* Usage and limits of a user or team. [0] is unlimited. */
struct group {
    const struct allowance *of;
    int64_t used[LIMIT_KINDS];
};

/* Node lists that are distinguished; jobs with further ones count as allowed on all nodes alike. */
#define NAMING_MAX 8

struct forecast_snapshot {
    const struct model *m;
    struct stamp now;
    struct node_class *node_class;
    size_t n_node_classes;
    struct slot *slots;
    size_t n_slots;
    struct run *runs;
    size_t n_runs;
    struct running *running;
    size_t n_running; /* per run */
    struct forecast_demand demands[FORECAST_DEMANDS];
    int32_t n_demands, mine; /* mine: demand of the job in question */
    struct group groups[GROUPS_MAX];
    int32_t n_groups;
    uint8_t *group_of;                    /* by the index of an allowance */
    int64_t licences[LICENCES_MAX];       /* free ones */
    int32_t recent_ends[RECENT_ENDS_MAX]; /* slots with an end, most recent first */
    int32_t n_recent_ends;
    int32_t n_reserved; /* number of demands */
    bool is_maintained; /* there are reservations for maintenance */
    int32_t n_named;
    /* Constraints of demands that name nodes. */
    const struct constraints *naming[NAMING_MAX];
    int32_t n_naming;
    int64_t each; /* one in this many nodes is simulated */
    /* speed factor of events for a job near the front */
    double faster;
};

#define REFUSED_OFTEN 3 /* refusals in a row: the availability of the offer is unknown */
static inline bool offer_is_unreliable(const struct offer *o)
{
    return o->row.refused_in_a_row >= REFUSED_OFTEN;
}

/* The job in question. */
struct forecast_request {
    const struct shape *shape;
    struct queue_position at;  /* queue position */
    const struct job_row *row; /* its window; NULL: none */
    /* When only missing capacity keeps it from starting: expected, and latest. */
    int64_t from_ms, latest_from_ms;
    const struct runtimes *history; /* may be NULL */
};

struct forecast_result {
    int64_t at_ms; /* wall clock; NEVER_MS: beyond the horizon */
    const struct node *node;
    const struct offer *offer;
    int64_t work; /* steps used */
};

void forecast_for(const struct model *m, struct stamp now, const struct forecast_request *a,
    struct forecast *ret_forecast);
/* The planner has a place for a job of the shape at its queue position, and no limit or licence
 * prevents it. */
bool shape_starts_now(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ret_node);

/* When a dependency on that job will be satisfied, expected and at the latest; false if unknown. */
bool forecast_dependency(const struct model *m, const struct job *on, enum depend_kind kind,
    int64_t delay_ms, struct stamp now, int64_t *ret_at, int64_t *ret_latest);

/* When any, and when all, of several dependencies will be satisfied: expected, and latest. */
struct forecast_waits {
    int64_t any_ms, any_latest_ms, all_ms, all_latest_ms;
    int64_t unknown; /* the first job with an unknown time; else CORE_ID_NONE */
};
#define FORECAST_WAITS_NONE                                                                        \
    ((struct forecast_waits){                                                                      \
        .any_ms = NEVER_MS, .any_latest_ms = NEVER_MS, .unknown = CORE_ID_NONE})
/* Adds a dependency on job `on`; NEVER_MS: its time is unknown. */
void forecast_waits_add(struct forecast_waits *w, int64_t on, int64_t at_ms, int64_t latest_ms);
/* Waits for any of them, or for all. False: until an unknown time. */
bool forecast_wait_for_dependencies(
    const struct forecast_waits *w, bool any, struct forecast_request *a);

/* Not before its window opens. False: it never does, and why says so (CORE_TEXT_MAX). */
bool forecast_wait_for_window(const struct model *m, const struct job_row *row, struct stamp now,
    struct forecast_request *a, char *why);

/* As core_remedies, also for a hypothetical job. */
size_t remedies_for(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max);

#define QUEUE_WALK_MAX 4000 /* maximum number of individually examined jobs */

/* Jobs of a shape before `at`: their number, an array counting as its runnable tasks, and the
 * position of the last. */
struct before {
    int64_t n, last_16;
    bool exact; /* false: estimated from positions */
};
/* left: remaining number of jobs that may be examined individually. */
struct before queue_before(
    const struct model *m, const struct shape *s, struct queue_position at, int64_t *left);

/* Queue position of a job. */
static inline struct queue_position job_position(const struct model *m, const struct job *j)
{
    return (struct queue_position){job_position_16(m, j), j->row.id};
}

/* For the job in question; the snapshot is zeroed except its model and time. */
void forecast_snapshot_take(struct forecast_snapshot *p, const struct forecast_request *a);
void forecast_snapshot_destroy(struct forecast_snapshot *p); /* with all its contents */

/* The snapshot is not changed. latest: all jobs run to their limits. */
struct forecast_result forecast_run(
    const struct forecast_snapshot *p, bool latest, uint64_t seed, int64_t work_max);

#endif
