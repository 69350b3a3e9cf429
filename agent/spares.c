/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spares.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SPARES_MAX 256

static const char *const inner[] = {"control", "checkpoint"};
#define N_INNER (sizeof(inner) / sizeof(*inner))

struct spare {
    char name[SPARE_NAME_MAX];
    char *user;
};

struct spares {
    const char *dir;
    struct spare all[SPARES_MAX]; /* the newest last: what was used last is what the kernel still knows */
    size_t n;
};

static void remove_one(const char *dir, const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    if (fs_remove_tree(path, &e) != 0)
        log_warn("a directory that was kept for a task could not be removed", log_s("dir", path), log_err(&e));
    free(path);
}

struct spares *spares_create(const char *dir)
{
    struct spares *s = mem_alloc(sizeof(*s));
    DIR *d = opendir(dir);
    s->dir = dir;
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (str_starts(entry->d_name, SPARE_PREFIX))
            remove_one(dir, entry->d_name);
    if (d)
        closedir(d);
    return s;
}

void spares_destroy(struct spares *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        remove_one(s->dir, s->all[i].name);
        free(s->all[i].user);
    }
    free(s);
}

void spares_take(struct spares *s, const char *user, char ret_name[SPARE_NAME_MAX])
{
    ret_name[0] = '\0';
    for (size_t i = s->n; i-- > 0;)
        if (str_eq(s->all[i].user, user)) {
            str_copy(ret_name, SPARE_NAME_MAX, s->all[i].name);
            free(s->all[i].user);
            memmove(&s->all[i], &s->all[i + 1], (--s->n - i) * sizeof(s->all[0]));
            return;
        }
}

bool spares_wants(const struct spares *s)
{
    return s->n < SPARES_MAX;
}

void spares_keep(struct spares *s, const char *user, const char *name)
{
    if (!spares_wants(s)) { /* several were on their way */
        remove_one(s->dir, name);
        return;
    }
    STR_COPY(s->all[s->n].name, name);
    s->all[s->n++].user = mem_strdup(user);
}

/* ---- threads ---- */

static bool belongs_to(const struct stat *st, const struct job_user *u)
{
    return st->st_uid == u->uid && (!u->is_other || st->st_gid == u->gid);
}

bool spare_use(const char *tasks_dir, const char *name, const char *dir, const struct job_user *u)
{
    char *from = mem_printf("%s/%s", tasks_dir, name);
    bool is = true;
    for (size_t i = 0; i < N_INNER; i++) {
        struct stat st;
        char *path = mem_printf("%s/%s", from, inner[i]);
        is = is && lstat(path, &st) == 0 && belongs_to(&st, u); /* the user's number may be another now */
        free(path);
    }
    is = is && rename(from, dir) == 0;
    free(from);
    if (!is)
        remove_one(tasks_dir, name);
    return is;
}

/* Takes fd. What there is in it, and the inner ones it may have. */
static size_t count_others(int fd, bool has_inner)
{
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    size_t n = d ? 0 : 1;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const char *name = entry->d_name;
        bool is_inner = has_inner && (str_eq(name, inner[0]) || str_eq(name, inner[1]));
        n += !is_inner && !str_eq(name, ".") && !str_eq(name, "..");
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return n;
}

static int open_in(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* As it was made. */
static bool is_untouched(int at, const char *name)
{
    struct stat st;
    int fd = open_in(at, name);
    bool is = fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0700 && flistxattr(fd, NULL, 0) <= 0;
    return count_others(fd, false) == 0 && is;
}

bool spare_make(const char *tasks_dir, const char *name, const char *dir, const char *const *files, size_t n)
{
    int at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is = at >= 0;
    for (size_t i = 0; is && i < N_INNER; i++)
        is = is_untouched(at, inner[i]);
    for (size_t i = 0; is && i < n; i++)
        is = unlinkat(at, files[i], 0) == 0 || errno == ENOENT;
    is = is && count_others(open_in(at, "."), true) == 0;
    if (at >= 0)
        close(at);
    char *to = mem_printf("%s/%s", tasks_dir, name);
    is = is && rename(dir, to) == 0;
    free(to);
    return is;
}
