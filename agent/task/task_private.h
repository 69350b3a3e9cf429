/* SPDX-License-Identifier: Apache-2.0
 *
 * struct task, for task.c (its life), task_save.c (its checkpoints), task_accept.c (those that are
 * accepted before they are stored) and task_work.c (what runs on threads).
 */
#ifndef BELAY_AGENT_TASK_TASK_PRIVATE_H
#define BELAY_AGENT_TASK_TASK_PRIVATE_H

#include "agent/task/control.h"
#include "agent/supervisor/supervisor_client.h"
#include "agent/task/record.h"
#include "agent/task/log_shipper.h"
#include "agent/task/task.h"
#include "agent/watch.h"
#include "agent/task/workdir.h"
#include "ckpt/ckpt.h"

/* of the time a save has: for its manifest, and for its failure to be told */
#define TASK_COMMIT_MS 300

/* ---- work on a thread: one at a time a task (and a snapshot) ---- */

/* What is wrong with the store that another attempt would not find better: the job is held for it
 * (prepare_failed). */
enum task_store {
    STORE_IS_FINE, /* or it is not known */
    /* it has no marker: it may still be mounted, so it is looked at again for a while */
    STORE_IS_MISSING,
    STORE_IS_ANOTHER,  /* another cluster's, or what it has of the job is another job's */
    STORE_HAS_LOST_IT, /* the job's last checkpoint */
    STORE_IS_DAMAGED,  /* all checkpoints of the job have failed verification */
    STORE_IS_REFUSED   /* CRIU could bring none of them back */
};

enum work_kind {
    WORK_NONE,
    WORK_PREPARE,
    WORK_DUMP,
    WORK_SAVE,
    WORK_CLEAN,
    WORK_FIND,
    WORK_REMOVE
};

struct task_work {
    enum work_kind kind;
    atomic_int cancel;
    bool waits;         /* for its turn; else it is with the thread, or */
    bool lacks;         /* waits for secrets */
    int64_t started_ms; /* monotonic */
    void (*done)(struct task *t);
    /* in */
    int64_t deadline_ms; /* of a save or a dump, monotonic; 0: none */
    bool dumps_stopped;  /* the processes stay stopped after the dump */
    char store[1024], cluster[64];
    int64_t sequence, progress; /* -1 unknown */
    /* of a gang's save: why this rank cannot. NULL: it can. Borrowed */
    const struct err *refused;
    /* of preparing: the directory that it may have; of a removal: as which it may be kept */
    struct spare spare;
    /* of a removal: what is in the checkpoint directory may be of use */
    bool keeps;
    struct wire_secrets secrets; /* wiped when it is done */
    struct store_net *net;       /* the job's or the node's */
    bool needs_secrets;
    struct ckpt_snapshot *snapshot; /* to be saved; NULL: the directory. Borrowed */
    struct ckpt_pace pace;          /* of a save */
    struct workdir_source workdir;  /* of preparing, if one was sent with the job */
    /* out */
    int rc;
    struct err e;
    bool is_spare;     /* of a removal: it was kept so */
    bool fenced;       /* a later attempt owns the job */
    bool is_unsealed;  /* of preparing: CRIU's checkpoint is not encrypted, and so not restored */
    bool store_failed; /* rc is of the store, or of what it had */
    enum task_store store_fault;
    int64_t dump_ms;
    struct ckpt_restored restored;
    struct ckpt_stats stats;
    int64_t kept_bytes;           /* of a cleaning */
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

struct task {
    struct link in_agent;
    const struct task_room *room;
    int64_t job, attempt;
    /* the spec; not changed after the start, threads read it */
    struct wire_desired own;
    const struct wire_desired_attempt *spec; /* all empty when it is not known */
    char *dir;                               /* NULL: there is none, it is only told as ended */
    char *checkpoint_dir, *output_path, *state_path;
    int phase; /* enum wire_phase */
    struct task_state state;
    struct wire_secrets secrets; /* in memory and in the keyring only; version 0: not had (yet) */
    /* of this job alone, with credentials from belayd; NULL: it had none */
    struct store_net *net;
    struct supervisor_client supervisor;
    struct log_shipper shipper;
    struct watch *control_watch, *checkpoint_watch;
    struct control control;
    struct task_work work;
    int64_t save_took_ms; /* the last that was stored; -1: none by this agent */
    /* between periodic saves, as belayd last said; 0: it has not, the spec's */
    int64_t every_ms;
    bool save_failed;       /* the last one; */
    uint64_t failure_cause; /* for this (task_save.c) */
    int64_t asked_failed;   /* by users: the last of these saves that has failed */
    struct daily daily;     /* times of the day at which it is saved too */
    enum save_cause due;    /* what the periodic timer waits for */
    /* by this agent's saves of it; NULL: none yet; the thread's while it works */
    struct ckpt_seen *seen;
    struct task_ask ask;
    struct task_save save;     /* the one that is stored */
    struct task_taking taking; /* one that may be accepted */
    /* one that was, or that the other ranks are to hear of: its turn comes */
    struct task_save queued;
    int64_t untold,
        /* commits: the first that was accepted and not told what came of it, 0 none; the last */
        accepted;
    int64_t must_wait;   /* a commit of which no snapshot can be had; 0 none */
    bool done_must_wait; /* and .done */
    bool in_place;       /* it was seen writing to a held file */
    struct timer linger; /* after its end, for what is stored still */
    struct timer periodic;
    struct timer again;    /* nobody handled the signal yet; a save failed */
    struct timer deadline; /* for the program's answer to a stop */
    struct timer retry;    /* of preparing */
    struct timer secrets_wait;
    struct timer leave;  /* for what its removal waits for */
    struct timer tell;   /* the end, though its output is not with belayd */
    struct mono hard_at; /* with a reclaim: when all must be over; MONO_NONE */
    /* it has failed whatever was tried, before the program runs; MONO_NONE: it has not */
    struct mono store_since;
    /* the latter, of a store that is missing: MONO_NONE while it was not */
    struct mono prepare_until, store_until;
    int tries;
    int final_tries;
    /* of what an exit with 85 left; MONO_NONE: not tried yet */
    struct mono final_until;
    bool is_admitted; /* else, before it is prepared, it waits for that with `retry` */
    bool is_damaged;  /* its records cannot be read */
    bool is_up;       /* the supervisor takes commands */
    bool exited;      /* exit is known */
    bool has_exit;    /* from exit.json: an agent to come will read the same there */
    bool has_state;   /* state.json is there */
    bool end_told;    /* or to be told now */
    bool stop_saved;  /* the save before the stop was served */
    bool is_dumped; /* by CRIU, for a stop: its processes stay stopped until that dump is stored */
    bool left_gang; /* its other ranks end: no save of all of them comes about any more */
    bool killing, leaving, removed, released;
    struct task_exit exit;
    /* what tells what its processes use; "": no group does, or it does not run */
    struct usage_files usage;
    /* above all of its processes, for where no group does; 0: it does not run */
    int64_t init_pid, init_ticks;
    struct mono usage_at; /* the last reading, or when it was found running; MONO_NONE */
    int64_t usage_cpu_ms; /* what it had used by then; -1: not known */
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

/* task_save.c */
bool task_saves(const struct task *t); /* has checkpoints */
/* they are made without the program; else it takes part */
bool task_by_criu(const struct task *t);
/* WIRE_END_NONE: the task goes on after it; text is not looked at then. */
void task_ask_save(struct task *t, enum save_cause cause, enum wire_end end, const char *text);
void task_saves_begin(struct task *t); /* the program runs: watch its files, save periodically */
void task_saves_end(struct task *t);
void task_set_every(struct task *t, int64_t ms); /* 0: as it is */
void task_set_limit(struct task *t, int64_t ms); /* as wire_desired_attempt has it */
/* to its supervisor, which is up, if it is another than at the start */
void task_tell_limit(struct task *t);
void task_asked(struct task *t, int64_t n); /* how many saves users have asked for */
void task_pump_saves(struct task *t);
void task_signalled(struct task *t, int count);
bool task_is_gang(const struct task *t); /* one rank of several, or of one that may be several */
void task_leave_gang(struct task *t);    /* harmless in a job of one node */
bool task_save_final(struct task *t);    /* true: a save was started or is to be tried again */
bool task_save_queued(struct task *t);   /* true: it is stored now */
bool task_has_queued(const struct task *t);
/* An agent to come looks for what is queued as for what is being stored, and tells the other ranks
 * of a gang that it is lost. */
void task_note_queued(struct task *t);
/* what is stored now is nothing that the program waits for */
bool task_saves_accepted(const struct task *t);
void task_ask_over(struct task *t);
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
