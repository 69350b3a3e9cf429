/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealing of what the database must not hold in clear: users' secrets, environments of jobs, URLs
 * of notifications. AES-256-GCM (ckpt/crypt.h) under keys of the cluster's key file (key_file.h):
 *
 *     key --HMAC of the cluster's uid--> seal key --HMAC of 32 random bytes--> used once, nonce 0
 *
 * The form is text, "s1.KEYID.BASE64": the version, the id of the key, which reveals nothing about
 * it, and the sealed bytes. It is bound to a text, `what`, which names the kind and the owner: it
 * opens only with the same one, so that no row can pass for another.
 *
 * The first key seals; the others only open. Tokens that are derived and not stored depend on the
 * last one, so that a new first key does not end them.
 *
 * The keys are in pages that no core dump contains.
 */
#ifndef BELAY_SCHEDULER_SECRETS_SEAL_H
#define BELAY_SCHEDULER_SECRETS_SEAL_H

#include "base/buf.h"
#include "ckpt/master.h"

#define SEAL_PLAIN_MAX (2u << 20)
#define SEAL_MAC_HEX 64
/* upper limit of the length of the sealed form of n bytes */
#define SEAL_SIZE(n) (3 + CRYPT_ID_HEX + 1 + 4 * (((n) + CRYPT_MORE + 2) / 3))

struct sealer;

/* Copies what it needs of m. */
struct sealer *sealer_create(const struct master *m);
void sealer_destroy(struct sealer *s); /* s may be NULL */

/* The id of the key that seals. */
const char *sealer_key_id(const struct sealer *s);
bool sealer_has_key(const struct sealer *s, const char *id);

/* The sealed form of n bytes, at most SEAL_PLAIN_MAX; free it with free(). */
char *seal(const struct sealer *s, const char *what, const void *p, size_t n);

/* Appends the content to ret, which the caller wipes (buf_wipe). ERR_INVALID: not a sealed form.
 * ERR_NOT_FOUND: its key is not in the key file. ERR_CORRUPT: modified, or sealed for another
 * `what`. */
int seal_open(
    const struct sealer *s, const char *what, const char *sealed, struct buf *ret, struct err *e);

/* Whether the text has the sealed form; it may not open. */
bool seal_is_sealed(const char *text);
/* Whether it is sealed with the current key. */
bool seal_is_current(const struct sealer *s, const char *sealed);

/* HMAC-SHA-256 of a text, in hex, for tokens that are derived and not stored. */
void sealer_mac(const struct sealer *s, const char *text, char out[SEAL_MAC_HEX + 1]);

#endif
