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
    struct store_pulse *pulse;
};

static struct store *begin(struct store *s)
{
    struct origin *o = (struct origin *)s;

    if (o->pulse)
        atomic_fetch_add(&o->pulse->begun, 1);
    return o->inner;
}

int store_origin_mark(int rc, struct err *e)
{
    if (rc && e)
        e->of_store = true;
    return rc;
}

static int end(const struct store *s, int rc, struct err *e)
{
    const struct origin *o = (const struct origin *)s;

    if (o->pulse)
        atomic_fetch_add(&o->pulse->alive, 1);
    return store_origin_mark(rc, e);
}

static int origin_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->create(i, name, p, n, e), e);
}

static int origin_read(
    struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->read(i, name, max, out, e), e);
}

static int origin_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->stat(i, name, ret_size, e), e);
}

struct listing {
    struct store_pulse *pulse;
    store_each_fn fn;
    void *ctx;
};

/* A list may take many requests. */
static int each_listed(void *ctx, const char *name, int64_t size_bytes)
{
    const struct listing *l = ctx;

    if (l->pulse) {
        atomic_fetch_add(&l->pulse->begun, 1);
        atomic_fetch_add(&l->pulse->alive, 1);
    }
    return l->fn(l->ctx, name, size_bytes);
}

static int origin_list(
    struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    struct listing l = {.pulse = ((struct origin *)s)->pulse, .fn = fn, .ctx = ctx};
    struct store *i = begin(s);

    return end(s, i->ops->list(i, prefix, each_listed, &l, e), e);
}

static int origin_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->remove(i, names, n, e), e);
}

static int origin_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->rename(i, from, to, e), e);
}

static int origin_link(struct store *s, const char *from, const char *to, struct err *e)
{
    struct store *i = begin(s);

    return end(s, i->ops->link(i, from, to, e), e);
}

static int origin_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    return end(s, store_put(begin(s), name, p, n, sha256, e), e);
}

static int origin_flush(struct store *s, const char *prefix, struct err *e)
{
    return end(s, store_flush(begin(s), prefix, e), e);
}

static enum clone_result origin_clone(
    struct store *s, const char *name, int fd, int64_t offset, int64_t n)
{
    enum clone_result result = store_clone(begin(s), name, fd, offset, n);
    struct err none;

    end(s, 0, &none);
    return result;
}

static void origin_close(struct store *s)
{
    store_close(((struct origin *)s)->inner);
    free(s);
}

static const struct store_ops origin_ops = {
    .scheme = "origin",
    .create = origin_create,
    .put = origin_put,
    .flush = origin_flush,
    .read = origin_read,
    .stat = origin_stat,
    .list = origin_list,
    .remove = origin_remove,
    .rename = origin_rename,
    .link = origin_link,
    .clone = origin_clone,
    .close = origin_close,
};

struct store *store_origin_wrap(struct store *inner, struct store_pulse *pulse)
{
    struct origin *o = mem_alloc(sizeof(*o));

    *o = (struct origin){.base.ops = &origin_ops, .inner = inner, .pulse = pulse};
    return &o->base;
}
