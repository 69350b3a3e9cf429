/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of iCalendar: what is read is a list of days in order, which its text gives again.
 */
#include "job/ics.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_days(const struct calendar *c)
{
    struct calendar again = {0};
    struct buf text = {0};
    struct err e;
    assert(c->n > 0 && c->n <= CALENDAR_DAYS_MAX);
    for (size_t k = 0; k < c->n; k++) {
        assert(c->days[k].first <= c->days[k].last);
        assert(k == 0 || c->days[k].first > c->days[k - 1].last + 1);
        assert(c->days[k].last <= CALENDAR_DAY_LAST);
    }
    calendar_print_list(c, &text);
    assert(text.len < CALENDAR_LIST_MAX);
    assert(calendar_read_list(buf_str(&text), &again, &e) == 0);
    assert(again.n == c->n && memcmp(again.days, c->days, c->n * sizeof *c->days) == 0);
    free(again.days);
    buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct calendar c;
    struct err e = {0};
    memset(&c, CHECK_PATTERN, sizeof c);
    int rc = ics_read((const char *)data, size, &c, &e);
    if (rc == 0) {
        check_days(&c);
        free(c.days);
    } else {
        check_error(rc, &e);
        assert(rc == ERR_INVALID);
        check_untouched(&c, sizeof c);
    }
    memset(&c, CHECK_PATTERN, sizeof c);
    rc = calendar_read_list(text, &c, &e);
    if (rc == 0) {
        calendar_normalize(&c);
        check_days(&c);
        free(c.days);
    } else {
        check_error(rc, &e);
        check_untouched(&c, sizeof c);
    }
    free(text);
    return 0;
}
