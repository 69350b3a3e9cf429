/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/limits.h"

#include "base/buf.h"
#include "base/cgroup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OOM_FILE "/proc/self/oom_score_adj"
#define OOM_SPARED                                                                                 \
    "-900" /* at -1000 the agent is never killed, and a leak in it could take the machine down */

#define RESERVE_MIN_MIB 256
#define RESERVE_MAX_MIB 4096
#define PIDS_MAX 32768
#define PROC_TEXT_MAX ((size_t)4 << 20) /* bytes of a file in /proc/self */

int64_t limits_memory_default_mib(int64_t machine_mib)
{
    int64_t reserve = machine_mib / 20;
    reserve = reserve < RESERVE_MIN_MIB   ? RESERVE_MIN_MIB
              : reserve > RESERVE_MAX_MIB ? RESERVE_MAX_MIB
                                          : reserve;
    reserve = reserve > machine_mib / 4 ? machine_mib / 4 : reserve;
    return machine_mib - reserve;
}

int64_t limits_pids_default(int64_t pid_max, int64_t group_max)
{
    int64_t most = pid_max > 0 ? min_i64(PIDS_MAX, pid_max / 2) : PIDS_MAX;
    most = group_max > 0 ? min_i64(most, group_max / 2) : most;
    return most < LIMITS_PIDS_MIN ? LIMITS_PIDS_MIN : most;
}

/* Returns 0 (no limit) if the file is missing or says "max". */
static int64_t read_limit(const char *path)
{
    FILE *f = fopen(path, "re");
    long long n = 0;
    if (f && fscanf(f, "%lld", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n > 0 ? n : 0;
}

/* The lower of two limits; 0 = no limit. */
static int64_t lower(int64_t a, int64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* The lowest pids.max of this process's group and of its ancestors, up to the mount point. */
static int64_t read_groups(
    const char *root, const char *mounts, const char *groups, enum cgroup_kind kind)
{
    struct cgroup_found at;
    int64_t lowest = 0;
    char *name = cgroup_name(groups, kind);
    cgroup_find(mounts, kind, name, &at);
    while (at.dir) {
        char *path = mem_printf("%s%s/pids.max", root, at.dir);
        lowest = lower(lowest, read_limit(path));
        free(path);
        if (strlen(at.dir) <= at.top_len)
            break;
        *strrchr(at.dir, '/') = '\0';
    }
    free(at.dir);
    free(name);
    return lowest;
}

/* False if it cannot be read. The caller frees out. */
static bool read_proc(const char *root, const char *name, struct buf *out)
{
    struct err ignored;
    char *path = mem_printf("%s/proc/%s", root, name);
    bool is_read = fs_read(path, PROC_TEXT_MAX, out, &ignored) == 0;
    free(path);
    return is_read;
}

int64_t limits_pids_measure(const char *root)
{
    struct buf mounts = {0}, groups = {0};
    char *path = mem_printf("%s/proc/sys/kernel/pid_max", root);
    int64_t pid_max = read_limit(path), group_max = 0;
    if (read_proc(root, "self/mountinfo", &mounts) && read_proc(root, "self/cgroup", &groups))
        group_max = lower(read_groups(root, buf_str(&mounts), buf_str(&groups), CGROUP_V2),
            read_groups(root, buf_str(&mounts), buf_str(&groups), CGROUP_PIDS));
    buf_deinit(&mounts);
    buf_deinit(&groups);
    free(path);
    return limits_pids_default(pid_max, group_max);
}

void limits_write(
    const struct limits *l, char text[LIMITS_TEXT_MAX], char *ret_words[LIMITS_WORDS_MAX])
{
    int n = snprintf(text, LIMITS_TEXT_MAX, "%lld", (long long)l->memory_mib) + 1;
    ret_words[0] = text;
    ret_words[1] = text + n;
    n += snprintf(text + n, (size_t)(LIMITS_TEXT_MAX - n), "%lld", (long long)l->pids) + 1;
    ret_words[2] = text + n;
    n += snprintf(text + n, (size_t)(LIMITS_TEXT_MAX - n), "%d", l->no_new_privs) + 1;
    ret_words[3] = text + n;
    n += snprintf(text + n, (size_t)(LIMITS_TEXT_MAX - n), "%d", l->private_ipc) + 1;
    ret_words[4] = text + n;
    snprintf(text + n, (size_t)(LIMITS_TEXT_MAX - n), "%d", l->hides_processes);
    ret_words[5] = NULL;
}

bool limits_read(int n, char *const *words, struct limits *ret_limits)
{
    struct limits l = {0};
    int64_t privs, ipc, hides;
    bool ok = n == LIMITS_WORDS_MAX - 1 &&
              str_to_i64(words[0], 0, INT64_MAX >> 20, "memory", &l.memory_mib, NULL) == 0 &&
              str_to_i64(words[1], 0, INT64_MAX, "processes", &l.pids, NULL) == 0 &&
              str_to_i64(words[2], 0, 1, "no_new_privs", &privs, NULL) == 0 &&
              str_to_i64(words[3], 0, 1, "private_ipc", &ipc, NULL) == 0 &&
              str_to_i64(words[4], 0, 1, "hide_processes", &hides, NULL) == 0;
    if (ok) {
        l.no_new_privs = privs == 1;
        l.private_ipc = ipc == 1;
        l.hides_processes = hides == 1;
        *ret_limits = l;
    }
    return ok;
}

/* ---- Limits that cannot be set ---- */

struct limits_warned *limits_warned_create(void)
{
    struct limits_warned *w =
        mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED)
        mem_out_of_memory();
    return w; /* zeroed */
}

static void list_lacks(const struct proc_group *g, struct buf *out)
{
    static const char *const names[] = {
        [PROC_MEMORY] = "memory", [PROC_SWAP] = "swap", [PROC_PIDS] = "processes"};
    for (int k = PROC_MEMORY; k <= PROC_PIDS; k++) {
        int why = proc_group_lacks(g, k);
        if (why)
            buf_printf(out, "%s%s (%s)", out->len > 0 ? ", " : "", names[k], strerror(why));
    }
}

void limits_warn(struct limits_warned *w, const struct proc_group *g)
{
    struct buf lacks = {0};
    int why = proc_group_lacks(g, PROC_DEVICES);
    list_lacks(g, &lacks);
    if (lacks.len > 0 && !atomic_exchange(&w->limits, true))
        log_warn("limits of tasks cannot be set here: a job can use more than it requested, or the "
                 "whole machine; run the agent as root, under systemd with Delegate=yes, on a "
                 "kernel with these cgroup controllers (for swap: swapaccount=1, or no swap)",
            log_s("not_limited", buf_str(&lacks)));
    if (why && !atomic_exchange(&w->devices, true))
        log_warn(
            "tasks cannot be denied access to each other's GPUs here: run the agent as root, on "
            "Linux 4.15 or later with cgroup v2, or with a v1 devices hierarchy",
            log_s("error", strerror(why)));
    buf_deinit(&lacks);
}

/* ---- When memory runs out ---- */

static void write_score(int fd, const char *score)
{
    ssize_t n =
        /* fails without CAP_SYS_RESOURCE; the score then stays as it is */
        write(fd, score, strlen(score));
    (void)n;
}

void limits_protect(void)
{
    int fd = open(OOM_FILE, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    write_score(fd, OOM_SPARED);
    close(fd);
}

void limits_unprotect(void)
{
    char first = '\0';
    int fd = open(OOM_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, &first, 1) == 1 && first == '-')
        write_score(fd, "0");
    close(fd);
}
