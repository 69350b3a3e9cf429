/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the files that restored processes have open with the rights of the job's user, before
 * the processes run.
 *
 * Why: criu opens the files of a job by name, as root. Between dump and restore, or during the
 * restore, another job of the same user can replace such a name by a symbolic link. The restored
 * program would then have a file open that its user has no rights to.
 *
 * When: criu runs CRIU_SANDBOX/hook as "post-restore". At that time all files are open and mapped,
 * and the processes still run as root, inside criu's own code: no process of the user can trace
 * them or take a descriptor out of them. If the hook fails, criu kills the processes and fails. If
 * it succeeds, they get the user's identity and run. criu_sandbox_restore (criu_sandbox.h) requires
 * the mark that the comparison leaves, so a restore also fails if criu does not run the hook.
 *
 * Compared, for every process of the sandbox except the first one, criu and this program:
 *
 *     open descriptors    with the access mode that they have
 *     mapped files        for reading; for writing too, if shared and opened for writing
 *     the program, the current and the root directory
 *
 * Each file must pass both tests:
 *
 *  1. Rights: the user can open the same file again with the same access mode, or owns it and so
 *     could grant this right. A current or root directory must be searchable.
 *  2. Reach: the user finds the same file under its name, so no directory on the path denies
 *     access. A removed file passes if it has no name any more or belongs to the user.
 *
 * A UNIX socket must have no descriptors in transit, because they cannot be examined. If it is
 * connected to a named datagram socket, the user must be able to connect to that, unless it is in
 * scratch, where the restore itself created it.
 *
 * Not compared: kernel objects that have no name (pipes, other sockets, timers, event counters,
 * namespaces, rings of asynchronous I/O); files in scratch while only root can enter it, because
 * they become the user's; descriptors that criu has open too (its log); names watched by inotify,
 * which reveal only names of files. Threads share descriptors and directories with their process
 * after a restore.
 *
 * Refused although the program had them legitimately: files that a set-uid program opened with
 * other rights, programs that can be executed but not read, files in /proc/PID that only their
 * process may open.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_RIGHTS_H
#define BELAY_AGENT_CRIU_CRIU_RIGHTS_H

#include "agent/supervisor/user.h"

struct criu_rights {
    struct job_user user;
    const char *scratch; /* given to the user before the processes run; NULL: none */
    pid_t criu;          /* descriptors that this process has open too are not compared; 0: none */
};

/* Compares the files of process pid. The caller is root with one thread, and afterwards in the
 * user's groups; its effective ids change in between. ERR_DENIED names the process and the file. A
 * process that has ended passes. Blocks. */
int criu_rights_check(const struct criu_rights *r, pid_t pid, struct err *e);

/* The same for every process in /proc except process 1, the caller and the processes between.
 * ERR_IO if /proc does not show the caller: then its content is not reliable. */
int criu_rights_check_all(const struct criu_rights *r, struct err *e);

/* Runs `belay-agent criu-rights`, which criu calls in the sandbox. Creates CRIU_RIGHTS_MARK if all
 * processes pass. */
#define CRIU_RIGHTS_MARK "rights"
int criu_rights_main(void);

#endif
