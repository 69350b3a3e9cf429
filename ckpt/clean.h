/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning for a save that does not fit (ckpt.h has the cleaning after one).
 */
#ifndef BELAY_CKPT_CLEAN_H
#define BELAY_CKPT_CLEAN_H

#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

/* For a full store: removes in advance what the next cleaning would remove for the checkpoint being
 * saved: the oldest kept checkpoint, with its chunks. The last checkpoint is never removed, nor are
 * pinned ones or, if being_saved is not NULL, the chunks that it names. All other chunks that no
 * manifest names are removed, so no rank may be about to name any (see gang.h). The ranks' messages
 * are kept. Returns false if no checkpoint was removed. */
bool clean_for_space(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const struct manifest *being_saved, const atomic_int *cancel);

#endif
