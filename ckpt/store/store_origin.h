/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks the errors of a store as the store's (struct err, of_store), so that a full store is not
 * mistaken for a full disk of this machine, or vice versa.
 */
#ifndef BELAY_CKPT_STORE_STORE_ORIGIN_H
#define BELAY_CKPT_STORE_STORE_ORIGIN_H

#include "ckpt/store/store.h"

/* Wraps inner and marks its errors. Takes inner, and closes it when closed. */
struct store *store_origin_wrap(struct store *inner);

/* For a store that could not be opened. Returns rc. */
int store_origin_mark(int rc, struct err *e);

#endif
