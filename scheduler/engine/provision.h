/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning: makes the providers' machines what the instance rows say, and ends what has no row.
 * Level-triggered: it looks at rows, never at the steps that led there, so recovery is "look at
 * every row".
 *
 *   INTENDED   a launch is tried under the row's token until there is a definite answer
 *   LAUNCHED, RUNNING   the sweep watches the provider's list for an end
 *   ENDING     terminate is called, the sweep confirms that it is gone and calls again while it is
 *              not
 *   no row     what carries our cluster's tag is terminated (a stray)
 *
 * A listing lags: "missing" counts as gone only after two misses and when the row is older than
 * settle_ms.
 */
#ifndef BELAY_SCHEDULER_ENGINE_PROVISION_H
#define BELAY_SCHEDULER_ENGINE_PROVISION_H

#include "base/prng.h"
#include "cloud/driver.h"
#include "scheduler/engine/tick.h"

struct provision;

/* How a pool launches; what the configuration says beyond struct pool_row. Texts are copied; the
 * driver is borrowed until it is released. */
struct provision_pool {
    const char *name;
    struct cloud_driver *driver;
    const char *region;
    /* 0: it sets none. Of the pools of a provider and region that set one the highest counts; where
     * none does, the provider's own limit */
    int64_t launches_per_minute;
};

struct provision_options {
    struct tick *tick;
    struct timers *timers;
    struct prng *prng;
    const char *cluster_uid; /* the tag's value */
    int64_t sweep_ms;        /* between listings while all is quiet */
    int64_t busy_sweep_ms;   /* while something is ENDING */
    int64_t settle_ms;       /* how long a provider's list may lag */
    int64_t price_ms;        /* between readings of prices */
    /* The user data of an instance's first boot; the same bytes for the same instance every time (a
     * repeated launch under a token must not differ). The caller frees. */
    char *(*user_data)(
        void *ctx, const struct instance_row *instance, const struct provision_pool *pool);
    /* No pool has this driver any more and no call of ours to it is under way: it may be destroyed
     * at once. NULL: no pool is ever replaced or removed. */
    void (*released)(void *ctx, struct cloud_driver *driver);
    void *ctx;
};

struct provision *provision_create(const struct provision_options *o);
/* A pool, or another driver for the one of this name: its instances are now looked for and ended by
 * the new one, so both must speak to the same account, region and endpoint while it has any. A
 * launch that is under way stays with the driver that it began with. */
void provision_add_pool(struct provision *p, const struct provision_pool *pool);
/* A pool that has no instance. Harmless when there is none of that name. */
void provision_remove_pool(struct provision *p, const char *name);
/* Looks at every row, starts sweeping and reading prices. */
void provision_start(struct provision *p);
/* After a commit: this instance's row changed. */
void provision_touch(struct provision *p, int64_t instance);
/* After a commit: this pool's row changed. Logs when its machines do not join, and when they do
 * again. */
void provision_note_pool(struct provision *p, const struct pool_row *row);
/* Stops timers and launches without calling back. Drivers are destroyed before it: their last
 * completions come here. NULL is fine */
void provision_destroy(struct provision *p);

struct provision_stats {
    int64_t launches, refusals, strays, sweeps, list_errors;
};
void provision_get_stats(const struct provision *p, struct provision_stats *ret_stats);

#endif
