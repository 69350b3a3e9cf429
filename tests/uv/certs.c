/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/uv/certs.h"
#include <assert.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *take_pem(BIO *bio)
{
    char *data, *copy;
    long n = BIO_get_mem_data(bio, &data);
    copy = malloc((size_t)n + 1);
    assert(n > 0 && copy);
    memcpy(copy, data, (size_t)n);
    copy[n] = '\0';
    BIO_free(bio);
    return copy;
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert(ext && X509_add_ext(x, ext, -1));
    X509_EXTENSION_free(ext);
}

static void add_name(X509_NAME *name, const char *field, const char *text)
{
    if (text)
        assert(X509_NAME_add_entry_by_txt(
            name, field, MBSTRING_UTF8, (const unsigned char *)text, -1, -1, 0));
}

static void fill(X509 *x, X509 *issuer, EVP_PKEY *key, const struct cert_options *o)
{
    unsigned char serial[8];
    assert(RAND_bytes(serial, sizeof(serial)) == 1);
    serial[0] &= 0x7f;
    BIGNUM *bn = BN_bin2bn(serial, sizeof(serial), NULL);
    BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x));
    BN_free(bn);
    X509_set_version(x, 2);
    X509_gmtime_adj(X509_getm_notBefore(x), -7200);
    X509_gmtime_adj(X509_getm_notAfter(x), o->is_expired    ? -3600
                                           : o->valid_s > 0 ? o->valid_s
                                                            : 3600);
    X509_set_pubkey(x, key);
    X509_NAME *name = X509_get_subject_name(x);
    add_name(name, "O", "belay test");
    add_name(name, "CN", o->cn);
    add_name(name, "CN", o->second_cn);
    X509_set_issuer_name(x, X509_get_subject_name(issuer));
    add_extension(
        x, issuer, NID_basic_constraints, o->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (o->is_ca)
        add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (o->san)
        add_extension(x, issuer, NID_subject_alt_name, o->san);
    if (o->usage)
        add_extension(x, issuer, NID_ext_key_usage, o->usage);
}

static X509 *read_cert(const struct cert *c)
{
    BIO *bio = BIO_new_mem_buf(c->cert_pem, -1);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert(x);
    return x;
}

struct cert cert_make(const struct cert_options *o)
{
    EVP_PKEY *key = EVP_EC_gen("P-256"), *issuer_key = key;
    X509 *x = X509_new(), *issuer = x;
    assert(key && x);
    if (o->issuer) {
        issuer = read_cert(o->issuer);
        BIO *bio = BIO_new_mem_buf(o->issuer->key_pem, -1);
        issuer_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
        BIO_free(bio);
        assert(issuer_key);
    }
    fill(x, issuer, key, o);
    assert(X509_sign(x, issuer_key, EVP_sha256()) > 0);
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(cert_bio, x);
    PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL);
    if (o->issuer) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
    X509_free(x);
    EVP_PKEY_free(key);
    return (struct cert){.cert_pem = take_pem(cert_bio), .key_pem = take_pem(key_bio)};
}

struct cert cert_copy(const struct cert *c)
{
    return (struct cert){.cert_pem = strdup(c->cert_pem), .key_pem = strdup(c->key_pem)};
}

void cert_name_hash(const struct cert *c, char *out, size_t size)
{
    X509 *x = read_cert(c);
    snprintf(out, size, "%08lx", X509_subject_name_hash(x));
    X509_free(x);
}

void cert_deinit(struct cert *c)
{
    free(c->cert_pem);
    free(c->key_pem);
    *c = (struct cert){0};
}
