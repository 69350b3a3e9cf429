/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsers of the kernel's files about processes, cgroups and the machine (proc(5), cgroups(7),
 * PSI). Pure; a missing value or an unknown form gives -1 or false.
 */
#ifndef BELAY_AGENT_GPU_KERNEL_TEXT_H
#define BELAY_AGENT_GPU_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_NAME_MAX 32

/* /proc/PID/stat, of a process or a thread. */
struct kernel_stat {
    char state; /* 'D' = usually waiting for a disk */
    int64_t start_ticks;
    int64_t cpu_ticks; /* of this process or thread */
    int64_t faults;    /* major faults (that needed a disk) */
    int64_t threads;
    int64_t pages; /* resident pages */
    /* time waiting for disks; also 0 where the kernel does not count it (delayacct) */
    int64_t blocked_ticks;
};
bool kernel_stat(const char *text, struct kernel_stat *ret_stat);

/* The number at the start of a text. */
int64_t kernel_number(const char *text);

/* The number on the line that begins with key: memory.stat, vmstat ("pgmajfault 12"), /proc/PID/io,
 * status, meminfo ("VmSwap: 12 kB"). */
int64_t kernel_value(const char *text, const char *key);

/* The total of the line "some" of a pressure file, in milliseconds. */
int64_t kernel_pressure_ms(const char *text);

/* io.stat of a v2 group: sums over all disks. False if none is listed. */
bool kernel_io(const char *text, int64_t *ret_read_bytes, int64_t *ret_write_bytes);

/* The first line of /proc/stat, in ticks of all cpus together. */
bool kernel_cpu(const char *text, int64_t *ret_busy_ticks, int64_t *ret_iowait_ticks);

/* The next interface of /proc/net/dev; *at starts as the text. */
struct kernel_net {
    char name[KERNEL_NAME_MAX];
    int64_t in_bytes, out_bytes;
};
bool kernel_net_next(const char **at, struct kernel_net *ret_net);

#endif
