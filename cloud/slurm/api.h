/* SPDX-License-Identifier: Apache-2.0
 *
 * slurmrestd's API v0.0.38 (Slurm 22.05 to 23.11) as bytes: builds requests, parses replies. Pure.
 * A pilot is a batch job of one node; its name is the launch's token.
 *
 * Exactly once: the API has no idempotency token, but a job's name and `dependency=singleton` are
 * one. Of several jobs with the same name and user, only one runs at a time. A second submit after
 * a lost reply therefore waits until the sweep cancels it as a stray.
 *
 * A job's number does not identify it: a slurmctld that was killed may have lost jobs it had
 * acknowledged, and hands their numbers out again. An id is NUMBER@TOKEN, and a job is cancelled
 * only after its name was compared with the token.
 *
 * For the pilot's script, tried with 22.05.8 (proctrack/linuxproc): a preemption sends SIGTERM to
 * every process of each step, jobs of an agent in the step included, and to none of the batch
 * script. So the script runs the agent, and a small step beside it forwards SIGTERM: the agent got
 * one, 0.9 s after the preemptor's submit, and its children none. `requeue` is ignored in a submit:
 * the script has to run `scontrol update JobId=$SLURM_JOB_ID Requeue=0`. GraceTime is kept: what
 * ignored SIGTERM was killed 5 to 9 s after it. A pilot that ends within its grace is FAILED, and
 * only preempt_time tells why.
 */
#ifndef BELAY_CLOUD_SLURM_API_H
#define BELAY_CLOUD_SLURM_API_H

#include "base/buf.h"
#include "cloud/driver.h"

#define SLURM_VERSION "v0.0.38"
#define SLURM_REPLY_MAX (32u << 20) /* a listing of some 10,000 jobs */
#define SLURM_SCRIPT_MAX 4096       /* of a pilot */
#define SLURM_USER_MAX 64           /* bytes of a user's name */
#define SLURM_CPUS_MAX 65535
#define SLURM_MEMORY_MAX_MIB (1 << 30)
#define SLURM_LIMIT_MAX_MIN (10 * 366 * 24 * 60)

/* What the pilots of a pool request. Borrowed texts; NULL or 0: Slurm's default. */
struct slurm_pilot {
    const char *partition, *account, *qos, *gres, *constraint, *reservation;
    const char *directory; /* working directory on the node; required */
    int32_t cpus;
    int32_t memory_mib;
    int32_t time_limit_min;
};

/* Body of POST job/submit; contains the user data, which is the job's script. ERR_INVALID: the user
 * data is too long or no script, the token cannot be a name; ERR_CONFIG: a size out of range. */
int slurm_build_submit(
    const struct cloud_launch *l, const struct slurm_pilot *p, struct buf *out, struct err *e);

/* The number of the job that a reply with status 200 reports. Slurm accepts a job together with an
 * error that only says why it waits: such a job exists. */
int slurm_parse_submit(const char *body, size_t n, int64_t *ret_job, struct err *e);

/* Appends the jobs of this user whose names are tokens (GET jobs, or job/NUMBER). Others are
 * skipped unread, whatever they contain. An unknown state counts as running. */
int slurm_parse_jobs(
    const char *body, size_t n, const char *user, struct cloud_instances *out, struct err *e);

/* Status 200 of DELETE job/NUMBER, which may still carry errors. */
int slurm_parse_cancel(const char *body, size_t n, struct err *e);

/* GET /openapi/v3: ERR_UNSUPPORTED, with the versions that there are, if ours is not among them. */
int slurm_parse_versions(const char *body, size_t n, struct err *e);

/* For any other status: fills e and returns its kind. Slurm reports nearly everything as 500, so
 * the kind follows the error's number. An expired login and a slurmctld that is down look the same
 * (500 and -1): ERR_UNAVAILABLE. */
int slurm_parse_error(int status, const char *body, size_t n, struct err *e);

/* NUMBER@TOKEN; the token is one that slurm_build_submit accepts. */
void slurm_format_id(int64_t job, const char *token, char ret_id[CLOUD_NAME_MAX]);
/* ERR_INVALID: not of this form. */
int slurm_split_id(
    const char *id, int64_t *ret_job, char ret_token[CLOUD_TOKEN_MAX], struct err *e);

#endif
