/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/handover.h"

#include "base/fs.h"
#include "base/fs_user.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_NAME ".agent-new"

int handover_tree(const struct job_user *u, const char *path, struct err *e)
{
    return u->is_other ? fs_give_tree(path, u->uid, u->gid, e) : 0;
}

int handover_checkpoint(const struct job_user *u, const char *dir, struct err *e)
{
    char *done = mem_printf("%s/.done", dir);
    unlink(done);
    free(done);
    return handover_tree(u, dir, e);
}

/* Moves the saved scratch directory into the task's. Call while `saved` is below a directory that
 * only the agent's user can enter, because saved files may have any mode. */
static int take_scratch(const char *saved, const char *scratch, struct err *e)
{
    int fd = open(saved, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 || fchmod(fd, 0700) < 0 ? err_errno(e, errno, "taking %s", saved) : 0;
    if (fd >= 0)
        close(fd);
    return !rc && rename(saved, scratch) < 0 ? err_errno(e, errno, "moving %s", saved) : rc;
}

static int make_scratch(const struct job_user *u, const char *scratch, struct err *e)
{
    int rc = fs_mkdirs(scratch, 0700, e);
    return rc ? rc : handover_tree(u, scratch, e);
}

int handover_scratch(
    const struct job_user *u, const char *task_dir, const char *checkpoint_dir, struct err *e)
{
    char *scratch = mem_printf("%s/scratch", task_dir),
         *saved = mem_printf("%s/scratch", checkpoint_dir);
    int rc = fs_remove_tree(scratch, e);
    if (!rc)
        rc = fs_has_name(saved) ? take_scratch(saved, scratch, e) : make_scratch(u, scratch, e);
    free(saved);
    free(scratch);
    return rc;
}

int handover_refused(const struct job_user *u, const char *name, int why, struct err *e)
{
    int rc = err_errno(e, why, "giving %s to %s", name, u->name);
    e->of_user = why == EDQUOT;
    return rc;
}

static int write_file(
    const struct job_user *u, int dir, const char *name, const char *text, size_t n, struct err *e)
{
    unlinkat(dir, TEMP_NAME, 0);
    int fd = openat(dir, TEMP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "creating %s in a directory of %s", name, u->name);
    int rc = fs_write_all(fd, text, n, e);
    if (!rc && u->is_other && fchown(fd, u->uid, u->gid) < 0)
        rc = handover_refused(u, name, errno, e);
    close(fd);
    if (!rc && renameat(dir, TEMP_NAME, dir, name) < 0)
        rc = err_errno(e, errno, "putting %s into a directory of %s", name, u->name);
    return rc;
}

int handover_file(const struct job_user *u, const char *dir, const char *name, const char *text,
    size_t n, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? err_errno(e, errno, "opening %s", dir) : write_file(u, fd, name, text, n, e);
    if (fd >= 0)
        close(fd);
    return rc;
}
