/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of `belay show`: one row of characters for each attempt.
 */
#ifndef BELAY_CLI_TIMELINE_H
#define BELAY_CLI_TIMELINE_H

#include "cli/cli.h"

/* v: the reply of GET /api/v1/jobs/ID. width: characters of a row, at least 10. Prints nothing for
 * a job without attempts. */
void timeline_print(const json_t *v, int width);

#endif
