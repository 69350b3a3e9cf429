/* SPDX-License-Identifier: Apache-2.0
 *
 * The time formats of sbatch --begin.
 */
#ifndef BELAY_CLI_FLAGS_BEGIN_H
#define BELAY_CLI_FLAGS_BEGIN_H

#include "base/err.h"
#include "base/time.h"

/* Parses the time of --begin, by this machine's clock (TZ):
 *
 *   now, now+COUNT[seconds|minutes|hours|days|weeks], today, tomorrow
 *   midnight, noon, HH:MM[:SS][AM|PM]                     the next such moment
 *   MMDDYY, MM/DD[/YY], YYYY-MM-DD                        midnight of that day
 *   YYYY-MM-DDTHH:MM[:SS]
 *   YYYY-MM-DDTHH:MM:SSZ                                  UTC, as belay prints times
 *
 * mktime decides about a time that the clock skips or shows twice. ERR_INVALID, also for a time in
 * the past. */
int begin_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e);

/* The same for --finish-by, whose error also names the form +8h. The caller reads that form. */
int begin_parse_finish(const char *text, struct wall now, struct wall *ret_at, struct err *e);

#endif
