/* SPDX-License-Identifier: Apache-2.0
 *
 * A crontab line: an accepted one has a next time, which is later, a scheduled minute, and the
 * first one from any moment in between.
 */
#include "job/cron.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_times(const struct cron *c)
{
    /* Forward by 30 min and back: 2020-09-13T12:26:40Z and half a year later. */
    struct zone_span spans[] = {{INT64_MIN, 37800}, {1600000000, 39600}, {1616000400, 37800}};
    const struct time_zone z = {.name = "Odd", .n = 3, .spans = spans};
    struct wall at = {SECONDS_MS(1599990000)};
    for (int k = 0; k < 20; k++) {
        struct wall next = cron_next(
            c, &z, k % 2 ? CRON_GAP_SKIP : CRON_GAP_RUN, (enum cron_twice)(k / 2 % 4), at);
        if (!wall_is_set(next))
            break;
        int64_t at_s = next.ms / 1000, local_s = at_s + zone_offset_s(&z, at_s);
        assert(next.ms > at.ms && next.ms % 1000 == 0);
        assert(at_s == 1600000000 ||
               ((c->minutes >> (local_s / 60 % 60) & 1) &&
                   (c->hours >> (local_s / 3600 % 24) & 1) && local_s % 60 == 0));
        struct wall middle = {at.ms + (next.ms - at.ms) / 2};
        assert(cron_next(c, &z, k % 2 ? CRON_GAP_SKIP : CRON_GAP_RUN, (enum cron_twice)(k / 2 % 4),
                   middle)
                   .ms == next.ms);
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct cron c;
    struct err e = {0};
    memset(&c, CHECK_PATTERN, sizeof c);
    int rc = cron_parse(text, &c, &e);
    if (rc == 0) {
        assert(c.minutes && c.hours && c.months && c.days && c.weekdays);
        assert(!c.zone[0] || zone_is_name(c.zone, strlen(c.zone)));
        check_times(&c);
    } else {
        check_error(rc, &e);
        assert(rc == ERR_INVALID);
        check_untouched(&c, sizeof c);
    }
    free(text);
    return 0;
}
