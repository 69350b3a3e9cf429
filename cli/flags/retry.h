/* SPDX-License-Identifier: Apache-2.0
 *
 * --retry, and the retries left.
 */
#ifndef BELAY_CLI_FLAGS_RETRY_H
#define BELAY_CLI_FLAGS_RETRY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* "failed=2,timeout=1,reclaimed=unlimited": sets the job specification's retry
 * (docs/reference/api.md). A later value for the same end replaces an earlier one. ERR_INVALID. */
int retry_parse(const char *text, json_t *spec, struct err *e);

/* "failed 1 of 2 left, timeout none, reclaimed any number", from a job as shown by belayd. */
void retry_format(const json_t *job, struct buf *out);

#endif
