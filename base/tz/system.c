/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tz/system.h"

#include "base/mem.h"
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_S ((int64_t)7 * 86400)

/* The directory in which GLib looks up time zones. */
static const char *directory(void)
{
    const char *given = getenv("TZDIR");
    return given && given[0] ? given : "/usr/share/zoneinfo";
}

/* GLib also accepts POSIX rules as names, so "Lindon1" would be a zone: require a file of that
 * name. */
static int check_exists(const char *name, struct err *e)
{
    char *file = mem_printf("%s/%s", directory(), name), *root = mem_printf("%s/Etc", directory());
    int rc = 0;
    if (access(root, F_OK) != 0)
        rc = err_set(e, ERR_IO,
            "this machine has no time zones except UTC (%s is empty): install tzdata", directory());
    else if (access(file, R_OK) != 0)
        rc = err_set(e, ERR_NOT_FOUND,
            "there is no time zone '%s' on this machine; expected a name such as Europe/Berlin",
            name);
    free(root);
    free(file);
    return rc;
}

static int interval_at(GTimeZone *tz, int64_t at_s)
{
    return g_time_zone_find_interval(tz, G_TIME_TYPE_UNIVERSAL, at_s);
}

/* The first second after from_s that is in another interval; limit_s if none is before limit_s. */
static int64_t interval_end(GTimeZone *tz, int64_t from_s, int64_t limit_s)
{
    int here = interval_at(tz, from_s);
    int64_t low = from_s, high = from_s;
    for (int64_t step = STEP_S; high < limit_s && interval_at(tz, high) == here; step *= 2) {
        low = high;
        high = limit_s - high > step ? high + step : limit_s;
    }
    if (interval_at(tz, high) == here)
        return limit_s;
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        *(interval_at(tz, mid) == here ? &low : &high) = mid;
    }
    return high;
}

static int load(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e)
{
    (void)ctx;
    int rc = check_exists(name, e);
    if (rc)
        return rc;
    GTimeZone *tz = g_time_zone_new_identifier(name);
    if (!tz)
        return err_set(e, ERR_NOT_FOUND,
            "there is no time zone '%s' on this machine; expected a name such as Europe/Berlin",
            name);
    struct time_zone z = {0};
    for (int64_t at_s = ZONE_BEGIN_S; at_s < ZONE_END_S && z.n < ZONE_SPANS_MAX;
         at_s = interval_end(tz, at_s, ZONE_END_S)) {
        int32_t offset_s = g_time_zone_get_offset(tz, interval_at(tz, at_s));
        if (z.n > 0 && z.spans[z.n - 1].offset_s == offset_s)
            continue; /* the interval has another name but the same offset */
        z.spans = mem_resize(z.spans, z.n + 1, sizeof *z.spans);
        z.spans[z.n] =
            (struct zone_span){.from_s = z.n > 0 ? at_s : INT64_MIN, .offset_s = offset_s};
        z.n++;
    }
    g_time_zone_unref(tz);
    *ret_zone = z;
    return 0;
}

const struct zone_source zone_source_system = {.load = load};
