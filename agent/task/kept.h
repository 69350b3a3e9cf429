/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoint directories of ended attempts, and checkpoints that were fetched ahead (prefetch.h),
 * kept on this node for the job's next attempt here: its restore copies what has the right hash
 * from there and fetches the rest. Nothing else reads them.
 *
 *     DIR/kept/JOB-ATTEMPT              the directory as it was; only the agent can enter "kept"
 *                                       (0700)
 *     DIR/kept/JOB-ATTEMPT.restoring    part of a checkpoint that is being fetched, or could not be
 *     DIR/kept/JOB-ATTEMPT.restores     (ckpt/restore.c)
 *
 * This is a cache, removed when it is of no more use or takes needed space: when the job has ended
 * or a later attempt was prepared here, after a day, beyond KEPT_MAX, and when less than a tenth of
 * the file system is free. All calls block; kept_list reads only one small directory.
 */
#ifndef BELAY_AGENT_TASK_KEPT_H
#define BELAY_AGENT_TASK_KEPT_H

#include "base/wire/wire.h"

#define KEPT_MAX 8
#define KEPT_FREE_PERCENT 10 /* of the file system; less free space counts as short */
#define KEPT_NONE 101        /* for kept_prune: removes everything */

struct kept {
    int64_t job, attempt;
    int64_t since_s; /* wall */
    bool is_partial;
};

/* Lists the newest first (within one second, the greater attempt first); returns how many, at most
 * max. dir is DIR/kept, which may be missing. */
size_t kept_list(const char *dir, struct kept *ret, size_t max);

/* The directory's path; free it. */
char *kept_path(const char *dir, int64_t job, int64_t attempt);

/* Moves tree there if it is not empty. On failure it stays where it is, for the caller to
 * remove. */
void kept_put(const char *dir, int64_t job, int64_t attempt, const char *tree);

/* Removes attempts of job v[i].job below v[i].attempt, and directories that are too old, too many,
 * or on a file system with less than free_percent free. */
void kept_prune(const char *dir, const struct kept *v, size_t n, int free_percent);

/* The directories where earlier attempts of the job may have left something on this node, newest
 * first: here, or under tasks_dir if they are just ending. Returns how many, at most max; free
 * each. */
size_t kept_find(
    const char *dir, const char *tasks_dir, int64_t job, int64_t attempt, char **ret, size_t max);

#endif
