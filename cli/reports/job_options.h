/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a job, as people read them: all that belayd shows as null by default, so a new option
 * needs no code here.
 */
#ifndef BELAY_CLI_REPORTS_JOB_OPTIONS_H
#define BELAY_CLI_REPORTS_JOB_OPTIONS_H

#include "base/buf.h"
#include "base/json.h"
#include "job/attributes.h"
#include <stdbool.h>

const char *job_option_name(const struct job_attribute *a);

/* Adds the job's value. False, with nothing added, for the default and for options that belay show
 * describes in other words, such as the name. */
bool job_option_text(const json_t *job, const struct job_attribute *a, struct buf *out);

#endif
