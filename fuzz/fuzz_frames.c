/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's stream: frames that encode to the same bytes again, until an error or incomplete
 * data.
 */
#include "base/frames.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct err e = {0};
    int rc = 1;
    while (rc == 1) {
        struct frame f;
        struct buf again = {0};
        size_t used = 0;
        memset(&f, CHECK_PATTERN, sizeof(f));
        rc = frame_read(p, size, &f, &used, &e);
        if (rc == 1) {
            assert(used <= size && used == FRAME_HEAD + f.n && f.n <= FRAME_BYTES_MAX);
            frame_add(&again, f.type, f.p, f.n);
            assert(again.len == used && memcmp(again.data, p, used) == 0);
            p += used;
            size -= used;
        } else if (rc == 0) {
            assert(size < FRAME_HEAD + FRAME_BYTES_MAX);
        } else {
            check_error(rc, &e);
            check_untouched(&f, sizeof(f));
        }
        buf_deinit(&again);
    }
    return 0;
}
