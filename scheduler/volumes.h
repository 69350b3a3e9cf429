/* SPDX-License-Identifier: Apache-2.0
 *
 * The volumes at the providers that are attached to no machine: asked of every elastic pool's
 * driver when somebody wants to know, never in a tick. Who asks meanwhile gets the same answer, and
 * who asks soon afterwards the last one, so that nobody's refreshing of a page uses up what the
 * provider allows an account to ask. Only looks: no volume is ever deleted here.
 *
 * Invariant: who asks is answered once, VOLUMES_WAIT_MS later at the latest, with what is known by
 * then; a provider that did not answer, or refused, is told beside it.
 */
#ifndef BELAY_SCHEDULER_VOLUMES_H
#define BELAY_SCHEDULER_VOLUMES_H

#include "base/timers.h"
#include "cloud/driver.h"

#define VOLUMES_WAIT_MS 20000
#define VOLUMES_KEEP_MS (5 * 60000) /* an answer */
#define VOLUMES_RETRY_MS 15000      /* one with a provider missing */

struct volumes;

/* A pool whose provider can be asked. Borrowed for the call. */
struct volumes_place {
    const char *pool, *region;
    struct cloud_driver *driver; /* NULL: it has none */
};

/* All borrowed. */
struct volumes_options {
    /* the i-th, from 0; false: there are fewer */
    bool (*place)(void *ctx, size_t i, struct volumes_place *ret_place);
    void *ctx;
    struct timers *timers;
    const char *cluster_uid; /* the tag's value */
};

struct volumes_found {
    const char *provider, *region;
    const struct cloud_volume *volume;
};

struct volumes_missing {
    const char *pool, *provider, *region;
    const struct err *why;
};

/* Each volume once, though several pools may list it. Borrowed for the call. */
struct volumes_reading {
    const struct volumes_found *found;
    size_t n_found;
    const struct volumes_missing *missing;
    size_t n_missing;
};
typedef void (*volumes_fn)(void *ctx, const struct volumes_reading *r);

struct volumes *volumes_create(const struct volumes_options *o);
/* The cluster's own, or all of the accounts. done runs once, perhaps at once, and not after
 * volumes_destroy. */
void volumes_read(struct volumes *v, bool all, volumes_fn done, void *ctx);
/* After the drivers were destroyed. Who still waits is forgotten. NULL is fine */
void volumes_destroy(struct volumes *v);

#endif
