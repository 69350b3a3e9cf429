/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a gang, as their agents report them. n is the number of a rank.
 */
#ifndef BELAY_TESTS_CORE_RANKS_H
#define BELAY_TESTS_CORE_RANKS_H

#include "tests/core/lab.h"

/* The rank's row of the live attempt; NULL: it has none. */
const struct attempt *ranks_get(const struct lab *l, int64_t job, int32_t n);
int64_t ranks_node_of(const struct lab *l, int64_t job, int32_t n);
/* Restored from last_good. */
void ranks_started(struct lab *l, int64_t job, int32_t n);
void ranks_ended(struct lab *l, int64_t job, int32_t n, enum end_kind end, int32_t code);
void ranks_saved(struct lab *l, int64_t job, int32_t n, int64_t sequence, int64_t progress);

/* Three nodes of four cpus, and a gang of three that runs on them. */
struct trio {
    struct lab l;
    int64_t job;
};
void trio_start(struct trio *t);

#endif
