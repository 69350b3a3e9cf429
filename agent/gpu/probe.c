/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: a counter that decreased, because processes ended or a cgroup was recreated, counts as
 * unchanged, never as negative.
 */
#include "agent/gpu/probe.h"

#include "agent/gpu/kernel_text.h"
#include "base/cgroup.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 16384
#define MOUNTS_MAX ((size_t)4 << 20)
/* vmstat counts in pages; on the few machines with larger pages the result is too low */
#define PAGE_SWAPPED 4096
/* threads are read only of processes that used at least 1/BUSY_PART of a cpu */
#define BUSY_PART 2

/* Counters of a process or thread at the last sample. */
struct sample {
    int64_t id, start_ticks;
    int64_t cpu_ticks, faults, blocked_ticks, read_bytes, write_bytes;
};

/* Counters of a task at a sample; -1 = not available. */
struct counters {
    int64_t cpu_ms, blocked_ms, stall_ms, waited_ms, read_bytes, write_bytes, faults, refaults,
        net_in, net_out;
};

struct probe {
    bool began;                   /* there was a first sample */
    int64_t init_pid, init_ticks; /* as of that sample */
    char group[USAGE_PATH_MAX];   /* directory of its v2 cgroup; "" = none found */
    /* one of its processes with a separate network namespace; 0 = none */
    int64_t net_pid;
    struct counters last;
    int64_t waited_at_ms;            /* when waited_ms last grew, or the first sample */
    struct sample *sample, *threads; /* by id */
    size_t n_samples, n_threads;
};

/* ---- files ---- */

static bool read_of(int64_t pid, const char *name, char out[TEXT_MAX])
{
    char path[128];
    snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
    return fs_read_start(path, out, TEXT_MAX);
}

static bool read_in_group(const struct probe *p, const char *name, char out[TEXT_MAX])
{
    char path[USAGE_PATH_MAX + 40];
    out[0] = '\0';
    if (!p->group[0])
        return false;
    snprintf(path, sizeof(path), "%s/%s", p->group, name);
    return fs_read_start(path, out, TEXT_MAX);
}

static int64_t ticks_ms(int64_t ticks)
{
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

static int64_t since(int64_t now, int64_t before)
{
    return before >= 0 && now > before ? now - before : 0;
}

/* ---- the machine ---- */

static int64_t speed_of(const char *name)
{
    char path[64 + KERNEL_NAME_MAX], text[TEXT_MAX];
    int64_t mbit;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
    if (!fs_read_start(path, text, TEXT_MAX))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return str_to_i64(text, 1, 10000000, "", &mbit, NULL) == 0 ? mbit * 125000 : 0;
}

static bool has_device(const char *name)
{
    char path[64 + KERNEL_NAME_MAX];
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
    return !strchr(name, '/') && access(path, F_OK) == 0;
}

static void read_network(struct probe_node *n)
{
    char text[TEXT_MAX];
    const char *at = text;
    struct kernel_net net;
    if (!fs_read_start("/proc/net/dev", text, TEXT_MAX))
        return;
    while (kernel_net_next(&at, &net)) {
        if (!has_device(net.name))
            continue;
        int64_t speed = speed_of(net.name);
        n->net_in_bytes += net.in_bytes;
        n->net_out_bytes += net.out_bytes;
        n->link_bytes_s = n->link_bytes_s > speed ? n->link_bytes_s : speed;
    }
}

void probe_node_read(int64_t at_ms, struct probe_node *ret_node)
{
    char text[TEXT_MAX];
    int64_t busy = 0, iowait = 0;
    struct probe_node n = {.at_ms = at_ms, .cpus = sysconf(_SC_NPROCESSORS_ONLN)};
    if (fs_read_start("/proc/stat", text, TEXT_MAX) && kernel_cpu(text, &busy, &iowait)) {
        n.cpu_ms = ticks_ms(busy);
        n.iowait_ms = ticks_ms(iowait);
    }
    if (fs_read_start("/proc/meminfo", text, TEXT_MAX))
        n.swaps = kernel_value(text, "SwapTotal:") > kernel_value(text, "SwapFree:");
    if (fs_read_start("/proc/vmstat", text, TEXT_MAX)) {
        int64_t in = kernel_value(text, "pswpin"), out = kernel_value(text, "pswpout");
        n.swapped_bytes = in >= 0 && out >= 0 ? (in + out) * PAGE_SWAPPED : 0;
    }
    read_network(&n);
    *ret_node = n;
}

/* ---- processes ---- */

static int compare_samples(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static const struct sample *find_sample(
    const struct sample *v, size_t n, int64_t id, int64_t start_ticks)
{
    const struct sample key = {.id = id},
                        *found = n > 0 ? bsearch(&key, v, n, sizeof(*v), compare_samples) : NULL;
    return found && found->start_ticks == start_ticks ? found : NULL;
}

/* Lists the processes of the cgroup that has this file. */
static size_t list_group(const char *file, pid_t *pids, size_t max)
{
    char path[USAGE_PATH_MAX + 40];
    const char *end = strrchr(file, '/');
    long pid;
    size_t n = 0;
    snprintf(path, sizeof(path), "%.*s/cgroup.procs", end ? (int)(end - file) : 0, file);
    FILE *f = end ? fopen(path, "re") : NULL;
    while (f && n < max && fscanf(f, "%ld", &pid) == 1)
        if (pid > 0)
            pids[n++] = (pid_t)pid;
    if (f)
        fclose(f);
    return n;
}

/* One sample of a task's processes. */
struct round {
    struct probe *p;
    bool wants_io, wants_swap;
    int64_t elapsed_ms;
    struct sample *sample, *threads;
    size_t n_samples, n_threads;
    /* since the last sample */
    int64_t cpu_ticks, faults, blocked_ticks, read_bytes, write_bytes, busiest_ticks;
    int64_t pages, swap_bytes;
    bool waits; /* a process or thread is waiting for a disk now (state D) */
};

static void read_thread(struct round *l, int64_t pid, const char *tid)
{
    char name[64], text[TEXT_MAX];
    struct kernel_stat s;
    snprintf(name, sizeof(name), "task/%.20s/stat", tid);
    if (!read_of(pid, name, text) || !kernel_stat(text, &s))
        return;
    struct sample *now = &l->threads[l->n_threads++];
    *now =
        (struct sample){.id = atoll(tid), .start_ticks = s.start_ticks, .cpu_ticks = s.cpu_ticks};
    const struct sample *was = find_sample(l->p->threads, l->p->n_threads, now->id, s.start_ticks);
    int64_t used = was ? since(s.cpu_ticks, was->cpu_ticks) : 0;
    l->busiest_ticks = used > l->busiest_ticks ? used : l->busiest_ticks;
    l->waits = l->waits || s.state == 'D';
}

static void read_threads(struct round *l, int64_t pid)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/%lld/task", (long long)pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && l->n_threads < PROBE_THREADS_MAX && (d = readdir(dir));)
        if (isdigit((unsigned char)d->d_name[0]))
            read_thread(l, pid, d->d_name);
    if (dir)
        closedir(dir);
}

static void read_process(struct round *l, int64_t pid)
{
    char text[TEXT_MAX];
    struct kernel_stat s;
    if (!read_of(pid, "stat", text) || !kernel_stat(text, &s))
        return;
    struct sample *now = &l->sample[l->n_samples++];
    *now = (struct sample){.id = pid,
        .start_ticks = s.start_ticks,
        .cpu_ticks = s.cpu_ticks,
        .faults = s.faults,
        .blocked_ticks = s.blocked_ticks};
    if (l->wants_io && read_of(pid, "io", text)) {
        int64_t in = kernel_value(text, "read_bytes:"), out = kernel_value(text, "write_bytes:");
        now->read_bytes = in > 0 ? in : 0;
        now->write_bytes = out > 0 ? out : 0;
    }
    int64_t kib = l->wants_swap && read_of(pid, "status", text) ? kernel_value(text, "VmSwap:") : 0;
    l->swap_bytes += kib > 0 ? kib * 1024 : 0;
    l->pages += s.pages;
    l->waits = l->waits || s.state == 'D';
    const struct sample none = {0},
                        *was = find_sample(l->p->sample, l->p->n_samples, pid, s.start_ticks);
    was = was ? was : &none; /* started since the last sample */
    int64_t used = since(s.cpu_ticks, was->cpu_ticks);
    l->cpu_ticks += used;
    l->faults += since(s.faults, was->faults);
    l->blocked_ticks += since(s.blocked_ticks, was->blocked_ticks);
    l->read_bytes += since(now->read_bytes, was->read_bytes);
    l->write_bytes += since(now->write_bytes, was->write_bytes);
    if (s.threads == 1)
        l->busiest_ticks = used > l->busiest_ticks ? used : l->busiest_ticks;
    else if (ticks_ms(used) * BUSY_PART >= l->elapsed_ms)
        read_threads(l, pid);
}

static size_t list_processes(const struct probe_of *of, pid_t pids[PROBE_PROCESSES_MAX])
{
    size_t n = list_group(of->files.cpu, pids, PROBE_PROCESSES_MAX);
    return n > 0 ? n
                 : usage_list_tree(
                       (pid_t)of->init_pid, (uint64_t)of->init_ticks, pids, PROBE_PROCESSES_MAX);
}

static void read_processes(struct round *l, const pid_t *pids, size_t n)
{
    l->sample = mem_array(n, sizeof(*l->sample));
    l->threads = mem_array(PROBE_THREADS_MAX, sizeof(*l->threads));
    for (size_t i = 0; i < n; i++)
        read_process(l, pids[i]);
    qsort(l->sample, l->n_samples, sizeof(*l->sample), compare_samples);
    qsort(l->threads, l->n_threads, sizeof(*l->threads), compare_samples);
}

/* ---- a task ---- */

/* Sets out to the directory of a v2 group if its processes can be read there. */
static void find_dir(const char *group, char out[USAGE_PATH_MAX])
{
    struct buf mounts = {0};
    struct cgroup_found at = {0};
    struct err ignored;
    char path[USAGE_PATH_MAX + 40];
    if (fs_read("/proc/self/mountinfo", MOUNTS_MAX, &mounts, &ignored) == 0)
        cgroup_find(buf_str(&mounts), CGROUP_V2, group, &at);
    snprintf(path, sizeof(path), "%s/cgroup.procs", at.dir ? at.dir : "");
    if (at.dir && strlen(at.dir) < USAGE_PATH_MAX && access(path, R_OK) == 0)
        str_copy(out, USAGE_PATH_MAX, at.dir);
    free(at.dir);
    buf_deinit(&mounts);
}

/* Finds the task's own v2 cgroup: one that its processes are in and the agent is not. */
static void find_group(struct probe *p, const struct probe_of *of, int64_t pid)
{
    char text[TEXT_MAX], *own = NULL, *its = NULL;
    if (str_ends(of->files.cpu, "/cpu.stat")) {
        snprintf(p->group, sizeof(p->group), "%.*s",
            (int)(strlen(of->files.cpu) - strlen("/cpu.stat")), of->files.cpu);
        return;
    }
    if (read_of(pid, "cgroup", text))
        its = cgroup_name(text, CGROUP_V2);
    if (fs_read_start("/proc/self/cgroup", text, TEXT_MAX))
        own = cgroup_name(text, CGROUP_V2);
    if (its && !str_eq(its, "/") && !str_eq(own, its))
        find_dir(its, p->group);
    free(its);
    free(own);
}

static bool has_own_network(int64_t pid)
{
    char path[64], own[64] = "", its[64] = "";
    snprintf(path, sizeof(path), "/proc/%lld/ns/net", (long long)pid);
    return readlink("/proc/self/ns/net", own, sizeof(own) - 1) > 0 &&
           readlink(path, its, sizeof(its) - 1) > 0 && !str_eq(own, its);
}

/* Finds the task's cgroup and network by its last process, which was started last and so is inside
 * the container if there is one. */
static void find_cgroups(struct probe *p, const struct probe_of *of, const pid_t *pids, size_t n)
{
    if (n > 0 && !p->group[0])
        find_group(p, of, pids[n - 1]);
    if (n > 0 && (p->net_pid == 0 || kill((pid_t)p->net_pid, 0) != 0))
        p->net_pid = has_own_network(pids[n - 1]) ? pids[n - 1] : 0;
}

static const struct counters unknown = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static void forget(struct probe *p)
{
    free(p->sample);
    free(p->threads);
}

static void begin(struct probe *p, const struct probe_of *of, int64_t now_ms)
{
    forget(p);
    *p = (struct probe){.began = true,
        .init_pid = of->init_pid,
        .init_ticks = of->init_ticks,
        .last = unknown,
        .waited_at_ms = now_ms};
}

/* memory.stat of v2, or of v1 including its descendants. Memory in use excludes the page cache,
 * which can be reclaimed. */
static void read_memory_stat(const char *text, struct counters *c, struct task_load *levels)
{
    int64_t anon = kernel_value(text, "anon"), shared = kernel_value(text, "shmem");
    int64_t file = kernel_value(text, "workingset_refault_file"),
            back = kernel_value(text, "workingset_refault_anon");
    if (anon < 0) {
        anon = kernel_value(text, "total_rss");
        shared = kernel_value(text, "total_shmem");
        c->faults = kernel_value(text, "total_pgmajfault");
    } else {
        c->faults = kernel_value(text, "pgmajfault");
        c->refaults =
            file >= 0 && back >= 0 ? file + back : kernel_value(text, "workingset_refault");
    }
    levels->memory_bytes = anon < 0 ? -1 : anon + (shared > 0 ? shared : 0);
}

/* Reads another file of the same cgroup. */
static bool read_sibling(const char *file, const char *name, char out[TEXT_MAX])
{
    char path[USAGE_PATH_MAX + 40];
    const char *end = strrchr(file, '/');
    snprintf(path, sizeof(path), "%.*s/%s", end ? (int)(end - file) : 0, file, name);
    out[0] = '\0';
    return end && fs_read_start(path, out, TEXT_MAX);
}

/* Reads the counters of the task's cgroups; those that are not available become -1. */
static void read_counters(
    const struct probe *p, const struct probe_of *of, struct counters *c, struct task_load *levels)
{
    char text[TEXT_MAX];
    struct usage used;
    *c = unknown;
    levels->memory_bytes = -1;
    usage_read(&of->files, &used);
    c->cpu_ms = used.cpu_ms;
    c->waited_ms = of->waited_ms;
    if (read_in_group(p, "io.pressure", text))
        c->blocked_ms = kernel_pressure_ms(text);
    if (read_in_group(p, "memory.pressure", text))
        c->stall_ms = kernel_pressure_ms(text);
    if (read_in_group(p, "io.stat", text))
        kernel_io(text, &c->read_bytes, &c->write_bytes);
    if (read_sibling(of->files.memory, "memory.stat", text))
        read_memory_stat(text, c, levels);
    levels->swap_bytes = read_in_group(p, "memory.swap.current", text) ? kernel_number(text) : -1;
}

/* Sums the interfaces in the task's own network namespace, except the loopback. */
static void read_own_network(const struct probe *p, struct counters *c)
{
    char text[TEXT_MAX];
    const char *at = text;
    struct kernel_net net;
    if (p->net_pid == 0 || !read_of(p->net_pid, "net/dev", text))
        return;
    c->net_in = c->net_out = 0;
    while (kernel_net_next(&at, &net))
        if (!str_eq(net.name, "lo")) {
            c->net_in += net.in_bytes;
            c->net_out += net.out_bytes;
        }
}

static void fill_node(
    struct task_load *t, const struct probe_node *before, const struct probe_node *now)
{
    t->node_cpus = now->cpus;
    t->node_cpu_ms = since(now->cpu_ms, before->cpu_ms);
    t->node_iowait_ms = since(now->iowait_ms, before->iowait_ms);
    t->node_swapped_bytes = since(now->swapped_bytes, before->swapped_bytes);
    t->link_bytes_s = now->link_bytes_s;
}

/* Uses the cgroups' counters, or else those of the processes. */
static void fill_sums(struct task_load *t, const struct counters *c, const struct counters *last,
    const struct round *l)
{
    t->cpu_ms = c->cpu_ms >= 0 ? since(c->cpu_ms, last->cpu_ms) : ticks_ms(l->cpu_ticks);
    t->busiest_ms = ticks_ms(l->busiest_ticks) < t->ms ? ticks_ms(l->busiest_ticks) : t->ms;
    t->faults = c->faults >= 0 ? since(c->faults, last->faults) : l->faults;
    t->refaults = since(c->refaults, last->refaults);
    t->read_bytes = c->read_bytes >= 0 ? since(c->read_bytes, last->read_bytes) : l->read_bytes;
    t->write_bytes =
        c->write_bytes >= 0 ? since(c->write_bytes, last->write_bytes) : l->write_bytes;
    t->stall_ms = since(c->stall_ms, last->stall_ms);
    if (c->blocked_ms >= 0)
        t->blocked_ms = since(c->blocked_ms, last->blocked_ms);
    else if (l->blocked_ticks > 0)
        t->blocked_ms = ticks_ms(l->blocked_ticks);
    else
        /* a task that waits now is assumed to have waited all the time */
        t->blocked_ms = l->waits ? t->ms : 0;
    t->blocked_ms = t->blocked_ms < t->ms ? t->blocked_ms : t->ms;
    t->stall_ms = t->stall_ms < t->ms ? t->stall_ms : t->ms;
}

static void fill_network(struct task_load *t, const struct counters *c, const struct counters *last,
    const struct probe_node *before, const struct probe_node *now)
{
    t->net_is_nodes = c->net_in < 0;
    t->net_in_bytes = t->net_is_nodes ? since(now->net_in_bytes, before->net_in_bytes)
                                      : since(c->net_in, last->net_in);
    t->net_out_bytes = t->net_is_nodes ? since(now->net_out_bytes, before->net_out_bytes)
                                       : since(c->net_out, last->net_out);
}

/* The program reports a wait at its end, or up to a second later: it may have begun before the last
 * sample, but not before the sample that saw the last report. */
static void fill_waited(struct probe *p, struct task_load *t, int64_t reported_ms, int64_t now_ms)
{
    int64_t more = since(reported_ms, p->last.waited_ms), most = now_ms - p->waited_at_ms;
    t->waited_ms = more < most ? more : most;
    if (more > 0)
        p->waited_at_ms = now_ms;
}

void probe_read(struct probe *p, const struct probe_of *of, const struct probe_node *before,
    const struct probe_node *now, struct task_load *ret_load)
{
    bool first = !p->began || p->init_pid != of->init_pid || p->init_ticks != of->init_ticks;
    struct task_load t = {.ms = since(now->at_ms, before->at_ms)};
    pid_t *pids = mem_array(PROBE_PROCESSES_MAX, sizeof(*pids));
    struct counters c;
    if (first)
        begin(p, of, now->at_ms);
    size_t n = list_processes(of, pids);
    find_cgroups(p, of, pids, n);
    read_counters(p, of, &c, &t);
    read_own_network(p, &c);
    struct round l = {.p = p,
        .wants_io = c.read_bytes < 0,
        .wants_swap = t.swap_bytes < 0 && now->swaps,
        .elapsed_ms = t.ms};
    read_processes(&l, pids, n);
    if (t.memory_bytes < 0)
        t.memory_bytes = l.pages * sysconf(_SC_PAGESIZE);
    t.swap_bytes = t.swap_bytes >= 0 ? t.swap_bytes : l.swap_bytes;
    fill_node(&t, before, now);
    fill_sums(&t, &c, &p->last, &l);
    fill_network(&t, &c, &p->last, before, now);
    fill_waited(p, &t, c.waited_ms, now->at_ms);
    forget(p);
    p->sample = l.sample;
    p->n_samples = l.n_samples;
    p->threads = l.threads;
    p->n_threads = l.n_threads;
    p->last = c;
    *ret_load = first ? (struct task_load){0} : t;
    free(pids);
}

struct probe *probe_create(void)
{
    return mem_alloc(sizeof(struct probe));
}

void probe_destroy(struct probe *p)
{
    if (!p)
        return;
    forget(p);
    free(p);
}
