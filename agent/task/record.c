/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/record.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/wire/fields.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MODE 0600
#define START_FILE_MAX 16384

static const char *const cause_names[] = {
    "by-itself", "stopped", "timeout", "no-exec", "shutdown", "lost", "no-restore", "closed", NULL};
static const char *const maker_names[] = {"", "nvidia", "amd", NULL};
static_assert(sizeof(enum exit_cause) == sizeof(int) && sizeof(enum gpu_maker) == sizeof(int),
    "the tables write enums through int");

static const struct wire_field state_fields[] = {
    /* the key stays "told": tasks outlive an upgrade of the agent, and so do their state.json */
    {WIRE_FIELD_STRUCT, .key = "told", .offset = offsetof(struct task_state, reported),
        .required = true, .sub = &wire_attempt_status_table},
    WIRE_BOOL_OPT(task_state, prepared),
    WIRE_BOOL_OPT(task_state, saving),
    WIRE_I64_OPT(task_state, sequence, 0, INT64_MAX),
    WIRE_I64_OPT(task_state, saving_sequence, 0, INT64_MAX),
    WIRE_I64_OPT(task_state, saving_commit, 0, INT64_MAX),
    WIRE_I64_OR_NONE(task_state, last_saved_at, 0, INT64_MAX),
    WIRE_I64_OPT(task_state, saves_asked, 0, INT64_MAX),
    WIRE_I64_OPT(task_state, limit_ms, WIRE_NO_LIMIT, INT64_MAX),
    WIRE_BOOL_OPT(task_state, needs_secrets),
    WIRE_TEXT_OPT(task_state, criu),
    WIRE_WORD_SHORT(task_state, gpu_maker, maker_names),
    WIRE_TEXT_OPT(task_state, gpus),
    WIRE_I64_OPT(task_state, refused_attempt, 0, INT64_MAX),
    WIRE_I64_OPT(task_state, refused_sequence, 0, INT64_MAX),
    WIRE_WORD_OPT(task_state, stop, wire_end_names),
    WIRE_TEXT_OPT(task_state, stop_text),
    WIRE_END,
};
static const struct wire_table state_table = {sizeof(struct task_state), state_fields};

static const struct wire_field exit_fields[] = {
    WIRE_ENUM_REQ(task_exit, cause, cause_names),
    WIRE_I64_REQ(task_exit, code, 0, 255),
    WIRE_I64_OPT(task_exit, signal, 0, 64),
    WIRE_I64_REQ(task_exit, ended_at, 0, INT64_MAX),
    WIRE_I64_OPT(task_exit, memory_peak, 0, INT64_C(1) << 60),
    WIRE_I64_OPT(task_exit, cpu_ms, 0, INT64_C(1) << 53),
    WIRE_I64_OPT(task_exit, cpu_user_ms, 0, INT64_C(1) << 53),
    WIRE_TEXT_OPT(task_exit, text),
    WIRE_END,
};
static const struct wire_table exit_table = {sizeof(struct task_exit), exit_fields};

static const struct wire_field usage_files_fields[] = {
    WIRE_TEXT_OPT(usage_files, cpu),
    WIRE_TEXT_OPT(usage_files, memory),
    WIRE_TEXT_OPT(usage_files, peak),
    WIRE_END,
};
static const struct wire_table usage_files_table = {sizeof(struct usage_files), usage_files_fields};

static const struct wire_field start_fields[] = {
    WIRE_I64_REQ(task_start, started_at, 0, INT64_MAX),
    WIRE_I64_REQ(task_start, init_pid, 0, INT32_MAX),
    WIRE_I64_REQ(task_start, init_ticks, 0, INT64_MAX),
    WIRE_STRUCT(task_start, usage, &usage_files_table),
    WIRE_END,
};
static const struct wire_table start_table = {sizeof(struct task_start), start_fields};

static int read_table(const struct wire_table *t, const char *path, void *ret_m, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, WIRE_MESSAGE_MAX, &text, e);
    if (!rc) {
        rc = wire_table_decode(t, buf_str(&text), text.len, WIRE_MESSAGE_MAX, ret_m, e);
        if (rc)
            err_wrap(e, "%s", path);
    }
    buf_deinit(&text);
    return rc;
}

static int write_table(const struct wire_table *t, const char *path, const void *m, struct err *e)
{
    struct buf text = {0};
    wire_table_encode(t, m, &text);
    int rc = record_put(path, text.data, text.len, RECORD_MODE, e);
    buf_deinit(&text);
    return rc;
}

static int create(const char *path, mode_t mode)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
}

int record_put_new(const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
    assert((mode & 077) == 0); /* so that the umask has no effect */
    int fd = create(path, mode);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0) /* left by an agent that was killed */
        fd = create(path, mode);
    if (fd < 0)
        return err_errno(e, errno, "creating %s", path);
    int rc = fs_write_all(fd, p, n, e);
    close(fd);
    return rc;
}

int record_put(const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
    char *temp = mem_printf("%s.new", path);
    int rc = record_put_new(temp, p, n, mode, e);
    if (!rc && rename(temp, path) < 0)
        rc = err_errno(e, errno, "renaming %s to %s", temp, path);
    free(temp);
    return rc;
}

bool record_exists(const char *dir, const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    bool has = fs_exists(path);
    free(path);
    return has;
}

int record_read_spec(const char *path, struct wire_desired *ret_spec, struct err *e)
{
    struct buf text = {0};
    struct wire_desired spec;
    int rc = fs_read(path, WIRE_MESSAGE_MAX, &text, e);
    if (!rc)
        rc = wire_desired_decode(buf_str(&text), text.len, &spec, e);
    if (!rc && spec.n_attempts != 1) {
        rc = err_set(e, ERR_INVALID, "%s: expected one attempt, found %zu", path, spec.n_attempts);
        wire_desired_deinit(&spec);
    }
    if (!rc)
        *ret_spec = spec;
    buf_deinit(&text);
    return rc;
}

int record_write_spec(const char *path, const struct wire_desired_attempt *spec, struct err *e)
{
    struct wire_desired_attempt one = *spec;
    struct wire_desired d = {.rev = 1, .lease_ms = 1, .attempts = &one, .n_attempts = 1};
    struct buf text = {0};
    one.secrets = (struct wire_secrets){0};
    one.job_token = NULL;
    wire_desired_encode(&d, &text);
    int rc = record_put_new(path, text.data, text.len, RECORD_MODE, e);
    if (rc)
        unlink(path);
    buf_deinit(&text);
    return rc;
}

int record_read_state(const char *path, struct task_state *ret_state, struct err *e)
{
    int rc = read_table(&state_table, path, ret_state, e);
    if (!rc && ret_state->stop == WIRE_END_UNKNOWN) /* a newer agent's word: cannot be written */
        ret_state->stop = WIRE_END_CANCELLED;
    return rc;
}

int record_write_state(const char *path, const struct task_state *state, struct err *e)
{
    return write_table(&state_table, path, state, e);
}

void record_deinit_state(struct task_state *state)
{
    wire_table_deinit(&state_table, state);
}

int record_read_exit(const char *path, struct task_exit *ret_exit, struct err *e)
{
    return read_table(&exit_table, path, ret_exit, e);
}

int record_write_exit(const char *path, const struct task_exit *exit, bool sync, struct err *e)
{
    struct buf text = {0};
    wire_table_encode(&exit_table, exit, &text);
    int rc = sync ? fs_write_atomic(path, text.data, text.len, RECORD_MODE, e)
                  : record_put(path, text.data, text.len, RECORD_MODE, e);
    buf_deinit(&text);
    return rc;
}

int record_read_start(const char *path, struct task_start *ret_start, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, START_FILE_MAX, &text, e);
    char *line = strchr(buf_str(&text), '\n'), *end = line ? strchr(line + 1, '\n') : NULL;
    if (!rc && !end)
        rc = err_set(e, ERR_NOT_FOUND, "%s does not say that the program was started", path);
    if (!rc) {
        rc = wire_table_decode(
            &start_table, line + 1, (size_t)(end - line) - 1, START_FILE_MAX, ret_start, e);
        if (rc)
            err_wrap(e, "%s", path);
    }
    buf_deinit(&text);
    return rc;
}

int record_add_start(int fd, const struct task_start *start, struct err *e)
{
    struct buf text = {0};
    wire_table_encode(&start_table, start, &text);
    buf_adds(&text, "\n");
    int rc = fs_write_all(fd, text.data, text.len, e);
    buf_deinit(&text);
    return rc;
}

void record_init_state(struct task_state *ret_state, int64_t job, int64_t attempt)
{
    *ret_state = (struct task_state){
        .reported = {.job = job,
            .attempt = attempt,
            .started_at = WIRE_NONE,
            .restored_progress = WIRE_NONE,
            .first_done = WIRE_NONE,
            .done = WIRE_NONE,
            .total = WIRE_NONE},
        .last_saved_at = WIRE_NONE,
    };
}
