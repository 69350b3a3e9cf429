/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a file that a user named, with a time limit: opening a FIFO blocks until a program opens
 * its other end.
 */
#ifndef BELAY_AGENT_OPEN_IN_TIME_H
#define BELAY_AGENT_OPEN_IN_TIME_H

#include <stdint.h>
#include <sys/types.h>

/* As open(), but returns -1 with ETIMEDOUT after wait_ms. Only for a process with one thread and no
 * other timer, because SIGALRM interrupts the call. The signal's handler and mask are restored
 * afterwards. If a file system hangs and ignores signals, the call waits for it. */
int open_in_time(const char *path, int flags, mode_t mode, int64_t wait_ms);

#endif
