/* SPDX-License-Identifier: Apache-2.0 */
#include "job/daily.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000
#define DAY_MINUTES 1440

static int digits(const char *p)
{
    return p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9' ? (p[0] - '0') * 10 + p[1] - '0'
                                                                    : -1;
}

bool daily_parse_time(const char *text, size_t n, int *ret_minutes)
{
    if (n != 5 || text[2] != ':')
        return false;
    int hours = digits(text), minutes = digits(text + 3);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *ret_minutes = hours * 60 + minutes;
    return true;
}

bool daily_add(struct daily *d, int minutes)
{
    int k = 0;
    while (k < d->n && d->minutes[k] < minutes)
        k++;
    if (k < d->n && d->minutes[k] == minutes)
        return true;
    if (d->n == DAILY_MAX)
        return false;
    memmove(&d->minutes[k + 1], &d->minutes[k], (size_t)(d->n - k) * sizeof d->minutes[0]);
    d->minutes[k] = minutes;
    d->n++;
    return true;
}

int daily_parse(const char *text, struct daily *ret_daily, struct err *e)
{
    struct daily d = {0};
    char shown[STR_SHOW_MAX];
    const char *p = *text ? text : NULL;
    while (p) {
        size_t n = strcspn(p, ",");
        int minutes;
        if (!daily_parse_time(p, n, &minutes))
            return err_set(e, ERR_INVALID, "expected times of the day, as 06:00,18:30, found %s",
                str_show(text, shown));
        if (!daily_add(&d, minutes))
            return err_set(e, ERR_INVALID, "expected at most %d times of the day, found %s",
                DAILY_MAX, str_show(text, shown));
        p = p[n] ? p + n + 1 : NULL;
    }
    *ret_daily = d;
    return 0;
}

void daily_format(const struct daily *d, char out[DAILY_TEXT_MAX])
{
    int used = 0;
    out[0] = '\0';
    for (int k = 0; k < d->n; k++)
        used += snprintf(out + used, DAILY_TEXT_MAX - (size_t)used, "%s%02d:%02d", k > 0 ? "," : "",
            d->minutes[k] / 60 % 24, d->minutes[k] % 60);
}

struct wall daily_next(const struct daily *d, struct wall after)
{
    if (d->n == 0)
        return WALL_NONE;
    int64_t day_ms = (int64_t)DAY_MINUTES * MINUTE_MS;
    int64_t midnight = after.ms - ((after.ms % day_ms) + day_ms) % day_ms;
    for (int k = 0; k < d->n; k++) {
        int64_t at = midnight + (int64_t)d->minutes[k] * MINUTE_MS;
        if (at > after.ms)
            return (struct wall){at};
    }
    return (struct wall){midnight + day_ms + (int64_t)d->minutes[0] * MINUTE_MS};
}
