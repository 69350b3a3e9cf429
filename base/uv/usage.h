/* SPDX-License-Identifier: Apache-2.0
 *
 * What a group of processes has used of the processor and of memory, as its cgroups count it. Which
 * files tell is known when the group is made, and whoever knows their names can read them; a
 * reading is three small files and wakes nobody.
 */
#ifndef BELAY_BASE_UV_USAGE_H
#define BELAY_BASE_UV_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_PATH_MAX 512
#define USAGE_TREE_MAX 4096 /* processes that are looked at; what there is more is not counted */

struct usage_files {
    char cpu[USAGE_PATH_MAX];    /* v2: cpu.stat, v1: cpuacct.usage; "": nobody tells */
    char memory[USAGE_PATH_MAX]; /* that is in use now, with the page cache that counts as theirs */
    char peak[USAGE_PATH_MAX];   /* the most there was */
};

struct usage {
    int64_t cpu_ms, user_ms;          /* the second: of the first, in user mode */
    int64_t memory_bytes, peak_bytes; /* -1, of each: unknown */
};

void usage_read(const struct usage_files *f, struct usage *ret_usage);
/* Where no group counts: of the process and of all below it, by /proc. Time with that of those that
 * ended and were waited for; memory that they share is counted for each; the peak is unknown.
 * start_ticks: when it started, as proc(5) says; another process, or none, has used nothing that is
 * known. */
void usage_read_tree(pid_t pid, uint64_t start_ticks, struct usage *ret_usage);

/* The process and all below it, as they are now, at most max of them; 0: it is not there, or
 * another. */
size_t usage_list_tree(pid_t pid, uint64_t start_ticks, pid_t *pids, size_t max);

/* What the text of /proc/PID/stat says of one process. */
struct usage_stat {
    uint64_t start_ticks;
    int64_t user_ticks, kernel_ticks; /* its own, and of its children that ended */
    int64_t pages;                    /* resident */
};
/* Pure. False: it is none. */
bool usage_parse_stat(const char *text, struct usage_stat *ret_stat);
/* Pure: milliseconds, of the text of such a file; -1: it does not tell. */
void usage_parse_cpu(const char *text, int64_t *ret_cpu_ms, int64_t *ret_user_ms);

#endif
