/* SPDX-License-Identifier: Apache-2.0
 *
 * The archive of a backup: a POSIX tar (ustar) of regular files, which every tar program reads. The
 * reader takes only that: no links, no directories, no extensions, names of one part. So nothing in
 * an archive can lead out of the directory that it is unpacked to.
 */
#ifndef BELAY_BACKUP_ARCHIVE_H
#define BELAY_BACKUP_ARCHIVE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_NAME_MAX 100 /* bytes including the NUL */
#define ARCHIVE_ENTRY_MAX (64 << 20)
#define ARCHIVE_BLOCK 512

/* [A-Za-z0-9][A-Za-z0-9._-]*, at most ARCHIVE_NAME_MAX - 1 bytes. */
bool archive_name_is_valid(const char *name);

/* Appends a file of mode 0600 with this content, at most ARCHIVE_ENTRY_MAX bytes. mtime in seconds
 * since 1970. */
int archive_add(int fd, const char *name, const void *p, size_t n, int64_t mtime, struct err *e);
/* Appends the end of the archive. */
int archive_end(int fd, struct err *e);

struct archive_entry {
    char name[ARCHIVE_NAME_MAX];
    size_t size;
};

/* Parses a header of ARCHIVE_BLOCK bytes; *ret_end is true for the empty block at the end.
 * ERR_CORRUPT: not a header that archive_add writes, or larger than ARCHIVE_ENTRY_MAX. */
int archive_parse(const char *block, struct archive_entry *ret_entry, bool *ret_end, struct err *e);

/* Reads the next header; the content follows in fd, archive_padded(size) bytes with its padding.
 * ERR_CORRUPT also if the file ends early. */
int archive_next(int fd, struct archive_entry *ret_entry, bool *ret_end, struct err *e);
/* Reads exactly n bytes. ERR_CORRUPT if the file ends early. */
int archive_read(int fd, void *p, size_t n, struct err *e);
size_t archive_padded(size_t size);

#endif
