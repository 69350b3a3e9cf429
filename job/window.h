/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: stretches of the week in which something may happen, by the wall clocks of a zone. PURE:
 * the moment is given.
 *
 * On each of its days a window opens at `from` and closes at `to`, on the day after if that is not
 * later. A time that the clocks skip is the moment at which they are put forward; of one that they
 * show twice the first is meant.
 */
#ifndef BELAY_JOB_WINDOW_H
#define BELAY_JOB_WINDOW_H

#include "base/zone.h"

#define WINDOW_NAME_MAX 64

struct window {
    char name[WINDOW_NAME_MAX];
    uint8_t days;                 /* on which it opens: bit 0 is Sunday .. bit 6; not 0 */
    int from_min, to_min;         /* minutes of the day, 0 .. 1439; both the same: all day */
    const struct time_zone *zone; /* borrowed */
};

/* True: it is open, until *ret_change (windows that meet are one; WALL_NONE: it does not close
 * within a week). False: it is closed, and opens at *ret_change. */
bool window_is_open(const struct window *w, struct wall now, struct wall *ret_change);

#endif
