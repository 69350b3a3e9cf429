/* SPDX-License-Identifier: Apache-2.0
 *
 * Key sets (see jwks.h).
 */
#include "scheduler/oidc/jwks.h"

#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define EXPONENT_BYTES_MAX 4
#define P256_BYTES 32

/* Reads an integer of a key, big-endian in base64url, of min to max bytes. */
static int read_number(
    const json_t *key, const char *name, size_t min, size_t max, struct buf *ret, struct err *e)
{
    const json_t *v = json_object_get(key, name);
    size_t n = json_is_string(v) ? json_string_length(v) : 0;
    if (n == 0 || n > 2 * max + 4)
        return err_set(e, ERR_INVALID, "%s: expected a number in base64url", name);
    int rc = b64_url_decode(ret, json_string_value(v), n, e);
    if (rc != 0)
        return err_wrap(e, "%s", name);
    if (ret->len < min || ret->len > max)
        return err_set(
            e, ERR_INVALID, "%s: expected %zu to %zu bytes, found %zu", name, min, max, ret->len);
    return 0;
}

static int make_key(const char *type, OSSL_PARAM *params, EVP_PKEY **ret_key, struct err *e)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    int rc = 0;
    if (!ctx || !params || EVP_PKEY_fromdata_init(ctx) <= 0 ||
        EVP_PKEY_fromdata(ctx, ret_key, EVP_PKEY_PUBLIC_KEY, params) <= 0)
        rc = err_set(e, ERR_INVALID, "OpenSSL does not accept the %s key", type);
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    return rc;
}

static int read_rsa(const json_t *key, EVP_PKEY **ret_key, struct err *e)
{
    struct buf n = {0}, exponent = {0};
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    BIGNUM *bn = NULL, *be = NULL;
    int rc = read_number(key, "n", RSA_BYTES_MIN, RSA_BYTES_MAX, &n, e);
    if (rc == 0)
        rc = read_number(key, "e", 1, EXPONENT_BYTES_MAX, &exponent, e);
    if (rc != 0)
        goto out;
    bn = BN_bin2bn((const unsigned char *)n.data, (int)n.len, NULL);
    be = BN_bin2bn((const unsigned char *)exponent.data, (int)exponent.len, NULL);
    if (BN_num_bits(bn) < 8 * RSA_BYTES_MIN || !BN_is_odd(bn) || !BN_is_odd(be) || BN_is_one(be)) {
        rc = err_set(e, ERR_INVALID,
            "an RSA key needs an odd modulus of %d bits or more, and an "
            "odd exponent above 1",
            8 * RSA_BYTES_MIN);
        goto out;
    }
    if (b && OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, bn) &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, be))
        params = OSSL_PARAM_BLD_to_param(b);
    rc = make_key("RSA", params, ret_key, e);
out:
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    BN_free(bn);
    BN_free(be);
    buf_deinit(&n);
    buf_deinit(&exponent);
    return rc;
}

static int read_ec(const json_t *key, EVP_PKEY **ret_key, struct err *e)
{
    struct buf point = {0};
    char group[] = "prime256v1";
    buf_addc(&point, 4); /* uncompressed */
    struct buf x = {0}, y = {0};
    int rc = read_number(key, "x", P256_BYTES, P256_BYTES, &x, e);
    if (rc == 0)
        rc = read_number(key, "y", P256_BYTES, P256_BYTES, &y, e);
    if (rc == 0) {
        buf_add(&point, x.data, x.len);
        buf_add(&point, y.data, y.len);
        OSSL_PARAM params[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
            OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.data, point.len),
            OSSL_PARAM_construct_end(),
        };
        rc = make_key("EC", params, ret_key, e);
    }
    buf_deinit(&x);
    buf_deinit(&y);
    buf_deinit(&point);
    return rc;
}

static const char *text_of(const json_t *key, const char *name)
{
    const char *text = json_string_value(json_object_get(key, name));
    return text ? text : "";
}

/* The algorithm that the key can verify; 0 if none. */
static enum jwt_alg alg_of(const json_t *key)
{
    const char *use = text_of(key, "use"), *alg = text_of(key, "alg"), *kty = text_of(key, "kty");
    if (use[0] && !str_eq(use, "sig"))
        return JWT_ALG_NONE;
    if (str_eq(kty, "RSA") && (!alg[0] || str_eq(alg, "RS256")))
        return JWT_RS256;
    if (str_eq(kty, "EC") && str_eq(text_of(key, "crv"), "P-256") &&
        (!alg[0] || str_eq(alg, "ES256")))
        return JWT_ES256;
    return JWT_ALG_NONE;
}

static int add_key(struct jwks *set, const json_t *value, struct err *e)
{
    struct jwk key = {.alg = alg_of(value)};
    if (key.alg == JWT_ALG_NONE)
        return 0;
    if (!STR_COPY(key.kid, text_of(value, "kid")))
        return err_set(e, ERR_INVALID, "kid: at most %d bytes", JWKS_KID_MAX - 1);
    int rc = key.alg == JWT_RS256 ? read_rsa(value, &key.key, e) : read_ec(value, &key.key, e);
    if (rc == 0)
        set->keys[set->n++] = key;
    return rc;
}

int jwks_parse(const char *text, size_t n, struct jwks **ret_keys, struct err *e)
{
    json_t *v = NULL;
    struct jwks *set = mem_alloc(sizeof(*set));
    int rc = json_parse(text, n, JWKS_BYTES_MAX, &v, e);
    const json_t *keys = json_object_get(v, "keys"), *key;
    size_t i;
    if (rc == 0 && (!json_is_array(keys) || json_array_size(keys) > JWKS_KEYS_MAX))
        rc = err_set(e, ERR_INVALID, "keys: expected a list of at most %d", JWKS_KEYS_MAX);
    json_array_foreach(keys, i, key)
    {
        if (rc != 0)
            break;
        rc = add_key(set, key, e);
        if (rc != 0)
            err_wrap(e, "keys[%zu]", i);
    }
    json_decref(v);
    if (rc != 0)
        jwks_destroy(set);
    else
        *ret_keys = set;
    return rc == 0 ? 0 : err_wrap(e, "key set");
}

void jwks_destroy(struct jwks *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++)
        EVP_PKEY_free(k->keys[i].key);
    free(k);
}

const struct jwk *jwks_find(const struct jwks *k, enum jwt_alg alg, const char *kid)
{
    const struct jwk *found = NULL;
    for (size_t i = 0; i < k->n; i++) {
        const struct jwk *key = &k->keys[i];
        if (key->alg != alg || (kid && !str_eq(key->kid, kid)))
            continue;
        if (kid)
            return key;
        if (found)
            return NULL; /* which one is unknown */
        found = key;
    }
    return found;
}
