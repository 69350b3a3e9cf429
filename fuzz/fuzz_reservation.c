/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a request for a reservation: values within their limits, or an error and none. The
 * core checks the name.
 */
#include "base/names.h"
#include "fuzz/check.h"
#include "scheduler/api/reservations/reservation_request.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS 1796000000000LL

static void check_names(const char *list)
{
    char name[CORE_NAME_MAX];
    assert(strlen(list) < MAINTENANCE_WHO_MAX);
    for (const char *at = list; names_next(&at, name, sizeof(name));)
        assert(str_is_name(name, CORE_NAME_MAX - 1) && names_has(list, name));
}

static void check_row(const struct maintenance_row *r, struct zones *zones)
{
    const struct time_zone *zone;
    char folded[HOSTS_TEXT_MAX];
    struct err e;
    assert(r->state == MAINTENANCE_PLANNED && r->id == 0 && !r->by[0]);
    assert(r->for_ms >= MAINTENANCE_MIN_MS && r->for_ms <= MAINTENANCE_AHEAD_MAX_MS);
    assert(wall_is_set(r->from_at));
    assert(!r->nodes[0] || hosts_fold(r->nodes, folded, &e) == 0);
    assert(!r->nodes[0] || str_eq(r->nodes, folded));
    assert(zones_load(zones, r->zone, &zone, &e) == 0);
    assert(str_is_utf8(r->reason, strlen(r->reason)));
    check_names(r->users);
    check_names(r->teams);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zones zones = {0}; /* only UTC */
    struct maintenance_row row;
    struct err e = {0};
    json_t *body;
    if (json_parse((const char *)data, size, RESERVATION_REQUEST_BYTES_MAX, &body, &e) != 0)
        return 0;
    memset(&row, CHECK_PATTERN, sizeof(row));
    int rc = reservation_request_parse(body, &zones, (struct wall){NOW_MS}, &row, &e);
    json_decref(body);
    if (rc == 0) {
        check_row(&row, &zones);
    } else {
        check_error(rc, &e);
        check_untouched(&row, sizeof(row));
    }
    zones_deinit(&zones);
    return 0;
}
