/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands files that a root agent has made over to the job's user, by the rules of base/fs_user.h: a
 * tree is built where only root can reach it, and its ownership changes in one step, its root last.
 *
 * Each is a no-op where the job's user is the agent's own. All calls block.
 */
#ifndef BELAY_AGENT_TASK_HANDOVER_H
#define BELAY_AGENT_TASK_HANDOVER_H

#include "agent/supervisor/user.h"
#include "base/err.h"
#include <stddef.h>

/* Gives the tree at path, which was just built there (mode 0700, ours), to the user.
 * ERR_CONFLICT: others may have been in it. */
int handover_tree(const struct job_user *u, const char *path, struct err *e);

/* Same for a checkpoint that was just restored. Removes .done, which was the program's message to
 * an earlier agent. */
int handover_checkpoint(const struct job_user *u, const char *dir, struct err *e);

/* Makes task_dir/scratch: the copy in checkpoint_dir/scratch if one was restored, else an empty
 * directory. Only the empty one belongs to the user: the copy is given to the user after criu has
 * restored into it (criu_sandbox.h). */
int handover_scratch(
    const struct job_user *u, const char *task_dir, const char *checkpoint_dir, struct err *e);

/* Fills e for a file that could not be given to the user (errno). Returns e->kind. Only here does
 * ERR_NO_SPACE mean the user's quota (struct err, of_user). */
int handover_refused(const struct job_user *u, const char *name, int why, struct err *e);

/* Writes a file owned by the user (mode 0600) into a directory that may already be the user's.
 * Replaces an existing one. */
int handover_file(const struct job_user *u, const char *dir, const char *name, const char *text,
    size_t n, struct err *e);

#endif
