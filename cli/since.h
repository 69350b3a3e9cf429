/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments as people name them who look back.
 */
#ifndef BELAY_CLI_SINCE_H
#define BELAY_CLI_SINCE_H

#include "base/err.h"
#include "base/time.h"

/* "10m", "2h" (with a unit): that long before now; "2026-11-21T20:44:00Z"; and what
 * slurm_time_parse takes, by this machine's clock ("20:44", "today", "2026-11-21"). ERR_INVALID. */
int since_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

#endif
