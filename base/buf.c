/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer.
 *
 * Invariants: data == NULL means len == 0 and cap == 0; otherwise len < cap and data[len] == 0.
 */
#include "base/buf.h"

#include "base/mem.h"
#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_CAP_MIN 64

/* Larger memory is moved by the kernel (mremap), which leaves no copy behind. */
#define BUF_COPIED_MAX ((size_t)128 << 10)

/* What a buffer leaves behind when it is moved is overwritten: it may be a secret. */
static void grow(struct buf *b, size_t cap)
{
    char *old = b->cap <= BUF_COPIED_MAX ? b->data : NULL;
    if (!old) {
        b->data = mem_resize(b->data, cap, 1);
    } else {
        b->data = mem_resize(NULL, cap, 1);
        memcpy(b->data, old, b->len);
        explicit_bzero(old, b->len);
        free(old);
    }
    b->cap = cap;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (n >= SIZE_MAX / 2 - b->len)
        mem_out_of_memory();
    if (b->len + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : n + 1 > BUF_CAP_MIN ? n + 1 : BUF_CAP_MIN;
        while (cap < b->len + n + 1)
            cap *= 2;
        grow(b, cap);
        b->data[b->len] = 0;
    }
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
    assert(b->len + n < b->cap);
    b->len += n;
    b->data[b->len] = 0;
}

void buf_deinit(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_wipe(struct buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    buf_deinit(b);
}

void buf_clear(struct buf *b)
{
    buf_truncate(b, 0);
}

void buf_truncate(struct buf *b, size_t len)
{
    assert(len <= b->len);
    b->len = len;
    if (b->data)
        b->data[len] = 0;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(buf_reserve(b, n), p, n);
    buf_commit(b, n);
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t space = BUF_CAP_MIN;
    int n = vsnprintf(buf_reserve(b, space), space + 1, fmt, ap);
    va_end(ap);
    assert(n >= 0);
    if ((size_t)n > space)
        vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, fmt, again);
    va_end(again);
    buf_commit(b, (size_t)n);
}

void buf_remove_front(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    buf_truncate(b, b->len - n);
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    char *text = b->data ? b->data : mem_strdup("");
    *b = (struct buf){0};
    return text;
}

int buf_add_limited(struct buf *b, const void *p, size_t n, size_t max, struct err *e)
{
    if (b->len > max || n > max - b->len)
        return err_set(e, ERR_INVALID, "more than the limit of %zu bytes", max);
    buf_add(b, p, n);
    return 0;
}
