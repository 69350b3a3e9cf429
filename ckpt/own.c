/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/own.h"
#include <assert.h>

/* Encodes a size, including 0, as a non-NULL pointer. */
static void *pointer_of(int64_t size_bytes)
{
    assert(size_bytes >= 0 && (uint64_t)size_bytes < UINTPTR_MAX);
    return (void *)((uintptr_t)size_bytes + 1);
}

static int on_name(void *ctx, const char *name, int64_t size_bytes)
{
    own_add(ctx, name, size_bytes);
    return 0;
}

int own_init(struct own *o, struct store *s, const char *prefix, struct err *e)
{
    *o = (struct own){0};
    pthread_mutex_init(&o->lock, NULL);
    return s->ops->list(s, prefix, on_name, o, e);
}

void own_deinit(struct own *o)
{
    smap_deinit(&o->sizes);
    pthread_mutex_destroy(&o->lock);
}

int64_t own_size(struct own *o, const char *name)
{
    uintptr_t found;

    pthread_mutex_lock(&o->lock);
    found = (uintptr_t)smap_get(&o->sizes, name);
    pthread_mutex_unlock(&o->lock);
    return found ? (int64_t)(found - 1) : -1;
}

void own_add(struct own *o, const char *name, int64_t size_bytes)
{
    pthread_mutex_lock(&o->lock);
    smap_put(&o->sizes, name, pointer_of(size_bytes));
    pthread_mutex_unlock(&o->lock);
}

void own_remove(struct own *o, const char *name)
{
    pthread_mutex_lock(&o->lock);
    smap_remove(&o->sizes, name);
    pthread_mutex_unlock(&o->lock);
}
