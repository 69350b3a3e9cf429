/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds of budget periods in their time zone, and the text of what a budget counts.
 */
#include "scheduler/core/queue/budget_options.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/str.h"
#include <inttypes.h>
#include <string.h>

#define HOUR_MS 3600000LL
#define DAY_S 86400LL

const char *const budget_period_names[] = {"hour", "day", "month", "window", NULL};
const char *const budget_action_names[] = {"alert", "stop-new", "park", NULL};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970 of the first of a month. Months count from year 0; computed years begin in March,
 * so that leap days come last (Hinnant, "chrono-Compatible Low-Level Date Algorithms",
 * days_from_civil). */
static int64_t day_of_month(int64_t month)
{
    int64_t y = floor_div(month - 2, 12), m = (month - 2) - 12 * y; /* m: 0 is March */
    int64_t era = floor_div(y, 400), of_era = y - 400 * era;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 - 719468;
}

/* The month that contains a day, counted from year 0. */
static int64_t month_of_day(int64_t day)
{
    int64_t month = floor_div(day * 12 * 400, 146097) + 1970 * 12; /* exact, or off by one */
    while (day_of_month(month) > day)
        month--;
    while (day_of_month(month + 1) <= day)
        month++;
    return month;
}

static struct wall at_local(const struct time_zone *z, int64_t day)
{
    return (struct wall){SECONDS_MS(zone_from_local_s(z, day * DAY_S))};
}

bool budget_period_at(
    const struct budget_options *o, struct wall at, struct wall *ret_since, struct wall *ret_until)
{
    const struct time_zone *z = o->zone ? o->zone : &zone_utc;
    int64_t at_s = floor_div(at.ms, 1000), day = floor_div(at_s + zone_offset_s(z, at_s), DAY_S),
            month;
    switch (o->period) {
    case BUDGET_HOUR:
        ret_since->ms = floor_div(at.ms, HOUR_MS) * HOUR_MS;
        ret_until->ms = ret_since->ms + HOUR_MS;
        return true;
    case BUDGET_DAY:
        *ret_since = at_local(z, day);
        *ret_until = at_local(z, day + 1);
        return true;
    case BUDGET_MONTH:
        month = month_of_day(day);
        *ret_since = at_local(z, day_of_month(month));
        *ret_until = at_local(z, day_of_month(month + 1));
        return true;
    case BUDGET_WINDOW:
        break;
    }
    *ret_since = at;
    return window_is_open(o->window, at, ret_until);
}

static void add(char *out, const char *key, const char *value)
{
    size_t n = strlen(out);
    if (value[0])
        text_format(out + n, BUDGET_ABOUT_MAX - n, " %s=%s", key, value);
}

void budget_about(const struct budget_options *o, char out[BUDGET_ABOUT_MAX])
{
    text_format(out, BUDGET_ABOUT_MAX, "%s%s%s", budget_period_names[o->period],
        o->window ? " " : "", o->window ? o->window->name : "");
    add(out, "team", o->team);
    add(out, "user", o->user);
    add(out, "pool", o->pool);
    add(out, "job", o->job);
    for (size_t k = 0; k < o->n_labels; k++) {
        size_t n = strlen(out);
        text_format(
            out + n, BUDGET_ABOUT_MAX - n, " label %s=%s", o->labels[k].name, o->labels[k].value);
    }
}
