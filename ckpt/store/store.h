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

enum clone_result {
    CLONE_DONE,
    CLONE_MISSING, /* the source does not have this range, or not as whole blocks */
    CLONE_REFUSED  /* never possible: not one file system, or one that cannot */
};

/* non-zero stops the walk */
typedef int (*store_each_fn)(void *ctx, const char *name, int64_t size_bytes);

struct store_ops {
    const char *scheme;
    /* Creates an object, durable when it returns 0. ERR_CONFLICT if the name exists; nothing
     * changes. */
    int (*create)(struct store *s, const char *name, const void *p, size_t n, struct err *e);
    /* As create, for many objects: an object exists, durably, once flush has returned 0. It may be
     * visible before, but always complete. It is no error if the name appears meanwhile. sha256: of
     * p, in lower-case hex, or NULL if the caller does not know it. The slot may be NULL: create is
     * used. */
    int (*put)(struct store *s, const char *name, const void *p, size_t n, const char *sha256,
        struct err *e);
    /* Makes durable what was put and linked under prefix, a "directory" ending in '/'. No put may
     * be under way. The slot is NULL if puts are durable at once. */
    int (*flush)(struct store *s, const char *prefix, struct err *e);
    /* Reads a whole object; ERR_NOT_FOUND, ERR_INVALID if larger than max. */
    int (*read)(struct store *s, const char *name, size_t max, struct buf *out, struct err *e);
    /* Returns 0 with the size, or ERR_NOT_FOUND. */
    int (*stat)(struct store *s, const char *name, int64_t *ret_size, struct err *e);
    /* Lists names under prefix (a "directory" ending in '/', or ""), in byte order: all that were
     * created before and none that was removed before. Fences and the reuse of stored chunks rely
     * on that. It is no error if fn stops the walk. */
    int (*list)(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e);
    /* Removes at most STORE_REMOVE_MAX names, durably when it returns 0; a missing name is no
     * error. */
    int (*remove)(struct store *s, const char *const *names, size_t n, struct err *e);
    /* Moves an object (for damaged ones), replacing one that has the name. ERR_NOT_FOUND. */
    int (*rename)(struct store *s, const char *from, const char *to, struct err *e);
    /* Gives the content of `from` also the name `to`, without transferring its bytes (a hard link,
     * a copy inside the store), durably once flush has returned 0. ERR_NOT_FOUND; ERR_CONFLICT if
     * `to` exists; ERR_UNSUPPORTED if this store cannot: the caller then writes the bytes. */
    int (*link)(struct store *s, const char *from, const char *to, struct err *e);
    /* Makes n bytes at `offset` of the file fd the same blocks as those of the object, which has n
     * bytes: clone.h. Nothing is verified. The slot may be NULL: CLONE_REFUSED. */
    enum clone_result (*clone)(
        struct store *s, const char *name, int fd, int64_t offset, int64_t n);
    void (*close)(struct store *s);
};

/* Counts calls that go out to a store, and signs of life: ends of calls, names of a long list. If
 * begun > alive while alive does not change, the store does not answer. */
struct store_pulse {
    atomic_llong begun, alive;
};

struct store_options {
    /* borrowed until the store is closed; NULL for local stores only */
    struct store_net *net;
    /* likewise; non-zero ends the store's waits with ERR_CANCELLED. May be NULL */
    const atomic_int *cancel;
    bool existing; /* do not create a missing directory: ERR_NOT_FOUND */
    /* borrowed until the store is closed; may be NULL */
    struct store_pulse *pulse;
};

/* "file:///srv/belay": an absolute path, %XX decoded; made if missing, mode 0700.
 * "s3://BUCKET/PREFIX?endpoint=URL&region=NAME&style=path", "gs://BUCKET/PREFIX",
 * "az://ACCOUNT/CONTAINER/PREFIX": see s3_location_parse in s3.h; sends no request yet. o may be
 * NULL. ERR_INVALID names what is supported. Errors of this call and of the store that it opens are
 * marked as the store's (of_store). */
int store_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e);
/* Checks the form of a url. ERR_INVALID. */
int store_check_url(const char *url, struct err *e);
void store_close(struct store *s); /* NULL is allowed */

static inline int store_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    return s->ops->put ? s->ops->put(s, name, p, n, sha256, e) : s->ops->create(s, name, p, n, e);
}

static inline int store_flush(struct store *s, const char *prefix, struct err *e)
{
    return s->ops->flush ? s->ops->flush(s, prefix, e) : 0;
}

static inline enum clone_result store_clone(
    struct store *s, const char *name, int fd, int64_t offset, int64_t n)
{
    return s->ops->clone ? s->ops->clone(s, name, fd, offset, n) : CLONE_REFUSED;
}

/* For implementations of stores: whether name follows the rule above and has at most STORE_NAME_MAX
 * bytes. */
bool store_name_is_valid(const char *name);

#endif
