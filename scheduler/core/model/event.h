/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: the only way anything changes. Facts come from outside through the inbox; decisions come
 * from plan_next. Both are applied by core_apply, in the order in which they came.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_EVENT_H
#define BELAY_SCHEDULER_CORE_MODEL_EVENT_H

#include "job/attributes.h"
#include "scheduler/core/model/types.h"
#include <stddef.h>

enum event_type {
    /* facts */
    EV_SUBMIT,
    EV_CANCEL,
    EV_REQUEUE, /* a user's: stop the attempt (or nothing) and queue again */
    EV_SAVE,    /* a user's: the running attempt is asked for a checkpoint, and goes on */
    EV_ENTER,   /* a user's: a command is run inside the running attempt; history only */
    /* a user's: some of what the job was submitted with is to be something else */
    EV_UPDATE,
    /* a user's or an operator's: not started (again) until released; what runs goes on */
    EV_HOLD,
    EV_RELEASE,
    EV_JOIN,      /* an agent proved its token */
    EV_HEARTBEAT, /* memory only: never stored */
    EV_FACTS,     /* an agent found anew what its machine can do */
    /* likewise what holds it back, and what it draws; not stored: it is told again */
    EV_CONDITION,
    EV_NOTICE,
    EV_ATTEMPT_STARTED,
    EV_ATTEMPT_ENDED,
    EV_CHECKPOINT,
    EV_SAVE_FAILED,
    EV_OUTPUT_CUT,     /* no more of the attempt's output is kept; history only */
    EV_NO_CREDENTIALS, /* for its part of the store; told once for a row of failures */
    EV_STORE_REFUSED,  /* an attempt that has not begun tries to use the store in vain */
    /* belayd cannot give an attempt what it needs of the store, and its agent has no trace of it;
     * or can again (withheld.c) */
    EV_WITHHELD,
    EV_PROGRESS, /* memory only until something else stores the job */
    EV_USAGE,    /* likewise */
    /* how much the store has of a job, as its agent found when it had cleaned there */
    EV_KEPT,
    /* node: no new work; running attempts are saved and stopped, END_DRAINED */
    EV_DRAIN,
    EV_UNDRAIN,
    /* it will not come back, and its instance, if it has one, is ended; ERR_CONFLICT while it has
     * attempts */
    EV_NODE_DELETE,
    EV_POOL,   /* a pool of the configuration: new, changed, or (max_nodes 0) removed */
    EV_OFFER,  /* an offer of a pool; with rank OFFER_WITHDRAWN: no longer one */
    EV_LIMITS, /* of all elastic pools together; not stored, like the model's options */
    /* an on-demand price is also what the spot offers beside it are compared with */
    EV_PRICE,
    /* the provider's hint for a spot offer; memory only: it is told again with the next prices */
    EV_SCORE,
    /* the provider answered, or the sweep found it by its token; once RUNNING or ENDING it only
     * tells the provider id (an agent may join before the answer comes) */
    EV_LAUNCHED,
    EV_LAUNCH_REFUSED, /* definite: nothing was launched */
    /* one of the other offers of a launch gave nothing, whatever became of the launch */
    EV_OFFER_REFUSED,
    EV_BOOT_CONSOLE, /* what the console of a machine that never joined ended with */
    /* an operator's: a pool that waits since its machines did not join may launch one now */
    EV_POOL_RETRY,
    EV_INSTANCE_GONE, /* terminal state, or missing for long enough */
    EV_CLEANED,       /* the cleaning of what an ended job left is over, or has failed */
    /* a user's: what the drilled job made in the end, held against what an undisturbed one did */
    EV_DRILL_COMPARED,
    /* a user's, or a decision for a job that was submitted so: the attempt is stopped and has to
     * resume */
    EV_DRILL,
    EV_CRON_PUT, /* a user's: a new cron entry, or one that is changed */
    EV_CRON_SET, /* a user's: paused, resumed, removed */
    EV_CRON_RUN, /* a user's: its job is started now, beside the schedule */
    /* decisions */
    EV_ELIGIBLE, /* the job's time to begin has come */
    /* what the job depends on can no longer come true: it ends, END_DEPENDENCY */
    EV_UNMEETABLE,
    EV_PLACE,
    EV_LAUNCH,
    EV_END_INSTANCE,
    EV_NODE_LOST,
    /* an attempt is saved and stopped, to go on where it costs less: END_EVICTED */
    EV_MOVE,
    EV_CLEAN, /* what an ended job left in the store is cleaned by core_ckpt_gc_keep */
    /* a gang that is queued waits no longer for more nodes than it needs at least, nor are any kept
     * for it */
    EV_SETTLE,
    EV_REQUEUE_DUE,  /* the save before a requeue has not come in time */
    EV_WITHHELD_DUE, /* an attempt was withheld for as long as it may be: END_STORE_AWAY */
    EV_DRILL_DUE,    /* a drill has waited for as long as it may for what comes next */
    /* a job has waited long enough for another node than that which could not use its store; memory
     * only */
    EV_AVOIDED,
    EV_ORDER, /* the queue is put into the order that usage calls for now; memory only */
    /* nodes are kept for the first job of a shape, or there are none for it; memory only */
    EV_RESERVE,
    EV_CRON_DUE, /* a time of a cron entry has come, or what it waited for */
    /* the window of the job closes: it is saved and stopped, or leaves the queue */
    EV_PARK,
    /* a budget is looked at: a period begins, a part is told of, those that it parks are saved and
     * stopped; mostly memory only */
    EV_BUDGET,
    /* the job waits, and could not have ended by its deadline any more: it ends, END_DEADLINE */
    EV_EXPIRE,
    /* what the job may be given now, that it is done by its time for the least money */
    EV_PROCUREMENT,
    /* a little more is worked out of what those decisions are read from; memory only */
    EV_TABLE,
    /* jobs of a kind would exceed a limit: they leave the queue until less of it is used; memory
     * only */
    EV_THROTTLE,
    EV_UNTHROTTLE, /* more of those that were throttled may run now; memory only */
    /* attempts are saved and stopped, END_EVICTED, to make a place for a job whose team it is owed
     * to, or whose QOS preempts them */
    EV_PREEMPT,
    EV_DELIVERED, /* a fact: what became of a row of the outbox */
    /* a decision: a part of a job's time limit is over, and somebody wants to know */
    EV_WARN
};

extern const char *const event_type_names[];

/* One dependency of a job that is submitted. on: CORE_ID_NONE for SINGLETON. Jobs that have ended
 * are not in the model any more: who submits looks them up, and says how they ended. */
struct depend_ask {
    enum depend_kind kind;
    int64_t on, delay_ms;
    bool of_task; /* of the array `on` */
    int32_t task;
    bool has_ended; /* the job, or the task */
    enum end_kind end;
    struct wall started_at; /* WALL_NONE: it never did */
    /* AFTERCORR: what is stored of the array `on`; NULL: nothing. Its own, who asks frees it */
    struct array_ends *array;
};

/* Of an update: a set of enum job_field (job/attributes.h). */
#define UPDATE_BIT(field) (UINT64_C(1) << (field))

struct event {
    enum event_type type;
    struct stamp now;
    union {
        struct {
            const struct job_row *job; /* id, state and counters are set by apply */
            const struct job_texts *texts;
            const struct depend_ask *depends;
            size_t n_depends;
            const struct ranges *tasks; /* of an array; NULL: it is none */
            int32_t at_once;
            const struct time_zone *zone; /* whose clocks texts' finish_of_day goes by; NULL: UTC */
        } submit;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            /* of an array, to be cancelled: only these. NULL: all. Borrowed */
            const struct ranges *tasks;
            bool from_scratch; /* of a requeue: its checkpoints are not used any more */
            bool force;        /* likewise: it is stopped even if it cannot be saved */
        } cancel, requeue, save;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            uint64_t fields; /* UPDATE_BIT of each that changes; all of them do or none */
            /* to that; of retries those that it says. Nodes: nodes, nodes_min and script_on */
            const struct job_row *to;
            const char *constraints; /* to those parts of it (constraints.h); NULL: "" */
            const char *document;    /* a JSON merge patch of its document; NULL: none */
            /* in place of all that it depends on; with to's depends_any */
            const struct depend_ask *depends;
            size_t n_depends;
            int32_t at_once;
            /* of an array: those, which have begun. NULL: the job, an array as far as it has not
             * begun */
            const struct ranges *tasks;
        } update;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            bool by_operator;
            bool from_scratch; /* of a release: its checkpoints are not used any more */
        } hold, release;
        struct {
            int64_t job;
            int32_t rank;
            char by[CORE_NAME_MAX];
            char text[CORE_TEXT_MAX]; /* the command, for the history */
        } enter;
        struct {
            /* name, address, key_hash, version, total, gpu, criu, features, resources; pool for a
             * reserved node */
            const struct node_row *node;
            int64_t instance; /* CORE_ID_NONE: reserved */
        } join;
        struct {
            int64_t node;
            enum criu_ability criu;
            char criu_text[CORE_TEXT_MAX];
            struct gpu_kind gpu;
            char features[FEATURES_TEXT_MAX], resources[COUNTS_TEXT_MAX];
        } facts;
        struct {
            int64_t node;
        } heartbeat, drain, undrain, node_delete, lost;
        struct {
            int64_t node;
            enum throttle throttle;
            int64_t watts; /* 0: not known */
        } condition;
        struct {
            int64_t node;
            enum notice_type kind; /* NOTICE_TYPE_NONE: its agent knows of no reclaim (any more) */
            struct wall deadline;
        } notice;
        struct {
            int64_t job, attempt, node;
            struct ckpt_ref restored;
            int64_t restored_progress, restore_ms;
            int64_t behind_ms; /* as an attempt's row has it */
            /* an attempt before it had to do the same: the job has lost it once */
            bool behind_again;
            int64_t bytes, nearby_bytes; /* of what was restored; of it, what the node had */
            int32_t damaged;             /* newer checkpoints set aside */
        } started;
        struct {
            int64_t job, attempt, node;
            /* as the agent saw it: SUCCEEDED FAILED TIMEOUT RECLAIMED NODE_LOST CHECKPOINTED USER
             * DRAINED EVICTED */
            enum end_kind end;
            int32_t exit_code;
            char text[CORE_TEXT_MAX];
            int64_t cpu_ms, cpu_user_ms, memory_peak; /* as an attempt's row has them */
        } ended;
        struct {
            int64_t job, node;
            struct ckpt_ref ref;
            int64_t bytes, stored_bytes, took_ms, pause_ms, progress;
            struct wall saved_at;
            char cause[16];
        } checkpoint;
        struct {
            int64_t job, attempt, node;
            char text[CORE_TEXT_MAX];
        } save_failed, no_credentials;
        struct {
            int64_t job, attempt;
            int32_t rank;
            char text[CORE_TEXT_MAX]; /* why */
        } output_cut;
        struct {
            int64_t job, attempt, node;
            int32_t tries; /* so far */
            char text[CORE_TEXT_MAX];
        } store_refused;
        struct {
            int64_t job, attempt, node;
            enum withheld why;        /* WITHHELD_NO: it is not (any more) */
            char text[CORE_TEXT_MAX]; /* the same for the same cause */
        } withheld;
        struct {
            int64_t job, attempt, node;
        } withheld_due;
        struct {
            int64_t job, attempt, done, total;
            bool has_first;
            int64_t first; /* that its program told in this attempt */
        } progress;
        struct {
            int64_t job, attempt, node, cpu_ms, cpu_user_ms, memory_peak; /* as its row has them */
            int64_t cpu_milli, memory_bytes;
        } usage;
        struct {
            int64_t job, attempt, node, bytes;
        } kept;
        const struct pool_row *pool;
        /* pool, zone, type, market, rank, total, arch, gpu, prices */
        const struct offer_row *offer;
        struct {
            int64_t max_nodes, max_gpus, max_uusd_h; /* 0: no limit */
        } limits;
        struct {
            char region[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            enum market market;
            int64_t uusd_h;
            /* as the provider says; WALL_NONE or 0: it does not, it counts as from now on */
            struct wall since;
        } price;
        struct {
            char pool[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            int32_t score; /* as struct offer has it */
        } score;
        struct {
            int64_t instance;
            char provider_id[CORE_NAME_MAX];
            /* where it is, and what; "": as decided */
            char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            struct wall launched_at; /* as the provider says; WALL_NONE or 0: it does not */
        } launched;
        struct {
            int64_t instance;
            /* no capacity or quota: avoid the offer for a while; else a configuration fault */
            bool capacity;
            char text[CORE_TEXT_MAX];
        } refused;
        struct {
            int64_t instance; /* of the launch; its pool and market are the offer's */
            char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            bool capacity; /* as above */
            char text[CORE_TEXT_MAX];
        } offer_refused;
        struct {
            int64_t instance;
            char pool[CORE_NAME_MAX]; /* of that: it may have left the model */
            /* printable, lines end with "\n"; its end is kept. Borrowed */
            const char *text;
        } boot_console;
        struct {
            char pool[CORE_NAME_MAX];
        } pool_retry;
        struct {
            int64_t instance;
            bool reclaimed;
            /* as the provider says; WALL_NONE: not known, it counts as until now */
            struct wall ended_at;
            char text[CORE_TEXT_MAX];
            struct wall launched_at; /* as above: nobody may have heard of it before */
        } gone;
        struct {
            int64_t job, node;
            const int64_t *more; /* of a gang: the nodes of ranks 1 and up. Borrowed */
            size_t n_more;
        } place;
        struct {
            int64_t job, attempt;
            char text[CORE_TEXT_MAX];
        } move;
        struct {
            int64_t job;
            /* the last two: the first of its kind */
        } clean, drill_due, requeue_due, avoided, eligible, unmeetable, expire, throttle,
            unthrottle;
        struct {
            int64_t job;
            bool nothing_more; /* there is nothing more to be had now; else its time is over */
        } settle;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX]; /* "": the decision */
            bool without_notice;
        } drill;
        struct {
            const struct drill_row *drill; /* as it is stored */
            int64_t with;                  /* the undisturbed job */
            bool equal;
            char by[CORE_NAME_MAX];
            char text[CORE_TEXT_MAX]; /* how it was told, "" if equal */
        } compared;
        struct {
            /* id CORE_ID_NONE: new; name, user, schedule to catch_up_max, script_key */
            const struct cron_row *row;
            /* what its jobs are submitted with; NULL: as it was, of an entry that is there */
            const struct job_row *job;
            const struct job_texts *texts; /* with job */
            const char *job_json;          /* of the same, as it is stored */
        } cron_put;
        struct {
            int64_t cron;
            enum cron_state to;
        } cron_set;
        struct {
            int64_t cron;
            char by[CORE_NAME_MAX];
        } cron_run;
        struct {
            int64_t cron;
        } cron_due;
        struct {
            int64_t job;
        } park;
        struct {
            int32_t index; /* of a budget, as core_budget has it ... */
            int64_t job;   /* ... or whose own cap it is; else CORE_ID_NONE */
        } budget;
        struct {
            int64_t job;
            enum clean_end end;
            int64_t kept_bytes;       /* that have stayed; with CLEAN_DONE */
            char text[CORE_TEXT_MAX]; /* why not; else "" */
        } cleaned;
        struct {
            int64_t job;
            const int64_t *nodes; /* borrowed */
            size_t n_nodes;       /* 0: there are not enough, or launches will serve */
            int64_t until;        /* from when on it has room on all of them (reserve.c) */
        } reserve;
        struct {
            int64_t job;          /* the first of its kind in the queue */
            const int64_t *nodes; /* where it will run, all different; borrowed */
            size_t n_nodes;
            const int64_t *victims; /* jobs, all different; borrowed */
            size_t n_victims;       /* 0: enough are being stopped there already */
            /* since they are of classes that its own preempts; else since its team is owed it */
            bool by_qos;
        } preempt;
        struct {
            int64_t event; /* and this: which row */
            char target[CORE_NAME_MAX + 8];
            bool failed, for_good; /* for good: it is not tried again */
            int64_t again_ms;      /* failed: tried again after so long */
            char text[CORE_TEXT_MAX];
        } delivered;
        struct {
            int64_t job;
            enum procurement procurement;
            int64_t offer;            /* PROCURE_SPOT: only this one; CORE_ID_NONE: any */
            int64_t look_ms;          /* until the next look */
            char text[CORE_TEXT_MAX]; /* why, for the history */
        } procurement;
        struct {
            int64_t job;
        } warn;
        struct {
            int64_t offer;
        } launch;
        struct {
            int64_t instance;
            char text[CORE_TEXT_MAX];
        } end_instance;
    };
};

#endif
