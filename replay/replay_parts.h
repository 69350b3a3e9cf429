/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the replay_*.c files; private to them.
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

/* What the provider has of one offer. */
struct seller {
    struct replay *w;
    const struct replay_offer *o;
    size_t pool;          /* index of options.pools */
    int64_t id;           /* of the core's offer */
    struct list machines; /* alive */
    int64_t n;
    struct timer tick; /* at the next change of its trace */
    size_t at, ahead;  /* index of the current tick; ticks until the next change */
};

struct machine {
    struct link in_seller;
    struct replay *w;
    struct seller *seller;
    int64_t instance, node; /* node is 0 before it has joined */
    int64_t joined_ms;
    bool is_paid;      /* the launch was answered */
    struct timer next; /* answer, join, or end */
    enum { ASKED, REFUSED, BOOTING, UP, NOTICED, ENDING } state;
};

enum phase { RESTORE, RUN, SAVE, SAVE_AND_STOP, BROKEN };

struct run {
    struct link in_all;
    struct replay *w;
    const struct replay_job *job;
    int64_t id, attempt;
    int64_t *nodes; /* of its ranks that have not ended, lowest rank first */
    size_t n_nodes;
    int64_t placed_ms;
    enum phase phase;
    struct timer next;
    struct mono since; /* start of the phase */
    int64_t done_ms;   /* work done up to `since` */
    int64_t sequence;
    int64_t every_ms;      /* between saves, decided at its last resume */
    enum end_kind stop_as; /* for SAVE_AND_STOP */
};

#define REPLAY_KEEP 3 /* checkpoints kept of a running job, as submit's default */

struct progress {
    struct run *run;  /* of its current attempt; may be NULL */
    int64_t saved_ms; /* work in its newest checkpoint */
    int64_t kept;     /* checkpoints in the store */
    int64_t submit_ms;
    bool started;
    /* of the attempt being reclaimed; attempt 0 = none */
    struct replay_loss loss;
};

struct replay {
    const struct replay_options *o;
    struct replay_result r;
    struct vtimers vt;
    struct prng prng;
    struct model *m;
    struct planner *p;
    struct seller *sellers;
    struct map machines; /* instance -> struct machine */
    /* id -> index in options.pools plus 1, as a pointer; also for nodes and instances that have
     * ended */
    struct map pool_of_node, pool_of_instance;
    int64_t alive[3]; /* machines that are paid for, by enum market */
    struct wall start;
    struct list runs;
    int64_t n_runs;
    struct progress *jobs; /* by id, from 1 */
    size_t submitted;
    int64_t ended; /* jobs */
    struct timer submit, wake;
    int64_t *launched_at; /* of all launches */
    size_t n_launched;
    int64_t racks_at_ms; /* power of racks is integrated up to here */
    struct err refused;  /* first refusal of an event that must not be refused */
};

/* ---- replay.c ---- */

struct stamp replay_now(const struct replay *w);
/* Returns the new row's id, if one is created. A refusal by the core ends the replay. */
int64_t replay_apply(struct replay *w, struct event ev);
/* Lets the core decide until nothing is left to decide, and executes the decisions. Call after
 * every event. */
void replay_settle(struct replay *w);
size_t replay_pool_index(const struct replay *w, const char *name); /* n_pools if unknown */
/* NULL if by_pool is not wanted */
struct replay_pool *replay_pool_of_node(const struct replay *w, int64_t node);
/* Adds the capacity of a machine of this size over a time. */
void replay_add_capacity(struct replay_pool *p, const struct resources *total, int64_t ms);

/* ---- Attempts (replay_attempts.c) ---- */

void replay_place(struct replay *w, int64_t job);
/* The core wants this rank to stop. */
void replay_stop(struct replay *w, const struct attempt_row *a);
/* The runs on this node will be reclaimed. */
void replay_warn_runs(struct replay *w, int64_t node);
void replay_drop_runs(struct replay *w, int64_t node); /* the machine is gone */
void replay_end_runs(struct replay *w);                /* the replay is over: ends all runs */
void replay_free_run(struct run *r);

/* ---- Machines and offers (replay_machines.c) ---- */

/* Opens the seller of options.offers[i], and announces the offer to the core. */
void replay_open_seller(struct replay *w, size_t i);
void replay_launch(struct replay *w, int64_t instance, int64_t offer);
void replay_end_machine(struct replay *w, int64_t instance);
void replay_take_machines(struct replay *w); /* the replay is over: removes all machines */

/* ---- Observations before the start (replay_observed.c) ---- */

/* Call when the sellers are open. */
void replay_load_observed(struct replay *w);

#endif
