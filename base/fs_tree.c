/* SPDX-License-Identifier: Apache-2.0
 *
 * Directory trees: creation and removal.
 *
 * Removal must handle whatever a job leaves behind: trees deeper than the stack or the descriptor
 * limit allows, links out of the tree, mounts inside it. So nothing recurses: a directory found two
 * levels down is moved to the top of the tree and removed from there. Each directory moves at most
 * once, so the work is linear.
 *
 * The tree may belong to another user who adds and swaps entries while it is removed. Root first
 * revokes that user's access to each directory. An entry that has vanished or changed its type is
 * left to the next round; the number of rounds is limited.
 */
#include "base/fs.h"

#include "base/mem.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_directory(const char *path, mode_t mode, struct err *e)
{
    struct stat st;
    if (mkdir(path, mode) == 0)
        return 0;
    int errnum = errno;
    /* Not only EEXIST: mkdir in a read-only or unwritable parent fails even if path exists. */
    if (stat(path, &st) == 0)
        errnum = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    return errnum ? err_errno(e, errnum, "cannot make directory %s", path) : 0;
}

int fs_mkdirs(const char *path, mode_t mode, struct err *e)
{
    int rc = 0;
    if (make_directory(path, mode, NULL) == 0) /* the parents usually exist */
        return 0;
    char *prefix = mem_strdup(path);
    for (char *at = prefix; *at && rc == 0; at++)
        if (*at == '/' && at > prefix) {
            *at = 0;
            rc = make_directory(prefix, mode, e);
            *at = '/';
        }
    if (rc == 0)
        rc = make_directory(path, mode, e);
    free(prefix);
    return rc;
}

/* a round removes two levels; only a process that keeps adding entries can exceed this number */
#define ROUNDS_MAX 1000000

struct removal {
    const char *path; /* of the tree, for errors */
    int top;          /* descriptor of the tree's root directory */
    dev_t device;     /* the tree's file system */
    unsigned moved;   /* directories moved to the top so far */
    struct err *e;
};

static int failed(const struct removal *r, const char *name)
{
    return err_errno(r->e, errno, "cannot remove %s: %s", r->path, name);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Calls fn for each entry of the directory fd (which stays open) until one fails. */
static int each_entry(
    struct removal *r, int fd, int (*fn)(struct removal *r, int dir, const char *name))
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), rc = 0;
    DIR *d = own < 0 ? NULL : fdopendir(own);
    if (!d) {
        rc = failed(r, "(listing)");
        if (own >= 0)
            close(own);
        return rc;
    }
    rewinddir(d);
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(d);
        if (!entry) {
            rc = errno ? failed(r, "(listing)") : 0;
            break;
        }
        if (!is_dots(entry->d_name))
            rc = fn(r, fd, entry->d_name);
    }
    closedir(d);
    return rc;
}

/* Removes a file or an empty directory. Returns 1 for a directory that is not empty. */
static int remove_simple(struct removal *r, int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM) /* Linux returns EISDIR, POSIX EPERM */
        return failed(r, name);
    int unlink_errnum = errno;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 1;
    /* replaced meanwhile: left to the next round */
    if (errno == ENOTDIR && unlink_errnum == EISDIR)
        return 0;
    if (errno == ENOTDIR)
        errno = unlink_errnum;
    return failed(r, name);
}

/* Second level: a directory that is not empty moves to the top. */
static int remove_or_move(struct removal *r, int dir, const char *name)
{
    int rc = remove_simple(r, dir, name);
    if (rc <= 0)
        return rc;
    for (;;) {
        char target[32];
        snprintf(target, sizeof(target), ".removing-%u", r->moved++);
        if (renameat(dir, name, r->top, target) == 0 || errno == ENOENT)
            return 0;
        /* these three mean that the new name is taken */
        if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
            return failed(r, name);
    }
}

/* Whether errno says that a directory has vanished or changed its type. */
static bool is_replaced(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

/* Root only: takes the directory from the user who owns it. A failure is ignored. */
static void close_to_user(int fd, const struct stat *st)
{
    if (geteuid() != 0 || st->st_uid == 0)
        return;
    int rc = fchown(fd, 0, 0) | fchmod(fd, 0700);
    (void)rc;
}

/* First level: empties a directory and removes it. */
static int remove_entry(struct removal *r, int dir, const char *name)
{
    int rc = remove_simple(r, dir, name);
    if (rc <= 0)
        return rc;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return is_replaced() ? 0 : failed(r, name); /* left to the next round */
    struct stat st;
    rc = fstat(fd, &st) < 0 ? failed(r, name) : 0;
    if (rc == 0 && st.st_dev != r->device)
        rc = err_set(r->e, ERR_CONFLICT,
            "cannot remove %s: another file system is mounted on %s in it", r->path, name);
    if (rc == 0) {
        close_to_user(fd, &st);
        rc = each_entry(r, fd, remove_or_move);
    }
    close(fd);
    /* A listing may miss entries added meanwhile: they are left to the next round. */
    if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY && errno != EEXIST &&
        !is_replaced())
        rc = failed(r, name);
    return rc;
}

/* Rounds until the top is empty: each removes the first two levels and may move deeper ones up. */
static int remove_rounds(struct removal *r, int parent, const char *name)
{
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        int rc = each_entry(r, r->top, remove_entry);
        if (rc)
            return rc;
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return failed(r, name);
    }
    return err_set(r->e, ERR_UNAVAILABLE,
        "cannot remove %s: a process keeps adding files to it; end that process, then retry",
        r->path);
}

static int remove_at(struct removal *r, int parent, const char *name)
{
    int rc = remove_simple(r, parent, name);
    if (rc <= 0)
        return rc;
    r->top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r->top < 0)
        return failed(r, name);
    struct stat st;
    if (fstat(r->top, &st) < 0) {
        rc = failed(r, name);
    } else {
        r->device = st.st_dev;
        close_to_user(r->top, &st);
        rc = remove_rounds(r, parent, name);
    }
    close(r->top);
    return rc;
}

int fs_remove_tree(const char *path, struct err *e)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/')
        n--;
    char *parent = mem_strndup(path, n), *slash = strrchr(parent, '/');
    const char *name = slash ? slash + 1 : parent;
    int rc = 0;
    if (!*name || is_dots(name)) {
        rc = err_set(e, ERR_INVALID, "cannot remove \"%s\": it does not end in a name", path);
        goto out;
    }
    char *own_name = mem_strdup(name);
    if (slash)
        slash[slash == parent] = 0; /* the parent of "/a" is "/" */
    struct removal r = {.path = path, .e = e};
    int fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        rc = remove_at(&r, fd, own_name);
        close(fd);
    } else if (errno != ENOENT) {
        rc = failed(&r, "(its parent)");
    }
    free(own_name);
out:
    free(parent);
    return rc;
}
