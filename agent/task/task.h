/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt of a job on this node, from belayd's wish to being forgotten.
 */
#ifndef BELAY_AGENT_TASK_TASK_H
#define BELAY_AGENT_TASK_TASK_H

#include "agent/task/crew.h"
#include "agent/criu/criu.h"
#include "agent/supervisor/supervisor_pool.h"
#include "agent/task/order.h"
#include "agent/peer.h"
#include "agent/gpu/probe.h"
#include "agent/supervisor/spares.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/sm.h"
#include "base/timers.h"
#include "cloud/notice.h"
#include <uv.h>

/*
 *   STARTING --> RESTORING --> RUNNING <--> SAVING
 *      |  |          |          |  |         |  |
 *      |  +----------|----------+  |         |  |      (method none: nothing to restore)
 *      |             |             v         v  |
 *      |             |            ENDING <---+  |      told to stop
 *      |             |             |            |
 *      +-------------+------+------+------------+
 *                           v
 *                         ENDED
 */
extern const struct sm task_sm; /* states are enum wire_phase */

struct task;
struct task_state; /* record.h */

/* What tasks share; filled by the agent. */
struct task_room {
    uv_loop_t *loop;
    struct timers *timers;
    struct watches *watches;
    struct prng *prng;
    struct peer *peer;
    struct supervisor_pool *supervisors;
    struct store_net *net; /* for stores over a network */
    const struct criu *criu;
    const char *system_users; /* user_admit() */
    /* It may begin beside what else is here. Into its state: the GPUs of the node that it gets, and
     * whose make these are. ERR_UNAVAILABLE: too few are free (yet), or somebody is to have the
     * node for himself and is not alone (yet). */
    int (*admit)(void *ctx, const struct task *t, struct task_state *s, struct err *e);
    const char *dir;                         /* where tasks' directories are */
    struct spares *spares;                   /* there */
    struct crew *preparers, *removers;       /* of directories of tasks without checkpoints */
    const char *kept_dir;                    /* kept.h */
    const char *workdirs_dir;                /* workdir.h */
    const struct notice *notice;             /* kind NOTICE_NONE: none */
    void (*changed)(void *ctx);              /* belayd should know at once */
    void (*changed_later)(void *ctx);        /* soon */
    void (*gone)(void *ctx, struct task *t); /* forgotten; freed right after */
    /* nothing of one runs any more: others may have its place */
    void (*ended)(void *ctx);
    /* a save waits for its turn (task_turn), or one has ended */
    void (*order)(void *ctx);
    void *ctx;
};

/* Starts a new attempt. want other than WIRE_RUN, no script, or a reclaim pending: one that has
 * ended already is made, for belayd to know. */
struct task *task_create(const struct task_room *room, const struct wire_desired_attempt *d);

/* Takes over what an earlier agent left in the directory room->dir/name. NULL: nothing of use
 * (cleared away).
 */
struct task *task_adopt(const struct task_room *room, const char *name);

int64_t task_job(const struct task *t);
int64_t task_attempt(const struct task *t);
bool task_has_ended(const struct task *t);
bool task_is_here(const struct task *t); /* it was admitted, and something of it may run */
const struct wire_desired_attempt *task_spec(const struct task *t); /* what it is to be; borrowed */
/* Those that it has, until nothing of it runs (gpus.h); "" = none. */
const char *task_gpus(const struct task *t);
/* another one has ended: if it waits to be admitted, it looks again */
void task_look_again(struct task *t);
bool task_is_prepared(const struct task *t); /* what it needs of earlier attempts it has */
bool task_is_leaving(const struct task *t);  /* not to be told any more */
struct link *task_link(struct task *t);      /* for the agent's list */
struct task *task_of_link(struct link *n);

/* Fills s with borrowed texts, until the task's next change. */
void task_status(struct task *t, struct wire_attempt_status *s);

/* The output that has to stand beside its end, in text of the caller's. False: there is none, or
 * the end is not told yet. */
bool task_tail(struct task *t, struct wire_tail *ret);
/* What its processes use is read anew, if that was some seconds ago: before it is told. */
void task_read_usage(struct task *t);

/* Where what its processes do can be looked at (probe.h). False: none of them run. */
bool task_probe(const struct task *t, struct probe_of *ret_of);

/* What belayd wants of it now. */
void task_desired(struct task *t, const struct wire_desired_attempt *d);

/* For a command of a user's in it, as supervisor_client_shell has it. */
int task_shell(struct task *t, int fd);

/* belayd does not want it any more: killed if need be, cleared away; room->gone follows. */
void task_forget(struct task *t);

/* A notice came, or belayd was not heard of for too long. */
void task_notice(struct task *t, const struct notice *n);
/* The reclaim that it was told of comes sooner. */
void task_notice_sooner(struct task *t, const struct notice *n);
void task_save_and_stop(struct task *t, enum wire_end end, const char *text, int64_t stop_by);

/* At a reclaim saves are stored in an order (order.h). False: t has none that waits or is under
 * way. */
bool task_turn(const struct task *t, struct order_save *ret, int64_t *ret_deadline_ms);
void task_take_turn(struct task *t); /* of one that waits: it is stored now */

/* Lets go without ending it (the agent ends). To be freed with task_free when task_is_idle. */
void task_release(struct task *t);
bool task_is_idle(const struct task *t);
void task_free(struct task *t);

#endif
