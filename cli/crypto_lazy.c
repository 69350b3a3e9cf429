/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL's libcrypto, loaded at its first call (cli/lazy.h). Used for uploaded working
 * directories, stores and their keys, and backups.
 */
#include "cli/lazy.h"

#pragma GCC visibility push(hidden)
#include <openssl/cms.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#pragma GCC visibility pop

#define LIBCRYPTO "libcrypto.so.3"
#define RETURNS(type, name, params, args) LAZY(LIBCRYPTO, type, name, params, args)
#define VOID(name, params, args) LAZY_VOID(LIBCRYPTO, name, params, args)
#define BYTES const unsigned char *

/* clang-format off */
VOID(OPENSSL_cleanse, (void *p, size_t n), (p, n))
RETURNS(unsigned char *, SHA256, (BYTES p, size_t n, unsigned char *md), (p, n, md))
RETURNS(unsigned char *, HMAC,
    (const EVP_MD *type, const void *key, int key_len, BYTES p, size_t n, unsigned char *md,
     unsigned *md_len),
    (type, key, key_len, p, n, md, md_len))

RETURNS(const EVP_MD *, EVP_sha1, (void), ())
RETURNS(const EVP_MD *, EVP_sha256, (void), ())
RETURNS(int, EVP_Digest,
    (const void *p, size_t n, unsigned char *md, unsigned *md_len, const EVP_MD *type,
     ENGINE *engine),
    (p, n, md, md_len, type, engine))
RETURNS(int, EVP_Q_digest,
    (OSSL_LIB_CTX *lib, const char *name, const char *propq, const void *p, size_t n,
     unsigned char *md, size_t *md_len),
    (lib, name, propq, p, n, md, md_len))
RETURNS(EVP_MD *, EVP_MD_fetch, (OSSL_LIB_CTX *c, const char *name, const char *properties),
    (c, name, properties))
VOID(EVP_MD_free, (EVP_MD *md), (md))
RETURNS(EVP_MD_CTX *, EVP_MD_CTX_new, (void), ())
VOID(EVP_MD_CTX_free, (EVP_MD_CTX *c), (c))
RETURNS(int, EVP_DigestInit_ex,
    (EVP_MD_CTX *c, const EVP_MD *type, ENGINE *engine), (c, type, engine))
RETURNS(int, EVP_DigestUpdate, (EVP_MD_CTX *c, const void *p, size_t n), (c, p, n))
RETURNS(int, EVP_DigestFinal_ex,
    (EVP_MD_CTX *c, unsigned char *md, unsigned *md_len), (c, md, md_len))
RETURNS(int, EVP_DigestSignInit,
    (EVP_MD_CTX *c, EVP_PKEY_CTX **key_ctx, const EVP_MD *type, ENGINE *engine, EVP_PKEY *key),
    (c, key_ctx, type, engine, key))
RETURNS(int, EVP_DigestSign,
    (EVP_MD_CTX *c, unsigned char *sig, size_t *sig_len, BYTES p, size_t n),
    (c, sig, sig_len, p, n))

RETURNS(const EVP_CIPHER *, EVP_aes_256_gcm, (void), ())
RETURNS(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void), ())
VOID(EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX *c), (c))
RETURNS(int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX *c, int type, int n, void *p), (c, type, n, p))
RETURNS(int, EVP_CipherInit_ex,
    (EVP_CIPHER_CTX *c, const EVP_CIPHER *type, ENGINE *engine, BYTES key, BYTES iv, int enc),
    (c, type, engine, key, iv, enc))
RETURNS(int, EVP_EncryptUpdate,
    (EVP_CIPHER_CTX *c, unsigned char *out, int *out_len, BYTES in, int in_len),
    (c, out, out_len, in, in_len))
RETURNS(int, EVP_EncryptFinal_ex,
    (EVP_CIPHER_CTX *c, unsigned char *out, int *out_len), (c, out, out_len))
RETURNS(int, EVP_DecryptUpdate,
    (EVP_CIPHER_CTX *c, unsigned char *out, int *out_len, BYTES in, int in_len),
    (c, out, out_len, in, in_len))
RETURNS(int, EVP_DecryptFinal_ex,
    (EVP_CIPHER_CTX *c, unsigned char *out, int *out_len), (c, out, out_len))

RETURNS(int, EVP_EncodeBlock, (unsigned char *out, BYTES in, int n), (out, in, n))
RETURNS(int, EVP_DecodeBlock, (unsigned char *out, BYTES in, int n), (out, in, n))

RETURNS(BIO *, BIO_new_mem_buf, (const void *p, int n), (p, n))
RETURNS(int, BIO_free, (BIO *b), (b))
RETURNS(EVP_PKEY *, PEM_read_bio_PrivateKey,
    (BIO *b, EVP_PKEY **key, pem_password_cb *ask, void *ctx), (b, key, ask, ctx))
VOID(EVP_PKEY_free, (EVP_PKEY *key), (key))
RETURNS(int, EVP_PKEY_get_base_id, (const EVP_PKEY *key), (key))
RETURNS(int, EVP_PKEY_get_bits, (const EVP_PKEY *key), (key))

/* messages of CMS: backups */
RETURNS(const EVP_CIPHER *, EVP_aes_256_cbc, (void), ())
RETURNS(long, BIO_ctrl, (BIO *b, int cmd, long n, void *p), (b, cmd, n, p))
RETURNS(void *, CRYPTO_memdup, (const void *p, size_t n, const char *file, int line),
    (p, n, file, line))
RETURNS(OPENSSL_STACK *, OPENSSL_sk_new_null, (void), ())
RETURNS(int, OPENSSL_sk_push, (OPENSSL_STACK *s, const void *p), (s, p))
VOID(OPENSSL_sk_free, (OPENSSL_STACK *s), (s))
RETURNS(X509 *, PEM_read_bio_X509, (BIO *b, X509 **x, pem_password_cb *ask, void *ctx),
    (b, x, ask, ctx))
VOID(X509_free, (X509 *x), (x))
RETURNS(CMS_ContentInfo *, CMS_encrypt,
    (STACK_OF(X509) *to, BIO *in, const EVP_CIPHER *cipher, unsigned flags),
    (to, in, cipher, flags))
RETURNS(CMS_RecipientInfo *, CMS_add0_recipient_password,
    (CMS_ContentInfo *c, int rounds, int wrap, int derive, unsigned char *pass, ossl_ssize_t n,
     const EVP_CIPHER *cipher),
    (c, rounds, wrap, derive, pass, n, cipher))
RETURNS(int, CMS_final, (CMS_ContentInfo *c, BIO *in, BIO *detached, unsigned flags),
    (c, in, detached, flags))
RETURNS(int, CMS_decrypt,
    (CMS_ContentInfo *c, EVP_PKEY *key, X509 *cert, BIO *detached, BIO *out, unsigned flags),
    (c, key, cert, detached, out, flags))
RETURNS(int, CMS_decrypt_set1_password, (CMS_ContentInfo *c, unsigned char *pass, ossl_ssize_t n),
    (c, pass, n))
RETURNS(int, CMS_decrypt_set1_pkey, (CMS_ContentInfo *c, EVP_PKEY *key, X509 *cert),
    (c, key, cert))
RETURNS(int, i2d_CMS_bio, (BIO *out, CMS_ContentInfo *c), (out, c))
RETURNS(CMS_ContentInfo *, d2i_CMS_bio, (BIO *in, CMS_ContentInfo **c), (in, c))
VOID(CMS_ContentInfo_free, (CMS_ContentInfo *c), (c))
/* clang-format on */
