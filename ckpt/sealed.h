/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored form of an encrypted manifest: a head, the sealed text of manifest.h, and a hash of
 * all before it:
 *     {"format":"belay-checkpoint","version":3,"cipher":"aes-256-gcm","key":"<its
 *     id>","sealed":"<bytes>,"sha256":"<hex>"}
 * <bytes> are raw, so this is not JSON; a belay that does not know version 3 reports that, and
 * changes nothing. The hash distinguishes damage from encryption with a missing key; the seal
 * proves authenticity.
 */
#ifndef BELAY_CKPT_SEALED_H
#define BELAY_CKPT_SEALED_H

#include "base/buf.h"
#include "ckpt/crypt.h"

#define SEALED_MORE_MAX 512 /* at most so many bytes are added to the text */

/* Converts the text to its stored form. what: as in crypt_seal. */
void sealed_close(const struct crypt_key *k, const char *what, struct buf *text);

/* Whether it is sealed, by its head only. */
bool sealed_is(const struct buf *stored);

/* Converts a stored form that sealed_is accepts back to its text. ERR_CORRUPT; ERR_UNSUPPORTED:
 * apparently intact, but encrypted with a key that c (may be NULL) does not have. */
int sealed_open(const struct ckpt_crypt *c, const char *what, struct buf *stored,
    const struct crypt_key **ret_key, struct err *e);

#endif
