/* SPDX-License-Identifier: Apache-2.0
 *
 * See credentials.h. The source (file, environment or the machine's identity) is chosen at
 * creation. If it fails, that is an error; no other identity is tried.
 */
#include "cloud/azure/credentials.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/imds.h"
#include "cloud/endpoint.h"
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_TIMEOUT_MS SECONDS_MS(20)
#define ID_ALPHABET "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-."

struct azure_credential_source {
    struct azure_principal from_env; /* secret "" = none; client_id may name an identity */
    char *file;                      /* may be NULL */
    char *login_url, *audience, *metadata_url;
    bool is_of_machine; /* the last token was requested for the machine's identity */
    struct oauth *tokens;
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

void azure_environment_read(struct azure_environment *ret_env)
{
    *ret_env = (struct azure_environment){
        .tenant = environment("AZURE_TENANT_ID"),
        .client_id = environment("AZURE_CLIENT_ID"),
        .secret = environment("AZURE_CLIENT_SECRET"),
    };
}

/* ---- principals ---- */

/* Ids become parts of URLs. Errors never show the value. */
static int copy_id(char *dst, size_t size, const char *src, const char *what, struct err *e)
{
    size_t n = strlen(src);
    if (n == 0 || n >= size || strspn(src, ID_ALPHABET) != n || *src == '.')
        return err_set(e, ERR_CONFIG, "%s: expected an id of 1 to %zu letters, digits, '-' and '.'",
            what, size - 1);
    str_copy(dst, size, src);
    return 0;
}

static int copy_secret(char *dst, size_t size, const char *src, const char *what, struct err *e)
{
    size_t n = strlen(src);
    if (n == 0 || n >= size)
        return err_set(
            e, ERR_CONFIG, "%s: expected a secret of 1 to %zu characters", what, size - 1);
    for (size_t i = 0; i < n; i++)
        if (src[i] <= ' ' || src[i] > '~')
            return err_set(e, ERR_CONFIG, "%s contains a blank or an invalid character", what);
    str_copy(dst, size, src);
    return 0;
}

static int read_environment(
    struct azure_principal *p, const struct azure_environment *env, struct err *e)
{
    int rc = 0;
    if (env->secret && (!env->tenant || !env->client_id))
        return err_set(e, ERR_CONFIG,
            "environment: AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET go together; %s "
            "is not set",
            env->tenant ? "AZURE_CLIENT_ID" : "AZURE_TENANT_ID");
    if (env->client_id)
        rc = copy_id(p->client_id, sizeof(p->client_id), env->client_id, "AZURE_CLIENT_ID", e);
    if (rc == 0 && env->secret)
        rc = copy_id(p->tenant, sizeof(p->tenant), env->tenant, "AZURE_TENANT_ID", e);
    if (rc == 0 && env->secret)
        rc = copy_secret(p->secret, sizeof(p->secret), env->secret, "AZURE_CLIENT_SECRET", e);
    return rc;
}

/* The first of two keys that is present. NULL, with the reason, if neither is, or it is not a text.
 */
static const char *either(const json_t *object, const char *a, const char *b, struct err *e)
{
    const json_t *v = json_object_get(object, a);
    if (!v)
        v = json_object_get(object, b);
    if (!v)
        err_set(e, ERR_CONFIG, "expected \"%s\" or \"%s\"", a, b);
    else if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        err_set(e, ERR_CONFIG, "\"%s\" (or \"%s\") is not a text", a, b);
    else
        return json_string_value(v);
    return NULL;
}

static int parse_principal(const json_t *object, struct azure_principal *p, struct err *e)
{
    if (!json_is_object(object))
        return err_set(e, ERR_CONFIG, "expected a JSON object with tenant, appId and password");
    const char *tenant = either(object, "tenant", "tenantId", e);
    const char *client = tenant ? either(object, "appId", "clientId", e) : NULL;
    const char *secret = client ? either(object, "password", "clientSecret", e) : NULL;
    if (!secret)
        return e ? (int)e->kind : ERR_CONFIG;
    int rc = copy_id(p->tenant, sizeof(p->tenant), tenant, "tenant", e);
    if (rc == 0)
        rc = copy_id(p->client_id, sizeof(p->client_id), client, "appId", e);
    if (rc == 0)
        rc = copy_secret(p->secret, sizeof(p->secret), secret, "password", e);
    return rc;
}

int azure_credentials_parse_file(
    const char *text, size_t n, struct azure_principal *ret_principal, struct err *e)
{
    struct azure_principal p = {0};
    json_t *root = NULL;
    int rc = json_parse(text, n, AZURE_CREDENTIALS_FILE_MAX, &root, e);
    if (rc == 0)
        rc = parse_principal(root, &p, e);
    else if (e)
        rc = e->kind = ERR_CONFIG;
    json_wipe(root);
    if (rc == 0)
        *ret_principal = p;
    OPENSSL_cleanse(&p, sizeof(p));
    return rc;
}

static int read_file(const char *path, struct azure_principal *ret, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, AZURE_CREDENTIALS_FILE_MAX, &text, e);
    if (rc == 0) {
        rc = azure_credentials_parse_file(buf_str(&text), text.len, ret, e);
        if (rc != 0)
            rc = err_wrap(e, "%s", path);
    } else {
        rc = e->kind = ERR_CONFIG;
    }
    buf_wipe(&text);
    return rc;
}

/* ---- requests ---- */

static void add_value(struct buf *out, const char *key, const char *value)
{
    buf_adds(out, key);
    str_url_encode(out, value, strlen(value));
}

static void request_login(const struct azure_credential_source *s, const struct azure_principal *p,
    struct oauth_request *r)
{
    r->method = "POST";
    r->header = "Content-Type: application/x-www-form-urlencoded";
    r->url = mem_printf("%s/%s/oauth2/v2.0/token", s->login_url, p->tenant);
    add_value(&r->body, "grant_type=client_credentials&client_id=", p->client_id);
    add_value(&r->body, "&client_secret=", p->secret);
    add_value(&r->body, "&scope=", s->audience);
    buf_adds(&r->body, "%2F.default");
}

static void request_machine(const struct azure_credential_source *s, struct oauth_request *r)
{
    struct buf url = {0};
    buf_printf(&url, "%s/metadata/identity/oauth2/token?api-version=2018-02-01", s->metadata_url);
    add_value(&url, "&resource=", s->audience);
    buf_adds(&url, "%2F");
    if (s->from_env.client_id[0])
        add_value(&url, "&client_id=", s->from_env.client_id);
    r->method = "GET";
    r->header = AZURE_IMDS_HEADER;
    r->url = buf_take(&url);
}

static int build(void *ctx, struct oauth_request *r, struct err *e)
{
    struct azure_credential_source *s = ctx;
    struct azure_principal p = s->from_env;
    int rc = s->file ? read_file(s->file, &p, e) : 0;
    r->timeout_ms = TOKEN_TIMEOUT_MS;
    s->is_of_machine = !p.secret[0];
    if (rc == 0 && s->is_of_machine)
        request_machine(s, r);
    else if (rc == 0)
        request_login(s, &p, r);
    OPENSSL_cleanse(&p, sizeof(p));
    return rc == 0 ? 0 : err_wrap(e, "Azure credentials");
}

static int parse(
    void *ctx, const struct http_reply *reply, struct oauth_token *ret_token, struct err *e)
{
    const struct azure_credential_source *s = ctx;
    int status = reply->status;
    int rc = oauth_parse_reply(status, buf_str(&reply->body), reply->body.len, ret_token, e);
    if (rc == 0)
        return 0;
    if (!s->is_of_machine)
        return err_wrap(e, "Azure credentials: asking %s", s->login_url);
    /* The service returns these while it starts or is being updated. */
    if (status == 404 || status == 410)
        rc = e->kind = ERR_UNAVAILABLE;
    if (status == 400)
        rc = e->kind = ERR_CONFIG;
    return err_wrap(e, "Azure credentials: neither a file nor AZURE_CLIENT_SECRET is set; asking "
                       "for this machine's managed "
                       "identity");
}

int azure_credential_source_create(const struct azure_credential_options *o,
    struct azure_credential_source **ret_source, struct err *e)
{
    static const struct oauth_ops ops = {.build = build, .parse = parse};
    struct azure_credential_source *s = mem_alloc(sizeof(*s));
    s->file = mem_strdup(o->file);
    s->login_url = mem_strdup(o->login_url);
    s->audience = mem_strdup(o->audience);
    int rc = o->file ? 0 : read_environment(&s->from_env, &o->env, e);
    if (rc == 0)
        rc = cloud_metadata(AZURE_IMDS_URL, o->metadata_url, &s->metadata_url, e);
    if (rc == 0)
        s->tokens = oauth_create(&ops, s, o->http, o->timers);
    if (rc == 0)
        *ret_source = s;
    else
        azure_credential_source_destroy(s);
    return rc;
}

void azure_credential_source_destroy(struct azure_credential_source *s)
{
    if (!s)
        return;
    oauth_destroy(s->tokens);
    free(s->file);
    free(s->login_url);
    free(s->audience);
    free(s->metadata_url);
    OPENSSL_cleanse(s, sizeof(*s));
    free(s);
}

struct oauth *azure_credential_tokens(struct azure_credential_source *s)
{
    return s->tokens;
}
