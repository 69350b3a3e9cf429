/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: every live job, attempt, node, instance, pool and offer, indexed for the decisions
 * of plan.h. PURE: no I/O, no clock, no libuv, no SQLite, no mutable globals. Jobs that ended
 * leave the model; db/ has them.
 *
 * Invariants (checked by model_check, which the simulator calls after every event):
 *  1. A job has at most one attempt with a rank that is not ENDED, and that attempt has the job's
 *     greatest number. A job is RUNNING or CANCELLING exactly while it has such an attempt. The
 *     ranks of an attempt are on different nodes.
 *  2. A live attempt is on an existing node, in a pool that its job names, if it names any. The
 *     resources of a node's live attempts never exceed the node's total.
 *  3. last_good of a job never decreases in (attempt, sequence) order, unless a user restarts the
 *     job from scratch.
 *  4. Each joined instance has one node and each elastic node one instance; tokens are unique.
 *  5. The queue has exactly the PENDING jobs that are eligible (not held, no open dependency,
 *     begin time reached) and not throttled by a limit of their user or team, in the order of
 *     priority.h as of the last EV_ORDER.
 *  6. Ids increase and are never reused, also across restarts (the counters are stored).
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_MODEL_H
#define BELAY_SCHEDULER_CORE_MODEL_MODEL_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/core/queue/budget_options.h"
#include "scheduler/core/model/event.h"
#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/lifecycle/node_failures.h"
#include "scheduler/core/lifecycle/notify_outbox.h"
#include "scheduler/core/queue/policy.h"
#include "scheduler/core/placement/rack_options.h"
#include "scheduler/core/supply/egress.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/forecast/runtimes.h"
#include "scheduler/core/model/tree.h"

#define LICENCES_MAX 64

struct constraints; /* demands besides cpus, GPUs and memory: constraints.h */

/* Free amounts of the named resources of a node or of a planned machine. */
struct stock {
    const struct counts *all; /* borrowed */
    int32_t free[COUNTS_MAX]; /* in the order of `all` */
    bool overdrawn;           /* the amount fell below what placed jobs use */
};

struct licence {
    struct count what;
    int64_t used;    /* used by running jobs */
    int64_t granted; /* amount in use when the total fell below it; else 0 */
};

struct shape; /* jobs with the same demand and account; pending ones in order */

/* Usage and limits of a user or team (limits.c). */
struct allowance {
    int64_t max[LIMIT_KINDS]; /* maximum of each kind; LIMIT_NONE = unlimited */
    int64_t used[LIMIT_KINDS];
    bool is_limited; /* has a limit on running jobs */
    /* Used up at the last change of the usage: no further job may run, or only jobs without
     * cost. */
    bool was_used_up;
    int64_t index;          /* from 0, over all users and teams */
    struct tree throttled;  /* shapes throttled by this allowance */
    struct link may_return; /* in the list of allowances with throttled jobs that may run again */
    int64_t freed_version;  /* growth count of the model when the limited usage last fell */
};

struct team {
    char name[CORE_NAME_MAX];
    int32_t shares;
    struct allowance allowance;
    int64_t quota_mcpu;   /* 0 = no quota */
    int64_t claimed_mcpu; /* claimed by preemptions in progress (preempt.c) */
    /* Team with a quota: demand classes of its queued shapes, in that order. */
    struct tree queue;
    struct link in_quotas;
    struct list accounts;
    struct link in_all;
};

/* A user in a team. Exists as long as the model. */
struct account {
    struct account_row row;
    int64_t id; /* not stored */
    struct team *team;
    int32_t shares; /* of the team's shares */
    struct allowance allowance;
    int64_t mcpu; /* used by its jobs now */
    int64_t n_jobs, n_pending;
    int64_t n_waits;      /* dependencies of its jobs in WAITS */
    int64_t n_queued;     /* its shapes in the queue */
    bool is_ordered;      /* had jobs at the last sort of the queue */
    int64_t fair_ms;      /* fair-share term at the last sort */
    struct runtimes ends; /* observed run times of its jobs */
    struct link in_team;
    struct link dirty;
};

/* A drill in progress. */
struct drill {
    struct drill_row row;
    struct job *job;
    struct link in_live;
};

struct array {
    struct array_row row;
    struct ranges all, left; /* see struct array_row */
    /* struct job by in_array of its job_side: tasks that have begun and not ended */
    struct list tasks;
    int64_t n_tasks;        /* length of tasks */
    struct list dependents; /* struct dependency by on_job: on a task that has not ended */
    /* Dependencies of other arrays that wait for this array's tasks index by index
     * (array_dependencies.c). */
    struct list task_dependents;
    /* Tasks that have succeeded; empty until the first dependent array. */
    struct bits done;
    /* Exceptions to `left`: tasks that have begun or are given up but are still in it, since it
     * would otherwise have too many ranges. */
    struct bits gone;
    /* With task-by-task dependencies: tasks whose dependency is met; can never be met. Both without
     * `gone`. */
    struct bits ready, never;
    int64_t n_gone, n_ready, n_never;
};

#define LABELS_MAX 64 /* per job */
#define LABELS_NAMES_MAX (LABELS_MAX * CORE_NAME_MAX + 2)

/* Everything that depends on a job's labels: their names and the budgets that they match. Shared by
 * all jobs with the same key. */
struct labels {
    int64_t id;                      /* from 1, unique among live ones */
    int64_t n_jobs;                  /* live jobs that share it */
    char names[LABELS_NAMES_MAX];    /* a set of names as in job/feature.h, sorted */
    bool has_team;                   /* one of the labels is "team" */
    uint64_t team_of;                /* 1 << i: it names the team of the i-th budget */
    uint64_t matches;                /* 1 << i: the labels match the i-th budget */
    char key[LABELS_NAMES_MAX + 64]; /* all of the above as text */
};

/* Progress reports of a job's program (procurement_work.h). */
struct work_seen {
    int64_t whole_ms; /* of the whole work at the last observed rate; 0 = unknown */
    int64_t rated;    /* rate samples in this attempt */
    /* Last observed time from a start to the first work; 0 = unknown or none. */
    int64_t warm_ms;
    int64_t attempt, first, last; /* first and last progress of this attempt */
    struct wall at;               /* time of the first report */
    int64_t paused_ms;            /* in saves of this attempt, up to that report */
};

/* Rarely used members of a job, allocated on demand: there may be a million jobs. */
struct job_side {
    struct job *job;
    struct list depends; /* its dependencies in WAITS or NEVER */
    /* Counts of `depends`: in WAITS, in NEVER, and of the latter those of AFTERCORR. */
    int32_t n_open, n_never, n_never_of_tasks;
    struct list dependents; /* dependencies of other jobs on it in WAITS, AFTER first */
    struct link unmeetable; /* in the model's list of unmeetable jobs */
    struct link in_array;   /* in the task list of `parent` */
    /* Gang: nodes that its ranks have left and that are kept for its next attempt. */
    struct list kept;
    /* While PENDING: ordered by the end of its wait for more nodes or for kept ones. */
    struct link gang_resizes;
    struct mono gang_resize_until;
    int64_t avoid;      /* node to avoid; CORE_ID_NONE */
    struct link avoids; /* while the avoided node could not use the checkpoint store */
    struct mono avoids_until;
    struct wall not_before;        /* while waiting: begin_at, or the opening of its window */
    struct drill *drill;           /* may be NULL */
    struct budget *cap;            /* its own spending cap while it runs (budgets.c); may be NULL */
    struct wall park_at;           /* shortly before its window closes */
    struct tree_link by_park;      /* queued or running, with a window that closes */
    struct tree_link by_begin;     /* while only its begin time keeps it out of the queue */
    struct tree_link by_warn;      /* RUNNING: the next part of its time limit to notify */
    struct wall warn_at;           /* when that part has passed */
    struct tree_link by_idle_gpus; /* RUNNING with idle GPUs: the next decision about that */
    struct wall idle_gpus_due;     /* the time of that decision */
    struct tree_link by_expiry;    /* PENDING, with a deadline */
    struct tree_link by_procurement; /* with a finish_ms */
    struct mono procurement_at;      /* next procurement decision */
    struct work_seen seen;           /* with a finish_ms; not stored */
    int64_t restore_ms;              /* with a finish_ms: of its last restore; 0: none yet */
    /* PROCURE_SPOT: the only spot offer it may use; CORE_ID_NONE for any. Not stored: decided again
     * after a restart. */
    int64_t procurement_offer;
};

struct job {
    struct job_row row;
    struct labels *labels; /* may be NULL */
    struct list ranks;     /* ranks of the live attempt that have not ended, lowest first */
    /* While PENDING: it starts when this many nodes are available (gang_resize.c). */
    int32_t least;
    /* `least` exceeds its minimum; it settles for less when no more nodes are available. */
    bool gathers;
    bool is_waiting;          /* PENDING but not eligible */
    bool node_went;           /* its current or last node was lost; not stored */
    struct wall certified_at; /* date of the certificate that covers it; WALL_NONE */
    struct account *account;
    struct array *array; /* not NULL if the job is an array */
    struct job *parent;  /* the array of a task; else NULL */
    /* Places that it asks for, its weight in its shape; 0 outside the queue. */
    int64_t width;
    struct shape *shape;
    struct tree_link in_shape; /* while PENDING and eligible */
    struct job_side *side;     /* NULL if it has none of these members */
    struct link namesake;      /* in the list of its user's jobs with the same name */
    struct link dirty;
};

/* never NULL: a zeroed one if the job has none */
const struct job_side *job_side(const struct job *j);

struct dependency {
    struct dependency_row row;
    struct job *job, *on; /* on is NULL in NEVER */
    struct link of_job;
    struct link on_job;
};

struct attempt {
    struct attempt_row row;
    struct job *job;
    struct node *node;
    bool save_failed; /* the last save failed; not stored */
    bool drill_due;   /* has made progress since it started */
    /* It ended before it began: its node has no account for the job's user, or runs no jobs of that
     * account. Set at its end; not stored. */
    bool user_refused;
    /* Refusals by the store before the attempt began, as last reported by the agent; the reason is
     * the text of the row. Not stored. */
    int32_t store_tries;
    /* Why it is withheld from its agent and until when (withheld.c); the reason is the text of the
     * row. Not stored. */
    enum withheld withheld;
    struct wall withheld_until;
    struct tree_link by_withheld;
    /* Usage at the agent's last report; 0 = unknown or none. Not stored. */
    int64_t cpu_milli, memory_bytes;
    /* supply/prefetch.h; not stored */
    struct {
        int64_t node; /* the last one that was asked; CORE_ID_NONE */
        struct mono asked_at;
        bool is_over;            /* the node has reported */
        int64_t unchanged_bytes; /* of the last checkpoint: in the store before it; 0 = unknown */
    } prefetch;
    struct resources allocated; /* on its node from placement to end; not stored */
    /* Cost that counts towards the limits of its user and team: its share of the node at the
     * current price. */
    int64_t uusd_h;
    struct list stakes; /* in budgets and in its job's own cap */
    /* Deadline of the save before a requeue (user_requeue.c). Not stored. */
    struct wall requeue_due;
    struct tree_link in_user_requeues; /* by requeue_due */
    struct link undrilled; /* RUNNING with a drill on submit: those due first, then by start */
    struct link in_job;
    struct link on_node;
    struct link costly; /* on an on-demand machine */
    struct link dirty;
};

/* A configured rack (racks.c). Power in watts. */
struct rack {
    const struct rack_options *options;
    int32_t index;
    int64_t idle_w; /* idle power of all its nodes, joined or not */
    int64_t draw_w; /* idle power plus the power reserved by placed jobs */
    int64_t over_w; /* measured beyond draw_w */
    /* Exceeded power limit accepted at a start of belayd or at a change of a machine; 0 = within
     * the limit. */
    int64_t granted_w;
    struct list nodes; /* joined nodes, by in_rack */
};

struct node {
    struct node_row row;
    struct resources free;
    struct rack *rack;                  /* may be NULL */
    const struct rack_nodes *rack_kind; /* its entry in the rack */
    /* Its pool has more nodes than places in the rack, so its idle power is included in the rack's
     * idle_w. */
    bool is_surplus;
    bool is_closed;         /* in an open reservation that lets no jobs run */
    uint64_t maintenance;   /* 1 << i: the i-th reservation covers it (placement/maintenance.h) */
    int64_t draw_w, over_w; /* in the rack, above idle power */
    struct link in_rack;
    enum node_throttle throttle;    /* not stored */
    char disk_full[CORE_TEXT_MAX];  /* not stored; the reason, "" = it has space */
    struct node_failures *failures; /* NULL = none */
    struct {
        int64_t job, attempt;        /* that it was told to fetch for; CORE_ID_NONE */
        struct link in_all;          /* until it runs something: the model's nodes that were told */
    } prefetch;                      /* supply/prefetch.h; not stored */
    struct gpu_kind gpu;             /* elastic: from the offer */
    char features[FEATURES_ALL_MAX]; /* all features */
    struct counts resources;         /* named resources */
    struct stock stock;              /* free amounts of resources */
    struct instance *instance;       /* NULL for a reserved node */
    struct list attempts;            /* live ones */
    struct pool *pool;
    struct mono last_seen;
    struct mono since;          /* entered its state in this process */
    struct mono idle_since;     /* MONO_NONE while it has attempts */
    struct link in_all;         /* all nodes that are not GONE, by id */
    struct shape *reserved_for; /* may be NULL */
    struct link in_reserved;
    /* Claimed for this many jobs of reserved_for by preemption; 0: reserved for a job at the head
     * of the queue. */
    int32_t claims;
    struct link by_seen;   /* UP, NOTICED, DRAINING: least recently seen first */
    struct link by_growth; /* accepts work; most recent growth of free resources first */
    int64_t grown;         /* growth count of the model at that time */
    /* The pool's idle nodes, the model's noticed or lost nodes, or NULL. */
    struct list *state_list;
    struct link by_state; /* in state_list */
    struct job *kept_for; /* the gang that it is kept for while UP, or NULL */
    struct link in_kept;  /* in the kept nodes of that job */
    /* Accepts work and is not full: its entry in by_free of its pool and market; or NULL. */
    struct free_entry *free_entry;
    struct link dirty;
};

struct instance {
    struct instance_row row;
    struct node *node; /* NULL before the join and after its end is requested */
    struct pool *pool;
    struct mono since;   /* entered its state in this process */
    struct link in_all;  /* all instances that are not GONE, by id */
    struct link booting; /* in a list of the pool: queued or booting */
    bool is_coming;      /* counted in n_coming of the pool */
    struct offer *offer; /* that launched it; NULL if no such offer is known any more */
    struct link of_offer;
    int64_t gpus; /* from the offer at launch */
    struct link dirty;
};

struct ckpt_gc {
    struct ckpt_gc_row row;
    struct wall submitted_at; /* submitted_at and last_good of its job */
    struct ckpt_ref last_good;
    uint64_t budgets;        /* 1 << i: budgets that its job matches */
    struct tree_link by_due; /* while WAITING */
};

/* Count of machines, their GPUs and their hourly cost: in use, or still available. */
struct capacity {
    int64_t nodes, gpus, uusd_h;
};

/* A node in by_free. Has only what a search for capacity reads, in one cache line. */
struct free_entry {
    struct tree_link link; /* by gpus, cpus, memory, id */
    struct resources free; /* copy of the node's free resources at insertion */
    int64_t id;
    struct node *node;
};

struct pool {
    struct pool_row row;
    int32_t index;        /* in all_pools, from 0 */
    int32_t n_nodes;      /* instances that are not GONE */
    struct capacity used; /* without instances under a reclaim notice */
    /* Default rack of its nodes, unless they are named in another; NULL: only as named. */
    struct rack *rack;
    const struct rack_nodes *rack_kind; /* its entry in the rack */
    /* Its spot machines require a certificate at least this recent; WALL_NONE: none required. */
    struct wall certified_since;
    struct list offers; /* by rank, price, id */
    /* By market: struct free_entry of nodes that accept work and are not full. */
    struct tree by_free[3];
    struct list idle;    /* elastic nodes, UP or DRAINING, without attempts, longest idle first */
    struct list queued;  /* QUEUED instances, longest first */
    struct list booting; /* LAUNCHED instances, longest first */
    int32_t n_coming;    /* instances INTENDED, QUEUED or LAUNCHED */
    int32_t n_up;        /* nodes UP */
    struct base_load base;
    struct pool_window windows[POOL_WINDOWS_MAX]; /* of row.windows, with zones */
    size_t n_windows;
    uint64_t maintenance; /* 1 << i: the i-th reservation is of the whole pool */
    bool is_closed;       /* one of these is open: nothing is kept there for a base load */
    struct mono probe_at; /* with row.boots.wait_ms: no launch before; MONO_NONE = now */
    /* Joined after older machines had full disks, and no job has begun there yet; may be NULL. */
    const struct instance *on_trial;
    struct link in_all;
    struct link dirty;
};

#define OFFER_SCORE_NONE 0
#define OFFER_SCORE_MAX 10

struct offer {
    struct offer_row row;
    struct pool *pool;
    struct resources seen; /* smallest resources observed on its machines; zero: none observed */
    char features[FEATURES_ALL_MAX]; /* expected features of its machines */
    struct counts resources;         /* expected resources of its machines */
    struct list instances;           /* instances that are not GONE */
    int64_t n_live;                  /* without instances under a reclaim notice */
    /* The provider's estimate of spot availability, from 1 (unlikely) to OFFER_SCORE_MAX (very
     * likely); OFFER_SCORE_NONE if not given. Not stored. */
    int32_t score;
    int32_t early_reclaims_in_a_row; /* see offer_note_life; not stored */
    /* Why it is avoided: the last refused launch, or a short-lived machine. */
    char why[CORE_TEXT_MAX];
    struct link in_pool;
    struct link dirty;
};

/* A cron entry that is not REMOVED. */
struct cron_entry {
    struct cron_row row;
    struct cron cron;             /* row.schedule, parsed; unused with row.after */
    const struct time_zone *zone; /* NULL if this machine does not have the zone (any more) */
    const struct calendar *skip_on, *only_on; /* of the row; NULL = none */
    struct job_row job;                       /* template of its jobs */
    /* Members are owned. script is NULL if the stored template cannot be read. */
    struct job_texts texts;
    /* error in the zone, a calendar or the template: it starts nothing; else "" */
    char why[CORE_TEXT_MAX];
    struct wall due; /* time of the next decision; WALL_NONE = none */
    struct tree_link by_due;
    struct link dirty;
};

/* Changes of one tick, as copies. db/ writes them and the effects are derived from them. All arrays
 * are owned. */
struct spec_change {
    int64_t job;
    char *script, *args_json, *env_json, *cwd, *labels_json, *launch_json, *notify_json;
};

/* Change of a job's options that are only stored: a JSON merge patch (RFC 7396) of its document. */
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
    struct node_failure_row *node_failures; /* the last row of a place wins */
    size_t n_node_failures;
    int64_t *prefetches; /* nodes that are to fetch a checkpoint; not stored */
    size_t n_prefetches;
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
    size_t n_ckpt_gc; /* the last row of a job wins */
    struct stored_row *stored;
    size_t n_stored; /* the last row of a job wins */
    struct drill_row *drills;
    size_t n_drills; /* the last row of a drill wins */
    struct account_row *accounts;
    size_t n_accounts;
    struct budget_row *budgets;
    size_t n_budgets;
    struct dependency_row *depends;
    size_t n_depends; /* the last row of a dependency wins */
    struct array_row *arrays;
    size_t n_arrays; /* the last row of an array wins */
    struct cron_row *crons;
    size_t n_crons; /* the last row of an entry wins */
    struct cron_job_change *cron_jobs;
    size_t n_cron_jobs; /* the last row of an entry wins */
    struct constraints_row *constraints;
    size_t n_constraints;
    struct cron_run_row *cron_runs;
    size_t n_cron_runs;
    struct digest_row *digests; /* the last row of a user wins */
    size_t n_digests;
    struct anomaly_row *anomalies; /* the last row of a subject wins */
    size_t n_anomalies;
    struct maintenance_row *reservations; /* the last row wins, unless it is over */
    size_t n_reservations;
    struct calendar_row *calendars; /* likewise, unless it is removed */
    size_t n_calendars;
    /* The last version of a row wins, unless the row is in `outbox_done`. */
    struct outbox_row *outbox;
    size_t n_outbox;
    struct outbox_key *outbox_done;
    size_t n_outbox_done; /* delivered or given up: the rows are deleted */
    /* Later costs of jobs that have ended, added to their rows after `jobs` is written. */
    struct late_cost *late_costs;
    size_t n_late_costs;
    /* counters after this tick */
    int64_t next_job, next_node, next_instance, next_history, next_offer, next_cron,
        next_constraints, next_reservation;
    struct {
        size_t jobs, attempts, nodes, history, ledger;
    } cap; /* allocated rows of each array */
};

void changes_deinit(struct changes *c);
bool changes_is_empty(const struct changes *c);

/* Settings for the procurement of deadline jobs (procurement.c). */
struct procurement_options {
    enum deadline_rule rule;
    int64_t look_ms; /* interval between examinations of each such job, > 0 */
    /* Time step of the spot observations, >= look_ms: ten minutes, less for simulated clouds that
     * run fast. */
    int64_t step_ms;
    int32_t work_margin_pct; /* reported remaining work may be too low by this much */
    /* DEADLINE_PLANNED: maximum extra cost over the baseline, another rule, as a part of the
     * on-demand cost of the work. */
    int32_t cap_pct;
    enum deadline_rule baseline;
};
extern const struct procurement_options
    procurement_usual; /* planned; 1 min; 10 min; 100; 35; uniform */

#define MODEL_STORE_UUSD_MAX INT64_C(1000000000000)

/* What the configuration lists. Names are unique. Borrowed, apart from the licences. */
struct model_tables {
    const struct window *windows;
    size_t n_windows;
    const struct calendar *calendars; /* of cron entries */
    size_t n_calendars;
    const struct count *licences; /* of the cluster; at most LICENCES_MAX */
    size_t n_licences;
    const struct notify_hook *hooks; /* at most NOTIFY_HOOKS_MAX */
    size_t n_hooks;
    const struct budget_options *budgets; /* at most BUDGETS_MAX */
    size_t n_budgets;
    const struct rack_options *racks; /* each node is in at most one; at most RACKS_MAX */
    size_t n_racks;
    const struct digest_options *digest; /* NULL: no digest is sent */
    struct anomaly_options anomalies;
};

struct model_options {
    char cluster_uid[17];  /* 16 hex digits, created with the database; part of each token */
    int64_t lease_ms;      /* a node is LOST after this time without contact */
    int64_t store_wait_ms; /* most for which an attempt is withheld (withheld.c); 0 = 10 min */
    int64_t max_nodes, max_gpus, max_uusd_h; /* over all elastic pools; 0 = unlimited */
    /* A job is held after this many successive restored attempts without progress (no_progress.c);
     * 0 = never. */
    int32_t no_progress_max;
    struct node_failures_options node_failures; /* nodes that are drained because jobs fail there */
    int64_t store_uusd_gib_month; /* price of a GiB in the store, at most MODEL_STORE_UUSD_MAX */
    /* What a provider bills for data that leaves (supply/egress.h); pure. NULL: nothing. */
    struct egress (*egress)(const char *provider);
    int64_t retention_ms; /* AFTER_AUTO: how long checkpoints of ended jobs stay */
    const struct queue_policy
        *policy; /* borrowed for the model's life; NULL = queue_policy_defaults */
    const struct retry_options *retries; /* borrowed; NULL = retries_default without limits */
    struct model_tables tables;
    const struct procurement_options *procurement; /* copied; NULL = procurement_usual */
    /* Lookup of zones by name. Borrowed, outlives the model. NULL: only UTC is available. */
    struct zones *zones;
    /* Parses the stored job template of a cron entry, without I/O, into what a submit takes. The
     * caller frees the members of texts with free(). NULL: entries cannot be loaded. */
    int (*read_job)(
        const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e);
};

struct model;

struct model *model_create(const struct model_options *o);
void model_destroy(struct model *m); /* NULL is allowed */

/* Recovery from stored rows. Each type comes after the types that it refers to: pools, offers,
 * instances, nodes, certificates, accounts, constraints, labels, jobs, arrays, dependencies, ends
 * of tasks, live attempts, live drills, checkpoints of ended jobs. Rows of a type come by id;
 * model_load_end is last. No row is marked as changed. Leases start anew at now. ERR_CORRUPT names
 * the row that contradicts another. */
int model_load_pool(struct model *m, const struct pool_row *r, struct stamp now, struct err *e);
int model_load_offer(struct model *m, const struct offer_row *r, struct err *e);
int model_load_instance(
    struct model *m, const struct instance_row *r, struct stamp now, struct err *e);
int model_load_node(struct model *m, const struct node_row *r, struct stamp now, struct err *e);
/* r is of a live job. */
int model_load_constraints(struct model *m, const struct constraints_row *r, struct err *e);
/* Before jobs. Rows of budgets that are not configured are ignored. */
int model_load_budget(struct model *m, const struct budget_row *r, struct err *e);
/* Of a live job that is not a task, before the job. */
int model_load_labels(struct model *m, int64_t job, const char *labels_json, struct err *e);
int model_load_job(struct model *m, const struct job_row *r, struct stamp now, struct err *e);
/* r is of a live job */
int model_load_array(struct model *m, const struct array_row *r, struct err *e);
/* Of a live job: WAITS or NEVER. */
int model_load_dependency(struct model *m, const struct dependency_row *r, struct err *e);
/* Of a live array with an AFTERCORR dependency, or that another array depends on so. */
int model_load_task_end(struct model *m, const struct task_end *r, struct err *e);
int model_load_attempt(struct model *m, const struct attempt_row *r, struct err *e);
/* A passed drill; the newest for its key. */
int model_load_certificate(struct model *m, const struct drill_row *r, struct err *e);
int model_load_drill(struct model *m, const struct drill_row *r, struct err *e);
int model_load_account(struct model *m, const struct account_row *r, struct err *e);
int model_load_ckpt_gc(struct model *m, const struct ckpt_gc_row *r, struct err *e);
/* After those. Reads id, team, user, name, submitted_at and last_good of the owning job r. labels
 * are the job's, or its array's for a task; may be NULL. */
int model_load_ckpt_gc_of(
    struct model *m, const struct job_row *r, const char *labels_json, struct err *e);
/* After those: rows with data in the store or with unpaid cost. */
int model_load_stored(struct model *m, const struct stored_row *r, struct err *e);
int model_load_outbox(struct model *m, const struct outbox_row *r, struct err *e);
/* After the jobs. An unreadable zone or job template is not an error: the entry reports it and
 * starts no jobs. */
int model_load_cron(struct model *m, const struct cron_row *r, const char *job_json,
    struct stamp now, struct err *e);
struct model_counters { /* >= 1 */
    int64_t next_job, next_node, next_instance, next_history, next_offer, next_cron,
        next_constraints, next_reservation;
};
int model_load_end(struct model *m, const struct model_counters *c, struct err *e);
/* Used part of the time limit of a job that has ended, oldest first. Used by forecasts only; ends
 * that are not representative are ignored. */
void model_load_runtime(struct model *m, const struct job_row *r, int64_t used_ms);

/* Past observations of a spot offer, in order of time. Observations of offers that no longer exist
 * are ignored. */
enum spot_observation {
    SPOT_THERE, /* a machine was granted */
    SPOT_ENDED, /* it ended because it was no longer needed */
    SPOT_LOST,  /* it was reclaimed, or a reclaim was announced */
    SPOT_AWAY   /* a launch was refused */
};
void model_load_spot_observation(
    struct model *m, int64_t offer, enum spot_observation what, struct wall at);

/* Result of applying an event, for its sender. */
struct outcome {
    int64_t id; /* of the created, or else the named, job, node or instance */
};

/* Applies one event; on an error nothing has changed. Outdated facts (a stale attempt's report, a
 * repeated notice of the same type, a launch reply for an instance that is gone) change nothing and
 * return 0, so facts are safe to repeat. ERR_NOT_FOUND and ERR_CONFLICT: users' requests with an
 * unknown target or too late, and machines that may not join (any more). ERR_DENIED: a join token
 * used twice. ERR_INVALID: values that no correct sender sends. */
int core_apply(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

/* Validates EV_POOL with this row without applying it. A pool never changes its type, and while it
 * has instances it keeps its provider and region. */
int core_pool_check(const struct model *m, const struct pool_row *r, struct err *e);

/* Moves the changes since the last call into *ret_changes, which must be zeroed or deinited. */
void model_take_changes(struct model *m, struct changes *ret_changes);
/* Deinits them. Their memory is reused for the next set unless it is disproportionately large. */
void model_return_changes(struct model *m, struct changes *c);

/* Lookups; borrowed until the next core_apply. NULL if there is none (any more). */
struct job *model_job(const struct model *m, int64_t id);
/* The ids of live jobs from first to last, ascending; the caller frees *ret_ids. Costs O(min(live
 * jobs, last - first)). */
size_t model_jobs_between(const struct model *m, int64_t first, int64_t last, int64_t **ret_ids);
/* The lowest rank of the job's live attempt that has not ended; NULL if the job does not run. */
struct attempt *job_attempt(const struct job *j);
/* The rank of this attempt on this node; NULL if it has ended or does not exist. j may be NULL. */
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
/* NULL if no window of this name is configured. */
const struct window *core_window(const struct model *m, const char *name);
const struct cron_entry *model_cron(const struct model *m, int64_t id);
const struct list *model_nodes(const struct model *m);     /* struct node by in_all */
const struct list *model_instances(const struct model *m); /* struct instance by in_all */
const struct list *model_pools(const struct model *m);     /* struct pool by in_all */

/* Decayed usage of the account at `now`. */
int64_t account_used(const struct model *m, const struct account *a, struct wall now);
/* struct team by in_all, in order of creation. */
const struct list *model_teams(const struct model *m);
const struct queue_policy *model_policy(const struct model *m);

/* Parts of a job's priority, as equivalent waiting time: total_ms is their sum. */
struct priority {
    int64_t total_ms, age_ms, fair_ms, qos_ms, size_ms, nice_ms;
};
/* As of the last EV_ORDER. */
void core_priority(
    const struct model *m, const struct job *j, struct wall now, struct priority *ret_priority);

/* Size of a job in the store, as last known; -1: storage is free and not counted. */
int64_t model_stored_bytes(const struct model *m, int64_t job);

/* Which checkpoints the next cleaning keeps. */
enum ckpt_gc_keep core_ckpt_gc_keep(const struct ckpt_gc_row *r);
/* Identity of a job in the store. Equal for all of its attempts and unique among jobs, even jobs
 * with the same number. */
void core_ckpt_identity(
    const char *cluster_uid, struct wall submitted_at, char ret_identity[CKPT_IDENTITY_MAX]);
/* Of an ended job with a ckpt_gc row that is not DONE. */
void model_ckpt_gc_known(const struct model *m, int64_t job, struct ckpt_known *ret_known);
/* The row that is CLEANING, or NULL. */
const struct ckpt_gc_row *model_cleaning(const struct model *m);

struct capacity model_used(const struct model *m); /* by all pools together */

struct model_counts {
    /* pending includes waiting; waiting: not eligible */
    int64_t pending, waiting, running, nodes_up, nodes_lost, instances, shapes, ckpt_gc, outbox;
};
void model_counts(const struct model *m, struct model_counts *ret_counts);

/* Reclaims per hour of a machine whose rate is unknown. */
#define PRIOR_RECLAIMS_PER_HOUR 0.05

/* Expected reclaims per hour on this node: observed rate of its offer, smoothed by
 * PRIOR_RECLAIMS_PER_HOUR over 20 hours. Higher after a rebalance recommendation, by the offer's
 * share of recommendations that were followed by a reclaim. */
double core_reclaims_per_hour(const struct node *n);

/* Expected reclaims per hour over all nodes of the job's attempt: losing one node loses the
 * attempt. */
double core_job_reclaims_per_hour(const struct job *j);
/* Expected completion of a deadline job under current conditions. The function returns false if no
 * estimate is possible: the job has no deadline, runs on owned nodes, was not examined yet, or can
 * use no offer that is always available. Takes some milliseconds. */
struct procurement_outlook {
    int64_t median_ms, p95_ms; /* from now to its end: median and 95th percentile */
    int64_t uusd;              /* mean of the remaining cost */
};
bool core_procurement_expects(const struct model *m, const struct job *j, struct stamp now,
    struct procurement_outlook *ret_outlook);
/* Why it waits or uses on-demand; false if it has no finish time. */
bool core_procurement_why(
    const struct model *m, const struct job *j, struct stamp now, char *out, size_t size);
/* The expected completion time exceeds the remaining time. *ret_on_demand: it is that of on-demand;
 * otherwise of the owned machine that the job runs on, or of any machine, without a usable
 * on-demand offer. Both are set if it is late. */
bool core_procurement_late(const struct model *m, const struct job *j, struct stamp now,
    int64_t *ret_takes_ms, bool *ret_on_demand);

/* Expected reclaims per hour of a future machine of this offer. */
double core_offer_reclaims_per_hour(const struct offer *o);
/* Effective price per hour for a job without checkpoints: price plus expected cost of reclaims. */
int64_t core_offer_effective_uusd_h(const struct offer *o);

/* The other offers that the provider may use for this launch, best first. Constant for the life of
 * the row. */
size_t core_alternatives(const struct model *m, const struct instance *i,
    const struct offer *ret_offers[INSTANCE_ALTERNATIVES_MAX]);
/* The alternative offer with this zone and type ("" = as in the row) if it differs from the row's;
 * NULL if none. */
struct offer *core_other_offer(
    const struct model *m, const struct instance *i, const char *zone, const char *type);

/* An elastic pool with unknown CRIU support that this job of method criu could use, if no node or
 * other pool is known to support it; else NULL. Borrowed. */
const char *core_criu_untried(const struct model *m, const struct job_row *j);

/* Checks the invariants above; ERR_INTERNAL names the first violation. O(model size): for tests. */
int model_check(const struct model *m, struct err *e);

/* Cost of an instance up to a time, each interval at the price then in force. 0 before its
 * launch. */
int64_t core_instance_uusd(const struct instance_row *r, struct wall at);

/* Price of ms of a node at uusd_h, rounded to the nearest micro-dollar. No overflow up to 10 years
 * at $1000/h. */
int64_t core_cost_uusd(int64_t ms, int64_t uusd_h);

/* Price of bytes at uusd_gib, rounded to the nearest micro-dollar; 0 for negative sizes. */
int64_t core_bytes_uusd(int64_t bytes, int64_t uusd_gib);

/* Cost of a live attempt so far, and the on-demand cost of the same time; micro-dollars, >= 0.
 * Unsaved work counts as useful. The ledger rows are written when the attempt ends. */
void core_cost_so_far(
    const struct attempt *a, struct wall now, int64_t *ret_uusd, int64_t *ret_on_demand_uusd);

#endif
