/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of one job in a store: save a directory, restore the newest that verifies, keep N.
 *
 * Layout under the job's prefix "<cluster>/jobs/<job>/":
 *     chunks/ATTEMPT/<sha-256 of the content>   raw or zstd, as the manifest says; encrypted with
 *                                               crypt_seal, and named with crypt_name
 *     manifests/ATTEMPT-SEQUENCE.json           written last, by conditional create; encrypted as
 *                                               sealed.h says
 *     fences/ATTEMPT                            an attempt's claim: written when it starts
 *     pins/ATTEMPT-SEQUENCE                     protects this checkpoint from cleaning
 *     removing/<as in manifests/>               condemned by a cleaning in progress
 *     gang/ATTEMPT/...                          where the ranks of a job meet (gang.h)
 *     damaged/...                               what failed verification, set aside
 *     deleted/<as in pins/>                     a user removed this checkpoint of a live job
 *     identity                                  which cluster and job own this prefix (begin.c)
 *
 * ATTEMPT and SEQUENCE have 10 digits.
 *
 * Invariants.
 *  1. A manifest exists only if every chunk it names was durable before it.
 *  2. Names grow: the newest checkpoint is the one with the greatest (attempt, sequence). An
 *     attempt commits only while no fence or manifest of a later attempt exists (ERR_CONFLICT
 *     otherwise). A manifest that was created in the instant in which its attempt was fenced is
 *     never acknowledged, and everything later sorts above it.
 *  3. Restore verifies the manifest's own hash and every chunk's before the target directory takes
 *     its place; a checkpoint that fails is set aside and the one before is used.
 *  4. A manifest names only chunks below its own attempt, and nobody but this attempt, a later one
 *     or (once the job ended) belayd removes any there: what an older attempt's cleaner does, at
 *     whatever moment it wakes up, cannot touch what a newer attempt saved. Content that an earlier
 *     attempt stored is linked, not sent again.
 *  5. Cleaning removes a chunk only after every manifest that names it is durably gone.
 *  6. A checkpoint whose pin was acknowledged is not removed: who pins writes the pin and then
 *     looks for the manifest, who cleans moves the manifest away and then looks for the pin, so one
 *     of the two sees the other. What a killed cleaning had condemned, the next one puts back if it
 *     is pinned.
 *  7. A checkpoint is encrypted as a whole with one key, or not at all. Which, its manifest says:
 *     so encrypted ones and others, and those of several keys, may stand side by side, and content
 *     is found again among those of one key. To read a manifest, to clean and to save needs the
 *     key; ERR_UNSUPPORTED: it is not there. To fence, to list names, to pin what is not encrypted
 *     and to remove one checkpoint does not.
 *
 * All calls block; they are made from worker threads. `cancel` is polled between chunks. For one
 * attempt, save and clean are called one at a time. e is not NULL.
 */
#ifndef BELAY_CKPT_CKPT_H
#define BELAY_CKPT_CKPT_H

#include "base/time.h"
#include "ckpt/crypt.h"
#include "ckpt/store/store.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CKPT_CHUNK_BYTES (4u << 20)
#define CKPT_MANIFEST_BYTES_MAX (160u << 20) /* a million entries with paths of some 80 bytes */
#define CKPT_FILES_MAX 1000000
#define CKPT_PATH_MAX 4096
#define CKPT_NUMBER_MAX INT64_C(9999999999) /* of an attempt or a sequence: 10 digits */
/* the "attempt" by which the store of an ended job is closed */
#define CKPT_CLOSED CKPT_NUMBER_MAX

struct ckpt_id {
    int64_t attempt;  /* 1 .. */
    int64_t sequence; /* 1 .. within the attempt */
};

struct ckpt_job {
    struct store *store;
    const char *cluster; /* a name (str_is_name), at most 64 bytes */
    int64_t job;
    /* The job's keys; NULL if none. Unencrypted checkpoints are read in any case, unless the keys
     * refuse them. */
    const struct ckpt_crypt *crypt;
    /* before a checkpoint is committed it is looked that the store is this cluster's (owner.h), by
     * its uid; NULL: it is not */
    const char *owner;
};

#define CKPT_GANG_MAX 256

/* One rank of a job that runs on several nodes: gang.h. */
struct ckpt_gang {
    int32_t rank, nodes; /* nodes 0: a job of one node; a gang may be down to 1 */
};

struct ckpt_stats {
    int64_t sequence; /* of a save: of the checkpoint; of a gang's, what rank 0 has counted */
    /* of a gang's save: rank 0 has gone past it, and there will be none of that step */
    bool left_out;
    int64_t files;
    int64_t bytes;        /* of content */
    int64_t stored_bytes; /* newly written to the store, compressed */
    /* of a save: content whose chunks the store had; of a restore: what stood here */
    int64_t reused_bytes;
    int64_t unread_bytes; /* of it, content that was not even read again (struct ckpt_seen) */
    int64_t took_ms;
};

/* What belayd knows of a job when it has an attempt started. */
struct ckpt_expected {
    /* of the job, the same for all of its attempts and no other job's; "": nothing is known */
    const char *identity;
    struct ckpt_id last;  /* the newest checkpoint that it was told of; attempt 0: of none */
    int64_t from_attempt; /* checkpoints of earlier attempts are not to be used; 0: all may be */
};

/* Why an attempt must not begin, though the store answers. */
enum ckpt_doubt {
    CKPT_SURE,
    CKPT_LOST,    /* the last checkpoint is not there, nor a newer one, and nobody has removed it */
    CKPT_ANOTHERS /* what is there is another job's */
};

/* ckpt_fence, between two looks at whether this is the job's own part of the store and has what it
 * should have. x may be NULL. *ret_doubt is set in every case; it is not CKPT_SURE only with an
 * error. ERR_CONFLICT without a doubt: as of ckpt_fence. */
int ckpt_begin(const struct ckpt_job *j, int64_t attempt, const struct ckpt_expected *x,
    enum ckpt_doubt *ret_doubt, struct err *e);

/* Closes the store of a job that has ended: the fence CKPT_CLOSED, unless what is there is not the
 * job's own: then ERR_CONFLICT, *ret_doubt is CKPT_ANOTHERS and nothing was written. Whose it is
 * says its identity. Where there is none yet it is made, if nothing is there or the last checkpoint
 * that belayd knows of is. Of x, from_attempt says nothing here. identity "": it is not looked. */
int ckpt_close(const struct ckpt_job *j, const struct ckpt_expected *x, enum ckpt_doubt *ret_doubt,
    struct err *e);

/* Whether somebody has deleted this checkpoint, or a newer one, while the job had not ended. */
int ckpt_was_deleted(const struct ckpt_job *j, struct ckpt_id id, bool *ret_was, struct err *e);

/* Claims the store for `attempt`: from its return on, no lower attempt can commit. Idempotent for
 * the same attempt; ERR_CONFLICT when a later attempt's fence or checkpoint exists. With
 * CKPT_CLOSED, which is belayd's alone, when a job has ended: no attempt can commit any more. */
int ckpt_fence(const struct ckpt_job *j, int64_t attempt, struct err *e);

/* True if the store of the job is closed. */
int ckpt_is_closed(const struct ckpt_job *j, bool *ret_closed, struct err *e);

/* Saves the tree `dir` as checkpoint `id`. progress is stored in the manifest (-1 = unknown).
 * Regular files and their hard links, symbolic links, directories, modes (without set-user and
 * set-group bits), modification times, holes and user.* attributes; other file types and names that
 * are not UTF-8 are ERR_UNSUPPORTED naming the file, and so is a file or directory that is not the
 * owner of dir's where that is not us (a root agent could read what its job cannot). If anything in
 * dir changes during the save, it is ERR_UNAVAILABLE (a retry may mend it) naming the file, and
 * nothing is committed. cancel (may be NULL) non-zero: ERR_CANCELLED. ERR_CONFLICT: a later attempt
 * owns the job ("fenced: ..."), or id is not greater than what exists. */
int ckpt_save(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, struct ckpt_stats *ret_stats, struct err *e);

/* What the last save of an attempt has read, so that the next one need not read files that did not
 * change since (by device, inode, size, modification and change time; seen.h says when that can be
 * relied upon). For one attempt on one node, and one save at a time. 72 bytes a chunk. */
struct ckpt_seen;
struct ckpt_seen *ckpt_seen_create(void);
void ckpt_seen_destroy(struct ckpt_seen *seen); /* NULL is allowed */

struct ckpt_keep {
    int newest; /* so many of those whose manifests are intact, >= 0 */
    int every;  /* and those whose sequence it divides; 0 = none beyond the newest */
};

struct ckpt_save_with {
    /* CLOCK_MONOTONIC, in ms; 0 = none. As soon as what was stored so far shows that the rest
     * cannot be in time by far, or when it has passed: ERR_TIMEOUT "1.2 of 4.0 GiB were stored in
     * 27s; 1.9 GiB too much for this notice". What was stored is found by the next save. */
    int64_t deadline_ms;
    struct ckpt_seen *seen; /* NULL: everything is read */
    struct ckpt_pace *pace; /* NULL: nobody wants to know */
    /* Of a gang, this rank's part: it returns when the checkpoint of all ranks is committed. The
     * sequence is what this rank has counted, and gang.h says how it is known which of rank 0's it
     * is: by the progress, which has to be given if a snapshot is saved. ERR_UNAVAILABLE: another
     * rank could not save, or is at another step; ERR_TIMEOUT: one did not come, until the deadline
     * or for ten minutes. The stats are those of the whole; on an error their sequence is that of
     * the checkpoint that failed, 0 if the ranks did not meet. */
    struct ckpt_gang gang;
    /* Of a gang: this rank cannot save, and why; the others are told when they come to it. NULL: it
     * can. */
    const struct err *refused;
    /* What the cleaning after this save keeps. A store that is full then gives up before the save
     * what that cleaning would remove (the oldest of as many as are kept), and the save is tried
     * once more. Of a gang rank 0 does so: if the manifest does not fit, this save is tried once
     * more; if a rank's chunks do not, it fails, and the next one has the room. newest 0 or 1: it
     * gives up nothing. Only the attempt that holds the fence has one. */
    struct ckpt_keep keep;
};

/* How far a save is, to be looked at by another thread. */
struct ckpt_pace {
    atomic_int_least64_t total_bytes; /* to be read and stored; -1 = not known yet */
    atomic_int_least64_t done_bytes;
    atomic_int_least64_t started_ms; /* CLOCK_MONOTONIC; valid once total_bytes is known */
};

/* How long it will still take at the speed so far; -1 = not known (nothing is done yet). */
int64_t ckpt_pace_left_ms(const struct ckpt_pace *pace);

/* As an agent begins, of a gang: what the one before had under way, up to this number, was lost.
 * The ranks that wait for it are told; harmless when nothing was, or it is stored. Blocks as the
 * store does. */
int ckpt_gang_lost(
    const struct ckpt_job *j, struct ckpt_id upto, const struct ckpt_gang *gang, struct err *e);

/* As ckpt_save. */
int ckpt_save_with(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, const struct ckpt_save_with *with, struct ckpt_stats *ret_stats,
    struct err *e);

/* A moment of a tree, to be saved while the tree changes again (snapshot.h says how it is kept, and
 * what it costs). */
struct ckpt_snapshot;

struct ckpt_snapshot_how {
    const char *scratch; /* a directory on the file system of the tree, for a file without a name */
    bool in_place;       /* the program writes to its files in place: none is held */
    int64_t copied_max;  /* bytes; 0: 32 MiB */
    /* files; 0: an eighth of the descriptors that the process may have, at most 512 */
    int held_max;
};

struct ckpt_snapshot_stats {
    int64_t copied_bytes, cloned_bytes, held_bytes;
    int64_t took_ms;
};

/* Takes one of `dir`, which must not change until this returns (ERR_UNAVAILABLE, naming the file).
 * What cannot be saved is ERR_UNSUPPORTED, as in ckpt_save. 0 and *ret NULL: it cannot be kept
 * without a copy that would cost too much, and e says why: ckpt_save it is. cancel as there. */
int ckpt_snapshot_take(const char *dir, const struct ckpt_snapshot_how *how,
    const atomic_int *cancel, struct ckpt_snapshot **ret, struct ckpt_snapshot_stats *ret_stats,
    struct err *e);

/* As ckpt_save_with, of a snapshot; once, whatever comes of it. ERR_UNAVAILABLE with
 * ckpt_snapshot_was_disturbed: the program wrote to a file in place, and nothing was committed. */
int ckpt_save_snapshot(const struct ckpt_job *j, struct ckpt_id id, struct ckpt_snapshot *snapshot,
    int64_t progress, const atomic_int *cancel, const struct ckpt_save_with *with,
    struct ckpt_stats *ret_stats, struct err *e);
bool ckpt_snapshot_was_disturbed(const struct ckpt_snapshot *snapshot);
void ckpt_snapshot_destroy(struct ckpt_snapshot *snapshot); /* NULL is allowed */

struct ckpt_restored {
    struct ckpt_id id; /* attempt 0: there was none, dir is empty */
    int64_t progress;  /* -1 = unknown */
    struct ckpt_stats stats;
    int32_t ranks;    /* that saved it; 0: it is not a gang's */
    int damaged;      /* checkpoints newer than id that failed verification and were set aside */
    char damage[256]; /* why, for the newest of them */
};

/* Puts the newest checkpoint that verifies into dir (replaced as a whole by a rename; created if
 * missing, mode 0700). Never resumes one of an attempt >= before_attempt. No checkpoint is not an
 * error. Only a failed verification sets a checkpoint aside: any other error (the store cannot be
 * reached, this disk is full, a manifest of a later belay) is returned, and dir is as it was.
 *
 * dir + ".restoring" and dir + ".restores" are used on the way, and stay when it is interrupted or
 * fails (unless the disk is full): the next restore to dir verifies what stands there and fetches
 * the rest. They have to be in a directory that nobody else can write to; two restores to one dir
 * at once are not allowed. */
int ckpt_restore(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const atomic_int *cancel, struct ckpt_restored *ret_restored, struct err *e);

#define CKPT_NEARBY_MAX 4

struct ckpt_restore_with {
    /* Directories of this machine that may hold content of the checkpoint, the nearest first, NULL:
     * no more. What has the hash that it should have is copied from there and not fetched. They are
     * only read, may be missing, may be any user's and may change or go meanwhile. */
    const char *nearby[CKPT_NEARBY_MAX];
    /* Of a gang, what this rank has saved. Returns when all ranks have restored the same
     * checkpoint, which may be an older one than this rank would have found alone; ERR_TIMEOUT: one
     * has not, for ten minutes. For the attempt before_attempt, which has its fence. */
    struct ckpt_gang gang;
    /* Of a gang: where what all ranks have saved is put, as rank-0000, rank-0001 and so on, if they
     * were more or fewer than are here now: for the program to share it out anew. Else it is
     * missing afterwards. NULL: not wanted. */
    const char *ranks_dir;
    int64_t from_attempt; /* as in ckpt_expected: of earlier attempts nothing is restored */
};

/* As ckpt_restore. */
int ckpt_restore_with(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const struct ckpt_restore_with *with, const atomic_int *cancel,
    struct ckpt_restored *ret_restored, struct err *e);

/* Puts this checkpoint into dir, which must be missing or an empty directory (ERR_CONFLICT): all of
 * it or, on any error, nothing. Nothing is set aside. ERR_NOT_FOUND, ERR_CORRUPT. As ckpt_restore
 * otherwise. */
int ckpt_get(const struct ckpt_job *j, struct ckpt_id id, const char *dir, const atomic_int *cancel,
    struct ckpt_stats *ret_stats, struct err *e);

struct ckpt_info {
    struct ckpt_id id;
    int64_t bytes;
    int64_t files;
    int64_t progress; /* -1 = unknown */
    struct wall saved_at;
    bool pinned;
    /* encrypted with a key that is not here, or by a later belay: only id and pinned are known */
    bool unreadable;
};

typedef int (*ckpt_each_fn)(void *ctx, const struct ckpt_info *info); /* non-zero stops the walk */
/* Newest first; manifests only (damaged ones are skipped, with a log line; one tells why one is
 * unreadable). */
int ckpt_list(const struct ckpt_job *j, ckpt_each_fn fn, void *ctx, struct err *e);

/* Verifies every chunk of one checkpoint without restoring it: ERR_CORRUPT, ERR_NOT_FOUND. Nothing
 * is set aside. */
int ckpt_verify(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

/* Pins a checkpoint: it is not cleaned away, nor is it to be removed, until it is unpinned. Pinning
 * what is pinned is no error, nor is unpinning what is not. ERR_NOT_FOUND, ERR_CORRUPT;
 * ERR_CONFLICT: it is just being removed. */
int ckpt_pin(const struct ckpt_job *j, struct ckpt_id id, struct err *e);
int ckpt_unpin(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

/* Removes one checkpoint; ERR_CONFLICT while it is pinned, ERR_NOT_FOUND. Its chunks go with it if
 * the store of the job is closed; else they are left to the next cleaning, for a save may just have
 * found them there. */
int ckpt_remove(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

#define CKPT_KEEP_ALL INT_MAX

/* Removes the manifests that neither keep nor a pin holds, then the chunks that nothing names;
 * reads the manifests of all that stay. Only the attempt that holds the fence calls it, or, with
 * CKPT_CLOSED, who closed the store; ERR_CONFLICT when a later attempt's fence exists. newest 0 (of
 * a closed one only) removes what was set aside as well. cancel (may be NULL) non-zero:
 * ERR_CANCELLED, and the next cleaning does what this one left. ret_kept_bytes (may be NULL): of
 * manifests and chunks in the store that have stayed, as they are stored. */
int ckpt_clean(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const atomic_int *cancel, int64_t *ret_kept_bytes, struct err *e);

#endif
