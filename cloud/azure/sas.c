/* SPDX-License-Identifier: Apache-2.0
 *
 * See sas.h. The signed text has one line for each field of its version, in order, empty where a
 * field is not used.
 */
#include "cloud/azure/sas.h"
#include "base/str.h"
#include "cloud/refusal.h"
#include "cloud/xml.h"
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define SERVICE "Azure's Blob service"
#define VERSION "2020-12-06" /* of the signature: it determines the fields below */
#define PERMISSIONS "rcwdl"  /* in the order that the service requires */
#define CODE_MAX 128
#define MESSAGE_MAX 300
#define BOM "\xef\xbb\xbf"

/* Without milliseconds, which the fields do not allow. */
static void format_second(struct wall w, char out[TIME_ISO_MAX])
{
    time_format_iso((struct wall){w.ms / 1000 * 1000}, out);
}

/* ---- the key ---- */

void sas_build_key_request(struct wall start, struct wall expiry, struct buf *out)
{
    char from[TIME_ISO_MAX], to[TIME_ISO_MAX];
    format_second(start, from);
    format_second(expiry, to);
    buf_printf(out,
        "<?xml version=\"1.0\" "
        "encoding=\"utf-8\"?><KeyInfo><Start>%s</Start><Expiry>%s</Expiry></KeyInfo>",
        from, to);
}

/* Copies ids and times, refusing anything that would start another line in the signed text. */
static int read_text(const struct xml_node *node, const char *name, char *dst, size_t size)
{
    if (xml_text(node, name, dst, size, NULL) != 0 || !*dst)
        return ERR_INVALID;
    for (const char *p = dst; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-:.", *p))
            return ERR_INVALID;
    return 0;
}

static int read_value(const struct xml_node *node, struct sas_key *k)
{
    char text[2 * sizeof(k->value)];
    unsigned char raw[sizeof(text)];
    size_t n = 0, padding = 0;
    int rc = xml_text(node, "Value", text, sizeof(text), NULL);
    if (rc == 0) {
        n = strlen(text);
        padding = str_ends(text, "==") ? 2 : str_ends(text, "=");
        rc = n == 0 || n % 4 != 0 || EVP_DecodeBlock(raw, (const unsigned char *)text, (int)n) < 0
                 ? ERR_INVALID
                 : 0;
    }
    if (rc == 0) {
        k->n = n / 4 * 3 - padding;
        rc = k->n > sizeof(k->value) || k->n < 16 ? ERR_INVALID : 0;
    }
    if (rc == 0)
        memcpy(k->value, raw, k->n);
    OPENSSL_cleanse(text, sizeof(text));
    OPENSSL_cleanse(raw, sizeof(raw));
    return rc;
}

static int read_key(const struct xml_node *node, struct sas_key *k)
{
    int rc = read_text(node, "SignedOid", k->oid, sizeof(k->oid));
    if (rc == 0)
        rc = read_text(node, "SignedTid", k->tid, sizeof(k->tid));
    if (rc == 0)
        rc = read_text(node, "SignedStart", k->start, sizeof(k->start));
    if (rc == 0)
        rc = read_text(node, "SignedExpiry", k->expiry, sizeof(k->expiry));
    if (rc == 0)
        rc = read_text(node, "SignedService", k->service, sizeof(k->service));
    if (rc == 0)
        rc = read_text(node, "SignedVersion", k->version, sizeof(k->version));
    return rc == 0 ? read_value(node, k) : rc;
}

/* The service's XML begins with a byte order mark. */
static void skip_bom(const char **body, size_t *n)
{
    if (*n >= strlen(BOM) && memcmp(*body, BOM, strlen(BOM)) == 0) {
        *body += strlen(BOM);
        *n -= strlen(BOM);
    }
}

int sas_parse_key(const char *body, size_t n, struct sas_key *ret_key, struct err *e)
{
    struct sas_key k = {0};
    struct xml x;
    skip_bom(&body, &n);
    int rc = n <= SAS_REPLY_MAX ? xml_open(&x, body, n, NULL) : ERR_INVALID;
    if (rc == 0) {
        const struct xml_node *root = xml_root(&x);
        rc = str_eq(xml_name(root), "UserDelegationKey") ? read_key(root, &k) : ERR_INVALID;
        buf_wipe(&x.texts);
        xml_close(&x);
    }
    if (rc == 0)
        *ret_key = k;
    else
        rc = err_set(e, ERR_INVALID, SERVICE "'s reply of %zu bytes is not a UserDelegationKey", n);
    OPENSSL_cleanse(&k, sizeof(k));
    return rc;
}

/* ---- refusals ---- */

static const struct refusal refusals[] = {
    {"AuthorizationPermissionMismatch", ERR_DENIED,
        "belayd's identity needs the role Storage Blob Delegator on the storage account "
        "(docs/how-to/clouds/azure.md)"},
    {"Authorization*", ERR_DENIED},
    {"AuthenticationFailed", ERR_DENIED},
    {"InvalidAuthenticationInfo", ERR_DENIED},
    {"NoAuthenticationInformation", ERR_DENIED},
    {"Insufficient*", ERR_DENIED},
    {"KeyBasedAuthenticationNotPermitted", ERR_CONFIG},
    {"FeatureNotSupported*", ERR_CONFIG},
    {"ServerBusy", ERR_THROTTLED},
    {"InternalError", ERR_UNAVAILABLE},
    {"OperationTimedOut", ERR_UNAVAILABLE},
    {"HTTP 401", ERR_DENIED},
    {NULL},
};

static bool read_error(const char *body, size_t n, char code[CODE_MAX], char message[MESSAGE_MAX])
{
    struct xml x;
    bool found = false;
    skip_bom(&body, &n);
    if (n > SAS_REPLY_MAX || xml_open(&x, body, n, NULL) != 0)
        return false;
    if (str_eq(xml_name(xml_root(&x)), "Error") &&
        xml_text(xml_root(&x), "Code", code, CODE_MAX, NULL) == 0 && *code) {
        xml_text_cut(xml_root(&x), "Message", message, MESSAGE_MAX);
        message[strcspn(message, "\n")] = '\0'; /* the rest names the request and the time */
        found = true;
    }
    xml_close(&x);
    return found;
}

int sas_parse_error(int status, const char *code, const char *body, size_t n, struct err *e)
{
    char own[CODE_MAX] = "", message[MESSAGE_MAX] = "";
    bool is_read = read_error(body, n, own, message);
    if (!is_read && code && str_is_name(code, CODE_MAX - 1))
        is_read = str_copy(own, sizeof(own), code);
    const struct refusal *r = is_read ? refusal_find(refusals, own) : NULL;
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    return is_read ? refusal_set(SERVICE, kind, own, message, r, e)
                   : refusal_set_stray(SERVICE, kind, status, body, n, "an unknown body", e);
}

/* ---- the signature ---- */

static void add_line(struct buf *out, const char *text)
{
    buf_adds(out, text);
    buf_addc(out, '\n');
}

static void add_signature(const struct sas_key *key, const struct buf *text, struct buf *query)
{
    unsigned char mac[EVP_MAX_MD_SIZE], base64[2 * EVP_MAX_MD_SIZE];
    unsigned n = 0;
    HMAC(EVP_sha256(), key->value, (int)key->n, (const unsigned char *)text->data, text->len, mac,
        &n);
    int len = EVP_EncodeBlock(base64, mac, (int)n);
    buf_adds(query, "&sig=");
    str_url_encode(query, (const char *)base64, (size_t)len);
    OPENSSL_cleanse(mac, sizeof(mac));
    OPENSSL_cleanse(base64, sizeof(base64));
}

static void add_field(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "&%s=", name);
    str_url_encode(out, value, strlen(value));
}

void sas_sign(const struct sas_key *key, const struct sas_scope *s, struct buf *out)
{
    const char *protocol = s->allows_http ? "https,http" : "https";
    struct buf text = {0};
    char expiry[TIME_ISO_MAX];
    format_second(s->expiry, expiry);
    add_line(&text, PERMISSIONS);
    add_line(&text, ""); /* no start time, so a slow clock does not matter */
    add_line(&text, expiry);
    buf_printf(&text, "/blob/%s/%s\n", s->account, s->container);
    add_line(&text, key->oid);
    add_line(&text, key->tid);
    add_line(&text, key->start);
    add_line(&text, key->expiry);
    add_line(&text, key->service);
    add_line(&text, key->version);
    add_line(&text, ""); /* an authorized object's id */
    add_line(&text, ""); /* an unauthorized object's id: hierarchical namespaces only */
    add_line(&text, ""); /* correlation */
    add_line(&text, ""); /* addresses */
    add_line(&text, protocol);
    add_line(&text, VERSION);
    add_line(&text, "c");
    add_line(&text, "");         /* snapshot */
    add_line(&text, "");         /* encryption scope */
    buf_adds(&text, "\n\n\n\n"); /* the five response headers that could be overridden */
    buf_printf(out, "sv=%s&sr=c&sp=%s", VERSION, PERMISSIONS);
    add_field(out, "se", expiry);
    add_field(out, "spr", protocol);
    add_field(out, "skoid", key->oid);
    add_field(out, "sktid", key->tid);
    add_field(out, "skt", key->start);
    add_field(out, "ske", key->expiry);
    add_field(out, "sks", key->service);
    add_field(out, "skv", key->version);
    add_signature(key, &text, out);
    buf_deinit(&text);
}
