/* SPDX-License-Identifier: Apache-2.0
 *
 * A session with a running job: a command in one of its ranks, as its user, with its environment,
 * whose standard input, output and error are this process's, over belayd (docs/reference/api.md).
 * All calls block.
 */
#ifndef BELAY_CLI_SESSION_H
#define BELAY_CLI_SESSION_H

#include "cli/cli.h"
#include <termios.h>

struct session_ask {
    int64_t job, rank;
    const char *const *words; /* the command */
    int n_words;
    int signal;     /* not 0: in place of a command this is sent, ... */
    const char *to; /* ... to "programs", "script" or "all" */
    /* with a terminal there; ours is raw meanwhile, and as it was afterwards, whatever ends us but
     * SIGKILL */
    bool tty;
    bool no_input; /* it reads the end of its input at once */
};

struct session {
    struct client *client; /* borrowed */
    int64_t id;            /* 0: it has not begun */
    bool tty;
    struct termios saved;
    struct buf came; /* up to a whole frame */
    int64_t taken;   /* bytes of what it says */
};

/* The whole: begins, forwards our input with its end, SIGINT, SIGQUIT and the terminal's size,
 * until the command has ended. SIGTERM and SIGHUP end the session, with its command, and then this
 * process. *ret_exit: the command's code, 128 + signal. *ret_begun: as below; NULL is fine. */
int session_run(
    struct client *c, const struct session_ask *ask, bool *ret_begun, int *ret_exit, struct err *e);

/* Begins, gives it n bytes as its input, and its end, and prints what it says until it has ended.
 * *ret_begun: it may have been started, whatever this returns. */
int session_feed(struct client *c, const struct session_ask *ask, const void *p, size_t n,
    bool *ret_begun, int *ret_exit, struct err *e);

/* ---- its parts, for belay attach ---- */

int session_begin(struct session *s, const struct session_ask *ask, struct err *e);

/* Sends frames (base/frames.h) from *offset on, which it moves; belayd answers when it has room. c:
 * s->client, or another process's. */
int session_post(const struct session *s, struct client *c, const struct buf *frames,
    int64_t *offset, struct err *e);

/* What it says within wait_ms (at most 20000) goes to our output. *ret_exit stays as it is until
 * the command has ended. ERR_IO: it broke off. */
int session_hear(struct session *s, int64_t wait_ms, int *ret_exit, struct err *e);

void session_finish(struct session *s);

/* The terminal on standard input (tty), as tcsetattr(3) wants it; back as it was. Neither does
 * anything without tty. */
void session_set_terminal(struct session *s, const struct termios *t);
void session_restore_terminal(const struct session *s);

#endif
