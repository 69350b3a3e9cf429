/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/gce/auth.h"
#include "base/b64.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BITS 2048
#define SKEW_MS SECONDS_MS(300)
#define LIFE_MAX_MS SECONDS_MS(3600)
#define SELF_AUDIENCE "https://compute.googleapis.com/"

void gce_auth_deinit(struct gce_auth *a)
{
    for (size_t k = 0; k < a->n_accounts; k++)
        EVP_PKEY_free(a->accounts[k].key);
    if (a->tokens)
        explicit_bzero(a->tokens, a->n_tokens * sizeof(*a->tokens));
    free(a->tokens);
    *a = (struct gce_auth){0};
}

/* ---- Keys ---- */

int gce_auth_make_key(struct gce_account *account, struct err *e)
{
    account->key = EVP_RSA_gen(KEY_BITS);
    random_hex(20, account->key_id);
    return account->key ? 0 : err_set(e, ERR_INTERNAL, "cannot make a key for %s", account->email);
}

int gce_auth_read_key(struct gce_account *account, const char *pem, size_t n, struct err *e)
{
    BIO *in = BIO_new_mem_buf(pem, (int)n);
    account->key = PEM_read_bio_PUBKEY(in, NULL, NULL, NULL);
    BIO_free(in);
    if (!account->key)
        return err_set(e, ERR_INVALID, "expected a public key (-----BEGIN PUBLIC KEY-----)");
    if (EVP_PKEY_get_base_id(account->key) != EVP_PKEY_RSA ||
        EVP_PKEY_get_bits(account->key) < KEY_BITS)
        return err_set(e, ERR_INVALID, "expected an RSA key of %d bits or more", KEY_BITS);
    return 0;
}

int gce_auth_write_key(const struct gce_account *account, struct buf *out, struct err *e)
{
    BIO *b = BIO_new(BIO_s_secmem());
    char *data = NULL;
    int ok = PEM_write_bio_PKCS8PrivateKey(b, account->key, NULL, NULL, 0, NULL, NULL);
    long n = BIO_get_mem_data(b, &data);
    if (ok == 1)
        buf_add(out, data, (size_t)n);
    BIO_free(b);
    return ok == 1 ? 0 : err_set(e, ERR_INTERNAL, "cannot write the key of %s", account->email);
}

const struct gce_account *gce_auth_find(const struct gce_auth *a, const char *email)
{
    for (size_t k = 0; k < a->n_accounts; k++)
        if (str_eq(a->accounts[k].email, email))
            return &a->accounts[k];
    return NULL;
}

bool gce_auth_scope_suffices(const char *scopes)
{
    static const char *const good[] = {"https://www.googleapis.com/auth/cloud-platform",
        "https://www.googleapis.com/auth/compute", NULL};
    for (const char *p = scopes; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        for (size_t k = 0; good[k]; k++)
            if (strlen(good[k]) == n && strncmp(p, good[k], n) == 0)
                return true;
        p += n;
    }
    return false;
}

/* ---- JSON Web Tokens ---- */

/* Base64 with the alphabet for URLs, without padding (RFC 4648, 5). */
static int decode_part(const char *p, size_t n, struct buf *out)
{
    struct buf usual = {0};
    for (size_t k = 0; k < n; k++) {
        if (p[k] == '+' || p[k] == '/' || p[k] == '=' || p[k] == '\n' || p[k] == '\r') {
            buf_deinit(&usual);
            return ERR_INVALID;
        }
        buf_addc(&usual, p[k] == '-' ? '+' : p[k] == '_' ? '/' : p[k]);
    }
    while (usual.len % 4)
        buf_addc(&usual, '=');
    int rc = b64_decode(out, buf_str(&usual), usual.len, NULL);
    buf_deinit(&usual);
    return rc;
}

static int decode_json(const char *p, size_t n, json_t **ret_object)
{
    struct buf text = {0};
    int rc = decode_part(p, n, &text);
    if (rc == 0)
        rc = json_parse(buf_str(&text), text.len, GCE_JWT_MAX, ret_object, NULL);
    buf_deinit(&text);
    return rc;
}

static bool is_signed_by(EVP_PKEY *key, const char *text, size_t n, const struct buf *signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool is_it = EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                 EVP_DigestVerify(ctx, (const unsigned char *)buf_str(signature), signature->len,
                     (const unsigned char *)text, n) == 1;
    EVP_MD_CTX_free(ctx);
    return is_it;
}

struct jwt {
    json_t *header, *claims;
    struct buf signature;
    const char *text;
    size_t n_signed; /* length of the signed text */
};

static void jwt_deinit(struct jwt *j)
{
    json_decref(j->header);
    json_decref(j->claims);
    buf_deinit(&j->signature);
}

static int jwt_read(const char *text, struct jwt *j, struct err *e)
{
    *j = (struct jwt){.text = text};
    const char *dot = strlen(text) <= GCE_JWT_MAX ? strchr(text, '.') : NULL,
               *end = dot ? strchr(dot + 1, '.') : NULL;
    if (!end || strchr(end + 1, '.') || decode_json(text, (size_t)(dot - text), &j->header) < 0 ||
        decode_json(dot + 1, (size_t)(end - dot - 1), &j->claims) < 0 ||
        decode_part(end + 1, strlen(end + 1), &j->signature) < 0 || !json_is_object(j->header) ||
        !json_is_object(j->claims))
        return err_set(e, ERR_DENIED, "Invalid JWT: Failed audience check or malformed token.");
    j->n_signed = (size_t)(end - text);
    return 0;
}

static const char *claim(const struct jwt *j, const char *name)
{
    const char *text = json_string_value(json_object_get(j->claims, name));
    return text ? text : "";
}

static int check_times(const struct jwt *j, struct wall clock, struct err *e)
{
    const json_t *iat = json_object_get(j->claims, "iat"), *exp = json_object_get(j->claims, "exp");
    int64_t from = json_integer_value(iat), to = json_integer_value(exp), max_s = INT64_MAX / 1000;
    if (!json_is_integer(iat) || !json_is_integer(exp) || from < 0 || to < from || to > max_s ||
        SECONDS_MS(to - from) > LIFE_MAX_MS || SECONDS_MS(from) > clock.ms + SKEW_MS ||
        SECONDS_MS(to) <= clock.ms)
        return err_set(e, ERR_DENIED,
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
            "timeframe. Check your iat and exp values in the JWT claim.");
    return 0;
}

/* Checks common to both uses: format, issuer, signature and times. */
static int check_jwt(const struct gce_auth *a, const struct jwt *j, struct wall clock,
    const struct gce_account **ret_account, struct err *e)
{
    const struct gce_account *account = gce_auth_find(a, claim(j, "iss"));
    const char *kid = json_string_value(json_object_get(j->header, "kid"));
    if (!str_eq(json_string_value(json_object_get(j->header, "alg")), "RS256"))
        return err_set(e, ERR_DENIED, "Invalid JWT: the algorithm must be RS256.");
    if (!account)
        return err_set(e, ERR_DENIED, "Invalid grant: account not found");
    bool is_other_key = kid && account->key_id[0] && !str_eq(kid, account->key_id);
    if (is_other_key || !is_signed_by(account->key, j->text, j->n_signed, &j->signature))
        return err_set(e, ERR_DENIED, "Invalid JWT Signature.");
    *ret_account = account;
    return check_times(j, clock, e);
}

int gce_auth_check_assertion(const struct gce_auth *a, const char *jwt,
    const char *const *audiences, struct wall clock, struct gce_caller *ret_caller, struct err *e)
{
    struct jwt j;
    const struct gce_account *account = NULL;
    int rc = jwt_read(jwt, &j, e);
    if (rc == 0)
        rc = check_jwt(a, &j, clock, &account, e);
    bool is_for_us = false;
    for (size_t k = 0; rc == 0 && audiences[k]; k++)
        is_for_us |= str_eq(claim(&j, "aud"), audiences[k]);
    if (rc == 0 && !is_for_us)
        rc = err_set(e, ERR_DENIED, "Invalid JWT: Failed audience check. The right audience is %s",
            audiences[0]);
    if (rc == 0)
        *ret_caller = (struct gce_caller){
            .account = account, .has_scope = gce_auth_scope_suffices(claim(&j, "scope"))};
    jwt_deinit(&j);
    return rc;
}

/* iss and sub are the account; its validity comes from either a scope or the service as audience.
 */
static int check_self_signed(const struct gce_auth *a, const char *jwt, struct wall clock,
    struct gce_caller *ret_caller, struct err *e)
{
    struct jwt j;
    const struct gce_account *account = NULL;
    int rc = jwt_read(jwt, &j, e);
    if (rc == 0)
        rc = check_jwt(a, &j, clock, &account, e);
    if (rc == 0 && !str_eq(claim(&j, "sub"), account->email))
        rc = err_set(e, ERR_DENIED, "the subject is not the issuer");
    if (rc == 0)
        *ret_caller = (struct gce_caller){.account = account,
            .has_scope = gce_auth_scope_suffices(claim(&j, "scope")) ||
                         str_eq(claim(&j, "aud"), SELF_AUDIENCE)};
    jwt_deinit(&j);
    return rc;
}

/* ---- Tokens ---- */

int gce_auth_check_bearer(const struct gce_auth *a, const char *text, struct wall now,
    struct wall clock, struct gce_caller *ret_caller, struct err *e)
{
    if (str_starts(text, "eyJ"))
        return check_self_signed(a, text, clock, ret_caller, e);
    for (size_t k = 0; k < a->n_tokens; k++) {
        if (!str_secret_eq(a->tokens[k].text, text))
            continue;
        if (now.ms >= a->tokens[k].expires.ms)
            return err_set(e, ERR_DENIED, "the token has expired");
        *ret_caller = a->tokens[k].caller;
        return 0;
    }
    return err_set(e, ERR_DENIED, "the token is not known");
}

/* Drops expired tokens, and the oldest ones beyond the limit. */
static void forget_tokens(struct gce_auth *a, struct wall now)
{
    size_t n = 0, surplus = a->n_tokens >= GCE_TOKENS_MAX ? a->n_tokens - GCE_TOKENS_MAX + 1 : 0;
    for (size_t k = 0; k < a->n_tokens; k++)
        if (k >= surplus && a->tokens[k].expires.ms > now.ms)
            a->tokens[n++] = a->tokens[k];
    if (n < a->n_tokens)
        explicit_bzero(&a->tokens[n], (a->n_tokens - n) * sizeof(*a->tokens));
    a->n_tokens = n;
}

const struct gce_token *gce_auth_issue(struct gce_auth *a, const struct gce_caller *caller,
    const char *owner, int64_t ttl_ms, struct wall now)
{
    for (size_t k = 0; owner[0] && k < a->n_tokens; k++)
        if (str_eq(a->tokens[k].owner, owner) && a->tokens[k].caller.account == caller->account &&
            a->tokens[k].expires.ms - now.ms > ttl_ms / 10)
            return &a->tokens[k];
    forget_tokens(a, now);
    /* Not mem_resize: it would leave the old array in memory unwiped. */
    struct gce_token *tokens = mem_array(a->n_tokens + 1, sizeof(*tokens));
    if (a->n_tokens > 0) {
        memcpy(tokens, a->tokens, a->n_tokens * sizeof(*tokens));
        explicit_bzero(a->tokens, a->n_tokens * sizeof(*tokens));
    }
    free(a->tokens);
    a->tokens = tokens;
    struct gce_token *t = &tokens[a->n_tokens++];
    *t = (struct gce_token){.caller = *caller, .expires = {now.ms + ttl_ms}};
    char hex[81];
    random_hex(40, hex);
    snprintf(t->text, sizeof(t->text), "ya29.c.%s", hex);
    explicit_bzero(hex, sizeof(hex));
    STR_COPY(t->owner, owner);
    return t;
}
