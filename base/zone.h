/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones as plain tables. PURE: a table says which offset from UTC holds from when on; where it
 * comes from is somebody else's matter (base/tz/system.h reads those of the machine, a simulation
 * makes some up), and nothing here looks at a clock, a file or the environment. A zone does not
 * change after it was added, so it may be read from any thread then.
 *
 * "Local seconds" are a zone's clock read as if it were UTC: seconds since 1970-01-01T00:00:00 of
 * its own.
 */
#ifndef BELAY_BASE_ZONE_H
#define BELAY_BASE_ZONE_H

#include "base/map.h"
#include "base/time.h"
#include <stdbool.h>

#define ZONE_NAME_MAX 64
#define ZONE_SPANS_MAX 4096
#define ZONE_UTC "UTC"
/* Tables reach so far: the whole years 1970 to 2199. Later the last offset is taken to stay. */
#define ZONE_BEGIN_S ((int64_t)0)
#define ZONE_END_S ((int64_t)7258118400)

/* From this moment to the next span's, what the zone's clocks show is UTC + offset_s. */
struct zone_span {
    int64_t from_s;   /* since 1970, UTC; INT64_MIN in the first, ascending */
    int32_t offset_s; /* east of Greenwich is positive; within a day; not that of the span before */
};

struct time_zone {
    char name[ZONE_NAME_MAX];
    size_t n; /* >= 1 */
    struct zone_span *spans;
};

/* The index of the span that at_s is in. */
size_t zone_span_at(const struct time_zone *z, int64_t at_s);
int32_t zone_offset_s(const struct time_zone *z, int64_t at_s);

/* The moment at which the zone's clocks show this: of two the first; of none (they were put forward
 * over it) the moment at which that was done. */
int64_t zone_from_local_s(const struct time_zone *z, int64_t local_s);

/* "2026-10-25T02:30:00+01:00"; "-" outside of the years 1970 to 9999. */
#define ZONE_TIME_MAX 40
void zone_format(const struct time_zone *z, struct wall at, char out[ZONE_TIME_MAX]);

/* May this be the name of a zone: parts of letters, digits, '_', '+' and '-' with '/' between them,
 * the first of all a letter or '_', shorter than ZONE_NAME_MAX. */
bool zone_is_name(const char *text, size_t n);

/* ---- a set of them ---- */

/* Where tables come from. Fills *ret_zone; its spans are the caller's to free. ERR_NOT_FOUND: there
 * is no such zone; ERR_IO: there is none of any name, but UTC. May block for a file or two. */
struct zone_source {
    int (*load)(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e);
    void *ctx;
};

/* Those that were asked for so far, and UTC. A zeroed one has no source: only UTC. */
struct zones {
    struct smap by_name;
    const struct zone_source *source; /* borrowed; NULL: only UTC */
};

void zones_deinit(struct zones *z);
/* Borrowed until zones_deinit. A name is read from the source once. ERR_INVALID: no name at all;
 * else as the source says. */
int zones_load(struct zones *z, const char *name, const struct time_zone **ret_zone, struct err *e);

extern const struct time_zone zone_utc;

#endif
