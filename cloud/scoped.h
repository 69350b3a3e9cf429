/* SPDX-License-Identifier: Apache-2.0
 *
 * Scoped credentials: short-lived ones that reach the objects of one job in a store and nothing
 * else, made with this process's own. The mechanism is the provider's: a role session with a policy
 * (Amazon and compatible servers), a token with an access boundary (Google), a user delegation SAS
 * (Azure, where it reaches the whole container). aws/sts.h, gcp/downscope.h and azure/sas.h state
 * the limits of each.
 *
 * Retries and caching are up to the caller. Secrets are wiped and never appear in an error or a log
 * line.
 */
#ifndef BELAY_CLOUD_SCOPED_H
#define BELAY_CLOUD_SCOPED_H

#include "base/http.h"
#include "base/timers.h"
#include <stdbool.h>

enum scoped_kind { SCOPED_AWS, SCOPED_GOOGLE, SCOPED_AZURE };

/* Copied. */
struct scoped_options {
    enum scoped_kind kind;
    const char *bucket; /* for Azure: the container */
    /* requested life; not for Google, whose tokens expire with this process's own */
    int64_t life_ms;
    const char *sts_url; /* of the token service; NULL for the provider's own. Not for Azure */
    /* For Amazon: */
    const char *region;
    const char *role_arn;
    const char *kms_key; /* may be NULL */
    /* For Azure: */
    const char *account;
    const char *service_url;  /* of the account's Blob service, without the last '/' */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Checks that these settings, except http and timers, are consistent and within the service's
 * limits; life_ms 0 = not set. ERR_INVALID. */
int scoped_check(const struct scoped_options *o, struct err *e);

struct scoped;

/* o must have passed scoped_check. This process's own credentials are looked up in their usual
 * places at the first call. ERR_CONFIG: sts_url is not an address that credentials may be sent to,
 * or the environment has only half of a credential. */
int scoped_create(const struct scoped_options *o, struct scoped **ret_scoped, struct err *e);
void scoped_destroy(struct scoped *s); /* drops pending calls; s may be NULL */

struct scoped_credentials {
    char access_key[129], secret_key[257]; /* Amazon only */
    /* the session token that belongs to them; else a bearer token, or a SAS */
    char token[8193];
    /* until they expire, > 0; counted from the request */
    int64_t left_ms;
};

/* Exactly one of e and c is NULL; both are borrowed for the call. Errors: ERR_CONFIG (only an
 * operator can fix it), ERR_DENIED, ERR_THROTTLED, ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_INVALID (a
 * malformed reply). */
typedef void (*scoped_fn)(void *ctx, const struct err *e, const struct scoped_credentials *c);

struct scoped_call;

/* prefix: of the keys in the bucket; ends in '/'. name: for the provider's audit log, 2 .. 64
 * characters of [A-Za-z0-9_=,.@-]. done runs once, not inside the call; it ends the call. */
struct scoped_call *scoped_get(
    struct scoped *s, const char *prefix, const char *name, scoped_fn done, void *ctx);
void scoped_cancel(struct scoped_call *c); /* done will not run; c may be NULL */

#endif
