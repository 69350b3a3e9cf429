/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between two texts of belayd's configuration, and what of it can change while belayd
 * runs. One table (changes.c) says it of every key. Pure.
 *
 * Keys are compared as they are written: a default that is spelled out is a change, from nothing.
 */
#ifndef BELAY_SCHEDULER_CONFIG_CHANGES_H
#define BELAY_SCHEDULER_CONFIG_CHANGES_H

#include "base/json.h"
#include "scheduler/config/config.h"

/* Returns the differences in *ret_changes, a new reference, empty if there are none:
 *
 *   [{"key": "teams.vision.max_gpus", "old": "8", "new": null, "live": true}...]
 *
 * old and new are as in the file, shortened, null if absent; the values of secret keys are not
 * shown. live: the change needs no restart. ERR_INVALID: a text is no YAML. */
int config_changes(const char *file, const struct buf *before, const struct buf *after,
    json_t **ret_changes, struct err *e);

/* ERR_CONFLICT if some of the changes need a restart: names these. */
int config_check_changes(const char *file, const json_t *changes, struct err *e);

/* Exchanges the members of both that hold keys which may change, except the policy. */
void config_swap_live(struct config *a, struct config *b);

#endif
