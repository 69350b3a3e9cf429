/* SPDX-License-Identifier: Apache-2.0
 *
 * Times in the past, as people write them.
 */
#ifndef BELAY_CLI_SINCE_H
#define BELAY_CLI_SINCE_H

#include "base/err.h"
#include "base/time.h"

/* "10m", "2h" (with a unit): before now; "2026-11-21T20:44:00Z"; and the forms of slurm_time_parse,
 * by local time ("20:44", "today", "2026-11-21"). ERR_INVALID. */
int since_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

#endif
