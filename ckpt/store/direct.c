/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/direct.h"
#include "base/fs.h"
#include "base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE ((size_t)4096) /* at least the block size of every disk */
/* smaller writes go through the page cache: the disk's latency exceeds the cost of the copy */
#define DIRECT_MIN ((size_t)(256u << 10))

#define TRIED 4     /* first writes in each mode, direct and cached, to compare their cost */
#define RETRIED 512 /* TRIED of this many later ones, in a row, use the slower mode */
#define LOOKED 4    /* one of this many writes looks how much of the cache is dirty */
#define VMSTAT_MAX (32u << 10)

/* Bytes of a write through the cache. The larger it is, the larger are the pages that Linux
 * allocates for it, and on a virtual machine those are the ones that the hypervisor has to supply
 * first. */
#define CACHED_BYTES ((size_t)(32u << 10))

static bool is_aligned(const void *p)
{
    return (uintptr_t)p % PAGE == 0;
}

static bool set_direct(int fd, bool yes)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, yes ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/* Returns how much of n whole pages was written. If the file system refuses, or the disk is full,
 * writing the rest through the cache reports the error. */
static size_t write_pages(int fd, const char *p, size_t n)
{
    size_t done = 0;

    if (n < DIRECT_MIN || !is_aligned(p) || !set_direct(fd, true))
        return 0;
    while (done < n) {
        ssize_t written = write(fd, p + done, n - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
        if (done % PAGE)
            break;
    }
    set_direct(fd, false);
    return done;
}

int direct_write(int fd, const void *p, size_t n, struct err *e)
{
    size_t done = write_pages(fd, p, n / PAGE * PAGE);

    if (done == n)
        return 0;
    if (fs_write_all(fd, (const char *)p + done, n - done, e))
        return e->kind;
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* a hint; fsync reports errors */
    return 0;
}

/* ---- Either way ---- */

/* The value of a line "NAME VALUE"; -1 if there is none. */
static long long vmstat_value(const char *text, const char *name)
{
    size_t n = strlen(name);
    const char *line = text;

    while (line && !(strncmp(line, name, n) == 0 && line[n] == ' '))
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    return line ? strtoll(line + n, NULL, 10) : -1;
}

bool direct_cache_is_full(const char *vmstat)
{
    long long dirty = vmstat_value(vmstat, "nr_dirty"),
              written = vmstat_value(vmstat, "nr_writeback"),
              most = vmstat_value(vmstat, "nr_dirty_threshold"),
              least = vmstat_value(vmstat, "nr_dirty_background_threshold");

    if (dirty < 0 || written < 0 || most <= 0 || least < 0)
        return false;
    /* Linux delays writers from (most + least) / 2 on; a sixteenth less, as others write too */
    return dirty + written >= (most + least) / 2 - (most + least) / 32;
}

static void look_at_cache(struct direct_choice *c)
{
    char text[VMSTAT_MAX];

    atomic_store(&c->is_full,
        fs_read_start("/proc/vmstat", text, sizeof(text)) && direct_cache_is_full(text));
}

static bool bypasses_cache(struct direct_choice *c)
{
    long long n = atomic_fetch_add(&c->n, 1);
    bool is_direct = atomic_load(&c->cost[true]) < atomic_load(&c->cost[false]);

    if (n % LOOKED == 0)
        look_at_cache(c);
    if (n < 2L * TRIED)
        return n < TRIED;
    if (atomic_load(&c->is_full))
        return true;
    return n % RETRIED < TRIED ? !is_direct : is_direct;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void note_cost(struct direct_choice *c, bool is_direct, int64_t took_ns, size_t n)
{
    long long cost = took_ns / (long long)(1 + (n >> 20)),
              before = atomic_load(&c->cost[is_direct]);

    /* a lost update only loses one sample */
    atomic_store(&c->cost[is_direct], before ? (7 * before + cost) / 8 : cost);
}

static int write_cached(int fd, const char *p, size_t n, int64_t offset, struct err *e)
{
    for (size_t done = 0; done < n;) {
        size_t piece = n - done < CACHED_BYTES ? n - done : CACHED_BYTES;
        ssize_t written = pwrite(fd, p + done, piece, offset + (int64_t)done);

        if (written < 0 && errno != EINTR)
            return err_errno(e, errno, "write failed");
        done += written < 0 ? 0 : (size_t)written;
    }
    return 0;
}

/* Returns how much of p was written. */
static size_t write_direct(struct direct_choice *c, int fd, const void *p, size_t n, int64_t offset)
{
    if (lseek(fd, offset, SEEK_SET) < 0)
        return 0;
    int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    int at_first = atomic_fetch_add(&c->in_flight, 1) + 1;
    size_t done = write_pages(fd, p, n / PAGE * PAGE);
    int at_last = atomic_fetch_sub(&c->in_flight, 1);

    note_cost(c, true,
        (clock_ns(CLOCK_MONOTONIC) - began_ns) / (at_first > at_last ? at_first : at_last), n);
    return done;
}

int direct_write_at(
    struct direct_choice *c, int fd, const void *p, size_t n, int64_t offset, struct err *e)
{
    bool may = n >= DIRECT_MIN && offset % (int64_t)PAGE == 0 && is_aligned(p);
    int64_t began_ns;
    size_t done;

    if (!may)
        return write_cached(fd, p, n, offset, e);
    if (bypasses_cache(c)) {
        done = write_direct(c, fd, p, n, offset);
        return write_cached(fd, (const char *)p + done, n - done, offset + (int64_t)done, e);
    }
    began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (write_cached(fd, p, n, offset, e))
        return e->kind;
    note_cost(c, false, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, n);
    return 0;
}

/* ---- Reading ---- */

/* Reads the whole file; false if it must be read another way. */
static bool read_pages(int fd, size_t size, struct buf *out)
{
    size_t space = (size + PAGE) / PAGE * PAGE, got = 0;

    if (size < DIRECT_MIN || space >= out->cap || !is_aligned(out->data) || !set_direct(fd, true))
        return false;
    while (got < size) {
        ssize_t n = read(fd, out->data + got, space - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        got += (size_t)n;
        if (got < size && got % PAGE)
            return false;
    }
    buf_commit(out, got);
    return true;
}

int direct_read(const char *path, size_t max, struct buf *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_read;
    struct stat st;

    buf_clear(out);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    is_read = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= max &&
              read_pages(fd, (size_t)st.st_size, out);
    close(fd);
    return is_read ? 0 : fs_read(path, max, out, e);
}
