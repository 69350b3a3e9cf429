/* SPDX-License-Identifier: Apache-2.0
 *
 * Two clocks, two types. Wall time is milliseconds since 1970-01-01T00:00:00Z: for display,
 * providers and storage. Monotonic time is milliseconds from an arbitrary start: for waits. A wait
 * is never computed from wall time. The absence of a time is TIME_NONE_MS, not 0. Everything that
 * needs the time gets a struct clock, so that the simulator can control it.
 */
#ifndef BELAY_BASE_TIME_H
#define BELAY_BASE_TIME_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct wall {
    int64_t ms;
};
struct mono {
    int64_t ms;
};

#define TIME_NONE_MS INT64_MIN
#define WALL_NONE ((struct wall){TIME_NONE_MS})
#define MONO_NONE ((struct mono){TIME_NONE_MS})
#define SECONDS_MS(s) ((int64_t)(s)*1000)
#define DAY_MS SECONDS_MS(86400)

static inline bool wall_is_set(struct wall w)
{
    return w.ms != TIME_NONE_MS;
}

static inline bool mono_is_set(struct mono m)
{
    return m.ms != TIME_NONE_MS;
}

/* A source of time. ctx belongs to the implementation. */
struct clock {
    struct wall (*wall)(void *ctx);
    struct mono (*mono)(void *ctx);
    void *ctx;
};

static inline struct wall clock_wall(const struct clock *c)
{
    return c->wall(c->ctx);
}

static inline struct mono clock_mono(const struct clock *c)
{
    return c->mono(c->ctx);
}

/* The machine's clocks (CLOCK_REALTIME, CLOCK_MONOTONIC). */
extern const struct clock clock_system;

/* Milliseconds of its monotonic clock. */
static inline int64_t clock_system_ms(void)
{
    return clock_mono(&clock_system).ms;
}

#define TIME_ISO_MAX 32

/* "2026-08-22T12:02:00Z", with milliseconds if they are not 0. Years 1970 to 9999; "-" outside. */
void time_format_iso(struct wall w, char out[TIME_ISO_MAX]);

/* Reads ISO 8601 in UTC: "YYYY-MM-DDTHH:MM:SS[.fff...](Z|+00:00|+0000)"; nothing else is accepted.
 * Years 1970 to 9999, no leap second; digits below a millisecond are cut off. ERR_INVALID. */
int time_parse_iso(const char *text, struct wall *ret_wall, struct err *e);

/* The Gregorian calendar: days from 1970-01-01 to a date in the years 1600 to 9999 (month 1 .. 12,
 * day 1 ..), the reverse, and the number of days of a month. */
int64_t time_days_from_date(int64_t year, int month, int day);
void time_date_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day);
int time_days_of_month(int64_t year, int month);

#define TIME_DURATION_MAX_MS (3650 * 24 * 3600 * (int64_t)1000) /* 10 years */

/* Reads a duration: "90", "500ms", "90s", "10m", "2h", "1d" (bare number = seconds). When slurm is
 * true, a bare number is minutes, and Slurm's "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS"
 * are accepted too; as in Slurm the parts are added up, whatever their size ("0-36" is "1-12").
 * Range 0 .. TIME_DURATION_MAX_MS. ERR_INVALID. */
int time_parse_duration(const char *text, bool slurm, int64_t *ret_ms, struct err *e);

/* "1d02h", "3h05m", "4m10s", "12.3s", "12s", "250ms": at most two units, for people. Smaller units
 * are cut off, never rounded up. Negative: "-4m10s"; "-" for TIME_NONE_MS. */
void time_format_duration(int64_t ms, char *out, size_t size);
/* Exactly, as people write it: "1d", "90s", "500ms". The largest unit of which it is a multiple. */
#define TIME_EXACT_MAX 32
void time_format_exact(int64_t ms, char out[TIME_EXACT_MAX]);

#endif
