/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's key and certificate, with OpenSSL. The private key's text is wiped when it is freed.
 */
#include "agent/identity.h"

#include "agent/disk.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEY_BYTES_MAX 4096
#define THIRD_MIN_MS 200 /* minimum of a third of a certificate's life */

static int ssl_fail(struct err *e, enum err_kind kind, const char *what)
{
    char why[160] = "no reason given";
    unsigned long code = ERR_get_error();
    if (code)
        ERR_error_string_n(code, why, sizeof(why));
    ERR_clear_error();
    return err_set(e, kind, "%s: %s", what, why);
}

static char *file_in(const struct identity *id, const char *name)
{
    return mem_printf("%s/%s", id->dir, name);
}

static int bio_text(BIO *bio, char *dst, size_t size, struct err *e)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);
    if (n <= 0 || (size_t)n >= size)
        return err_set(e, ERR_INTERNAL, "a PEM text of %ld bytes does not fit into %zu", n, size);
    memcpy(dst, p, (size_t)n);
    dst[n] = '\0';
    return 0;
}

/* ---- the key ---- */

static EVP_PKEY *key_of(const struct identity *id)
{
    BIO *bio = BIO_new_mem_buf(id->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return key;
}

static int make_key(struct identity *id, const char *path, struct err *e)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_mem());
    char text[KEY_BYTES_MAX];
    int rc = 0;
    if (!key || !PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        rc = ssl_fail(e, ERR_INTERNAL, "making the node's key");
    if (!rc)
        rc = bio_text(bio, text, sizeof(text), e);
    if (!rc)
        rc = fs_write_atomic(path, text, strlen(text), 0600, e);
    if (!rc)
        id->key_pem = mem_strdup(text);
    OPENSSL_cleanse(text, sizeof(text));
    BIO_free(bio);
    EVP_PKEY_free(key);
    return rc;
}

static int read_key(struct identity *id, const char *path, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, KEY_BYTES_MAX, &text, e);
    if (!rc) {
        id->key_pem = text.len > 0 ? buf_take(&text) : NULL;
        EVP_PKEY *key = id->key_pem ? key_of(id) : NULL;
        if (!key)
            rc = err_set(e, ERR_CORRUPT,
                "%s is not a private key: delete it, and join with a new token "
                "(belay token create --join)",
                path);
        EVP_PKEY_free(key);
        ERR_clear_error();
    }
    buf_deinit(&text);
    return rc;
}

static int load_key(struct identity *id, struct err *e)
{
    char *path = file_in(id, "key.pem");
    int rc = read_key(id, path, e);
    if (rc == ERR_NOT_FOUND)
        rc = make_key(id, path, e);
    free(path);
    return rc;
}

/* ---- the certificate ---- */

static int wall_of(const ASN1_TIME *t, struct wall *ret_wall)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm))
        return ERR_INVALID;
    ret_wall->ms = (int64_t)timegm(&tm) * 1000;
    return 0;
}

/* Checks that the certificate is for our key, and reads its life. */
static int check_cert(const struct identity *id, const char *pem, struct wall *ret_issued_at,
    struct wall *ret_ends_at, struct err *e)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    EVP_PKEY *key = key_of(id);
    int rc = 0;
    if (!cert)
        rc = ssl_fail(e, ERR_INVALID, "the certificate from belayd does not parse");
    else if (!key || X509_check_private_key(cert, key) != 1)
        rc = ssl_fail(e, ERR_INVALID, "the certificate is not for this node's key");
    else if (wall_of(X509_get0_notBefore(cert), ret_issued_at) ||
             wall_of(X509_get0_notAfter(cert), ret_ends_at))
        rc = err_set(e, ERR_INVALID, "the certificate's dates do not parse");
    else
        ret_issued_at->ms += WIRE_CERT_BACKDATE_MS;
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(bio);
    return rc;
}

static int read_node(struct identity *id, const char *path, struct err *e)
{
    struct buf text = {0};
    struct wire_joined joined;
    int rc = fs_read(path, WIRE_MESSAGE_MAX, &text, e);
    if (!rc)
        rc = wire_joined_decode(buf_str(&text), text.len, &joined, e);
    if (!rc)
        rc = check_cert(id, joined.cert_pem, &id->issued_at, &id->ends_at, e);
    if (!rc)
        id->node = joined;
    buf_deinit(&text);
    return rc;
}

static int load_node(struct identity *id, struct err *e)
{
    char *path = file_in(id, "node.json");
    int rc = read_node(id, path, e);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        log_error("the result of the last join is unusable, joining again", log_s("file", path),
            log_err(e));
    free(path);
    return rc == ERR_INVALID || rc == ERR_NOT_FOUND ? 0 : rc;
}

int identity_open(const char *dir, struct identity *ret_id, struct err *e)
{
    struct identity id = {.dir = mem_strdup(dir), .taken_at = MONO_NONE};
    int rc = load_key(&id, e);
    if (!rc)
        rc = load_node(&id, e);
    if (rc)
        identity_deinit(&id);
    else
        *ret_id = id;
    return rc;
}

/* Whether one of the authorities in ca_pem has signed the certificate. */
static bool is_signed_by(const char *cert_pem, const char *ca_pem)
{
    BIO *own = BIO_new_mem_buf(cert_pem, -1), *all = BIO_new_mem_buf(ca_pem, -1);
    X509 *cert = PEM_read_bio_X509(own, NULL, NULL, NULL);
    bool found = false;
    for (X509 *ca; !found && cert && (ca = PEM_read_bio_X509(all, NULL, NULL, NULL));) {
        found = X509_verify(cert, X509_get0_pubkey(ca)) == 1;
        X509_free(ca);
    }
    X509_free(cert);
    BIO_free(own);
    BIO_free(all);
    ERR_clear_error();
    return found;
}

static int check_node(struct identity *id, const char *ca_pem, struct wall now, struct err *e)
{
    char *path = file_in(id, "node.json"), until[TIME_ISO_MAX];
    int rc = read_node(id, path, e);
    if (rc == 0 && !is_signed_by(id->node.cert_pem, ca_pem))
        rc = err_set(e, ERR_INVALID, "its certificate is not of the cluster of ca");
    if (rc == 0 && id->ends_at.ms <= now.ms) {
        time_format_iso(id->ends_at, until);
        rc = err_set(e, ERR_INVALID, "its certificate expired at %s", until);
    }
    if (rc == ERR_NOT_FOUND)
        *e = (struct err){.kind = ERR_NOT_FOUND};
    else if (rc == ERR_INVALID)
        err_set(e, rc = ERR_NOT_FOUND, "%s: %s", path, e->text);
    free(path);
    return rc;
}

int identity_check(const char *dir, const char *ca_pem, struct wall now, struct err *e)
{
    struct identity id = {.dir = mem_strdup(dir)};
    char *path = file_in(&id, "key.pem");
    int rc = read_key(&id, path, e);
    if (rc == 0)
        rc = check_node(&id, ca_pem, now, e);
    else if (rc == ERR_NOT_FOUND)
        *e = (struct err){.kind = ERR_NOT_FOUND};
    free(path);
    identity_deinit(&id);
    return rc;
}

void identity_deinit(struct identity *id)
{
    if (id->key_pem)
        OPENSSL_cleanse(id->key_pem, strlen(id->key_pem));
    free(id->key_pem);
    free(id->dir);
    *id = (struct identity){0};
}

bool identity_is_joined(const struct identity *id)
{
    return id->node.node != 0;
}

int identity_csr(
    const struct identity *id, const char *name, char *ret_pem, size_t size, struct err *e)
{
    EVP_PKEY *key = key_of(id);
    X509_REQ *req = X509_REQ_new();
    BIO *bio = BIO_new(BIO_s_mem());
    int rc = 0;
    X509_NAME *subject = X509_REQ_get_subject_name(req);
    if (!key ||
        !X509_NAME_add_entry_by_txt(
            subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) ||
        !X509_REQ_set_pubkey(req, key) || !X509_REQ_sign(req, key, EVP_sha256()) ||
        !PEM_write_bio_X509_REQ(bio, req))
        rc = ssl_fail(e, ERR_INTERNAL, "making the certificate request");
    else
        rc = bio_text(bio, ret_pem, size, e);
    BIO_free(bio);
    X509_REQ_free(req);
    EVP_PKEY_free(key);
    return rc;
}

int identity_accept(
    struct identity *id, const struct wire_joined *joined, struct mono now, struct err *e)
{
    struct wall issued_at, ends_at;
    int rc = check_cert(id, joined->cert_pem, &issued_at, &ends_at, e);
    if (rc)
        return rc;
    char *path = file_in(id, "node.json");
    struct buf text = {0};
    wire_joined_encode(joined, &text);
    /* uses the reserve of a full disk: without the new certificate the node is lost */
    rc = disk_write_record(id->dir, path, text.data, text.len, e);
    if (!rc) {
        id->node = *joined;
        id->issued_at = issued_at;
        id->ends_at = ends_at;
        id->taken_at = now;
    }
    buf_deinit(&text);
    free(path);
    return rc;
}

void identity_forget(struct identity *id)
{
    char *path = file_in(id, "node.json");
    unlink(path);
    free(path);
    id->node = (struct wire_joined){0};
}

int64_t identity_renew_in_ms(const struct identity *id, const struct clock *clock)
{
    int64_t third_ms = (id->ends_at.ms - id->issued_at.ms) / 3;
    third_ms = third_ms < THIRD_MIN_MS ? THIRD_MIN_MS : third_ms;
    int64_t wait_ms = id->issued_at.ms + 2 * third_ms - clock_wall(clock).ms;
    if (mono_is_set(id->taken_at)) {
        int64_t age_ms = clock_mono(clock).ms - id->taken_at.ms;
        int64_t least_ms = third_ms - age_ms, most_ms = 2 * third_ms - age_ms;
        wait_ms = wait_ms < least_ms ? least_ms : wait_ms > most_ms ? most_ms : wait_ms;
    }
    return wait_ms < 0 ? 0 : wait_ms;
}
