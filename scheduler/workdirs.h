/* SPDX-License-Identifier: Apache-2.0
 *
 * Working directories that users send with their jobs (ckpt/workdir.h), in belayd's state
 * directory:
 *
 *     workdirs/USER/trees/HASH         what is in one
 *     workdirs/USER/pieces/HH/HASH     content
 *
 * USER is a hash of the name: whoever knows the hash of another's file has nothing of it. A tree is
 * there only when all of its pieces are on disk, and a piece stays as long as a tree of its user
 * has it. A tree stays as long as a job or a cron entry that has not ended has it, and for
 * WORKDIRS_GRACE_MS after it was last sent or submitted with; so it may be sent a while before its
 * job is. What a kill leaves that no tree has is removed at the next start.
 *
 * All of it is done on a thread, one thing after the other, in the order in which it was asked for:
 * what is looked at is not being changed. Answers come on the loop, and but for ERR_THROTTLED never
 * inside the call that asks.
 */
#ifndef BELAY_SCHEDULER_WORKDIRS_H
#define BELAY_SCHEDULER_WORKDIRS_H

#include "base/buf.h"
#include "base/timers.h"
#include "ckpt/workdir.h"
#include "db/db.h"
#include <uv.h>

#define WORKDIRS_GRACE_MS (24 * 3600 * INT64_C(1000))
#define WORKDIRS_LOOK_MS (3600 * INT64_C(1000))
#define WORKDIRS_MISSING_MAX 4096 /* told at once */

struct workdirs;

/* Borrowed until destroy; dir need not exist. */
struct workdirs_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct db_reader *reader;
    const char *dir;
    int64_t user_bytes; /* of a user together, by whole blocks; 0: no limit */
};

struct workdirs *workdirs_create(const struct workdirs_options *o);
/* Who waits is told ERR_UNAVAILABLE, inside. What is on the thread ends by itself: run the loop
 * afterwards. NULL is fine. */
void workdirs_destroy(struct workdirs *w);

/* e NULL: it is done; out is what was asked for, borrowed for the call. */
typedef void (*workdirs_fn)(void *ctx, const struct err *e, const struct buf *out);

/* Stores what p says is in a directory, if all of its content is there. out: hashes of what is not,
 * a newline behind each, at most WORKDIRS_MISSING_MAX; none: it is stored, durably. p is copied.
 * ERR_INVALID, ERR_QUOTA; of all of these also ERR_THROTTLED: too much is under way, and
 * ERR_NO_SPACE. */
void workdirs_put(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx);

/* Stores the pieces of a pack. ERR_INVALID, ERR_CORRUPT, ERR_QUOTA: the user has no more room. p is
 * copied. */
void workdirs_add(
    struct workdirs *w, const char *user, const void *p, size_t n, workdirs_fn fn, void *ctx);

/* out: what is in it, as it was put. ERR_NOT_FOUND. */
void workdirs_get(
    struct workdirs *w, const char *user, const char *hash, workdirs_fn fn, void *ctx);

/* out: a pack of the first of these pieces, of as many as it holds, one at least. hashes is taken.
 * ERR_NOT_FOUND. */
void workdirs_get_pieces(struct workdirs *w, const char *user, char (*hashes)[CHUNK_HEX_SIZE],
    size_t n, workdirs_fn fn, void *ctx);

/* It is there, and stays for WORKDIRS_GRACE_MS, in which the job that has it is to be committed.
 * ERR_INVALID: it is not. Blocks for two system calls. */
int workdirs_hold(struct workdirs *w, const char *user, const char *hash, struct err *e);

#endif
