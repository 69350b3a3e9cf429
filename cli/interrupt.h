/* SPDX-License-Identifier: Apache-2.0
 *
 * An interrupt of a process that waits for a job. Either the job ends with the process, as far as
 * possible, or it goes on and the process says so.
 */
#ifndef BELAY_CLI_INTERRUPT_H
#define BELAY_CLI_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct interrupt {
    int64_t job;
    const char *program; /* program name for reports; borrowed. NULL: the job goes on */
    int signum;          /* result of interrupt_end: the signal that cancelled it; 0 = none */
    bool watched;
    sigset_t signals;
    pthread_t thread;
};

/* Blocks SIGINT, SIGTERM and SIGHUP; the first of them cancels the job. */
void interrupt_watch(struct interrupt *i, const char *program, int64_t job);

/* Blocks SIGINT, which ends the process with code 130 after a line that says how to go on. */
void interrupt_explain(struct interrupt *i, int64_t job);

/* The signals stay blocked. A cancellation in progress is completed first. */
void interrupt_end(struct interrupt *i);

#endif
