/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a tree. A directory is entered by its descriptor and never through a link, so a tree that is being
 * rearranged cannot lead outside; and what was linked into it from outside belongs to somebody else.
 */
#include "ckpt/scan.h"
#include "base/mem.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int scan_directory(struct scan *s, int fd, const char *path, struct err *e);

static int64_t stamp_ns(const struct timespec *t)
{
    int64_t limit = INT64_MAX / 1000000000 - 1;
    int64_t seconds = t->tv_sec > limit ? limit : t->tv_sec < -limit ? -limit : t->tv_sec;

    return seconds * 1000000000 + t->tv_nsec;
}

static int changed(const char *path, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE,
        "'%.300s' changed while it was being saved: nothing was committed; "
        "the checkpoint directory must be left alone until the save is done",
        path);
}

int scan_check_owner(const struct scan *s, const struct stat *st, const char *path, struct err *e)
{
    if (!s->has_owner || st->st_uid == s->owner)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
        "'%.300s' belongs to uid %u and the checkpoint directory to uid %u: only the job's user's own files "
        "are "
        "saved; remove it, or let the job copy it",
        path, (unsigned)st->st_uid, (unsigned)s->owner);
}

int scan_open(int root_fd, const char *path)
{
    int dir = root_fd, fd;

    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char *name = mem_strndup(path, (size_t)(slash - path));

        fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        free(name);
        if (dir != root_fd)
            close(dir); /* which leaves errno alone: nothing is written back */
        if (fd < 0)
            return -1;
        dir = fd;
    }
    fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (dir != root_fd)
        close(dir);
    return fd;
}

static struct scan_entry *add(
    struct scan *s, enum manifest_type type, const char *path, const struct stat *st)
{
    struct scan_entry *entry;

    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->v = mem_resize(s->v, s->cap, sizeof(s->v[0]));
    }
    entry = &s->v[s->n++];
    *entry = (struct scan_entry){
        .entry =
            {
                .type = type,
                .path = mem_strdup(path),
                .mode = type == MANIFEST_LINK ? 0 : (int32_t)(st->st_mode & 01777),
                .mtime_ns = stamp_ns(&st->st_mtim),
                .size = type == MANIFEST_FILE ? st->st_size : 0,
            },
        .dev = st->st_dev,
        .ino = st->st_ino,
        .ctime_ns = stamp_ns(&st->st_ctim),
    };
    return entry;
}

static int add_link(
    struct scan *s, int dir_fd, const char *name, const char *path, const struct stat *st, struct err *e)
{
    char target[CKPT_PATH_MAX];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

    if (n <= 0)
        return changed(path, e);
    if ((size_t)n == sizeof(target) || !str_is_utf8(target, (size_t)n))
        return err_set(e, ERR_UNSUPPORTED,
            "the symbolic link '%.300s' points to a name that is %s: it cannot be saved", path,
            (size_t)n == sizeof(target) ? "too long" : "not UTF-8");
    add(s, MANIFEST_LINK, path, st)->entry.target = mem_strndup(target, (size_t)n);
    return 0;
}

static int add_directory(struct scan *s, int dir_fd, const char *name, const char *path, struct err *e)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int rc;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? changed(path, e)
                   : err_errno(e, errno, "open directory '%.300s' of the checkpoint", path);
    rc = fstat(fd, &st) ? err_errno(e, errno, "look at directory '%.300s' of the checkpoint", path)
                        : scan_check_owner(s, &st, path, e);
    if (rc) {
        close(fd);
        return rc;
    }
    add(s, MANIFEST_DIR, path, &st);
    return scan_directory(s, fd, path, e); /* closes fd */
}

static const char *type_name(mode_t mode)
{
    return S_ISSOCK(mode) ? "a socket" : S_ISFIFO(mode) ? "a named pipe" : "a device";
}

static int add_any(struct scan *s, int dir_fd, const char *name, const char *path, struct err *e)
{
    struct stat st;
    int rc;

    if (s->n >= CKPT_FILES_MAX)
        return err_set(e, ERR_INVALID, "the checkpoint directory has over %d entries", CKPT_FILES_MAX);
    if (manifest_check_path(path, e)) {
        err_wrap(e, "cannot be saved");
        return e->kind = ERR_UNSUPPORTED;
    }
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? changed(path, e) : err_errno(e, errno, "look at '%.300s'", path);
    if (S_ISLNK(st.st_mode))
        return add_link(s, dir_fd, name, path, &st, e);
    if (S_ISDIR(st.st_mode))
        return add_directory(s, dir_fd, name, path, e);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_UNSUPPORTED,
            "'%.300s' is %s: a checkpoint holds files, directories and symbolic links", path,
            type_name(st.st_mode));
    rc = scan_check_owner(s, &st, path, e);
    if (!rc)
        add(s, MANIFEST_FILE, path, &st);
    return rc;
}

/* Closes fd. The recursion is as deep as manifest_check_path lets a path be. */
static int scan_directory(struct scan *s, int fd, const char *path, struct err *e)
{
    DIR *d = fdopendir(fd);
    int rc = 0;

    if (!d) {
        rc = err_errno(e, errno, "list '%.300s'", path);
        close(fd);
        return rc;
    }
    while (!rc) {
        struct dirent *entry;
        char *below;

        errno = 0;
        entry = readdir(d);
        if (!entry) {
            if (errno)
                rc = err_errno(e, errno, "list '%.300s'", path);
            break;
        }
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        below = *path ? mem_printf("%s/%s", path, entry->d_name) : mem_strdup(entry->d_name);
        rc = add_any(s, dirfd(d), entry->d_name, below, e);
        free(below);
    }
    closedir(d);
    return rc;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct scan_entry *)a)->entry.path, ((const struct scan_entry *)b)->entry.path);
}

int scan_tree(int root_fd, struct scan *ret, struct err *e)
{
    struct scan s = {0};
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* its own position for readdir */
    struct stat st;
    int rc;

    if (fd < 0 || fstat(fd, &st)) {
        rc = err_errno(e, errno, "open the checkpoint directory");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    s.owner = st.st_uid;
    s.has_owner = s.owner != geteuid();
    rc = scan_directory(&s, fd, "", e); /* closes fd */
    if (rc) {
        scan_deinit(&s);
        return rc;
    }
    if (s.n)
        qsort(s.v, s.n, sizeof(s.v[0]), compare_entries);
    *ret = s;
    return 0;
}

void scan_deinit(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].entry.path);
        free(s->v[i].entry.target);
    }
    free(s->v);
    *s = (struct scan){0};
}

static bool same(const struct scan_entry *a, const struct scan_entry *b)
{
    return a->entry.type == b->entry.type && a->entry.size == b->entry.size && a->dev == b->dev &&
           a->ino == b->ino && a->ctime_ns == b->ctime_ns && a->entry.mtime_ns == b->entry.mtime_ns;
}

int scan_compare(const struct scan *before, const struct scan *after, struct err *e)
{
    size_t i = 0;

    while (i < before->n && i < after->n) {
        int order = compare_entries(&before->v[i], &after->v[i]);

        if (order || !same(&before->v[i], &after->v[i]))
            return changed(order > 0 ? after->v[i].entry.path : before->v[i].entry.path, e);
        i++;
    }
    if (i < before->n || i < after->n)
        return changed(i < before->n ? before->v[i].entry.path : after->v[i].entry.path, e);
    return 0;
}
