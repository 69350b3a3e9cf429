/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose a cluster's part of a store is: the marker "<cluster>/owner/<generation, 10 digits>", a
 * line of JSON with the cluster's uid, which its belayd made up when its database began. Two
 * clusters of one name on one store are told apart by it, and a directory that is not mounted,
 * or was emptied, from the store.
 *
 * Invariants.
 *  1. Only belayd and `belay checkpoint adopt` write markers, by conditional create: of two that
 *     claim a store at once one loses.
 *  2. The marker that counts is the one of the highest generation. Who takes a store over writes
 *     the next one and then removes those before, so that a process which knew an earlier owner
 *     finds another, never its own, when it looks. belayd looks as it starts and before it cleans.
 *     Agents look before they restore, and before a save is committed, in a directory only: in a
 *     bucket a job's credentials do not reach the marker, so agents of an earlier owner go on
 *     saving there. What they save is resumed by nobody else: numbers of jobs begin above what was
 *     there, and the job's identity (begin.c) tells one that was given twice.
 *  3. The uid "" is that of a store which was given up: the next belayd that starts with it may
 *     claim it.
 *
 * All calls block.
 */
#ifndef BELAY_CKPT_STORE_OWNER_H
#define BELAY_CKPT_STORE_OWNER_H

#include "ckpt/store/store.h"

#define OWNER_UID_MAX 33 /* with its NUL */
#define OWNER_BYTES_MAX 4096

struct owner_mark {
    int64_t generation; /* 0: there is no marker */
    char uid[OWNER_UID_MAX];
    int64_t created_at_ms; /* wall */
};

/* The marker that counts; generation 0 = none. ERR_CORRUPT: it cannot be read as one, or
 * has over OWNER_BYTES_MAX; then ret_mark has its generation alone, so that it can be given up. */
int owner_read(struct store *s, const char *cluster, struct owner_mark *ret_mark, struct err *e);

/* Writes the next marker after `over` (of owner_read), with this uid and moment, and removes
 * those before it. ERR_CONFLICT: another was there first. */
int owner_write(struct store *s, const char *cluster, const struct owner_mark *over,
    const char *uid, int64_t now_ms, struct err *e);

/* 0: the store is this cluster's. ERR_NOT_FOUND: it has no marker; ERR_DENIED: it is another
 * cluster's, or given up. */
int owner_check(struct store *s, const char *cluster, const char *uid, struct err *e);

struct owner_contents {
    int64_t last_job; /* the highest number of a job that has anything there; 0 = none */
    int64_t jobs;     /* that have a checkpoint */
    int64_t checkpoints;
};

/* Lists all that the cluster has there, which takes a request for every thousand objects. With
 * `any`, it stops at the first checkpoint. */
int owner_survey(struct store *s, const char *cluster, bool any,
    struct owner_contents *ret_contents, struct err *e);

/* A marker's text, for fuzzing too. ERR_CORRUPT. */
int owner_parse(const char *text, size_t n, struct owner_mark *ret_mark, struct err *e);

#endif
