/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer. Zeroed is valid and empty. data is NUL-terminated whenever it is not NULL;
 * the NUL is not counted in len. Data that is added must not lie inside the buffer itself.
 */
#ifndef BELAY_BASE_BUF_H
#define BELAY_BASE_BUF_H

#include "base/err.h"
#include <stddef.h>

struct buf {
    char *data; /* NULL until something is added */
    size_t len;
    size_t cap;
};

void buf_deinit(struct buf *b); /* frees; the buffer is empty and reusable afterwards */
void buf_wipe(struct buf *b);   /* buf_deinit for secrets: overwrites the content first */
void buf_clear(struct buf *b);  /* len = 0, keeps the memory */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_remove_front(struct buf *b, size_t n); /* n <= len; moves the rest */
void buf_truncate(struct buf *b, size_t len);   /* keeps the first len bytes; len <= b->len */
const char *buf_str(const struct buf *b);       /* never NULL; borrowed until the next change */
/* transfers the NUL-terminated memory to the caller; b is empty afterwards */
char *buf_take(struct buf *b);

/* Reserves space for n more bytes and returns the address to write them to. buf_commit then says
 * how many were written. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

/* Adds n bytes. ERR_INVALID, with the buffer unchanged, if it would exceed max bytes. */
int buf_add_limited(struct buf *b, const void *p, size_t n, size_t max, struct err *e);

#endif
