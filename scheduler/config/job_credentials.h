/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of `store_credentials: job`: how credentials for one job's part of the store are
 * created. store/grants.h creates them. Pure.
 */
#ifndef BELAY_SCHEDULER_CONFIG_JOB_CREDENTIALS_H
#define BELAY_SCHEDULER_CONFIG_JOB_CREDENTIALS_H

#include "ckpt/s3.h"
#include "cloud/scoped.h"

struct job_credentials {
    const char *store; /* URL */
    /* may be NULL; kms_key is that of the store's URL, if it is an ARN */
    const char *role_arn, *kms_key, *sts_url;
    int64_t life_ms; /* 0 = not set */
};

/* Checks whether the store supports credentials of jobs with these settings. ERR_INVALID if not. */
int job_credentials_check(const struct job_credentials *c, struct err *e);

/* For cloud/scoped.h, without http and timers; p is the store. Texts are borrowed from both, except
 * *ret_service_url, which the caller frees. */
struct scoped_options job_credentials_scoped(
    const struct job_credentials *c, const struct s3_location *p, char **ret_service_url);

#endif
