/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of a pool, and the difference of two sets of pools, as JSON with the configuration's
 * names. Pure.
 */
#ifndef BELAY_SCHEDULER_POOLDIFF_H
#define BELAY_SCHEDULER_POOLDIFF_H

#include "base/json.h"
#include "scheduler/config/config.h"

/* {"region": "us-east-1", "max_nodes": 8, "idle_timeout": "2m", "max_gpus": null, ...}: every key
 * of a pool of its kind with the current value; null if absent. Contains paths of secrets, never
 * secrets. New reference. */
json_t *pool_settings(const struct config_pool *p);

/* Returns a new reference; unchanged pools and keys are omitted:
 *
 *   {"pools": [{"pool", "change": "added" | "changed" | "removed",
 *               "keys": [{"key", "old", "new"}...],
 *               "offers_added": ["us-east-1a g6.xlarge spot"...],
 *               "offers_withdrawn": [...]}...],
 *    "limits": [{"key", "old", "new"}...]}
 */
json_t *pools_diff(const struct config *before, const struct config *after);

/* True unless the diff is empty. */
bool pools_differ(const json_t *diff);

/* True if both are elastic and can share a driver: none of the driver's inputs differ. */
bool pool_same_driver(const struct config_pool *a, const struct config_pool *b);

/* Returns the first key by which both list their instances in different locations, or NULL. The
 * model checks region and provider, and pool_leaves checks lists of locations. */
const char *pool_moved(const struct config_pool *a, const struct config_pool *b);

/* Returns true if a list of locations of `a` has that where this instance is listed (ret_location),
 * and that of `b` does not. */
bool pool_leaves(const struct config_pool *a, const struct config_pool *b, const char *provider_id,
    char ret_location[CORE_NAME_MAX]);

/* Returns the pool with this name, or NULL. */
const struct config_pool *config_pool_find(const struct config *c, const char *name);

#endif
