/* SPDX-License-Identifier: Apache-2.0
 *
 * What an identity provider sends: tokens, key sets, its description. The first byte says which. No
 * token verifies, because the key set of this target is the fuzzer's; a key set that is accepted
 * has keys that OpenSSL can use; an identity that is accepted has a user's name.
 */
#include "base/str.h"
#include "scheduler/oidc/identity.h"
#include "scheduler/oidc/jwt.h"
#include "scheduler/oidc/provider.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEY[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e1\","
                          "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
                          "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\"}]}";

static void read_token(const char *text, size_t n)
{
    struct jwks *keys = NULL;
    struct err e = {0};
    json_t *claims = NULL;
    int rc = jwks_parse(KEY, sizeof(KEY) - 1, &keys, &e);
    assert(rc == 0 && keys->n == 1);
    rc = jwt_verify(keys, text, n, &claims, &e);
    assert(rc != 0 && e.text[0] && !claims);
    jwks_destroy(keys);
}

static void read_keys(const char *text, size_t n)
{
    struct jwks *keys = NULL;
    struct err e = {0};
    if (jwks_parse(text, n, &keys, &e) != 0) {
        assert(e.text[0]);
        return;
    }
    assert(keys->n <= JWKS_KEYS_MAX);
    for (size_t i = 0; i < keys->n; i++)
        assert(keys->keys[i].key && keys->keys[i].alg != JWT_ALG_NONE);
    jwks_destroy(keys);
}

static void read_claims(const char *text, size_t n)
{
    static char issuer[] = "https://idp.example", client[] = "belay", claim[] = "u", groups[] = "g";
    static char ops[] = "ops";
    struct config_oidc_group role = {.group = ops, .role = ROLE_OPERATOR};
    struct config_oidc o = {.issuer = issuer,
        .client_id = client,
        .audience = client,
        .user_claim = claim,
        .groups_claim = groups,
        .roles = &role,
        .n_roles = 1};
    struct oidc_identity id;
    struct err e = {0};
    json_t *v = NULL;
    if (json_parse(text, n, JWT_BYTES_MAX, &v, &e) != 0)
        return;
    if (oidc_identify(&o, v, NULL, (struct wall){1800000000000}, &id, &e) == 0)
        assert(str_is_name(id.user, CORE_NAME_MAX - 1) && id.subject[0]);
    else
        assert(e.kind == ERR_DENIED && e.text[0]);
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct provider_metadata m;
    struct err e = {0};
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    if (data[0] == 't') {
        read_token(text, size - 1);
    } else if (data[0] == 'k') {
        read_keys(text, size - 1);
    } else if (data[0] == 'c') {
        read_claims(text, size - 1);
    } else {
        if (provider_metadata_parse("https://idp.example", text, size - 1, &m, &e) == 0)
            assert(str_starts(m.token_endpoint, "https://"));
        provider_metadata_deinit(&m);
    }
    return 0;
}
