/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a task's program: the log that is shipped, the user's own files, and standard input.
 */
#include "agent/supervisor/supervisor_private.h"

#include "agent/criu/criu_sandbox.h"
#include "agent/supervisor/env.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_log(const char *name, struct err *e)
{
    int fd = open(name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_errno(e, errno, "opening %s", name) : fd;
}

static int open_reader(const char *name, struct err *e)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? err_errno(e, errno, "opening %s", name) : fd;
}

/* Several nodes cannot write one file: if the pattern has no %-sequence that differs per node, only
 * the first node writes it. */
static int expand(const struct supervisor *s, const char *pattern, char **ret_name, struct err *e)
{
    const struct pattern_values v = {.job = s->task->job,
        .array = s->task->array,
        .index = s->task->array_index,
        .name = s->task->options.name,
        .user = s->user.name,
        .node = s->node,
        .rank = s->task->rank,
        .restarts = s->task->attempt - 1};
    if (!pattern || supervisor_has_no_script(s) ||
        (s->task->rank > 0 && !pattern_has_rank(pattern)))
        return 0;
    return pattern_expand(pattern, &v, ret_name, e);
}

static bool truncates(const struct wire_desired_attempt *t)
{
    return t->open_mode == WIRE_OPEN_TRUNCATE ||
           (t->open_mode == WIRE_OPEN_UNSAID && t->attempt == 1);
}

/* Sets up the copies when errors have a separate file: see output_writer.h. */
static int split(struct supervisor *s, int output, int *ret_out, int *ret_error, struct err *e)
{
    int fds[4] = {open_log("stdout.log", e), open_log("stderr.log", e),
        open_reader("stdout.log", e), open_reader("stderr.log", e)};
    for (int i = 0; i < 4; i++)
        if (fds[i] < 0)
            return fds[i];
    s->writer.copies[0] =
        (struct output_writer_copy){fds[2], s->output, truncates(s->task), output};
    s->writer.copies[1] = (struct output_writer_copy){fds[3], s->error, truncates(s->task), output};
    *ret_out = fds[0];
    *ret_error = fds[1];
    return 0;
}

/* A pipe with a name that the task's user may write to, kept open at both ends. */
static int make_pipe(const struct supervisor *s, const char *name)
{
    unlink(name);
    if (mkfifo(name, 0600) < 0 || (s->user.is_other && lchown(name, s->user.uid, s->user.gid) < 0))
        return -1;
    return open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

/* Standard input for belay attach. It does not end between two writers, until one of them ends it
 * (supervise_loop.h). */
static int open_stdin(struct supervisor *s, struct err *e)
{
    s->loop.input = make_pipe(s, TASK_STDIN);
    s->loop.input_end = s->loop.input < 0 ? -1 : make_pipe(s, TASK_STDIN_END);
    if (s->loop.input_end < 0)
        return err_errno(e, errno, "making the task's standard input");
    free(s->input);
    s->input = mem_printf("%s/" TASK_STDIN, s->dir);
    return 0;
}

static int open_pump(struct supervisor *s, int *out, int *error, struct err *e)
{
    const int files[OUTPUT_STREAMS] = {*out, *error};
    int ends[OUTPUT_STREAMS];
    size_t n = *out == *error ? 1 : 2;
    s->pump.shares = s->common->shares;
    s->pump.writer = &s->writer;
    s->pump.mask = s->mask;
    s->pump.user = s->user.uid;
    s->pump.stall_ms = OUTPUT_STALL_MS;
    int rc = output_pump_open(&s->pump, files, n, s->user.uid, s->user.gid, ends, e);
    if (!rc && s->task->method == WIRE_METHOD_CRIU)
        rc = criu_sandbox_note_output(ends[0], e);
    if (rc)
        return rc;
    *out = ends[0];
    *error = ends[n - 1];
    return 0;
}

static int open_files(struct supervisor *s, int *ret_out, int *ret_error, struct err *e)
{
    int rc = expand(s, s->task->output, &s->output, e), output = open_log("output.log", e);
    rc = rc ? rc : expand(s, s->task->error, &s->error, e);
    rc = rc ? rc : expand(s, s->task->input, &s->input, e);
    if (!rc && str_eq(s->input, WIRE_INPUT_OPEN))
        rc = open_stdin(s, e);
    if (rc || output < 0)
        return rc ? rc : output;
    *ret_out = *ret_error = s->pump.log = output;
    s->writer.user = &s->user;
    s->writer.cwd = supervisor_work_dir(s);
    s->writer.open_wait_ms = FILE_WAIT_MS;
    s->writer.copies[0] = s->writer.copies[1] = (struct output_writer_copy){.from = -1, .also = -1};
    bool apart = s->error && !(s->output && str_eq(s->error, s->output));
    if (apart) {
        rc = split(s, output, ret_out, ret_error, e);
    } else if (s->output) {
        int from = open_reader("output.log", e);
        s->writer.copies[0] = (struct output_writer_copy){from, s->output, truncates(s->task), -1};
        rc = from < 0 ? from : 0;
    }
    return rc || s->writer.copies[0].from < 0 ? rc : output_writer_start(&s->writer, e);
}

int supervisor_open_files(struct supervisor *s, int *ret_out, int *ret_error, struct err *e)
{
    int rc = open_files(s, ret_out, ret_error, e);
    return rc ? rc : open_pump(s, ret_out, ret_error, e);
}
