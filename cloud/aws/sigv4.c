/* SPDX-License-Identifier: Apache-2.0
 *
 * See sigv4.h. The canonical request is
 *
 *     METHOD \n path \n query \n name:value \n ... \n \n signed;names \n body hash
 *
 * and is built here from the bytes on the wire. Anything already encoded is decoded and encoded
 * again in the one canonical way, so that a signer and a checker agree whatever the sender's
 * encoder does. A '+' in a query is a plus.
 */
#include "cloud/aws/sigv4.h"
#include "base/mem.h"
#include "base/str.h"
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SEGMENTS_MAX 1024

struct slice {
    const char *p;
    size_t n;
};

void sigv4_sha256_hex(const void *p, size_t n, char out[SIGV4_HEX_MAX])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(p, n, digest);
    str_hex(digest, sizeof(digest), out);
}

void sigv4_timestamp(struct wall w, char out[SIGV4_TIMESTAMP_MAX])
{
    time_t seconds = (time_t)(w.ms / 1000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || strftime(out, SIGV4_TIMESTAMP_MAX, "%Y%m%dT%H%M%SZ", &tm) == 0)
        str_copy(out, SIGV4_TIMESTAMP_MAX, "00000000T000000Z");
}

/* Re-encodes p: decodes it, then encodes everything except the unreserved characters as %XX. */
static int add_reencoded(struct buf *out, struct slice s, struct err *e)
{
    struct buf plain = {0};
    int rc = str_url_decode(&plain, s.p, s.n, false, e);
    if (rc == 0)
        str_url_encode(out, buf_str(&plain), plain.len);
    buf_deinit(&plain);
    return rc;
}

static struct slice next_part(struct slice *rest, char separator)
{
    const char *at = rest->n > 0 ? memchr(rest->p, separator, rest->n) : NULL;
    struct slice part = {rest->p, at ? (size_t)(at - rest->p) : rest->n};
    size_t used = at ? part.n + 1 : part.n;
    rest->p += used;
    rest->n -= used;
    return part;
}

static bool slice_is(struct slice s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* S3: each segment is encoded once, nothing is normalised. */
static int add_path_s3(struct buf *out, struct slice path, struct err *e)
{
    int rc = 0;
    for (buf_addc(out, '/'), path.p++, path.n--; path.n > 0 && rc == 0;) {
        struct slice before = path;
        struct slice segment = next_part(&path, '/');
        rc = add_reencoded(out, segment, e);
        if (segment.n < before.n)
            buf_addc(out, '/');
    }
    return rc;
}

/* Other services: ".", ".." and empty segments are resolved, then the encoded path is encoded once
 * more. */
static int add_path_normal(struct buf *out, struct slice path, struct err *e)
{
    struct slice kept[SEGMENTS_MAX];
    size_t n = 0;
    bool ends_in_slash = path.p[path.n - 1] == '/';
    path.p++;
    path.n--;
    while (path.n > 0) {
        struct slice segment = next_part(&path, '/');
        if (segment.n == 0 || slice_is(segment, "."))
            continue;
        if (slice_is(segment, "..")) {
            n -= n > 0;
            continue;
        }
        if (n == SEGMENTS_MAX)
            return err_set(e, ERR_INVALID, "path with more than %d segments", SEGMENTS_MAX);
        kept[n++] = segment;
    }
    for (size_t i = 0; i < n; i++) {
        buf_addc(out, '/');
        str_url_encode(out, kept[i].p, kept[i].n);
    }
    if (n == 0 || ends_in_slash)
        buf_addc(out, '/');
    return 0;
}

static int add_path(struct buf *out, struct slice path, const char *service, struct err *e)
{
    if (path.n == 0 || path.p[0] != '/')
        return err_set(e, ERR_INVALID, "request path does not start with '/'");
    return str_eq(service, "s3") ? add_path_s3(out, path, e) : add_path_normal(out, path, e);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds "name=value" parameters in encoded form, sorted by name, then value. While sorting, a name
 * ends in '\1', lower than any encoded character, so that "a=..." sorts before "a-b=...". */
static int add_query(struct buf *out, struct slice query, struct err *e)
{
    char **params = mem_array(SIGV4_PARAMS_MAX, sizeof(*params));
    size_t n = 0;
    int rc = 0;
    while (query.n > 0 && rc == 0) {
        struct slice value = next_part(&query, '&');
        if (value.n == 0)
            continue;
        if (n == SIGV4_PARAMS_MAX) {
            rc = err_set(e, ERR_INVALID, "more than %d query parameters", SIGV4_PARAMS_MAX);
            break;
        }
        struct slice name = next_part(&value, '=');
        struct buf param = {0};
        rc = add_reencoded(&param, name, e);
        buf_addc(&param, '\1');
        if (rc == 0)
            rc = add_reencoded(&param, value, e);
        params[n++] = buf_take(&param);
    }
    if (rc == 0) {
        qsort(params, n, sizeof(*params), compare_strings);
        for (size_t i = 0; i < n; i++) {
            *strchr(params[i], '\1') = '=';
            buf_adds(out, i > 0 ? "&" : "");
            buf_adds(out, params[i]);
        }
    }
    for (size_t i = 0; i < n; i++)
        free(params[i]);
    free(params);
    return rc;
}

/* The value without surrounding blanks and with inner runs of blanks reduced to one. */
static void add_trimmed(struct buf *out, const char *value)
{
    bool gap = false, begun = false;
    for (; *value; value++) {
        if (*value == ' ' || *value == '\t') {
            gap = true;
            continue;
        }
        if (gap && begun)
            buf_addc(out, ' ');
        buf_addc(out, *value);
        gap = false;
        begun = true;
    }
}

static int add_header(
    struct buf *out, const struct sigv4_request *r, struct slice name, struct err *e)
{
    bool found = false;
    for (size_t i = 0; i < r->n_headers; i++) {
        const struct http_header *h = &r->headers[i];
        if (strlen(h->name) != name.n || strncasecmp(h->name, name.p, name.n) != 0)
            continue;
        if (found)
            buf_addc(out, ',');
        else
            buf_add(out, name.p, name.n);
        if (!found)
            buf_addc(out, ':');
        add_trimmed(out, h->value);
        found = true;
    }
    if (!found)
        return err_set(e, ERR_INVALID, "signed header \"%.*s\" is not in the request",
            (int)(name.n > 64 ? 64 : name.n), name.p);
    buf_addc(out, '\n');
    return 0;
}

static int add_headers(
    struct buf *out, const struct sigv4_request *r, const char *signed_headers, struct err *e)
{
    struct slice names = {signed_headers, strlen(signed_headers)};
    size_t n = 0;
    int rc = 0;
    while (names.n > 0 && rc == 0) {
        struct slice name = next_part(&names, ';');
        if (++n > SIGV4_HEADERS_MAX)
            return err_set(e, ERR_INVALID, "more than %d signed headers", SIGV4_HEADERS_MAX);
        rc = add_header(out, r, name, e);
    }
    return rc;
}

int sigv4_canonical_hash(const struct sigv4_request *r, const char *service,
    const char *signed_headers, char out[SIGV4_HEX_MAX], struct err *e)
{
    struct slice query = {r->target, strlen(r->target)};
    struct slice path = next_part(&query, '?');
    struct buf text = {0};
    buf_printf(&text, "%s\n", r->method);
    int rc = add_path(&text, path, service, e);
    buf_addc(&text, '\n');
    if (rc == 0)
        rc = add_query(&text, query, e);
    buf_addc(&text, '\n');
    if (rc == 0)
        rc = add_headers(&text, r, signed_headers, e);
    buf_printf(&text, "\n%s\n%s", signed_headers, r->body_sha256);
    if (rc == 0)
        sigv4_sha256_hex(buf_str(&text), text.len, out);
    if (text.data) /* the headers may include a session token */
        OPENSSL_cleanse(text.data, text.len);
    buf_deinit(&text);
    return rc;
}

static void hmac(
    const void *key, size_t key_len, const char *text, unsigned char out[SHA256_DIGEST_LENGTH])
{
    unsigned n = SHA256_DIGEST_LENGTH;
    HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, strlen(text), out, &n);
}

static bool timestamp_is_valid(const char *t)
{
    if (strlen(t) != SIGV4_TIMESTAMP_MAX - 1 || t[8] != 'T' || t[15] != 'Z')
        return false;
    for (int i = 0; i < 15; i++)
        if (i != 8 && !isdigit((unsigned char)t[i]))
            return false;
    return true;
}

/* The key of one day, region and service, derived from the secret by four HMACs. */
static void signing_key(const struct sigv4_scope *scope, const char *secret_key,
    unsigned char out[SHA256_DIGEST_LENGTH])
{
    struct buf secret = {0};
    char date[9];
    memcpy(date, scope->timestamp, 8);
    date[8] = '\0';
    buf_printf(&secret, "AWS4%s", secret_key);
    hmac(secret.data, secret.len, date, out);
    hmac(out, SHA256_DIGEST_LENGTH, scope->region, out);
    hmac(out, SHA256_DIGEST_LENGTH, scope->service, out);
    hmac(out, SHA256_DIGEST_LENGTH, "aws4_request", out);
    OPENSSL_cleanse(secret.data, secret.len);
    buf_deinit(&secret);
}

int sigv4_signature(const struct sigv4_request *r, const struct sigv4_scope *scope,
    const char *secret_key, const char *signed_headers, char out[SIGV4_HEX_MAX], struct err *e)
{
    char hash[SIGV4_HEX_MAX];
    unsigned char key[SHA256_DIGEST_LENGTH], signature[SHA256_DIGEST_LENGTH];
    if (!timestamp_is_valid(scope->timestamp))
        return err_set(e, ERR_INVALID, "X-Amz-Date must look like 20260822T120000Z");
    int rc = sigv4_canonical_hash(r, scope->service, signed_headers, hash, e);
    if (rc != 0)
        return rc;
    struct buf text = {0};
    buf_printf(&text, ALGORITHM "\n%s\n%.8s/%s/%s/aws4_request\n%s", scope->timestamp,
        scope->timestamp, scope->region, scope->service, hash);
    signing_key(scope, secret_key, key);
    hmac(key, sizeof(key), buf_str(&text), signature);
    str_hex(signature, sizeof(signature), out);
    OPENSSL_cleanse(key, sizeof(key));
    buf_deinit(&text);
    return 0;
}

/* The lower-case names of all headers of r, sorted and unique, separated by ';'. */
static int all_names(const struct sigv4_request *r, struct buf *out, struct err *e)
{
    char *names[SIGV4_HEADERS_MAX];
    if (r->n_headers > SIGV4_HEADERS_MAX)
        return err_set(e, ERR_INVALID, "more than %d headers to sign", SIGV4_HEADERS_MAX);
    for (size_t i = 0; i < r->n_headers; i++) {
        names[i] = mem_strdup(r->headers[i].name);
        for (char *c = names[i]; *c; c++)
            *c = (char)tolower((unsigned char)*c);
    }
    qsort(names, r->n_headers, sizeof(*names), compare_strings);
    for (size_t i = 0; i < r->n_headers; i++) {
        if (i == 0 || !str_eq(names[i], names[i - 1]))
            buf_printf(out, "%s%s", i > 0 ? ";" : "", names[i]);
    }
    for (size_t i = 0; i < r->n_headers; i++)
        free(names[i]);
    return 0;
}

int sigv4_authorization(const struct sigv4_request *r, const struct sigv4_scope *scope,
    const char *access_key, const char *secret_key, struct buf *out, struct err *e)
{
    struct buf names = {0};
    char signature[SIGV4_HEX_MAX];
    int rc = all_names(r, &names, e);
    if (rc == 0)
        rc = sigv4_signature(r, scope, secret_key, buf_str(&names), signature, e);
    if (rc == 0)
        buf_printf(out,
            ALGORITHM " Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=%s, Signature=%s",
            access_key, scope->timestamp, scope->region, scope->service, buf_str(&names),
            signature);
    buf_deinit(&names);
    return rc;
}

static int copy_slice(struct slice s, char *dst, size_t size, const char *what, struct err *e)
{
    if (s.n == 0 || s.n >= size)
        return err_set(e, ERR_INVALID,
            "Authorization header: %s is missing or longer than %zu bytes", what, size - 1);
    memcpy(dst, s.p, s.n);
    dst[s.n] = '\0';
    return 0;
}

/* "KEY/20260822/us-east-1/ec2/aws4_request" */
static int parse_credential(struct slice s, struct sigv4_claim *c, struct err *e)
{
    struct slice access_key = next_part(&s, '/');
    struct slice date = next_part(&s, '/');
    struct slice region = next_part(&s, '/');
    struct slice service = next_part(&s, '/');
    int rc = copy_slice(access_key, c->access_key, sizeof(c->access_key), "the access key", e);
    if (rc == 0)
        rc = copy_slice(date, c->date, sizeof(c->date), "the date", e);
    if (rc == 0)
        rc = copy_slice(region, c->region, sizeof(c->region), "the region", e);
    if (rc == 0)
        rc = copy_slice(service, c->service, sizeof(c->service), "the service", e);
    if (rc == 0 && !slice_is(s, "aws4_request"))
        rc = err_set(
            e, ERR_INVALID, "Authorization header: the credential scope must end in aws4_request");
    return rc;
}

static int parse_part(struct slice part, struct sigv4_claim *c, struct err *e)
{
    while (part.n > 0 && part.p[0] == ' ')
        part.p++, part.n--;
    struct slice name = next_part(&part, '=');
    if (slice_is(name, "Credential"))
        return parse_credential(part, c, e);
    if (slice_is(name, "SignedHeaders"))
        return copy_slice(
            part, c->signed_headers, sizeof(c->signed_headers), "the list of signed headers", e);
    if (slice_is(name, "Signature"))
        return copy_slice(part, c->signature, sizeof(c->signature), "the signature", e);
    return err_set(e, ERR_INVALID,
        "Authorization header: unknown part (expected Credential, SignedHeaders, Signature)");
}

int sigv4_parse_authorization(const char *value, struct sigv4_claim *ret_claim, struct err *e)
{
    struct sigv4_claim claim = {0};
    int rc = 0;
    if (!str_starts(value, ALGORITHM " "))
        return err_set(e, ERR_INVALID, "Authorization header: expected " ALGORITHM);
    struct slice rest = {value + strlen(ALGORITHM " "), strlen(value) - strlen(ALGORITHM " ")};
    while (rest.n > 0 && rc == 0)
        rc = parse_part(next_part(&rest, ','), &claim, e);
    if (rc == 0 && (!claim.access_key[0] || !claim.signed_headers[0] || !claim.signature[0]))
        rc = err_set(e, ERR_INVALID,
            "Authorization header: Credential, SignedHeaders and Signature are required");
    if (rc == 0)
        *ret_claim = claim;
    return rc;
}
