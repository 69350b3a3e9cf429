/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the files and directories that a start creates or writes (see checks.h), with the
 * effective user's permissions and without creating any. In the state directory, only files on
 * which a start would fail are checked.
 */
#include "scheduler/config/checks.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *key, int rc, struct err *e)
{
    return rc == 0 ? 0 : err_wrap(e, "%s", key);
}

/* Checks the directory in which a start creates path: it must exist, except the state directory,
 * which a start creates first. */
static int check_parent(const struct config *c, const char *key, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == path ? mem_strdup("/") : mem_strndup(path, (size_t)(slash - path));
    int rc = str_eq(dir, c->state_dir) ? 0 : refuse(key, fs_may_write_dir(dir, e), e);
    free(dir);
    return rc;
}

/* ---- the state directory ---- */

static const struct {
    const char *name;
    int mode;
} files[] = {
    {"belay.db", R_OK | W_OK},
    {"belay.db-wal", R_OK | W_OK},
    {"belay.db-shm", R_OK | W_OK},
    {"belay.db.lock", R_OK | W_OK},
    {"ca.pem", R_OK},
    {"ca.key", R_OK},
    {"checkpoint.key-ids", R_OK},
    {"pools.yaml", R_OK},
};

static int check_state_file(const struct config *c, size_t i, struct err *e)
{
    char *path = mem_printf("%s/%s", c->state_dir, files[i].name);
    struct stat st;
    int rc = 0;
    if (stat(path, &st) != 0)
        rc = errno == ENOENT ? 0 : refuse("state", fs_may_not(path, "read", errno, e), e);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, ERR_CONFIG, "state: %s is not a regular file", path);
    else if (!fs_may(path, files[i].mode))
        rc = refuse(
            "state", fs_may_not(path, files[i].mode & W_OK ? "written" : "read", errno, e), e);
    free(path);
    return rc;
}

/* The key is written before the certificate, so a certificate without its key was damaged later; a
 * start does not repair that. */
static int check_authority(const struct config *c, struct err *e)
{
    char *cert = mem_printf("%s/ca.pem", c->state_dir),
         *key = mem_printf("%s/ca.key", c->state_dir);
    int rc = 0;
    if (fs_may(cert, F_OK) && !fs_may(key, F_OK))
        rc = err_set(e, ERR_CONFIG,
            "state: %s exists without its key %s: restore the key from a copy", cert, key);
    free(cert);
    free(key);
    return rc;
}

static int check_state(const struct config *c, struct err *e)
{
    static const char *const made[] = {"logs", "workdirs"};
    int rc = refuse("state", fs_may_make(c->state_dir, e), e);
    if (rc != 0 || !fs_may(c->state_dir, F_OK))
        return rc;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++)
        rc = check_state_file(c, i, e);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]) && rc == 0; i++) {
        char *path = mem_printf("%s/%s", c->state_dir, made[i]);
        rc = refuse("state", fs_may_make(path, e), e);
        free(path);
    }
    return rc == 0 ? check_authority(c, e) : rc;
}

/* ---- all ---- */

static int check_socket(const struct config *c, struct err *e)
{
    struct stat st;
    int rc = check_parent(c, "socket", c->socket, e);
    if (rc == 0 && lstat(c->socket, &st) == 0 && !S_ISSOCK(st.st_mode))
        rc = err_set(e, ERR_CONFLICT,
            "socket: %s exists and is not a socket: move it away, or name another path", c->socket);
    return rc;
}

static int check_key_file(const struct config *c, struct err *e)
{
    if (c->encryption == ENCRYPTION_NONE || fs_may(c->key_file, F_OK))
        return 0;
    return check_parent(c, "key_file", c->key_file, e);
}

/* Once the cluster has a directory in the store, the store itself need not be writable. */
static int check_store(const struct config *c, struct err *e)
{
    static const char scheme[] = "file://";
    const char *text = c->store + strlen(scheme);
    struct buf path = {0};
    int rc = 0;
    if (!str_starts(c->store, scheme))
        return 0;
    rc = str_url_decode(&path, text, strlen(text), false, e);
    if (rc == 0) {
        buf_printf(&path, "/%s", c->cluster);
        rc = refuse("store", fs_may_make(buf_str(&path), e), e);
    }
    buf_deinit(&path);
    return rc;
}

/* Root may write everywhere, so a check as root says nothing about the user who owns the state. */
static void warn_of_other_user(const struct config *c)
{
    char *path = mem_printf("%s/belay.db", c->state_dir);
    struct stat st;
    bool is_there = stat(path, &st) == 0 || stat(c->state_dir, &st) == 0;
    if (is_there && geteuid() == 0 && st.st_uid != 0)
        log_warn("the state belongs to another user: check as that user, else missing permissions "
                 "are not detected",
            log_s("state", c->state_dir), log_i("uid", (int64_t)st.st_uid));
    free(path);
}

int config_check_paths(const struct config *c, struct err *e)
{
    int rc = check_state(c, e);
    if (rc == 0)
        rc = check_socket(c, e);
    if (rc == 0)
        rc = check_key_file(c, e);
    if (rc == 0)
        rc = check_store(c, e);
    if (rc == 0)
        warn_of_other_user(c);
    return rc;
}
