/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a directory: an object is a file of mode 0600, its name the path below the root.
 *
 * Invariants.
 *  1. An object appears whole or not at all, and is on disk when create returns: it is written
 *     under another name, fsynced, then linked to its own (link(2) refuses an existing name: that
 *     is the conditional create), then the directory is fsynced, and so is every directory that had
 *     to be made. Objects of put are written at once, and fsynced and named in batches, because the
 *     file system would write its journal for every single one. flush names the rest and fsyncs
 *     the directory once.
 *  2. An object is never rewritten. Empty directories are removed, so a create that finds its
 *     directory gone makes it again.
 *
 * What root creates belongs to the owner of the store's directory: agents run as root, and a belayd
 * that does not must be able to read and remove what they saved.
 *
 * What a killed create leaves ("name.XXXXXX") is listed like any object and removed by the next
 * cleaning of that prefix. This file does not lock: its users need only the conditional create,
 * also over NFS.
 */
#include "ckpt/store/store_file.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/clone.h"
#include "ckpt/store/direct.h"
#include "ckpt/store/names.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARENT_TRIES 4 /* an empty directory may be removed while we create a file in it */
#define LIST_DEPTH_MAX 16
#define PENDING_MAX 16 /* objects */

/* Written by put, and not yet named. */
struct pending {
    char *temporary, *path;
    int fd;
};

struct store_file {
    struct store base;
    char *root; /* as configured, for messages */
    int fd;     /* of the root, open as long as the store */
    /* /proc path of fd: mounts over the root, or renames of it, do not change where objects are
     * written. The same as root where there is no /proc */
    char *at;
    const struct fs_owner *owner; /* of new objects; NULL: the caller */
    struct fs_owner of_root;
    pthread_mutex_t lock; /* guards the members below */
    struct pending pending[PENDING_MAX];
    size_t n_pending;
};

/* Replaces the /proc path in an error by the configured root. */
static int path_shown(struct store *s, int rc, struct err *e)
{
    struct store_file *f = (struct store_file *)s;
    char *found = rc && e ? strstr(e->text, f->at) : NULL;

    if (!found || str_eq(f->at, f->root))
        return rc;
    char *before = mem_strndup(e->text, (size_t)(found - e->text)),
         *after = mem_strdup(found + strlen(f->at));
    err_set(e, e->kind, "%s%s%s", before, f->root, after);
    free(before);
    free(after);
    return rc;
}

static int object_path(struct store *s, const char *name, char **ret_path, struct err *e)
{
    struct store_file *f = (struct store_file *)s;

    if (!store_name_is_valid(name))
        return err_set(e, ERR_INVALID, "'%.100s' is not a valid object name", name);
    *ret_path = mem_printf("%s/%s", f->at, name);
    return 0;
}

static int sync_parent(const char *path, struct err *e)
{
    char *dir = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    int rc = fs_sync_dir(dir, e);

    free(dir);
    return rc;
}

/* See fs_create_atomic_for for EPERM. */
static int give(const struct store_file *f, const char *path, struct err *e)
{
    if (!f->owner || lchown(path, f->owner->uid, f->owner->gid) == 0 || errno == EPERM)
        return 0;
    /* a concurrent cleaning has removed it; the create that needs it makes it again */
    return errno == ENOENT ? 0 : err_errno(e, errno, "change the owner of %s", path);
}

static int make_directory(const struct store_file *f, const char *path, struct err *e)
{
    if (mkdir(path, 0700) == 0)
        return give(f, path, e);
    return errno == EEXIST ? 0 : err_errno(e, errno, "create directory %s", path);
}

/* Makes the directories between the root and path, each durably. */
static int make_parents(struct store *s, const char *path, struct err *e)
{
    struct store_file *f = (struct store_file *)s;
    char *dir = mem_strdup(path);
    int rc = 0;

    for (char *p = dir + strlen(f->at) + 1; !rc && (p = strchr(p, '/')); p++) {
        *p = '\0';
        rc = make_directory(f, dir, e);
        if (!rc)
            rc = sync_parent(dir, e);
        *p = '/';
    }
    free(dir);
    return rc;
}

/* Calls fn, which creates path, and makes the parent directories whenever fn returns
 * ERR_NOT_FOUND. */
static int with_parents(struct store *s, const char *path,
    int (*fn)(void *ctx, const char *path, struct err *e), void *ctx, struct err *e)
{
    int rc = 0;

    for (int tries = 0; tries < PARENT_TRIES; tries++) {
        rc = fn(ctx, path, e);
        if (rc != ERR_NOT_FOUND)
            break;
        int made = make_parents(s, path, e);
        if (made && made != ERR_NOT_FOUND) {
            rc = made;
            break;
        }
    }
    return rc;
}

struct content {
    const struct fs_owner *owner;
    const void *p;
    size_t n;
    struct pending *made;
};

static int create_atomic(void *ctx, const char *path, struct err *e)
{
    const struct content *c = ctx;

    return fs_create_atomic_for(c->owner, path, c->p, c->n, 0600, e);
}

static int file_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    struct content c = {.owner = ((struct store_file *)s)->owner, .p = p, .n = n};
    char *path = NULL;
    int rc = object_path(s, name, &path, e);

    if (!rc)
        rc = with_parents(s, path, create_atomic, &c, e);
    free(path);
    return rc;
}

/* ---- batches ---- */

/* Writes a temporary file next to path, and starts its write-back. */
static int write_temporary(void *ctx, const char *path, struct err *e)
{
    const struct content *c = ctx;
    struct pending *made = c->made;

    made->temporary = mem_printf("%s.XXXXXX", path);
    made->fd = mkostemp(made->temporary, O_CLOEXEC);
    if (made->fd < 0) {
        int rc = err_errno(e, errno, "create a file next to %s", path);

        free(made->temporary);
        return rc;
    }
    int rc = 0;
    if (c->owner && fchown(made->fd, c->owner->uid, c->owner->gid) < 0 && errno != EPERM)
        rc = err_errno(e, errno, "change the owner");
    if (rc || direct_write(made->fd, c->p, c->n, e)) {
        err_wrap(e, "write %s", made->temporary);
        unlink(made->temporary);
        close(made->fd);
        free(made->temporary);
        return e->kind;
    }
    made->path = mem_strdup(path);
    return 0;
}

/* Fsyncs all files, then links them to their names: the first fsync waits for the disk, the others
 * have little left to wait for. A name may exist: two threads may have put the same content. */
static int name_all(struct pending *v, size_t n, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++)
        if (fsync(v[i].fd))
            rc = err_errno(e, errno, "write %s", v[i].temporary);
    for (size_t i = 0; i < n; i++) {
        if (!rc && link(v[i].temporary, v[i].path) && errno != EEXIST)
            rc = err_errno(e, errno, "create %s", v[i].path);
        unlink(v[i].temporary);
        close(v[i].fd);
        free(v[i].temporary);
        free(v[i].path);
    }
    return rc;
}

/* Moves the pending objects to v if there are at least `enough`; returns their number. */
static size_t take_pending(struct store_file *f, size_t enough, struct pending *v)
{
    size_t n = 0;

    pthread_mutex_lock(&f->lock);
    if (f->n_pending >= enough) {
        n = f->n_pending;
        memcpy(v, f->pending, n * sizeof(v[0]));
        f->n_pending = 0;
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

static int file_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    (void)sha256;
    struct store_file *f = (struct store_file *)s;
    struct pending v[PENDING_MAX], made;
    char *path = NULL;
    int rc = object_path(s, name, &path, e);

    if (rc)
        return rc;
    if (access(path, F_OK) == 0)
        rc = err_set(e, ERR_CONFLICT, "%s exists", path);
    else
        rc = with_parents(s, path, write_temporary,
            &(struct content){.owner = f->owner, .p = p, .n = n, .made = &made}, e);
    free(path);
    if (rc)
        return rc;
    pthread_mutex_lock(&f->lock);
    if (f->n_pending < PENDING_MAX) {
        f->pending[f->n_pending++] = made;
        made.path = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    if (made.path) /* another thread is about to take the pending ones */
        rc = name_all(&made, 1, e);
    return rc ? rc : name_all(v, take_pending(f, PENDING_MAX, v), e);
}

static int file_flush(struct store *s, const char *prefix, struct err *e)
{
    struct store_file *f = (struct store_file *)s;
    char *dir = mem_printf("%s/%s", f->at, prefix);
    struct pending v[PENDING_MAX];
    int rc = name_all(v, take_pending(f, 1, v), e);

    if (!rc && fs_sync_dir(dir, e))
        rc = e->kind == ERR_NOT_FOUND ? 0 : e->kind; /* no such directory: nothing was put there */
    free(dir);
    return rc;
}

static int file_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    char *path = NULL;
    int rc = object_path(s, name, &path, e);

    if (rc)
        return rc;
    rc = direct_read(path, max, out, e);
    free(path);
    return rc;
}

static int file_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    struct stat st;
    char *path = NULL;
    int rc = object_path(s, name, &path, e);

    if (rc)
        return rc;
    if (lstat(path, &st))
        rc = err_errno(e, errno, "examine %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, ERR_NOT_FOUND, "%s is not a regular file", path);
    else
        *ret_size = st.st_size;
    free(path);
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_directory(DIR *d, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The entries of one directory in byte order; directories end in '/'. */
static int read_names(const char *path, struct names *l, struct err *e)
{
    DIR *d = opendir(path);
    int rc = 0;

    if (!d)
        return errno == ENOENT ? 0 : err_errno(e, errno, "list %s", path);
    for (;;) {
        struct dirent *entry;

        errno = 0;
        entry = readdir(d);
        if (!entry)
            break;
        if (entry->d_name[0] == '.')
            continue; /* no object's name begins with a dot */
        if (is_directory(d, entry))
            names_add(l, mem_printf("%s/", entry->d_name));
        else
            names_add(l, mem_strdup(entry->d_name));
    }
    if (errno)
        rc = err_errno(e, errno, "list %s", path);
    closedir(d);
    if (l->n)
        qsort(l->v, l->n, sizeof(l->v[0]), compare_names);
    return rc;
}

struct walk {
    struct store *store;
    store_each_fn fn;
    void *ctx;
    bool stopped;
};

/* prefix is "" or ends in '/'. */
static int walk_prefix(struct walk *w, const char *prefix, int depth, struct err *e)
{
    struct store_file *f = (struct store_file *)w->store;
    char *dir = mem_printf("%s/%s", f->at, prefix);
    struct names l = {0};
    int rc = depth > LIST_DEPTH_MAX
                 ? err_set(e, ERR_INVALID, "%s: directories too deep for a store", dir)
                 : read_names(dir, &l, e);

    for (size_t i = 0; !rc && !w->stopped && i < l.n; i++) {
        char *name = mem_printf("%s%s", prefix, l.v[i]);
        int64_t size;

        if (str_ends(name, "/"))
            rc = walk_prefix(w, name, depth + 1, e);
        else if (store_name_is_valid(name) && !file_stat(w->store, name, &size, NULL))
            w->stopped = w->fn(w->ctx, name, size) != 0;
        free(name);
    }
    names_deinit(&l);
    free(dir);
    return rc;
}

static int file_list(
    struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    struct walk w = {.store = s, .fn = fn, .ctx = ctx};

    return walk_prefix(&w, prefix, 0, e);
}

/* Removes the empty directories above path, below the root, and syncs the first that remains. */
static int prune_and_sync(struct store_file *f, const char *path, struct err *e)
{
    char *dir = mem_strdup(path);
    int rc;

    do {
        *strrchr(dir, '/') = '\0';
    } while (strlen(dir) > strlen(f->at) && (rmdir(dir) == 0 || errno == ENOENT));
    rc = fs_sync_dir(dir, e);
    if (rc == ERR_NOT_FOUND)
        rc = 0; /* removed concurrently, so its entries are gone too */
    free(dir);
    return rc;
}

static bool same_directory(const char *a, const char *b)
{
    size_t n = (size_t)(strrchr(a, '/') - a);

    return (size_t)(strrchr(b, '/') - b) == n && memcmp(a, b, n) == 0;
}

static int file_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    char *last = NULL; /* a removed path whose directory is not yet synced */
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++) {
        char *path = NULL;

        rc = object_path(s, names[i], &path, e);
        if (rc)
            break;
        if (unlink(path) && errno != ENOENT)
            rc = err_errno(e, errno, "remove %s", path);
        if (!rc && last && !same_directory(last, path))
            rc = prune_and_sync((struct store_file *)s, last, e);
        free(last);
        last = path;
    }
    if (!rc && last)
        rc = prune_and_sync((struct store_file *)s, last, e);
    free(last);
    return rc;
}

/* fn is rename(2), made durable here, or link(2), made durable by flush. */
static int link_or_rename(struct store *s, int (*fn)(const char *from, const char *to),
    const char *from, const char *to, struct err *e)
{
    char *from_path = NULL, *to_path = NULL;
    int rc = object_path(s, from, &from_path, e);

    if (!rc)
        rc = object_path(s, to, &to_path, e);
    for (int tries = 0; !rc; tries++) {
        if (fn(from_path, to_path) == 0) {
            rc = fn == link ? 0 : sync_parent(to_path, e);
            break;
        }
        if (errno == ENOENT && tries < PARENT_TRIES && access(from_path, F_OK) == 0)
            rc = make_parents(s, to_path, e);
        else if (fn == link && (errno == EMLINK || errno == EPERM || errno == EOPNOTSUPP))
            rc = err_set(e, ERR_UNSUPPORTED, "%s cannot have another name (hard link)", from_path);
        else
            rc = err_errno(e, errno, "name %s %s", from_path, to_path);
    }
    free(from_path);
    free(to_path);
    return rc;
}

static int file_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    const char *const names[] = {from};
    int rc = link_or_rename(s, rename, from, to, e);

    /* The name is already gone; removing it again prunes and syncs its directory. */
    return rc ? rc : file_remove(s, names, 1, e);
}

static int file_link(struct store *s, const char *from, const char *to, struct err *e)
{
    return link_or_rename(s, link, from, to, e);
}

static enum clone_result file_clone(
    struct store *s, const char *name, int fd, int64_t offset, int64_t n)
{
    enum clone_result result = CLONE_MISSING;
    char *path = NULL;
    struct stat st;
    struct err e;
    int from = -1;

    if (object_path(s, name, &path, &e) == 0)
        from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    free(path);
    if (from >= 0 && fstat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == n)
        result = clone_range(from, 0, fd, offset, n);
    if (from >= 0)
        close(from);
    return result;
}

/* ---- slots of store_ops ---- */

static int op_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    return path_shown(s, file_create(s, name, p, n, e), e);
}

static int op_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    return path_shown(s, file_put(s, name, p, n, sha256, e), e);
}

static int op_flush(struct store *s, const char *prefix, struct err *e)
{
    return path_shown(s, file_flush(s, prefix, e), e);
}

static int op_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    return path_shown(s, file_read(s, name, max, out, e), e);
}

static int op_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    return path_shown(s, file_stat(s, name, ret_size, e), e);
}

static int op_list(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    return path_shown(s, file_list(s, prefix, fn, ctx, e), e);
}

static int op_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    return path_shown(s, file_remove(s, names, n, e), e);
}

static int op_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    return path_shown(s, file_rename(s, from, to, e), e);
}

static int op_link(struct store *s, const char *from, const char *to, struct err *e)
{
    return path_shown(s, file_link(s, from, to, e), e);
}

static void file_close(struct store *s)
{
    struct store_file *f = (struct store_file *)s;

    for (size_t i = 0; i < f->n_pending; i++) { /* left by an unfinished save */
        unlink(f->pending[i].temporary);
        close(f->pending[i].fd);
        free(f->pending[i].temporary);
        free(f->pending[i].path);
    }
    pthread_mutex_destroy(&f->lock);
    close(f->fd);
    free(f->at);
    free(f->root);
    free(f);
}

static const struct store_ops file_ops = {
    .scheme = "file",
    .create = op_create,
    .put = op_put,
    .flush = op_flush,
    .read = op_read,
    .stat = op_stat,
    .list = op_list,
    .remove = op_remove,
    .rename = op_rename,
    .link = op_link,
    .clone = file_clone,
    .close = file_close,
};

/* A path to the open directory, which need not be readable itself; root where there is no /proc. */
static char *name_of_fd(int fd, const char *root)
{
    char *at = mem_printf("/proc/self/fd/%d", fd);

    if (access(at, F_OK) == 0)
        return at;
    free(at);
    return mem_strdup(root);
}

int store_file_open(const char *root, bool existing, struct store **ret_store, struct err *e)
{
    struct store_file *f;
    struct stat st;
    size_t n = strlen(root);
    int fd, rc = 0;

    while (n > 1 && root[n - 1] == '/')
        n--;
    if (root[0] != '/' || n < 2)
        return err_set(e, ERR_INVALID,
            "'%.200s' cannot be a store: name a directory by its absolute path", root);
    if (!existing)
        rc = fs_mkdirs(root, 0700, e);
    if (rc)
        return err_wrap(e, "open the store in %.200s", root);
    fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND,
            "the store %.200s: there is no such directory here: mount it, or create it", root);
    if (fd < 0)
        return err_errno(e, errno, "open the store in %.200s", root);
    f = mem_alloc(sizeof(*f));
    f->base.ops = &file_ops;
    pthread_mutex_init(&f->lock, NULL);
    f->root = mem_strndup(root, n);
    f->fd = fd;
    if (geteuid() == 0 && fstat(fd, &st) == 0 && st.st_uid != 0) {
        f->of_root = (struct fs_owner){.uid = st.st_uid, .gid = st.st_gid};
        f->owner = &f->of_root;
    }
    f->at = name_of_fd(fd, f->root);
    *ret_store = &f->base;
    return 0;
}
