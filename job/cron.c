/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the next moment visits the zone's spans in order (base/zone.h). Within a span,
 * local time differs from UTC by a constant, so only the date and the minute of day matter.
 */
#include "job/cron.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define DAY_S ((int64_t)86400)
#define ALL_HOURS ((uint32_t)0xFFFFFF)
#define NONE_S INT64_MAX

const char *const cron_gap_names[] = {"run", "skip", NULL};
const char *const cron_twice_names[] = {"auto", "first", "last", "both", NULL};

/* ---- reading ---- */

struct field {
    const char *what;
    int min, max;
    const char *const *names; /* names of min, min + 1, ...; NULL if values have no names */
};

static const char *const month_names[] = {
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, N_FIELDS };
static const struct field fields[N_FIELDS] = {
    [MINUTE] = {"minute", 0, 59, NULL},
    [HOUR] = {"hour", 0, 23, NULL},
    [DAY] = {"day of the month", 1, 31, NULL},
    [MONTH] = {"month", 1, 12, month_names},
    [WEEKDAY] = {"day of the week", 0, 7, weekday_names},
};

static const struct {
    const char *name, *means;
} nicknames[] = {{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"}, {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"}};

struct word {
    const char *p;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct word next_word(const char **at)
{
    while (is_blank(**at))
        (*at)++;
    struct word w = {.p = *at};
    while (**at && !is_blank(**at))
        (*at)++;
    w.n = (size_t)(*at - w.p);
    return w;
}

static bool word_is(struct word w, const char *text)
{
    return strlen(text) == w.n && strncasecmp(text, w.p, w.n) == 0;
}

static const char *show(struct word w, char out[STR_SHOW_MAX])
{
    char text[STR_SHOW_MAX];
    size_t n = w.n < sizeof text - 1 ? w.n : sizeof text - 1;
    memcpy(text, w.p, n);
    text[n] = '\0';
    return str_show(text, out);
}

static int refuse(const struct field *f, struct word w, const char *why, struct err *e)
{
    char shown[STR_SHOW_MAX];
    return err_set(e, ERR_INVALID,
        "%s: %s: expected %d-%d%s%s%s, `*`, a-b, */n or a-b/n, or a list of them with commas: %s",
        f->what, show(w, shown), f->min, f->max, f->names ? " or " : "",
        f->names == month_names ? "jan-dec" : "", f->names == weekday_names ? "sun-sat" : "", why);
}

/* Reads a number or a name. False, with *at unchanged, if it is neither. */
static bool read_value(const struct field *f, const char **at, const char *end, int *ret_value)
{
    int v = 0, digits = 0;
    const char *p = *at;
    for (; p < end && *p >= '0' && *p <= '9' && digits < 4; p++, digits++)
        v = v * 10 + (*p - '0');
    for (int k = 0; digits == 0 && f->names && f->names[k]; k++)
        if (end - p >= 3 && strncasecmp(p, f->names[k], 3) == 0) {
            v = f->min + k;
            p += 3;
            digits = 3;
        }
    if (digits == 0)
        return false;
    *at = p;
    *ret_value = v;
    return true;
}

/* Parses one element of a list and sets its bits. */
static int read_element(
    const struct field *f, struct word all, struct word w, uint64_t *bits, struct err *e)
{
    const char *at = w.p, *end = w.p + w.n;
    int from = f->min, to = f->max, step = 1;
    bool range = at < end && *at == '*';
    if (range) {
        at++;
        to = f->names == weekday_names ? 6 : to;
    } else if (!read_value(f, &at, end, &from)) {
        return refuse(f, all, w.n ? "this is not a number" : "an element is empty", e);
    } else if (at < end && *at == '-') {
        at++;
        range = true;
        if (!read_value(f, &at, end, &to))
            return refuse(f, all, "the range has no end", e);
    } else {
        to = from;
    }
    if (from < f->min || from > f->max || to < f->min || to > f->max)
        return refuse(f, all, "out of range", e);
    if (from > to)
        return refuse(f, all, "the range goes backwards", e);
    if (at < end && *at == '/') {
        at++;
        if (!range)
            return refuse(f, all, "a step needs a range, as 5-59/10 or */10", e);
        if (!read_value(&(struct field){.min = 1, .max = f->max}, &at, end, &step) || step < 1 ||
            step > f->max)
            return refuse(f, all, "a step is a number from 1 to the greatest value", e);
    }
    if (at != end)
        return refuse(f, all, "something follows that is not understood", e);
    for (int v = from; v <= to; v += step)
        *bits |= (uint64_t)1 << v;
    return 0;
}

static int read_field(const struct field *f, struct word w, uint64_t *ret_bits, struct err *e)
{
    uint64_t bits = 0;
    for (const char *p = w.p, *end = w.p + w.n;;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        int rc =
            read_element(f, w, (struct word){p, (size_t)((comma ? comma : end) - p)}, &bits, e);
        if (rc)
            return rc;
        if (!comma)
            break;
        p = comma + 1;
    }
    *ret_bits = bits;
    return 0;
}

/* True if no scheduled month has a scheduled day: 30 February. Where a day of the week is an
 * alternative (both is false), a date always exists. */
static bool never_matches(const struct cron *c)
{
    for (int month = 1; c->both && month <= 12; month++)
        for (int day = 1; c->months >> month & 1 && day <= time_days_of_month(2000, month); day++)
            if (c->days >> day & 1)
                return false;
    return c->both;
}

static int read_fields(const char *text, struct cron *c, struct err *e)
{
    struct word words[N_FIELDS];
    const char *at = text;
    uint64_t bits[N_FIELDS];
    size_t n = 0;
    char shown[STR_SHOW_MAX];
    for (struct word w; (w = next_word(&at)).n > 0; n++)
        if (n < N_FIELDS)
            words[n] = w;
    if (n != N_FIELDS)
        return err_set(e, ERR_INVALID,
            "expected the 5 fields minute, hour, day of the month, month and day of the week, or "
            "@daily, found %zu in %s",
            n, str_show(text, shown));
    for (int k = 0; k < N_FIELDS; k++) {
        int rc = read_field(&fields[k], words[k], &bits[k], e);
        if (rc)
            return rc;
    }
    c->minutes = bits[MINUTE];
    c->hours = (uint32_t)bits[HOUR];
    c->days = (uint32_t)bits[DAY];
    c->months = (uint16_t)bits[MONTH];
    c->weekdays = (uint8_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7F);
    c->both = words[DAY].p[0] == '*' || words[WEEKDAY].p[0] == '*';
    if (never_matches(c))
        return err_set(e, ERR_INVALID,
            "day of the month: %s never comes: no month that is named has such a day",
            show(words[DAY], shown));
    return 0;
}

static int read_nickname(struct word w, struct cron *c, struct err *e)
{
    char shown[STR_SHOW_MAX];
    for (size_t k = 0; k < sizeof nicknames / sizeof nicknames[0]; k++)
        if (word_is(w, nicknames[k].name))
            return read_fields(nicknames[k].means, c, e);
    if (word_is(w, "@reboot"))
        return err_set(
            e, ERR_INVALID, "@reboot is no time: submit such a job when the machine starts");
    return err_set(e, ERR_INVALID,
        "expected @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually, found %s",
        show(w, shown));
}

/* Reads "TZ=Europe/Berlin " and the like; *at moves past it. */
static int read_zone(const char **at, struct cron *c, struct err *e)
{
    const char *p = *at;
    char shown[STR_SHOW_MAX];
    struct word w = next_word(&p);
    size_t skip = w.n >= 3 && memcmp(w.p, "TZ=", 3) == 0        ? 3
                  : w.n >= 8 && memcmp(w.p, "CRON_TZ=", 8) == 0 ? 8
                                                                : 0;
    if (skip == 0)
        return 0;
    w.p += skip;
    w.n -= skip;
    if (!zone_is_name(w.p, w.n))
        return err_set(e, ERR_INVALID, "time zone: expected a name such as Europe/Berlin, found %s",
            show(w, shown));
    memcpy(c->zone, w.p, w.n);
    *at = p;
    return 0;
}

int cron_parse(const char *text, struct cron *ret_cron, struct err *e)
{
    struct cron c = {0};
    const char *at = text;
    if (strlen(text) >= CRON_TEXT_MAX)
        return err_set(
            e, ERR_INVALID, "expected a schedule of less than %d characters", CRON_TEXT_MAX);
    int rc = read_zone(&at, &c, e);
    if (rc)
        return rc;
    const char *first = at;
    struct word w = next_word(&at);
    bool nickname = w.n > 0 && w.p[0] == '@';
    if (nickname && next_word(&at).n > 0)
        return err_set(e, ERR_INVALID, "nothing may follow a name such as @daily");
    rc = nickname ? read_nickname(w, &c, e) : read_fields(first, &c, e);
    if (rc)
        return rc;
    *ret_cron = c;
    return 0;
}

/* ---- the next moment ---- */

static bool is_day(const struct cron *c, int64_t days, int day)
{
    int weekday = (int)(((days + 4) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
    bool in_month = c->days >> day & 1, in_week = c->weekdays >> weekday & 1;
    return c->both ? in_month && in_week : in_month || in_week;
}

/* The first scheduled minute of the day at or after this one; -1 if none. */
static int minute_of_day(const struct cron *c, int from)
{
    for (int hour = from / 60; hour < 24; hour++) {
        uint64_t left =
            c->hours >> hour & 1 ? c->minutes >> (hour == from / 60 ? from % 60 : 0) : 0;
        if (left)
            return hour * 60 + (hour == from / 60 ? from % 60 : 0) + __builtin_ctzll(left);
    }
    return -1;
}

/* The first scheduled minute that begins in from_s .. limit_s - 1, in local seconds; NONE_S if
 * none. */
static int64_t local_next(const struct cron *c, int64_t from_s, int64_t limit_s)
{
    int64_t minute = from_s / 60 + (from_s % 60 > 0); /* rounded up */
    if (from_s < 0)
        minute = -(-from_s / 60);
    int64_t days = minute / 1440 - (minute % 1440 < 0);
    int from = (int)(minute - days * 1440);
    while (days * DAY_S < limit_s) {
        int year, month, day;
        time_date_from_days(days, &year, &month, &day);
        if (!(c->months >> month & 1)) {
            days += time_days_of_month(year, month) - day + 1;
            from = 0;
            continue;
        }
        int found = is_day(c, days, day) ? minute_of_day(c, from) : -1;
        if (found >= 0) {
            int64_t at_s = days * DAY_S + found * 60;
            return at_s < limit_s ? at_s : NONE_S;
        }
        days++;
        from = 0;
    }
    return NONE_S;
}

/* Local seconds of one span: from .. end - 1. Seconds below `again` also occur in the previous
 * span, seconds from `soon` on also in the next. */
struct shown {
    int64_t from, end, again, soon;
};

static struct shown shown_in(const struct time_zone *z, size_t k)
{
    const struct zone_span *s = &z->spans[k];
    struct shown v = {
        .from = k > 0 ? s->from_s + s->offset_s : -DAY_S, .again = INT64_MIN, .soon = NONE_S};
    v.end = (k + 1 < z->n ? s[1].from_s : ZONE_END_S) + s->offset_s;
    if (k > 0 && s[-1].offset_s > s->offset_s)
        v.again = s->from_s + s[-1].offset_s;
    if (k + 1 < z->n && s[1].offset_s < s->offset_s)
        v.soon = s[1].from_s + s[1].offset_s;
    return v;
}

/* The first scheduled minute of the span at or after from_s, in local seconds; NONE_S if none.
 * `twice` selects among minutes that occur in two spans. */
static int64_t next_in(const struct cron *c, struct shown v, enum cron_twice twice, int64_t from_s)
{
    bool all = c->hours == ALL_HOURS;
    bool skip_again = twice == CRON_TWICE_FIRST || (twice == CRON_TWICE_AUTO && !all);
    bool skip_soon = twice == CRON_TWICE_LAST;
    if (skip_again && from_s < v.again)
        from_s = v.again;
    return local_next(c, from_s, skip_soon && v.soon < v.end ? v.soon : v.end);
}

struct wall cron_next(const struct cron *c, const struct time_zone *z, enum cron_gap gap,
    enum cron_twice twice, struct wall after)
{
    int64_t from_s = after.ms / 1000 + 1; /* the first later whole second */
    if (after.ms < 0)
        from_s = 0;
    for (size_t k = zone_span_at(z, from_s); k < z->n; k++) {
        const struct zone_span *s = &z->spans[k];
        struct shown v = shown_in(z, k);
        bool begins = k > 0 && s->from_s >= from_s;
        if (begins && gap == CRON_GAP_RUN && s[-1].offset_s < s->offset_s &&
            local_next(c, s->from_s + s[-1].offset_s, v.from) != NONE_S)
            return (struct wall){SECONDS_MS(s->from_s)};
        int64_t at_s = next_in(c, v, twice, begins ? v.from : from_s + s->offset_s);
        if (at_s != NONE_S)
            return (struct wall){SECONDS_MS(at_s - s->offset_s)};
    }
    return WALL_NONE;
}

struct wall cron_next_minute(const struct time_zone *z, int32_t minute, struct wall after)
{
    const struct cron daily = {.minutes = 1ULL << minute % 60,
        .hours = 1U << minute / 60,
        .days = UINT32_MAX << 1,
        .months = 0x1ffe,
        .weekdays = 0x7f,
        .both = true};
    return cron_next(&daily, z, CRON_GAP_RUN, CRON_TWICE_FIRST, after);
}
