/* SPDX-License-Identifier: Apache-2.0
 *
 * See tar.h. IEEE Std 1003.1-2017, pax: a header of 512 bytes, preceded by an extended header for
 * values that do not fit. "SCHILY.xattr." is the prefix of attributes in star, GNU tar and
 * libarchive.
 */
#include "cli/workdir/tar.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 512
#define NAME_MAX_BYTES 100
#define OCTAL_MAX ((INT64_C(1) << 33) - 1) /* 11 digits */
#define ID_MAX_OCTAL 2097151               /* 7 digits */
#define COPY_BYTES (256u << 10)
#define XATTR_LIST_MAX 65536
#define LINK_BYTES_MAX 4096

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, target[100],
        magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

struct entry {
    const char *path, *target; /* target may be NULL */
    char type;
    const struct stat *st;
    int64_t size;
};

struct tar {
    int fd;
    struct smap first; /* "dev ino" of a file with several names -> its first path, owned */
    char *copy;        /* COPY_BYTES */
};

/* ---- headers ---- */

static void octal(char *field, size_t size, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%0*" PRIo64, (int)size - 1, (uint64_t)value);
    memcpy(field, text, size); /* including its NUL */
}

static void put_name(char field[NAME_MAX_BYTES], const char *text)
{
    size_t n = strlen(text);
    memcpy(field, text, n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES);
}

static void add_block(struct buf *out, const struct entry *entry)
{
    struct header h = {.type = entry->type, .magic = "ustar", .version = {'0', '0'}};
    unsigned int sum = 0;
    put_name(h.name, entry->path);
    put_name(h.target, entry->target ? entry->target : "");
    octal(h.mode, sizeof(h.mode), entry->st->st_mode & 07777);
    octal(h.uid, sizeof(h.uid), entry->st->st_uid <= ID_MAX_OCTAL ? entry->st->st_uid : 0);
    octal(h.gid, sizeof(h.gid), entry->st->st_gid <= ID_MAX_OCTAL ? entry->st->st_gid : 0);
    octal(h.size, sizeof(h.size), entry->size <= OCTAL_MAX ? entry->size : 0);
    octal(h.mtime, sizeof(h.mtime),
        entry->st->st_mtim.tv_sec >= 0 && entry->st->st_mtim.tv_sec <= OCTAL_MAX
            ? entry->st->st_mtim.tv_sec
            : 0);
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    octal(h.checksum, 7, sum); /* six digits, a NUL, and the blank already there */
    buf_add(out, &h, sizeof(h));
}

static void pad(struct buf *out)
{
    static const char zeros[BLOCK];
    buf_add(out, zeros, (BLOCK - out->len % BLOCK) % BLOCK);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static void add_record(struct buf *out, const char *key, const void *value, size_t n)
{
    size_t rest = strlen(key) + n + 3, len = rest + 1;
    char digits[24];
    while (len != rest + (size_t)snprintf(digits, sizeof(digits), "%zu", len))
        len = rest + strlen(digits);
    buf_printf(out, "%zu %s=", len, key);
    buf_add(out, value, n);
    buf_addc(out, '\n');
}

static void add_text(struct buf *out, const char *key, const char *value)
{
    add_record(out, key, value, strlen(value));
}

static void add_times(struct buf *out, const struct timespec *t)
{
    char text[48];
    int64_t seconds = t->tv_sec, ns = t->tv_nsec;
    bool negative = seconds < 0;
    if (ns == 0 && seconds >= 0 && seconds <= OCTAL_MAX)
        return;
    if (negative && ns > 0) { /* a decimal fraction counts from zero */
        seconds++;
        ns = 1000000000 - ns;
    }
    snprintf(text, sizeof(text), "%s%" PRId64 ".%09" PRId64, negative && seconds == 0 ? "-" : "",
        seconds, ns);
    add_text(out, "mtime", text);
}

static int add_xattrs(struct buf *out, const char *file, const char *path, struct err *e)
{
    char *names = mem_alloc(XATTR_LIST_MAX), *value = mem_alloc(XATTR_LIST_MAX);
    ssize_t n = llistxattr(file, names, XATTR_LIST_MAX);
    int rc = n < 0 && errno != ENOTSUP
                 ? err_errno(e, errno, "list the attributes of '%.300s'", path)
                 : 0;
    for (const char *name = names; !rc && name < names + n; name += strlen(name) + 1) {
        if (!str_starts(name, "user."))
            continue;
        ssize_t size = lgetxattr(file, name, value, XATTR_LIST_MAX);
        char *key = mem_printf("SCHILY.xattr.%s", name);
        if (size < 0)
            rc = err_errno(e, errno, "read attribute %.100s of '%.300s'", name, path);
        else
            add_record(out, key, value, (size_t)size);
        free(key);
    }
    free(names);
    free(value);
    return rc;
}

/* Writes everything before an entry's content. */
static int write_headers(struct tar *t, const struct entry *entry, const char *file, struct err *e)
{
    struct buf more = {0}, out = {0};
    char number[24];
    int rc = 0;
    if (strlen(entry->path) > NAME_MAX_BYTES)
        add_text(&more, "path", entry->path);
    if (entry->target && strlen(entry->target) > NAME_MAX_BYTES)
        add_text(&more, "linkpath", entry->target);
    if (entry->size > OCTAL_MAX) {
        snprintf(number, sizeof(number), "%" PRId64, entry->size);
        add_text(&more, "size", number);
    }
    add_times(&more, &entry->st->st_mtim);
    if (entry->type == '0' || entry->type == '5')
        rc = add_xattrs(&more, file, entry->path, e);
    if (!rc && more.len) {
        const struct entry extended = {"pax_header", NULL, 'x', entry->st, (int64_t)more.len};
        add_block(&out, &extended);
        buf_add(&out, more.data, more.len);
        pad(&out);
    }
    add_block(&out, entry);
    if (!rc)
        rc = fs_write_all(t->fd, out.data, out.len, e);
    buf_deinit(&more);
    buf_deinit(&out);
    return rc;
}

/* ---- entries ---- */

static int write_content(struct tar *t, const struct entry *entry, const char *file, struct err *e)
{
    static const char zeros[BLOCK];
    int64_t left = entry->size;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
    if (fd < 0)
        return err_errno(e, errno, "open '%.300s'", entry->path);
    while (!rc && left > 0) {
        ssize_t n = read(fd, t->copy, left < COPY_BYTES ? (size_t)left : COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = err_errno(e, errno, "read '%.300s'", entry->path);
        else if (n == 0)
            rc = err_set(
                e, ERR_UNAVAILABLE, "'%.300s' became shorter while it was read", entry->path);
        else
            rc = fs_write_all(t->fd, t->copy, (size_t)n, e);
        left -= n > 0 ? n : 0;
    }
    close(fd);
    return rc ? rc : fs_write_all(t->fd, zeros, (size_t)((BLOCK - entry->size % BLOCK) % BLOCK), e);
}

static int write_link(struct tar *t, struct entry *entry, const char *file, struct err *e)
{
    char target[LINK_BYTES_MAX + 1];
    ssize_t n = readlink(file, target, sizeof(target));
    if (n < 0)
        return err_errno(e, errno, "read the link '%.300s'", entry->path);
    if (n > LINK_BYTES_MAX)
        return err_set(e, ERR_UNSUPPORTED, "the link '%.300s' is longer than %d bytes", entry->path,
            LINK_BYTES_MAX);
    target[n] = '\0';
    entry->type = '2';
    entry->target = target;
    return write_headers(t, entry, file, e);
}

static int write_file(struct tar *t, struct entry *entry, const char *file, struct err *e)
{
    char key[64];
    snprintf(key, sizeof(key), "%" PRIuMAX " %" PRIuMAX, (uintmax_t)entry->st->st_dev,
        (uintmax_t)entry->st->st_ino);
    const char *first = entry->st->st_nlink > 1 ? smap_get(&t->first, key) : NULL;
    if (entry->st->st_nlink > 1 && !first)
        smap_put(&t->first, key, mem_strdup(entry->path));
    entry->type = first ? '1' : '0';
    entry->target = first;
    entry->size = first ? 0 : entry->st->st_size;
    int rc = write_headers(t, entry, file, e);
    return rc || first ? rc : write_content(t, entry, file, e);
}

static int write_entry(struct tar *t, const char *path, const FTSENT *found, struct err *e)
{
    struct entry entry = {.path = path, .st = found->fts_statp};
    char *dir = mem_printf("%s/", path);
    int rc;
    switch (found->fts_info) {
    case FTS_D:
        entry.type = '5';
        entry.path = dir;
        rc = write_headers(t, &entry, found->fts_accpath, e);
        break;
    case FTS_F:
        rc = write_file(t, &entry, found->fts_accpath, e);
        break;
    case FTS_SL:
    case FTS_SLNONE:
        rc = write_link(t, &entry, found->fts_accpath, e);
        break;
    case FTS_DP:
        rc = 0;
        break;
    case FTS_DNR:
    case FTS_NS:
    case FTS_ERR:
        rc = err_errno(e, found->fts_errno, "read '%.300s'", path);
        break;
    default:
        rc = err_set(
            e, ERR_UNSUPPORTED, "'%.300s' is no regular file, directory or symbolic link", path);
        break;
    }
    free(dir);
    return rc;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int tar_write(int fd, const char *dir, struct err *e)
{
    static const char end[2 * BLOCK];
    char *root = mem_strdup(dir);
    char *const roots[] = {root, NULL};
    struct tar t = {.fd = fd, .copy = mem_alloc(COPY_BYTES)};
    const char *key;
    size_t pos = 0;
    int rc = 0;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        rc = err_errno(e, errno, "walk %s", dir);
    for (FTSENT *found; !rc && (errno = 0, found = fts_read(walk));)
        if (found->fts_level > 0 || found->fts_info == FTS_DNR)
            rc = write_entry(&t, found->fts_path + strlen(dir) + (found->fts_level > 0), found, e);
    if (!rc && errno)
        rc = err_errno(e, errno, "walk %s", dir);
    if (walk)
        fts_close(walk);
    for (char *path; (path = smap_next(&t.first, &pos, &key));)
        free(path);
    smap_deinit(&t.first);
    free(t.copy);
    free(root);
    return rc ? rc : fs_write_all(fd, end, sizeof(end), e);
}
