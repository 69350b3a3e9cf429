/* SPDX-License-Identifier: Apache-2.0
 *
 * What attempts that have ended left in their checkpoint directories, kept on this node for the
 * next attempt of the job here: its restore takes from there what has the right hash, and fetches
 * the rest. Nobody else ever reads it.
 *
 *     DIR/kept/JOB-ATTEMPT    the directory as it was; "kept" is nobody's but the agent's (0700)
 *
 * It is a convenience, so it goes as soon as it is of no use or in the way: when the job has ended
 * or a later attempt of it was prepared here, after a day, beyond KEPT_MAX, and when the file
 * system has less than a tenth of its space left. All calls block, but for listing: that looks into
 * one small directory.
 */
#ifndef BELAY_AGENT_TASK_KEPT_H
#define BELAY_AGENT_TASK_KEPT_H

#include "base/wire/wire.h"

#define KEPT_MAX 8
#define KEPT_FREE_PERCENT 10 /* of the file system: less is short */
#define KEPT_NONE 101        /* for kept_sweep: never enough, so all goes */

struct kept {
    int64_t job, attempt;
    int64_t since_s; /* wall */
};

/* The newest first (of those that came in one second, the greater attempt); at most max, and
 * returns how many. dir is DIR/kept, which may be missing. */
size_t kept_list(const char *dir, struct kept *ret, size_t max);

/* Moves tree there, if there is anything in it; a failure leaves it to whoever removes it. */
void kept_put(const char *dir, int64_t job, int64_t attempt, const char *tree);

/* Removes what is of no use: attempts of job v[i].job below v[i].attempt; what is too old, too
 * many, or in the way of a file system with less than free_percent of its space left. */
void kept_sweep(const char *dir, const struct kept *v, size_t n, int free_percent);

/* The directories where earlier attempts of the job may have left something on this node, the
 * newest first: here, or under tasks_dir if they are just ending. At most max, and returns how
 * many; free each. */
size_t kept_find(
    const char *dir, const char *tasks_dir, int64_t job, int64_t attempt, char **ret, size_t max);

#endif
