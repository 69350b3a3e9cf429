/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored output by user, and which users' output is cut when belayd's disk is almost full, so that
 * no user loses output for what another wrote. Pure.
 *
 * Each user with output has an equal share of the space that output has, and each of a user's jobs
 * an equal share of its user's. Only output beyond both shares meets the first limit of free space;
 * users within their share use the space below it:
 *
 *   free space                 who may store more
 *   2 reserves and more        all
 *   1.5 to 2 reserves          a job within its share, or a user within theirs
 *   1 to 1.5 reserves          a user within their share
 *   less                       no user: it is left to commits
 *
 * Agents keep what may not be stored. It is cut only after a wait, and only of users beyond their
 * share: while less than two reserves are free, at least one user is. If all output takes less than
 * two reserves, something else fills the disk: then no user is, and nothing is cut.
 */
#ifndef BELAY_SCHEDULER_LOGS_LOG_SHARES_H
#define BELAY_SCHEDULER_LOGS_LOG_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct log_shares;

struct log_shares *log_shares_create(void);
void log_shares_destroy(struct log_shares *s); /* accepts NULL */

/* Counts n more bytes and n_jobs more jobs with output. */
void log_shares_add(struct log_shares *s, const char *user, int64_t n, int64_t n_jobs);

/* Bytes of all users. */
int64_t log_shares_total(const struct log_shares *s);
/* The user who stores most, borrowed until log_shares_destroy; NULL if no output is stored. */
const char *log_shares_most(const struct log_shares *s, int64_t *ret_bytes);

struct log_space {
    int64_t total, free; /* bytes of the disk */
};

/* An eighth of the disk, at most 256 MiB. */
int64_t log_space_reserve(const struct log_space *space);
/* True from less than two reserves of free space. */
bool log_space_is_low(const struct log_space *space);

enum log_verdict {
    LOG_STORE,
    LOG_KEEP, /* not now: the agent keeps it and tries again */
    LOG_CUT,
};

struct log_request {
    const char *user;
    int64_t job_bytes; /* stored output of its job */
    int64_t n;         /* bytes that are to be stored */
    bool has_waited; /* there has been no space for all for as long as agents are to keep output */
};

/* shares is NULL while they are unknown: then nothing is cut. */
enum log_verdict log_shares_judge(
    const struct log_shares *shares, const struct log_space *space, const struct log_request *q);

#endif
