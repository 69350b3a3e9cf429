/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones as plain tables. PURE: a table lists the offsets from UTC and when each begins.
 * Nothing here reads a clock, a file or the environment: base/tz/system.h loads the machine's
 * tables, a simulation makes its own. A loaded zone does not change, so any thread may read it.
 *
 * "Local seconds" are a zone's clock read as if it were UTC: seconds since 1970-01-01T00:00:00 in
 * that zone.
 */
#ifndef BELAY_BASE_ZONE_H
#define BELAY_BASE_ZONE_H

#include "base/map.h"
#include "base/time.h"
#include <stdbool.h>

#define ZONE_NAME_MAX 64
#define ZONE_SPANS_MAX 4096
#define ZONE_UTC "UTC"
/* Tables cover the whole years 1970 to 2199. The last offset is assumed to stay after that. */
#define ZONE_BEGIN_S ((int64_t)0)
#define ZONE_END_S ((int64_t)7258118400)

/* From from_s to the next span's, the zone's clocks show UTC + offset_s. */
struct zone_span {
    int64_t from_s; /* UTC since 1970, ascending; INT64_MIN in the first */
    /* positive east of Greenwich; less than a day; differs from the span before */
    int32_t offset_s;
};

struct time_zone {
    char name[ZONE_NAME_MAX];
    size_t n; /* >= 1 */
    struct zone_span *spans;
};

/* The index of the span that at_s is in. */
size_t zone_span_at(const struct time_zone *z, int64_t at_s);
int32_t zone_offset_s(const struct time_zone *z, int64_t at_s);

/* The moment at which the zone's clocks show local_s: the first, if there are two; the moment of
 * the jump, if clocks skipped it. */
int64_t zone_from_local_s(const struct time_zone *z, int64_t local_s);

/* "2026-10-25T02:30:00+01:00"; "-" outside the years 1970 to 9999. */
#define ZONE_TIME_MAX 40
void zone_format(const struct time_zone *z, struct wall at, char out[ZONE_TIME_MAX]);

/* Whether text has the form of a zone name: parts of letters, digits, '_', '+' and '-' separated by
 * '/', starting with a letter or '_', shorter than ZONE_NAME_MAX. */
bool zone_is_name(const char *text, size_t n);

/* ---- a set of zones ---- */

/* A loader of tables. Fills *ret_zone; the caller frees its spans. ERR_NOT_FOUND: no such zone;
 * ERR_IO: no tables at all except UTC. May block to read a file or two. */
struct zone_source {
    int (*load)(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e);
    void *ctx;
};

/* A cache of the zones requested so far, and UTC. A zeroed set has no source: only UTC. */
struct zones {
    struct smap by_name;
    const struct zone_source *source; /* borrowed; NULL for only UTC */
};

void zones_deinit(struct zones *z);
/* Borrowed until zones_deinit. Each name is loaded from the source once. ERR_INVALID: not a zone
 * name; else the source's error. */
int zones_load(struct zones *z, const char *name, const struct time_zone **ret_zone, struct err *e);

extern const struct time_zone zone_utc;

#endif
