/* SPDX-License-Identifier: Apache-2.0
 *
 * The unattached volumes at the providers, and the instances of their accounts: queried from every
 * elastic pool's driver on request, never in a tick. Concurrent requests share an answer, and later
 * ones get the last answer for a while, so that refreshing a page does not use up the provider's
 * request limits. Read-only: no volume and no instance is ever deleted here.
 *
 * Invariant: each request is answered exactly once, at the latest VOLUMES_WAIT_MS later, with what
 * is known by then; providers that did not answer, or refused, are reported with the answer.
 */
#ifndef BELAY_SCHEDULER_VOLUMES_H
#define BELAY_SCHEDULER_VOLUMES_H

#include "base/timers.h"
#include "cloud/driver.h"

#define VOLUMES_WAIT_MS 20000
#define VOLUMES_KEEP_MS (5 * 60000) /* lifetime of an answer */
#define VOLUMES_RETRY_MS 15000      /* of an answer with a provider missing */

struct volumes;

/* A pool whose provider can be queried. Borrowed for the call. */
struct volumes_pool {
    const char *pool, *region;
    struct cloud_driver *driver; /* NULL if it has none */
};

/* All borrowed. */
struct volumes_options {
    /* returns the i-th pool, from 0, or false beyond the last */
    bool (*pool)(void *ctx, size_t i, struct volumes_pool *ret_pool);
    void *ctx;
    struct timers *timers;
    const char *cluster_uid; /* the tag's value */
};

struct volumes_found {
    const char *provider, *region;
    const struct cloud_volume *volume;     /* NULL in a reading of instances */
    const struct cloud_instance *instance; /* NULL in one of volumes */
};

struct volumes_missing {
    const char *pool, *provider, *region;
    const struct err *why;
};

/* Each volume or instance once, even if several pools list it. Borrowed for the call. */
struct volumes_reading {
    const struct volumes_found *found;
    size_t n_found;
    const struct volumes_missing *missing;
    size_t n_missing;
};
typedef void (*volumes_fn)(void *ctx, const struct volumes_reading *r);

struct volumes *volumes_create(const struct volumes_options *o);
/* Reads the cluster's own volumes, or all in the accounts. done runs exactly once, possibly inside
 * this call, and not after volumes_destroy. */
void volumes_read(struct volumes *v, bool all, volumes_fn done, void *ctx);
/* Reads every instance of the accounts, in the regions of the pools, whatever its tags. Pools whose
 * driver cannot list them are left out. done as above. */
void volumes_read_instances(struct volumes *v, volumes_fn done, void *ctx);
/* Call after the drivers are destroyed. Waiting requests are dropped. v may be NULL. */
void volumes_destroy(struct volumes *v);

#endif
