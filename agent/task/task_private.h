/* SPDX-License-Identifier: Apache-2.0
 *
 * struct task. Its parts have their own headers: checkpoints (task_checkpointer.h), output
 * (task_output.h), processes (task_supervision.h) and blocking work (task_work.h). The rest is
 * here: its identity, its records on disk, its preparation and its end. task.c has its life cycle,
 * task_start.c its start, task_notice.c notices and stops.
 *
 * The task owns its parts and all that they own. Only the loop's thread uses it, except as
 * task_work.h and struct task_taking say.
 */
#ifndef BELAY_AGENT_TASK_TASK_PRIVATE_H
#define BELAY_AGENT_TASK_TASK_PRIVATE_H

#include "agent/task/record.h"
#include "agent/task/task.h"
#include "agent/task/task_checkpointer.h"
#include "agent/task/task_hooks.h"
#include "agent/task/task_output.h"
#include "agent/task/task_supervision.h"
#include "agent/task/task_work.h"

/* Preparation: retried for a limited time until the task is admitted and its directory and
 * checkpoint are in place. */
struct task_preparation {
    struct timer retry;
    bool is_admitted; /* if false, the task waits for admission with `retry` */
    int tries;
    struct mono prepare_until;
    /* since then every attempt to reach the store has failed, before the program runs; MONO_NONE =
     * it has not */
    struct mono store_since;
    /* until when a missing store is waited for; MONO_NONE = it was not missing */
    struct mono store_until;
    /* checks whether the store answers the thread that uses it (task_store_hang.c) */
    struct timer hang_check;
    int64_t alive; /* signs of life that were counted at alive_at */
    struct mono alive_at;
    bool is_hang_reported;
};

struct task {
    struct link in_agent;
    const struct task_common *common;
    int64_t job, attempt;
    /* the spec; not changed after the start, because threads read it */
    struct wire_desired own;
    const struct wire_desired_attempt *spec; /* all empty when not known */
    int phase;                               /* enum wire_phase */
    char *dir;                               /* NULL for a task that is only reported as ended */
    char *state_path;
    struct task_state state;
    bool has_state;  /* state.json exists */
    bool is_damaged; /* its records cannot be read */
    /* in memory and in the keyring only; version 0 = not received (yet) */
    struct wire_secrets secrets;
    struct timer secrets_wait;
    /* for this job only, with credentials from belayd; NULL if it had none */
    struct store_net *net;
    struct task_preparation prep;
    struct task_hooks hooks;
    struct task_supervision supervision;
    struct task_output output;
    struct task_checkpointer ckpt;
    struct task_work work;
    struct timer leave; /* retries what its removal waits for */
    bool leaving, removed, released;
};

static inline struct timers *task_timers(const struct task *t)
{
    return t->common->timers;
}

static inline int64_t task_mono_ms(const struct task *t)
{
    return clock_mono(task_timers(t)->clock).ms;
}

static inline int64_t task_wall_ms(const struct task *t)
{
    return clock_wall(task_timers(t)->clock).ms;
}

/* task_start.c calls these once; each initialises the timers of its file */
void task_init(struct task *t);
void task_notice_init(struct task *t);
void task_saves_init(struct task *t);
void task_store_hang_init(struct task *t);

/* task.c */
void task_log(const struct task *t, const char *what, const struct err *e);
void task_changed(struct task *t); /* reports the change to belayd */
void task_remove(struct task *t);
void task_take_secrets(struct task *t, const struct wire_secrets *s);
void task_drop_job_secrets(struct task *t);
void task_move(struct task *t, enum wire_phase to); /* no-op when already in that phase */
void task_persist(struct task *t);
void task_stop(
    struct task *t, enum wire_end end, const char *text, int64_t delay_ms, int64_t grace_ms);
void task_finish(
    /* call when the program has ended: makes a last save if needed, then ends the attempt */
    struct task *t);
bool task_wants_final_save(const struct task *t);
/* The end for a reason given by belayd (wire.h). */
enum wire_end task_end_of(enum wire_end reason);
/* Ends the attempt, after the epilog of a program that has run. */
void task_end(struct task *t, enum wire_end end, int64_t code, const char *text);
void task_end_now(struct task *t, enum wire_end end, int64_t code, const char *text);
void task_report_end(struct task *t); /* reports the end once belayd has the output, or soon */
void task_shipped(void *ctx);         /* belayd has received some output */

/* Ends the attempt of a program that has ended, although a thread still stores its state. */
void task_end_unstored(struct task *t, const struct err *why);

/* task_store_hang.c */
void task_watch_store(struct task *t); /* until the work that the thread has begun is done */

/* task_start.c */
int64_t task_store_wait_ms(const struct task *t); /* how long a failing store is retried */
/* The search for the previous agent's save takes long: it counts as lost, and the program's next
 * commits are served. No-op without such a search. */
void task_settle_lost(struct task *t);

/* task_notice.c */
void task_write_notice(struct task *t); /* writes the notice file, if there is a notice */

#endif
