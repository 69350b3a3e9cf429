/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of objects behind one small table. Names are relative paths of [A-Za-z0-9._-] parts joined by '/'.
 * All calls block and are made from worker threads; a store may be used by several at once.
 */
#ifndef BELAY_CKPT_STORE_H
#define BELAY_CKPT_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

struct store {
    const struct store_ops *ops;
};

typedef int (*store_each_fn)(void *ctx, const char *name, int64_t size_bytes); /* non-zero stops the walk */

struct store_ops {
    const char *scheme;
    /* Durable when it returns 0. ERR_CONFLICT if the name exists: nothing was changed. */
    int (*create)(struct store *s, const char *name, const void *p, size_t n, struct err *e);
    /* The whole object; ERR_NOT_FOUND, ERR_INVALID if larger than max. */
    int (*read)(struct store *s, const char *name, size_t max, struct buf *out, struct err *e);
    /* 0 and the size, or ERR_NOT_FOUND. */
    int (*stat)(struct store *s, const char *name, int64_t *ret_size, struct err *e);
    /* Names under prefix (a "directory" ending in '/', or ""), in byte order. */
    int (*list)(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e);
    int (*remove)(struct store *s, const char *name, struct err *e); /* a missing name is fine */
    /* Moves an object aside to `to` (for damaged ones). */
    int (*rename)(struct store *s, const char *from, const char *to, struct err *e);
    void (*close)(struct store *s);
};

/* "file:///srv/belay" (an absolute path; made if missing, mode 0700). ERR_INVALID names what is supported. */
int store_open(const char *url, struct store **ret_store, struct err *e);
void store_close(struct store *s); /* NULL is fine */

#endif
