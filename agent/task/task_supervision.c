/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/task_supervision.h"

#define USAGE_EVERY_MS 2000 /* so a task that ends earlier is never read */

void task_supervision_read_usage(
    struct task_supervision *s, struct mono now, struct wire_usage *usage)
{
    struct usage used;
    if (s->exited || !mono_is_set(s->usage_at) || now.ms - s->usage_at.ms < USAGE_EVERY_MS)
        return;
    if (*s->usage.cpu)
        usage_read(&s->usage, &used);
    else
        usage_read_tree((pid_t)s->init_pid, (uint64_t)s->init_ticks, &used);
    bool is_known = used.cpu_ms > s->usage_cpu_ms && s->usage_cpu_ms >= 0;
    usage->cpu_milli =
        is_known ? (used.cpu_ms - s->usage_cpu_ms) * 1000 / (now.ms - s->usage_at.ms) : 0;
    usage->cpu_ms = used.cpu_ms > 0 ? used.cpu_ms : 0;
    usage->cpu_user_ms = used.user_ms > 0 ? used.user_ms : 0;
    s->usage_cpu_ms = used.cpu_ms;
    usage->memory_bytes = used.memory_bytes > 0 ? used.memory_bytes : 0;
    /* where the kernel records no peak: the highest value read so far */
    int64_t peak = used.peak_bytes >= 0 ? used.peak_bytes : usage->memory_peak_bytes;
    usage->memory_peak_bytes = peak > usage->memory_bytes ? peak : usage->memory_bytes;
    s->usage_at = now;
}
