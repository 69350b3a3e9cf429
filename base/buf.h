/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer. Zeroed is valid and empty. data is NUL-terminated whenever it is not NULL;
 * the NUL is not counted in len. What is added must not lie inside the buffer itself.
 */
#ifndef BELAY_BASE_BUF_H
#define BELAY_BASE_BUF_H

#include "base/err.h"
#include <stddef.h>

struct buf {
    char *data; /* NULL when nothing was ever added */
    size_t len;
    size_t cap;
};

void buf_deinit(struct buf *b); /* frees; the buffer is empty and reusable afterwards */
void buf_wipe(struct buf *b);   /* deinit of what held a secret: overwrites it first */
void buf_clear(struct buf *b);  /* len = 0, keeps the memory */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_remove_front(struct buf *b, size_t n); /* n <= len; moves the rest */
void buf_truncate(struct buf *b, size_t len);   /* keeps the first len bytes; len <= b->len */
const char *buf_str(const struct buf *b);       /* never NULL; borrowed until the next change */
/* the NUL-terminated memory is the caller's; b is empty */
char *buf_take(struct buf *b);

/* Room for n more bytes: returns where to write them; buf_commit then says how many were
 * written. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

/* Adds n bytes unless the buffer would exceed max bytes: then ERR_INVALID and the buffer is
 * unchanged. */
int buf_add_limited(struct buf *b, const void *p, size_t n, size_t max, struct err *e);

#endif
