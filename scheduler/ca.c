/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster's certificate authority (see ca.h), on OpenSSL.
 */
#include "scheduler/ca.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/wire/wire.h"
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CA_DAYS 3650
#define PEM_MAX 65536

struct ca {
    X509 *cert;
    EVP_PKEY *key;
    char *pem;
    struct wall ends_at;
    const struct clock *clock;
};

static int fail(struct err *e, enum err_kind kind, const char *what)
{
    unsigned long code = ERR_get_error();
    char text[160] = "";
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, kind, "%s%s%s", what, text[0] ? ": " : "", text);
}

/* ---- PEM ---- */

static char *bio_text(BIO *bio)
{
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    char *text = mem_strndup(p, (size_t)n);
    BIO_free(bio);
    return text;
}

static char *cert_to_pem(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, cert);
    return bio_text(bio);
}

static char *key_to_pem(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return bio_text(bio);
}

static bool is_p256(const EVP_PKEY *key)
{
    char group[32] = "";
    return EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) == 1 &&
           str_eq(group, SN_X9_62_prime256v1);
}

static X509_REQ *read_csr(const char *pem, struct err *e)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509_REQ *req = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    BIO_free(bio);
    if (!req) {
        fail(e, ERR_INVALID, "the certificate request is not PEM");
        return NULL;
    }
    EVP_PKEY *key = X509_REQ_get0_pubkey(req);
    if (!key || !is_p256(key) || X509_REQ_verify(req, key) != 1) {
        fail(e, ERR_INVALID,
            "the certificate request must carry an EC P-256 key and be signed with it");
        X509_REQ_free(req);
        return NULL;
    }
    return req;
}

/* ---- certificates ---- */

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = x && X509_add_ext(cert, x, -1) == 1;
    X509_EXTENSION_free(x);
    return ok;
}

static void set_random_serial(X509 *cert)
{
    unsigned char bytes[16];
    random_bytes(bytes, sizeof(bytes));
    bytes[0] &= 0x7f;
    BIGNUM *bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
    BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
    BN_free(bn);
}

/* Returns an unsigned certificate for key with the name cn. */
static X509 *new_cert(const char *cn, EVP_PKEY *key, struct wall now, int64_t life_ms)
{
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    time_t from = (time_t)(now.ms / 1000) - WIRE_CERT_BACKDATE_MS / 1000;
    time_t to = (time_t)((now.ms + life_ms) / 1000);
    X509_set_version(cert, X509_VERSION_3);
    set_random_serial(cert);
    ASN1_TIME_set(X509_getm_notBefore(cert), from);
    ASN1_TIME_set(X509_getm_notAfter(cert), to);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
    X509_set_pubkey(cert, key);
    return cert;
}

static int sign(struct ca *c, X509 *cert, struct err *e)
{
    X509_set_issuer_name(cert, X509_get_subject_name(c->cert));
    if (!add_extension(cert, c->cert, NID_authority_key_identifier, "keyid") ||
        !X509_sign(cert, c->key, EVP_sha256()))
        return fail(e, ERR_INTERNAL, "cannot sign a certificate");
    return 0;
}

/* ---- the authority ---- */

static int make(
    struct ca *c, const char *cert_path, const char *key_path, const char *cluster, struct err *e)
{
    char cn[96];
    snprintf(cn, sizeof(cn), "belay cluster %.60s", cluster);
    c->key = EVP_EC_gen("P-256");
    if (!c->key)
        return fail(e, ERR_INTERNAL, "cannot create the cluster's key");
    c->cert = new_cert(cn, c->key, clock_wall(c->clock), SECONDS_MS(CA_DAYS * 86400LL));
    X509_set_issuer_name(c->cert, X509_get_subject_name(c->cert));
    if (!add_extension(c->cert, c->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(c->cert, c->cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(c->cert, c->cert, NID_subject_key_identifier, "hash") ||
        !X509_sign(c->cert, c->key, EVP_sha256()))
        return fail(e, ERR_INTERNAL, "cannot create the cluster's certificate");
    char *key_pem = key_to_pem(c->key);
    c->pem = cert_to_pem(c->cert);
    /* The key first: a certificate on disk always has its key. */
    int rc = fs_write_atomic(key_path, key_pem, strlen(key_pem), 0600, e);
    if (rc == 0)
        rc = fs_write_atomic(cert_path, c->pem, strlen(c->pem), 0644, e);
    OPENSSL_cleanse(key_pem, strlen(key_pem));
    free(key_pem);
    return rc;
}

static int load(struct ca *c, const char *cert_path, const char *key_path, struct err *e)
{
    struct buf text = {0}, key = {0};
    int rc = fs_read(cert_path, PEM_MAX, &text, e);
    if (rc == 0)
        rc = fs_read(key_path, PEM_MAX, &key, e);
    if (rc == 0) {
        BIO *bio = BIO_new_mem_buf(buf_str(&text), (int)text.len);
        c->cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        BIO_free(bio);
        bio = BIO_new_mem_buf(buf_str(&key), (int)key.len);
        c->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
        BIO_free(bio);
        if (!c->cert || !c->key || X509_check_private_key(c->cert, c->key) != 1)
            rc = err_set(e, ERR_CORRUPT,
                "%s and %s do not match: restore both from the same backup", cert_path, key_path);
        c->pem = mem_strdup(buf_str(&text));
    }
    ERR_clear_error();
    buf_deinit(&text);
    buf_wipe(&key);
    return rc;
}

int ca_open(const char *dir, const char *cluster, const struct clock *clock, struct ca **ret_ca,
    struct err *e)
{
    struct ca *c = mem_alloc(sizeof(*c));
    char *cert_path = mem_printf("%s/ca.pem", dir);
    char *key_path = mem_printf("%s/ca.key", dir);
    c->clock = clock;
    int rc = fs_exists(cert_path) ? load(c, cert_path, key_path, e)
                                  : make(c, cert_path, key_path, cluster, e);
    struct tm end;
    if (rc == 0 && ASN1_TIME_to_tm(X509_get0_notAfter(c->cert), &end) == 1)
        c->ends_at.ms = SECONDS_MS((int64_t)timegm(&end));
    else if (rc == 0)
        rc = fail(e, ERR_CORRUPT, "the end of the cluster's certificate cannot be read");
    free(cert_path);
    free(key_path);
    if (rc != 0)
        ca_close(c);
    else
        *ret_ca = c;
    return rc;
}

void ca_close(struct ca *c)
{
    if (!c)
        return;
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
    free(c->pem);
    free(c);
}

struct wall ca_ends_at(const struct ca *c)
{
    return c->ends_at;
}

const char *ca_pem(const struct ca *c)
{
    return c->pem;
}

/* ---- issuing ---- */

static void add_san(struct buf *san, const char *name)
{
    unsigned char address[16];
    bool ip = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    buf_printf(san, "%s%s:%s", san->len ? "," : "", ip ? "IP" : "DNS", name);
}

static int fail_san(const char *san, struct err *e)
{
    char shown[STR_SHOW_MAX];
    ERR_clear_error();
    return err_set(e, ERR_CONFIG,
        "a name is not valid in the server's certificate: correct server:, names: or the host's "
        "name: %s",
        str_show(san, shown));
}

int ca_issue_server(struct ca *c, const char *const *names, size_t n_names, char **ret_cert_pem,
    char **ret_key_pem, struct err *e)
{
    struct buf san = {0};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    int rc = 0;
    if (!key)
        return fail(e, ERR_INTERNAL, "cannot create the server's key");
    X509 *cert =
        new_cert("belayd", key, clock_wall(c->clock), c->ends_at.ms - clock_wall(c->clock).ms);
    add_san(&san, "localhost");
    add_san(&san, "127.0.0.1");
    add_san(&san, "::1");
    for (size_t i = 0; i < n_names; i++)
        add_san(&san, names[i]);
    if (!add_extension(cert, c->cert, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, c->cert, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(cert, c->cert, NID_ext_key_usage, "serverAuth"))
        rc = fail(e, ERR_INTERNAL, "cannot create the server's certificate");
    else if (!add_extension(cert, c->cert, NID_subject_alt_name, buf_str(&san)))
        rc = fail_san(buf_str(&san), e);
    if (rc == 0)
        rc = sign(c, cert, e);
    if (rc == 0) {
        *ret_cert_pem = cert_to_pem(cert);
        *ret_key_pem = key_to_pem(key);
    }
    buf_deinit(&san);
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc;
}

int ca_issue_node(struct ca *c, const char *csr_pem, const char *cn, int64_t life_ms,
    char **ret_cert_pem, struct err *e)
{
    X509_REQ *req = read_csr(csr_pem, e);
    if (!req)
        return e ? (int)e->kind : ERR_INVALID;
    X509 *cert = new_cert(cn, X509_REQ_get0_pubkey(req), clock_wall(c->clock), life_ms);
    int rc = 0;
    if (!add_extension(cert, c->cert, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, c->cert, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(cert, c->cert, NID_ext_key_usage, "clientAuth"))
        rc = fail(e, ERR_INTERNAL, "cannot create a node's certificate");
    if (rc == 0)
        rc = sign(c, cert, e);
    if (rc == 0)
        *ret_cert_pem = cert_to_pem(cert);
    X509_free(cert);
    X509_REQ_free(req);
    return rc;
}

int ca_csr_key_hash(const char *csr_pem, char ret_key_hash[65], struct err *e)
{
    X509_REQ *req = read_csr(csr_pem, e);
    if (!req)
        return e ? (int)e->kind : ERR_INVALID;
    unsigned char *der = NULL, digest[32];
    int n = i2d_PUBKEY(X509_REQ_get0_pubkey(req), &der);
    EVP_Digest(der, (size_t)n, digest, NULL, EVP_sha256(), NULL);
    str_hex(digest, sizeof(digest), ret_key_hash);
    OPENSSL_free(der);
    X509_REQ_free(req);
    return 0;
}

void ca_sha256_hex(const char *text, char out[65])
{
    unsigned char digest[32];
    EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
    str_hex(digest, sizeof(digest), out);
}
