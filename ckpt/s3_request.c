/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs, signing, and the bodies that are sent. Names of objects and prefixes need no encoding: see store.h.
 */
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store.h"
#include "cloud/aws/sigv4.h"
#include "cloud/endpoint.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "s3://"
#define USUAL_REGION "us-east-1"
#define PREFIX_MAX 256
#define MD5_BYTES 16
#define EXPECTED "expected s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=NAME&style=path"

/* ---- Where ---- */

static bool is_bucket(const char *s)
{
    size_t n = strlen(s);
    if (n < 3 || n > 63 || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-") < n || strstr(s, ".."))
        return false;
    return s[0] != '.' && s[0] != '-' && s[n - 1] != '.' && s[n - 1] != '-';
}

struct options {
    char endpoint[S3_URL_MAX], region[64], style[16];
};

static int read_option(char *text, struct options *o, struct err *e)
{
    static const char *const names[] = {"endpoint", "region", "style", NULL};
    struct buf value = {0};
    char *equals = strchr(text, '=');
    if (!equals)
        return err_set(e, ERR_INVALID, "\"%.40s\" after the '?' is not NAME=VALUE", text);
    *equals = '\0';
    int rc = str_url_decode(&value, equals + 1, strlen(equals + 1), false, e);
    bool fits = true;
    if (rc == 0 && str_eq(text, "endpoint"))
        fits = STR_COPY(o->endpoint, buf_str(&value));
    else if (rc == 0 && str_eq(text, "region"))
        fits = STR_COPY(o->region, buf_str(&value)) && str_is_name(o->region, sizeof(o->region) - 1);
    else if (rc == 0 && str_eq(text, "style"))
        fits =
            STR_COPY(o->style, buf_str(&value)) && (str_eq(o->style, "path") || str_eq(o->style, "virtual"));
    else if (rc == 0) {
        const char *nearest = str_nearest(text, names);
        rc = err_set(e, ERR_INVALID, "there is no option \"%.40s\"; there are endpoint, region and style%s%s",
            text, nearest ? "; did you mean " : "", nearest ? nearest : "");
    }
    if (!fits)
        rc = err_set(e, ERR_INVALID, "the value of \"%s\" cannot be one", text);
    buf_deinit(&value);
    return rc;
}

static int read_options(char *query, struct options *o, struct err *e)
{
    int rc = 0;
    for (char *part; rc == 0 && (part = strsep(&query, "&"));)
        if (part[0])
            rc = read_option(part, o, e);
    return rc;
}

/* The place of bucket and options; p->prefix is set. */
static int set_root(struct s3_place *p, const struct options *o, struct err *e)
{
    char *base = NULL;
    bool is_amazon = !o->endpoint[0];
    bool is_virtual = o->style[0] ? str_eq(o->style, "virtual") : is_amazon && !strchr(p->bucket, '.');
    STR_COPY(p->region, o->region[0] ? o->region : USUAL_REGION);
    if (is_amazon)
        base =
            mem_printf("https://s3.%s.amazonaws.com%s", p->region, str_starts(p->region, "cn-") ? ".cn" : "");
    else if (cloud_endpoint("store", o->endpoint, &base, e) != 0)
        return e->kind = ERR_INVALID;
    if (is_virtual) {
        const char *host = strstr(base, "://") + 3;
        p->root = mem_printf("%.*s%s.%s", (int)(host - base), base, p->bucket, host);
        free(base);
    } else {
        p->root = base;
        snprintf(p->dir, sizeof(p->dir), "/%s", p->bucket);
    }
    cloud_endpoint_host(p->root, p->host, sizeof(p->host));
    return 0;
}

/* text is "BUCKET[/PREFIX]"; it is changed. */
static int set_names(struct s3_place *p, char *text, struct err *e)
{
    char *prefix = strchr(text, '/');
    if (prefix)
        *prefix++ = '\0';
    if (!is_bucket(text) || !STR_COPY(p->bucket, text))
        return err_set(e, ERR_INVALID, "\"%.64s\" is not the name of a bucket; " EXPECTED, text);
    size_t n = prefix ? strlen(prefix) : 0;
    while (n > 0 && prefix[n - 1] == '/')
        prefix[--n] = '\0';
    if (n > PREFIX_MAX || (n > 0 && !store_name_is_valid(prefix)))
        return err_set(e, ERR_INVALID,
            "\"%.64s\" cannot be a prefix: at most %d bytes of [A-Za-z0-9._-] with '/' between, no part "
            "beginning "
            "with '.'",
            prefix, PREFIX_MAX);
    p->prefix = n > 0 ? mem_printf("%s/", prefix) : mem_strdup("");
    return 0;
}

int s3_place_parse(const char *url, struct s3_place *ret_place, struct err *e)
{
    struct options o = {0};
    *ret_place = (struct s3_place){0};
    if (!str_starts(url, SCHEME) || strlen(url) > S3_URL_MAX)
        return err_set(e, ERR_INVALID, EXPECTED " of at most %d bytes", S3_URL_MAX);
    char *text = mem_strdup(url + strlen(SCHEME)), *query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    int rc = set_names(ret_place, text, e);
    if (rc == 0 && query)
        rc = read_options(query, &o, e);
    if (rc == 0)
        rc = set_root(ret_place, &o, e);
    if (rc != 0)
        s3_place_deinit(ret_place);
    free(text);
    return rc;
}

void s3_place_deinit(struct s3_place *p)
{
    free(p->root);
    free(p->prefix);
    *p = (struct s3_place){0};
}

void s3_label(const struct s3_place *p, const struct s3_request *r, char *out, size_t size)
{
    snprintf(
        out, size, "%s s3://%s/%s%s", r->method, p->bucket, r->key ? p->prefix : "", r->key ? r->key : "");
}

/* ---- Signing ---- */

struct signing {
    struct sigv4_header headers[HTTP_HEADERS_MAX];
    size_t n;
};

static void add(struct signing *s, const char *name, const char *value)
{
    s->headers[s->n++] = (struct sigv4_header){.name = name, .value = value};
}

static int check_headers(const struct signing *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (strpbrk(s->headers[i].value, "\r\n"))
            return err_set(e, ERR_INVALID, "the value of %s is more than one line", s->headers[i].name);
    return 0;
}

int s3_sign(const struct s3_place *p, const struct s3_request *r, const struct store_keys *k, struct wall now,
    struct s3_signed *ret_signed, struct err *e)
{
    char timestamp[SIGV4_TIMESTAMP_MAX];
    const char *query = r->query ? r->query : "";
    struct signing s = {0};
    struct buf authorization = {0};
    sigv4_timestamp(now, timestamp);
    add(&s, "Host", p->host);
    add(&s, "X-Amz-Date", timestamp);
    add(&s, "X-Amz-Content-Sha256", r->sha256);
    if (k->session_token[0])
        add(&s, "X-Amz-Security-Token", k->session_token);
    for (size_t i = 0; i < S3_HEADERS_MAX && r->headers[i].name; i++)
        add(&s, r->headers[i].name, r->headers[i].value);
    char *target = mem_printf(
        "%s/%s%s%s%s", p->dir, r->key ? p->prefix : "", r->key ? r->key : "", query[0] ? "?" : "", query);
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
        *ret_signed = (struct s3_signed){.url = mem_printf("%s%s", p->root, target)};
        add(&s, "Authorization", buf_str(&authorization));
        for (size_t i = 0; i < s.n; i++)
            ret_signed->headers[i] = mem_printf("%s: %s", s.headers[i].name, s.headers[i].value);
    }
    free(target);
    buf_wipe(&authorization);
    return rc;
}

void s3_signed_deinit(struct s3_signed *s)
{
    for (size_t i = 0; i < HTTP_HEADERS_MAX && s->headers[i]; i++) {
        OPENSSL_cleanse(s->headers[i], strlen(s->headers[i]));
        free(s->headers[i]);
    }
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
        buf_printf(out, "</ETag><ChecksumSHA256>%s</ChecksumSHA256></Part>", parts[i].sha256);
    }
    buf_adds(out, "</CompleteMultipartUpload>");
}

void s3_write_delete(struct buf *out, const struct s3_place *p, const char *const *names, size_t n)
{
    buf_adds(out, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<Object><Key>%s%s</Key></Object>", p->prefix, names[i]);
    buf_adds(out, "</Delete>");
}

void s3_write_list_query(struct buf *out, const struct s3_place *p, const char *below, const char *token)
{
    if (token[0]) {
        buf_adds(out, "continuation-token=");
        str_url_encode(out, token, strlen(token));
        buf_addc(out, '&');
    }
    buf_adds(out, "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    str_url_encode(out, p->prefix, strlen(p->prefix));
    str_url_encode(out, below, strlen(below));
}
