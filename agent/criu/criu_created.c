/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_created.h"

#include "agent/criu/criu_images.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* WALKED_OUT: the directory does not exist, so criu creates it or uses the one above; it is as safe
 * as the one above. */
enum walked { WALKED_ON, WALKED_OUT, WALKED_REFUSED };

static bool is_root_only(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens the next directory from *fd, without following links. */
static enum walked walk(int *fd, const char *name, bool is_trusted)
{
    if (str_eq(name, ".."))
        return WALKED_REFUSED;
    int next = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), why = errno;
    close(*fd);
    *fd = next;
    if (next < 0)
        return why == ENOENT ? WALKED_OUT : WALKED_REFUSED;
    return is_trusted || is_root_only(next) ? WALKED_ON : WALKED_REFUSED;
}

/* Whether the first n bytes of path are dir or lie below it. */
static bool is_within(const char *path, size_t n, const char *dir)
{
    size_t n_dir = dir ? strlen(dir) : 0;
    return dir && n >= n_dir && strncmp(path, dir, n_dir) == 0 &&
           (n == n_dir || path[n_dir] == '/');
}

/* Whether only root can write to the directory of path and to all above it. becomes_root: a
 * directory that is trusted with all below it; may be NULL. */
static bool is_safe(const char *path, const char *becomes_root)
{
    int fd = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path)), *rest = dir;
    enum walked walked = is_root_only(fd) ? WALKED_ON : WALKED_REFUSED;
    for (const char *name; walked == WALKED_ON && (name = strsep(&rest, "/"));)
        if (*name)
            walked =
                walk(&fd, name, is_within(path, (size_t)(name - dir) + strlen(name), becomes_root));
    if (fd >= 0)
        close(fd);
    free(dir);
    return walked != WALKED_REFUSED;
}

/* The text is short because it is truncated on its way to the user, who needs the path. */
static int refuse(const struct criu_created *c, struct err *e)
{
    char *path = mem_strdup(c->path);
    str_sanitize(path, strlen(path));
    int rc = err_set(e, ERR_DENIED,
        c->is_socket
            ? "the UNIX socket %s: CRIU restores one safely only below $TMPDIR"
            : "%s was removed while open: CRIU restores such a file safely only below $TMPDIR",
        path);
    free(path);
    return rc;
}

int criu_created_check(const char *dir, const char *becomes_root, struct err *e)
{
    struct criu_created_list list = {0};
    int rc = criu_images_read(dir, &list, e);
    for (size_t i = 0; !rc && i < list.n; i++)
        if (!is_safe(list.items[i].path, becomes_root))
            rc = refuse(&list.items[i], e);
    criu_created_deinit(&list);
    return rc;
}
