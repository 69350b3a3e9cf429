/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400

const struct time_zone zone_utc = {
    .name = ZONE_UTC, .n = 1, .spans = (struct zone_span[]){{.from_s = INT64_MIN, .offset_s = 0}}};

size_t zone_span_at(const struct time_zone *z, int64_t at_s)
{
    size_t low = 0, high = z->n; /* spans[low].from_s <= at_s < spans[high].from_s */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (z->spans[mid].from_s <= at_s)
            low = mid;
        else
            high = mid;
    }
    return low;
}

int32_t zone_offset_s(const struct time_zone *z, int64_t at_s)
{
    return z->spans[zone_span_at(z, at_s)].offset_s;
}

int64_t zone_from_local_s(const struct time_zone *z, int64_t local_s)
{
    /* Offsets are less than a day, so no span that ends earlier can contain local_s. */
    for (size_t k = zone_span_at(z, local_s - DAY_S); k < z->n; k++) {
        int64_t at_s = local_s - z->spans[k].offset_s;
        if (k + 1 < z->n && at_s >= z->spans[k + 1].from_s)
            continue;
        return at_s > z->spans[k].from_s ? at_s : z->spans[k].from_s;
    }
    assert(false); /* the last span has no end */
    return local_s;
}

void zone_format(const struct time_zone *z, struct wall at, char out[ZONE_TIME_MAX])
{
    char iso[TIME_ISO_MAX];
    int32_t offset_s = wall_is_set(at) ? zone_offset_s(z, at.ms / 1000) : 0;
    int east_min = abs(offset_s) / 60;
    time_format_iso(
        (struct wall){at.ms < 0 ? at.ms : at.ms / 1000 * 1000 + SECONDS_MS(offset_s)}, iso);
    size_t n = strlen(iso);
    if (n > 1 && offset_s != 0)
        snprintf(out, ZONE_TIME_MAX, "%.*s%c%02d:%02d", (int)n - 1, iso, offset_s < 0 ? '-' : '+',
            east_min / 60 % 24, east_min % 60);
    else
        str_copy(out, ZONE_TIME_MAX, iso);
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-';
}

bool zone_is_name(const char *text, size_t n)
{
    if (n == 0 || n >= ZONE_NAME_MAX || text[0] == '-' || text[0] == '+' ||
        (text[0] >= '0' && text[0] <= '9'))
        return false;
    for (size_t k = 0; k < n; k++)
        if (text[k] == '/' ? k == 0 || k + 1 == n || text[k - 1] == '/' : !is_name_char(text[k]))
            return false;
    return true;
}

void zones_deinit(struct zones *z)
{
    const char *name;
    struct time_zone *each;
    for (size_t pos = 0; (each = smap_next(&z->by_name, &pos, &name)) != NULL;) {
        free(each->spans);
        free(each);
    }
    smap_deinit(&z->by_name);
}

int zones_load(struct zones *z, const char *name, const struct time_zone **ret_zone, struct err *e)
{
    char shown[STR_SHOW_MAX];
    struct time_zone got = {0};
    if (!zone_is_name(name, strlen(name)))
        return err_set(e, ERR_INVALID,
            "expected a time zone such as Europe/Berlin or UTC, found %s", str_show(name, shown));
    if (str_eq(name, ZONE_UTC)) {
        *ret_zone = &zone_utc;
        return 0;
    }
    const struct time_zone *known = smap_get(&z->by_name, name);
    if (known) {
        *ret_zone = known;
        return 0;
    }
    if (!z->source)
        return err_set(e, ERR_NOT_FOUND, "unknown time zone '%s': only UTC is available", name);
    int rc = z->source->load(z->source->ctx, name, &got, e);
    if (rc)
        return rc;
    STR_COPY(got.name, name);
    struct time_zone *kept = mem_dup(&got, sizeof got);
    smap_put(&z->by_name, kept->name, kept);
    *ret_zone = kept;
    return 0;
}
