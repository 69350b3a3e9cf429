/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory tree as it is at one moment: the entries a manifest needs, and the stamps by which a change
 * shows.
 */
#ifndef BELAY_CKPT_SCAN_H
#define BELAY_CKPT_SCAN_H

#include "ckpt/manifest.h"

struct scan_entry {
    struct manifest_entry entry;
    uint64_t dev, ino;
    int64_t ctime_ns;
};

struct scan {
    struct scan_entry *v; /* by path, in byte order */
    size_t n, cap;
};

/* Reads the tree below the directory root_fd; contents are not read, links not followed. ERR_UNSUPPORTED
 * naming what cannot be saved; ERR_UNAVAILABLE if the tree changes under the scan; ERR_INVALID over
 * CKPT_FILES_MAX. */
int scan_tree(int root_fd, struct scan *ret, struct err *e);
void scan_deinit(struct scan *s);

/* ERR_UNAVAILABLE naming the first path that is not the same in both. */
int scan_compare(const struct scan *before, const struct scan *after, struct err *e);

#endif
