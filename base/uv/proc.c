/* SPDX-License-Identifier: Apache-2.0
 *
 * Containment of process trees. A kill repeats rounds until two scans in a row find nothing alive:
 * one scan of /proc is not a snapshot, so a process can slip past it. In subreaper mode a round
 * first stops every process it finds, repeatedly until no new one appears, and only then kills. A
 * forking process cannot outrun this: stopped processes do not fork, and their pids are not reused
 * meanwhile.
 */
#include "base/uv/proc.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/cgroups.h"
#include "base/uv/proc_table.h"
#include <assert.h>
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_ROUNDS_MAX 50
#define CLEAN_ROUNDS 2
#define PAUSE_MAX_MS 20

/* A process that is not killed; pid 0 = none. start_ticks distinguishes it from a later process
 * with the same pid. */
struct spared {
    pid_t pid;
    uint64_t start_ticks;
};

struct proc_group {
    enum proc_mode mode;
    char name[PROC_NAME_MAX + 1];
    struct cgroups cgroups; /* empty in subreaper mode, except for lacks */
    struct spared spared;
};

/* ---- Open, enter ---- */

struct proc_home {
    struct cgroup_home cgroups;
};

struct proc_home *proc_home_find(void)
{
    struct proc_home *h = mem_alloc(sizeof(*h));
    cgroup_home_find(&h->cgroups);
    return h;
}

void proc_home_free(struct proc_home *h)
{
    if (h)
        cgroup_home_deinit(&h->cgroups);
    free(h);
}

size_t proc_home_fds(const struct proc_home *home, int ret_fds[PROC_HOME_FDS_MAX])
{
    size_t n = 0;
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++)
        if (home->cgroups.kept[k].dir.path)
            ret_fds[n++] = home->cgroups.kept[k].dir.entry_fd;
    return n;
}

void proc_home_drop(struct proc_home *home)
{
    cgroup_home_drop(&home->cgroups);
}

void proc_home_prune(const struct proc_home *home)
{
    cgroup_home_prune(&home->cgroups);
}

static int open_in(struct proc_home *home, const char *name, const struct proc_limits *limits,
    enum proc_mode mode, struct proc_group **ret_group, struct err *e)
{
    if (!str_is_name(name, PROC_NAME_MAX))
        return err_set(e, ERR_INVALID, "\"%.120s\" cannot name a group of processes", name);
    struct cgroups cgroups = {0};
    if (mode == PROC_SUBREAPER) {
        cgroups_lack_all(&cgroups, limits);
    } else {
        int rc =
            cgroups_open(&cgroups, &home->cgroups, name, limits, mode == PROC_CGROUP_HYBRID, e);
        if (rc < 0)
            return rc;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct proc_group *g = mem_alloc(sizeof(*g));
    g->mode = mode;
    g->cgroups = cgroups;
    STR_COPY(g->name, name);
    *ret_group = g;
    return 0;
}

int proc_group_open_mode(const char *name, const struct proc_limits *limits, enum proc_mode mode,
    struct proc_group **ret_group, struct err *e)
{
    struct proc_home *home = mode == PROC_SUBREAPER ? NULL : proc_home_find();
    int rc = open_in(home, name, limits, mode, ret_group, e);
    proc_home_free(home);
    return rc;
}

static int open_best(struct proc_home *home, const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e)
{
    enum proc_mode best = home->cgroups.has_v1 ? PROC_CGROUP_HYBRID : PROC_CGROUP2;
    int rc = open_in(home, name, limits, best, ret_group, e);
    if (rc == ERR_UNSUPPORTED)
        rc = open_in(home, name, limits, PROC_SUBREAPER, ret_group, e);
    return rc;
}

int proc_group_open_in(struct proc_home *home, const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e)
{
    home->cgroups.keeps = true;
    return open_best(home, name, limits, ret_group, e);
}

int proc_group_open(const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e)
{
    struct proc_home *home = proc_home_find();
    int rc = open_best(home, name, limits, ret_group, e);
    proc_home_free(home);
    return rc;
}

enum proc_mode proc_group_mode(const struct proc_group *g)
{
    return g->mode;
}

int proc_group_lacks(const struct proc_group *g, enum proc_limit kind)
{
    return g->cgroups.lacks[kind];
}

int proc_group_enter(const struct proc_group *g)
{
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    return cgroups_enter(&g->cgroups);
}

pid_t proc_group_fork(const struct proc_group *g, int *ret_entered)
{
    pid_t pid = cgroups_fork(&g->cgroups, ret_entered);
    if (pid == 0)
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    return pid;
}

void proc_group_spare(struct proc_group *g, pid_t pid)
{
    g->spared = (struct spared){pid, proc_start_ticks(pid)};
}

/* ---- Members ---- */

static void mark_members(struct proc_table *t, pid_t below, const struct spared *spared)
{
    proc_table_mark_below(t, below);
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].pid == spared->pid && t->entries[i].start_ticks == spared->start_ticks)
            t->entries[i].is_marked = false;
}

static void list_members(const struct proc_group *g, struct pids *out)
{
    if (g->mode != PROC_SUBREAPER) {
        cgroups_list(&g->cgroups, out);
        return;
    }
    struct proc_table t = {0};
    proc_table_read(&t);
    mark_members(&t, getpid(), &g->spared);
    for (size_t i = 0; i < t.n; i++)
        if (t.entries[i].is_marked && proc_entry_is_alive(&t.entries[i]))
            pids_add(out, t.entries[i].pid);
    proc_table_deinit(&t);
}

int proc_group_signal_if(
    struct proc_group *g, int signum, bool (*wants)(void *ctx, pid_t pid), void *ctx)
{
    struct pids members = {0};
    int n = 0;
    list_members(g, &members);
    for (size_t i = 0; i < members.n; i++)
        if (wants(ctx, members.pids[i]))
            n += kill(members.pids[i], signum) == 0;
    pids_deinit(&members);
    return n;
}

static bool any_process(void *ctx, pid_t pid)
{
    (void)ctx, (void)pid;
    return true;
}

int proc_group_signal(struct proc_group *g, int signum)
{
    return proc_group_signal_if(g, signum, any_process, NULL);
}

static bool handles(void *ctx, pid_t pid)
{
    return proc_handles(pid, *(const int *)ctx);
}

int proc_group_signal_handlers(struct proc_group *g, int signum)
{
    return proc_group_signal_if(g, signum, handles, &signum);
}

/* ---- Killing ---- */

/* The target of a kill: a group's cgroups, or everything below a process. */
struct kill_target {
    const struct cgroups *cgroups; /* NULL to use below */
    pid_t below;
    struct spared spared;
    struct pids seen; /* every process found, for reaping */
    struct mono until;
};

/* Signals each process group that lies entirely in the tree as a whole. That is one atomic act in
 * the kernel, so no fork escapes; a process that forks and exits at once may outrun individual
 * signals. */
static void signal_groups(const struct proc_table *t, int signum)
{
    struct pids inside = {0}, shared = {0};
    for (size_t i = 0; i < t->n; i++)
        pids_add(t->entries[i].is_marked ? &inside : &shared, t->entries[i].pgid);
    for (size_t i = 0; i < inside.n; i++)
        if (inside.pids[i] > 1 && !pids_has(&shared, inside.pids[i]))
            kill(-inside.pids[i], signum);
    pids_deinit(&inside);
    pids_deinit(&shared);
}

static size_t signal_below(struct kill_target *target, int signum, bool only_new)
{
    struct proc_table t = {0};
    size_t n = 0;
    proc_table_read(&t);
    mark_members(&t, target->below, &target->spared);
    signal_groups(&t, signum);
    for (size_t i = 0; i < t.n; i++) {
        const struct proc_entry *p = &t.entries[i];
        if (!p->is_marked)
            continue;
        bool is_known = pids_has(&target->seen, p->pid);
        pids_add(&target->seen, p->pid); /* zombies too: they may become our children to reap */
        if (!proc_entry_is_alive(p) || (only_new && (is_known || proc_entry_is_stopped(p))))
            continue; /* dead, or already stopped */
        kill(p->pid, signum);
        n++;
    }
    proc_table_deinit(&t);
    return n;
}

/* One round of a kill; returns the number of live processes found. */
static size_t kill_round(struct kill_target *target)
{
    if (target->cgroups)
        return cgroups_kill_round(target->cgroups, &target->seen);
    for (int i = 0; i < STOP_ROUNDS_MAX && signal_below(target, SIGSTOP, true) > 0; i++)
        continue;
    return signal_below(target, SIGKILL, false);
}

static void pause_ms(int ms)
{
    const struct timespec t = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&t, NULL);
}

static int err_still_alive(const struct kill_target *target, const char *what, struct err *e)
{
    struct proc_entry p;
    for (size_t i = target->seen.n; i-- > 0;)
        if (proc_read_entry(target->seen.pids[i], &p) && proc_entry_is_alive(&p))
            return err_set(e, ERR_TIMEOUT,
                "killing %s: process %ld (state %c) is still there at the deadline", what,
                (long)p.pid, p.state);
    return err_set(
        e, ERR_TIMEOUT, "killing %s: new processes still appeared at the deadline", what);
}

static int kill_until_empty(struct kill_target *target, const char *what, struct err *e)
{
    int pause = 1;
    for (int clean = 0; clean < CLEAN_ROUNDS;) {
        if (kill_round(target) == 0) {
            clean++;
            continue;
        }
        clean = 0;
        if (clock_mono(&clock_system).ms >= target->until.ms)
            return err_still_alive(target, what, e);
        pause_ms(pause);
        pause = pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
    }
    return 0;
}

/* Reaps the targets that are dead children of this process. Returns true if a target is not dead
 * yet: a cgroup drops a process a moment before that. */
static bool reap_round(const struct kill_target *target, pid_t keep_pid)
{
    struct proc_table t = {0};
    bool has_dying = false;
    proc_table_read(&t);
    for (size_t i = 0; i < t.n; i++) {
        const struct proc_entry *p = &t.entries[i];
        bool is_child = p->ppid == getpid(), is_seen = pids_has(&target->seen, p->pid);
        if (!is_child && !is_seen)
            continue;
        if (!(is_child && is_seen) && !(target->cgroups && cgroups_owns(target->cgroups, p->pid)))
            continue;
        if (proc_entry_is_alive(p))
            has_dying = true;
        else if (is_child && p->pid != keep_pid)
            waitpid(p->pid, NULL, WNOHANG);
    }
    proc_table_deinit(&t);
    return has_dying;
}

static int reap(const struct kill_target *target, pid_t keep_pid, const char *what, struct err *e)
{
    siginfo_t info;
    if (target->seen.n == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return 0; /* nothing was killed and no child is left */
    while (reap_round(target, keep_pid)) {
        if (clock_mono(&clock_system).ms >= target->until.ms)
            return err_still_alive(target, what, e);
        pause_ms(1);
    }
    return 0;
}

static struct mono deadline_in(int64_t timeout_ms)
{
    return (struct mono){clock_mono(&clock_system).ms + timeout_ms};
}

int proc_tree_kill(pid_t pid, int64_t timeout_ms, struct err *e)
{
    assert(pid > 1 && pid != getpid());
    char what[48];
    struct kill_target target = {.below = pid, .until = deadline_in(timeout_ms)};
    snprintf(what, sizeof(what), "the tree of process %ld", (long)pid);
    kill(pid, SIGSTOP);
    int rc = kill_until_empty(&target, what, e);
    kill(pid, SIGKILL);
    pids_add(&target.seen, pid);
    while (rc == 0 && proc_start_ticks(pid) != 0) {
        if (clock_mono(&clock_system).ms >= target.until.ms)
            rc = err_still_alive(&target, what, e);
        else
            pause_ms(1);
    }
    if (rc == 0)
        rc = reap(&target, pid, what, e);
    pids_deinit(&target.seen);
    return rc;
}

int proc_group_kill_all(struct proc_group *g, pid_t keep_pid, int64_t timeout_ms, struct err *e)
{
    char what[PROC_NAME_MAX + 16];
    struct kill_target target = {.cgroups = g->mode == PROC_SUBREAPER ? NULL : &g->cgroups,
        .below = getpid(),
        .spared = g->spared,
        .until = deadline_in(timeout_ms)};
    snprintf(what, sizeof(what), "group %s", g->name);
    int rc = kill_until_empty(&target, what, e);
    if (rc == 0)
        rc = reap(&target, keep_pid, what, e);
    pids_deinit(&target.seen);
    return rc;
}

/* ---- The rest ---- */

bool proc_group_is_empty(const struct proc_group *g)
{
    siginfo_t info;
    if (g->mode != PROC_SUBREAPER)
        return cgroups_is_empty(&g->cgroups);
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;
}

void proc_group_usage_files(const struct proc_group *g, struct usage_files *ret_files)
{
    cgroups_usage_files(&g->cgroups, ret_files);
}

void proc_group_close(struct proc_group *g, bool remove)
{
    if (!g)
        return;
    cgroups_close(&g->cgroups, remove);
    free(g);
}

uint64_t proc_start_ticks(pid_t pid)
{
    struct proc_entry p;
    return proc_read_entry(pid, &p) && proc_entry_is_alive(&p) ? p.start_ticks : 0;
}
