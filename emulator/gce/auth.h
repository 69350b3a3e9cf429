/* SPDX-License-Identifier: Apache-2.0
 *
 * Google's service accounts, and authentication: bearer tokens issued for a signed assertion (RFC
 * 7523) or by the metadata service, and self-signed JWTs used directly, as Google's clients send
 * them. Signatures are RS256 by the account's key only.
 */
#ifndef BELAY_EMULATOR_GCE_AUTH_H
#define BELAY_EMULATOR_GCE_AUTH_H

#include "base/buf.h"
#include "base/time.h"
#include <openssl/evp.h>

#define GCE_ACCOUNTS_MAX 16
#define GCE_EMAIL_MAX 128 /* bytes including the NUL, also below */
#define GCE_KEY_ID_MAX 41
#define GCE_TOKEN_MAX 96
#define GCE_TOKENS_MAX 10000 /* live at a time; the oldest is dropped */
#define GCE_JWT_MAX 8192
#define GCE_TOKEN_TTL_S 3600

enum gce_role { GCE_ROLE_ADMIN, GCE_ROLE_VIEWER, GCE_ROLE_NONE };

struct gce_account {
    char email[GCE_EMAIL_MAX];
    char key_id[GCE_KEY_ID_MAX]; /* "" if unknown, as for a public key */
    enum gce_role role;
    EVP_PKEY *key; /* with its private half if it was made here */
};

/* The caller, and the scope of its token. */
struct gce_caller {
    const struct gce_account *account;
    bool has_scope; /* cloud-platform or compute: every method; else none */
};

struct gce_token {
    char text[GCE_TOKEN_MAX];
    char owner[64]; /* the instance it was issued to; "" for an assertion */
    struct gce_caller caller;
    struct wall expires;
};

struct gce_auth {
    struct gce_account accounts[GCE_ACCOUNTS_MAX];
    size_t n_accounts;
    struct gce_token *tokens; /* oldest first */
    size_t n_tokens;
};

void gce_auth_deinit(struct gce_auth *a); /* wipes the tokens */

/* Makes a key of 2048 bits. */
int gce_auth_make_key(struct gce_account *account, struct err *e);
/* Reads a public key, PEM. ERR_INVALID: malformed, not RSA, or less than 2048 bits. */
int gce_auth_read_key(struct gce_account *account, const char *pem, size_t n, struct err *e);
/* Appends the private key, PKCS #8 in PEM, to out. */
int gce_auth_write_key(const struct gce_account *account, struct buf *out, struct err *e);

/* NULL if unknown */
const struct gce_account *gce_auth_find(const struct gce_auth *a, const char *email);

bool gce_auth_scope_suffices(const char *scopes); /* separated by spaces */

/* Checks an assertion for the token endpoint. audiences: the accepted ones, NULL-terminated.
 * ERR_DENIED, with Google's message where known. clock: this machine's. */
int gce_auth_check_assertion(const struct gce_auth *a, const char *jwt,
    const char *const *audiences, struct wall clock, struct gce_caller *ret_caller, struct err *e);

/* Checks the text after "Bearer ". ERR_DENIED: not a token valid now. now: the region's time. */
int gce_auth_check_bearer(const struct gce_auth *a, const char *text, struct wall now,
    struct wall clock, struct gce_caller *ret_caller, struct err *e);

/* Issues a new token; for an owner, returns its previous one until a tenth of ttl_ms is left.
 * Borrowed until the next call. */
const struct gce_token *gce_auth_issue(struct gce_auth *a, const struct gce_caller *caller,
    const char *owner, int64_t ttl_ms, struct wall now);

#endif
