/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/supply/pool_windows.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELDS 7
#define ALL_DAYS 127
#define DAY_MIN 1440

void pool_windows_format(const struct pool_window *v, size_t n, char out[POOL_WINDOWS_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t k = 0; k < n; k++)
        at += (size_t)snprintf(out + at, POOL_WINDOWS_TEXT_MAX - at,
            "%s %d %d %d %s %" PRId32 " %" PRId32 "\n", v[k].window.name, v[k].window.days,
            v[k].window.from_min, v[k].window.to_min, v[k].tz, v[k].min_nodes, v[k].warm_nodes);
}

static bool is_count(int32_t n)
{
    return n >= 0 && n <= POOL_BASE_MAX;
}

static bool parse_line(const char *line, struct pool_window *w)
{
    int days = 0, end = 0;
    *w = (struct pool_window){0};
    /* the widths are those of name and tz */
    int n = sscanf(line, "%63s %d %d %d %63s %" SCNd32 " %" SCNd32 "%n", w->window.name, &days,
        &w->window.from_min, &w->window.to_min, w->tz, &w->min_nodes, &w->warm_nodes, &end);
    w->window.days = (uint8_t)days;
    return n == FIELDS && line[end] == '\0' && days > 0 && days <= ALL_DAYS &&
           w->window.from_min >= 0 && w->window.from_min < DAY_MIN && w->window.to_min >= 0 &&
           w->window.to_min < DAY_MIN && zone_is_name(w->tz, strlen(w->tz)) &&
           is_count(w->min_nodes) && is_count(w->warm_nodes);
}

int pool_windows_parse(
    const char *text, struct pool_window ret_v[POOL_WINDOWS_MAX], size_t *ret_n, struct err *e)
{
    char line[WINDOW_NAME_MAX + ZONE_NAME_MAX + 64];
    size_t n = 0;
    *ret_n = 0;
    while (*text) {
        size_t len = strcspn(text, "\n");
        bool fits = len < sizeof line && n < POOL_WINDOWS_MAX;
        snprintf(line, sizeof line, "%.*s", fits ? (int)len : 0, text);
        if (!fits || !parse_line(line, &ret_v[n]))
            return err_set(e, ERR_INVALID,
                "line %zu of the windows is not NAME DAYS FROM TO ZONE MIN WARM, or is the %dth",
                n + 1, POOL_WINDOWS_MAX + 1);
        n++;
        text += len + (text[len] == '\n');
    }
    *ret_n = n;
    return 0;
}
