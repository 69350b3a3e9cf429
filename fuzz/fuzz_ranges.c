/* SPDX-License-Identifier: Apache-2.0
 *
 * Indices of an array: formatting what was parsed and parsing it again gives the same.
 */
#include "base/mem.h"
#include "job/ranges.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), out[RANGES_TEXT_MAX],
         again[RANGES_TEXT_MAX];
    struct ranges s, t;
    struct err e = {0};
    int rc = ranges_parse(text, &s, &e);
    if (rc == 0) {
        ranges_format(&s, out);
        assert(s.n > 0 && ranges_count(&s) > 0 && ranges_first(&s) <= ranges_last(&s));
        assert(ranges_parse(out, &t, &e) == 0 && ranges_count(&t) == ranges_count(&s));
        ranges_format(&t, again);
        assert(str_eq(out, again));
        assert(ranges_remove(&t, &s) == ranges_count(&s) && t.n == 0);
    } else {
        check_error(rc, &e);
    }
    free(text);
    return 0;
}
