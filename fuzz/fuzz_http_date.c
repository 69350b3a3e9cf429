/* SPDX-License-Identifier: Apache-2.0
 *
 * A Date header: an accepted time has the day, month and time of the text.
 */
#include "base/http_date.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(const char *text, struct wall w)
{
    char shown[40];
    struct tm tm;
    time_t seconds = (time_t)(w.ms / 1000);
    assert(w.ms % 1000 == 0 && gmtime_r(&seconds, &tm));
    strftime(shown, sizeof(shown), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    assert(strlen(shown) == strlen(text) && memcmp(text + 5, shown + 5, 2) == 0 &&
           memcmp(text + 8, shown + 8, 3) == 0);
    assert(memcmp(text + 12, shown + 12, 4) == 0 && str_eq(text + 17, shown + 17));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct wall w = {-77};
    struct err e = {0};
    int rc = http_date_parse(text, &w, &e);
    if (rc == 0) {
        check_fields(text, w);
    } else {
        check_error(rc, &e);
        assert(rc == ERR_INVALID && w.ms == -77);
    }
    free(text);
    return 0;
}
