/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct giving {
    const char *path; /* of the tree, for errors */
    uid_t uid;
    gid_t gid;
    dev_t device;
    int depth;
    struct err *e;
};

static int failed(const struct giving *g, const char *name)
{
    return err_errno(g->e, errno, "giving %s to uid %u: %s", g->path, (unsigned)g->uid, name);
}

static int give_below(struct giving *g, int fd);

/* Gives the directory fd after its contents, so that the user cannot change them meanwhile. */
static int give_directory(struct giving *g, int fd, const char *name)
{
    struct stat st;
    int rc = fstat(fd, &st) < 0 ? failed(g, name) : 0;
    if (!rc && st.st_dev != g->device)
        rc = err_set(g->e, ERR_CONFLICT,
            "giving %s to uid %u: another file system is mounted on %s in it", g->path,
            (unsigned)g->uid, name);
    if (!rc && g->depth == FS_USER_DEPTH_MAX)
        rc = err_set(g->e, ERR_INVALID, "giving %s to uid %u: more than %d levels of directories",
            g->path, (unsigned)g->uid, FS_USER_DEPTH_MAX);
    g->depth++;
    rc = rc ? rc : give_below(g, fd);
    g->depth--;
    return !rc && fchown(fd, g->uid, g->gid) < 0 ? failed(g, name) : rc;
}

static int give_entry(struct giving *g, int dir, const struct dirent *entry)
{
    const char *name = entry->d_name;
    int rc, fd = -1;
    if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (entry->d_type == DT_DIR ||
                      (entry->d_type == DT_UNKNOWN && errno != ENOTDIR && errno != ELOOP)))
        return failed(g, name);
    if (fd < 0)
        return fchownat(dir, name, g->uid, g->gid, AT_SYMLINK_NOFOLLOW) < 0 ? failed(g, name) : 0;
    rc = give_directory(g, fd, name);
    close(fd);
    return rc;
}

static int give_below(struct giving *g, int fd)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = own < 0 ? NULL : fdopendir(own);
    if (!d) {
        rc = failed(g, "(listing)");
        if (own >= 0)
            close(own);
        return rc;
    }
    while (!rc) {
        errno = 0;
        const struct dirent *entry = readdir(d);
        if (!entry) {
            rc = errno ? failed(g, "(listing)") : 0;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = give_entry(g, dirfd(d), entry);
    }
    closedir(d);
    return rc;
}

int fs_give_tree(const char *path, uid_t uid, gid_t gid, struct err *e)
{
    struct giving g = {.path = path, .uid = uid, .gid = gid, .e = e};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    struct stat st = {0};
    if (fd < 0)
        return failed(&g, "(opening it)");
    if (fstat(fd, &st) < 0)
        rc = failed(&g, "(looking at it)");
    else if (st.st_uid != geteuid() || (st.st_mode & 0077) != 0)
        rc = err_set(e, ERR_CONFLICT,
            "%s is not given to uid %u: it is uid %u's with mode %03o, so others may have changed "
            "it; nothing was changed",
            path, (unsigned)uid, (unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
    g.device = st.st_dev;
    if (!rc)
        rc = give_directory(&g, fd, "(its top)");
    close(fd);
    return rc;
}

int fs_reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int fs_open_of(int dir, const char *name, uid_t owner)
{
    int found = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1, why = 0;
    struct stat st;
    if (found < 0)
        return -1;
    if (fstat(found, &st) < 0)
        why = errno;
    else if (!S_ISREG(st.st_mode))
        why = S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
    else if (st.st_uid != owner)
        why = EPERM;
    if (!why && (fd = fs_reopen(found)) < 0)
        why = errno;
    close(found);
    errno = why;
    return fd;
}

bool fs_has_name(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}
