/* SPDX-License-Identifier: Apache-2.0
 *
 * The room of a task with the method criu (criu.h): making it, restoring into it, dumping from
 * outside of it.
 *
 *     supervisor --fork--> init --fork--> first process of the room (pid 1 of its namespace)
 *       first process --> script (pid CRIU_ROOT_PID)
 *                    \--> criu restore --> the processes of the script
 *                                     \--> belay-agent criu-rights, belay-agent criu-give
 *     agent --> belay-agent criu-dump --fork--> (in the room) criu dump
 *       criu dump --> belay-agent criu-files, while all processes are frozen
 */
#ifndef BELAY_AGENT_CRIU_CRIU_ROOM_H
#define BELAY_AGENT_CRIU_CRIU_ROOM_H

#include "agent/criu/criu.h"
#include "agent/supervisor/user.h"

#define CRIU_RESTORE_MS 600000 /* the longest that criu may take */

/* ---- for launch.c ---- */

/* In init: the next child is the first process of a new room. -1 and errno. */
int criu_room_separate(void);
/* In that child, before anything else: mounts the room. NULL for an empty one that is in memory
 * and ends with its processes. -1 and errno. */
int criu_room_enter(const char *task_dir);
/* There: the next child gets CRIU_ROOT_PID. -1 and errno. */
int criu_room_prepare_pid(void);
/* There: brings back what was dumped; its processes become our children. What criu would create by
 * name is judged first (criu_created.h). The processes run only after the action script compared
 * what they hold with the user's rights (criu_rights.h) and gave CRIU_ROOM/scratch to the user:
 * until criu is done with names, only root can reach that. output: the write end of the pipe that
 * they print to from then on. On an error CRIU_ROOM/restore.log says why; the caller ends, with
 * which everything in the room is killed. */
int criu_room_restore(const char *criu, const struct job_user *u, int output, struct err *e);

/* ---- for the supervisor ---- */

/* Records the pipe that carries the task's output, whose write end is fd, in the working directory,
 * which is the task's. */
int criu_room_note_output(int fd, struct err *e);

/* ---- for the agent ---- */

/* Writes what criu calls in the middle of a dump and of a restore: TASK_DIR/hook. */
int criu_room_write_hook(const char *task_dir, struct err *e);

/* Makes the dump's directories in the task's directory, empty, and the hook. */
int criu_room_prepare_dump(const char *task_dir, struct err *e);

struct criu_dump {
    const char *task_dir;
    const struct criu *criu;
    enum criu_step step;
    bool parent; /* as criu_dump_argv has it */
    int64_t timeout_ms;
    bool with_gpus; /* the task has some: what a dump that failed left locked is released */
};

/* Dumps; blocks. ERR_TIMEOUT: criu was killed in the middle, and what it was dumping may be
 * damaged. ERR_CORRUPT: it is damaged. Another error: nothing has happened to it. */
int criu_room_dump(const struct criu_dump *d, struct err *e);

/* Memory of the task's processes, in bytes, for whether a dump before the freeze pays; 0: not
 * known. */
int64_t criu_room_memory(const char *task_dir);

/* ---- subcommands that the agent runs itself ----
 *
 *     belay-agent criu-dump DIR CRIU STEP PARENT TIMEOUT_MS CUDA_CHECKPOINT
 *     belay-agent criu-files
 *     belay-agent criu-give
 */
int criu_room_dump_main(int argc, char **argv);
int criu_room_files_main(void);
int criu_room_give_main(void);

#endif
