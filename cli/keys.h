/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials for a network store: the user's own.
 */
#ifndef BELAY_CLI_KEYS_H
#define BELAY_CLI_KEYS_H

#include "ckpt/store/store.h"
#include "ckpt/store/store_net.h"

/* For an s3://, gs:// or az:// store: from the environment, the provider's files, or this machine's
 * role. For any other store *ret_net is NULL. Blocks. Release with store_net_destroy. */
int keys_get(const char *url, struct store_net **ret_net, struct err *e);

/* Opens an existing store with its keys, calls fn with it and closes it. Returns what fn returns,
 * or the error of opening. Blocks. */
int keys_with_store(const char *url, int (*fn)(void *ctx, struct store *s, struct err *e),
    void *ctx, struct err *e);

#endif
