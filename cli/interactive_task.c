/* SPDX-License-Identifier: Apache-2.0
 *
 * An interactive job from inside (see interactive.h). The guest opens the pipe for writing when it
 * begins, sends one byte then and the command's exit code as another; closing it without the second
 * byte means that the session broke.
 *
 * Signals sent to all processes of the task: the host waits for the guest's last byte, and the
 * guest for the command's end. A shell on a terminal ignores SIGTERM, so after a while it gets
 * SIGHUP.
 */
#include "cli/interactive.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COME_MS 120000 /* limit for the submitter to connect */
#define CHECK_MS 1000  /* interval for checking for a notice */
#define HANG_UP_MS 2000
#define BEGUN 'b'

/* Host and guest both create the pipe if it does not exist. An open without O_NONBLOCK waits for
 * the other end. */
static int open_pipe(int flags)
{
    const char *control = getenv("BELAY_CONTROL_DIR");
    if (!control) {
        cli_error("belay run --host and --guest work only inside a job that belay run --tty "
                  "submitted: BELAY_CONTROL_DIR is not set");
        return -1;
    }
    char *path = mem_printf("%s/guest", control);
    int fd = mkfifo(path, 0600) == 0 || errno == EEXIST ? open(path, flags | O_CLOEXEC | O_NOFOLLOW)
                                                        : -1;
    if (fd < 0)
        cli_error("cannot open the pipe %s: %s", path, strerror(errno));
    free(path);
    return fd;
}

/* ---- the script ---- */

int interactive_host(void)
{
    const int passed_over[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++)
        signal(passed_over[i], SIG_IGN);
    int fd = open_pipe(O_RDONLY | O_NONBLOCK), n = 0;
    if (fd < 0)
        return CLI_FAILED;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    unsigned char received[2];
    int64_t until = clock_system_ms() + COME_MS;
    while (n < 2) {
        int64_t left = until - clock_system_ms();
        int ready = n > 0 ? poll(&p, 1, -1) : left > 0 ? poll(&p, 1, (int)left) : 0;
        ssize_t got = ready > 0 ? read(fd, received + n, sizeof(received) - (size_t)n) : -1;
        if (got > 0)
            n += (int)got;
        else if (got == 0)
            break; /* the guest is gone */
        else if (ready == 0) {
            cli_error("no connection to the job within %d seconds", COME_MS / 1000);
            return CLI_FAILED;
        }
    }
    close(fd);
    if (n == 2)
        return received[1];
    cli_error("the session with the submitter was cut off");
    return INTERACTIVE_BROKE;
}

/* ---- the command ---- */

/* Prints once that the provider reclaims the machine, because the user is working on it. */
static bool print_notice(bool printed)
{
    const char *file = getenv("BELAY_NOTICE_FILE");
    struct buf text = {0};
    json_t *v = NULL;
    struct err e;
    if (printed || !file || fs_read(file, 65536, &text, &e) != 0)
        return printed;
    if (json_parse(buf_str(&text), text.len, 65536, &v, &e) == 0) {
        const json_t *left = json_object_get(v, "seconds_left");
        if (json_is_number(left))
            fprintf(stderr,
                "\r\nbelay: the provider reclaims this node in %.0f seconds (%s); everything "
                "running here will end\r\n",
                json_number_value(left), cli_text(v, "kind"));
        else
            fprintf(stderr,
                "\r\nbelay: the provider reclaims this node (%s); everything running here will "
                "end\r\n",
                cli_text(v, "kind"));
    }
    json_decref(v);
    buf_deinit(&text);
    return true;
}

static _Noreturn void exec_command(char *const *words, const sigset_t *before)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(words[0], words);
    int why = errno;
    cli_error("%s cannot be executed: %s", words[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static void hang_up(pid_t command)
{
    kill(command, SIGHUP);
    kill(command, SIGCONT);
}

static int wait_for(pid_t command, const sigset_t *signals)
{
    int64_t hang_up_ms = INT64_MAX;
    bool printed = false;
    for (int status;;) {
        const struct timespec interval = {.tv_sec = CHECK_MS / 1000};
        if (waitpid(command, &status, WNOHANG) == command)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        int signum = sigtimedwait(signals, NULL, &interval);
        if (signum == SIGTERM && hang_up_ms == INT64_MAX && isatty(STDIN_FILENO))
            hang_up_ms = clock_system_ms() + HANG_UP_MS;
        if (signum == SIGHUP || clock_system_ms() >= hang_up_ms) {
            hang_up(command);
            hang_up_ms = INT64_MAX - 1;
        }
        printed = print_notice(printed);
    }
}

int interactive_guest(char *const *words)
{
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    signal(SIGINT, SIG_IGN); /* keys typed are for the command */
    signal(SIGQUIT, SIG_IGN);
    int fd = open_pipe(O_WRONLY);
    const char begun = BEGUN;
    if (fd < 0 || write(fd, &begun, 1) != 1)
        return CLI_FAILED;
    pid_t command = fork();
    if (command == 0)
        exec_command(words, &before);
    int code = command > 0 ? wait_for(command, &signals) : CLI_FAILED;
    const char last = (char)code;
    return write(fd, &last, 1) == 1 ? code : CLI_FAILED;
}
