/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store over a network is opened with, here: the user's own credentials.
 */
#ifndef BELAY_CLI_KEYS_H
#define BELAY_CLI_KEYS_H

#include "ckpt/store/store_net.h"

/* Of an s3:// store: the environment's, the credentials file's, or this machine's role; else
 * *ret_net is NULL. Blocks. store_net_destroy. */
int keys_get(const char *url, struct store_net **ret_net, struct err *e);

#endif
