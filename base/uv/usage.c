/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uv/usage.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX 4096
#define NUMBER_MAX (INT64_C(1) << 60) /* bytes, or microseconds */

/* The number at the beginning of a text; -1 if there is none or it exceeds max. */
static int64_t leading(const char *text, int64_t max)
{
    char digits[24] = "";
    int64_t v;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n >= sizeof(digits) || (text[n] && text[n] != '\n'))
        return -1;
    memcpy(digits, text, n);
    return str_to_i64(digits, 0, max, "", &v, NULL) == 0 ? v : -1;
}

/* The value of the line "KEY MICROSECONDS" in milliseconds; -1 if absent. */
static int64_t line_ms(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            int64_t us = leading(line + n + 1, NUMBER_MAX);
            return us < 0 ? -1 : us / 1000;
        }
    return -1;
}

void usage_parse_cpu(const char *text, int64_t *ret_cpu_ms, int64_t *ret_user_ms)
{
    int64_t ns = leading(text, INT64_MAX);
    *ret_cpu_ms = ns < 0 ? line_ms(text, "usage_usec") : ns / 1000000;
    *ret_user_ms = *ret_cpu_ms < 0 ? -1 : line_ms(text, "user_usec");
}

void usage_read(const struct usage_files *f, struct usage *ret_usage)
{
    char text[FILE_MAX];
    fs_read_start(f->cpu, text, FILE_MAX);
    usage_parse_cpu(text, &ret_usage->cpu_ms, &ret_usage->user_ms);
    ret_usage->memory_bytes =
        fs_read_start(f->memory, text, FILE_MAX) ? leading(text, NUMBER_MAX) : -1;
    ret_usage->peak_bytes = fs_read_start(f->peak, text, FILE_MAX) ? leading(text, NUMBER_MAX) : -1;
}

/* ---- without cgroups ---- */

bool usage_parse_stat(const char *text, struct usage_stat *ret_stat)
{
    const char *after = strrchr(text, ')'); /* the name before it is the program's choice */
    unsigned long long own_user, own_kernel, start;
    long long user, kernel, pages;
    char state;
    /* fields 3, 14 to 17, 22 and 24 of proc(5) */
    if (!after || sscanf(after + 1,
                      " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %*d "
                      "%*d %llu %*u %lld",
                      &state, &own_user, &own_kernel, &user, &kernel, &start, &pages) != 7)
        return false;
    if (own_user > NUMBER_MAX / 2 || own_kernel > NUMBER_MAX / 2 || user < 0 ||
        user > NUMBER_MAX / 2 || kernel < 0 || kernel > NUMBER_MAX / 2 || pages < 0 ||
        pages > NUMBER_MAX / 65536)
        return false;
    *ret_stat = (struct usage_stat){.start_ticks = start,
        .user_ticks = (int64_t)own_user + user,
        .kernel_ticks = (int64_t)own_kernel + kernel,
        .pages = pages};
    return true;
}

struct tree {
    pid_t *pids;
    size_t n, max;
};

static bool read_stat(pid_t pid, struct usage_stat *ret_stat)
{
    char path[40], text[FILE_MAX];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    return fs_read_start(path, text, FILE_MAX) && usage_parse_stat(text, ret_stat);
}

static void add_children(struct tree *t, const char *path)
{
    FILE *f = fopen(path, "re");
    long pid;
    while (f && t->n < t->max && fscanf(f, "%ld", &pid) == 1)
        t->pids[t->n++] = (pid_t)pid;
    if (f)
        fclose(f);
}

/* Adds the children of a process. /proc lists them by the thread that forked them. */
static void add_below(struct tree *t, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (isdigit((unsigned char)d->d_name[0])) {
            snprintf(path, sizeof(path), "/proc/%ld/task/%.20s/children", (long)pid, d->d_name);
            add_children(t, path);
        }
    if (dir)
        closedir(dir);
}

size_t usage_list_tree(pid_t pid, uint64_t start_ticks, pid_t *pids, size_t max)
{
    struct tree t = {.pids = pids, .max = max};
    struct usage_stat s;
    if (max == 0 || pid <= 0 || !read_stat(pid, &s) || s.start_ticks != start_ticks)
        return 0;
    pids[t.n++] = pid;
    for (size_t i = 0; i < t.n; i++)
        add_below(&t, pids[i]);
    return t.n;
}

void usage_read_tree(pid_t pid, uint64_t start_ticks, struct usage *ret_usage)
{
    const int64_t second = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    pid_t pids[USAGE_TREE_MAX];
    size_t n = usage_list_tree(pid, start_ticks, pids, USAGE_TREE_MAX);
    struct usage_stat s;
    int64_t user = 0, kernel = 0, pages = 0;
    *ret_usage = (struct usage){-1, -1, -1, -1};
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (!read_stat(pids[i], &s))
            continue;
        user += s.user_ticks;
        kernel += s.kernel_ticks;
        pages += s.pages;
    }
    *ret_usage = (struct usage){.cpu_ms = (user + kernel) * 1000 / second,
        .user_ms = user * 1000 / second,
        .memory_bytes = pages * page,
        .peak_bytes = -1};
}
