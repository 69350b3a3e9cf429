/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/job_secrets.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SECRETS_FILE_MAX (8u << 20)

/* ---- places ---- */

static bool is_tmpfs(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* The directory of all tasks of this user's agents, which may not exist yet; NULL if there is no
 * tmpfs. */
static char *find_root(void)
{
    unsigned uid = (unsigned)geteuid();
    char own[64];
    snprintf(own, sizeof(own), "/run/user/%u", uid);
    const char *const places[] = {uid == 0 ? "/run" : own, "/dev/shm"};
    for (size_t i = 0; i < 2; i++)
        if (is_tmpfs(places[i]))
            return mem_printf("%s/belay-secrets-%u", places[i], uid);
    return NULL;
}

/* Several agents may run on one machine: a hash of the directory distinguishes their tasks. */
static char *dir_of(const char *task_dir)
{
    char *root = find_root(), *real = realpath(task_dir, NULL), *dir = NULL;
    if (root && real)
        dir = mem_printf("%s/%016llx", root, (unsigned long long)hash_text(real));
    free(root);
    free(real);
    return dir;
}

char *job_secrets_dir(const char *task_dir)
{
    char *dir = dir_of(task_dir), *files = dir ? mem_printf("%s/files", dir) : NULL;
    free(dir);
    return files;
}

/* Others may have made a directory of that name in /dev/shm before us. */
static int open_root(struct err *e)
{
    char *root = find_root();
    struct stat st;
    int rc = 0;
    if (!root)
        return err_set(e, ERR_CONFIG,
            "this node has no tmpfs at /run or /dev/shm, and secrets are written to no disk: mount "
            "one");
    if (mkdir(root, geteuid() == 0 ? 0711 : 0700) < 0 && errno != EEXIST)
        rc = err_errno(e, errno, "create %s", root);
    else if (lstat(root, &st) < 0)
        rc = err_errno(e, errno, "examine %s", root);
    else if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        rc = err_set(
            e, ERR_CONFIG, "%s is not a directory of the agent's user alone: remove it", root);
    free(root);
    return rc;
}

/* ---- writing ---- */

static int put_file(const char *dir, const char *name, const void *p, size_t n,
    const struct job_user *u, struct err *e)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
    int rc = fd < 0 ? err_errno(e, errno, "create %s", path) : 0;
    if (rc == 0)
        rc = fs_write_all(fd, p, n, e);
    if (rc == 0 && u && u->is_other && fchown(fd, u->uid, u->gid) < 0)
        rc = err_errno(e, errno, "give %s to its user", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

static int put_secret(
    const char *dir, const struct wire_secret *s, const struct job_user *u, struct err *e)
{
    size_t n;
    if (s->variable && *s->variable)
        return 0;
    char *value = job_secret_value(s, &n);
    if (!value)
        return err_set(e, ERR_INVALID, "the value of the secret %s is not hex", s->name);
    int rc = put_file(dir, s->name, value, n, u, e);
    explicit_bzero(value, n);
    free(value);
    return rc;
}

static int put_values(const char *dir, const struct wire_secrets *s, struct err *e)
{
    struct wire_desired_attempt one = {.job = 1,
        .attempt = 1,
        .secrets = {.version = 1, .of_job = s->of_job, .n_of_job = s->n_of_job}};
    struct wire_desired whole = {.rev = 1, .lease_ms = 1, .attempts = &one, .n_attempts = 1};
    struct buf text = {0};
    buf_reserve(&text, SECRETS_FILE_MAX); /* growing would leave copies */
    wire_desired_encode(&whole, &text);
    int rc = put_file(dir, "values", text.data, text.len, NULL, e);
    buf_wipe(&text);
    return rc;
}

/* The job's user may pass through the directory, by its group, and list nothing in it. */
static int make_dir(const char *dir, const struct job_user *u, struct err *e)
{
    if (mkdir(dir, 0700) < 0)
        return err_errno(e, errno, "create %s", dir);
    if (u->is_other && (chown(dir, geteuid(), u->gid) < 0 || chmod(dir, 0710) < 0))
        return err_errno(e, errno, "let %s enter %s", u->name, dir);
    return 0;
}

int job_secrets_put(
    const char *task_dir, const struct job_user *u, const struct wire_secrets *s, struct err *e)
{
    job_secrets_remove(task_dir);
    int rc = open_root(e);
    if (rc != 0)
        return rc;
    char *dir = dir_of(task_dir);
    if (!dir)
        return err_errno(e, errno, "find the directory %s", task_dir);
    char *files = mem_printf("%s/files", dir);
    rc = make_dir(dir, u, e);
    if (rc == 0)
        rc = make_dir(files, u, e);
    for (size_t i = 0; rc == 0 && i < s->n_of_job; i++)
        rc = put_secret(files, &s->of_job[i], u, e);
    if (rc == 0)
        rc = put_values(dir, s, e);
    if (rc != 0)
        job_secrets_remove(task_dir);
    free(files);
    free(dir);
    return rc;
}

/* ---- reading ---- */

int job_secrets_take(const char *task_dir, struct wire_secrets *ret, struct err *e)
{
    char *dir = dir_of(task_dir);
    struct buf text = {0};
    struct wire_desired whole;
    if (!dir)
        return err_set(e, ERR_NOT_FOUND, "this node has no tmpfs with the secrets of the job");
    char *path = mem_printf("%s/values", dir);
    int rc = fs_read_secret(path, SECRETS_FILE_MAX, &text, e);
    unlink(path);
    if (rc == 0)
        rc = wire_desired_decode(text.data, text.len, &whole, e);
    if (rc == 0 && whole.n_attempts == 1)
        wire_secrets_copy(&whole.attempts[0].secrets, ret);
    if (rc == 0)
        wire_desired_deinit(&whole);
    buf_wipe(&text);
    free(path);
    free(dir);
    return rc ? err_wrap(e, "the secrets of the job") : 0;
}

void job_secrets_remove(const char *task_dir)
{
    char *dir = dir_of(task_dir);
    struct err e;
    if (dir && fs_exists(dir) && fs_remove_tree(dir, &e) != 0)
        log_warn("secrets of a task cannot be removed", log_s("dir", dir), log_err(&e));
    free(dir);
}

char *job_secret_value(const struct wire_secret *s, size_t *ret_n)
{
    size_t n = s->value ? strlen(s->value) / 2 : 0;
    char *value = mem_alloc(n + 1);
    if (n == 0 || strlen(s->value) % 2 != 0 || !str_unhex(s->value, (unsigned char *)value, n)) {
        free(value);
        return NULL;
    }
    *ret_n = n;
    return value;
}
