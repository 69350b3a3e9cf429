/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the credentials of network stores come from: the environment of this process, a file, or
 * this machine's role or identity at the provider. They are obtained on the loop and set in a
 * store_net, whose stores use them on worker threads.
 */
#ifndef BELAY_CKPT_STORE_KEYS_SOURCE_H
#define BELAY_CKPT_STORE_KEYS_SOURCE_H

#include "base/http.h"
#include "base/timers.h"
#include "ckpt/store/store_net.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"

/* e is NULL after success, and borrowed otherwise. */
typedef void (*keys_source_fn)(void *ctx, const struct err *e);

struct keys_source {
    enum store_keys_kind kind;
    const char *metadata_url; /* NULL for the provider's; borrowed, like all members */
    bool has_no_role;         /* Amazon's: the machine is not Amazon's */
    struct timers *timers;
    struct http_client *http;
    /* its own: */
    struct aws_credential_source *aws; /* NULL until needed */
    struct aws_credentials_wait wait;
    struct bearer *bearer; /* used instead of aws by the other kinds */
    struct store_net *net;
    keys_source_fn done; /* NULL if no call is pending */
    void *ctx;
};

/* Obtains the credentials and sets them in net; done runs exactly once, possibly inside this call.
 * One call at a time. */
void keys_source_get(struct keys_source *s, struct store_net *net, keys_source_fn done, void *ctx);
/* The same with a new net, for the store at url, whose kind it is. A store of this machine needs
 * none: *ret_net is NULL, and done is called. The caller owns *ret_net (store_net_destroy). */
void keys_source_get_net(struct keys_source *s, const char *url, struct store_net **ret_net,
    keys_source_fn done, void *ctx);
/* The store refused them (ERR_DENIED): the next credentials are read anew. */
void keys_source_refused(struct keys_source *s);
/* Drops a pending call. Call before the HTTP client is destroyed. A zeroed object is accepted. */
void keys_source_deinit(struct keys_source *s);

#endif
