/* SPDX-License-Identifier: Apache-2.0 */
#include "base/frames.h"

#include <assert.h>
#include <string.h>

void frame_add(struct buf *out, enum frame_type type, const void *p, size_t n)
{
    assert(n <= FRAME_BYTES_MAX);
    buf_addc(out, (char)type);
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_addc(out, (char)(n >> shift & 0xff));
    buf_add(out, p, n);
}

static bool fits(enum frame_type type, const char *p, size_t n)
{
    switch (type) {
    case FRAME_OUT:
    case FRAME_ERR:
    case FRAME_IN:
    case FRAME_FAIL:
        return n <= FRAME_BYTES_MAX;
    case FRAME_EXIT:
        return n == 1;
    case FRAME_EOF:
        return n == 0;
    case FRAME_SIZE:
        return n == 4;
    case FRAME_SIGNAL:
        return n == 1 && (!p || (p[0] >= 1 && p[0] <= 64));
    }
    return false;
}

int frame_read(const char *p, size_t n, struct frame *ret_frame, size_t *ret_used, struct err *e)
{
    size_t length = 0;
    if (n < FRAME_HEAD)
        return 0;
    for (int i = 1; i < FRAME_HEAD; i++)
        length = length << 8 | (unsigned char)p[i];
    if (!fits((enum frame_type)(unsigned char)p[0], NULL, length))
        return err_set(e, ERR_INVALID, "invalid session frame: type %d, %zu bytes",
            (unsigned char)p[0], length);
    if (n < FRAME_HEAD + length)
        return 0;
    if (!fits((enum frame_type)(unsigned char)p[0], p + FRAME_HEAD, length))
        return err_set(e, ERR_INVALID, "invalid session frame: signal %d", p[FRAME_HEAD]);
    *ret_frame = (struct frame){(enum frame_type)(unsigned char)p[0], p + FRAME_HEAD, length};
    *ret_used = FRAME_HEAD + length;
    return 1;
}
