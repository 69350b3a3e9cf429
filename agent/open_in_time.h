/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a file that a user named: a FIFO without a program at its other end blocks until there is
 * one.
 */
#ifndef BELAY_AGENT_OPEN_IN_TIME_H
#define BELAY_AGENT_OPEN_IN_TIME_H

#include <stdint.h>
#include <sys/types.h>

/* open(), but at most wait_ms, then -1 with ETIMEDOUT. Only in a process of one thread that uses no
 * timer of its own: SIGALRM interrupts the call. The signal's handler and mask are as before
 * afterwards. A file system that hangs without noticing signals is waited for. */
int open_in_time(const char *path, int flags, mode_t mode, int64_t wait_ms);

#endif
