/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a directory tree at one moment: the entries for a manifest, and stamps that reveal
 * changes.
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
    /* the root belongs to another user than ours: only that user's files are saved */
    bool has_owner;
    uid_t owner;
};

/* Nanoseconds since 1970, the unit of stamps. */
int64_t scan_stamp_ns(const struct timespec *t);

/* Reads the tree below the directory root_fd into m, which must have no entries yet, in order. Does
 * not read contents or follow symbolic links. The first name of a file or link is the
 * file or link, the others are hard links to it; holes of 64 KiB and more, and user attributes, go
 * to its extra. ERR_UNSUPPORTED naming what cannot be saved (scan_check_owner included);
 * ERR_UNAVAILABLE if the tree changes under the scan; ERR_INVALID over CKPT_FILES_MAX or a limit of
 * the manifest. */
int scan_tree(int root_fd, struct manifest *m, struct scan *ret, struct err *e);

/* As scan_tree, but calls fn with the bytes of each file that has one name, in any order.
 * ERR_CANCELLED as soon as it returns false; m then has a part of the entries. */
typedef bool (*scan_file_fn)(void *ctx, int64_t bytes);
int scan_tree_while(
    int root_fd, struct manifest *m, scan_file_fn fn, void *ctx, struct scan *ret, struct err *e);
void scan_deinit(struct scan *s);

/* Scans the tree again. ERR_UNAVAILABLE naming a path that has changed since m and s were
 * scanned. */
int scan_check_unchanged(
    int root_fd, const struct manifest *m, const struct scan *s, struct err *e);

/* Opens a file of the tree for reading, without blocking. Follows no link in any component, so the
 * path cannot lead outside. Returns -1 and errno on failure. */
int scan_open(int root_fd, const char *path);

/* Opens entry i of s, a file at path, for reading, and checks that it is the scanned one.
 * ERR_UNAVAILABLE if it was replaced or removed; ERR_UNSUPPORTED (scan_check_owner). */
int scan_open_entry(
    int root_fd, const struct scan *s, size_t i, const char *path, int *ret_fd, struct err *e);

/* Reads exactly n bytes of a file that is being saved. ERR_UNAVAILABLE if it is shorter. */
int scan_read(int fd, char *p, size_t n, int64_t offset, const char *path, struct err *e);

/* ERR_UNSUPPORTED for a file or directory that does not belong to the root's owner. When root saves
 * another user's tree, it can read more than that user, who can hard-link any reachable file into
 * it. Before reading a file, st must come from its open descriptor. */
int scan_check_owner(const struct scan *s, const struct stat *st, const char *path, struct err *e);

#endif
