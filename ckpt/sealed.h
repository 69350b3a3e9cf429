/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored form of an encrypted manifest: the text of manifest.h, sealed, between a head that
 * says so and a hash of all before it:
 *     {"format":"belay-checkpoint","version":3,"cipher":"aes-256-gcm","key":"<its
 *     id>","sealed":"<bytes>,"sha256":"<hex>"}
 * <bytes> are as they are, so this is no JSON; a belay that does not know version 3 says so, and
 * touches nothing. The hash tells what was damaged from what is encrypted with a key that is not
 * here; whether it is what was saved, the seal tells.
 */
#ifndef BELAY_CKPT_SEALED_H
#define BELAY_CKPT_SEALED_H

#include "base/buf.h"
#include "ckpt/crypt.h"

#define SEALED_MORE_MAX 512 /* bytes by which it is longer than the text, at most */

/* The text becomes its stored form. what: as of crypt_seal. */
void sealed_close(const struct crypt_key *k, const char *what, struct buf *text);

/* Whether it is one, by its head alone. */
bool sealed_is(const struct buf *stored);

/* What sealed_is becomes its text again. ERR_CORRUPT; ERR_UNSUPPORTED: it is whole as far as can be
 * seen, but encrypted with a key that c (may be NULL) does not have. */
int sealed_open(const struct ckpt_crypt *c, const char *what, struct buf *stored,
    const struct crypt_key **ret_key, struct err *e);

#endif
