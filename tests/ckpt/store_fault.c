/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/store_fault.h"
#include "ckpt/store/store_origin.h"
#include <string.h>

/* Returns 0, or the failure of this call; *ret_after: it comes after the work. */
static int enter(struct store_fault *f, const char *name, bool writes, bool *ret_after)
{
    *ret_after = false;
    if ((f->of_writes && !writes) || (f->of && !strstr(name, f->of)))
        return 0;
    int call = atomic_fetch_add(&f->calls, 1) + 1;
    bool onward = f->mode == FAULT_ONWARD || f->mode == FAULT_HOOK_ONWARD;
    bool strike = onward ? call >= f->at : f->mode != FAULT_NONE && call == f->at;

    *ret_after = f->mode == FAULT_REPLY;
    if (!strike)
        return 0;
    atomic_fetch_add(&f->struck, 1);
    if (f->mode == FAULT_HOOK || f->mode == FAULT_HOOK_ONWARD) {
        f->hook(f->hook_ctx);
        return 0;
    }
    return f->kind;
}

static int broken(const struct store_fault *f, const char *what, struct err *e)
{
    return store_origin_mark(err_set(e, f->kind, "%s: a planted fault", what), e);
}

#define FAULTY(what, name, writes, call) FAULTY_CALL(what, name, writes, f->inner->ops->call)
#define FAULTY_CALL(what, name, writes, call)                                                      \
    struct store_fault *f = (struct store_fault *)s;                                               \
    bool after;                                                                                    \
    int fault = enter(f, (name), (writes), &after), rc = 0;                                        \
                                                                                                   \
    if (!fault || after)                                                                           \
        rc = call;                                                                                 \
    return fault ? broken(f, what, e) : rc

static int fault_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    FAULTY("create", name, true, create(f->inner, name, p, n, e));
}

static int fault_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    FAULTY_CALL("put", name, true, store_put(f->inner, name, p, n, sha256, e));
}

static int fault_flush(struct store *s, const char *prefix, struct err *e)
{
    FAULTY_CALL("flush", prefix, false, store_flush(f->inner, prefix, e));
}

static int fault_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    FAULTY("read", name, false, read(f->inner, name, max, out, e));
}

static int fault_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    FAULTY("stat", name, false, stat(f->inner, name, ret_size, e));
}

static int fault_list(
    struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    FAULTY("list", prefix, false, list(f->inner, prefix, fn, ctx, e));
}

static int fault_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    FAULTY("remove", names[0], false, remove(f->inner, names, n, e));
}

static int fault_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    FAULTY("rename", from, true, rename(f->inner, from, to, e));
}

static int fault_link(struct store *s, const char *from, const char *to, struct err *e)
{
    FAULTY("link", from, true, link(f->inner, from, to, e));
}

static const struct store_ops fault_ops = {
    .scheme = "fault",
    .create = fault_create,
    .put = fault_put,
    .flush = fault_flush,
    .read = fault_read,
    .stat = fault_stat,
    .list = fault_list,
    .remove = fault_remove,
    .rename = fault_rename,
    .link = fault_link,
};

void store_fault_init(struct store_fault *f, struct store *inner, enum fault_mode mode, int at)
{
    *f = (struct store_fault){
        .base.ops = &fault_ops, .inner = inner, .mode = mode, .kind = ERR_IO, .at = at};
}
