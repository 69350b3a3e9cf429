/* SPDX-License-Identifier: Apache-2.0
 *
 * A job that does not outlive who waits for it, as far as that is in its power: an interrupt
 * cancels it.
 */
#ifndef BELAY_CLI_INTERRUPT_H
#define BELAY_CLI_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct interrupt {
    int64_t job;
    const char *program; /* that reports; borrowed */
    int signum;          /* out, after interrupt_end: what cancelled it; 0: nothing has */
    bool watched;
    sigset_t signals;
    pthread_t thread;
};

/* From now on SIGINT, SIGTERM and SIGHUP are blocked, and the first of them cancels the job. */
void interrupt_watch(struct interrupt *i, const char *program, int64_t job);

/* They stay blocked. What cancels the job has done so. */
void interrupt_end(struct interrupt *i);

#endif
