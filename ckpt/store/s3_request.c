/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs, signing, and request bodies. Names of objects and prefixes need no encoding: see store.h.
 */
#include "base/http_date.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store/store.h"
#include "cloud/aws/sigv4.h"
#include "cloud/endpoint.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_REGION "us-east-1"
#define PREFIX_MAX 256
#define MD5_BYTES 16
#define AZURE_VERSION "2021-12-02"

/* ---- Dialects ---- */

static const struct dialect {
    const char *scheme;
    const char *const *options; /* allowed in the URL, ends at NULL */
    const char *expected;
} dialects[STORE_KEYS_KINDS] = {
    [STORE_KEYS_AWS] = {"s3://",
        (const char *const[]){"endpoint", "region", "style", "sse", "kms_key", NULL},
        "expected s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME&style=path"},
    [STORE_KEYS_GOOGLE] = {"gs://", (const char *const[]){"endpoint", "kms_key", NULL},
        "expected gs://BUCKET/PREFIX"},
    [STORE_KEYS_AZURE] = {"az://", (const char *const[]){"endpoint", "encryption_scope", NULL},
        "expected az://ACCOUNT/CONTAINER/PREFIX"},
};

/* ---- Where ---- */

static bool is_bucket(const char *s)
{
    size_t n = strlen(s);
    if (n < 3 || n > 63 || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_") < n ||
        strstr(s, ".."))
        return false;
    return !strchr(".-_", s[0]) && !strchr(".-_", s[n - 1]);
}

/* S3's rule for names applies to all; Google's may have '_', Azure's have no '.' and no "--". */
static bool is_bucket_of(enum store_keys_kind dialect, const char *s)
{
    if (!is_bucket(s) || (strchr(s, '_') && dialect != STORE_KEYS_GOOGLE))
        return false;
    return dialect != STORE_KEYS_AZURE || (!strchr(s, '.') && !strstr(s, "--"));
}

static bool is_account(const char *s)
{
    size_t n = strlen(s);
    return n >= 3 && n <= 24 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

struct options {
    char endpoint[S3_URL_MAX], region[64], style[16], sse[8], kms_key[257], scope[64];
};

static int no_option(const char *name, const char *const *names, struct err *e)
{
    const char *nearest = str_nearest(name, names);
    struct buf all = {0};
    for (size_t i = 0; names[i]; i++)
        buf_printf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    int rc = err_set(e, ERR_INVALID, "unknown option \"%.40s\"; the options are: %s%s%s", name,
        buf_str(&all), nearest ? "; did you mean " : "", nearest ? nearest : "");
    buf_deinit(&all);
    return rc;
}

/* An ARN, or the id or alias of a key; for Google the full name. */
static bool is_kms_key(const char *s)
{
    return s[0] &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/_.-") ==
               strlen(s);
}

static bool is_scope(const char *s)
{
    return strlen(s) >= 3 &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
               strlen(s);
}

/* False if the value is invalid. */
static bool take_option(const char *name, const char *value, struct options *o)
{
    if (str_eq(name, "endpoint"))
        return STR_COPY(o->endpoint, value);
    if (str_eq(name, "region"))
        return STR_COPY(o->region, value) && str_is_name(o->region, sizeof(o->region) - 1);
    if (str_eq(name, "style"))
        return STR_COPY(o->style, value) && (str_eq(value, "path") || str_eq(value, "virtual"));
    if (str_eq(name, "sse"))
        return STR_COPY(o->sse, value) && (str_eq(value, "s3") || str_eq(value, "kms"));
    if (str_eq(name, "kms_key"))
        return STR_COPY(o->kms_key, value) && is_kms_key(value);
    return STR_COPY(o->scope, value) && is_scope(value);
}

static int read_option(char *text, const struct dialect *d, struct options *o, struct err *e)
{
    struct buf value = {0};
    char *equals = strchr(text, '=');
    size_t known = 0;
    if (!equals)
        return err_set(e, ERR_INVALID, "\"%.40s\" after the '?' is not NAME=VALUE", text);
    *equals = '\0';
    while (d->options[known] && !str_eq(d->options[known], text))
        known++;
    if (!d->options[known])
        return no_option(text, d->options, e);
    int rc = str_url_decode(&value, equals + 1, strlen(equals + 1), false, e);
    if (rc == 0 && !take_option(text, buf_str(&value), o))
        rc = err_set(e, ERR_INVALID, "the value of \"%s\" is invalid", text);
    buf_deinit(&value);
    return rc;
}

static int read_options(char *query, const struct dialect *d, struct options *o, struct err *e)
{
    int rc = 0;
    for (char *part; rc == 0 && (part = strsep(&query, "&"));)
        if (part[0])
            rc = read_option(part, d, o, e);
    return rc;
}

static int set_encryption(struct s3_location *p, const struct options *o, struct err *e)
{
    bool is_amazon = p->dialect == STORE_KEYS_AWS;
    if (is_amazon && o->kms_key[0] && !str_eq(o->sse, "kms"))
        return err_set(e, ERR_INVALID, "kms_key needs sse=kms");
    if (!is_amazon && o->kms_key[0] && !str_starts(o->kms_key, "projects/"))
        return err_set(e, ERR_INVALID,
            "expected kms_key=projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY, "
            "found \"%.100s\"",
            o->kms_key);
    p->sse = str_eq(o->sse, "s3") ? S3_SSE_S3 : str_eq(o->sse, "kms") ? S3_SSE_KMS : S3_SSE_NONE;
    STR_COPY(p->kms_key, o->kms_key);
    STR_COPY(p->scope, o->scope);
    return 0;
}

void s3_encryption_headers(
    const struct s3_location *p, struct http_header out[S3_ENCRYPTION_HEADERS])
{
    size_t n = 0;
    memset(out, 0, S3_ENCRYPTION_HEADERS * sizeof(*out));
    if (p->sse != S3_SSE_NONE)
        out[n++] = (struct http_header){
            "x-amz-server-side-encryption", p->sse == S3_SSE_KMS ? "aws:kms" : "AES256"};
    if (p->kms_key[0])
        out[n++] = (struct http_header){p->dialect == STORE_KEYS_GOOGLE
                                            ? "x-goog-encryption-kms-key-name"
                                            : "x-amz-server-side-encryption-aws-kms-key-id",
            p->kms_key};
    if (p->scope[0])
        out[n] = (struct http_header){"x-ms-encryption-scope", p->scope};
}

/* Takes ownership of base, a URL without a path. */
static void set_virtual(struct s3_location *p, char *base)
{
    const char *host = strstr(base, "://") + 3;
    p->root = mem_printf("%.*s%s.%s", (int)(host - base), base, p->bucket, host);
    free(base);
}

/* Takes ownership of base. The account is the first part of the path unless it is in the host. */
static void set_azure(struct s3_location *p, char *base)
{
    const char *host = strstr(base, "://") + 3;
    size_t n = strlen(p->account);
    bool is_in_host = strncmp(host, p->account, n) == 0 && host[n] == '.';
    p->root = base;
    snprintf(p->dir, sizeof(p->dir), "%s%s/%s", is_in_host ? "" : "/", is_in_host ? "" : p->account,
        p->bucket);
}

static char *usual_root(const struct s3_location *p)
{
    if (p->dialect == STORE_KEYS_GOOGLE)
        return mem_strdup("https://storage.googleapis.com");
    if (p->dialect == STORE_KEYS_AZURE)
        return mem_printf("https://%s.blob.core.windows.net", p->account);
    return mem_printf(
        "https://s3.%s.amazonaws.com%s", p->region, str_starts(p->region, "cn-") ? ".cn" : "");
}

/* Sets the location from bucket and options; p->prefix must be set. */
static int set_root(struct s3_location *p, const struct options *o, struct err *e)
{
    char *base = NULL;
    bool is_usual = !o->endpoint[0], is_amazon = p->dialect == STORE_KEYS_AWS;
    bool is_virtual =
        o->style[0] ? str_eq(o->style, "virtual") : is_usual && !strchr(p->bucket, '.');
    if (is_amazon)
        STR_COPY(p->region, o->region[0] ? o->region : USUAL_REGION);
    if (is_usual)
        base = usual_root(p);
    else if (cloud_endpoint("store", o->endpoint, &base, e) != 0)
        return e->kind = ERR_INVALID;
    if (p->dialect == STORE_KEYS_AZURE)
        set_azure(p, base);
    else if (is_amazon && is_virtual)
        set_virtual(p, base);
    else {
        p->root = base;
        snprintf(p->dir, sizeof(p->dir), "/%s", p->bucket);
    }
    cloud_endpoint_host(p->root, p->host, sizeof(p->host));
    return 0;
}

/* Removes and returns the first part, "" if there is none. */
static char *next_part(char **text)
{
    char *part = *text;
    size_t n = strcspn(part, "/");
    *text = part + n + (part[n] == '/');
    part[n] = '\0';
    return part;
}

/* text is "[ACCOUNT/]BUCKET[/PREFIX]"; it is modified. */
static int set_names(struct s3_location *p, char *text, struct err *e)
{
    const struct dialect *d = &dialects[p->dialect];
    if (p->dialect == STORE_KEYS_AZURE) {
        const char *account = next_part(&text);
        if (!is_account(account) || !STR_COPY(p->account, account))
            return err_set(e, ERR_INVALID, "\"%.64s\" is not the name of a storage account; %s",
                account, d->expected);
    }
    const char *bucket = next_part(&text);
    if (!is_bucket_of(p->dialect, bucket) || !STR_COPY(p->bucket, bucket))
        return err_set(e, ERR_INVALID, "\"%.64s\" is not the name of a %s; %s", bucket,
            p->dialect == STORE_KEYS_AZURE ? "container" : "bucket", d->expected);
    snprintf(p->shown, sizeof(p->shown), "%s%s%s%s", d->scheme, p->account,
        p->account[0] ? "/" : "", p->bucket);
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '/')
        text[--n] = '\0';
    if (n > PREFIX_MAX || (n > 0 && !store_name_is_valid(text)))
        return err_set(e, ERR_INVALID,
            "\"%.64s\" cannot be a prefix: at most %d bytes of [A-Za-z0-9._-] with '/' between, no "
            "part beginning with '.'",
            text, PREFIX_MAX);
    p->prefix = n > 0 ? mem_printf("%s/", text) : mem_strdup("");
    return 0;
}

static const struct dialect *find_dialect(const char *url)
{
    for (size_t i = 0; i < STORE_KEYS_KINDS; i++)
        if (str_starts(url, dialects[i].scheme))
            return &dialects[i];
    return NULL;
}

bool s3_location_is_one(const char *url, enum store_keys_kind *ret_dialect)
{
    const struct dialect *d = find_dialect(url);
    if (d && ret_dialect)
        *ret_dialect = (enum store_keys_kind)(d - dialects);
    return d != NULL;
}

int s3_location_parse(const char *url, struct s3_location *ret_location, struct err *e)
{
    const struct dialect *d = find_dialect(url);
    struct options o = {0};
    *ret_location = (struct s3_location){0};
    if (!d || strlen(url) > S3_URL_MAX)
        return err_set(
            e, ERR_INVALID, "%s of at most %d bytes", (d ? d : &dialects[0])->expected, S3_URL_MAX);
    ret_location->dialect = (enum store_keys_kind)(d - dialects);
    char *text = mem_strdup(url + strlen(d->scheme)), *query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    int rc = set_names(ret_location, text, e);
    if (rc == 0 && query)
        rc = read_options(query, d, &o, e);
    if (rc == 0)
        rc = set_encryption(ret_location, &o, e);
    if (rc == 0)
        rc = set_root(ret_location, &o, e);
    if (rc != 0)
        s3_location_deinit(ret_location);
    free(text);
    return rc;
}

void s3_location_deinit(struct s3_location *p)
{
    free(p->root);
    free(p->prefix);
    *p = (struct s3_location){0};
}

void s3_label(const struct s3_location *p, const struct s3_request *r, char *out, size_t size)
{
    snprintf(out, size, "%s %s/%s%s", r->method, p->shown, r->key ? p->prefix : "",
        r->key ? r->key : "");
}

/* ---- Signing ---- */

struct signing {
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t n;
};

static void add(struct signing *s, const char *name, const char *value)
{
    s->headers[s->n++] = (struct http_header){.name = name, .value = value};
}

static int check_headers(const struct signing *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (strpbrk(s->headers[i].value, "\r\n"))
            return err_set(
                e, ERR_INVALID, "the value of %s is more than one line", s->headers[i].name);
    return 0;
}

static void add_all(struct signing *s, const struct s3_request *r)
{
    for (size_t i = 0; i < S3_HEADERS_MAX && r->headers[i].name; i++)
        add(s, r->headers[i].name, r->headers[i].value);
}

static void copy_headers(const struct signing *s, struct s3_signed *ret)
{
    for (size_t i = 0; i < s->n; i++)
        ret->headers[i] = mem_printf("%s: %s", s->headers[i].name, s->headers[i].value);
}

static char *make_target(const struct s3_location *p, const struct s3_request *r)
{
    const char *query = r->query ? r->query : "";
    bool has_slash = r->key || p->dialect != STORE_KEYS_AZURE;
    return mem_printf("%s%s%s%s%s%s", p->dir, has_slash ? "/" : "", r->key ? p->prefix : "",
        r->key ? r->key : "", query[0] ? "?" : "", query);
}

static int sign_v4(const struct s3_location *p, const struct s3_request *r,
    const struct store_keys *k, struct wall now, struct s3_signed *ret, struct err *e)
{
    char timestamp[SIGV4_TIMESTAMP_MAX];
    struct signing s = {0};
    struct buf authorization = {0};
    sigv4_timestamp(now, timestamp);
    add(&s, "Host", p->host);
    add(&s, "X-Amz-Date", timestamp);
    add(&s, "X-Amz-Content-Sha256", r->sha256);
    if (k->token[0])
        add(&s, "X-Amz-Security-Token", k->token);
    add_all(&s, r);
    char *target = make_target(p, r);
    const struct sigv4_request request = {.method = r->method,
        .target = target,
        .headers = s.headers,
        .n_headers = s.n,
        .body_sha256 = r->sha256};
    const struct sigv4_scope scope = {.timestamp = timestamp, .region = p->region, .service = "s3"};
    int rc = check_headers(&s, e);
    if (rc == 0)
        rc = sigv4_authorization(&request, &scope, k->access_key, k->secret_key, &authorization, e);
    if (rc == 0) {
        add(&s, "Authorization", buf_str(&authorization));
        *ret = (struct s3_signed){.url = mem_printf("%s%s", p->root, target)};
        copy_headers(&s, ret);
    }
    free(target);
    buf_wipe(&authorization);
    return rc;
}

/* A shared access signature is part of the URL; a bearer token, a header. */
static int add_token(const struct s3_location *p, const struct s3_request *r,
    const struct store_keys *k, struct wall now, struct s3_signed *ret, struct err *e)
{
    char date[HTTP_DATE_MAX];
    struct signing s = {0};
    char *bearer = mem_printf("Bearer %s", k->token), *target = make_target(p, r);
    if (p->dialect == STORE_KEYS_AZURE) {
        http_date_write(now, date);
        add(&s, "x-ms-version", AZURE_VERSION);
        add(&s, "x-ms-date", date);
    }
    if (!k->is_signature)
        add(&s, "Authorization", bearer);
    add_all(&s, r);
    int rc = check_headers(&s, e);
    if (rc == 0 && strpbrk(k->token, " \t\r\n#"))
        rc = err_set(e, ERR_INVALID, "the token for the store has an invalid character");
    if (rc == 0) {
        *ret = (struct s3_signed){.url = mem_printf("%s%s%s%s", p->root, target,
                                      !k->is_signature      ? ""
                                      : strchr(target, '?') ? "&"
                                                            : "?",
                                      k->is_signature ? k->token : "")};
        copy_headers(&s, ret);
    }
    OPENSSL_cleanse(bearer, strlen(bearer));
    free(bearer);
    free(target);
    return rc;
}

int s3_sign(const struct s3_location *p, const struct s3_request *r, const struct store_keys *k,
    struct wall now, struct s3_signed *ret_signed, struct err *e)
{
    if (k->kind != p->dialect || (k->is_signature && p->dialect != STORE_KEYS_AZURE))
        return err_set(
            e, ERR_CONFIG, "the credentials are not for %s", dialects[p->dialect].scheme);
    return (p->dialect == STORE_KEYS_AWS ? sign_v4 : add_token)(p, r, k, now, ret_signed, e);
}

void s3_signed_deinit(struct s3_signed *s)
{
    for (size_t i = 0; i < HTTP_HEADERS_MAX && s->headers[i]; i++) {
        OPENSSL_cleanse(s->headers[i], strlen(s->headers[i]));
        free(s->headers[i]);
    }
    if (s->url)
        OPENSSL_cleanse(s->url, strlen(s->url)); /* may contain a signature */
    free(s->url);
    *s = (struct s3_signed){0};
}

static unsigned nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

void s3_base64_of_hex(const char *hex, char out[S3_BASE64_MAX])
{
    unsigned char raw[32];
    for (size_t i = 0; i < sizeof(raw); i++)
        raw[i] = (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    EVP_EncodeBlock((unsigned char *)out, raw, sizeof(raw));
}

void s3_md5_base64(const void *p, size_t n, char out[S3_BASE64_MAX])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    size_t len = 0;
    out[0] = '\0';
    if (EVP_Q_digest(NULL, "MD5", NULL, p, n, raw, &len) && len == MD5_BYTES)
        EVP_EncodeBlock((unsigned char *)out, raw, MD5_BYTES);
}

/* ---- Bodies and queries ---- */

static void add_escaped(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            buf_adds(out, "&quot;");
        else if (*c == '&')
            buf_adds(out, "&amp;");
        else if (*c == '<')
            buf_adds(out, "&lt;");
        else
            buf_addc(out, *c);
    }
}

void s3_write_complete(struct buf *out, const struct s3_part *parts, size_t n)
{
    buf_adds(out, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        add_escaped(out, parts[i].etag);
        buf_adds(out, "</ETag>");
        if (parts[i].sha256[0])
            buf_printf(out, "<ChecksumSHA256>%s</ChecksumSHA256>", parts[i].sha256);
        buf_adds(out, "</Part>");
    }
    buf_adds(out, "</CompleteMultipartUpload>");
}

void s3_write_block_list(struct buf *out, const char ids[][S3_BLOCK_ID_MAX], size_t n)
{
    buf_adds(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<Latest>%s</Latest>", ids[i]);
    buf_adds(out, "</BlockList>");
}

void s3_write_delete(
    struct buf *out, const struct s3_location *p, const char *const *names, size_t n)
{
    buf_adds(out, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<Object><Key>%s%s</Key></Object>", p->prefix, names[i]);
    buf_adds(out, "</Delete>");
}

void s3_write_list_query(
    struct buf *out, const struct s3_location *p, const char *below, const char *token)
{
    bool is_azure = p->dialect == STORE_KEYS_AZURE;
    if (token[0]) {
        buf_adds(out, is_azure ? "marker=" : "continuation-token=");
        str_url_encode(out, token, strlen(token));
        buf_addc(out, '&');
    }
    buf_adds(out, is_azure ? "restype=container&comp=list&maxresults=1000&prefix="
                           : "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    str_url_encode(out, p->prefix, strlen(p->prefix));
    str_url_encode(out, below, strlen(below));
}
