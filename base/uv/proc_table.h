/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of this machine as /proc shows them at one moment, and their trees. Reading blocks.
 */
#ifndef BELAY_BASE_UV_PROC_TABLE_H
#define BELAY_BASE_UV_PROC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_entry {
    pid_t pid, ppid, pgid;
    char state; /* 'R', 'S', 'T', 'Z' ... */
    uint64_t start_ticks;
    bool is_marked;
};

/* Zeroed is valid and empty. A process that comes or goes during the reading may be missing. */
struct proc_table {
    struct proc_entry *entries;
    size_t n, cap;
};

void proc_table_read(struct proc_table *t);
void proc_table_deinit(struct proc_table *t);

/* Marks every descendant of pid, not pid itself; marks accumulate. */
void proc_table_mark_below(struct proc_table *t, pid_t pid);

static inline bool proc_entry_is_alive(const struct proc_entry *p)
{
    return p->state != 'Z' && p->state != 'X';
}

static inline bool proc_entry_is_stopped(const struct proc_entry *p)
{
    return p->state == 'T' || p->state == 't';
}

/* Reads one process. False if it is gone. */
bool proc_read_entry(pid_t pid, struct proc_entry *ret_entry);

/* Whether the process catches the signal, blocks it (to receive it later) or waits for it. False if
 * the process is gone. Blocks for up to a tenth of a second if the process blocks all signals. */
bool proc_handles(pid_t pid, int signum);

#endif
