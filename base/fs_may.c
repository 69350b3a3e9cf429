/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this process could create files in a directory (fs_may_make in fs.h), and how much space
 * it leaves there. The kernel is asked for the effective user's permissions (faccessat); nothing is
 * created to test them.
 */
#include "base/fs.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int64_t fs_reserve(int64_t total_bytes)
{
    return min_i64(total_bytes / FS_RESERVE_SHARE, FS_RESERVE_MAX);
}

static const char *own_user(char *out, size_t size)
{
    const struct passwd *pw = getpwuid(geteuid());
    if (pw)
        snprintf(out, size, "%s", pw->pw_name);
    else
        snprintf(out, size, "%lld", (long long)geteuid());
    return out;
}

int fs_may_not(const char *path, const char *what, int errnum, struct err *e)
{
    char user[64];
    return err_errno(
        e, errnum, "%s cannot be %s by user %s", path, what, own_user(user, sizeof(user)));
}

bool fs_may(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* Whether path is in a file system of the kernel, such as /proc: root has write permission on its
 * directories, but they accept no files. */
static bool is_of_the_kernel(const char *path)
{
    static const unsigned long types[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
        CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC, DEVPTS_SUPER_MAGIC,
        BPF_FS_MAGIC, EFIVARFS_MAGIC, PSTOREFS_MAGIC, SELINUX_MAGIC, SMACK_MAGIC, NSFS_MAGIC};
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if ((unsigned long)fs.f_type == types[i])
            return true;
    return false;
}

/* Checks that path can be made in the existing directory dir or, if it is dir, be written to. */
static int check_directory(const char *dir, const char *path, struct err *e)
{
    const bool is_it = str_eq(dir, path);
    struct stat st;
    if (stat(dir, &st) != 0)
        return fs_may_not(dir, "used", errno, e);
    if (!S_ISDIR(st.st_mode))
        return fs_may_not(dir, "used", ENOTDIR, e);
    if (is_of_the_kernel(dir))
        return err_set(e, ERR_CONFIG,
            "%s cannot be %s: %s is in a file system of the kernel, which keeps no files", path,
            is_it ? "written" : "made", dir);
    if (!fs_may(dir, is_it ? R_OK | W_OK | X_OK : W_OK | X_OK))
        return fs_may_not(path, is_it ? "written" : "made", errno, e);
    return 0;
}

int fs_may_write_dir(const char *path, struct err *e)
{
    return check_directory(path, path, e);
}

int fs_existing_part(const char *path, char **ret_part, struct err *e)
{
    char *part = mem_strdup(path), *slash;
    struct stat st;
    while (stat(part, &st) != 0) {
        slash = strrchr(part, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || !slash || !part[1]) {
            int rc = fs_may_not(path, "used", errno, e);
            free(part);
            return rc;
        }
        slash[slash == part] = '\0';
    }
    *ret_part = part;
    return 0;
}

int fs_may_make(const char *path, struct err *e)
{
    char *part;
    int rc = fs_existing_part(path, &part, e);
    if (rc)
        return rc;
    rc = check_directory(part, path, e);
    free(part);
    return rc;
}
