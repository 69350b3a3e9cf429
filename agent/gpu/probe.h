/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task and its machine did since the last sample, from the kernel's files. Blocks while it
 * reads files. May be called on any thread, one call at a time.
 *
 * A cgroup (v2) counts best: it includes processes that ended in between. Where there is none, or
 * it lacks a counter, up to PROBE_PROCESSES_MAX processes are read one by one, and what a process
 * did between the last sample and its end is missed. Threads are read only of processes that may
 * have a busy one, up to PROBE_THREADS_MAX of a task.
 */
#ifndef BELAY_AGENT_GPU_PROBE_H
#define BELAY_AGENT_GPU_PROBE_H

#include "base/load.h"
#include "base/uv/usage.h"

#define PROBE_PROCESSES_MAX 1024
#define PROBE_THREADS_MAX 1024

/* Counters of the machine since boot. */
struct probe_node {
    int64_t at_ms; /* monotonic */
    int64_t cpus, cpu_ms, iowait_ms, swapped_bytes;
    bool swaps; /* some memory is swapped out */
    /* only of interfaces with a device, not of bridges and the like */
    int64_t net_in_bytes, net_out_bytes, link_bytes_s;
};
void probe_node_read(int64_t at_ms, struct probe_node *ret_node);

struct probe_of {
    struct usage_files files; /* of its cgroups; "" = none */
    /* used without cgroups: the first of its processes, and its start time */
    int64_t init_pid, init_ticks;
    /* time waited for other ranks, as reported by the program since one of its processes began; -1
     * = not reported */
    int64_t waited_ms;
};

struct probe;
struct probe *probe_create(void);
void probe_destroy(struct probe *p); /* NULL is allowed */
/* What the task did since the last read. The first read, and one of other processes than before,
 * gives nothing (ms 0). before and now: samples of the machine at those two moments. */
void probe_read(struct probe *p, const struct probe_of *of, const struct probe_node *before,
    const struct probe_node *now, struct task_load *ret_load);

#endif
