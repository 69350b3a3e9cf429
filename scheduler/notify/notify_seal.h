/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs of users may contain tokens, so they are stored sealed (scheduler/secrets/seal.h):
 * "sealed:HOST:SEALED". They can be opened only for the user who supplied them.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H

#include "base/json.h"
#include "job/notify_address.h"
#include "scheduler/secrets/seal.h"

#define NOTIFY_SEALED "sealed:"
#define NOTIFY_SEALED_MAX (8 + NOTIFY_HOST_MAX + SEAL_SIZE(NOTIFY_URL_MAX))

/* Seals the URLs of a job specification (notify.urls) in place. A URL that is already sealed must
 * be this user's own. ERR_INVALID names the first that is not a URL. Other types are left for
 * jobspec_parse to refuse. */
int notify_seal_spec(const struct sealer *s, const char *user, json_t *spec, struct err *e);

/* Checks the URL (notify_check_url) and seals it. *ret_sealed is owned by the caller.
 * ERR_INVALID. */
int notify_seal_url(
    const struct sealer *s, const char *user, const char *url, char **ret_sealed, struct err *e);

/* *ret_url is owned by the caller, and a secret. ERR_INVALID if it is not of this user and this
 * database. */
int notify_unseal(
    const struct sealer *s, const char *user, const char *sealed, char **ret_url, struct err *e);

/* Returns whether it has the form of a sealed URL; its host goes into ret_host. */
bool notify_sealed_host(const char *sealed, char ret_host[NOTIFY_HOST_MAX]);

#endif
