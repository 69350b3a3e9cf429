/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer that is printed again and again: on a terminal in place, elsewhere one after the other.
 */
#ifndef BELAY_CLI_TOP_WATCH_H
#define BELAY_CLI_TOP_WATCH_H

#include "base/err.h"
#include <stdint.h>

#define WATCH_EVERY_DEFAULT_S 2
#define WATCH_EVERY_MAX_S 3600

/* Prints the answer on stdout. */
typedef int (*watch_fn)(void *ctx, struct err *e);

/* Until q or ctrl-c. An answer that cannot be had because belayd is away is waited for; any other
 * error ends it. */
int watch_answers(int64_t every_s, watch_fn print, void *ctx, struct err *e);

#endif
