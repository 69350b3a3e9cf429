/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/spares.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
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

struct kept_one {
    struct spare spare;
    char *user;
};

struct spares {
    const char *dir;
    /* newest last, because the kernel still caches the most recently used */
    struct kept_one all[SPARES_MAX];
    size_t n;
};

static void remove_one(const char *dir, const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    struct err e;
    if (fs_remove_tree(path, &e) != 0)
        log_warn("a spare task directory could not be removed", log_s("dir", path), log_err(&e));
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
        remove_one(s->dir, s->all[i].spare.name);
        free(s->all[i].user);
    }
    free(s);
}

void spares_take(struct spares *s, const char *user, struct spare *ret_spare)
{
    *ret_spare = (struct spare){0};
    for (size_t i = s->n; i-- > 0;)
        if (str_eq(s->all[i].user, user)) {
            *ret_spare = s->all[i].spare;
            free(s->all[i].user);
            memmove(&s->all[i], &s->all[i + 1], (--s->n - i) * sizeof(s->all[0]));
            return;
        }
}

bool spares_wants(const struct spares *s)
{
    return s->n < SPARES_MAX;
}

void spares_keep(struct spares *s, const char *user, const struct spare *spare)
{
    if (!spares_wants(s)) { /* several were under way at once */
        remove_one(s->dir, spare->name);
        return;
    }
    s->all[s->n++] = (struct kept_one){.spare = *spare, .user = mem_strdup(user)};
}

/* ---- threads ---- */

bool spare_use(
    const char *tasks_dir, const struct spare *spare, const char *dir, const struct job_user *u)
{
    char *from = mem_printf("%s/%s", tasks_dir, spare->name);
    /* the user's uid may have changed */
    bool is_of_user = spare->uid == u->uid && (!u->is_other || spare->gid == u->gid);
    bool is = is_of_user && rename(from, dir) == 0;
    free(from);
    if (!is)
        remove_one(tasks_dir, spare->name);
    return is;
}

/* Calls fn with each name in a directory until it returns false. Returns false if it did, or if the
 * directory cannot be read. */
static bool for_each_in(int fd, bool (*fn)(void *ctx, const char *name), void *ctx)
{
    union {
        struct dirent64 align;
        char bytes[4096];
    } some;
    ssize_t n;
    while ((n = getdents64(fd, some.bytes, sizeof(some.bytes))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(some.bytes + at);
            bool is_itself = str_eq(entry->d_name, ".") || str_eq(entry->d_name, "..");
            if (!is_itself && !fn(ctx, entry->d_name))
                return false;
            at += entry->d_reclen;
        }
    return n == 0;
}

static bool is_none(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

static int open_in(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whether the directory is as it was made: mode 0700, empty, without extended attributes. */
static bool is_untouched(int at, const char *name, struct stat *ret_stat)
{
    int fd = open_in(at, name);
    bool is = fd >= 0 && fstat(fd, ret_stat) == 0 && (ret_stat->st_mode & 07777) == 0700 &&
              flistxattr(fd, NULL, 0) <= 0 && for_each_in(fd, is_none, NULL);
    if (fd >= 0)
        close(fd);
    return is;
}

static bool are_untouched(int at, struct spare *spare)
{
    struct stat st[N_INNER];
    for (size_t i = 0; i < N_INNER; i++)
        if (!is_untouched(at, inner[i], &st[i]) || st[i].st_uid != st[0].st_uid ||
            st[i].st_gid != st[0].st_gid)
            return false;
    spare->uid = st[0].st_uid;
    spare->gid = st[0].st_gid;
    return true;
}

#define FILES_MAX 16

struct found {
    const char *const *files;
    size_t n;
    bool is_there[FILES_MAX];
};

static bool is_known(void *ctx, const char *name)
{
    struct found *f = ctx;
    bool is = false;
    for (size_t i = 0; i < N_INNER; i++)
        is = is || str_eq(name, inner[i]);
    for (size_t i = 0; i < f->n; i++)
        if (str_eq(name, f->files[i]))
            is = f->is_there[i] = true;
    return is;
}

bool spare_make(
    const char *tasks_dir, struct spare *spare, const char *dir, const char *const *files, size_t n)
{
    assert(n <= FILES_MAX);
    struct found f = {.files = files, .n = n};
    int at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is = at >= 0 && are_untouched(at, spare) && for_each_in(at, is_known, &f);
    for (size_t i = 0; is && i < n; i++)
        is = !f.is_there[i] || unlinkat(at, files[i], 0) == 0;
    if (at >= 0)
        close(at);
    char *to = mem_printf("%s/%s", tasks_dir, spare->name);
    is = is && rename(dir, to) == 0;
    free(to);
    return is;
}
