/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces that isolate the processes of a task from others on the node.
 *
 *     ipc              System V shared memory, semaphores and message queues, POSIX message queues
 *                      and /dev/shm are shared only by the processes of the task. They end with
 *                      the last of them. /dev/shm is a separate file system, whose pages are
 *                      charged to the task's cgroup.
 *     hides_processes  /proc shows a user no processes of other users (proc_mount.h). Those of
 *                      other tasks of the same user are shown.
 *
 * A supervisor enters them before it forks a task's first process, so everything that it starts for
 * the task is inside, including commands of `belay exec`. Between tasks it leaves them, or keeps
 * them empty for the next task: creating them costs a short job a third of belay's work for it.
 * They are kept only if the task has not mounted or unmounted anything in them, and left when the
 * node's mounts change. So the next task finds in them what it would find in new ones, and no file
 * system of the node is kept busy. Not used for CRIU's sandboxes, which have their own mount and
 * pid namespaces (criu_sandbox.h).
 */
#ifndef BELAY_AGENT_SUPERVISOR_NAMESPACES_H
#define BELAY_AGENT_SUPERVISOR_NAMESPACES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>

struct namespaces_want {
    bool ipc, hides_processes;
    int64_t shm_mib; /* size of /dev/shm; 0 = half of the machine's memory */
};

/* State of /dev/shm at one moment. */
struct namespaces_shm {
    struct stat root;
    struct statfs used;
};

struct namespaces {
    int ipc, mounts;           /* the node's namespaces, open */
    int node_table, own_table; /* mount tables of the node and of the task, open */
    struct namespaces_want has;
    bool has_shm; /* the task's own /dev/shm is mounted; `shm` is its initial state */
    struct namespaces_shm shm;
    bool is_inside;
    bool is_kept; /* this process is inside, between two tasks */
};

/* Uses kept namespaces if they fit. On failure nothing has changed. ERR_UNSUPPORTED: this process
 * lacks the right, or the kernel the feature; the text says what to do. The caller must be
 * single-threaded. */
int namespaces_enter(struct namespaces *n, const struct namespaces_want *want, struct err *e);

/* Whether tasks can have these namespaces: forks a process that tries, and blocks for it. Errors as
 * above. */
int namespaces_try(const struct namespaces_want *want, struct err *e);

/* Leaves the namespaces; no-op when not inside. Afterwards the working directory is /. False: this
 * process cannot return, and must not take another task. */
bool namespaces_leave(struct namespaces *n);

/* Call when the task has ended and none of its processes is left: keeps the namespaces for the next
 * task, without what the task shared, or leaves them. False as above. */
bool namespaces_keep(struct namespaces *n);
/* A descriptor on which poll(2) reports POLLPRI or POLLERR, once, when kept namespaces must be
 * left; -1 = nothing to watch. */
int namespaces_watched(const struct namespaces *n);
/* Writes its own descriptors to ret_fds; returns their number. */
#define NAMESPACES_FDS_MAX 4
size_t namespaces_fds(const struct namespaces *n, int ret_fds[NAMESPACES_FDS_MAX]);

#endif
