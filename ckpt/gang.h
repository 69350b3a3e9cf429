/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of jobs that run on several nodes: one for all ranks, or none.
 *
 * A gang's checkpoint is one manifest, in which the tree of rank 2 is below "rank-0002". Each rank
 * stores its own chunks and then its part of the manifest; rank 0 waits for all parts and commits
 * them as one, by the same conditional create as any checkpoint, so whatever is killed when, it is
 * there with all ranks or not at all. The ranks meet in the store, below the job's prefix:
 *     gang/<attempt>/<sequence>-open            rank 0 has begun this save of this step; the others
 *                                               may store theirs
 *     gang/<attempt>/<sequence>-part-<rank>     the manifest of what that rank has stored, sealed
 *                                               like any
 *     gang/<attempt>/<sequence>-failed-<rank>   that rank could not store its part, and why: the
 *                                               save fails at once for all
 *     gang/<attempt>/restored-<round>-<rank>    which checkpoint that rank has restored
 * Numbers of attempts and sequences have 10 digits, the others 4.
 *
 * Which save is which. Rank 0 numbers the saves and has one under way at a time, so only the newest
 * that is open matters: those below it are committed or given up. Each rank counts as well, so that
 * it can tell a number at once, and is right as long as all commit alike. What decides is the step
 * that the program has told (progress):
 *     the same          it is this one, whatever the rank had counted
 *     rank 0's is less  this rank was not there: it says that this one fails, and waits for the
 *                       next
 *     rank 0's is more  rank 0 was not there: this rank's own is left out
 * So ranks of which one could not commit, or was restarted, meet again at their next commit. Where
 * a step is not told, the count decides; that is right only while the programs of both wait in
 * their commits, and refused when one has gone on: two moments would become one checkpoint.
 *
 * Invariants.
 *  1. What becomes one checkpoint is of one step, or of programs that all waited for it.
 *  2. Nothing is stored for a save before rank 0 has opened it, and rank 0 cleans only between its
 *     saves: so a cleaning never meets a chunk that a part is about to name. In a full store it
 *     makes room (clean.h) at two other moments, for the same reason: when all parts are there and
 *     their manifest does not fit, for they name all that is stored; and when the save has failed
 *     and that is durable ("failed"), for no part of it will be committed, not even by an agent
 *     that begins it again. A rank that still stores for that save leaves what the next cleaning
 *     removes.
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
    /* sequence: what this rank has counted; from gang_join on what rank 0 has */
    struct ckpt_id id;
    int64_t progress;          /* -1 = not known */
    bool has_gone_on;          /* the program does not wait for it */
    const struct err *refused; /* NULL: it is to be saved; else why this rank cannot */
    int64_t deadline_ms;       /* CLOCK_MONOTONIC */
    const atomic_int *cancel;  /* may be NULL */
    /* Of rank 0, may be NULL: the whole's manifest does not fit. True: it is worth another try. */
    bool (*make_room)(void *ctx, const struct manifest *total, const struct err *full);
    void *room_ctx;
    /* out of gang_join */
    bool joined;   /* id.sequence holds, also on errors: the others wait for this rank */
    bool left_out; /* with an error: rank 0 has gone past it */
};

/* Rank 0 opens the save; with the number that it has counted or, if that was used for another step,
 * the next. Another rank waits until rank 0 has opened the one that is its own. ERR_TIMEOUT,
 * ERR_CANCELLED; ERR_UNAVAILABLE: a rank has failed already (ERR_NO_SPACE: in a full store), it is
 * left out, or the ranks tell steps in part only; or as refused says. */
int gang_join(struct gang_meeting *g, struct err *e);

/* own: laid out, its chunks durable. Tells this rank's part and waits until the gang's checkpoint
 * is committed, which rank 0 does. *ret_total: the whole, of all ranks (entries dropped).
 * ERR_UNAVAILABLE: another rank has failed (ERR_NO_SPACE: in a full store), or the ranks are not at
 * the same step; ERR_TIMEOUT: one has not come; ERR_CONFLICT as ckpt_save. */
int gang_commit(
    struct gang_meeting *g, const struct manifest *own, struct manifest *ret_total, struct err *e);

/* After a gang_join that has joined: the others need not wait for this rank. Best effort; true: it
 * is durable. */
bool gang_fail(const struct gang_meeting *g, const struct err *why);

/* Replaces *e, an error of this rank, by why another rank's part of the save failed before it, if
 * one has told so. Blocks. */
void gang_reason(const struct gang_meeting *g, struct err *e);

/* Tells the others that this rank has restored own (attempt 0: the beginning), and waits until all
 * have told in this round (1 ..). *ret_least: the oldest of all. All the same: they are agreed;
 * else who has a newer one restores that, and they meet in the next round. ERR_CONFLICT: this rank
 * has told another one in this round before. */
int gang_agree(const struct gang_meeting *g, int round, struct ckpt_id own,
    struct ckpt_id *ret_least, bool *ret_agreed, struct err *e);

/* How many ranks have saved it; 0: it is not a gang's. */
int32_t gang_ranks(const struct manifest *m);

/* The name in a gang's checkpoint of what a rank has saved. */
#define GANG_RANK_DIR_MAX 24
void gang_rank_dir(int32_t rank, char out[GANG_RANK_DIR_MAX]);

/* Leaves of a gang's manifest what is of this rank, as if it had been saved alone; of one without
 * ranks, all. A rank that it does not have is an empty tree. */
int gang_slice(struct manifest *m, int32_t rank, struct err *e);

#endif
