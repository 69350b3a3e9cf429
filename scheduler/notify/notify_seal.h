/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs of users may contain tokens, so they are stored sealed, with a key that is derived from the
 * database's secret: "sealed:HOST:HEX". They can be opened only for the user who supplied them.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H

#include "base/json.h"
#include "ckpt/crypt.h"
#include "job/notify_address.h"

#define NOTIFY_SEALED "sealed:"
#define NOTIFY_SEALED_MAX (8 + NOTIFY_HOST_MAX + 2 * (NOTIFY_URL_MAX + CRYPT_MORE))

struct notify_sealer {
    struct ckpt_crypt crypt;
};

/* secret: 64 hex digits. Wipe s with notify_sealer_wipe. */
void notify_sealer_init(struct notify_sealer *s, const char *secret);
void notify_sealer_wipe(struct notify_sealer *s);

/* Seals the URLs of a job specification (notify.urls) in place. A URL that is already sealed must
 * be this user's own. ERR_INVALID names the first that is not a URL. Other types are left for
 * jobspec_parse to refuse. */
int notify_seal_spec(const struct notify_sealer *s, const char *user, json_t *spec, struct err *e);

/* *ret_url is owned by the caller, and a secret. ERR_INVALID if it is not of this user and this
 * database. */
int notify_unseal(const struct notify_sealer *s, const char *user, const char *sealed,
    char **ret_url, struct err *e);

/* Returns whether it has the form of a sealed URL; its host goes into ret_host. */
bool notify_sealed_host(const char *sealed, char ret_host[NOTIFY_HOST_MAX]);

#endif
