/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: recurring stretches of the week, by the wall clocks of a zone. PURE: the time is a
 * parameter.
 *
 * On each of its days a window opens at `from` and closes at `to`, on the following day if `to` is
 * not later. A time skipped by the clocks means the moment of the jump; of a time shown twice, the
 * first.
 */
#ifndef BELAY_JOB_WINDOW_H
#define BELAY_JOB_WINDOW_H

#include "base/zone.h"

#define WINDOW_NAME_MAX 64

struct window {
    char name[WINDOW_NAME_MAX];
    uint8_t days;                 /* days on which it opens: bit 0 is Sunday .. bit 6; not 0 */
    int from_min, to_min;         /* minutes of the day, 0 .. 1439; equal means all day */
    const struct time_zone *zone; /* borrowed */
};

/* True: the window is open until *ret_change (adjacent windows count as one; WALL_NONE if it does
 * not close within a week). False: it is closed and opens at *ret_change. */
bool window_is_open(const struct window *w, struct wall now, struct wall *ret_change);

#endif
