/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a job in the database: {"=sealed": SEALED}, whose content is the JSON object
 * that the user gave, bound to that user. No variable can have that name. The core may have put
 * variables of its own before it, in clear (BELAY_CRON_TIME). An empty environment stays {}.
 */
#ifndef BELAY_SCHEDULER_SECRETS_ENV_SEAL_H
#define BELAY_SCHEDULER_SECRETS_ENV_SEAL_H

#include "base/json.h"
#include "scheduler/secrets/seal.h"

#define ENV_SEALED "=sealed"

/* Replaces an environment, an object of strings as allocated text, by its sealed form, and wipes
 * it. */
void env_seal(const struct sealer *s, const char *user, const char **env_json);

/* The environment in clear, a new reference to json_wipe. Without a sealed part it is the stored
 * one. ERR_CORRUPT, ERR_NOT_FOUND as seal_open. */
int env_open(const struct sealer *s, const char *user, const char *env_json, json_t **ret_env,
    struct err *e);

#endif
