/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks the errors of a store as the store's (struct err, of_store), so that a full store is not
 * mistaken for a full disk of this machine, or vice versa. Also counts its calls, so that another
 * thread notices when one does not return (struct store_pulse).
 */
#ifndef BELAY_CKPT_STORE_STORE_ORIGIN_H
#define BELAY_CKPT_STORE_STORE_ORIGIN_H

#include "ckpt/store/store.h"

/* Wraps inner and marks its errors. Takes inner, and closes it when closed. pulse may be NULL. */
struct store *store_origin_wrap(struct store *inner, struct store_pulse *pulse);

/* For a store that could not be opened. Returns rc. */
int store_origin_mark(int rc, struct err *e);

#endif
