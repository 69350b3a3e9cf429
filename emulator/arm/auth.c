/* SPDX-License-Identifier: Apache-2.0
 *
 * A token is HEADER.PAYLOAD.MAC, each in base64url. The MAC is checked before the payload is
 * parsed.
 */
#include "emulator/arm/auth.h"
#include "base/b64.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/form.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAC_BYTES 32
#define SCOPE_DEFAULT ".default"

/* ---- Tokens ---- */

/* Base64url (RFC 4648, section 5), without padding. */
static void url64_encode(struct buf *out, const void *p, size_t n)
{
    struct buf text = {0};
    b64_encode(&text, p, n);
    for (size_t i = 0; i < text.len && text.data[i] != '='; i++)
        buf_addc(out, text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i]);
    buf_deinit(&text);
}

static int url64_decode(struct buf *out, const char *p, size_t n, struct err *e)
{
    struct buf text = {0};
    for (size_t i = 0; i < n; i++)
        buf_addc(&text, p[i] == '-' ? '+' : p[i] == '_' ? '/' : p[i]);
    while (text.len % 4 != 0)
        buf_addc(&text, '=');
    int rc = b64_decode(out, buf_str(&text), text.len, e);
    buf_deinit(&text);
    return rc;
}

static void add_mac(const struct arm_auth *auth, const char *text, size_t n, struct buf *out)
{
    unsigned char mac[MAC_BYTES];
    unsigned n_mac = sizeof(mac);
    HMAC(EVP_sha256(), auth->key, sizeof(auth->key), (const unsigned char *)text, n, mac, &n_mac);
    url64_encode(out, mac, sizeof(mac));
}

void arm_auth_token(const struct arm_auth *auth, const char *client_id, const char *audience,
    int64_t ttl_ms, struct wall now, struct buf *out)
{
    static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"HS256\"}";
    struct buf token = {0};
    json_t *o = json_object();
    json_object_set_new(o, "aud", json_text(audience));
    json_object_set_new(o, "tid", json_text(auth->tenant));
    json_object_set_new(o, "appid", json_text(client_id));
    json_object_set_new(o, "iat", json_integer(now.ms / 1000));
    json_object_set_new(o, "exp", json_integer((now.ms + ttl_ms) / 1000));
    char *payload = json_dump_text(o);
    json_decref(o);
    url64_encode(&token, header, strlen(header));
    buf_addc(&token, '.');
    url64_encode(&token, payload, strlen(payload));
    free(payload);
    struct buf mac = {0};
    add_mac(auth, buf_str(&token), token.len, &mac);
    buf_printf(out, "%s.%s", buf_str(&token), buf_str(&mac));
    buf_deinit(&mac);
    buf_deinit(&token);
}

/* The payload of a token with our MAC, else NULL. */
static json_t *open_token(const struct arm_auth *auth, const char *token)
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    if (!second || strlen(token) > ARM_TOKEN_MAX)
        return NULL;
    struct buf mac = {0}, text = {0};
    json_t *payload = NULL;
    struct err e;
    add_mac(auth, token, (size_t)(second - token), &mac);
    if (str_secret_eq(buf_str(&mac), second + 1) &&
        url64_decode(&text, first + 1, (size_t)(second - first - 1), &e) == 0)
        json_parse(buf_str(&text), text.len, ARM_TOKEN_MAX, &payload, &e);
    buf_deinit(&mac);
    buf_deinit(&text);
    return payload;
}

static bool is_for_arm(const char *audience)
{
    static const char *const names[] = {"https://management.azure.com", ARM_AUDIENCE,
        "https://management.core.windows.net/", "https://management.core.windows.net"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(audience, names[i]))
            return true;
    return false;
}

const char *arm_auth_check(
    const struct arm_auth *auth, const char *authorization, struct wall now, struct err *e)
{
    const char *code = NULL;
    if (!authorization) {
        err_set(e, ERR_DENIED, "Authentication failed. The 'Authorization' header is missing.");
        return "AuthenticationFailed";
    }
    if (!str_starts(authorization, "Bearer ")) {
        err_set(e, ERR_DENIED,
            "Authentication failed. The 'Authorization' header is provided in an invalid format.");
        return "AuthenticationFailedInvalidHeader";
    }
    json_t *payload = open_token(auth, authorization + strlen("Bearer "));
    if (!payload) {
        err_set(e, ERR_DENIED, "The access token is invalid.");
        return "InvalidAuthenticationToken";
    }
    const char *audience = json_string_value(json_object_get(payload, "aud"));
    int64_t ends_s = json_integer_value(json_object_get(payload, "exp"));
    if (ends_s * 1000 <= now.ms) {
        char end[TIME_ISO_MAX], iso[TIME_ISO_MAX];
        time_format_iso((struct wall){ends_s * 1000}, end);
        time_format_iso(now, iso);
        err_set(e, ERR_DENIED,
            "The access token expiry UTC time '%s' is earlier than current UTC time '%s'.", end,
            iso);
        code = "ExpiredAuthenticationToken";
    } else if (!is_for_arm(audience)) {
        err_set(e, ERR_DENIED,
            "The access token has been obtained for wrong audience or resource '%.100s'. It should "
            "exactly "
            "match with one of the allowed audiences '" ARM_AUDIENCE "'.",
            audience ? audience : "");
        code = "InvalidAuthenticationTokenAudience";
    }
    json_decref(payload);
    return code;
}

/* ---- The token endpoint ---- */

static int refuse(json_t **ret_body, int status, const char *error, int number, struct wall now,
    const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static int refuse(json_t **ret_body, int status, const char *error, int number, struct wall now,
    const char *fmt, ...)
{
    char text[512], whole[600], iso[TIME_ISO_MAX];
    VFORMAT(text, fmt);
    snprintf(whole, sizeof(whole), "AADSTS%d: %s", number, text);
    time_format_iso((struct wall){now.ms / 1000 * 1000}, iso);
    iso[10] = ' ';
    json_t *o = json_object(), *codes = json_array();
    json_array_append_new(codes, json_integer(number));
    json_object_set_new(o, "error", json_string(error));
    json_object_set_new(o, "error_description", json_text(whole));
    json_object_set_new(o, "error_codes", codes);
    json_object_set_new(o, "timestamp", json_string(iso));
    *ret_body = o;
    return status;
}

static const struct arm_client *find_client(const struct arm_auth *auth, const char *id)
{
    for (size_t i = 0; i < auth->n_clients; i++)
        if (str_eq(auth->clients[i].id, id))
            return &auth->clients[i];
    return NULL;
}

static int grant(const struct arm_auth *auth, const char *tenant, struct form *form,
    struct wall now, json_t **ret_body)
{
    static const char *const required[] = {"grant_type", "client_id", "scope"};
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        if (!form_get(form, "%s", required[i]))
            return refuse(ret_body, 400, "invalid_request", 900144, now,
                "The request body must contain the following parameter: '%s'.", required[i]);
    const char *type = form_get(form, "grant_type"), *id = form_get(form, "client_id");
    const char *secret = form_get(form, "client_secret"), *scope = form_get(form, "scope");
    if (!str_eq(tenant, auth->tenant))
        return refuse(ret_body, 400, "invalid_request", 90002, now,
            "Tenant '%.60s' not found. Check to make sure you have the correct tenant ID.", tenant);
    if (!str_eq(type, "client_credentials"))
        return refuse(ret_body, 400, "unsupported_grant_type", 70003, now,
            "The app requested an unsupported grant type '%.40s'.", type);
    const struct arm_client *client = find_client(auth, id);
    if (!client)
        return refuse(ret_body, 400, "unauthorized_client", 700016, now,
            "Application with identifier '%.60s' was not found in the directory.", id);
    if (!secret)
        return refuse(ret_body, 401, "invalid_client", 7000218, now,
            "The request body must contain the following parameter: 'client_assertion' or "
            "'client_secret'.");
    if (!str_secret_eq(secret, client->secret))
        return refuse(ret_body, 401, "invalid_client", 7000215, now,
            "Invalid client secret provided. Ensure the secret being sent in the request is the "
            "client secret value, not the client secret ID.");
    if (!str_ends(scope, "/" SCOPE_DEFAULT))
        return refuse(ret_body, 400, "invalid_scope", 1002012, now,
            "The provided value for scope %.100s is not valid. Client credential flows must have a "
            "scope value with /.default suffixed to the resource identifier (application ID URI).",
            scope);
    struct buf token = {0}, audience = {0};
    buf_add(&audience, scope, strlen(scope) - strlen(SCOPE_DEFAULT));
    arm_auth_token(auth, id, buf_str(&audience), auth->token_ttl_ms, now, &token);
    json_t *o = json_object();
    int64_t ttl_s = auth->token_ttl_ms / 1000;
    json_object_set_new(o, "token_type", json_string("Bearer"));
    json_object_set_new(o, "expires_in", json_integer(ttl_s));
    json_object_set_new(o, "ext_expires_in", json_integer(ttl_s));
    json_object_set_new(o, "access_token", json_text(buf_str(&token)));
    *ret_body = o;
    buf_deinit(&audience);
    buf_deinit(&token);
    return 200;
}

int arm_auth_grant(const struct arm_auth *auth, const char *tenant, const char *text, size_t n,
    struct wall now, json_t **ret_body)
{
    struct form form = {0};
    struct err e;
    if (form_parse(text, n, &form, &e) < 0)
        return refuse(ret_body, 400, "invalid_request", 900144, now, "%s", e.text);
    int status = grant(auth, tenant, &form, now, ret_body);
    form_deinit(&form);
    return status;
}
