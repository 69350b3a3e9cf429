/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/begin.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define COUNT_MAX 100000000LL
#define AHEAD_MAX_MS (3650 * 86400LL * 1000)

/* Reads n_min .. n_max digits. False if there are fewer than n_min. */
static bool read_digits(const char **at, int n_min, int n_max, int *ret_value)
{
    int n = 0, v = 0;
    for (; n < n_max && (*at)[n] >= '0' && (*at)[n] <= '9'; n++)
        v = v * 10 + ((*at)[n] - '0');
    if (n < n_min)
        return false;
    *at += n;
    *ret_value = v;
    return true;
}

/* Reads n_parts numbers of two digits, separated by `between`. */
static bool read_parts(const char **at, int n_parts, char between, int *values)
{
    for (int k = 0; k < n_parts; k++) {
        if (k > 0 && *(*at)++ != between)
            return false;
        if (!read_digits(at, 2, 2, &values[k]))
            return false;
    }
    return true;
}

static bool is_same(struct tm a, const struct tm *b)
{
    return a.tm_year == b->tm_year && a.tm_mon == b->tm_mon && a.tm_mday == b->tm_mday;
}

/* False if there is no such date. */
static bool from_local(const struct tm *local, struct wall *ret_at)
{
    struct tm made = *local, day = *local;
    day.tm_hour = 12; /* mktime normalises an invalid date to another */
    day.tm_min = day.tm_sec = 0;
    made.tm_isdst = day.tm_isdst = -1;
    if (mktime(&day) == (time_t)-1 || !is_same(day, local))
        return false;
    time_t t = mktime(&made);
    ret_at->ms = SECONDS_MS(t);
    return t != (time_t)-1;
}

/* Case-insensitive; words may be plural, one-letter units not. */
static bool is_unit(const char *text, const char *unit)
{
    size_t n = strlen(unit);
    bool is_plural = n > 1 && strcasecmp(text + strnlen(text, n), "s") == 0;
    return strncasecmp(text, unit, n) == 0 && (!text[n] || is_plural);
}

/* The text after now+: "1hour", "30", "2 days", "10s". */
static bool read_count(const char *at, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t s;
    } units[] = {{"", 1}, {"s", 1}, {"sec", 1}, {"second", 1}, {"m", 60}, {"min", 60},
        {"minute", 60}, {"h", 3600}, {"hr", 3600}, {"hour", 3600}, {"d", 86400}, {"day", 86400},
        {"w", 604800}, {"week", 604800}};
    int64_t count = 0;
    int digits = 0;
    for (; *at >= '0' && *at <= '9' && count < COUNT_MAX; at++, digits++)
        count = count * 10 + (*at - '0');
    at += strspn(at, " ");
    for (size_t k = 0; digits && k < sizeof(units) / sizeof(units[0]); k++)
        if (is_unit(at, units[k].unit)) {
            *ret_ms = SECONDS_MS(count * units[k].s);
            return true;
        }
    return false;
}

/* "16:00", "4:30:15PM"; sets the time in tm. */
static bool read_time(const char *at, struct tm *tm)
{
    int hour, rest[2] = {0, 0};
    if (!read_digits(&at, 1, 2, &hour) || *at++ != ':' || !read_parts(&at, 1, ':', &rest[0]))
        return false;
    if (*at == ':') {
        at++;
        if (!read_parts(&at, 1, ':', &rest[1]))
            return false;
    }
    bool am = strcasecmp(at, "am") == 0, pm = strcasecmp(at, "pm") == 0;
    if (am || pm) {
        if (hour < 1 || hour > 12)
            return false;
        hour = hour % 12 + (pm ? 12 : 0);
        at += 2;
    }
    if (*at || hour > 23 || rest[0] > 59 || rest[1] > 59)
        return false;
    tm->tm_hour = hour;
    tm->tm_min = rest[0];
    tm->tm_sec = rest[1];
    return true;
}

static void set_date(struct tm *tm, int year, int month, int day)
{
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
}

/* A date, with a time after its T; sets tm, initially now. */
static bool read_date(const char *text, struct tm *tm)
{
    const char *at = text;
    int year, v[3];
    if (read_digits(&at, 4, 4, &year) && *at == '-') {
        at++;
        if (!read_parts(&at, 2, '-', v))
            return false;
        set_date(tm, year, v[0], v[1]);
        return !*at || (*at == 'T' && read_time(at + 1, tm));
    }
    at = text;
    if (strlen(text) == 6 && read_digits(&at, 2, 2, &v[0]) && read_digits(&at, 2, 2, &v[1]) &&
        read_digits(&at, 2, 2, &v[2])) {
        set_date(tm, 2000 + v[2], v[0], v[1]);
        return true;
    }
    at = text;
    if (!read_parts(&at, 2, '/', v))
        return false;
    set_date(tm, tm->tm_year + 1900, v[0], v[1]);
    if (!*at)
        return true;
    at++;
    if (at[-1] != '/' || !read_digits(&at, 2, 2, &v[2]) || *at)
        return false;
    set_date(tm, 2000 + v[2], v[0], v[1]);
    return true;
}

/* Whether the text is a time of the day; sets the time in tm. */
static bool is_time_of_day(const char *text, struct tm *tm)
{
    if (strcasecmp(text, "midnight") == 0)
        return read_time("00:00", tm);
    if (strcasecmp(text, "noon") == 0)
        return read_time("12:00", tm);
    return read_time(text, tm);
}

static bool parse(const char *text, struct wall now, struct wall *ret_at)
{
    time_t now_s = (time_t)(now.ms / 1000);
    struct tm tm;
    int64_t ms;
    if (strncasecmp(text, "now", 3) == 0) {
        const char *at = text + 3 + strspn(text + 3, " ");
        bool counts = *at == '+' && read_count(at + 1 + strspn(at + 1, " "), &ms);
        ret_at->ms = now.ms + (counts ? ms : 0);
        return counts || !text[3];
    }
    if (!localtime_r(&now_s, &tm))
        return false;
    if (is_time_of_day(text, &tm)) {
        if (!from_local(&tm, ret_at))
            return false;
        if (ret_at->ms > now.ms)
            return true;
        struct tm next = tm;
        next.tm_mday++;
        next.tm_hour = 12; /* noon exists on every day */
        next.tm_isdst = -1;
        if (mktime(&next) == (time_t)-1)
            return false;
        next.tm_hour = tm.tm_hour;
        next.tm_min = tm.tm_min;
        next.tm_sec = tm.tm_sec;
        return from_local(&next, ret_at);
    }
    if (strcasecmp(text, "today") == 0) {
        *ret_at = now;
        return true;
    }
    if (strcasecmp(text, "tomorrow") == 0) {
        tm.tm_mday++;
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        tm.tm_isdst = -1;
        time_t t = mktime(&tm);
        ret_at->ms = SECONDS_MS(t);
        return t != (time_t)-1;
    }
    return read_date(text, &tm) && from_local(&tm, ret_at);
}

/* also: what else the option accepts, for the error */
static int parse_as(
    const char *text, struct wall now, const char *also, struct wall *ret_at, struct err *e)
{
    char shown[STR_SHOW_MAX];
    struct wall at;
    if (!parse(text, now, &at) && time_parse_iso(text, &at, NULL) != 0)
        return err_set(e, ERR_INVALID,
            "expected a time such as now+1hour, now+90s, 16:00, tomorrow, 2026-12-01, "
            "2026-12-01T10:00, or with Z appended in UTC%s, found %s",
            also, str_show(text, shown));
    if (at.ms < now.ms || at.ms - now.ms > AHEAD_MAX_MS)
        return err_set(e, ERR_INVALID, "%s %s", str_show(text, shown),
            at.ms < now.ms ? "has passed" : "is more than ten years ahead");
    *ret_at = at;
    return 0;
}

int begin_parse(const char *text, struct wall now, struct wall *ret_at, struct err *e)
{
    return parse_as(text, now, "", ret_at, e);
}

int begin_parse_finish(const char *text, struct wall now, struct wall *ret_at, struct err *e)
{
    return parse_as(text, now, ", or +8h from now", ret_at, e);
}
