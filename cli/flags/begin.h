/* SPDX-License-Identifier: Apache-2.0
 *
 * The times that sbatch --begin takes.
 */
#ifndef BELAY_CLI_FLAGS_BEGIN_H
#define BELAY_CLI_FLAGS_BEGIN_H

#include "base/err.h"
#include "base/time.h"

/* Parses the time of --begin, by the clock of this machine (TZ):
 *
 *   now, now+COUNT[seconds|minutes|hours|days|weeks], today, tomorrow
 *   midnight, noon, HH:MM[:SS][AM|PM]                     the next such moment
 *   MMDDYY, MM/DD[/YY], YYYY-MM-DD                        midnight of that day
 *   YYYY-MM-DDTHH:MM[:SS]
 *   YYYY-MM-DDTHH:MM:SSZ                                  UTC, as belay prints moments
 *
 * mktime decides about a time that the clock skips or shows twice. ERR_INVALID, also for a moment
 * in the past. */
int begin_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

#endif
