/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/disk.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RESERVE_PIECE 16384 /* bytes that disk_give frees at a time */

static int64_t inodes_reserve(int64_t total)
{
    return min_i64(total / DISK_INODES_SHARE, DISK_INODES_MAX);
}

static bool is_short(int64_t free, int64_t reserve, bool was_full)
{
    return free < reserve + (was_full ? reserve / 4 : 0);
}

enum disk_cause disk_judge(const struct disk_space *r, enum disk_cause was)
{
    if (is_short(r->free_bytes, fs_reserve(r->total_bytes), was == DISK_NO_BYTES))
        return DISK_NO_BYTES;
    bool no_inodes =
        is_short(r->free_inodes, inodes_reserve(r->total_inodes), was == DISK_NO_INODES);
    return no_inodes ? DISK_NO_INODES : DISK_HAS_SPACE;
}

static void take(const struct statvfs *v, struct disk_space *ret)
{
    *ret = (struct disk_space){
        .total_bytes = (int64_t)(v->f_blocks * v->f_frsize),
        .free_bytes = (int64_t)(v->f_bavail * v->f_frsize),
        .total_inodes = (int64_t)v->f_files,
        .free_inodes = (int64_t)v->f_favail,
    };
}

bool disk_read(const char *dir, struct disk_space *ret)
{
    struct statvfs v;
    bool is_read = statvfs(dir, &v) == 0;
    if (is_read)
        take(&v, ret);
    return is_read;
}

bool disk_read_fd(int fd, struct disk_space *ret)
{
    struct statvfs v;
    bool is_read = fstatvfs(fd, &v) == 0;
    if (is_read)
        take(&v, ret);
    return is_read;
}

static void describe(struct disk *d, const struct disk_space *r)
{
    char free[32], total[32], kept[32];
    str_format_bytes((uint64_t)r->free_bytes, free, sizeof(free));
    str_format_bytes((uint64_t)r->total_bytes, total, sizeof(total));
    str_format_bytes((uint64_t)fs_reserve(r->total_bytes), kept, sizeof(kept));
    switch (d->cause) {
    case DISK_HAS_SPACE:
        d->text[0] = '\0';
        return;
    case DISK_NO_BYTES:
        snprintf(d->text, sizeof(d->text),
            "%s of %s are free, and %s are kept for the agent's records", free, total, kept);
        return;
    case DISK_NO_INODES:
        snprintf(d->text, sizeof(d->text), "%lld of %lld files (inodes) are free",
            (long long)r->free_inodes, (long long)r->total_inodes);
        return;
    case DISK_REFUSED:
        STR_COPY(d->text, DISK_REFUSED_TEXT);
    }
}

/* A failure is harmless: the end of a job may then have to wait for space. */
static void fill_reserve(struct disk *d, const struct disk_space *r)
{
    char path[4096];
    struct stat st;
    int64_t size = min_i64(fs_reserve(r->total_bytes) / DISK_RESERVE_SHARE, DISK_RESERVE_MAX);
    snprintf(path, sizeof(path), "%s/" DISK_RESERVE_FILE, d->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size >= size ||
        posix_fallocate(fd, 0, (off_t)size) == 0)
        d->has_reserve = fd >= 0;
    if (fd >= 0)
        close(fd);
}

bool disk_give(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool gave = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
                ftruncate(fd, st.st_size > RESERVE_PIECE ? st.st_size - RESERVE_PIECE : 0) == 0;
    if (fd >= 0)
        close(fd);
    return gave;
}

int disk_write_record(const char *dir, const char *path, const void *p, size_t n, struct err *e)
{
    char *reserve = mem_printf("%s/" DISK_RESERVE_FILE, dir);
    int rc;
    do
        rc = fs_write_atomic(path, p, n, 0600, e);
    while (rc == ERR_NO_SPACE && disk_give(reserve));
    free(reserve);
    return rc;
}

static void become(struct disk *d, enum disk_cause cause, const struct disk_space *r)
{
    if (cause == d->cause)
        return;
    d->cause = cause;
    describe(d, r);
    if (cause != DISK_HAS_SPACE)
        log_warn("this node's disk is full: it gets no new work until it has space",
            log_s("dir", d->dir), log_s("why", d->text));
    else
        log_info("this node's disk has space again", log_s("dir", d->dir));
    d->changed(d->ctx);
}

static void check(struct disk *d)
{
    struct disk_space r;
    int64_t now = clock_mono(d->timers->clock).ms;
    bool was_refused = mono_is_set(d->refused_at) && now - d->refused_at.ms < DISK_REFUSED_MS;
    if (!disk_read(d->dir, &r))
        return;
    enum disk_cause cause = disk_judge(&r, d->cause);
    if (cause != DISK_HAS_SPACE) /* pieces of the reserve may be used meanwhile */
        d->has_reserve = false;
    else if (!d->has_reserve)
        fill_reserve(d, &r);
    become(d, cause == DISK_HAS_SPACE && was_refused ? DISK_REFUSED : cause, &r);
}

static void on_check(struct timer *timer, void *ctx)
{
    struct disk *d = ctx;
    timer_start(d->timers, timer, DISK_CHECK_MS);
    check(d);
}

void disk_start(struct disk *d)
{
    d->refused_at = MONO_NONE;
    timer_init(&d->check, on_check, d);
    timer_start(d->timers, &d->check, DISK_CHECK_MS);
    on_check(&d->check, d);
}

void disk_stop(struct disk *d)
{
    if (d->timers)
        timer_stop(d->timers, &d->check);
}

void disk_refused(struct disk *d, bool of_records, const char *why)
{
    if (of_records)
        d->refused_at = clock_mono(d->timers->clock);
    log_info("a start found no space on this node's disk", log_s("dir", d->dir), log_s("why", why));
    check(d);
}

const char *disk_full(const struct disk *d)
{
    return d->text;
}
