/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_trial.h"

#include "agent/criu/criu_cuda.h"
#include "agent/criu/criu_sandbox.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET_BYTES 16
#define SECRET_MAX (2 * SECRET_BYTES + 1)
#define PAUSE_MS 20 /* pause of the program between two checks for "go" */

/* Files in the sandbox. The test creates "go", the program the others. */
#define READY CRIU_SANDBOX "/ready"
#define GO CRIU_SANDBOX "/go"
#define ANSWER CRIU_SANDBOX "/answer"
#define WHY CRIU_SANDBOX "/why" /* reason why the program with GPUs ended */

static const char shell_subject[] = ": >" READY "\n"
                                    "while [ ! -e " GO " ]; do sleep 0.05; done\n"
                                    /* SIGPIPE kills the program if the reader has ended */
                                    "echo back\n"
                                    "echo \"$1\" >" ANSWER ".new && mv " ANSWER ".new " ANSWER "\n";

/* ---- in the agent ---- */

static int attempt(const struct criu *c, const char *kind, struct err *e)
{
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n <= 0)
        return err_errno(e, errno, "finding our own program");
    own[n] = '\0';
    const char *const argv[] = {own, "criu-trial", c->path, kind, NULL};
    return criu_call(
        argv, "saving and restoring a program on trial", NULL, CRIU_TRIAL_MS, NULL, 0, e);
}

static void withdraw(struct criu *c, enum wire_criu can, const char *what, const struct err *e)
{
    char *text = mem_printf("%s; %s%s", c->text, what, e->text);
    STR_COPY(c->text, text);
    c->can = can;
    free(text);
}

void criu_trial(struct criu *c)
{
    struct err e;
    if (c->can != WIRE_CRIU_NO && attempt(c, "cpu", &e))
        withdraw(c, WIRE_CRIU_NO, "", &e);
    if (c->can == WIRE_CRIU_GPU && attempt(c, "gpu", &e))
        withdraw(c, WIRE_CRIU_CPU, "not for programs with GPUs: ", &e);
}

/* ---- the sandbox's first process ---- */

/* Makes the directory for images and an empty action script in the sandbox. */
static int prepare(struct err *e)
{
    static const char hook[] = "#!/bin/sh\n";
    int rc = fs_mkdirs(CRIU_IMAGES "/dump", 0700, e);
    return rc ? rc : fs_write_atomic(CRIU_SANDBOX "/hook", hook, sizeof(hook) - 1, 0700, e);
}

static int explain(const char *path, struct err *e)
{
    struct buf why = {0};
    struct err none;
    err_set(e, ERR_IO, "the program on trial ended without making %s", path);
    if (fs_read(WHY, ERR_TEXT_MAX, &why, &none) == 0)
        err_set(e, ERR_IO, "%s", buf_str(&why));
    buf_deinit(&why);
    return e->kind;
}

/* Waits until the file exists or the program has ended. */
static int wait_file(int watch, const char *path, pid_t subject, int64_t deadline_ms, struct err *e)
{
    char events[4096] __attribute__((aligned(8)));
    struct pollfd p = {.fd = watch, .events = POLLIN};
    while (!fs_exists(path)) {
        int64_t left = deadline_ms - clock_system_ms();
        if (left <= 0)
            return err_set(e, ERR_TIMEOUT, "the program on trial did not make %s in time", path);
        if (waitpid(subject, NULL, WNOHANG) == subject && !fs_exists(path))
            return explain(path, e);
        if (poll(&p, 1, left < 1000 ? (int)left : 1000) > 0 &&
            read(watch, events, sizeof(events)) < 0)
            return err_errno(e, errno, "watching " CRIU_SANDBOX);
    }
    return 0;
}

/* Makes a pipe for the program's output, as tasks have one. ret_number: its inode number. */
static int make_pipe(int ends[2], int64_t *ret_number, struct err *e)
{
    struct stat st;
    if (pipe2(ends, O_CLOEXEC) < 0 || fstat(ends[1], &st) < 0)
        return err_errno(e, errno, "making a pipe");
    *ret_number = (int64_t)st.st_ino;
    return 0;
}

static void run_subject(const char *kind, const char *secret, int output)
{
    int null = open("/dev/null", O_RDWR);
    if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(126);
    close_range(3, ~0U, 0);
    if (str_eq(kind, "cpu"))
        execl("/bin/sh", "sh", "-c", shell_subject, "sh", secret, (char *)NULL);
    else
        execl("/proc/self/exe", "belay-agent", "criu-subject", secret, (char *)NULL);
    _exit(127);
}

/* Kills all other processes of the sandbox, so that their pids are free again. */
static void kill_all(void)
{
    assert(getpid() == 1);
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
}

static int dump_and_kill(const struct criu *c, struct err *e)
{
    const char **argv = criu_dump_argv(c, CRIU_DUMP_STOPPED, false, CRIU_TRIAL_MS);
    int rc = criu_call(argv, "criu dump", CRIU_SANDBOX "/dump.log", CRIU_TRIAL_MS, NULL, 0, e);
    free(argv);
    kill_all();
    return rc;
}

/* output: replaces the pipe with the number `before`. */
static int restore_program(const struct criu *c, int64_t before, int output, struct err *e)
{
    const char **argv = criu_restore_argv(c, before);
    int rc = criu_call_restore(argv, output, CRIU_SANDBOX "/restore.log", CRIU_TRIAL_MS, e);
    free(argv);
    return rc;
}

static int compare(const char *secret, struct err *e)
{
    struct buf answer = {0};
    int rc = fs_read(ANSWER, SECRET_MAX, &answer, e);
    if (!rc && (!str_starts(buf_str(&answer), secret) || answer.len != strlen(secret) + 1))
        rc =
            err_set(e, ERR_CORRUPT, "the program on trial came back with other memory than it had");
    buf_deinit(&answer);
    return rc;
}

static int save_and_restore(const struct criu *c, const char *kind, struct err *e)
{
    char secret[SECRET_MAX];
    int64_t deadline = clock_system_ms() + CRIU_TRIAL_MS, before, after;
    /* the program prints to the first one, and after the restore to the second */
    int first[2], second[2];
    random_hex(SECRET_BYTES, secret);
    if (prepare(e))
        return e->kind;
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0 || inotify_add_watch(watch, CRIU_SANDBOX, IN_CREATE | IN_MOVED_TO) < 0)
        return err_errno(e, errno, "watching " CRIU_SANDBOX);
    if (make_pipe(first, &before, e) || make_pipe(second, &after, e))
        return e->kind;
    if (criu_sandbox_prepare_pid() < 0)
        return err_errno(e, errno, "choosing a process number");
    pid_t subject = fork();
    if (subject == 0)
        run_subject(kind, secret, first[1]);
    if (subject < 0)
        return err_errno(e, errno, "starting a process");
    int rc = wait_file(watch, READY, subject, deadline, e);
    if (!rc)
        rc = dump_and_kill(c, e);
    if (!rc)
        rc = restore_program(c, before, second[1], e);
    if (!rc)
        rc = fs_write_atomic(GO, "", 0, 0600, e);
    if (!rc)
        rc = wait_file(watch, ANSWER, subject, deadline, e);
    return rc ? rc : compare(secret, e);
}

static int run_first(const char *criu, const char *kind)
{
    struct criu c = {0};
    struct err e;
    STR_COPY(c.path, criu);
    int rc = criu_sandbox_enter(NULL) < 0 ? err_errno(&e, errno, "making namespaces for it")
                                          : save_and_restore(&c, kind, &e);
    if (rc)
        fprintf(stderr, "Error (belay): %s\n", e.text);
    return rc ? 1 : 0;
}

int criu_trial_main(int argc, char **argv)
{
    int status = 0;
    if (argc != 4)
        return 2;
    pid_t first = criu_sandbox_separate() < 0 ? -1 : fork();
    if (first == 0)
        _exit(run_first(argv[2], argv[3]));
    if (first < 0)
        fprintf(stderr, "Error (belay): no namespaces can be made: %s\n", strerror(errno));
    while (first > 0 && waitpid(first, &status, 0) < 0 && errno == EINTR)
        continue;
    _exit(first > 0 && WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 1); /* as in criu_sandbox_dump_main */
}

/* ---- the program with GPUs ---- */

static int write_reason(const struct err *e)
{
    struct err ignored;
    fs_write_atomic(WHY, e->text, strlen(e->text), 0600, &ignored);
    return 1;
}

int criu_subject_main(int argc, char **argv)
{
    char back[SECRET_MAX + 1];
    struct err e;
    if (argc != 3 || strlen(argv[2]) + 1 != SECRET_MAX)
        return 2;
    struct criu_cuda *cuda = criu_cuda_open(argv[2], SECRET_MAX, &e);
    if (!cuda || fs_write_atomic(READY, "", 0, 0600, &e))
        return write_reason(&e);
    explicit_bzero(argv[2], SECRET_MAX - 1); /* from here on the text is only in the GPUs */
    while (!fs_exists(GO))
        poll(NULL, 0, PAUSE_MS);
    int rc = criu_cuda_read(cuda, back, SECRET_MAX, &e);
    if (rc == 0) {
        back[SECRET_MAX - 1] = '\n';
        rc = fs_write_atomic(ANSWER, back, SECRET_MAX, 0600, &e);
    }
    criu_cuda_close(cuda);
    return rc ? write_reason(&e) : 0;
}
