/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program writes into its control directory: commits and progress.
 */
#include "agent/control.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control_numbers n;
    struct err e;
    control_parse_numbers((const char *)data, size, "progress", &n, &e);
    control_parse_numbers((const char *)data, size, "done", &n, &e);
    return 0;
}
