/* SPDX-License-Identifier: Apache-2.0 */
#include "job/calendar.h"

#include "base/mem.h"
#include "base/str.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400
#define DATE_LEN 10 /* "2026-12-25" */

static int64_t floor_day(int64_t local_s)
{
    return (local_s >= 0 ? local_s : local_s - DAY_S + 1) / DAY_S;
}

/* Days since 1970-01-01; http://howardhinnant.github.io/date_algorithms.html, days_from_civil. */
static int32_t number_of(int year, int month, int day)
{
    int y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int two(const char *p)
{
    return (p[0] - '0') * 10 + p[1] - '0';
}

/* False if the DATE_LEN bytes at text are not a day from 1970 to 2199. */
static bool parse_day(const char *text, int32_t *ret_day)
{
    char back[CALENDAR_TEXT_MAX];
    for (int k = 0; k < DATE_LEN; k++)
        if (k == 4 || k == 7 ? text[k] != '-' : !isdigit((unsigned char)text[k]))
            return false;
    int year = two(text) * 100 + two(text + 2), month = two(text + 5), day = two(text + 8);
    if (year < 1970 || year > 2199 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    *ret_day = number_of(year, month, day);
    calendar_format(*ret_day, back);
    return strncmp(back, text, DATE_LEN) == 0; /* not 30 February */
}

int calendar_parse(const char *text, struct calendar_days *ret_days, struct err *e)
{
    size_t n = strlen(text);
    char shown[STR_SHOW_MAX];
    struct calendar_days d;
    bool is_range = n == 2 * DATE_LEN + 2 && strncmp(text + DATE_LEN, "..", 2) == 0;
    bool good = (n == DATE_LEN || is_range) && parse_day(text, &d.first);
    d.last = good ? d.first : 0;
    if (good && is_range)
        good = parse_day(text + DATE_LEN + 2, &d.last) && d.last >= d.first;
    if (!good)
        return err_set(e, ERR_INVALID,
            "expected a day such as 2026-12-25, or a range such as 2026-12-24..2027-01-02, found "
            "%s",
            str_show(text, shown));
    *ret_days = d;
    return 0;
}

int32_t calendar_day(const struct time_zone *z, struct wall at)
{
    int64_t s = at.ms / 1000;
    return (int32_t)floor_day(s + zone_offset_s(z, s));
}

struct wall calendar_begin(const struct time_zone *z, int32_t day)
{
    return (struct wall){zone_from_local_s(z, (int64_t)day * DAY_S) * 1000};
}

void calendar_format(int32_t day, char out[CALENDAR_TEXT_MAX])
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){(int64_t)day * DAY_S * 1000}, iso);
    snprintf(out, CALENDAR_TEXT_MAX, "%.10s", iso);
}

void calendar_format_days(const struct calendar_days *d, char out[CALENDAR_TEXT_MAX])
{
    char last[CALENDAR_TEXT_MAX];
    calendar_format(d->first, out);
    if (d->last == d->first)
        return;
    calendar_format(d->last, last);
    snprintf(out + DATE_LEN, CALENDAR_TEXT_MAX - DATE_LEN, "..%.10s", last);
}

static int by_first(const void *a, const void *b)
{
    int32_t x = ((const struct calendar_days *)a)->first,
            y = ((const struct calendar_days *)b)->first;
    return (x > y) - (x < y);
}

void calendar_normalize(struct calendar *c)
{
    size_t n = 0;
    if (c->n == 0)
        return;
    qsort(c->days, c->n, sizeof *c->days, by_first);
    for (size_t k = 1; k < c->n; k++) {
        struct calendar_days *last = &c->days[n];
        if (c->days[k].first > last->last + 1)
            c->days[++n] = c->days[k];
        else if (c->days[k].last > last->last)
            last->last = c->days[k].last;
    }
    c->n = n + 1;
}

void calendar_print_list(const struct calendar *c, struct buf *out)
{
    char text[CALENDAR_TEXT_MAX];
    for (size_t k = 0; k < c->n; k++) {
        calendar_format_days(&c->days[k], text);
        buf_printf(out, "%s%s", k > 0 ? "," : "", text);
    }
}

int calendar_read_list(const char *text, struct calendar *c, struct err *e)
{
    size_t n = 1;
    int rc = 0;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    if (n > CALENDAR_DAYS_MAX)
        return err_set(e, ERR_INVALID, "expected at most %d days and ranges of days, found %zu",
            CALENDAR_DAYS_MAX, n);
    struct calendar_days *days = mem_array(n, sizeof *days);
    for (size_t k = 0; rc == 0 && k < n; k++) {
        size_t len = strcspn(text, ",");
        char *item = mem_strndup(text, len);
        rc = calendar_parse(item, &days[k], e);
        free(item);
        text += len + 1;
    }
    if (rc != 0) {
        free(days);
        return rc;
    }
    c->days = days;
    c->n = n;
    return 0;
}

bool calendar_has(const struct calendar *c, int32_t day)
{
    for (size_t k = 0; k < c->n; k++)
        if (day >= c->days[k].first && day <= c->days[k].last)
            return true;
    return false;
}
