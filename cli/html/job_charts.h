/* SPDX-License-Identifier: Apache-2.0
 *
 * The charts of a job's report: its progress against its deadline, with the band of the forecast,
 * and what it used. Drawn as SVG, without a script; tables have the same figures.
 */
#ifndef BELAY_CLI_HTML_JOB_CHARTS_H
#define BELAY_CLI_HTML_JOB_CHARTS_H

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

/* v: the reply of GET /api/v1/jobs/ID. Adds nothing for a job that reports no progress. */
void job_charts_progress(const json_t *v, struct wall now, struct buf *out);

/* load: the reply of GET /api/v1/jobs/ID/load; NULL if it could not be read. */
void job_charts_load(const json_t *job, const json_t *load, struct buf *out);

#endif
