/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of objects behind one small table. Names are relative paths of [A-Za-z0-9._-] parts
 * joined by '/', no part beginning with '.'. All calls block and are made from worker threads; a
 * store may be used by several at once.
 */
#ifndef BELAY_CKPT_STORE_STORE_H
#define BELAY_CKPT_STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct store_net; /* store_net.h */

#define STORE_NAME_MAX 512
#define STORE_REMOVE_MAX 1000 /* names in one remove */

struct store {
    const struct store_ops *ops;
};

/* non-zero stops the walk */
typedef int (*store_each_fn)(void *ctx, const char *name, int64_t size_bytes);

struct store_ops {
    const char *scheme;
    /* Durable when it returns 0. ERR_CONFLICT if the name exists: nothing was changed. */
    int (*create)(struct store *s, const char *name, const void *p, size_t n, struct err *e);
    /* As create, for many objects: it is there, and durable, only when settle has returned 0, and
     * may be there before that, always whole. No error either if the name comes to exist meanwhile.
     * sha256: of p, in lower-case hex, where the caller knows it; else NULL. NULL: create does
     * it. */
    int (*put)(struct store *s, const char *name, const void *p, size_t n, const char *sha256,
        struct err *e);
    /* Makes durable what was put and linked under prefix, a "directory" ending in '/', when no put
     * is under way. NULL: it is. */
    int (*settle)(struct store *s, const char *prefix, struct err *e);
    /* The whole object; ERR_NOT_FOUND, ERR_INVALID if larger than max. */
    int (*read)(struct store *s, const char *name, size_t max, struct buf *out, struct err *e);
    /* 0 and the size, or ERR_NOT_FOUND. */
    int (*stat)(struct store *s, const char *name, int64_t *ret_size, struct err *e);
    /* Names under prefix (a "directory" ending in '/', or ""), in byte order; all that were created
     * before and none that was removed before: fences and what a save need not store again rest on
     * that. A walk that fn stops is no error. */
    int (*list)(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e);
    /* At most STORE_REMOVE_MAX names, gone durably when it returns 0; a missing name is fine. */
    int (*remove)(struct store *s, const char *const *names, size_t n, struct err *e);
    /* Moves an object (for damaged ones), over one that has the name. ERR_NOT_FOUND. */
    int (*rename)(struct store *s, const char *from, const char *to, struct err *e);
    /* Gives the content of `from` the name `to` as well, without its bytes passing through here (a
     * hard link, a copy inside the store), durably once settle has returned 0. ERR_NOT_FOUND;
     * ERR_CONFLICT if `to` exists; ERR_UNSUPPORTED if this store cannot: the caller writes the
     * bytes. */
    int (*link)(struct store *s, const char *from, const char *to, struct err *e);
    void (*close)(struct store *s);
};

struct store_options {
    /* borrowed until the store is closed; NULL: only stores of this machine */
    struct store_net *net;
    /* likewise; not 0: whatever the store is waiting for ends with ERR_CANCELLED. May be NULL */
    const atomic_int *cancel;
    bool existing; /* a directory that is missing is not made: ERR_NOT_FOUND */
};

/* "file:///srv/belay": an absolute path, %XX decoded; made if missing, mode 0700.
 * "s3://BUCKET/PREFIX?endpoint=URL&region=NAME&style=path", "gs://BUCKET/PREFIX",
 * "az://ACCOUNT/CONTAINER/PREFIX": see s3_place_parse in s3.h; nobody is asked yet. o may be NULL.
 * ERR_INVALID names what is supported. An error, of this or of the store that it opens, is marked
 * as the store's (of_store). */
int store_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e);
/* Whether url could be opened, by its form alone. ERR_INVALID. */
int store_check_url(const char *url, struct err *e);
void store_close(struct store *s); /* NULL is allowed */

static inline int store_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    return s->ops->put ? s->ops->put(s, name, p, n, sha256, e) : s->ops->create(s, name, p, n, e);
}

static inline int store_settle(struct store *s, const char *prefix, struct err *e)
{
    return s->ops->settle ? s->ops->settle(s, prefix, e) : 0;
}

/* For stores: true if name keeps the rule above and is at most STORE_NAME_MAX bytes. */
bool store_name_is_valid(const char *name);

#endif
