/* SPDX-License-Identifier: Apache-2.0
 *
 * What an ID token says: whether its claims are good (OpenID Connect Core, 3.1.3.7), and who the
 * user is here. Pure: the signature has been verified (jwt.h), and the time is an argument.
 */
#ifndef BELAY_SCHEDULER_OIDC_IDENTITY_H
#define BELAY_SCHEDULER_OIDC_IDENTITY_H

#include "base/json.h"
#include "base/time.h"
#include "scheduler/config/oidc.h"

#define OIDC_LEEWAY_MS SECONDS_MS(60) /* how much the clocks may differ */
#define OIDC_SUBJECT_MAX 256
#define OIDC_TEAMS_MAX 1024

struct oidc_identity {
    char user[CORE_NAME_MAX];
    char subject[OIDC_SUBJECT_MAX]; /* the provider's own id of the user, which never changes */
    bool has_role;
    enum role role;             /* the highest that a group gives */
    char teams[OIDC_TEAMS_MAX]; /* list for policy_join(), in the order of the configuration; "" */
};

/* nonce: the one that was sent; NULL: none was. ERR_DENIED: the token is not good, or the user may
 * not sign in; the text says which claim. */
int oidc_identify(const struct config_oidc *o, const json_t *claims, const char *nonce,
    struct wall now, struct oidc_identity *ret, struct err *e);

#endif
