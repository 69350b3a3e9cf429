/* SPDX-License-Identifier: Apache-2.0 */
#include "job/window.h"

#define DAY_S ((int64_t)86400)
#define LOOK_DAYS 9 /* days searched from today on: a week, and a day that the zone may skip */

static int64_t floor_day(int64_t local_s)
{
    return local_s / DAY_S - (local_s % DAY_S < 0);
}

static int64_t moment_ms(const struct window *w, int64_t day, int minutes)
{
    return SECONDS_MS(zone_from_local_s(w->zone, day * DAY_S + minutes * 60));
}

static bool opens_on(const struct window *w, int64_t day)
{
    int weekday = (int)(((day + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
    return w->days >> weekday & 1;
}

bool window_is_open(const struct window *w, struct wall now, struct wall *ret_change)
{
    int64_t now_s = now.ms / 1000, today = floor_day(now_s + zone_offset_s(w->zone, now_s));
    int64_t until_ms = INT64_MIN; /* when the window closes; INT64_MIN if it is not open now */
    for (int64_t day = today - 1; day < today + LOOK_DAYS; day++) {
        if (!opens_on(w, day))
            continue;
        int64_t from_ms = moment_ms(w, day, w->from_min);
        int64_t to_ms = moment_ms(w, w->to_min > w->from_min ? day : day + 1, w->to_min);
        bool meets = until_ms != INT64_MIN && from_ms <= until_ms;
        if (meets || (from_ms <= now.ms && now.ms < to_ms)) {
            until_ms = to_ms > until_ms ? to_ms : until_ms;
        } else if (until_ms != INT64_MIN) {
            break;
        } else if (from_ms > now.ms) {
            ret_change->ms = from_ms;
            return false;
        }
    }
    ret_change->ms = until_ms > now.ms + SECONDS_MS(7 * DAY_S) ? WALL_NONE.ms : until_ms;
    return until_ms != INT64_MIN;
}
