/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of a simulation: one column for each file of pools, in text and on the page.
 */
#ifndef BELAY_CLI_REPORTS_SIMULATE_SUMS_H
#define BELAY_CLI_REPORTS_SIMULATE_SUMS_H

#include "replay/study.h"

#define SUMS_LINES_MAX 32

/* The column of one pool file, one line per value. */
struct sums_column {
    const char *names[SUMS_LINES_MAX];
    char texts[SUMS_LINES_MAX][32];
    size_t n;
};

/* Optional lines: those that at least one column has a value for. */
struct sums_wanted {
    bool deadlines, gpus, given_up, racks, data, storage;
};

struct sums_wanted sums_find(const struct study *s, size_t n);
/* Lines that begin with two blanks are parts of the line above them. */
void sums_fill(struct sums_column *c, const struct study *s, const struct sums_wanted *w);

#endif
