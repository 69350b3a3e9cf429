/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that users run inside a running task (belay exec): in its group, as its user, with its
 * environment, in its working directory, in its container if it has one, until it ends. A container
 * that does not run yet, because its image is being fetched, is waited for. The supervisor starts
 * them, because only it is in the task's cgroup (proc.h); the agent has the other
 * ends of their files.
 *
 * The message may carry a signal instead of a command (scancel --signal): {"signal": 10, "to":
 * "programs"}, or "script" or "all" (grace.h). The supervisor sends it itself. The reported exit
 * code is 0, or 1 if no process received it.
 *
 * With the supervisor's command "shell" (supervisor.h) comes one end of a socket pair
 * (SOCK_SEQPACKET). On it is one message {"command": [...], "tty": false, "term": "xterm"} with
 * four descriptors, which become its standard input, output and error, and a socket
 * (SOCK_SEQPACKET) between the agent and the process that watches the command. A byte sent to that
 * process is a signal for the command's processes; closing the socket hangs them up. It sends one
 * struct shell_report; before it, the supervisor sends SHELL_SECRETS if the task has secrets. The
 * agent hides them, because it also reads the terminals; it keeps no secrets of its own.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SHELLS_H
#define BELAY_AGENT_SUPERVISOR_SHELLS_H

#include "agent/supervisor/image.h"
#include "agent/supervisor/mask.h"
#include "agent/supervisor/user.h"
#include "base/uv/proc.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SHELLS_MAX 128                 /* concurrent commands in a task */
#define SHELL_MESSAGE_MAX (128u << 10) /* bytes */
#define SHELL_WORDS_MAX 256
#define SHELL_FDS 4

enum shell_step {
    SHELL_ENDED,
    SHELL_REFUSED,
    SHELL_GROUP,
    SHELL_USER,
    SHELL_CWD,
    SHELL_EXEC,
    SHELL_IMAGE, /* the task's container was not started in time */
    /* before all output, with a file of mask_save: secrets to hide in it; another report follows */
    SHELL_SECRETS,
};

struct shell_report {
    enum shell_step step;
    /* SHELL_ENDED: wait status; SHELL_REFUSED: 0 for a malformed message, otherwise there are too
     * many; else an errno */
    int value;
};

enum shell_to { SHELL_TO_PROGRAMS, SHELL_TO_SCRIPT, SHELL_TO_ALL };
extern const char *const shell_to_names[]; /* "programs" "script" "all" */

struct shell_order {
    char **command; /* NULL-terminated; NULL for a signal: */
    int signal;     /* without a command, the signal, 1 .. 64 */
    enum shell_to to;
    bool tty;
    char term[64]; /* "" = none */
};

/* Pure: parses a message. ERR_INVALID. Free with shell_order_deinit. */
int shell_parse(const char *text, size_t n, struct shell_order *ret_order, struct err *e);
void shell_order_deinit(struct shell_order *o);
/* Formats the message of a command. The caller frees it. */
char *shell_format(const char *const *command, bool tty, const char *term);
char *shell_format_signal(int signum, enum shell_to to);

struct shells {
    /* set by the caller; borrowed */
    struct proc_group *group;
    const struct job_user *user;
    char *const *env;
    const char *cwd;
    const struct image_run *image; /* without runtimes and argv; NULL for no container */
    const struct mask *mask;       /* NULL = no secrets */
    /* sends a signal; returns the number of processes that got it, or -errno */
    int (*signal)(void *ctx, int signum, enum shell_to to);
    void *ctx;
    /* private */
    pid_t minders[SHELLS_MAX];
};

/* Serves the message on this socket, which it takes. The caller must be single-threaded. */
void shells_start(struct shells *s, int connection);

#endif
