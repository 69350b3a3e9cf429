/* SPDX-License-Identifier: Apache-2.0
 *
 * Input is a stored manifest without its hash member, which is added here. It is opened as an
 * encrypted one with an available key; and sealing the input and opening it gives the input back.
 */
#include "ckpt/manifest.h"
#include "ckpt/sealed.h"

#include <assert.h>
#include <string.h>

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_foreign(const struct ckpt_crypt *c, const uint8_t *data, size_t size)
{
    const struct crypt_key *key;
    struct buf text = {0};
    struct err e;
    buf_add(&text, data, size);
    manifest_add_tail(&text);
    if (sealed_is(&text) && sealed_open(c, "x", &text, &key, &e) == 0)
        assert(key == &c->keys[0]);
    buf_deinit(&text);
}

static void round_trip(const struct ckpt_crypt *c, const uint8_t *data, size_t size)
{
    const struct crypt_key *key;
    struct buf text = {0};
    struct err e;
    buf_add(&text, data, size);
    sealed_close(&c->keys[0], "x", &text);
    assert(sealed_is(&text));
    int rc = sealed_open(c, "x", &text, &key, &e);
    assert(rc == 0 && text.len == size && memcmp(text.data, data, size) == 0);
    (void)rc;
    buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ckpt_crypt c = {0};
    if (size == 0)
        return 0;
    if (crypt_add(&c, KEY, NULL) != 0)
        return 0;
    open_foreign(&c, data, size);
    round_trip(&c, data, size);
    return 0;
}
