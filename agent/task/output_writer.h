/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies what a program prints to the files that its user named, as it comes, in addition to the
 * file that is shipped. It is a separate process that runs as the user: a hanging file system
 * blocks nothing else, and only the user's rights are used.
 *
 *     program --> output.log --> FILE                                one file for output and errors
 *     program --> stdout.log --> FILE       and output.log           two: the shipped file has both
 *             --> stderr.log --> ERROR      and output.log
 *
 * What the program prints reaches the first file through output_pump.h, which also gives back the
 * space of what is copied and shipped.
 *
 * A full disk or a failed write ends only the copy to that file.
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
    int from;         /* read only; -1 = no such copy */
    const char *file; /* the user's file, relative to cwd; NULL if none */
    bool truncate;    /* truncate `file` at the start */
    int also;         /* a second descriptor for the same bytes, opened to append; -1 = none */
};

struct output_writer_progress;

struct output_writer {
    /* set by the caller; borrowed until output_writer_finish */
    const struct job_user *user;
    const char *cwd;
    int64_t open_wait_ms; /* for all of the user's files */
    struct output_writer_copy copies[OUTPUT_WRITER_SOURCES];
    /* private */
    pid_t pid; /* 0 = none */
    int stop;  /* closed when the program has ended */
    struct output_writer_progress *progress;
};

/* First step of the process: becomes the user for good, enters cwd and opens the files there:
 * ret_fds[i] has the file and the `also` descriptor of copy i, -1 for none. again: replaces a
 * writer that was killed, so nothing is truncated, and a FIFO, whose reader saw its end, is left
 * out. Returns 0, or errno with the failed copy in *ret_copy (-1 = the user or the directory). Call
 * only in a separate process. */
int output_writer_open_files(const struct output_writer *s, bool again,
    int ret_fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], int *ret_copy);

/* Starts the process and returns when the user's files are open. ERR_CONFIG: a file cannot be
 * opened; the text says why. Blocks up to 5 s longer than open_wait_ms. */
int output_writer_start(struct output_writer *s, struct err *e);

/* How much of copy i's source is copied; INT64_MAX if there is no such copy. */
int64_t output_writer_copied(const struct output_writer *s, int i);

/* Call when the program has ended. Blocks until everything is copied, at most 10 s. No-op when
 * zeroed. If the process was killed, a new one copies the rest. */
void output_writer_finish(struct output_writer *s);

#endif
