/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dir_trial.h"

#include "agent/supervisor/launch.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/feature.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "#!/bin/sh\nexit 0\n"
#define NOBODY 65534
#define TRIAL_S 10

static void strip_last(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
}

/* Finds dir/tasks, or the existing directory in which it would be made. The caller frees it. */
static int find_dir(const char *dir, char **ret_dir, struct err *e)
{
    char *tasks = mem_printf("%s/tasks", dir);
    int rc = fs_existing_part(tasks, ret_dir, e);
    free(tasks);
    return rc;
}

/* As find_dir, but the parent of dir if other users cannot traverse dir: the agent's start changes
 * that (agent_start.c). */
static int find_dir_after_start(const char *dir, char **ret_dir, struct err *e)
{
    struct stat st;
    if (!dir[1] || stat(dir, &st) != 0 || (st.st_mode & 0111) == 0111)
        return find_dir(dir, ret_dir, e);
    *ret_dir = mem_strdup(dir);
    strip_last(*ret_dir);
    return 0;
}

/* Runs in the child. If this process cannot become another user, the machine has no other users to
 * protect. */
static _Noreturn void execute(const char *script, bool as_nobody)
{
    char *const argv[] = {(char *)script, NULL}, *const env[] = {NULL};
    launch_reset_signals();
    alarm(TRIAL_S);
    if (chdir("/") < 0 ||
        (as_nobody && (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)))
        _exit(0);
    execve(script, argv, env);
    _exit(errno == EACCES || errno == EPERM ? errno : 0);
}

/* *ret_why: 0, or the errno with which the script cannot be executed. Fails if no process can be
 * started, so that it is unknown. */
static int try_as(const char *script, bool as_nobody, int *ret_why, struct err *e)
{
    int status = 0;
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(e, errno, "starting a process to try whether %s can be executed", script);
    if (pid == 0)
        execute(script, as_nobody);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *ret_why = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return 0;
}

static int write_script(const char *path, int fd)
{
    ssize_t n = write(fd, SCRIPT, strlen(SCRIPT));
    int why = n < 0 ? errno : n != (ssize_t)strlen(SCRIPT) ? ENOSPC : 0;
    if (why == 0 && fchmod(fd, 0755) < 0)
        why = errno;
    if (close(fd) < 0 && why == 0)
        why = errno;
    if (why != 0)
        unlink(path);
    return why;
}

static bool is_noexec(const char *dir)
{
    struct statvfs v;
    return statvfs(dir, &v) == 0 && (v.f_flag & ST_NOEXEC);
}

/* The topmost directory of the path that other users cannot traverse; NULL if the modes show none.
 * The caller frees it. */
static char *find_closed_dir(const char *dir)
{
    char *path = mem_strdup(dir), *found = NULL;
    struct stat st;
    for (;; strip_last(path)) {
        if (stat(path, &st) == 0 && !(st.st_mode & S_IXOTH)) {
            free(found);
            found = mem_strdup(path);
        }
        if (!path[1])
            break;
    }
    free(path);
    return found;
}

static int err_own_jobs(const char *dir, int why, struct err *e)
{
    if (is_noexec(dir))
        return err_set(e, ERR_CONFIG,
            "jobs cannot be executed in %s: its file system is mounted noexec: mount it with exec, "
            "or choose another dir",
            dir);
    return err_set(e, ERR_CONFIG,
        "jobs cannot be executed in %s: %s: permit it, or choose another dir", dir, strerror(why));
}

static int err_others_jobs(const char *dir, int why, struct err *e)
{
    char *closed = find_closed_dir(dir);
    if (closed)
        err_set(e, ERR_CONFIG,
            "jobs cannot be executed in %s: other users than root cannot pass %s: chmod o+x it, or "
            "choose another dir",
            dir, closed);
    else
        err_set(e, ERR_CONFIG,
            "jobs of other users than root cannot be executed in %s: %s: permit it, or choose "
            "another dir",
            dir, strerror(why));
    free(closed);
    return ERR_CONFIG;
}

/* *ret_why: the errno of executing a script in dir; 0 if it was executed, or could not be written
 * for lack of space. */
static int try_in(const char *dir, bool as_nobody, int *ret_why, struct err *e)
{
    char *path = mem_printf("%s/.belay-trial-XXXXXX", dir);
    int fd = mkostemp(path, O_CLOEXEC);
    int why = fd < 0 ? errno : write_script(path, fd);
    int rc = 0;
    *ret_why = 0;
    if (why == 0) {
        rc = try_as(path, as_nobody, ret_why, e);
        unlink(path);
    } else if (why != ENOSPC && why != EDQUOT) {
        rc = err_errno(e, why, "writing %s", path);
    }
    free(path);
    return rc;
}

static int try_others(const char *dir, const char *system_users, struct err *e)
{
    char *at;
    struct err closed;
    int why, rc = find_dir_after_start(dir, &at, e);
    if (rc)
        return rc;
    rc = try_in(at, true, &why, e);
    if (rc == 0 && why != 0)
        rc = err_others_jobs(at, why, &closed);
    if (rc == ERR_CONFIG && features_has(system_users, "root")) {
        log_warn("only root's jobs can run on this node", log_err(&closed));
        rc = 0;
    } else if (rc == ERR_CONFIG) {
        *e = closed;
    }
    free(at);
    return rc;
}

int dir_trial_explain(const char *dir, int why, bool of_others, struct err *e)
{
    return is_noexec(dir) || !of_others ? err_own_jobs(dir, why, e) : err_others_jobs(dir, why, e);
}

int dir_trial(const char *dir, const char *system_users, struct err *e)
{
    char *at;
    int why, rc = find_dir(dir, &at, e);
    if (rc)
        return rc;
    rc = try_in(at, false, &why, e);
    if (rc == 0 && why != 0)
        rc = err_own_jobs(at, why, e);
    if (rc == 0 && geteuid() == 0)
        rc = try_others(dir, system_users, e);
    free(at);
    return rc;
}
