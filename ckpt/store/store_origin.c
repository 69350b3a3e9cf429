/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_origin.h. Errors keep the mark on their way up (err_wrap). Code that makes a new error
 * from a store's answer ("it is damaged") states what it means to its caller, and drops the mark.
 */
#include "ckpt/store/store_origin.h"
#include "base/mem.h"
#include <stdlib.h>

struct origin {
    struct store base;
    struct store *inner;
};

static struct store *inner_of(struct store *s)
{
    return ((struct origin *)s)->inner;
}

int store_origin_mark(int rc, struct err *e)
{
    if (rc && e)
        e->of_store = true;
    return rc;
}

static int origin_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->create(i, name, p, n, e), e);
}

static int origin_read(
    struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->read(i, name, max, out, e), e);
}

static int origin_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->stat(i, name, ret_size, e), e);
}

static int origin_list(
    struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->list(i, prefix, fn, ctx, e), e);
}

static int origin_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->remove(i, names, n, e), e);
}

static int origin_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->rename(i, from, to, e), e);
}

static int origin_link(struct store *s, const char *from, const char *to, struct err *e)
{
    struct store *i = inner_of(s);

    return store_origin_mark(i->ops->link(i, from, to, e), e);
}

static int origin_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    return store_origin_mark(store_put(inner_of(s), name, p, n, sha256, e), e);
}

static int origin_settle(struct store *s, const char *prefix, struct err *e)
{
    return store_origin_mark(store_settle(inner_of(s), prefix, e), e);
}

static void origin_close(struct store *s)
{
    store_close(inner_of(s));
    free(s);
}

static const struct store_ops origin_ops = {
    .scheme = "origin",
    .create = origin_create,
    .put = origin_put,
    .settle = origin_settle,
    .read = origin_read,
    .stat = origin_stat,
    .list = origin_list,
    .remove = origin_remove,
    .rename = origin_rename,
    .link = origin_link,
    .close = origin_close,
};

struct store *store_origin_wrap(struct store *inner)
{
    struct origin *o = mem_alloc(sizeof(*o));

    *o = (struct origin){.base.ops = &origin_ops, .inner = inner};
    return &o->base;
}
