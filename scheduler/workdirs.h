/* SPDX-License-Identifier: Apache-2.0
 *
 * Working directories that users send with their jobs (ckpt/workdir.h), in belayd's state
 * directory:
 *
 *     workdirs/USER/trees/HASH         what is in one
 *     workdirs/USER/pieces/HH/HASH     content
 *
 * USER is a hash of the user's name: knowing the hash of another user's file gives no access to it.
 * A tree exists only when all of its pieces are on disk, and a piece is kept while a tree of its
 * user has it. A tree is kept while a live job or cron entry has it, and for WORKDIRS_GRACE_MS
 * after it was last sent or submitted with, so it may be sent some time before its job. Pieces
 * without a tree that a kill leaves are removed at the next start.
 *
 * All work is done on a thread, one task at a time, in the order of the calls: nothing changes
 * while it is read. Callbacks run on the loop, and except for ERR_THROTTLED never inside the call.
 */
#ifndef BELAY_SCHEDULER_WORKDIRS_H
#define BELAY_SCHEDULER_WORKDIRS_H

#include "base/buf.h"
#include "base/timers.h"
#include "ckpt/workdir.h"
#include "db/db.h"
#include <uv.h>

#define WORKDIRS_GRACE_MS (24 * 3600 * INT64_C(1000))
#define WORKDIRS_CHECK_MS (3600 * INT64_C(1000))
#define WORKDIRS_MISSING_MAX 4096 /* in one answer */

struct workdirs;

/* Borrowed until destroy; dir need not exist. */
struct workdirs_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct db_reader *reader;
    const char *dir;
    int64_t user_bytes; /* limit of a user, in whole blocks; 0 = unlimited */
};

struct workdirs *workdirs_create(const struct workdirs_options *o);
/* Another limit, from the next file on. */
void workdirs_set_limit(struct workdirs *w, int64_t user_bytes);
/* Waiting callers get ERR_UNAVAILABLE, inside this call. The task on the thread ends by itself: run
 * the loop afterwards. w may be NULL. */
void workdirs_destroy(struct workdirs *w);

/* e is NULL on success; out is the result, borrowed for the call. */
typedef void (*workdirs_fn)(void *ctx, const struct err *e, const struct buf *out);

/* Stores the list of a directory's contents, if all of its content is stored. out has the missing
 * hashes, one a line, at most WORKDIRS_MISSING_MAX; empty if it was stored durably. p is copied.
 * ERR_INVALID, ERR_QUOTA; all of these functions also ERR_THROTTLED (too much is in progress) and
 * ERR_NO_SPACE. */
void workdirs_put(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx);

/* Stores the pieces of a pack. ERR_INVALID, ERR_CORRUPT, ERR_QUOTA (the user's limit is reached). p
 * is copied. */
void workdirs_add(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx);

/* out has the list as it was stored. ERR_NOT_FOUND. */
void workdirs_get(
    struct workdirs *w, const char *user, const char *hash, workdirs_fn fn, void *ctx);

/* out has a pack of the first of these pieces: as many as fit, at least one. Takes hashes.
 * ERR_NOT_FOUND. */
void workdirs_get_pieces(struct workdirs *w, const char *user, char (*hashes)[CHUNK_HEX_SIZE],
    size_t n, workdirs_fn fn, void *ctx);

/* Checks that it is stored, and keeps it for WORKDIRS_GRACE_MS, within which its job must be
 * committed. ERR_INVALID if it is not stored. Blocks for two system calls. */
int workdirs_pin(struct workdirs *w, const char *user, const char *hash, struct err *e);

#endif
