/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes what a program prints to the files that its user named for it, as it comes, besides the
 * one that is shipped. A process of its own, as the user: a file system that hangs holds up nothing
 * else, and nobody's rights but theirs are used.
 *
 *     program --> output.log --> FILE                                one file for output and errors
 *     program --> stdout.log --> FILE       and output.log           two: what is shipped has both
 *             --> stderr.log --> ERROR      and output.log
 *
 * A full disk or a file that cannot be written any more ends the copy of that file and nothing
 * else.
 */
#ifndef BELAY_AGENT_TASK_OUTPUT_WRITER_H
#define BELAY_AGENT_TASK_OUTPUT_WRITER_H

#include "agent/supervisor/user.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_WRITER_SOURCES 2
#define OUTPUT_WRITER_TARGETS 2

struct output_writer_copy {
    int from;         /* read only; -1: no such copy */
    const char *file; /* of the user's, relative to cwd; NULL if none */
    bool truncate;    /* it, at the start */
    int also;         /* another descriptor that gets the same, opened to append; -1 = none */
};

struct output_writer_progress;

struct output_writer {
    /* set by the caller; borrowed until output_writer_finish */
    const struct job_user *user;
    const char *cwd;
    struct output_writer_copy copies[OUTPUT_WRITER_SOURCES];
    /* private */
    pid_t pid; /* 0 = none */
    int stop;  /* closed: the program has ended */
    struct output_writer_progress *progress;
};

/* What the process does first: becomes the user, for good, enters cwd and opens the files there,
 * those of copy i and what it has `also` in ret_fds[i], -1 for none. again: after another that was
 * killed, so nothing is truncated. 0, or errno and in *ret_copy the copy whose file could not be
 * opened; -1: the user or the directory. Only for a process of its own. */
int output_writer_open_files(const struct output_writer *s, bool again,
    int ret_fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], int *ret_copy);

/* Starts it; returns when the user's files are open. ERR_CONFIG: one cannot be opened, and why.
 * Blocks up to 30 s. */
int output_writer_start(struct output_writer *s, struct err *e);

/* The program has ended and nothing more will be written: until all is copied, or 10 s have passed.
 * Harmless when zeroed. If the process was killed with the rest of the task, another does what is
 * left. */
void output_writer_finish(struct output_writer *s);

#endif
