/* SPDX-License-Identifier: Apache-2.0 */
#include "backup/seal.h"

#include "base/fs.h"
#include "base/mem.h"
#include <limits.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#define PASSPHRASE_ROUNDS 200000 /* of PBKDF2, for each entry: some 0.1 s */

struct seal {
    char *passphrase; /* NULL = none */
    X509 *certificate;
    EVP_PKEY *key;
};

/* ---- the files ---- */

static int read_passphrase(const char *path, struct seal *s, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, SEAL_FILE_MAX, &text, e);
    if (rc == 0) {
        size_t n = strcspn(buf_str(&text), "\r\n");
        if (n < SEAL_PASSPHRASE_MIN || n > SEAL_PASSPHRASE_MAX)
            rc = err_set(e, ERR_INVALID, "%s: the first line has %zu characters, expected %d to %d",
                path, n, SEAL_PASSPHRASE_MIN, SEAL_PASSPHRASE_MAX);
        else {
            s->passphrase = mem_dup(buf_str(&text), n + 1);
            s->passphrase[n] = '\0';
        }
    }
    buf_wipe(&text);
    return rc == 0 ? 0 : err_wrap(e, "read the passphrase");
}

static int read_certificate(const char *path, struct seal *s, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, SEAL_FILE_MAX, &text, e);
    if (rc == 0) {
        BIO *b = BIO_new_mem_buf(buf_str(&text), (int)text.len);
        s->certificate = PEM_read_bio_X509(b, NULL, NULL, NULL);
        BIO_free(b);
        if (!s->certificate)
            rc = err_set(e, ERR_INVALID, "%s: expected a certificate in PEM", path);
    }
    buf_deinit(&text);
    return rc == 0 ? 0 : err_wrap(e, "read the certificate to encrypt to");
}

static int no_passphrase(char *out, int size, int writing, void *ctx)
{
    (void)out, (void)size, (void)writing, (void)ctx;
    return -1;
}

static int read_key(const char *path, struct seal *s, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, SEAL_FILE_MAX, &text, e);
    if (rc == 0) {
        BIO *b = BIO_new_mem_buf(buf_str(&text), (int)text.len);
        s->key = PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL);
        BIO_free(b);
        if (!s->key)
            rc = err_set(e, ERR_INVALID, "%s: expected a private key in PEM, not encrypted", path);
    }
    buf_wipe(&text);
    return rc == 0 ? 0 : err_wrap(e, "read the key to decrypt with");
}

int seal_open(const struct seal_options *o, struct seal **ret_seal, struct err *e)
{
    struct seal *s = mem_alloc(sizeof(*s));
    int rc = o->passphrase_file ? read_passphrase(o->passphrase_file, s, e) : 0;
    if (rc == 0 && o->certificate_file)
        rc = read_certificate(o->certificate_file, s, e);
    if (rc == 0 && o->key_file)
        rc = read_key(o->key_file, s, e);
    bool is_any = s->passphrase || s->certificate || s->key;
    if (rc == 0)
        *ret_seal = is_any ? s : NULL;
    if (rc != 0 || !is_any)
        seal_close(s);
    return rc;
}

void seal_close(struct seal *s)
{
    if (!s)
        return;
    if (s->passphrase)
        OPENSSL_cleanse(s->passphrase, strlen(s->passphrase));
    free(s->passphrase);
    if (s->certificate)
        X509_free(s->certificate);
    if (s->key)
        EVP_PKEY_free(s->key);
    free(s);
}

/* ---- messages ---- */

static int fail(struct err *e, enum err_kind kind, const char *what)
{
    ERR_clear_error();
    return err_set(e, kind, "%s", what);
}

static bool add_passphrase(CMS_ContentInfo *c, const char *passphrase)
{
    unsigned char *copy = OPENSSL_memdup(passphrase, strlen(passphrase)); /* c wipes and frees it */
    return copy && CMS_add0_recipient_password(c, PASSPHRASE_ROUNDS, NID_id_alg_PWRI_KEK, -1, copy,
                       (ossl_ssize_t)strlen(passphrase), EVP_aes_256_cbc());
}

static CMS_ContentInfo *make_message(const struct seal *s, BIO *in)
{
    const unsigned flags = CMS_BINARY | CMS_PARTIAL;
    STACK_OF(X509) *certificates = sk_X509_new_null();
    if (s->certificate)
        sk_X509_push(certificates, s->certificate);
    CMS_ContentInfo *c = CMS_encrypt(certificates, in, EVP_aes_256_gcm(), flags);
    bool made =
        c && (!s->passphrase || add_passphrase(c, s->passphrase)) && CMS_final(c, in, NULL, flags);
    sk_X509_free(certificates);
    if (made)
        return c;
    if (c)
        CMS_ContentInfo_free(c);
    return NULL;
}

static void take_all(BIO *b, struct buf *out)
{
    char *p = NULL;
    long n = BIO_get_mem_data(b, &p);
    buf_clear(out);
    if (n > 0)
        buf_add(out, p, (size_t)n);
}

int seal_encrypt(const struct seal *s, const void *p, size_t n, struct buf *out, struct err *e)
{
    if (n > INT_MAX / 2)
        return err_set(e, ERR_INVALID, "encrypt: %zu bytes are too many", n);
    BIO *in = BIO_new_mem_buf(p, (int)n), *message = BIO_new(BIO_s_mem());
    CMS_ContentInfo *c = make_message(s, in);
    int rc =
        c && i2d_CMS_bio(message, c) ? 0 : fail(e, ERR_INTERNAL, "encrypt: OpenSSL refuses it");
    if (rc == 0)
        take_all(message, out);
    if (c)
        CMS_ContentInfo_free(c);
    BIO_free(in);
    BIO_free(message);
    return rc;
}

static bool set_key(const struct seal *s, CMS_ContentInfo *c)
{
    if (s->passphrase)
        return CMS_decrypt_set1_password(
                   c, (unsigned char *)s->passphrase, (ossl_ssize_t)strlen(s->passphrase)) == 1;
    return s->key && CMS_decrypt_set1_pkey(c, s->key, NULL) == 1;
}

int seal_decrypt(const struct seal *s, const void *p, size_t n, struct buf *out, struct err *e)
{
    if (n > INT_MAX / 2)
        return err_set(e, ERR_INVALID, "decrypt: %zu bytes are too many", n);
    BIO *in = BIO_new_mem_buf(p, (int)n), *content = BIO_new(BIO_s_mem());
    CMS_ContentInfo *c = d2i_CMS_bio(in, NULL);
    int rc = 0;
    if (!c)
        rc = fail(e, ERR_CORRUPT, "decrypt: it is no encrypted message (CMS)");
    else if (!set_key(s, c) || !CMS_decrypt(c, NULL, NULL, NULL, content, CMS_BINARY))
        rc = fail(e, ERR_DENIED,
            "decrypt: it was encrypted with another passphrase or for another key, or is damaged");
    if (rc == 0)
        take_all(content, out);
    if (c)
        CMS_ContentInfo_free(c);
    BIO_free(in);
    BIO_free(content);
    return rc;
}
