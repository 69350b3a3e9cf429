/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash of belayd's decisions for a seed, to compare two builds: a change that does not affect
 * behaviour keeps it.
 *
 * It covers every committed row: ids, states, times, counters and money. Texts and values of names
 * are excluded, so that they may be reworded.
 */
#ifndef BELAY_SIMTEST_DIGEST_H
#define BELAY_SIMTEST_DIGEST_H

#include "scheduler/core/model/model.h"

#define SIM_DIGEST_START UINT64_C(14695981039346656037) /* FNV-1a, 64 bits */

void sim_digest_changes(uint64_t *digest, const struct changes *c);
void sim_digest_number(uint64_t *digest, int64_t n);

#endif
