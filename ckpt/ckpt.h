/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of one job in a store: save a directory, restore the newest that verifies, keep N.
 *
 * Layout under the job's prefix "<cluster>/jobs/<job>/":
 *     chunks/<first 2 hex>/<sha-256 of the content>        raw or zstd, told apart by the manifest
 *     manifests/<attempt, 10 digits>-<sequence, 10 digits>.json   written last, by conditional create
 *     fences/<attempt, 10 digits>                          an attempt's claim: written when it starts
 *     damaged/...                                          what failed verification, set aside
 *
 * Invariants.
 *  1. A manifest exists only if every chunk it names was durable before it.
 *  2. Names grow: the newest checkpoint is the one with the greatest (attempt, sequence); an attempt commits only
 *     while no fence or manifest of a later attempt exists (ERR_CONFLICT otherwise).
 *  3. Restore verifies the manifest's own hash and every chunk's before the target directory takes its place; a
 *     checkpoint that fails is set aside and the one before is used.
 *  4. Cleaning removes a chunk only after every manifest that names it is gone, and never one that is younger than
 *     the oldest manifest kept and not known to be unreferenced.
 *
 * All calls block; they are made from worker threads. `cancel` is polled between chunks.
 */
#ifndef BELAY_CKPT_CKPT_H
#define BELAY_CKPT_CKPT_H

#include "base/time.h"
#include "ckpt/store.h"
#include <stdatomic.h>

#define CKPT_CHUNK_BYTES (4u << 20)
#define CKPT_MANIFEST_BYTES_MAX (64u << 20)
#define CKPT_FILES_MAX 1000000
#define CKPT_PATH_MAX 4096

struct ckpt_id {
    int64_t attempt;  /* 1 .. */
    int64_t sequence; /* 1 .. within the attempt */
};

struct ckpt_job {
    struct store *store;
    const char *cluster; /* name */
    int64_t job;
};

struct ckpt_stats {
    int64_t files;
    int64_t bytes;          /* of content */
    int64_t stored_bytes;   /* newly written to the store, compressed */
    int64_t reused_bytes;   /* content whose chunks the store had */
    int64_t took_ms;
};

/* Claims the store for `attempt`: from its return on, no lower attempt can commit. Idempotent for the same attempt;
 * ERR_CONFLICT when a later attempt's fence exists. */
int ckpt_fence(const struct ckpt_job *j, int64_t attempt, struct err *e);

/* Saves the tree `dir` as checkpoint `id`. progress is stored in the manifest (-1: unknown). Regular files, symbolic
 * links, directories, modes and modification times; other file types are ERR_UNSUPPORTED naming the file; a file that
 * changes while it is read is ERR_CONFLICT naming it and nothing is committed. cancel (may be NULL) non-zero:
 * ERR_CANCELLED. ERR_CONFLICT "fenced": a later attempt owns the job. */
int ckpt_save(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, struct ckpt_stats *ret_stats, struct err *e);

struct ckpt_restored {
    struct ckpt_id id;  /* attempt 0: there was none, dir is empty */
    int64_t progress;   /* -1: unknown */
    struct ckpt_stats stats;
    int damaged;        /* checkpoints newer than id that failed verification and were set aside */
    char damage[256];   /* why, for the newest of them */
};

/* Puts the newest checkpoint that verifies into dir (replaced as a whole; created if missing). Never resumes one of
 * an attempt >= before_attempt. No checkpoint is not an error. */
int ckpt_restore(const struct ckpt_job *j, int64_t before_attempt, const char *dir, const atomic_int *cancel,
    struct ckpt_restored *ret_restored, struct err *e);

struct ckpt_info {
    struct ckpt_id id;
    int64_t bytes;
    int64_t progress;
    struct wall saved_at;
};

typedef int (*ckpt_each_fn)(void *ctx, const struct ckpt_info *info);
/* Newest first; manifests only (damaged ones are skipped with a log line). */
int ckpt_list(const struct ckpt_job *j, ckpt_each_fn fn, void *ctx, struct err *e);

/* Verifies every chunk of one checkpoint without restoring it. */
int ckpt_verify(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

/* Keeps the newest `keep` (>= 1) and removes the other manifests, then chunks that nothing names. Only the attempt
 * that holds the fence (or belayd, once the job ended, with attempt INT64_MAX) calls it. */
int ckpt_clean(const struct ckpt_job *j, int64_t attempt, int keep, struct err *e);

/* Everything of the job. */
int ckpt_delete_all(const struct ckpt_job *j, struct err *e);

#endif
