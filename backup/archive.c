/* SPDX-License-Identifier: Apache-2.0
 *
 * The header: POSIX.1-2017, pax, "ustar Interchange Format".
 */
#include "backup/archive.h"

#include "base/fs.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Offsets and widths of the fields that are used. */
enum {
    AT_NAME = 0,
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_CHECKSUM = 148,
    AT_TYPE = 156,
    AT_LINK = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    WIDTH_SHORT = 8,
    WIDTH_LONG = 12
};

static const char zeros[2 * ARCHIVE_BLOCK];

bool archive_name_is_valid(const char *name)
{
    return str_is_name(name, ARCHIVE_NAME_MAX - 1);
}

size_t archive_padded(size_t size)
{
    return (size + ARCHIVE_BLOCK - 1) / ARCHIVE_BLOCK * ARCHIVE_BLOCK;
}

/* The field itself counts as blanks. */
static unsigned checksum(const char *block)
{
    unsigned sum = 0;
    for (int i = 0; i < ARCHIVE_BLOCK; i++)
        sum += i >= AT_CHECKSUM && i < AT_CHECKSUM + WIDTH_SHORT ? ' ' : (unsigned char)block[i];
    return sum;
}

/* Digits from the right, and the NUL that is there already. */
static void put_octal(char *field, int digits, uint64_t value)
{
    for (; digits > 0; value /= 8)
        field[--digits] = (char)('0' + value % 8);
}

int archive_add(int fd, const char *name, const void *p, size_t n, int64_t mtime, struct err *e)
{
    char block[ARCHIVE_BLOCK] = {0};
    if (!archive_name_is_valid(name) || n > ARCHIVE_ENTRY_MAX)
        return err_set(e, ERR_INVALID, "%.100s, %zu bytes: no entry of a backup", name, n);
    memcpy(block + AT_NAME, name, strlen(name));
    put_octal(block + AT_MODE, WIDTH_SHORT - 1, 0600);
    put_octal(block + AT_UID, WIDTH_SHORT - 1, 0);
    put_octal(block + AT_GID, WIDTH_SHORT - 1, 0);
    put_octal(block + AT_SIZE, WIDTH_LONG - 1, n);
    put_octal(block + AT_MTIME, WIDTH_LONG - 1, (uint64_t)mtime);
    block[AT_TYPE] = '0';
    memcpy(block + AT_MAGIC,
        "ustar\0"
        "00",
        8);
    put_octal(block + AT_CHECKSUM, WIDTH_SHORT - 2, checksum(block));
    block[AT_CHECKSUM + 7] = ' ';
    int rc = fs_write_all(fd, block, sizeof(block), e);
    if (rc == 0)
        rc = fs_write_all(fd, p, n, e);
    return rc != 0 ? rc : fs_write_all(fd, zeros, archive_padded(n) - n, e);
}

int archive_end(int fd, struct err *e)
{
    return fs_write_all(fd, zeros, sizeof(zeros), e);
}

/* An octal number that fills the field up to one NUL or blank. */
static bool read_octal(const char *field, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t n = 0;
    while (n < width && field[n] >= '0' && field[n] <= '7')
        value = value * 8 + (uint64_t)(field[n++] - '0');
    *ret_value = value;
    return n > 0 && (n == width || field[n] == '\0' || field[n] == ' ');
}

int archive_parse(const char *block, struct archive_entry *ret_entry, bool *ret_end, struct err *e)
{
    struct archive_entry entry = {{0}, 0};
    uint64_t size, sum;
    *ret_end = memcmp(block, zeros, ARCHIVE_BLOCK) == 0;
    if (*ret_end)
        return 0;
    if (memcmp(block + AT_MAGIC, "ustar", 5) != 0 ||
        !read_octal(block + AT_CHECKSUM, WIDTH_SHORT, &sum) || sum != checksum(block))
        return err_set(e, ERR_CORRUPT, "it is no tar archive, or damaged");
    memcpy(entry.name, block + AT_NAME, ARCHIVE_NAME_MAX - 1);
    if (block[AT_TYPE] != '0' || block[AT_LINK] || block[AT_PREFIX] ||
        block[AT_NAME + ARCHIVE_NAME_MAX - 1] || !archive_name_is_valid(entry.name))
        return err_set(e, ERR_CORRUPT,
            "it has an entry that no backup has: a link, a directory, or "
            "a name of several parts");
    if (!read_octal(block + AT_SIZE, WIDTH_LONG, &size) || size > ARCHIVE_ENTRY_MAX)
        return err_set(e, ERR_CORRUPT, "its entry %s is larger than any of a backup", entry.name);
    entry.size = (size_t)size;
    *ret_entry = entry;
    return 0;
}

int archive_read(int fd, void *p, size_t n, struct err *e)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = read(fd, (char *)p + got, n - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_errno(e, errno, "read it");
        if (r == 0)
            return err_set(e, ERR_CORRUPT, "it ends early: it was cut, or not completely written");
        got += (size_t)r;
    }
    return 0;
}

int archive_next(int fd, struct archive_entry *ret_entry, bool *ret_end, struct err *e)
{
    char block[ARCHIVE_BLOCK];
    int rc = archive_read(fd, block, sizeof(block), e);
    return rc != 0 ? rc : archive_parse(block, ret_entry, ret_end, e);
}
