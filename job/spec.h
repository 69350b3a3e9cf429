/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job asks for, as plain values that are copied whole: no pointers, no clock, no I/O. The
 * default of a member is zero unless its comment says otherwise. The job's state and the user who
 * submitted it are in struct job_row (scheduler/core/model/rows.h), which contains one of these.
 *
 * A member that users set has a row in job_attributes (attributes.h) with its offset, default and
 * range. JSON (spec_json.h) and updates iterate over that table.
 */
#ifndef BELAY_JOB_SPEC_H
#define BELAY_JOB_SPEC_H

#include "base/time.h"
#include "job/daily.h"
#include "job/window.h"
#include <stdbool.h>
#include <stdint.h>

#define JOB_NAME_MAX 64 /* names of jobs, pools, teams, with their NUL */
#define JOB_QOS_MAX 32
#define JOB_NODES_MAX 256

enum market_wish { WISH_ANY, WISH_SPOT, WISH_ON_DEMAND };
extern const char *const market_wish_names[]; /* "any" "spot" "on-demand" */
enum ckpt_method { CKPT_NONE, CKPT_SIGNAL, CKPT_COOP, CKPT_CRIU };
extern const char *const ckpt_method_names[]; /* "none" "signal" "coop" "criu" */
enum ckpt_after { AFTER_AUTO, AFTER_DELETE, AFTER_LAST, AFTER_ALL };
extern const char *const ckpt_after_names[]; /* "auto" "delete" "last" "all" */
/* What a gang with a range of nodes does after it has lost a node: it continues on the remaining
 * nodes, or waits some time for a replacement. */
/* What the owner wants while the job's GPUs are idle. */
enum idle_gpus_wish { IDLE_GPUS_BY_POOL, IDLE_GPUS_KEEP };
extern const char *const idle_gpus_wish_names[]; /* "pool" "keep" */

enum gang_loss { LOSS_SHRINK, LOSS_WAIT };
extern const char *const gang_loss_names[]; /* "shrink" "wait" */
/* Where the script of a job of several nodes starts: on each node, or on the first only. In the
 * latter case the script starts tasks on the other nodes itself (srun); belay starts no program
 * there, only the environment in which such tasks run. */
enum script_on { SCRIPT_ON_EACH, SCRIPT_ON_FIRST };
extern const char *const script_on_names[]; /* "each" "first" */

struct resources {
    int32_t cpus;
    int32_t gpus;
    int64_t memory_mib;
};

#define CKPT_EVERY_AUTO 0 /* Young/Daly from the measured save time and the observed reclaim rate */

/* Ends of attempts after which a job is queued again. The number of retries is limited for each
 * kind separately (scheduler/core/lifecycle/retry_counts.h). */
enum retry_kind {
    RETRY_FAILED,
    RETRY_TIMEOUT,
    RETRY_NODE_LOST,
    RETRY_RECLAIMED,
    RETRY_EVICTED,
    RETRY_DRAINED,
    RETRY_KINDS
};
/* "failed" "timeout" "node-lost" "reclaimed" "evicted" "drained" */
extern const char *const retry_kind_names[];

#define RETRIES_MAX 1000
#define RETRIES_UNLIMITED 1000000 /* no limit; no job reaches this number */
#define RETRIES_NEVER (-1)        /* only in a request: no retries */
#define RETRIES_DEFAULT (-2)      /* only in a request: the number in retries_default */

/* Indexed by retry_kind. In a request (of a submit or a configuration) 0 means not specified. In a
 * job_row: the number of retries, 0 .. RETRIES_UNLIMITED. */
struct retries {
    int32_t n[RETRY_KINDS];
};
/* The numbers if neither the job nor a configuration specifies any: no retries after a failure or
 * after the time limit, 100 after a lost node, unlimited after the other ends. */
extern const struct retries retries_default;

struct job_spec {
    struct resources need; /* on each of its nodes */
    /* Maximum number of nodes that an attempt runs on at the same time, 1 .. JOB_NODES_MAX. A job
     * with more than 1 is a gang. */
    int32_t nodes;
    int32_t nodes_min;        /* minimum, 1 .. nodes; 0 in a submit means the same as nodes */
    enum gang_loss on_loss;   /* used if nodes_min < nodes */
    enum script_on script_on; /* SCRIPT_ON_EACH if nodes is 1 */
    enum market_wish market;
    enum ckpt_method method;
    int64_t time_limit_ms;      /* 0: none */
    int32_t nice;               /* queued as if it had become eligible this many minutes later */
    bool keep_unmeetable;       /* a dependency that can never be met does not end the job */
    bool depends_any;           /* one met dependency is enough */
    int32_t ckpt_signal;        /* for CKPT_SIGNAL */
    int32_t ckpt_keep;          /* >= 1 */
    int64_t ckpt_every_ms;      /* CKPT_EVERY_AUTO or >= 1000 */
    int32_t ckpt_keep_every;    /* every n-th checkpoint of an attempt is kept as well; 0: none */
    enum ckpt_after ckpt_after; /* the checkpoints that are kept after the job has ended */
    /* remaining drills to start automatically; 0 after the first that is not interrupted */
    int32_t drill_tries;
    struct retries retries; /* in a submit a request, see above */
    /* events that the user wants mail about, as bits 1 << enum notify_event; and
     * NOTIFY_ARRAY_TASKS */
    int32_t mail;
    struct wall begin_at; /* not started before this time; WALL_NONE: no such limit */
    /* wall clock; the job is not started if it could not end by this time; 0: none */
    int64_t deadline_ms;
    /* wall clock; the job is to end by this time at the lowest cost (procurement.c); 0: none. In a
     * submit, an update or a cron entry a negative value is a duration: -finish_ms after the submit
     * or update. */
    int64_t finish_ms;
    /* For finish_ms: how long the job would run without interruption, as its user states it; 0: not
     * stated. */
    int64_t work_ms;
    /* limit of the total cost; the job is parked before it exceeds this; 0: none (budgets.h) */
    int64_t max_uusd;
    int64_t max_uusd_h; /* limit of the cost of all its nodes per hour; 0: none */
    /* number of the user's URLs that are notified of changes, 0 .. NOTIFY_URLS_MAX */
    int32_t urls;
    /* number of secrets that it gets (job/secret_ref.h), 0 .. SECRET_REFS_MAX */
    int32_t secrets;
    enum idle_gpus_wish idle_gpus;
    char name[JOB_NAME_MAX];
    char pool[JOB_NAME_MAX];      /* list of allowed pools (base/names.h); "": any pool */
    char team[JOB_NAME_MAX];      /* set at submit; the job is charged to its share */
    char qos[JOB_QOS_MAX];        /* "": none */
    char window[WINDOW_NAME_MAX]; /* the job runs only in this window; "": at any time */
    char ckpt_at[DAILY_TEXT_MAX]; /* also saved at these times of the day (job/daily.h) */
};

/* A job that specifies nothing: one CPU on one node, retries_default. */
extern const struct job_spec job_spec_default;

#endif
