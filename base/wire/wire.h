/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between belayd and its agents, JSON over HTTPS. One table per message (wire.c)
 * drives encoding and decoding; both are pure, bounded and strict, so both sides check the same
 * limits.
 *
 * The protocol is level-triggered: messages carry states, not steps, and may safely be repeated,
 * lost and re-ordered:
 *
 *   POST /agent/v1/join      struct wire_join -> struct wire_joined
 *       authenticated by a one-use token; no client certificate
 *   POST /agent/v1/sync      struct wire_status -> struct wire_desired
 *   POST /agent/v1/renew     struct wire_renew -> struct wire_joined
 *   POST /agent/v1/output/JOB/ATTEMPT?offset=N
 *       raw bytes -> {"size":M}; with &durable=1 {"size":M,"durable":true}, when the M bytes are on
 *       belayd's disk, so that the agent may drop them (an older belayd leaves "durable" out)
 *   POST /agent/v1/workdir/JOB/ATTEMPT
 *       "" -> the list of files in the working directory that was sent with the job
 *   POST /agent/v1/workdir/JOB/ATTEMPT/pieces
 *       hashes -> a pack of as many of these pieces as fit in it (ckpt/workdir.h)
 *   POST /agent/v1/channels/ID/claim
 *       "" -> {"command":[...],"tty":false,"term":"","rows":0,"columns":0}, once
 *   POST /agent/v1/channels/ID/output?offset=N&end=0|1
 *       frames (base/frames.h) -> {"size":M}, when there is space
 *   POST /agent/v1/channels/ID/input?offset=N&wait_ms=MS
 *       "" -> frames from N on; frames before N are released
 *
 * All except join need the node's client certificate.
 *
 * An agent reports everything it has (each attempt with its phase, its unacknowledged checkpoints,
 * its end) and receives everything it should have. belayd ignores a status older than one it has
 * seen (incarnation, then seq); an agent ignores a desired state older than one it has seen (rev).
 * A status is answered at once if the agent's have_rev is not the current revision or wait_ms is 0,
 * else when the revision changes or wait_ms has passed.
 *
 * An attempt that the agent has and that is not desired must be killed and forgotten at once. An
 * ended attempt that is not desired is stored durably by belayd and may be forgotten. Remaining
 * output is shipped before forgetting; an end reported earlier carries the last of the output as a
 * wire_tail.
 */
#ifndef BELAY_BASE_WIRE_WIRE_H
#define BELAY_BASE_WIRE_WIRE_H

#include "base/buf.h"
#include "job/counts.h"
#include "base/err.h"
#include "job/feature.h"
#include "job/gpu.h"
#include "job/secret_ref.h"
#include "job/spec.h"
#include "base/load.h"
#include <stdbool.h>
#include <stdint.h>

#define WIRE_MESSAGE_MAX (8u << 20) /* bytes of any message */
/* certificates are valid from this long before their issue: the clocks of nodes may be behind */
#define WIRE_CERT_BACKDATE_MS 300000
#define WIRE_ATTEMPTS_MAX 1024 /* in one status or desired */
#define WIRE_KEPT_MAX 64
#define WIRE_INPUT_OPEN "-" /* value of `input`: stdin is kept open for belay attach */
#define WIRE_CHANNELS_MAX 256
/* loads of tasks, and of GPUs, in one status: the oldest not yet acknowledged */
#define WIRE_LOADS_MAX 2048
#define WIRE_CHECKPOINTS_MAX 16 /* unacknowledged checkpoints in one attempt's status: the newest */
#define WIRE_SCRIPT_MAX (1u << 20)
#define WIRE_PATH_MAX 4095
#define WIRE_IMAGE_MAX 511
#define WIRE_ARGS_MAX 4096
#define WIRE_ARG_MAX (64u << 10)
#define WIRE_ENV_MAX 1024
#define WIRE_PEERS_MAX 256
#define WIRE_ENV_NAME_MAX 256
#define WIRE_ENV_VALUE_MAX (64u << 10)
#define WIRE_KEY_HEX 64 /* hex digits of a 256-bit key */
#define WIRE_KEYS_MAX 8
#define WIRE_STORE_KEY_MAX 256
#define WIRE_STORE_TOKEN_MAX 8192
#define WIRE_JOB_TOKEN_MAX 128
#define WIRE_JOB_SECRETS_MAX SECRET_REFS_MAX
#define WIRE_OUTPUT_MAX (256u << 10) /* bytes of one piece of output */
#define WIRE_OUTPUT_CUT (1LL << 50)  /* a size that says: no more of this output is wanted */
#define WIRE_TAILS_MAX 16
#define WIRE_TAIL_MAX (64u << 10) /* bytes of output in one tail */
#define WIRE_FAULT_MAX 200
#define WIRE_NODE_MW_MAX INT64_C(1000000000)
#define WIRE_NONE INT64_MIN /* "absent" in optional numbers; not sent */

/* Words of closed sets. 0 means absent and is not sent. A word of a newer version that this one
 * does not know is tolerated if it is not longer than known words may be: it becomes the set's
 * ..._UNKNOWN, which stands for all such words and is not sent. Each set states below what UNKNOWN
 * means. The names, indexed by the enum's values, end with NULL at ..._UNKNOWN. */

/* How a job's checkpoints are made. UNKNOWN: the agent makes none. */
enum wire_method {
    WIRE_METHOD_UNSAID,
    WIRE_METHOD_NONE,
    WIRE_METHOD_SIGNAL,
    WIRE_METHOD_COOP,
    WIRE_METHOD_CRIU,
    WIRE_METHOD_UNKNOWN
};
extern const char *const wire_method_names[];

/* How an attempt ended, or the end to report for an attempt that is to be stopped. UNKNOWN reported
 * by an agent counts as failed. UNKNOWN as a reason to stop: the agent reports USER, as without a
 * reason; belayd knows why it stopped the attempt. */
enum wire_end {
    WIRE_END_NONE,
    WIRE_END_SUCCEEDED,
    WIRE_END_FAILED,
    WIRE_END_CANCELLED,
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

/* How the files of -o and -e are opened. UNSAID: truncated by the first attempt, appended to by
 * later ones. UNKNOWN: appended to. */
enum wire_open_mode { WIRE_OPEN_UNSAID, WIRE_OPEN_APPEND, WIRE_OPEN_TRUNCATE, WIRE_OPEN_UNKNOWN };
extern const char *const wire_open_mode_names[];

/* CRIU support of a node, in ascending order: none, programs without GPUs, all. UNKNOWN: as UNSAID,
 * no known support. */
enum wire_criu { WIRE_CRIU_UNSAID, WIRE_CRIU_NO, WIRE_CRIU_CPU, WIRE_CRIU_GPU, WIRE_CRIU_UNKNOWN };
extern const char *const wire_criu_names[];

/* A provider's notice. UNKNOWN is ignored, but does not withdraw an earlier notice as NONE does. */
enum wire_notice_kind {
    WIRE_NOTICE_NONE,
    WIRE_NOTICE_REBALANCE,
    WIRE_NOTICE_MAINTENANCE,
    WIRE_NOTICE_RECLAIM,
    WIRE_NOTICE_UNKNOWN
};
extern const char *const wire_notice_kind_names[];

/* Why a checkpoint was made. UNKNOWN is shown as "other". */
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

/* The value of a word in a table of names; that of the NULL if it is not there. "" and NULL give 0.
 */
int wire_word_find(const char *const *names, const char *word);
/* For people; "other" for ..._UNKNOWN. */
const char *wire_word_name(const char *const *names, int value);

struct wire_join {
    char token[129];
    char csr_pem[4096];
    char host[64];        /* wire_node_name_check */
    char version[32];     /* visible ASCII and spaces */
    char provider[16];    /* "" on a reserved node */
    char instance_id[64]; /* from the metadata service; "" on a reserved node */
    int64_t cpus, memory_mib, gpus;
    /* common to all GPUs, as job/gpu.h defines it; "" if unknown or mixed */
    char gpu_model[GPU_MODEL_MAX];
    int64_t gpu_memory_mib; /* of one GPU */
    enum wire_criu criu;
    char criu_text[256]; /* CRIU's version, or why it is unavailable */
    /* from the agent's configuration, and the machine's architecture: features_check */
    char features[FEATURES_TEXT_MAX];
    char resources[COUNTS_TEXT_MAX]; /* from the agent's configuration: counts_parse */
    /* time since the machine's boot script began; 0 = unknown */
    int64_t start_ms;
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
    /* part of took_ms during which the program was paused; WIRE_NONE: all of it */
    int64_t pause_ms;
    int64_t progress; /* WIRE_NONE if unknown */
    int64_t saved_at; /* wall clock, ms */
    enum wire_cause cause;
};

/* Resource use of an attempt's processes, from its cgroup, or from /proc if there is none; 0 =
 * unknown. */
struct wire_usage {
    int64_t cpu_ms, cpu_user_ms; /* since its start: total, user mode */
    int64_t cpu_milli;           /* thousandths of a CPU, since the previous reading */
    int64_t memory_bytes, memory_peak_bytes;
};

struct wire_attempt_status {
    int64_t job, attempt;
    enum wire_phase phase;
    int64_t started_at;                          /* wall clock, ms, of the exec; WIRE_NONE before */
    int64_t restored_attempt, restored_sequence; /* 0, 0 = started from the beginning */
    int64_t restored_progress;                   /* may be WIRE_NONE */
    int64_t restore_ms, damaged;
    /* bytes of content; of these, bytes already on the node that were not fetched */
    int64_t restored_bytes, reused_bytes;
    /* the first progress that this attempt's program reported; WIRE_NONE if none */
    int64_t first_done;
    int64_t first_done_ms; /* how long after its start that was reported; 0 = unknown */
    int64_t done, total;   /* progress; WIRE_NONE if unknown */
    /* updated at most every few seconds; at the end only cpu_ms, cpu_user_ms and the peak */
    struct wire_usage usage;
    struct wire_checkpoint *checkpoints; /* with sequence > acked_sequence of the last desired */
    size_t n_checkpoints;
    /* number of failures, not counting repetitions of the previous error. The first failed_restores
     * are of restores, as are all before it has started (an older agent says no more) */
    int64_t failed_saves, failed_restores;
    char save_error[256], restore_error[256]; /* text of the last failure, of the last restore's */
    /* before it runs: how often the store was unavailable; 0 if it was available or not needed yet
     */
    int64_t store_tries;
    char store_error[256]; /* text of the last failure */
    /* for WIRE_ENDED only: */
    enum wire_end end;
    int64_t exit_code; /* 0 .. 255; 128 + signal number if killed by a signal */
    char text[256];
    /* it was not started: the node has no account for its user, or runs no jobs of that account */
    bool user_refused;
    int64_t output_bytes; /* written so far */
    /* bytes of the job in the store after the last cleanup; 0 = unknown */
    int64_t kept_bytes;
    int64_t secrets; /* version of the struct wire_secrets that the agent has; 0 = none */
};

struct wire_notice {
    enum wire_notice_kind kind;
    int64_t deadline; /* wall clock, ms; may be WIRE_NONE */
    int64_t seen;
};

/* A job with data of an earlier attempt kept on the node for its next attempt there. */
struct wire_kept {
    int64_t job;
};

/* What the agent has done about a struct wire_prefetch; job 0 = nothing (yet). */
struct wire_prefetched {
    int64_t job, attempt, sequence; /* the checkpoint; sequence 0 = none could be fetched */
    char text[256];                 /* why the last try failed; "" = it did not */
};

/* Load of an attempt's processes, and of a GPU or GPU slice while that attempt had it, over about a
 * minute. Each is sent until it is acknowledged; numbers increase within an incarnation. belayd may
 * lose acknowledged loads, which costs a minute of telemetry. */
struct wire_task_load {
    int64_t no;
    int64_t at; /* start of the period, wall clock, ms */
    int64_t job, attempt;
    struct task_load load;
};

struct wire_gpu_load {
    int64_t no, at;
    char gpu[64];  /* its UUID */
    int64_t index; /* index of the GPU, or of the GPU that a slice belongs to */
    bool is_slice;
    int64_t job, attempt; /* 0 = no attempt had it */
    struct gpu_load load;
};

/* Output of an attempt that this status reports as ended, and that belayd has not acknowledged. The
 * machine may disappear before a separate output request gets through; the output must not be lost
 * with it. */
struct wire_tail {
    int64_t job, attempt;
    int64_t offset;
    char *hex; /* bytes from offset on, in hex: all, or the first WIRE_TAIL_MAX of them */
};

struct wire_status {
    /* wall clock, ms, of the agent's start; greater than that of its previous run */
    int64_t incarnation;
    int64_t seq;        /* increases with every status of one incarnation */
    int64_t have_rev;   /* 0 = none yet */
    int64_t wait_ms;    /* 0 .. 25000 */
    int64_t load_milli; /* 1-minute load average x 1000 */
    /* power of processors and memory over the last minute or so, if they measure it; 0 = unknown */
    int64_t cpu_mw;
    struct wire_notice notice;
    enum wire_criu criu; /* as in wire_join; determined again at each start of the agent */
    char criu_text[256];
    char features[FEATURES_TEXT_MAX], resources[COUNTS_TEXT_MAX]; /* as in wire_join */
    char gpu_model[GPU_MODEL_MAX];                                /* as in wire_join */
    int64_t gpu_memory_mib;
    /* why the node's disk has no space for new attempts, which are then refused; "" = it has (also
     * from an older agent) */
    char disk_full[160];
    char fault[WIRE_FAULT_MAX]; /* why the node must be drained, with the time; "" = none known */
    struct wire_attempt_status *attempts;
    size_t n_attempts;
    struct wire_kept *kept;
    size_t n_kept;
    struct wire_prefetched prefetched;
    struct wire_task_load *task_loads; /* ordered by number */
    size_t n_task_loads;
    struct wire_gpu_load *gpu_loads; /* ordered by number */
    size_t n_gpu_loads;
    struct wire_tail *tails; /* for the first WIRE_TAILS_MAX attempts that have one */
    size_t n_tails;
};

/* The desired state of an attempt. RUN: start it if it is not there. SAVE_STOP: save, then end it,
 * and report `reason`. STOP: end it (SIGTERM, then SIGKILL after kill_wait_ms). */
enum wire_want { WIRE_RUN, WIRE_SAVE_STOP, WIRE_STOP };

struct wire_env {
    char *name;  /* [A-Za-z_][A-Za-z0-9_]*, at most WIRE_ENV_NAME_MAX bytes */
    char *value; /* at most WIRE_ENV_VALUE_MAX bytes */
};

/* A secret that the job asked for, for its user. */
struct wire_secret {
    char *name;     /* job/secret_ref.h */
    char *variable; /* the variable that has it; NULL = a file */
    char *value;    /* hex */
};

/* Secrets of one attempt, for its agent only. They stay in memory at both ends: never in a record,
 * a log or a job's environment. Level-triggered like the rest: belayd sends them with an attempt,
 * whatever its desired state, as long as the agent reports another version. So an agent that lost
 * them in a restart (agent/keyring.h) gets them again, and an agent that has them gets
 * replacements. */
struct wire_secrets {
    int64_t version; /* opaque, differs for different content; 0 = nothing is sent */
    /* The job's keys for encrypted checkpoints (ckpt/crypt.h), WIRE_KEY_HEX hex digits each, the
     * current one first. */
    char **checkpoint_keys;
    size_t n_checkpoint_keys;
    bool encrypts;      /* encrypt new checkpoints with the first key */
    bool refuses_plain; /* do not restore unencrypted checkpoints */
    /* Credentials for the job's part of the store, used instead of the node's own; the store's type
     * defines their meaning. store_token is NULL if there are none. They expire store_left_ms after
     * this was sent. */
    char *store_access_key, *store_secret_key, *store_token;
    int64_t store_left_ms;
    /* Sent until the attempt has started. The agent passes them to the job, and keeps no copy. */
    struct wire_secret *of_job;
    size_t n_of_job;
};

/* The node of one rank of a multi-node job. */
struct wire_peer {
    char name[64], address[64];
};

#define WIRE_NO_LIMIT (-1)

struct wire_desired_attempt {
    int64_t job, attempt;
    enum wire_want want;
    /* with SAVE_STOP: another rank's node is lost at this time, wall clock, ms; 0 = no deadline */
    int64_t stop_by;
    enum wire_end reason;   /* the end to report, with SAVE_STOP and STOP */
    int64_t acked_sequence; /* checkpoints of this attempt that belayd has */
    /* current interval of periodic saves, resolved. 0 = not sent, or method none */
    int64_t ckpt_every_ms;
    /* number of saves that users requested for this attempt: a save that starts after the last
     * request is wanted */
    int64_t saves_asked;
    /* its current time limit; may be WIRE_NO_LIMIT; 0 = not sent, the limit at its start applies */
    int64_t limit_ms;
    bool gang_ended; /* another rank has ended: no further checkpoint of all ranks is possible */
    struct wire_secrets secrets;
    /* the rest is sent only with WIRE_RUN, and only until the agent reports the attempt (in any
     * phase) */
    /* Authenticates the job to belayd (scheduler/api/api_private.h); NULL if none. It belongs to
     * the job: the agent passes it to the script's user in a file. */
    char *job_token;
    /* of the job, those whose row in job_attributes has a key on the wire; the others are zero */
    struct job_spec options;
    char user[64];
    char *script; /* NULL if not sent */
    char **args;
    size_t n_args;
    struct wire_env *env;
    size_t n_env;
    char cwd[4096];
    /* hash of the working directory sent with the job (ckpt/workdir.h), used instead of cwd; "" if
     * none */
    char workdir[65];
    int64_t cpus, gpus, memory_mib;
    /* the only job on the node; cpus, gpus and memory_mib are all of the node's */
    bool exclusive;
    char resources[COUNTS_TEXT_MAX]; /* of the node, by name */
    int64_t grace_signal;            /* sent once, before the time limit; 0 = none */
    int64_t grace_ms;                /* how long before the time limit */
    bool grace_to_script;            /* only to the script's own process */
    enum wire_method method;
    /* What the attempt must find in the store (ckpt_begin). store_uid "": an older belayd, no
     * check. */
    char store_uid[33];     /* of the cluster, as in the store's marker (ckpt/store/marker.h) */
    char ckpt_identity[64]; /* of the job's part of the store */
    /* the newest checkpoint known to belayd; 0, 0 = none */
    int64_t expect_attempt, expect_sequence;
    /* ignore checkpoints of earlier attempts: the job starts from the beginning; 0 = use all */
    int64_t from_attempt;
    int64_t kill_wait_ms;
    /* how long to retry an unavailable store before the attempt ends as "store-away"; 0 = 10 min */
    int64_t store_wait_ms;
    int64_t save_ms;         /* measured save time so far, for BELAY_GRACE_S; 0 = unknown */
    int64_t rank;            /* of this node, from 0 */
    struct wire_peer *peers; /* all nodes of the attempt, by rank; empty if this is the only one */
    size_t n_peers;
    /* the script starts on rank 0 only; the other ranks are reserved for its steps and save nothing
     */
    bool script_on_first;
    int64_t array;       /* the array that this task belongs to; 0 = none */
    int64_t array_index; /* index of this task; the following members describe the whole array */
    int64_t array_count, array_min, array_max, array_step;
    /* the script has #SBATCH lines or was submitted through a shim: also set SLURM_* variables */
    bool slurm_env;
    /* Files of the user, relative to cwd, with the patterns of job/pattern.h; may be NULL. The
     * output is shipped to belayd as well. */
    char *output, *error; /* error NULL: same file as output */
    char *input;          /* NULL for /dev/null */
    enum wire_open_mode open_mode;
    char *image; /* container image to run the script in; may be NULL */
    /* tasks per node, of cpus_per_task CPUs each, that the script starts itself with srun; 0 = not
     * sent */
    int64_t tasks;
    int64_t all_tasks;          /* on all nodes together, with script_on_first; 0 = not sent */
    int64_t cpus_per_task;      /* 0 = not sent */
    char cluster[64], pool[64]; /* for SLURM_CLUSTER_NAME and SLURM_JOB_PARTITION; "" if not sent */
    /* do not read or write its part of the store before the secrets have arrived */
    bool needs_secrets;
    /* the job asked for secrets: do not start it before they have arrived (secrets.of_job) */
    bool has_job_secrets;
};

/* A job that will run here next: its newest checkpoint is to be fetched into a kept directory. It
 * is only read from the store, without a fence, because the attempt still runs elsewhere. Once this
 * is no longer sent, what was fetched is of no use, unless an attempt of the job is desired. */
struct wire_prefetch {
    int64_t job;               /* 0 = nothing is to be fetched */
    int64_t attempt, sequence; /* newest checkpoint; sequence 0 = nothing (more) is to be fetched */
    int64_t from_attempt;      /* as in wire_desired_attempt */
    char store_uid[33];
    bool needs_secrets;
    struct wire_secrets secrets; /* of that attempt; sent in every message */
};

/* A user's session with an attempt (belay exec): claimed, and served while it is desired. A session
 * for which belayd answers 404 is over. */
struct wire_channel {
    int64_t id, job, attempt;
};

struct wire_desired {
    int64_t rev;
    int64_t sync_ms; /* how long the next poll may wait */
    /* a node silent for longer counts as lost; much later it shuts itself down */
    int64_t lease_ms;
    struct wire_desired_attempt *attempts;
    size_t n_attempts;
    /* jobs that the last status listed as kept and that have ended */
    struct wire_kept *unneeded;
    size_t n_unneeded;
    struct wire_prefetch prefetch;
    struct wire_channel *channels;
    size_t n_channels;
    int64_t task_loads_taken, gpu_loads_taken; /* highest acknowledged numbers; 0 = none */
};

/* ERR_INVALID unless it can be the name of a node, for people and in lists (job/hosts.h). */
int wire_node_name_check(const char *name, struct err *e);

/* Encoders append JSON to out. A number outside its range is a bug of the caller; a text that is
 * not UTF-8 or too long is repaired or cut. Decoders: ERR_INVALID with the path of the error; on
 * success the caller owns the arrays and texts (deinit). Unknown keys are tolerated, so that
 * versions can be mixed. */
void wire_join_encode(const struct wire_join *m, struct buf *out);
/* Also checks host, version, features and resources. */
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
