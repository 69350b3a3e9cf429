/* SPDX-License-Identifier: Apache-2.0 */
#include "job/ics.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DATE_LEN 8 /* "20261225" */
#define NAME_MAX_LEN 32

struct reader {
    const char *at, *end;
    int64_t line, next_line; /* of the unfolded line, and behind it */
    struct buf text;         /* the unfolded line */
    char nested[ICS_NESTED_MAX][NAME_MAX_LEN];
    size_t depth;
    bool has_calendar;
    /* of the event that is being read */
    struct calendar_days event;
    int64_t event_line, n_days; /* n_days: of DURATION; 0 = none */
    bool has_start, has_end, is_cancelled;
    struct calendar_days *days;
    size_t n;
    struct err *e;
};

static int fail(const struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(const struct reader *r, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX / 2];
    VFORMAT(text, fmt);
    return err_set(r->e, ERR_INVALID, "line %lld: %s", (long long)r->line, text);
}

/* The next line without its folds, in r->text. False at the end, and after a failure. */
static bool next_line(struct reader *r, int *ret_rc)
{
    *ret_rc = 0;
    buf_clear(&r->text);
    r->line = r->next_line;
    if (r->at == r->end)
        return false;
    do {
        const char *lf = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *stop = lf ? lf : r->end;
        size_t n = (size_t)(stop - r->at);
        n -= n > 0 && r->at[n - 1] == '\r';
        if (memchr(r->at, '\0', n)) {
            *ret_rc = fail(r, "found a byte 0: this is no file of iCalendar");
            return false;
        }
        if (r->text.len + n > ICS_LINE_MAX) {
            *ret_rc = fail(r, "the line is longer than %d bytes", ICS_LINE_MAX);
            return false;
        }
        buf_add(&r->text, r->at, n);
        r->at = lf ? lf + 1 : r->end;
        r->next_line++;
        if (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
            r->at++;
        else
            return true;
    } while (r->at <= r->end);
    return true;
}

/* ---- values ---- */

static int read_date(const struct reader *r, const char *params, const char *value, int32_t *ret)
{
    char iso[CALENDAR_TEXT_MAX], shown[STR_SHOW_MAX];
    struct calendar_days d;
    struct err unused;
    size_t n = strspn(value, "0123456789");
    if (n == DATE_LEN && value[n] == 'T')
        return fail(r, "the event begins or ends at a time of the day (%s): expected whole days",
            str_show(value, shown));
    snprintf(iso, sizeof iso, "%.4s-%.2s-%.2s", value, n == DATE_LEN ? value + 4 : "",
        n == DATE_LEN ? value + 6 : "");
    if (n != DATE_LEN || value[n] != '\0' || calendar_parse(iso, &d, &unused) != 0 ||
        (params[0] && strcasecmp(params, ";VALUE=DATE") != 0))
        return fail(r, "expected a day such as ;VALUE=DATE:20261225, found %s%s%s",
            str_show(params, shown), ":", str_show(value, (char[STR_SHOW_MAX]){0}));
    *ret = d.first;
    return 0;
}

/* "P2D" or "P1W" */
static int read_duration(struct reader *r, const char *value)
{
    char shown[STR_SHOW_MAX];
    struct err unused;
    size_t n = strlen(value);
    char unit = n > 2 ? (char)toupper((unsigned char)value[n - 1]) : '\0';
    char *number = mem_strndup(value + (n > 0), n > 2 ? n - 2 : 0);
    bool good = toupper((unsigned char)value[0]) == 'P' && (unit == 'D' || unit == 'W') &&
                str_to_i64(number, 1, 10000, "days", &r->n_days, &unused) == 0;
    free(number);
    if (!good)
        return fail(
            r, "expected a duration of whole days such as P2D, found %s", str_show(value, shown));
    r->n_days *= unit == 'W' ? 7 : 1;
    return 0;
}

/* ---- events ---- */

static void begin_event(struct reader *r)
{
    r->event = (struct calendar_days){0};
    r->event_line = r->line;
    r->n_days = 0;
    r->has_start = r->has_end = r->is_cancelled = false;
}

static int end_event(struct reader *r)
{
    r->line = r->event_line;
    if (r->is_cancelled)
        return 0;
    if (!r->has_start)
        return fail(r, "the event that begins here has no DTSTART");
    if (r->has_end && r->n_days > 0)
        return fail(r, "the event that begins here has both DTEND and DURATION");
    /* DTEND is the day after the last one. */
    int64_t last = r->has_end ? (int64_t)r->event.last - 1 : r->event.first;
    if (r->n_days > 0)
        last = r->event.first + r->n_days - 1;
    if (last < r->event.first)
        return fail(r, "the event that begins here ends before it begins");
    if (last > CALENDAR_DAY_LAST)
        return fail(r, "the event that begins here ends after 2199");
    if (r->n == CALENDAR_DAYS_MAX)
        return fail(r, "expected at most %d events", CALENDAR_DAYS_MAX);
    r->days[r->n++] = (struct calendar_days){r->event.first, (int32_t)last};
    return 0;
}

static int event_property(struct reader *r, const char *name, const char *params, const char *value)
{
    static const char *const recurrences[] = {
        "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID"};
    bool is_start = strcasecmp(name, "DTSTART") == 0, is_end = strcasecmp(name, "DTEND") == 0;
    for (size_t k = 0; k < sizeof recurrences / sizeof recurrences[0]; k++)
        if (strcasecmp(name, recurrences[k]) == 0)
            return fail(r,
                "the event recurs (%s), which is not read: have the file written with "
                "an event for each day",
                recurrences[k]);
    if ((is_start && r->has_start) || (is_end && r->has_end) ||
        (strcasecmp(name, "DURATION") == 0 && r->n_days > 0))
        return fail(r, "the event has %s twice", name);
    if (is_start) {
        r->has_start = true;
        return read_date(r, params, value, &r->event.first);
    }
    if (is_end) {
        r->has_end = true;
        return read_date(r, params, value, &r->event.last);
    }
    if (strcasecmp(name, "DURATION") == 0)
        return read_duration(r, value);
    if (strcasecmp(name, "STATUS") == 0)
        r->is_cancelled = strcasecmp(value, "CANCELLED") == 0;
    return 0;
}

/* ---- components ---- */

static bool is_in(const struct reader *r, size_t depth, const char *component)
{
    return r->depth == depth && strcasecmp(r->nested[depth - 1], component) == 0;
}

static int begin(struct reader *r, const char *component)
{
    if (r->depth == ICS_NESTED_MAX || strlen(component) >= NAME_MAX_LEN)
        return fail(r, "components are nested deeper than %d, or have a long name", ICS_NESTED_MAX);
    if (r->depth == 0 && strcasecmp(component, "VCALENDAR") != 0)
        return fail(r, "expected BEGIN:VCALENDAR");
    snprintf(r->nested[r->depth++], NAME_MAX_LEN, "%s", component);
    r->has_calendar = true;
    if (is_in(r, 2, "VEVENT"))
        begin_event(r);
    return 0;
}

static int end(struct reader *r, const char *component)
{
    bool is_event = is_in(r, 2, "VEVENT");
    if (r->depth == 0 || strcasecmp(r->nested[r->depth - 1], component) != 0)
        return fail(r, "expected END:%s", r->depth > 0 ? r->nested[r->depth - 1] : "no component");
    r->depth--;
    return is_event ? end_event(r) : 0;
}

/* Where the value begins: behind the first colon that is not quoted. NULL: there is none. */
static char *value_of(char *line)
{
    bool is_quoted = false;
    for (; *line; line++) {
        is_quoted ^= *line == '"';
        if (*line == ':' && !is_quoted)
            return line;
    }
    return NULL;
}

static int read_line(struct reader *r)
{
    char name[NAME_MAX_LEN], shown[STR_SHOW_MAX];
    char *line = r->text.data;
    size_t n = strcspn(line, ";:");
    char *value = value_of(line);
    if (!value || n == 0)
        return fail(r, "expected NAME:VALUE, found %s", str_show(line, shown));
    *value++ = '\0';
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), line);
    if (strcasecmp(name, "BEGIN") == 0)
        return begin(r, value);
    if (strcasecmp(name, "END") == 0)
        return end(r, value);
    if (r->depth == 0)
        return fail(r, "expected BEGIN:VCALENDAR, found %s", str_show(name, shown));
    return is_in(r, 2, "VEVENT") ? event_property(r, name, line + n, value) : 0;
}

int ics_read(const char *data, size_t n, struct calendar *c, struct err *e)
{
    struct reader r = {.at = data, .end = data + n, .next_line = 1, .e = e};
    int rc = 0;
    if (n > ICS_BYTES_MAX)
        return err_set(e, ERR_INVALID, "expected at most %d bytes, found %zu", ICS_BYTES_MAX, n);
    r.days = mem_array(CALENDAR_DAYS_MAX, sizeof *r.days);
    while (rc == 0 && next_line(&r, &rc))
        if (r.text.len > 0)
            rc = read_line(&r);
    if (rc == 0 && r.depth > 0)
        rc = fail(&r, "the file ends before END:%s", r.nested[r.depth - 1]);
    if (rc == 0 && !r.has_calendar)
        rc = fail(&r, "the file is empty: expected BEGIN:VCALENDAR");
    if (rc == 0 && r.n == 0)
        rc = fail(&r, "the file has no events of whole days");
    buf_deinit(&r.text);
    if (rc != 0) {
        free(r.days);
        return rc;
    }
    c->days = r.days;
    c->n = r.n;
    calendar_normalize(c);
    return 0;
}
