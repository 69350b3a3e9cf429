/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the messages of wire.h. A limit changed here is changed on both sides; the fields' own sizes
 * (char arrays) are limits too.
 */
#include "base/wire/wire.h"

#include "base/wire/fields.h"

#include <assert.h>

#define ID_MAX INT64_MAX
#define TIME_MAX (INT64_C(1) << 53)
#define SIZE_MAX_BYTES (INT64_C(1) << 60)
#define CPUS_MAX 65536
#define GPUS_MAX 1024
#define MEMORY_MIB_MAX (INT64_C(1) << 40)
#define COUNT_MAX (INT64_C(1) << 40)
#define WAIT_MS_MAX 25000

#define SIZE_OF(s, m) sizeof(((struct s *)0)->m)
#define AT(s, m) .key = #m, .offset = offsetof(struct s, m)

#define I64_REQ(s, m, lo, hi)                                                                                \
    {                                                                                                        \
        WIRE_FIELD_I64, AT(s, m), .required = true, .min = (lo), .max = (hi)                                 \
    }
/* 0 is not sent */
#define I64_OPT(s, m, lo, hi)                                                                                \
    {                                                                                                        \
        WIRE_FIELD_I64, AT(s, m), .min = (lo), .max = (hi)                                                   \
    }
/* WIRE_NONE is not sent */
#define I64_OR_NONE(s, m, lo, hi)                                                                            \
    {                                                                                                        \
        WIRE_FIELD_I64, AT(s, m), .min = (lo), .max = (hi), .absent = WIRE_NONE                              \
    }
#define BOOL_OPT(s, m)                                                                                       \
    {                                                                                                        \
        WIRE_FIELD_BOOL, AT(s, m)                                                                            \
    }
#define ENUM_REQ(s, m, n)                                                                                    \
    {                                                                                                        \
        WIRE_FIELD_ENUM, AT(s, m), .required = true, .names = (n)                                            \
    }
#define TEXT_REQ(s, m)                                                                                       \
    {                                                                                                        \
        WIRE_FIELD_TEXT, AT(s, m), .required = true, .size = SIZE_OF(s, m)                                   \
    }
#define TEXT_OPT(s, m)                                                                                       \
    {                                                                                                        \
        WIRE_FIELD_TEXT, AT(s, m), .size = SIZE_OF(s, m)                                                     \
    }
#define STRUCTS(s, m, table, limit)                                                                          \
    {                                                                                                        \
        WIRE_FIELD_STRUCTS, AT(s, m), .count_offset = offsetof(struct s, n_##m), .max_items = (limit),       \
                                      .sub = (table)                                                         \
    }
#define END                                                                                                  \
    {                                                                                                        \
        WIRE_FIELD_END                                                                                       \
    }

static const char *const phase_names[] = {
    "starting", "restoring", "running", "saving", "ending", "ended", NULL};
static const char *const want_names[] = {"run", "save-stop", "stop", NULL};

/* The tables write enums through int. */
static_assert(sizeof(enum wire_phase) == sizeof(int) && sizeof(enum wire_want) == sizeof(int), "enum is int");

static const struct wire_field join_fields[] = {
    TEXT_REQ(wire_join, token),
    TEXT_REQ(wire_join, csr_pem),
    TEXT_REQ(wire_join, host),
    TEXT_REQ(wire_join, version),
    TEXT_OPT(wire_join, provider),
    TEXT_OPT(wire_join, instance_id),
    I64_REQ(wire_join, cpus, 1, CPUS_MAX),
    I64_REQ(wire_join, memory_mib, 1, MEMORY_MIB_MAX),
    I64_OPT(wire_join, gpus, 0, GPUS_MAX),
    END,
};
static const struct wire_table join_table = {sizeof(struct wire_join), join_fields};

static const struct wire_field joined_fields[] = {
    I64_REQ(wire_joined, node, 1, ID_MAX),
    TEXT_REQ(wire_joined, name),
    TEXT_REQ(wire_joined, cluster),
    TEXT_REQ(wire_joined, cert_pem),
    TEXT_REQ(wire_joined, ca_pem),
    TEXT_REQ(wire_joined, store),
    END,
};
static const struct wire_table joined_table = {sizeof(struct wire_joined), joined_fields};

static const struct wire_field renew_fields[] = {
    TEXT_REQ(wire_renew, csr_pem),
    END,
};
static const struct wire_table renew_table = {sizeof(struct wire_renew), renew_fields};

static const struct wire_field checkpoint_fields[] = {
    I64_REQ(wire_checkpoint, sequence, 1, ID_MAX),
    I64_OPT(wire_checkpoint, bytes, 0, SIZE_MAX_BYTES),
    I64_OPT(wire_checkpoint, stored_bytes, 0, SIZE_MAX_BYTES),
    I64_OPT(wire_checkpoint, took_ms, 0, TIME_MAX),
    I64_OR_NONE(wire_checkpoint, progress, 0, ID_MAX),
    I64_REQ(wire_checkpoint, saved_at, 0, TIME_MAX),
    TEXT_OPT(wire_checkpoint, cause),
    END,
};
static const struct wire_table checkpoint_table = {sizeof(struct wire_checkpoint), checkpoint_fields};

static const struct wire_field attempt_status_fields[] = {
    I64_REQ(wire_attempt_status, job, 1, ID_MAX),
    I64_REQ(wire_attempt_status, attempt, 1, ID_MAX),
    ENUM_REQ(wire_attempt_status, phase, phase_names),
    I64_OR_NONE(wire_attempt_status, started_at, 0, TIME_MAX),
    I64_OPT(wire_attempt_status, restored_attempt, 0, ID_MAX),
    I64_OPT(wire_attempt_status, restored_sequence, 0, ID_MAX),
    I64_OR_NONE(wire_attempt_status, restored_progress, 0, ID_MAX),
    I64_OPT(wire_attempt_status, restore_ms, 0, TIME_MAX),
    I64_OPT(wire_attempt_status, damaged, 0, COUNT_MAX),
    I64_OR_NONE(wire_attempt_status, done, 0, ID_MAX),
    I64_OR_NONE(wire_attempt_status, total, 0, ID_MAX),
    STRUCTS(wire_attempt_status, checkpoints, &checkpoint_table, WIRE_CHECKPOINTS_MAX),
    I64_OPT(wire_attempt_status, failed_saves, 0, COUNT_MAX),
    TEXT_OPT(wire_attempt_status, save_error),
    TEXT_OPT(wire_attempt_status, end),
    I64_OPT(wire_attempt_status, exit_code, 0, 255),
    TEXT_OPT(wire_attempt_status, text),
    I64_OPT(wire_attempt_status, output_bytes, 0, SIZE_MAX_BYTES),
    END,
};
static const struct wire_table attempt_status_table = {
    sizeof(struct wire_attempt_status), attempt_status_fields};

static const struct wire_field notice_fields[] = {
    TEXT_OPT(wire_notice, kind),
    I64_OR_NONE(wire_notice, deadline, 0, TIME_MAX),
    I64_OPT(wire_notice, seen, 0, TIME_MAX),
    END,
};
static const struct wire_table notice_table = {sizeof(struct wire_notice), notice_fields};

static const struct wire_field status_fields[] = {
    I64_REQ(wire_status, incarnation, 1, TIME_MAX),
    I64_REQ(wire_status, seq, 1, ID_MAX),
    I64_OPT(wire_status, have_rev, 0, ID_MAX),
    I64_OPT(wire_status, wait_ms, 0, WAIT_MS_MAX),
    I64_OPT(wire_status, load_milli, 0, COUNT_MAX),
    {WIRE_FIELD_STRUCT, AT(wire_status, notice), .sub = &notice_table},
    STRUCTS(wire_status, attempts, &attempt_status_table, WIRE_ATTEMPTS_MAX),
    END,
};
static const struct wire_table status_table = {sizeof(struct wire_status), status_fields};

static const struct wire_field env_fields[] = {
    {WIRE_FIELD_STRING, AT(wire_env, name), .required = true, .max = WIRE_ENV_NAME_MAX,
        .check = WIRE_CHECK_ENV_NAME},
    {WIRE_FIELD_STRING, AT(wire_env, value), .required = true, .max = WIRE_ENV_VALUE_MAX},
    END,
};
static const struct wire_table env_table = {sizeof(struct wire_env), env_fields};

static const struct wire_field desired_attempt_fields[] = {
    I64_REQ(wire_desired_attempt, job, 1, ID_MAX),
    I64_REQ(wire_desired_attempt, attempt, 1, ID_MAX),
    ENUM_REQ(wire_desired_attempt, want, want_names),
    TEXT_OPT(wire_desired_attempt, reason),
    I64_OPT(wire_desired_attempt, acked_sequence, 0, ID_MAX),
    TEXT_OPT(wire_desired_attempt, name),
    TEXT_OPT(wire_desired_attempt, user),
    {WIRE_FIELD_STRING, AT(wire_desired_attempt, script), .max = WIRE_SCRIPT_MAX},
    {WIRE_FIELD_STRINGS, AT(wire_desired_attempt, args), .max = WIRE_ARG_MAX,
        .count_offset = offsetof(struct wire_desired_attempt, n_args), .max_items = WIRE_ARGS_MAX},
    STRUCTS(wire_desired_attempt, env, &env_table, WIRE_ENV_MAX),
    {WIRE_FIELD_TEXT, AT(wire_desired_attempt, cwd), .size = SIZE_OF(wire_desired_attempt, cwd),
        .check = WIRE_CHECK_ABSOLUTE_PATH},
    I64_OPT(wire_desired_attempt, cpus, 0, CPUS_MAX),
    I64_OPT(wire_desired_attempt, gpus, 0, GPUS_MAX),
    I64_OPT(wire_desired_attempt, memory_mib, 0, MEMORY_MIB_MAX),
    I64_OPT(wire_desired_attempt, time_limit_ms, 0, TIME_MAX),
    TEXT_OPT(wire_desired_attempt, method),
    I64_OPT(wire_desired_attempt, ckpt_signal, 0, 64),
    I64_OPT(wire_desired_attempt, ckpt_every_ms, 0, TIME_MAX),
    I64_OPT(wire_desired_attempt, ckpt_keep, 0, 1000000),
    I64_OPT(wire_desired_attempt, kill_wait_ms, 0, TIME_MAX),
    I64_OPT(wire_desired_attempt, save_ms, 0, TIME_MAX),
    BOOL_OPT(wire_desired_attempt, slurm_env),
    END,
};
static const struct wire_table desired_attempt_table = {
    sizeof(struct wire_desired_attempt), desired_attempt_fields};

static const struct wire_field desired_fields[] = {
    I64_REQ(wire_desired, rev, 1, ID_MAX),
    I64_REQ(wire_desired, sync_ms, 0, WAIT_MS_MAX),
    I64_REQ(wire_desired, lease_ms, 1, TIME_MAX),
    STRUCTS(wire_desired, attempts, &desired_attempt_table, WIRE_ATTEMPTS_MAX),
    END,
};
static const struct wire_table desired_table = {sizeof(struct wire_desired), desired_fields};

#define WIRE_MESSAGE(name)                                                                                   \
    void wire_##name##_encode(const struct wire_##name *m, struct buf *out)                                  \
    {                                                                                                        \
        wire_table_encode(&name##_table, m, out);                                                            \
    }                                                                                                        \
                                                                                                             \
    int wire_##name##_decode(const char *p, size_t n, struct wire_##name *ret_m, struct err *e)              \
    {                                                                                                        \
        return wire_table_decode(&name##_table, p, n, WIRE_MESSAGE_MAX, ret_m, e);                           \
    }

WIRE_MESSAGE(join)
WIRE_MESSAGE(joined)
WIRE_MESSAGE(renew)
WIRE_MESSAGE(status)
WIRE_MESSAGE(desired)

void wire_status_deinit(struct wire_status *m)
{
    wire_table_deinit(&status_table, m);
}

void wire_desired_deinit(struct wire_desired *m)
{
    wire_table_deinit(&desired_table, m);
}
