/* SPDX-License-Identifier: Apache-2.0
 *
 * See times.h. A record is two little-endian numbers of 8 bytes: the second since 1970, and the
 * offset in the log of the output that begins in it. Both increase from record to record.
 */
#include "scheduler/logs/times.h"

#include "base/mem.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NUMBER 8
#define ENTRY (2 * NUMBER)

static void put_number(unsigned char *p, int64_t n)
{
    for (int i = 0; i < NUMBER; i++)
        p[i] = (unsigned char)((uint64_t)n >> 8 * i);
}

static int64_t get_number(const unsigned char *p)
{
    uint64_t n = 0;
    for (int i = NUMBER; i-- > 0;)
        n = n << 8 | p[i];
    return (int64_t)n;
}

static char *path_of(const char *log)
{
    return mem_printf("%s.at", log);
}

static bool read_entry(int fd, int64_t n, int64_t *ret_second, int64_t *ret_offset)
{
    unsigned char e[ENTRY];
    if (pread(fd, e, sizeof(e), n * ENTRY) != sizeof(e))
        return false;
    *ret_second = get_number(e);
    *ret_offset = get_number(e + NUMBER);
    return true;
}

static bool write_entry(int fd, int64_t n, int64_t second, int64_t offset)
{
    unsigned char e[ENTRY];
    put_number(e, second);
    put_number(e + NUMBER, offset);
    return pwrite(fd, e, sizeof(e), n * ENTRY) == sizeof(e);
}

/* Returns the number of records; an incomplete one at the end is ignored. */
static int64_t count(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_size / ENTRY : 0;
}

static void add(const char *path, int64_t first_second, int64_t second, int64_t offset)
{
    char *at = path_of(path);
    int fd = open(at, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(at);
    if (fd < 0)
        return;
    int64_t n = count(fd), last_second, last_offset;
    if (n == 0 && write_entry(fd, 0, first_second, 0))
        n = 1;
    /* drop the records of output that a crash has lost */
    while (n > 1 && read_entry(fd, n - 1, &last_second, &last_offset) && last_offset >= offset)
        n--;
    if (n > 0 && (n + 1) * ENTRY <= LOG_TIMES_BYTES_MAX && write_entry(fd, n, second, offset) &&
        ftruncate(fd, (n + 1) * ENTRY) != 0)
        n = 0; /* the records beyond remain: of lost output, overwritten later */
    close(fd);
}

void log_times_note(
    const char *path, int fd, const struct stat *before, int64_t offset, struct wall now)
{
    int64_t second = now.ms / 1000, last = before->st_size > 0 ? before->st_mtim.tv_sec : second;
    if (second > last && offset > 0)
        add(path, last, second, offset);
    const struct timespec at = {.tv_sec = second > last ? second : last}, times[2] = {at, at};
    if (futimens(fd, times) != 0)
        return; /* the file has the time of its last write, which is nearly the same */
}

int64_t log_times_find(const char *path, const struct stat *st, struct wall since)
{
    char *at = path_of(path);
    int fd = open(at, O_RDONLY | O_CLOEXEC);
    int64_t second = since.ms / 1000, found_second, found = st->st_size;
    free(at);
    int64_t low = 0, high = fd < 0 ? 0 : count(fd);
    if (high == 0)
        found = st->st_mtim.tv_sec >= second ? 0 : st->st_size;
    while (low < high) { /* the first record that is not earlier */
        int64_t middle = low + (high - low) / 2, offset;
        if (!read_entry(fd, middle, &found_second, &offset))
            break;
        if (found_second >= second) {
            found = offset < st->st_size ? offset : st->st_size;
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}
