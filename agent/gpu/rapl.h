/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy used by the machine's processors and memory, from the kernel's powercap files (RAPL, on
 * Intel and AMD processors): each package, and its memory where counted. Usually only root may read
 * them, and few virtual machines have them; without them nothing is known. The board, fans, disks
 * and power supplies are not included.
 */
#ifndef BELAY_AGENT_GPU_RAPL_H
#define BELAY_AGENT_GPU_RAPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAPL_DIR "/sys/class/powercap"
#define RAPL_ZONES_MAX 32
/* longest gap between samples; in a longer one a counter may wrap more than once */
#define RAPL_GAP_MS 120000

struct rapl_zone {
    char dir[32];     /* "intel-rapl:0", "intel-rapl:0:1" */
    int64_t range_uj; /* the counter wraps after this */
    int64_t uj;       /* at the last sample; -1 = it could not be read */
};

struct rapl {
    const char *dir; /* borrowed */
    struct rapl_zone zones[RAPL_ZONES_MAX];
    size_t n;
    int64_t at_ms; /* of the last sample */
};

/* Finds the counters. n is 0 if there are none. */
void rapl_open(struct rapl *r, const char *dir);
/* Microjoules since the last sample; now_ms is monotonic. -1 = not known: at the first sample,
 * after a gap, or where a counter cannot be read. */
int64_t rapl_sample(struct rapl *r, int64_t now_ms);

/* ---- pure, for rapl_sample ---- */
/* Difference of two readings of a counter; -1 = not usable. */
int64_t rapl_used_uj(int64_t before_uj, int64_t now_uj, int64_t range_uj);

#endif
