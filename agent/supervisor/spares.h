/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories of tasks that are over, emptied, for tasks of the same user to come: to make and
 * remove three directories takes a disk's file system longer than all the rest of what is on it for
 * a short task. One is kept only if nothing is in it, nor in its control and checkpoint
 * directories, that was not there when they were made: no file, no attribute, no other mode or
 * owner.
 *
 * Which there are is the loop's to know; looking, emptying and renaming block, and are for threads.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SPARES_H
#define BELAY_AGENT_SUPERVISOR_SPARES_H

#include "agent/supervisor/user.h"
#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

#define SPARE_PREFIX ".spare-"
#define SPARE_NAME_MAX 64

struct spares;

/* dir: the one of all tasks, borrowed. Removes what an earlier agent has left there. Blocks. */
struct spares *spares_create(const char *dir);
void spares_destroy(struct spares *s); /* and removes them. NULL is allowed. Blocks */

/* ---- the loop ---- */

struct spare {
    char name[SPARE_NAME_MAX]; /* "" = none */
    uid_t uid;                 /* whose its inner directories are */
    gid_t gid;
};

/* One of this user's (a name, "" is the agent's own). */
void spares_take(struct spares *s, const char *user, struct spare *ret_spare);
/* False: there are enough. */
bool spares_wants(const struct spares *s);
void spares_keep(struct spares *s, const char *user, const struct spare *spare);

/* ---- threads ---- */

/* From now on it is the directory of a task of u. False: it is not usable, and gone. */
bool spare_use(
    const char *tasks_dir, const struct spare *spare, const char *dir, const struct job_user *u);
/* The task's directory becomes the spare of that name, without the files that are named, which go
 * in this order. False: something else is in it, and it is as it was, or some of the files are
 * gone. */
bool spare_make(const char *tasks_dir, struct spare *spare, const char *dir,
    const char *const *files, size_t n);

#endif
