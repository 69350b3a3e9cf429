/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of public keys (RFC 7517) that verify tokens (jwt.h): RSA keys of 2048 to 8192 bits for
 * RS256, P-256 keys for ES256. Other keys of a set are ignored. Sizes are checked before anything
 * is allocated by them.
 */
#ifndef BELAY_SCHEDULER_OIDC_JWKS_H
#define BELAY_SCHEDULER_OIDC_JWKS_H

#include "base/json.h"
#include <openssl/evp.h>

#define JWKS_BYTES_MAX 65536
#define JWKS_KEYS_MAX 64
#define JWKS_KID_MAX 256

enum jwt_alg { JWT_ALG_NONE, JWT_RS256, JWT_ES256 };

struct jwk {
    enum jwt_alg alg;
    char kid[JWKS_KID_MAX];
    EVP_PKEY *key;
};

struct jwks {
    struct jwk keys[JWKS_KEYS_MAX];
    size_t n;
};

/* ERR_INVALID: not a key set, or a key that could be used is malformed. *ret_keys may be empty. */
int jwks_parse(const char *text, size_t n, struct jwks **ret_keys, struct err *e);
void jwks_destroy(struct jwks *k); /* k may be NULL */

/* The key with that id, for that algorithm; kid NULL: the only key for it. Returns NULL if there is
 * none. */
const struct jwk *jwks_find(const struct jwks *k, enum jwt_alg alg, const char *kid);

#endif
