/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the messages of wire.h. A limit changed here changes on both sides; the sizes of
 * the structs' char arrays are limits too.
 */
#include "base/wire/wire.h"

#include "base/mem.h"
#include "base/names.h"
#include "job/ranges.h"
#include "base/wire/fields.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX INT64_MAX
#define TIME_MAX (INT64_C(1) << 53)
#define SIZE_MAX_BYTES (INT64_C(1) << 60)
#define CPUS_MAX 65536
#define GPUS_MAX 1024
#define MEMORY_MIB_MAX (INT64_C(1) << 40)
#define COUNT_MAX (INT64_C(1) << 40)
#define WAIT_MS_MAX 25000

static const char *const phase_names[] = {
    "starting", "restoring", "running", "saving", "ending", "ended", NULL};
static const char *const want_names[] = {"run", "save-stop", "stop", NULL};

/* Checks the names of an enum: one for each value, and NULL at `unknown`. The tables access enums
 * as int. */
#define WORDS(set, names, unknown)                                                                 \
    static_assert(sizeof(names) / sizeof(*(names)) == (unknown) + 1, "a name for each");           \
    static_assert(sizeof(enum set) == sizeof(int), "enum is int")

static_assert(
    sizeof(enum wire_phase) == sizeof(int) && sizeof(enum wire_want) == sizeof(int), "enum is int");

const char *const wire_method_names[] = {"", "none", "signal", "coop", "criu", NULL};
WORDS(wire_method, wire_method_names, WIRE_METHOD_UNKNOWN);

const char *const wire_end_names[] = {
    [WIRE_END_NONE] = "",
    [WIRE_END_SUCCEEDED] = "succeeded",
    [WIRE_END_FAILED] = "failed",
    [WIRE_END_CANCELLED] = "cancelled",
    [WIRE_END_TIMEOUT] = "timeout",
    [WIRE_END_RECLAIMED] = "reclaimed",
    [WIRE_END_NODE_LOST] = "node-lost",
    [WIRE_END_CAPACITY] = "capacity",
    [WIRE_END_EVICTED] = "evicted",
    [WIRE_END_BUDGET] = "budget",
    [WIRE_END_WINDOW] = "window",
    [WIRE_END_DRAINED] = "drained",
    [WIRE_END_GANG] = "gang",
    [WIRE_END_CHECKPOINTED] = "checkpointed",
    [WIRE_END_STORE] = "store",
    [WIRE_END_STORE_AWAY] = "store-away",
    [WIRE_END_DRILLED] = "drilled",
    [WIRE_END_DEPENDENCY] = "dependency",
    [WIRE_END_DEADLINE] = "deadline",
    [WIRE_END_UNKNOWN] = NULL,
};
WORDS(wire_end, wire_end_names, WIRE_END_UNKNOWN);

const char *const wire_open_mode_names[] = {"", "append", "truncate", NULL};
WORDS(wire_open_mode, wire_open_mode_names, WIRE_OPEN_UNKNOWN);

const char *const wire_criu_names[] = {"", "no", "cpu", "gpu", NULL};
WORDS(wire_criu, wire_criu_names, WIRE_CRIU_UNKNOWN);

const char *const wire_notice_kind_names[] = {"", "rebalance", "maintenance", "reclaim", NULL};
WORDS(wire_notice_kind, wire_notice_kind_names, WIRE_NOTICE_UNKNOWN);

const char *const wire_cause_names[] = {
    "", "periodic", "daily", "limit", "user", "program", "notice", "rebalance", "drain", NULL};
WORDS(wire_cause, wire_cause_names, WIRE_CAUSE_UNKNOWN);

static const struct wire_field join_fields[] = {
    WIRE_TEXT_REQ(wire_join, token),
    WIRE_TEXT_REQ(wire_join, csr_pem),
    WIRE_TEXT_REQ(wire_join, host),
    WIRE_TEXT_REQ(wire_join, version),
    WIRE_TEXT_OPT(wire_join, provider),
    WIRE_TEXT_OPT(wire_join, instance_id),
    WIRE_I64_REQ(wire_join, cpus, 1, CPUS_MAX),
    WIRE_I64_REQ(wire_join, memory_mib, 1, MEMORY_MIB_MAX),
    WIRE_I64_OPT(wire_join, gpus, 0, GPUS_MAX),
    WIRE_WORD_SHORT(wire_join, criu, wire_criu_names),
    WIRE_TEXT_OPT(wire_join, criu_text),
    WIRE_TEXT_OPT(wire_join, features),
    WIRE_TEXT_OPT(wire_join, resources),
    WIRE_TEXT_OPT(wire_join, gpu_model),
    WIRE_I64_OPT(wire_join, gpu_memory_mib, 0, MEMORY_MIB_MAX),
    WIRE_I64_OPT(wire_join, start_ms, 0, TIME_MAX),
    WIRE_END,
};
static const struct wire_table join_table = {sizeof(struct wire_join), join_fields};

static const struct wire_field joined_fields[] = {
    WIRE_I64_REQ(wire_joined, node, 1, ID_MAX),
    WIRE_TEXT_REQ(wire_joined, name),
    WIRE_TEXT_REQ(wire_joined, cluster),
    WIRE_TEXT_REQ(wire_joined, cert_pem),
    WIRE_TEXT_REQ(wire_joined, ca_pem),
    WIRE_TEXT_REQ(wire_joined, store),
    WIRE_END,
};
static const struct wire_table joined_table = {sizeof(struct wire_joined), joined_fields};

static const struct wire_field renew_fields[] = {
    WIRE_TEXT_REQ(wire_renew, csr_pem),
    WIRE_END,
};
static const struct wire_table renew_table = {sizeof(struct wire_renew), renew_fields};

static const struct wire_field checkpoint_fields[] = {
    WIRE_I64_REQ(wire_checkpoint, sequence, 1, ID_MAX),
    WIRE_I64_OPT(wire_checkpoint, bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_checkpoint, stored_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_checkpoint, took_ms, 0, TIME_MAX),
    WIRE_I64_OR_NONE(wire_checkpoint, pause_ms, 0, TIME_MAX),
    WIRE_I64_OR_NONE(wire_checkpoint, progress, 0, ID_MAX),
    WIRE_I64_REQ(wire_checkpoint, saved_at, 0, TIME_MAX),
    WIRE_WORD_OPT(wire_checkpoint, cause, wire_cause_names),
    WIRE_END,
};
static const struct wire_table checkpoint_table = {
    sizeof(struct wire_checkpoint), checkpoint_fields};

static const struct wire_field usage_fields[] = {
    WIRE_I64_OPT(wire_usage, cpu_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_usage, cpu_user_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_usage, cpu_milli, 0, COUNT_MAX),
    WIRE_I64_OPT(wire_usage, memory_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_usage, memory_peak_bytes, 0, SIZE_MAX_BYTES),
    WIRE_END,
};
static const struct wire_table usage_table = {sizeof(struct wire_usage), usage_fields};

static const struct wire_field attempt_status_fields[] = {
    WIRE_I64_REQ(wire_attempt_status, job, 1, ID_MAX),
    WIRE_I64_REQ(wire_attempt_status, attempt, 1, ID_MAX),
    WIRE_ENUM_REQ(wire_attempt_status, phase, phase_names),
    WIRE_I64_OR_NONE(wire_attempt_status, started_at, 0, TIME_MAX),
    WIRE_I64_OPT(wire_attempt_status, restored_attempt, 0, ID_MAX),
    WIRE_I64_OPT(wire_attempt_status, restored_sequence, 0, ID_MAX),
    WIRE_I64_OR_NONE(wire_attempt_status, restored_progress, 0, ID_MAX),
    WIRE_I64_OPT(wire_attempt_status, restore_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_attempt_status, damaged, 0, COUNT_MAX),
    WIRE_I64_OPT(wire_attempt_status, restored_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_attempt_status, reused_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OR_NONE(wire_attempt_status, first_done, 0, ID_MAX),
    WIRE_I64_OPT(wire_attempt_status, first_done_ms, 0, TIME_MAX),
    WIRE_I64_OR_NONE(wire_attempt_status, done, 0, ID_MAX),
    WIRE_I64_OR_NONE(wire_attempt_status, total, 0, ID_MAX),
    WIRE_STRUCT(wire_attempt_status, usage, &usage_table),
    WIRE_STRUCTS(wire_attempt_status, checkpoints, &checkpoint_table, WIRE_CHECKPOINTS_MAX),
    WIRE_I64_OPT(wire_attempt_status, failed_saves, 0, COUNT_MAX),
    WIRE_I64_OPT(wire_attempt_status, failed_restores, 0, COUNT_MAX),
    WIRE_TEXT_OPT(wire_attempt_status, save_error),
    WIRE_TEXT_OPT(wire_attempt_status, restore_error),
    WIRE_I64_OPT(wire_attempt_status, store_tries, 0, COUNT_MAX),
    WIRE_TEXT_OPT(wire_attempt_status, store_error),
    WIRE_WORD_OPT(wire_attempt_status, end, wire_end_names),
    WIRE_I64_OPT(wire_attempt_status, exit_code, 0, 255),
    WIRE_TEXT_OPT(wire_attempt_status, text),
    WIRE_BOOL_OPT(wire_attempt_status, user_refused),
    WIRE_I64_OPT(wire_attempt_status, output_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_attempt_status, kept_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(wire_attempt_status, secrets, 0, ID_MAX),
    WIRE_END,
};
const struct wire_table wire_attempt_status_table = {
    sizeof(struct wire_attempt_status), attempt_status_fields};

static const struct wire_field notice_fields[] = {
    WIRE_WORD_OPT(wire_notice, kind, wire_notice_kind_names),
    WIRE_I64_OR_NONE(wire_notice, deadline, 0, TIME_MAX),
    WIRE_I64_OPT(wire_notice, seen, 0, TIME_MAX),
    WIRE_END,
};
static const struct wire_table notice_table = {sizeof(struct wire_notice), notice_fields};

static const struct wire_field kept_fields[] = {
    WIRE_I64_REQ(wire_kept, job, 1, ID_MAX),
    WIRE_END,
};
static const struct wire_table kept_table = {sizeof(struct wire_kept), kept_fields};

static const struct wire_field prefetched_fields[] = {
    WIRE_I64_OPT(wire_prefetched, job, 0, ID_MAX),
    WIRE_I64_OPT(wire_prefetched, attempt, 0, ID_MAX),
    WIRE_I64_OPT(wire_prefetched, sequence, 0, ID_MAX),
    WIRE_TEXT_OPT(wire_prefetched, text),
    WIRE_END,
};
static const struct wire_table prefetched_table = {
    sizeof(struct wire_prefetched), prefetched_fields};

static const struct wire_field load_of_task_fields[] = {
    WIRE_I64_OPT(task_load, ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, cpu_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, busiest_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, blocked_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, stall_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, waited_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, memory_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, swap_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, read_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, write_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, faults, 0, COUNT_MAX),
    WIRE_I64_OPT(task_load, refaults, 0, COUNT_MAX),
    WIRE_I64_OPT(task_load, net_in_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, net_out_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, net_is_nodes, 0, 1),
    WIRE_I64_OPT(task_load, link_bytes_s, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(task_load, node_cpus, 0, CPUS_MAX),
    WIRE_I64_OPT(task_load, node_cpu_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, node_iowait_ms, 0, TIME_MAX),
    WIRE_I64_OPT(task_load, node_swapped_bytes, 0, SIZE_MAX_BYTES),
    WIRE_END,
};
static const struct wire_table load_of_task_table = {sizeof(struct task_load), load_of_task_fields};

static const struct wire_field load_of_gpu_fields[] = {
    WIRE_I64_OPT(gpu_load, ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, known_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, busy_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, memory_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(gpu_load, memory_total_bytes, 0, SIZE_MAX_BYTES),
    WIRE_I64_OPT(gpu_load, energy_mj, 0, COUNT_MAX),
    WIRE_I64_OPT(gpu_load, power_limit_mw, 0, COUNT_MAX),
    WIRE_I64_OPT(gpu_load, temperature_c, 0, 1000),
    WIRE_I64_OPT(gpu_load, clock_permille_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, thermal_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, power_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, slowed_ms, 0, TIME_MAX),
    WIRE_I64_OPT(gpu_load, ecc_corrected, 0, COUNT_MAX),
    WIRE_I64_OPT(gpu_load, ecc_uncorrected, 0, COUNT_MAX),
    WIRE_I64_OPT(gpu_load, processes, 0, COUNT_MAX),
    WIRE_END,
};
static const struct wire_table load_of_gpu_table = {sizeof(struct gpu_load), load_of_gpu_fields};

static const struct wire_field task_load_fields[] = {
    WIRE_I64_REQ(wire_task_load, no, 1, ID_MAX),
    WIRE_I64_REQ(wire_task_load, at, 0, TIME_MAX),
    WIRE_I64_REQ(wire_task_load, job, 1, ID_MAX),
    WIRE_I64_REQ(wire_task_load, attempt, 1, ID_MAX),
    WIRE_STRUCT(wire_task_load, load, &load_of_task_table),
    WIRE_END,
};
static const struct wire_table task_load_table = {sizeof(struct wire_task_load), task_load_fields};

static const struct wire_field gpu_load_fields[] = {
    WIRE_I64_REQ(wire_gpu_load, no, 1, ID_MAX),
    WIRE_I64_REQ(wire_gpu_load, at, 0, TIME_MAX),
    WIRE_TEXT_REQ(wire_gpu_load, gpu),
    WIRE_I64_OPT(wire_gpu_load, index, 0, GPUS_MAX),
    WIRE_BOOL_OPT(wire_gpu_load, is_slice),
    WIRE_I64_OPT(wire_gpu_load, job, 0, ID_MAX),
    WIRE_I64_OPT(wire_gpu_load, attempt, 0, ID_MAX),
    WIRE_STRUCT(wire_gpu_load, load, &load_of_gpu_table),
    WIRE_END,
};
static const struct wire_table gpu_load_table = {sizeof(struct wire_gpu_load), gpu_load_fields};

static const struct wire_field tail_fields[] = {
    WIRE_I64_REQ(wire_tail, job, 1, ID_MAX),
    WIRE_I64_REQ(wire_tail, attempt, 1, ID_MAX),
    WIRE_I64_OPT(wire_tail, offset, 0, SIZE_MAX_BYTES),
    WIRE_STRING_REQ(wire_tail, hex, 2 * WIRE_TAIL_MAX, WIRE_CHECK_HEX),
    WIRE_END,
};
static const struct wire_table tail_table = {sizeof(struct wire_tail), tail_fields};

static const struct wire_field status_fields[] = {
    WIRE_I64_REQ(wire_status, incarnation, 1, TIME_MAX),
    WIRE_I64_REQ(wire_status, seq, 1, ID_MAX),
    WIRE_I64_OPT(wire_status, have_rev, 0, ID_MAX),
    WIRE_I64_OPT(wire_status, wait_ms, 0, WAIT_MS_MAX),
    WIRE_I64_OPT(wire_status, load_milli, 0, COUNT_MAX),
    WIRE_I64_OPT(wire_status, cpu_mw, 0, WIRE_NODE_MW_MAX),
    WIRE_STRUCT(wire_status, notice, &notice_table),
    WIRE_WORD_SHORT(wire_status, criu, wire_criu_names),
    WIRE_TEXT_OPT(wire_status, criu_text),
    WIRE_TEXT_OPT(wire_status, features),
    WIRE_TEXT_OPT(wire_status, resources),
    WIRE_TEXT_OPT(wire_status, gpu_model),
    WIRE_TEXT_OPT(wire_status, disk_full),
    WIRE_TEXT_OPT(wire_status, fault),
    WIRE_I64_OPT(wire_status, gpu_memory_mib, 0, MEMORY_MIB_MAX),
    WIRE_STRUCTS(wire_status, attempts, &wire_attempt_status_table, WIRE_ATTEMPTS_MAX),
    WIRE_STRUCTS(wire_status, kept, &kept_table, WIRE_KEPT_MAX),
    WIRE_STRUCT(wire_status, prefetched, &prefetched_table),
    WIRE_STRUCTS(wire_status, task_loads, &task_load_table, WIRE_LOADS_MAX),
    WIRE_STRUCTS(wire_status, gpu_loads, &gpu_load_table, WIRE_LOADS_MAX),
    WIRE_STRUCTS(wire_status, tails, &tail_table, WIRE_TAILS_MAX),
    WIRE_END,
};
static const struct wire_table status_table = {sizeof(struct wire_status), status_fields};

static const struct wire_field env_fields[] = {
    WIRE_STRING_REQ(wire_env, name, WIRE_ENV_NAME_MAX, WIRE_CHECK_ENV_NAME),
    {WIRE_FIELD_STRING, WIRE_AT(wire_env, value), .required = true, .max = WIRE_ENV_VALUE_MAX,
        .secret = true},
    WIRE_END,
};
static const struct wire_table env_table = {sizeof(struct wire_env), env_fields};

static const struct wire_field secret_fields[] = {
    WIRE_STRING_REQ(wire_secret, name, SECRET_NAME_MAX - 1, WIRE_CHECK_NONE),
    WIRE_STRING_OPT(wire_secret, variable, SECRET_NAME_MAX - 1),
    WIRE_STRING_SECRET(wire_secret, value, 2 * SECRET_BYTES_MAX),
    WIRE_END,
};
static const struct wire_table secret_table = {sizeof(struct wire_secret), secret_fields};

static const struct wire_field secrets_fields[] = {
    WIRE_I64_OPT(wire_secrets, version, 0, ID_MAX),
    WIRE_STRINGS_SECRET(wire_secrets, checkpoint_keys, WIRE_KEYS_MAX, WIRE_KEY_HEX),
    WIRE_BOOL_OPT(wire_secrets, encrypts),
    WIRE_BOOL_OPT(wire_secrets, refuses_plain),
    WIRE_STRING_SECRET(wire_secrets, store_access_key, WIRE_STORE_KEY_MAX),
    WIRE_STRING_SECRET(wire_secrets, store_secret_key, WIRE_STORE_KEY_MAX),
    WIRE_STRING_SECRET(wire_secrets, store_token, WIRE_STORE_TOKEN_MAX),
    WIRE_I64_OPT(wire_secrets, store_left_ms, 0, TIME_MAX),
    WIRE_STRUCTS(wire_secrets, of_job, &secret_table, WIRE_JOB_SECRETS_MAX),
    WIRE_END,
};
static const struct wire_table secrets_table = {sizeof(struct wire_secrets), secrets_fields};

static const struct wire_field peer_fields[] = {
    WIRE_TEXT_OPT(wire_peer, name),
    WIRE_TEXT_OPT(wire_peer, address),
    WIRE_END,
};
static const struct wire_table peer_table = {sizeof(struct wire_peer), peer_fields};

static const struct wire_field desired_attempt_fields[] = {
    WIRE_I64_REQ(wire_desired_attempt, job, 1, ID_MAX),
    WIRE_I64_REQ(wire_desired_attempt, attempt, 1, ID_MAX),
    WIRE_ENUM_REQ(wire_desired_attempt, want, want_names),
    WIRE_WORD_OPT(wire_desired_attempt, reason, wire_end_names),
    WIRE_I64_OPT(wire_desired_attempt, stop_by, 0, TIME_MAX),
    WIRE_I64_OPT(wire_desired_attempt, acked_sequence, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, ckpt_every_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_desired_attempt, saves_asked, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, limit_ms, WIRE_NO_LIMIT, TIME_MAX),
    WIRE_BOOL_OPT(wire_desired_attempt, gang_ended),
    WIRE_STRUCT(wire_desired_attempt, secrets, &secrets_table),
    WIRE_STRING_SECRET(wire_desired_attempt, job_token, WIRE_JOB_TOKEN_MAX),
    WIRE_OPTIONS(wire_desired_attempt, options),
    WIRE_TEXT_OPT(wire_desired_attempt, user),
    WIRE_STRING_OPT(wire_desired_attempt, script, WIRE_SCRIPT_MAX),
    WIRE_STRINGS(wire_desired_attempt, args, WIRE_ARGS_MAX, WIRE_ARG_MAX),
    WIRE_STRUCTS(wire_desired_attempt, env, &env_table, WIRE_ENV_MAX),
    WIRE_TEXT_CHECKED(wire_desired_attempt, cwd, WIRE_CHECK_ABSOLUTE_PATH),
    WIRE_TEXT_OPT(wire_desired_attempt, workdir),
    WIRE_I64_OPT(wire_desired_attempt, cpus, 0, CPUS_MAX),
    WIRE_I64_OPT(wire_desired_attempt, gpus, 0, GPUS_MAX),
    WIRE_I64_OPT(wire_desired_attempt, memory_mib, 0, MEMORY_MIB_MAX),
    WIRE_BOOL_OPT(wire_desired_attempt, exclusive),
    WIRE_TEXT_OPT(wire_desired_attempt, resources),
    WIRE_I64_OPT(wire_desired_attempt, grace_signal, 0, 64),
    WIRE_I64_OPT(wire_desired_attempt, grace_ms, 0, TIME_MAX),
    WIRE_BOOL_OPT(wire_desired_attempt, grace_to_script),
    WIRE_WORD_SHORT(wire_desired_attempt, method, wire_method_names),
    WIRE_TEXT_OPT(wire_desired_attempt, store_uid),
    WIRE_TEXT_OPT(wire_desired_attempt, ckpt_identity),
    WIRE_I64_OPT(wire_desired_attempt, expect_attempt, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, expect_sequence, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, from_attempt, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, kill_wait_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_desired_attempt, store_wait_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_desired_attempt, save_ms, 0, TIME_MAX),
    WIRE_I64_OPT(wire_desired_attempt, rank, 0, WIRE_PEERS_MAX - 1),
    WIRE_STRUCTS(wire_desired_attempt, peers, &peer_table, WIRE_PEERS_MAX),
    WIRE_BOOL_OPT(wire_desired_attempt, script_on_first),
    WIRE_I64_OPT(wire_desired_attempt, array, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired_attempt, array_index, 0, RANGES_NUMBER_MAX),
    WIRE_I64_OPT(wire_desired_attempt, array_count, 0, RANGES_NUMBER_MAX + 1),
    WIRE_I64_OPT(wire_desired_attempt, array_min, 0, RANGES_NUMBER_MAX),
    WIRE_I64_OPT(wire_desired_attempt, array_max, 0, RANGES_NUMBER_MAX),
    WIRE_I64_OPT(wire_desired_attempt, array_step, 0, RANGES_NUMBER_MAX),
    WIRE_BOOL_OPT(wire_desired_attempt, slurm_env),
    WIRE_STRING_OPT(wire_desired_attempt, output, WIRE_PATH_MAX),
    WIRE_STRING_OPT(wire_desired_attempt, error, WIRE_PATH_MAX),
    WIRE_STRING_OPT(wire_desired_attempt, input, WIRE_PATH_MAX),
    WIRE_WORD_OPT(wire_desired_attempt, open_mode, wire_open_mode_names),
    WIRE_STRING_OPT(wire_desired_attempt, image, WIRE_IMAGE_MAX),
    WIRE_I64_OPT(wire_desired_attempt, tasks, 0, CPUS_MAX),
    WIRE_I64_OPT(wire_desired_attempt, all_tasks, 0, CPUS_MAX *WIRE_PEERS_MAX),
    WIRE_I64_OPT(wire_desired_attempt, cpus_per_task, 0, CPUS_MAX),
    WIRE_TEXT_OPT(wire_desired_attempt, cluster),
    WIRE_TEXT_OPT(wire_desired_attempt, pool),
    WIRE_BOOL_OPT(wire_desired_attempt, needs_secrets),
    WIRE_BOOL_OPT(wire_desired_attempt, has_job_secrets),
    WIRE_END,
};
static const struct wire_table desired_attempt_table = {
    sizeof(struct wire_desired_attempt), desired_attempt_fields};

static const struct wire_field prefetch_fields[] = {
    WIRE_I64_OPT(wire_prefetch, job, 0, ID_MAX),
    WIRE_I64_OPT(wire_prefetch, attempt, 0, ID_MAX),
    WIRE_I64_OPT(wire_prefetch, sequence, 0, ID_MAX),
    WIRE_I64_OPT(wire_prefetch, from_attempt, 0, ID_MAX),
    WIRE_TEXT_OPT(wire_prefetch, store_uid),
    WIRE_BOOL_OPT(wire_prefetch, needs_secrets),
    WIRE_STRUCT(wire_prefetch, secrets, &secrets_table),
    WIRE_END,
};
static const struct wire_table prefetch_table = {sizeof(struct wire_prefetch), prefetch_fields};

static const struct wire_field channel_fields[] = {
    WIRE_I64_REQ(wire_channel, id, 1, ID_MAX),
    WIRE_I64_REQ(wire_channel, job, 1, ID_MAX),
    WIRE_I64_REQ(wire_channel, attempt, 1, ID_MAX),
    WIRE_END,
};
static const struct wire_table channel_table = {sizeof(struct wire_channel), channel_fields};

static const struct wire_field desired_fields[] = {
    WIRE_I64_REQ(wire_desired, rev, 1, ID_MAX),
    WIRE_I64_REQ(wire_desired, sync_ms, 0, WAIT_MS_MAX),
    WIRE_I64_REQ(wire_desired, lease_ms, 1, TIME_MAX),
    WIRE_STRUCTS(wire_desired, attempts, &desired_attempt_table, WIRE_ATTEMPTS_MAX),
    WIRE_STRUCTS(wire_desired, unneeded, &kept_table, WIRE_KEPT_MAX),
    WIRE_STRUCT(wire_desired, prefetch, &prefetch_table),
    WIRE_STRUCTS(wire_desired, channels, &channel_table, WIRE_CHANNELS_MAX),
    WIRE_I64_OPT(wire_desired, task_loads_taken, 0, ID_MAX),
    WIRE_I64_OPT(wire_desired, gpu_loads_taken, 0, ID_MAX),
    WIRE_END,
};
static const struct wire_table desired_table = {sizeof(struct wire_desired), desired_fields};

#define WIRE_ENCODE(name)                                                                          \
    void wire_##name##_encode(const struct wire_##name *m, struct buf *out)                        \
    {                                                                                              \
        wire_table_encode(&name##_table, m, out);                                                  \
    }

#define WIRE_MESSAGE(name)                                                                         \
    WIRE_ENCODE(name)                                                                              \
                                                                                                   \
    int wire_##name##_decode(const char *p, size_t n, struct wire_##name *ret_m, struct err *e)    \
    {                                                                                              \
        return wire_table_decode(&name##_table, p, n, WIRE_MESSAGE_MAX, ret_m, e);                 \
    }

WIRE_ENCODE(join)
WIRE_MESSAGE(joined)
WIRE_MESSAGE(renew)
WIRE_MESSAGE(status)
WIRE_MESSAGE(desired)

int wire_node_name_check(const char *name, struct err *e)
{
    return name_check(name, sizeof(((struct wire_join *)0)->host) - 1, "a node's name", e);
}

static bool is_visible(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static int check_join(const struct wire_join *m, struct err *e)
{
    struct counts ignored;
    struct err why;
    const char *key = wire_node_name_check(m->host, &why) != 0          ? "name"
                      : features_check(m->features, &why) != 0          ? "features"
                      : counts_parse(m->resources, &ignored, &why) != 0 ? "resources"
                                                                        : NULL;
    if (!is_visible(m->version))
        return err_set(e, ERR_INVALID,
            "version: %s is not an agent's version: expected ASCII without control characters",
            str_show(m->version, (char[STR_SHOW_MAX]){0}));
    return !key ? 0
                : err_set(e, ERR_INVALID, "%s: %s: correct %s: in the node's belay-agent.yaml", key,
                      why.text, key);
}

int wire_join_decode(const char *p, size_t n, struct wire_join *ret_m, struct err *e)
{
    struct wire_join *m = mem_alloc(sizeof(*m));
    int rc = wire_table_decode(&join_table, p, n, WIRE_MESSAGE_MAX, m, e);
    if (rc == 0)
        rc = check_join(m, e);
    if (rc == 0)
        *ret_m = *m;
    explicit_bzero(m->token, sizeof(m->token));
    free(m);
    return rc;
}

void wire_status_deinit(struct wire_status *m)
{
    wire_table_deinit(&status_table, m);
}

void wire_desired_deinit(struct wire_desired *m)
{
    wire_table_deinit(&desired_table, m);
}

void wire_secrets_copy(const struct wire_secrets *m, struct wire_secrets *ret_m)
{
    *ret_m = *m;
    ret_m->checkpoint_keys =
        m->n_checkpoint_keys ? mem_array(m->n_checkpoint_keys, sizeof(*m->checkpoint_keys)) : NULL;
    for (size_t i = 0; i < m->n_checkpoint_keys; i++)
        ret_m->checkpoint_keys[i] = mem_strdup(m->checkpoint_keys[i]);
    ret_m->store_access_key = mem_strdup(m->store_access_key);
    ret_m->store_secret_key = mem_strdup(m->store_secret_key);
    ret_m->store_token = mem_strdup(m->store_token);
    ret_m->of_job = m->n_of_job ? mem_array(m->n_of_job, sizeof(*m->of_job)) : NULL;
    for (size_t i = 0; i < m->n_of_job; i++) {
        const struct wire_secret *s = &m->of_job[i];
        ret_m->of_job[i] = (struct wire_secret){.name = mem_strdup(s->name),
            .variable = mem_strdup(s->variable),
            .value = mem_strdup(s->value)};
    }
}

void wire_secrets_wipe(struct wire_secrets *m)
{
    wire_table_deinit(&secrets_table, m);
}

int wire_word_find(const char *const *names, const char *word)
{
    int i = 0;
    while (word && *word && names[i] && !str_eq(names[i], word))
        i++;
    return i;
}

const char *wire_word_name(const char *const *names, int value)
{
    return names[value] ? names[value] : "other";
}
