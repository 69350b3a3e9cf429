/* SPDX-License-Identifier: Apache-2.0
 *
 * Signing in at an identity provider that speaks OpenID Connect: the device flow (RFC 8628) for the
 * command line, the authorization code flow with PKCE (RFC 7636) for browsers, and renewal with a
 * refresh token. belayd is the client of the provider in all of them, so that its secret and the
 * provider's tokens stay with it. It verifies the ID token (jwt.h, identity.h); other tokens of the
 * provider are not used.
 *
 * Each call is one exchange; it has a deadline, and done runs exactly once, never inside the call.
 */
#ifndef BELAY_SCHEDULER_OIDC_OIDC_H
#define BELAY_SCHEDULER_OIDC_OIDC_H

#include "base/http.h"
#include "base/timers.h"
#include "scheduler/oidc/identity.h"

#define OIDC_EXCHANGES_MAX 64
#define OIDC_DEVICE_CODE_MAX 2048
#define OIDC_CODE_MAX 4096
#define OIDC_REFRESH_MAX 8192

struct oidc;

struct oidc_options {
    struct http_client *http;
    struct timers *timers;
    const struct config_oidc *config;
};

/* All borrowed. ERR_*: ca_file or client_secret_file cannot be read. */
int oidc_create(const struct oidc_options *o, struct oidc **ret, struct err *e);
/* Ends all exchanges with ERR_UNAVAILABLE, for this reason; none may be begun afterwards. o may be
 * NULL. */
void oidc_close(struct oidc *o, const char *why);
/* After oidc_close and after the end of the HTTP client. o may be NULL. */
void oidc_destroy(struct oidc *o);
const struct config_oidc *oidc_config(const struct oidc *o);

/* The texts are borrowed for the callback. */
struct oidc_device {
    const char *device_code, *user_code;
    const char *uri, *full_uri; /* where the user enters the code; with the code in it, or NULL */
    int64_t expires_ms, interval_ms;
};
/* e is NULL on success. */
typedef void (*oidc_device_fn)(void *ctx, const struct err *e, const struct oidc_device *d);
int oidc_begin_device(struct oidc *o, oidc_device_fn done, void *ctx, struct err *e);

enum oidc_state { OIDC_SIGNED_IN, OIDC_PENDING, OIDC_SLOW_DOWN };
/* e is NULL on success; then id and refresh (may be NULL: the provider gave none) are set if state
 * is OIDC_SIGNED_IN. The other states are of devices: the user has not decided yet. */
typedef void (*oidc_user_fn)(void *ctx, const struct err *e, enum oidc_state state,
    const struct oidc_identity *id, const char *refresh);

int oidc_redeem_device(
    struct oidc *o, const char *device_code, oidc_user_fn done, void *ctx, struct err *e);
int oidc_redeem_code(struct oidc *o, const char *code, const char *verifier,
    const char *redirect_uri, const char *nonce, oidc_user_fn done, void *ctx, struct err *e);
int oidc_renew(struct oidc *o, const char *refresh, oidc_user_fn done, void *ctx, struct err *e);

/* The URL to which a browser is sent. */
typedef void (*oidc_url_fn)(void *ctx, const struct err *e, const char *url);
int oidc_authorize(struct oidc *o, const char *redirect_uri, const char *state, const char *nonce,
    const char *verifier, oidc_url_fn done, void *ctx, struct err *e);

#endif
