/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of other users, handled by a process that is root. A user who can write to a directory can
 * swap anything in it for a symbolic link, or for a hard link to another's file, between two calls.
 * So root follows three rules, wherever a job's user may write:
 *
 *  1. A tree is built where nobody else can reach it: its top is root's and has no rights for
 *     others. It becomes the user's in one step, by descriptors, what is inside first and the top
 *     last (fs_give_tree). Until that last call nobody can be in it.
 *  2. A user's tree is read by descriptors, one name at a time, without following links; a file is
 *     opened only if it is a regular file of that user's (fs_open_of). Hard links to what others
 *     own are refused by that.
 *  3. In a user's directory root creates with O_EXCL and O_NOFOLLOW, changes owner and mode by the
 *     descriptor, and renames within the directory. It changes nothing else by name.
 *
 * All calls block.
 */
#ifndef BELAY_BASE_FS_USER_H
#define BELAY_BASE_FS_USER_H

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

#define FS_USER_DEPTH_MAX 1024 /* levels of directories: one descriptor each */

/* Rule 1. Gives the tree at path to uid and gid. No link is followed; on another file system
 * nothing is given away. ERR_CONFLICT, and nothing is changed: path is not a directory of this
 * process's user that nobody else has rights to. On another error the top is not given away. */
int fs_give_tree(const char *path, uid_t uid, gid_t gid, struct err *e);

/* Rule 2. Opens `name`, one component in the directory dir, for reading: a regular file of
 * owner's. -1 and errno: ENOENT; ELOOP: it is a symbolic link; EPERM: it is another's; EINVAL: it
 * is neither. Nothing else is ever opened, not even a device or a named pipe. */
int fs_open_of(int dir, const char *name, uid_t owner);

/* The same file that fd refers to, which may be O_PATH, opened anew for reading. -1 and errno.
 * Needs /proc. */
int fs_reopen(int fd);

/* Whether something has this name; a symbolic link itself counts, so that nothing can be learnt
 * of where it leads. */
bool fs_has_name(const char *path);

#endif
