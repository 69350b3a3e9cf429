/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a tree. Directories are entered by descriptor and never through a link, so a tree that is
 * being rearranged cannot lead outside; and files hard-linked into it from outside have another
 * owner.
 *
 * One walk serves both scans: the first adds entries, the second looks each entry up and compares.
 */
#include "ckpt/scan.h"
#include "base/fs_user.h"
#include "base/mem.h"
#include "base/str.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* of Linux 6.13 and later, on all processors; older headers lack it */
#ifndef SYS_listxattrat
#define SYS_listxattrat 465
#endif

#define HOLE_MIN (64 << 10) /* smaller ones are stored as zeros */
/* if there are too many holes, the minimum is multiplied by this */
#define HOLE_STEP 4

struct walk {
    struct scan *scan;
    struct manifest *m;            /* receives the entries; NULL = compare them with before */
    const struct manifest *before; /* entries of the first scan; used if m is NULL */
    size_t n_same;                 /* entries found unchanged */
    scan_file_fn fn;               /* may be NULL */
    void *ctx;
    char *list, *values; /* buffers for all attributes of an entry */
    struct manifest_extent extents[MANIFEST_EXTENTS_MAX];
    size_t n_extents;
    int64_t hole_min;
    bool lacks_listxattrat; /* the kernel, or a filter of system calls */
};

static int scan_directory(struct walk *w, int fd, const char *path, struct err *e);

int64_t scan_stamp_ns(const struct timespec *t)
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
        "'%.300s' belongs to uid %u and the checkpoint directory to uid %u: only the job's user's "
        "own files are saved; remove it, or let the job copy it",
        path, (unsigned)st->st_uid, (unsigned)s->owner);
}

/* Opens for examination alone; the path has no link. */
static int examine(int root_fd, const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int dir = root_fd, fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
        return fd;
    /* an older kernel, or a filter of system calls */
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char *name = mem_strndup(path, (size_t)(slash - path));

        fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        free(name);
        if (dir != root_fd)
            close(dir); /* keeps errno, because nothing is written back */
        if (fd < 0)
            return -1;
        dir = fd;
    }
    fd = openat(dir, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (dir != root_fd)
        close(dir);
    return fd;
}

/* Opens only regular files; anything else in its place is only examined. */
static int open_regular(int root_fd, const char *path, struct stat *ret_st)
{
    int found = examine(root_fd, path), fd = -1, why = ELOOP;

    if (found < 0)
        return -1;
    if (fstat(found, ret_st) == 0 && S_ISREG(ret_st->st_mode) && (fd = fs_reopen(found)) < 0)
        why = errno;
    close(found);
    errno = why;
    return fd;
}

int scan_open(int root_fd, const char *path)
{
    struct stat st;

    return open_regular(root_fd, path, &st);
}

int scan_read(int fd, char *p, size_t n, int64_t offset, const char *path, struct err *e)
{
    while (n > 0) {
        ssize_t got = pread(fd, p, n, offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, errno, "read '%.300s'", path);
        if (got == 0)
            return err_set(
                e, ERR_UNAVAILABLE, "'%.300s' became shorter while it was being saved", path);
        p += got;
        offset += got;
        n -= (size_t)got;
    }
    return 0;
}

int scan_open_entry(
    int root_fd, const struct scan *s, size_t i, const char *path, int *ret_fd, struct err *e)
{
    const struct scan_stamp *scanned = &s->stamps[i];
    struct stat st;
    int fd = open_regular(root_fd, path, &st), rc;

    if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
        return err_errno(e, errno, "open '%.300s' of the checkpoint directory", path);
    /* A link in the path cannot lead outside. */
    if (fd < 0 || st.st_dev != scanned->dev || st.st_ino != scanned->ino)
        rc = err_set(
            e, ERR_UNAVAILABLE, "'%.300s' was replaced or removed while it was being saved", path);
    else
        rc = scan_check_owner(s, &st, path, e);
    if (!rc)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- attributes ---- */

static int compare_xattrs(const void *a, const void *b)
{
    return strcmp(
        ((const struct manifest_xattr *)a)->name, ((const struct manifest_xattr *)b)->name);
}

/* Reads the values of the user attributes named in the n bytes of w->list, of the file at `at`,
 * into v. */
static int read_values(struct walk *w, const char *at, const char *path, size_t n,
    struct manifest_xattr *v, size_t *ret_n, struct err *e)
{
    size_t used = 0, n_v = 0;

    for (const char *name = w->list; name < w->list + n; name += strlen(name) + 1) {
        ssize_t got;

        if (!str_starts(name, "user."))
            continue;
        if (n_v == MANIFEST_XATTRS_MAX || !str_is_utf8(name, strlen(name)))
            return err_set(e, ERR_UNSUPPORTED,
                "'%.300s' has over %d extended attributes, or one whose name is not UTF-8: it "
                "cannot be saved",
                path, MANIFEST_XATTRS_MAX);
        got = getxattr(at, name, w->values + used, MANIFEST_XATTR_BYTES_MAX - used);
        if (got < 0 && (errno == ERANGE || errno == E2BIG))
            return err_set(e, ERR_UNSUPPORTED,
                "'%.300s' has over %u bytes of extended attributes: it cannot be saved", path,
                MANIFEST_XATTR_BYTES_MAX);
        if (got < 0)
            return errno == ENODATA || errno == ENOENT
                       ? changed(path, e)
                       : err_errno(e, errno, "read the extended attributes of '%.300s'", path);
        v[n_v++] =
            (struct manifest_xattr){.name = name, .value = w->values + used, .size = (size_t)got};
        used += (size_t)got;
    }
    *ret_n = n_v;
    return 0;
}

/* fd: of the entry; may be O_PATH, which fgetxattr(2) does not accept. */
static int add_xattrs(struct walk *w, int fd, struct manifest_entry *entry, struct err *e)
{
    struct manifest_xattr v[MANIFEST_XATTRS_MAX];
    size_t n = 0;
    ssize_t got;
    char at[32];
    int rc;

    snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
    got = listxattr(at, w->list, MANIFEST_XATTR_BYTES_MAX);
    if (got == 0 || (got < 0 && (errno == ENOTSUP || errno == ENOSYS)))
        return 0;
    if (got < 0)
        return errno == ENOENT
                   ? changed(entry->path, e)
                   : err_errno(e, errno, "list the extended attributes of '%.300s'", entry->path);
    rc = read_values(w, at, entry->path, (size_t)got, v, &n, e);
    if (rc || n == 0)
        return rc;
    qsort(v, n, sizeof(v[0]), compare_xattrs);
    return manifest_set_xattrs(w->m, entry, v, n, e);
}

/* ---- holes ---- */

static void merge_extents(struct walk *w)
{
    size_t n = 0;

    for (size_t i = 1; i < w->n_extents; i++) {
        struct manifest_extent *last = &w->extents[n], *next = &w->extents[i];

        if (next->offset - (last->offset + last->size) < w->hole_min)
            last->size = next->offset + next->size - last->offset;
        else
            w->extents[++n] = *next;
    }
    w->n_extents = n + 1;
}

static void add_extent(struct walk *w, int64_t offset, int64_t end)
{
    struct manifest_extent *last = w->n_extents ? &w->extents[w->n_extents - 1] : NULL;

    if (last && offset - (last->offset + last->size) < w->hole_min) {
        last->size = end - last->offset;
        return;
    }
    w->extents[w->n_extents++] = (struct manifest_extent){offset, end - offset};
    while (w->n_extents == MANIFEST_EXTENTS_MAX) {
        w->hole_min *= HOLE_STEP;
        merge_extents(w);
    }
}

/* *ret_holes: whether it has holes, including ones too small to count. */
static int find_extents(
    struct walk *w, int fd, int64_t size, const char *path, bool *ret_holes, struct err *e)
{
    int64_t at = 0;
    bool holes = false;

    w->n_extents = 0;
    w->hole_min = HOLE_MIN;
    while (at < size) {
        int64_t data = lseek(fd, at, SEEK_DATA), end;

        if (data < 0 && errno == ENXIO)
            break; /* the rest is a hole */
        end = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (end < 0)
            return err_errno(e, errno, "look for holes in '%.300s'", path);
        if (data >= size)
            break;
        end = end < size ? end : size;
        holes = holes || data > at;
        add_extent(w, data, end);
        at = end;
    }
    *ret_holes = holes || at < size;
    return 0;
}

/* For a file with fewer blocks than its size. */
static int add_holes(struct walk *w, int found, struct manifest_entry *entry, struct err *e)
{
    int fd = fs_reopen(found), rc;
    bool holes = false;

    if (fd < 0)
        return err_errno(e, errno, "open '%.300s'", entry->path);
    rc = find_extents(w, fd, entry->size, entry->path, &holes, e);
    close(fd);
    if (rc || !holes)
        return rc;
    return manifest_set_data(w->m, entry, w->extents, w->n_extents, e);
}

/* ---- entries ---- */

static struct scan_stamp stamp_of(const struct stat *st)
{
    return (struct scan_stamp){
        .dev = st->st_dev, .ino = st->st_ino, .ctime_ns = scan_stamp_ns(&st->st_ctim)};
}

static bool same_stamp(const struct scan_stamp *a, const struct scan_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->ctime_ns == b->ctime_ns;
}

static int compare_path(const void *path, const void *entry)
{
    return strcmp(path, ((const struct manifest_entry *)entry)->path);
}

static int compare_now(
    struct walk *w, enum manifest_type type, const char *path, const struct stat *st, struct err *e)
{
    const struct manifest *m = w->before;
    const struct manifest_entry *entry =
        m->n_entries ? bsearch(path, m->entries, m->n_entries, sizeof(m->entries[0]), compare_path)
                     : NULL;
    struct scan_stamp now = stamp_of(st);

    if (!entry || !same_stamp(&w->scan->stamps[entry - m->entries], &now) ||
        (entry->type != MANIFEST_HARD &&
            (entry->type != type || entry->mtime_ns != scan_stamp_ns(&st->st_mtim) ||
                (type == MANIFEST_FILE && entry->size != st->st_size))))
        return changed(path, e);
    w->n_same++;
    return 0;
}

/* *ret is borrowed until the next add. */
static void add(struct walk *w, enum manifest_type type, const char *path, const struct stat *st,
    struct manifest_entry **ret)
{
    struct manifest_entry *entry = manifest_add_entry(w->m);
    struct scan *s = w->scan;

    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->stamps = mem_resize(s->stamps, s->cap, sizeof(s->stamps[0]));
    }
    s->stamps[s->n++] = stamp_of(st);
    entry->type = type;
    entry->path = manifest_text(w->m, path, strlen(path));
    entry->mode = type == MANIFEST_LINK ? 0 : (int32_t)(st->st_mode & 01777);
    entry->mtime_ns = scan_stamp_ns(&st->st_mtim);
    entry->size = type == MANIFEST_FILE ? st->st_size : 0;
    *ret = entry;
}

static int add_link(struct walk *w, int dir_fd, const char *name, const char *path,
    const struct stat *st, struct err *e)
{
    struct manifest_entry *entry;
    char target[CKPT_PATH_MAX];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

    if (n <= 0)
        return changed(path, e);
    if ((size_t)n == sizeof(target) || !str_is_utf8(target, (size_t)n))
        return err_set(e, ERR_UNSUPPORTED,
            "the symbolic link '%.300s' points to a name that is %s: it cannot be saved", path,
            (size_t)n == sizeof(target) ? "too long" : "not UTF-8");
    add(w, MANIFEST_LINK, path, st, &entry);
    entry->target = manifest_text(w->m, target, (size_t)n);
    return 0;
}

static int visit_directory(
    struct walk *w, int dir_fd, const char *name, const char *path, struct err *e)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct manifest_entry *entry;
    struct stat st;
    int rc;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? changed(path, e)
                   : err_errno(e, errno, "open directory '%.300s' of the checkpoint", path);
    rc = fstat(fd, &st) ? err_errno(e, errno,
                              "read the attributes of directory '%.300s' of the checkpoint", path)
                        : scan_check_owner(w->scan, &st, path, e);
    if (!rc && !w->m) {
        rc = compare_now(w, MANIFEST_DIR, path, &st, e);
    } else if (!rc) {
        add(w, MANIFEST_DIR, path, &st, &entry);
        rc = add_xattrs(w, fd, entry, e);
    }
    if (rc) {
        close(fd);
        return rc;
    }
    return scan_directory(w, fd, path, e); /* closes fd */
}

/* Lists the attributes of a file in w->list, without following a link. Where the kernel has no call
 * for a name in a directory, the way through /proc takes four times as long. */
static ssize_t list_xattrs_of(struct walk *w, int dir_fd, const char *name)
{
    char at[sizeof("/proc/self/fd//") + 3 * sizeof(int) + NAME_MAX];

    if (!w->lacks_listxattrat) {
        ssize_t n = syscall(SYS_listxattrat, dir_fd, name, (unsigned)AT_SYMLINK_NOFOLLOW, w->list,
            (size_t)MANIFEST_XATTR_BYTES_MAX);

        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        w->lacks_listxattrat = true;
    }
    snprintf(at, sizeof(at), "/proc/self/fd/%d/%s", dir_fd, name);
    return llistxattr(at, w->list, MANIFEST_XATTR_BYTES_MAX);
}

/* Whether a file may have holes or user attributes, for which it is opened. Most have none, which
 * one call shows. If another file has its place meanwhile, the second scan notices. */
static bool has_more(struct walk *w, int dir_fd, const char *name, const struct stat *st)
{
    ssize_t n;

    if ((int64_t)st->st_blocks * 512 < st->st_size)
        return true;
    n = list_xattrs_of(w, dir_fd, name);
    if (n < 0)
        return errno != ENOTSUP && errno != ENOSYS;
    for (const char *p = w->list; p < w->list + n; p += strlen(p) + 1)
        if (str_starts(p, "user."))
            return true;
    return false;
}

/* Reads holes and attributes of a file. */
static int add_more(struct walk *w, int dir_fd, const char *name, const struct stat *st,
    struct manifest_entry *entry, struct err *e)
{
    int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    const char *path = entry->path;
    struct stat now;

    if (fd < 0)
        return errno == ENOENT ? changed(path, e) : err_errno(e, errno, "open '%.300s'", path);
    if (fstat(fd, &now) || now.st_dev != st->st_dev || now.st_ino != st->st_ino)
        rc = changed(path, e); /* a replacement's owner was not checked */
    if (!rc)
        rc = add_xattrs(w, fd, entry, e);
    if (!rc && (int64_t)st->st_blocks * 512 < entry->size)
        rc = add_holes(w, fd, entry, e);
    close(fd);
    return rc;
}

/* A file with several names gets its own path as target, until link_names knows all names. */
static int add_file(struct walk *w, int dir_fd, const char *name, const char *path,
    const struct stat *st, struct err *e)
{
    struct manifest_entry *entry;
    int rc = 0;

    add(w, MANIFEST_FILE, path, st, &entry);
    if (has_more(w, dir_fd, name, st))
        rc = add_more(w, dir_fd, name, st, entry, e);
    if (!rc && st->st_nlink > 1)
        entry->target = entry->path;
    if (!rc && w->fn && st->st_nlink == 1 && !w->fn(w->ctx, manifest_content(entry)))
        rc = err_set(e, ERR_CANCELLED, "the scan was ended");
    return rc;
}

static const char *type_name(mode_t mode)
{
    return S_ISSOCK(mode) ? "a socket" : S_ISFIFO(mode) ? "a named pipe" : "a device";
}

static int visit(struct walk *w, int dir_fd, const char *name, const char *path, struct err *e)
{
    struct stat st;
    int rc;

    if (w->m && w->m->n_entries >= CKPT_FILES_MAX)
        return err_set(
            e, ERR_INVALID, "the checkpoint directory has over %d entries", CKPT_FILES_MAX);
    if (manifest_check_path(path, e)) {
        err_wrap(e, "cannot be saved");
        return e->kind = ERR_UNSUPPORTED;
    }
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? changed(path, e) : err_errno(e, errno, "examine '%.300s'", path);
    if (S_ISDIR(st.st_mode))
        return visit_directory(w, dir_fd, name, path, e);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(e, ERR_UNSUPPORTED,
            "'%.300s' is %s: a checkpoint holds files, directories and symbolic links", path,
            type_name(st.st_mode));
    rc = S_ISREG(st.st_mode) ? scan_check_owner(w->scan, &st, path, e) : 0;
    if (rc)
        return rc;
    if (!w->m)
        return compare_now(w, S_ISREG(st.st_mode) ? MANIFEST_FILE : MANIFEST_LINK, path, &st, e);
    return S_ISREG(st.st_mode) ? add_file(w, dir_fd, name, path, &st, e)
                               : add_link(w, dir_fd, name, path, &st, e);
}

/* Closes fd. The recursion is as deep as manifest_check_path lets a path be. */
static int scan_directory(struct walk *w, int fd, const char *path, struct err *e)
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
        rc = visit(w, dirfd(d), entry->d_name, below, e);
        free(below);
    }
    closedir(d);
    return rc;
}

static int walk(struct walk *w, int root_fd, struct err *e)
{
    /* a separate position for readdir */
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        int rc = err_errno(e, errno, "open the checkpoint directory");

        if (fd >= 0)
            close(fd);
        return rc;
    }
    w->scan->owner = st.st_uid;
    w->scan->has_owner = st.st_uid != geteuid();
    return scan_directory(w, fd, "", e); /* closes fd */
}

/* ---- order ---- */

struct order {
    const struct manifest *m;
    const struct scan *scan;
};

static int by_path(const void *a, const void *b, void *ctx)
{
    const struct manifest_entry *entries = ((const struct order *)ctx)->m->entries;

    return strcmp(entries[*(const uint32_t *)a].path, entries[*(const uint32_t *)b].path);
}

static int by_inode(const void *a, const void *b, void *ctx)
{
    const struct scan_stamp *stamps = ((const struct order *)ctx)->scan->stamps;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

    if (stamps[i].dev != stamps[j].dev)
        return stamps[i].dev < stamps[j].dev ? -1 : 1;
    if (stamps[i].ino != stamps[j].ino)
        return stamps[i].ino < stamps[j].ino ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Permutes entries and stamps by `from`, following its cycles; destroys `from`. */
static void permute(struct manifest *m, struct scan *s, uint32_t *from)
{
    for (uint32_t start = 0; start < m->n_entries; start++) {
        struct manifest_entry entry = m->entries[start];
        struct scan_stamp stamp = s->stamps[start];
        uint32_t at = start, next;

        while ((next = from[at]) != start && next != at) {
            m->entries[at] = m->entries[next];
            s->stamps[at] = s->stamps[next];
            from[at] = at; /* done */
            at = next;
        }
        if (next == start && at != start) {
            m->entries[at] = entry;
            s->stamps[at] = stamp;
            from[at] = at;
        }
    }
}

static void sort_entries(struct manifest *m, struct scan *s, uint32_t *order)
{
    struct order o = {.m = m, .scan = s};

    for (uint32_t i = 0; i < m->n_entries; i++)
        order[i] = i;
    qsort_r(order, m->n_entries, sizeof(order[0]), by_path, &o);
    permute(m, s, order);
}

/* The first name of a file or symbolic link remains, the others become hard links to it. All
 * symbolic links are compared: their entries have no place for a mark. */
static void link_names(struct manifest *m, struct scan *s, uint32_t *order)
{
    struct order o = {.m = m, .scan = s};
    size_t n = 0;

    for (uint32_t i = 0; i < m->n_entries; i++) {
        struct manifest_entry *entry = &m->entries[i];

        if (!entry->target)
            continue;
        if (entry->type == MANIFEST_FILE)
            entry->target = NULL;
        order[n++] = i;
    }
    qsort_r(order, n, sizeof(order[0]), by_inode, &o);
    for (size_t i = 1, first = 0; i < n; i++) {
        const struct scan_stamp *a = &s->stamps[order[first]], *b = &s->stamps[order[i]];
        struct manifest_entry *entry = &m->entries[order[i]];

        if (a->dev != b->dev || a->ino != b->ino)
            first = i;
        else
            *entry = (struct manifest_entry){.type = MANIFEST_HARD,
                .path = entry->path,
                .target = m->entries[order[first]].path};
    }
}

int scan_tree(int root_fd, struct manifest *m, struct scan *ret, struct err *e)
{
    return scan_tree_while(root_fd, m, NULL, NULL, ret, e);
}

int scan_tree_while(
    int root_fd, struct manifest *m, scan_file_fn fn, void *ctx, struct scan *ret, struct err *e)
{
    struct scan s = {0};
    struct walk *w = mem_alloc(sizeof(*w));
    int rc;

    w->scan = &s;
    w->m = m;
    w->fn = fn;
    w->ctx = ctx;
    w->list = mem_alloc(MANIFEST_XATTR_BYTES_MAX);
    w->values = mem_alloc(MANIFEST_XATTR_BYTES_MAX);
    rc = walk(w, root_fd, e);
    free(w->list);
    free(w->values);
    free(w);
    if (rc) {
        scan_deinit(&s);
        return rc;
    }
    if (m->n_entries) {
        uint32_t *order = mem_array(m->n_entries, sizeof(*order));

        sort_entries(m, &s, order);
        link_names(m, &s, order);
        free(order);
    }
    *ret = s;
    return 0;
}

void scan_deinit(struct scan *s)
{
    free(s->stamps);
    *s = (struct scan){0};
}

int scan_check_unchanged(int root_fd, const struct manifest *m, const struct scan *s, struct err *e)
{
    struct scan as_it_was = *s;
    struct walk *w = mem_alloc(sizeof(*w));
    int rc;

    w->scan = &as_it_was;
    w->before = m;
    rc = walk(w, root_fd, e);
    for (size_t i = 0; !rc && w->n_same < m->n_entries && i < m->n_entries; i++) {
        struct stat st;

        if (fstatat(root_fd, m->entries[i].path, &st, AT_SYMLINK_NOFOLLOW))
            rc = changed(m->entries[i].path, e);
    }
    if (!rc && w->n_same != m->n_entries)
        rc = changed("a file", e); /* it appeared and disappeared during the scan */
    free(w);
    return rc;
}
