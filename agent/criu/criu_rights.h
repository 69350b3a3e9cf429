/* SPDX-License-Identifier: Apache-2.0
 *
 * What restored processes hold, compared with the rights of the job's user before they run.
 *
 * Why: criu opens the files of a job by name, as root. Between dump and restore, or during it,
 * another job of the same user can put a symbolic link in the place of such a name. The restored
 * program would then hold a file that its user has no rights to.
 *
 * When: criu runs CRIU_ROOM/hook as "post-restore". All files are open and mapped then, and the
 * processes are still root's, inside criu's own code: no process of the user can trace them or take
 * a descriptor out of them. A failure makes criu kill them and fail. Only then do they get the
 * user's identity and run. criu_room_restore (criu_room.h) demands the mark that the comparison
 * leaves, so a criu that does not run the hook restores nothing either.
 *
 * Compared, of every process of the room but its first one, criu and ourselves:
 *
 *     open descriptors    with the access mode that they have
 *     mapped files        for reading; for writing too, if shared and opened for writing
 *     the program, the current and the root directory
 *
 * Each must pass both questions:
 *
 *  1. Rights: the user can open the same file again with the same access mode, or owns it, and so
 *     could give themselves that right. A current or root directory must be searchable.
 *  2. Reach: the user finds the same file by its name, so that no directory on the way forbids it.
 *     A removed file passes if no name of it is left or it is the user's own.
 *
 * Of a UNIX socket: no descriptor may be under way in it, for those cannot be looked at, and the
 * user must be able to connect to the named datagram socket that it is connected to, unless that is
 * in scratch, where the restore itself made it.
 *
 * Not compared: pipes without a name, other sockets and other kernel objects without a name
 * (timers, event counters, namespaces, rings of asynchronous I/O), which no name leads to; what has
 * a name in scratch while that is root's alone, since it becomes the user's; descriptors that criu
 * holds too (its log). Names watched by inotify are not compared either: what they give is names of
 * files. Threads share descriptors and directories with their process after a restore.
 *
 * Refused although it was once in order: files of a set-uid program with other rights, programs
 * that can be executed but not read, files in /proc/PID that only their process may open.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_RIGHTS_H
#define BELAY_AGENT_CRIU_CRIU_RIGHTS_H

#include "agent/supervisor/user.h"

struct criu_rights {
    struct job_user user;
    const char *scratch; /* given to the user before the processes run; NULL: none */
    pid_t criu;          /* what it holds too is its own; 0: none */
};

/* Compares what process pid holds. The caller is root with one thread, and afterwards in the user's
 * groups; its effective ids change in between. ERR_DENIED names the process and what it must not
 * hold. A process that has ended holds nothing. Blocks. */
int criu_rights_check(const struct criu_rights *r, pid_t pid, struct err *e);

/* The same of every process in /proc but process 1, ourselves and those between. ERR_IO where /proc
 * does not show ourselves: then it shows nothing that could be relied on. */
int criu_rights_check_all(const struct criu_rights *r, struct err *e);

/* `belay-agent criu-rights`, called by criu in the room. Leaves CRIU_RIGHTS_MARK if all is well. */
#define CRIU_RIGHTS_MARK "rights"
int criu_rights_main(void);

#endif
