/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processors and the memory of the machine have used of energy, as the kernel's powercap
 * files count it (RAPL, of Intel's and AMD's processors): each package, and its memory where that
 * is counted. Root alone may read them, as a rule, and few virtual machines have them: without,
 * nothing is known. What the board, fans, disks and supplies take is in none of them.
 */
#ifndef BELAY_AGENT_GPU_RAPL_H
#define BELAY_AGENT_GPU_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAPL_DIR "/sys/class/powercap"
#define RAPL_ZONES_MAX 32
/* between two looks; in more a counter may have come round more than once */
#define RAPL_GAP_MS 120000

struct rapl_zone {
    char dir[32];     /* "intel-rapl:0", "intel-rapl:0:1" */
    int64_t range_uj; /* the counter begins anew behind this */
    int64_t uj;       /* at the last look; -1: it could not be read */
};

struct rapl {
    const char *dir; /* borrowed */
    struct rapl_zone zones[RAPL_ZONES_MAX];
    size_t n;
    int64_t at_ms; /* of the last look */
};

/* Finds the counters. n is 0 if there are none. */
void rapl_open(struct rapl *r, const char *dir);
/* Microjoules since the look before, now being so late on a monotonic clock; -1 = not known, as at
 * the first look, after a gap, or where one of them cannot be read. */
int64_t rapl_look(struct rapl *r, int64_t now_ms);

/* ---- pure, for rapl_look ---- */
/* From one reading of a counter to the next; -1: they say nothing. */
int64_t rapl_used_uj(int64_t before_uj, int64_t now_uj, int64_t range_uj);

#endif
