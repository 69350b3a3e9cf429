/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing at the store: an attempt claims its job with an object "fences/<attempt>" (ckpt_fence),
 * and a claim or a checkpoint of a later attempt shuts out the earlier ones. The claim of
 * CKPT_CLOSED, which is later than any attempt, ends the job for good (ckpt_is_closed). belayd
 * ignores what stale attempts report (scheduler/core/lifecycle/apply_attempt.c).
 */
#ifndef BELAY_CKPT_STORE_FENCE_H
#define BELAY_CKPT_STORE_FENCE_H

#include "ckpt/ckpt.h"

/* ERR_CONFLICT "fenced: ..." if a fence or a manifest of a later attempt exists. */
int fence_check(const struct ckpt_job *j, int64_t attempt, struct err *e);

#endif
