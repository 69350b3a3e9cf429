/* SPDX-License-Identifier: Apache-2.0
 *
 * What a group of processes has used of the processor and of memory, as its cgroups count it. Which files tell is known when the
 * group is made, and whoever knows their names can read them; a reading is three small files and wakes nobody.
 */
#ifndef BELAY_BASE_UV_USAGE_H
#define BELAY_BASE_UV_USAGE_H

#include <stdint.h>

#define USAGE_PATH_MAX 512

struct usage_files {
    char cpu[USAGE_PATH_MAX];    /* v2: cpu.stat, v1: cpuacct.usage; "": nobody tells */
    char memory[USAGE_PATH_MAX]; /* that is in use now, with the page cache that counts as theirs */
    char peak[USAGE_PATH_MAX];   /* the most there was */
};

struct usage {
    int64_t cpu_ms, user_ms; /* the second: of the first, in user mode */
    int64_t memory_bytes, peak_bytes; /* -1, of each: unknown */
};

void usage_read(const struct usage_files *f, struct usage *ret_usage);
/* Pure: milliseconds, of the text of such a file; -1: it does not tell. */
void usage_parse_cpu(const char *text, int64_t *ret_cpu_ms, int64_t *ret_user_ms);

#endif
