/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of one job's encrypted checkpoints, and sealing of bytes with them: AES-256-GCM.
 * docs/reference/stores.md says what is encrypted and what is not.
 *
 *     master key (master.h) --HMAC of the cluster's uid and the job--> job key
 *     job key --HMAC--> seal key, name key, id
 *     seal key --HMAC of 32 random bytes for each sealing--> sealing key, used once, with nonce 0
 *
 * So no nonce is used twice with a key: each sealing key is derived from 256 random bits and used
 * once. No counter has to survive restarts, or be shared by nodes and attempts.
 *
 * Sealed data is bound to a text, `what`: the kind of object, cluster, job, and number or name. It
 * opens only with the same text, so no object can pass for another one, or for another job's.
 */
#ifndef BELAY_CKPT_CRYPT_H
#define BELAY_CKPT_CRYPT_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define CRYPT_KEY_BYTES 32
#define CRYPT_KEY_HEX (2 * CRYPT_KEY_BYTES)
#define CRYPT_KEYS_MAX 8 /* the current one and earlier ones */
#define CRYPT_ID_HEX 16
#define CRYPT_MORE 48 /* bytes added by sealing: the random ones and GCM's tag */
#define CRYPT_NAME_HEX 64

struct crypt_key {
    unsigned char seal[CRYPT_KEY_BYTES], name[CRYPT_KEY_BYTES];
    char id[CRYPT_ID_HEX + 1]; /* identifies the key, and reveals nothing about it */
};

/* Zeroed = no keys, nothing is encrypted. Wipe after use. */
struct ckpt_crypt {
    struct crypt_key keys[CRYPT_KEYS_MAX]; /* the current one first */
    size_t n;
    bool encrypts;      /* encrypt new checkpoints with keys[0], which must exist */
    bool refuses_plain; /* treat an unencrypted checkpoint as damaged */
    /* for a restore that runs the store's content as root: an unencrypted checkpoint is ERR_CONFIG,
     * and is not set aside */
    bool only_sealed;
};

/* Adds a job key, of 64 hex digits. ERR_INVALID if malformed or too many. */
int crypt_add(struct ckpt_crypt *c, const char *hex, struct err *e);
/* Same for 32 raw bytes; there must be space. */
void crypt_add_bytes(struct ckpt_crypt *c, const unsigned char key[CRYPT_KEY_BYTES]);
/* The key with this id; NULL if there is none. c may be NULL. */
const struct crypt_key *crypt_find(const struct ckpt_crypt *c, const char *id);
void crypt_wipe(struct ckpt_crypt *c);

/* Seals the n bytes at p in place; they become n + CRYPT_MORE bytes, for which there must be
 * space. */
void crypt_seal(const struct crypt_key *k, const char *what, void *p, size_t n);
/* The inverse, in place; n is the sealed size, *ret_n is n - CRYPT_MORE. ERR_CORRUPT, with p
 * overwritten, unless it was sealed with this key and this text. */
int crypt_open(
    const struct crypt_key *k, const char *what, void *p, size_t n, size_t *ret_n, struct err *e);

/* The name of a chunk whose content has this hash (64 hex digits): an HMAC, which without the key
 * reveals nothing about the content, not even whether a guess is right. */
void crypt_name(const struct crypt_key *k, const char *sha256, char out[CRYPT_NAME_HEX + 1]);

/* HMAC-SHA-256 of a text that is part of the derivations above. */
void crypt_derive(const unsigned char key[CRYPT_KEY_BYTES], const void *p, size_t n,
    unsigned char out[CRYPT_KEY_BYTES]);

#endif
