/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading /proc. The kernel writes /proc/PID/stat, but the command name in it is the program's
 * choice and may contain blanks and brackets, so fields are counted from the last ')'.
 */
#include "base/uv/proc_table.h"
#include "base/fs.h"
#include "base/mem.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS_ALL_TRIES 20
#define BLOCKS_ALL_PAUSE_NS 5000000

bool proc_read_entry(pid_t pid, struct proc_entry *ret_entry)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (!fs_read_start(path, text, sizeof(text)))
        return false;
    const char *after = strrchr(text, ')');
    char state;
    int ppid, pgid;
    unsigned long long start;
    /* fields 3 (state), 4 (parent), 5 (process group) and 22 (start time) of proc(5) */
    if (!after)
        return false;
    if (sscanf(after + 1,
            " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
            &state, &ppid, &pgid, &start) != 4)
        return false;
    *ret_entry = (struct proc_entry){
        .pid = pid, .ppid = ppid, .pgid = pgid, .state = state, .start_ticks = start};
    return true;
}

/* Whether the process is in sigwait for the signal. The kernel removes awaited signals from the
 * blocked set meanwhile, so only the system call's arguments show it. */
static bool waits_for(pid_t pid, int signum)
{
    char path[40];
    long number;
    unsigned long long address;
    uint64_t set = 0;
    snprintf(path, sizeof(path), "/proc/%ld/syscall", (long)pid);
    FILE *f = fopen(path, "re");
    bool is_waiting =
        f && fscanf(f, "%ld %llx", &number, &address) == 2 && number == SYS_rt_sigtimedwait;
    if (f)
        fclose(f);
    snprintf(path, sizeof(path), "/proc/%ld/mem", (long)pid);
    int fd = is_waiting ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (pread(fd, &set, sizeof(set), (off_t)address) != sizeof(set))
            set = 0;
        close(fd);
    }
    return set >> (signum - 1) & 1;
}

struct masks {
    unsigned long long blocked, caught;
};

static struct masks read_masks(pid_t pid)
{
    char path[40], line[256];
    struct masks m = {0};
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        sscanf(line, "SigBlk: %llx", &m.blocked);
        sscanf(line, "SigCgt: %llx", &m.caught);
    }
    if (f)
        fclose(f);
    return m;
}

/* Every signal that can be blocked. */
static bool blocks_all(const struct masks *m)
{
    const unsigned long long standard =
        0x7fffffff & ~(1ULL << (SIGKILL - 1)) & ~(1ULL << (SIGSTOP - 1));
    return (m->blocked & standard) == standard;
}

/* A process that is about to exec blocks all signals until the exec, after which a pending one
 * would end the new program. So that state is polled until it is over; a process that keeps it for
 * longer blocks the signals on purpose. */
bool proc_handles(pid_t pid, int signum)
{
    const struct timespec pause = {.tv_nsec = BLOCKS_ALL_PAUSE_NS};
    if (signum < 1 || signum > 64)
        return false;
    struct masks m = read_masks(pid);
    for (int i = 0; i < BLOCKS_ALL_TRIES && !(m.caught >> (signum - 1) & 1) && blocks_all(&m);
         i++) {
        nanosleep(&pause, NULL);
        m = read_masks(pid);
    }
    return ((m.blocked | m.caught) >> (signum - 1) & 1) || waits_for(pid, signum);
}

static void add(struct proc_table *t, const struct proc_entry *p)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        t->entries = mem_resize(t->entries, t->cap, sizeof(*t->entries));
    }
    t->entries[t->n++] = *p;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct proc_entry *)a)->pid, y = ((const struct proc_entry *)b)->pid;
    return (x > y) - (x < y);
}

void proc_table_read(struct proc_table *t)
{
    t->n = 0;
    DIR *dir = opendir("/proc");
    if (!dir)
        return;
    for (struct dirent *d; (d = readdir(dir));) {
        char *end;
        long pid = strtol(d->d_name, &end, 10);
        struct proc_entry p;
        if (pid > 0 && *end == '\0' && proc_read_entry((pid_t)pid, &p))
            add(t, &p);
    }
    closedir(dir);
    if (t->n > 0)
        qsort(t->entries, t->n, sizeof(*t->entries), by_pid);
}

void proc_table_deinit(struct proc_table *t)
{
    free(t->entries);
    *t = (struct proc_table){0};
}

static struct proc_entry *find(const struct proc_table *t, pid_t pid)
{
    const struct proc_entry key = {.pid = pid};
    return t->n > 0 ? bsearch(&key, t->entries, t->n, sizeof(key), by_pid) : NULL;
}

void proc_table_mark_below(struct proc_table *t, pid_t pid)
{
    bool is_changed;
    do { /* a parent's pid is usually lower: two or three rounds */
        is_changed = false;
        for (size_t i = 0; i < t->n; i++) {
            struct proc_entry *p = &t->entries[i];
            if (p->is_marked)
                continue;
            const struct proc_entry *parent = p->ppid == pid ? NULL : find(t, p->ppid);
            p->is_marked = p->ppid == pid || (parent && parent->is_marked);
            is_changed |= p->is_marked;
        }
    } while (is_changed);
}
