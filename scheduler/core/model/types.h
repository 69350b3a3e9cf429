/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scheduler knows, as plain rows: the core changes them, db/ stores them. A row has no
 * pointers, so a copy of it is a snapshot. Money is integer micro-dollars (uusd), time integer
 * milliseconds, memory MiB.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TYPES_H
#define BELAY_SCHEDULER_CORE_MODEL_TYPES_H

#include "job/counts.h"
#include "job/cron.h"
#include "job/feature.h"
#include "job/gpu.h"
#include "job/ranges.h"
#include "job/spec.h"
#include "base/sm.h"
#include "base/time.h"
#include "job/window.h"
#include <stdbool.h>
#include <stdint.h>

#define CORE_NAME_MAX 64  /* job, user, pool, zone, type names with their NUL */
#define CORE_TEXT_MAX 256 /* a reason for people */
#define CORE_ID_NONE 0    /* ids start at 1 */
#define PROGRESS_NONE INT64_MIN
#define JOB_EXIT_CHECKPOINTED 85 /* a program's exit code: "checkpointed, continue me" */

/* Both clocks at one moment; it arrives in the event. */
struct stamp {
    struct wall wall;
    struct mono mono;
};

/*
 *              +-------- to be tried again ----------+
 *              v                                     |
 *  submit -> PENDING --- place ---> RUNNING --- attempt ended ---> ENDED
 *              |                      | cancel                       ^
 *              |                      v                              |
 *              |                  CANCELLING --- attempt ended ------+
 *              +------------------ cancel ---------------------------+
 *              +-- the last task of an array has begun --> UNFOLDED -+ all of them have ended
 */
enum job_state { JOB_PENDING, JOB_RUNNING, JOB_CANCELLING, JOB_UNFOLDED, JOB_ENDED };
extern const struct sm job_sm;

/*
 *  ASSIGNED --- agent started it ---> RUNNING --- stop wanted ---> STOPPING
 *     |  |                               |                            |
 *     |  +-- stop wanted (STOPPING) -----|----------------------------+
 *     +---------------- ended -----------+----------- ended ----------+--> ENDED
 */
enum attempt_state { ATTEMPT_ASSIGNED, ATTEMPT_RUNNING, ATTEMPT_STOPPING, ATTEMPT_ENDED };
extern const struct sm attempt_sm;

/*
 *                   drain
 *  joined ---> UP <--------> DRAINING        UP, DRAINING, NOTICED --- lease over ---> LOST
 *               |               |          LOST --- agent returns ---> UP, or DRAINING while a
 *               |    reclaim    |             drain is wanted, NOTICED while a reclaim is announced
 *               +--> NOTICED <--+          any --- its instance's end wanted or seen, or it is
 *                                             deleted ---> GONE
 *
 *  NOTICED --- it has no instance, and its agent knows of no reclaim (any more) ---> UP or DRAINING
 */
enum node_state { NODE_UP, NODE_NOTICED, NODE_DRAINING, NODE_LOST, NODE_GONE };
extern const struct sm node_sm;

/*
 *                         +---- agent joined before the answer came ----+
 *                         |                                             v
 *  intent committed -> INTENDED --- provider answered ---> LAUNCHED -> RUNNING (agent joined)
 *                         |  |                                |         |
 *          definite refusal  +--------- end wanted -----------+---------+--> ENDING
 *                         |                                   |         |       |
 *                         +-----------------------------------+-- gone -+-------+--> GONE
 *
 *  An INTENDED instance whose end is wanted goes to ENDING: whether the call took effect is not
 *  known, so its token is looked up (and launched under it again, never under another) until the
 *  provider says that nothing is there.
 */
enum instance_state {
    INSTANCE_INTENDED,
    INSTANCE_LAUNCHED,
    INSTANCE_RUNNING,
    INSTANCE_ENDING,
    INSTANCE_GONE
};
extern const struct sm instance_sm;

/* How an attempt (and with its last attempt a job) ended. Each kind has its own retry rule
 * (retry.c). */
enum end_kind {
    END_NONE,
    END_SUCCEEDED,
    /* the program: exit code not 0 (85 excepted), or killed by a signal of its own */
    END_FAILED,
    END_USER,      /* cancelled, or requeued by its user */
    END_TIMEOUT,   /* time limit */
    END_RECLAIMED, /* the provider took the node, with notice */
    /* the node vanished: lease over, instance gone without notice, supervisor dead */
    END_NODE_LOST,
    END_CAPACITY,
    END_EVICTED,
    END_BUDGET,
    END_WINDOW,
    END_DRAINED,
    END_GANG,         /* a rank was stopped because another of its gang ended, or is about to */
    END_CHECKPOINTED, /* exit code 85 outside a notice: "checkpointed, continue me" */
    /* did not begin, or could not go on: the store of its checkpoints is at fault. The job is
     * queued again, and held */
    END_STORE,
    /* did not begin, or left what could not be saved: its node could not use the store. Queued
     * again, for another node if there is one (avoid.c); held, as END_STORE, after JOB_STORE_MAX in
     * a row */
    END_STORE_AWAY,
    END_DRILLED,    /* stopped for a drill (drill.c) */
    END_DEPENDENCY, /* never ran: what it depends on can no longer come true */
    END_DEADLINE    /* did not run (again): it could not have ended by its deadline any more */
};
extern const char *const end_kind_names[]; /* "none" "succeeded" ...; NULL-terminated */

enum market { MARKET_OWNED, MARKET_SPOT, MARKET_ON_DEMAND };
extern const char *const market_names[]; /* "owned" "spot" "on-demand" */
/* What a job that is to be done by some moment may be given now, beside what is owned: anything,
 * nothing, spot, on-demand. */
enum procurement { PROCURE_FREE, PROCURE_WAIT, PROCURE_SPOT, PROCURE_ON_DEMAND };
extern const char *const procurement_names[]; /* "free" "wait" "spot" "on-demand" */
/* What CRIU can do on a machine, each more than the one before: nothing that is known, nothing,
 * programs without GPUs, all. */
enum criu_ability { CRIU_UNKNOWN, CRIU_NO, CRIU_CPU, CRIU_GPU };
extern const char *const criu_ability_names[]; /* "unknown" "no" "cpu" "gpu" */
enum notice_type {
    NOTICE_TYPE_NONE,
    NOTICE_TYPE_REBALANCE,
    NOTICE_TYPE_MAINTENANCE,
    NOTICE_TYPE_RECLAIM
};
extern const char *const notice_type_names[];

/* What holds a node back, as its agent tells: heat, a limit of power, its board whatever for. Such
 * a node is given nothing new. */
enum throttle { THROTTLE_NONE, THROTTLE_HEAT, THROTTLE_POWER, THROTTLE_BOARD };
extern const char *const throttle_names[]; /* "none" "heat" "power" "board" */

/* A job that is held is not started; an operator's hold is not its user's to release. HOLD_STORE:
 * its last attempt ended as END_STORE, and its text says why and what to do. In rising order: a
 * stronger hold replaces a weaker one. */
enum hold { HOLD_NONE, HOLD_STORE, HOLD_USER, HOLD_OPERATOR };
extern const char *const hold_names[]; /* "none" "store" "user" "operator" */

#define CONSTRAINTS_NONE 0
#define CONSTRAINTS_TEXT_MAX 2560

/* What jobs ask for beside that, in words (constraints.h). Many jobs share one; it never
 * changes. */
struct constraints_row {
    int64_t id;
    char text[CONSTRAINTS_TEXT_MAX];
};

struct ckpt_ref {
    int64_t attempt; /* 0: none */
    int64_t sequence;
};

/* attempts in a row that could not use the store: then the job is held */
#define JOB_STORE_MAX 3
/* ends in a row with code 85 but without a new checkpoint: then it has failed */
#define JOB_CHECKPOINTED_MAX 3

#define RETRIES_TEXT_MAX 128

/* State changes of a job that somebody may want to be told of (notify.h). */
enum notify_event {
    NOTIFY_BEGIN, /* an attempt has started */
    NOTIFY_END,   /* the job has ended, whatever as; as a kind: it succeeded or was cancelled */
    NOTIFY_FAIL,  /* it has ended otherwise */
    NOTIFY_REQUEUE,
    NOTIFY_TIME_LIMIT,    /* it has ended so */
    NOTIFY_TIME_LIMIT_50, /* so many percent of it are over; as a wish: */
    NOTIFY_TIME_LIMIT_80,
    NOTIFY_TIME_LIMIT_90,
    NOTIFY_INVALID_DEPEND, /* it has ended since a dependency can never come true */
    NOTIFY_BUDGET,         /* of a budget, not of a job: a part of it is spent */
    NOTIFY_BOOTS,          /* of a pool: its machines do not join */
    NOTIFY_EVENTS
};
/* "begin" "end" "fail" "requeue" "time-limit" "time-limit-50" ... */
extern const char *const notify_event_names[];
#define NOTIFY_ARRAY_TASKS (1 << NOTIFY_EVENTS) /* of each task too, and not of the array alone */
#define NOTIFY_URLS_MAX 4

/* What is played beside a job that is to be done by some moment, so that it comes to cost not much
 * more than that (procurement_baseline.c), and what the job has paid itself; both as of `at`. */
struct baseline_row {
    int64_t at_ms;       /* by the wall clock; 0: it has not begun */
    int64_t done_ms;     /* of the work */
    int64_t starting_ms; /* of the restart that is under way */
    /* offers: where it is, and the spot one where it was last; CORE_ID_NONE */
    int64_t on, last;
    int64_t price_uusd_h; /* where it is */
    int64_t paid_uusd;
    int64_t job_price_uusd_h, job_paid_uusd; /* the job's own */
};

struct job_row {
    int64_t id;
    char user[CORE_NAME_MAX];
    enum job_state state;
    struct job_spec spec; /* what it asks for */
    enum end_kind end;    /* of the last attempt that ended; END_NONE before */
    int32_t exit_code;    /* of that attempt; 128 + signal when killed */
    /* and what it asks for beside that; CONSTRAINTS_NONE. Not of a submit, which has it in its
     * spec */
    int64_t constraints;
    /* of the newest attempt: nodes that it was started on; 0 before the first */
    int32_t ranks;
    int32_t used[RETRY_KINDS]; /* of spec.retries */
    int32_t used_checkpointed; /* ends with code 85 in a row without a new checkpoint */
    /* attempts in a row that failed, or could not be run on their node, soon after they were
     * placed, with nothing saved; or that all ended as END_STORE_AWAY */
    int32_t quick_ends;
    /* restored attempts in a row that began again from before their checkpoint, and none got
     * further than ever (no_progress.c) */
    int32_t no_progress;
    int64_t no_progress_last; /* the last of them */
    int64_t best_progress;    /* that it ever had; PROGRESS_NONE unknown */
    int64_t attempts;         /* number of the newest attempt; 0 before the first */
    /* what the live attempt will count as, by its ranks that have ended; END_NONE: not known yet */
    enum end_kind gang_end;
    int32_t gang_code;                              /* the exit code of the rank that decided it */
    int64_t reclaims;                               /* attempts that ended RECLAIMED or NODE_LOST */
    struct wall submitted_at, started_at, ended_at; /* started_at: first attempt's start */
    enum hold hold;
    int64_t done_ms; /* of spec.work_ms, what the last good checkpoint has */
    /* what its progress showed, when it was told last, that there is to do in all; 0: nothing
     * yet */
    int64_t shown_ms;
    struct baseline_row baseline; /* with a finish_ms */
    /* PROCURE_FREE exactly where finish_ms is 0, or nothing it could use is always to be had */
    enum procurement procurement;
    /* since when only room keeps it from running; WALL_NONE: hold, begin_at or a dependency does */
    struct wall eligible_at;
    struct ckpt_ref last_good;
    int64_t last_good_progress; /* PROGRESS_NONE unknown */
    struct wall last_good_at;
    int64_t save_ms;                  /* measured, of the last save; 0: none yet */
    int64_t pause_ms;                 /* of it, what the program waited for */
    int64_t ckpt_bytes;               /* content of the last checkpoint */
    int64_t progress, progress_total; /* as the program reports; PROGRESS_NONE unknown */
    int64_t lost_ms;                  /* work recomputed after ends without a save, summed */
    int64_t lost_steps; /* the same in the program's own steps where it reports them */
    /* what it cost; what the same seconds cost on-demand without reclaims */
    int64_t cost_uusd, on_demand_uusd;
    /* what a certificate is for: SHA-256 of user, method and script, hex; "" is covered by none */
    char script_key[65];
    int64_t drills; /* begun so far */
    int64_t cron;   /* the entry that started it; CORE_ID_NONE */
    /* the time of its schedule that this is the job of; WALL_NONE: none, or by hand */
    struct wall cron_at;
    /* 1 << enum notify_event: of which parts of the live attempt's time limit was told; of an array
     * also that it has begun */
    int32_t warned;
    int64_t array;       /* of a task: the array's number; CORE_ID_NONE */
    int32_t array_index; /* of a task */
    /* while PENDING, of several nodes: it waits for more than it needs, or for those that are kept;
     * or NONE */
    struct wall gang_resize_until;
    /* somebody has given its work up: checkpoints of earlier attempts are not used; 0: nobody
     * has */
    int64_t from_attempt;
    /* the last time that it gave its place up to who it was owed to; WALL_NONE */
    struct wall evicted_at;
    struct mono queued_mono; /* not stored: set at submit, requeue and recovery */
};

/* A job that is an array stands in the queue for those of its tasks that have not begun, in one
 * row. A task gets a row and a number of its own when it is placed, and is a job like any other
 * from then on. The array has ended when all of them have: succeeded if they have, else as the
 * first that did not. */
struct array_row {
    int64_t job;
    char tasks[RANGES_TEXT_MAX]; /* the indices of all (job/ranges.h) */
    /* of those that have not begun, and do not have a row; with AFTERCORR there may be others among
     * them */
    char left[RANGES_TEXT_MAX];
    int32_t at_once; /* at most so many run; 0: no limit */
    /* that have ended; other: otherwise, or were cancelled before they began */
    int32_t n_succeeded, n_other;
    enum end_kind end; /* of the first other one; END_NONE */
    int32_t exit_code;
};

/* A task that has ended. */
struct task_end {
    int64_t array;
    int32_t array_index;
    bool succeeded;
};

/* What is stored of an array's tasks. */
struct array_ends {
    struct ranges all;
    struct bits succeeded; /* as far as is stored by now */
};

/* An attempt has a row for each of its nodes: its ranks. They start together, each ends by itself,
 * and the attempt is over when all of them have ended. */
struct attempt_row {
    int64_t job, attempt;
    int64_t node;
    int32_t rank; /* 0 .. ranks of the job - 1 */
    enum attempt_state state;
    enum end_kind end;
    enum end_kind stop_reason; /* while STOPPING: how it will be counted */
    bool save_first;           /* while STOPPING: save before the kill (drain, evict) */
    int32_t exit_code;
    /* started_at: the program's exec, after the restore */
    struct wall assigned_at, started_at, ended_at;
    struct ckpt_ref restored; /* what it resumed from */
    int64_t restored_progress;
    /* so much of what it does after that is useful in the ledger already (db_read_behind) */
    int64_t behind_ms;
    /* content of that; of it, what its node had and did not fetch from the store */
    int64_t restored_bytes, nearby_bytes;
    int64_t restore_ms, save_ms; /* spent in restores and saves, summed */
    int64_t sequence;            /* of its newest committed checkpoint; 0: none */
    int64_t saves_asked;         /* how many saves users have asked for */
    /* of the lowest rank that has not ended: since when it is to be saved, then stopped and queued
     * again (requeue.c); WALL_NONE */
    struct wall requeue_asked_at;
    int64_t price_uusd_h, on_demand_uusd_h; /* of its node at assignment */
    int64_t base_uusd;                      /* what its node had cost by then ... */
    int64_t started_uusd;                   /* ... when it started ... */
    struct wall gathered_at; /* when the last rank of its gang had started; WALL_NONE ... */
    int64_t gathered_uusd;
    struct wall kept_at; /* when its newest checkpoint was taken; WALL_NONE ... */
    int64_t kept_uusd;
    int64_t save_uusd; /* what its node cost in save_ms */
    /* what it read from the store and wrote there cost, where that lies elsewhere */
    int64_t egress_uusd;
    /* what its processes used of the processor, of that in user mode, and the most of memory at
     * once, in bytes; 0: not known. Memory only until something else stores the attempt */
    int64_t cpu_ms, cpu_user_ms, memory_peak;
    char text[CORE_TEXT_MAX]; /* why it ended, for people */
};

struct node_row {
    int64_t id;
    char name[CORE_NAME_MAX]; /* host name, unique by a suffix */
    char pool[CORE_NAME_MAX];
    int64_t instance; /* CORE_ID_NONE: a reserved node */
    enum node_state state;
    struct resources total;
    int64_t price_uusd_h, on_demand_uusd_h;
    enum market market;
    enum notice_type notice;
    struct wall notice_deadline; /* WALL_NONE */
    struct wall joined_at, gone_at;
    char address[CORE_NAME_MAX];
    /* SHA-256 of its public key, hex: a repeated join with the same key is the same node */
    char key_hash[65];
    char version[32];              /* of its agent */
    bool drain;                    /* an operator wants it empty: outlives LOST */
    enum criu_ability criu;        /* as its agent found; UNKNOWN: it does not say */
    char criu_text[CORE_TEXT_MAX]; /* CRIU's version, or why it cannot */
    /* the job of several nodes that goes on there, between two attempts; CORE_ID_NONE */
    int64_t kept_for;
    struct gpu_kind gpu;              /* of its GPUs, as its agent tells; where they differ, none */
    char features[FEATURES_TEXT_MAX]; /* as its agent tells (job/feature.h) ... */
    char resources[COUNTS_TEXT_MAX];  /* ... likewise (job/counts.h) */
    /* Of a reserved node, as its instance has it of another (ledger.c); settled_at: */
    struct wall priced_at;
    int64_t accrued_uusd, attempts_uusd, attempts_ms, idle_uusd, idle_ms;
    struct wall used_until, settled_at;
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
    char provider_id[CORE_NAME_MAX];        /* "": not known yet */
    int64_t node;                           /* the node that joined from it */
    int64_t price_uusd_h, on_demand_uusd_h; /* in force */
    struct wall priced_at; /* since when the price holds; WALL_NONE before the launch */
    int64_t accrued_uusd;  /* what it had cost by then */
    /* The same of the price before: an end may be told later than a price that came after it.
     * before_at WALL_NONE: there was none. Before launched_at: of a machine that was there for
     * longer, if it was, up to then */
    int64_t before_uusd_h, before_uusd;
    struct wall before_at;
    int64_t boot_uusd; /* what it had cost when its agent joined */
    struct wall intended_at, launched_at, joined_at, ended_at; /* ended_at: it is paid until then */
    /* launched_at is as the provider says; else since when it has been heard of, until that is
     * told */
    bool launched_at_from_provider;
    /* the end of its last attempt that is over, or settled_at; WALL_NONE */
    struct wall used_until;
    /* up to when its idle time is in the ledger; WALL_NONE: none of it is */
    struct wall settled_at;
    int64_t idle_uusd, idle_ms; /* that */
    bool reclaimed;             /* taken by the provider, or announced to be */
    bool rebalanced;            /* recommended to be left */
    /* part of its cost that attempts carried, and the waiting of gangs; the rest is boot and
     * idle */
    int64_t attempts_uusd;
    /* part of its time that attempts used: each by its share of the node */
    int64_t attempts_ms;
    char text[CORE_TEXT_MAX]; /* why it ended */
    /* Ids of the other offers that the launch may be answered from, the best first, a blank before
     * each. They stay as they were decided: a launch that is repeated under its token must not
     * differ. */
    char alternatives[INSTANCE_ALTERNATIVES_TEXT_MAX];
};

#define BOOTS_FAILED_MAX 3    /* in a row; then a pool launches one machine at a time */
#define BOOT_CONSOLE_MAX 1024 /* bytes that are kept of a console, its last lines */

/* Machines of an elastic pool that were launched and ended before their agent joined, and were not
 * reclaimed. */
struct pool_boots {
    int32_t failed; /* in a row, over all offers of the pool; 0 again when one joins */
    /* after that many: the time from a failure to the next launch. 0: launches are not
     * restricted */
    int64_t wait_ms;
    struct wall next_at;            /* with wait_ms: no launch before */
    int64_t instance;               /* the last that failed; CORE_ID_NONE: none */
    char text[CORE_TEXT_MAX];       /* why that one ended */
    char console[BOOT_CONSOLE_MAX]; /* the last lines of its console; "": not known */
};

struct pool_row {
    char name[CORE_NAME_MAX];
    bool elastic;
    char provider[16], region[CORE_NAME_MAX]; /* elastic only */
    int32_t max_nodes;
    int64_t idle_timeout_ms; /* without attempts for so long, an elastic node is ended ... */
    int64_t cooldown_ms;     /* ... but not before so long after it joined */
    int64_t boot_timeout_ms; /* a launched machine that has not joined after so long is ended */
    /* first avoidance of an offer that refused; doubles to 60 times this */
    int64_t refusal_backoff_ms;
    int64_t usd_per_hour_uusd; /* reserved: what an owned node-hour costs */
    int64_t max_gpus;          /* of its instances together; 0: no limit */
    int64_t max_uusd_h;        /* what its instances may cost an hour, together; 0: no limit */
    /* the provider bills so much of an instance at least: not ended for idleness before */
    int64_t min_paid_ms;
    /* how much more a spot machine may cost to be in another offer than the rest, 0 .. 100 */
    int32_t spread_pct;
    /* a job on-demand moves to a cheaper market after so long there, if there is one; 0: never */
    int64_t return_ms;
    int64_t egress_uusd_gib; /* to read a GiB of the checkpoint store from there */
    int64_t upload_uusd_gib; /* to write a GiB to it */
    /* offers of a market are ranked by their price alone, whatever they were seen to do */
    bool by_price;
    /* the provider may choose among offers that serve as well as the one decided on */
    bool fleet;
    bool require_drill;     /* its spot machines are for jobs with a certificate ... */
    int64_t drill_valid_ms; /* ... that is not older */
    /* as the configuration says of its machines; UNKNOWN: it does not */
    enum criu_ability criu;
    enum criu_ability criu_seen; /* elastic: as the machine that told last found, and its words */
    char criu_text[CORE_TEXT_MAX];
    /* of jobs that name this pool, as retries_format writes it: what they do not say themselves,
     * nor a pool that they name before it */
    char retries[RETRIES_TEXT_MAX];
    /* it takes only jobs that have labels of these names */
    char required_labels[FEATURES_TEXT_MAX];
    char features[FEATURES_TEXT_MAX]; /* of each of its nodes ... */
    char resources[COUNTS_TEXT_MAX];  /* ... likewise, but for what a node tells otherwise */
    struct pool_boots boots;
};

#define OFFER_WITHDRAWN (-1)

/* One (pool, zone, type, market). rank: the pool file's order of markets, 0 first. */
struct offer_row {
    int64_t id; /* from 1, never given twice */
    char pool[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
    enum market market;
    /* OFFER_WITHDRAWN: no longer in the configuration, never launched */
    int32_t rank;
    struct resources total; /* of one instance */
    char arch[16];          /* "x86_64" "aarch64"; "": not known */
    struct gpu_kind gpu;    /* of its GPUs */
    int64_t price_uusd_h, on_demand_uusd_h;
    bool price_from_provider; /* by its provider, which knows better than a configuration */
    /* counted for ever; launches: decided on, or given in another's place */
    int64_t launches, refusals, reclaims;
    /* refusals and machines that never joined, since the last that did join */
    int32_t refused_in_a_row;
    struct mono avoid_until; /* not stored; MONO_NONE */
    int64_t up_ms;           /* instance time observed, for the reclaim rate */
    /* machines that joined; what that took from the intent on, summed */
    int64_t boots, boot_ms;
    int64_t rebalances, rebalances_true; /* recommendations; those whose machine was reclaimed */
};

/* Why an agent is not told of an attempt (withheld.c). */
enum withheld {
    WITHHELD_NO,
    WITHHELD_AWAY,  /* the store, or who makes credentials for it, cannot be used now */
    WITHHELD_DENIED /* who makes credentials refuses: only somebody can mend it */
};

/* What happened to a job, a node or an instance, for timelines. */
struct history_row {
    int64_t id;  /* grows; assigned by the model */
    int64_t job; /* CORE_ID_NONE: none */
    int64_t attempt, node, instance;
    struct wall at;
    char kind[24];            /* one of history_kinds */
    char text[CORE_TEXT_MAX]; /* for people: "saved 4.1 MiB in 0.3 s at step 1200" */
    int64_t a, b;             /* numbers of the kind, as history_kinds says; else 0 */
};

/* Stable for scripts; NULL-terminated. With (a, b) where they carry numbers:
 *   of jobs:      submitted updated held released eligible placed started(restored progress or
 *                 PROGRESS_NONE, restore_ms) damaged(how many, 0) restored(bytes, of them on the
 *                 node already) saved(bytes, took_ms) save-failed output-cut no-credentials
 *                 store-refused save(asked by a user) cancel requeue(likewise) ended(exit code, ms
 *                 of work lost) requeued settled cleaned clean-failed
 *   of nodes:     joined notice(deadline or WALL_NONE's, 0) lost returned drain undrain throttled
 *                 recovered gone
 *   and of jobs   move park reclaim preempt in-vain(the step it is at, how many times in a row)
 *   of budgets:   budget(the part in percent, micro-dollars spent)
 *   of instances: launch launched(ms since the intent, 0) launch-refused(avoided for ms, 0) ending
 *                 gone offer-refused(avoided for ms, 0): another offer of the same launch
 *                 boot-failed(how many in a row, ms until the next launch or 0) boot-console
 *                 boots-again
 * "placed" and later rows of an attempt carry its job and node; a node's rows carry its
 * instance. */
extern const char *const history_kinds[];

/*
 *  asked for ---> WAITS --- came true -----------> MET
 *                   |  +---- no longer can --------> NEVER
 *                   |                                  |
 *                   +- the job needs it no more, or ---+--> DROPPED (asked for again, it begins
 *                      ended for something else             anew)
 */
enum depend_state { DEPEND_WAITS, DEPEND_MET, DEPEND_NEVER, DEPEND_DROPPED };
extern const struct sm depend_sm;

/* What has to become of a job first, by the names that sbatch has for them. A job that ended before
 * it started counts as started for AFTER. AFTERCORR: of an array on an array; each task waits for
 * the one with its index to succeed. SINGLETON: as AFTERANY, of each job of the same user and name
 * that was there before. */
enum depend_kind {
    DEPEND_AFTER,
    DEPEND_AFTERANY,
    DEPEND_AFTEROK,
    DEPEND_AFTERNOTOK,
    DEPEND_AFTERCORR,
    DEPEND_SINGLETON
};
/* "after" "afterany" "afterok" "afternotok" "aftercorr" "singleton" */
extern const char *const depend_kind_names[];
#define DEPENDS_MAX 1024

struct dependency_row {
    int64_t job, on;
    enum depend_kind kind;
    /* on is an array, and it is about its task with the index `task`; else about the whole */
    bool of_task;
    int32_t task;
    int64_t delay_ms; /* AFTER: so long after the start */
    enum depend_state state;
};

struct checkpoint_row {
    int64_t job;
    struct ckpt_ref ref;
    int64_t node;
    struct wall saved_at;
    int64_t bytes, stored_bytes, took_ms, pause_ms;
    int64_t progress; /* PROGRESS_NONE */
    char cause[16];   /* "periodic" "notice" "program" "drain" ... */
};

#define STORED_BYTES_MAX (INT64_C(1) << 60)

/* What the store has of a job, and what keeping that costs (storage.c). */
/* Of a job that has ended: it has cost so much more. */
struct late_cost {
    int64_t job, uusd;
};

struct stored_row {
    int64_t job;
    int64_t bytes;          /* that are there, as was told last: 0 when nothing is any more */
    struct wall at;         /* counted up to then */
    struct wall settled_at; /* in the ledger up to then */
    int64_t parts;          /* millionths of a micro-dollar that it cost meanwhile */
    int64_t uusd;           /* that are in the ledger */
};

/*
 *  the job ended ---> WAITING --- due ---> CLEANING --- cleaned ---> DONE
 *                        ^                    |
 *                        +-- to come again, --+
 *                            failed, or to be looked at: something stays, and costs
 */
enum ckpt_gc_state { CKPT_GC_WAITING, CKPT_GC_CLEANING, CKPT_GC_DONE };
extern const struct sm ckpt_gc_sm;

/* The checkpoints of a job that ended. The first cleaning, at once, closes the job's store: no
 * attempt that was given up for lost can commit any more. What stays, pinned ones apart:
 *
 *      after     the job succeeded                       it did not
 *      AUTO      all, from last_at on none               all, from last_at on the last
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
    /* of the last one, with AUTO; else, or when that is over, WALL_NONE: then it is only looked how
     * much stays */
    struct wall last_at;
    int32_t tries; /* failed ones in a row */
};

/*
 *  asked for --> STOPPING --> QUEUED --> RESUMED --> PASSED --- its result differs ---+
 *                  |            |           |                                         v
 *                  +------------+-----------+----------- it did not save ----------> FAILED
 *                  +------------+-----------+----------- something else came ------> INTERRUPTED
 *
 *  QUEUED: its attempt has ended. RESUMED: the next has started.
 */
enum drill_state {
    DRILL_STOPPING,
    DRILL_QUEUED,
    DRILL_RESUMED,
    DRILL_PASSED,
    DRILL_FAILED,
    DRILL_INTERRUPTED
};
extern const struct sm drill_sm;
#define DRILL_METHOD_VERSION 1 /* of what is done and looked at; certificates name it */
#define DRILL_TRIES_DEFAULT 3

/* An attempt that was saved and killed on purpose, and what came of it. One that PASSED is a
 * certificate for every job of the same script_key, until a newer one FAILED. */
struct drill_row {
    int64_t job, number;                                           /* number: of the job, from 1 */
    char script_key[65], user[CORE_NAME_MAX], name[CORE_NAME_MAX]; /* the job's */
    enum ckpt_method method;
    enum drill_state state;
    bool without_notice;    /* killed without a save: it resumes from the checkpoint before */
    bool avoids;            /* while QUEUED: the node it was on is not for it */
    char by[CORE_NAME_MAX]; /* who asked; "": submitted so */
    char version[32];       /* of belay */
    int32_t method_version;
    int64_t attempt, node;   /* that is killed, and where it was */
    int64_t before_sequence; /* of the attempt's newest checkpoint when it was asked for */
    struct wall asked_at, killed_at, resumed_at, ended_at;
    struct ckpt_ref saved;  /* what it has to resume from */
    int64_t saved_progress; /* PROGRESS_NONE: not told */
    int64_t bytes, save_ms; /* of that checkpoint */
    /* from that checkpoint to the kill; lost_steps PROGRESS_NONE: not told */
    int64_t lost_ms, lost_steps;
    int64_t resumed_attempt, resumed_node; /* 0: not yet */
    int64_t restore_ms;
    int64_t progress; /* first told after the resume; PROGRESS_NONE */
    /* from the kill to that, or to the start of a program that tells none; 0: not yet */
    int64_t resume_ms;
    /* the job whose result its own was held against, and equals while it is PASSED; 0: none */
    int64_t compared_with;
    char text[CORE_TEXT_MAX]; /* what came of it */
};

/* What a user has used as a member of a team, halved after each half-life: of the cpus that its
 * jobs take (order.h), in microseconds of one. */
struct account_row {
    char team[CORE_NAME_MAX], user[CORE_NAME_MAX];
    int64_t used;
    struct wall at; /* as of then */
};

#define BUDGET_ABOUT_MAX 3072

/* What is stored of a budget (budget.h). */
struct budget_row {
    char name[CORE_NAME_MAX];
    /* what it counts (budget_about): one of another text is another one */
    char about[BUDGET_ABOUT_MAX];
    /* of its period; since WALL_NONE: between two of a window, until the next begins. until
     * WALL_NONE: never */
    struct wall since, until;
    /* of ranks that ended in it, less what those that ran at its begin had cost by then */
    int64_t booked_uusd;
    int64_t cap_uusd; /* the one that told and is_closed are of */
    int32_t alerted;  /* 1 << i: it was told of the i-th of its parts */
    bool is_closed;   /* nothing begins in it any more */
};

/* Something that is to be told to somebody. */
struct outbox_row {
    int64_t event; /* number of the change, the same for all targets; one of the history's */
    /* "mail", "url:0", "hook:NAME" of the configuration; of a budget "mail:0" */
    char target[CORE_NAME_MAX + 8];
    int64_t job, attempt; /* of a budget CORE_ID_NONE */
    enum notify_event kind;
    enum end_kind end; /* as the job's row had them then */
    int32_t exit_code;
    char user[CORE_NAME_MAX];
    struct wall at;
    struct wall due_at; /* not delivered before */
    int32_t tries;      /* that failed */
    /* NOTIFY_BOOTS: that it is about; else "". job is CORE_ID_NONE then */
    char pool[CORE_NAME_MAX];
    char budget[CORE_NAME_MAX]; /* NOTIFY_BUDGET: that it is about; else "" */
    /* of it: the part that is spent; NOTIFY_BOOTS: machines that failed in a row ... */
    int32_t pct;
    int64_t spent_uusd, cap_uusd;
};

struct outbox_key {
    int64_t event;
    char target[CORE_NAME_MAX + 8];
};

#define CKPT_IDENTITY_MAX 64 /* with its NUL */

/* By what a job's part of the store is known to be its own (ckpt_begin), once the job has ended. */
struct ckpt_claim {
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_ref last; /* the newest checkpoint that belayd was told of; attempt 0: none */
};

/* How a cleaning ended. */
enum clean_end {
    CLEAN_DONE,
    CLEAN_FAILED,  /* some may have been done: it is tried again */
    CLEAN_ANOTHERS /* what is there is another job's, and was not touched: there is nothing to do */
};

enum ckpt_gc_keep { CKPT_GC_KEEP_ALL, CKPT_GC_KEEP_LAST, CKPT_GC_KEEP_NONE };
extern const char *const ckpt_gc_keep_names[]; /* "all" "last" "none" */
#define CKPT_GC_LOOK_MS 3600000LL              /* the wall clock is looked at so often */

enum ledger_kind {
    LEDGER_USEFUL,
    LEDGER_LOST,
    LEDGER_BOOT,
    LEDGER_START, /* of a job's first attempt, which restores nothing */
    LEDGER_RESTORE,
    LEDGER_SAVE,
    LEDGER_GANG_WAIT,
    LEDGER_IDLE,
    LEDGER_EGRESS,  /* no time: what went between nodes and a store elsewhere; */
    LEDGER_STORAGE, /* what that kept */
    LEDGER_KINDS
};
/* "useful" "lost" "boot" "start" "restore" "save" "gang-wait" "idle" "egress" "storage" */
extern const char *const ledger_kind_names[];

/* What a stretch of a node's time was, and what it cost. */
struct ledger_row {
    int64_t job, attempt; /* CORE_ID_NONE for boot and idle */
    int64_t node, instance;
    enum ledger_kind kind;
    struct wall from, to;
    /* of the stretch; several kinds may share one from..to, their ms add up to it */
    int64_t ms;
    int64_t node_ms; /* of the node's time: less than ms where others had a share of it */
    int64_t uusd, on_demand_uusd;
};

/*
 *  added --> ACTIVE <--> PAUSED        both --- removed ---> REMOVED
 */
enum cron_state { CRON_ACTIVE, CRON_PAUSED, CRON_REMOVED };
extern const struct sm cron_sm;
/* What becomes of a time at which the job of an earlier one has not ended. */
enum cron_overlap { CRON_SKIP, CRON_QUEUE, CRON_REPLACE };
extern const char *const cron_overlap_names[]; /* "skip" "queue" "replace" */
/* What becomes of times at which belayd was not there, or could not store anything. */
enum cron_catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };
extern const char *const cron_catch_up_names[]; /* "none" "last" "all" */

#define CRON_CATCH_UP_MAX 1000
#define CRON_WAITING_MAX 16 /* times that wait, with CRON_QUEUE */

/* A job that is submitted at the times of a schedule. At most one of its jobs is alive, whatever
 * becomes of times that come meanwhile. */
struct cron_row {
    int64_t id;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX]; /* no two of a user have the same name */
    enum cron_state state;
    char schedule[CRON_TEXT_MAX]; /* as job/cron.h reads it, without a zone before it */
    char zone[ZONE_NAME_MAX];
    enum cron_gap gap;
    enum cron_twice twice;
    enum cron_overlap overlap;
    enum cron_catch_up catch_up;
    /* with CATCH_UP_ALL the last so many are caught up, 1 .. CRON_CATCH_UP_MAX */
    int32_t catch_up_max;
    char script_key[65]; /* of its jobs */
    struct wall created_at;
    /* the first time of the schedule on which nothing is decided yet; WALL_NONE: none, or PAUSED */
    struct wall next_at;
    struct wall decided_at; /* the last on which something is; WALL_NONE */
    int64_t last_job;       /* CORE_ID_NONE */
    /* times that wait for the end of that job, oldest first: milliseconds, a blank behind each */
    char waiting[CORE_TEXT_MAX];
    int64_t runs; /* rows of it in cron_runs */
    /* times of the schedule, by what became of them; refused ones are SKIPPED */
    int64_t started, skipped, missed;
};

enum cron_outcome { CRON_STARTED, CRON_SKIPPED, CRON_MISSED, CRON_REFUSED };
extern const char *const cron_outcome_names[]; /* "started" "skipped" "missed" "refused" */

/* What became of one time of an entry, or of some that were missed in a row. No two rows of an
 * entry are of the same time. */
struct cron_run_row {
    int64_t cron, number; /* from 1 */
    struct wall at;       /* of the schedule; by hand: when it was asked for */
    bool by_hand;
    enum cron_outcome outcome;
    /* that it stands for: more than 1 only when they were missed; `at` is the first */
    int64_t times;
    int64_t job; /* that was started, or was in the way; CORE_ID_NONE */
    struct wall decided_at;
    char text[CORE_TEXT_MAX];
};

/* The parts of a job that only the agent and `show` read: stored, never kept in the model. Texts
 * are JSON where they say so. Borrowed in an event, copied by the change set. */
struct job_texts {
    const char *script;      /* text, starts with "#!" */
    const char *args_json;   /* array of strings */
    const char *env_json;    /* object of strings: what the user gave by name, nothing else */
    const char *cwd;         /* absolute */
    const char *labels_json; /* object of strings */
    const char *launch_json; /* files of input and output, tasks (docs/reference/api.md) */
    /* what it asks for (constraints.h); NULL or "": nothing. Of a submit; stored with others */
    const char *constraints;
    /* object: to whom notices go (scheduler/api/jobspec.h), its URLs sealed; NULL: to nobody */
    const char *notify_json;
    /* object: its options that no decision reads (JOB_IN_DOCUMENT of job/attributes.h), of them
     * those that differ from the default; NULL: none */
    const char *document_json;
    /* 1 + the minute of the day that it is to be done by, the next that comes: instead of the row's
     * finish_ms, which is < 0; 0: none */
    int32_t finish_of_day;
};

bool job_pools_allow(const char *pools, const char *pool); /* pools: as a job has them */

struct job_texts job_texts_copy(const struct job_texts *s); /* texts of its own */
void job_texts_deinit(struct job_texts *s); /* of such a copy; a zeroed one is fine */

#endif
