/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between belayd and its agents, JSON over HTTPS. One table per message (wire.c)
 * drives encode and decode; both are pure, bounded and strict, so both sides check the same limits.
 *
 * The protocol tells states, not steps; every message is safe to repeat, lose and re-order:
 *
 *   POST /agent/v1/join      struct wire_join -> struct wire_joined
 *       authenticated by a one-use token; no client certificate
 *   POST /agent/v1/sync      struct wire_status -> struct wire_desired
 *   POST /agent/v1/renew     struct wire_renew -> struct wire_joined
 *   POST /agent/v1/output/JOB/ATTEMPT?offset=N
 *       raw bytes -> {"size":M}
 *   POST /agent/v1/workdir/JOB/ATTEMPT
 *       "" -> the list of what is in the working directory that was sent with the job
 *   POST /agent/v1/workdir/JOB/ATTEMPT/pieces
 *       hashes -> a pack of as many of these pieces as it can hold (ckpt/workdir.h)
 *   POST /agent/v1/channels/ID/claim
 *       "" -> {"command":[...],"tty":false,"term":"","rows":0,"columns":0}, once
 *   POST /agent/v1/channels/ID/output?offset=N&end=0|1
 *       frames (base/frames.h) -> {"size":M}, when there is room
 *   POST /agent/v1/channels/ID/input?offset=N&wait_ms=MS
 *       "" -> frames from N on; frames before N are released
 *
 * All but join need the client certificate of the node.
 *
 * An agent tells everything it has (each attempt with its phase, its unacknowledged checkpoints,
 * its end) and gets everything it should have. belayd ignores a status older than one it has seen
 * (incarnation, then seq); an agent ignores a desired older than one it has seen (rev). A status is
 * answered at once if the agent's have_rev is not the current revision or wait_ms is 0, else when
 * the revision changes or wait_ms has passed. An attempt that the agent has and that is not desired
 * is to be killed and forgotten at once; an ended attempt that is not desired is known to belayd
 * durably and may be forgotten. What the program's end left to ship (output) is shipped before
 * forgetting; an end that is told before that has the last of it beside it.
 */
#ifndef BELAY_BASE_WIRE_WIRE_H
#define BELAY_BASE_WIRE_WIRE_H

#include "base/buf.h"
#include "job/counts.h"
#include "job/daily.h"
#include "base/err.h"
#include "job/feature.h"
#include "job/gpu.h"
#include "base/load.h"
#include <stdbool.h>
#include <stdint.h>

#define WIRE_MESSAGE_MAX (8u << 20) /* bytes of any message */
/* certificates are valid from this long before their issue: the clocks of nodes may be behind */
#define WIRE_CERT_BACKDATE_MS 300000
#define WIRE_ATTEMPTS_MAX 1024 /* in one status or desired */
#define WIRE_KEPT_MAX 64
#define WIRE_INPUT_OPEN "-" /* as an attempt's input: kept open for belay attach */
#define WIRE_CHANNELS_MAX 256
/* of tasks, and of GPUs, in one status: the oldest that were not taken yet */
#define WIRE_LOADS_MAX 2048
#define WIRE_CHECKPOINTS_MAX 16 /* unacknowledged, in one status entry: the newest */
#define WIRE_SCRIPT_MAX (1u << 20)
#define WIRE_PATH_MAX 4095
#define WIRE_IMAGE_MAX 511
#define WIRE_ARGS_MAX 4096
#define WIRE_ARG_MAX (64u << 10)
#define WIRE_ENV_MAX 1024
#define WIRE_PEERS_MAX 256
#define WIRE_ENV_NAME_MAX 256
#define WIRE_ENV_VALUE_MAX (64u << 10)
#define WIRE_KEY_HEX 64 /* hex digits of a key of 256 bits */
#define WIRE_KEYS_MAX 8
#define WIRE_STORE_KEY_MAX 256
#define WIRE_STORE_TOKEN_MAX 8192
#define WIRE_JOB_TOKEN_MAX 128
#define WIRE_OUTPUT_MAX (256u << 10) /* one piece of output */
#define WIRE_TAILS_MAX 16
#define WIRE_TAIL_MAX (64u << 10) /* bytes of output in one */
#define WIRE_NODE_MW_MAX INT64_C(1000000000)
#define WIRE_NONE INT64_MIN /* "absent" in optional numbers; not sent */

/* Words of closed sets. 0 is "nothing was said", and is not sent. A word that this version does not
 * know, from one that is newer, is tolerated, if it is no longer than known ones may be: it becomes
 * the set's ..._UNKNOWN, which stands for all such words and is not sent. What each means then is
 * said below. The names, by the enum's values, end with NULL at ..._UNKNOWN. */

/* How a job's checkpoints are made. UNKNOWN: its agent makes none. */
enum wire_method {
    WIRE_METHOD_UNSAID,
    WIRE_METHOD_NONE,
    WIRE_METHOD_SIGNAL,
    WIRE_METHOD_COOP,
    WIRE_METHOD_CRIU,
    WIRE_METHOD_UNKNOWN
};
extern const char *const wire_method_names[];

/* How an attempt ended, and as what one that is to be stopped is to end. UNKNOWN, told by an agent:
 * counted as failed. As a reason to stop: the agent tells USER, as if none was given; belayd knows
 * what it stopped it for. */
enum wire_end {
    WIRE_END_NONE,
    WIRE_END_SUCCEEDED,
    WIRE_END_FAILED,
    WIRE_END_USER,
    WIRE_END_TIMEOUT,
    WIRE_END_RECLAIMED,
    WIRE_END_NODE_LOST,
    WIRE_END_CAPACITY,
    WIRE_END_EVICTED,
    WIRE_END_BUDGET,
    WIRE_END_WINDOW,
    WIRE_END_DRAINED,
    WIRE_END_GANG,
    WIRE_END_CHECKPOINTED,
    WIRE_END_STORE,
    WIRE_END_STORE_AWAY,
    WIRE_END_DRILLED,
    WIRE_END_DEPENDENCY,
    WIRE_END_DEADLINE,
    WIRE_END_UNKNOWN
};
extern const char *const wire_end_names[];

/* What the files of -o and -e begin with. UNSAID: they are emptied by the first attempt, added to
 * by later ones. UNKNOWN: added to. */
enum wire_open_mode { WIRE_OPEN_UNSAID, WIRE_OPEN_APPEND, WIRE_OPEN_TRUNCATE, WIRE_OPEN_UNKNOWN };
extern const char *const wire_open_mode_names[];

/* What CRIU can do on a node, each more than the one before: nothing, programs without GPUs, all.
 * UNKNOWN: as UNSAID, nothing that is known. */
enum wire_criu { WIRE_CRIU_UNSAID, WIRE_CRIU_NO, WIRE_CRIU_CPU, WIRE_CRIU_GPU, WIRE_CRIU_UNKNOWN };
extern const char *const wire_criu_names[];

/* What a provider announces. UNKNOWN: ignored, but it does not take back a notice as NONE does. */
enum wire_notice_kind {
    WIRE_NOTICE_NONE,
    WIRE_NOTICE_REBALANCE,
    WIRE_NOTICE_MAINTENANCE,
    WIRE_NOTICE_RECLAIM,
    WIRE_NOTICE_UNKNOWN
};
extern const char *const wire_notice_kind_names[];

/* What a checkpoint was made for. UNKNOWN: shown as "other". */
enum wire_cause {
    WIRE_CAUSE_UNSAID,
    WIRE_CAUSE_PERIODIC,
    WIRE_CAUSE_DAILY,
    WIRE_CAUSE_LIMIT,
    WIRE_CAUSE_USER,
    WIRE_CAUSE_PROGRAM,
    WIRE_CAUSE_NOTICE,
    WIRE_CAUSE_REBALANCE,
    WIRE_CAUSE_DRAIN,
    WIRE_CAUSE_UNKNOWN
};
extern const char *const wire_cause_names[];

/* The value of a word in a table of names; that of its NULL if it is not there. "" and NULL are 0.
 */
int wire_word_find(const char *const *names, const char *word);
/* For people: "other" for ..._UNKNOWN. */
const char *wire_word_name(const char *const *names, int value);

struct wire_join {
    char token[129];
    char csr_pem[4096];
    char host[64];
    char version[32];
    char provider[16];    /* "" on a reserved node */
    char instance_id[64]; /* from the metadata service; "" on a reserved node */
    int64_t cpus, memory_mib, gpus;
    /* of all of them, as job/gpu.h has it; "": not known, or they differ */
    char gpu_model[GPU_MODEL_MAX];
    int64_t gpu_memory_mib; /* of one */
    enum wire_criu criu;
    char criu_text[256]; /* its version, or why it cannot */
    /* that its configuration names, and the machine's architecture (job/feature.h) */
    char features[FEATURES_TEXT_MAX];
    char resources[COUNTS_TEXT_MAX]; /* that its configuration names (job/counts.h) */
};

struct wire_joined {
    int64_t node;
    char name[64];
    char cluster[64];
    char cert_pem[8192];
    char ca_pem[8192];
    char store[1024]; /* URL of the checkpoint store */
};

struct wire_renew {
    char csr_pem[4096];
};

enum wire_phase {
    WIRE_STARTING,
    WIRE_RESTORING,
    WIRE_RUNNING,
    WIRE_SAVING,
    WIRE_ENDING,
    WIRE_ENDED
};

struct wire_checkpoint {
    int64_t sequence, bytes, stored_bytes, took_ms;
    int64_t pause_ms; /* of took_ms, what the program waited for; WIRE_NONE: all of it */
    int64_t progress; /* WIRE_NONE unknown */
    int64_t saved_at; /* wall ms */
    enum wire_cause cause;
};

/* What the processes of an attempt use, as its cgroup counts it, or /proc shows it where there is
 * none; 0: not known. */
struct wire_usage {
    int64_t cpu_ms, cpu_user_ms; /* since its start; of it, in user mode */
    int64_t cpu_milli;           /* thousandths of a cpu, since the reading before this */
    int64_t memory_bytes, memory_peak_bytes;
};

struct wire_attempt_status {
    int64_t job, attempt;
    enum wire_phase phase;
    int64_t started_at;                          /* wall ms of the exec; WIRE_NONE before */
    int64_t restored_attempt, restored_sequence; /* 0, 0: from the beginning */
    int64_t restored_progress;                   /* WIRE_NONE */
    int64_t restore_ms, damaged;
    /* of content; of it, what stood on the node and was not fetched */
    int64_t restored_bytes, reused_bytes;
    /* the first progress that this attempt's program told; WIRE_NONE */
    int64_t first_done;
    int64_t done, total; /* progress; WIRE_NONE */
    /* read at most every few seconds; at the end cpu_ms, cpu_user_ms and the peak alone */
    struct wire_usage usage;
    struct wire_checkpoint *checkpoints; /* with sequence > acked_sequence of the last desired */
    size_t n_checkpoints;
    int64_t failed_saves; /* counted, but those that failed as the one before did; */
    char save_error[256]; /* the last failure's words */
    /* before it runs: so often the store could not be used; 0: it was, or was not needed yet */
    int64_t store_tries;
    char store_error[256]; /* the last time's words */
    /* phase WIRE_ENDED: */
    enum wire_end end;
    int64_t exit_code; /* 0 .. 255; 128 + signal when killed by one */
    char text[256];
    int64_t output_bytes; /* written so far */
    /* that the store has of the job, since it was cleaned last; 0: not known */
    int64_t kept_bytes;
    int64_t secrets; /* the version of its struct wire_secrets that the agent holds; 0: none */
};

struct wire_notice {
    enum wire_notice_kind kind;
    int64_t deadline; /* wall ms; WIRE_NONE */
    int64_t seen;
};

/* A job of which something that an earlier attempt left is kept on the node, for its next attempt
 * there. */
struct wire_kept {
    int64_t job;
};

/* What an attempt's processes did in a minute or so, and what a GPU or a slice of one did while
 * that attempt had it. Each is told until it is taken: numbers grow with every one of an
 * incarnation. belayd may lose what it has taken, which costs a minute of telemetry. */
struct wire_task_load {
    int64_t no;
    int64_t at; /* wall ms of its beginning */
    int64_t job, attempt;
    struct task_load load;
};

struct wire_gpu_load {
    int64_t no, at;
    char gpu[64];  /* its UUID */
    int64_t index; /* of the GPU, which a slice is a part of */
    bool is_slice;
    int64_t job, attempt; /* 0: nobody had it */
    struct gpu_load load;
};

/* Output of an attempt that this status tells to have ended, which is not known to have come to
 * belayd: the machine may be gone before a piece of its own gets through, and the end must not be
 * all that is left. */
struct wire_tail {
    int64_t job, attempt;
    int64_t offset;
    char *hex; /* what was written from there on: all, or the first WIRE_TAIL_MAX bytes of it */
};

struct wire_status {
    int64_t incarnation; /* wall ms of the agent's start, greater than that of its run before */
    int64_t seq;         /* grows with every status of one incarnation */
    int64_t have_rev;    /* 0: none yet */
    int64_t wait_ms;     /* 0 .. 25000 */
    int64_t load_milli;  /* 1-minute load average x 1000 */
    /* what processors and memory drew in the last minute or so, as they measure it; 0: not known */
    int64_t cpu_mw;
    struct wire_notice notice;
    enum wire_criu criu; /* as in the join: found anew at the agent's start */
    char criu_text[256];
    char features[FEATURES_TEXT_MAX], resources[COUNTS_TEXT_MAX]; /* likewise */
    char gpu_model[GPU_MODEL_MAX];                                /* likewise */
    int64_t gpu_memory_mib;
    struct wire_attempt_status *attempts;
    size_t n_attempts;
    struct wire_kept *kept;
    size_t n_kept;
    struct wire_task_load *task_loads; /* by number */
    size_t n_task_loads;
    struct wire_gpu_load *gpu_loads; /* likewise */
    size_t n_gpu_loads;
    struct wire_tail *tails; /* of the first WIRE_TAILS_MAX that have one */
    size_t n_tails;
};

/* What to do with an attempt. RUN: start it if it is not there. SAVE_STOP: save, then end it, to be
 * told as `reason`; STOP: end it (SIGTERM, then SIGKILL after kill_wait_ms). */
enum wire_want { WIRE_RUN, WIRE_SAVE_STOP, WIRE_STOP };

struct wire_env {
    char *name;  /* [A-Za-z_][A-Za-z0-9_]*, at most WIRE_ENV_NAME_MAX bytes */
    char *value; /* at most WIRE_ENV_VALUE_MAX bytes */
};

/* What an attempt's agent needs and nobody else may know. It is in memory only, at both ends: no
 * record, no log, no job's environment has it. Level-triggered as all is: belayd sends it with an
 * attempt, whatever is wanted of that, as long as the version that the agent tells is another, so
 * an agent that was restarted and did not find it (agent/keyring.h) gets it again, and one that has
 * it gets what replaces it. */
struct wire_secrets {
    int64_t version; /* 0: nothing is sent; else another for other content, opaque */
    /* The job's keys of encrypted checkpoints (ckpt/crypt.h), each WIRE_KEY_HEX hex digits, the
     * current one first. */
    char **checkpoint_keys;
    size_t n_checkpoint_keys;
    bool encrypts;      /* new checkpoints, with the first */
    bool refuses_plain; /* a checkpoint that is not encrypted is not restored */
    /* For the job's part of the store, in place of the node's own; what it is follows from the
     * store. store_token NULL: there are none. They end store_left_ms after this was sent. */
    char *store_access_key, *store_secret_key, *store_token;
    int64_t store_left_ms;
};

/* The node of one rank of a job that runs on several. */
struct wire_peer {
    char name[64], address[64];
};

#define WIRE_NO_LIMIT (-1)

struct wire_desired_attempt {
    int64_t job, attempt;
    enum wire_want want;
    /* with SAVE_STOP: another rank's node goes at this moment, wall ms; 0: there is time */
    int64_t stop_by;
    enum wire_end reason;   /* as what to end, with SAVE_STOP and STOP */
    int64_t acked_sequence; /* checkpoints of this attempt that belayd has */
    /* between periodic saves, resolved: as things are now. 0: not told, or method none */
    int64_t ckpt_every_ms;
    /* by users, of this attempt: a save that begins after the last of them is wanted */
    int64_t saves_asked;
    /* its time limit as things are now; WIRE_NO_LIMIT; 0: not told, that of its start holds */
    int64_t limit_ms;
    bool gang_ended; /* another rank has ended: there is no further checkpoint of all of them */
    struct wire_secrets secrets;
    /* the rest only with WIRE_RUN, and only until the agent tells the attempt (any phase) */
    /* With which the job speaks of itself to belayd (scheduler/api/api_private.h); NULL: none. It
     * is the job's own: the agent gives it to the script's user as a file. */
    char *job_token;
    char name[64];
    char user[64];
    char *script; /* NULL: not sent */
    char **args;
    size_t n_args;
    struct wire_env *env;
    size_t n_env;
    char cwd[4096];
    /* the hash of what it gets as its working directory (ckpt/workdir.h), in place of cwd; "":
     * nothing */
    char workdir[65];
    int64_t cpus, gpus, memory_mib;
    bool exclusive;                  /* nobody else is on the node; the three are all of it */
    char resources[COUNTS_TEXT_MAX]; /* of the node by name */
    int64_t time_limit_ms;           /* at its start; 0 none */
    int64_t grace_signal;            /* sent once, before the time limit; 0: none */
    int64_t grace_ms;                /* so long before it */
    bool grace_to_script;            /* to the script's own process only */
    enum wire_method method;
    int64_t ckpt_signal;
    int64_t ckpt_keep;
    int64_t ckpt_keep_every;      /* 0: none */
    char ckpt_at[DAILY_TEXT_MAX]; /* times of the day; "": none */
    /* What the attempt has to find in the store (ckpt_begin); store_uid "": belayd is of before
     * that, nothing is checked. */
    char store_uid[33];     /* of the cluster: that of the store's marker (ckpt/store/owner.h) */
    char ckpt_identity[64]; /* of the job's part of it */
    /* the newest checkpoint that belayd was told of; 0, 0: of none */
    int64_t expect_attempt, expect_sequence;
    /* checkpoints of earlier attempts are not to be used: the job begins from nothing; 0: all may
     * be */
    int64_t from_attempt;
    int64_t kill_wait_ms;
    /* how long it tries to use a store that it cannot, before it ends as "store-away"; 0: 10 min */
    int64_t store_wait_ms;
    int64_t save_ms;         /* measured save time so far, 0 unknown: for BELAY_GRACE_S */
    int64_t rank;            /* this node's, from 0 */
    struct wire_peer *peers; /* all nodes of the attempt, by rank; none: this is the only one */
    size_t n_peers;
    /* the script starts on rank 0 alone; the others hold the place for its steps, and save
     * nothing */
    bool script_on_first;
    int64_t array;       /* it is a task of this array; 0: of none */
    int64_t array_index; /* its own; the rest is of all tasks of the array */
    int64_t array_count, array_min, array_max, array_step;
    /* the script has #SBATCH lines, or came through a shim: give it SLURM_* too */
    bool slurm_env;
    /* Files of its user's, relative to cwd, with the signs of job/pattern.h; NULL: none. Its
     * output is shipped as well. */
    char *output, *error; /* error NULL: goes where the output goes */
    char *input;          /* NULL: /dev/null */
    enum wire_open_mode open_mode;
    char *image; /* of a container, in which the script runs; NULL: none */
    /* on a node, of cpus_per_task CPUs each, which the script starts itself with srun; 0: not
     * told */
    int64_t tasks;
    int64_t all_tasks;          /* on all nodes together, with script_on_first; 0: not told */
    int64_t cpus_per_task;      /* 0: not told */
    char cluster[64], pool[64]; /* for SLURM_CLUSTER_NAME and SLURM_JOB_PARTITION; "": not told */
    /* without its secrets nothing of it is read from the store or written there */
    bool needs_secrets;
};

/* A session of a user's with an attempt (belay exec): to be claimed, and gone on with while it is
 * desired. One that belayd answers with 404 is over. */
struct wire_channel {
    int64_t id, job, attempt;
};

struct wire_desired {
    int64_t rev;
    int64_t sync_ms; /* how long the next poll may wait */
    /* unheard of for longer, the node counts as lost; much later it ends itself */
    int64_t lease_ms;
    struct wire_desired_attempt *attempts;
    size_t n_attempts;
    /* of the jobs that the last status told as kept: those that have ended */
    struct wire_kept *unneeded;
    size_t n_unneeded;
    struct wire_channel *channels;
    size_t n_channels;
    int64_t task_loads_taken, gpu_loads_taken; /* the highest numbers of them; 0: none */
};

/* Encoders append JSON to out; a number outside its range is a bug of the caller, a text that is
 * not UTF-8 or too long is mended or cut. Decoders: ERR_INVALID with the path of what is wrong; on
 * success the arrays and texts are the caller's (deinit). Unknown keys are tolerated, so that
 * versions can be mixed. */
void wire_join_encode(const struct wire_join *m, struct buf *out);
int wire_join_decode(const char *p, size_t n, struct wire_join *ret_m, struct err *e);
void wire_joined_encode(const struct wire_joined *m, struct buf *out);
int wire_joined_decode(const char *p, size_t n, struct wire_joined *ret_m, struct err *e);
void wire_renew_encode(const struct wire_renew *m, struct buf *out);
int wire_renew_decode(const char *p, size_t n, struct wire_renew *ret_m, struct err *e);
void wire_status_encode(const struct wire_status *m, struct buf *out);
int wire_status_decode(const char *p, size_t n, struct wire_status *ret_m, struct err *e);
void wire_status_deinit(struct wire_status *m);
void wire_desired_encode(const struct wire_desired *m, struct buf *out);
int wire_desired_decode(const char *p, size_t n, struct wire_desired *ret_m, struct err *e);
void wire_desired_deinit(struct wire_desired *m);

void wire_secrets_copy(const struct wire_secrets *m, struct wire_secrets *ret_m);
void wire_secrets_wipe(struct wire_secrets *m); /* frees, too; *m is zeroed */

#endif
