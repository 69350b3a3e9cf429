/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool says, and how two sets of pools differ, as JSON in the words of the configuration.
 * Pure.
 */
#ifndef BELAY_SCHEDULER_CONFIG_POOLDIFF_H
#define BELAY_SCHEDULER_CONFIG_POOLDIFF_H

#include "base/json.h"
#include "scheduler/config/config.h"

/* {"region": "us-east-1", "max_nodes": 8, "idle_timeout": "2m", "max_gpus": null, ...}: every key
 * that a pool of its kind has, with the value in force; null: absent. Paths of secrets, never
 * secrets. New reference. */
json_t *pool_settings(const struct config_pool *p);

/* Returns a new reference; unchanged pools and keys are left out:
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

/* True if both are elastic and the same driver will do: nothing that it was made with differs. */
bool pool_same_driver(const struct config_pool *a, const struct config_pool *b);

/* The first key by which both look for their instances in different places; NULL: none. region and
 * provider are the model's to check, lists of places are pool_leaves's. */
const char *pool_moved(const struct config_pool *a, const struct config_pool *b);

/* True: a list of places of `a` has the one where this instance is looked for (ret_place), and that
 * of `b` does not. */
bool pool_leaves(const struct config_pool *a, const struct config_pool *b, const char *provider_id,
    char ret_place[CORE_NAME_MAX]);

/* The pool of this name, or NULL. */
const struct config_pool *config_pool_find(const struct config *c, const char *name);

#endif
