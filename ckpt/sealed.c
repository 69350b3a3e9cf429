/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/sealed.h"
#include "ckpt/manifest.h"
#include <assert.h>
#include <string.h>

#define HEAD_START "{\"format\":\"belay-checkpoint\",\"version\":3,"
#define HEAD_CIPHER "\"cipher\":\"aes-256-gcm\",\"key\":\""
#define HEAD_END "\",\"sealed\":\""
#define HEAD_BYTES (sizeof(HEAD_START HEAD_CIPHER HEAD_END) - 1 + CRYPT_ID_HEX)
#define AROUND (HEAD_BYTES + CRYPT_MORE + MANIFEST_TAIL_BYTES)

static_assert(AROUND <= SEALED_MORE_MAX, "the limit is kept");

void sealed_close(const struct crypt_key *k, const char *what, struct buf *text)
{
    size_t n = text->len;

    buf_reserve(text, AROUND + 1);
    buf_commit(text, HEAD_BYTES + CRYPT_MORE);
    memmove(text->data + HEAD_BYTES, text->data, n);
    memcpy(text->data, HEAD_START HEAD_CIPHER, sizeof(HEAD_START HEAD_CIPHER) - 1);
    memcpy(text->data + sizeof(HEAD_START HEAD_CIPHER) - 1, k->id, CRYPT_ID_HEX);
    memcpy(text->data + HEAD_BYTES - (sizeof(HEAD_END) - 1), HEAD_END, sizeof(HEAD_END) - 1);
    crypt_seal(k, what, text->data + HEAD_BYTES, n);
    manifest_add_tail(text);
}

bool sealed_is(const struct buf *stored)
{
    return stored->len >= sizeof(HEAD_START) - 1 &&
           !memcmp(stored->data, HEAD_START, sizeof(HEAD_START) - 1);
}

/* The key's id, or ERR_CORRUPT. */
static int parse_head(const struct buf *stored, char ret_id[CRYPT_ID_HEX + 1], struct err *e)
{
    const char *cipher = stored->data + sizeof(HEAD_START) - 1,
               *id = cipher + sizeof(HEAD_CIPHER) - 1;

    if (stored->len <= AROUND || !manifest_tail_fits(stored->data, stored->len))
        return err_set(e, ERR_CORRUPT, "the encrypted manifest does not match its own hash");
    if (memcmp(cipher, HEAD_CIPHER, sizeof(HEAD_CIPHER) - 1) != 0 ||
        memcmp(id + CRYPT_ID_HEX, HEAD_END, sizeof(HEAD_END) - 1) != 0)
        return err_set(e, ERR_CORRUPT, "the encrypted manifest has no key or is malformed");
    memcpy(ret_id, id, CRYPT_ID_HEX);
    ret_id[CRYPT_ID_HEX] = '\0';
    return 0;
}

int sealed_open(const struct ckpt_crypt *c, const char *what, struct buf *stored,
    const struct crypt_key **ret_key, struct err *e)
{
    char id[CRYPT_ID_HEX + 1];
    const struct crypt_key *k;
    size_t n;
    int rc = parse_head(stored, id, e);

    if (rc)
        return rc;
    k = crypt_find(c, id);
    if (!k && (!c || c->n == 0))
        return err_set(e, ERR_UNSUPPORTED,
            "it is encrypted (key %.16s), and there is no key here (belay checkpoint takes "
            "--key-file FILE)",
            id);
    if (!k)
        return err_set(e, ERR_UNSUPPORTED,
            "it is encrypted with the key %.16s, which is not among the keys here; they are of "
            "another cluster, job or time (the first is %s)",
            id, c->keys[0].id);
    buf_truncate(stored, stored->len - MANIFEST_TAIL_BYTES);
    buf_remove_front(stored, HEAD_BYTES);
    rc = crypt_open(k, what, stored->data, stored->len, &n, e);
    if (rc)
        return err_wrap(e, "the encrypted manifest");
    buf_truncate(stored, n);
    *ret_key = k;
    return 0;
}
