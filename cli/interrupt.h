/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a job end with the process that waits for it, as far as possible: an interrupt cancels the
 * job.
 */
#ifndef BELAY_CLI_INTERRUPT_H
#define BELAY_CLI_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct interrupt {
    int64_t job;
    const char *program; /* program name for reports; borrowed */
    int signum;          /* result of interrupt_end: the signal that cancelled it; 0 = none */
    bool watched;
    sigset_t signals;
    pthread_t thread;
};

/* Blocks SIGINT, SIGTERM and SIGHUP; the first of them cancels the job. */
void interrupt_watch(struct interrupt *i, const char *program, int64_t job);

/* The signals stay blocked. A cancellation in progress is completed first. */
void interrupt_end(struct interrupt *i);

#endif
