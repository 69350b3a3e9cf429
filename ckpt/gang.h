/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of jobs that run on several nodes: one for all ranks, or none.
 *
 * A gang's checkpoint is one manifest, in which the tree of rank 2 is below "rank-0002". Each rank
 * stores its own chunks and then its part of the manifest; rank 0 waits for all parts and commits
 * them as one, by the same conditional create as any checkpoint. So whatever is killed, it exists
 * with all ranks or not at all. The ranks exchange messages in the store, below the job's prefix:
 *     gang/<attempt>/<sequence>-open            rank 0 has begun this save of this step; the others
 *                                               may store theirs
 *     gang/<attempt>/<sequence>-part-<rank>     the manifest of what that rank has stored, sealed
 *                                               like any
 *     gang/<attempt>/<sequence>-failed-<rank>   that rank could not store its part, and why: the
 *                                               save fails at once for all
 *     gang/<attempt>/restored-<round>-<rank>    which checkpoint that rank has restored
 * Numbers of attempts and sequences have 10 digits, the others 4.
 *
 * Matching saves. Rank 0 numbers the saves and has one under way at a time, so only the newest open
 * one matters: those below it are committed or given up. Each rank counts too, so that it knows a
 * number at once, which is right as long as all commit alike. The step that the program reports
 * (progress) decides:
 *     the same          it is this save, whatever the rank had counted
 *     rank 0's is less  this rank missed that step: it fails the save, and waits for the
 *                       next
 *     rank 0's is more  rank 0 missed this step: this rank's own save is left out
 * So after one rank could not commit, or was restarted, the ranks meet again at their next commit.
 * Without a step the count decides; that is right only while both programs wait in their commits,
 * and refused when one has continued, because two moments would become one checkpoint.
 *
 * Invariants.
 *  1. All parts of a checkpoint are of one step, or of programs that all waited for it.
 *  2. Nothing is stored for a save before rank 0 has opened it, and rank 0 cleans only between its
 *     saves, so a cleaning never removes a chunk that a part is about to name. In a full store it
 *     makes space (clean.h) at two other safe moments: when all parts are there and their manifest
 *     does not fit, because the parts name everything stored; and when the save has failed durably
 *     ("failed"), because no part of it will be committed, not even by a restarted agent. The next
 *     cleaning removes what a rank still stores for that save.
 *  3. All ranks resume from the same checkpoint, or none starts.
 *
 * All calls block, at most until the deadline; `cancel` is polled often.
 */
#ifndef BELAY_CKPT_GANG_H
#define BELAY_CKPT_GANG_H

#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

#define GANG_WAIT_MS 600000 /* for the other ranks, without another deadline */

struct gang_meeting {
    const struct ckpt_job *job;
    struct ckpt_gang gang;
    /* sequence: as counted by this rank; after gang_join as counted by rank 0 */
    struct ckpt_id id;
    int64_t progress;          /* -1 = not known */
    bool program_continues;    /* the program does not wait for the save */
    const struct err *refused; /* why this rank cannot save; NULL if it can */
    int64_t deadline_ms;       /* CLOCK_MONOTONIC */
    const atomic_int *cancel;  /* may be NULL */
    /* Of rank 0, may be NULL: called when the total manifest does not fit. Returns true if a retry
     * may succeed. */
    bool (*make_space)(void *ctx, const struct manifest *total, const struct err *full);
    void *space_ctx;
    /* out of gang_join */
    bool joined;   /* id.sequence is valid, also on errors: the others wait for this rank */
    bool left_out; /* with an error: rank 0 is past this step */
};

/* Rank 0 opens the save, with its own count or, if that number was used for another step, the next.
 * Other ranks wait until rank 0 has opened the matching save. ERR_TIMEOUT, ERR_CANCELLED;
 * ERR_UNAVAILABLE: a rank has already failed (ERR_NO_SPACE: the store is full), this save is left
 * out, or only some ranks report steps; or the error in `refused`. */
int gang_join(struct gang_meeting *g, struct err *e);

/* own must be laid out, with durable chunks. Stores this rank's part and waits until rank 0 has
 * committed the gang's checkpoint. *ret_total: the manifest of all ranks (entries dropped).
 * ERR_UNAVAILABLE: another rank has failed (ERR_NO_SPACE: the store is full), or the ranks are at
 * different steps; ERR_TIMEOUT: a rank has not arrived; ERR_CONFLICT as ckpt_save. */
int gang_commit(
    struct gang_meeting *g, const struct manifest *own, struct manifest *ret_total, struct err *e);

/* After a gang_join that set `joined`: tells the others not to wait for this rank. Best effort;
 * true if that is durable. */
bool gang_fail(const struct gang_meeting *g, const struct err *why);

/* If another rank's part failed first and its reason is stored, replaces *e, this rank's error, by
 * that reason. Blocks. */
void gang_reason(const struct gang_meeting *g, struct err *e);

/* Tells the others that this rank has restored own (attempt 0 = from scratch), and waits until all
 * ranks have reported in this round (1 ..). *ret_least: the oldest of all. If all are equal, the
 * ranks agree; otherwise ranks with a newer one restore the oldest, and they meet in the next
 * round. ERR_CONFLICT: this rank has reported another one in this round before. */
int gang_agree(const struct gang_meeting *g, int round, struct ckpt_id own,
    struct ckpt_id *ret_least, bool *ret_agreed, struct err *e);

/* How many ranks have saved it; 0 = not a gang's. */
int32_t gang_ranks(const struct manifest *m);

/* The directory of a rank in a gang's checkpoint. */
#define GANG_RANK_DIR_MAX 24
void gang_rank_dir(int32_t rank, char out[GANG_RANK_DIR_MAX]);

/* Reduces a gang's manifest to this rank's part, in the form of a checkpoint of one node; a
 * manifest without ranks is unchanged. For a rank that is not in it, the result is an empty
 * tree. */
int gang_slice(struct manifest *m, int32_t rank, struct err *e);

#endif
