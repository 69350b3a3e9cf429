/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's checkpoints: what was asked of the program, what it has committed, the save that is
 * stored and the one that waits for its turn (task_ask.c, task_save.c, task_accept.c).
 *
 * Invariants.
 *  1. At most one save is stored at a time (`save`, while work.kind is WORK_SAVE or WORK_DUMP), one
 *     snapshot is taken (`taking`) and one is queued (`queued`), which is newer than `save`.
 *  2. Nothing of the program's commits is remembered: they are found by looking, so an agent that
 *     comes back finds the same.
 *  3. An ask is served by saves that began after it alone (ask.serial).
 *  4. A program that was told that its commit is accepted is told what came of it (untold ..
 *     accepted).
 *
 * It owns its directory's name, the watches (between task_saves_begin and task_saves_end), the
 * snapshots and `seen`; the last two are the thread's while it works on them.
 */
#ifndef BELAY_AGENT_TASK_TASK_CHECKPOINTER_H
#define BELAY_AGENT_TASK_TASK_CHECKPOINTER_H

#include "agent/task/control.h"
#include "agent/task/task_work.h"
#include "agent/watch.h"
#include "base/timers.h"

enum save_cause {
    SAVE_PERIODIC,
    SAVE_DAILY,
    SAVE_LIMIT,
    SAVE_USER,
    SAVE_PROGRAM,
    SAVE_NOTICE,
    SAVE_REBALANCE,
    SAVE_EVICT,
    SAVE_EXIT
};

struct task_ask {
    bool on;
    bool stop;  /* the task ends when it is served */
    int serial; /* grows with every ask: a save that began before does not serve it */
    enum save_cause cause;
    int64_t asked;     /* by users, the last that was put to the program */
    enum wire_end end; /* with stop: how the attempt then ends, and the words */
    char text[256];
};

#define TASK_WAITS (-1)

struct task_save {
    int64_t commit; /* being served; 0: .done, the exit, or a dump by CRIU */
    int ask_serial; /* when it began */
    enum save_cause cause;
    bool is_final; /* of a program that has exited with 85 */
    bool is_asked; /* belay wanted it */
    int64_t asked; /* by users, until it began */
    int64_t sequence, progress;
    int64_t begun_ms;               /* monotonic: the program began to wait */
    int64_t pause_ms;               /* for so long; TASK_WAITS: until it is stored */
    int64_t of_ms;                  /* wall: the moment that is saved; of a snapshot */
    struct ckpt_snapshot *snapshot; /* NULL: what is saved is the directory itself */
    /* of a gang: nothing is saved, the other ranks are told why; kind 0: it is */
    struct err refused;
};

/* A snapshot being taken, on a thread of its own. */
struct task_taking {
    bool is_busy;
    atomic_int cancel;
    bool in_place;
    struct task_save save; /* its snapshot: out, NULL when the program has to wait after all */
    int rc;
    struct err e; /* why */
    struct ckpt_snapshot_stats stats;
};

struct task_checkpointer {
    char *dir; /* the task's checkpoint directory; NULL as the task's own is */
    struct watch *control_watch, *checkpoint_watch;
    struct control control; /* the files with which program and agent speak */
    struct task_ask ask;
    struct task_save save;     /* the one that is stored */
    struct task_taking taking; /* one that may be accepted */
    /* one that was, or that the other ranks are to hear of: its turn comes */
    struct task_save queued;
    /* commits: the first that was accepted and not told what came of it, 0 none; the last */
    int64_t untold, accepted;
    int64_t must_wait;   /* a commit of which no snapshot can be had; 0 none */
    bool done_must_wait; /* and .done */
    bool in_place;       /* it was seen writing to a held file */
    /* by this agent's saves of it; NULL if none yet; the thread's while it works */
    struct ckpt_seen *seen;
    int64_t save_took_ms; /* the last that was stored; -1 = none by this agent */
    /* between periodic saves, as belayd last said; 0: it has not, the spec's */
    int64_t every_ms;
    struct daily daily;     /* times of the day at which it is saved too */
    enum save_cause due;    /* what the periodic timer waits for */
    bool save_failed;       /* the last one; */
    uint64_t failure_cause; /* for this (task_save.c) */
    int64_t asked_failed;   /* by users: the last of these saves that has failed */
    struct timer periodic;
    struct timer again;  /* nobody handled the signal yet; a save failed */
    struct timer linger; /* after its end, for what is stored still */
    int final_tries;
    struct mono final_until; /* of what an exit with 85 left; MONO_NONE: not tried yet */
    bool stop_saved;         /* the save before the stop was served */
    /* by CRIU, for a stop: its processes stay stopped until that dump is stored */
    bool is_dumped;
    bool left_gang; /* its other ranks end: no save of all of them comes about any more */
};

/* Frees what it owns; nothing is under way any more. */
void task_checkpointer_deinit(struct task_checkpointer *c);

/* What is queued: a snapshot, or word to the other ranks that there is none. */
static inline bool task_has_queued(const struct task_checkpointer *c)
{
    return c->queued.snapshot || c->queued.refused.kind;
}

/* task_save.c */
bool task_saves(const struct task *t); /* has checkpoints */
/* they are made without the program; else it takes part */
bool task_by_criu(const struct task *t);
bool task_by_signal(const struct task *t); /* the program is told by a signal, and makes .done */

/* task_ask.c */
/* WIRE_END_NONE: the task goes on after it; text is not looked at then. */
void task_ask_save(struct task *t, enum save_cause cause, enum wire_end end, const char *text);
void task_set_every(struct task *t, int64_t ms); /* 0: as it is */
void task_set_limit(struct task *t, int64_t ms); /* as wire_desired_attempt has it */
/* to its supervisor, which is up, if it is another than at the start */
void task_tell_limit(struct task *t);
void task_asked(struct task *t, int64_t n); /* how many saves users have asked for */
void task_signalled(struct task *t, int count);
void task_ask_over(struct task *t);
bool task_is_gang(const struct task *t); /* one rank of several, or of one that may be several */
/* What is asked for, into its file and to the program; harmless when nothing is. */
void task_put_request(struct task *t);
void task_read_daily(struct task *t);       /* once the spec is there */
void task_restart_periodic(struct task *t); /* from now, or from the last save */
bool task_has_done(const struct task *t);   /* .done is there */

/* task_save.c */
void task_saves_begin(struct task *t); /* the program runs: watch its files, save periodically */
void task_saves_end(struct task *t);
void task_pump_saves(struct task *t);
void task_leave_gang(struct task *t);  /* harmless in a job of one node */
bool task_save_final(struct task *t);  /* true: a save was started or is to be tried again */
bool task_save_queued(struct task *t); /* true: it is stored now */
/* An agent to come looks for what is queued as for what is being stored, and tells the other ranks
 * of a gang that it is lost. */
void task_note_queued(struct task *t);
/* what is stored now is nothing that the program waits for */
bool task_saves_accepted(const struct task *t);
void task_done_taken(struct task *t); /* .done is answered */
/* Says so to all who should know. s is what the program waits for, or was told that it is
 * accepted. */
uint64_t task_cause(const char *text); /* equal for failures that differ in numbers alone */
void task_save_failed(struct task *t, const struct task_save *s, const struct err *e);

/* task_accept.c */
void task_accept_init(struct task *t);
/* True if a snapshot may be taken now: none is, and the program waits for no save. */
bool task_accept_may_take(const struct task *t);
void task_accept_take(struct task *t, int64_t commit, int64_t progress);
/* A save that somebody waits for is to come: what is being stored of an earlier one gives way if
 * there is no time for both. */
void task_accept_judge(struct task *t);
/* What came of accepted commits up to this one; failed NULL: they or work.sequence are stored. */
void task_accept_tell(struct task *t, int64_t upto, const struct err *failed);
void task_accept_drop(struct task *t);
/* Of a gang: s, which failed before it could be stored, is to be told to the other ranks. */
void task_accept_refuse(struct task *t, const struct task_save *s, const struct err *why);
/* The program has ended while something is under way: hastens what is of no more use, limits the
 * rest. */
void task_accept_hasten(struct task *t);
bool task_accept_is_wanted(const struct task *t); /* what is queued, after the program's end */

#endif
