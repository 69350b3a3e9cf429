/* SPDX-License-Identifier: Apache-2.0
 *
 * Large files past the page cache (O_DIRECT): what goes to the disk once, or comes from it once,
 * need not be copied there nor push out what programs work on; and the disk gets all of a file at
 * once, not when a thread of the kernel comes to write it back. Where the file system, the memory
 * or the size does not allow it, through the page cache.
 */
#ifndef BELAY_CKPT_STORE_DIRECT_H
#define BELAY_CKPT_STORE_DIRECT_H

#include "base/buf.h"
#include <stdatomic.h>
#include <stdint.h>

/* Writes all of p to fd, open on an empty file, from its beginning; past the cache what lies in
 * whole pages, if p is of mem_pages. Not durable before fsync, but on its way. */
int direct_write(int fd, const void *p, size_t n, struct err *e);

/* What nobody waits for to be durable may go either way. Which is faster here is measured: the
 * cache is, where the disk is slow and memory is free; the disk is, where the cache has more to
 * write back than it may hold, or has to get its memory from a hypervisor. Zeroed is valid; for all
 * threads of one piece of work. */
struct direct_choice {
    atomic_llong n; /* writes */
    /* ns for a MiB, the last ones counting most: through the cache, past it */
    atomic_llong cost[2];
};

/* Writes all of p at offset. Past the cache only what lies in whole pages of the file, and if p is
 * of mem_pages. */
int direct_write_at(
    struct direct_choice *c, int fd, const void *p, size_t n, int64_t offset, struct err *e);

/* As fs_read; past the cache if out's memory is of mem_pages and has room for the file and
 * DIRECT_MORE. */
#define DIRECT_MORE 8192
int direct_read(const char *path, size_t max, struct buf *out, struct err *e);

#endif
