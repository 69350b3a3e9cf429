/* SPDX-License-Identifier: Apache-2.0
 *
 * The marker of a store: anyone with write access can replace it by any bytes.
 */
#include "ckpt/store/marker.h"

#include "base/str.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marker mark = {0};
    struct err e = {0};
    int rc = marker_parse((const char *)data, size, &mark, &e);
    assert(rc == 0 || rc == ERR_CORRUPT);
    assert(rc == 0 || str_is_utf8(e.text, strlen(e.text)));
    assert(strlen(mark.uid) < sizeof(mark.uid) &&
           strspn(mark.uid, "0123456789abcdef") == strlen(mark.uid));
    assert(rc != 0 || mark.created_at_ms >= 0);
    return 0;
}
