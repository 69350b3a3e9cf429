/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored form of a large manifest: a head, one zstd frame of the text of manifest.h, and a hash
 * of all before it:
 *     {"format":"belay-checkpoint","version":5,"zstd":"<bytes>,"sha256":"<hex>"}
 * <bytes> are raw, so this is not JSON. A belay that does not know version 5 reports that, and
 * changes nothing. Each checkpoint has a whole manifest: its names and hashes would otherwise cost
 * more than the few files that changed. An encrypted manifest is compressed first (sealed.h).
 */
#ifndef BELAY_CKPT_SHRUNK_H
#define BELAY_CKPT_SHRUNK_H

#include "base/buf.h"
#include <stdbool.h>

#define SHRUNK_FROM_BYTES (64u << 10) /* smaller ones stay readable */

/* Converts a text of SHRUNK_FROM_BYTES or more to its stored form; leaves others as they are. */
void shrunk_close(struct buf *text);

/* Whether it is compressed, by its head only. */
bool shrunk_is(const struct buf *stored);

/* Converts a stored form that shrunk_is accepts back to its text. ERR_CORRUPT. */
int shrunk_open(struct buf *stored, struct err *e);

#endif
