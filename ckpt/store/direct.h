/* SPDX-License-Identifier: Apache-2.0
 *
 * I/O of large files past the page cache (O_DIRECT): data that is written or read once need not be
 * copied there and does not evict what programs use; and the disk gets a file at once, not when a
 * kernel thread writes it back. Falls back to the page cache where the file system, the memory or
 * the size does not allow it.
 */
#ifndef BELAY_CKPT_STORE_DIRECT_H
#define BELAY_CKPT_STORE_DIRECT_H

#include "base/buf.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes all of p to fd, open on an empty file, from the start; whole pages go past the cache if p
 * is from mem_pages. Not durable before fsync, but writing has begun. */
int direct_write(int fd, const void *p, size_t n, struct err *e);

/* Writes that need not be durable yet may go either way; the faster one is measured. The cache is
 * faster while it has space and memory is free; direct I/O is faster where the cache must get
 * memory from a hypervisor. Direct I/O is also used while so much of the cache is dirty that Linux
 * would delay writers. Zeroed is valid; shared by all threads of one operation. */
struct direct_choice {
    atomic_llong n; /* writes */
    /* Moving average in ns per MiB. Through the cache: processor time, because the rest of the time
     * is spent waiting for other threads, which may be direct writes to the same file. Past it: the
     * time it took, divided by the number of direct writes in flight. */
    atomic_llong cost[2];
    atomic_int in_flight; /* direct writes */
    atomic_bool is_full;  /* direct_cache_is_full when it was last read */
};

/* True if, by the text of /proc/vmstat, nearly as much of the page cache is dirty or being written
 * as Linux allows before it delays writers. False if the text does not say. */
bool direct_cache_is_full(const char *vmstat);

/* Writes all of p at offset. Only whole pages of the file go past the cache, and only if p is from
 * mem_pages. */
int direct_write_at(
    struct direct_choice *c, int fd, const void *p, size_t n, int64_t offset, struct err *e);

/* As fs_read; past the cache if out's memory is from mem_pages and has space for the file and
 * DIRECT_MORE. */
#define DIRECT_MORE 8192
int direct_read(const char *path, size_t max, struct buf *out, struct err *e);

#endif
