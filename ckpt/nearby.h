/* SPDX-License-Identifier: Apache-2.0
 *
 * Content of a checkpoint that stands on this machine already: in a tree that an interrupted
 * restore has begun, or that an earlier attempt left. Nothing in such a tree is believed: what is
 * in the way of a path, or not the right bytes, is as if it were missing.
 */
#ifndef BELAY_CKPT_NEARBY_H
#define BELAY_CKPT_NEARBY_H

#include "ckpt/manifest.h"

/* True if the files below the directory root_fd hold the content of chunk c, a chunk of m's: it is
 * then in w->content, all of it, and has the chunk's hash. No link is followed, nothing but regular
 * files is read, nothing waits. Any thread. */
bool nearby_read(
    int root_fd, const struct manifest *m, const struct manifest_chunk *c, struct chunk_work *w);

#endif
