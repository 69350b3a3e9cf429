/* SPDX-License-Identifier: Apache-2.0
 *
 * A session with a running job: a command in one of its ranks, as its user, with its environment,
 * whose standard input, output and error are forwarded to this process by belayd
 * (docs/reference/api.md). All calls block.
 */
#ifndef BELAY_CLI_SESSION_H
#define BELAY_CLI_SESSION_H

#include "cli/cli.h"
#include <termios.h>

struct session_request {
    int64_t job, rank;
    const char *const *words; /* the command */
    int n_words;
    int signal;     /* if not 0: send this signal instead of running a command, */
    const char *to; /* to "programs", "script" or "all" */
    /* allocates a terminal there; ours is raw meanwhile and restored afterwards, unless we are
     * ended by SIGKILL */
    bool tty;
    bool no_input; /* its input is empty: it reads EOF at once */
};

struct session {
    struct client *client; /* borrowed */
    int64_t id;            /* 0 = not begun */
    bool tty;
    struct termios saved;
    struct buf came; /* received, up to a complete frame */
    int64_t taken;   /* bytes of output received so far */
};

/* Runs a session: begins it, forwards our input with its EOF, SIGINT, SIGQUIT and the terminal's
 * size, until the command has ended. SIGTERM and SIGHUP end the session with its command, and then
 * this process. *ret_exit: the command's exit code, or 128 + signal. *ret_begun: as below; may be
 * NULL. */
int session_run(struct client *c, const struct session_request *request, bool *ret_begun,
    int *ret_exit, struct err *e);

/* Begins a session, sends n bytes and EOF as its input, and prints its output until it has ended.
 * *ret_begun: whether the command may have been started; also set on an error. */
int session_feed(struct client *c, const struct session_request *request, const void *p, size_t n,
    bool *ret_begun, int *ret_exit, struct err *e);

/* ---- its parts, for belay attach ---- */

int session_begin(struct session *s, const struct session_request *request, struct err *e);

/* Sends frames (base/frames.h) from *offset on, and advances it; belayd answers when it has space.
 * c: s->client, or another process's. */
int session_post(const struct session *s, struct client *c, const struct buf *frames,
    int64_t *offset, struct err *e);

/* Prints the command's output of the next wait_ms (at most 20000). *ret_exit is unchanged until the
 * command has ended. ERR_IO: the session broke. */
int session_receive(struct session *s, int64_t wait_ms, int *ret_exit, struct err *e);

void session_finish(struct session *s);

/* Sets the terminal on standard input (tty), as tcsetattr(3); restores it. Both are no-ops without
 * tty. */
void session_set_terminal(struct session *s, const struct termios *t);
void session_restore_terminal(const struct session *s);

#endif
