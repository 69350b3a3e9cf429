/* SPDX-License-Identifier: Apache-2.0
 *
 * What the replay_*.c share; nobody else includes this.
 */
#ifndef BELAY_REPLAY_REPLAY_PARTS_H
#define BELAY_REPLAY_REPLAY_PARTS_H

#include "base/list.h"
#include "base/map.h"
#include "base/prng.h"
#include "base/vtimers.h"
#include "scheduler/core/plan.h"
#include "replay/replay.h"

struct replay;

struct place {
    struct replay *w;
    const struct replay_offer *o;
    size_t pool;          /* of options.pools */
    int64_t id;           /* of the core's offer */
    struct list machines; /* alive */
    int64_t n;
    struct timer tick; /* the next change of its trace, ... */
    size_t at, ahead;  /* ... which is at that tick, so many ahead */
};

struct machine {
    struct link in_place;
    struct replay *w;
    struct place *place;
    int64_t instance, node; /* node 0: has not joined */
    int64_t joined_ms;
    bool is_paid;      /* it was answered */
    struct timer next; /* answer, join, or its end */
    enum { ASKED, REFUSED, BOOTING, UP, NOTICED, ENDING } state;
};

enum phase { RESTORE, RUN, SAVE, SAVE_AND_STOP, BROKEN };

struct run {
    struct link in_all;
    struct replay *w;
    const struct replay_job *job;
    int64_t id, attempt;
    int64_t *nodes; /* of its ranks that have not ended, the lowest rank first */
    size_t n_nodes;
    int64_t placed_ms;
    enum phase phase;
    struct timer next;
    struct mono since; /* of the phase */
    int64_t done_ms;   /* work, up to `since` */
    int64_t sequence;
    int64_t every_ms;      /* as it was when it ran on */
    enum end_kind stop_as; /* of SAVE_AND_STOP */
};

#define REPLAY_KEEP 3 /* checkpoints of a job that runs, as submit keeps them */

struct progress {
    struct run *run;  /* its attempt, or NULL */
    int64_t saved_ms; /* work in its newest checkpoint */
    int64_t kept;     /* checkpoints that the store has */
    int64_t submit_ms;
    bool started;
    /* of the attempt that is being reclaimed; attempt 0: it had not started */
    struct replay_loss loss;
};

struct replay {
    const struct replay_options *o;
    struct replay_result r;
    struct vtimers vt;
    struct prng prng;
    struct model *m;
    struct planner *p;
    struct place *places;
    struct map machines; /* instance -> struct machine */
    /* index in options.pools, plus 1, as a pointer; of all there ever were */
    struct map pool_of_node, pool_of_instance;
    int64_t alive[3]; /* machines that are paid for, by market */
    struct wall start;
    struct list runs;
    int64_t n_runs;
    struct progress *jobs; /* by id, from 1 */
    size_t submitted;
    int64_t ended; /* jobs */
    struct timer submit, wake;
    int64_t *launched_at; /* of all launches */
    size_t n_launched;
    int64_t racks_at_ms; /* up to then what racks drew is summed */
    struct err refused;  /* of what must not be refused */
};

/* ---- replay.c ---- */

struct stamp replay_now(const struct replay *w);
/* The new row's id, if it makes one. What the core refuses ends the replay. */
int64_t replay_apply(struct replay *w, struct event ev);
/* The core decides until it has nothing more to decide, and what it decided is played. After
 * everything that happened. */
void replay_settle(struct replay *w);
size_t replay_pool_index(const struct replay *w, const char *name); /* n_pools: there is none */
/* NULL: not wanted */
struct replay_pool *replay_pool_of_node(const struct replay *w, int64_t node);
/* A machine of this size was there for so long. */
void replay_add_room(struct replay_pool *p, const struct resources *total, int64_t ms);

/* ---- Attempts (replay_attempts.c) ---- */

void replay_place(struct replay *w, int64_t job);
/* the core wants it, or this rank of it, to stop */
void replay_stop(struct replay *w, const struct attempt_row *a);
/* so does what runs there; it will be reclaimed */
void replay_warn_runs(struct replay *w, int64_t node);
void replay_drop_runs(struct replay *w, int64_t node); /* there is no machine any more */
void replay_end_runs(struct replay *w); /* the simulation is over; after it none is left */
void replay_free_run(struct run *r);

/* ---- Machines and where they are sold (replay_machines.c) ---- */

void replay_open_place(struct replay *w, size_t i); /* of options.offers; told to the core */
void replay_launch(struct replay *w, int64_t instance, int64_t offer);
void replay_end_machine(struct replay *w, int64_t instance);
void replay_take_machines(struct replay *w); /* at the end: what is still there goes */

#endif
