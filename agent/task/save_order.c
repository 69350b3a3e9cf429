/* SPDX-License-Identifier: Apache-2.0
 *
 * See save_order.h.
 */
#include "agent/task/save_order.h"

#define UNKNOWN_MAX 2 /* saves without an estimate at a time: one of them may never end */

enum rank { FITS, UNKNOWN, TOO_LATE };

static enum rank rank_of(const struct save_order_entry *s, int64_t now_ms, int64_t deadline_ms)
{
    if (s->estimate_ms < 0)
        return UNKNOWN;
    return s->estimate_ms <= deadline_ms - now_ms ? FITS : TOO_LATE;
}

static bool is_before(const struct save_order_entry *a, const struct save_order_entry *b,
    int64_t now_ms, int64_t deadline_ms)
{
    enum rank x = rank_of(a, now_ms, deadline_ms), y = rank_of(b, now_ms, deadline_ms);

    return x != y ? x < y : a->estimate_ms < b->estimate_ms;
}

/* Milliseconds that a save under way still needs; INT64_MAX if it has no estimate, or has exceeded
 * it. */
static int64_t remaining(const struct save_order_entry *s, int64_t now_ms)
{
    int64_t left = s->estimate_ms < 0 ? -1 : s->estimate_ms - (now_ms - s->started_ms);

    return left > 0 ? left : INT64_MAX;
}

size_t save_order_next(
    const struct save_order_entry *v, size_t n, int64_t now_ms, int64_t deadline_ms)
{
    int64_t shortest = INT64_MAX; /* remaining time of those under way */
    size_t next = n, under_way = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i].started_ms >= 0) {
            under_way++;
            if (remaining(&v[i], now_ms) < shortest)
                shortest = remaining(&v[i], now_ms);
        } else if (next == n || is_before(&v[i], &v[next], now_ms, deadline_ms)) {
            next = i;
        }
    }
    if (next == n || under_way == 0)
        return next;
    switch (rank_of(&v[next], now_ms, deadline_ms)) {
    case FITS:
        return v[next].estimate_ms < shortest ? next : n;
    case UNKNOWN:
        return under_way < UNKNOWN_MAX ? next : n;
    case TOO_LATE:
        break;
    }
    return n;
}

bool save_order_gives_way(int64_t left_ms, int64_t estimate_ms, int64_t time_ms)
{
    if (time_ms == INT64_MAX)
        return false;
    if (left_ms < 0)
        return true;
    return estimate_ms <= time_ms && left_ms > time_ms - estimate_ms;
}
