/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and states of the scheduler's things: state machines, kinds, and the words for them. Their
 * rows are in rows.h.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TYPES_H
#define BELAY_SCHEDULER_CORE_MODEL_TYPES_H

#include "base/sm.h"
#include "base/time.h"
#include <stdbool.h>
#include <stdint.h>

#define CORE_NAME_MAX 64  /* size of job, user, pool, zone and type names with their NUL */
#define CORE_TEXT_MAX 256 /* size of a human-readable reason */
#define CORE_ID_NONE 0    /* ids start at 1 */
#define PROGRESS_NONE INT64_MIN
#define JOB_EXIT_CHECKPOINTED 85 /* exit code of a program: "checkpointed, run me again" */

/* Both clocks at the time of an event; part of each event. */
struct stamp {
    struct wall wall;
    struct mono mono;
};

/* When that wall time will be, or now if it has passed. */
static inline struct mono stamp_until(struct stamp now, struct wall due)
{
    return (struct mono){now.mono.ms + (due.ms > now.wall.ms ? due.ms - now.wall.ms : 0)};
}

/* The same, but within check_ms: the wall clock may be set meanwhile. */
static inline struct mono stamp_until_checked(struct stamp now, struct wall due, int64_t check_ms)
{
    struct mono at = stamp_until(now, due);
    return at.ms < now.mono.ms + check_ms ? at : (struct mono){now.mono.ms + check_ms};
}

/*
 *             +----------------- retry -----------------+
 *             v                                         |
 * submit -> PENDING --- place ---> RUNNING --- attempt ended ---> ENDED
 *             |                      | cancel                       ^
 *             |                      v                              |
 *             |                  CANCELLING --- attempt ended ------+
 *             +------------------ cancel ---------------------------+
 *             +-- the last task of an array has begun --> UNFOLDED -+ all tasks have ended
 */
enum job_state { JOB_PENDING, JOB_RUNNING, JOB_CANCELLING, JOB_UNFOLDED, JOB_ENDED };
extern const struct sm job_sm;

/*
 * ASSIGNED --- agent started it ---> RUNNING ----- stop requested --> STOPPING
 *    |  |                               |                                |
 *    |  +-- stop requested (STOPPING) --|--------------------------------+
 *    +---------------- ended -----------+------------- ended ------------+--> ENDED
 */
enum attempt_state { ATTEMPT_ASSIGNED, ATTEMPT_RUNNING, ATTEMPT_STOPPING, ATTEMPT_ENDED };
extern const struct sm attempt_sm;

/*
 *                  drain
 * joined ---> UP <--------> DRAINING        UP, DRAINING, NOTICED --- lease expired ---> LOST
 *              |               |          LOST --- agent returns ---> UP, or DRAINING while a
 *              |    reclaim    |             drain is requested, NOTICED during a reclaim notice
 *              +--> NOTICED <--+          any --- end of its instance requested or observed, or
 *                                            node deleted ---> GONE
 *
 * NOTICED --- no instance, and its agent reports no reclaim (any more) ---> UP or DRAINING
 */
enum node_state { NODE_UP, NODE_NOTICED, NODE_DRAINING, NODE_LOST, NODE_GONE };
extern const struct sm node_sm;

/*
 *                        +---- agent joined before the answer came ----+
 *                        |                                             |
 *                        +-- accepted ---> QUEUED --- it starts --+    |
 *                        |                                        v    v
 * intent committed -> INTENDED --- provider answered ---> LAUNCHED -> RUNNING (agent joined)
 *                        |  |                                |         |
 *         definite refusal  +-------- end requested ---------+---------+--> ENDING
 *                        |                                   |         |       |
 *                        +-----------------------------------+-- gone -+-------+--> GONE
 *
 * QUEUED: it waits in a queue of the provider's and costs nothing. It can end, and its agent can
 * join, as from LAUNCHED.
 *
 * An INTENDED instance with a requested end goes to ENDING, since the launch call may have taken
 * effect. Its token is looked up, and launched again under the same token, until the provider
 * reports that no such instance exists.
 */
enum instance_state {
    INSTANCE_INTENDED,
    INSTANCE_QUEUED,
    INSTANCE_LAUNCHED,
    INSTANCE_RUNNING,
    INSTANCE_ENDING,
    INSTANCE_GONE
};
extern const struct sm instance_sm;

/* How an attempt, and with its last attempt a job, ended. Each kind has its own retry rule
 * (retry_rules.c). */
enum end_kind {
    END_NONE,
    END_SUCCEEDED,
    /* the program failed: an exit code other than 0 and 85, or a signal of its own */
    END_FAILED,
    END_CANCELLED, /* cancelled, or requeued by its user */
    END_TIMEOUT,   /* time limit reached */
    END_RECLAIMED, /* the provider took the node, with notice */
    /* the node vanished: lease expired, instance gone without notice, or supervisor dead */
    END_NODE_LOST,
    /* Did not begin: its node's disk had no space for it, or its user may execute nothing in the
     * agent's directory there. The job is requeued, for another node if there is one, and held
     * after JOB_NO_SPACE_MAX in a row. */
    END_CAPACITY,
    END_EVICTED,
    END_BUDGET,
    END_WINDOW,
    END_DRAINED,
    END_GANG, /* the rank was stopped because another rank of its gang ended, or is about to */
    END_CHECKPOINTED, /* exit code 85 outside a notice: "checkpointed, run me again" */
    /* did not begin or could not continue: the checkpoint store is at fault; the job is requeued
     * and held */
    END_STORE,
    /* Did not begin, or its state could not be saved: the node could not use the store. The job is
     * requeued, for another node if there is one (avoid.c), and held as for END_STORE after
     * JOB_STORE_MAX in a row. */
    END_STORE_AWAY,
    END_DRILLED,    /* stopped for a drill (drill.c) */
    END_DEPENDENCY, /* never ran: a dependency can no longer be satisfied */
    END_DEADLINE    /* did not run (again): it could no longer end by its deadline */
};
extern const char *const end_kind_names[]; /* "none" "succeeded" ...; NULL-terminated */

enum market { MARKET_OWNED, MARKET_SPOT, MARKET_ON_DEMAND };
extern const char *const market_names[]; /* "owned" "spot" "on-demand" */
/* Markets that a deadline job may use now, besides owned nodes: all, none, spot, on-demand. */
enum procurement { PROCURE_FREE, PROCURE_WAIT, PROCURE_SPOT, PROCURE_ON_DEMAND };
extern const char *const procurement_names[]; /* "free" "wait" "spot" "on-demand" */
/* What a machine has shown of its pool's boots, once and for all (supply/boots.c): nothing yet; it
 * counted as a failure; or a job has begun there. */
enum boot_verdict { BOOT_OPEN, BOOT_FAILED, BOOT_WORKS };
extern const char *const boot_verdict_names[]; /* "open" "failed" "works" */
/* CRIU support of a machine, ascending: unknown, none, programs without GPUs, all programs. */
enum criu_ability { CRIU_UNKNOWN, CRIU_NO, CRIU_CPU, CRIU_GPU };
extern const char *const criu_ability_names[]; /* "unknown" "no" "cpu" "gpu" */
enum notice_type {
    NOTICE_TYPE_NONE,
    NOTICE_TYPE_REBALANCE,
    NOTICE_TYPE_MAINTENANCE,
    NOTICE_TYPE_RECLAIM
};
extern const char *const notice_type_names[];

/* What throttles a node, as reported by its agent: heat, a power limit, or its board for an unknown
 * reason. A throttled node gets no new work. */
enum node_throttle {
    NODE_THROTTLE_NONE,
    NODE_THROTTLE_HEAT,
    NODE_THROTTLE_POWER,
    NODE_THROTTLE_BOARD
};
extern const char *const node_throttle_names[]; /* "none" "heat" "power" "board" */

/* A held job is not started; its user cannot release an operator's hold. HOLD_STORE: its last
 * attempt ended as END_STORE, and the text gives the reason and the remedy. HOLD_IDLE_GPUS: its
 * GPUs were idle, and its pool parks such jobs (idle_gpus.c). Ascending: a stronger hold replaces a
 * weaker one. */
enum hold { HOLD_NONE, HOLD_STORE, HOLD_IDLE_GPUS, HOLD_USER, HOLD_OPERATOR };
extern const char *const hold_names[]; /* "none" "store" "idle-gpus" "user" "operator" */

/* What a pool does about a job whose GPUs are idle. */
enum idle_gpus_then {
    IDLE_GPUS_IGNORE,
    IDLE_GPUS_TELL, /* notify its owner */
    IDLE_GPUS_PARK  /* notify its owner, and after the grace save and hold it */
};
extern const char *const idle_gpus_then_names[]; /* "ignore" "tell" "park" */

struct ckpt_ref {
    int64_t attempt; /* 0 = none */
    int64_t sequence;
};

/* < 0: a is older than b; 0: the same; > 0: a is newer. None is older than any. */
static inline int ckpt_ref_compare(struct ckpt_ref a, struct ckpt_ref b)
{
    if (a.attempt != b.attempt)
        return a.attempt < b.attempt ? -1 : 1;
    return a.sequence < b.sequence ? -1 : a.sequence > b.sequence;
}

/* The job is held after this many successive attempts that could not use the store. */
#define JOB_STORE_MAX 3
/* The job is held after this many successive starts that ended as END_CAPACITY. */
#define JOB_NO_SPACE_MAX 5
/* The job fails after this many successive ends with code 85 without a new checkpoint. */
#define JOB_CHECKPOINTED_MAX 3

/* Events that a user can be notified of (notify_outbox.h). */
enum notify_event {
    NOTIFY_BEGIN, /* an attempt started */
    /* the job ended for any reason; as the kind of a row: it succeeded or was cancelled */
    NOTIFY_END,
    NOTIFY_FAIL, /* the job ended otherwise */
    NOTIFY_REQUEUE,
    NOTIFY_TIME_LIMIT, /* the job ended by its time limit */
    /* percentage of the time limit that has passed; only as a user's selection: */
    NOTIFY_TIME_LIMIT_50,
    NOTIFY_TIME_LIMIT_80,
    NOTIFY_TIME_LIMIT_90,
    NOTIFY_INVALID_DEPEND, /* the job ended because a dependency can never be satisfied */
    NOTIFY_BUDGET,         /* of a budget, not of a job: a threshold is spent */
    NOTIFY_BOOTS,          /* of a pool: its machines do not join, or join with full disks */
    NOTIFY_LATE,           /* of a cron entry: its run is not done by the time of day set for it */
    NOTIFY_IDLE_GPUS,      /* by policy of the pool, whatever the user selected */
    NOTIFY_NODE_DRAINED,   /* of a node: belay drained it by itself */
    NOTIFY_DIGEST,         /* of the cluster, or of a user: the morning digest */
    NOTIFY_SPEND,          /* of a user, team or pool: far more is spent than usual (anomalies.h) */
    NOTIFY_EVENTS
};
/* "begin" "end" "fail" "requeue" "time-limit" "time-limit-50" ... */
extern const char *const notify_event_names[];
#define NOTIFY_ARRAY_TASKS (1 << NOTIFY_EVENTS) /* each task too, not only the array */
#define NOTIFY_URLS_MAX 4

/* Form of a webhook's bodies (scheduler/notify/notify_chat.h). */
enum notify_format { NOTIFY_JSON, NOTIFY_SLACK, NOTIFY_TEAMS, NOTIFY_PAGERDUTY };
extern const char *const notify_format_names[]; /* "json" "slack" "teams" "pagerduty" */

/* Whose spending an anomaly is about. */
enum spend_of { SPEND_OF_NONE, SPEND_OF_USER, SPEND_OF_TEAM, SPEND_OF_POOL, SPEND_OFS };
extern const char *const spend_of_names[]; /* "none" "user" "team" "pool" */

/* Why an attempt is withheld from its agent (withheld.c). */
enum withheld {
    WITHHELD_NO,
    WITHHELD_AWAY,  /* the store, or the issuer of its credentials, is unavailable now */
    WITHHELD_DENIED /* the issuer refuses credentials: an operator must change its configuration */
};

/* Stable for scripts; NULL-terminated. With (a, b) where they carry numbers:
 *   of jobs:      submitted updated held released eligible placed started(restored progress or
 *                 PROGRESS_NONE, restore_ms) damaged(count, 0) restored(bytes, bytes already on
 *                 the node) saved(bytes, took_ms) save-failed restore-failed output-cut
 *                 no-credentials store-refused save(by a user) cancel requeue(by a user)
 *                 ended(exit code, ms of lost work) requeued requeue-dropped settled cleaned
 *                 clean-failed enter(by a user) pace time-limit(percent, 0) not-told drill
 *                 drill-passed drill-compared drill-failed drill-interrupted
 *   of nodes:     joined notice(deadline or that of WALL_NONE, 0) lost returned drain
 *                 auto-drain(by belay itself) undrain reservation reservation-over
 *                 throttled recovered disk-full disk-room fault gone
 *   and of jobs   move prefetch prefetched prefetch-failed park reclaim preempt
 *                 in-vain(current step, times in a row)
 *   of budgets:   budget(threshold in percent, micro-dollars spent)
 *   of instances: launch launched(ms since the intent, 0) launch-refused(avoided for ms, 0) ending
 *                 gone offer-refused(avoided for ms, 0): an alternative offer of the launch
 *                 boot-failed(times in a row, ms until the next launch or 0) boot-console
 *                 boots-again
 *   of spending:  spend-anomaly(micro-dollars spent, micro-dollars usual)
 *   of cron entries: late(number of the entry, scheduled time of the run)
 * "placed" and later rows of an attempt carry its job and node; a node's rows carry its instance.
 * The API hides the texts of a job's events from other users, except for kinds whose texts are only
 * belayd's own words (scheduler/api/json.c). */
extern const char *const history_kinds[];

/*
 *  created ---> WAITS --- satisfied --------------> MET
 *                 |  +--- can never be satisfied --> NEVER
 *                 |                                    |
 *                 +- no longer needed: removed, or ----+--> DROPPED (starts over if it is
 *                    the job ended otherwise                created again)
 */
enum depend_state { DEPEND_WAITS, DEPEND_MET, DEPEND_NEVER, DEPEND_DROPPED };
extern const struct sm depend_sm;

/* Dependency types of sbatch. AFTER: a job that ended before it started counts as started.
 * AFTERCORR: array on array; each task waits for success of the task with its index. SINGLETON:
 * AFTERANY on each earlier job of the same user and name. */
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

/*
 *  job ended ---> WAITING --- due ---> CLEANING --- cleaned ---> DONE
 *                    ^                    |
 *                    +------ repeat ------+
 *                            failed, or data remains that costs money and is measured again
 */
enum ckpt_gc_state { CKPT_GC_WAITING, CKPT_GC_CLEANING, CKPT_GC_DONE };
extern const struct sm ckpt_gc_sm;

/*
 *  requested -> STOPPING --> QUEUED --> RESUMED --> PASSED -- results differ ---------+
 *                  |            |           |                                         v
 *                  +------------+-----------+----------- save failed --------------> FAILED
 *                  +------------+-----------+----------- other event --------------> INTERRUPTED
 *
 *  QUEUED: the drilled attempt has ended. RESUMED: the next one has started.
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
#define DRILL_METHOD_VERSION 1 /* version of the drill procedure; certificates name it */
#define DRILL_TRIES_DEFAULT 3

/* Result of a cleaning. */
enum clean_end {
    CLEAN_DONE,
    CLEAN_FAILED,   /* possibly partial; tried again */
    CLEAN_OTHER_JOB /* the data is another job's and was not touched */
};

enum ckpt_gc_keep { CKPT_GC_KEEP_ALL, CKPT_GC_KEEP_LAST, CKPT_GC_KEEP_NONE };
extern const char *const ckpt_gc_keep_names[]; /* "all" "last" "none" */
#define CKPT_GC_CLOCK_CHECK_MS 3600000LL       /* interval between checks of the wall clock */

enum ledger_kind {
    LEDGER_USEFUL,
    LEDGER_LOST,
    LEDGER_BOOT,
    LEDGER_START, /* of a job's first attempt, which restores no checkpoint */
    LEDGER_RESTORE,
    LEDGER_SAVE,
    LEDGER_GANG_WAIT,
    LEDGER_IDLE,
    LEDGER_EGRESS,  /* traffic between nodes and a store elsewhere; has no time */
    LEDGER_STORAGE, /* storage cost; has no time */
    LEDGER_KINDS
};
/* "useful" "lost" "boot" "start" "restore" "save" "gang-wait" "idle" "egress" "storage" */
extern const char *const ledger_kind_names[];

/*
 *  created --> ACTIVE <--> PAUSED        both --- removed ---> REMOVED
 */
enum cron_state { CRON_ACTIVE, CRON_PAUSED, CRON_REMOVED };
extern const struct sm cron_sm;
/* What happens at a scheduled time while the entry's previous job still runs. */
enum cron_overlap { CRON_SKIP, CRON_QUEUE, CRON_REPLACE };
extern const char *const cron_overlap_names[]; /* "skip" "queue" "replace" */
/* What happens with scheduled times at which belayd was down or could not store. */
enum cron_catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };
extern const char *const cron_catch_up_names[]; /* "none" "last" "all" */

/* How a run has to end for the entries after it to run. */
enum cron_after_end { CRON_AFTER_WELL, CRON_AFTER_ANY };
extern const char *const cron_after_end_names[]; /* "well" "any" */

enum cron_outcome { CRON_STARTED, CRON_SKIPPED, CRON_MISSED, CRON_REFUSED };
extern const char *const cron_outcome_names[]; /* "started" "skipped" "missed" "refused" */

bool job_pools_allow(const char *pools, const char *pool); /* pools: format of struct job_spec */

#endif
