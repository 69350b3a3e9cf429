/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of one job's encrypted checkpoints, and bytes sealed with them: AES-256-GCM. What is
 * encrypted and what is not stands in docs/reference/stores.md.
 *
 *     master key (master.h) --HMAC of the cluster's uid and the job--> job key
 *     job key --HMAC--> seal key, name key, id
 *     seal key --HMAC of 32 random bytes for each sealing--> sealing key, used once, with nonce 0
 *
 * So no nonce is used twice with a key: a key is used once, and two sealings draw the same 256
 * random bits never. There is nothing to count and nothing to remember over restarts, nodes and
 * attempts.
 *
 * What is sealed is bound to a text, `what`: the kind of object, cluster, job, and number or name.
 * It opens under the same text only, so no object passes for another one, or for another job's.
 */
#ifndef BELAY_CKPT_CRYPT_H
#define BELAY_CKPT_CRYPT_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define CRYPT_KEY_BYTES 32
#define CRYPT_KEY_HEX (2 * CRYPT_KEY_BYTES)
#define CRYPT_KEYS_MAX 8 /* the current one and those before it */
#define CRYPT_ID_HEX 16
#define CRYPT_MORE 48 /* bytes by which sealed is longer: the random ones, and GCM's tag */
#define CRYPT_NAME_HEX 64

struct crypt_key {
    unsigned char seal[CRYPT_KEY_BYTES], name[CRYPT_KEY_BYTES];
    char id[CRYPT_ID_HEX + 1]; /* tells keys apart, and nothing about them */
};

/* Zeroed: there are none, and nothing is encrypted. To be wiped. */
struct ckpt_crypt {
    struct crypt_key keys[CRYPT_KEYS_MAX]; /* the current one first */
    size_t n;
    bool encrypts;      /* checkpoints to come, with keys[0]; only if there is one */
    bool refuses_plain; /* a checkpoint that is not encrypted counts as damaged */
    /* for a restore that does as root what the store holds: a checkpoint that is not encrypted is
     * ERR_CONFIG, and stays where it is */
    bool only_sealed;
};

/* Adds a job key, of 64 hex digits. ERR_INVALID: it is not, or there are too many. */
int crypt_add(struct ckpt_crypt *c, const char *hex, struct err *e);
/* The same of 32 bytes; there is room. */
void crypt_add_bytes(struct ckpt_crypt *c, const unsigned char key[CRYPT_KEY_BYTES]);
/* The key with this id; NULL: it is not among them. c may be NULL. */
const struct crypt_key *crypt_find(const struct ckpt_crypt *c, const char *id);
void crypt_wipe(struct ckpt_crypt *c);

/* The n bytes at p become n + CRYPT_MORE sealed ones: there is room for them. */
void crypt_seal(const struct crypt_key *k, const char *what, void *p, size_t n);
/* The inverse in place; n is that of what is sealed. *ret_n is n - CRYPT_MORE. ERR_CORRUPT, and p
 * is overwritten: it is not what was sealed with this key under this text. */
int crypt_open(
    const struct crypt_key *k, const char *what, void *p, size_t n, size_t *ret_n, struct err *e);

/* What a chunk of content with this hash (64 hex digits) is called: an HMAC, which without the key
 * tells nothing about the content, not even to one who guesses it. */
void crypt_name(const struct crypt_key *k, const char *sha256, char out[CRYPT_NAME_HEX + 1]);

/* HMAC-SHA-256 of a text that is part of the derivations above. */
void crypt_derive(const unsigned char key[CRYPT_KEY_BYTES], const void *p, size_t n,
    unsigned char out[CRYPT_KEY_BYTES]);

#endif
