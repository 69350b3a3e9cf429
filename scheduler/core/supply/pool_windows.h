/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of the base load of a pool, and their form in its row. PURE.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_POOL_WINDOWS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_POOL_WINDOWS_H

#include "base/err.h"
#include "job/window.h"

#define POOL_WINDOWS_MAX 8
#define POOL_BASE_MAX 10000 /* machines */
/* of POOL_WINDOWS_MAX windows with the longest names */
#define POOL_WINDOWS_TEXT_MAX (POOL_WINDOWS_MAX * (WINDOW_NAME_MAX + ZONE_NAME_MAX + 40) + 1)

/* How many machines a pool keeps while the window is open. */
struct pool_window {
    struct window window;
    char tz[ZONE_NAME_MAX];
    int32_t min_nodes, warm_nodes;
};

/* Machines that a pool keeps without demand; window: the one that says so, NULL for its plain
 * values. */
struct base_values {
    int32_t min_nodes, warm_nodes;
    const struct pool_window *window;
};

/* In force, with what a window needs that opens within the time of a boot (supply/base_load.c). */
struct base_load {
    int32_t min_nodes, warm_nodes;
    bool is_known;          /* was examined in this process */
    struct wall examine_at; /* WALL_NONE: not before the configuration changes */
};

/* For users. */
struct base_view {
    struct base_values now, next;
    struct wall next_at;       /* WALL_NONE: they never change */
    struct wall launches_from; /* WALL_NONE: `next` needs no more machines */
};

/* One line for each: NAME DAYS FROM TO ZONE MIN WARM, days as a number. */
void pool_windows_format(const struct pool_window *v, size_t n, char out[POOL_WINDOWS_TEXT_MAX]);
/* Sets no zone in them. ERR_INVALID, with *ret_n 0. */
int pool_windows_parse(
    const char *text, struct pool_window ret_v[POOL_WINDOWS_MAX], size_t *ret_n, struct err *e);

#endif
