/* SPDX-License-Identifier: Apache-2.0
 *
 * A moment of a tree, kept while the program goes on and what was kept is stored: the scan in
 * memory, and for each file its content, in the cheapest of these ways that holds for whatever the
 * program does next:
 *
 *     copied   small files, into one file without a name (`spool`), up to a total: as good as free
 *     cloned   FICLONERANGE into the spool, where the file system shares blocks (XFS, btrfs,
 *              bcachefs)
 *     held     the file is kept open. Who replaces files leaves it whole for us; who writes to it
 *              in place is noticed afterwards (snapshot_check), and the save fails
 *
 * Nothing of it has a name: whoever is killed leaves nothing behind, and no stamp or link count of
 * the tree moves, as a hard link would make them. Held are only files whose stamps tell of every
 * write: seen.h 1., 2. (there is a wait for it, of a tick of the clock) and 3.
 */
#ifndef BELAY_CKPT_SNAPSHOT_H
#define BELAY_CKPT_SNAPSHOT_H

#include "ckpt/manifest.h"
#include "ckpt/scan.h"
#include "ckpt/seen.h"
#include <stdatomic.h>
#include <sys/types.h>

struct snapshot_file {
    enum { SNAPSHOT_NOTHING, SNAPSHOT_SPOOL, SNAPSHOT_HELD } how;
    int fd;         /* of a held one */
    int64_t offset; /* in the spool */
    nlink_t links;  /* of a held one, then */
    bool is_quiet;  /* nobody had it open for writing, or mapped */
};

struct ckpt_snapshot {
    struct manifest manifest; /* cut and laid out, of no job yet; moved away by the save */
    struct scan scan;
    struct seen_save seen;
    struct snapshot_file *files; /* of the entries */
    size_t n_files, n_held;
    int spool;         /* -1 = none */
    int64_t spool_end; /* where there is room */
    struct ckpt_snapshot_stats stats;
    atomic_bool disturbed;
};

/* n bytes of entry i from offset on; file is that entry. ERR_UNAVAILABLE if it was held and written
 * to since. From several threads at once. */
int snapshot_read(struct ckpt_snapshot *s, size_t i, const struct manifest_entry *file, char *p,
    size_t n, int64_t offset, struct err *e);

/* After all reading, with m as it was: ERR_UNAVAILABLE if a held file was written to since, naming
 * it. */
int snapshot_check(struct ckpt_snapshot *s, const struct manifest *m, struct err *e);

#endif
