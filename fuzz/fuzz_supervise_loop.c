/* SPDX-License-Identifier: Apache-2.0
 *
 * A line on a supervisor's socket: a command in its range, or an error.
 */
#include "agent/supervisor/supervise_loop.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = mem_strndup((const char *)data, size);
    struct supervise_loop_command c;
    struct err e = {0};
    memset(&c, CHECK_PATTERN, sizeof(c));
    int rc = supervise_loop_parse(line, &c, &e);
    if (rc == 0) {
        assert(c.what != SUPERVISE_SIGNAL || (c.signal >= 1 && c.signal <= 64));
        assert(c.limit_ms >= 0 && c.limit_ms <= SUPERVISE_TIME_MAX_MS);
        assert(c.delay_ms >= 0 && c.delay_ms <= SUPERVISE_TIME_MAX_MS);
        assert(c.bytes >= 0 && c.bytes <= SUPERVISE_TIME_MAX_MS);
        assert(c.grace_ms >= 0 && c.grace_ms <= SUPERVISE_TIME_MAX_MS);
    } else {
        check_error(rc, &e);
        check_untouched(&c, sizeof(c));
    }
    free(line);
    return 0;
}
