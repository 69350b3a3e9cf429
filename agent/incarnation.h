/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of this run of the agent. It is greater than that of every earlier run with the same
 * directory, even if the wall clock was set back, because belayd ignores messages with a lower
 * number as stale.
 */
#ifndef BELAY_AGENT_INCARNATION_H
#define BELAY_AGENT_INCARNATION_H

#include "base/err.h"
#include <stdint.h>

/* now_ms: wall. Stored in dir/incarnation before it is returned. */
int incarnation_next(const char *dir, int64_t now_ms, int64_t *ret_incarnation, struct err *e);

#endif
