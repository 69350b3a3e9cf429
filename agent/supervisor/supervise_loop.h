/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor's loop while its program runs: takes the agent's commands (supervisor.h), enforces
 * the time limit and sends the signal before it, forwards a shutdown of the machine, and waits for
 * the program's end.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISE_LOOP_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISE_LOOP_H

#include "agent/task/grace.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/output_pump.h"
#include "agent/task/record.h"
#include "agent/supervisor/shells.h"
#include "base/uv/proc.h"

#define SUPERVISE_CONNECTIONS 4
#define SUPERVISE_LINE_BYTES 128
#define SUPERVISE_TIME_MAX_MS (INT64_C(1) << 53) /* the longest delay or grace of a command */

struct supervise_loop_command {
    enum {
        SUPERVISE_SIGNAL,
        SUPERVISE_TERMINATE,
        SUPERVISE_KILL,
        SUPERVISE_READY,
        SUPERVISE_LIMIT,
        SUPERVISE_SHIPPED,
        SUPERVISE_SHELL
    } what;
    int64_t signal;             /* SIGNAL: 1 .. 64 */
    int64_t delay_ms, grace_ms; /* TERMINATE: 0 .. SUPERVISE_TIME_MAX_MS */
    int64_t limit_ms;           /* LIMIT: 0 .. SUPERVISE_TIME_MAX_MS */
    int64_t bytes;              /* SHIPPED: 0 .. SUPERVISE_TIME_MAX_MS */
};

/* Pure: parses one line of ctl.sock, without its newline. ERR_INVALID: not a command. (A task of
 * the agent's own user can reach the socket.) */
int supervise_loop_parse(
    const char *line, struct supervise_loop_command *ret_command, struct err *e);

struct supervise_loop_connection {
    int fd; /* -1 = unused */
    bool wants_ready;
    int passed; /* a descriptor received with the message; -1 = none */
    char line[SUPERVISE_LINE_BYTES];
    size_t n;
};

struct supervise_loop {
    /* set before supervise_loop_open: the socket with the agent; -1 once the agent has closed it,
     * or if there is none */
    int agent_fd;
    int listener, signals; /* from supervise_loop_open */
    /* set by the caller before supervise_loop_run */
    struct proc_group *group;
    int report; /* report pipe of the launch (launch.h) */
    /* the script, if the report does not carry its end (launch.h); 0 if it does */
    pid_t child;
    int64_t time_limit_ms; /* 0 = none */
    int64_t kill_wait_ms;
    bool in_image;      /* the script runs in a container, whose runtime gets no signals */
    struct grace grace; /* set except for `script` */
    struct shells shells;
    struct output_pump *pump; /* of the task's output; NULL = none */
    /* the task's input, kept open until a byte arrives in input_end (env.h); -1 = none */
    int input, input_end;
    /* out: why the program was stopped (EXIT_BY_ITSELF if it was not), and a text for it */
    enum exit_cause cause;
    char text[128];
    /* private */
    struct supervise_loop_connection connections[SUPERVISE_CONNECTIONS];
    /* monotonic ms; INT64_MAX means never (not for `began`) */
    int64_t began, limit_at, grace_at, term_at, kill_at;
    int early[SUPERVISE_CONNECTIONS]; /* connections for shells_start, once the program is ready */
    size_t n_early;
    bool is_ready, term_sent;
};

/* Takes over SIGTERM. Without an agent_fd it listens on ctl.sock in the working directory, where a
 * restarted agent finds it. */
int supervise_loop_open(struct supervise_loop *v, struct err *e);

/* Call when `signals` is readable: reads one. False if it was the machine's shutdown, which is
 * recorded. */
bool supervise_loop_take_signal(struct supervise_loop *v);

/* Runs until the program has ended. The report is LAUNCH_ENDED, or why it could not start. */
struct launch_report supervise_loop_run(struct supervise_loop *v);

#endif
