/* SPDX-License-Identifier: Apache-2.0
 *
 * A request to a supervisor for a command in its task: words, or an error.
 */
#include "agent/supervisor/shells.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shell_order o;
    struct err e = {0};
    size_t n = 0;
    memset(&o, CHECK_PATTERN, sizeof(o));
    int rc = shell_parse((const char *)data, size, &o, &e);
    if (rc == 0) {
        while (o.command && o.command[n])
            n++;
        assert(o.signal ? !o.command && o.signal >= 1 && o.signal <= 64 && o.to <= SHELL_TO_ALL
                        : n >= 1 && n <= SHELL_WORDS_MAX);
        assert(memchr(o.term, 0, sizeof(o.term)));
        shell_order_deinit(&o);
    } else {
        check_error(rc, &e);
        check_untouched(&o, sizeof(o));
    }
    return 0;
}
