/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of the output on belayd's disk: for each job, over all of its attempts and ranks, and for
 * each user within a day. A job's amount is counted from its files at the first query. A user's
 * amount within the last day is counted in memory, by the hour, and starts at 0 with belayd.
 */
#ifndef BELAY_SCHEDULER_LOGS_QUOTA_H
#define BELAY_SCHEDULER_LOGS_QUOTA_H

#include "base/time.h"
#include "db/db.h"

#define LOG_QUOTA_HOURS 24

struct log_limits {
    int64_t job_bytes, user_day_bytes; /* 0 = unlimited */
};

enum log_limit { LOG_LIMIT_NONE, LOG_LIMIT_JOB, LOG_LIMIT_USER };

struct log_quota;

/* destroy accepts NULL. */
struct log_quota *log_quota_create(const struct log_limits *limits);
void log_quota_destroy(struct log_quota *q);

/* Returns how many more bytes of the job's output may be stored; *ret_by is the limit that applies.
 * dir is that of the job's output. INT64_MAX = unlimited. */
int64_t log_quota_left(struct log_quota *q, struct db_reader *r, int64_t job, const char *dir,
    struct wall now, enum log_limit *ret_by);

/* Records n more stored bytes of the job, for which there was space. */
void log_quota_add(struct log_quota *q, int64_t job, int64_t n, struct wall now);

/* The same for a user without a job; INT64_MAX = unlimited. */
int64_t log_quota_user_left(struct log_quota *q, const char *user, struct wall now);
void log_quota_user_add(struct log_quota *q, const char *user, int64_t n, struct wall now);

/* Stored output of a job that log_quota_left was called for, and its user; NULL if unknown.
 * Borrowed until the next log_quota_left. */
int64_t log_quota_job_bytes(const struct log_quota *q, int64_t job);
const char *log_quota_user(const struct log_quota *q, int64_t job);

/* Bytes of output in a job's directory, without the holes of sparse files. */
int64_t log_quota_count(const char *dir);

const struct log_limits *log_quota_limits(const struct log_quota *q);
/* What is counted stays. */
void log_quota_set_limits(struct log_quota *q, const struct log_limits *limits);

#endif
