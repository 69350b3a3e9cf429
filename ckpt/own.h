/* SPDX-License-Identifier: Apache-2.0
 *
 * Which chunks an attempt has in the store, and how large: listed once for a save, instead of
 * asking for each. Nobody but the attempt itself removes any (invariant 4 of ckpt.h), and it does
 * not clean while it saves.
 */
#ifndef BELAY_CKPT_OWN_H
#define BELAY_CKPT_OWN_H

#include "base/map.h"
#include "ckpt/ckpt.h"
#include <pthread.h>

struct own {
    pthread_mutex_t lock;
    struct smap sizes; /* by name */
};

/* What is under prefix, a "directory" ending in '/'. Deinit in any case. */
int own_init(struct own *o, struct store *s, const char *prefix, struct err *e);
void own_deinit(struct own *o);

/* From several threads at once. -1: it is not there. */
int64_t own_size(struct own *o, const char *name);
void own_add(struct own *o, const char *name, int64_t size_bytes);
void own_remove(struct own *o, const char *name);

#endif
