/* SPDX-License-Identifier: Apache-2.0
 *
 * What decodes must encode, and decode again to the same.
 */
#include "base/wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_desired m, back;
    struct err e;
    if (wire_desired_decode((const char *)data, size, &m, &e))
        return 0;
    struct buf first = {0}, second = {0};
    wire_desired_encode(&m, &first);
    if (wire_desired_decode(first.data, first.len, &back, &e))
        abort();
    wire_desired_encode(&back, &second);
    if (strcmp(first.data, second.data) != 0)
        abort();
    buf_deinit(&first);
    buf_deinit(&second);
    wire_desired_deinit(&m);
    wire_desired_deinit(&back);
    return 0;
}
