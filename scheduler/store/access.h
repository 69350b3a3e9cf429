/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's own credentials for the store: from its environment, a file, or this machine's role.
 * They are found on the loop, and used on a thread.
 */
#ifndef BELAY_SCHEDULER_STORE_ACCESS_H
#define BELAY_SCHEDULER_STORE_ACCESS_H

#include "base/timers.h"
#include "ckpt/store/store_net.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"

struct store_access {
    const char *url; /* of the store; borrowed, as all here */
    struct timers *timers;
    struct http_client *http;
    /* its own: */
    struct aws_credential_source *source; /* NULL: not needed yet */
    struct aws_credentials_wait wait;
    struct bearer *bearer; /* instead of source */
    enum store_keys_kind kind;
    struct store_net *net;
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
};

/* Puts them into net; done runs once, maybe at once. A store of this machine needs none:
 * *ret_net is NULL, and done is called. One at a time. *ret_net is the caller's
 * (store_net_destroy). */
void store_access_get(struct store_access *a, struct store_net **ret_net,
    void (*done)(void *ctx, const struct err *e), void *ctx);
/* The store refused them (ERR_DENIED): the next are read anew. */
void store_access_refused(struct store_access *a);
/* A wait is dropped. Before the HTTP client goes. Zeroed is fine. */
void store_access_deinit(struct store_access *a);

#endif
