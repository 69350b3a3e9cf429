/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's own credentials for the store: from its environment, a file, or this machine's role.
 * They are obtained on the loop, and used on a thread.
 */
#ifndef BELAY_SCHEDULER_STORE_ACCESS_H
#define BELAY_SCHEDULER_STORE_ACCESS_H

#include "base/timers.h"
#include "ckpt/store/store_net.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"

struct store_access {
    const char *url; /* the store's URL; borrowed, like all members */
    struct timers *timers;
    struct http_client *http;
    /* its own: */
    struct aws_credential_source *source; /* NULL until needed */
    struct aws_credentials_wait wait;
    struct bearer *bearer; /* used instead of source */
    enum store_keys_kind kind;
    struct store_net *net;
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
};

/* Obtains the credentials; done runs exactly once, possibly inside this call. A store of this
 * machine needs none: *ret_net is NULL, and done is called. One call at a time. The caller owns
 * *ret_net (store_net_destroy). */
void store_access_get(struct store_access *a, struct store_net **ret_net,
    void (*done)(void *ctx, const struct err *e), void *ctx);
/* The store refused them (ERR_DENIED): the next credentials are read anew. */
void store_access_refused(struct store_access *a);
/* Drops a pending call. Call before the HTTP client is destroyed. A zeroed object is accepted. */
void store_access_deinit(struct store_access *a);

#endif
