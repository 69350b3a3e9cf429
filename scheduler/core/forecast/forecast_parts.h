/* SPDX-License-Identifier: Apache-2.0
 *
 * What forecast.c, picture.c and run.c share: the picture that is taken of the model, and one play
 * of it.
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

#define GROUPS_MAX 64 /* allowances that are limited; what is beyond them counts as without */
#define HISTORIES 4   /* of each lot */
#define LOOK_MAX 64   /* as reserve.c */
#define NOBODY (-1)
#define NEVER_MS (1LL << 60)

/* Machines that are alike to who asks. */
struct node_class {
    const struct node *node;          /* one of them; or */
    const struct offer *offer;        /* what it is launched by */
    uint64_t may[FORECAST_LOTS / 64]; /* the lots that they could hold, empty */
    int64_t n_nodes;                  /* there are, looked at or not */
    struct resources total;
};

/* A node, or a machine to come. */
struct slot {
    struct resources free;
    const struct node *node; /* or NULL */
    /* it takes work from then on; NEVER_MS: no more. In the picture, of one to come: when it was
     * decided on */
    int64_t open_ms;
    int64_t idle_ms;           /* elastic: since when nothing runs there */
    int64_t until_ms;          /* what it is kept for has room then at the latest */
    int32_t node_class, first; /* first: of what runs there, or NOBODY */
    int32_t kept_for;          /* lot; NOBODY */
    int32_t next_kept;         /* for the same; NOBODY */
};

/* Something that runs, or another thing that is to happen. */
struct run {
    int64_t limit_ms; /* its end by what is known of it */
    /* NULL: the slot opens, or is to be looked at for being idle; without a slot: launches are */
    const struct shape *shape;
    int64_t uusd_h;
    int32_t slot;       /* NOBODY: on a node that takes no more work */
    int32_t prev, next; /* of its slot */
    bool counts;        /* one rank of a gang does */
};

/* What its end is drawn by, if it runs now. */
struct running {
    int64_t began_ms, job;
    const struct runtimes *history; /* or NULL */
    bool is_stopping;
};

/* Jobs that wait and ask for the same. */
struct lot {
    struct place place; /* of the next of them */
    const struct shape *shape;
    struct resources need;
    int64_t left, step; /* step: from the place of one to that of the next */
    int64_t last_at;    /* place of the last */
    int64_t from_ms;    /* they wait for that */
    int32_t nodes;
    int32_t group[2];  /* of their user and team; 0: without limits */
    bool has_reserved; /* nodes are kept for the first of them */
    int64_t looked;    /* when they were looked for */
    int32_t kept;      /* the first of them */
    bool comes;        /* machines for all of them are on their way */
    int n_histories, n_seen;
    const struct runtimes *histories[HISTORIES];
};

/* What a user's or team's jobs come to, and may. [0] is nobody's. */
struct group {
    const struct allowance *of;
    int64_t used[LIMIT_KINDS];
};

/* lists of nodes by which these are told apart: for more of them it is as if they might run on any
 * like theirs */
#define NAMING_MAX 8

struct picture {
    const struct model *m;
    struct stamp now;
    struct node_class *node_class;
    size_t n_node_classes;
    struct slot *slots;
    size_t n_slots;
    struct run *runs;
    size_t n_runs;
    struct running *running;
    size_t n_running; /* by run */
    struct lot lots[FORECAST_LOTS];
    int32_t n_lots, mine; /* mine: who asks */
    struct group groups[GROUPS_MAX];
    int32_t n_groups;
    uint8_t *group_of;              /* by the index of an allowance */
    int64_t licences[LICENCES_MAX]; /* free ones */
    int32_t look[LOOK_MAX];         /* slots that had something end last, the last first */
    int32_t n_look;
    int32_t n_reserved; /* lots */
    int32_t n_named;
    /* that lots ask for, and that name nodes */
    const struct constraints *naming[NAMING_MAX];
    int32_t n_naming;
    int64_t each; /* one node of so many is looked at ... */
    /* ... and of who is close to the front, what comes about happens so many times as fast */
    double faster;
};

#define REFUSED_OFTEN 3 /* in a row: nobody knows when an offer gives a machine again */
static inline bool offer_is_doubtful(const struct offer *o)
{
    return o->row.refused_in_a_row >= REFUSED_OFTEN;
}

/* Who wants to know. */
struct asker {
    const struct shape *shape;
    struct place at;           /* in the queue */
    const struct job_row *row; /* its window; NULL: it has none */
    /* only room keeps it from then on; as expected, and at the latest */
    int64_t from_ms, latest_from_ms;
    const struct runtimes *history; /* or NULL */
};

struct forecast_result {
    int64_t at_ms; /* wall; NEVER_MS: not within what is known */
    const struct node *node;
    const struct offer *offer;
    int64_t work; /* that it took */
};

void forecast_for(
    const struct model *m, struct stamp now, const struct asker *a, struct forecast *ret_forecast);
/* The planner has a place for a job of the shape, where it stands in the queue, and no limit or
 * licence is in its way. */
bool shape_starts_now(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ret_node);

/* When a dependency on that job will have come true, as expected and at the latest; false: nobody
 * knows. */
bool forecast_dependency(const struct model *m, const struct job *on, enum depend_kind kind,
    int64_t delay_ms, struct stamp now, int64_t *ret_at, int64_t *ret_latest);

/* As core_remedies, of a job that is only imagined as well. */
size_t remedies_for(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max);

#define QUEUE_WALK_MAX 4000 /* jobs that are looked at one by one */

/* Jobs of a shape that stand before `at`: how many, an array counting as what could run of it; and
 * the place of the last of them. */
struct before {
    int64_t n, last_16;
    bool exact; /* else by how far they reach */
};
/* left: how many jobs may still be looked at one by one. */
struct before queue_before(
    const struct model *m, const struct shape *s, struct place at, int64_t *left);

/* Where a job stands in the queue. */
static inline struct place job_place(const struct model *m, const struct job *j)
{
    return (struct place){job_place_16(m, j), j->row.id};
}

/* For who asks; of a zeroed picture that has its model and moment. */
void picture_take(struct picture *p, const struct asker *a);
void picture_destroy(struct picture *p); /* and what it is in */

/* From the picture, which stays as it is. latest: all run to their limits. */
struct forecast_result forecast_run(
    const struct picture *p, bool latest, uint64_t seed, int64_t work_max);

#endif
