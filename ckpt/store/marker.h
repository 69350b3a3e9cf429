/* SPDX-License-Identifier: Apache-2.0
 *
 * The marker of a cluster's part of a store: "<cluster>/owner/<generation, 10 digits>", a
 * line of JSON with the cluster's uid, which belayd generated with its database. It distinguishes
 * two clusters of one name on one store, and the store from a directory that is not mounted or was
 * emptied.
 *
 * Invariants.
 *  1. Only belayd and `belay checkpoint adopt` write markers, by conditional create: of two
 *     concurrent claims one fails.
 *  2. The marker of the highest generation is valid. A takeover writes the next one and then
 *     removes the earlier ones, so that a process of an earlier owner finds a marker other than its
 *     own. belayd checks when it starts and before it cleans. Agents check before they restore and
 *     before they commit a save, but only in a directory: in a bucket a job's credentials cannot
 *     read the marker, so agents of an earlier owner continue to save there. No other job resumes
 *     from these saves: job numbers start above those in the store, and the job's identity
 *     (begin.c) reveals a number given twice.
 *  3. A cluster that was restored from a backup writes a marker with its uid and a higher epoch. A
 *     belayd with the state from before finds it and stops.
 *  4. The uid "" marks a store that was given up: the next belayd that starts with it may claim it.
 *
 * All calls block.
 */
#ifndef BELAY_CKPT_STORE_MARKER_H
#define BELAY_CKPT_STORE_MARKER_H

#include "ckpt/store/store.h"

#define MARKER_UID_MAX 33 /* bytes including the NUL */
#define MARKER_BYTES_MAX 4096

struct marker {
    int64_t generation; /* 0 = no marker */
    char uid[MARKER_UID_MAX];
    int64_t created_at_ms; /* wall */
    int64_t epoch;         /* how often the owner was restored from a backup */
};

/* Reads the valid marker; generation 0 = none. ERR_CORRUPT: malformed, or over MARKER_BYTES_MAX;
 * then ret_mark has only the generation, so that the store can be given up. */
int marker_read(struct store *s, const char *cluster, struct marker *ret_mark, struct err *e);

/* Writes the next marker after `over` (of marker_read), with this uid, epoch and time, and removes
 * the earlier ones. ERR_CONFLICT: another process was first. */
int marker_write(struct store *s, const char *cluster, const struct marker *over, const char *uid,
    int64_t epoch, int64_t now_ms, struct err *e);

/* Returns 0 if the store belongs to this cluster. ERR_NOT_FOUND: no marker; ERR_DENIED: it belongs
 * to another cluster, or was given up. */
int marker_check(struct store *s, const char *cluster, const char *uid, struct err *e);

struct marker_contents {
    int64_t last_job; /* highest job number with an object in the store; 0 = none */
    int64_t jobs;     /* jobs with a checkpoint */
    int64_t checkpoints;
};

/* Lists all of the cluster's objects, with a request for every thousand. With `any`, stops at the
 * first checkpoint. */
int marker_survey(struct store *s, const char *cluster, bool any,
    struct marker_contents *ret_contents, struct err *e);

/* Parses a marker's text; public for fuzzing. ERR_CORRUPT. */
int marker_parse(const char *text, size_t n, struct marker *ret_mark, struct err *e);

#endif
