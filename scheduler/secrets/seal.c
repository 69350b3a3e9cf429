/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/secrets/seal.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define VERSION "s1."
#define HEAD (sizeof(VERSION) - 1 + CRYPT_ID_HEX + 1)
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

struct sealer {
    struct ckpt_crypt crypt;
    unsigned char tokens[CRYPT_KEY_BYTES]; /* for sealer_mac */
};

/* Derives a key for one purpose, of this cluster only. */
static void derive(
    const struct master *m, size_t i, const char *purpose, unsigned char out[CRYPT_KEY_BYTES])
{
    char *what = mem_printf("belay %s %s", purpose, m->cluster_uid);
    crypt_derive(m->keys[i], what, strlen(what), out);
    free(what);
}

struct sealer *sealer_create(const struct master *m)
{
    unsigned char key[CRYPT_KEY_BYTES];
    struct sealer *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(s != MAP_FAILED); /* like out of memory */
    assert(m->n > 0);
    (void)madvise(s, sizeof(*s), MADV_DONTDUMP);
    (void)mlock(s, sizeof(*s)); /* best effort: a limit may forbid it */
    for (size_t i = 0; i < m->n; i++) {
        derive(m, i, "database", key);
        crypt_add_bytes(&s->crypt, key);
    }
    derive(m, m->n - 1, "tokens", s->tokens);
    explicit_bzero(key, sizeof(key));
    return s;
}

void sealer_destroy(struct sealer *s)
{
    if (!s)
        return;
    explicit_bzero(s, sizeof(*s));
    munmap(s, sizeof(*s));
}

const char *sealer_key_id(const struct sealer *s)
{
    return s->crypt.keys[0].id;
}

bool sealer_has_key(const struct sealer *s, const char *id)
{
    return crypt_find(&s->crypt, id) != NULL;
}

char *seal(const struct sealer *s, const char *what, const void *p, size_t n)
{
    assert(n <= SEAL_PLAIN_MAX);
    unsigned char *bytes = mem_alloc(n + CRYPT_MORE);
    char *out = mem_alloc(SEAL_SIZE(n) + 1);
    if (n > 0)
        memcpy(bytes, p, n);
    crypt_seal(&s->crypt.keys[0], what, bytes, n);
    memcpy(out, VERSION, sizeof(VERSION) - 1);
    memcpy(out + sizeof(VERSION) - 1, s->crypt.keys[0].id, CRYPT_ID_HEX);
    out[HEAD - 1] = '.';
    EVP_EncodeBlock((unsigned char *)out + HEAD, bytes, (int)(n + CRYPT_MORE));
    free(bytes);
    return out;
}

/* Returns the length of the base64 part, 0 if the text is not a sealed form. */
static size_t base64_length(const char *text)
{
    if (!str_starts(text, VERSION) || strnlen(text, HEAD) < HEAD || text[HEAD - 1] != '.' ||
        strspn(text + sizeof(VERSION) - 1, "0123456789abcdef") != CRYPT_ID_HEX)
        return 0;
    size_t n = strspn(text + HEAD, BASE64), padding = strspn(text + HEAD + n, "=");
    bool good = padding <= 2 && text[HEAD + n + padding] == '\0' && (n + padding) % 4 == 0 &&
                n + padding <= SEAL_SIZE(SEAL_PLAIN_MAX) && (n * 3) / 4 >= CRYPT_MORE;
    return good ? n + padding : 0;
}

bool seal_is_sealed(const char *text)
{
    return text && base64_length(text) > 0;
}

static const struct crypt_key *key_of(const struct sealer *s, const char *sealed)
{
    char id[CRYPT_ID_HEX + 1];
    memcpy(id, sealed + sizeof(VERSION) - 1, CRYPT_ID_HEX);
    id[CRYPT_ID_HEX] = '\0';
    return crypt_find(&s->crypt, id);
}

bool seal_is_current(const struct sealer *s, const char *sealed)
{
    return seal_is_sealed(sealed) && key_of(s, sealed) == &s->crypt.keys[0];
}

int seal_open(
    const struct sealer *s, const char *what, const char *sealed, struct buf *ret, struct err *e)
{
    size_t n = base64_length(sealed), got = 0;
    if (n == 0)
        return err_set(e, ERR_INVALID, "it is not in sealed form");
    const struct crypt_key *key = key_of(s, sealed);
    if (!key)
        return err_set(e, ERR_NOT_FOUND,
            "it is sealed with the key %.16s, which the key file lacks: put that key back",
            sealed + sizeof(VERSION) - 1);
    unsigned char *bytes = mem_alloc(n);
    int len = EVP_DecodeBlock(bytes, (const unsigned char *)sealed + HEAD, (int)n);
    assert(len >= 0); /* its characters were checked */
    for (size_t i = n; i > 0 && sealed[HEAD + i - 1] == '='; i--)
        len--;
    int rc = crypt_open(key, what, bytes, (size_t)len, &got, e);
    if (rc == 0)
        buf_add(ret, bytes, got);
    explicit_bzero(bytes, n);
    free(bytes);
    return rc;
}

void sealer_mac(const struct sealer *s, const char *text, char out[SEAL_MAC_HEX + 1])
{
    unsigned char mac[CRYPT_KEY_BYTES];
    crypt_derive(s->tokens, text, strlen(text), mac);
    str_hex(mac, sizeof(mac), out);
}
