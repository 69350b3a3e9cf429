/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot of a tree, kept while the program continues and the snapshot is stored: the scan in
 * memory, and the content of each file, in the cheapest of these ways that is safe whatever the
 * program does next:
 *
 *     copied   small files, into one unnamed file (`spool`), up to a total; costs almost nothing
 *     cloned   FICLONERANGE into the spool, where the file system shares blocks (XFS, btrfs,
 *              bcachefs)
 *     open     the file is kept open. If the program replaces it, our copy stays intact; a write in
 *              place is detected afterwards (snapshot_check), and the save fails
 *
 * A snapshot has no names: a kill leaves nothing behind, and no stamp or link count of the tree
 * changes, as with hard links. Only files whose stamps reveal every write are kept open: seen.h 1.,
 * 2. (after waiting for a tick of the clock) and 3.
 */
#ifndef BELAY_CKPT_SNAPSHOT_H
#define BELAY_CKPT_SNAPSHOT_H

#include "ckpt/manifest.h"
#include "ckpt/scan.h"
#include "ckpt/seen.h"
#include <stdatomic.h>
#include <sys/types.h>

struct snapshot_file {
    enum { SNAPSHOT_NOTHING, SNAPSHOT_SPOOL, SNAPSHOT_KEPT_OPEN } how;
    int fd;         /* of one kept open */
    int64_t offset; /* in the spool */
    nlink_t links;  /* of one kept open, at the snapshot */
    bool is_quiet;  /* no process had it open for writing, or mapped */
};

struct ckpt_snapshot {
    struct manifest manifest; /* cut and laid out, without a job yet; moved away by the save */
    struct scan scan;
    struct seen_save seen;
    struct snapshot_file *files; /* of the entries */
    size_t n_files, n_kept_open;
    int spool;         /* -1 = none */
    int64_t spool_end; /* end of the used part */
    struct ckpt_snapshot_stats stats;
    atomic_bool disturbed;
};

/* Reads n bytes of entry i from offset on; file is that entry. ERR_UNAVAILABLE if it was kept open
 * and written to since. Thread-safe. */
int snapshot_read(struct ckpt_snapshot *s, size_t i, const struct manifest_entry *file, char *p,
    size_t n, int64_t offset, struct err *e);

/* Call after all reading, with m unchanged: ERR_UNAVAILABLE if a file kept open was written to
 * since, naming it. */
int snapshot_check(struct ckpt_snapshot *s, const struct manifest *m, struct err *e);

#endif
