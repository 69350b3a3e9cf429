/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's clocks, ISO 8601, and durations for people. Civil dates are computed here (Hinnant,
 * "chrono-compatible low-level date algorithms"), not by libc: no time zone, no locale, no lock.
 */
#include "base/time.h"

#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WALL_END_MS ((int64_t)253402300800000) /* 10000-01-01T00:00:00Z */

static int64_t read_clock_ms(clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime(id, &ts);
    assert(rc == 0);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct wall system_wall(void *ctx)
{
    (void)ctx;
    return (struct wall){read_clock_ms(CLOCK_REALTIME)};
}

static struct mono system_mono(void *ctx)
{
    (void)ctx;
    return (struct mono){read_clock_ms(CLOCK_MONOTONIC)};
}

const struct clock clock_system = {.wall = system_wall, .mono = system_mono};

/* Internally the year begins in March. */
int64_t time_days_from_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400, year_of_era = year % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

void time_date_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = days / 146097, day_of_era = days % 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;
    *ret_day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1);
    *ret_month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    *ret_year = (int)(era * 400 + year_of_era + (*ret_month <= 2));
}

int time_days_of_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (leap && month == 2);
}

void time_format_iso(struct wall w, char out[TIME_ISO_MAX])
{
    if (w.ms < 0 || w.ms >= WALL_END_MS) {
        snprintf(out, TIME_ISO_MAX, "-");
        return;
    }
    int year, month, day, in_day = (int)(w.ms % DAY_MS), ms = in_day % 1000, s = in_day / 1000;
    time_date_from_days(w.ms / DAY_MS, &year, &month, &day);
    int n = snprintf(out, TIME_ISO_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, s / 3600,
        s / 60 % 60, s % 60);
    snprintf(out + n, TIME_ISO_MAX - (size_t)n, ms ? ".%03dZ" : "Z", ms);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads as many digits as the pattern has '0's and requires its other characters; stores the values
 * in order of appearance. */
static bool read_pattern(const char **at, const char *pattern, int *values)
{
    int n = 0;
    for (const char *p = pattern; *p; p++, (*at)++) {
        if (*p != '0') {
            if (**at != *p)
                return false;
            continue;
        }
        if (!is_digit(**at))
            return false;
        if (p == pattern || p[-1] != '0')
            values[n++] = 0;
        values[n - 1] = values[n - 1] * 10 + (**at - '0');
    }
    return true;
}

/* ".fff" of any length, cut to milliseconds; 0 if absent. */
static bool read_fraction(const char **at, int *ret_ms)
{
    *ret_ms = 0;
    if (**at != '.')
        return true;
    int worth = 100;
    for ((*at)++; is_digit(**at); (*at)++, worth /= 10)
        *ret_ms += (**at - '0') * worth;
    return (*at)[-1] != '.';
}

static bool is_date(int year, int month, int day)
{
    return year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
           day <= time_days_of_month(year, month);
}

int time_parse_iso(const char *text, struct wall *ret_wall, struct err *e)
{
    int v[6], ms;
    const char *at = text;
    bool ok = read_pattern(&at, "0000-00-00T00:00:00", v) && read_fraction(&at, &ms) &&
              (str_eq(at, "Z") || str_eq(at, "+00:00") || str_eq(at, "+0000")) &&
              is_date(v[0], v[1], v[2]) && v[3] < 24 && v[4] < 60 && v[5] < 60;
    char shown[STR_SHOW_MAX];
    if (!ok)
        return err_set(e, ERR_INVALID,
            "expected a time in UTC such as 2026-08-22T12:02:00Z, found %s", str_show(text, shown));
    ret_wall->ms = time_days_from_date(v[0], v[1], v[2]) * DAY_MS +
                   ((v[3] * 60 + v[4]) * 60 + v[5]) * (int64_t)1000 + ms;
    return 0;
}

/* Reads digits; false if there are none or the value exceeds the longest duration in milliseconds.
 */
static bool read_count(const char **at, int64_t *ret_value)
{
    const char *start = *at;
    *ret_value = 0;
    for (; is_digit(**at); (*at)++) {
        *ret_value = *ret_value * 10 + (**at - '0');
        if (*ret_value > TIME_DURATION_MAX_MS)
            return false;
    }
    return *at > start;
}

/* "90" and "10m". bare_ms is the unit of a number without one. */
static bool read_with_unit(const char *at, int64_t bare_ms, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", DAY_MS}};
    int64_t n;
    if (!read_count(&at, &n))
        return false;
    int64_t unit_ms = *at == 0 ? bare_ms : 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(at, units[i].unit) == 0)
            unit_ms = units[i].ms;
    return unit_ms > 0 && !__builtin_mul_overflow(n, unit_ms, ret_ms);
}

/* "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". The parts are added up, whatever their
 * size. */
static bool read_slurm(const char *at, int64_t *ret_ms)
{
    int64_t days = 0, v[3] = {0}, s;
    size_t n = 0;
    bool has_days = strchr(at, '-') != NULL;
    if (has_days && (!read_count(&at, &days) || *at++ != '-'))
        return false;
    do {
        if (n == 3 || !read_count(&at, &v[n]))
            return false;
        n++;
    } while (*at++ == ':');
    if (at[-1] != 0 || (!has_days && n < 2))
        return false;
    if (has_days || n == 3)
        s = days * 86400 + v[0] * 3600 + v[1] * 60 + v[2];
    else
        s = v[0] * 60 + v[1];
    return !__builtin_mul_overflow(s, (int64_t)1000, ret_ms);
}

/* "1.5h", ".5s" */
static bool has_decimals(const char *text)
{
    const char *point = text + strspn(text, "0123456789");
    return *point == '.' && is_digit(point[1]);
}

int time_parse_duration(const char *text, bool slurm, int64_t *ret_ms, struct err *e)
{
    int64_t ms;
    char shown[STR_SHOW_MAX];
    bool ok = read_with_unit(text, slurm ? 60000 : 1000, &ms) || (slurm && read_slurm(text, &ms));
    if (!ok && has_decimals(text))
        return err_set(e, ERR_INVALID,
            "expected a duration in whole numbers, as 90m for 1.5h or 200ms for 0.2s, found %s",
            str_show(text, shown));
    if (!ok || ms > TIME_DURATION_MAX_MS)
        return err_set(e, ERR_INVALID, "expected a duration such as %s, at most 10 years, found %s",
            slurm ? "30, 90:00, 12:00:00, 2-12 or 10m (a bare number is minutes)"
                  : "500ms, 90s, 10m, 2h or 1d (a bare number is seconds)",
            str_show(text, shown));
    *ret_ms = ms;
    return 0;
}

void time_format_duration(int64_t ms, char *out, size_t size)
{
    if (ms == TIME_NONE_MS) {
        snprintf(out, size, "-");
        return;
    }
    const char *sign = ms < 0 ? "-" : "";
    int64_t u = ms < 0 ? -ms : ms, s = u / 1000, m = s / 60, h = m / 60, d = h / 24;
    if (d > 0)
        snprintf(out, size, "%s%" PRId64 "d%02" PRId64 "h", sign, d, h % 24);
    else if (h > 0)
        snprintf(out, size, "%s%" PRId64 "h%02" PRId64 "m", sign, h, m % 60);
    else if (m > 0)
        snprintf(out, size, "%s%" PRId64 "m%02" PRId64 "s", sign, m, s % 60);
    else if (s > 0 && u % 1000 >= 100)
        snprintf(out, size, "%s%" PRId64 ".%" PRId64 "s", sign, s, u % 1000 / 100);
    else if (s > 0)
        snprintf(out, size, "%s%" PRId64 "s", sign, s);
    else
        snprintf(out, size, "%s%" PRId64 "ms", sign, u);
}

void time_format_exact(int64_t ms, char out[TIME_EXACT_MAX])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t k = 0;
    while (ms % units[k].ms != 0 || (ms == 0 && units[k].ms > 1000))
        k++;
    snprintf(out, TIME_EXACT_MAX, "%" PRId64 "%s", ms / units[k].ms, units[k].name);
}
