/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's state as plain rows: the core changes them, db/ stores them. A row has no
 * pointers, so a copy of it is a snapshot. Money is in integer micro-dollars (uusd), time in
 * integer milliseconds, memory in MiB.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_ROWS_H
#define BELAY_SCHEDULER_CORE_MODEL_ROWS_H

#include "job/counts.h"
#include "job/cron.h"
#include "job/feature.h"
#include "job/gpu.h"
#include "job/notify_address.h"
#include "job/ranges.h"
#include "job/spec.h"
#include "job/window.h"
#include "scheduler/core/model/types.h"
#include "scheduler/core/supply/pool_windows.h"

#define CONSTRAINTS_NONE 0
#define CONSTRAINTS_TEXT_MAX 2560

/* Further demands of jobs as text (constraints.h). Immutable, shared by many jobs. */
struct constraints_row {
    int64_t id;
    char text[CONSTRAINTS_TEXT_MAX];
};

#define RETRIES_TEXT_MAX 128

/* Cost baseline that is simulated next to a deadline job to bound the job's cost
 * (procurement_baseline.c), and what the job itself has paid; both as of `at_ms`. */
struct baseline_row {
    int64_t at_ms;       /* wall clock; 0 = not started */
    int64_t done_ms;     /* completed work */
    int64_t starting_ms; /* remaining part of the current restart */
    /* Offers: the current one, and the last spot one; CORE_ID_NONE. */
    int64_t on, last;
    int64_t price_uusd_h; /* at the current offer */
    int64_t paid_uusd;
    int64_t job_price_uusd_h, job_paid_uusd; /* of the job itself */
};

struct job_row {
    int64_t id;
    char user[CORE_NAME_MAX];
    enum job_state state;
    struct job_spec spec; /* what the job asks for */
    enum end_kind end;    /* of the last attempt that ended; END_NONE before */
    int32_t exit_code;    /* of that attempt; 128 + signal if killed */
    /* Further demands; CONSTRAINTS_NONE. Not used by a submit, which carries them separately. */
    int64_t constraints;
    /* Nodes of the newest attempt; 0 before the first. */
    int32_t ranks;
    int32_t used[RETRY_KINDS]; /* used retries of spec.retries */
    int32_t used_checkpointed; /* successive ends with code 85 without a new checkpoint */
    /* Successive attempts that failed, or could not run on their node, soon after placement without
     * a checkpoint; or that all ended as END_STORE_AWAY. */
    int32_t quick_ends;
    /* Successive restored attempts that restarted from before their checkpoint without exceeding
     * best_progress (no_progress.c). */
    int32_t no_progress;
    int64_t no_progress_last; /* the last such attempt */
    int64_t best_progress;    /* highest progress so far; PROGRESS_NONE = unknown */
    int64_t attempts;         /* number of the newest attempt; 0 before the first */
    /* How the live attempt will count, from its ranks that have ended; END_NONE = undecided. */
    enum end_kind gang_end;
    int32_t gang_code;                              /* exit code of the deciding rank */
    int64_t reclaims;                               /* attempts ended as RECLAIMED or NODE_LOST */
    struct wall submitted_at, started_at, ended_at; /* started_at: start of the first attempt */
    enum hold hold;
    /* Work without pauses of saves (procurement_work.h). done_ms: part of spec.work_ms in the last
     * good checkpoint; shown_ms: total according to the last progress report, 0 = unknown. */
    int64_t done_ms, shown_ms;
    struct baseline_row baseline; /* with a finish_ms */
    /* PROCURE_FREE exactly if finish_ms is 0 or no usable offer is always available. */
    enum procurement procurement;
    /* Since when only missing capacity keeps it from running; WALL_NONE while a hold, begin_at or a
     * dependency does. */
    struct wall eligible_at;
    struct ckpt_ref last_good;
    int64_t last_good_progress; /* PROGRESS_NONE = unknown */
    struct wall last_good_at;
    int64_t save_ms;                  /* duration of the last save; 0 = none yet */
    int64_t pause_ms;                 /* part of save_ms for which the program was paused */
    int64_t ckpt_bytes;               /* content size of the last checkpoint */
    int64_t progress, progress_total; /* as reported by the program; PROGRESS_NONE = unknown */
    int64_t lost_ms;                  /* work repeated after ends without a save, summed */
    int64_t lost_steps;               /* same in the program's own steps, if it reports them */
    /* actual cost; on-demand cost of the same time without reclaims */
    int64_t cost_uusd, on_demand_uusd;
    /* Key for certificates: hex SHA-256 of user, method and script; "" matches no certificate. */
    char script_key[65];
    int64_t drills; /* drills started so far */
    int64_t cron;   /* the entry that submitted it; CORE_ID_NONE */
    /* scheduled time that this job runs for; WALL_NONE: none, or started by hand */
    struct wall cron_at;
    /* its user asked for the run of cron_at (belay cron run --date): besides the entry's own one */
    bool cron_dated;
    /* 1 << enum notify_event: notified parts of the live attempt's time limit; for an array also
     * that it has begun. */
    int32_t warned;
    int64_t array;       /* of a task: id of its array; CORE_ID_NONE */
    int32_t array_index; /* of a task */
    /* Gang, while PENDING: end of its wait for more nodes or for kept ones; WALL_NONE. */
    struct wall gang_resize_until;
    /* Checkpoints of earlier attempts are ignored because a user discarded them; 0 = none
     * discarded. */
    int64_t from_attempt;
    /* last preemption; WALL_NONE */
    struct wall evicted_at;
    /* When its owner was notified that the GPUs of the live attempt are idle; WALL_NONE. */
    struct wall idle_gpus_told_at;
    struct mono queued_mono; /* not stored: set at submit, requeue and recovery */
};

/* Queue row of an array, for its tasks that have not begun. A task gets its own row and id when it
 * is placed and is then an ordinary job. The array ends with its last task: succeeded if all tasks
 * have, else like the first task that did not. */
struct array_row {
    int64_t job;
    char tasks[RANGES_TEXT_MAX]; /* the indices of all tasks (job/ranges.h) */
    /* Indices of tasks that have not begun and have no row. With AFTERCORR it may include
     * others. */
    char left[RANGES_TEXT_MAX];
    int32_t at_once; /* maximum number of running tasks; 0 = unlimited */
    /* Ended tasks; n_other: not succeeded, or cancelled before they began. */
    int32_t n_succeeded, n_other;
    enum end_kind end; /* of the first task in n_other; END_NONE */
    int32_t exit_code;
};

/* The end of a task. */
struct task_end {
    int64_t array;
    int32_t array_index;
    bool succeeded;
};

/* Stored ends of an array's tasks. */
struct array_ends {
    struct ranges all;
    struct bits succeeded; /* as far as committed */
};

/* An attempt has one row per node: its ranks. They start together and end separately; the attempt
 * is over when all have ended. */
struct attempt_row {
    int64_t job, attempt;
    int64_t node;
    int32_t rank; /* 0 .. ranks of the job - 1 */
    enum attempt_state state;
    enum end_kind end;
    enum end_kind stop_reason; /* while STOPPING: how the end will be counted */
    bool save_first;           /* while STOPPING: save before the kill (drain, eviction) */
    int32_t exit_code;
    /* started_at: the program's exec, after the restore. */
    struct wall assigned_at, started_at, ended_at;
    struct ckpt_ref restored; /* the checkpoint that it resumed from */
    int64_t restored_progress;
    /* Work after the restored checkpoint that is already useful in the ledger
     * (db_read_repeated_work). */
    int64_t behind_ms;
    /* Size of the restored content; bytes of it that were already on the node. */
    int64_t restored_bytes, nearby_bytes;
    int64_t restore_ms, save_ms; /* time spent in restores and in saves, summed */
    int64_t sequence;            /* of its newest committed checkpoint; 0 = none */
    int64_t saves_asked;         /* saves requested by users */
    /* Of the lowest rank that has not ended: when a save with subsequent requeue was requested
     * (user_requeue.c); WALL_NONE. */
    struct wall requeue_asked_at;
    /* Since when all of its GPUs on its node are idle, by its pool's policy; WALL_NONE. */
    struct wall gpus_idle_since;
    int64_t price_uusd_h, on_demand_uusd_h; /* of its node at assignment */
    int64_t base_uusd;                      /* cost of its node at assignment */
    int64_t started_uusd;                   /* cost of its node at its start */
    /* when the last rank of its gang started; WALL_NONE. The cost is its node's at that time. */
    struct wall gathered_at;
    int64_t gathered_uusd;
    /* when its newest checkpoint was taken; WALL_NONE. The cost is its node's at that time. */
    struct wall kept_at;
    int64_t kept_uusd;
    int64_t save_uusd; /* cost of its node during save_ms */
    /* Cost of its traffic with a store in another region. */
    int64_t egress_uusd;
    /* Processor time, user-mode processor time, and peak memory in bytes; 0 = unknown. In memory
     * until another event stores the attempt. */
    int64_t cpu_ms, cpu_user_ms, memory_peak;
    /* From its start to its program's first report of progress; 0 = none yet, or unknown. */
    int64_t warm_up_ms;
    char text[CORE_TEXT_MAX]; /* reason of its end, for people */
};

#define NODE_REASON_MAX 200

struct node_row {
    int64_t id;
    char name[CORE_NAME_MAX]; /* host name, made unique by a suffix */
    char pool[CORE_NAME_MAX];
    int64_t instance; /* CORE_ID_NONE for a reserved node */
    enum node_state state;
    struct resources total;
    int64_t price_uusd_h, on_demand_uusd_h;
    enum market market;
    enum notice_type notice;
    struct wall notice_deadline; /* WALL_NONE */
    struct wall joined_at, gone_at;
    char address[CORE_NAME_MAX];
    /* Hex SHA-256 of its public key; a repeated join with the same key is the same node. */
    char key_hash[65];
    char version[32];                 /* of its agent */
    bool drain;                       /* requested by an operator or by belay; survives LOST */
    bool drained_by_belay;            /* only with drain */
    char drain_text[NODE_REASON_MAX]; /* why; "": an operator has not said */
    /* As last reported by its agent, which repeats it; "" = none. The same fault drains the node
     * only once, so that an operator can undrain it. */
    char fault[NODE_REASON_MAX];
    enum criu_ability criu;        /* as detected by its agent; UNKNOWN if not reported */
    char criu_text[CORE_TEXT_MAX]; /* CRIU's version, or why it is unusable */
    /* The gang that will continue there, between two attempts; CORE_ID_NONE. */
    int64_t kept_for;
    struct gpu_kind gpu; /* of its GPUs, as reported by its agent; empty if they differ */
    char features[FEATURES_TEXT_MAX]; /* as reported by its agent (job/feature.h) */
    char resources[COUNTS_TEXT_MAX];  /* as reported by its agent (job/counts.h) */
    /* Of a reserved node; for others the instance has them (ledger.c). */
    struct wall priced_at;
    int64_t accrued_uusd, attempts_uusd, attempts_ms, idle_uusd, idle_ms;
    struct wall used_until, settled_at;
};

/* A job, or an array, that failed on a node soon after its start (node_failures.h). */
struct node_failure_row {
    int64_t node;
    int32_t place;            /* 0 is the oldest of the node */
    int64_t of;               /* the job, or the array of a task */
    int64_t job;              /* the job, or the task that failed last */
    int32_t retries;          /* used by that job for failures on the node */
    char user[CORE_NAME_MAX]; /* whose job it is */
    struct wall at;           /* of the last one */
    bool is_removed;          /* not stored: the row of this place is deleted */
};

#define INSTANCE_ALTERNATIVES_MAX 20
#define INSTANCE_ALTERNATIVES_TEXT_MAX 256

struct instance_row {
    int64_t id;
    char token[65]; /* committed before the launch; "belay-<cluster uid>-<id>" */
    char pool[CORE_NAME_MAX];
    char zone[CORE_NAME_MAX];
    char type[CORE_NAME_MAX];
    enum market market;
    enum instance_state state;
    char provider_id[CORE_NAME_MAX];        /* "" = not known yet */
    int64_t node;                           /* the node that joined from it */
    int64_t price_uusd_h, on_demand_uusd_h; /* in force */
    struct wall priced_at;                  /* start of that price; WALL_NONE before the launch */
    int64_t accrued_uusd;                   /* cost up to priced_at */
    /* The same for the previous price, since an end may be reported after a later price change.
     * before_at WALL_NONE: none. before_at earlier than launched_at: price of a machine that
     * existed before launched_at, if it did. */
    int64_t before_uusd_h, before_uusd;
    struct wall before_at;
    int64_t boot_uusd; /* cost when its agent joined */
    /* ended_at: end of the charged time */
    struct wall intended_at, launched_at, joined_at, ended_at;
    /* launched_at is from the provider; false: when the instance was first seen, until the provider
     * reports it. */
    bool launched_at_from_provider;
    /* End of its last attempt, or settled_at; WALL_NONE. */
    struct wall used_until;
    /* end of the idle time that is in the ledger; WALL_NONE = none */
    struct wall settled_at;
    int64_t idle_uusd, idle_ms; /* that idle time and its cost */
    bool reclaimed;             /* reclaimed by the provider, or under a notice */
    bool rebalanced;            /* has a rebalance recommendation */
    enum boot_verdict boot;
    /* Part of its cost carried by attempts, including waiting gangs; the rest is boot and idle. */
    int64_t attempts_uusd;
    /* Part of its time used by attempts, each by its share of the node. */
    int64_t attempts_ms;
    char text[CORE_TEXT_MAX]; /* reason of its end */
    /* Ids of the other offers that the provider may use for the launch, best first, each after a
     * blank. Constant, since a launch that is repeated under its token must not differ. */
    char alternatives[INSTANCE_ALTERNATIVES_TEXT_MAX];
    /* The last part of its boot: from the first command of its boot script to joined_at, at most
     * since launched_at. 0 = unknown. */
    int64_t start_ms;
};

#define BOOTS_FAILED_MAX 3    /* in a row; then the pool launches one machine at a time */
#define BOOT_CONSOLE_MAX 1024 /* stored bytes of a console, its last lines */

/* Failed boots of an elastic pool: machines that ended before their agent joined and were not
 * reclaimed, or whose disks were full before their first job. */
struct pool_boots {
    int32_t failed; /* in a row, over all offers of the pool; what resets it: boots.c */
    /* After BOOTS_FAILED_MAX failures: delay from a failure to the next launch. 0 = launches are
     * not restricted. */
    int64_t wait_ms;
    struct wall next_at; /* with wait_ms: no launch before */
    /* The newest one that failed, whenever it did; CORE_ID_NONE. Text and console are its own. */
    int64_t instance;
    char text[CORE_TEXT_MAX];       /* why it ended, or that its disk was full */
    char console[BOOT_CONSOLE_MAX]; /* last lines of its console; "" = unknown */
};

/* Policy of a pool for jobs whose GPUs are all less busy than busy_pct in each minute. */
struct idle_gpus_policy {
    enum idle_gpus_then then; /* IDLE_GPUS_IGNORE: no policy, and the rest is 0 */
    int32_t busy_pct;         /* 1 .. 100 */
    int64_t for_ms;           /* for this long, before the owner is notified */
    int64_t grace_ms;         /* IDLE_GPUS_PARK: from the notification to the save */
};

struct pool_row {
    char name[CORE_NAME_MAX];
    bool elastic;
    char provider[16], region[CORE_NAME_MAX]; /* elastic only */
    int32_t max_nodes;
    int64_t idle_timeout_ms; /* an elastic node without attempts is ended after this time */
    int64_t cooldown_ms;     /* minimum time between its join and its end */
    int64_t boot_timeout_ms; /* a launched machine that has not joined after this time is ended */
    /* A machine that waits in the provider's queue for longer is ended, and its offer avoided as
     * after a refusal. 0 = it may wait for ever. */
    int64_t queue_patience_ms;
    /* First avoidance of an offer after a refusal; doubles up to 60 times this. */
    int64_t refusal_backoff_ms;
    int64_t usd_per_hour_uusd; /* reserved: cost of an hour of a node */
    int64_t max_gpus;          /* of all its instances together; 0 = unlimited */
    int64_t max_uusd_h;        /* hourly cost of all its instances together; 0 = unlimited */
    /* Minimum time that the provider bills; an idle instance is not ended before. */
    int64_t min_paid_ms;
    /* Accepted extra price of a spot machine in a less used offer, 0 .. 100. */
    int32_t spread_pct;
    /* A job moves from on-demand to a cheaper market after this time, if one is available; 0 =
     * never. */
    int64_t return_ms;
    int64_t egress_uusd_gib; /* price per GiB read from the checkpoint store */
    int64_t upload_uusd_gib; /* price per GiB written to it */
    /* Rank the offers of a market by price alone, without observed behaviour. */
    bool by_price;
    /* The provider may choose among offers equivalent to the selected one. */
    bool fleet;
    bool require_drill;     /* its spot machines require jobs to have a certificate */
    int64_t drill_valid_ms; /* maximum age of that certificate */
    /* As configured for its machines; UNKNOWN if not configured. */
    enum criu_ability criu;
    enum criu_ability criu_seen; /* elastic: from the machine that reported last, with its text */
    char criu_text[CORE_TEXT_MAX];
    /* Default retries of jobs that name this pool, in the form of retries_format. Lower precedence
     * than the job's own and than those of pools that the job names earlier. */
    char retries[RETRIES_TEXT_MAX];
    /* Accepts only jobs with labels of these names. */
    char required_labels[FEATURES_TEXT_MAX];
    char features[FEATURES_TEXT_MAX]; /* of each of its nodes */
    char resources[COUNTS_TEXT_MAX];  /* of each of its nodes, unless the node reports others */
    /* Machines kept without demand, and how many of them idle; and windows in which other numbers
     * hold, in the form of pool_windows_format. */
    int32_t min_nodes, warm_nodes;
    char windows[POOL_WINDOWS_TEXT_MAX];
    struct pool_boots boots;
    struct idle_gpus_policy idle_gpus;
};

#define OFFER_WITHDRAWN (-1)

/* One (pool, zone, type, market). rank is the position of the market in the pool's configuration,
 * from 0. */
struct offer_row {
    int64_t id; /* from 1, never reused */
    char pool[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
    enum market market;
    /* OFFER_WITHDRAWN: no longer configured, never launched */
    int32_t rank;
    struct resources total; /* of one instance */
    char arch[16];          /* "x86_64" "aarch64"; "" = unknown */
    struct gpu_kind gpu;    /* of its GPUs */
    int64_t price_uusd_h, on_demand_uusd_h;
    bool price_from_provider; /* reported by the provider, so it overrides the configured price */
    /* Lifetime counts. launches: decided on it, or granted by it as an alternative. */
    int64_t launches, refusals, reclaims;
    /* Refusals, and machines that never joined, since the last one that joined. */
    int32_t refused_in_a_row;
    struct mono avoid_until; /* not stored; MONO_NONE */
    int64_t up_ms;           /* observed instance time, for the reclaim rate */
    /* Machines that joined; their time from intent to join, summed. */
    int64_t boots, boot_ms;
    int64_t boot_ms2; /* the same, squared, summed */
    /* rebalance recommendations; those followed by a reclaim */
    int64_t rebalances, rebalances_true;
};

/* Events of jobs, nodes and instances, for timelines. */
struct history_row {
    int64_t id;  /* increases; assigned by the model */
    int64_t job; /* CORE_ID_NONE if none */
    int64_t attempt, node, instance;
    struct wall at;
    char kind[24];            /* one of history_kinds */
    char text[CORE_TEXT_MAX]; /* human-readable: "saved 4.1 MiB in 0.3 s at step 1200" */
    int64_t a, b;             /* numbers described at history_kinds; else 0 */
};

struct dependency_row {
    int64_t job, on;
    enum depend_kind kind;
    /* `on` is an array and the dependency is on its task with index `task`; false: on the whole
     * job. */
    bool of_task;
    int32_t task;
    int64_t delay_ms; /* AFTER: time after the start */
    enum depend_state state;
};

struct checkpoint_row {
    int64_t job;
    struct ckpt_ref ref;
    int64_t node;
    struct wall saved_at;
    int64_t bytes, stored_bytes, took_ms, pause_ms;
    int64_t progress; /* PROGRESS_NONE = unknown */
    char cause[16];   /* "periodic" "notice" "program" "drain" ... */
};

#define STORED_BYTES_MAX (INT64_C(1) << 60)

/* Further cost of a job that has ended. */
struct late_cost {
    int64_t job, uusd;
};

/* Size of a job in the store, and the cost of keeping it (storage.c). */
struct stored_row {
    int64_t job;
    int64_t bytes;          /* as last reported; 0 = no data left */
    struct wall at;         /* cost is computed up to then */
    struct wall settled_at; /* cost is in the ledger up to then */
    int64_t parts;          /* unsettled cost, in millionths of a micro-dollar */
    int64_t uusd;           /* settled cost */
};

/* Cleaning of the checkpoints of a job that ended. The first cleaning, at once, closes the job's
 * part of the store: attempts that were given up as lost cannot commit any more. What is kept,
 * besides pinned checkpoints:
 *
 *      after     job succeeded                           job did not succeed
 *      AUTO      all, none from last_at on               all, the last from last_at on
 *      DELETE    none                                    the last
 *      LAST      the last                                the last
 *      ALL       all                                     all
 */
struct ckpt_gc_row {
    int64_t job;
    enum ckpt_gc_state state;
    enum ckpt_after after;
    bool succeeded;
    bool closed;        /* the first cleaning is done */
    struct wall due_at; /* of the next cleaning */
    /* AUTO: time of the last cleaning. WALL_NONE with other settings and after it; then the
     * remaining size is only measured. */
    struct wall last_at;
    int32_t tries; /* successive failures */
};

/* An attempt that was saved and killed on purpose, and the result. A drill that PASSED is a
 * certificate for every job with the same script_key, until a newer one FAILED. */
struct drill_row {
    int64_t job, number; /* number within the job, from 1 */
    char script_key[65], user[CORE_NAME_MAX], name[CORE_NAME_MAX]; /* of the job */
    enum ckpt_method method;
    enum drill_state state;
    bool without_notice;    /* killed without a save: resumes from the previous checkpoint */
    bool avoids;            /* while QUEUED: the job avoids its former node */
    char by[CORE_NAME_MAX]; /* requester; "" = option of the submit */
    char version[32];       /* of belay */
    int32_t method_version;
    int64_t attempt, node;   /* the killed attempt and its node */
    int64_t before_sequence; /* newest checkpoint of the attempt at the request */
    struct wall asked_at, killed_at, resumed_at, ended_at;
    struct ckpt_ref saved;  /* the checkpoint that must be resumed */
    int64_t saved_progress; /* PROGRESS_NONE = not reported */
    int64_t bytes, save_ms; /* of that checkpoint */
    /* From that checkpoint to the kill. lost_steps is PROGRESS_NONE if not reported. */
    int64_t lost_ms, lost_steps;
    int64_t resumed_attempt, resumed_node; /* 0 = not yet */
    int64_t restore_ms;
    int64_t progress; /* first report after the resume; PROGRESS_NONE */
    /* From the kill to that report, or to the start of a program that reports none; 0 = not yet. */
    int64_t resume_ms;
    /* The job whose result was compared; equal while PASSED; 0 = not compared. */
    int64_t compared_with;
    char text[CORE_TEXT_MAX]; /* description of the result */
};

/* CPU usage of a user as a member of a team, in cpu-microseconds, halved after each half-life
 * (priority.h). */
struct account_row {
    char team[CORE_NAME_MAX], user[CORE_NAME_MAX];
    int64_t used;
    struct wall at; /* time of `used` */
};

#define BUDGET_ABOUT_MAX 3072

/* Stored state of a budget (budget_options.h). */
struct budget_row {
    char name[CORE_NAME_MAX];
    /* What it counts (budget_about). A different text makes it a different budget. */
    char about[BUDGET_ABOUT_MAX];
    /* Current period. since WALL_NONE: between two periods of a window. until WALL_NONE:
     * unlimited. */
    struct wall since, until;
    /* Cost of ranks that ended in the period, minus the cost at its begin of ranks that ran
     * then. */
    int64_t booked_uusd;
    int64_t cap_uusd; /* the cap that alerted and is_closed refer to */
    int32_t alerted;  /* 1 << i: the i-th threshold was notified */
    bool is_closed;   /* exhausted: no further job starts */
};

/* A notification to deliver. */
struct outbox_row {
    int64_t event; /* history id of the change, equal for all targets */
    /* "mail", "url:0", "hook:NAME" of the configuration; for a budget or a digest "mail:0". */
    char target[CORE_NAME_MAX + 8];
    int64_t job, attempt; /* CORE_ID_NONE if it is not about a job */
    enum notify_event kind;
    enum end_kind end; /* from the job's row at the time of the change */
    int32_t exit_code;
    char user[CORE_NAME_MAX];
    struct wall at;
    struct wall due_at; /* no delivery before */
    int32_t tries;      /* failed tries */
    /* NOTIFY_BOOTS and NOTIFY_NODE_DRAINED: the pool, and job is CORE_ID_NONE; else "". */
    char pool[CORE_NAME_MAX];
    char budget[CORE_NAME_MAX]; /* NOTIFY_BUDGET: the budget; else "" */
    /* NOTIFY_BUDGET: the spent part in percent; NOTIFY_BOOTS: successive machines that failed;
     * NOTIFY_IDLE_GPUS: busy_pct of the policy; NOTIFY_NODE_DRAINED: 1 if its machine is ended when
     * its jobs have left. */
    int32_t pct;
    /* NOTIFY_IDLE_GPUS, else WALL_NONE: since when they are idle, and when the job is parked. Its
     * cost an hour is spent_uusd. */
    struct wall idle_since, parks_at;
    int64_t spent_uusd, cap_uusd;
    /* NOTIFY_LATE: the cron entry, the scheduled time of its run, the time by which it was to be
     * done, and why it is not; job is CORE_ID_NONE. */
    int64_t cron;
    struct wall cron_at, done_by;
    char text[CORE_TEXT_MAX]; /* of NOTIFY_NODE_DRAINED too: the reason */
    /* NOTIFY_NODE_DRAINED, else "": the node's name, and the jobs that failed there, or that have
     * to leave: "3,5,42_7". */
    char node[CORE_NAME_MAX];
    char jobs[CORE_TEXT_MAX];
    /* NOTIFY_DIGEST, else WALL_NONE: the period that it covers; job is CORE_ID_NONE. */
    struct wall digest_from, digest_to;
    /* NOTIFY_SPEND: whose spending, and the begin of the UTC day; job is CORE_ID_NONE. spent_uusd
     * is spent, cap_uusd usual, in pct weeks. */
    enum spend_of spend_of;
    char subject[CORE_NAME_MAX];
    struct wall day;
};

/* The last day on which it was notified that far more than usual was spent (anomalies.h). */
struct anomaly_row {
    enum spend_of of;
    char subject[CORE_NAME_MAX];
    struct wall day;          /* the begin of a UTC day */
    int64_t uusd, usual_uusd; /* spent when it was notified; the median of the days before */
    int32_t weeks;            /* how many days before there were */
};

#define DIGEST_URL_MAX 4096 /* with its NUL */

/* The morning digest (digest.h): of the cluster, with user "", or the subscription of a user, which
 * was ended if it has neither an address nor a URL. */
struct digest_row {
    char user[CORE_NAME_MAX];
    struct wall told_until;            /* of the cluster: the time of the last digest */
    char mail[NOTIFY_ADDRESS_MAX + 1]; /* of a user: the address, or "" */
    char url[DIGEST_URL_MAX];          /* of a user: sealed (notify_seal.h), or "" */
    enum notify_format format;         /* what the URL gets */
};

struct outbox_key {
    int64_t event;
    char target[CORE_NAME_MAX + 8];
};

#define CKPT_IDENTITY_MAX 64 /* with its NUL */

/* Identifies an ended job's part of the store (ckpt_begin). */
struct ckpt_known {
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_ref last; /* newest checkpoint known to belayd; attempt 0 = none */
};

/* Use and cost of an interval of a node's time. */
struct ledger_row {
    int64_t job, attempt; /* CORE_ID_NONE for boot and idle */
    int64_t node, instance;
    enum ledger_kind kind;
    struct wall from, to;
    /* Part of from..to. Several kinds may share one interval; their ms add up to its length. */
    int64_t ms;
    int64_t node_ms; /* part of the node's time: less than ms if the node was shared */
    int64_t uusd, on_demand_uusd;
};

#define CRON_CATCH_UP_MAX 1000
#define CRON_WAITING_MAX 16 /* CRON_QUEUE: maximum number of waiting times */

/* A job submitted at the times of a schedule. At most one of its jobs is alive at a time. */
struct cron_row {
    int64_t id;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX]; /* name is unique per user */
    enum cron_state state;
    /* format of job/cron.h, without a leading zone; "" if it runs after another entry */
    char schedule[CRON_TEXT_MAX];
    char zone[ZONE_NAME_MAX];
    enum cron_gap gap;
    enum cron_twice twice;
    enum cron_overlap overlap;
    enum cron_catch_up catch_up;
    /* CATCH_UP_ALL: only the last so many are caught up, 1 .. CRON_CATCH_UP_MAX. */
    int32_t catch_up_max;
    char script_key[65]; /* of its jobs */
    struct wall created_at;
    /* First scheduled time without a decision; WALL_NONE: none, or PAUSED. */
    struct wall next_at;
    struct wall decided_at; /* last scheduled time with a decision; WALL_NONE */
    int64_t last_job;       /* CORE_ID_NONE */
    /* Scheduled times that wait for the end of last_job, oldest first: milliseconds, each followed
     * by a blank. */
    char waiting[CORE_TEXT_MAX];
    int64_t runs; /* its rows in cron_runs */
    /* Number of scheduled times by outcome; refused ones count as skipped. */
    int64_t started, skipped, missed;
    /* The entry of the same user whose times it has, each when that entry's run of the time has
     * ended; CORE_ID_NONE: it has a schedule. */
    int64_t after;
    enum cron_after_end after_end;
    struct wall follows_from; /* only later times of that entry count; WALL_NONE */
    /* Calendars of the configuration: no runs on their days, and only on their days; "" = none. */
    char skip_on[CORE_NAME_MAX], only_on[CORE_NAME_MAX];
    /* 1 + minute of the day by which the run of the day is to be done, else it is notified; 0 =
     * none. checked_at: until when that was examined. */
    int32_t done_by;
    struct wall checked_at;
    struct wall done_at; /* latest scheduled time whose run ended well; WALL_NONE */
    /* The last scheduled time without a run, or with one that did not end well, and why. */
    struct wall undone_at;
    char undone[CORE_TEXT_MAX];
};

/* Outcome of one scheduled time of an entry, or of successive missed ones. The time is unique per
 * entry. */
struct cron_run_row {
    int64_t cron, number; /* number: from 1 */
    /* Scheduled time; by_hand: time of the request, or the time of the schedule asked for. */
    struct wall at;
    bool by_hand;
    enum cron_outcome outcome;
    /* Number of times it stands for. More than 1 only for missed ones; `at` is the first. */
    int64_t times;
    int64_t job; /* the job that was started, or that still ran; CORE_ID_NONE */
    struct wall decided_at;
    char text[CORE_TEXT_MAX];
};

/* Texts of a job that only the agent and `show` read: stored, never kept in the model. Some are
 * JSON. Borrowed in an event, copied by the change set. */
struct job_texts {
    const char *script;      /* text, starts with "#!" */
    const char *args_json;   /* array of strings */
    const char *env_json;    /* object of strings: only what the user named explicitly */
    const char *cwd;         /* absolute */
    const char *labels_json; /* object of strings */
    const char *launch_json; /* files of input and output, and tasks (docs/reference/api.md) */
    /* Submit: further demands (constraints.h), stored in a row of their own; NULL or "" = none. */
    const char *constraints;
    /* Object: recipients of notifications (scheduler/api/jobspec.h), URLs sealed; NULL = none. */
    const char *notify_json;
    /* Object: options that no decision reads (JOB_IN_DOCUMENT of job/attributes.h) and that differ
     * from their defaults; NULL = none. */
    const char *document_json;
    /* Finish time as 1 + minute of the day, at its next occurrence. Replaces the row's finish_ms,
     * which is < 0 then; 0 = none. */
    int32_t finish_of_day;
};

struct job_texts job_texts_copy(const struct job_texts *s); /* a deep copy */
void job_texts_deinit(struct job_texts *s); /* frees such a copy; a zeroed one is allowed */

#endif
