/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS's error codes. EC2: no Authorization is MissingParameter (AWSAccessKeyId, the parameter of
 * its first signature version), an unknown key is AuthFailure, a wrong secret
 * SignatureDoesNotMatch, a wrong clock or expired keys RequestExpired. S3 uses other codes for the
 * same.
 */
#include "emulator/keyring.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* how long an expired session is still reported as expired */
#define ENDED_KEPT_MS SECONDS_MS(3600)

void keyring_deinit(struct keyring *k)
{
    for (size_t i = 0; i < k->n; i++)
        policy_deinit(&k->keys[i].policy);
    if (k->keys)
        explicit_bzero(k->keys, k->n * sizeof(*k->keys));
    free(k->keys);
    *k = (struct keyring){0};
}

static struct keyring_key *append(struct keyring *k)
{
    /* Not mem_resize: it would leave the old array in memory unwiped. */
    struct keyring_key *keys = mem_array(k->n + 1, sizeof(*keys));
    if (k->n > 0) {
        memcpy(keys, k->keys, k->n * sizeof(*keys));
        explicit_bzero(k->keys, k->n * sizeof(*keys));
    }
    free(k->keys);
    k->keys = keys;
    k->keys[k->n] = (struct keyring_key){.made = WALL_NONE, .expires = WALL_NONE};
    return &k->keys[k->n++];
}

void keyring_add(struct keyring *k, const char *access, const char *secret)
{
    struct keyring_key *key = append(k);
    STR_COPY(key->access, access);
    STR_COPY(key->secret, secret);
}

static void make_upper(char *s)
{
    for (; *s; s++)
        if (*s >= 'a' && *s <= 'z')
            *s = (char)(*s - 'a' + 'A');
}

static const struct keyring_key *make_temporary(
    struct keyring *k, const char *owner, int64_t ttl_ms, struct wall now)
{
    struct keyring_key *key = append(k);
    char hex[17];
    random_hex(8, hex);
    make_upper(hex);
    snprintf(key->access, sizeof(key->access), "ASIA%s", hex);
    random_hex(20, key->secret);
    random_hex(60, key->token);
    STR_COPY(key->owner, owner);
    key->made = now;
    key->expires = (struct wall){now.ms + ttl_ms};
    return key;
}

const struct keyring_key *keyring_role(
    struct keyring *k, const char *owner, int64_t ttl_ms, struct wall now)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->keys[i].owner, owner) && !k->keys[i].is_session &&
            k->keys[i].expires.ms - now.ms > ttl_ms / 3)
            return &k->keys[i];
    return make_temporary(k, owner, ttl_ms, now);
}

static void forget_sessions(struct keyring *k, struct wall now)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (k->keys[i].is_session && now.ms - k->keys[i].expires.ms > ENDED_KEPT_MS)
            policy_deinit(&k->keys[i].policy);
        else if (kept++ != i)
            k->keys[kept - 1] = k->keys[i];
    }
    if (kept < k->n)
        explicit_bzero(&k->keys[kept], (k->n - kept) * sizeof(*k->keys));
    k->n = kept;
}

const struct keyring_key *keyring_session(
    struct keyring *k, const char *name, struct policy *policy, int64_t ttl_ms, struct wall now)
{
    forget_sessions(k, now);
    make_temporary(k, name, ttl_ms, now);
    struct keyring_key *key = &k->keys[k->n - 1];
    key->is_session = true;
    key->policy = *policy;
    *policy = (struct policy){0};
    return key;
}

void keyring_describe(const struct keyring *k, struct wall now, json_t *list)
{
    char end[TIME_ISO_MAX];
    for (size_t i = 0; i < k->n; i++) {
        const struct keyring_key *key = &k->keys[i];
        if (!key->is_session || key->expires.ms <= now.ms)
            continue;
        time_format_iso(key->expires, end);
        json_t *o =
            json_pack("{s:s, s:s, s:s}", "type", "session", "id", key->owner, "expires", end);
        if (key->policy.statements)
            json_object_set(o, "policy", key->policy.statements);
        json_array_append_new(list, o);
    }
}

/* ---- Checking ---- */

static const struct codes {
    const char *service;
    const char *none, *malformed, *scope, *unknown, *bad_token, *ended, *skewed, *mismatch;
} ec2_codes = {"ec2", "MissingParameter", "IncompleteSignature", "SignatureDoesNotMatch",
    "AuthFailure", "AuthFailure", "RequestExpired", "RequestExpired", "SignatureDoesNotMatch"},
  s3_codes = {"s3", "AccessDenied", "AuthorizationHeaderMalformed", "AuthorizationHeaderMalformed",
      "InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "RequestTimeTooSkewed",
      "SignatureDoesNotMatch"},
  sts_codes = {"sts", "MissingAuthenticationToken", "IncompleteSignature", "SignatureDoesNotMatch",
      "InvalidClientTokenId", "InvalidClientTokenId", "ExpiredToken", "SignatureDoesNotMatch",
      "SignatureDoesNotMatch"},
  pricing_codes = {"pricing", "MissingAuthenticationTokenException", "IncompleteSignatureException",
      "InvalidSignatureException", "UnrecognizedClientException", "UnrecognizedClientException",
      "ExpiredTokenException", "InvalidSignatureException", "InvalidSignatureException"},
  quotas_codes = {"servicequotas", "MissingAuthenticationTokenException",
      "IncompleteSignatureException", "InvalidSignatureException", "UnrecognizedClientException",
      "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException",
      "InvalidSignatureException"};

static const struct codes *codes_of(const struct keyring_request *r)
{
    static const struct codes *const others[] = {
        &s3_codes, &sts_codes, &pricing_codes, &quotas_codes};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (str_eq(r->service, others[i]->service))
            return others[i];
    return &ec2_codes;
}

static const char *header(const struct keyring_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

static const struct keyring_key *find(const struct keyring *k, const char *access)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->keys[i].access, access))
            return &k->keys[i];
    return NULL;
}

/* "20260822T120000Z" */
static int parse_timestamp(const char *t, struct wall *ret_wall, struct err *e)
{
    char iso[32];
    if (strlen(t) != 16)
        return err_set(e, ERR_INVALID, "Date must be in ISO-8601 'basic format'. Got '%.40s'.", t);
    snprintf(
        iso, sizeof(iso), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", t, t + 4, t + 6, t + 9, t + 11, t + 13);
    return time_parse_iso(iso, ret_wall, e);
}

static bool is_signed(const struct sigv4_claim *c, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = c->signed_headers; p; p = strchr(p, ';') ? strchr(p, ';') + 1 : NULL)
        if (strncmp(p, name, n) == 0 && (p[n] == ';' || p[n] == '\0'))
            return true;
    return false;
}

static const char *check_time(const char *date, const struct sigv4_claim *c,
    const struct codes *codes, struct wall now, struct err *e)
{
    struct wall at;
    if (parse_timestamp(date, &at, e) < 0)
        return codes->malformed;
    if (strncmp(date, c->date, 8) != 0) {
        err_set(e, ERR_DENIED,
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date.");
        return codes->scope;
    }
    if (at.ms < now.ms - KEYRING_SKEW_MS || at.ms > now.ms + KEYRING_SKEW_MS) {
        if (codes == &ec2_codes)
            err_set(e, ERR_DENIED, "Request has expired.");
        return codes->skewed;
    }
    return NULL;
}

static const char *check_signature(const struct keyring_request *r, const struct sigv4_claim *c,
    const char *date, const struct keyring_key *key, struct err *e)
{
    char hash[SIGV4_HEX_MAX], expected[SIGV4_HEX_MAX];
    if (!r->body_sha256)
        sigv4_sha256_hex(r->body, r->body_len, hash);
    const struct sigv4_request signed_request = {.method = r->method,
        .target = r->target,
        .headers = r->headers,
        .n_headers = r->n_headers,
        .body_sha256 = r->body_sha256 ? r->body_sha256 : hash};
    const struct sigv4_scope scope = {
        .timestamp = date, .region = c->region, .service = c->service};
    if (sigv4_signature(&signed_request, &scope, key->secret, c->signed_headers, expected, e) < 0)
        return codes_of(r)->malformed;
    if (str_secret_eq(expected, c->signature))
        return NULL;
    e->kind = ERR_NONE;
    return codes_of(r)->mismatch;
}

static const char *check_scope(
    const struct sigv4_claim *c, const char *region, const struct codes *codes, struct err *e)
{
    if (!str_eq(c->region, region)) {
        err_set(
            e, ERR_DENIED, "Credential should be scoped to a valid region, not '%s'.", c->region);
        return codes->scope;
    }
    if (!str_eq(c->service, codes->service)) {
        err_set(
            e, ERR_DENIED, "Credential should be scoped to correct service: '%s'.", codes->service);
        return codes->scope;
    }
    return NULL;
}

static const char *check_key(
    const struct keyring_request *r, const struct keyring_key *key, struct wall now)
{
    const char *token = header(r, "X-Amz-Security-Token");
    if (!key)
        return codes_of(r)->unknown;
    if (key->token[0] && (!token || !str_secret_eq(token, key->token)))
        return codes_of(r)->bad_token;
    if (wall_is_set(key->expires) && now.ms >= key->expires.ms)
        return codes_of(r)->ended;
    return NULL;
}

const char *keyring_check(const struct keyring *k, const struct keyring_request *r,
    const char *region, struct wall now, struct err *e)
{
    const struct codes *codes = codes_of(r);
    struct sigv4_claim claim;
    const char *authorization = header(r, "Authorization"), *date = header(r, "X-Amz-Date");
    const char *code;
    *e = (struct err){0};
    if (!authorization) {
        if (codes == &ec2_codes)
            err_set(e, ERR_DENIED, "The request must contain the parameter AWSAccessKeyId");
        return codes->none;
    }
    if (sigv4_parse_authorization(authorization, &claim, e) < 0)
        return codes->malformed;
    if (!date || !is_signed(&claim, "host") || !is_signed(&claim, "x-amz-date")) {
        err_set(e, ERR_DENIED,
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header, "
            "and 'host' and 'x-amz-date' among its SignedHeaders.");
        return codes->malformed;
    }
    if ((code = check_scope(&claim, region, codes, e)) ||
        (code = check_time(date, &claim, codes, now, e)))
        return code;
    const struct keyring_key *key = find(k, claim.access_key);
    if ((code = check_key(r, key, now)))
        return code;
    return check_signature(r, &claim, date, key, e);
}

const struct keyring_key *keyring_caller(const struct keyring *k, const struct keyring_request *r)
{
    struct sigv4_claim claim;
    const char *authorization = header(r, "Authorization");
    if (!authorization || sigv4_parse_authorization(authorization, &claim, NULL) < 0)
        return NULL;
    return find(k, claim.access_key);
}
