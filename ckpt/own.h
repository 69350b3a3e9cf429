/* SPDX-License-Identifier: Apache-2.0
 *
 * The chunks that an attempt has in the store, with sizes: listed once per save, instead of a
 * request for each. Only the attempt itself removes any (invariant 4 of ckpt.h), and it does not
 * clean while it saves.
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

/* Lists prefix, a "directory" ending in '/'. Deinit also after an error. */
int own_init(struct own *o, struct store *s, const char *prefix, struct err *e);
void own_deinit(struct own *o);

/* Returns the stored size, -1 if absent. Thread-safe. */
int64_t own_size(struct own *o, const char *name);
void own_add(struct own *o, const char *name, int64_t size_bytes);
void own_remove(struct own *o, const char *name);

#endif
