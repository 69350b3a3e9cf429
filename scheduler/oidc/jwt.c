/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifies tokens (see jwt.h). The key decides the algorithm as well as the token does: a key of a
 * set is for one, and a token that names another does not find it.
 */
#include "scheduler/oidc/jwt.h"

#include "base/b64.h"
#include "base/str.h"
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <string.h>

#define ES256_HALF 32

struct parts {
    const char *signed_text; /* header and claims */
    size_t signed_len;
    struct buf header, claims, signature;
};

static void parts_deinit(struct parts *p)
{
    buf_deinit(&p->header);
    buf_wipe(&p->claims);
    buf_deinit(&p->signature);
}

/* Splits HEADER.CLAIMS.SIGNATURE. */
static int split(const char *token, size_t n, struct parts *p, struct err *e)
{
    const char *first = memchr(token, '.', n);
    const char *second = first ? memchr(first + 1, '.', n - (size_t)(first + 1 - token)) : NULL;
    if (!second)
        return err_set(e, ERR_INVALID, "expected HEADER.CLAIMS.SIGNATURE");
    p->signed_text = token;
    p->signed_len = (size_t)(second - token);
    int rc = b64_url_decode(&p->header, token, (size_t)(first - token), e);
    if (rc == 0)
        rc = b64_url_decode(&p->claims, first + 1, (size_t)(second - first - 1), e);
    if (rc == 0)
        rc = b64_url_decode(&p->signature, second + 1, n - (size_t)(second + 1 - token), e);
    return rc;
}

static int read_header(const struct parts *p, enum jwt_alg *ret_alg, char kid[JWKS_KID_MAX],
    bool *ret_has_kid, struct err *e)
{
    static const char *const algs[] = {"RS256", "ES256", NULL};
    json_t *v = NULL;
    struct json_reader r;
    char shown[STR_SHOW_MAX];
    int rc = json_parse(buf_str(&p->header), p->header.len, JWT_BYTES_MAX, &v, e);
    if (rc != 0)
        return err_wrap(e, "header");
    json_reader_init(&r, v, "header", e);
    const char *alg = json_req_str(&r, "alg", 64);
    const char *type = json_opt_str(&r, "typ", 64, "JWT");
    json_opt_strcpy(&r, "kid", kid, JWKS_KID_MAX, "");
    *ret_has_kid = json_is_string(json_object_get(v, "kid"));
    if (r.rc == 0 && !str_is_one_of(alg, algs))
        json_reader_fail(&r, "alg", "expected RS256 or ES256, found %s", str_show(alg, shown));
    else if (r.rc == 0 && strcasecmp(type, "JWT") != 0)
        json_reader_fail(&r, "typ", "expected JWT, found %s", str_show(type, shown));
    else if (r.rc == 0 && json_object_get(v, "crit"))
        json_reader_fail(&r, "crit", "critical extensions are not supported");
    else if (r.rc == 0)
        *ret_alg = str_eq(alg, "RS256") ? JWT_RS256 : JWT_ES256;
    rc = json_reader_finish_lenient(&r);
    json_decref(v);
    return rc;
}

/* Two numbers, as the token has them, in the form that OpenSSL reads. */
static int to_der(const struct buf *raw, unsigned char **ret_der, int *ret_len)
{
    const unsigned char *p = (const unsigned char *)raw->data;
    if (raw->len != (size_t)2 * ES256_HALF)
        return -1;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(p, ES256_HALF, NULL), *s = BN_bin2bn(p + ES256_HALF, ES256_HALF, NULL);
    if (!sig || !ECDSA_SIG_set0(sig, r, s)) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(sig);
        return -1;
    }
    *ret_len = i2d_ECDSA_SIG(sig, ret_der);
    ECDSA_SIG_free(sig);
    return *ret_len > 0 ? 0 : -1;
}

static bool is_signed(const struct jwk *key, const struct parts *p)
{
    unsigned char *der = NULL;
    int der_len = 0;
    const unsigned char *sig = (const unsigned char *)buf_str(&p->signature);
    size_t sig_len = p->signature.len;
    if (key->alg == JWT_ES256) {
        if (to_der(&p->signature, &der, &der_len) != 0)
            return false;
        sig = der;
        sig_len = (size_t)der_len;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key->key) == 1 &&
              EVP_DigestVerify(
                  ctx, sig, sig_len, (const unsigned char *)p->signed_text, p->signed_len) == 1;
    EVP_MD_CTX_free(ctx);
    OPENSSL_free(der);
    ERR_clear_error();
    return ok;
}

static int verify(const struct jwks *k, const struct parts *p, struct err *e)
{
    enum jwt_alg alg = JWT_ALG_NONE;
    char kid[JWKS_KID_MAX], shown[STR_SHOW_MAX];
    bool has_kid;
    int rc = read_header(p, &alg, kid, &has_kid, e);
    if (rc != 0)
        return rc;
    const struct jwk *key = jwks_find(k, alg, has_kid ? kid : NULL);
    if (!key)
        return err_set(e, ERR_NOT_FOUND, "none of the provider's keys for %s has the id %s",
            alg == JWT_RS256 ? "RS256" : "ES256", has_kid ? str_show(kid, shown) : "(no id)");
    if (!is_signed(key, p))
        return err_set(e, ERR_DENIED, "the signature is wrong: the provider did not make it");
    return 0;
}

int jwt_verify(
    const struct jwks *k, const char *token, size_t n, json_t **ret_claims, struct err *e)
{
    struct parts p = {0};
    json_t *claims = NULL;
    if (n > JWT_BYTES_MAX)
        return err_set(e, ERR_INVALID, "%zu bytes, at most %d are accepted", n, JWT_BYTES_MAX);
    int rc = split(token, n, &p, e);
    if (rc == 0)
        rc = verify(k, &p, e);
    if (rc == 0)
        rc = json_parse(buf_str(&p.claims), p.claims.len, JWT_BYTES_MAX, &claims, e);
    if (rc == 0 && !json_is_object(claims)) {
        json_decref(claims);
        rc = err_set(e, ERR_INVALID, "the claims are not an object");
    }
    if (rc == 0)
        *ret_claims = claims;
    parts_deinit(&p);
    return rc;
}
