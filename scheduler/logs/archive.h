/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of ended jobs in the store: the files of a job's directory (logs.h) in compressed chunks
 * CLUSTER/output/JOB/NAME, sealed with the job's key if checkpoints are encrypted. What is in the
 * store, and with which hashes, is in the *index*, the file `archived` of the job's directory: the
 * output is in the store exactly while that file exists.
 *
 * The index is durable before the first file is removed, and is removed when all files are back
 * and durable: whatever is killed, output is complete in at least one of the two places, and both
 * calls may be repeated.
 *
 * All calls block, for a thread; *cancel (may be NULL) ends them early with ERR_CANCELLED.
 */
#ifndef BELAY_SCHEDULER_LOGS_ARCHIVE_H
#define BELAY_SCHEDULER_LOGS_ARCHIVE_H

#include "ckpt/crypt.h"
#include "ckpt/store/store.h"

#define ARCHIVE_INDEX "archived"

/* Borrowed. */
struct archive {
    struct store *store;
    const char *cluster;
    int64_t job;
    const struct ckpt_crypt *crypt; /* the job's keys; sealed if it encrypts */
    const char *dir;                /* of the job's output */
    const atomic_int *cancel;
};

/* Moves the output to the store; *ret_moved becomes true if there was any here. */
int archive_put(const struct archive *a, bool *ret_moved, struct err *e);
/* Brings it back. ERR_NO_SPACE if the disk would keep less than `reserve` bytes free;
 * ERR_NOT_FOUND: a part is missing in the store; ERR_CORRUPT: one has another content. Nothing is
 * changed then. */
int archive_get(const struct archive *a, int64_t reserve, struct err *e);
/* Removes what the store has of the job's output. */
int archive_remove(const struct archive *a, struct err *e);
/* Bytes that the store has of it, by the index; 0 if it is not there. */
int archive_stored(const char *dir, int64_t *ret_bytes, struct err *e);
/* Whether the output in this directory is in the store. */
bool archive_has(const char *dir);

#endif
