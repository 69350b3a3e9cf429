/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/kept.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define AGE_MAX_S (24 * 3600)
#define PARTIAL ".restoring"
#define PARTIAL_MARK ".restores"
#define FIND_MAX 64 /* directories examined; kept_prune removes what exceeds KEPT_MAX */

static int newest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    if (x->since_s != y->since_s)
        return x->since_s > y->since_s ? -1 : 1;
    return x->attempt > y->attempt ? -1 : x->attempt < y->attempt;
}

/* Lists the names in `where` of the exact form "JOB-ATTEMPT" or "JOB-ATTEMPT.restoring", newest
 * first: those of of_job with an attempt lower than `below`, or all if of_job is 0. */
static size_t list_in(
    const char *where, int64_t of_job, int64_t below, struct kept *ret, size_t max)
{
    DIR *d = opendir(where);
    size_t n = 0;
    if (!d)
        return 0;
    for (struct dirent *entry; n < max && (entry = readdir(d));) {
        long long job, attempt;
        int used = 0;
        struct stat st;
        if (sscanf(entry->d_name, "%lld-%lld%n", &job, &attempt, &used) != 2 ||
            (entry->d_name[used] && !str_eq(entry->d_name + used, PARTIAL)) || job < 1 ||
            attempt < 1 || (of_job && (job != of_job || attempt >= below)) ||
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ret[n++] = (struct kept){.job = job,
            .attempt = attempt,
            .since_s = st.st_ctime,
            .is_partial = entry->d_name[used] != 0};
    }
    closedir(d);
    qsort(ret, n, sizeof(*ret), newest_first);
    return n;
}

size_t kept_list(const char *dir, struct kept *ret, size_t max)
{
    struct kept all[FIND_MAX];
    size_t n = list_in(dir, 0, 0, all, FIND_MAX);
    n = n < max ? n : max;
    for (size_t i = 0; i < n; i++)
        ret[i] = all[i];
    return n;
}

char *kept_path(const char *dir, int64_t job, int64_t attempt)
{
    return mem_printf("%s/%lld-%lld", dir, (long long)job, (long long)attempt);
}

static char *path_of(const char *dir, const struct kept *k)
{
    char *whole = kept_path(dir, k->job, k->attempt),
         *path = mem_printf("%s%s", whole, k->is_partial ? PARTIAL : "");
    free(whole);
    return path;
}

void kept_put(const char *dir, int64_t job, int64_t attempt, const char *tree)
{
    struct err e;
    if (rmdir(tree) == 0 || errno == ENOENT) /* it was empty */
        return;
    char *to = kept_path(dir, job, attempt);
    if (fs_mkdirs(dir, 0700, &e) == 0 && fs_remove_tree(to, &e) == 0 && rename(tree, to) < 0)
        log_debug("a checkpoint directory is not kept", log_s("path", tree), log_i("errno", errno));
    free(to);
}

/* Without its mark, nobody continues what is left of it. */
static void drop_mark(const char *dir, const struct kept *k)
{
    char *whole = kept_path(dir, k->job, k->attempt), *mark = mem_printf("%s" PARTIAL_MARK, whole);
    unlink(mark);
    free(mark);
    free(whole);
}

static void drop(const char *dir, const struct kept *k, const char *why)
{
    struct err e;
    char *path = path_of(dir, k);
    if (k->is_partial)
        drop_mark(dir, k);
    log_info("removed a kept checkpoint directory", log_i("job", k->job),
        log_i("attempt", k->attempt), log_s("why", why));
    if (fs_remove_tree(path, &e) != 0)
        log_warn("a kept checkpoint directory could not be removed", log_err(&e));
    free(path);
}

static bool is_unneeded(const struct kept *k, const struct kept *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (k->job == v[i].job && k->attempt < v[i].attempt)
            return true;
    return false;
}

static bool is_short(const char *dir, int free_percent)
{
    struct statvfs s;
    return statvfs(dir, &s) == 0 && (unsigned long long)s.f_bavail * 100 <
                                        (unsigned long long)s.f_blocks * (unsigned)free_percent;
}

void kept_prune(const char *dir, const struct kept *v, size_t n, int free_percent)
{
    struct kept all[FIND_MAX];
    size_t found = list_in(dir, 0, 0, all, FIND_MAX), left = 0;
    int64_t now_s = clock_wall(&clock_system).ms / 1000;
    for (size_t i = 0; i < found; i++) {
        if (is_unneeded(&all[i], v, n))
            drop(dir, &all[i], "no longer needed");
        else if (now_s - all[i].since_s > AGE_MAX_S)
            drop(dir, &all[i], "too old");
        else if (left == KEPT_MAX)
            drop(dir, &all[i], "too many");
        else
            all[left++] = all[i];
    }
    while (left > 0 && is_short(dir, free_percent))
        drop(dir, &all[--left], "low disk space");
}

static size_t add_earlier(
    const char *where, const char *below, int64_t job, int64_t attempt, char **ret, size_t max)
{
    struct kept all[FIND_MAX];
    size_t found = list_in(where, job, attempt, all, FIND_MAX), n = 0;
    for (; n < found && n < max; n++) {
        char *path = path_of(where, &all[n]);
        ret[n] = mem_printf("%s%s", path, below);
        free(path);
    }
    return n;
}

size_t kept_find(
    const char *dir, const char *tasks_dir, int64_t job, int64_t attempt, char **ret, size_t max)
{
    size_t n = add_earlier(tasks_dir, "/checkpoint", job, attempt, ret, max);
    return n + add_earlier(dir, "", job, attempt, ret + n, max - n);
}
