/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/crypt.h"
#include "base/prng.h"
#include "base/str.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define SALT_BYTES 32
#define TAG_BYTES 16
#define NONCE_BYTES 12

static_assert(CRYPT_MORE == SALT_BYTES + TAG_BYTES, "the parts add up");

void crypt_derive(const unsigned char key[CRYPT_KEY_BYTES], const void *p, size_t n,
    unsigned char out[CRYPT_KEY_BYTES])
{
    unsigned int len = 0;
    const unsigned char *done = HMAC(EVP_sha256(), key, CRYPT_KEY_BYTES, p, n, out, &len);

    assert(done && len == CRYPT_KEY_BYTES);
}

static void derive_text(
    const unsigned char key[CRYPT_KEY_BYTES], const char *text, unsigned char out[CRYPT_KEY_BYTES])
{
    crypt_derive(key, text, strlen(text), out);
}

void crypt_add_bytes(struct ckpt_crypt *c, const unsigned char key[CRYPT_KEY_BYTES])
{
    struct crypt_key *k = &c->keys[c->n++];
    unsigned char id[CRYPT_KEY_BYTES];

    assert(c->n <= CRYPT_KEYS_MAX);
    derive_text(key, "belay seal", k->seal);
    derive_text(key, "belay name", k->name);
    derive_text(key, "belay id", id);
    str_hex(id, CRYPT_ID_HEX / 2, k->id);
}

int crypt_add(struct ckpt_crypt *c, const char *hex, struct err *e)
{
    unsigned char key[CRYPT_KEY_BYTES];
    int rc = 0;

    if (c->n == CRYPT_KEYS_MAX)
        rc = err_set(e, ERR_INVALID, "more than %d keys", CRYPT_KEYS_MAX);
    else if (!str_unhex(hex, key, sizeof(key)))
        rc = err_set(e, ERR_INVALID, "a key is not %d lower-case hex digits", CRYPT_KEY_HEX);
    else
        crypt_add_bytes(c, key);
    OPENSSL_cleanse(key, sizeof(key));
    return rc;
}

const struct crypt_key *crypt_find(const struct ckpt_crypt *c, const char *id)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (str_eq(c->keys[i].id, id))
            return &c->keys[i];
    return NULL;
}

void crypt_wipe(struct ckpt_crypt *c)
{
    OPENSSL_cleanse(c, sizeof(*c));
}

static void start(
    EVP_CIPHER_CTX *x, const struct crypt_key *k, const unsigned char *salt, bool seals)
{
    static const unsigned char nonce[NONCE_BYTES] = {0};
    unsigned char key[CRYPT_KEY_BYTES];
    int ok;

    crypt_derive(k->seal, salt, SALT_BYTES, key);
    ok = EVP_CipherInit_ex(x, EVP_aes_256_gcm(), NULL, key, nonce, seals);
    assert(ok == 1);
    OPENSSL_cleanse(key, sizeof(key));
}

void crypt_seal(const struct crypt_key *k, const char *what, void *p, size_t n)
{
    unsigned char *salt = (unsigned char *)p + n, *tag = salt + SALT_BYTES;
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    int len = 0, end = 0, ok;

    assert(x && n <= INT32_MAX);
    random_bytes(salt, SALT_BYTES);
    start(x, k, salt, true);
    ok = EVP_EncryptUpdate(x, NULL, &len, (const unsigned char *)what, (int)strlen(what));
    ok &= EVP_EncryptUpdate(x, p, &len, p, (int)n);
    ok &= EVP_EncryptFinal_ex(x, salt, &end); /* with GCM adds no bytes */
    ok &= EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag);
    assert(ok == 1 && (size_t)len == n && end == 0);
    EVP_CIPHER_CTX_free(x);
}

int crypt_open(
    const struct crypt_key *k, const char *what, void *p, size_t n, size_t *ret_n, struct err *e)
{
    unsigned char *salt, *tag, none[1];
    EVP_CIPHER_CTX *x;
    size_t inner;
    int len = 0, ok;

    if (n < CRYPT_MORE || n > INT32_MAX)
        return err_set(e, ERR_CORRUPT, "%zu bytes are not encrypted content", n);
    inner = n - CRYPT_MORE;
    salt = (unsigned char *)p + inner;
    tag = salt + SALT_BYTES;
    x = EVP_CIPHER_CTX_new();
    assert(x);
    start(x, k, salt, false);
    ok = EVP_DecryptUpdate(x, NULL, &len, (const unsigned char *)what, (int)strlen(what));
    ok &= EVP_DecryptUpdate(x, p, &len, p, (int)inner);
    ok &= EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag);
    ok = ok == 1 && EVP_DecryptFinal_ex(x, none, &len) == 1;
    EVP_CIPHER_CTX_free(x);
    if (!ok) { /* the output is not authentic */
        OPENSSL_cleanse(p, inner);
        return err_set(e, ERR_CORRUPT, "it was modified, or another object was put in its place");
    }
    *ret_n = inner;
    return 0;
}

void crypt_name(const struct crypt_key *k, const char *sha256, char out[CRYPT_NAME_HEX + 1])
{
    unsigned char mac[CRYPT_KEY_BYTES];

    derive_text(k->name, sha256, mac);
    str_hex(mac, sizeof(mac), out);
}
