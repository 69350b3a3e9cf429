/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: whole-file reads with a limit, atomic durable writes, directories. All calls block. Errors
 * of the operating system have err_errno's kinds and name the path.
 */
#ifndef BELAY_BASE_FS_H
#define BELAY_BASE_FS_H

#include "base/buf.h"
#include <sys/types.h>

/* Reads a regular file of at most max bytes into out (cleared first). ERR_INVALID if it is larger
 * or not a regular file; a FIFO or terminal never blocks the call. */
int fs_read(const char *path, size_t max, struct buf *out, struct err *e);

/* fs_read for a file that contains a secret: ERR_DENIED if its group or others have any rights to
 * it. The caller wipes out, also after an error (buf_wipe). */
int fs_read_secret(const char *path, size_t max, struct buf *out, struct err *e);

/* Reads the first size - 1 bytes of a file as a text. For files of the kernel (/proc, /sys, control
 * groups): they report no size, and must be read by one call to be consistent. False, with "" in
 * out: the file cannot be read. */
bool fs_read_start(const char *path, char *out, size_t size);

/* Writes path.XXXXXX, fsyncs, renames over path, fsyncs the directory: afterwards path is the old
 * or the new content whole, whatever is killed. mode is exact (umask does not apply). A kill in the
 * middle can leave a path.XXXXXX behind; a failure does not. If only the last fsync fails, the new
 * content is visible but an error is returned. */
int fs_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

/* As fs_write_atomic, but a conditional create: ERR_CONFLICT, and nothing is changed, if path
 * exists, even as a dangling symbolic link. Of several concurrent calls exactly one succeeds. */
int fs_create_atomic(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

struct fs_owner {
    uid_t uid;
    gid_t gid;
};

/* As fs_create_atomic, with an owner, who has the file before it has its name; NULL: the caller.
 * Where root may not give files away (NFS with root_squash), it stays the caller's. */
int fs_create_atomic_for(const struct fs_owner *owner, const char *path, const void *p, size_t n,
    mode_t mode, struct err *e);

/* mkdir -p; parents get mode too (less umask). An existing directory is left unchanged and is not
 * an error. */
int fs_mkdirs(const char *path, mode_t mode, struct err *e);

/* rm -rf, without following symbolic links, entering other file systems or leaving the tree. A
 * missing path is not an error. Any depth: it needs two descriptors and no recursion. After a
 * failure the remaining directories may be elsewhere, as deep ones are first moved to the top
 * of the tree. ERR_INVALID for a path that does not end in a name ("", "/", "a/.."). */
int fs_remove_tree(const char *path, struct err *e);

/* fsync of a directory. */
int fs_sync_dir(const char *path, struct err *e);

/* The reserve of a file system of that size: space to keep free for data that must be stored even
 * on a full disk. An eighth of the size, at most FS_RESERVE_MAX. */
#define FS_RESERVE_MAX (256LL << 20)
#define FS_RESERVE_SHARE 8
int64_t fs_reserve(int64_t total_bytes);

/* access(2) with the effective user's permissions; mode as there. */
bool fs_may(const char *path, int mode);
/* Fills e: "PATH cannot be `what` by user NAME: " and the error's text. */
int fs_may_not(const char *path, const char *what, int errnum, struct err *e);
/* The part of path that exists: path itself, or what it would be made in, which may be no
 * directory. The caller frees it. An error if this user cannot find out. */
int fs_existing_part(const char *path, char **ret_part, struct err *e);
/* Returns 0 if path is a directory in which files can be created. Creates nothing. ERR_CONFIG in a
 * file system of the kernel (/proc, /sys), else err_errno's kinds. */
int fs_may_write_dir(const char *path, struct err *e);
/* The same, or fs_mkdirs could create it. An error names what is in the way. */
int fs_may_make(const char *path, struct err *e);

bool fs_exists(const char *path); /* follows symbolic links */

/* The path from the root, without slashes at its end; path itself if the working directory is not
 * known. Resolves no links and no "..". The caller frees it. */
char *fs_absolute(const char *path);

/* flock, exclusive. Retries for five seconds at most, because a dying process may still have the
 * lock. Returns 0, or -1 with errno; EWOULDBLOCK: another process has it. */
int fs_lock(int fd);

/* Repeats write(2) until all is written or it fails. fd must be blocking. */
int fs_write_all(int fd, const void *p, size_t n, struct err *e);

#endif
