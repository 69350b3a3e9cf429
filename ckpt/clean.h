/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning for a save that does not fit (ckpt.h has the cleaning after one).
 */
#ifndef BELAY_CKPT_CLEAN_H
#define BELAY_CKPT_CLEAN_H

#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

/* The store is full. What the next cleaning would remove for the checkpoint that is being saved
 * goes before it instead: the oldest of as many as are kept, with its chunks. The last one stays
 * whatever comes, and so do what is pinned and, if beside is not NULL, the chunks that it names.
 * All other chunks that no manifest names go, so no rank may be about to name any: see gang.h for
 * when that is so. What the ranks tell each other stays. Returns false if no checkpoint was
 * removed. */
bool clean_for_room(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const struct manifest *beside, const atomic_int *cancel);

#endif
