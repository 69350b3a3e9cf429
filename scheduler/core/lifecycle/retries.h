/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a job is queued again after which end: "failed=2,timeout=1,node-lost=unlimited". What
 * the job does not say, its pool says, then belayd's configuration, then retries_usual; and no job
 * has more than the configuration allows.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_RETRIES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_RETRIES_H

#include "base/err.h"
#include "scheduler/core/model/types.h"

struct retry_options {
    struct retries usual; /* a wish */
    struct retries most;  /* 0: there is no such limit; RETRIES_NEVER: not once */
};

/* A wish. Each kind at most once; a number is 0 .. RETRIES_MAX. "" says nothing. ERR_INVALID. */
int retries_parse(const char *text, struct retries *ret_retries, struct err *e);

/* One number of a wish: "3", "unlimited". */
int retries_parse_number(const char *text, int32_t *ret_n, struct err *e);

/* A wish as retries_parse reads it; what is RETRIES_USUAL is left out. */
void retries_format(const struct retries *r, char out[RETRIES_TEXT_MAX]);

/* What the wishes come to, the first that says something. pool may be NULL. ERR_INVALID: the job
 * asks for more than the configuration allows; of others' wishes it gets as much. */
int retries_resolve(const struct retries *job, const struct retries *pool,
    const struct retry_options *o, struct retries *ret_retries, struct err *e);

/* Whatever it ends as, it is not queued again (submit --no-requeue). Of a row. */
bool retries_are_none(const struct job_row *j);

/* How often it still is after an end of that kind; RETRIES_UNLIMITED. Of a row. */
int32_t retries_left(const struct job_row *j, enum retry_kind kind);

#endif
