/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/reservations/reservation_request.h"

#include "base/names.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define WHO_MAX 16 /* users, and teams, of a reservation */

static void read_who(struct json_reader *r, const char *key, char out[MAINTENANCE_WHO_MAX])
{
    const json_t *list = json_opt_array(r, key, WHO_MAX), *item;
    size_t i, n = 0;
    out[0] = '\0';
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        if (!text || !str_is_name(text, CORE_NAME_MAX - 1) ||
            n + strlen(text) + 2 > MAINTENANCE_WHO_MAX) {
            json_reader_fail(r, key, "expected names, of %d bytes together", MAINTENANCE_WHO_MAX);
            return;
        }
        n += (size_t)snprintf(out + n, MAINTENANCE_WHO_MAX - n, "%s%s", n > 0 ? "," : "", text);
    }
}

static void read_from(struct json_reader *r, struct wall now, struct wall *ret_from)
{
    const char *text = json_opt_str(r, "from", TIME_ISO_MAX, NULL);
    struct err why;
    *ret_from = now;
    if (r->rc == 0 && text && time_parse_iso(text, ret_from, &why) != 0)
        json_reader_fail(r, "from", "%s", why.text);
}

int reservation_request_parse(const json_t *body, struct zones *zones, struct wall now,
    struct maintenance_row *ret_row, struct err *e)
{
    static const char *const everies[] = {"never", "week", NULL};
    struct maintenance_row read = {0}, *row = &read;
    struct json_reader r;
    struct err why;
    const struct time_zone *zone;
    char nodes[4 * HOSTS_TEXT_MAX];
    json_reader_init(&r, body, "reservation", e);
    json_req_strcpy(&r, "name", row->name, sizeof(row->name));
    json_opt_strcpy(&r, "nodes", nodes, sizeof(nodes), "");
    json_opt_strcpy(&r, "pool", row->pool, sizeof(row->pool), "");
    read_from(&r, now, &row->from_at);
    row->for_ms = json_req_i64(&r, "for_ms", MAINTENANCE_MIN_MS, MAINTENANCE_AHEAD_MAX_MS);
    row->is_weekly = json_opt_enum(&r, "every", everies, 0) == 1;
    json_opt_strcpy(&r, "zone", row->zone, sizeof(row->zone), ZONE_UTC);
    json_opt_strcpy(&r, "reason", row->reason, sizeof(row->reason), "");
    if (r.rc == 0 && str_has_control(row->reason))
        json_reader_fail(
            &r, "reason", "must not contain control characters or marks of text direction");
    read_who(&r, "users", row->users);
    read_who(&r, "teams", row->teams);
    if (r.rc == 0 && nodes[0] && hosts_fold(nodes, row->nodes, &why) != 0)
        json_reader_fail(&r, "nodes", "%s", why.text);
    if (r.rc == 0 && zones_load(zones, row->zone, &zone, &why) != 0)
        json_reader_fail(&r, "zone",
            "there is no time zone %s on belayd's machine; names are as Europe/Berlin, or UTC",
            str_show(row->zone, (char[STR_SHOW_MAX]){0}));
    int rc = json_reader_finish(&r);
    if (rc == 0)
        *ret_row = read;
    return rc;
}
