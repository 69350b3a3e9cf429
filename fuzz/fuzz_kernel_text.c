/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of the kernel's files: for any input numbers are absent or not negative, and names fit.
 */
#include "agent/gpu/kernel_text.h"
#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct kernel_stat s;
    struct kernel_net net;
    int64_t a, b;
    const char *at = text;
    if (kernel_stat(text, &s))
        assert(s.cpu_ticks >= 0 && s.faults >= 0 && s.threads >= 0 && s.start_ticks >= 0 &&
               s.pages >= 0 && s.blocked_ticks >= 0);
    assert(kernel_number(text) >= -1 && kernel_value(text, "pgmajfault") >= -1 &&
           kernel_pressure_ms(text) >= -1);
    if (kernel_io(text, &a, &b))
        assert(a >= 0 && b >= 0);
    if (kernel_cpu(text, &a, &b))
        assert(a >= 0 && b >= 0);
    while (kernel_net_next(&at, &net))
        assert(net.name[0] && strlen(net.name) < KERNEL_NAME_MAX && net.in_bytes >= 0 &&
               net.out_bytes >= 0);
    free(text);
    return 0;
}
