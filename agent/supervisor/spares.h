/* SPDX-License-Identifier: Apache-2.0
 *
 * Emptied directories of ended tasks, kept for later tasks of the same user: creating and removing
 * three directories costs the file system more than everything else that a short task does on it. A
 * directory is kept only if it and its control and checkpoint directories are as they were when
 * they were made: no file, no attribute, no other mode or owner.
 *
 * The list of spares belongs to the loop; checking, emptying and renaming block, and run on
 * threads.
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

/* dir: the parent of all tasks' directories, borrowed. Removes spares that an earlier agent left
 * there. Blocks. */
struct spares *spares_create(const char *dir);
void spares_destroy(struct spares *s); /* removes the spares. NULL is allowed. Blocks */

/* ---- the loop ---- */

struct spare {
    char name[SPARE_NAME_MAX]; /* "" = none */
    uid_t uid;                 /* owner of its inner directories */
    gid_t gid;
};

/* Takes a spare of this user (a name; "" = the agent's own). */
void spares_take(struct spares *s, const char *user, struct spare *ret_spare);
/* False if there are enough. */
bool spares_wants(const struct spares *s);
void spares_keep(struct spares *s, const char *user, const struct spare *spare);

/* ---- threads ---- */

/* Makes the spare the directory of a task of u. False: it was not usable and has been removed. */
bool spare_use(
    const char *tasks_dir, const struct spare *spare, const char *dir, const struct job_user *u);
/* Makes the task's directory the spare of that name, after removing the named files in this order.
 * False: it holds something else; it is unchanged, or some of the files are removed. */
bool spare_make(const char *tasks_dir, struct spare *spare, const char *dir,
    const char *const *files, size_t n);

#endif
