/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of jobs that run on several nodes: one for all ranks, or none.
 *
 * A gang's checkpoint is one manifest, in which the tree of rank 2 is below "rank-0002". Each rank stores its own chunks and
 * then its part of the manifest; rank 0 waits for all parts and commits them as one, by the same conditional create
 * as any checkpoint, so whatever is killed when, it is there with all ranks or not at all. The ranks meet in the store,
 * below the job's prefix:
 *     gang/<attempt>/<sequence>-open          rank 0 has begun this save: the others may store theirs
 *     gang/<attempt>/<sequence>-part-<rank>   the manifest of what that rank has stored, sealed like any
 *     gang/<attempt>/<sequence>-failed-<rank> that rank could not, and why: the save fails for all, at once
 *     gang/<attempt>/restored-<round>-<rank>  which checkpoint that rank has restored
 * Numbers of attempts and sequences have 10 digits, the others 4.
 *
 * Invariants.
 *  1. The n-th save of each rank is one of the same checkpoint: a rank joins the oldest that rank 0 has opened and that it
 *     did not join yet.
 *  2. Nothing is stored for a save before rank 0 has opened it, and rank 0 cleans only between its saves: so a cleaning
 *     never meets a chunk that a part is about to name.
 *  3. All ranks resume from the same checkpoint, or none starts.
 *
 * All calls block, at most until the deadline; `cancel` is looked at often.
 */
#ifndef BELAY_CKPT_GANG_H
#define BELAY_CKPT_GANG_H

#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

#define GANG_WAIT_MS 600000 /* for the other ranks, where there is no other deadline */

struct gang_meeting {
    const struct ckpt_job *job;
    struct ckpt_gang gang;
    struct ckpt_id id;        /* of the save; sequence: see gang_join */
    int64_t deadline_ms;      /* CLOCK_MONOTONIC */
    const atomic_int *cancel; /* may be NULL */
};

/* Rank 0 opens the save id.sequence. Another rank waits for the oldest that is open with at least this sequence, and
 * takes its. ERR_TIMEOUT, ERR_CANCELLED; ERR_UNAVAILABLE: a rank has failed already. */
int gang_join(struct gang_meeting *g, struct err *e);

/* own: laid out, its chunks durable. Tells this rank's part and waits until the gang's checkpoint is committed, which rank 0
 * does. *ret_total: the whole, of all ranks (entries dropped). ERR_UNAVAILABLE: another rank has failed, or the ranks are
 * not at the same step; ERR_TIMEOUT: one has not come; ERR_CONFLICT as ckpt_save. */
int gang_commit(
    struct gang_meeting *g, const struct manifest *own, struct manifest *ret_total, struct err *e);

/* The others need not wait for this rank. Best effort. */
void gang_fail(const struct gang_meeting *g, const struct err *why);

/* Tells the others that this rank has restored own (attempt 0: the beginning), and waits until all have told in this round (1
 * ..). *ret_least: the oldest of all. All the same: they are agreed; else who has a newer one restores that, and they meet
 * in the next round. ERR_CONFLICT: this rank has told another one in this round before. */
int gang_agree(const struct gang_meeting *g, int round, struct ckpt_id own, struct ckpt_id *ret_least,
    bool *ret_agreed, struct err *e);

/* How many ranks have saved it; 0: it is not a gang's. */
int32_t gang_ranks(const struct manifest *m);

/* The name in a gang's checkpoint of what a rank has saved. */
#define GANG_RANK_DIR_MAX 24
void gang_rank_dir(int32_t rank, char out[GANG_RANK_DIR_MAX]);

/* Leaves of a gang's manifest what is of this rank, as if it had been saved alone; of one without ranks, all. A rank that it
 * does not have is an empty tree. */
int gang_slice(struct manifest *m, int32_t rank, struct err *e);

#endif
