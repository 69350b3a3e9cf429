/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/open_in_time.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#define REPEAT_US 100000 /* repeats the signal, because one before open() blocks has no effect */

static void on_alarm(int signal)
{
    (void)signal;
}

int open_in_time(const char *path, int flags, mode_t mode, int64_t wait_ms)
{
    const struct sigaction interrupt = {.sa_handler = on_alarm}; /* without SA_RESTART */
    const int64_t until = clock_mono(&clock_system).ms + wait_ms;
    const int64_t first_us = (wait_ms > 0 ? wait_ms : 1) * 1000;
    const struct itimerval off = {{0, 0}, {0, 0}},
                           limit = {{0, REPEAT_US}, {first_us / 1000000, first_us % 1000000}};
    struct sigaction before;
    sigset_t alarm, mask;
    int fd, why;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &interrupt, &before);
    sigprocmask(SIG_UNBLOCK, &alarm, &mask);
    setitimer(ITIMER_REAL, &limit, NULL);
    do {
        fd = open(path, flags, mode);
        why = errno;
    } while (fd < 0 && why == EINTR && clock_mono(&clock_system).ms < until);
    setitimer(ITIMER_REAL, &off, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGALRM, &before, NULL);
    errno = why == EINTR ? ETIMEDOUT : why;
    return fd;
}
