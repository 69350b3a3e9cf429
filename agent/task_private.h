/* SPDX-License-Identifier: Apache-2.0
 *
 * struct task, for task.c (its life), task_save.c (its checkpoints) and task_work.c (what runs on threads).
 */
#ifndef BELAY_AGENT_TASK_PRIVATE_H
#define BELAY_AGENT_TASK_PRIVATE_H

#include "agent/control.h"
#include "agent/keeper.h"
#include "agent/record.h"
#include "agent/ship.h"
#include "agent/task.h"
#include "agent/watch.h"
#include "ckpt/ckpt.h"

/* ---- work on a thread: one at a time a task ---- */

enum work_kind { WORK_NONE, WORK_PREPARE, WORK_SAVE, WORK_CLEAN, WORK_FIND, WORK_REMOVE };

struct task_work {
    enum work_kind kind;
    atomic_int cancel;
    bool waits;         /* for its turn; else it is with the thread, or */
    bool lacks;         /* waits for secrets */
    int64_t started_ms; /* monotonic */
    void (*done)(struct task *t);
    /* in */
    int64_t deadline_ms; /* of a save, monotonic; 0: none */
    char store[1024], cluster[64];
    int64_t sequence, progress;  /* -1 unknown */
    bool keeps;                  /* of a removal: what is in the checkpoint directory may be of use */
    struct wire_secrets secrets; /* wiped when it is done */
    bool needs_secrets;
    /* out */
    int rc;
    struct err e;
    bool fenced; /* a later attempt owns the job */
    struct ckpt_restored restored;
    struct ckpt_stats stats;
    struct wire_checkpoint found; /* sequence 0: nothing */
};

/* Starts work; done runs on the loop. */
void task_work_start(struct task *t, enum work_kind kind, void (*done)(struct task *t));
void task_work_cancel(struct task *t); /* of what is under way or waits; done still runs */
void task_work_init(struct task *t);
void task_work_secrets(struct task *t); /* there are some: goes on if it waits for them */
static inline bool task_work_is_busy(const struct task_work *w)
{
    return w->kind != WORK_NONE;
}

/* ---- asking the program for a checkpoint ---- */

enum save_cause { SAVE_PERIODIC, SAVE_PROGRAM, SAVE_NOTICE, SAVE_REBALANCE, SAVE_EVICT, SAVE_EXIT };

struct task_ask {
    bool on;
    bool stop;  /* the task ends when it is served */
    int serial; /* grows with every ask: a save that began before does not serve it */
    enum save_cause cause;
    char end[16]; /* with stop: how the attempt then ends, and the words */
    char text[256];
};

struct task_save {
    int64_t commit; /* being served; 0: .done, or the exit */
    int ask_serial; /* when it began */
    enum save_cause cause;
    bool is_final; /* of a program that has exited with 85 */
};

struct task {
    struct link in_agent;
    const struct task_room *room;
    int64_t job, attempt;
    struct wire_desired own;                 /* the spec; not changed after the start, threads read it */
    const struct wire_desired_attempt *spec; /* all empty when it is not known */
    char *dir;                               /* NULL: there is none, it is only told as ended */
    char *checkpoint_dir, *output_path, *state_path;
    int phase; /* enum wire_phase */
    struct task_state state;
    struct wire_secrets secrets; /* in memory only; version 0: not had (yet) */
    struct keeper keeper;
    struct ship ship;
    struct watch *control_watch, *checkpoint_watch;
    int control_fd; /* -1: not open */
    struct task_work work;
    int64_t save_took_ms;   /* the last that was stored; -1: none by this agent */
    int64_t every_ms;       /* between periodic saves, as belayd last said; 0: it has not, the spec's */
    bool save_failed;       /* the last one */
    struct ckpt_seen *seen; /* by this agent's saves of it; NULL: none yet; the thread's while it works */
    struct task_ask ask;
    struct task_save save;
    struct timer periodic;
    struct timer again;    /* nobody handled the signal yet; a save failed */
    struct timer deadline; /* for the program's answer to a stop */
    struct timer retry;    /* of preparing */
    struct timer secrets_wait;
    struct timer leave;  /* for what its removal waits for */
    struct timer tell;   /* the end, though its output is not with belayd */
    struct mono hard_at; /* with a reclaim: when all must be over; MONO_NONE */
    struct mono prepare_until;
    int tries;
    int final_tries;
    bool is_up;      /* the supervisor takes commands */
    bool exited;     /* exit is known */
    bool end_told;   /* or to be told now */
    bool stop_saved; /* the save before the stop was served */
    bool killing, leaving, removed, released;
    struct task_exit exit;
};

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
void task_stop(struct task *t, const char *end, const char *text, int64_t delay_ms, int64_t grace_ms);
void task_finish(
    struct task *t); /* the program has ended: saves what is to be saved, then ends the attempt */
void task_end(struct task *t, const char *end, int64_t code, const char *text);
void task_tell_end(struct task *t); /* once its output is with belayd, or soon */
void task_shipped(void *ctx);       /* some of the output is there */

/* task_notice.c */
void task_put_notice(struct task *t); /* into its file, if there is one */

/* task_save.c */
bool task_saves(const struct task *t); /* takes part in checkpoints */
/* end NULL: the task goes on after it. */
void task_ask_save(struct task *t, enum save_cause cause, const char *end, const char *text);
void task_saves_begin(struct task *t); /* the program runs: watch its files, save periodically */
void task_saves_end(struct task *t);
void task_set_every(struct task *t, int64_t ms); /* 0: as it is */
void task_pump_saves(struct task *t);
void task_signalled(struct task *t, int count);
bool task_save_final(struct task *t); /* true: a save was started or is to be tried again */

#endif
