/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that two files share (FICLONERANGE: XFS, btrfs, bcachefs): a restore need not write
 * content that is on this disk already. The hash is computed from the restored file, which only the
 * agent can change, not from the source.
 */
#ifndef BELAY_CKPT_CLONE_H
#define BELAY_CKPT_CLONE_H

#include "ckpt/manifest.h"
#include <stdatomic.h>

/* Makes n bytes at `offset` of `to`, open for writing and at least that large, the same blocks as
 * those at from_offset of `from`, open for reading. Offsets are multiples of 64 KiB; so is n, or
 * the range ends where both files end. */
enum clone_result clone_range(int from, int64_t from_offset, int to, int64_t offset, int64_t n);

/* Where a chunk may be: in the tree root_fd, which has the files of the manifest, or, if store is
 * not NULL, in its object `name`, which has the content as it is. */
struct clone_source {
    int root_fd;
    struct store *store;
    const char *name;
    atomic_bool *never; /* set once this source has refused */
};

/* True if chunk c of m, a part of a large file below the directory root_fd, has been restored and
 * verified. If not, the file has any content there. Uses w->content. */
bool clone_chunk(const struct clone_source *from, int root_fd, const struct manifest *m,
    const struct manifest_chunk *c, struct chunk_work *w);

#endif
