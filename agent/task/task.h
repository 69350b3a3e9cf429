/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt of a job on this node, from belayd's order to start it until belayd drops it.
 */
#ifndef BELAY_AGENT_TASK_TASK_H
#define BELAY_AGENT_TASK_TASK_H

#include "agent/task/crew.h"
#include "agent/criu/criu.h"
#include "agent/supervisor/supervisor_pool.h"
#include "agent/task/save_order.h"
#include "agent/task/store_threads.h"
#include "agent/peer.h"
#include "agent/gpu/probe.h"
#include "agent/supervisor/spares.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/runner.h"
#include "base/sm.h"
#include "base/timers.h"
#include "cloud/notice.h"
#include <uv.h>

/*
 *   STARTING --> RESTORING --> RUNNING <--> SAVING
 *      |  |          |          |  |         |  |
 *      |  +----------|----------+  |         |  |      (method none: nothing to restore)
 *      |             |             v         v  |
 *      |             |            ENDING <---+  |      a stop was requested
 *      |             |             |            |
 *      +-------------+------+------+------------+
 *                           v
 *                         ENDED
 */
extern const struct sm task_sm; /* states are enum wire_phase */

struct task;
struct task_state; /* record.h */

/* What tasks share; set by the agent. */
struct task_common {
    uv_loop_t *loop;
    struct timers *timers;
    struct watches *watches;
    struct prng *prng;
    struct peer *peer;
    struct supervisor_pool *supervisors;
    struct store_net *net; /* for stores over a network */
    const struct criu *criu;
    const char *system_users; /* user_admit() */
    /* Admits the task next to the others on this node. Fills in its state the GPUs that it gets and
     * their vendor. ERR_UNAVAILABLE: too few GPUs are free (yet), or a task needs the node
     * exclusively and is not alone (yet). */
    int (*admit)(void *ctx, const struct task *t, struct task_state *s, struct err *e);
    const char *dir;                   /* parent of the tasks' directories */
    struct spares *spares;             /* of task directories in dir */
    struct crew *preparers, *removers; /* of directories of tasks without checkpoints */
    struct store_threads *store_threads;
    const char *kept_dir;                    /* kept.h */
    const char *workdirs_dir;                /* workdir.h */
    const struct notice *notice;             /* kind NOTICE_NONE = none */
    void (*changed)(void *ctx);              /* report to belayd at once */
    void (*changed_later)(void *ctx);        /* report to belayd soon */
    void (*gone)(void *ctx, struct task *t); /* the task is removed; freed right after */
    /* no process of a task is left: others may take what it used */
    void (*ended)(void *ctx);
    /* the node's disk had no space for a start, or for its records at all (disk_refused) */
    void (*disk_refused)(void *ctx, bool of_records, const char *why);
    /* the node is faulty (node_fault.h) */
    void (*node_faulty)(void *ctx, const char *why);
    /* task_hooks.h: absolute paths, NULL = none */
    struct runner *runner;
    const char *prolog, *epilog;
    int64_t hook_timeout_ms;
    /* a save started to wait for its turn (task_turn), or has ended */
    void (*order)(void *ctx);
    void *ctx;
};

/* Starts a new attempt. If its `want` is not WIRE_RUN, it has no script, or a reclaim is pending,
 * the task is created as already ended, so that this is reported to belayd. */
struct task *task_create(const struct task_common *common, const struct wire_desired_attempt *d);

/* Takes over what an earlier agent left in the directory common->dir/name. NULL if there was
 * nothing of use (removed). */
struct task *task_adopt(const struct task_common *common, const char *name);

int64_t task_job(const struct task *t);
int64_t task_attempt(const struct task *t);
bool task_has_ended(const struct task *t);
bool task_is_here(const struct task *t); /* it was admitted, and processes of it may run */
/* what belayd asked for; borrowed */
const struct wire_desired_attempt *task_spec(const struct task *t);
/* The GPUs that it has, until no process of it runs (gpus.h); "" = none. */
const char *task_gpus(const struct task *t);
/* call when another task has ended: retries admission if t waits for it */
void task_retry_store(struct task *t);
bool task_is_prepared(const struct task *t); /* it has all it needs from earlier attempts */
bool task_is_leaving(const struct task *t);  /* no longer reported */
struct link *task_link(struct task *t);      /* for the agent's list */
struct task *task_of_link(struct link *n);

/* Fills s; its texts are borrowed until the task's next change. */
void task_status(struct task *t, struct wire_attempt_status *s);

/* The rest of the output, which is reported together with the end; the caller frees its text. False
 * if there is none, or the end is not reported yet. */
bool task_tail(struct task *t, struct wire_tail *ret);
/* Reads what its processes use again if the last reading is some seconds old. Call before
 * reporting. */
void task_read_usage(struct task *t);

/* Where the activity of its processes can be read (probe.h). False if none runs. */
bool task_probe(const struct task *t, struct probe_of *ret_of);

/* Applies belayd's desired state. */
void task_desired(struct task *t, const struct wire_desired_attempt *d);

/* Starts a user's command in it; as supervisor_client_shell. */
int task_shell(struct task *t, int fd);

/* belayd has dropped it: kills it if necessary and removes it; common->gone follows. */
void task_forget(struct task *t);

/* A notice came, or belayd was silent for too long. */
void task_notice(struct task *t, const struct notice *n);
/* A notice of a reclaim came that leaves time to work on: a running task saves at once, so that
 * this much is durable, and continues. task_notice follows. */
void task_notice_early(struct task *t, const struct notice *n);
/* How long a save takes, by the last one; 0 if the task has none to make; -1 = unknown, or it is
 * saved together with other nodes. */
int64_t task_save_estimate_ms(const struct task *t);
/* The deadline of a reclaim already passed to task_notice has moved forward. */
void task_notice_sooner(struct task *t, const struct notice *n);
void task_save_and_stop(struct task *t, enum wire_end end, const char *text, int64_t stop_by);

/* At a reclaim saves are stored in an order (save_order.h). False if t has no save waiting or under
 * way. */
bool task_turn(const struct task *t, struct save_order_entry *ret, int64_t *ret_deadline_ms);
void task_take_turn(struct task *t); /* starts storing the save that waits */

/* Detaches from a task that keeps running (the agent ends). Free it with task_free when
 * task_is_idle. */
void task_release(struct task *t);
bool task_is_idle(const struct task *t);
/* All that keeps it from being idle is a thread that uses its store, or waits for its turn. */
bool task_is_on_store(const struct task *t);
void task_free(struct task *t);

#endif
