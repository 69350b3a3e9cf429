/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the identity provider: its endpoints (OpenID Connect Discovery) and its keys,
 * fetched over https and kept for an hour. Both are fetched again earlier when a token names an
 * unknown key, but only some times in a while, so that bad tokens cannot make belayd call the
 * provider without end.
 */
#ifndef BELAY_SCHEDULER_OIDC_PROVIDER_H
#define BELAY_SCHEDULER_OIDC_PROVIDER_H

#include "base/http.h"
#include "base/list.h"
#include "base/timers.h"
#include "scheduler/config/oidc.h"
#include "scheduler/oidc/jwks.h"

#define PROVIDER_CALL_MS 20000
#define PROVIDER_REPLY_MAX 65536
#define PROVIDER_RELOADS_MAX 5 /* for unknown keys, within PROVIDER_RELOADS_MS */
#define PROVIDER_RELOADS_MS SECONDS_MS(300)

struct provider_metadata {
    char *authorization_endpoint, *token_endpoint, *jwks_uri;
    char *device_endpoint;  /* NULL: it has no device flow */
    bool secret_is_in_body; /* not in the header Authorization */
};

/* Reads a discovery document. ERR_INVALID: malformed, an endpoint is not https, or the issuer is
 * another. Free with provider_metadata_deinit in all cases. */
int provider_metadata_parse(
    const char *issuer, const char *text, size_t n, struct provider_metadata *ret, struct err *e);
void provider_metadata_deinit(struct provider_metadata *m);

struct provider;

struct provider_options {
    struct http_client *http;
    const struct clock *clock;
    const struct config_oidc *config;
};

/* All borrowed. ERR_*: ca_file or client_secret_file cannot be read. */
int provider_create(const struct provider_options *o, struct provider **ret, struct err *e);
/* Nobody may wait, and the HTTP client is destroyed already. p may be NULL. */
void provider_destroy(struct provider *p);
const char *provider_ca(const struct provider *p); /* PEM; NULL: the system's */

/* Who waits for a load; in the waiter's memory. */
struct provider_wait {
    struct link in_provider;
    void (*fn)(struct provider_wait *w, const struct err *e);
};

/* True if endpoints and keys are known now. Else fn runs later, e NULL when they are. */
bool provider_ready(struct provider *p, struct provider_wait *w);
/* Fetches both again; fn runs later. False if that was done too often lately. */
bool provider_reload(struct provider *p, struct provider_wait *w);

/* Valid until the loop runs next. */
const struct provider_metadata *provider_metadata(const struct provider *p);
const struct jwks *provider_keys(const struct provider *p);

#endif
