/* SPDX-License-Identifier: Apache-2.0
 *
 * Text helpers: copies, comparisons, UTF-8, hex, URLs, shell words. Numbers and sizes are in
 * str_num.c.
 */
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

size_t str_cut(const char *s, size_t n, size_t max)
{
    if (n <= max)
        return n;
    size_t at = max;
    while (at > 0 && max - at < 3 && is_continuation(s[at]))
        at--;
    return at;
}

bool str_copy(char *dst, size_t size, const char *src)
{
    assert(size > 0);
    size_t n = src ? strlen(src) : 0, kept = src ? str_cut(src, n, size - 1) : 0;
    memcpy(dst, src ? src : "", kept);
    dst[kept] = 0;
    return kept == n;
}

#define LEFT_OUT "..."

void str_shorten(char *dst, size_t size, const char *src)
{
    assert(size >= STR_SHORTEN_MIN);
    size_t n = strlen(src), space = size - 1 - strlen(LEFT_OUT);
    if (n < size) {
        memmove(dst, src, n + 1);
        return;
    }
    size_t tail = space / 2, head = str_cut(src, n, space - tail), from = n - tail;
    for (int i = 0; i < 3 && is_continuation(src[from]); i++)
        from++;
    memmove(dst, src, head);
    memcpy(dst + head, LEFT_OUT, strlen(LEFT_OUT));
    memmove(dst + head + strlen(LEFT_OUT), src + from, n - from + 1);
}

/* One character of len bytes: a control character (C0, DEL, C1), or a text direction mark (U+200E,
 * U+200F, U+202A .. U+202E, U+2066 .. U+2069), which can make a line read as another. */
static bool is_control(const unsigned char *p, size_t len)
{
    if (len == 1)
        return p[0] < 0x20 || p[0] == 0x7F;
    if (len == 2)
        return p[0] == 0xC2 && p[1] < 0xA0;
    if (len != 3 || p[0] != 0xE2)
        return false;
    return (p[1] == 0x80 && (p[2] == 0x8E || p[2] == 0x8F || (p[2] >= 0xAA && p[2] <= 0xAE))) ||
           (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9);
}

bool str_has_control(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0, len; i < n; i += len) {
        len = str_utf8_len(s + i, n - i);
        if (len == 0 || is_control((const unsigned char *)s + i, len))
            return true;
    }
    return false;
}

void str_sanitize(char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = str_utf8_len(s + i, n - i);
        if (len == 0 || is_control((const unsigned char *)s + i, len)) {
            s[i] = '?';
            len = 1;
        }
    }
}

const char *str_show(const char *text, char out[STR_SHOW_MAX])
{
    if (!text) {
        str_copy(out, STR_SHOW_MAX, "nothing");
        return out;
    }
    size_t n = strlen(text), kept = str_cut(text, n, 48);
    snprintf(out, STR_SHOW_MAX, "\"%.*s\"%s", (int)kept, text, kept < n ? "..." : "");
    str_sanitize(out + 1, kept);
    return out;
}

bool str_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

bool str_is_one_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (str_eq(s, *list))
            return true;
    return false;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool str_is_name(const char *s, size_t max)
{
    size_t n = 0;
    for (; s[n]; n++)
        if (n >= max || !(is_alnum(s[n]) || (n > 0 && strchr("._-", s[n]))))
            return false;
    return n > 0;
}

size_t str_utf8_len(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;
    if (n == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (!is_continuation(p[i]))
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] > 0x9F;
    bool above = s[0] == 0xF4 && s[1] > 0x8F;
    return overlong || surrogate || above ? 0 : len;
}

bool str_is_utf8(const char *p, size_t n)
{
    while (n > 0) {
        size_t len = str_utf8_len(p, n);
        if (len == 0)
            return false;
        p += len;
        n -= len;
    }
    return true;
}

void str_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *s = p;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[s[i] >> 4];
        out[2 * i + 1] = digits[s[i] & 15];
    }
    out[2 * n] = 0;
}

static int low_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_unhex(const char *hex, void *out, size_t n)
{
    unsigned char *bytes = out;
    if (strlen(hex) != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = low_hex_digit(hex[2 * i]), low = low_hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static int hex_digit(char c)
{
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : low_hex_digit(c);
}

void str_url_encode(struct buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_alnum(s[i]) || (s[i] && strchr("-_.~", s[i])))
            buf_addc(out, s[i]);
        else
            buf_printf(out, "%%%02X", (unsigned char)s[i]);
    }
}

int str_url_decode(struct buf *out, const char *s, size_t n, bool form, struct err *e)
{
    size_t before = out->len;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)s[i];
        if (c == '+' && form)
            c = ' ';
        if (c == '%') {
            int high = i + 2 < n ? hex_digit(s[i + 1]) : -1,
                low = i + 2 < n ? hex_digit(s[i + 2]) : -1;
            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (c == 0) {
            buf_truncate(out, before);
            return err_set(
                e, ERR_INVALID, "malformed URL escape: expected %% and two hex digits, not %%00");
        }
        buf_addc(out, (char)c);
    }
    return 0;
}

static bool is_shell_safe(const char *s)
{
    /* '=' and '~' are quoted: the first word may be an assignment, and ~ a home directory */
    for (const char *p = s; *p; p++)
        if (!is_alnum(*p) && !strchr("_@%+:,./-", *p))
            return false;
    return *s != 0;
}

void str_shell_quote(struct buf *out, const char *s)
{
    if (is_shell_safe(s)) {
        buf_adds(out, s);
        return;
    }
    buf_addc(out, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    }
    buf_addc(out, '\'');
}

bool str_secret_eq(const char *a, const char *b)
{
    size_t n = strlen(a);
    if (strlen(b) != n)
        return false;
    volatile unsigned char difference = 0; /* volatile: the loop must not end early */
    for (size_t i = 0; i < n; i++)
        difference |= (unsigned char)(a[i] ^ b[i]);
    return difference == 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment, keeping the last three rows of the table. Both words fit in
 * STR_NEAREST_MAX. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][STR_NEAREST_MAX + 1], n = strlen(b);
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
    }
    return row[n];
}

/* Whether word is one of the words of name, as "name" is of "job-name". */
static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(name, word); n && at; at = strstr(at + 1, word)) {
        if ((at == name || at[-1] == '-') && (at[n] == '\0' || at[n] == '-'))
            return true;
    }
    return false;
}

const char *str_nearest(const char *word, const char *const *names)
{
    const char *nearest = NULL;
    size_t limit = 2 + strlen(word) / 3; /* exclusive */
    if (strlen(word) > STR_NEAREST_MAX)
        return NULL;
    for (; *names; names++) {
        if (strlen(*names) > STR_NEAREST_MAX)
            continue;
        size_t d = distance(word, *names);
        if (d > 1 && has_word(*names, word))
            d = 1;
        if (d < limit) {
            limit = d;
            nearest = *names;
        }
    }
    return nearest;
}

void str_list_names(struct buf *out, const char *word, const char *const *names)
{
    buf_adds(out, "one of");
    for (size_t i = 0; names[i]; i++)
        buf_printf(out, "%s %s", i ? "," : "", names[i]);
    const char *nearest = word ? str_nearest(word, names) : NULL;
    if (nearest)
        buf_printf(out, " (nearest: %s)", nearest);
}
