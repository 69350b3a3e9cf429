/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a directory of a file system.
 */
#ifndef BELAY_CKPT_STORE_STORE_FILE_H
#define BELAY_CKPT_STORE_STORE_FILE_H

#include "ckpt/store/store.h"

/* root is an absolute path, made if missing unless `existing`: then ERR_NOT_FOUND. It is opened
 * once: what is mounted over it or
 * put in its place afterwards is another store. */
int store_file_open(const char *root, bool existing, struct store **ret_store, struct err *e);

#endif
