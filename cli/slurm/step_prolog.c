/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_prolog.h. The prolog is killed when the task's process ends, however that happens; its
 * standard error is the task's.
 */
#include "cli/slurm/step_prolog.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX 65536

static _Noreturn void exec_prolog(const struct step *s, pid_t task, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != task)
        _exit(1);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(1);
    execl(s->prolog, s->prolog, (char *)NULL);
    slurm_error(s->program, "--task-prolog: %s cannot be run: %s", s->prolog, strerror(errno));
    _exit(1);
}

/* Reads to EOF; bytes beyond the limit are dropped. */
static void read_output(int fd, struct buf *output)
{
    ssize_t n;
    while ((n = read(fd, buf_reserve(output, 4096), 4096)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && output->len <= OUTPUT_MAX)
            buf_commit(output, (size_t)n);
}

static void apply_line(char *line)
{
    char *value;
    if (str_starts(line, "export ") && (value = strchr(line + 7, '=')) && value > line + 7) {
        *value = '\0';
        setenv(line + 7, value + 1, 1);
    } else if (str_starts(line, "unset ") && line[6] && !strchr(line + 6, '=')) {
        unsetenv(line + 6);
    } else if (str_starts(line, "print ")) {
        puts(line + 6);
    }
}

void step_prolog_apply(const char *output, size_t n)
{
    char *text = mem_strndup(output, n), *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        apply_line(line);
    fflush(stdout);
    free(text);
}

int step_prolog(const struct step *s)
{
    struct buf output = {0};
    int out[2], status = 0, code;
    pid_t task = getpid(), pid;
    if (pipe2(out, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        slurm_error(s->program, "--task-prolog: %s cannot be run: %s", s->prolog, strerror(errno));
        return 1;
    }
    if (pid == 0)
        exec_prolog(s, task, out[1]);
    close(out[1]);
    read_output(out[0], &output);
    close(out[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (output.len <= OUTPUT_MAX)
        step_prolog_apply(buf_str(&output), output.len);
    else
        slurm_error(s->program,
            "--task-prolog: %s printed more than %d bytes, so the task is not started", s->prolog,
            OUTPUT_MAX);
    if (code != 0)
        slurm_error(s->program,
            "--task-prolog: %s ended with exit code %d, so the task is not started", s->prolog,
            code);
    code = code == 0 && output.len > OUTPUT_MAX ? 1 : code;
    buf_deinit(&output);
    return code;
}
