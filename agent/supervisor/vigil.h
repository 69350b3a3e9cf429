/* SPDX-License-Identifier: Apache-2.0
 *
 * What a supervisor does while its program runs: takes the agent's commands (supervisor.h),
 * enforces the time limit and sends the signal before it, passes a shutdown of the machine on,
 * waits for the program's end.
 */
#ifndef BELAY_AGENT_SUPERVISOR_VIGIL_H
#define BELAY_AGENT_SUPERVISOR_VIGIL_H

#include "agent/task/grace.h"
#include "agent/supervisor/launch.h"
#include "agent/task/record.h"
#include "agent/supervisor/shells.h"
#include "base/uv/proc.h"

#define VIGIL_CONNECTIONS 4
#define VIGIL_LINE_BYTES 128
#define VIGIL_TIME_MAX_MS (INT64_C(1) << 53) /* the longest delay or grace of a command */

struct vigil_command {
    enum { VIGIL_SIGNAL, VIGIL_TERMINATE, VIGIL_KILL, VIGIL_READY, VIGIL_LIMIT, VIGIL_SHELL } what;
    int64_t signal;             /* SIGNAL: 1 .. 64 */
    int64_t delay_ms, grace_ms; /* TERMINATE: 0 .. VIGIL_TIME_MAX_MS */
    int64_t limit_ms;           /* LIMIT: likewise */
};

/* Pure: one line of ctl.sock, without its end. ERR_INVALID: it is none. (A task of the agent's own
 * user can reach the socket.) */
int vigil_parse(const char *line, struct vigil_command *ret_command, struct err *e);

struct vigil_connection {
    int fd; /* -1: free */
    bool wants_ready;
    int passed; /* a descriptor that came with what is read; -1 */
    char line[VIGIL_LINE_BYTES];
    size_t n;
};

struct vigil {
    /* to be filled before vigil_open: the socket with the agent; -1 once that has let go of it, or
     * if there is none */
    int boss;
    int listener, signals; /* from vigil_open */
    /* to be filled by the caller before vigil_keep */
    struct proc_group *group;
    int report; /* of the launch */
    /* the script, of which the report does not tell the end (launch.h); 0: it does */
    pid_t child;
    int64_t time_limit_ms; /* 0: none */
    int64_t kill_wait_ms;
    bool in_image;      /* the script runs in a container: what is around it gets no signals */
    struct grace grace; /* but for script */
    struct shells shells;
    /* -1: none. The task's input, open until there is something in the other (env.h) */
    int input, input_end;
    /* out: why it was stopped, if it was (else EXIT_BY_ITSELF), and words for it */
    enum exit_cause cause;
    char text[128];
    /* private */
    struct vigil_connection connections[VIGIL_CONNECTIONS];
    /* mono ms; but for the first VIGIL_NEVER */
    int64_t began, limit_at, grace_at, term_at, kill_at;
    int early[VIGIL_CONNECTIONS]; /* for shells_start, once it is ready */
    size_t n_early;
    bool is_ready, term_sent;
};

/* Takes over SIGTERM. Without a boss it listens on ctl.sock in the working directory, where an
 * agent to come finds it. */
int vigil_open(struct vigil *v, struct err *e);

/* signals is readable: takes one. False: it was the machine's shutdown, and is noted. */
bool vigil_take_signal(struct vigil *v);

/* Until the program has ended; the report then is LAUNCH_ENDED or why it could not start. */
struct launch_report vigil_keep(struct vigil *v);

#endif
