/* SPDX-License-Identifier: Apache-2.0
 *
 * Number of retries per kind of end: "failed=2,timeout=1,node-lost=unlimited". Unset kinds fall
 * back to the pool, then to belayd's configuration, then to retries_default. The configured maximum
 * applies to all jobs.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_COUNTS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_COUNTS_H

#include "base/err.h"
#include "scheduler/core/model/rows.h"

struct retry_options {
    struct retries defaults;
    struct retries max; /* 0: no maximum; RETRIES_NEVER: no retries */
};

/* Each kind at most once, numbers 0 .. RETRIES_MAX; "" sets none. ERR_INVALID. */
int retries_parse(const char *text, struct retries *ret_retries, struct err *e);

/* A single number: "3", "unlimited". */
int retries_parse_number(const char *text, int32_t *ret_n, struct err *e);

/* Format of retries_parse; RETRIES_DEFAULT is omitted. */
void retries_format(const struct retries *r, char out[RETRIES_TEXT_MAX]);

/* The effective numbers: the first setting that is set. pool may be NULL. ERR_INVALID: the job
 * requests more than the configured maximum; settings of pools and defaults are capped instead. */
int retries_resolve(const struct retries *job, const struct retries *pool,
    const struct retry_options *o, struct retries *ret_retries, struct err *e);

/* Never requeued, whatever its end (submit --no-requeue). Of a row. */
bool retries_are_none(const struct job_row *j);
/* An operator may have it saved and stopped: it is queued again and resumes. */
bool job_can_drain(const struct job_row *j);

/* Remaining retries after an end of this kind; RETRIES_UNLIMITED. Of a row. */
int32_t retries_left(const struct job_row *j, enum retry_kind kind);

#endif
