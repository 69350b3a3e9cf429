/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving files that an agent as root has made to the job's user. All of it follows the rules of
 * base/fs_user.h: a tree is built where only root can reach it and is given away in one step, its
 * root last.
 *
 * Each is harmless where the job's user is the agent's own. All calls block.
 */
#ifndef BELAY_AGENT_TASK_PLACE_H
#define BELAY_AGENT_TASK_PLACE_H

#include "agent/supervisor/user.h"
#include "base/err.h"
#include <stddef.h>

/* Gives the tree at path, which was just built there (mode 0700, ours), to the user.
 * ERR_CONFLICT: others may have been in it. */
int place_give(const struct job_user *u, const char *path, struct err *e);

/* Of a checkpoint that was just restored: without .done, which was the program's word to the
 * agent before. */
int place_checkpoint(const struct job_user *u, const char *dir, struct err *e);

/* Makes task_dir/scratch: the copy in checkpoint_dir/scratch if one was restored, else an empty
 * directory. Only the empty one is the user's: the copy is given when criu has restored into it
 * (criu_room.h). */
int place_scratch(
    const struct job_user *u, const char *task_dir, const char *checkpoint_dir, struct err *e);

/* Writes a file of mode 0600 that is the user's into a directory that may be the user's already.
 * Replaces what has the name. */
int place_file(const struct job_user *u, const char *dir, const char *name, const char *text,
    size_t n, struct err *e);

#endif
