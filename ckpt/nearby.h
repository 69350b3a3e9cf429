/* SPDX-License-Identifier: Apache-2.0
 *
 * Content of a checkpoint that is already on this machine: in a tree left by an interrupted restore
 * or an earlier attempt. Such a tree is not trusted: an obstructed path, or wrong bytes, count as
 * missing.
 */
#ifndef BELAY_CKPT_NEARBY_H
#define BELAY_CKPT_NEARBY_H

#include "ckpt/manifest.h"

/* True if the files below the directory root_fd have the content of chunk c of m: w->content then
 * has all of it, with the chunk's hash. Follows no links, reads only regular files, never waits.
 * Any thread. */
bool nearby_read(
    int root_fd, const struct manifest *m, const struct manifest_chunk *c, struct chunk_work *w);

#endif
