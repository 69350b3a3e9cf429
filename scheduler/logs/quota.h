/* SPDX-License-Identifier: Apache-2.0
 *
 * How much output belayd keeps on its disk: of each job, over all of its attempts and ranks, and of
 * each user within a day. What a job has is counted from its files when it is first asked for. What
 * a user had within the last day is counted in memory, by the hour, and starts at 0 with belayd.
 */
#ifndef BELAY_SCHEDULER_LOGS_QUOTA_H
#define BELAY_SCHEDULER_LOGS_QUOTA_H

#include "base/time.h"
#include "db/db.h"

#define LOG_QUOTA_HOURS 24

struct log_limits {
    int64_t job_bytes, user_day_bytes; /* 0: no limit */
};

enum log_limit { LOG_LIMIT_NONE, LOG_LIMIT_JOB, LOG_LIMIT_USER };

struct log_quota;

/* destroy: NULL is fine. */
struct log_quota *log_quota_create(const struct log_limits *limits);
void log_quota_destroy(struct log_quota *q);

/* How many more bytes of the job's output may be kept; *ret_by: which limit says so. dir: that of
 * the job's output. INT64_MAX: any number. */
int64_t log_quota_room(struct log_quota *q, struct db_reader *r, int64_t job, const char *dir,
    struct wall now, enum log_limit *ret_by);

/* n more bytes of the job, for which there was room, are on disk. */
void log_quota_add(struct log_quota *q, int64_t job, int64_t n, struct wall now);

/* Of a user alone, without a job; room: INT64_MAX, any number. */
int64_t log_quota_user_room(struct log_quota *q, const char *user, struct wall now);
void log_quota_user_add(struct log_quota *q, const char *user, int64_t n, struct wall now);

const struct log_limits *log_quota_limits(const struct log_quota *q);

#endif
