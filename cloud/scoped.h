/* SPDX-License-Identifier: Apache-2.0
 *
 * Scoped credentials: short-lived ones that reach the objects of one job in a store and nothing
 * else, made with this process's own. What makes them is the provider's: a role's session with a
 * policy (Amazon, and servers like it), a token with an access boundary (Google), a user delegation
 * SAS (Azure, where it reaches the whole container: aws/sts.h, gcp/downscope.h and azure/sas.h say
 * what each limits).
 *
 * Nothing is tried again here, nor kept: that is the caller's. Secrets are wiped and never get into
 * an error or a log line.
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
    const char *bucket;  /* of Azure: the container */
    int64_t life_ms;     /* asked for; not of Google, whose tokens end with this process's own */
    const char *sts_url; /* of the token service; NULL: the provider's own. Not of Azure */
    /* Of Amazon: */
    const char *region;
    const char *role_arn;
    const char *kms_key; /* NULL: none */
    /* Of Azure: */
    const char *account;
    const char *service_url;  /* of the account's Blob service, without the last '/' */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

/* Whether these settings, http and timers aside, go together and are within the service's limits;
 * life_ms 0: not set. ERR_INVALID. */
int scoped_check(const struct scoped_options *o, struct err *e);

struct scoped;

/* Of options that were checked. This process's own credentials are looked for in their usual
 * places, with the first call. ERR_CONFIG: sts_url is no address that credentials may go to, or
 * half of a credential is in the environment. */
int scoped_create(const struct scoped_options *o, struct scoped **ret_scoped, struct err *e);
void scoped_destroy(struct scoped *s); /* calls under way are dropped; NULL is fine */

struct scoped_credentials {
    char access_key[129], secret_key[257]; /* of Amazon only */
    char token[8193];                      /* with them; else a bearer token, or a SAS */
    /* until their end, more than 0; from when they were asked for */
    int64_t left_ms;
};

/* Exactly one of e and c is NULL; both borrowed for the call. Errors: ERR_CONFIG (only an operator
 * can mend it), ERR_DENIED, ERR_THROTTLED, ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_INVALID (a reply that
 * is none). */
typedef void (*scoped_fn)(void *ctx, const struct err *e, const struct scoped_credentials *c);

struct scoped_call;

/* prefix: of the keys, from the bucket on; it ends in '/'. name: for the provider's audit log,
 * [A-Za-z0-9_=,.@-], 2 .. 64. done runs once, not inside the call, which is over then. */
struct scoped_call *scoped_get(
    struct scoped *s, const char *prefix, const char *name, scoped_fn done, void *ctx);
void scoped_cancel(struct scoped_call *c); /* done will not run; NULL is fine */

#endif
