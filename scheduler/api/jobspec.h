/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a job specification of the API (docs/reference/api.md) to a job row and its texts. Pure.
 */
#ifndef BELAY_SCHEDULER_API_JOBSPEC_H
#define BELAY_SCHEDULER_API_JOBSPEC_H

#include "base/json.h"
#include "scheduler/core/model/event.h"

#define JOBSPEC_BYTES_MAX (2u << 20)
#define JOBSPEC_STORED_MAX (2 * JOBSPEC_BYTES_MAX) /* with its environment sealed */
#define JOBSPEC_SCRIPT_MAX (1u << 20)
#define JOBSPEC_ARGS_MAX 256
#define JOBSPEC_ENV_MAX 1000 /* sbatch sends the whole environment of a user */
#define JOBSPEC_LABELS_MAX 64
#define JOBSPEC_IMAGE_MAX 511 /* WIRE_IMAGE_MAX */
#define JOBSPEC_PATH_MAX 4095
#define JOBSPEC_GRACE_MAX_MS 65535000 /* the longest time before the time limit, as in sbatch */

struct jobspec {
    struct job_row row;         /* without the user */
    struct job_texts texts;     /* owned; jobspec_deinit frees its members */
    struct depend_ask *depends; /* owned, with the data that they point to; has_ended is not set */
    size_t n_depends;
    struct ranges tasks; /* indices of an array; empty if it is none */
    int32_t at_once;
};

/* ERR_INVALID, with the path of the wrong member. */
int jobspec_parse(const json_t *v, struct jobspec *ret_spec, struct err *e);
void jobspec_deinit(struct jobspec *s);

/* The same for a stored text, with the members that a cron entry's job has and its environment
 * sealed: for model_options.read_job.
 * Free ret_texts's members with job_texts_deinit. */
int jobspec_read(
    const char *text, struct job_row *ret_row, struct job_texts *ret_texts, struct err *e);

#endif
