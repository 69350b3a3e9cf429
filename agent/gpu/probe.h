/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task and its machine did since the last look, of the kernel's files. Reads files and
 * blocks for as long as that takes, on whatever thread the caller likes, one at a time; wakes
 * nobody.
 *
 * A group (cgroup v2) counts best: what ended in between is in it. Where there is none, or it does
 * not count something, the processes are looked at one by one, PROBE_PROCESSES_MAX of them, and
 * what one did between the last look and its end is not seen. Threads are looked at of processes
 * that may have a busy one, PROBE_THREADS_MAX of a task.
 */
#ifndef BELAY_AGENT_GPU_PROBE_H
#define BELAY_AGENT_GPU_PROBE_H

#include "base/load.h"
#include "base/uv/usage.h"

#define PROBE_PROCESSES_MAX 1024
#define PROBE_THREADS_MAX 1024

/* The machine, since it started. */
struct probe_node {
    int64_t at_ms; /* monotonic */
    int64_t cpus, cpu_ms, iowait_ms, swapped_bytes;
    bool swaps; /* something is swapped out */
    /* of what has a device, not of bridges and the like */
    int64_t net_in_bytes, net_out_bytes, link_bytes_s;
};
void probe_node_read(int64_t at_ms, struct probe_node *ret_node);

struct probe_of {
    struct usage_files files;     /* of its groups; "": it has none */
    int64_t init_pid, init_ticks; /* then the first of its processes, and when that began */
    /* for its other ranks, as it says, since one of its processes began; -1: it says nothing */
    int64_t waited_ms;
};

struct probe;
struct probe *probe_create(void);
void probe_destroy(struct probe *p); /* NULL is allowed */
/* What it did since the read before; the first, and one of other processes than before, gives
 * nothing (ms 0). before and now: looks at the machine at those two moments. */
void probe_read(struct probe *p, const struct probe_of *of, const struct probe_node *before,
    const struct probe_node *now, struct task_load *ret_load);

#endif
