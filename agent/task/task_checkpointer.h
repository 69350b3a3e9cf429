/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's checkpoints: the request put to the program, what it has committed, the save being
 * stored and the one that waits for its turn (task_request.c, task_save.c, task_accept.c).
 *
 * Invariants.
 *  1. At a time at most one save is being stored (`save`, while work.kind is WORK_SAVE or
 *     WORK_DUMP), one snapshot is being taken (`taking`) and one is queued (`queued`), which is
 *     newer than `save`.
 *  2. The program's commits are found by reading the control directory and not stored, so a
 *     restarted agent finds the same.
 *  3. A request is served only by saves that began after it (request.serial).
 *  4. A program whose commit was accepted always gets its outcome (unanswered .. accepted).
 *
 * It owns its directory's name, the watches (between task_saves_begin and task_saves_end), the
 * snapshots and `seen`; the last two belong to the thread while it works on them.
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

struct save_request {
    bool on;
    bool stop;  /* end the task when the request is served */
    int serial; /* grows with every request: a save that began before does not serve it */
    enum save_cause cause;
    int64_t user_requests; /* number of the last user request that was put to the program */
    enum wire_end end;     /* with stop: how the attempt then ends, and the text */
    char text[256];
};

#define TASK_WAITS (-1)

struct task_save {
    int64_t commit;     /* commit being served; 0 = .done, the exit, or a dump by CRIU */
    int request_serial; /* request.serial when it began */
    enum save_cause cause;
    bool is_final;         /* of a program that has exited with 85 */
    bool is_requested;     /* requested by belay */
    int64_t user_requests; /* user requests until it began */
    int64_t sequence, progress;
    int64_t begun_ms; /* monotonic: the program began to wait */
    int64_t pause_ms; /* how long the program waited; TASK_WAITS = until it is stored */
    int64_t of_ms;    /* wall: the moment of the snapshot */
    struct ckpt_snapshot *snapshot; /* NULL to save the directory itself */
    /* of a gang: reason sent to the other ranks why this rank cannot save; kind 0 = it can */
    struct err refused;
};

/* A snapshot being taken, on its own thread. */
struct task_taking {
    bool is_busy;
    atomic_int cancel;
    bool in_place;
    /* its snapshot is set by the thread; NULL if the program has to wait after all */
    struct task_save save;
    int rc;
    struct err e; /* why */
    struct ckpt_snapshot_stats stats;
    /* The last tree was too large for a snapshot, and when it was saved it was so by far: the next
     * commit waits for its save without trying. */
    bool is_hopeless;
};

struct task_checkpointer {
    char *dir; /* the task's checkpoint directory; NULL when the task's own is */
    struct watch *control_watch, *checkpoint_watch;
    struct control control; /* the files of the protocol with the program */
    struct save_request request;
    struct task_save save;     /* being stored */
    struct task_taking taking; /* being snapshotted; may be accepted */
    /* accepted, or to be reported to the other ranks; stored when its turn comes */
    struct task_save queued;
    /* first accepted commit whose outcome is not yet written (0 = none); last accepted commit */
    int64_t unanswered, accepted;
    int64_t must_wait;   /* a commit that cannot be snapshotted; 0 = none */
    bool done_must_wait; /* .done cannot be snapshotted */
    bool in_place;       /* the program was seen writing to a file kept open */
    /* filled by this agent's saves; NULL if none yet; owned by the thread while it works */
    struct ckpt_seen *seen;
    int64_t save_took_ms; /* duration of the last stored save; -1 = none by this agent */
    /* period of saves as last set by belayd; 0 = not set, use the spec's */
    int64_t every_ms;
    struct daily daily;           /* times of day with an extra save */
    enum save_cause due;          /* cause of the save that the periodic timer starts */
    bool save_failed;             /* the last save failed */
    bool is_uncleaned;            /* nothing was cleaned since the last good save */
    uint64_t failure_cause;       /* hash of its error text (task_cause) */
    int64_t user_requests_failed; /* number of the last failed user request */
    struct timer periodic;
    struct timer again;  /* retry: no process handles the signal yet, or a save failed */
    struct timer linger; /* after the end, limits what is still being stored */
    int final_tries;
    /* retries of the save after an exit with 85 end then; MONO_NONE = not tried yet */
    struct mono final_until;
    bool stop_saved; /* the save before the stop was served */
    /* dumped by CRIU for a stop: its processes stay stopped until the dump is stored */
    bool is_dumped;
    /* the outcome of what the previous agent had accepted depends on WORK_FIND: until it is known,
     * no commit is served */
    bool is_unsettled;
    bool left_gang; /* other ranks are ending: no save of the whole gang is possible any more */
};

/* Frees what it owns. Nothing may be under way. */
void task_checkpointer_deinit(struct task_checkpointer *c);

/* Whether a snapshot, or a refusal for the other ranks, is queued. */
static inline bool task_has_queued(const struct task_checkpointer *c)
{
    return c->queued.snapshot || c->queued.refused.kind;
}

/* task_save.c */
bool task_saves(const struct task *t); /* has checkpoints */
/* saves are made without the program's cooperation */
bool task_by_criu(const struct task *t);
bool task_by_signal(const struct task *t); /* the program gets a signal and makes .done */

/* task_request.c */
/* WIRE_END_NONE: the task continues after the save, and text is ignored. */
void task_request_save(struct task *t, enum save_cause cause, enum wire_end end, const char *text);
void task_set_every(struct task *t, int64_t ms); /* 0 = unchanged */
void task_set_limit(struct task *t, int64_t ms); /* value as in wire_desired_attempt */
/* sends the limit to its supervisor, which must be up, if it changed since the start */
void task_send_limit(struct task *t);
/* n: saves that users have asked for so far */
void task_request_user_save(struct task *t, int64_t n);
void task_signalled(struct task *t, int count);
void task_request_over(struct task *t);
bool task_is_gang(const struct task *t); /* one rank of several, or of an elastic gang */
/* Writes the pending request to its file and signals the program; no-op when none is pending. */
void task_write_request(struct task *t);
void task_read_daily(struct task *t);       /* call once the spec is read */
void task_restart_periodic(struct task *t); /* the period starts now, or at the last save */
bool task_has_done(const struct task *t);   /* .done exists */

/* task_save.c */
void task_saves_begin(struct task *t); /* the program runs: watch its files, save periodically */
void task_saves_end(struct task *t);
void task_pump_saves(struct task *t);
void task_leave_gang(struct task *t); /* no-op in a job of one node */
bool task_save_final(struct task *t); /* true if a save was started or will be retried */
/* When nothing else is left to be saved: true if a cleaning was started, after which task_finish is
 * called again. */
bool task_clean_last(struct task *t);
bool task_save_queued(struct task *t); /* true if it is being stored now */
/* Records the queued save. A restarted agent treats it like one that was being stored, and reports
 * to the other ranks of a gang that it is lost. */
void task_note_queued(struct task *t);
/* the save being stored is not one that the program waits for */
bool task_saves_accepted(const struct task *t);
void task_done_taken(struct task *t);  /* removes .done, which has been answered */
uint64_t task_cause(const char *text); /* equal for failures that differ only in numbers */
/* Reports a failed save to the program, belayd and the log. s is the save that the program waits
 * for, or that was accepted. */
void task_save_failed(struct task *t, const struct task_save *s, const struct err *e);
/* Reports that the store does not answer the save under way, which is not over by that. */
void task_save_hangs(struct task *t, const struct err *e);

/* task_accept.c */
void task_accept_init(struct task *t);
/* True if a snapshot may be taken now: none is being taken, and the program waits for no save. */
bool task_accept_may_take(const struct task *t);
void task_accept_take(struct task *t, int64_t commit, int64_t progress);
/* Call when a save is coming that the program or belayd waits for: gives up the earlier save being
 * stored if there is no time for both. */
void task_accept_judge(struct task *t);
/* Writes the outcome of accepted commits up to this one. failed is NULL if they, or work.sequence,
 * are stored. */
void task_accept_answer(struct task *t, int64_t upto, const struct err *failed);
void task_accept_drop(struct task *t);
/* In a gang: queues the refusal of s, which failed before it could be stored, for the other
 * ranks. */
void task_accept_refuse(struct task *t, const struct task_save *s, const struct err *why);
/* Call when the program has ended while work is under way: cancels what is of no more use and
 * limits the rest. */
void task_accept_hasten(struct task *t);
/* whether the queued save is still wanted after the program's end */
bool task_accept_is_wanted(const struct task *t);

#endif
