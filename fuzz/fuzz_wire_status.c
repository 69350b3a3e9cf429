/* SPDX-License-Identifier: Apache-2.0
 *
 * A decodable message encodes, and decodes again to the same.
 */
#include "base/wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_status m, back;
    struct err e;
    if (wire_status_decode((const char *)data, size, &m, &e))
        return 0;
    struct buf first = {0}, second = {0};
    wire_status_encode(&m, &first);
    if (wire_status_decode(first.data, first.len, &back, &e))
        abort();
    wire_status_encode(&back, &second);
    if (strcmp(first.data, second.data) != 0)
        abort();
    buf_deinit(&first);
    buf_deinit(&second);
    wire_status_deinit(&m);
    wire_status_deinit(&back);
    return 0;
}
