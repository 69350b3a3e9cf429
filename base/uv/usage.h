/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU and memory use of a group of processes, as its cgroups account it. The names of the files are
 * fixed when the group is made, and any process that knows the names can read them. A reading is
 * three small files and wakes no process.
 */
#ifndef BELAY_BASE_UV_USAGE_H
#define BELAY_BASE_UV_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_PATH_MAX 512
#define USAGE_TREE_MAX 4096 /* processes counted; the rest is ignored */

struct usage_files {
    char cpu[USAGE_PATH_MAX];    /* v2: cpu.stat, v1: cpuacct.usage; "" if unavailable */
    char memory[USAGE_PATH_MAX]; /* current use, including page cache charged to the group */
    char peak[USAGE_PATH_MAX];   /* maximum use */
};

struct usage {
    int64_t cpu_ms, user_ms;          /* total; user mode only */
    int64_t memory_bytes, peak_bytes; /* each -1 if unknown */
};

void usage_read(const struct usage_files *f, struct usage *ret_usage);
/* Without cgroups: usage of the process and its descendants from /proc. Time includes exited
 * children that were waited for; shared memory is counted once per process; the peak is unknown.
 * start_ticks is the start time of proc(5); if pid is gone or reused, everything is unknown. */
void usage_read_tree(pid_t pid, uint64_t start_ticks, struct usage *ret_usage);

/* The process and its current descendants, at most max of them. Returns 0 if pid is gone or reused.
 */
size_t usage_list_tree(pid_t pid, uint64_t start_ticks, pid_t *pids, size_t max);

/* The parsed text of /proc/PID/stat. */
struct usage_stat {
    uint64_t start_ticks;
    int64_t user_ticks, kernel_ticks; /* its own, and of its exited children */
    int64_t pages;                    /* resident */
};
/* Pure. False if text is malformed. */
bool usage_parse_stat(const char *text, struct usage_stat *ret_stat);
/* Pure: milliseconds from the text of a cpu file; -1 if absent. */
void usage_parse_cpu(const char *text, int64_t *ret_cpu_ms, int64_t *ret_user_ms);

#endif
