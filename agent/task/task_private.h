/* SPDX-License-Identifier: Apache-2.0
 *
 * struct task by what it holds, each part with its own header: checkpoints (task_checkpointer.h),
 * output (task_output.h), the processes (task_supervision.h), what blocks (task_work.h). What is
 * left is who it is, what of it is on disk, how it gets ready and how it goes. task.c has its life,
 * task_start.c its start, task_notice.c notices and stops.
 *
 * The task owns its parts and all that they own. All is the loop's thread's but for what
 * task_work.h and struct task_taking say.
 */
#ifndef BELAY_AGENT_TASK_TASK_PRIVATE_H
#define BELAY_AGENT_TASK_TASK_PRIVATE_H

#include "agent/task/record.h"
#include "agent/task/task.h"
#include "agent/task/task_checkpointer.h"
#include "agent/task/task_output.h"
#include "agent/task/task_supervision.h"
#include "agent/task/task_work.h"

/* Getting ready: until it is admitted and its directory and checkpoint are there, it is tried again
 * for a time. */
struct task_preparation {
    struct timer retry;
    bool is_admitted; /* else, before it is prepared, it waits for that with `retry` */
    int tries;
    struct mono prepare_until;
    /* it has failed whatever was tried, before the program runs; MONO_NONE: it has not */
    struct mono store_since;
    struct mono store_until; /* of a store that is missing; MONO_NONE: it was not */
};

struct task {
    struct link in_agent;
    const struct task_room *room;
    int64_t job, attempt;
    /* the spec; not changed after the start, threads read it */
    struct wire_desired own;
    const struct wire_desired_attempt *spec; /* all empty when it is not known */
    int phase;                               /* enum wire_phase */
    char *dir;                               /* NULL for a task that is only reported as ended */
    char *state_path;
    struct task_state state;
    bool has_state;              /* state.json is there */
    bool is_damaged;             /* its records cannot be read */
    struct wire_secrets secrets; /* in memory and in the keyring only; version 0: not had (yet) */
    struct timer secrets_wait;
    /* of this job alone, with credentials from belayd; NULL: it had none */
    struct store_net *net;
    struct task_preparation prep;
    struct task_supervision supervision;
    struct task_output output;
    struct task_checkpointer ckpt;
    struct task_work work;
    struct timer leave; /* for what its removal waits for */
    bool leaving, removed, released;
};

static inline struct timers *task_timers(const struct task *t)
{
    return t->room->timers;
}

static inline int64_t task_wall_ms(const struct task *t)
{
    return clock_wall(task_timers(t)->clock).ms;
}

/* task_start.c calls these once; each fills the timers of its file */
void task_init(struct task *t);
void task_notice_init(struct task *t);
void task_saves_init(struct task *t);

/* task.c */
void task_log(const struct task *t, const char *what, const struct err *e);
void task_changed(struct task *t); /* belayd should know */
void task_remove(struct task *t);
void task_take_secrets(struct task *t, const struct wire_secrets *s);
void task_move(struct task *t, enum wire_phase to); /* harmless when it is there already */
void task_persist(struct task *t);
void task_stop(
    struct task *t, enum wire_end end, const char *text, int64_t delay_ms, int64_t grace_ms);
void task_finish(
    struct task *t); /* the program has ended: saves what is to be saved, then ends the attempt */
bool task_wants_final_save(const struct task *t);
/* As what to end on belayd's word (wire.h). */
enum wire_end task_end_of(enum wire_end reason);
void task_end(struct task *t, enum wire_end end, int64_t code, const char *text);
void task_tell_end(struct task *t); /* once its output is with belayd, or soon */
void task_shipped(void *ctx);       /* some of the output is there */

/* task_start.c */
int64_t task_store_wait_ms(const struct task *t); /* how long a store that fails is tried */

/* task_notice.c */
void task_put_notice(struct task *t); /* into its file, if there is one */

#endif
