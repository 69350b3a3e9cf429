/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of one job: belay show --html. No script; its timeline and charts are drawn
 * as SVG.
 */
#ifndef BELAY_CLI_HTML_JOB_PAGE_H
#define BELAY_CLI_HTML_JOB_PAGE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

/* v: the reply of GET /api/v1/jobs/ID. events: all of the job's. load: the reply of
 * GET /api/v1/jobs/ID/load, NULL if it could not be read. */
void job_page_write(
    const json_t *v, const json_t *events, const json_t *load, struct wall now, struct buf *out);

#endif
