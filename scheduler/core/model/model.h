/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: every live job, attempt, node, instance, pool and offer, indexed for the decisions
 * that plan.h takes. PURE: no I/O, no clock, no libuv, no SQLite, no mutable globals. Jobs that
 * ended leave the model; db/ has them.
 *
 * Invariants (checked by model_check, which the simulator calls after every event):
 *  1. A job has at most one attempt of which a rank is not ENDED, and it has the job's greatest
 *     number. A job is RUNNING or CANCELLING exactly while it has one. The ranks of an attempt are
 *     on different nodes.
 *  2. A live attempt is on a node that exists, of a pool that its job names, if it names any; the
 *     resources of a node's live attempts never exceed its total.
 *  3. last_good of a job never goes down in (attempt, sequence) order, unless somebody has the job
 *     begin again from nothing.
 *  4. Each joined instance has one node and each elastic node one instance; tokens are unique.
 *  5. The queue holds exactly the PENDING jobs that are eligible (not held, with nothing that they
 *     depend on outstanding, and whose time to begin has come) but for those that a limit of their
 *     user or team has throttled, in the order of order.h as of the last EV_ORDER.
 *  6. Ids grow; none is given twice, over restarts too (the counters are stored).
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_MODEL_H
#define BELAY_SCHEDULER_CORE_MODEL_MODEL_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/core/queue/budget.h"
#include "scheduler/core/model/event.h"
#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/queue/order.h"
#include "scheduler/core/placement/rack.h"
#include "scheduler/core/lifecycle/retries.h"
#include "scheduler/core/forecast/runtimes.h"
#include "scheduler/core/model/tree.h"

#define LICENCES_MAX 64

struct constraints; /* what jobs ask for beside cpus, GPUs and memory: constraints.h */

/* What is free of the named resources of a node or a machine to come. */
struct stock {
    const struct counts *all; /* borrowed */
    int32_t free[COUNTS_MAX]; /* in their order */
    bool overdrawn;           /* more of it was there when its jobs were placed */
};

struct licence {
    struct count what;
    int64_t used;    /* by jobs that run */
    int64_t granted; /* before there were fewer of it than used; 0 */
};

struct shape; /* the jobs of one kind of demand and of one account; its pending ones in order */

/* What somebody's jobs come to, and may (limits.c). */
struct allowance {
    int64_t most[LIMIT_KINDS]; /* LIMIT_NONE */
    int64_t used[LIMIT_KINDS];
    bool is_limited; /* in what runs */
    /* when it last came to more or less: nothing of it may run but what costs nothing, or nothing
     * at all */
    bool was_used_up;
    int64_t index;         /* from 0, over all users and teams */
    struct tree throttled; /* shapes that it has throttled */
    struct link loose;     /* more of those may run now */
    /* the model's growth count when it last came to cost less, if that is limited */
    int64_t fell;
};

struct team {
    char name[CORE_NAME_MAX];
    int32_t shares;
    struct allowance may;
    int64_t quota_mcpu;   /* 0: none */
    int64_t claimed_mcpu; /* of it: what places are being made for (preempt.c) */
    /* of a team with a quota: the kinds of its shapes that are in the queue, in that order */
    struct tree queue;
    struct link in_quotas;
    struct list accounts;
    struct link in_all;
};

/* A user in a team. It stays for as long as the model does. */
struct account {
    struct account_row row;
    int64_t id; /* not stored */
    struct team *team;
    int32_t shares; /* of the team's */
    struct allowance may;
    int64_t mcpu; /* what its jobs take now */
    int64_t n_jobs, n_pending;
    int64_t n_waits;      /* dependencies of its jobs that WAIT */
    int64_t n_queued;     /* shapes of it in the queue */
    bool is_ordered;      /* had jobs when the queue was last put in order */
    int64_t fair_ms;      /* its fair-share term of then */
    struct runtimes ends; /* of its jobs */
    struct link in_team;
    struct link dirty;
};

/* One that is under way. */
struct drill {
    struct drill_row row;
    struct job *job;
    struct link in_live;
};

struct array {
    struct array_row row;
    struct ranges all, left; /* as in the row */
    /* struct job by in_array of their side: those that have begun and have not ended */
    struct list tasks;
    int64_t n_tasks;        /* of them */
    struct list dependents; /* struct dependency by on_job: on a task that has not ended */
    /* likewise: arrays whose tasks wait for those of this one, index by index
     * (array_dependencies.c) ... */
    struct list followers;
    /* ... and those of it that have succeeded; of nothing before the first follower */
    struct bits done;
    /* Of those in left: */
    /* that have begun, or were given up, all the same: left would be in too many pieces */
    struct bits gone;
    /* of one that follows others, and without those: who need not wait any more; who would for
     * ever */
    struct bits ready, never;
    int64_t n_gone, n_ready, n_never;
};

#define LABELS_MAX 64 /* of a job */
#define LABELS_NAMES_MAX (LABELS_MAX * CORE_NAME_MAX + 2)

/* What depends on a job's labels: their names, and what they are to budgets. It shares that with
 * all jobs of which the same holds. */
struct labels {
    int64_t id;                      /* from 1; of two live ones never the same */
    int64_t n_jobs;                  /* that live */
    char names[LABELS_NAMES_MAX];    /* a set as job/feature.h has them, in order */
    bool has_team;                   /* one of them is "team" ... */
    uint64_t team_of;                /* 1 << i: ... and names the one that the i-th budget is of */
    uint64_t matches;                /* likewise: they are as the i-th budget asks */
    char key[LABELS_NAMES_MAX + 64]; /* of all that */
};

/* What its program told of its progress (procurement_work.h). */
struct work_seen {
    /* all of it takes so long at the rate that was seen last; 0: not known */
    int64_t whole_ms;
    int64_t rated; /* in this attempt */
    /* from a start until it works, as seen last; 0: not known, or none */
    int64_t warm_ms;
    int64_t attempt, first, last; /* what this attempt told first, and last */
    struct wall at;               /* when it told the first */
};

/* What few jobs have: of the others there may be a million. */
struct job_side {
    struct job *job;
    struct list depends; /* dependencies that WAIT or will NEVER */
    /* of them: how many WAIT, how many NEVER, how many of these are AFTERCORR */
    int32_t n_open, n_never, n_never_of_tasks;
    struct list dependents; /* dependencies of others on it that WAIT, AFTER first */
    struct link unmeetable; /* in the model's list of those */
    struct link in_array;   /* of `parent` */
    /* of a gang: nodes that its ranks have left and that are kept for its next attempt */
    struct list kept;
    /* while PENDING: until when it waits for more than it needs, or nodes are kept for it */
    struct link gang_resizes;
    struct mono gang_resize_until;
    int64_t avoid;      /* node that it is not placed on; CORE_ID_NONE */
    struct link avoids; /* since that could not use the store of its checkpoints */
    struct mono avoids_until;
    struct wall not_before;     /* while it waits for that: begin_at, or when its window opens */
    struct drill *drill;        /* or NULL */
    struct budget *cap;         /* its own (budgets.c), while it runs and has one; or NULL */
    struct wall park_at;        /* its window closes soon then */
    struct tree_link by_park;   /* in a window that closes: queued, or running */
    struct tree_link by_begin;  /* while only its time to begin keeps it from the queue */
    struct tree_link by_warn;   /* while it runs: a part of its time limit is to be told of ... */
    struct wall warn_at;        /* ... then */
    struct tree_link by_expiry; /* PENDING, with a deadline */
    struct tree_link by_procurement; /* with a finish_ms */
    struct mono procurement_at;      /* then its procurement is decided anew */
    struct work_seen seen;           /* with a finish_ms; not stored */
    /* PROCURE_SPOT: of spot only this one is bought for it; CORE_ID_NONE: any. Not stored: it is
     * decided anew */
    int64_t procurement_offer;
};

struct job {
    struct job_row row;
    struct labels *labels; /* NULL: none */
    struct list ranks;     /* of its live attempt: those that have not ended, lowest first */
    /* while PENDING: it starts as soon as it can have so many nodes (gang_resize.c) */
    int32_t least;
    /* and that is more than it needs: it settles for less once no more are to be had */
    bool gathers;
    bool is_waiting;          /* PENDING, but not eligible */
    bool node_went;           /* what it runs on, or ran on last, was lost; not stored */
    struct wall certified_at; /* of the certificate that covers it; WALL_NONE */
    struct account *account;
    struct array *array; /* it is one; or NULL */
    struct job *parent;  /* the array that it is a task of; or NULL */
    /* places that it wants: what its shape counts it as; 0 while it is not in the queue */
    int64_t width;
    struct shape *shape;
    struct tree_link in_shape; /* while PENDING and eligible */
    struct job_side *side;     /* NULL: it never had any of that */
    struct link namesake;      /* in the list of its user's jobs of that name */
    struct link dirty;
};

const struct job_side *job_side(const struct job *j); /* a zeroed one where it has none */

struct dependency {
    struct dependency_row row;
    struct job *job, *on; /* on: NULL once it will NEVER */
    struct link of_job;
    struct link on_job;
};

struct attempt {
    struct attempt_row row;
    struct job *job;
    struct node *node;
    bool save_failed; /* its last save; not stored */
    bool drill_due;   /* has got somewhere since it started */
    /* that the store refused before it began, as its agent last told; its row's text has the
     * reason. Not stored */
    int32_t store_tries;
    /* it is withheld from its agent, for the reason in its row's text, until (withheld.c); not
     * stored */
    enum withheld withheld;
    struct wall withheld_until;
    struct tree_link by_withheld;
    /* that it used when its agent last looked; 0: not known, or nothing. Not stored */
    int64_t cpu_milli, memory_bytes;
    struct resources held; /* of its node, from its placement to its end; not stored */
    /* what it counts as in its user's and team's limits: its share of the node, at the price in
     * force */
    int64_t uusd_h;
    struct list stakes; /* in budgets, and in its job's own cap */
    /* while it is to be saved, then stopped and queued again (requeue.c): when that is given up;
     * not stored */
    struct wall requeue_due;
    struct tree_link in_requeues; /* by that */
    /* runs, and its job is to be drilled of itself: those that are due first, then by start */
    struct link undrilled;
    struct link in_job;
    struct link on_node;
    struct link costly; /* on an on-demand machine */
    struct link dirty;
};

/* It is a rank without a script: its place is held for tasks that the first starts there
 * (SCRIPT_ON_FIRST). */
bool attempt_holds(const struct attempt *a);

/* One of the configuration's (racks.c); watts. */
struct rack {
    const struct rack_options *options;
    int32_t index;
    int64_t idle_w; /* all of its nodes at rest, joined or not */
    int64_t draw_w; /* with what its nodes hold */
    int64_t over_w; /* and was measured beyond that */
    /* it drew so much when belayd started, or when a machine had changed; 0: not more than it
     * may */
    int64_t granted_w;
    struct list nodes; /* that have joined, by in_rack */
};

struct node {
    struct node_row row;
    struct resources free;
    struct rack *rack;                  /* or NULL */
    const struct rack_nodes *rack_kind; /* of that */
    /* it is of a pool that has more nodes than places there: the rack's idle_w has it as well */
    bool is_surplus;
    int64_t draw_w, over_w; /* there, beyond what it draws at rest */
    struct link in_rack;
    enum throttle throttle;          /* not stored */
    struct gpu_kind gpu;             /* of its GPUs: an elastic one's as its offer says */
    char features[FEATURES_ALL_MAX]; /* all that it has */
    struct counts resources;         /* likewise, by name */
    struct stock stock;              /* of those */
    struct instance *instance;       /* or NULL */
    struct list attempts;            /* live ones */
    struct pool *pool;
    struct mono last_seen;
    struct mono since;          /* when it entered its state, in this process's life */
    struct mono idle_since;     /* MONO_NONE while it has attempts */
    struct link in_all;         /* every node that is not GONE, by id */
    struct shape *reserved_for; /* or NULL */
    struct link in_reserved;
    /* jobs of that for which a place is made there; 0: it is kept as one of the first of the
     * queue */
    int32_t claims;
    struct link by_seen;     /* UP, NOTICED, DRAINING: least recently seen first */
    struct link by_growth;   /* takes work: the one whose free resources grew last first */
    int64_t grown;           /* the model's growth count at that moment */
    struct list *state_list; /* the pool's idle ones, the model's noticed or lost ones, or NULL */
    struct link by_state;    /* in that */
    struct job *kept_for;    /* or NULL; while UP */
    struct link in_kept;     /* of that job */
    /* takes work, and is not full: in by_free of its pool and market; or NULL */
    struct free_room *room;
    struct link dirty;
};

struct instance {
    struct instance_row row;
    struct node *node; /* NULL before the join, and again once its end is wanted */
    struct pool *pool;
    struct mono since;   /* when it entered its state, in this process's life */
    struct link in_all;  /* every instance that is not GONE, by id */
    struct link booting; /* of the pool: LAUNCHED */
    bool is_coming;      /* counted in n_coming of the pool */
    struct offer *offer; /* that it was launched by; NULL: none of that kind is known any more */
    struct link of_offer;
    int64_t gpus; /* as the offer said at the launch */
    struct link dirty;
};

struct ckpt_gc {
    struct ckpt_gc_row row;
    struct wall submitted_at; /* of its job, as last_good */
    struct ckpt_ref last_good;
    uint64_t budgets;        /* 1 << i: those that its job matches */
    struct tree_link by_due; /* while WAITING */
};

/* Machines, their GPUs, and what they cost an hour: taken, or still to be had. */
struct room {
    int64_t nodes, gpus, uusd_h;
};

/* A node in by_free: what a search for room reads, and nothing else, in one line of the processor's
 * cache. */
struct free_room {
    struct tree_link link; /* by gpus, cpus, memory, id */
    struct resources free; /* as it was filed: that of the node */
    int64_t id;
    struct node *node;
};

struct pool {
    struct pool_row row;
    int32_t index;    /* its place in all_pools, from 0 */
    int32_t n_nodes;  /* instances of it that are not GONE */
    struct room used; /* by those whose reclaim is not announced */
    /* that its nodes stand in, but for those named in another; NULL: as they are named */
    struct rack *rack;
    const struct rack_nodes *rack_kind; /* of that */
    /* its spot machines are for jobs with a certificate of then or later; WALL_NONE: for all */
    struct wall certified_since;
    struct list offers; /* by rank, then price, then id */
    /* by market: struct free_room, of nodes that take work and are not full */
    struct tree by_free[3];
    struct list idle;     /* elastic nodes, UP or DRAINING, without attempts, longest first */
    struct list booting;  /* LAUNCHED instances, longest first */
    int32_t n_coming;     /* INTENDED or LAUNCHED ones */
    struct mono probe_at; /* with row.boots.wait_ms: no launch before; MONO_NONE: now */
    struct link in_all;
    struct link dirty;
};

#define OFFER_SCORE_NONE 0
#define OFFER_SCORE_MAX 10

struct offer {
    struct offer_row row;
    struct pool *pool;
    struct resources seen; /* the least that its machines really had; zero: none seen yet */
    char features[FEATURES_ALL_MAX]; /* that its machines have */
    struct counts resources;         /* likewise */
    struct list instances;           /* of it, not GONE */
    int64_t n_live;                  /* those whose reclaim is not announced */
    /* How likely the provider holds it that a spot machine can be had, 1 (not) to OFFER_SCORE_MAX
     * (very); OFFER_SCORE_NONE: it does not say. Not stored. */
    int32_t score;
    int32_t early_reclaims_in_a_row; /* see offer_note_life; not stored */
    /* why it is avoided: the last launch that gave no machine, or a short-lived one */
    char why[CORE_TEXT_MAX];
    struct link in_pool;
    struct link dirty;
};

/* What belongs to a cron entry while it is not REMOVED. */
struct cron_entry {
    struct cron_row row;
    struct cron cron;             /* row.schedule, read */
    const struct time_zone *zone; /* NULL: this machine does not know it (any more) */
    struct job_row job;           /* what its jobs are submitted with ... */
    /* ... members owned; script NULL: what is stored of it cannot be read */
    struct job_texts texts;
    char why[CORE_TEXT_MAX]; /* one of these two; else "" */
    struct wall due;         /* when something is to be decided; WALL_NONE: nothing */
    struct tree_link by_due;
    struct link dirty;
};

/* What a tick changed, as copies: what db/ writes and what effects are derived from. All arrays are
 * owned. */
struct spec_change {
    int64_t job;
    char *script, *args_json, *env_json, *cwd, *labels_json, *launch_json, *notify_json;
};

/* Options of a job that are only stored: a JSON merge patch (RFC 7396) of its document. */
struct document_change {
    int64_t job;
    char *patch_json;
};

struct cron_job_change {
    int64_t cron;
    char *job_json;
};

struct changes {
    struct job_row *jobs;
    size_t n_jobs;
    struct attempt_row *attempts;
    size_t n_attempts;
    struct node_row *nodes;
    size_t n_nodes;
    struct instance_row *instances;
    size_t n_instances;
    struct pool_row *pools;
    size_t n_pools;
    struct offer_row *offers;
    size_t n_offers;
    struct history_row *history;
    size_t n_history;
    struct checkpoint_row *checkpoints;
    size_t n_checkpoints;
    struct ledger_row *ledger;
    size_t n_ledger;
    struct spec_change *specs;
    size_t n_specs;
    struct document_change *documents;
    size_t n_documents;
    struct ckpt_gc_row *ckpt_gc;
    size_t n_ckpt_gc; /* of one job the last holds */
    struct stored_row *stored;
    size_t n_stored; /* likewise */
    struct drill_row *drills;
    size_t n_drills; /* of one drill the last holds */
    struct account_row *accounts;
    size_t n_accounts;
    struct budget_row *budgets;
    size_t n_budgets;
    struct dependency_row *depends;
    size_t n_depends; /* of one dependency the last holds */
    struct array_row *arrays;
    size_t n_arrays; /* of one array the last holds */
    struct cron_row *crons;
    size_t n_crons; /* of one entry the last holds */
    struct cron_job_change *cron_jobs;
    size_t n_cron_jobs; /* likewise */
    struct constraints_row *constraints;
    size_t n_constraints;
    struct cron_run_row *cron_runs;
    size_t n_cron_runs;
    /* of one row the last holds, unless it is told */
    struct outbox_row *outbox;
    size_t n_outbox;
    struct outbox_key *told;
    size_t n_told; /* delivered or given up: they go */
    /* behind jobs: their rows cost so much more */
    struct late_cost *late_costs;
    size_t n_late_costs;
    /* the counters after this tick */
    int64_t next_job, next_node, next_instance, next_history, next_offer, next_cron,
        next_constraints;
    struct {
        size_t jobs, attempts, nodes, history, ledger;
    } room; /* rows that these have memory for */
};

void changes_deinit(struct changes *c);
bool changes_is_empty(const struct changes *c);

/* How it is decided for jobs that are to be done by some moment (procurement.c). */
struct procurement_options {
    enum deadline_rule rule;
    int64_t look_ms; /* each such job is looked at at least so often when it matters, > 0 */
    /* what is learned of spot is counted in such steps, >= look_ms: ten minutes, or less where a
     * cloud runs fast */
    int64_t step_ms;
    int32_t work_margin_pct; /* what was told of the work may be so much too little */
    /* DEADLINE_PLANNED: of what the work costs on-demand; so much more than Uniform Progress a job
     * may come to cost */
    int32_t cap_pct;
};
extern const struct procurement_options
    procurement_usual; /* planned; a minute; ten minutes; 100; 35 */

#define MODEL_STORE_UUSD_MAX INT64_C(1000000000000)

struct model_options {
    char cluster_uid[17]; /* 16 hex digits, made with the database: tokens carry it */
    int64_t lease_ms;     /* a node not heard of for longer is LOST */
    /* an attempt is withheld from its agent for so long at most (withheld.c); 0: 10 min */
    int64_t store_wait_ms;
    int64_t max_nodes, max_gpus, max_uusd_h; /* of all elastic pools together; 0: no limit */
    /* a job is held after so many restored attempts in a row that began again (no_progress.c); 0:
     * never */
    int32_t hold_in_vain;
    /* what it costs to keep a GiB in the store, at most MODEL_STORE_UUSD_MAX */
    int64_t store_uusd_gib_month;
    int64_t retention_ms; /* how long the checkpoints of ended jobs stay, by AFTER_AUTO */
    const struct order_options *order;   /* borrowed for the model's life; NULL: order_defaults */
    const struct retry_options *retries; /* borrowed; NULL: retries_usual, and no limits */
    const struct window *windows;        /* borrowed; no two of a name */
    size_t n_windows;
    /* of the cluster; copied. No two of a name, at most LICENCES_MAX */
    const struct count *licences;
    size_t n_licences;
    const struct procurement_options *procurement; /* copied; NULL: procurement_usual */
    const struct notify_hook *hooks; /* borrowed; no two of a name, at most NOTIFY_HOOKS_MAX */
    size_t n_hooks;
    const struct budget_options *budgets; /* borrowed; no two of a name, at most BUDGETS_MAX */
    size_t n_budgets;
    /* borrowed; no two of a name, no node in two, at most RACKS_MAX */
    const struct rack_options *racks;
    size_t n_racks;
    /* where zones are looked up by name; borrowed, outlives the model. NULL: there is only UTC */
    struct zones *zones;
    /* Reads what is stored of a cron entry's job, without any I/O: fills what a submit takes;
     * texts' members are the caller's to free with free(). NULL: entries cannot be loaded. */
    int (*read_job)(
        const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e);
};

struct model;

struct model *model_create(const struct model_options *o);
void model_destroy(struct model *m); /* NULL is fine */

/* Recovery: rows as they were stored, each kind before the ones that refer to it (pools, offers,
 * instances, nodes, certificates, accounts, constraints, labels, jobs, arrays, dependencies, ends
 * of tasks, live attempts, live drills, leftovers), each kind by id, then model_load_end. Nothing
 * is marked as changed. Leases start anew at now. ERR_CORRUPT names the row that contradicts
 * another. */
int model_load_pool(struct model *m, const struct pool_row *r, struct stamp now, struct err *e);
int model_load_offer(struct model *m, const struct offer_row *r, struct err *e);
int model_load_instance(
    struct model *m, const struct instance_row *r, struct stamp now, struct err *e);
int model_load_node(struct model *m, const struct node_row *r, struct stamp now, struct err *e);
/* of a live job */
int model_load_constraints(struct model *m, const struct constraints_row *r, struct err *e);
/* before jobs. Of one that is not configured (any more) nothing is kept */
int model_load_budget(struct model *m, const struct budget_row *r, struct err *e);
/* of a live job that is no task, before it */
int model_load_labels(struct model *m, int64_t job, const char *labels_json, struct err *e);
int model_load_job(struct model *m, const struct job_row *r, struct stamp now, struct err *e);
int model_load_array(struct model *m, const struct array_row *r, struct err *e); /* of a live job */
/* of a live job: WAITS or NEVER */
int model_load_dependency(struct model *m, const struct dependency_row *r, struct err *e);
/* of a live array that an AFTERCORR is of, or on */
int model_load_task_end(struct model *m, const struct task_end *r, struct err *e);
int model_load_attempt(struct model *m, const struct attempt_row *r, struct err *e);
/* one that passed; the newest of its key */
int model_load_certificate(struct model *m, const struct drill_row *r, struct err *e);
int model_load_drill(struct model *m, const struct drill_row *r, struct err *e);
int model_load_account(struct model *m, const struct account_row *r, struct err *e);
int model_load_ckpt_gc(struct model *m, const struct ckpt_gc_row *r, struct err *e);
/* Then whose each is: id, team, user, name, submitted_at and last_good of r, and the job's labels
 * (NULL: none), which are its array's if it is a task. */
int model_load_ckpt_gc_of(
    struct model *m, const struct job_row *r, const char *labels_json, struct err *e);
/* after those: of which something is there, or is to be paid yet */
int model_load_stored(struct model *m, const struct stored_row *r, struct err *e);
int model_load_outbox(struct model *m, const struct outbox_row *r, struct err *e);
/* After the jobs. A zone or a job that cannot be read any more is no error: the entry says so and
 * does nothing. */
int model_load_cron(struct model *m, const struct cron_row *r, const char *job_json,
    struct stamp now, struct err *e);
struct model_counters {
    /* >= 1 */
    int64_t next_job, next_node, next_instance, next_history, next_offer, next_cron,
        next_constraints;
};
int model_load_end(struct model *m, const struct model_counters *c, struct err *e);
/* Of a job that ended a while ago, oldest first: what it used of its limit. For forecasts only;
 * ends that say nothing about that are left out. */
void model_load_runtime(struct model *m, const struct job_row *r, int64_t used_ms);

/* What was seen of a spot offer while belayd was there before: in order of time. Of what is not
 * there (any more) nothing is kept. */
enum spot_observation {
    SPOT_THERE, /* a machine of it was given ... */
    SPOT_ENDED, /* ... and went, since nobody needed it any more, */
    SPOT_LOST,  /* or was taken back, or is about to be */
    SPOT_AWAY   /* it was refused */
};
void model_load_spot_observation(
    struct model *m, int64_t offer, enum spot_observation what, struct wall at);

/* What applying an event answered to whoever sent it. */
struct outcome {
    int64_t id; /* of the job, node or instance that was made, or of the one named */
};

/* Applies one event; on an error nothing has changed. Facts that no longer matter (a stale
 * attempt's report, a second notice of the same kind, a launch reply for an instance that is gone)
 * change nothing and return 0: they are safe to repeat. ERR_NOT_FOUND and ERR_CONFLICT are for
 * users' requests that name nothing or come too late, and for machines that may not join (any
 * more); ERR_DENIED for a join token used twice; ERR_INVALID for what no honest sender says. */
int core_apply(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

/* What applying EV_POOL with this row would answer now: a pool never changes its kind, and while it
 * has instances it stays with its provider and in its region. */
int core_pool_check(const struct model *m, const struct pool_row *r, struct err *e);

/* Moves what has changed since the last call into *ret_changes (zeroed or deinited). */
void model_take_changes(struct model *m, struct changes *ret_changes);
/* Deinits them; their memory, as far as it is not out of proportion, is for the next. */
void model_return_changes(struct model *m, struct changes *c);

/* Look-ups; borrowed until the next core_apply. NULL: none (any more). */
struct job *model_job(const struct model *m, int64_t id);
/* The numbers from first to last that live jobs have, rising; *ret_ids is the caller's to free.
 * Costs as much as there are live jobs, or numbers if those are fewer. */
size_t model_jobs_between(const struct model *m, int64_t first, int64_t last, int64_t **ret_ids);
/* Of the job's live attempt: the lowest rank that has not ended, or NULL: it does not run. */
struct attempt *job_attempt(const struct job *j);
/* The rank of attempt number `attempt` on that node, or NULL: it has ended, or never was there. j
 * may be NULL. */
struct attempt *job_attempt_on(const struct job *j, int64_t attempt, int64_t node);
struct node *model_node(const struct model *m, int64_t id);
struct instance *model_instance(const struct model *m, int64_t id);
struct instance *model_instance_by_token(const struct model *m, const char *token);
struct instance *model_instance_by_provider_id(
    const struct model *m, const char *region, const char *provider_id);
struct node *model_node_by_key(const struct model *m, const char *key_hash);
struct pool *model_pool(const struct model *m, const char *name);
struct offer *model_offer(const struct model *m, int64_t id);
const struct constraints *model_constraints(const struct model *m, int64_t id); /* of a live job */
/* NULL: no window of this name is configured. */
const struct window *core_window(const struct model *m, const char *name);
const struct cron_entry *model_cron(const struct model *m, int64_t id);
/* Times that wait for the end of its last job, oldest first; returns how many, at most
 * CRON_WAITING_MAX. */
size_t core_cron_waiting(const struct cron_row *r, struct wall ret_at[CRON_WAITING_MAX]);
const struct list *model_nodes(const struct model *m);     /* struct node by in_all */
const struct list *model_instances(const struct model *m); /* struct instance by in_all */
const struct list *model_pools(const struct model *m);     /* struct pool by in_all */

/* What the account has used by then. */
int64_t account_used(const struct model *m, const struct account *a, struct wall now);
/* struct team by in_all, in the order in which they came up */
const struct list *model_teams(const struct model *m);
const struct order_options *model_order(const struct model *m);

/* Where a job stands in the queue: as if it had waited for total_ms and nothing else counted. */
struct priority {
    int64_t total_ms, age_ms, fair_ms, qos_ms, size_ms, nice_ms;
};
/* As of the last EV_ORDER. */
void core_priority(
    const struct model *m, const struct job *j, struct wall now, struct priority *ret_priority);

/* How much the store has of a job, as far as is known; -1: it costs nothing, and is not counted. */
int64_t model_stored_bytes(const struct model *m, int64_t job);

/* What stays when it is cleaned next. */
enum ckpt_gc_keep core_ckpt_gc_keep(const struct ckpt_gc_row *r);
/* The identity of the job that was submitted then, the same for all of its attempts and no other
 * job's, even of its number. */
void core_ckpt_identity(
    const char *cluster_uid, struct wall submitted_at, char ret_identity[CKPT_IDENTITY_MAX]);
/* Of a job that has ended and left something that is not DONE. */
void model_ckpt_gc_claim(const struct model *m, int64_t job, struct ckpt_claim *ret_claim);
/* The one that is CLEANING, or NULL. */
const struct ckpt_gc_row *model_cleaning(const struct model *m);

struct room model_used(const struct model *m); /* by all pools together */

struct model_counts {
    /* pending: eligible or not; waiting: of those, not eligible */
    int64_t pending, waiting, running, nodes_up, nodes_lost, instances, shapes, ckpt_gc, outbox;
};
void model_counts(const struct model *m, struct model_counts *ret_counts);

/* Reclaims an hour to expect on this node: observed of its offer, smoothed by a prior of 0.05 an
 * hour over 20 hours; more after a rebalance recommendation, by how often those of the offer came
 * true. */
double core_reclaims_per_hour(const struct node *n);

/* The same of any of the nodes that a job runs on: the loss of one is the loss of all. */
double core_job_reclaims_per_hour(const struct job *j);
/* How a job that is to be done by some moment is expected to go on, as things are now. false:
 * nothing can be said, as it has no such moment, runs on what is owned, was not looked at yet, or
 * nothing that it could use is always to be had. Some milliseconds. */
struct procurement_outlook {
    int64_t median_ms, late_ms; /* from now to its end: in half of the cases, and in 95 of 100 */
    int64_t uusd;               /* what it will yet cost, on average */
};
bool core_procurement_expects(const struct model *m, const struct job *j, struct stamp now,
    struct procurement_outlook *ret_outlook);
/* What it waits for, or why it pays for on-demand; false: it has no such moment. */
bool core_procurement_why(
    const struct model *m, const struct job *j, struct stamp now, char *out, size_t size);
/* Even on-demand from now on is expected to take so long, and there is less time. */
bool core_procurement_late(
    const struct model *m, const struct job *j, struct stamp now, int64_t *ret_takes_ms);

/* The same of a machine of this offer to come. */
double core_offer_reclaims_per_hour(const struct offer *o);
/* What an hour of it really costs a job that has saved nothing yet: price, and what its reclaims
 * are expected to cost. */
int64_t core_offer_effective_uusd_h(const struct offer *o);

/* The other offers that this launch may be answered from, best first; the same ones for as long as
 * the row lives. */
size_t core_alternatives(const struct model *m, const struct instance *i,
    const struct offer *ret_offers[INSTANCE_ALTERNATIVES_MAX]);
/* The one among them that this zone and type ("": as in the row) are, when the row says another;
 * NULL: none. */
struct offer *core_other_offer(
    const struct model *m, const struct instance *i, const char *zone, const char *type);

/* A pool of machines to be launched for this job of the method criu, of which nobody knows whether
 * they can do that, while no node or other pool is known to; NULL: there is none. Borrowed. */
const char *core_criu_untried(const struct model *m, const struct job_row *j);

/* Checks the invariants above; ERR_INTERNAL names the first that does not hold. O(everything): for
 * tests. */
int model_check(const struct model *m, struct err *e);

/* When saves pay: Young's first-order interval sqrt(2 * save * mtbf) (Young 1974; Daly 2006),
 * clamped to [15 s, 30 min]; save_ms <= 0 counts as 1 s; reclaims per hour <= 0 as 0.05. */
int64_t core_save_interval_ms(int64_t save_ms, double reclaims_per_hour);

/* Between the periodic saves of a live attempt, as things are now: what its user said, or the above
 * by what the program waited for at the job's last save and its nodes, but at least four times what
 * all of that save took: storing leaves the node and its way to the store to the program most of
 * the time. 0: it takes no part in checkpoints. */
int64_t core_interval_ms(const struct attempt *a);

/* What an instance has cost at a moment: each stretch at the price that was in force in it. 0
 * before its launch. */
int64_t core_instance_uusd(const struct instance_row *r, struct wall at);

/* Price of ms of a node at uusd_h, rounded to the nearest micro-dollar; no overflow up to 10 years
 * at $1000/h. */
int64_t core_cost_uusd(int64_t ms, int64_t uusd_h);

/* Price of bytes at uusd_gib, rounded to the nearest micro-dollar; 0 of less than nothing. */
int64_t core_bytes_uusd(int64_t bytes, int64_t uusd_gib);

/* What a live attempt has cost by now, and what its time would have cost on-demand; its ledger rows
 * are written when it ends. Work that is not saved yet counts as useful. Micro-dollars, >= 0. */
void core_cost_so_far(
    const struct attempt *a, struct wall now, int64_t *ret_uusd, int64_t *ret_on_demand_uusd);

#endif
