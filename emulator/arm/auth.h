/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication of the emulated Azure: applications with a secret, and virtual machines with an
 * identity. Access tokens are JSON Web Tokens signed with a key made at the start, so nothing has
 * to be stored.
 */
#ifndef BELAY_EMULATOR_ARM_AUTH_H
#define BELAY_EMULATOR_ARM_AUTH_H

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

#define ARM_AUTH_KEY_BYTES 32
#define ARM_AUTH_TEXT_MAX 129
#define ARM_TOKEN_MAX 4096
#define ARM_AUDIENCE "https://management.azure.com/"

struct arm_client {
    char id[ARM_AUTH_TEXT_MAX], secret[ARM_AUTH_TEXT_MAX];
};

struct arm_auth {
    const char *tenant; /* its id */
    const struct arm_client *clients;
    size_t n_clients;
    int64_t token_ttl_ms;
    unsigned char key[ARM_AUTH_KEY_BYTES]; /* random */
};

/* Appends an access token for this client and audience. */
void arm_auth_token(const struct arm_auth *auth, const char *client_id, const char *audience,
    int64_t ttl_ms, struct wall now, struct buf *out);

/* Checks an Authorization header (may be NULL). Returns NULL if it is valid; otherwise ARM's error
 * code, with its message in *ret_text. */
const char *arm_auth_check(
    const struct arm_auth *auth, const char *authorization, struct wall now, struct err *ret_text);

/* POST /TENANT/oauth2/v2.0/token. Returns the HTTP status; the caller frees *ret_body. */
int arm_auth_grant(const struct arm_auth *auth, const char *tenant, const char *form, size_t n,
    struct wall now, json_t **ret_body);

#endif
