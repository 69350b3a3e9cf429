/* SPDX-License-Identifier: Apache-2.0 */
#include "base/b64.h"
#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void b64_encode(struct buf *out, const void *p, size_t n)
{
    const unsigned char *in = p;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                     (left > 2 ? in[i + 2] : 0);
        buf_addc(out, alphabet[v >> 18]);
        buf_addc(out, alphabet[v >> 12 & 63]);
        buf_addc(out, left > 1 ? alphabet[v >> 6 & 63] : '=');
        buf_addc(out, left > 2 ? alphabet[v & 63] : '=');
    }
}

int b64_decode(struct buf *out, const char *text, size_t n, struct err *e)
{
    uint32_t v = 0;
    size_t n_digits = 0, n_pads = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        const char *digit = text[i] ? strchr(alphabet, text[i]) : NULL;
        if (text[i] == '=')
            n_pads++;
        else if (!digit || n_pads > 0)
            return err_set(e, ERR_INVALID, "not base64 at byte %zu", i);
        v = v << 6 | (digit ? (uint32_t)(digit - alphabet) : 0);
        if (++n_digits % 4 != 0)
            continue;
        if (n_pads > 2)
            break;
        const char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        buf_add(out, bytes, 3 - n_pads);
        v = 0;
    }
    if (n_digits % 4 != 0 || n_pads > 2)
        return err_set(e, ERR_INVALID, "not base64: its length or its padding is wrong");
    return 0;
}

void b64_url_encode(struct buf *out, const void *p, size_t n)
{
    const unsigned char *in = p;
    uint32_t v = 0;
    int bits = 0;
    for (size_t i = 0; i < n; i++) {
        v = (v << 8 | in[i]) & 0xffff;
        for (bits += 8; bits >= 6; bits -= 6)
            buf_addc(out, url_alphabet[v >> (bits - 6) & 63]);
    }
    if (bits > 0)
        buf_addc(out, url_alphabet[v << (6 - bits) & 63]);
}

int b64_url_decode(struct buf *out, const char *text, size_t n, struct err *e)
{
    uint32_t v = 0;
    int bits = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digit = text[i] ? strchr(url_alphabet, text[i]) : NULL;
        if (!digit)
            return err_set(e, ERR_INVALID, "not base64url at byte %zu", i);
        v = (v << 6 | (uint32_t)(digit - url_alphabet)) & 0xffff;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        buf_addc(out, (char)(v >> bits & 0xff));
    }
    if (bits >= 6 || (v & ((1u << bits) - 1)) != 0)
        return err_set(e, ERR_INVALID, "not base64url: its length or its last bits are wrong");
    return 0;
}
