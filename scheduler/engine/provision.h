/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning: makes the providers' machines match the instance rows, and terminates machines that
 * have no row. Level-triggered: it reads rows, never the steps that led to them, so recovery is to
 * process every row.
 *
 *   INTENDED   a launch is tried under the row's token until there is a definite answer
 *   QUEUED     the sweep watches for its start, or its end
 *   LAUNCHED, RUNNING   the sweep watches the provider's list for an end
 *   ENDING     terminate is called, the sweep confirms that it is gone and calls again while it is
 *              not
 *   no row     what carries our cluster's tag is terminated (a stray)
 *
 * A listing may lag: a missing instance counts as gone only after two misses and when its row is
 * older than settle_ms.
 */
#ifndef BELAY_SCHEDULER_ENGINE_PROVISION_H
#define BELAY_SCHEDULER_ENGINE_PROVISION_H

#include "base/prng.h"
#include "cloud/driver.h"
#include "scheduler/engine/tick.h"

struct provision;

/* How a pool launches: the configuration that is not in struct pool_row. Texts are copied; the
 * driver is borrowed until it is released. */
struct provision_pool {
    const char *name;
    struct cloud_driver *driver;
    const char *region;
    /* 0 = not set. Among the pools of a provider and region the highest value applies; if none sets
     * it, the provider's own limit. */
    int64_t launches_per_minute;
};

struct provision_options {
    struct tick *tick;
    struct timers *timers;
    struct prng *prng;
    const char *cluster_uid; /* the tag's value */
    int64_t sweep_ms;        /* between listings while nothing changes */
    int64_t busy_sweep_ms;   /* while something is ENDING */
    int64_t settle_ms;       /* how long a provider's listing may lag */
    int64_t price_ms;        /* between readings of prices */
    /* Returns the user data of an instance's first boot: the same bytes for the same instance every
     * time, because a launch that is repeated under its token must not differ. The caller frees
     * it. */
    char *(*user_data)(
        void *ctx, const struct instance_row *instance, const struct provision_pool *pool);
    /* No pool uses this driver any more and no call to it is in progress: it may be destroyed at
     * once. May be NULL if pools are never replaced or removed. */
    void (*released)(void *ctx, struct cloud_driver *driver);
    void *ctx;
};

struct provision *provision_create(const struct provision_options *o);
/* Other intervals, from the next wait on. */
void provision_set_times(struct provision *p, int64_t sweep_ms, int64_t busy_sweep_ms,
    int64_t settle_ms, int64_t price_ms);
/* Adds a pool, or replaces the driver of the pool with this name. The new driver then lists and
 * terminates the pool's instances, so both drivers must use the same account, region and endpoint
 * while the pool has instances. A launch in progress stays with its driver. */
void provision_add_pool(struct provision *p, const struct provision_pool *pool);
/* Removes a pool that has no instance. No effect if there is no pool with this name. */
void provision_remove_pool(struct provision *p, const char *name);
/* Processes every row, and starts sweeping and reading prices. */
void provision_start(struct provision *p);
/* After a commit: this instance's row changed. */
void provision_touch(struct provision *p, int64_t instance);
/* After a commit: this pool's row changed. Logs when its machines begin to fail to join, and when
 * they join again. */
void provision_note_pool(struct provision *p, const struct pool_row *row);
/* Stops timers and launches without callbacks. Destroy the drivers first: their last completions
 * arrive here. p may be NULL. */
void provision_destroy(struct provision *p);

struct provision_stats {
    int64_t launches, refusals, strays, sweeps, list_errors;
};
void provision_get_stats(const struct provision *p, struct provision_stats *ret_stats);

#endif
