/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials for a network store: the user's own.
 */
#ifndef BELAY_CLI_KEYS_H
#define BELAY_CLI_KEYS_H

#include "ckpt/store/store_net.h"

/* For an s3://, gs:// or az:// store: from the environment, the provider's files, or this machine's
 * role. For any other store *ret_net is NULL. Blocks. Release with store_net_destroy. */
int keys_get(const char *url, struct store_net **ret_net, struct err *e);

#endif
