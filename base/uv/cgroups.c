/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup directories. base/cgroup.h finds where they are; whether the machine permits a use is
 * tried. Processes are frozen and killed through the v2 directory where there is one (cgroup.kill,
 * Linux 5.14). Otherwise the v1 freezer stops them while each is killed, so that a fork cannot
 * escape.
 */
#include "base/uv/cgroups.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/device_filter.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)4 << 20) /* bytes read of a file of /proc or of a cgroup */
#define DEPTH_MAX 64               /* levels of groups searched below a task's group */

/* Child group for processes of a group that enables controllers for its children and therefore must
 * have no processes of its own. No other group can have this name. */
#define SELF ".self"

/* ---- Sets of pids ---- */

void pids_deinit(struct pids *p)
{
    free(p->pids);
    *p = (struct pids){0};
}

bool pids_has(const struct pids *p, pid_t pid)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->pids[i] == pid)
            return true;
    return false;
}

void pids_add(struct pids *p, pid_t pid)
{
    if (pids_has(p, pid))
        return;
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->pids = mem_resize(p->pids, p->cap, sizeof(*p->pids));
    }
    p->pids[p->n++] = pid;
}

/* ---- Small files ---- */

/* Files of /proc and cgroupfs report no size: read to the end. False if the file cannot be read. */
static bool read_text(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char piece[4096];
    ssize_t n;
    while ((n = read(fd, piece, sizeof(piece))) > 0 && out->len < TEXT_MAX)
        buf_add(out, piece, (size_t)n);
    close(fd);
    return n >= 0;
}

static int write_text(const char *dir, const char *file, const char *text)
{
    char *path = mem_printf("%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* ---- Locating the hierarchies ---- */

/* The directory of the caller's own group, and its name in /proc/PID/cgroup; NULL where this
 * process cannot see it. */
static void find_home(
    struct cgroup_home *h, enum cgroup_kind kind, const char *mounts, const char *groups)
{
    struct cgroup_found at;
    char *own = cgroup_name(groups, kind);
    if (own && str_ends(own, "/" SELF))
        own[strlen(own) - strlen("/" SELF)] = '\0';
    cgroup_find(mounts, kind, own, &at);
    h->has_v1 |= at.is_mounted && kind != CGROUP_V2;
    h->at[kind].dir = at.dir;
    if (at.dir)
        h->at[kind].name = mem_strdup(str_eq(own, "/") ? "" : own);
    free(own);
}

static void add_procs(const char *dir, void *ctx)
{
    char *path = mem_printf("%s/cgroup.procs", dir), *save = NULL;
    struct buf text = {0};
    if (read_text(path, &text) && text.len > 0)
        for (char *line = strtok_r(text.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            if (atol(line) > 0) /* 0 is a process of another pid namespace */
                pids_add(ctx, (pid_t)atol(line));
    buf_deinit(&text);
    free(path);
}

/* ---- Creating groups ---- */

/* systemd marks the groups it delegates to a service (Delegate=), and belay those it delegates to a
 * task. */
static bool is_delegated(const char *dir)
{
    char c = 0;
    return (getxattr(dir, "user.delegate", &c, 1) == 1 ||
               getxattr(dir, "trusted.delegate", &c, 1) == 1) &&
           c == '1';
}

/* Moves all processes directly in a group into a child of it, so that the group may enable
 * controllers for its children. */
static void move_into_leaf(const char *dir)
{
    struct pids found = {0};
    char *self = mem_printf("%s/" SELF, dir);
    mkdir(self, 0755);
    add_procs(dir, &found);
    for (size_t i = 0; i < found.n; i++) {
        char pid[24];
        snprintf(pid, sizeof(pid), "%ld", (long)found.pids[i]);
        write_text(self, "cgroup.procs", pid);
    }
    pids_deinit(&found);
    free(self);
}

/* A child of a v2 group has a controller's files only if the parent enables the controller for its
 * children, which is impossible while processes are directly in the parent (EBUSY; the root group
 * is exempt). Enables all available controllers, because the child may make groups itself. */
static void delegate_controllers(const char *parent)
{
    char *save = NULL, *list = mem_printf("%s/cgroup.controllers", parent);
    struct buf names = {0};
    if (read_text(list, &names) && names.len > 0)
        for (char *name = strtok_r(names.data, " \n", &save); name;
             name = strtok_r(NULL, " \n", &save)) {
            char *order = mem_printf("+%s", name);
            if (write_text(parent, "cgroup.subtree_control", order) == -EBUSY &&
                is_delegated(parent)) {
                move_into_leaf(parent);
                write_text(parent, "cgroup.subtree_control", order);
            }
            free(order);
        }
    buf_deinit(&names);
    free(list);
}

void cgroup_home_find(struct cgroup_home *h)
{
    struct buf mounts = {0}, groups = {0};
    *h = (struct cgroup_home){0};
    if (read_text("/proc/self/mountinfo", &mounts) && read_text("/proc/self/cgroup", &groups))
        for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++)
            find_home(h, k, buf_str(&mounts), buf_str(&groups));
    if (h->at[CGROUP_V2].dir)
        delegate_controllers(h->at[CGROUP_V2].dir);
    buf_deinit(&mounts);
    buf_deinit(&groups);
}

/* ---- Directories kept from group to group ---- */

/* Prefix of a kept directory's name, followed by the pid of its process. */
#define KEPT "belay-supervisor-"

/* Whether the group exists and has neither processes nor child groups. */
static bool is_unused(const struct cgroup_dir *d)
{
    struct stat st;
    char c;
    return stat(d->path, &st) == 0 && st.st_nlink == 2 && pread(d->entry_fd, &c, 1, 0) == 0;
}

static void drop_kept(struct cgroup_kept *k)
{
    if (!k->dir.path)
        return;
    close(k->dir.entry_fd);
    rmdir(k->dir.path);
    free(k->dir.path);
    *k = (struct cgroup_kept){0};
}

static void make_kept(struct cgroup_kept *k, const char *home)
{
    char *dir = mem_printf("%s/" KEPT "%ld", home, (long)getpid());
    char *tasks = mem_printf("%s/tasks", dir);
    int fd = mkdir(dir, 0755) < 0 && errno != EEXIST ? -1 : open(tasks, O_RDWR | O_CLOEXEC);
    k->dir = (struct cgroup_dir){.path = dir, .entry_fd = fd};
    if (fd < 0 || !is_unused(&k->dir))
        drop_kept(k);
    free(tasks);
}

/* Limit of the memory still charged to a directory, mostly page cache, for its reuse: by so much
 * the next group's peak may be too high. */
#define LEFTOVER_MAX (1 << 20) /* bytes */

/* Resets the peak. Lifts the old limit of memory plus swap, which the next group's memory limit
 * must not exceed. False if more than LEFTOVER_MAX is still charged. */
static bool renew_memory(const char *dir)
{
    char *path = mem_printf("%s/memory.usage_in_bytes", dir);
    struct buf text = {0};
    bool is_small = read_text(path, &text) && text.len > 0 && atoll(text.data) <= LEFTOVER_MAX;
    buf_deinit(&text);
    free(path);
    write_text(dir, "memory.memsw.limit_in_bytes", "-1");
    return is_small && write_text(dir, "memory.max_usage_in_bytes", "0") == 0;
}

static bool is_as_new(const struct cgroup_dir *d, enum cgroup_kind kind)
{
    return is_unused(d) && (kind != CGROUP_MEMORY || renew_memory(d->path));
}

/* Whether a group may use a kept v1 directory: v2 contains and kills its processes, and the group
 * sets the limit, so that it does not inherit that of the previous one. */
static bool can_reuse(const struct cgroups *c, enum cgroup_kind kind, const struct proc_limits *l)
{
    return c->can_kill && l &&
           ((kind == CGROUP_CPU && l->cpus_milli > 0) ||
               (kind == CGROUP_MEMORY && l->memory_bytes > 0) ||
               (kind == CGROUP_PIDS && l->pids_max > 0));
}

/* Lends the group the kept directory; false if it is in use or cannot be made. */
static bool reuse_kept(struct cgroups *c, struct cgroup_home *h, enum cgroup_kind kind)
{
    struct cgroup_kept *kept = &h->kept[kind];
    if (!h->keeps || !h->at[kind].dir || kept->is_lent)
        return false;
    if (kept->dir.path && !is_as_new(&kept->dir, kind))
        drop_kept(kept);
    if (!kept->dir.path)
        make_kept(kept, h->at[kind].dir);
    if (!kept->dir.path)
        return false;
    kept->is_lent = true;
    c->lent[kind] = kept;
    c->dirs[kind] = kept->dir;
    return true;
}

void cgroup_home_drop(struct cgroup_home *h)
{
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++)
        drop_kept(&h->kept[k]);
}

/* Removes kept directories of processes that are gone. rmdir fails if one has processes. */
static void prune_dir(const char *home)
{
    DIR *d = opendir(home);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (!str_starts(entry->d_name, KEPT))
            continue;
        long pid = atol(entry->d_name + strlen(KEPT));
        if (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH)
            unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
    }
    if (d)
        closedir(d);
}

void cgroup_home_prune(const struct cgroup_home *h)
{
    for (enum cgroup_kind k = CGROUP_V2 + 1; k < CGROUP_KINDS; k++)
        if (h->at[k].dir)
            prune_dir(h->at[k].dir);
}

void cgroup_home_deinit(struct cgroup_home *h)
{
    cgroup_home_drop(h);
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++) {
        free(h->at[k].dir);
        free(h->at[k].name);
    }
}

/* The descriptor through which a process enters the group. v2: the directory, for a clone into it.
 * v1: the list of threads. A single-threaded process may move itself through that list without a
 * lock that stops the whole machine (some 10 ms when idle, cgroup_procs_write_start() in Linux). */
static int open_entry(const char *dir, enum cgroup_kind kind)
{
    if (kind == CGROUP_V2)
        return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *tasks = mem_printf("%s/tasks", dir);
    int fd = open(tasks, O_WRONLY | O_CLOEXEC);
    free(tasks);
    return fd;
}

/* Leaves dirs[kind] empty where that hierarchy is unavailable. */
static void open_dir(
    struct cgroups *c, const struct cgroup_home *home, enum cgroup_kind kind, const char *name)
{
    if (!home->at[kind].dir)
        return;
    char *dir = mem_printf("%s/%s", home->at[kind].dir, name);
    int fd = mkdir(dir, 0755) < 0 && errno != EEXIST ? -1 : open_entry(dir, kind);
    if (fd < 0) {
        rmdir(dir);
        free(dir);
        return;
    }
    c->dirs[kind].path = dir;
    c->dirs[kind].entry_fd = fd;
    if (kind == CGROUP_V2) {
        char *kill = mem_printf("%s/cgroup.kill", dir);
        c->can_kill = access(kill, W_OK) == 0;
        free(kill);
        setxattr(dir, "user.delegate", "1", 1, 0);
        c->v2_name = mem_printf("%s/%s", home->at[kind].name, name);
    }
}

/* Returns 0 or -errno. */
static int set_limit(
    const struct cgroups *c, enum cgroup_kind kind, const char *file, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return c->dirs[kind].path ? write_text(c->dirs[kind].path, file, text) : -ENODEV;
}

/* A controller is in v1 or in v2, never in both. */
static int set_v2_limit(
    const struct cgroups *c, enum cgroup_kind v1_kind, const char *file, int64_t value)
{
    return c->dirs[v1_kind].path ? -ENOENT : set_limit(c, CGROUP_V2, file, value);
}

/* Records the results of setting a limit in v2 and v1 (0 or -errno): one success is enough. Of two
 * errors, keeps that of the hierarchy that has the controller, which is not a missing file. */
static void note(struct cgroups *c, enum proc_limit limit, int v2, int v1)
{
    bool is_set = v2 == 0 || v1 == 0;
    c->lacks[limit] = is_set ? 0 : v1 == -ENODEV || v1 == -ENOENT ? -v2 : -v1;
}

static int64_t clamp(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

/* Whether the machine has swap: /proc/swaps has a line after its header. */
static bool machine_swaps(void)
{
    struct buf text = {0};
    bool read = read_text("/proc/swaps", &text);
    const char *line = read ? strchr(buf_str(&text), '\n') : NULL;
    bool swaps = line && line[1];
    buf_deinit(&text);
    return swaps;
}

/* Memory beyond the limit must not go to swap instead. v2 limits swap by itself; v1 limits memory
 * and swap together, after memory alone. The files are absent where the kernel does not account for
 * swap. */
static void set_memory(struct cgroups *c, int64_t bytes)
{
    note(c, PROC_MEMORY, set_v2_limit(c, CGROUP_MEMORY, "memory.max", bytes),
        set_limit(c, CGROUP_MEMORY, "memory.limit_in_bytes", bytes));
    note(c, PROC_SWAP, set_v2_limit(c, CGROUP_MEMORY, "memory.swap.max", 0),
        set_limit(c, CGROUP_MEMORY, "memory.memsw.limit_in_bytes", bytes));
    if (c->lacks[PROC_SWAP] && !machine_swaps())
        c->lacks[PROC_SWAP] = 0;
}

static void set_limits(struct cgroups *c, const struct proc_limits *l)
{
    if (l->memory_bytes > 0)
        set_memory(c, l->memory_bytes);
    if (l->pids_max > 0)
        note(c, PROC_PIDS, set_v2_limit(c, CGROUP_PIDS, "pids.max", l->pids_max),
            set_limit(c, CGROUP_PIDS, "pids.max", l->pids_max));
    if (l->cpus_milli > 0) { /* one CPU is the default weight: 100 in v2, 1024 in v1 */
        set_v2_limit(c, CGROUP_CPU, "cpu.weight", clamp(l->cpus_milli / 10, 1, 10000));
        set_limit(c, CGROUP_CPU, "cpu.shares", clamp(l->cpus_milli * 1024 / 1000, 2, 262144));
    }
}

void cgroups_lack_all(struct cgroups *c, const struct proc_limits *l)
{
    if (!l)
        return;
    c->lacks[PROC_MEMORY] = l->memory_bytes > 0 ? EOPNOTSUPP : 0;
    c->lacks[PROC_SWAP] = l->memory_bytes > 0 && machine_swaps() ? EOPNOTSUPP : 0;
    c->lacks[PROC_PIDS] = l->pids_max > 0 ? EOPNOTSUPP : 0;
    c->lacks[PROC_DEVICES] = l->n_denied > 0 ? EOPNOTSUPP : 0;
}

/* A directory costs the kernel more than a process, so unneeded ones are not created. */
static bool is_of_use(const struct cgroups *c, enum cgroup_kind kind, const struct proc_limits *l)
{
    if (kind == CGROUP_FREEZER)
        return !c->can_kill;
    if (kind == CGROUP_DEVICES)
        return l && l->n_denied > 0 && c->lacks[PROC_DEVICES] != 0;
    return kind != CGROUP_PIDS || (l && l->pids_max > 0);
}

/* v2 is tried as soon as its directory exists: if it works, no v1 directory is needed. */
static void deny_in_v2(struct cgroups *c, const struct proc_limits *l)
{
    if (!l || l->n_denied == 0)
        return;
    int rc = c->dirs[CGROUP_V2].path
                 ? device_filter_attach(c->dirs[CGROUP_V2].entry_fd, l->denied, l->n_denied)
                 : -ENODEV;
    c->lacks[PROC_DEVICES] = -rc;
}

static void deny_in_v1(struct cgroups *c, const struct proc_limits *l)
{
    int rc = c->dirs[CGROUP_DEVICES].path ? 0 : -ENODEV;
    for (size_t i = 0; rc == 0 && i < l->n_denied; i++) {
        char text[48];
        snprintf(text, sizeof(text), "c %u:%u rwm", l->denied[i].major, l->denied[i].minor);
        rc = write_text(c->dirs[CGROUP_DEVICES].path, "devices.deny", text);
    }
    note(c, PROC_DEVICES, -c->lacks[PROC_DEVICES], rc);
}

int cgroups_open(struct cgroups *c, struct cgroup_home *home, const char *name,
    const struct proc_limits *limits, bool with_v1, struct err *e)
{
    size_t n = 0;
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++) {
        if (k != CGROUP_V2 && !(with_v1 && is_of_use(c, k, limits)))
            continue;
        if (!can_reuse(c, k, limits) || !reuse_kept(c, home, k))
            open_dir(c, home, k, name);
        if (k == CGROUP_V2)
            deny_in_v2(c, limits);
        n += c->dirs[k].path != NULL;
    }
    if (n == 0)
        return err_set(
            e, ERR_UNSUPPORTED, "no cgroup directory can be made for \"%s\" on this machine", name);
    if (limits)
        set_limits(c, limits);
    if (c->lacks[PROC_DEVICES])
        deny_in_v1(c, limits);
    return 0;
}

/* ---- Entering groups ---- */

static int enter_v2(const struct cgroups *c)
{
    if (!c->dirs[CGROUP_V2].path)
        return 0;
    int fd = openat(c->dirs[CGROUP_V2].entry_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    int rc = fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int enter_v1(const struct cgroups *c)
{
    for (enum cgroup_kind k = CGROUP_V2 + 1; k < CGROUP_KINDS; k++)
        if (c->dirs[k].path && write(c->dirs[k].entry_fd, "0", 1) < 0)
            return -errno;
    return 0;
}

int cgroups_enter(const struct cgroups *c)
{
    int rc = enter_v2(c);
    return rc ? rc : enter_v1(c);
}

pid_t cgroups_fork(const struct cgroups *c, int *ret_entered)
{
    struct clone_args how = {.flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)c->dirs[CGROUP_V2].entry_fd};
    pid_t pid = c->dirs[CGROUP_V2].path ? (pid_t)syscall(SYS_clone3, &how, sizeof(how)) : -1;
    bool is_in = pid >= 0;
    /* clone3 failed: Linux before 5.7, a system call filter, or a group that may not have processes
     */
    if (!is_in)
        pid = fork();
    if (pid == 0)
        *ret_entered = is_in ? enter_v1(c) : cgroups_enter(c);
    return pid;
}

/* ---- Walking a directory and the groups that tasks made below it ---- */

typedef void (*dir_fn)(const char *dir, void *ctx);

/* Calls fn for dir and all groups below, deepest first, so that fn may remove directories. */
static void walk(const char *dir, int depth, dir_fn fn, void *ctx)
{
    DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_type != DT_DIR || str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        char *below = mem_printf("%s/%s", dir, entry->d_name);
        walk(below, depth + 1, fn, ctx);
        free(below);
    }
    closedir(d);
    fn(dir, ctx);
}

static void walk_kind(const struct cgroups *c, enum cgroup_kind kind, dir_fn fn, void *ctx)
{
    if (c->dirs[kind].path)
        walk(c->dirs[kind].path, 0, fn, ctx);
}

void cgroups_list(const struct cgroups *c, struct pids *out)
{
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++)
        walk_kind(c, k, add_procs, out);
}

/* In v2 a directory's cgroup.events covers itself and all below. */
static bool is_populated(const char *dir)
{
    char *path = mem_printf("%s/cgroup.events", dir);
    struct buf text = {0};
    bool is = !read_text(path, &text) || !strstr(buf_str(&text), "populated 0");
    buf_deinit(&text);
    free(path);
    return is;
}

bool cgroups_is_empty(const struct cgroups *c)
{
    struct pids found = {0};
    enum cgroup_kind k = 0;
    if (c->dirs[CGROUP_V2].path)
        return !is_populated(c->dirs[CGROUP_V2].path);
    while (k < CGROUP_KINDS - 1 && !c->dirs[k].path)
        k++;
    walk_kind(c, k, add_procs, &found); /* a process in one hierarchy is in all of them */
    bool is_empty = found.n == 0;
    pids_deinit(&found);
    return is_empty;
}

/* ---- Killing ---- */

static void thaw_v1(const char *dir, void *ctx)
{
    (void)ctx;
    write_text(dir, "freezer.state", "THAWED");
}

static void freeze(const struct cgroups *c)
{
    if (c->dirs[CGROUP_V2].path && write_text(c->dirs[CGROUP_V2].path, "cgroup.freeze", "1") == 0)
        return;
    if (c->dirs[CGROUP_FREEZER].path)
        write_text(c->dirs[CGROUP_FREEZER].path, "freezer.state", "FROZEN");
}

/* Thaws all groups, including those that a task froze: a process in a frozen v1 group does not die.
 */
static void thaw(const struct cgroups *c)
{
    if (c->dirs[CGROUP_V2].path)
        write_text(c->dirs[CGROUP_V2].path, "cgroup.freeze", "0");
    walk_kind(c, CGROUP_FREEZER, thaw_v1, NULL);
}

size_t cgroups_kill_round(const struct cgroups *c, struct pids *seen)
{
    struct pids found = {0};
    bool is_killed =
        c->dirs[CGROUP_V2].path && write_text(c->dirs[CGROUP_V2].path, "cgroup.kill", "1") == 0;
    if (!is_killed)
        freeze(c);
    cgroups_list(c, &found);
    for (size_t i = 0; i < found.n; i++) {
        kill(found.pids[i], SIGKILL);
        pids_add(seen, found.pids[i]);
    }
    thaw(c);
    size_t n = found.n;
    pids_deinit(&found);
    return n;
}

bool cgroups_owns(const struct cgroups *c, pid_t pid)
{
    char file[40];
    snprintf(file, sizeof(file), "/proc/%ld/cgroup", (long)pid);
    struct buf text = {0};
    char *name =
        c->v2_name && read_text(file, &text) ? cgroup_name(buf_str(&text), CGROUP_V2) : NULL;
    size_t n = name ? strlen(c->v2_name) : 0;
    bool is_ours =
        name && strncmp(name, c->v2_name, n) == 0 && (name[n] == '\0' || strchr("/ ", name[n]));
    buf_deinit(&text);
    free(name);
    return is_ours;
}

/* ---- The rest ---- */

static void name_file(char out[USAGE_PATH_MAX], const char *dir, const char *file)
{
    if (!dir || snprintf(out, USAGE_PATH_MAX, "%s/%s", dir, file) >= USAGE_PATH_MAX)
        out[0] = '\0';
}

/* v2 accounts time in every group, whichever controllers it has; v1 accounts it in the cpu
 * directory if cpuacct is mounted together with cpu. */
void cgroups_usage_files(const struct cgroups *c, struct usage_files *ret_files)
{
    const char *v2 = c->dirs[CGROUP_V2].path, *v1_memory = c->dirs[CGROUP_MEMORY].path;
    name_file(
        ret_files->cpu, v2 ? v2 : c->dirs[CGROUP_CPU].path, v2 ? "cpu.stat" : "cpuacct.usage");
    name_file(ret_files->memory, v1_memory ? v1_memory : v2,
        v1_memory ? "memory.usage_in_bytes" : "memory.current");
    name_file(ret_files->peak, v1_memory ? v1_memory : v2,
        v1_memory ? "memory.max_usage_in_bytes" : "memory.peak");
}

/* rmdir is retried: a dead process leaves its group a moment after it left the list. */
#define REMOVE_TRIES 100
static const struct timespec remove_pause = {.tv_nsec = 2000000};

static void remove_dir(const char *dir, void *ctx)
{
    (void)ctx;
    for (int i = 0; i < REMOVE_TRIES && rmdir(dir) < 0 && errno == EBUSY; i++)
        nanosleep(&remove_pause, NULL);
}

void cgroups_close(struct cgroups *c, bool remove)
{
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++) {
        if (c->lent[k]) {
            c->lent[k]->is_lent = false;
            continue;
        }
        if (!c->dirs[k].path)
            continue;
        close(c->dirs[k].entry_fd);
        if (remove && rmdir(c->dirs[k].path) < 0) /* usually nothing was made below it */
            walk_kind(c, k, remove_dir, NULL);
        free(c->dirs[k].path);
    }
    free(c->v2_name);
    *c = (struct cgroups){0};
}
