/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a directory of a file system.
 */
#ifndef BELAY_CKPT_STORE_STORE_FILE_H
#define BELAY_CKPT_STORE_STORE_FILE_H

#include "ckpt/store/store.h"

/* root is an absolute path, created if missing; with `existing`, ERR_NOT_FOUND. It is opened once,
 * so a later mount over it, or a replacement, has no effect on this store. */
int store_file_open(const char *root, bool existing, struct store **ret_store, struct err *e);

#endif
