/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of other users, handled by a process that runs as root. A user who can write to a directory
 * can replace anything in it by a symbolic link, or by a hard link to another user's file, between
 * two calls. So root follows three rules wherever a job's user may write:
 *
 *   1. A tree is built where no other user can reach it: its top belongs to root and has no rights
 *      for others. It becomes the user's in one step, by descriptors, contents first and the top
 *      last (fs_give_tree). Until that last call no other user can enter it.
 *   2. A user's tree is read by descriptors, one name at a time, without following links. A file is
 *      opened only if it is a regular file of that user (fs_open_of). This also refuses hard links
 *      to other users' files.
 *   3. In a user's directory root creates with O_EXCL and O_NOFOLLOW, changes owner and mode by the
 *      descriptor, and renames within the directory. It changes nothing else by name.
 *
 * All calls block.
 */
#ifndef BELAY_BASE_FS_USER_H
#define BELAY_BASE_FS_USER_H

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

#define FS_USER_DEPTH_MAX 1024 /* levels of directories, one open descriptor each */

/* Rule 1. Gives the tree at path to uid and gid. Follows no link; gives nothing away on another
 * file system. ERR_CONFLICT, with nothing changed, if path is not a directory of this process's
 * user without rights for others. On any other error the top is not given away. */
int fs_give_tree(const char *path, uid_t uid, gid_t gid, struct err *e);

/* Rule 2. Opens `name`, one component in the directory dir, for reading: a regular file of owner.
 * Returns -1 and errno: ENOENT; ELOOP: a symbolic link; EPERM: another user's; EINVAL: not a
 * regular file. Nothing else is ever opened, not even a device or a named pipe. */
int fs_open_of(int dir, const char *name, uid_t owner);

/* Opens the file that fd refers to (fd may be O_PATH) again for reading. Returns -1 and errno.
 * Needs /proc. */
int fs_reopen(int fd);

/* Whether a directory entry of this name exists. Symbolic links are not followed, so the result
 * reveals nothing about their targets. */
bool fs_has_name(const char *path);

#endif
