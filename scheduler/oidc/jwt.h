/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Web Tokens (RFC 7519) in the compact form of RFC 7515.
 * Only the verification that OpenID Connect needs: RS256 with keys of 2048 to 8192 bits, and
 * ES256. Every other algorithm is refused, `none` and those with a shared secret included; so are
 * extensions that a token marks as critical.
 *
 * Written here on OpenSSL, and not taken from a library: libjwt of Debian 12 (1.10) reads no key
 * sets; cjose accepts many more algorithms than may be used, and sets no limits on sizes. What is
 * needed is two algorithms.
 *
 * All input is from outside: sizes are checked before anything is allocated by them, and errors
 * never quote a token.
 */
#ifndef BELAY_SCHEDULER_OIDC_JWT_H
#define BELAY_SCHEDULER_OIDC_JWT_H

#include "scheduler/oidc/jwks.h"

#define JWT_BYTES_MAX 16384

/* Verifies the signature of the n bytes and returns the claims, an object, as a new reference. The
 * claims themselves are not checked (identity.h).
 * ERR_NOT_FOUND: no key of the set has the token's key id; a newer set may.
 * ERR_INVALID: malformed, or an algorithm that is not accepted.
 * ERR_DENIED: the signature is wrong. */
int jwt_verify(
    const struct jwks *k, const char *token, size_t n, json_t **ret_claims, struct err *e);

#endif
