/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Allocates space for a file without holes, so that a full disk is noticed before anything is
 * fetched, and several threads can write to it at once. */
static bool allocate(int fd, const struct manifest_entry *entry)
{
    int rc = 0;

    if ((entry->extra && entry->extra->is_sparse) || entry->size == 0)
        return true;
    do
        rc = fallocate(fd, 0, 0, entry->size);
    while (rc && errno == EINTR);
    return rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS;
}

int entry_make(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e)
{
    int fd, rc = 0;

    if (entry->type == MANIFEST_LINK || entry->type == MANIFEST_HARD)
        return 0;
    /* A failure is ignored: a missing entry is created below, and the open of an entry that cannot
     * be changed fails there with the reason. */
    if (resumes && fchmodat(root_fd, entry->path, entry->type == MANIFEST_DIR ? 0700 : 0600, 0) < 0)
        errno = 0;
    if (entry->type == MANIFEST_DIR)
        return mkdirat(root_fd, entry->path, 0700) && !(resumes && errno == EEXIST)
                   ? err_errno(e, errno, "create directory '%.300s' of the checkpoint", entry->path)
                   : 0;
    fd = openat(root_fd, entry->path,
        O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (resumes ? 0 : O_EXCL), 0600);
    if (fd < 0 || ftruncate(fd, entry->size) || !allocate(fd, entry))
        rc = err_errno(e, errno, "create file '%.300s' of the checkpoint", entry->path);
    if (fd >= 0)
        close(fd);
    return rc;
}

int entry_set_xattrs(int fd, const struct manifest_entry *entry, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && entry->extra && i < entry->extra->n_xattrs; i++) {
        const struct manifest_xattr *x = &entry->extra->xattrs[i];

        if (fsetxattr(fd, x->name, x->value, x->size, 0))
            rc = err_errno(e, errno,
                "set the extended attribute %.255s of '%.200s' (this file system has to support "
                "them)",
                x->name, entry->path);
    }
    return rc;
}

static int open_and_set_xattrs(int root_fd, const struct manifest_entry *entry, struct err *e)
{
    int fd, rc;

    if (!entry->extra || entry->extra->n_xattrs == 0)
        return 0;
    fd = openat(root_fd, entry->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "open '%.300s' of the checkpoint", entry->path);
    rc = entry_set_xattrs(fd, entry, e);
    close(fd);
    return rc;
}

struct entry_times entry_times(const struct manifest_entry *entry)
{
    struct timespec t = {
        .tv_sec = entry->mtime_ns / 1000000000, .tv_nsec = entry->mtime_ns % 1000000000};

    if (t.tv_nsec < 0) {
        t.tv_sec--;
        t.tv_nsec += 1000000000;
    }
    return (struct entry_times){{t, t}};
}

int entry_link(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e)
{
    if (entry->type != MANIFEST_LINK)
        return 0;
    if (resumes)
        unlinkat(root_fd, entry->path, 0);
    return symlinkat(entry->target, root_fd, entry->path)
               ? err_errno(e, errno, "create symbolic link '%.300s' of the checkpoint", entry->path)
               : 0;
}

int entry_finish(int root_fd, bool resumes, const struct manifest_entry *entry, struct err *e)
{
    struct entry_times times = entry_times(entry);

    if (resumes && entry->type == MANIFEST_HARD)
        unlinkat(root_fd, entry->path, 0);
    if (entry->type == MANIFEST_HARD)
        return linkat(root_fd, entry->target, root_fd, entry->path, 0)
                   ? err_errno(e, errno, "link '%.200s' of the checkpoint to '%.200s'", entry->path,
                         entry->target)
                   : 0;
    if (open_and_set_xattrs(root_fd, entry, e))
        return e->kind;
    if ((entry->type != MANIFEST_LINK && fchmodat(root_fd, entry->path, (mode_t)entry->mode, 0)) ||
        utimensat(root_fd, entry->path, times.v, AT_SYMLINK_NOFOLLOW))
        return err_errno(e, errno, "finish '%.300s' of the checkpoint", entry->path);
    return 0;
}
