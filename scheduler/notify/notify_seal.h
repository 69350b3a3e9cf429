/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs of users may carry tokens, so they are stored sealed, with a key that is derived from the
 * database's secret: "sealed:HOST:HEX". They open for the user only who gave them.
 */
#ifndef BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H
#define BELAY_SCHEDULER_NOTIFY_NOTIFY_SEAL_H

#include "base/json.h"
#include "ckpt/crypt.h"
#include "scheduler/notify/notify_text.h"

#define NOTIFY_SEALED "sealed:"
#define NOTIFY_SEALED_MAX (8 + NOTIFY_HOST_MAX + 2 * (NOTIFY_URL_MAX + CRYPT_MORE))

struct notify_sealer {
    struct ckpt_crypt crypt;
};

/* secret: 64 hex digits. To be wiped with notify_sealer_wipe. */
void notify_sealer_init(struct notify_sealer *s, const char *secret);
void notify_sealer_wipe(struct notify_sealer *s);

/* The URLs of a job specification (notify.urls), in place. What is sealed already has to be this
 * user's own. ERR_INVALID names the first that is no URL. What is no array of texts is left to
 * jobspec_parse. */
int notify_seal_spec(const struct notify_sealer *s, const char *user, json_t *spec, struct err *e);

/* *ret_url is the caller's; a secret. ERR_INVALID: it is not of this user and this database. */
int notify_unseal(const struct notify_sealer *s, const char *user, const char *sealed,
    char **ret_url, struct err *e);

/* Whether it looks like one; its host into ret_host. */
bool notify_sealed_host(const char *sealed, char ret_host[NOTIFY_HOST_MAX]);

#endif
