/* SPDX-License-Identifier: Apache-2.0
 *
 * cron_times: for each line "ZONE GAP TWICE FROM TO EXPRESSION" on stdin, prints a line with the
 * scheduled times later than FROM and up to TO, in seconds, separated by blanks. For
 * test_cron_calendar.py.
 */
#include "job/cron.h"
#include "base/str.h"
#include "base/tz/system.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int name_at(const char *const *names, const char *name)
{
    int k = 0;
    while (names[k] && !str_eq(names[k], name))
        k++;
    return k;
}

static int answer(struct zones *zones, char *line, struct err *e)
{
    const struct time_zone *z;
    struct cron c;
    char *save, *zone = strtok_r(line, " ", &save), *gap = strtok_r(NULL, " ", &save),
                *twice = strtok_r(NULL, " ", &save);
    char *from = strtok_r(NULL, " ", &save), *to = strtok_r(NULL, " ", &save),
         *text = strtok_r(NULL, "\n", &save);
    if (!text)
        return err_set(e, ERR_INVALID, "a line is too short");
    int rc = zones_load(zones, zone, &z, e);
    if (!rc)
        rc = cron_parse(text, &c, e);
    if (rc)
        return rc;
    struct wall at = {SECONDS_MS(strtoll(from, NULL, 10))},
                end = {SECONDS_MS(strtoll(to, NULL, 10))};
    for (;;) {
        at = cron_next(&c, z, (enum cron_gap)name_at(cron_gap_names, gap),
            (enum cron_twice)name_at(cron_twice_names, twice), at);
        if (!wall_is_set(at) || at.ms > end.ms)
            break;
        printf("%" PRId64 " ", at.ms / 1000);
    }
    printf("\n");
    return 0;
}

int main(void)
{
    struct zones zones = {.source = &zone_source_system};
    char line[512];
    struct err e;
    int rc = 0;
    while (rc == 0 && fgets(line, sizeof line, stdin))
        rc = answer(&zones, line, &e);
    if (rc)
        fprintf(stderr, "cron_times: %s\n", e.text);
    zones_deinit(&zones);
    return rc ? 1 : 0;
}
