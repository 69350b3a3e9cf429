/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory tree as it is at one moment: the entries a manifest needs, and the stamps by which a
 * change shows.
 */
#ifndef BELAY_CKPT_SCAN_H
#define BELAY_CKPT_SCAN_H

#include "ckpt/manifest.h"
#include <sys/stat.h>

struct scan_stamp {
    uint64_t dev, ino;
    int64_t ctime_ns;
};

struct scan {
    struct scan_stamp *stamps; /* of the manifest's entries, in their order */
    size_t n, cap;
    bool has_owner; /* the root is another user's than ours: nothing but that user's is saved */
    uid_t owner;
};

/* Nanoseconds since 1970, as stamps have them. */
int64_t scan_stamp_ns(const struct timespec *t);

/* Reads the tree below the directory root_fd into m, which has no entries yet, in order; contents
 * are not read, symbolic links not followed. Of the names of one file the first is the file and the
 * others are hard links to it; what a file has of holes of 64 KiB and more, and user attributes, is
 * its extra. ERR_UNSUPPORTED naming what cannot be saved (scan_check_owner included);
 * ERR_UNAVAILABLE if the tree changes under the scan; ERR_INVALID over CKPT_FILES_MAX or a limit of
 * the manifest. */
int scan_tree(int root_fd, struct manifest *m, struct scan *ret, struct err *e);
void scan_deinit(struct scan *s);

/* Looks at the tree again. ERR_UNAVAILABLE naming a path that is not as it was when m and s were
 * scanned. */
int scan_check_unchanged(
    int root_fd, const struct manifest *m, const struct scan *s, struct err *e);

/* Opens a file of the tree for reading, without blocking; no link is followed on the way, so what
 * is in the way of a path cannot lead outside. -1 and errno. */
int scan_open(int root_fd, const char *path);

/* Opens entry i of s, a file at path, for reading: it is the one that was scanned and no other.
 * ERR_UNAVAILABLE if that was replaced or removed; ERR_UNSUPPORTED (scan_check_owner). */
int scan_open_entry(
    int root_fd, const struct scan *s, size_t i, const char *path, int *ret_fd, struct err *e);

/* Exactly n bytes of a file that is being saved. ERR_UNAVAILABLE if it ends before. */
int scan_read(int fd, char *p, size_t n, int64_t offset, const char *path, struct err *e);

/* Where we save another user's tree, as root does, we can read more than that user, who can make a
 * hard link to any file that is in reach: ERR_UNSUPPORTED for a file or directory that does not
 * belong to the root's owner. Before a byte of a file is read, st has to be of its open
 * descriptor. */
int scan_check_owner(const struct scan *s, const struct stat *st, const char *path, struct err *e);

#endif
