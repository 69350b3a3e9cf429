/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: the only way to change the model. Facts arrive from outside through the inbox; decisions
 * come from plan_next. core_apply applies both in order of arrival.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_EVENT_H
#define BELAY_SCHEDULER_CORE_MODEL_EVENT_H

#include "job/attributes.h"
#include "scheduler/core/model/rows.h"
#include "scheduler/core/placement/maintenance_row.h"
#include "scheduler/core/queue/calendar_row.h"
#include <stddef.h>

enum event_type {
    /* facts */
    EV_SUBMIT,
    EV_CANCEL,
    EV_REQUEUE, /* by a user: stop the attempt, if any, and queue the job again */
    EV_SAVE,    /* by a user: checkpoint the running attempt, which continues */
    EV_ENTER,   /* by a user: a command runs inside the running attempt; history only */
    /* by a user: change options of a job after its submit */
    EV_UPDATE,
    /* by a user or an operator: do not start the job until it is released; a running attempt
     * continues */
    EV_HOLD,
    EV_RELEASE,
    EV_JOIN,      /* an agent proved its token */
    EV_HEARTBEAT, /* in memory only */
    EV_FACTS,     /* an agent detected new capabilities of its machine */
    /* what throttles a node and its power draw; not stored, the agent reports it again */
    EV_CONDITION,
    /* all GPUs that an attempt has on a node are idle, or one is busy again (idle_gpus.c) */
    EV_GPUS,
    EV_DISK,  /* a node's disk is full, or has space again; not stored either */
    EV_FAULT, /* an agent found its node faulty: the node is drained */
    /* a node has fetched a checkpoint as EV_PREFETCH said, or failed to; in memory only */
    EV_PREFETCHED,
    EV_NOTICE,
    EV_ATTEMPT_STARTED,
    EV_ATTEMPT_ENDED,
    EV_CHECKPOINT,
    EV_SAVE_FAILED,
    EV_OUTPUT_CUT, /* output beyond the limit is discarded; history only */
    /* no credentials for the job's part of the store; once per series of failures */
    EV_NO_CREDENTIALS,
    EV_STORE_REFUSED, /* the store refused an attempt before it began */
    /* belayd cannot provide an attempt's store access, so it withholds the attempt from its agent;
     * or it can again (withheld.c) */
    EV_WITHHELD,
    EV_PROGRESS, /* in memory until another event stores the job */
    EV_USAGE,    /* in memory until another event stores the attempt */
    /* size of a job in the store, measured by its agent while it removed old checkpoints */
    EV_KEPT,
    /* node: no new work; running attempts are saved and stopped as END_DRAINED */
    EV_DRAIN,
    EV_UNDRAIN,
    /* removes a node for good and ends its instance, if any; ERR_CONFLICT while it has attempts */
    EV_NODE_DELETE,
    EV_POOL,     /* a pool of the configuration: new, changed, or removed (max_nodes 0) */
    EV_OFFER,    /* an offer of a pool; rank OFFER_WITHDRAWN removes it */
    EV_LIMITS,   /* limits over all elastic pools together; not stored, like the model's options */
    EV_SETTINGS, /* other options of the model; not stored either */
    /* the on-demand price is also the reference for the pool's spot offers */
    EV_PRICE,
    /* the provider's availability score of a spot offer; in memory only, repeated with the next
     * prices */
    EV_SCORE,
    /* The provider answered, or the sweep found the instance by its token. In RUNNING or ENDING it
     * sets only the provider id, since an agent may join before the answer arrives. */
    EV_LAUNCHED,
    EV_LAUNCH_REFUSED, /* definite: no instance was launched */
    /* one of the alternative offers of a launch was refused, independent of the launch's own
     * result */
    EV_OFFER_REFUSED,
    EV_BOOT_CONSOLE, /* the last console lines of a machine that never joined */
    /* by an operator: a pool with failed boots may launch one machine now */
    EV_POOL_RETRY,
    EV_INSTANCE_GONE, /* in a terminal state, or missing for long enough */
    EV_CLEANED,       /* cleaning of an ended job's checkpoints finished or failed */
    /* by a user: comparison of a drilled job's result with that of an undisturbed job */
    EV_DRILL_COMPARED,
    /* by a user, or a decision for a job submitted with a drill: stop the attempt so that it must
     * resume */
    EV_DRILL,
    EV_CRON_PUT,   /* by a user: creates or changes a cron entry */
    EV_CRON_SET,   /* by a user: pauses, resumes or removes a cron entry */
    EV_CRON_RUN,   /* by a user: starts the entry's job now, outside its schedule */
    EV_DIGEST_SET, /* by a user: subscribes to the morning digest, or ends that */
    EV_ANOMALY,    /* a fact: far more is spent on a day than usual */
    /* by an operator: makes or removes a reservation for maintenance (placement/maintenance.h) */
    EV_RESERVATION_ADD,
    EV_RESERVATION_REMOVE,
    EV_CALENDAR_SET, /* by an operator: makes a calendar, or gives it other days */
    EV_CALENDAR_REMOVE,
    /* decisions */
    EV_ELIGIBLE, /* the job's begin time has come */
    /* a dependency of the job can no longer be satisfied: the job ends as END_DEPENDENCY */
    EV_UNMEETABLE,
    EV_PLACE,
    EV_LAUNCH,
    EV_END_INSTANCE,
    EV_NODE_LOST,
    /* a node fetches the newest checkpoint of a job that will move there (supply/prefetch.h) */
    EV_PREFETCH,
    /* saves and stops an attempt so that it continues at a lower cost: END_EVICTED */
    EV_MOVE,
    EV_CLEAN, /* cleans an ended job's checkpoints as core_ckpt_gc_keep says */
    /* a pending gang stops waiting for more nodes than its minimum; none are kept for it any
     * longer */
    EV_SETTLE,
    EV_REQUEUE_DUE,  /* the save before a requeue missed its deadline */
    EV_WITHHELD_DUE, /* an attempt was withheld for the maximum time: END_STORE_AWAY */
    EV_DRILL_DUE,    /* a drill missed the deadline of its next step */
    /* a job stops avoiding the node that could not use its store; in memory only */
    EV_AVOIDED,
    EV_ORDER, /* sorts the queue by current usage; in memory only */
    /* reserves nodes for the first job of a shape, or finds none for it; in memory only */
    EV_RESERVE,
    /* a scheduled time of a cron entry has come, or the job that it waited for has ended */
    EV_CRON_DUE,
    EV_DIGEST, /* the morning digest is sent, or its schedule begins */
    /* the job's window closes: the job is saved and stopped, or leaves the queue */
    EV_PARK,
    /* examines a budget: a period begins, a threshold is notified, its jobs are parked; mostly in
     * memory only */
    EV_BUDGET,
    /* the base load of a pool changes, or will within the time of a boot; in memory only */
    EV_BASE_LOAD,
    /* a pending job can no longer end by its deadline: it ends as END_DEADLINE */
    EV_EXPIRE,
    /* which markets a deadline job may use now, at the least expected cost */
    EV_PROCUREMENT,
    /* computes a slice of the table that procurement decisions read; in memory only */
    EV_TABLE,
    /* jobs of a demand class would exceed a limit: they leave the queue until usage falls; in
     * memory only */
    EV_THROTTLE,
    EV_UNTHROTTLE, /* returns throttled jobs to the queue; in memory only */
    /* saves and stops attempts as END_EVICTED for a job that is within its team's quota or has a
     * preempting QOS */
    EV_PREEMPT,
    EV_DELIVERED, /* fact: the result of delivering a row of the outbox */
    /* decision: part of a job's time limit has passed and a notification of it is configured */
    EV_WARN,
    /* decision: the owner of a job with idle GPUs is notified, or the job is saved and held */
    EV_IDLE_GPUS,
    EV_RESERVATION_DUE /* decision: a reservation begins or ends */
};

extern const char *const event_type_names[];

/* One dependency of a submitted job. `on` is CORE_ID_NONE for SINGLETON. The model no longer has
 * jobs that have ended, so the submitter looks them up and passes how they ended. */
struct depend_ask {
    enum depend_kind kind;
    int64_t on, delay_ms;
    bool of_task; /* refers to one task of the array `on` */
    int32_t task;
    bool has_ended; /* the job, or the task */
    enum end_kind end;
    struct wall started_at; /* WALL_NONE: never started */
    /* AFTERCORR: the stored ends of the array `on`, or NULL for none; owned by the caller */
    struct array_ends *array;
};

/* Set of enum job_field (job/attributes.h) for updates. */
#define UPDATE_BIT(field) (UINT64_C(1) << (field))

struct event {
    enum event_type type;
    struct stamp now;
    union {
        struct {
            const struct job_row *job; /* apply sets id, state and counters */
            const struct job_texts *texts;
            const struct depend_ask *depends;
            size_t n_depends;
            const struct ranges *tasks; /* of an array; else NULL */
            int32_t at_once;
            const struct time_zone *zone; /* the zone of texts' finish_of_day; NULL is UTC */
        } submit;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            /* Cancel: only these tasks of an array; NULL for all. Borrowed. */
            const struct ranges *tasks;
            bool from_scratch; /* requeue: ignore the existing checkpoints */
            bool force;        /* requeue: stop the attempt even if the save fails */
        } cancel, requeue, save;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            uint64_t fields; /* UPDATE_BIT of each changed field; applied all or none */
            /* The new values. Of retries only those that are set. A change of nodes covers nodes,
             * nodes_min and script_on. */
            const struct job_row *to;
            /* new values of these constraints (constraints.h); NULL is "" */
            const char *constraints;
            const char *document; /* JSON merge patch of the job's document, or NULL */
            /* replaces all dependencies, with depends_any of `to` */
            const struct depend_ask *depends;
            size_t n_depends;
            int32_t at_once;
            /* Only these tasks of an array, which must have begun. NULL: the job, or the tasks of
             * an array that have not begun. */
            const struct ranges *tasks;
        } update;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX];
            bool by_operator;
            bool from_scratch; /* release: ignore the existing checkpoints */
        } hold, release;
        struct {
            int64_t job;
            int32_t rank;
            char by[CORE_NAME_MAX];
            char text[CORE_TEXT_MAX]; /* the command, for the history */
        } enter;
        struct {
            /* Reads name, address, key_hash, version, total, gpu, criu, features and resources, and
             * pool for a reserved node. */
            const struct node_row *node;
            int64_t instance; /* CORE_ID_NONE for a reserved node */
            int64_t start_ms; /* see struct instance_row; as its agent reports it */
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
        } heartbeat, undrain, node_delete, lost;
        struct {
            int64_t node;
            char text[NODE_REASON_MAX]; /* the operator's reason; "" = none */
        } drain;
        struct {
            int64_t node;
            enum node_throttle throttle;
            int64_t watts; /* 0 = unknown */
        } condition;
        struct {
            int64_t job, attempt, node;
            struct wall idle_since; /* WALL_NONE: one is busy */
        } gpus;
        struct {
            int64_t node;
            char full[CORE_TEXT_MAX]; /* the reason; "" = it has space */
        } disk;
        struct {
            int64_t node;
            char text[NODE_REASON_MAX]; /* other than that of the fault before; "" = none */
        } fault;
        struct {
            int64_t node;
            enum notice_type kind; /* NOTICE_TYPE_NONE: the agent reports no reclaim (any more) */
            struct wall deadline;
        } notice;
        struct {
            int64_t job, attempt, node;
            struct ckpt_ref restored;
            int64_t restored_progress, restore_ms;
            int64_t behind_ms; /* see struct attempt_row */
            /* An earlier attempt also redid this work, so the job has already been charged for it
             * as lost. */
            bool behind_already_counted;
            /* size of the restored content; bytes of it already on the node */
            int64_t bytes, nearby_bytes;
            int32_t damaged; /* number of newer checkpoints that were rejected as damaged */
        } started;
        struct {
            int64_t job, attempt, node;
            /* Reported by the agent: SUCCEEDED FAILED TIMEOUT RECLAIMED NODE_LOST CHECKPOINTED USER
             * DRAINED EVICTED. */
            enum end_kind end;
            int32_t exit_code;
            char text[CORE_TEXT_MAX];
            bool user_refused;                        /* see struct attempt */
            int64_t cpu_ms, cpu_user_ms, memory_peak; /* see struct attempt_row */
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
            bool is_restore; /* as is every one of an attempt that has not started */
        } save_failed;
        struct {
            int64_t job, attempt, node;
            char text[CORE_TEXT_MAX];
        } no_credentials;
        struct {
            int64_t job, attempt;
            int32_t rank;
            char text[CORE_TEXT_MAX]; /* the reason */
        } output_cut;
        struct {
            int64_t job, attempt, node;
            int32_t tries; /* number of failed tries so far */
            char text[CORE_TEXT_MAX];
        } store_refused;
        struct {
            int64_t job, attempt, node;
            enum withheld why;        /* WITHHELD_NO: not withheld (any more) */
            char text[CORE_TEXT_MAX]; /* identical for the same cause */
        } withheld;
        struct {
            int64_t job, attempt, node;
        } withheld_due;
        struct {
            int64_t job, attempt, done, total;
            bool has_first;
            int64_t first;    /* first progress reported in this attempt */
            int64_t first_ms; /* how long after its start; 0 = unknown */
        } progress;
        struct {
            /* see struct attempt_row */
            int64_t job, attempt, node, cpu_ms, cpu_user_ms, memory_peak;
            int64_t cpu_milli, memory_bytes;
        } usage;
        struct {
            int64_t job, attempt, node, bytes;
        } kept;
        const struct pool_row *pool;
        /* Reads pool, zone, type, market, rank, total, arch, gpu and prices. */
        const struct offer_row *offer;
        struct {
            int64_t max_nodes, max_gpus, max_uusd_h; /* 0 = unlimited */
        } limits;
        const struct model_settings *settings;
        struct {
            char region[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            enum market market;
            int64_t uusd_h;
            /* when the price took effect, by the provider; WALL_NONE or 0: unknown, from now on */
            struct wall since;
        } price;
        struct {
            char pool[CORE_NAME_MAX], zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            int32_t score; /* see struct offer */
        } score;
        struct {
            int64_t instance;
            char provider_id[CORE_NAME_MAX];
            /* where and which type it was launched; "" = as decided */
            char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            struct wall launched_at; /* by the provider; WALL_NONE or 0 = unknown */
            bool is_queued;          /* accepted, but it waits in a queue of the provider's */
        } launched;
        struct {
            int64_t instance;
            /* no capacity, quota or, just now, credentials: avoid the offer for a while; false: a
             * configuration fault */
            bool is_temporary;
            char text[CORE_TEXT_MAX];
        } refused;
        struct {
            int64_t instance; /* of the launch; gives pool and market of the refused offer */
            char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
            bool is_temporary; /* as in `refused` */
            char text[CORE_TEXT_MAX];
        } offer_refused;
        struct {
            int64_t instance;
            char pool[CORE_NAME_MAX]; /* of the instance, which may have left the model */
            /* Printable lines that end with "\n"; only the tail is stored. Borrowed. */
            const char *text;
        } boot_console;
        struct {
            char pool[CORE_NAME_MAX];
        } pool_retry;
        struct {
            int64_t instance;
            bool reclaimed;
            /* by the provider; WALL_NONE: unknown, the instance is charged until now */
            struct wall ended_at;
            char text[CORE_TEXT_MAX];
            /* by the provider, as in `launched`: a launch may first become known by its end */
            struct wall launched_at;
        } gone;
        struct {
            int64_t job, node;
            const int64_t *more; /* gang: the nodes of ranks 1 and up; borrowed */
            size_t n_more;
        } place;
        struct {
            int64_t job, attempt;
            char text[CORE_TEXT_MAX];
        } move;
        struct {
            int64_t job, node;
            struct ckpt_ref ref;      /* prefetch: only its attempt */
            char text[CORE_TEXT_MAX]; /* prefetched: the reason of a failure; else "" */
        } prefetch;
        struct {
            int64_t job;
            /* throttle, unthrottle: the first job of its demand class */
        } clean, drill_due, requeue_due, avoided, eligible, unmeetable, expire, throttle,
            unthrottle, idle_gpus;
        struct {
            int64_t job;
            /* no further nodes are available now; false: the waiting time has passed */
            bool nothing_more;
        } settle;
        struct {
            int64_t job;
            char by[CORE_NAME_MAX]; /* "" for a decision of belayd */
            bool without_notice;
        } drill;
        struct {
            const struct drill_row *drill; /* as stored */
            int64_t with;                  /* the undisturbed job */
            bool equal;
            char by[CORE_NAME_MAX];
            char text[CORE_TEXT_MAX]; /* description of the difference; "" if equal */
        } compared;
        struct {
            /* id CORE_ID_NONE creates an entry. Reads name, user, schedule up to catch_up_max, and
             * script_key. */
            const struct cron_row *row;
            /* template of the entry's jobs; NULL: an existing entry keeps its template */
            const struct job_row *job;
            const struct job_texts *texts; /* set together with job */
            const char *job_json;          /* job and texts as they are stored */
        } cron_put;
        struct {
            int64_t cron;
            enum cron_state to;
        } cron_set;
        struct {
            int64_t cron;
            char by[CORE_NAME_MAX];
            bool dated;     /* the run of the scheduled time `at`, which has passed; else now */
            struct wall at; /* with dated */
            int64_t behind; /* with dated: it begins when this job has ended; CORE_ID_NONE */
        } cron_run;
        struct {
            int64_t cron;
        } cron_due;
        const struct maintenance_row *reservation; /* apply sets id, state and created_at */
        const struct calendar_row *calendar; /* apply sets set_at; remove reads the name only */
        struct {
            int64_t id;
            char by[CORE_NAME_MAX]; /* remove only */
        } reservation_remove, reservation_due;
        struct {
            const struct digest_row *to; /* borrowed */
            bool mail, url;              /* which of the two is set; the other one stays */
        } digest_set;
        struct anomaly_row anomaly;
        struct {
            int64_t job;
        } park;
        struct {
            int32_t index; /* of a budget, see core_budget */
            int64_t job;   /* the job of a job's own cap; else CORE_ID_NONE */
        } budget;
        struct {
            int32_t pool; /* its index */
        } base_load;
        struct {
            int64_t job;
            enum clean_end end;
            int64_t kept_bytes;       /* CLEAN_DONE: bytes that remain in the store */
            char text[CORE_TEXT_MAX]; /* the reason of a failure; else "" */
        } cleaned;
        struct {
            int64_t job;
            const int64_t *nodes; /* borrowed */
            size_t n_nodes;       /* 0: too few exist, or launches will provide them */
            int64_t until;        /* estimated time at which all nodes have capacity (reserve.c) */
        } reserve;
        struct {
            int64_t job;          /* first in the queue of its demand class */
            const int64_t *nodes; /* where the job will run; distinct, borrowed */
            size_t n_nodes;
            const int64_t *victims; /* jobs; distinct, borrowed */
            size_t n_victims;       /* 0: enough attempts on these nodes are stopping already */
            /* The victims have a QOS that the job's QOS preempts; false: the job is within its
             * team's quota. */
            bool by_qos;
        } preempt;
        struct {
            int64_t event; /* event and target identify the row */
            char target[CORE_NAME_MAX + 8];
            bool failed, is_permanent; /* is_permanent: no further tries */
            int64_t retry_ms;          /* delay of the next try after a failure */
            char text[CORE_TEXT_MAX];
        } delivered;
        struct {
            int64_t job;
            enum procurement procurement;
            int64_t offer;            /* PROCURE_SPOT: only this offer; CORE_ID_NONE for any */
            int64_t look_ms;          /* until the next examination */
            char text[CORE_TEXT_MAX]; /* the reason, for the history */
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

/* Of several decisions by time the first: *best and *ret_event become due and ev, if best is later
 * or MONO_NONE. */
static inline void event_if_sooner(
    struct mono due, const struct event *ev, struct mono *best, struct event *ret_event)
{
    if (mono_is_set(*best) && best->ms <= due.ms)
        return;
    *best = due;
    *ret_event = *ev;
}

#endif
