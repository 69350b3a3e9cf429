/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of one job in a store: save a directory, restore the newest that verifies, keep N.
 *
 * Layout under the job's prefix "<cluster>/jobs/<job>/":
 *     chunks/ATTEMPT/<sha-256 of the content>   chunks, and packs of chunks (pack.h); raw or zstd,
 *                                               as the manifest says; encrypted with crypt_seal,
 *                                               and named with crypt_name
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
 *  2. Names increase: the newest checkpoint has the greatest (attempt, sequence). An attempt
 *     commits only while no fence or manifest of a later attempt exists (ERR_CONFLICT otherwise). A
 *     manifest that was created in the instant in which its attempt was fenced is never
 *     acknowledged, and everything later sorts above it.
 *  3. Restore verifies the manifest's own hash and every chunk's before the target directory takes
 *     its place; a checkpoint that fails is set aside and the one before is used.
 *  4. A manifest names only chunks below its own attempt, and only this attempt, a later one or
 *     (once the job has ended) belayd removes chunks there. So a delayed cleaner of an older
 *     attempt cannot touch what a newer attempt saved. Content that an earlier attempt stored is
 *     linked, not sent again.
 *  5. Cleaning removes a chunk only after every manifest that names it is durably gone.
 *  6. A checkpoint whose pin was acknowledged is not removed: pinning writes the pin and then
 *     checks the manifest, cleaning moves the manifest away and then checks the pin, so one of the
 *     two sees the other. What a killed cleaning had condemned, the next one puts back if it is
 *     pinned.
 *  7. A checkpoint is encrypted as a whole with one key, or not at all; its manifest says which. So
 *     plain checkpoints and those of several keys may coexist, and chunks are shared only among
 *     checkpoints of one key. Reading a manifest, cleaning and saving need the key (ERR_UNSUPPORTED
 *     without it). Fencing, listing names, pinning an unencrypted checkpoint and removing one
 *     checkpoint do not.
 *
 * All calls block; call them from worker threads. `cancel` is polled between chunks. For one
 * attempt, save and clean must not overlap. e must not be NULL.
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
#define CKPT_MANIFEST_BYTES_MAX (192u << 20) /* a million entries with paths of about 80 bytes */
#define CKPT_FILES_MAX 1000000
#define CKPT_PATH_MAX 4096
#define CKPT_NUMBER_MAX INT64_C(9999999999) /* of an attempt or a sequence: 10 digits */
/* the attempt number whose fence closes the store of an ended job */
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
    /* uid of the cluster that must own the store (marker.h), checked before each commit; NULL for
     * no check */
    const char *owner;
};

#define CKPT_GANG_MAX 256

/* One rank of a job that runs on several nodes: gang.h. */
struct ckpt_gang {
    int32_t rank, nodes; /* nodes 0 = a job of one node; an elastic gang may have 1 */
};

struct ckpt_stats {
    int64_t sequence; /* of a save: sequence of the checkpoint; of a gang's, as counted by rank 0 */
    /* of a gang's save: rank 0 is past this step, so there will be no checkpoint of it */
    bool left_out;
    int64_t files;
    int64_t bytes;        /* of content */
    int64_t stored_bytes; /* newly written to the store, compressed */
    /* of a save: content whose chunks the store already had; of a restore: content found on this
     * node */
    int64_t reused_bytes;
    int64_t unread_bytes; /* part of it that was not read again (struct ckpt_seen) */
    int64_t took_ms;
};

/* What belayd knows of a job when it starts an attempt. */
struct ckpt_expected {
    /* unique to the job, the same for all of its attempts; "" = not known */
    const char *identity;
    struct ckpt_id last;  /* the newest checkpoint reported to belayd; attempt 0 = none */
    int64_t from_attempt; /* checkpoints of earlier attempts must not be used; 0 = all may be */
};

/* Why an attempt must not start, although the store answers. */
enum ckpt_mismatch {
    CKPT_MATCHES,
    CKPT_LOST, /* neither the last checkpoint nor a newer one exists, and no user has removed it */
    CKPT_ANOTHERS /* the store's content belongs to another job */
};

/* Calls ckpt_fence; before and after it, checks that this part of the store belongs to the job and
 * has the expected checkpoint. x may be NULL. *ret_mismatch is always set; it differs from
 * CKPT_MATCHES only with an error. ERR_CONFLICT with CKPT_MATCHES: as from ckpt_fence. */
int ckpt_begin(const struct ckpt_job *j, int64_t attempt, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e);

/* Closes the store of a job that has ended, with the fence CKPT_CLOSED. If the identity there is
 * another job's: ERR_CONFLICT, *ret_mismatch is CKPT_ANOTHERS and nothing is written. A missing
 * identity is created if the store is empty or has the last checkpoint that belayd knows of.
 * Ignores x->from_attempt; x->identity "" = no check. */
int ckpt_close(const struct ckpt_job *j, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e);

/* Whether a user has deleted this checkpoint, or a newer one, before the job ended. */
int ckpt_was_deleted(const struct ckpt_job *j, struct ckpt_id id, bool *ret_was, struct err *e);

/* Claims the store for `attempt`: from its return on, no lower attempt can commit. Idempotent for
 * the same attempt; ERR_CONFLICT when a later attempt's fence or checkpoint exists. Only belayd
 * uses CKPT_CLOSED, when a job has ended: then no attempt can commit any more. */
int ckpt_fence(const struct ckpt_job *j, int64_t attempt, struct err *e);

/* *ret_closed is true if the store of the job is closed. */
int ckpt_is_closed(const struct ckpt_job *j, bool *ret_closed, struct err *e);

/* Saves the tree `dir` as checkpoint `id`. progress is stored in the manifest (-1 = unknown).
 * Regular files and their hard links, symbolic links, directories, modes (without set-user and
 * set-group bits), modification times, holes and user.* attributes; other file types and names that
 * are not UTF-8 are ERR_UNSUPPORTED naming the file, and so is a file or directory with another
 * owner than dir, if that is not our user (a root agent could read what its job cannot). If
 * anything in dir changes during the save, it is ERR_UNAVAILABLE (a retry may help) naming the
 * file, and nothing is committed. cancel (may be NULL) non-zero: ERR_CANCELLED. ERR_CONFLICT: a
 * later attempt owns the job ("fenced: ..."), or id is not greater than every existing one. */
int ckpt_save(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, struct ckpt_stats *ret_stats, struct err *e);

/* What the last save of an attempt has read, so that the next one can skip unchanged files (by
 * device, inode, size, modification and change time; seen.h says when that is reliable). For one
 * attempt on one node, and one save at a time. Uses 72 bytes per chunk. */
struct ckpt_seen;
struct ckpt_seen *ckpt_seen_create(void);
void ckpt_seen_destroy(struct ckpt_seen *seen); /* NULL is allowed */

struct ckpt_keep {
    int newest; /* the newest so many with intact manifests, >= 0 */
    int every;  /* and every checkpoint whose sequence is a multiple; 0 = only the newest */
};

struct ckpt_save_with {
    /* CLOCK_MONOTONIC, in ms; 0 = none. As soon as the progress shows that the rest will be far too
     * late, or when the deadline has passed: ERR_TIMEOUT "1.2 of 4.0 GiB were stored in 27s; 1.9
     * GiB too much for this notice". The next save reuses what was stored. */
    int64_t deadline_ms;
    struct ckpt_seen *seen; /* NULL to read everything */
    struct ckpt_pace *pace; /* may be NULL */
    /* Of a gang, this rank's part: the save returns when the checkpoint of all ranks is committed.
     * The sequence is as counted by this rank; gang.h says how it is matched with rank 0's: by the
     * progress, which is required when a snapshot is saved. ERR_UNAVAILABLE: another rank could not
     * save, or is at another step; ERR_TIMEOUT: a rank did not arrive before the deadline or within
     * ten minutes. The stats are those of all ranks; on an error their sequence is that of the
     * failed checkpoint, 0 if the ranks did not meet. */
    struct ckpt_gang gang;
    /* Of a gang: why this rank cannot save, reported to the others when they arrive; NULL if it
     * can. */
    const struct err *refused;
    /* What the cleaning after this save keeps. If the store is full, what that cleaning would
     * remove (the oldest kept checkpoint) is removed before the save, and the save is tried once
     * more. In a gang rank 0 does this: if the manifest does not fit, this save is retried once; if
     * a rank's chunks do not fit, it fails, and the next one has the space. newest 0 or 1: nothing
     * is removed early. Only for the attempt that has the fence. */
    struct ckpt_keep keep;
};

/* Progress of a save, readable from another thread. */
struct ckpt_pace {
    atomic_int_least64_t total_bytes; /* bytes to read and store; -1 = not known yet */
    atomic_int_least64_t done_bytes;
    atomic_int_least64_t started_ms; /* CLOCK_MONOTONIC; valid once total_bytes is known */
};

/* Remaining time at the speed so far; -1 = not known (nothing is done yet). */
int64_t ckpt_pace_left_ms(const struct ckpt_pace *pace);

/* For a restarted agent of a gang: the previous agent's saves up to this number are lost. Tells the
 * ranks that wait for them; no-op if there were none, or if they are stored. Blocks on the
 * store. */
int ckpt_gang_lost(
    const struct ckpt_job *j, struct ckpt_id upto, const struct ckpt_gang *gang, struct err *e);

/* As ckpt_save. */
int ckpt_save_with(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, const struct ckpt_save_with *with, struct ckpt_stats *ret_stats,
    struct err *e);

/* A snapshot of a tree, to be saved while the tree changes (snapshot.h: how it is kept and what it
 * costs). */
struct ckpt_snapshot;

struct ckpt_snapshot_how {
    const char *scratch; /* a directory on the tree's file system, for an unnamed file */
    bool in_place;       /* the program writes to its files in place: keep none open */
    int64_t copied_max;  /* bytes; 0 = 32 MiB */
    /* files; 0 = an eighth of the process's descriptor limit, at most 512 */
    int kept_open_max;
};

struct ckpt_snapshot_stats {
    int64_t copied_bytes, cloned_bytes, kept_open_bytes;
    int64_t took_ms;
    bool is_too_large; /* no snapshot, because of the number and sizes of the files */
};

/* Takes a snapshot of `dir`, which must not change until this returns (ERR_UNAVAILABLE, naming the
 * file). What cannot be saved is ERR_UNSUPPORTED, as in ckpt_save. Returns 0 with *ret NULL if a
 * snapshot would need too expensive a copy; e and ret_stats say why: use ckpt_save instead. cancel
 * as there. */
int ckpt_snapshot_take(const char *dir, const struct ckpt_snapshot_how *how,
    const atomic_int *cancel, struct ckpt_snapshot **ret, struct ckpt_snapshot_stats *ret_stats,
    struct err *e);

/* Whether a tree that was too large for a snapshot was by far too large when it was last saved, so
 * that it is not worth looking again. */
bool ckpt_snapshot_stays_too_large(const struct ckpt_stats *saved);

/* As ckpt_save_with, for a snapshot, which can be saved only once, even if that fails.
 * ERR_UNAVAILABLE with ckpt_snapshot_was_disturbed: the program wrote to a file in place, and
 * nothing was committed. */
int ckpt_save_snapshot(const struct ckpt_job *j, struct ckpt_id id, struct ckpt_snapshot *snapshot,
    int64_t progress, const atomic_int *cancel, const struct ckpt_save_with *with,
    struct ckpt_stats *ret_stats, struct err *e);
bool ckpt_snapshot_was_disturbed(const struct ckpt_snapshot *snapshot);
void ckpt_snapshot_destroy(struct ckpt_snapshot *snapshot); /* NULL is allowed */

struct ckpt_restored {
    struct ckpt_id id; /* attempt 0 = there was none, dir is empty */
    int64_t progress;  /* -1 = unknown */
    struct ckpt_stats stats;
    int32_t ranks;    /* ranks that saved it; 0 = not a gang's */
    int damaged;      /* checkpoints newer than id that failed verification and were set aside */
    char damage[256]; /* why, for the newest of them */
};

/* Restores the newest checkpoint that verifies into dir (replaced atomically by a rename; created
 * if missing, mode 0700). Never resumes from an attempt >= before_attempt. Having no checkpoint is
 * not an error. Only a failed verification sets a checkpoint aside: any other error (store
 * unreachable, disk full, a manifest of a later belay) is returned, and dir is unchanged.
 *
 * dir + ".restoring" and dir + ".restores" are used meanwhile, and remain after an interruption or
 * failure (unless the disk is full): the next restore to dir verifies their content and fetches the
 * rest. No other user may be able to write to the directory they are in; two concurrent restores to
 * one dir are not allowed. */
int ckpt_restore(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const atomic_int *cancel, struct ckpt_restored *ret_restored, struct err *e);

#define CKPT_NEARBY_MAX 4

struct ckpt_restore_with {
    /* Directories of this machine that may have content of the checkpoint, the nearest first, up to
     * the first NULL. Content with the right hash is copied from there instead of fetched. They are
     * only read, may be missing, may belong to any user and may change or disappear meanwhile. */
    const char *nearby[CKPT_NEARBY_MAX];
    /* Of a gang: restores this rank's part. Returns when all ranks have restored the same
     * checkpoint, which may be older than the one that this rank would find alone; ERR_TIMEOUT: a
     * rank has not within ten minutes. For the attempt before_attempt, which must have its
     * fence. */
    struct ckpt_gang gang;
    /* Of a gang: receives what every rank has saved, as rank-0000, rank-0001 and so on, if the
     * number of ranks has changed, so that the program can redistribute it. Otherwise it does not
     * exist afterwards. May be NULL. */
    const char *ranks_dir;
    /* as in ckpt_expected: checkpoints of earlier attempts are not restored */
    int64_t from_attempt;
    /* Another attempt may save and clean meanwhile (there is no fence): a chunk that is missing may
     * have been cleaned. So the store is only read: what fails verification is not set aside, but
     * ERR_CORRUPT. */
    bool only_reads;
};

/* As ckpt_restore. */
int ckpt_restore_with(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const struct ckpt_restore_with *with, const atomic_int *cancel,
    struct ckpt_restored *ret_restored, struct err *e);

/* Restores this checkpoint into dir, which must be missing or an empty directory (ERR_CONFLICT):
 * all of it or, on any error, nothing. Nothing is set aside. ERR_NOT_FOUND, ERR_CORRUPT. As
 * ckpt_restore otherwise. */
int ckpt_get(const struct ckpt_job *j, struct ckpt_id id, const char *dir, const atomic_int *cancel,
    struct ckpt_stats *ret_stats, struct err *e);

struct ckpt_info {
    struct ckpt_id id;
    int64_t bytes;
    int64_t files;
    int64_t progress; /* -1 = unknown */
    struct wall saved_at;
    bool pinned;
    /* encrypted with a missing key, or written by a later belay: only id and pinned are valid */
    bool unreadable;
};

typedef int (*ckpt_each_fn)(void *ctx, const struct ckpt_info *info); /* non-zero stops the walk */
/* Walks the manifests, newest first. Damaged ones are skipped with a log line; unreadable ones are
 * logged with the reason. */
int ckpt_list(const struct ckpt_job *j, ckpt_each_fn fn, void *ctx, struct err *e);

/* Verifies every chunk of one checkpoint without restoring it: ERR_CORRUPT, ERR_NOT_FOUND. Nothing
 * is set aside. */
int ckpt_verify(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

struct ckpt_verify_with {
    const atomic_int *cancel; /* may be NULL */
    struct ckpt_pace *pace;   /* of the content that is read; may be NULL */
    int64_t bytes_max;        /* ERR_UNSUPPORTED for a checkpoint with more content; 0 = no limit */
};
int ckpt_verify_with(const struct ckpt_job *j, struct ckpt_id id,
    const struct ckpt_verify_with *with, struct err *e);

/* Whether this part of the store belongs to the job (struct ckpt_expected). ERR_NOT_FOUND: the job
 * has stored nothing; ERR_CONFLICT: it is another job's. Reads only. */
int ckpt_check_identity(const struct ckpt_job *j, const char *identity, struct err *e);

/* The checkpoints in the store, newest first, and which of them are pinned: reads no manifest, so
 * it needs no key. As many of the newest as fit into max; *ret_n is how many. */
struct ckpt_stored {
    struct ckpt_id id;
    bool pinned;
};
int ckpt_list_stored(
    const struct ckpt_job *j, struct ckpt_stored *v, size_t max, size_t *ret_n, struct err *e);

/* Pins a checkpoint: it is neither cleaned nor removed until it is unpinned. Both calls are
 * idempotent. ERR_NOT_FOUND, ERR_CORRUPT; ERR_CONFLICT: it is being removed. */
int ckpt_pin(const struct ckpt_job *j, struct ckpt_id id, struct err *e);
int ckpt_unpin(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

/* Removes one checkpoint; ERR_CONFLICT while it is pinned, ERR_NOT_FOUND. Its chunks are removed
 * too if the store of the job is closed; otherwise the next cleaning removes them, because a save
 * under way may have found them there. */
int ckpt_remove(const struct ckpt_job *j, struct ckpt_id id, struct err *e);

#define CKPT_KEEP_ALL INT_MAX

/* Removes the manifests that neither keep nor a pin keeps, then the chunks that no manifest names;
 * reads all remaining manifests. Only the attempt that has the fence may call it, or, with
 * CKPT_CLOSED, the closer of the store; ERR_CONFLICT when a later attempt's fence exists. newest 0
 * (only for a closed store) also removes what was set aside. cancel (may be NULL) non-zero:
 * ERR_CANCELLED, and the next cleaning does the rest. ret_kept_bytes (may be NULL): stored size of
 * the remaining manifests and chunks. */
int ckpt_clean(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const atomic_int *cancel, int64_t *ret_kept_bytes, struct err *e);

/* As ckpt_clean, but reads no manifest that the attempt's saves with `seen` (may be NULL) have
 * written, or that an earlier cleaning with it has read: after a save, none. Damage that has
 * happened to one since is found by a restore, or by the next attempt's first cleaning. */
int ckpt_clean_with(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    struct ckpt_seen *seen, const atomic_int *cancel, int64_t *ret_kept_bytes, struct err *e);

#endif
