/* SPDX-License-Identifier: Apache-2.0
 *
 * See credentials.h.
 */
#include "cloud/gcp/credentials.h"
#include "base/fs.h"
#include "base/http_date.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/endpoint.h"
#include "cloud/gcp/metadata.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define ASSERTION_S 3600
#define KEY_BITS_MIN 2048
#define KEY_TIMEOUT_MS SECONDS_MS(20)
#define METADATA_TIMEOUT_MS SECONDS_MS(5)
#define METADATA_PATH GCP_METADATA_ROOT "/instance/service-accounts/default/token"

struct gcp_credential_source {
    char *file; /* NULL to use the metadata service */
    char *endpoint_url;
    char *metadata_url;
    const struct clock *clock;
    int64_t skew_ms; /* Google's clock minus ours, learned from a refused request */
    struct oauth *oauth;
};

/* ---- the key file ---- */

static void read_text(struct json_reader *r, const char *key, char *dst, size_t size)
{
    json_opt_strcpy(r, key, dst, size, "");
    for (const char *p = dst; *p; p++)
        if (*p <= ' ' || *p > '~')
            json_reader_fail(r, key, "contains a blank or an invalid character");
}

int gcp_key_parse(const char *text, size_t n, struct gcp_key *ret_key, struct err *e)
{
    struct gcp_key k = {0};
    struct json_reader r;
    char shown[STR_SHOW_MAX];
    json_t *root = NULL;
    int rc = json_parse(text, n, GCP_KEY_FILE_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        const char *type = json_opt_str(&r, "type", 64, "");
        if (r.rc == 0 && !str_eq(type, "service_account"))
            json_reader_fail(&r, "type",
                "expected the key file of a service account; %s is not supported (nor are a "
                "person's own credentials, or workload identity): create a key in the console, or "
                "run belayd on an "
                "instance with a service account",
                str_show(type, shown));
        read_text(&r, "client_email", k.client_email, sizeof(k.client_email));
        read_text(&r, "private_key_id", k.private_key_id, sizeof(k.private_key_id));
        read_text(&r, "token_uri", k.token_uri, sizeof(k.token_uri));
        json_opt_strcpy(&r, "private_key", k.private_key_pem, sizeof(k.private_key_pem), "");
        if (!k.client_email[0])
            json_reader_fail(&r, "client_email", "missing");
        if (!k.private_key_pem[0])
            json_reader_fail(&r, "private_key", "missing");
        rc = json_reader_finish_lenient(&r);
    }
    if (rc == 0)
        *ret_key = k;
    else if (e)
        e->kind = ERR_CONFIG;
    OPENSSL_cleanse(&k, sizeof(k));
    json_wipe(root);
    return rc == 0 ? 0 : ERR_CONFIG;
}

/* ---- the assertion ---- */

/* RFC 4648, section 5, without padding. */
static void add_base64url(struct buf *out, const void *p, size_t n)
{
    char *text = mem_alloc(4 * ((n + 2) / 3) + 1);
    size_t len = (size_t)EVP_EncodeBlock((unsigned char *)text, p, (int)n);
    for (size_t i = 0; i < len && text[i] != '='; i++)
        buf_addc(out, (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]));
    free(text);
}

static void add_json(struct buf *out, json_t *object)
{
    char *text = json_dump_text(object);
    add_base64url(out, text, strlen(text));
    free(text);
    json_decref(object);
}

/* Callback for keys with a passphrase: none is known, and there is no one to ask. */
static int no_passphrase(char *out, int size, int writing, void *ctx)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

static EVP_PKEY *read_key(const struct gcp_key *key)
{
    BIO *bio = BIO_new_mem_buf(key->private_key_pem, -1);
    if (!bio)
        mem_out_of_memory();
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    if (pkey && EVP_PKEY_get_base_id(pkey) == EVP_PKEY_RSA &&
        EVP_PKEY_get_bits(pkey) >= KEY_BITS_MIN)
        return pkey;
    EVP_PKEY_free(pkey);
    return NULL;
}

static bool sign(EVP_PKEY *pkey, const struct buf *input, struct buf *out)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned char signature[2048];
    size_t n = sizeof(signature);
    bool is_good =
        md && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, pkey) == 1 &&
        EVP_DigestSign(md, signature, &n, (const unsigned char *)input->data, input->len) == 1;
    EVP_MD_CTX_free(md);
    if (is_good)
        add_base64url(out, signature, n);
    return is_good;
}

static void add_claims(
    const struct gcp_key *key, const char *audience, struct wall now, struct buf *out)
{
    json_t *header = json_object(), *claims = json_object();
    json_object_set_new(header, "alg", json_string("RS256"));
    json_object_set_new(header, "typ", json_string("JWT"));
    if (key->private_key_id[0])
        json_object_set_new(header, "kid", json_text(key->private_key_id));
    json_object_set_new(claims, "iss", json_text(key->client_email));
    json_object_set_new(claims, "scope", json_string(SCOPE));
    json_object_set_new(claims, "aud", json_text(audience));
    json_object_set_new(claims, "iat", json_integer(now.ms / 1000));
    json_object_set_new(claims, "exp", json_integer(now.ms / 1000 + ASSERTION_S));
    add_json(out, header);
    buf_addc(out, '.');
    add_json(out, claims);
}

int gcp_key_assertion(const struct gcp_key *key, const char *audience, struct wall now,
    struct buf *out, struct err *e)
{
    struct buf input = {0}, signature = {0};
    EVP_PKEY *pkey = read_key(key);
    int rc = 0;
    add_claims(key, audience, now, &input);
    if (!pkey || !sign(pkey, &input, &signature))
        rc = err_set(e, ERR_CONFIG,
            "private_key: expected an RSA key of at least %d bits, in PEM, without a "
            "passphrase",
            KEY_BITS_MIN);
    else
        buf_printf(out, "%s.%s", buf_str(&input), buf_str(&signature));
    EVP_PKEY_free(pkey);
    buf_wipe(&input);
    buf_wipe(&signature);
    return rc;
}

/* The host of a URL without the port, of n bytes; NULL if it is malformed or contains a user name.
 */
static const char *host_of(const char *url, size_t *ret_n)
{
    const char *host = strstr(url, "://");
    size_t n = host ? strcspn(host + 3, "/?#") : 0;
    if (n == 0 || strcspn(host + 3, "@\\% ") < n)
        return NULL;
    host += 3;
    const char *bracket = *host == '[' ? memchr(host, ']', n) : NULL;
    *ret_n = bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":/?#");
    return host;
}

bool gcp_token_uri_is_trusted(const char *token_uri, const char *endpoint_url)
{
    size_t n, m;
    if (str_eq(token_uri, TOKEN_URI))
        return true;
    const char *host = host_of(token_uri, &n),
               *known = endpoint_url ? host_of(endpoint_url, &m) : NULL;
    /* The endpoint has been checked: https, or this machine. */
    size_t scheme = known ? (size_t)(known - endpoint_url) : 0;
    return host && known && n == m && memcmp(host, known, n) == 0 &&
           strncmp(token_uri, endpoint_url, scheme) == 0;
}

/* ---- fetching ---- */

static int add_assertion(struct gcp_credential_source *s, const struct gcp_key *key,
    struct oauth_request *r, struct err *e)
{
    const char *uri = key->token_uri[0] ? key->token_uri : TOKEN_URI;
    if (!gcp_token_uri_is_trusted(uri, s->endpoint_url))
        return err_set(e, ERR_CONFIG,
            "token_uri: expected " TOKEN_URI
            " (or the host of the pool's endpoint); assertions of a key are sent nowhere "
            "else");
    r->method = "POST";
    r->url = mem_strdup(uri);
    r->header = "Content-Type: application/x-www-form-urlencoded";
    r->timeout_ms = KEY_TIMEOUT_MS;
    buf_adds(
        &r->body, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    return gcp_key_assertion(
        key, uri, (struct wall){clock_wall(s->clock).ms + s->skew_ms}, &r->body, e);
}

static int build(void *ctx, struct oauth_request *r, struct err *e)
{
    struct gcp_credential_source *s = ctx;
    struct gcp_key key;
    struct buf text = {0};
    if (!s->file) {
        r->method = "GET";
        r->url = mem_printf("%s" METADATA_PATH, s->metadata_url);
        r->header = GCP_METADATA_HEADER;
        r->timeout_ms = METADATA_TIMEOUT_MS;
        return 0;
    }
    int rc = fs_read_secret(s->file, GCP_KEY_FILE_MAX, &text, e);
    if (rc == 0)
        rc = gcp_key_parse(buf_str(&text), text.len, &key, e);
    if (rc == 0)
        rc = add_assertion(s, &key, r, e);
    if (rc != 0) {
        err_wrap(e, "Google credentials: %s", s->file);
        rc = e->kind = ERR_CONFIG;
    }
    OPENSSL_cleanse(&key, sizeof(key));
    buf_wipe(&text);
    return rc;
}

/* An assertion dated in the past or the future is refused; the next one uses Google's clock. */
static void correct_clock(struct gcp_credential_source *s, const struct http_reply *reply)
{
    struct wall theirs;
    if (s->file && reply->status == 400 &&
        http_date_parse(http_reply_header(reply, "Date"), &theirs, NULL) == 0)
        s->skew_ms = theirs.ms - clock_wall(s->clock).ms;
}

static int parse(
    void *ctx, const struct http_reply *reply, struct oauth_token *ret_token, struct err *e)
{
    struct gcp_credential_source *s = ctx;
    int rc = s->file ? 0 : gcp_metadata_check(METADATA_PATH, reply, e);
    if (rc == ERR_NOT_FOUND)
        rc = err_set(e, ERR_CONFIG, "this instance has no service account");
    if (rc == 0)
        rc = oauth_parse_reply(reply->status, buf_str(&reply->body), reply->body.len, ret_token, e);
    correct_clock(s, reply);
    return rc == 0 ? 0
                   : err_wrap(e, "Google credentials: %s",
                         s->file ? s->file : "no key file; asking the metadata service");
}

int gcp_credential_source_create(const struct gcp_credential_options *o,
    struct gcp_credential_source **ret_source, struct err *e)
{
    static const struct oauth_ops ops = {build, parse};
    const char *env = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    struct gcp_credential_source *s = mem_alloc(sizeof(*s));
    s->file = mem_strdup(o->file ? o->file : env && *env ? env : NULL);
    s->endpoint_url = mem_strdup(o->endpoint_url);
    s->clock = o->timers->clock;
    int rc = cloud_metadata(GCP_METADATA_URL, o->metadata_url, &s->metadata_url, e);
    if (rc != 0) {
        gcp_credential_source_destroy(s);
        return rc;
    }
    s->oauth = oauth_create(&ops, s, o->http, o->timers);
    *ret_source = s;
    return 0;
}

void gcp_credential_source_destroy(struct gcp_credential_source *s)
{
    if (!s)
        return;
    oauth_destroy(s->oauth);
    free(s->file);
    free(s->endpoint_url);
    free(s->metadata_url);
    free(s);
}

struct oauth *gcp_credential_oauth(struct gcp_credential_source *s)
{
    return s->oauth;
}
