/* SPDX-License-Identifier: Apache-2.0
 *
 * The times that sbatch --begin takes.
 */
#ifndef BELAY_CLI_BEGIN_H
#define BELAY_CLI_BEGIN_H

#include "base/err.h"
#include "base/time.h"

/* now, now+COUNT[seconds|minutes|hours|days|weeks], today, tomorrow, midnight, noon, HH:MM[:SS][AM|PM] (the next that comes),
 * MMDDYY, MM/DD[/YY], YYYY-MM-DD and YYYY-MM-DDTHH:MM[:SS], by the clocks of this machine (TZ); a
 * day without a time is its midnight, a time that the clocks skip or show twice what mktime makes
 * of it. YYYY-MM-DDTHH:MM:SSZ, as belay prints moments, is in UTC. ERR_INVALID, also for what is
 * over. */
int begin_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

#endif
