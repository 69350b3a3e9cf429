/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole files: read with a limit, written so that a crash leaves the old or the new content, never
 * a part. Directory trees are in fs_tree.c.
 */
#include "base/fs.h"

#include "base/mem.h"
#include "base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP ((size_t)16 << 10)
#define LOCK_MS 5000
#define LOCK_RETRY_MS 20

/* Reads to the end. size is the file's estimated size; more than max bytes are an error. */
static int read_all(
    int fd, const char *path, size_t size, size_t max, struct buf *out, struct err *e)
{
    for (;;) {
        size_t step = size > out->len && size <= max ? size - out->len : READ_STEP;
        char *to = buf_reserve(out, step);
        ssize_t got = read(fd, to, step);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, errno, "cannot read %s", path);
        if (got == 0)
            return 0;
        buf_commit(out, (size_t)got);
        if (out->len > max)
            return err_set(e, ERR_INVALID,
                "cannot read %s: it is larger than the limit of %zu bytes", path, max);
    }
}

static int read_regular(
    const char *path, bool is_secret, size_t max, struct buf *out, struct err *e)
{
    struct stat st;
    buf_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    int rc;
    if (fstat(fd, &st) < 0)
        rc = err_errno(e, errno, "cannot read %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, ERR_INVALID, "cannot read %s: it is not a regular file", path);
    else if (is_secret && (st.st_mode & 077))
        rc = err_set(e, ERR_DENIED,
            "%s holds a secret but others may read it (mode %03o): chmod 600 it", path,
            (unsigned)(st.st_mode & 0777));
    else
        /* st_size is 0 for /proc and cgroup files */
        rc = read_all(fd, path, (size_t)st.st_size, max, out, e);
    close(fd);
    return rc;
}

int fs_read(const char *path, size_t max, struct buf *out, struct err *e)
{
    return read_regular(path, false, max, out, e);
}

bool fs_read_start(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

int fs_read_secret(const char *path, size_t max, struct buf *out, struct err *e)
{
    /* reserve all at once: growing would leave unwiped copies of the secret */
    buf_reserve(out, max + 2 * READ_STEP);
    return read_regular(path, true, max, out, e);
}

/* The kernel releases a killed process's locks only after its memory, which takes a moment. */
int fs_lock(int fd)
{
    int64_t end = clock_mono(&clock_system).ms + LOCK_MS;
    int rc;
    while ((rc = flock(fd, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK &&
           clock_mono(&clock_system).ms < end)
        poll(NULL, 0, LOCK_RETRY_MS);
    return rc;
}

int fs_write_all(int fd, const void *p, size_t n, struct err *e)
{
    const char *at = p;
    while (n > 0) {
        ssize_t written = write(fd, at, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return err_errno(e, errno, "write failed");
        at += written;
        n -= (size_t)written;
    }
    return 0;
}

/* Writes a finished, fsynced file next to path; the caller frees *ret_temporary. owner may be NULL.
 * A failure leaves no file. */
static int write_temporary(const struct fs_owner *owner, const char *path, const void *p, size_t n,
    mode_t mode, char **ret_temporary, struct err *e)
{
    char *temporary = mem_printf("%s.XXXXXX", path);
    int rc = 0, fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        rc = err_errno(e, errno, "cannot create a temporary file next to %s", path);
        free(temporary);
        return rc;
    }
    struct err why;
    if (fs_write_all(fd, p, n, &why))
        rc = err_set(e, why.kind, "cannot write %s: %s", temporary, why.text);
    else if (owner && fchown(fd, owner->uid, owner->gid) < 0 && errno != EPERM)
        rc = err_errno(e, errno, "cannot change the owner of %s", temporary);
    else if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
        rc = err_errno(e, errno, "cannot write %s", temporary);
    if (close(fd) < 0 && rc == 0)
        rc = err_errno(e, errno, "cannot write %s", temporary);
    if (rc) {
        unlink(temporary);
        free(temporary);
        return rc;
    }
    *ret_temporary = temporary;
    return 0;
}

static int sync_parent(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char *parent = !slash          ? mem_strdup(".")
                   : slash == path ? mem_strdup("/")
                                   : mem_strndup(path, (size_t)(slash - path));
    int rc = fs_sync_dir(parent, e);
    free(parent);
    return rc;
}

int fs_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
    char *temporary;
    int rc = write_temporary(NULL, path, p, n, mode, &temporary, e);
    if (rc)
        return rc;
    if (rename(temporary, path) < 0) {
        rc = err_errno(e, errno, "cannot replace %s", path);
        unlink(temporary);
    }
    free(temporary);
    return rc ? rc : sync_parent(path, e);
}

int fs_create_atomic(const char *path, const void *p, size_t n, mode_t mode, struct err *e)
{
    return fs_create_atomic_for(NULL, path, p, n, mode, e);
}

int fs_create_atomic_for(const struct fs_owner *owner, const char *path, const void *p, size_t n,
    mode_t mode, struct err *e)
{
    char *temporary;
    int rc = write_temporary(owner, path, p, n, mode, &temporary, e);
    if (rc)
        return rc;
    if (link(temporary, path) < 0) /* link, unlike rename, never replaces */
        rc = err_errno(e, errno, "cannot create %s", path);
    unlink(temporary);
    free(temporary);
    return rc ? rc : sync_parent(path, e);
}

int fs_sync_dir(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "cannot open directory %s", path);
    int rc = fsync(fd) < 0 ? err_errno(e, errno, "cannot sync directory %s", path) : 0;
    close(fd);
    return rc;
}

bool fs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

char *fs_absolute(const char *path)
{
    char here[PATH_MAX];
    bool is_whole = path[0] == '/' || !getcwd(here, sizeof(here));
    char *whole = is_whole ? mem_strdup(path) : mem_printf("%s/%s", here, path);
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--)
        whole[n - 1] = '\0';
    return whole;
}
