/* SPDX-License-Identifier: Apache-2.0
 *
 * One number for what belayd decided in a seed, to compare two builds with: a change that is not
 * meant to change behaviour leaves it as it is.
 *
 * It covers every committed row: ids, states, times, counters and money. Texts and the values of
 * names are left out, so that they may be reworded.
 */
#ifndef BELAY_SIMTEST_DIGEST_H
#define BELAY_SIMTEST_DIGEST_H

#include "scheduler/core/model/model.h"

#define SIM_DIGEST_START UINT64_C(14695981039346656037) /* FNV-1a, 64 bits */

void sim_digest_changes(uint64_t *digest, const struct changes *c);
void sim_digest_number(uint64_t *digest, int64_t n);

#endif
