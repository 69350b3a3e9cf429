/* SPDX-License-Identifier: Apache-2.0
 *
 * See interrupt.h. A thread waits for the signals, and cancels with its own connection.
 */
#include "cli/interrupt.h"

#include "cli/cli.h"
#include "cli/slurm/slurm.h"
#include <stdio.h>
#include <unistd.h>

/* Receives SIGINT. SIGUSR2 ends the thread. */
static void *explain_at_interrupt(void *ctx)
{
    const struct interrupt *i = ctx;
    const long long job = (long long)i->job;
    int number;
    if (sigwait(&i->signals, &number) != 0 || number == SIGUSR2)
        return NULL;
    fprintf(stderr,
        "\nbelay: job %lld goes on. belay logs -f %lld follows its output, belay cancel %lld ends "
        "it\n",
        job, job, job);
    _exit(CLI_INTERRUPTED);
}

/* Receives the signals, which are blocked in all threads. SIGUSR2 ends the thread. */
static void *cancel_at_interrupt(void *ctx)
{
    struct interrupt *i = ctx;
    struct client *c = NULL;
    json_t *reply = NULL;
    struct err e;
    int number;
    if (sigwait(&i->signals, &number) != 0 || number == SIGUSR2 || client_create(&c, &e) != 0)
        return NULL;
    i->signum = number;
    const char *path = CLI_PATH("/api/v1/jobs/%lld/cancel", (long long)i->job);
    int rc = client_json(c, "POST", path, NULL, &reply, &e);
    if (rc != 0 && rc != ERR_CONFLICT)
        slurm_error(i->program, "job %lld was not cancelled: %s", (long long)i->job, e.text);
    json_decref(reply);
    client_destroy(c);
    return NULL;
}

static void watch(struct interrupt *i, void *(*act)(void *))
{
    sigaddset(&i->signals, SIGINT);
    sigaddset(&i->signals, SIGUSR2);
    i->watched = pthread_sigmask(SIG_BLOCK, &i->signals, NULL) == 0 &&
                 pthread_create(&i->thread, NULL, act, i) == 0;
}

void interrupt_watch(struct interrupt *i, const char *program, int64_t job)
{
    *i = (struct interrupt){.job = job, .program = program};
    sigemptyset(&i->signals);
    sigaddset(&i->signals, SIGTERM);
    sigaddset(&i->signals, SIGHUP);
    watch(i, cancel_at_interrupt);
}

void interrupt_explain(struct interrupt *i, int64_t job)
{
    *i = (struct interrupt){.job = job};
    sigemptyset(&i->signals);
    watch(i, explain_at_interrupt);
}

void interrupt_end(struct interrupt *i)
{
    if (!i->watched)
        return;
    pthread_kill(i->thread, SIGUSR2);
    pthread_join(i->thread, NULL);
    i->watched = false;
}
