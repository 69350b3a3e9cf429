/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of one task on one node share with each other and with nobody else: System V
 * shared memory, semaphores and message queues, POSIX message queues, and /dev/shm. It ends with
 * the last of them. /dev/shm is a file system of its own, whose pages the task's cgroup is charged
 * with.
 *
 * A supervisor enters before it forks a task's first process, so all that it starts for the task is
 * inside, commands of `belay exec` too, and leaves before it takes another task. Not for CRIU's
 * rooms (criu_room.h).
 */
#ifndef BELAY_AGENT_SUPERVISOR_PRIVATE_IPC_H
#define BELAY_AGENT_SUPERVISOR_PRIVATE_IPC_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct private_ipc {
    int ipc, mounts; /* the namespaces from before, open */
    bool is_inside;
};

/* shm_mib: the size of /dev/shm; 0: half of the machine's memory. On failure nothing has changed
 * (ERR_UNSUPPORTED: this process may not, or the kernel cannot). The caller has a single thread. */
int private_ipc_enter(struct private_ipc *p, int64_t shm_mib, struct err *e);

/* Whether a task will get it, by a process that tries. Blocks for it. Errors as above. */
int private_ipc_try(struct err *e);

/* Harmless when it is not inside. The working directory is / then. False: this process cannot get
 * back, and must not take another task. */
bool private_ipc_leave(struct private_ipc *p);

#endif
