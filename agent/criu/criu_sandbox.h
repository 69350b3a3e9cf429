/* SPDX-License-Identifier: Apache-2.0
 *
 * The sandbox of a task with the method criu (criu.h): making it, restoring into it, dumping from
 * outside of it.
 *
 *     supervisor --fork--> init --fork--> first process of the sandbox (pid 1 of its namespace)
 *       first process --> script (pid CRIU_ROOT_PID)
 *                    \--> criu restore --> the processes of the script
 *                                     \--> belay-agent criu-rights, belay-agent criu-give
 *     agent --> belay-agent criu-dump --fork--> (in the sandbox) criu dump
 *       criu dump --> belay-agent criu-files, while all processes are frozen
 */
#ifndef BELAY_AGENT_CRIU_CRIU_SANDBOX_H
#define BELAY_AGENT_CRIU_CRIU_SANDBOX_H

#include "agent/criu/criu.h"
#include "agent/supervisor/user.h"

#define CRIU_RESTORE_MS 600000 /* maximum time of a restore */

/* ---- for launch.c ---- */

/* Call in init: the next child is the first process of a new sandbox. Returns -1 and errno. */
int criu_sandbox_separate(void);
/* Call first in that child: mounts the sandbox. NULL: an empty sandbox in memory that ends with its
 * processes. Returns -1 and errno. */
int criu_sandbox_enter(const char *task_dir);
/* Call in the first process: the next child gets CRIU_ROOT_PID. Returns -1 and errno. */
int criu_sandbox_prepare_pid(void);
/* Call in the first process: restores a dump, whose processes become its children. First checks
 * what criu would create by name (criu_created.h). The processes run only after the action script
 * has compared their files with the user's rights (criu_rights.h) and has given
 * CRIU_SANDBOX/scratch to the user: until criu uses no more names, only root can enter that.
 * output: the write end of the pipe to which they print from then on. On an error
 * CRIU_SANDBOX/restore.log has the reason; the caller must then end, which kills everything in the
 * sandbox. */
int criu_sandbox_restore(const char *criu, const struct job_user *u, int output, struct err *e);

/* ---- for the supervisor ---- */

/* Records the pipe that carries the task's output in the working directory, which must be the
 * task's directory. fd is the pipe's write end. */
int criu_sandbox_note_output(int fd, struct err *e);

/* ---- for the agent ---- */

/* Writes TASK_DIR/hook, the action script that criu runs during a dump and a restore. */
int criu_sandbox_write_hook(const char *task_dir, struct err *e);

/* Creates the empty directories of a dump in the task's directory, and the hook. */
int criu_sandbox_prepare_dump(const char *task_dir, struct err *e);

struct criu_dump {
    const char *task_dir;
    const struct criu *criu;
    enum criu_step step;
    bool parent; /* see criu_dump_argv */
    int64_t timeout_ms;
    bool with_gpus; /* the task has GPUs: processes that a failed dump left locked are unlocked */
};

/* Dumps; blocks. ERR_TIMEOUT: criu was killed during the dump, so the processes may be damaged.
 * ERR_CORRUPT: they are damaged. Any other error: they are unchanged. */
int criu_sandbox_dump(const struct criu_dump *d, struct err *e);

/* Memory of the task's processes, in bytes, to decide whether a dump before the freeze is useful;
 * 0: unknown. */
int64_t criu_sandbox_memory(const char *task_dir);

/* ---- subcommands that the agent runs itself ----
 *
 *     belay-agent criu-dump DIR CRIU STEP PARENT TIMEOUT_MS CUDA_CHECKPOINT
 *     belay-agent criu-files
 *     belay-agent criu-give
 */
int criu_sandbox_dump_main(int argc, char **argv);
int criu_sandbox_files_main(void);
int criu_sandbox_give_main(void);

#endif
