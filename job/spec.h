/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job asks for, as plain values, copied whole. No pointers, no clock, no I/O. Where a member
 * says nothing else, zero is the default. What became of the job, and who submitted it, is in
 * struct job_row (scheduler/core/model/types.h), which has one of these.
 *
 * A member that users set is named by a row of job_attributes (attributes.h), which knows its
 * place, default and range: JSON, the database, updates and the wire walk that table.
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
/* What a gang whose number of nodes is a range does when it has lost one: it goes on with those
 * that are left, or waits for another for a while. */
enum gang_loss { LOSS_SHRINK, LOSS_WAIT };
extern const char *const gang_loss_names[]; /* "shrink" "wait" */
/* Where the script of a job of several nodes starts: on each of them, or on the first alone, which
 * starts tasks on the others itself (srun) while their ranks hold the place: no program, only what
 * such tasks run in. */
enum script_on { SCRIPT_ON_EACH, SCRIPT_ON_FIRST };
extern const char *const script_on_names[]; /* "each" "first" */

struct resources {
    int32_t cpus;
    int32_t gpus;
    int64_t memory_mib;
};

#define CKPT_EVERY_AUTO 0 /* Young/Daly from the measured save time and the observed reclaim rate */

/* Ends of attempts after which a job is queued again so many times and no more, each kind by a
 * budget of its own (scheduler/core/lifecycle/retries.h). */
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
#define RETRIES_UNLIMITED 1000000 /* as often as it takes: nothing is tried so often */
#define RETRIES_NEVER (-1)        /* these two in a wish only: not once; */
#define RETRIES_USUAL (-2)        /* as often as without a configuration */

/* By retry_kind. In a wish (at a submit, in a configuration) 0: nothing is said. In a row: how
 * often, 0 .. RETRIES_UNLIMITED. */
struct retries {
    int32_t n[RETRY_KINDS];
};
/* Without any word: programs that fail or run into their time limit are not tried again, what the
 * world did is. */
extern const struct retries retries_usual;

struct job_spec {
    struct resources need; /* of each of its nodes */
    /* that an attempt runs on, all at once, at most: 1 .. JOB_NODES_MAX; over 1 it is a gang */
    int32_t nodes;
    int32_t nodes_min;        /* and at least: 1 .. nodes. At a submit 0 is the same as nodes */
    enum gang_loss on_loss;   /* where nodes_min < nodes */
    enum script_on script_on; /* SCRIPT_ON_EACH where nodes is 1 */
    enum market_wish market;
    enum ckpt_method method;
    int64_t time_limit_ms;      /* 0: none */
    int32_t nice;               /* as if submitted so many minutes later */
    bool keep_unmeetable;       /* a dependency that can never come true does not end it */
    bool depends_any;           /* one of its dependencies is enough */
    int32_t ckpt_signal;        /* for CKPT_SIGNAL */
    int32_t ckpt_keep;          /* >= 1 */
    int64_t ckpt_every_ms;      /* CKPT_EVERY_AUTO or >= 1000 */
    int32_t ckpt_keep_every;    /* every so many-th of an attempt stays too; 0: none */
    enum ckpt_after ckpt_after; /* what stays once the job has ended */
    /* drilled of itself, at most so many times until one is not interrupted */
    int32_t drill_tries;
    /* how many times it is queued again after which end; at a submit a wish */
    struct retries retries;
    /* 1 << enum notify_event: of what its user wants mail; and NOTIFY_ARRAY_TASKS */
    int32_t mail;
    struct wall begin_at; /* not started before that; WALL_NONE: at any time */
    /* by the wall clock: not started when it could not have ended by then; 0: none */
    int64_t deadline_ms;
    /* by the wall clock: to be done by then, for the least money (procurement.c); 0: whenever. Of
     * what is asked for, at a submit, in a change and of a cron entry, < 0: so long after the
     * submit or change */
    int64_t finish_ms;
    /* there is to do until then, as was told: on one of its nodes, undisturbed; 0: nothing was
     * told */
    int64_t work_ms;
    /* it may cost so much in all, and is parked before it does; 0: no limit (budget.h) */
    int64_t max_uusd;
    int64_t max_uusd_h; /* it is given no places that cost more an hour together; 0: any */
    /* so many URLs of its user's are told of each change, 0 .. NOTIFY_URLS_MAX */
    int32_t urls;
    char name[JOB_NAME_MAX];
    /* it may run in any of those that are named (base/names.h); "": in any there is */
    char pool[JOB_NAME_MAX];
    char team[JOB_NAME_MAX];      /* set at submit: whose share it uses */
    char qos[JOB_QOS_MAX];        /* "": none */
    char window[WINDOW_NAME_MAX]; /* runs in it only; "": at any time */
    char ckpt_at[DAILY_TEXT_MAX]; /* also saved at these times of the day (job/daily.h) */
};

/* A job of which nothing is said: one CPU of one node, retries as usual. */
extern const struct job_spec job_spec_default;

#endif
