/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of an identity provider: what verifies, and each way in which one is refused. Keys are
 * made here, so every token is signed for real.
 */
#include "base/b64.h"
#include "base/str.h"
#include "scheduler/config/config.h"
#include "scheduler/oidc/identity.h"
#include "scheduler/oidc/jwt.h"
#include "scheduler/oidc/provider.h"
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_S 1800000000LL
#define CLAIMS                                                                                     \
    "{\"iss\":\"https://idp.example\",\"sub\":\"s1\",\"aud\":\"belay\",\"iat\":1800000000,"        \
    "\"exp\":1800000300,\"preferred_username\":\"ann\""

struct rig {
    EVP_PKEY *rsa, *ec, *other;
    struct jwks *keys;
    struct config config;
};

static const char CONFIG[] =
    "teams: {vision: {}, nlp: {users: [bob]}}\n"
    "oidc:\n  issuer: https://idp.example\n  client_id: belay\n  groups_claim: groups\n"
    "  teams: {ml-vision: vision, ml-nlp: nlp}\n  roles: {ops: operator, staff: member}\n"
    "  leads: {ml-leads: vision}\n"
    "  require_group: false\n";

static void add_number(struct buf *out, EVP_PKEY *key, const char *what, const char *member)
{
    BIGNUM *n = NULL;
    unsigned char bytes[1024];
    assert_int_equal(EVP_PKEY_get_bn_param(key, what, &n), 1);
    int len = str_eq(member, "x") || str_eq(member, "y") ? 32 : BN_num_bytes(n);
    BN_bn2binpad(n, bytes, len);
    buf_printf(out, ",\"%s\":\"", member);
    b64_url_encode(out, bytes, (size_t)len);
    buf_addc(out, '"');
    BN_free(n);
}

static void add_rsa(struct buf *out, EVP_PKEY *key, const char *kid)
{
    buf_printf(out, "{\"kty\":\"RSA\",\"kid\":\"%s\",\"use\":\"sig\"", kid);
    add_number(out, key, OSSL_PKEY_PARAM_RSA_N, "n");
    add_number(out, key, OSSL_PKEY_PARAM_RSA_E, "e");
    buf_addc(out, '}');
}

static void add_ec(struct buf *out, EVP_PKEY *key, const char *kid)
{
    buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"%s\"", kid);
    add_number(out, key, OSSL_PKEY_PARAM_EC_PUB_X, "x");
    add_number(out, key, OSSL_PKEY_PARAM_EC_PUB_Y, "y");
    buf_addc(out, '}');
}

static int set_up(void **state)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct buf set = {0};
    struct err e;
    r->rsa = EVP_RSA_gen(2048);
    r->other = EVP_RSA_gen(2048);
    r->ec = EVP_EC_gen("prime256v1");
    buf_adds(&set, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"},");
    add_rsa(&set, r->rsa, "r1");
    buf_addc(&set, ',');
    add_ec(&set, r->ec, "e1");
    buf_adds(&set, "]}");
    assert_int_equal(jwks_parse(set.data, set.len, &r->keys, &e), 0);
    assert_int_equal(r->keys->n, 2);
    buf_deinit(&set);
    assert_int_equal(
        config_parse("test.yaml", CONFIG, strlen(CONFIG), "/tmp/x", &r->config, &e), 0);
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    EVP_PKEY_free(r->rsa);
    EVP_PKEY_free(r->other);
    EVP_PKEY_free(r->ec);
    jwks_destroy(r->keys);
    config_deinit(&r->config);
    free(r);
    return 0;
}

/* ---- tokens ---- */

static void add_signature(struct buf *token, EVP_PKEY *key)
{
    unsigned char sig[1024], raw[64];
    size_t n = sizeof(sig);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(ctx, sig, &n, (const unsigned char *)token->data, token->len), 1);
    EVP_MD_CTX_free(ctx);
    buf_addc(token, '.');
    if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) {
        b64_url_encode(token, sig, n);
        return;
    }
    const unsigned char *p = sig;
    ECDSA_SIG *parts = d2i_ECDSA_SIG(NULL, &p, (long)n);
    BN_bn2binpad(ECDSA_SIG_get0_r(parts), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(parts), raw + 32, 32);
    ECDSA_SIG_free(parts);
    b64_url_encode(token, raw, sizeof(raw));
}

/* key NULL: an empty signature. */
static char *make_token(const char *header, const char *claims, EVP_PKEY *key)
{
    struct buf token = {0};
    b64_url_encode(&token, header, strlen(header));
    buf_addc(&token, '.');
    b64_url_encode(&token, claims, strlen(claims));
    if (key)
        add_signature(&token, key);
    else
        buf_addc(&token, '.');
    return buf_take(&token);
}

static int verify(const struct rig *r, char *token, struct err *e)
{
    json_t *claims = NULL;
    int rc = jwt_verify(r->keys, token, strlen(token), &claims, e);
    json_decref(claims);
    free(token);
    return rc;
}

static void signatures_of_both_algorithms_verify(void **state)
{
    struct rig *r = *state;
    struct err e = {0};
    static const char *const rsa[] = {"{\"alg\":\"RS256\",\"kid\":\"r1\",\"typ\":\"JWT\"}",
        "{\"alg\":\"RS256\"}", "{\"alg\":\"RS256\",\"kid\":\"r1\",\"typ\":\"jwt\",\"x\":1}"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(verify(r, make_token(rsa[i], CLAIMS "}", r->rsa), &e), 0);
    assert_int_equal(
        verify(r, make_token("{\"alg\":\"ES256\",\"kid\":\"e1\"}", CLAIMS "}", r->ec), &e), 0);
}

static void a_token_with_a_wrong_header_is_refused(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *header, *text;
        int rc;
    } bad[] = {
        {"{\"alg\":\"none\"}", "expected RS256 or ES256, found \"none\"", ERR_INVALID},
        {"{\"alg\":\"None\"}", "expected RS256 or ES256", ERR_INVALID},
        {"{\"alg\":\"HS256\",\"kid\":\"r1\"}", "found \"HS256\"", ERR_INVALID},
        {"{\"alg\":\"RS512\",\"kid\":\"r1\"}", "found \"RS512\"", ERR_INVALID},
        {"{\"kid\":\"r1\"}", "alg", ERR_INVALID},
        {"{\"alg\":[\"RS256\"]}", "alg", ERR_INVALID},
        {"{\"alg\":\"RS256\",\"alg\":\"none\"}", "header", ERR_INVALID},
        {"{\"alg\":\"RS256\",\"kid\":\"r1\",\"crit\":[\"exp\"]}", "critical", ERR_INVALID},
        {"{\"alg\":\"RS256\",\"kid\":\"r1\",\"typ\":\"at+jwt\"}", "typ", ERR_INVALID},
        {"{\"alg\":\"RS256\",\"kid\":\"r2\"}", "has the id \"r2\"", ERR_NOT_FOUND},
        /* a key is for one algorithm */
        {"{\"alg\":\"ES256\",\"kid\":\"r1\"}", "has the id \"r1\"", ERR_NOT_FOUND},
        {"[]", "header", ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        int rc = verify(r, make_token(bad[i].header, CLAIMS "}", r->rsa), &e);
        if (rc != bad[i].rc || !strstr(e.text, bad[i].text))
            fail_msg("%s: %d %s", bad[i].header, rc, e.text);
    }
}

static void a_wrong_signature_is_refused(void **state)
{
    struct rig *r = *state;
    static const char header[] = "{\"alg\":\"RS256\",\"kid\":\"r1\"}";
    static const char ec_header[] = "{\"alg\":\"ES256\",\"kid\":\"e1\"}";
    struct err e = {0};
    assert_int_equal(verify(r, make_token(header, CLAIMS "}", r->other), &e), ERR_DENIED);
    assert_int_equal(verify(r, make_token(header, CLAIMS "}", NULL), &e), ERR_DENIED);
    assert_int_equal(verify(r, make_token(ec_header, CLAIMS "}", r->rsa), &e), ERR_DENIED);
    assert_int_equal(verify(r, make_token(ec_header, CLAIMS "}", NULL), &e), ERR_DENIED);
    /* every bit of a good one counts */
    for (int ec = 0; ec < 2; ec++) {
        char *good = make_token(ec ? ec_header : header, CLAIMS "}", ec ? r->ec : r->rsa);
        char *claims = strchr(good, '.') + 1;
        size_t n = strlen(claims);
        for (size_t i = 0; i < n; i += 7) {
            char *c = &claims[i], was = *c;
            if (was == '.')
                continue;
            *c = was == 'A' ? 'B' : 'A';
            assert_int_not_equal(verify(r, strdup(good), &e), 0);
            *c = was;
        }
        assert_int_equal(verify(r, good, &e), 0);
    }
}

static void a_secret_made_of_the_public_key_signs_nothing(void **state)
{
    struct rig *r = *state;
    struct buf set = {0}, token = {0};
    unsigned char mac[32];
    struct err e = {0};
    add_rsa(&set, r->rsa, "r1");
    b64_url_encode(&token, "{\"alg\":\"HS256\",\"kid\":\"r1\"}", 26);
    buf_addc(&token, '.');
    b64_url_encode(&token, CLAIMS "}", strlen(CLAIMS "}"));
    HMAC(EVP_sha256(), set.data, (int)set.len, (const unsigned char *)token.data, token.len, mac,
        NULL);
    buf_addc(&token, '.');
    b64_url_encode(&token, mac, sizeof(mac));
    assert_int_equal(verify(r, buf_take(&token), &e), ERR_INVALID);
    buf_deinit(&set);
}

static void a_malformed_token_is_refused(void **state)
{
    struct rig *r = *state;
    static const char *const bad[] = {"", ".", "..", "a.b", "e30.e30", "e30.e30.", "e30=.e30.AA",
        "eyJhbGciOiJSUzI1NiJ9.e30.A", "eyJhbGciOiJSUzI1NiJ9.e30.AA.AA"};
    struct err e = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e.kind = 0;
        if (verify(r, strdup(bad[i]), &e) == 0 || !e.text[0])
            fail_msg("accepted: %s", bad[i]);
    }
    char *huge = calloc(1, JWT_BYTES_MAX + 2);
    memset(huge, 'A', JWT_BYTES_MAX + 1);
    assert_int_equal(verify(r, huge, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most"));
    assert_int_equal(verify(r, make_token("{\"alg\":\"RS256\",\"kid\":\"r1\"}", "[1]", r->rsa), &e),
        ERR_INVALID);
}

static void a_key_that_cannot_be_used_is_refused(void **state)
{
    static const char *const bad[] = {"{}", "[]", "{\"keys\":{}}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"!\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"}]}",
        /* no point of the curve */
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct jwks *k = NULL;
        struct err e = {0};
        if (jwks_parse(bad[i], strlen(bad[i]), &k, &e) != ERR_INVALID)
            fail_msg("accepted: %s", bad[i]);
    }
    struct jwks *k = NULL;
    struct err e;
    static const char others[] =
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-521\"},{\"kty\":\"RSA\",\"use\":\"enc\"},"
        "{\"kty\":\"RSA\",\"alg\":\"PS256\"},{\"kty\":\"OKP\"}]}";
    assert_int_equal(jwks_parse(others, strlen(others), &k, &e), 0);
    assert_int_equal(k->n, 0);
    jwks_destroy(k);
}

/* ---- claims ---- */

static int identify(const struct rig *r, const char *claims, const char *nonce,
    struct oidc_identity *ret, struct err *e)
{
    json_t *v = NULL;
    assert_int_equal(json_parse(claims, strlen(claims), JWT_BYTES_MAX, &v, e), 0);
    int rc = oidc_identify(&r->config.oidc, v, nonce, (struct wall){SECONDS_MS(NOW_S)}, ret, e);
    json_decref(v);
    return rc;
}

static void groups_give_teams_and_the_highest_role(void **state)
{
    struct rig *r = *state;
    struct oidc_identity id;
    struct err e = {0};
    assert_int_equal(
        identify(r, CLAIMS ",\"groups\":[\"staff\",\"x\",\"ml-nlp\",\"ops\",\"ml-vision\"]}", NULL,
            &id, &e),
        0);
    assert_string_equal(id.user, "ann");
    assert_string_equal(id.subject, "s1");
    assert_string_equal(id.teams, "vision,nlp");
    assert_true(id.has_role && id.role == ROLE_OPERATOR);
    assert_int_equal(identify(r, CLAIMS ",\"groups\":\"ml-nlp\"}", NULL, &id, &e), 0);
    assert_string_equal(id.teams, "nlp");
    assert_false(id.has_role);
    assert_int_equal(identify(r, CLAIMS ",\"groups\":[]}", NULL, &id, &e), 0);
    assert_string_equal(id.teams, "");
    r->config.oidc.requires_a_group = true;
    assert_int_equal(identify(r, CLAIMS ",\"groups\":[\"x\"]}", NULL, &id, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "in no group"));
}

static void a_group_gives_a_team_to_lead(void **state)
{
    struct rig *r = *state;
    struct queue_policy *policy = &r->config.policy;
    struct oidc_identity id;
    struct err e = {0};
    assert_int_equal(
        identify(r, CLAIMS ",\"groups\":[\"ml-leads\",\"ml-nlp\",\"staff\"]}", NULL, &id, &e), 0);
    assert_true(id.has_role && id.role == ROLE_LEAD);
    policy_join(policy, id.user, id.teams);
    assert_true(
        policy_is_member(policy, "vision", "ann") && policy_is_member(policy, "nlp", "ann"));
    assert_true(policy_is_lead(policy, "vision", "ann"));
    assert_false(policy_is_lead(policy, "nlp", "ann"));
    assert_int_equal(identify(r, CLAIMS ",\"groups\":[\"ml-vision\"]}", NULL, &id, &e), 0);
    assert_false(id.has_role);
    policy_join(policy, id.user, id.teams);
    assert_false(policy_is_lead(policy, "vision", "ann"));
}

static void each_wrong_claim_is_refused_by_name(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *iss, *aud, *times, *more, *nonce, *text;
    } bad[] = {
        {"https://evil.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300", "", NULL,
            "iss: it is from"},
        {"https://idp.example/", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300", "", NULL,
            "iss: it is from"},
        {"https://idp.example", "\"other\"", "\"iat\":1800000000,\"exp\":1800000300", "", NULL,
            "aud: it is for \"other\""},
        {"https://idp.example", "[]", "\"iat\":1800000000,\"exp\":1800000300", "", NULL, "aud"},
        {"https://idp.example", "7", "\"iat\":1800000000,\"exp\":1800000300", "", NULL, "aud"},
        {"https://idp.example", "[\"x\",\"belay\"]", "\"iat\":1800000000,\"exp\":1800000300", "",
            NULL, "azp: it was issued to nothing"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300",
            ",\"azp\":\"x\"", NULL, "azp: it was issued to \"x\""},
        {"https://idp.example", "\"belay\"", "\"iat\":1799990000,\"exp\":1799999940", "", NULL,
            "exp: it expired at 2027-01-15T07:59:00Z"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000", "", NULL, "exp"},
        {"https://idp.example", "\"belay\"", "\"exp\":1800000300", "", NULL, "iat"},
        {"https://idp.example", "\"belay\"", "\"iat\":\"now\",\"exp\":1800000300", "", NULL, "iat"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000061,\"exp\":1800000300", "", NULL,
            "iat: it is valid from"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300",
            ",\"nbf\":1800000100", NULL, "nbf: it is valid from"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1e300", "", NULL, "exp"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300", "", "n1",
            "nonce: it has none"},
        {"https://idp.example", "\"belay\"", "\"iat\":1800000000,\"exp\":1800000300",
            ",\"nonce\":\"n2\"", "n1", "nonce: it is not the one that was sent"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[512];
        struct oidc_identity id;
        struct err e = {0};
        snprintf(text, sizeof(text),
            "{\"iss\":\"%s\",\"sub\":\"s\",\"preferred_username\":\"ann\",\"aud\":%s,%s%s}",
            bad[i].iss, bad[i].aud, bad[i].times, bad[i].more);
        int rc = identify(r, text, bad[i].nonce, &id, &e);
        if (rc != ERR_DENIED || !strstr(e.text, bad[i].text))
            fail_msg("%s: %d %s", text, rc, e.text);
    }
    struct oidc_identity id;
    struct err e;
    assert_int_equal(identify(r, CLAIMS ",\"nonce\":\"n1\",\"azp\":\"belay\"}", "n1", &id, &e), 0);
}

static void a_name_that_no_user_may_have_is_refused(void **state)
{
    struct rig *r = *state;
    static const struct {
        const char *user, *text;
    } bad[] = {{"root", "nobody signs in as root"}, {"ann@idp.example", "not a user's name"},
        {"../x", "not a user's name"}, {"", "not a user's name"}, {"a b", "not a user's name"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[512];
        struct oidc_identity id;
        struct err e = {0};
        snprintf(text, sizeof(text),
            "{\"iss\":\"https://idp.example\",\"sub\":\"s\",\"aud\":\"belay\",\"iat\":1800000000,"
            "\"exp\":1800000300,\"preferred_username\":\"%s\"}",
            bad[i].user);
        int rc = identify(r, text, NULL, &id, &e);
        if (rc != ERR_DENIED || !strstr(e.text, bad[i].text))
            fail_msg("%s: %d %s", bad[i].user, rc, e.text);
    }
}

static void an_address_is_a_user_of_its_domain_only(void **state)
{
    struct rig *r = *state;
    struct oidc_identity id;
    struct err e = {0};
    free(r->config.oidc.user_claim);
    r->config.oidc.user_claim = strdup("email");
    r->config.oidc.email_domain = strdup("lab.example");
    assert_int_equal(identify(r, CLAIMS ",\"email\":\"bea@LAB.example\",\"email_verified\":true}",
                         NULL, &id, &e),
        0);
    assert_string_equal(id.user, "bea");
    assert_int_equal(identify(r, CLAIMS ",\"email\":\"bea@evil.example\",\"email_verified\":true}",
                         NULL, &id, &e),
        ERR_DENIED);
    assert_int_equal(
        identify(r, CLAIMS ",\"email\":\"bea@lab.example\"}", NULL, &id, &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "email_verified"));
    assert_int_equal(identify(r, CLAIMS ",\"email\":\"a@x@lab.example\",\"email_verified\":true}",
                         NULL, &id, &e),
        ERR_DENIED);
}

/* ---- the provider's description ---- */

#define DOCUMENT                                                                                   \
    "{\"issuer\":\"https://idp.example\",\"authorization_endpoint\":\"https://idp.example/a\","    \
    "\"token_endpoint\":\"https://idp.example/t\""

static void a_description_must_be_of_the_issuer_and_name_https(void **state)
{
    static const char *const bad[] = {DOCUMENT "}",
        DOCUMENT ",\"jwks_uri\":\"http://idp.example/k\"}",
        DOCUMENT ",\"jwks_uri\":\"https://idp.example/k#x\"}", DOCUMENT ",\"jwks_uri\":7}", "[]",
        ""};
    struct provider_metadata m;
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int rc = provider_metadata_parse("https://idp.example", bad[i], strlen(bad[i]), &m, &e);
        provider_metadata_deinit(&m);
        if (rc != ERR_INVALID)
            fail_msg("accepted: %s", bad[i]);
    }
    static const char good[] = DOCUMENT ",\"jwks_uri\":\"https://idp.example/k\","
                                        "\"token_endpoint_auth_methods_supported\":"
                                        "[\"client_secret_post\"]}";
    assert_int_equal(provider_metadata_parse("https://idp.example", good, strlen(good), &m, &e), 0);
    assert_null(m.device_endpoint);
    assert_true(m.secret_is_in_body);
    provider_metadata_deinit(&m);
    assert_int_equal(
        provider_metadata_parse("https://evil.example", good, strlen(good), &m, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "both must be the same"));
    provider_metadata_deinit(&m);
}

/* ---- configuration and teams ---- */

static void a_mistake_in_the_section_is_refused(void **state)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"oidc: {client_id: b}", "issuer and client_id are needed"},
        {"oidc: {issuer: 'http://idp', client_id: b}", "https://"},
        {"oidc: {issuer: 'https://i/.well-known/openid-configuration', client_id: b}",
            "the issuer itself"},
        {"oidc: {issuer: 'https://i', client_id: b, teams: {g: red}}", "\"red\" is not a team"},
        {"oidc: {issuer: 'https://i', client_id: b, groups_claim: g, roles: {g: lead}}", "leads:"},
        {"oidc: {issuer: 'https://i', client_id: b, roles: {g: admin}}", "need groups_claim"},
        {"oidc: {issuer: 'https://i', client_id: b, user_claim: email}", "email_domain"},
        {"oidc: {issuer: 'https://i', client_id: b, client_secret_file: x}", "absolute path"},
        {"oidc: {issuer: 'https://i', client_id: b, scopes: ['a b']}", "scopes"},
        {"oidc: {issuer: 'https://i', client_id: b, token_lifetime: 10s}", "token_lifetime"},
        {"oidc: {isuer: 'https://i', client_id: b}", "issuer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config c;
        struct err e = {0};
        int rc = config_parse("t.yaml", bad[i].text, strlen(bad[i].text), "/tmp/x", &c, &e);
        if (rc != ERR_INVALID || !strstr(e.text, bad[i].expected))
            fail_msg("%s: %d %s", bad[i].text, rc, e.text);
    }
}

static void who_signs_in_joins_and_leaves_teams(void **state)
{
    struct rig *r = *state;
    const struct queue_policy *p = &r->config.policy;
    struct err e;
    /* without a list of users, anyone might submit to a team that no group gives */
    assert_int_equal(policy_check_member(p, "vision", "ann", &e), ERR_DENIED);
    assert_non_null(strstr(e.text, "belay login"));
    policy_join(p, "ann", "nlp,vision");
    assert_int_equal(policy_check_member(p, "vision", "ann", &e), 0);
    assert_true(policy_is_member(p, "nlp", "ann"));
    assert_false(policy_is_lead(p, "nlp", "ann"));
    assert_string_equal(policy_team_of(p, "ann"), "vision");
    assert_string_equal(policy_team_of(p, "bob"), "nlp");
    policy_join(p, "ann", "nlp");
    assert_int_equal(policy_check_member(p, "vision", "ann", &e), ERR_DENIED);
    assert_string_equal(policy_team_of(p, "ann"), "nlp");
    policy_join(p, "ann", "");
    assert_string_equal(policy_team_of(p, "ann"), "ann");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(signatures_of_both_algorithms_verify),
        TEST(a_token_with_a_wrong_header_is_refused),
        TEST(a_wrong_signature_is_refused),
        TEST(a_secret_made_of_the_public_key_signs_nothing),
        TEST(a_malformed_token_is_refused),
        cmocka_unit_test(a_key_that_cannot_be_used_is_refused),
        TEST(groups_give_teams_and_the_highest_role),
        TEST(a_group_gives_a_team_to_lead),
        TEST(each_wrong_claim_is_refused_by_name),
        TEST(a_name_that_no_user_may_have_is_refused),
        TEST(an_address_is_a_user_of_its_domain_only),
        cmocka_unit_test(a_description_must_be_of_the_issuer_and_name_https),
        cmocka_unit_test(a_mistake_in_the_section_is_refused),
        TEST(who_signs_in_joins_and_leaves_teams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
